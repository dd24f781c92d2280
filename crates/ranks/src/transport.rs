//! What the ranks stand on: something that carries messages between them and says when they are
//! there. It knows neither matching nor protocols.

use clearlane_workload::{Hints, Message, Rank};
use serde::{Deserialize, Serialize};

/// What the library of a sender tells that of the receiver at the head of a two-sided message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Envelope {
    /// The process that sent it, by its number in the run.
    pub from: u32,
    /// The process it is for.
    pub to: u32,
    /// The sender among the ranks of its program.
    pub source: Rank,
    /// What receives may ask for.
    pub tag: u32,
    /// What receives must ask for.
    pub context: u16,
    /// Index of the flow group the message is accounted to.
    pub group: u16,
    /// Payload of the whole message.
    pub bytes: u64,
    /// Its number among those of the same two processes and context, from 0; 0 where none can
    /// overtake another.
    pub number: u32,
    /// What it announces.
    pub kind: Kind,
}

impl Envelope {
    /// What a program learns of the message.
    pub(crate) const fn message(&self) -> Message {
        Message { source: self.source, tag: self.tag, bytes: self.bytes }
    }
}

/// What an envelope announces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Kind {
    /// The payload, which follows.
    Eager,
    /// A payload that waits to be read: RTS. The sender knows it by this token.
    RequestToSend {
        /// Returned in [`Kind::Finished`].
        token: u32,
        /// How the payload is to travel: the way that the sender asked for.
        hints: Hints,
    },
    /// That the payload with this token has been read: FIN.
    Finished {
        /// What the request to send gave.
        token: u32,
    },
}

/// Kind of a message to be carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// RDMA WRITE. A `token` asks for [`Ranks::sent`](crate::Ranks::sent).
    Write {
        /// The sender's number for this operation.
        token: Option<u32>,
    },
    /// RDMA READ: the payload comes from the other process, without a CPU there;
    /// [`Ranks::read`](crate::Ranks::read) tells when it is here.
    Read {
        /// The reader's number for this operation.
        token: u32,
    },
    /// A two-sided message: [`Ranks::arrived`](crate::Ranks::arrived) tells its receiver, and, if
    /// its head is there before its tail, [`Ranks::head`](crate::Ranks::head) before that.
    Message {
        /// Source, tag and context for its receiver.
        envelope: Envelope,
        /// The sender's number for this operation, if it asks for `sent`.
        token: Option<u32>,
    },
}

/// A message to be carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// The process that posts it, by its number in the run.
    pub from: u32,
    /// The process at the other end: never `from`.
    pub to: u32,
    /// When it is posted, in ps.
    pub born: u64,
    /// When its first packet may leave at the earliest, in ps.
    pub ready: u64,
    /// If it travels in several stripes, each is ready so much later than the one before, in ps.
    pub stripe_overhead: u64,
    /// Payload, in bytes; 0 is a header alone.
    pub bytes: u64,
    /// Index of the flow group it is accounted to.
    pub group: u16,
    /// How it travels.
    pub hints: Hints,
    /// Kind of the message.
    pub what: What,
}

/// Carries messages: the packet engine does, and a model of flows may.
pub trait Transport {
    /// The present, in ps. It never decreases.
    fn now(&self) -> u64;

    /// Takes a one-sided message of open-loop traffic, posted by the process being served at
    /// `born`. Nobody is told of it.
    fn offer(&mut self, to: u32, born: u64, bytes: u64, group: u16);

    /// Takes a message of the process being served. Returns the number of stripes it travels in,
    /// at least 1.
    fn post(&mut self, message: &Outgoing) -> u32;

    /// Has the process being served [stepped](crate::Ranks::step) at `time`, which is later than
    /// now.
    fn wake(&mut self, time: u64);
}
