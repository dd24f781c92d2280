//! A control connection at an agent: who may ask what, and what is done.

use super::run::Run;
use super::session::{LEASE_RAN_OUT, Session};
use super::{Agent, LOOK, STOPPED_BY};
use crate::audit::Outcome;
use crate::channel::{Channel, ChannelError};
use crate::clock::now_ns;
use crate::disk::ANSWER_MAX;
use crate::frame::FRAME_BYTES_MAX;
use crate::message::{Answer, PROTOCOL, Request, Status, StatusOfRun};
use crate::name::{Identity, Role};
use crate::text::one_line;
use crate::unproven::Newcomer;
use std::net::IpAddr;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often what has happened is told while a run is under way.
const TOLD_EVERY: Duration = Duration::from_millis(250);
/// A connection that says nothing for so long, and has no run under way, is closed.
const SILENT_MAX: Duration = Duration::from_secs(60);
/// The logs of a run are kept for so long, until the controller has all other ends.
const LOGS_WAIT_MAX: Duration = Duration::from_secs(600);
/// A run that has ended is waited for so long before another is refused.
const LEAVING_MAX: Duration = Duration::from_secs(3);
/// Bytes of a plan's name.
const NAME_MAX: usize = 256;
/// Lines of the policy that are told.
const POLICY_LINES_MAX: usize = 64;
/// Control connections at a time of one certificate.
const CALLS_MAX: usize = 8;
/// Longest wait of `status` for the policy's file. It is then answered without the policy.
const STATUS_MAX: Duration = Duration::from_millis(500);

/// A control connection whose other side has a certificate.
struct Caller<'a> {
    agent: &'a Agent,
    who: Identity,
    said: String,
    /// Whether its `Hello` was taken.
    is_known: bool,
    /// The run that it controls.
    run: Option<Run>,
}

/// Serves a connection until it ends; it counts as unproven until its certificate is there.
pub fn serve(agent: &Agent, newcomer: Newcomer) {
    let Newcomer { stream, from, entered } = newcomer;
    let refused = |why: &str| {
        agent.audit.refuse_stranger(&from.to_string(), "control connection", why);
    };
    let mut channel = match Channel::accept(stream, agent.tls.clone()) {
        Ok(channel) => channel,
        Err(error) => return refused(&error.to_string()),
    };
    let Some(who) = channel.peer() else {
        return refused("its certificate is none of clearlane traffic");
    };
    entered.proven();
    let said = format!("{who} at {from}");
    let Some(_call) = Call::begin(agent, &who) else {
        let why = format!("{CALLS_MAX} connections of this certificate are open; close one");
        agent.audit.refuse(&who.to_string(), &said, "control connection", &why);
        let _ = channel.send(&Answer::Refused { reason: why });
        return;
    };
    let mut caller = Caller { agent, who, said, is_known: false, run: None };
    if let Err(error) = caller.listen(&mut channel) {
        let is_malformed = matches!(error, ChannelError::Frame(_) | ChannelError::Message(_));
        if is_malformed {
            let (who, why) = (caller.who.to_string(), one_line(&error.to_string()));
            agent.audit.refuse(&who, &caller.said, "message", &why);
        }
    }
    caller.leave("its controller has gone");
}

/// One of the connections of a certificate. It counts until this is dropped.
struct Call<'a> {
    agent: &'a Agent,
    who: String,
}

impl<'a> Call<'a> {
    /// Counts a connection of a certificate; `None` if there are too many already.
    fn begin(agent: &'a Agent, who: &Identity) -> Option<Self> {
        let who = who.to_string();
        let mut callers = agent.callers.lock().unwrap_or_else(PoisonError::into_inner);
        let count = callers.entry(who.clone()).or_insert(0);
        *count += 1;
        match *count <= CALLS_MAX {
            true => Some(Call { agent, who }),
            false => {
                *count -= 1;
                None
            }
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let mut callers = self.agent.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = callers.get_mut(&self.who) {
            *count -= 1;
            if *count == 0 {
                callers.remove(&self.who);
            }
        }
    }
}

impl Caller<'_> {
    fn listen(&mut self, channel: &mut Channel) -> Result<(), ChannelError> {
        let (mut heard, mut told, mut is_told) = (Instant::now(), Instant::now(), false);
        loop {
            if self.agent.halt.load(SeqCst) {
                self.leave("the agent was told to end");
                return Ok(());
            }
            if let Some(request) = channel.receive::<Request>(LOOK)? {
                heard = Instant::now();
                if matches!(request, Request::Begin { .. }) {
                    is_told = false;
                }
                self.answer(request, channel)?;
            }
            if let Some(run) = &self.run {
                // In a run that has begun the lease is the measure.
                let (ended, stopped) = (run.has_ended(), run.session.is_stopped());
                if run.session.is_abandoned(now_ns()) && (!ended || stopped && !is_told) {
                    self.leave(LEASE_RAN_OUT);
                    return Err(ChannelError::Closed);
                }
                let has_begun = run.session.start_ns() <= now_ns();
                if has_begun && !is_told && told.elapsed() >= TOLD_EVERY {
                    told = Instant::now();
                    // Once all has ended and is told, nothing more happens.
                    is_told = ended;
                    for progress in run.progress() {
                        channel.send(&Answer::Progress(progress))?;
                    }
                }
            }
            if self.run.as_ref().is_some_and(|run| run.session.is_discarded()) {
                return Err(ChannelError::Closed);
            }
            // A run that has ended waits for its logs to be asked for, unless somebody stops it.
            let waits = self.run.as_ref().is_some_and(|run| !run.session.is_halted());
            if heard.elapsed() >= if waits { LOGS_WAIT_MAX } else { SILENT_MAX } {
                return Err(ChannelError::Late(SILENT_MAX.as_secs()));
            }
        }
    }

    fn answer(&mut self, request: Request, channel: &mut Channel) -> Result<(), ChannelError> {
        let received_ns = now_ns();
        let what = in_words(&request);
        let done = match (self.allowed(&request), request) {
            (Err(reason), _) => Err(reason),
            (Ok(()), Request::Lease {}) => {
                self.run.iter().for_each(|run| run.session.renew());
                return Ok(());
            }
            (Ok(()), Request::Clock {}) => {
                return channel.send(&Answer::Clock { received_ns, sent_ns: now_ns() });
            }
            (Ok(()), Request::Log { connection, end, offset }) => {
                // Room for the frame's head is in the frame.
                let part =
                    self.run().and_then(|run| run.log(connection, end, offset, FRAME_BYTES_MAX));
                match part {
                    Ok((bytes, records, part)) => {
                        channel.send(&Answer::Log { bytes, records })?;
                        return channel.send_log(part);
                    }
                    Err(reason) => Err(reason),
                }
            }
            (Ok(()), request) => self.perform(request, channel),
        };
        match done {
            Ok(answer) => channel.send(&answer),
            Err(reason) => {
                let who = self.who.to_string();
                self.agent.audit.refuse(&who, &self.said, &what, &one_line(&reason));
                channel.send(&Answer::Refused { reason })
            }
        }
    }

    /// Whether the role may ask that.
    fn allowed(&self, request: &Request) -> Result<(), String> {
        let may = match request {
            Request::Hello { .. } => self.who.role != Role::Agent,
            Request::Status {} => self.who.role != Role::Agent,
            _ => self.who.role == Role::Controller,
        };
        if !may {
            let (role, what) = (self.who.role, in_words(request));
            return Err(format!("a certificate of role {role} may not ask for this: {what}"));
        }
        if !self.is_known && !matches!(request, Request::Hello { .. }) {
            return Err("it has not said hello".into());
        }
        Ok(())
    }

    fn run(&mut self) -> Result<&mut Run, String> {
        self.run.as_mut().ok_or_else(|| "it has begun no run".into())
    }

    fn perform(&mut self, request: Request, channel: &Channel) -> Result<Answer, String> {
        let what = in_words(&request);
        match request {
            Request::Hello { protocol, version } => {
                if protocol != PROTOCOL {
                    return Err(format!(
                        "it speaks version {protocol} of the protocol (clearlane {version}), this \
                         agent {PROTOCOL} (clearlane {}); use the same clearlane on both",
                        env!("CARGO_PKG_VERSION")
                    ));
                }
                self.is_known = true;
                let data = self.agent.data_address(channel);
                let version = env!("CARGO_PKG_VERSION").into();
                Ok(Answer::Hello { protocol, version, data })
            }
            Request::Status {} => Ok(Answer::Status(self.agent.status())),
            Request::Begin { plan, duration_ns } => {
                if plan.len() > NAME_MAX {
                    return Err(format!(
                        "the plan's name has {} B; {NAME_MAX} are taken",
                        plan.len()
                    ));
                }
                self.noted(&what, &plan)?;
                self.begin(plan, duration_ns).map(|()| Answer::Done {})
            }
            Request::Receive { order, from } => {
                self.noted(&what, &format!("{} from {from}", flow(&order)))?;
                self.run()?.receive(&order, from).map(|tokens| Answer::Expected { tokens })
            }
            Request::Send { order, to, tokens } => {
                self.noted(&what, &format!("{} to {to}", flow(&order)))?;
                let held_to_bps = self.run()?.send(&order, to, &tokens)?;
                Ok(Answer::Ready { held_to_bps })
            }
            Request::Start { at_ns } => {
                self.noted(&what, "")?;
                self.run()?.start(at_ns).map(|()| Answer::Done {})
            }
            Request::Stop {} => Ok(Answer::Stopped { plan: self.agent.stop(&self.said) }),
            Request::End {} => {
                self.leave("");
                self.noted(&what, "")?;
                Ok(Answer::Done {})
            }
            Request::Clock {} | Request::Lease {} | Request::Log { .. } => {
                Err("answered elsewhere".into())
            }
        }
    }

    /// Notes what is about to be done. What cannot be noted is not done.
    fn noted(&self, what: &str, why: &str) -> Result<(), String> {
        self.agent.audit.note(Outcome::Asked, &self.said, what, &one_line(why)).map_err(|error| {
            format!("the audit log cannot be written: {}", clearlane_lab::plain(&error))
        })
    }

    fn begin(&mut self, plan: String, duration_ns: u64) -> Result<(), String> {
        let session = Arc::new(Session::new(plan, self.who.name.clone(), duration_ns));
        self.agent.take_part(&session)?;
        let Agent { folder, spool, audit, expected_connections, .. } = self.agent;
        let from = self.agent.data.local_addr().map_or(IpAddr::from([0, 0, 0, 0]), |own| own.ip());
        // The run may be stopped from here on, also while it waits for the disk.
        let policy = self.agent.policy(ANSWER_MAX);
        let run = policy.and_then(|policy| {
            Run::begin(&session, policy, (spool, folder, from), audit, expected_connections)
        });
        self.run = Some(run.inspect_err(|_| self.agent.leave())?);
        Ok(())
    }

    /// Ends the run that this connection controls; with a reason if that was not asked for.
    fn leave(&mut self, why: &str) {
        let Some(run) = self.run.take() else { return };
        if !why.is_empty() && !run.has_ended() {
            run.session.stop(&self.agent.audit, &self.said, why);
        }
        drop(run);
        self.agent.leave();
    }
}

impl Agent {
    /// The run that is under way. Callers do not hold the lock over a file or the network.
    fn running(&self) -> MutexGuard<'_, Option<Arc<Session>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes part in a run. Fails if it takes part in another, unless that has ended and leaves
    /// within [`LEAVING_MAX`].
    fn take_part(&self, session: &Arc<Session>) -> Result<(), String> {
        let until = Instant::now() + LEAVING_MAX;
        loop {
            let mut running = self.running();
            let Some(other) = running.as_ref() else {
                *running = Some(Arc::clone(session));
                return Ok(());
            };
            if !other.is_halted() || Instant::now() >= until {
                return Err(format!(
                    "takes part in run {} of {}; wait, or end it with `clearlane traffic stop`",
                    other.plan, other.controller
                ));
            }
            drop(running);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends its part in a run.
    fn leave(&self) {
        *self.running() = None;
    }

    fn status(&self) -> Status {
        let session = self.running().clone();
        let run = session.map(|session| StatusOfRun {
            plan: session.plan.clone(),
            controller: session.controller.clone(),
            state: session.state(now_ns()),
            stopped: session.stopped(),
        });
        let policy = match self.policy(STATUS_MAX) {
            Ok(policy) => shortened(policy.in_words()),
            Err(problem) => vec![one_line(&problem)],
        };
        Status { name: self.keys.identity.name.clone(), run, policy }
    }

    /// Stops the run that is under way, if one is. Returns its plan.
    fn stop(&self, who: &str) -> Option<String> {
        let session = self.running().clone()?;
        // A run that waits for its controller in vain is given up.
        if session.is_halted() && session.is_abandoned(now_ns()) {
            session.discard();
        }
        session.stop(&self.audit, who, &format!("{STOPPED_BY}{who}"));
        Some(session.plan.clone())
    }
}

/// As many lines as fit an answer with ease, and how many more there are.
fn shortened(mut lines: Vec<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(POLICY_LINES_MAX);
    if more > 0 {
        lines.truncate(POLICY_LINES_MAX);
        lines.push(format!("and {more} lines more, in policy.toml there"));
    }
    lines
}

fn flow(order: &crate::order::Order) -> String {
    let (source, destination) = (&order.source, &order.destination);
    format!("connection {}, {source} to {destination}", order.connection)
}

fn in_words(request: &Request) -> String {
    match request {
        Request::Hello { .. } => "hello".into(),
        Request::Status {} => "status".into(),
        Request::Clock {} => "clock".into(),
        Request::Begin { .. } => "begin a run".into(),
        Request::Receive { .. } => "receive a flow".into(),
        Request::Send { .. } => "send a flow".into(),
        Request::Start { .. } => "start".into(),
        Request::Lease {} => "lease".into(),
        Request::Stop {} => "stop".into(),
        Request::Log { connection, .. } => format!("log of connection {connection}"),
        Request::End {} => "end".into(),
    }
}
