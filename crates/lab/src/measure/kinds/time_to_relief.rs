//! `time-to-relief`: what a mechanism takes to act.

use super::outputs::{RELIEVED, outputs};
use crate::measure::{Answer, Arguments, Entry, Parameter, RecordView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "time-to-relief",
    summary: "when the last busy slice of a span ends, counted from the start of the span: a \
              slice is busy if a switch output (or the named one) sends for more than 95 % of it; \
              no value if the last slice is busy",
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
