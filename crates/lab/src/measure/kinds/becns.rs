//! `becns`: what a capture at the source would show.

use crate::measure::view::within;
use crate::measure::{Answer, Arguments, Entry, Parameter, RecordView, Settles};

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "becns",
    summary: "BECNs that reach a source in a span of time; each is a CNP where becn is cnp",
    unit: "",
    takes: &[Parameter::Source, Parameter::Span],
    settles: Settles::Always,
    answer: Answer::Record(answer),
};

fn answer(record: &RecordView<'_>, arguments: &Arguments) -> Option<f64> {
    let source = record.hosts.ranks().resolve(arguments.source.as_ref()?).ok()?;
    let slices = arguments.span.slices(record.cut().length);
    let flows = record.control()?.iter().filter(|flow| flow.source == source);
    let becns = flows.flat_map(|flow| within(&flow.becns, &slices));
    Some(becns.map(|becns| u64::from(*becns)).sum::<u64>() as f64)
}
