//! `payload-share`: which part of the throughput is of a group or class.

use crate::measure::{Answer, Arguments, Entry, Parameter, RunView, Scope, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "payload-share",
    summary: "delivered payload ÷ that of all traffic: which part of what arrives is of a class",
    unit: "",
    takes: &[Parameter::Scope],
    settles: Settles::Throughput,
    answer: Answer::Figures(answer),
};

fn answer(run: &RunView<'_>, arguments: &Arguments) -> Option<f64> {
    let all = run.of(&Scope::All)?.accepted_gbps;
    let part = run.of(&arguments.scope)?.accepted_gbps;
    (all > 0.0).then_some(part / all)
}
