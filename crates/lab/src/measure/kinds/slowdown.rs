//! `slowdown`: of a second run, of the victims alone, beside the first.

use crate::measure::{Answer, Arguments, Entry, RunView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "slowdown",
    summary: "victim throughput without hot flows ÷ with them; if all victims are programs, their \
              completion time with hot flows ÷ without",
    unit: "",
    takes: &[],
    settles: Settles::Victims,
    answer: Answer::Figures(answer),
};

fn answer(run: &RunView<'_>, _: &Arguments) -> Option<f64> {
    run.measured()?;
    run.slowdown
}
