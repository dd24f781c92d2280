//! `delivered-load`: throughput as switches see it.

use crate::measure::{Answer, Arguments, Entry, Parameter, RunView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "delivered-load",
    summary: "delivered bytes, headers included, ÷ the rate of the senders' links",
    unit: "",
    takes: &[Parameter::Scope],
    settles: Settles::Throughput,
    answer: Answer::Figures(answer),
};

fn answer(run: &RunView<'_>, arguments: &Arguments) -> Option<f64> {
    Some(run.of(&arguments.scope)?.delivered_load)
}
