//! `oscillation-amplitude`: how far sources and marks drive each other.

use super::oscillation::oscillation;
use crate::measure::{Answer, Arguments, Entry, Parameter, RecordView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "oscillation-amplitude",
    summary: "amplitude of the sine that has the variance of a flow's throughput over the \
              measured part, over the mean; slices decide what is still seen",
    unit: "",
    takes: &[Parameter::Flow],
    settles: Settles::Always,
    answer: Answer::Record(answer),
};

fn answer(record: &RecordView<'_>, arguments: &Arguments) -> Option<f64> {
    Some(oscillation(record, arguments.flow.as_ref())?.amplitude)
}
