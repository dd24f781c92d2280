//! How many paths a mechanism holds open between two hosts, slice by slice.

use super::view::within;
use clearlane_congestion::OPEN_PATHS;
use clearlane_sim::{FlowControl, Outcome};
use clearlane_workload::Rank;
use std::ops::Range;

/// By slice, how many paths a pair of hosts has open; empty where no mechanism opens any.
pub(super) fn open_paths<'a>(flow: &'a FlowControl, slices: &Range<usize>) -> &'a [u64] {
    let shown = flow.probes.iter().find(|(name, _)| *name == OPEN_PATHS);
    shown.map_or(&[], |(_, values)| within(values, slices))
}

/// The hosts to which any other has more than one path open at some time.
pub(crate) fn opened_to(outcome: &Outcome) -> Vec<Rank> {
    let opened = |flow: &&FlowControl| open_paths(flow, &(0..usize::MAX)).iter().any(|n| *n > 1);
    let mut ranks: Vec<Rank> =
        outcome.control.flows.iter().filter(opened).map(|flow| flow.destination).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}
