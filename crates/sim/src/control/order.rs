//! Messages as programs know them. Several paths split a message and let a later one overtake; the
//! destination puts both right: a message is there when all of it is, and in its turn.

use clearlane_workload::Handle;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A message, of one stripe or several.
struct Whole {
    /// The messages of the same source, destination and flow group.
    sequence: u32,
    /// Its place among them.
    number: u32,
    /// Stripes whose sending is not complete.
    unsent: u32,
    /// Stripes that have not arrived.
    missing: u32,
    handle: Option<Handle>,
}

/// Messages from a source to a destination for one flow group.
#[derive(Default)]
struct Sequence {
    /// Number of the next message posted.
    posted: u32,
    /// Number of the next message handed on.
    next: u32,
    /// Last packets of messages that came early, by number.
    early: BTreeMap<u32, u32>,
}

/// What the arrival of a stripe means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// Others of its message are missing.
    Part,
    /// Its message waits for earlier ones.
    Early,
    /// Its message is next; the number is that of its sequence.
    InTurn(u32),
}

/// All messages under way.
#[derive(Default)]
pub(crate) struct Order {
    wholes: Vec<Whole>,
    free: Vec<u32>,
    sequences: Vec<Sequence>,
    by_ends: FxHashMap<(u32, u32, u16), u32>,
}

impl Order {
    /// A message of so many stripes.
    pub(crate) fn post(
        &mut self,
        ends: (u32, u32, u16),
        stripes: u32,
        handle: Option<Handle>,
    ) -> u32 {
        let sequences = &mut self.sequences;
        let sequence = *self.by_ends.entry(ends).or_insert_with(|| {
            sequences.push(Sequence::default());
            sequences.len() as u32 - 1
        });
        let posted = &mut self.sequences[sequence as usize].posted;
        let number = *posted;
        *posted = posted.wrapping_add(1);
        let whole = Whole { sequence, number, unsent: stripes, missing: stripes, handle };
        match self.free.pop() {
            Some(id) => {
                self.wholes[id as usize] = whole;
                id
            }
            None => {
                self.wholes.push(whole);
                self.wholes.len() as u32 - 1
            }
        }
    }

    /// A stripe has left for good. Returns the sender's handle if it was the last one.
    pub(crate) fn sent(&mut self, id: u32) -> Option<Handle> {
        let whole = &mut self.wholes[id as usize];
        whole.unsent -= 1;
        let handle = if whole.unsent == 0 { whole.handle } else { None };
        self.settle(id);
        handle
    }

    /// The last packet of a stripe has arrived.
    pub(crate) fn arrived(&mut self, id: u32, packet: u32) -> Arrival {
        let whole = &mut self.wholes[id as usize];
        whole.missing -= 1;
        let (missing, number, sequence) = (whole.missing, whole.number, whole.sequence);
        self.settle(id);
        if missing > 0 {
            return Arrival::Part;
        }
        let of = &mut self.sequences[sequence as usize];
        if number != of.next {
            of.early.insert(number, packet);
            return Arrival::Early;
        }
        of.next = of.next.wrapping_add(1);
        Arrival::InTurn(sequence)
    }

    /// The last packet of the next message of a sequence, if it is there.
    pub(crate) fn next(&mut self, sequence: u32) -> Option<u32> {
        let of = &mut self.sequences[sequence as usize];
        let packet = of.early.remove(&of.next)?;
        of.next = of.next.wrapping_add(1);
        Some(packet)
    }

    /// Packets that wait for earlier messages: they have left the network.
    pub(crate) fn early(&self) -> impl Iterator<Item = u32> + '_ {
        self.sequences.iter().flat_map(|sequence| sequence.early.values().copied())
    }

    fn settle(&mut self, id: u32) {
        let whole = &self.wholes[id as usize];
        if whole.unsent == 0 && whole.missing == 0 {
            self.free.push(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_handed_on_whole_and_in_turn() {
        let mut order = Order::default();
        let ends = (1, 2, 0);
        let first = order.post(ends, 2, Some(Handle(7)));
        let second = order.post(ends, 1, None);
        let other = order.post((1, 3, 0), 1, None);
        assert_eq!(order.arrived(second, 22), Arrival::Early);
        assert_eq!(order.early().collect::<Vec<_>>(), [22]);
        assert_eq!(order.arrived(other, 33), Arrival::InTurn(1));
        assert_eq!(order.arrived(first, 10), Arrival::Part);
        assert_eq!(order.arrived(first, 11), Arrival::InTurn(0));
        assert_eq!(order.next(0), Some(22));
        assert_eq!(order.next(0), None);
        assert_eq!(order.sent(first), None);
        assert_eq!(order.sent(first), Some(Handle(7)));
    }
}
