//! `accepted-load`: throughput as programs see it.

use crate::measure::{Answer, Arguments, Entry, Parameter, RunView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "accepted-load",
    summary: "delivered payload ÷ the rate of the senders' links",
    unit: "",
    takes: &[Parameter::Scope],
    settles: Settles::Throughput,
    answer: Answer::Figures(answer),
};

fn answer(run: &RunView<'_>, arguments: &Arguments) -> Option<f64> {
    Some(run.of(&arguments.scope)?.accepted_load)
}
