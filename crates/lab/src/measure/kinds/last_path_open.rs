//! `last-path-open`: when a mechanism has spread traffic as far as it does.

use crate::measure::open_paths::open_paths;
use crate::measure::{Answer, Arguments, Entry, Parameter, RecordView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "last-path-open",
    summary: "end of the last slice of a span in which a pair of hosts first has the most \
              paths open it has in the span, counted from the span's begin; nothing if none \
              opens any",
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
