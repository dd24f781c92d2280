//! `relieved`: whether a mechanism acts at all.

use super::outputs::{RELIEVED, outputs};
use crate::measure::{Answer, Arguments, Entry, Parameter, RecordView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "relieved",
    summary: "share of the seeds in which no switch output (or not the named one) is busy for \
              more than 95 % of the last slice of a span; the other seeds have no time-to-relief",
    unit: "",
    takes: &[Parameter::Link, Parameter::Span],
    settles: Settles::Always,
    answer: Answer::Record(answer),
};

fn answer(record: &RecordView<'_>, arguments: &Arguments) -> Option<f64> {
    let slices = arguments.span.slices(record.cut().length);
    let last = *record.loads(outputs(record, arguments)?, &slices).last()?;
    Some(f64::from(u8::from(last <= RELIEVED)))
}
