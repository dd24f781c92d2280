//! The seam between what a rank wants and what the fabric does: a program is stepped with what
//! happened and answers with its next operation.

use clearlane_ib::Picoseconds;

/// A rank's number: hosts are ranked in the fabric's adapter order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rank(pub u32);

/// An operation in flight, unique within its rank while it is pending.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Handle(pub u32);

/// What a program does next. Every operation costs at least 1 ps of simulated time, so no program
/// can loop at one instant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Op {
    /// Posts a one-sided message of open-loop traffic, which stands for many processes: no CPU is
    /// busy with it, and the program is stepped again at `next`, with [`Event::Elapsed`], or, if
    /// there is none, has ended.
    Offer {
        /// Destination; to itself nothing is sent.
        dst: Rank,
        /// Payload, at least 1 byte.
        bytes: u64,
        /// Index of the flow group the message is accounted to.
        group: u16,
        /// When the program has something to do again.
        next: Option<Picoseconds>,
    },
    /// Posts a one-sided message: nobody at the destination has to receive it. The answer is
    /// [`Event::Posted`]; a `tracked` one can be waited for, its local completion is the last ACK
    /// (RC) or the last packet leaving (UD).
    Put {
        /// Destination; itself is delivered by memory and never enters the fabric.
        dst: Rank,
        /// Payload, at least 1 byte.
        bytes: u64,
        /// Index of the flow group the message is accounted to.
        group: u16,
        /// Whether the program will wait for the handle.
        tracked: bool,
    },
    /// Posts a two-sided message, matched by (source, tag) at the destination.
    Send {
        /// Destination.
        dst: Rank,
        /// Payload, at least 1 byte.
        bytes: u64,
        /// Matched against the receive's tag.
        tag: u32,
        /// Index of the flow group the message is accounted to.
        group: u16,
        /// Whether the program will wait for the handle.
        tracked: bool,
    },
    /// Posts a receive for the next unmatched message from `src` with `tag`.
    Recv {
        /// Source.
        src: Rank,
        /// Tag the sender must have given.
        tag: u32,
    },
    /// Waits for an operation to complete; the answer is [`Event::Completed`].
    Wait(Handle),
    /// Works for a while without using the network; the answer is [`Event::Elapsed`].
    Compute(Picoseconds),
    /// Does nothing until a point in simulated time; the answer is [`Event::Elapsed`].
    WaitUntil(Picoseconds),
    /// The program has ended and is not stepped again.
    Done,
}

/// What happened since the program's last operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The run begins.
    Start,
    /// The operation is under way under this handle.
    Posted(Handle),
    /// The operation waited for is complete.
    Completed(Handle),
    /// The time waited for has come.
    Elapsed,
}

/// The behaviour of one rank. Deterministic: its answers depend on its own state, `now` and the
/// event, and on random streams it was given at its construction.
pub trait RankProgram: Send {
    /// The next operation. `now` never decreases between calls.
    fn step(&mut self, now: Picoseconds, event: Event) -> Op;

    /// Destination and flow group of the next message it will post, if it knows: what they need can
    /// be fetched meanwhile. Nothing else depends on the answer.
    fn upcoming(&self) -> Option<(Rank, u16)> {
        None
    }
}
