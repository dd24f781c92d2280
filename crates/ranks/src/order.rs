//! Messages of one source and context are matched in the order they were sent in, whatever ways
//! they took.

use crate::process::partial_key;
use crate::transport::Envelope;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Another process and a context.
type Peer = (u32, u16);

/// What is saved of it, each list in order.
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedOrder {
    sent: Vec<(Peer, u32)>,
    expected: Vec<(Peer, u32)>,
    early: Vec<Envelope>,
}

/// Numbers of the messages of one process, sent and received.
#[derive(Debug, Default)]
pub(crate) struct Order {
    sent: FxHashMap<Peer, u32>,
    expected: FxHashMap<Peer, u32>,
    /// Those that came before others sent earlier, by number.
    early: FxHashMap<Peer, BTreeMap<u32, Envelope>>,
}

impl Order {
    /// The number of the next message to a process.
    pub(crate) fn number(&mut self, to: u32, context: u16) -> u32 {
        let sent = self.sent.entry((to, context)).or_default();
        let number = *sent;
        *sent = sent.wrapping_add(1);
        number
    }

    /// An envelope has come. Returns whether its turn is now: then `next` may have others whose
    /// turn it is after it.
    pub(crate) fn accept(&mut self, envelope: &Envelope) -> bool {
        let peer = (envelope.from, envelope.context);
        let expected = self.expected.entry(peer).or_default();
        if envelope.number != *expected {
            self.early.entry(peer).or_default().insert(envelope.number, *envelope);
            return false;
        }
        *expected = expected.wrapping_add(1);
        true
    }

    /// The envelope whose turn it is after one that was accepted.
    pub(crate) fn next(&mut self, after: &Envelope) -> Option<Envelope> {
        let peer = (after.from, after.context);
        let early = self.early.get_mut(&peer)?;
        let expected = self.expected.entry(peer).or_default();
        let envelope = early.remove(expected)?;
        *expected = expected.wrapping_add(1);
        if early.is_empty() {
            self.early.remove(&peer);
        }
        Some(envelope)
    }

    /// Messages that came before others sent earlier, in no order.
    pub(crate) fn early(&self) -> impl Iterator<Item = &Envelope> {
        self.early.values().flat_map(BTreeMap::values)
    }

    pub(crate) fn save(&self) -> SavedOrder {
        let mut early: Vec<Envelope> = self.early().copied().collect();
        early.sort_unstable_by_key(partial_key);
        SavedOrder { sent: sorted(&self.sent), expected: sorted(&self.expected), early }
    }

    /// Nothing if a number is there twice.
    pub(crate) fn load(saved: SavedOrder) -> Option<Self> {
        let mut order = Order {
            sent: numbers(&saved.sent)?,
            expected: numbers(&saved.expected)?,
            early: FxHashMap::default(),
        };
        for envelope in saved.early {
            let early = order.early.entry((envelope.from, envelope.context)).or_default();
            if early.insert(envelope.number, envelope).is_some() {
                return None;
            }
        }
        Some(order)
    }
}

fn sorted(numbers: &FxHashMap<Peer, u32>) -> Vec<(Peer, u32)> {
    let mut sorted: Vec<_> = numbers.iter().map(|(peer, number)| (*peer, *number)).collect();
    sorted.sort_unstable();
    sorted
}

fn numbers(sorted: &[(Peer, u32)]) -> Option<FxHashMap<Peer, u32>> {
    let numbers: FxHashMap<Peer, u32> = sorted.iter().copied().collect();
    (numbers.len() == sorted.len()).then_some(numbers)
}
