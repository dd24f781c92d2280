//! Messages as programs know them. Several paths split a message and let a later one overtake; the
//! destination puts both right: a message is there when all of it is, and in its turn.

use crate::MessageOrder;
use crate::packet::{Envelope, PacketIndex, Waiter};
use crate::records::{Slab, index};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

index!(
    /// A message under way, at its sender.
    WholeIndex
);

/// Source or destination, whichever is elsewhere, of messages of one flow group at one adapter:
/// (slot, rank, group).
pub(super) type Ends = (u32, u32, u16);

/// A message at its sender, of one stripe or several.
pub(super) struct Whole {
    /// Stripes whose sending is not complete.
    pub(super) unsent: u32,
    pub(super) waiter: Option<Waiter>,
}

/// The sender's half.
#[derive(Default)]
pub(super) struct Posted {
    wholes: Slab<WholeIndex, Whole>,
    /// Number of the next message.
    next: FxHashMap<Ends, u32>,
}

impl Posted {
    /// A message of so many stripes: what it is known by, and its number.
    pub(super) fn post(&mut self, to: Ends, unsent: u32, waiter: Option<Waiter>) -> (u32, u32) {
        let next = self.next.entry(to).or_default();
        let number = *next;
        *next = next.wrapping_add(1);
        (self.wholes.insert(Whole { unsent, waiter }).0, number)
    }

    /// All there are, by number, those done with too.
    pub(super) fn wholes(&self) -> impl Iterator<Item = &Whole> + '_ {
        self.wholes.all().iter()
    }

    /// Takes one in. Returns what it is known by.
    pub(super) fn insert(&mut self, whole: Whole) -> u32 {
        self.wholes.insert(whole).0
    }

    /// The number of the next message for each destination, in their order.
    pub(super) fn numbers(&self) -> Vec<(Ends, u32)> {
        let mut all: Vec<(Ends, u32)> = Vec::new();
        #[expect(clippy::iter_over_hash_type, reason = "sorted below")]
        for (to, next) in &self.next {
            all.push((*to, *next));
        }
        all.sort_unstable();
        all
    }

    /// Sets it for one.
    pub(super) fn set_number(&mut self, to: Ends, next: u32) {
        self.next.insert(to, next);
    }

    /// A stripe has left for good. Returns who waits for its message if it was the last one.
    pub(super) fn sent(&mut self, whole: u32) -> Option<Waiter> {
        let index = WholeIndex(whole);
        let whole = &mut self.wholes[index];
        whole.unsent -= 1;
        if whole.unsent > 0 {
            return None;
        }
        let waiter = whole.waiter;
        self.wholes.remove(index);
        waiter
    }
}

/// The receiver's half: messages from a source for one flow group.
#[derive(Default)]
pub(super) struct Sequence {
    /// Number of the next message handed on.
    pub(super) next: u32,
    /// Stripes that are missing of messages some of which is there, by number.
    pub(super) partial: BTreeMap<u32, u32>,
    /// Last packets of messages that came early, by number.
    pub(super) early: BTreeMap<u32, PacketIndex>,
}

/// What the arrival of the last packet of a stripe means.
pub(super) use crate::model::Arrival;

/// All of them.
pub(super) struct Sequences {
    of: FxHashMap<Ends, Sequence>,
    order: MessageOrder,
}

impl Sequences {
    /// None yet.
    pub(super) fn new(order: MessageOrder) -> Self {
        Sequences { of: FxHashMap::default(), order }
    }

    /// All of them, in the order of their sources.
    pub(super) fn all(&self) -> Vec<(Ends, &Sequence)> {
        let mut all: Vec<(Ends, &Sequence)> = Vec::new();
        #[expect(clippy::iter_over_hash_type, reason = "sorted below")]
        for (from, of) in &self.of {
            all.push((*from, of));
        }
        all.sort_by_key(|(from, _)| *from);
        all
    }

    /// Sets one.
    pub(super) fn set(&mut self, from: Ends, of: Sequence) {
        self.of.insert(from, of);
    }

    /// The last packet of a stripe has arrived.
    pub(super) fn arrived(&mut self, from: Ends, packet: PacketIndex, it: &Envelope) -> Arrival {
        let of = self.of.entry(from).or_default();
        let missing = of.partial.entry(it.number).or_insert(it.stripes);
        *missing -= 1;
        if *missing > 0 {
            return Arrival::Part;
        }
        of.partial.remove(&it.number);
        if self.order == MessageOrder::Relaxed {
            return Arrival::InTurn;
        }
        if it.number != of.next {
            of.early.insert(it.number, packet);
            return Arrival::Early;
        }
        of.next = of.next.wrapping_add(1);
        Arrival::InTurn
    }

    /// The last packet of the next message from there, if it is there.
    pub(super) fn next(&mut self, from: Ends) -> Option<PacketIndex> {
        let of = self.of.get_mut(&from)?;
        let packet = of.early.remove(&of.next)?;
        of.next = of.next.wrapping_add(1);
        Some(packet)
    }

    /// Packets that wait for earlier messages: they have left the network.
    pub(super) fn early(&self) -> Vec<PacketIndex> {
        // In no particular order: they are counted.
        let mut all: Vec<&Sequence> = Vec::new();
        #[expect(clippy::iter_over_hash_type, reason = "sorted below")]
        for of in self.of.values() {
            all.push(of);
        }
        let mut packets: Vec<_> = all.iter().flat_map(|of| of.early.values().copied()).collect();
        packets.sort_unstable();
        packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Carried;

    const WAITER: Waiter = Waiter { rank: 3, token: 7 };

    #[test]
    fn messages_are_handed_on_whole_and_in_turn() {
        let mut posted = Posted::default();
        let mut sequences = Sequences::new(MessageOrder::Posted);
        let to = (1, 2, 0);
        let (first, one) = posted.post(to, 2, Some(WAITER));
        let (_, two) = posted.post(to, 1, None);
        let (_, other) = posted.post((1, 3, 0), 1, None);
        assert_eq!((one, two, other), (0, 1, 0));
        let envelope = |number, stripes| Envelope { what: Carried::Data, number, stripes };
        let (from, elsewhere) = ((9, 1, 0), (8, 1, 0));
        let packet = PacketIndex;
        assert_eq!(sequences.arrived(from, packet(22), &envelope(1, 1)), Arrival::Early);
        assert_eq!(sequences.early(), [packet(22)]);
        assert_eq!(sequences.arrived(elsewhere, packet(33), &envelope(0, 1)), Arrival::InTurn);
        assert_eq!(sequences.arrived(from, packet(10), &envelope(0, 2)), Arrival::Part);
        assert_eq!(sequences.arrived(from, packet(11), &envelope(0, 2)), Arrival::InTurn);
        assert_eq!(sequences.next(from), Some(packet(22)));
        assert_eq!(sequences.next(from), None);
        assert_eq!(posted.sent(first), None);
        assert_eq!(posted.sent(first), Some(WAITER));
    }
}
