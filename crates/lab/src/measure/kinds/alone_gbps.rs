//! `alone-gbps`: of a second run, of the victims without the hot flows. Where it is little,
//! capacity is missing, and the hot flows are not to blame.

use crate::measure::{Answer, Arguments, Entry, RunView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "alone-gbps",
    summary: "victims' payload without the hot flows",
    unit: "Gb/s",
    takes: &[],
    settles: Settles::Victims,
    answer: Answer::Figures(answer),
};

fn answer(run: &RunView<'_>, _: &Arguments) -> Option<f64> {
    run.measured()?;
    run.alone_gbps
}
