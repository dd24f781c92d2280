//! `open-paths`: how far a mechanism spreads traffic.

use crate::measure::open_paths::open_paths;
use crate::measure::{Answer, Arguments, Entry, Parameter, RecordView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "open-paths",
    summary: "the most paths that any pair of hosts has open at the end of a slice of a \
              span; 1 if none opens any",
    unit: "",
    takes: &[Parameter::Span],
    settles: Settles::Always,
    answer: Answer::Record(answer),
};

fn answer(record: &RecordView<'_>, arguments: &Arguments) -> Option<f64> {
    let slices = arguments.span.slices(record.cut().length);
    let most = record.control()?.iter().flat_map(|flow| open_paths(flow, &slices)).max();
    Some(most.map_or(1.0, |most| *most as f64).max(1.0))
}
