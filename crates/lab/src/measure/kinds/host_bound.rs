//! `host-bound`: of a program, by what a host sends and receives.

use crate::measure::{Answer, Arguments, Entry, Parameter, RunView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "host-bound",
    summary: "time of a program in which the host that sends or receives most is never idle, by \
              all of its ports, with headers: the injection bound",
    unit: "us",
    takes: &[Parameter::Scope],
    settles: Settles::Always,
    answer: Answer::Figures(answer),
};

fn answer(run: &RunView<'_>, arguments: &Arguments) -> Option<f64> {
    run.bounds(&arguments.scope).map(|bounds| bounds.by_host.as_microseconds())
}
