//! Messages at their sender.

use crate::list::Linked;
use crate::packet::{
    CONTROL, Carried, EnvelopeIndex, Flags, QueuePairIndex, READ, RELIABLE, RESPONSE, TOLD, Waiter,
};
use crate::records::index;

index!(
    /// A message at its sender.
    MessageIndex
);

/// A message that a rank posts, or an adapter in answer to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Post {
    /// When.
    pub(crate) born: u64,
    /// When its first packet may leave.
    pub(crate) ready: u64,
    /// If it is divided, each stripe is ready so much later than the one before.
    pub(crate) stripe_overhead: u64,
    /// Destination rank, not the sender.
    pub(crate) destination: u32,
    /// Bytes besides headers.
    pub(crate) bytes: u64,
    pub(crate) group: u16,
    /// Who waits for it to have left for good.
    pub(crate) waiter: Option<Waiter>,
    /// What it means to its destination.
    pub(crate) what: Carried,
    /// A service level and a path asked for.
    pub(crate) sl: Option<u8>,
    pub(crate) path: Option<u8>,
    /// Idle time after each packet, in thousandths of what it takes on the link.
    pub(crate) gap: u32,
}

impl Post {
    /// Whether it answers an RDMA READ.
    #[inline(always)]
    pub(super) const fn is_response(&self) -> bool {
        matches!(self.what, Carried::ReadResponse { .. })
    }

    /// Whether it carries no payload of a program.
    #[inline(always)]
    pub(super) const fn is_control(&self) -> bool {
        self.flags() & CONTROL != 0
    }

    /// The flags of its packets besides the transport's.
    #[inline(always)]
    pub(super) const fn flags(&self) -> Flags {
        use clearlane_ranks::Kind;
        match &self.what {
            Carried::Data => 0,
            Carried::Message(envelope) => match envelope.kind {
                Kind::Eager => TOLD,
                Kind::RequestToSend { .. } | Kind::Finished { .. } => TOLD | CONTROL,
            },
            Carried::ReadRequest { .. } => TOLD | CONTROL | RELIABLE | READ,
            Carried::ReadResponse { .. } => TOLD | RESPONSE | RELIABLE,
        }
    }
}

/// Somebody waits for the message to have left for good: among a message's flags, beside those of
/// its packets.
pub(super) const TRACKED: Flags = 1;
/// It is a stripe of one that was divided, by whose number it is known.
pub(super) const DIVIDED: Flags = 2;

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
    /// Bytes besides headers.
    pub(super) bytes: u64,
    /// Of these, those that have left; until it joins its send queue, when it is ready.
    pub(super) sent: u64,
    /// Its connection or, of datagrams, its send queue; `NIL` until it has one.
    pub(super) queue_pair: QueuePairIndex,
    /// What its last packet carries besides, if anything.
    pub(super) envelope: EnvelopeIndex,
    /// Who waits for it, if `TRACKED`: the place of a rank.
    pub(super) rank: u32,
    /// What that one knows it by; of a stripe, the number of the whole message.
    pub(super) token: u32,
    /// PSN after its last packet, once that has left.
    pub(super) end_psn: u32,
    pub(super) group: u16,
    /// `TRACKED`, `DIVIDED`, and what its packets have of `TOLD`, `RELIABLE`, `RESPONSE`,
    /// `CONTROL`, `READ`.
    pub(super) flags: Flags,
    pub(super) sl: u8,
    /// Path it takes: LID offset of both ends.
    pub(super) path: u8,
    /// Idle time after each packet, in thousandths of what it takes on the link.
    pub(super) gap: u32,
    /// Lane on the link to the switch.
    pub(super) lane: u8,
}

impl Message {
    /// Whether it travels on a reliable connection.
    #[inline(always)]
    pub(super) const fn is_reliable(&self) -> bool {
        self.flags & RELIABLE != 0
    }

    /// When one that has not joined its send queue may do so.
    #[inline(always)]
    pub(super) const fn ready(&self) -> u64 {
        self.sent
    }

    /// Who waits for it, if it is `TRACKED`.
    #[inline(always)]
    pub(super) const fn waiter(&self) -> Waiter {
        Waiter { rank: self.rank, token: self.token }
    }

    /// Whether anybody is to be told when it has left for good.
    #[inline(always)]
    pub(super) const fn is_awaited(&self) -> bool {
        self.flags & (TRACKED | DIVIDED) != 0
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
