//! `completion-time`: of programs, over the whole run.

use crate::measure::{Answer, Arguments, Entry, Parameter, RunView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "completion-time",
    summary: "time from the start of the run until the last rank of the programs ends",
    unit: "us",
    takes: &[Parameter::Scope],
    settles: Settles::AtEnd,
    answer: Answer::Figures(answer),
};

fn answer(run: &RunView<'_>, arguments: &Arguments) -> Option<f64> {
    // Nothing if one of the programs meant had not ended, or there is none.
    let ends: Option<Vec<_>> = run.programs(&arguments.scope).map(|(_, end)| end).collect();
    ends?.into_iter().max().map(|end| end.as_microseconds())
}
