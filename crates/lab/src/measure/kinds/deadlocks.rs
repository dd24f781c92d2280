//! `deadlocks`: of the network, or of ranks that wait for each other.

use crate::measure::{Answer, Arguments, Entry, RunView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "deadlocks",
    summary: "share of the seeds that end in a deadlock",
    unit: "",
    takes: &[],
    settles: Settles::Ending,
    answer: Answer::Figures(answer),
};

fn answer(run: &RunView<'_>, _: &Arguments) -> Option<f64> {
    Some(f64::from(u8::from(run.deadlocked)))
}
