//! `latency-p50`: what every second message takes at most.

use crate::measure::{Answer, Arguments, Entry, Parameter, RunView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "latency-p50",
    summary: "time from the post of a message to its last byte, median; arrived messages only; \
              starved flows barely count",
    unit: "us",
    takes: &[Parameter::Scope],
    settles: Settles::Latency,
    answer: Answer::Figures(answer),
};

fn answer(run: &RunView<'_>, arguments: &Arguments) -> Option<f64> {
    run.of(&arguments.scope)?.latency_p50_us
}
