//! `accepted-gbps`: throughput where links differ in rate.

use crate::measure::{Answer, Arguments, Entry, Parameter, RunView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "accepted-gbps",
    summary: "delivered payload",
    unit: "Gb/s",
    takes: &[Parameter::Scope],
    settles: Settles::Throughput,
    answer: Answer::Figures(answer),
};

fn answer(run: &RunView<'_>, arguments: &Arguments) -> Option<f64> {
    Some(run.of(&arguments.scope)?.accepted_gbps)
}
