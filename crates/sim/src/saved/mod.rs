//! What is kept of a run between two windows, in a form that does not know how the run was divided:
//! records by value where they have one owner, else by numbers of the whole run. Homes, ports,
//! slots and hosts are numbered through all partitions in their order, queues by their key.

use crate::packet::{
    ACK, BECN, CNP, CONTROL, FECN, Flags, FlowIndex, HELD, LAST, PacketIndex, QueuePairIndex, READ,
    RELIABLE, RESPONSE, ReactorIndex, ReceiverIndex, TOLD,
};
use clearlane_ranks::Envelope;
use serde::{Deserialize, Serialize};

mod control;
mod recorder;

pub(crate) use control::{
    SavedDue, SavedFlow, SavedNotified, SavedOutput, SavedPause, SavedReactor, SavedReactors,
    SavedSequence,
};
pub(crate) use recorder::{SavedCounters, SavedFlowRecord, SavedRecorder, SavedSlice};

/// Bytes of a message that no run has.
pub(crate) const MESSAGE_MAX: u64 = 1 << 40;

/// All flags that packets have.
pub(crate) const FLAGS: Flags =
    ACK | LAST | TOLD | RELIABLE | FECN | BECN | CNP | RESPONSE | CONTROL | READ | HELD;

/// A packet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SavedPacket {
    pub(crate) dlid: u32,
    pub(crate) slid: u32,
    pub(crate) source: u32,
    /// Its queue pair, if it has one.
    pub(crate) queue: Option<u32>,
    pub(crate) psn: u32,
    pub(crate) bytes: u16,
    pub(crate) payload: u16,
    pub(crate) group: u16,
    pub(crate) sl: u8,
    pub(crate) flags: Flags,
    pub(crate) route: (u8, u8),
    pub(crate) born: u64,
    /// When its tail is there, where that is followed.
    pub(crate) tail: u64,
    pub(crate) letter: Option<SavedLetter>,
}

/// What a message carries besides.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SavedLetter {
    pub(crate) what: SavedCarried,
    pub(crate) number: u32,
    pub(crate) stripes: u32,
}

/// What it means.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum SavedCarried {
    Data,
    Message(Envelope),
    ReadRequest { rank: u32, token: u32, bytes: u64, gap: u32 },
    ReadResponse { rank: u32, token: u32, queue: u32, psn: u32 },
}

/// A message at its sender.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SavedMessage {
    pub(crate) destination: u32,
    pub(crate) born: u64,
    pub(crate) bytes: u64,
    pub(crate) sent: u64,
    pub(crate) queue: Option<u32>,
    pub(crate) letter: Option<SavedLetter>,
    /// Who waits for it, by number, if anybody.
    pub(crate) rank: u32,
    pub(crate) token: u32,
    pub(crate) end_psn: u32,
    pub(crate) group: u16,
    pub(crate) flags: Flags,
    pub(crate) sl: u8,
    pub(crate) path: u8,
    pub(crate) gap: u32,
}

/// Where the records of a partition begin among those of the whole run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct First {
    pub(crate) home: u32,
    pub(crate) port: u32,
    pub(crate) slot: u32,
    pub(crate) host: u32,
    pub(crate) flow: u32,
    pub(crate) reactor: u32,
    pub(crate) whole: u32,
}

impl First {
    /// Where a partition begins that comes after one with so many records.
    pub(crate) fn plus(&self, counts: &First) -> Self {
        First {
            home: self.home + counts.home,
            port: self.port + counts.port,
            slot: self.slot + counts.slot,
            host: self.host + counts.host,
            flow: self.flow + counts.flow,
            reactor: self.reactor + counts.reactor,
            whole: self.whole + counts.whole,
        }
    }
}

/// LIDs of hosts: base, how many, and whose.
#[derive(Clone, Debug)]
pub(crate) struct HostLids(pub(crate) Vec<(u32, u32, u32)>);

impl HostLids {
    /// The host that a LID leads to.
    pub(crate) fn host(&self, lid: u32) -> Option<u32> {
        let after = self.0.partition_point(|(base, ..)| *base <= lid);
        let (base, count, host) = *self.0.get(after.checked_sub(1)?)?;
        (lid - base < count).then_some(host)
    }
}

/// The numbers of the whole run for those of its parts: to save it.
pub(crate) struct Whole<'a> {
    /// By host, the partition it is in; empty if there is one.
    pub(crate) partition_of: &'a [u32],
    /// By partition and number there: send queues.
    pub(crate) queues: Vec<Vec<u32>>,
    pub(crate) lids: HostLids,
    /// The partition that is saved, and where it begins.
    pub(crate) here: usize,
    pub(crate) first: First,
    /// Hosts, which are the first ranks, and the host of each further one.
    pub(crate) hosts: u32,
    pub(crate) others: &'a [u32],
}

impl Whole<'_> {
    /// The host that a rank is at.
    pub(crate) fn host(&self, rank: u32) -> u32 {
        match rank.checked_sub(self.hosts) {
            None => rank,
            Some(other) => self.others.get(other as usize).copied().unwrap_or(0),
        }
    }

    /// The partition of a host.
    pub(crate) fn partition(&self, host: u32) -> usize {
        self.partition_of.get(host as usize).map_or(0, |part| *part as usize)
    }

    /// The number of a host's send queue.
    pub(crate) fn queue(&self, host: u32, here: u32) -> u32 {
        let part = &self.queues[self.partition(host)];
        part.get(here as usize).copied().unwrap_or(u32::MAX)
    }
}

/// A send queue where it is now, and the receiver's half, which is in the destination's partition.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Placed {
    pub(crate) host: u32,
    pub(crate) destination: u32,
    pub(crate) queue: QueuePairIndex,
    pub(crate) receiver: ReceiverIndex,
}

/// The numbers of a part for those of the whole run, and what numbers there are: to load it.
pub(crate) struct Parts<'a> {
    /// By host, the partition it is in; empty if there is one.
    pub(crate) partition_of: &'a [u32],
    /// The partition that is loaded, and where it begins.
    pub(crate) here: u32,
    pub(crate) first: First,
    /// What all reactors know.
    pub(crate) control: &'a SavedReactors,
    /// Send queues by number of the whole run.
    pub(crate) queues: &'a [Placed],
    /// Flows and reactors by number of the whole run: their partitions and numbers there.
    pub(crate) flows: &'a [(u32, u32)],
    pub(crate) reactors: &'a [(u32, u32)],
    pub(crate) lids: &'a HostLids,
    /// Hosts, which are the first ranks, and the host of each further one.
    pub(crate) hosts: u32,
    pub(crate) others: &'a [u32],
    pub(crate) groups: u16,
    /// Lanes that packets may be on.
    pub(crate) lanes: usize,
    /// All that has happened happened before.
    pub(crate) floor: u64,
    /// The destination as the forwarder knows it.
    pub(crate) hint: &'a dyn Fn(u32) -> u64,
}

impl Parts<'_> {
    /// A send queue of this partition.
    pub(crate) fn queue(&self, number: u32) -> Option<QueuePairIndex> {
        let placed = self.queues.get(number as usize)?;
        self.is_here(placed.host).then_some(placed.queue)
    }

    /// The host that a rank is at.
    pub(crate) fn host(&self, rank: u32) -> Option<u32> {
        match rank.checked_sub(self.hosts) {
            None => Some(rank),
            Some(other) => self.others.get(other as usize).copied(),
        }
    }

    /// A flow of this partition.
    pub(crate) fn flow(&self, number: u32) -> Option<FlowIndex> {
        let (part, number) = *self.flows.get(number as usize)?;
        (part == self.here).then_some(FlowIndex(number))
    }

    /// A reactor of this partition.
    pub(crate) fn reactor(&self, number: u32) -> Option<ReactorIndex> {
        let (part, number) = *self.reactors.get(number as usize)?;
        (part == self.here).then_some(ReactorIndex(number))
    }

    /// Whether a host is in this partition.
    pub(crate) fn is_here(&self, host: u32) -> bool {
        let part = self.partition_of.get(host as usize).copied().unwrap_or(0);
        host < self.hosts && part == self.here
    }
}

/// Nothing if it does not hold.
pub(crate) fn holds(what: bool) -> Option<()> {
    what.then_some(())
}

/// Takes a packet in.
pub(crate) type TakePacket<'a> = &'a mut dyn FnMut(&SavedPacket) -> Option<PacketIndex>;
