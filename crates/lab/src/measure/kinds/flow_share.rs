//! `flow-share`: over the measured part, all groups together.

use crate::measure::{Answer, Arguments, Entry, Parameter, RunView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "flow-share",
    summary: "share of one flow in all the payload its destination receives",
    unit: "",
    takes: &[Parameter::Flow],
    settles: Settles::Throughput,
    answer: Answer::Figures(answer),
};

fn answer(run: &RunView<'_>, arguments: &Arguments) -> Option<f64> {
    let (flow, ranks) = (arguments.flow.as_ref()?, run.hosts.ranks());
    let (from, to) = (ranks.resolve(&flow.from).ok()?, ranks.resolve(&flow.to).ok()?);
    if run.figures.flows_dropped {
        return None;
    }
    let (mut own, mut all) = (0u64, 0u64);
    for flow in run.figures.flows.iter().filter(|flow| flow.destination == to) {
        all += flow.payload_bytes;
        own += if flow.source == from { flow.payload_bytes } else { 0 };
    }
    (all > 0).then(|| own as f64 / all as f64)
}
