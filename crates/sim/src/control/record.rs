//! What mechanisms did, by flow and slice of time.

use crate::model::FlowKey;
use crate::outcome::{ControlRecord, FlowControl};
use clearlane_congestion::Probe;
use clearlane_workload::Rank;
use std::ops::Range;

/// The record in the making.
pub(crate) struct Record {
    slice: u64,
    slices: usize,
    /// What further flows may take.
    bytes_left: u64,
    bytes_max: u64,
    /// By number of the flow; nothing where there is nothing to tell.
    flows: Vec<Option<Box<FlowControl>>>,
    dropped: bool,
}

impl Record {
    /// An empty one of so many slices, whose flows take `bytes_max` at most.
    pub(crate) fn new(slice: u64, slices: u32, bytes_max: u64) -> Self {
        let slices = slices as usize;
        Record {
            slice,
            slices,
            bytes_left: bytes_max,
            bytes_max,
            flows: Vec::new(),
            dropped: false,
        }
    }

    /// How many slices have ended by `now`.
    pub(super) fn ended(&self, now: u64) -> usize {
        ((now / self.slice) as usize).min(self.slices)
    }

    /// When a slice ends; never if nothing is recorded in it.
    pub(super) fn end(&self, slice: usize) -> u64 {
        match self.dropped || slice >= self.slices {
            true => u64::MAX,
            false => (slice as u64 + 1).saturating_mul(self.slice),
        }
    }

    /// Whether there was nothing to tell of a flow yet and there is room to tell it.
    pub(super) fn wants(&self, flow: u32) -> bool {
        !self.dropped && self.flows.get(flow as usize).is_none_or(Option::is_none)
    }

    /// Begins with a flow whose reactors have shown these numbers so far.
    pub(super) fn begin(&mut self, flow: u32, key: FlowKey, first: impl Iterator<Item = Probe>) {
        let probes: Vec<_> =
            first.map(|probe| (probe.name, vec![probe.value; self.slices])).collect();
        let bytes = size_of::<u32>() + probes.len() * size_of::<u64>();
        match self.bytes_left.checked_sub((self.slices * bytes) as u64) {
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
            source: Rank(key.source),
            destination: Rank(key.destination),
            group: key.group,
            path: key.path,
            becns: vec![0; self.slices],
            probes,
        }));
    }

    fn of(&mut self, flow: u32) -> Option<&mut FlowControl> {
        self.flows.get_mut(flow as usize)?.as_deref_mut()
    }

    /// BECN has arrived.
    pub(super) fn becn(&mut self, now: u64, flow: u32) {
        let slice = self.ended(now);
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

    pub(super) fn finish(&mut self) -> ControlRecord {
        let flows = std::mem::take(&mut self.flows).into_iter().flatten();
        let mut flows: Vec<FlowControl> = flows.map(|flow| *flow).collect();
        flows.sort_by_key(|flow| (flow.group, flow.source, flow.destination, flow.path));
        let bytes = self.bytes_max - self.bytes_left;
        ControlRecord { flows, dropped: self.dropped, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(destination: u32) -> FlowKey {
        FlowKey { source: 0, destination, group: 0, path: 0, sl: 0 }
    }

    #[test]
    fn flows_are_kept_as_long_as_their_slices_fit() {
        let rate = Probe { name: "rate", value: 7 };
        // Ten slices of BECNs and of one number: 120 bytes a flow.
        for (bytes, kept) in [(360, 3), (359, 0)] {
            let mut record = Record::new(100, 10, bytes);
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
