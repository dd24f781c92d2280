//! `time-to-relief`: what a mechanism takes to act.

use super::outputs::{RELIEVED, outputs};
use crate::measure::{Answer, Arguments, Entry, Parameter, RecordView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "time-to-relief",
    summary: "end of the last slice of a span in which a switch output, or the one that is \
              named, is busy for more than 95 % of the time, counted from the span's begin; \
              nothing if that is the last slice",
    unit: "us",
    takes: &[Parameter::Link, Parameter::Span],
    settles: Settles::Always,
    answer: Answer::Record(answer),
};

fn answer(record: &RecordView<'_>, arguments: &Arguments) -> Option<f64> {
    let slices = arguments.span.slices(record.cut().length);
    let loads = record.loads(outputs(record, arguments)?, &slices);
    match loads.iter().rposition(|load| *load > RELIEVED) {
        Some(last) if last + 1 == loads.len() => None,
        last => Some(last.map_or(0.0, |last| record.until(&slices, last))),
    }
}
