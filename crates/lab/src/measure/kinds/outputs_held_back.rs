//! `outputs-held-back`: how far congestion has spread.

use crate::measure::{Answer, Arguments, Entry, HELD_BACK, RunView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "outputs-held-back",
    summary: "switch outputs that had data and no credits for a tenth of the time or more",
    unit: "",
    takes: &[],
    settles: Settles::Throughput,
    answer: Answer::Figures(answer),
};

fn answer(run: &RunView<'_>, _: &Arguments) -> Option<f64> {
    run.measured()?;
    Some(run.switch_channels().filter(|channel| channel.wait >= HELD_BACK).count() as f64)
}
