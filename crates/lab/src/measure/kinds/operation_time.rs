//! `operation-time`: what a benchmark of one operation prints.

use crate::measure::{Answer, Arguments, Entry, Parameter, RunView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "operation-time",
    summary: "completion time of a program ÷ its number of operations one after another: half a \
              round of a ping-pong, one of several allreduces; MPI benchmarks report it",
    unit: "us",
    takes: &[Parameter::Scope],
    settles: Settles::AtEnd,
    answer: Answer::Figures(answer),
};

fn answer(run: &RunView<'_>, arguments: &Arguments) -> Option<f64> {
    // Several programs do not take turns.
    let mut programs = run.programs(&arguments.scope);
    let (program, end) = programs.next()?;
    let alone = programs.next().is_none();
    end.filter(|_| alone).map(|end| end.as_microseconds() / program.operations() as f64)
}
