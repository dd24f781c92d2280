//! `link-bound`: of a program, by what all of its steps put on links.

use crate::measure::{Answer, Arguments, Entry, Parameter, RunView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "link-bound",
    summary: "time of a program in which the link between switches that carries most in all steps \
              together is never idle, by its routes, with headers; no order of steps is faster",
    unit: "us",
    takes: &[Parameter::Scope],
    settles: Settles::Always,
    answer: Answer::Figures(answer),
};

fn answer(run: &RunView<'_>, arguments: &Arguments) -> Option<f64> {
    run.bounds(&arguments.scope).map(|bounds| bounds.by_link.as_microseconds())
}
