//! `offered-load`: drawn, whatever the network does.

use crate::measure::{Answer, Arguments, Entry, Parameter, RunView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "offered-load",
    summary: "posted bytes, headers included, ÷ the rate of the senders' links",
    unit: "",
    takes: &[Parameter::Scope],
    settles: Settles::Always,
    answer: Answer::Figures(answer),
};

fn answer(run: &RunView<'_>, arguments: &Arguments) -> Option<f64> {
    Some(run.of(&arguments.scope)?.offered_load)
}
