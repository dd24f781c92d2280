//! `latency-mean`: of all messages of the measured part.

use crate::measure::{Answer, Arguments, Entry, Parameter, RunView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "latency-mean",
    summary: "time from the post of a message to its last byte, mean; arrived messages only; \
              starved flows barely count",
    unit: "us",
    takes: &[Parameter::Scope],
    settles: Settles::Latency,
    answer: Answer::Figures(answer),
};

fn answer(run: &RunView<'_>, arguments: &Arguments) -> Option<f64> {
    run.of(&arguments.scope)?.latency_mean_us
}
