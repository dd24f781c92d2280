//! Packets under way, and what the last packet of a message carries besides.

use crate::list::Linked;
use crate::records::index;
use serde::{Deserialize, Serialize};

index!(
    /// A packet of this partition.
    PacketIndex
);
index!(
    /// An envelope of this partition.
    EnvelopeIndex
);
index!(
    /// The sender's half of a connection, in the partition of the sender.
    QueuePairIndex
);
index!(
    /// The receiver's half of a connection, in the partition of the receiver.
    ReceiverIndex
);
index!(
    /// A flow as the mechanisms of its sender know it.
    FlowIndex
);
index!(
    /// A reactor of this partition.
    ReactorIndex
);

/// What a packet is, a bit each.
pub(crate) type Flags = u16;

/// An acknowledgement, not data.
pub(crate) const ACK: Flags = 1;
/// The last packet of its message.
pub(crate) const LAST: Flags = 2;
/// The destination's adapter has more to do than to take the message: its rank is told of it, or it
/// reads from memory.
pub(crate) const TOLD: Flags = 4;
/// The queue pair is a reliable connection.
pub(crate) const RELIABLE: Flags = 8;
/// Forward explicit congestion notification: a switch has marked it (IBA vol. 1, A10).
pub(crate) const FECN: Flags = 16;
/// Backward explicit congestion notification: an ACK or a CNP tells the source, here the mechanism
/// that decides when packets are injected.
pub(crate) const BECN_WHEN: Flags = 32;
/// A congestion notification packet.
pub(crate) const CNP: Flags = 64;
/// Backward explicit congestion notification for the mechanism that decides on paths.
pub(crate) const BECN_WHICH: Flags = 128;
/// Answers an RDMA READ: nobody acknowledges it (IBA vol. 1, 9.7.5.1.8).
pub(crate) const RESPONSE: Flags = 256;
/// Carries what libraries and adapters tell each other, no payload of a program.
pub(crate) const CONTROL: Flags = 512;
/// Asks for an RDMA READ, whose response acknowledges it.
pub(crate) const READ: Flags = 1024;
/// Takes space in the receive buffer of an adapter until it is stored: its credits have not been
/// returned.
pub(crate) const HELD: Flags = 2048;
/// Either of the two.
pub(crate) const BECN: Flags = BECN_WHEN | BECN_WHICH;

/// Output port, counted from 0, and lane there.
pub(crate) type Route = (u8, u8);

/// No route yet: port numbers end at 254, and outputs count from 0.
pub(crate) const UNROUTED: Route = (255, 0);

/// A packet under way, with what its headers carry (IBA vol. 1, 5.2).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[repr(align(64))]
pub(crate) struct Packet {
    /// The next packet in the same buffer or list.
    pub(crate) next: PacketIndex,
    /// Destination LID; the number of the destination's port where forwarding is by rule.
    pub(crate) dlid: u32,
    /// Source LID; the number of the source's port where forwarding is by rule.
    pub(crate) slid: u32,
    /// Rank that sent it.
    pub(crate) source: u32,
    /// Queue pair; an ACK and a CNP carry that of the request; of a datagram the send queue, if
    /// there are mechanisms. A number of the requester's partition.
    pub(crate) queue_pair: u32,
    /// The receiver's half, a number of its partition; `NIL` until the sender has heard of it.
    pub(crate) receiver: ReceiverIndex,
    /// Packet sequence number of the queue pair; of an ACK, that of the packet acknowledged.
    pub(crate) psn: u32,
    /// What the last packet of a message may carry besides, else `NIL`.
    pub(crate) envelope: EnvelopeIndex,
    /// Bytes on the wire.
    pub(crate) bytes: u16,
    /// Bytes of payload.
    pub(crate) payload: u16,
    /// Credits it takes in a buffer.
    pub(crate) credits: u16,
    /// Flow group.
    pub(crate) group: u16,
    /// Service level.
    pub(crate) sl: u8,
    /// `ACK` to `HELD`.
    pub(crate) flags: Flags,
    /// Output port and lane at the switch it comes to next, `UNROUTED` until looked up. Where
    /// adapters hear of arrivals: the lane by which it came in.
    pub(crate) route: Route,
    /// When its message was posted.
    pub(crate) born: u64,
    /// The destination as the forwarder knows it.
    pub(crate) hint: u64,
}

impl Packet {
    /// Neither an ACK nor a CNP.
    #[inline(always)]
    pub(crate) const fn is_data(&self) -> bool {
        self.flags & (ACK | CNP) == 0
    }
}

impl Linked<PacketIndex> for Packet {
    #[inline(always)]
    fn next(&mut self) -> &mut PacketIndex {
        &mut self.next
    }
}

/// What the destination has to know of a message. The last packet carries it, and, where a rank is
/// told of a message of several packets, the first one too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Envelope {
    pub(crate) what: Carried,
    /// Where a mechanism chooses paths: the message's number among those of the same source,
    /// destination and flow group, and how many stripes it has; 0 where none does.
    pub(crate) number: u32,
    pub(crate) stripes: u32,
}

/// Who is told when a message has left for good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Waiter {
    /// The rank's place in its partition.
    pub(crate) rank: u32,
    /// What it knows the message by.
    pub(crate) token: u32,
}

/// What a message means at its destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Carried {
    /// Nothing: it is in memory.
    Data,
    /// A two-sided message.
    Message(clearlane_ranks::Envelope),
    /// That so many bytes are to be read for the rank that `reader` names.
    /// Its packets are to keep a gap, in thousandths.
    ReadRequest { reader: Reader, bytes: u64, gap: u32 },
    /// The bytes read.
    ReadResponse { reader: Reader, request: Request },
}

/// Who reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Reader {
    /// The rank, by its number in the run.
    pub(crate) rank: u32,
    /// What it knows the operation by.
    pub(crate) token: u32,
}

/// The packet that asked for an RDMA READ.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    /// Its queue pair, a number of the requester's partition.
    pub(crate) queue_pair: u32,
    pub(crate) psn: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_one_cache_line() {
        assert_eq!(size_of::<Packet>(), 64);
    }
}
