//! `slowdown-uncontrolled`: of a run of the victims alone without mechanisms, beside the first.
//! What a mechanism takes from victims by itself shows here and not in `slowdown`.

use crate::measure::{Answer, Arguments, Entry, RunView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "slowdown-uncontrolled",
    summary: "victim throughput without hot flows and without congestion mechanisms ÷ with both; \
              if all victims are programs, their completion time with both ÷ without both",
    unit: "",
    takes: &[],
    settles: Settles::Victims,
    answer: Answer::Figures(answer),
};

fn answer(run: &RunView<'_>, _: &Arguments) -> Option<f64> {
    run.measured()?;
    run.slowdown_uncontrolled
}
