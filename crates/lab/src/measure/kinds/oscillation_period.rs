//! `oscillation-period`: how fast sources and marks follow each other.

use super::oscillation::oscillation;
use crate::measure::{Answer, Arguments, Entry, Parameter, RecordView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "oscillation-period",
    summary: "mean time between two upward crossings of its mean by a flow's throughput, in the \
              measured part; at least two slices",
    unit: "us",
    takes: &[Parameter::Flow],
    settles: Settles::Always,
    answer: Answer::Record(answer),
};

fn answer(record: &RecordView<'_>, arguments: &Arguments) -> Option<f64> {
    let period = oscillation(record, arguments.flow.as_ref())?.period?;
    Some(period * record.cut().length.as_microseconds())
}
