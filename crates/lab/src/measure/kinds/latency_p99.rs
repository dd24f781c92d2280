//! `latency-p99`: what one in a hundred takes at least.

use crate::measure::{Answer, Arguments, Entry, Parameter, RunView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "latency-p99",
    summary: "time from the post of a message to its last byte, 99th percentile; arrived messages \
              only; starved flows barely count",
    unit: "us",
    takes: &[Parameter::Scope],
    settles: Settles::Latency,
    answer: Answer::Figures(answer),
};

fn answer(run: &RunView<'_>, arguments: &Arguments) -> Option<f64> {
    run.of(&arguments.scope)?.latency_p99_us
}
