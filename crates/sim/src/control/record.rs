//! What mechanisms did, by flow and slice of time.

use super::flow::Flows;
use clearlane_workload::Rank;

/// One flow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowControl {
    /// Source.
    pub source: Rank,
    /// Destination.
    pub destination: Rank,
    /// Index of the flow group.
    pub group: u16,
    /// Path: LID offset.
    pub path: u8,
    /// BECNs that reached the source, on ACKs and in CNPs, by slice.
    pub becns: Vec<u32>,
    /// What the reactors show, by name: the last value in each slice, or the one before where none
    /// was shown.
    pub probes: Vec<(&'static str, Vec<u64>)>,
}

/// All flows that had something to tell.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ControlRecord {
    /// By (group, source, destination, path). Empty if there were more than the recorder keeps.
    pub flows: Vec<FlowControl>,
    /// True if there were more.
    pub dropped: bool,
}

/// Nothing was shown in this slice.
const UNSHOWN: u64 = u64::MAX;

/// The record in the making.
pub(crate) struct Record {
    slice: u64,
    slices: usize,
    flows_max: usize,
    flows: Vec<Option<FlowControl>>,
    kept: usize,
    dropped: bool,
}

impl Record {
    pub(crate) fn new(slice: u64, slices: u32, flows_max: u32) -> Self {
        Record {
            slice,
            slices: slices as usize,
            flows_max: flows_max as usize,
            flows: Vec::new(),
            kept: 0,
            dropped: false,
        }
    }

    fn at(&mut self, now: u64, flow: u32, flows: &Flows) -> Option<(usize, &mut FlowControl)> {
        let slice = (now / self.slice) as usize;
        if slice >= self.slices || self.dropped {
            return None;
        }
        if self.flows.len() <= flow as usize {
            self.flows.resize(flow as usize + 1, None);
        }
        if self.flows[flow as usize].is_none() {
            if self.kept >= self.flows_max {
                self.dropped = true;
                self.flows.clear();
                return None;
            }
            self.kept += 1;
            let key = flows.key(flow);
            let mut probes = Vec::new();
            flows.probe(flow, &mut |probe| probes.push((probe.name, vec![UNSHOWN; self.slices])));
            self.flows[flow as usize] = Some(FlowControl {
                source: Rank(key.source),
                destination: Rank(key.destination),
                group: key.group,
                path: key.path,
                becns: vec![0; self.slices],
                probes,
            });
        }
        self.flows[flow as usize].as_mut().map(|record| (slice, record))
    }

    /// BECN has arrived.
    pub(crate) fn becn(&mut self, now: u64, flow: u32, flows: &Flows) {
        if let Some((slice, record)) = self.at(now, flow, flows) {
            record.becns[slice] += 1;
        }
    }

    /// A reactor's numbers may have changed.
    pub(crate) fn shown(&mut self, now: u64, flow: u32, flows: &Flows) {
        if let Some((slice, record)) = self.at(now, flow, flows) {
            let mut shown = record.probes.iter_mut();
            flows.probe(flow, &mut |probe| {
                if let Some((_, values)) = shown.next() {
                    values[slice] = probe.value;
                }
            });
        }
    }

    pub(crate) fn finish(&mut self) -> ControlRecord {
        let mut flows: Vec<FlowControl> =
            std::mem::take(&mut self.flows).into_iter().flatten().collect();
        for (_, values) in flows.iter_mut().flat_map(|flow| &mut flow.probes) {
            let mut last = 0;
            for value in values {
                match *value {
                    UNSHOWN => *value = last,
                    shown => last = shown,
                }
            }
        }
        flows.sort_by_key(|flow| (flow.group, flow.source, flow.destination, flow.path));
        ControlRecord { flows, dropped: self.dropped }
    }
}
