//! `peak-load`: slices decide how short a peak is still seen.

use super::outputs::outputs;
use crate::measure::{Answer, Arguments, Entry, Parameter, RecordView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "peak-load",
    summary: "busiest switch output in its busiest slice of a span, or the one that is \
              named, share of time",
    unit: "",
    takes: &[Parameter::Link, Parameter::Span],
    settles: Settles::Always,
    answer: Answer::Record(answer),
};

fn answer(record: &RecordView<'_>, arguments: &Arguments) -> Option<f64> {
    let slices = arguments.span.slices(record.cut().length);
    record.loads(outputs(record, arguments)?, &slices).into_iter().reduce(f64::max)
}
