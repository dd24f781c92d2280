//! `slowdown`: of a second run, of the victims alone, beside the first.

use crate::measure::{Answer, Arguments, Entry, RunView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "slowdown",
    summary: "victims' payload without the hot flows over their payload with them; if all \
              victims are programs, their completion time with the hot flows over that \
              without",
    unit: "",
    takes: &[],
    settles: Settles::Victims,
    answer: Answer::Figures(answer),
};

fn answer(run: &RunView<'_>, _: &Arguments) -> Option<f64> {
    run.measured()?;
    run.slowdown
}
