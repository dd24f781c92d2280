//! `ideal-time`: of a program, by what each of its steps puts on links.

use crate::measure::{Answer, Arguments, Entry, Parameter, RunView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "ideal-time",
    summary: "time of a program in which no step begins before the one before it has ended \
              everywhere and the busiest link of each is never idle, by its routes, with headers \
              and without delays and overheads",
    unit: "us",
    takes: &[Parameter::Scope],
    settles: Settles::Always,
    answer: Answer::Figures(answer),
};

fn answer(run: &RunView<'_>, arguments: &Arguments) -> Option<f64> {
    run.bounds(&arguments.scope).map(|bounds| bounds.by_steps.as_microseconds())
}
