//! `jain`: Jain, Chiu, Hawe, DEC-TR-301, 1984.

use crate::measure::{Answer, Arguments, Entry, Parameter, RunView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "jain",
    summary: "Jain's fairness index over the senders, 1 for equal shares",
    unit: "",
    takes: &[Parameter::Scope],
    settles: Settles::Throughput,
    answer: Answer::Figures(answer),
};

fn answer(run: &RunView<'_>, arguments: &Arguments) -> Option<f64> {
    run.of(&arguments.scope)?.jain
}
