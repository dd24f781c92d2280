//! Messages as programs know them. Several paths split a message and let a later one overtake; the
//! destination puts both right: a message is there when all of it is, and in its turn.

use crate::packet::{Envelope, PacketIndex};
use crate::records::{Slab, index};
use clearlane_workload::Handle;
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
struct Whole {
    /// Stripes whose sending is not complete.
    unsent: u32,
    handle: Option<Handle>,
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
    pub(super) fn post(&mut self, to: Ends, unsent: u32, handle: Option<Handle>) -> (u32, u32) {
        let next = self.next.entry(to).or_default();
        let number = *next;
        *next = next.wrapping_add(1);
        (self.wholes.insert(Whole { unsent, handle }).0, number)
    }

    /// A stripe has left for good. Returns the handle of its message if it was the last one.
    pub(super) fn sent(&mut self, whole: u32) -> Option<Handle> {
        let index = WholeIndex(whole);
        let whole = &mut self.wholes[index];
        whole.unsent -= 1;
        if whole.unsent > 0 {
            return None;
        }
        let handle = whole.handle;
        self.wholes.remove(index);
        handle
    }
}

/// The receiver's half: messages from a source for one flow group.
#[derive(Default)]
struct Sequence {
    /// Number of the next message handed on.
    next: u32,
    /// Stripes that are missing of messages some of which is there, by number.
    partial: BTreeMap<u32, u32>,
    /// Last packets of messages that came early, by number.
    early: BTreeMap<u32, PacketIndex>,
}

/// What the arrival of the last packet of a stripe means.
pub(super) use crate::model::Arrival;

/// All of them.
#[derive(Default)]
pub(super) struct Sequences(FxHashMap<Ends, Sequence>);

impl Sequences {
    /// The last packet of a stripe has arrived.
    pub(super) fn arrived(&mut self, from: Ends, packet: PacketIndex, it: &Envelope) -> Arrival {
        let of = self.0.entry(from).or_default();
        let missing = of.partial.entry(it.number).or_insert(it.stripes);
        *missing -= 1;
        if *missing > 0 {
            return Arrival::Part;
        }
        of.partial.remove(&it.number);
        if it.number != of.next {
            of.early.insert(it.number, packet);
            return Arrival::Early;
        }
        of.next = of.next.wrapping_add(1);
        Arrival::InTurn
    }

    /// The last packet of the next message from there, if it is there.
    pub(super) fn next(&mut self, from: Ends) -> Option<PacketIndex> {
        let of = self.0.get_mut(&from)?;
        let packet = of.early.remove(&of.next)?;
        of.next = of.next.wrapping_add(1);
        Some(packet)
    }

    /// Packets that wait for earlier messages: they have left the network.
    pub(super) fn early(&self) -> Vec<PacketIndex> {
        // In no particular order: they are counted.
        let mut all: Vec<&Sequence> = Vec::new();
        #[expect(clippy::iter_over_hash_type, reason = "sorted below")]
        for of in self.0.values() {
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

    #[test]
    fn messages_are_handed_on_whole_and_in_turn() {
        let (mut posted, mut sequences) = (Posted::default(), Sequences::default());
        let to = (1, 2, 0);
        let (first, one) = posted.post(to, 2, Some(Handle(7)));
        let (_, two) = posted.post(to, 1, None);
        let (_, other) = posted.post((1, 3, 0), 1, None);
        assert_eq!((one, two, other), (0, 1, 0));
        let envelope = |number, stripes| Envelope { tag: 0, number, stripes };
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
        assert_eq!(posted.sent(first), Some(Handle(7)));
    }
}
