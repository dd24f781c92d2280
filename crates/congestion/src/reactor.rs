//! At the source: when the next packet goes, and on which path.

use clearlane_ib::{Bytes, Picoseconds, Saved, StateError};

/// A path to a destination: the LID offset, 0 to 2^LMC − 1, of both ends. Path 0 is the base LID's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Path(pub u8);

/// A queue pair of a reactor, counted from 0 in the order of their first message. With
/// [`Scope::QueuePair`](crate::Scope::QueuePair) it is always 0, with
/// [`Scope::Flow`](crate::Scope::Flow) it is the path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Pair(pub u32);

/// A packet that has begun to leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// Its queue pair.
    pub pair: Pair,
    /// Bytes on the wire.
    pub bytes: u32,
    /// How long it occupies the link.
    pub busy: Picoseconds,
}

/// What the network says about a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Feedback {
    /// A packet was acknowledged, and all before it.
    Ack {
        /// From the acknowledged packet's injection to the ACK's arrival.
        latency: Picoseconds,
        /// Its bytes on the wire.
        bytes: u32,
        /// Bytes on the wire of all packets that no earlier ACK has acknowledged, with this one.
        acknowledged: u64,
    },
    /// BECN, on an ACK or in a CNP.
    Becn,
    /// A stripe has arrived whole.
    Completion {
        /// Its payload.
        bytes: Bytes,
        /// When its message was posted.
        posted_at: Picoseconds,
    },
}

/// Part of a message on one path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stripe {
    /// The path.
    pub path: Path,
    /// Payload, at least 1 B; of a message of 0 B, 0 B.
    pub bytes: Bytes,
}

/// How a message is split, in the order its parts lie in memory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stripes(Vec<Stripe>);

impl Stripes {
    /// The message is not divided; it may have 0 B.
    pub fn whole(&mut self, path: Path, bytes: Bytes) {
        self.0.push(Stripe { path, bytes });
    }

    /// Adds a part behind those there; one of 0 B is left out.
    pub fn push(&mut self, path: Path, bytes: Bytes) {
        if bytes.0 > 0 {
            self.0.push(Stripe { path, bytes });
        }
    }

    /// The parts.
    pub fn parts(&self) -> &[Stripe] {
        &self.0
    }

    /// Makes room for the next message.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// What a reactor that chooses paths shows: how many it has open.
pub const OPEN_PATHS: &str = "open paths";

/// A number that a reactor shows: a line in the report's charts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    /// Name with its unit, such as `CCTI` or `rate (Mb/s)`.
    pub name: &'static str,
    /// Value.
    pub value: u64,
}

/// Decides for the queue pairs in its scope and sees nothing else. It asks for its next timer and
/// schedules nothing itself. A reactor that decides *when* does not override `plan`; one that
/// decides *which* path does not override `next_injection`.
pub trait Reactor: Send {
    /// Splits a message of `bytes` over paths: the parts add up to it. One of 0 B stays whole.
    /// `draw` is 64 uniform bits of this flow. All on path 0 unless the mechanism says otherwise.
    fn plan(&mut self, _now: Picoseconds, bytes: Bytes, _draw: u64, out: &mut Stripes) {
        out.whole(Path(0), bytes);
    }

    /// A packet begins to leave at `now`. Not called while `is_unlimited` is true for its pair.
    fn on_sent(&mut self, _now: Picoseconds, _sent: &Sent) {}

    /// The network has given feedback about a queue pair.
    fn on_feedback(&mut self, now: Picoseconds, pair: Pair, feedback: Feedback);

    /// The earliest time at which the next packet of `pair` may leave; 0 if it may any time.
    fn next_injection(&self, _pair: Pair) -> Picoseconds {
        Picoseconds(0)
    }

    /// True if, until the next feedback about `pair`, its packets may leave at any time from `now`
    /// on and `on_sent` changes nothing. Until then the adapter calls neither `next_injection` nor
    /// `on_sent`. Always false for a pair that shares its limit with others.
    fn is_unlimited(&self, _now: Picoseconds, _pair: Pair) -> bool {
        false
    }

    /// Time of the next `on_timer` call; nothing if none is needed.
    fn next_timer(&self) -> Option<Picoseconds> {
        None
    }

    /// Called at the time that `next_timer` gave.
    fn on_timer(&mut self, _now: Picoseconds) {}

    /// Shows its numbers about a queue pair, always the same ones in the same order.
    fn probe(&self, _pair: Pair, _show: &mut dyn FnMut(Probe)) {}

    /// The state to save, so that the run can continue later.
    fn save(&self) -> Saved;

    /// Restores the state `saved`. Fails if it comes from another mechanism or version.
    fn load(&mut self, saved: &Saved) -> Result<(), StateError>;
}
