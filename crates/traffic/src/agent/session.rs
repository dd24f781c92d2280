//! A run at an agent: what it shares with the threads that send and receive. Any of them can end
//! it, and so can silence of the controller.

use crate::audit::{Audit, Outcome};
use crate::clock::now_ns;
use crate::message::{End, Progress, State};
use crate::name::Name;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

/// Without a word of the controller for so long, sending stops.
pub const LEASE_NS: u64 = 2_000_000_000;
/// Why a run ends whose controller said nothing for so long.
pub const LEASE_RAN_OUT: &str = "no word of the controller: its lease ran out";
/// Between the first order and the start there is more time: connections are made meanwhile.
pub const PREPARATION_NS: u64 = 60_000_000_000;
/// A start is not farther ahead.
pub const AHEAD_NS_MAX: u64 = 60_000_000_000;

/// Packets and bytes of a connection at one end, so far.
#[derive(Debug)]
pub struct Counter {
    /// Number in the run.
    pub connection: u32,
    /// Which end is here.
    pub end: End,
    /// Packets.
    pub packets: AtomicU64,
    /// Their bytes.
    pub bytes: AtomicU64,
    /// Whether its part here has ended.
    pub has_ended: AtomicBool,
}

impl Counter {
    /// Nothing yet.
    pub fn new(connection: u32, end: End) -> Self {
        let zero = AtomicU64::default;
        let (packets, bytes, has_ended) = (zero(), zero(), AtomicBool::new(false));
        Counter { connection, end, packets, bytes, has_ended }
    }
}

/// A run.
#[derive(Debug)]
pub struct Session {
    /// Name of the plan.
    pub plan: String,
    /// Who controls it.
    pub controller: Name,
    /// How long senders may send.
    pub duration_ns: u64,
    start_ns: AtomicU64,
    lease_until_ns: AtomicU64,
    halted: AtomicBool,
    discarded: AtomicBool,
    stopped: Mutex<String>,
}

impl Session {
    /// A run that is being prepared.
    pub fn new(plan: String, controller: Name, duration_ns: u64) -> Self {
        Session {
            plan,
            controller,
            duration_ns,
            start_ns: AtomicU64::new(u64::MAX),
            lease_until_ns: AtomicU64::new(now_ns() + PREPARATION_NS),
            halted: AtomicBool::new(false),
            discarded: AtomicBool::new(false),
            stopped: Mutex::default(),
        }
    }

    /// When it starts, by this host's clock; far away until that is known.
    pub fn start_ns(&self) -> u64 {
        self.start_ns.load(SeqCst)
    }

    /// Senders begin then; from here on the lease is short.
    pub fn start(&self, at_ns: u64) {
        self.lease_until_ns.store(now_ns() + LEASE_NS, SeqCst);
        self.start_ns.store(at_ns, SeqCst);
    }

    /// The controller is there.
    pub fn renew(&self) {
        let until = now_ns() + LEASE_NS;
        self.lease_until_ns.fetch_max(until, SeqCst);
    }

    /// Whether a packet may be sent now.
    pub fn may_send(&self, now_ns: u64) -> bool {
        !self.halted.load(SeqCst) && now_ns < self.lease_until_ns.load(SeqCst)
    }

    /// What it is at.
    pub fn state(&self, now_ns: u64) -> State {
        let start = self.start_ns();
        match () {
            () if self.is_halted() => State::Ended,
            () if now_ns < start => State::Preparing,
            () if now_ns < start.saturating_add(self.duration_ns) => State::Sending,
            () => State::Ended,
        }
    }

    /// Whether it was ended.
    pub fn is_halted(&self) -> bool {
        self.halted.load(SeqCst)
    }

    /// The lease has run out.
    pub fn is_abandoned(&self, now_ns: u64) -> bool {
        now_ns >= self.lease_until_ns.load(SeqCst)
    }

    /// Ends it in good order: senders stop, and what they sent is still received.
    pub fn halt(&self) {
        self.halted.store(true, SeqCst);
    }

    /// Its logs are no longer waited for.
    pub fn discard(&self) {
        self.discarded.store(true, SeqCst);
    }

    /// Whether they are not.
    pub fn is_discarded(&self) -> bool {
        self.discarded.load(SeqCst)
    }

    /// Ends it for a reason, of which the first is kept. It is in the audit log, if that can be.
    pub fn stop(&self, audit: &Audit, who: &str, why: &str) {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = stopped.is_empty();
        if is_first {
            *stopped = why.to_owned();
        }
        drop(stopped);
        // The run ends before this is noted, and also if it cannot be noted.
        self.halt();
        if is_first {
            audit.tell(Outcome::Stopped, who, &format!("run {}", self.plan), why);
        }
    }

    /// Whether it was ended for a reason.
    pub fn is_stopped(&self) -> bool {
        !self.stopped.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Why it was ended; empty if it was not.
    pub fn stopped(&self) -> String {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Connections that a message tells of: 70 bytes each at most, of a frame of 64 KiB.
const TOLD_MAX: usize = 800;

/// What has happened on these connections: each message tells of some of them, and how many there
/// are and have ended in all.
pub fn progress(counters: &[Arc<Counter>], stopped: &str) -> Vec<Progress> {
    let ended = counters.iter().filter(|counter| counter.has_ended.load(SeqCst)).count() as u32;
    let connections = counters.len() as u32;
    let part = |counters: &[Arc<Counter>]| {
        let stopped = stopped.to_owned();
        let mut progress = Progress { ended, connections, stopped, ..Progress::default() };
        for counter in counters {
            let (packets, bytes) = (counter.packets.load(SeqCst), counter.bytes.load(SeqCst));
            let row = (counter.connection, packets, bytes);
            match counter.end {
                End::Sender => progress.sent.push(row),
                End::Receiver => progress.received.push(row),
            }
        }
        progress
    };
    let parts: Vec<Progress> = counters.chunks(TOLD_MAX).map(part).collect();
    if parts.is_empty() { vec![part(&[])] } else { parts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FRAME_BYTES_MAX;
    use crate::message::Answer;

    #[test]
    fn what_is_told_of_many_connections_fits_frames() {
        let counter = |number| {
            let counter = Counter::new(number, End::Sender);
            counter.packets.store(u64::MAX, SeqCst);
            counter.bytes.store(u64::MAX, SeqCst);
            Arc::new(counter)
        };
        let counters: Vec<Arc<Counter>> = (u32::MAX - 5000..u32::MAX).map(counter).collect();
        counters[0].has_ended.store(true, SeqCst);
        let parts = progress(&counters, &"why ".repeat(1000));
        assert_eq!(parts.iter().map(|part| part.sent.len()).sum::<usize>(), 5000);
        assert!(parts.iter().all(|part| (part.ended, part.connections) == (1, 5000)));
        for part in parts {
            let text = serde_json::to_vec(&Answer::Progress(part)).unwrap();
            assert!(text.len() <= FRAME_BYTES_MAX, "{} B", text.len());
        }
        assert_eq!(progress(&[], "").len(), 1);
    }
}
