//! Figures out of what a simulation recorded: warm-up cut off, loads, latencies, fairness, links.

mod history;
mod senders;
mod settled;
mod warm_up;

pub use history::History;
pub(crate) use history::trim;

use crate::experiment::{Ends, Plan, WarmUp};
use crate::measure::{
    ChannelFigures, Figures, FlowFigures, RunFigures, SenderShare, SeriesSlice, Slices, WarmUpFound,
};
use crate::prepare::Prepared;
use clearlane_ib::Picoseconds;
use clearlane_sim::{GroupSlice, Outcome};
use clearlane_workload::{Class, FlowGroup, Rank};
use hdrhistogram::Histogram;
use senders::Sender;
use settled::{Settled, level_range};
use warm_up::mser5;

/// The slices that count: from the end of the warm-up to the end of the run or of the traffic. Of a
/// run that ends with its programs, all of it but a warm-up that is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Window {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) slices: Slices,
    /// When the last of them ends.
    pub(crate) end: Picoseconds,
    /// Whether figures are to be those of a steady state: programs come to an end and have none.
    pub(crate) steady: bool,
    /// From here on figures must not change any more.
    pub(crate) level_from: usize,
    pub(crate) converged: bool,
}

impl Window {
    /// The part of a run that counts.
    pub(crate) fn of(outcome: &Outcome, plan: &Plan, prepared: &Prepared) -> Self {
        if plan.ends == Ends::Programs {
            return Window::of_programs(outcome, plan);
        }
        let slice = plan.slice();
        let stop = prepared.groups.iter().map(|group| group.span().end).max().unwrap_or_default();
        let end = outcome.duration.min(stop).min(plan.duration);
        // The last slice of a run is cut short by rounding at most; it counts if the run is over.
        let whole = end >= plan.duration;
        let slices = if whole { plan.duration.0.div_ceil(slice.0) } else { end.0 / slice.0 };
        let to = (slices as usize).min(plan.slices as usize);
        // A program's end is no end of a warm-up.
        let steady = prepared.groups.iter().any(|group| group.offered().is_some());
        let total = |slice| {
            let open_loop =
                outcome.groups.iter().zip(&prepared.groups).filter(|g| g.1.offered().is_some());
            let bytes = |(group, _): (&Vec<GroupSlice>, _)| -> u64 {
                group.get(slice).map_or(0, |s: &GroupSlice| s.delivered_payload_bytes)
            };
            open_loop.map(bytes).sum()
        };
        let series: Vec<u64> = (0..to).map(total).collect();
        let (from, converged) = match plan.warm_up {
            WarmUp::Auto if !steady => (0, true),
            WarmUp::Until(time) if !steady => ((time.0.div_ceil(slice.0) as usize).min(to), true),
            WarmUp::Until(time) => {
                let from = (time.0.div_ceil(slice.0) as usize).min(to);
                (from, mser5(&series[from..]).converged)
            }
            WarmUp::Auto => {
                let found = mser5(&series);
                (found.drop, found.converged)
            }
        };
        let level_from = match plan.warm_up {
            WarmUp::Until(_) => from + (to - from) / 2,
            WarmUp::Auto => to / 2,
        };
        let slices = Slices { length: slice, cut_at: None };
        let end = slices.start(to);
        Window { from, to, slices, end, steady, level_from, converged: converged && from < to }
    }

    /// That of a run that ends with its programs.
    fn of_programs(outcome: &Outcome, plan: &Plan) -> Self {
        let end = outcome.duration;
        let slices = Slices { length: outcome.slice, cut_at: Some(end) };
        let to = slices.count(end);
        let from = match plan.warm_up {
            WarmUp::Auto => 0,
            WarmUp::Until(time) => slices.count(time).min(to),
        };
        let level_from = from + (to - from) / 2;
        Window { from, to, slices, end, steady: false, level_from, converged: from < to }
    }

    fn span(&self) -> Picoseconds {
        Picoseconds(self.end.0.saturating_sub(self.slices.start(self.from).0))
    }

    /// How long of it a group may post.
    fn sending(&self, group: &FlowGroup) -> Picoseconds {
        let from = group.span().start.0.max(self.slices.start(self.from).0);
        let to = group.span().end.0.min(self.end.0);
        Picoseconds(to.saturating_sub(from))
    }

    fn sum(&self, slices: &[u64]) -> u64 {
        let to = self.to.min(slices.len());
        slices.get(self.from..to).unwrap_or_default().iter().sum()
    }
}

/// Sums of one or several groups over the window.
struct Sums {
    offered: u64,
    wire: u64,
    payload: u64,
    messages: u64,
    latency_ps: u128,
    latencies: Option<Histogram<u64>>,
    /// The senders, and the bytes the link of each could have carried.
    links: Vec<(Rank, f64)>,
    senders: usize,
    /// Per sender: delivered over offered bytes; nothing where flows are not known.
    shares: Option<Vec<SenderShare>>,
    /// How many senders starve.
    starved: usize,
    /// How many senders were still gaining or losing.
    changing: usize,
}

/// The figures of a run.
pub(crate) fn figures(outcome: &Outcome, plan: &Plan, prepared: &Prepared) -> RunFigures {
    let window = Window::of(outcome, plan, prepared);
    let known = !outcome.flows_dropped;
    let flows: Vec<FlowFigures> = outcome
        .flows
        .iter()
        .map(|flow| FlowFigures {
            group: usize::from(flow.group),
            source: flow.source,
            destination: flow.destination,
            payload_bytes: window.sum(&flow.delivered_payload_bytes),
        })
        .collect();
    let sums: Vec<Sums> = (0..prepared.groups.len())
        .map(|group| sums(outcome, &window, prepared, group, known.then_some(flows.as_slice())))
        .collect();
    let of = |wanted: &dyn Fn(Class) -> bool| {
        let parts = prepared.groups.iter().zip(&sums).filter(|(group, _)| wanted(group.class));
        let parts: Vec<&Sums> = parts.map(|(_, sums)| sums).collect();
        let members = (0..prepared.groups.len()).filter(|i| wanted(prepared.groups[*i].class));
        let settled = || Settled::of(outcome, &window, &prepared.groups, members, senders(&parts));
        (!parts.is_empty()).then(|| total(&parts, window.span(), settled()))
    };
    let one = |(index, sums): (usize, &Sums)| {
        let settled =
            Settled::of(outcome, &window, &prepared.groups, [index].into_iter(), sums.senders);
        total(&[sums], window.span(), settled)
    };
    let parts: Vec<&Sums> = sums.iter().collect();
    let settled = Settled::of(outcome, &window, &prepared.groups, 0..sums.len(), senders(&parts));
    let classes = [Class::Hot, Class::Victim, Class::Background];
    RunFigures {
        warm_up: WarmUpFound {
            from_us: window.slices.start(window.from).as_microseconds(),
            to_us: window.end.as_microseconds(),
            converged: window.converged,
        },
        measured: window.from..window.to,
        groups: sums.iter().enumerate().map(one).collect(),
        classes: classes.iter().filter_map(|c| Some((*c, of(&|class| class == *c)?))).collect(),
        all: total(&parts, window.span(), settled),
        sender_shares: sums.iter().map(|sums| sums.shares.clone().unwrap_or_default()).collect(),
        flows,
        flows_dropped: outcome.flows_dropped,
        channels: channels(outcome, &window),
        series: outcome.groups.iter().map(|slices| series(slices)).collect(),
        slices: window.slices,
    }
}

fn sums(
    outcome: &Outcome,
    window: &Window,
    prepared: &Prepared,
    index: usize,
    flows: Option<&[FlowFigures]>,
) -> Sums {
    let group = &prepared.groups[index];
    let senders: Vec<(Rank, f64)> = group
        .senders
        .iter()
        .map(|rank| (*rank, group.weight(*rank)))
        .filter(|(_, weight)| *weight > 0.0)
        .collect();
    let seconds = window.span().as_seconds();
    let rate = |rank| {
        let rate = prepared.hosts.rate(rank, &prepared.parameters);
        rate.bits_per_second().0 as f64 / 8.0
    };
    let mut sums = Sums {
        offered: 0,
        wire: 0,
        payload: 0,
        messages: 0,
        latency_ps: 0,
        latencies: None,
        links: senders.iter().map(|(rank, _)| (*rank, rate(*rank) * seconds)).collect(),
        senders: senders.len(),
        shares: None,
        starved: 0,
        changing: 0,
    };
    let slices = outcome.groups.get(index).map_or(&[][..], Vec::as_slice);
    let to = window.to.min(slices.len());
    for slice in slices.get(window.from..to).unwrap_or_default() {
        sums.offered += slice.offered_wire_bytes;
        sums.wire += slice.delivered_wire_bytes;
        sums.payload += slice.delivered_payload_bytes;
        sums.messages += slice.messages;
        sums.latency_ps += slice.latency_sum_ps;
        add(&mut sums.latencies, &slice.latency_ns);
    }
    sums.shares = flows.map(|flows| {
        // A program offers no share of a link that its ranks could be treated by.
        let Some(load) = group.offered().map(|offered| offered.load) else { return Vec::new() };
        // Loads count headers, flows do not; what headers add is known of the group.
        let headers = if sums.payload > 0 { sums.wire as f64 / sums.payload as f64 } else { 1.0 };
        let share = |(rank, weight): &(Rank, f64)| {
            // Flows come sorted by (group, source, destination).
            let first = flows.partition_point(|f| (f.group, f.source) < (index, *rank));
            let own = flows[first..].iter().take_while(|f| (f.group, f.source) == (index, *rank));
            let delivered = own.map(|flow| flow.payload_bytes).sum::<u64>() as f64 * headers;
            let offered = rate(*rank) * weight * load * window.sending(group).as_seconds();
            SenderShare { sender: *rank, share: delivered / offered }
        };
        // Who offers nothing in the window is not treated unfairly in it.
        let sending = window.sending(group) > Picoseconds(0);
        senders.iter().filter(|_| sending).map(share).collect()
    });
    judge(&mut sums, outcome, window, prepared, index);
    sums
}

/// Asks of each sender by itself whether it starves and whether it is treated steadily. Hot flows
/// beside victims are there to fill a host: who of them gets how much of it is not the question.
fn judge(sums: &mut Sums, outcome: &Outcome, window: &Window, prepared: &Prepared, index: usize) {
    let group = &prepared.groups[index];
    let victims = prepared.groups.iter().any(|group| group.class == Class::Victim);
    let on_purpose = victims && group.class == Class::Hot;
    let (Some(shares), Some(offered)) = (&sums.shares, group.offered()) else { return };
    let Some(level) = level_range(window, std::iter::once(group)) else { return };
    if on_purpose || !window.steady {
        return;
    }
    let message = offered.sizes.mean() / offered.sizes.evenness();
    let sending = window.sending(group).as_seconds();
    let sender = |share: &SenderShare| {
        let rate = prepared.hosts.rate(share.sender, &prepared.parameters).bits_per_second();
        let bytes = rate.0 as f64 / 8.0 * group.weight(share.sender) * offered.load * sending;
        // Flows come sorted by (group, source, destination).
        let key = (index, share.sender);
        let first = outcome.flows.partition_point(|f| (usize::from(f.group), f.source) < key);
        let own = outcome.flows[first..].iter();
        let own = own.take_while(|f| (usize::from(f.group), f.source) == key);
        let flows = own.map(|flow| flow.delivered_payload_bytes.as_slice()).collect();
        Sender { share: share.share, messages: bytes / message, flows }
    };
    let senders: Vec<Sender<'_>> = shares.iter().map(sender).collect();
    let part = (level.len() as f64 * window.slices.length.as_seconds() / sending).min(1.0);
    (sums.starved, sums.changing) =
        (senders::starved(&senders), senders::changing(&senders, &level, part));
}

/// Adds a histogram; all have the same precision and grow as needed, so adding cannot fail.
fn add(sum: &mut Option<Histogram<u64>>, slice: &Histogram<u64>) {
    match sum {
        None => *sum = Some(slice.clone()),
        Some(sum) => {
            let added = sum.add(slice);
            debug_assert!(added.is_ok());
        }
    }
}

fn senders(parts: &[&Sums]) -> usize {
    parts.iter().map(|sums| sums.senders).sum()
}

fn total(parts: &[&Sums], span: Picoseconds, settled: Settled) -> Figures {
    let sum = |of: fn(&Sums) -> u64| parts.iter().map(|sums| of(sums)).sum::<u64>();
    let capacity = capacity(parts);
    let over = |bytes: u64| if capacity > 0.0 { bytes as f64 / capacity } else { 0.0 };
    let messages = sum(|sums| sums.messages);
    let mut latencies: Option<Histogram<u64>> = None;
    for part in parts.iter().filter_map(|sums| sums.latencies.as_ref()) {
        add(&mut latencies, part);
    }
    let some = latencies.filter(|histogram| !histogram.is_empty());
    let quantile = |q| some.as_ref().map(|h| h.value_at_quantile(q) as f64 * 1e-3);
    let latency: u128 = parts.iter().map(|sums| sums.latency_ps).sum();
    let shares: Option<Vec<f64>> = parts
        .iter()
        .map(|sums| Some(sums.shares.as_ref()?.iter().map(|sender| sender.share).collect()))
        .collect::<Option<Vec<Vec<f64>>>>()
        .map(|lists| lists.concat());
    let payload = sum(|sums| sums.payload);
    let seconds = span.as_seconds();
    let changing = parts.iter().map(|sums| sums.changing).sum();
    Figures {
        senders: senders(parts),
        offered_load: over(sum(|sums| sums.offered)),
        delivered_load: over(sum(|sums| sums.wire)),
        accepted_load: over(payload),
        accepted_gbps: if seconds > 0.0 { payload as f64 * 8e-9 / seconds } else { 0.0 },
        messages,
        latency_mean_us: (messages > 0).then(|| latency as f64 / messages as f64 * 1e-6),
        latency_p50_us: quantile(0.5),
        latency_p99_us: quantile(0.99),
        jain: shares.and_then(|shares| jain(&shares)),
        throughput_converged: settled.throughput && changing == 0,
        latency_converged: settled.latency && changing == 0,
        saturated: settled.saturated,
        starved: parts.iter().map(|sums| sums.starved).sum(),
        changing,
    }
}

/// Bytes that the links of the senders could have carried: that of a host which sends in several
/// groups counts once.
fn capacity(parts: &[&Sums]) -> f64 {
    let mut links: Vec<(Rank, f64)> = parts.iter().flat_map(|sums| &sums.links).copied().collect();
    links.sort_by_key(|(rank, _)| *rank);
    links.dedup_by_key(|(rank, _)| *rank);
    links.iter().map(|(_, bytes)| bytes).sum()
}

/// Jain, Chiu, Hawe, "A quantitative measure of fairness", DEC-TR-301, 1984: (Σx)² / (n Σx²).
fn jain(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

fn channels(outcome: &Outcome, window: &Window) -> Vec<ChannelFigures> {
    let span = window.span().0;
    let share = |ps: u64| if span > 0 { ps as f64 / span as f64 } else { 0.0 };
    let channel = |channel: &clearlane_sim::ChannelRecord| ChannelFigures {
        node: channel.node,
        port: channel.port,
        load: share(window.sum(&channel.busy_ps)),
        wait: share(window.sum(&channel.wait_ps)),
        port_xmit_data: channel.port_xmit_data,
        port_xmit_pkts: channel.port_xmit_pkts,
        port_rcv_data: channel.port_rcv_data,
        port_rcv_pkts: channel.port_rcv_pkts,
        port_xmit_wait_ps: channel.port_xmit_wait_ps,
    };
    outcome.channels.iter().map(channel).collect()
}

fn series(slices: &[GroupSlice]) -> Vec<SeriesSlice> {
    let slice = |slice: &GroupSlice| SeriesSlice {
        offered_bytes: slice.offered_wire_bytes,
        delivered_payload_bytes: slice.delivered_payload_bytes,
        messages: slice.messages,
        latency_mean_us: match slice.messages {
            0 => 0.0,
            messages => slice.latency_sum_ps as f64 / messages as f64 * 1e-6,
        },
    };
    slices.iter().map(slice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_is_one_for_equal_shares_and_one_in_n_for_one_winner() {
        assert_eq!(jain(&[2.0, 2.0, 2.0]), Some(1.0));
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[0.0, 0.0]), None);
        // The parking lot: 1/6, 1/6, 1/3, 1/3.
        assert!((jain(&[1.0, 1.0, 2.0, 2.0]).unwrap() - 0.9).abs() < 1e-12);
    }

    /// 1 ms of a group whose senders, of 32 Gb/s each, are these ranks.
    fn sums(ranks: &[u32]) -> Sums {
        let mut latencies = Histogram::new(3).unwrap();
        // 1 to 1,000 us in nanoseconds.
        (1..=1_000).for_each(|us: u64| latencies.record(us * 1_000).unwrap());
        Sums {
            offered: 4_000_000,
            wire: 2_000_000,
            payload: 1_000_000,
            messages: 1_000,
            latency_ps: 500_500_000_000,
            latencies: Some(latencies),
            links: ranks.iter().map(|rank| (Rank(*rank), 4e6)).collect(),
            senders: ranks.len(),
            shares: None,
            starved: 0,
            changing: 0,
        }
    }

    fn of(parts: &[&Sums]) -> Figures {
        let settled = Settled { throughput: true, latency: true, saturated: false };
        total(parts, Picoseconds(1_000_000_000), settled)
    }

    #[test]
    fn loads_are_of_the_links_and_latencies_of_all_messages() {
        let figures = of(&[&sums(&[0, 1])]);
        assert_eq!((figures.offered_load, figures.delivered_load), (0.5, 0.25));
        assert_eq!((figures.accepted_load, figures.accepted_gbps), (0.125, 8.0));
        let mean = figures.latency_mean_us.unwrap();
        assert!((mean - 500.5).abs() < 1e-9, "{mean}");
        let quantiles = [figures.latency_p50_us, figures.latency_p99_us].map(Option::unwrap);
        for (found, expected) in quantiles.into_iter().zip([500.0, 990.0]) {
            assert!((found / expected - 1.0).abs() < 2e-3, "{found} instead of {expected}");
        }
    }

    #[test]
    fn the_link_of_a_host_in_two_groups_counts_once() {
        let figures = of(&[&sums(&[0, 1]), &sums(&[1, 2])]);
        assert_eq!((figures.senders, figures.messages), (4, 2_000));
        // Twice the bytes over three links.
        assert!((figures.offered_load - 8.0 / 12.0).abs() < 1e-12, "{}", figures.offered_load);
    }
}
