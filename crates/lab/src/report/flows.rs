//! The flows of a run: where they go, what they are delivered, and what holds them back.

use super::frames::Frames;
use super::map::Map;
use super::over_time::Channels;
use super::packed::Packed;
use super::paths::Path;
use crate::figures::History;
use crate::measure::FlowFigures;
use crate::result::{SeedResult, VariantResult};
use clearlane_ib::ServiceLevel;
use clearlane_workload::{Class, Rank, Transport};
use serde::Serialize;
use std::collections::BTreeMap;

/// Flows that a report holds at most, of all variants together, and of one.
const FLOWS_MAX: (usize, usize) = (9000, 3000);

/// A flow of a run.
pub(super) struct Flow {
    /// Index of its group.
    pub(super) group: usize,
    pub(super) source: Rank,
    destination: Rank,
    /// Index in the run's flows; nothing if it is not recorded there.
    index: Option<usize>,
    /// Payload in the measured part, bytes.
    pub(super) payload_bytes: u64,
    /// The same without the hot flows, where it was run.
    pub(super) alone_bytes: Option<u64>,
    /// Channels it crosses; empty if not known.
    pub(super) path: Path,
    /// Channels its acknowledgements cross; empty without.
    pub(super) acks: Path,
    /// How much it counts where causes are looked for.
    pub(super) weight: f64,
}

impl Flow {
    /// A flow that is known from its sender's draws only.
    pub(super) fn sampled(
        group: usize,
        source: Rank,
        destination: Rank,
        path: Path,
        weight: f64,
    ) -> Self {
        let (index, alone_bytes) = (None, None);
        Flow {
            group,
            source,
            destination,
            index,
            payload_bytes: 0,
            alone_bytes,
            path,
            acks: Path::default(),
            weight,
        }
    }
}

/// The page's flows, one value of each list per flow.
#[derive(Serialize, Default)]
pub(super) struct FlowsData {
    /// How many there were; the lists may hold fewer.
    total: usize,
    /// False if they were too many to be recorded one by one.
    recorded: bool,
    /// Nodes.
    from: Vec<u32>,
    to: Vec<u32>,
    /// Index among the groups of the series.
    group: Vec<usize>,
    /// Payload over the measured part, Gb/s.
    gbps: Vec<f64>,
    /// The same without the hot flows, where that was run.
    alone_gbps: Vec<Option<f64>>,
    /// What the sender gets of what it offers in the group, 0..1.
    share: Vec<Option<f64>>,
    /// Share of the measured frames with a channel of its path held back, 0..1.
    held: Vec<f64>,
    /// The same of the way of its acknowledgements.
    acks_held: Vec<f64>,
    /// The root either is held back by most often: a channel.
    root: Vec<Option<u32>>,
    /// Channels it crosses.
    path: Vec<Vec<u32>>,
    /// Payload by frame, Gb/s.
    series: Packed,
    gbps_max: f64,
}

impl Default for Packed {
    fn default() -> Self {
        Packed::whole(std::iter::empty())
    }
}

/// Every flow that was recorded beside the hot flows or without them.
pub(super) fn known_flows(
    variant: &VariantResult,
    run: &SeedResult,
    path: impl Fn(Rank, Rank, Option<ServiceLevel>) -> Option<Path>,
) -> Vec<Flow> {
    let group = |key: &(usize, Rank, Rank)| variant.prepared.groups.get(key.0);
    let reliable = |key: &_| group(key).is_some_and(|group| group.transport == Transport::Rc);
    let sl = |key: &_| group(key).and_then(|group| group.sl);
    let key = |flow: &FlowFigures| (flow.group, flow.source, flow.destination);
    let alone = run.history.iter().flat_map(|history| &history.alone);
    let mut alone: BTreeMap<_, u64> = alone.map(|flow| (key(flow), flow.payload_bytes)).collect();
    let flow = |index, key: (usize, Rank, Rank), payload_bytes: u64, alone_bytes| Flow {
        group: key.0,
        source: key.1,
        destination: key.2,
        index,
        payload_bytes,
        alone_bytes,
        path: path(key.1, key.2, sl(&key)).unwrap_or_default(),
        acks: match reliable(&key) {
            true => path(key.2, key.1, sl(&key)).unwrap_or_default(),
            false => Path::default(),
        },
        // A flow that was delivered nothing still stands somewhere.
        weight: (payload_bytes + 1) as f64,
    };
    let mut flows: Vec<Flow> = Vec::new();
    for (index, found) in run.figures.flows.iter().enumerate() {
        let key = key(found);
        flows.push(flow(Some(index), key, found.payload_bytes, alone.remove(&key)));
    }
    // Those the hot flows starve from the first byte on.
    flows.extend(alone.into_iter().map(|(key, bytes)| flow(None, key, 0, Some(bytes))));
    flows
}

/// Share of the measured frames in which something holds a path back; counts the roots.
pub(super) fn held_back(
    path: &Path,
    frames: &Frames,
    channels: &Channels,
    roots: &mut BTreeMap<u32, usize>,
) -> f64 {
    let measured = frames.measured();
    let queues = channels.onward.queues(path);
    let mut held = 0;
    for frame in measured.clone() {
        let holder = channels.onward.holder(&queues, &channels.stuck[frame]);
        let Some(holder) = holder else { continue };
        held += 1;
        if let Some(root) = channels.roots[frame][holder as usize] {
            *roots.entry(root).or_insert(0) += 1;
        }
    }
    held as f64 / measured.len().max(1) as f64
}

/// Which flows a report shows if it cannot show all: half those that suffer most, half the largest.
fn chosen(variant: &VariantResult, flows: &[Flow], most: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..flows.len()).collect();
    if order.len() <= most {
        return order;
    }
    let hot = |flow: &Flow| {
        variant.prepared.groups.get(flow.group).is_some_and(|group| group.class == Class::Hot)
    };
    let suffering = |flow: &Flow| match flow.alone_bytes {
        Some(alone) => alone as f64 / flow.payload_bytes.max(1) as f64,
        None => 1.0 / (flow.payload_bytes + 1) as f64,
    };
    order.sort_by(|a, b| {
        let (a, b) = (&flows[*a], &flows[*b]);
        hot(a).cmp(&hot(b)).then(suffering(b).total_cmp(&suffering(a)))
    });
    let rest = order.split_off(most / 2);
    let mut largest = rest;
    largest.sort_by_key(|index| std::cmp::Reverse(flows[*index].payload_bytes));
    order.extend(largest.into_iter().take(most - most / 2));
    order.sort_unstable();
    order
}

/// The flows as the page reads them.
pub(super) fn flows_data(
    variant: &VariantResult,
    run: &SeedResult,
    history: &History,
    (frames, channels): (&Frames, &Channels),
    flows: Vec<Flow>,
    (map, variants): (&Map<'_>, usize),
) -> FlowsData {
    if run.figures.flows_dropped {
        return FlowsData { total: 0, ..FlowsData::default() };
    }
    let most = (FLOWS_MAX.0 / variants.max(1)).min(FLOWS_MAX.1);
    let ends = variant.prepared.hosts.ends();
    let node = |rank: Rank| map.node(variant, ends.get(rank.0 as usize)?.node);
    let code = |channel: u32| map.code(variant, run.figures.channels.get(channel as usize)?);
    let span_us = run.figures.warm_up.to_us - run.figures.warm_up.from_us;
    let round = |gbps: f64| (gbps * 1e4).round() / 1e4;
    let gbps = |bytes: u64| if span_us > 0.0 { round(bytes as f64 * 8e-3 / span_us) } else { 0.0 };
    let mut data = FlowsData { total: flows.len(), recorded: true, ..FlowsData::default() };
    let shares: BTreeMap<(usize, Rank), f64> = (run.figures.sender_shares.iter().enumerate())
        .flat_map(|(group, shares)| shares.iter().map(move |s| ((group, s.sender), s.share)))
        .collect();
    let mut series: Vec<f64> = Vec::new();
    for flow in chosen(variant, &flows, most).into_iter().map(|index| &flows[index]) {
        let (Some(from), Some(to)) = (node(flow.source), node(flow.destination)) else { continue };
        let mut roots = BTreeMap::new();
        let held = held_back(&flow.path, frames, channels, &mut roots);
        let acks_held = held_back(&flow.acks, frames, channels, &mut roots);
        // The first of equals.
        let root = roots.into_iter().reduce(|a, b| if b.1 > a.1 { b } else { a });
        data.from.push(from);
        data.to.push(to);
        data.group.push(flow.group);
        data.gbps.push(gbps(flow.payload_bytes));
        data.alone_gbps.push(flow.alone_bytes.map(gbps));
        let share = shares.get(&(flow.group, flow.source));
        data.share.push(share.map(|share| round(share.min(1.0))));
        data.held.push(round(held));
        data.acks_held.push(round(acks_held));
        data.root.push(root.and_then(|(root, _)| code(root)));
        data.path.push(flow.path.channels.iter().filter_map(|channel| code(*channel)).collect());
        let slices = flow.index.and_then(|index| history.flow_bytes.get(index));
        let sums: Vec<u64> = slices.map_or(Vec::new(), |slices| frames.sums(slices).collect());
        series.extend((0..frames.count()).map(|frame| {
            let us = frames.span(frame).as_microseconds();
            let bytes = sums.get(frame).copied().unwrap_or(0) as f64;
            if us > 0.0 { bytes * 8e-3 / us } else { 0.0 }
        }));
    }
    data.gbps_max = series.iter().copied().fold(0.0, f64::max);
    data.series = Packed::scaled(series.into_iter(), data.gbps_max);
    data
}
