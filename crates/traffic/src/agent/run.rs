//! A run at an agent: orders taken, started, and ended. What is asked is judged by the policy that
//! the host's administrator wrote, as it is when the run begins.

use super::bucket::Bucket;
use super::data_listener::{Expected, ExpectedConnections, connect};
use super::datagrams;
use super::give_way::give_way;
use super::receiving::receive;
use super::sending::{Connection, Flow};
use super::session::{AHEAD_NS_MAX, Counter, Session, progress};
use super::spool::{Files, Spool};
use crate::audit::Audit;
use crate::clock::now_ns;
use crate::consent::Token;
use crate::disk::Disk;
use crate::mechanisms::Mechanisms;
use crate::message::{End, Progress};
use crate::order::{Carrier, Order};
use crate::policy::Policy;
use crate::sender::Sender;
use ipnet::IpNet;
use ring::rand::SystemRandom;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender as Told, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a flow's receiver may take to consent on all connections: less than the controller
/// waits for an answer.
const CONSENT_MAX: Duration = Duration::from_secs(10);

/// A run.
pub struct Run {
    /// What its threads share.
    pub session: Arc<Session>,
    policy: Policy,
    audit: Arc<Audit>,
    expected_connections: Arc<ExpectedConnections>,
    spool: Spool,
    /// Where connections are made from.
    from: IpAddr,
    counters: Vec<Arc<Counter>>,
    senders: Vec<JoinHandle<()>>,
    /// Told when a receiver has ended.
    done: (Told<()>, Receiver<()>),
    receivers: usize,
    buckets: BTreeMap<IpNet, Arc<Bucket>>,
    /// Bytes that may still be sent.
    left: Arc<AtomicU64>,
    mechanisms: Mechanisms,
    has_started: bool,
}

fn plain(error: &io::Error) -> String {
    clearlane_lab::plain(error).to_string()
}

impl Run {
    /// Takes part in a run. `disk` keeps logs in an agent's `folder`, and flows are sent `from` an
    /// address. Fails if the policy does not allow so long a run, or the logs cannot be begun.
    pub fn begin(
        session: &Arc<Session>,
        policy: Policy,
        (disk, folder, from): (&Arc<Disk<Files>>, &Path, IpAddr),
        audit: &Arc<Audit>,
        expected_connections: &Arc<ExpectedConnections>,
    ) -> Result<Self, String> {
        let limits = policy.limits;
        if session.duration_ns > limits.duration.0 / 1000 {
            let asked = session.duration_ns as f64 * 1e-9;
            return Err(format!(
                "a run of {asked} s is longer than the host's policy allows (limits.duration = {})",
                limits.duration
            ));
        }
        let spool = Spool::begin(disk, folder, limits.logs.0, (session, audit))?;
        Ok(Run {
            session: Arc::clone(session),
            left: Arc::new(AtomicU64::new(limits.sent.0)),
            policy,
            audit: Arc::clone(audit),
            expected_connections: Arc::clone(expected_connections),
            spool,
            from,
            counters: Vec::new(),
            senders: Vec::new(),
            done: channel(),
            receivers: 0,
            buckets: BTreeMap::new(),
            mechanisms: Mechanisms::default(),
            has_started: false,
        })
    }

    /// Fails if there is something about an order that no policy would allow.
    fn check(&self, order: &Order) -> Result<(), String> {
        order.check().map_err(|error| error.to_string())?;
        if self.has_started {
            return Err("the run has started; give all orders before".into());
        }
        if order.stop_ns > self.session.duration_ns {
            return Err("the flow is longer than the run".into());
        }
        let (limit, asked) = (self.policy.limits.connections as usize, usize::from(order.paths));
        if self.session.is_halted() {
            return Err("the run has been stopped".into());
        }
        // Those of orders that failed have their logs too.
        if self.spool.count() + asked > limit {
            return Err(format!(
                "more connections than the host's policy allows (limits.connections = {limit})"
            ));
        }
        Ok(())
    }

    /// Expects a flow: a token for each of its connections.
    pub fn receive(&mut self, order: &Order, from: IpAddr) -> Result<Vec<Token>, String> {
        self.check(order)?;
        let udp = order.carrier == Carrier::Udp;
        self.policy.may_receive(from, udp).map_err(|error| error.to_string())?;
        let mut tokens = Vec::new();
        for connection in order.connections() {
            let token = Token::new(&SystemRandom::new()).map_err(|error| error.to_string())?;
            let counter = Arc::new(Counter::new(connection, End::Receiver));
            let mut log = self
                .spool
                .log(connection, End::Receiver)
                .map_err(|error| format!("log of connection {connection}: {}", plain(&error)))?;
            self.counters.push(Arc::clone(&counter));
            self.receivers += 1;
            let (session, audit) = (Arc::clone(&self.session), Arc::clone(&self.audit));
            let (done, acks) = (self.done.0.clone(), order.acks);
            let serve = Box::new(move |stream| {
                let take = if udp { datagrams::receive } else { receive };
                let received = take(stream, &session, &counter, &mut log, acks);
                if let Err(why) = received {
                    let why = format!("connection {connection}, received: {why}");
                    session.stop(&audit, "data", &why);
                }
                counter.has_ended.store(true, SeqCst);
                drop(log);
                // Nobody waits for it if the agent ends.
                let _ = done.send(());
            });
            self.expected_connections.expect(Expected { token: token.clone(), from, serve });
            tokens.push(token);
        }
        Ok(tokens)
    }

    /// Connects to a receiver, and is ready to send. Returns what the policy holds it to.
    pub fn send(
        &mut self,
        order: &Order,
        to: SocketAddr,
        tokens: &[Token],
    ) -> Result<Option<u64>, String> {
        self.check(order)?;
        if tokens.len() != usize::from(order.paths) {
            return Err(format!("{} tokens for {} connections", tokens.len(), order.paths));
        }
        let network = self.policy.may_send(to, order.carrier == Carrier::Udp);
        let network = network.map_err(|error| error.to_string())?;
        if let (Some(asked), Some(most)) = (order.rate_asked(), network.rate)
            && asked > most
        {
            return Err(format!(
                "{asked} to {} is more than the host's policy allows ({most} to {})",
                to.ip(),
                network.network
            ));
        }
        let bucket = network.rate.map(|rate| {
            let bucket = self.buckets.entry(network.network);
            Arc::clone(bucket.or_insert_with(|| Arc::new(Bucket::new(rate))))
        });
        let link = order.link().ok_or("its link is none")?;
        Mechanisms::check(order)?;
        let connections = self.connections(order, to, tokens)?;
        let reactors = self.mechanisms.of(order, link)?;
        let sender = Sender::new(order, link, reactors);
        let held_to = bucket.as_ref().map(|bucket| bucket.rate().0);
        let (carrier, left) = (order.carrier, Arc::clone(&self.left));
        let flow = Flow { sender, connections, carrier, bucket, left };
        self.spawn(flow, order.connection)?;
        Ok(held_to)
    }

    /// The connections of a flow, each with its receiver's consent.
    fn connections(
        &mut self,
        order: &Order,
        to: SocketAddr,
        tokens: &[Token],
    ) -> Result<Vec<Connection>, String> {
        let until = Instant::now() + CONSENT_MAX;
        let mut connections = Vec::new();
        for (connection, token) in order.connections().zip(tokens) {
            let mut stream = connect(self.from, to, token, until)?;
            let datagrams = match order.carrier {
                Carrier::Tcp => None,
                Carrier::Udp => Some(datagrams::sender(&mut stream)?),
            };
            let log = self.spool.log(connection, End::Sender);
            let log =
                log.map_err(|error| format!("log of connection {connection}: {}", plain(&error)))?;
            let counter = Arc::new(Counter::new(connection, End::Sender));
            connections.push(Connection::new(stream, datagrams, counter, log));
        }
        // They count once all of them are there.
        self.counters.extend(connections.iter().map(|connection| Arc::clone(&connection.counter)));
        Ok(connections)
    }

    fn spawn(&mut self, flow: Flow, connection: u32) -> Result<(), String> {
        let (session, audit) = (Arc::clone(&self.session), Arc::clone(&self.audit));
        let counters: Vec<Arc<Counter>> =
            flow.connections.iter().map(|connection| Arc::clone(&connection.counter)).collect();
        let thread = std::thread::Builder::new().name(format!("send {connection}"));
        let spawned = thread.spawn(move || {
            give_way();
            if let Err(why) = flow.run(&session) {
                session.stop(&audit, "data", &format!("connection {connection}, sent: {why}"));
            }
            counters.iter().for_each(|counter| counter.has_ended.store(true, SeqCst));
        });
        self.senders.push(spawned.map_err(|error| plain(&error))?);
        Ok(())
    }

    /// Starts at a time of this host's clock.
    pub fn start(&mut self, at_ns: u64) -> Result<(), String> {
        if self.has_started {
            return Err("the run has started".into());
        }
        let now = now_ns();
        if at_ns < now {
            let late = (now - at_ns) / 1_000_000;
            return Err(format!("the start was {late} ms ago: it would not be that of the others"));
        }
        let ahead = at_ns - now;
        if ahead > AHEAD_NS_MAX {
            return Err(format!("a start {} s ahead is too far ahead", ahead / 1_000_000_000));
        }
        self.has_started = true;
        self.session.start(at_ns);
        Ok(())
    }

    /// Whether all its connections have ended here.
    pub fn has_ended(&self) -> bool {
        self.has_started && self.counters.iter().all(|counter| counter.has_ended.load(SeqCst))
    }

    /// What has happened so far, in messages that fit a frame each.
    pub fn progress(&self) -> Vec<Progress> {
        progress(&self.counters, &self.session.stopped())
    }

    /// A part of a log, with its bytes and records in all. Fails while it is written.
    pub fn log(
        &mut self,
        connection: u32,
        end: End,
        offset: u64,
        most: usize,
    ) -> Result<(u64, u64, Vec<u8>), String> {
        if !self.has_ended() {
            return Err(
                "connections are open; their logs are handed over when they have ended".into()
            );
        }
        self.wait();
        self.spool.finish().map_err(|error| plain(&error))?;
        let part = self.spool.read(connection, end, offset, most).map_err(|error| plain(&error))?;
        part.ok_or_else(|| format!("connection {connection} has no such log here"))
    }

    /// Waits for the threads of connections.
    fn wait(&mut self) {
        for thread in self.senders.drain(..) {
            // A panic of it is in the audit log's absence of an end; nothing is owed to it.
            let _ = thread.join();
        }
        while self.receivers > 0 && self.done.1.recv_timeout(Duration::from_secs(10)).is_ok() {
            self.receivers -= 1;
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.session.halt();
        // Receivers that never came drop their logs with this.
        let before = self.receivers;
        self.expected_connections.forget();
        let came = self
            .counters
            .iter()
            .filter(|counter| counter.end == End::Receiver && counter.has_ended.load(SeqCst));
        self.receivers = before.min(came.count());
        self.wait();
    }
}
