//! A run: all agents prepared, started at one time, watched, and asked for their logs.

use super::collect::{Logs, Part, collect};
use super::inventory::{Inventory, Known};
use super::link::{Link, LinkError};
use super::orders::{Ordered, orders};
use crate::clock::{Offset, now_ns};
use crate::keys::Keys;
use crate::message::{Answer, End, Progress, Request};
use clearlane_lab::HostPlan;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// From the last order to the start: the time in which all agents hear of it.
const AHEAD_NS: u64 = 500_000_000;
/// The same for each agent, which are told one after the other.
const AHEAD_NS_EACH: u64 = 20_000_000;
const LEASE_EVERY: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(50);
/// An agent that says nothing of the run for so long is lost; it is to do so four times a second.
const SILENT_MAX: Duration = Duration::from_secs(5);
/// What agents may take after the end until all is received.
const AFTER: Duration = Duration::from_secs(20);

/// What a run is to be like besides its plan.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of a packet, which is one write; the MTU without.
    pub packet_bytes: Option<u32>,
    /// Bytes of logs that are collected.
    pub logs_max: u64,
    /// Where logs are put meanwhile.
    pub folder: PathBuf,
}

/// Who watches a run.
pub trait Watch: Sync {
    /// What is being done.
    fn phase(&self, what: &str);
    /// Bytes received so far, by flow of the plan, so many seconds after the start.
    fn received(&self, seconds: f64, bytes: &[u64]);
    /// So much of the logs is collected.
    fn collected(&self, share: f64);
    /// Whether the run is to stop.
    fn is_stopped(&self) -> bool;
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// What is asked for cannot be.
    #[error("{0}")]
    Plan(String),
    /// An agent.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The logs cannot be kept here.
    #[error("{0}")]
    Machine(String),
    /// An agent was lost, and nothing of the run is left.
    #[error("{0}; no log of the run could be fetched")]
    Lost(String),
    /// It was stopped before it began.
    #[error("interrupted before there was any log")]
    Interrupted,
}

/// An agent's clock beside the controller's, before and after the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Clocks {
    /// When the first comparison was, ns of the controller's clock.
    pub before_ns: u64,
    /// It.
    pub before: Offset,
    /// When the second was.
    pub after_ns: u64,
    /// It.
    pub after: Offset,
}

impl Clocks {
    /// A time of the agent's clock as the controller's has it: drift is taken to be even.
    pub fn ours(&self, theirs_ns: u64) -> u64 {
        let span = self.after_ns.saturating_sub(self.before_ns).max(1);
        let at = self.before.ours(theirs_ns).clamp(self.before_ns, self.after_ns);
        let drift = i128::from(self.after.ns) - i128::from(self.before.ns);
        let drift = drift * i128::from(at.saturating_sub(self.before_ns)) / i128::from(span);
        let offset = i128::from(self.before.ns) + drift;
        u64::try_from(i128::from(theirs_ns) - offset).unwrap_or(0)
    }

    /// The true time is no farther away than this, if the drift is even.
    pub fn bound_ns(&self) -> u64 {
        self.before.bound_ns.max(self.after.bound_ns) + 1
    }
}

/// A host that took part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// Its agent.
    pub known: Known,
    /// Its clock.
    pub clocks: Clocks,
    /// Why its part ended before its time; empty if it did not.
    pub stopped: String,
    /// Why logs of it are missing; empty if none is.
    pub missing: String,
}

/// A log that was fetched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptLog {
    /// The file.
    pub path: PathBuf,
    /// Records that the agent noted in it.
    pub records: u64,
}

/// A connection and where its logs are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// Its flow in the plan.
    pub flow: usize,
    /// Its number.
    pub connection: u32,
    /// Its sender and receiver among the hosts.
    pub ends: [usize; 2],
    /// What each noted; nothing where that is missing.
    pub logs: Logs,
    /// What the sender's policy held it to, bit/s.
    pub held_to_bps: Option<u64>,
}

/// What a run left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// The hosts.
    pub hosts: Vec<Host>,
    /// The connections.
    pub connections: Vec<Kept>,
    /// When it started, ns of the controller's clock.
    pub start_ns: u64,
    /// Whether it ended before its time, or logs are missing.
    pub partial: bool,
    /// When it was stopped, ns since the start; nothing if it was not.
    pub stopped_ns: Option<u64>,
}

/// An agent in a run.
pub(super) struct Member {
    pub(super) link: Link,
    before_ns: u64,
    before: Offset,
    stopped: String,
    /// Why it can be asked nothing any more; empty as long as it can.
    pub(super) lost: String,
}

impl Member {
    /// Its clock before and after the run. Of one that is lost, the first comparison has to do.
    fn clocks(&mut self) -> Clocks {
        let (before_ns, before) = (self.before_ns, self.before);
        let after_ns = now_ns();
        let after = match self.lost.is_empty() {
            true => self.link.clock().inspect_err(|error| self.lost = error.reason()).ok(),
            false => None,
        };
        Clocks { before_ns, before, after_ns, after: after.unwrap_or(before) }
    }
}

/// Runs a plan.
pub fn run(
    plan: &HostPlan,
    keys: &Keys,
    inventory: &Inventory,
    options: &Options,
    watch: &dyn Watch,
) -> Result<Record, RunError> {
    let all = orders(plan, options.packet_bytes).map_err(RunError::Plan)?;
    let (mut members, places) = members(plan, keys, inventory, watch)?;
    let prepared = prepare(plan, &all, (&mut members, &places), watch);
    let (held, start_ns) = prepared.inspect_err(|_| {
        // Those that have begun end in good order, and are free when this is told.
        for member in &mut members {
            let _ = member.link.have_done(&Request::End {}, "end");
        }
    })?;
    let stopped_ns = follow(plan, &all, &mut members, start_ns, watch);
    watch.phase("collecting");
    let ends = |order: &Ordered| {
        [&order.order.source, &order.order.destination].map(|name| places[name.as_str()])
    };
    let clocks: Vec<Clocks> = members.iter_mut().map(Member::clocks).collect();
    let both = |order: &Ordered, number| {
        [End::Sender, End::Receiver].into_iter().zip(ends(order)).map(move |(end, place)| Part {
            connection: number,
            end,
            place,
        })
    };
    let of_order = |order| Ordered::connections(order).flat_map(move |number| both(order, number));
    let wanted: Vec<Part> = all.iter().flat_map(of_order).collect();
    let mut logs = collect(&mut members, &wanted, options, watch)?;
    for member in members.iter_mut().filter(|member| member.lost.is_empty()) {
        // All logs are here: an agent that has gone meanwhile has ended too.
        let _ = member.link.have_done(&Request::End {}, "end");
    }
    if let Some(member) = members.iter().find(|member| !member.lost.is_empty())
        && logs.values().flatten().flatten().next().is_none()
    {
        if watch.is_stopped() {
            return Err(RunError::Interrupted);
        }
        let Known { name, address } = &member.link.known;
        return Err(RunError::Lost(format!("agent {name} at {address}: {}", member.lost)));
    }
    let host = |(member, clocks): (Member, Clocks)| {
        let Member { link, stopped, lost, .. } = member;
        Host { known: link.known, clocks, stopped, missing: lost }
    };
    let hosts: Vec<Host> = members.into_iter().zip(clocks).map(host).collect();
    let partial = stopped_ns.is_some() || hosts.iter().any(|host| !host.missing.is_empty());
    let mut connections = Vec::new();
    for order in &all {
        for connection in order.order.connections() {
            let logs = logs.remove(&connection).unwrap_or_default();
            let (flow, ends) = (order.flow, ends(order));
            let held_to_bps = held.get(&order.order.connection).copied();
            connections.push(Kept { flow, connection, ends, logs, held_to_bps });
        }
    }
    Ok(Record { hosts, connections, start_ns, partial, stopped_ns })
}

/// Has all begin, gives out orders, and starts. What policies hold flows to, and when it starts, ns
/// of the controller's clock.
fn prepare(
    plan: &HostPlan,
    all: &[Ordered],
    (members, places): (&mut [Member], &BTreeMap<&str, usize>),
    watch: &dyn Watch,
) -> Result<(BTreeMap<u32, u64>, u64), RunError> {
    for member in &mut *members {
        let (plan_name, duration_ns) = (plan.name.clone(), plan.duration.0 / 1000);
        let begin = Request::Begin { plan: plan_name, duration_ns };
        member.link.have_done(&begin, "begin a run")?;
    }
    watch.phase("connecting");
    let held = place(all, members, places)?;
    if watch.is_stopped() {
        return Err(RunError::Interrupted);
    }
    watch.phase("sending");
    let start_ns = now_ns() + AHEAD_NS + AHEAD_NS_EACH * members.len() as u64;
    start(members, start_ns)?;
    Ok((held, start_ns))
}

/// Connects to the agents of a plan, and compares clocks. By host of the plan, its place.
fn members<'a>(
    plan: &'a HostPlan,
    keys: &Keys,
    inventory: &Inventory,
    watch: &dyn Watch,
) -> Result<(Vec<Member>, BTreeMap<&'a str, usize>), RunError> {
    watch.phase("comparing clocks");
    let (mut members, mut places) = (Vec::<Member>::new(), BTreeMap::new());
    for host in plan.hosts() {
        let known = inventory.of_host(host).ok_or_else(|| {
            let all: Vec<&str> = inventory.all().iter().map(|known| known.name.as_str()).collect();
            RunError::Plan(match all.is_empty() {
                true => format!("host {host} has no agent; enrol it: clearlane traffic enrol"),
                false => format!(
                    "host {host} has no agent; there are {}; enrol it, or name hosts so in the \
                     plan",
                    all.join(", ")
                ),
            })
        })?;
        if let Some(place) = members.iter().position(|member| member.link.known == *known) {
            places.insert(host, place);
            continue;
        }
        let mut link = Link::connect(keys, known)?;
        let (before_ns, before) = (now_ns(), link.clock()?);
        places.insert(host, members.len());
        members.push(Member {
            link,
            before_ns,
            before,
            stopped: String::new(),
            lost: String::new(),
        });
        if watch.is_stopped() {
            return Err(RunError::Interrupted);
        }
    }
    Ok((members, places))
}

/// Gives out orders: receivers first, whose tokens senders need. What policies hold flows to, by
/// the first connection of each.
fn place(
    all: &[Ordered],
    members: &mut [Member],
    places: &BTreeMap<&str, usize>,
) -> Result<BTreeMap<u32, u64>, RunError> {
    let mut held = BTreeMap::new();
    for Ordered { order, .. } in all {
        let [source, destination] =
            [&order.source, &order.destination].map(|name| places[name.as_str()]);
        // Where a sender takes data is where it sends from.
        let from = members[source].link.data.ip();
        let receiver = &mut members[destination].link;
        let answer = receiver.ask(&Request::Receive { order: order.clone(), from })?;
        let Answer::Expected { tokens } = answer else {
            let agent = receiver.known.name.to_string();
            return Err(LinkError::Answer { agent, question: "receive a flow" }.into());
        };
        let to = receiver.data;
        let sender = &mut members[source].link;
        match sender.ask(&Request::Send { order: order.clone(), to, tokens })? {
            Answer::Ready { held_to_bps } => {
                held_to_bps.map(|bps| held.insert(order.connection, bps));
            }
            _ => {
                let agent = sender.known.name.to_string();
                return Err(LinkError::Answer { agent, question: "send a flow" }.into());
            }
        }
    }
    Ok(held)
}

/// Has all start at one time. Who was told first is not left without a word meanwhile.
fn start(members: &mut [Member], start_ns: u64) -> Result<(), LinkError> {
    let mut renewed = Instant::now();
    for place in 0..members.len() {
        let at_ns = members[place].before.theirs(start_ns);
        members[place].link.have_done(&Request::Start { at_ns }, "start")?;
        if renewed.elapsed() >= LEASE_EVERY {
            renewed = Instant::now();
            for member in &mut members[..=place] {
                member.link.tell(&Request::Lease {})?;
            }
        }
    }
    Ok(())
}

/// Whether and when a run is stopped, for all its agents; ns of the controller's clock.
struct Stop(AtomicU64);

impl Default for Stop {
    fn default() -> Self {
        Stop(AtomicU64::new(u64::MAX))
    }
}

impl Stop {
    /// It is, at the latest then.
    fn raise(&self, at_ns: u64) {
        self.0.fetch_min(at_ns, SeqCst);
    }

    /// When it was; nothing as long as it is not.
    fn at(&self) -> Option<u64> {
        Some(self.0.load(SeqCst)).filter(|at| *at < u64::MAX)
    }
}

/// Watches until all have ended or are lost. Returns when that was, ns since the start, if it was
/// before its time.
fn follow(
    plan: &HostPlan,
    all: &[Ordered],
    members: &mut [Member],
    start_ns: u64,
    watch: &dyn Watch,
) -> Option<u64> {
    let stop = Stop::default();
    let begins_in = Duration::from_nanos(start_ns.saturating_sub(now_ns()));
    let length = Duration::from_nanos(plan.duration.0 / 1000);
    let late = Instant::now() + begins_in + length + AFTER;
    let flow_of: BTreeMap<u32, usize> = all
        .iter()
        .flat_map(|order| order.order.connections().map(move |number| (number, order.flow)))
        .collect();
    std::thread::scope(|scope| {
        let (news, heard) = channel::<Progress>();
        let threads: Vec<_> = members
            .iter_mut()
            .map(|member| {
                let (news, stop) = (news.clone(), &stop);
                scope.spawn(move || {
                    let followed = listen(member, &news, (stop, watch), (begins_in, late));
                    followed.unwrap_or_else(|error| {
                        // What ends one ends all: the rest would be another experiment.
                        stop.raise(now_ns());
                        member.lost = error.reason();
                        true
                    })
                })
            })
            .collect();
        drop(news);
        let mut bytes: BTreeMap<u32, u64> = BTreeMap::new();
        let mut interrupted = false;
        loop {
            let told = heard.recv_timeout(LOOK);
            if watch.is_stopped() {
                interrupted = true;
                stop.raise(now_ns());
            }
            let since = now_ns().saturating_sub(start_ns);
            match told {
                Ok(progress) => {
                    let known = progress.received.iter().filter(|(n, ..)| flow_of.contains_key(n));
                    bytes.extend(known.map(|(number, _, all)| (*number, *all)));
                    let flows = by_flow(&bytes, &flow_of, plan.flows.len());
                    watch.received(since as f64 * 1e-9, &flows);
                }
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
            }
        }
        // A thread that panicked has stopped all others.
        let is_stopped = threads
            .into_iter()
            .fold(interrupted, |stopped, thread| thread.join().unwrap_or(true) || stopped);
        let at = stop.at().unwrap_or_else(now_ns);
        is_stopped.then(|| at.saturating_sub(start_ns))
    })
}

/// Bytes of each flow, from those of connections.
fn by_flow(bytes: &BTreeMap<u32, u64>, flow_of: &BTreeMap<u32, usize>, count: usize) -> Vec<u64> {
    let mut flows = vec![0; count];
    for (number, all) in bytes {
        if let Some(sum) = flow_of.get(number).and_then(|at| flows.get_mut(*at)) {
            *sum += all;
        }
    }
    flows
}

/// Follows one agent until its part has ended, and keeps its lease. Returns whether it was stopped.
fn listen(
    member: &mut Member,
    news: &Sender<Progress>,
    (stop, watch): (&Stop, &dyn Watch),
    (begins_in, late): (Duration, Instant),
) -> Result<bool, LinkError> {
    let mut renewed = Instant::now() - LEASE_EVERY;
    let (mut told_to_stop, mut heard) = (false, Instant::now() + begins_in);
    loop {
        if renewed.elapsed() >= LEASE_EVERY {
            renewed = Instant::now();
            member.link.tell(&Request::Lease {})?;
        }
        // This thread looks too, because the one that shows progress may hang with its terminal.
        if watch.is_stopped() {
            stop.raise(now_ns());
        }
        if !told_to_stop && (stop.at().is_some() || Instant::now() >= late) {
            told_to_stop = true;
            member.link.tell_to_stop()?;
        }
        if Instant::now() >= late + AFTER {
            let agent = member.link.known.name.to_string();
            return Err(LinkError::Answer { agent, question: "stop" });
        }
        let Some(progress) = member.link.progress(LOOK)? else {
            if heard.elapsed() >= SILENT_MAX {
                // From its last word on nothing of it is known.
                stop.raise(now_ns().saturating_sub(SILENT_MAX.as_nanos() as u64));
                return Err(member.link.silent(SILENT_MAX));
            }
            continue;
        };
        heard = Instant::now();
        let has_ended = progress.ended == progress.connections;
        if !progress.stopped.is_empty() {
            stop.raise(now_ns());
            member.stopped.clone_from(&progress.stopped);
        }
        // Nobody hears it when the run is over.
        let _ = news.send(progress);
        if has_ended {
            return Ok(told_to_stop || !member.stopped.is_empty());
        }
    }
}
