//! Mechanisms in motion as they are kept.

use super::SavedPacket;
use clearlane_ib::Saved;
use serde::{Deserialize, Serialize};

/// A lane of a switch's output.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedOutput {
    pub(crate) queued: u64,
    pub(crate) starved: bool,
    pub(crate) markers: Vec<Saved>,
    pub(crate) draws: u64,
}

/// What a notifier answers for, in numbers of the whole run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) enum SavedNotified {
    /// A send queue.
    Queue(u32),
    /// A slot.
    Slot(u32),
}

/// What reactors and notifiers know.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SavedReactors {
    /// Length of a slice of the record, ps; 0 without mechanisms.
    pub(crate) slice: u64,
    pub(crate) flows: Vec<SavedFlow>,
    pub(crate) reactors: Vec<SavedReactor>,
    /// By decision and what they answer for: notifiers that have had a marked packet.
    pub(crate) notifiers: Vec<(u8, SavedNotified, Saved)>,
    /// By slot.
    pub(crate) due: Vec<SavedDue>,
    pub(crate) dropped: bool,
    /// Draws of source, destination and flow group so far.
    pub(crate) plans: Vec<(u32, u32, u16, u64)>,
    /// Messages that have been divided and are not sent: stripes missing, and who waits.
    pub(crate) wholes: Vec<(u32, Option<(u32, u32)>)>,
    /// Messages posted by slot, destination and flow group.
    pub(crate) posted: Vec<(u32, u32, u16, u32)>,
    /// Those that have come by slot, source and flow group.
    pub(crate) sequences: Vec<SavedSequence>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedFlow {
    pub(crate) source: u32,
    pub(crate) destination: u32,
    pub(crate) group: u16,
    pub(crate) path: u8,
    pub(crate) sl: u8,
    /// By decision: reactor and pair.
    pub(crate) governed: [Option<(u32, u32)>; 2],
    /// Packets not yet acknowledged: when they left and their bytes.
    pub(crate) sent: Vec<(u64, u32)>,
    pub(crate) record: Option<(Vec<u32>, Vec<Vec<u64>>)>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedReactor {
    pub(crate) slot: u32,
    /// The rest of what it is found by.
    pub(crate) found: (u8, u32, u32),
    pub(crate) state: Saved,
    pub(crate) timer: Option<u64>,
    pub(crate) pairs: u32,
    pub(crate) flows: Vec<u32>,
    /// Until when the record tells what it showed, and when that is looked at next.
    pub(crate) recorded: (u64, u64),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedDue {
    pub(crate) timers: Vec<(u64, u32)>,
    pub(crate) queues: Vec<SavedPause>,
}

/// A queue that waits for its time: when, when its last packet left, what orders it, and the queue.
pub(crate) type SavedPause = (u64, u64, (u32, u16, u8), u32);

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedSequence {
    pub(crate) slot: u32,
    pub(crate) source: u32,
    pub(crate) group: u16,
    pub(crate) next: u32,
    pub(crate) partial: Vec<(u32, u32)>,
    pub(crate) early: Vec<(u32, SavedPacket)>,
}

impl SavedReactors {
    /// Adds what those of the next partition know.
    pub(crate) fn append(&mut self, mut next: SavedReactors) {
        self.slice = self.slice.max(next.slice);
        self.flows.append(&mut next.flows);
        self.reactors.append(&mut next.reactors);
        self.notifiers.append(&mut next.notifiers);
        self.due.append(&mut next.due);
        self.dropped |= next.dropped;
        self.plans.append(&mut next.plans);
        self.wholes.append(&mut next.wholes);
        self.posted.append(&mut next.posted);
        self.sequences.append(&mut next.sequences);
    }

    /// The source of each flow.
    pub(crate) fn flows(&self) -> impl Iterator<Item = u32> + '_ {
        self.flows.iter().map(|flow| flow.source)
    }

    /// The slot of each reactor.
    pub(crate) fn reactors(&self) -> impl Iterator<Item = u32> + '_ {
        self.reactors.iter().map(|reactor| reactor.slot)
    }
}
