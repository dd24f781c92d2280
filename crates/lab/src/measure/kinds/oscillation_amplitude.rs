//! `oscillation-amplitude`: how far sources and marks drive each other.

use super::oscillation::oscillation;
use crate::measure::{Answer, Arguments, Entry, Parameter, RecordView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "oscillation-amplitude",
    summary: "how strongly a flow's throughput oscillates in the measured part: amplitude of a \
              sine with the same variance ÷ mean throughput; oscillations shorter than a slice are \
              not seen",
    unit: "",
    takes: &[Parameter::Flow],
    settles: Settles::Always,
    answer: Answer::Record(answer),
};

fn answer(record: &RecordView<'_>, arguments: &Arguments) -> Option<f64> {
    Some(oscillation(record, arguments.flow.as_ref())?.amplitude)
}
