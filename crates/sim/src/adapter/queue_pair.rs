//! Send queues, which of reliable connections are the sender's half, and the receiver's half.

use super::message::MessageIndex;
use crate::finder::Finder;
use crate::list::{Linked, List};
use crate::model::{Governed, QueueRank};
use crate::packet::{Flags, PacketIndex, QueuePairIndex, ReceiverIndex};
use crate::records::{Records, Slab};
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;
use std::ops::{Index, IndexMut};

/// What has a send queue or a queue pair of its own: a source, a destination, a flow group and a
/// path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct QueueKey {
    pub(super) slot: u32,
    /// The largest number for the one queue of an adapter whose messages all wait in line.
    pub(super) destination: u32,
    pub(super) group: u16,
    /// A reliable connection for each path; `RESPONSES` marks the queue of what is read from here.
    pub(super) path: u8,
}

/// Beside the path, in what finds a queue: it holds answers to RDMA READs, which no window holds
/// back and nobody acknowledges (IBA vol. 1, 9.7.5.1.8).
pub(super) const RESPONSES: u8 = 1 << 7;

impl QueueKey {
    #[inline(always)]
    fn hash(&self) -> u32 {
        let hash = FxBuildHasher.hash_one(self);
        (hash >> 32 ^ hash) as u32
    }
}

/// A send queue; of a reliable connection the sender's half. One cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct QueuePair {
    /// The next queue of the ring or line it is in.
    pub(super) next: QueuePairIndex,
    /// Messages waiting their turn.
    pub(super) messages: List<MessageIndex>,
    slot: u32,
    destination: u32,
    pub(super) group: u16,
    path: u8,
    /// `ACTIVE`, `UNLIMITED`, `HAS_TWIN`.
    flags: u8,
    /// PSN of the next packet.
    pub(super) next_psn: u32,
    /// Packets acknowledged.
    pub(super) acknowledged: u32,
    /// The other half; `NIL` until it is known.
    pub(super) receiver: ReceiverIndex,
    /// What mechanisms know of its flow.
    pub(super) governed: Governed,
    /// When its last packet left, if there are mechanisms; 0 before the first.
    pub(super) injected_at: u64,
    /// Messages that have left and that the sender waits for.
    pub(super) waiting: List<MessageIndex>,
}

/// The queue is in a ring, in the line for an engine, or paused by a mechanism.
const ACTIVE: u8 = 1;
/// What governs its flow lets every packet go until something is heard about it.
const UNLIMITED: u8 = 2;
/// Beside it there is a queue of RDMA READ responses, or it is that queue.
const HAS_TWIN: u8 = 4;

impl QueuePair {
    fn new(key: QueueKey) -> Self {
        QueuePair {
            next: QueuePairIndex::NIL,
            messages: List::empty(),
            slot: key.slot,
            destination: key.destination,
            group: key.group,
            path: key.path,
            flags: 0,
            next_psn: 0,
            acknowledged: 0,
            receiver: ReceiverIndex::NIL,
            governed: Governed::NONE,
            injected_at: 0,
            waiting: List::empty(),
        }
    }

    /// Whether it is in a ring, in the line for an engine, or paused by a mechanism.
    #[inline(always)]
    pub(super) const fn is_active(&self) -> bool {
        self.flags & ACTIVE != 0
    }

    #[inline(always)]
    pub(super) const fn set_active(&mut self, active: bool) {
        self.flags = self.flags & !ACTIVE | if active { ACTIVE } else { 0 };
    }

    /// Whether what governs its flow lets every packet go until something is heard about it.
    #[inline(always)]
    pub(super) const fn is_unlimited(&self) -> bool {
        self.flags & UNLIMITED != 0
    }

    #[inline(always)]
    pub(super) const fn set_unlimited(&mut self, unlimited: bool) {
        self.flags = self.flags & !UNLIMITED | if unlimited { UNLIMITED } else { 0 };
    }

    /// Whether there is a queue beside it that the same governs: of its connection's two, one holds
    /// responses.
    #[inline(always)]
    pub(super) const fn has_twin(&self) -> bool {
        self.flags & HAS_TWIN != 0
    }

    pub(super) const fn set_has_twin(&mut self) {
        self.flags |= HAS_TWIN;
    }

    /// All its flags.
    pub(super) const fn flags(&self) -> u8 {
        self.flags
    }

    /// Sets them all. Nothing if there are no such flags.
    pub(super) fn set_flags(&mut self, flags: u8) -> Option<()> {
        self.flags = flags;
        (flags & !(ACTIVE | UNLIMITED | HAS_TWIN) == 0).then_some(())
    }

    /// What it is found by.
    #[inline(always)]
    pub(super) fn key(&self) -> QueueKey {
        let QueuePair { slot, destination, group, path, .. } = *self;
        QueueKey { slot, destination, group, path }
    }

    /// What orders it among the queues of its adapter.
    pub(super) fn rank(&self) -> QueueRank {
        (self.destination, self.group, self.path)
    }
}

impl Linked<QueuePairIndex> for QueuePair {
    #[inline(always)]
    fn next(&mut self) -> &mut QueuePairIndex {
        &mut self.next
    }
}

/// The send queues of a partition's adapters.
#[derive(Default)]
pub(super) struct QueuePairs {
    records: Slab<QueuePairIndex, QueuePair>,
    by_key: Finder,
}

impl QueuePairs {
    /// The queue with this key, and whether it is new.
    #[inline(always)]
    pub(super) fn of(&mut self, key: QueueKey) -> (QueuePairIndex, bool) {
        let hash = key.hash();
        let same = |queue: u32| self.records[QueuePairIndex(queue)].key() == key;
        if let Some(queue) = self.by_key.find(hash, same) {
            return (QueuePairIndex(queue), false);
        }
        let queue = self.records.insert(QueuePair::new(key));
        self.by_key.insert(hash, queue.0);
        (queue, true)
    }

    /// The other queue of a connection that has two.
    pub(super) fn twin(&mut self, queue: QueuePairIndex) -> QueuePairIndex {
        let key = self.records[queue].key();
        self.of(QueueKey { path: key.path ^ RESPONSES, ..key }).0
    }

    /// Asks for what finds the queue with this key.
    #[inline(always)]
    pub(super) fn prefetch_key(&self, key: QueueKey) {
        self.by_key.prefetch(key.hash());
    }

    /// Asks for the queue that is first found where one with this key would be.
    #[inline(always)]
    pub(super) fn prefetch_found(&self, key: QueueKey) {
        self.prefetch(QueuePairIndex(self.by_key.first(key.hash())));
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// All queues there are.
    pub(super) fn live(&self) -> impl Iterator<Item = QueuePairIndex> + '_ {
        self.records.live()
    }

    /// A queue that no key finds.
    pub(super) fn apart(&mut self, key: QueueKey) -> QueuePairIndex {
        self.records.insert(QueuePair::new(key))
    }

    /// Lets a queue go that its key finds.
    #[inline(always)]
    pub(super) fn remove(&mut self, queue: QueuePairIndex) {
        self.by_key.remove(self.records[queue].key().hash(), queue.0);
        self.records.remove(queue);
    }

    /// All queues, to be threaded into lists.
    #[inline(always)]
    pub(super) fn all_mut(&mut self) -> &mut Records<QueuePairIndex, QueuePair> {
        self.records.all_mut()
    }

    /// Asks for the record of a queue.
    #[inline(always)]
    pub(super) fn prefetch(&self, queue: QueuePairIndex) {
        self.records.all().prefetch::<1>(queue);
    }
}

impl Index<QueuePairIndex> for QueuePairs {
    type Output = QueuePair;

    #[inline(always)]
    fn index(&self, index: QueuePairIndex) -> &QueuePair {
        &self.records[index]
    }
}

impl IndexMut<QueuePairIndex> for QueuePairs {
    #[inline(always)]
    fn index_mut(&mut self, index: QueuePairIndex) -> &mut QueuePair {
        &mut self.records[index]
    }
}

/// The receiver's half of a reliable connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Receiver {
    /// PSN expected next.
    pub(super) expected_psn: u32,
    /// Packets received since the last ACK.
    pub(super) unacknowledged: u32,
    /// Packets that overtook the one expected, in no order. Only adaptive routing lets them.
    pub(super) early: List<PacketIndex>,
    /// The BECN flags of the next ACK.
    pub(super) becn: Flags,
}

impl Receiver {
    /// Of a connection on which nothing has arrived yet.
    pub(super) fn new() -> Self {
        Receiver { expected_psn: 0, unacknowledged: 0, early: List::empty(), becn: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_pair_is_one_cache_line() {
        assert_eq!(size_of::<QueuePair>(), 64);
    }

    /// Queues come and go; those that are left are found, and nothing else.
    #[test]
    fn queues_are_found_by_their_key_while_they_are_there() {
        let mut queues = QueuePairs::default();
        let key = |number: u32| QueueKey {
            slot: number / 7,
            destination: number % 7,
            group: (number % 3) as u16,
            path: (number % 2) as u8,
        };
        let all: Vec<QueuePairIndex> = (0..500).map(|number| queues.of(key(number)).0).collect();
        all.iter().step_by(2).for_each(|queue| queues.remove(*queue));
        for number in 0..500 {
            let (queue, is_new) = queues.of(key(number));
            assert_eq!(is_new, number % 2 == 0, "{number}");
            assert_eq!(queues[queue].key(), key(number));
            assert!(is_new || queue == all[number as usize]);
        }
    }
}
