//! `peak-load`: slices decide how short a peak is still seen.

use super::outputs::outputs;
use crate::measure::{Answer, Arguments, Entry, Parameter, RecordView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "peak-load",
    summary: "busy share of time of the busiest switch output (or the named one) in its busiest \
              slice of a span",
    unit: "",
    takes: &[Parameter::Link, Parameter::Span],
    settles: Settles::Always,
    answer: Answer::Record(answer),
};

fn answer(record: &RecordView<'_>, arguments: &Arguments) -> Option<f64> {
    let slices = arguments.span.slices(record.cut().length);
    record.loads(outputs(record, arguments)?, &slices).into_iter().reduce(f64::max)
}
