//! `total-load`: throughput of all senders together, in links.

use crate::measure::{Answer, Arguments, Entry, Parameter, RunView, Settles};
use std::collections::BTreeSet;

/// Its entry.
pub const ENTRY: Entry = Entry {
    name: "total-load",
    summary: "delivered bytes, headers included, ÷ the rate of one sender's link: 7/3 is what two \
              and a third full links carry",
    unit: "links",
    takes: &[Parameter::Scope],
    settles: Settles::Throughput,
    answer: Answer::Figures(answer),
};

fn answer(run: &RunView<'_>, arguments: &Arguments) -> Option<f64> {
    let senders: BTreeSet<_> =
        run.groups_of(&arguments.scope).flat_map(|group| &group.senders).collect();
    Some(run.of(&arguments.scope)?.delivered_load * senders.len() as f64)
}
