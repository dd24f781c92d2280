//! `served`: below 1 where more is offered than the network carries.

use crate::measure::{Answer, Arguments, Entry, Parameter, RunView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "served",
    summary: "delivered bytes ÷ posted bytes",
    unit: "",
    takes: &[Parameter::Scope],
    settles: Settles::Throughput,
    answer: Answer::Figures(answer),
};

fn answer(run: &RunView<'_>, arguments: &Arguments) -> Option<f64> {
    let figures = run.of(&arguments.scope).filter(|figures| figures.offered_load > 0.0)?;
    Some(figures.delivered_load / figures.offered_load)
}
