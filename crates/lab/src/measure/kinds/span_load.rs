//! `span-load`: of switch outputs.

use super::outputs::outputs;
use crate::measure::{Answer, Arguments, Entry, Parameter, RecordView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "span-load",
    summary: "busy share of time of the busiest switch output (or the named one) over a span",
    unit: "",
    takes: &[Parameter::Link, Parameter::Span],
    settles: Settles::Always,
    answer: Answer::Record(answer),
};

fn answer(record: &RecordView<'_>, arguments: &Arguments) -> Option<f64> {
    let slices = arguments.span.slices(record.cut().length);
    let loads = outputs(record, arguments)?.filter_map(|channel| record.load(channel, &slices));
    loads.reduce(f64::max)
}
