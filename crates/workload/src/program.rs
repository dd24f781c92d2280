//! The seam between what a rank wants and what the fabric does: a program is stepped with what
//! happened and answers with its next operation.

use clearlane_ib::{Picoseconds, Saved, ServiceLevel, StateError};

/// A rank's number among those of its program; of open-loop traffic a host's, in the fabric's
/// adapter order.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize,
)]
pub struct Rank(pub u32);

/// An operation in flight, unique within its rank while it is pending.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize,
)]
pub struct Handle(pub u32);

/// Several of them: mostly few, which lie in the list itself.
pub type Handles = smallvec::SmallVec<[Handle; 4]>;

/// The idle time an adapter leaves after each packet of a message, in thousandths of the time the
/// packet takes on the link: active packet pacing (Shibamura 2014, section 1). A gap of 2000 sends
/// at a third of the link's rate.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, serde::Serialize, serde::Deserialize)]
pub struct Gap(pub u32);

/// How an operation's packets are to travel; by default as the adapter, the subnet manager and the
/// mechanisms see fit.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, serde::Serialize, serde::Deserialize)]
pub struct Hints {
    /// The port of the adapter at both ends, counted from 0, modulo the ports that both have.
    pub engine: Option<u8>,
    /// The service level, which is what priority is made of (IBA vol. 1, 7.6.9).
    pub sl: Option<ServiceLevel>,
    /// The path: LID offset of both ends, modulo the LIDs that every port has.
    pub path: Option<u8>,
    /// Idle time after each packet.
    pub gap: Gap,
    /// The CPU stream that the operation's overhead occupies: 0 is the one the program runs on.
    pub stream: u8,
}

/// Which messages a receive takes; nothing means any.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Filter {
    /// Source: `MPI_ANY_SOURCE` is nothing.
    pub source: Option<Rank>,
    /// Tag: `MPI_ANY_TAG` is nothing.
    pub tag: Option<u32>,
    /// Context, as of an MPI communicator. There is no wildcard for it (MPI 4.1, 3.5).
    pub context: u16,
}

/// What a two-sided message is matched by, and how long it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Message {
    /// Who sent it.
    pub source: Rank,
    /// The tag its sender gave.
    pub tag: u32,
    /// Payload.
    pub bytes: u64,
}

/// An operation that is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Completion {
    /// Which.
    pub handle: Handle,
    /// What a receive has received; nothing for all others.
    pub received: Option<Message>,
}

/// What a program does next. Every operation takes the CPU for its overhead and at least 1 ps, so
/// no program can loop at one instant.
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub enum Op {
    /// Posts a one-sided message of open-loop traffic, which stands for many processes: no CPU is
    /// busy with it, and the program is stepped again at `next`, with [`Event::Elapsed`], or, if
    /// there is none, has ended.
    Offer {
        /// Destination host; to itself nothing is sent.
        dst: Rank,
        /// Payload, at least 1 byte.
        bytes: u64,
        /// Index of the flow group the message is accounted to.
        group: u16,
        /// When the program has something to do again.
        next: Option<Picoseconds>,
    },
    /// Posts a one-sided message, an RDMA WRITE: nobody at the destination has to receive it. The
    /// answer is [`Event::Posted`]; a `tracked` one can be waited for, its completion is the last
    /// ACK (RC) or the last packet leaving (UD).
    Put {
        /// Destination; itself is delivered by memory and never enters the fabric.
        dst: Rank,
        /// Payload; 0 sends a header.
        bytes: u64,
        /// Index of the flow group the message is accounted to.
        group: u16,
        /// Whether the program will wait for the handle.
        tracked: bool,
        /// How it travels.
        hints: Hints,
    },
    /// Reads from another rank's memory, an RDMA READ: no CPU there has a part in it. The answer is
    /// [`Event::Posted`]; it is complete when all data are here.
    Get {
        /// Whose memory.
        src: Rank,
        /// Payload; 0 fetches a header.
        bytes: u64,
        /// Index of the flow group the message is accounted to.
        group: u16,
        /// How it travels.
        hints: Hints,
    },
    /// Posts a two-sided message, matched by (source, context, tag) at the destination in the order
    /// of posting. The answer is [`Event::Posted`]; a `tracked` one can be waited for: its buffer
    /// may be used again then.
    Send {
        /// Destination.
        dst: Rank,
        /// Payload; 0 sends a header.
        bytes: u64,
        /// Matched against the receive's tag.
        tag: u32,
        /// Matched against the receive's context.
        context: u16,
        /// Index of the flow group the message is accounted to.
        group: u16,
        /// Whether the program will wait for the handle.
        tracked: bool,
        /// How it travels.
        hints: Hints,
    },
    /// Posts a receive for the first unmatched message that passes the filter. The answer is
    /// [`Event::Posted`].
    Recv {
        /// Which messages it takes.
        filter: Filter,
        /// The CPU stream that is busy when the message is there.
        stream: u8,
    },
    /// Waits for an operation; the answer is [`Event::Completed`].
    Wait(Handle),
    /// Waits for all of these operations; the answer is [`Event::AllCompleted`].
    WaitAll(Handles),
    /// Waits for one of these operations, of several the first in the list; the answer is
    /// [`Event::Completed`].
    WaitAny(Handles),
    /// Waits for the next operation to be complete, whichever it is, of all that are under way and
    /// tracked, as a completion queue has them (IBA vol. 1, 11.4.2.1); those that are complete
    /// already come in the order in which they became it, or, before a program does so for the
    /// first time, in that of their handles. The answer is [`Event::Completed`]. It costs the same
    /// however many are under way. Where none is, the program waits for ever.
    WaitNext,
    /// Asks whether an operation is complete; the answer is [`Event::Tested`]. Once it is, the
    /// handle is gone.
    Test(Handle),
    /// Asks for the first unmatched message that passes the filter; the answer is
    /// [`Event::Probed`].
    Probe {
        /// Which messages count.
        filter: Filter,
        /// Whether to wait for one.
        wait: bool,
    },
    /// Works for a while without using the network; the answer is [`Event::Elapsed`].
    Compute(Picoseconds),
    /// Has a CPU stream work for a while after what it has to do already. The answer is
    /// [`Event::Posted`], and the handle is complete when the stream is done with it.
    Start {
        /// How long.
        span: Picoseconds,
        /// Which stream, not 0.
        stream: u8,
    },
    /// Does nothing until a point in simulated time; the answer is [`Event::Elapsed`].
    WaitUntil(Picoseconds),
    /// The program has ended and is not stepped again.
    Done,
}

/// What happened since the program's last operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum Event {
    /// The run begins.
    Start,
    /// The operation is under way under this handle.
    Posted(Handle),
    /// The operation waited for is complete.
    Completed(Completion),
    /// All operations waited for are complete.
    AllCompleted,
    /// Whether the operation asked for is complete.
    Tested(Option<Completion>),
    /// The message asked for, if it is there.
    Probed(Option<Message>),
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

    /// Whether all its messages to a rank take one way: one flow group, CPU stream 0, no path and
    /// no service level of its own. Where the network has one way too, none overtakes another and
    /// nobody has to number them.
    fn takes_one_way(&self) -> bool {
        false
    }

    /// What has moved since it was built, so that a program built alike, in another process, goes
    /// on as this one does. What it was built from is no part of it. Nothing if it cannot be saved:
    /// a run with such a program is refused a checkpoint, in one line.
    fn save(&self) -> Option<Saved> {
        None
    }

    /// Takes up a state that a program of the same experiment, seed and rank has saved; this one
    /// has not begun. Fails if the state is another program's or another version's, or cannot be
    /// one of this program; then this one may still be run from its beginning. Whatever it takes
    /// up, no later step panics, and names no rank or flow group but those it was built for.
    fn load(&mut self, saved: &Saved) -> Result<(), StateError> {
        Err(StateError::Unwanted(saved.of.clone()))
    }
}
