//! `last-path-open`: when a mechanism has spread traffic as far as it does.

use crate::measure::open_paths::open_paths;
use crate::measure::{Answer, Arguments, Entry, Parameter, RecordView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "last-path-open",
    summary: "when the last pair of hosts reaches its largest number of open paths: the end of \
              that slice, counted from the start of the span; no value if no pair opens a path",
    unit: "us",
    takes: &[Parameter::Span],
    settles: Settles::Always,
    answer: Answer::Record(answer),
};

fn answer(record: &RecordView<'_>, arguments: &Arguments) -> Option<f64> {
    let slices = arguments.span.slices(record.cut().length);
    let all = |paths: &[u64]| {
        let most = *paths.iter().max().filter(|most| **most > 1)?;
        paths.iter().position(|open| *open == most)
    };
    let opened = record.control()?.iter().filter_map(|flow| all(open_paths(flow, &slices)));
    opened.max().map(|index| record.until(&slices, index))
}
