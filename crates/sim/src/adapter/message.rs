//! Messages at their sender.

use crate::list::Linked;
use crate::packet::{EnvelopeIndex, QueuePairIndex, RELIABLE};
use crate::records::index;
use clearlane_workload::Handle;

index!(
    /// A message at its sender.
    MessageIndex
);

/// A message that a program posts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Post {
    /// When. Its first packet may leave when the software overhead is over.
    pub(crate) born: u64,
    /// Destination rank, not the sender.
    pub(crate) destination: u32,
    /// Payload, at least 1.
    pub(crate) bytes: u64,
    pub(crate) group: u16,
    /// The sender's handle if it waits for completion.
    pub(crate) handle: Option<Handle>,
    /// What a two-sided message is matched by.
    pub(crate) tag: Option<u32>,
}

/// The sender waits for the message's completion; among a message's flags, beside `TWO_SIDED` and
/// `RELIABLE` of its packets.
pub(super) const TRACKED: u8 = 1;

/// No message that was divided.
pub(super) const UNDIVIDED: u32 = u32::MAX;

/// A message, or a stripe of one, from being posted to its last packet leaving, or, if somebody
/// waits for it, being acknowledged. One cache line: where a fabric is saturated, many wait.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Message {
    /// The next message of the same send queue, of those posted and not yet ready, or of those
    /// waiting for their ACK.
    pub(super) next: MessageIndex,
    pub(super) destination: u32,
    /// When it was posted.
    pub(super) born: u64,
    /// Payload.
    pub(super) bytes: u64,
    /// Payload that has left.
    pub(super) sent: u64,
    /// Its connection or, of datagrams, its send queue; `NIL` until it has one.
    pub(super) queue_pair: QueuePairIndex,
    /// What its last packet carries besides, if anything.
    pub(super) envelope: EnvelopeIndex,
    /// If `TRACKED`.
    pub(super) handle: Handle,
    /// The message this is a stripe of, where a mechanism chooses paths, else `UNDIVIDED`.
    pub(super) whole: u32,
    /// PSN after its last packet, once that has left.
    pub(super) end_psn: u32,
    pub(super) group: u16,
    pub(super) sl: u8,
    /// Path it takes: LID offset of both ends.
    pub(super) path: u8,
    /// Lane on the link to the switch.
    pub(super) lane: u8,
    /// `TRACKED`, `TWO_SIDED`, `RELIABLE`.
    pub(super) flags: u8,
}

impl Message {
    /// Whether it travels on a reliable connection.
    #[inline(always)]
    pub(super) const fn is_reliable(&self) -> bool {
        self.flags & RELIABLE != 0
    }

    /// Whether anybody is to be told when it has left for good.
    #[inline(always)]
    pub(super) const fn is_awaited(&self) -> bool {
        self.flags & TRACKED != 0 || self.whole != UNDIVIDED
    }
}

impl Linked<MessageIndex> for Message {
    #[inline(always)]
    fn next(&mut self) -> &mut MessageIndex {
        &mut self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_cache_line() {
        assert_eq!(size_of::<Message>(), 64);
    }
}
