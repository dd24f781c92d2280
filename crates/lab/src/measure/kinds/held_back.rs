//! `held-back`: over the measured part.

use crate::measure::{Answer, Arguments, Entry, RunView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "held-back",
    summary: "largest share of time a switch output had data and no credits (PortXmitWait)",
    unit: "",
    takes: &[],
    settles: Settles::Throughput,
    answer: Answer::Figures(answer),
};

fn answer(run: &RunView<'_>, _: &Arguments) -> Option<f64> {
    run.measured()?;
    run.switch_channels().map(|channel| channel.wait).reduce(f64::max)
}
