//! `first-path-open`: how soon a mechanism spreads traffic.

use crate::measure::open_paths::open_paths;
use crate::measure::{Answer, Arguments, Entry, Parameter, RecordView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "first-path-open",
    summary: "when a pair of hosts first has a second path open: the end of that slice, counted \
              from the start of the span; no value if no pair has",
    unit: "us",
    takes: &[Parameter::Span],
    settles: Settles::Always,
    answer: Answer::Record(answer),
};

fn answer(record: &RecordView<'_>, arguments: &Arguments) -> Option<f64> {
    let slices = arguments.span.slices(record.cut().length);
    let first = |paths: &[u64]| paths.iter().position(|open| *open > 1);
    let opened = record.control()?.iter().filter_map(|flow| first(open_paths(flow, &slices)));
    opened.min().map(|index| record.until(&slices, index))
}
