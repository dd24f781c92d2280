//! The parts of a run between which flows join or leave, and who has which share in each.

use clearlane_ib::Picoseconds;
use clearlane_lab::{FlowSlice, HostPlan};
use std::collections::{BTreeMap, BTreeSet};

/// Who sends to whom.
type Ends = (String, String);

/// A part of a run in which the same flows may send.
#[derive(Clone, PartialEq, Debug)]
pub struct Phase {
    from: Picoseconds,
    to: Picoseconds,
    /// They.
    pub flows: Vec<Ends>,
}

impl Phase {
    /// `3 s to 6 s`.
    pub fn name(&self) -> String {
        let from = if self.from.0 == 0 { "0 s".to_owned() } else { self.from.exact() };
        format!("{from} to {}", self.to)
    }

    /// What is judged of it, µs: its first third is for settling.
    fn judged_us(&self) -> (f64, f64) {
        let length = self.to.0 - self.from.0;
        (Picoseconds(self.from.0 + length / 3).as_microseconds(), self.to.as_microseconds())
    }
}

/// The parts of a plan's run.
pub fn phases(plan: &HostPlan) -> Vec<Phase> {
    let ends = plan.flows.iter().flat_map(|flow| [flow.start, flow.stop.min(plan.duration)]);
    let times: BTreeSet<Picoseconds> = ends.collect();
    let times: Vec<Picoseconds> = times.into_iter().collect();
    let phase = |pair: &[Picoseconds]| {
        let (from, to) = (pair[0], pair[1]);
        let sends = plan.flows.iter().filter(|flow| flow.start <= from && flow.stop >= to);
        let flows: BTreeSet<Ends> =
            sends.map(|flow| (flow.source.clone(), flow.destination.clone())).collect();
        Phase { from, to, flows: flows.into_iter().collect() }
    };
    times.windows(2).map(phase).filter(|phase| !phase.flows.is_empty()).collect()
}

/// The part of each flow in what is received in a phase.
pub fn shares(rows: &[FlowSlice], phase: &Phase) -> BTreeMap<Ends, f64> {
    let (from, to) = phase.judged_us();
    let mut bytes: BTreeMap<Ends, u64> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.start_us >= from && row.start_us + row.length_us <= to)
    {
        *bytes.entry((row.source.clone(), row.destination.clone())).or_insert(0) +=
            row.payload_bytes;
    }
    let all: u64 = bytes.values().sum();
    bytes.into_iter().map(|(ends, own)| (ends, own as f64 / all.max(1) as f64)).collect()
}
