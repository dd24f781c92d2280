//! What mechanisms did, by flow and slice of time.

use crate::model::FlowKey;
use crate::outcome::{ControlRecord, FlowControl};
use crate::recorder::{Slices, halve};
use crate::saved::holds;
use clearlane_congestion::Probe;
use clearlane_workload::Rank;
use std::ops::Range;

/// The record in the making.
pub(crate) struct Record {
    slices: Slices,
    /// What further flows may take.
    bytes_left: u64,
    bytes_max: u64,
    /// By number of the flow; nothing where there is nothing to tell.
    flows: Vec<Option<Box<FlowControl>>>,
    dropped: bool,
}

impl Record {
    /// An empty one, whose flows take `bytes_max` at most.
    pub(crate) fn new(slices: Slices, bytes_max: u64) -> Self {
        Record { slices, bytes_left: bytes_max, bytes_max, flows: Vec::new(), dropped: false }
    }

    /// How many slices have ended by `now`.
    pub(super) fn ended(&mut self, now: u64) -> usize {
        self.reach(now);
        self.number(now)
    }

    /// The slice that a time is in, or how many slices have ended by then.
    pub(super) fn number(&self, time: u64) -> usize {
        ((time / self.slices.length) as usize).min(self.slices.count)
    }

    /// When a slice begins.
    pub(super) fn begin_of(&self, slice: usize) -> u64 {
        (slice as u64).saturating_mul(self.slices.length)
    }

    /// When a slice ends; never if nothing is recorded in it.
    pub(super) fn end(&self, slice: usize) -> u64 {
        // Slices that grow have no last one.
        let over = slice >= self.slices.count && self.slices.grown_to() == 0;
        match self.dropped || over {
            true => u64::MAX,
            false => self.begin_of(slice + 1),
        }
    }

    /// Slices that grow reach `time` from now on, two becoming one.
    pub(super) fn reach(&mut self, time: u64) {
        for _ in 0..self.slices.reach(time) {
            for flow in self.flows.iter_mut().flatten() {
                halve(&mut flow.becns, || 0, |sum, one| *sum += one);
                // What is shown is shown at the end of a slice.
                flow.probes.iter_mut().for_each(|(_, values)| {
                    let later = values.last().copied().unwrap_or(0);
                    halve(values, || later, |value, one| *value = one);
                });
            }
        }
    }

    /// Whether there was nothing to tell of a flow yet and there is room to tell it.
    pub(super) fn wants(&self, flow: u32) -> bool {
        !self.dropped && self.flows.get(flow as usize).is_none_or(Option::is_none)
    }

    /// Begins with a flow whose reactors have shown these numbers so far.
    pub(super) fn begin(&mut self, flow: u32, key: FlowKey, first: impl Iterator<Item = Probe>) {
        let probes: Vec<_> =
            first.map(|probe| (probe.name, vec![probe.value; self.slices.count])).collect();
        let bytes = size_of::<u32>() + probes.len() * size_of::<u64>();
        match self.bytes_left.checked_sub((self.slices.count * bytes) as u64) {
            Some(left) => self.bytes_left = left,
            None => {
                (self.dropped, self.flows) = (true, Vec::new());
                return;
            }
        }
        if self.flows.len() <= flow as usize {
            self.flows.resize(flow as usize + 1, None);
        }
        self.flows[flow as usize] = Some(Box::new(FlowControl {
            queue_pair: 0,
            source: Rank(key.source),
            destination: Rank(key.destination),
            group: key.group,
            path: key.path,
            becns: vec![0; self.slices.count],
            probes,
        }));
    }

    fn of(&mut self, flow: u32) -> Option<&mut FlowControl> {
        self.flows.get_mut(flow as usize)?.as_deref_mut()
    }

    /// BECN has arrived.
    pub(super) fn becn(&mut self, now: u64, flow: u32) {
        self.reach(now + 1);
        let slice = self.number(now);
        let becns = self.of(flow).and_then(|record| record.becns.get_mut(slice));
        if let Some(becns) = becns {
            *becns += 1;
        }
    }

    /// A reactor has shown these numbers at the end of `slices`; they are those of the flow's from
    /// number `at` on.
    pub(super) fn shown(&mut self, flow: u32, slices: Range<usize>, at: usize, probes: &[Probe]) {
        let Some(record) = self.of(flow) else { return };
        for ((_, values), probe) in record.probes.iter_mut().skip(at).zip(probes) {
            values[slices.clone()].fill(probe.value);
        }
    }

    /// How long a slice is.
    pub(super) fn slice(&self) -> u64 {
        self.slices.length
    }

    /// How far slices reach that grow; 0 if they do not.
    pub(super) fn grown_to(&self) -> u64 {
        self.slices.grown_to()
    }

    /// Has slices as long as they were once. Nothing if they never are.
    pub(super) fn load_slice(&mut self, length: u64) -> Option<()> {
        self.slices.load(length)
    }

    /// Whether more was to be recorded than there is room for.
    pub(super) fn has_dropped(&self) -> bool {
        self.dropped
    }

    /// Records nothing any more.
    pub(super) fn drop_all(&mut self) {
        (self.dropped, self.flows) = (true, Vec::new());
    }

    /// What is recorded of a flow, if anything.
    pub(super) fn save(&self, flow: u32) -> Option<(Vec<u32>, Vec<Vec<u64>>)> {
        let of = self.flows.get(flow as usize)?.as_deref()?;
        Some((of.becns.clone(), of.probes.iter().map(|(_, values)| values.clone()).collect()))
    }

    /// Takes it up again.
    pub(super) fn load(
        &mut self,
        flow: u32,
        key: FlowKey,
        first: impl Iterator<Item = Probe>,
        (becns, probes): &(Vec<u32>, Vec<Vec<u64>>),
    ) -> Option<()> {
        self.begin(flow, key, first);
        let slices = self.slices.count;
        let Some(of) = self.of(flow) else { return Some(()) };
        let fits = |values: &Vec<u64>| values.len() == slices;
        holds(becns.len() == slices && probes.iter().all(fits) && probes.len() == of.probes.len())?;
        of.becns.clone_from(becns);
        for ((_, values), saved) in of.probes.iter_mut().zip(probes) {
            values.clone_from(saved);
        }
        Some(())
    }

    pub(super) fn finish(&mut self) -> ControlRecord {
        let flows = std::mem::take(&mut self.flows).into_iter().flatten();
        let mut flows: Vec<FlowControl> = flows.map(|flow| *flow).collect();
        if self.slices.grown_to() > 0 {
            // What a narrow slice told may be nothing in a wide one, and how narrow slices were
            // when it was told depends on the division of the run.
            flows.retain(tells);
        }
        flows.sort_by_key(|flow| (flow.group, flow.source, flow.destination, flow.path));
        let bytes = self.bytes_max - self.bytes_left;
        ControlRecord { flows, dropped: self.dropped, bytes }
    }
}

/// Whether a flow had a BECN, or its reactors show different values in time.
fn tells(flow: &FlowControl) -> bool {
    let changes = |(_, values): &(_, Vec<u64>)| values.windows(2).any(|two| two[0] != two[1]);
    flow.becns.iter().any(|becns| *becns > 0) || flow.probes.iter().any(changes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::Recording;
    use clearlane_ib::Picoseconds;

    fn key(destination: u32) -> FlowKey {
        FlowKey { source: 0, destination, group: 0, path: 0, sl: 0 }
    }

    #[test]
    fn flows_are_kept_as_long_as_their_slices_fit() {
        let rate = Probe { name: "rate", value: 7 };
        // Ten slices of BECNs and of one number: 120 bytes a flow.
        for (bytes, kept) in [(360, 3), (359, 0)] {
            let (slice, slices) = (Picoseconds(100), 10);
            let what = Recording { slice, slices, grows: false, flow_bytes_max: bytes };
            let mut record = Record::new(Slices::of(&what), bytes);
            for flow in 0..3 {
                record.begin(flow, key(9 - flow), [rate].into_iter());
                record.becn(199, flow);
            }
            record.shown(0, 4..6, 0, &[Probe { value: 1, ..rate }]);
            let ControlRecord { flows, dropped, .. } = record.finish();
            assert_eq!((flows.len(), dropped), (kept, kept == 0));
            if let Some(last) = flows.last() {
                assert_eq!(last.destination, Rank(9));
                assert_eq!(last.becns, [0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
                assert_eq!(last.probes, [("rate", vec![7, 7, 7, 7, 1, 1, 7, 7, 7, 7])]);
            }
        }
    }
}
