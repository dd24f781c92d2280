//! What crosses from one partition to another: by value, with the time at which it counts.

use crate::packet::{Envelope, Packet};
use crate::queue::Address;
use serde::{Deserialize, Serialize};

/// A packet's head, or credits, for a port of another partition.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Mail {
    /// A packet's head is arbitrable there at `time`.
    Packet { time: u64, at: Address, lane: u8, packet: Packet, envelope: Option<Envelope> },
    /// So many credits arrive there at `time`.
    Credits { time: u64, at: Address, lane: u8, credits: u16 },
}

impl Mail {
    /// When it counts.
    pub(crate) const fn time(&self) -> u64 {
        match self {
            Mail::Packet { time, .. } | Mail::Credits { time, .. } => *time,
        }
    }
}

/// The other end of a cut cable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct FarEnd {
    pub(crate) partition: u32,
    pub(crate) address: Address,
}
