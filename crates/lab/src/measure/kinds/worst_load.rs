//! `worst-load`: over the measured part.

use crate::measure::{Answer, Arguments, Entry, RunView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "worst-load",
    summary: "busiest output of a switch, share of time",
    unit: "",
    takes: &[],
    settles: Settles::Throughput,
    answer: Answer::Figures(answer),
};

fn answer(run: &RunView<'_>, _: &Arguments) -> Option<f64> {
    run.measured()?;
    run.switch_channels().map(|channel| channel.load).reduce(f64::max)
}
