//! Whether the figures of some flow groups are those of a steady state.

use super::Window;
use super::warm_up::{LATENCY_DRIFT_MAX, THROUGHPUT_DRIFT_MAX, batch_means, batches, is_level};
use crate::measure::Estimate;
use clearlane_sim::{GroupSlice, Outcome};
use clearlane_workload::FlowGroup;
use std::ops::Range;

/// What was steady in the measured part, and in the second half of it by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Settled {
    pub(super) throughput: bool,
    pub(super) latency: bool,
    /// What waits grows by more than chance explains: more is offered than delivered.
    pub(super) saturated: bool,
}

/// A queue grows if this share of what is offered is not delivered, …
const GROWTH_MAX: f64 = 0.05;
/// … and it is more than so many messages a sender: that many may be on their way at any time.
const MESSAGES_UNDER_WAY: f64 = 2.0;

/// Some groups in a slice of time.
#[derive(Clone, Copy, Default)]
struct Slice {
    offered: u64,
    delivered: u64,
    messages: u64,
    latency_ps: u128,
}

impl Settled {
    /// Programs come to an end and have no steady state.
    const OF_PROGRAMS: Settled = Settled { throughput: true, latency: true, saturated: false };

    /// Of the groups of these indices that are open-loop traffic, together, while all of them send;
    /// `senders` is how many senders they have.
    pub(super) fn of(
        outcome: &Outcome,
        window: &Window,
        all: &[FlowGroup],
        groups: impl Iterator<Item = usize> + Clone,
        senders: usize,
    ) -> Self {
        let groups = groups.filter(|index| all.get(*index).is_some_and(|g| g.offered().is_some()));
        if groups.clone().next().is_none() {
            return Settled::OF_PROGRAMS;
        }
        let these = || groups.clone().filter_map(|index| all.get(index));
        let ranges = level_range(window, these()).zip(sending_range(window, these()));
        let Some((level, sending)) = ranges else {
            return Settled { throughput: false, latency: false, saturated: false };
        };
        let add = |sum: Slice, slice: &GroupSlice| Slice {
            offered: sum.offered + slice.offered_wire_bytes,
            delivered: sum.delivered + slice.delivered_wire_bytes,
            messages: sum.messages + slice.messages,
            latency_ps: sum.latency_ps + slice.latency_sum_ps,
        };
        let of = |at: usize| {
            let slices = groups.clone().filter_map(|group| outcome.groups.get(group)?.get(at));
            slices.fold(Slice::default(), add)
        };
        let half: Vec<Slice> = level.map(of).collect();
        let is_level = |slices: &[Slice]| {
            let delivered: Vec<f64> = slices.iter().map(|slice| slice.delivered as f64).collect();
            is_level(&batch_means(&delivered), THROUGHPUT_DRIFT_MAX)
        };
        if !window.steady {
            let saturated = grows(&half, senders) && is_growth(&half);
            return Settled { saturated, ..Settled::OF_PROGRAMS };
        }
        // The figure is that of all slices: what came before the second half counts in it.
        let throughput = is_level(&half) && is_level(&sending.map(of).collect::<Vec<_>>());
        let grows = grows(&half, senders);
        let latency = throughput && !grows && is_level_in_latency(&half);
        Settled { throughput, latency, saturated: grows && is_growth(&half) }
    }
}

/// The slices in which figures of these groups must be level: the second half of the measured part
/// in which all of them send; nothing without any.
pub(super) fn level_range<'a>(
    window: &Window,
    groups: impl Iterator<Item = &'a FlowGroup>,
) -> Option<Range<usize>> {
    let sending = sending_range(window, groups)?;
    let whole = sending == (window.from..window.to);
    let middle = sending.start + sending.len() / 2;
    Some(if whole { window.level_from } else { middle }..sending.end)
}

/// The slices of the measured part in which all of these groups send; nothing without any.
fn sending_range<'a>(
    window: &Window,
    groups: impl Iterator<Item = &'a FlowGroup>,
) -> Option<Range<usize>> {
    let slice = window.slices.length.0;
    let (mut from, mut to) = (window.from, window.to);
    for group in groups {
        from = from.max(group.span().start.0.div_ceil(slice) as usize);
        // The last slice of a run of unknown length is cut short.
        let end = group.span().end;
        to = if end >= window.end { to } else { to.min((end.0 / slice) as usize) };
    }
    (from < to).then_some(from..to)
}

/// Whether more is offered than delivered: what is posted waits longer and longer.
fn grows(half: &[Slice], senders: usize) -> bool {
    let sum = |of: fn(&Slice) -> u64| half.iter().map(of).sum::<u64>() as f64;
    let (offered, delivered) = (sum(|slice| slice.offered), sum(|slice| slice.delivered));
    let message = delivered / sum(|slice| slice.messages).max(1.0);
    let growth = offered - delivered;
    growth > GROWTH_MAX * offered && growth > MESSAGES_UNDER_WAY * message * senders as f64
}

/// Whether what waits grows beyond the 95 % interval of ten batch means: bursts that are offered at
/// the end of one batch and delivered in the next make it grow here and shrink there.
fn is_growth(half: &[Slice]) -> bool {
    let growth = |slice: &Slice| slice.offered as f64 - slice.delivered as f64;
    let series: Vec<f64> = half.iter().map(growth).collect();
    let estimate = Estimate::over(batch_means(&series).into_iter().map(Some));
    estimate.is_some_and(|growth| growth.half_width.is_some_and(|half| growth.mean > half))
}

/// Whether messages took as long at the end as in the middle; true where there are too few to say.
fn is_level_in_latency(half: &[Slice]) -> bool {
    let mean = |batch: std::ops::Range<usize>| {
        let slices = &half[batch];
        let messages: u64 = slices.iter().map(|slice| slice.messages).sum();
        let latency: u128 = slices.iter().map(|slice| slice.latency_ps).sum();
        (messages > 0).then(|| latency as f64 / messages as f64)
    };
    let means: Vec<f64> = batches(half.len()).filter_map(mean).collect();
    means.len() < 4 || is_level(&means, LATENCY_DRIFT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slices(offered: impl Iterator<Item = u64>, delivered: u64) -> Vec<Slice> {
        let slice = |offered| Slice { offered, delivered, messages: 10, latency_ps: 0 };
        offered.map(slice).collect()
    }

    #[test]
    fn bursts_are_no_growth_and_a_steady_surplus_is() {
        // 6 % more is offered than delivered, once in every slice and once in two bursts.
        let steady = slices((0..50).map(|_| 106_000), 100_000);
        let bursts = slices((0..50).map(|i| if i % 25 == 9 { 250_000 } else { 100_000 }), 100_000);
        assert!(grows(&steady, 1) && grows(&bursts, 1));
        assert!(is_growth(&steady) && !is_growth(&bursts));
    }

    #[test]
    fn a_queue_that_grows_by_two_messages_a_sender_is_none() {
        // 30 messages of 10,000 B wait longer.
        let steady = slices((0..50).map(|_| 106_000), 100_000);
        assert!(grows(&steady, 14) && !grows(&steady, 15));
    }

    #[test]
    fn latency_is_level_within_five_percent() {
        // Five slices a batch: the halves lie 25 steps apart.
        let is_level = |step: u128| {
            let slice = |i: u128| Slice {
                messages: 10,
                latency_ps: 10 * (100_000 + i * step),
                ..Slice::default()
            };
            is_level_in_latency(&(0..50).map(slice).collect::<Vec<_>>())
        };
        assert!(is_level(190) && !is_level(216));
    }
}
