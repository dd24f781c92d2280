//! What a variant did over time, from its first seed: channels, queues of switches, the congestion
//! tree and the flows, frame by frame.

use super::congestion::{Cause, Onward, roots};
use super::flows::{Flow, FlowsData, flows_data, known_flows};
use super::frames::Frames;
use super::map::{Map, rate};
use super::packed::Packed;
use super::paths::{Paths, drawn};
use crate::figures::History;
use crate::prepare::Prepared;
use crate::result::{SeedResult, VariantResult};
use crate::routes::Routed;
use clearlane_fabric::NodeId;
use clearlane_workload::Rank;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Shares of channels that a report holds at most: fewer frames of larger fabrics keep a report
/// small enough to mail.
const SHARES_MAX: usize = 2_000_000;
/// Least and most frames.
const FRAMES: (usize, usize) = (24, 100);

/// Acknowledgements in terms of the payload they answer: 30 bytes for each packet of 2 KiB at most.
const ACKS_WEIGHT: f64 = 1.0 / 64.0;

/// A variant over time. Rows are by channel, switch or flow, one number per frame.
#[derive(Serialize)]
pub(super) struct OverTime {
    /// Length of a frame, µs.
    dt_us: f64,
    frames: usize,
    /// First frame of the measured part, and the one after its last.
    measured: (usize, usize),
    /// Channels that ever sent or waited.
    channels: Packed,
    load: Packed,
    wait: Packed,
    /// What holds the channel back.
    cause: Packed,
    /// False if the tables' paths are not known, and with them no causes.
    paths: bool,
    /// What a reader should know about the paths.
    paths_note: Option<&'static str>,
    /// Nodes with a row in `queue`.
    switches: Vec<u32>,
    /// Bytes in the buffers of each switch at the end of a frame.
    queue: Packed,
    queue_bytes_max: f64,
    flows: FlowsData,
}

/// The state of a run's channels.
pub(super) struct Channels {
    pub(super) onward: Onward,
    /// Busy share, by channel, then frame.
    pub(super) busy: Vec<Vec<f64>>,
    /// Share of time held back, by channel, then frame.
    pub(super) wait: Vec<Vec<f64>>,
    /// By frame, then channel.
    pub(super) causes: Vec<Vec<Cause>>,
    /// By frame, then queue: whether it is held back.
    pub(super) stuck: Vec<Vec<bool>>,
    /// By frame, then channel.
    pub(super) roots: Vec<Vec<Option<u32>>>,
}

/// How many frames a report has room for.
pub(super) fn frames_most(channels: usize, variants: usize) -> usize {
    (SHARES_MAX / (2 * channels * variants).max(1)).clamp(FRAMES.0, FRAMES.1)
}

impl Channels {
    /// Of a run and the flows in it.
    pub(super) fn of(frames: &Frames, history: &History, flows: &[Flow]) -> Self {
        let shares = |rows: &[Vec<u64>]| -> Vec<Vec<f64>> {
            rows.iter().map(|slices| frames.shares(slices).collect()).collect()
        };
        let (busy, wait) = (shares(&history.busy_ps), shares(&history.wait_ps));
        // Where acknowledgements wait, whoever is behind them does.
        let acks = flows.iter().map(|flow| (&flow.acks, flow.weight * ACKS_WEIGHT));
        let weighed = flows.iter().map(|flow| (&flow.path, flow.weight)).chain(acks);
        let onward = Onward::new(busy.len(), weighed);
        let at = |rows: &[Vec<f64>], frame: usize| -> Vec<f64> {
            rows.iter().map(|row| row.get(frame).copied().unwrap_or(0.0)).collect()
        };
        let causes: Vec<Vec<Cause>> = (0..frames.count())
            .map(|frame| onward.causes(&at(&busy, frame), &at(&wait, frame)))
            .collect();
        let roots = causes.iter().map(|causes| roots(causes)).collect();
        let stuck = causes.iter().map(|causes| onward.stuck(causes)).collect();
        Channels { onward, busy, wait, causes, stuck, roots }
    }
}

/// The paths and weights by which causes are found: recorded flows, or a sample of what senders
/// draw where none was recorded.
pub(super) fn flows_of(variant: &VariantResult, run: &SeedResult) -> Vec<Flow> {
    let figures = &run.figures;
    let Some(paths) = Paths::new(&variant.prepared, &figures.channels) else {
        return known_flows(variant, run, |_, _, _| None);
    };
    let mut flows = match figures.flows_dropped {
        true => Vec::new(),
        false => known_flows(variant, run, |from, to, sl| paths.path(from, to, sl)),
    };
    let known: BTreeSet<(usize, Rank)> =
        flows.iter().map(|flow| (flow.group, flow.source)).collect();
    for (index, group) in variant.prepared.groups.iter().enumerate() {
        // Of senders that were delivered nothing only draws tell whom they send to: they stand
        // somewhere and hold others back.
        for ((from, to), count) in drawn(group, "paths of a report") {
            if known.contains(&(index, from)) {
                continue;
            }
            let path = paths.path(from, to, group.sl).unwrap_or_default();
            flows.push(Flow::sampled(index, from, to, path, count as f64));
        }
    }
    flows
}

/// The first seed of a variant over time; nothing if it was not run.
pub(super) fn over_time(
    variant: &VariantResult,
    map: &Map<'_>,
    variants: usize,
) -> Option<OverTime> {
    let run = variant.runs.first()?;
    let history = run.history.as_ref()?;
    let frames = Frames::of(run, frames_most(run.figures.channels.len(), variants));
    let flows = flows_of(variant, run);
    let channels = Channels::of(&frames, history, &flows);
    let codes: Vec<Option<u32>> =
        run.figures.channels.iter().map(|channel| map.code(variant, channel)).collect();
    let code = |channel: u32| codes.get(channel as usize).copied().flatten();
    let active: Vec<usize> = (0..codes.len())
        .filter(|channel| codes[*channel].is_some())
        .filter(|c| channels.busy[*c].iter().chain(&channels.wait[*c]).any(|share| *share > 0.0))
        .collect();
    let rows = |rows: &[Vec<f64>]| {
        Packed::shares(active.iter().flat_map(|channel| &rows[*channel]).copied())
    };
    let causes = active
        .iter()
        .flat_map(|channel| channels.causes.iter().map(move |causes| causes[*channel].code(code)));
    let (switches, queue) = queues(variant, run, history, &frames, map);
    let top = queue.iter().copied().fold(0.0, f64::max);
    let measured = frames.measured();
    Some(OverTime {
        dt_us: frames.length().as_microseconds(),
        frames: frames.count(),
        measured: (measured.start, measured.end),
        channels: Packed::whole(active.iter().filter_map(|channel| codes[*channel])),
        load: rows(&channels.busy),
        wait: rows(&channels.wait),
        cause: Packed::whole(causes),
        paths_note: paths_note(&variant.prepared),
        paths: flows.iter().any(|flow| !flow.path.channels.is_empty()),
        switches,
        queue: Packed::scaled(queue.into_iter(), top),
        queue_bytes_max: top,
        flows: flows_data(variant, run, history, (&frames, &channels), flows, (map, variants)),
    })
}

/// Where the paths shown are not those that packets took, or not known.
fn paths_note(prepared: &Prepared) -> Option<&'static str> {
    match &prepared.routed {
        Routed::Rule(..) => Some(
            "Forwarding is by rule: the paths of flows are not known, so no congestion tree is \
             drawn and no flow listed at a link.",
        ),
        Routed::Tables(subnet) if subnet.adaptive.is_some() => Some(
            "Routing is adaptive: the congestion tree and the flows at a link follow the tables' \
             paths; packets may have taken others.",
        ),
        Routed::Tables(_) if prepared.control.chooses_paths() => Some(
            "A mechanism chooses among several paths: the congestion tree and the flows at a link \
             follow the first of them (LID offset 0); packets may have taken others.",
        ),
        Routed::Tables(_) => None,
    }
}

/// Bytes in each switch at the end of each frame: what came in by its cables less what went out,
/// both as the time they were busy times their rate. What is on a cable counts as arrived.
fn queues(
    variant: &VariantResult,
    run: &SeedResult,
    history: &History,
    frames: &Frames,
    map: &Map<'_>,
) -> (Vec<u32>, Vec<f64>) {
    let fabric = &variant.prepared.fabric;
    let mut change: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (channel, busy) in run.figures.channels.iter().zip(&history.busy_ps) {
        let ends = variant.channel_ends(channel).zip(rate(variant, channel));
        let Some(((from, to), rate)) = ends else { continue };
        let bytes_per_ps = rate.0 as f64 / 8e12;
        let switch = |node: NodeId| fabric.node(node).is_switch();
        for (node, sign) in [(from.node, -1.0), (to.node, 1.0)] {
            let Some(place) = map.node(variant, node).filter(|_| switch(node)) else { continue };
            let row = change.entry(place).or_insert_with(|| vec![0.0; frames.count()]);
            for (sum, busy) in row.iter_mut().zip(frames.sums(busy)) {
                *sum += sign * bytes_per_ps * busy as f64;
            }
        }
    }
    let mut values = Vec::new();
    for row in change.values() {
        let mut held = 0.0;
        values.extend(row.iter().map(|step| {
            held += step;
            f64::max(held, 0.0)
        }));
    }
    (change.into_keys().collect(), values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::run::{Quiet, RunOptions, run};
    use std::path::Path;
    use std::sync::atomic::AtomicBool;

    const TREE: &str = "schema = 1\nname = \"roots\"\n\
        fabric = { build = \"FABRIC\" }\nsubnet = { engine = \"fat-tree\" }\n\
        sim = { preset = \"qdr\" }\nrun = { duration = \"1 ms\" }\n\
        [[traffic]]\nname = \"hot\"\nclass = \"hot\"\n\
        pattern = { kind = \"incast\", to = 0 }\nsenders = { every = 3, offset = 1 }\n\
        load = 1.0\nsize = \"64 KiB\"\n\
        [[traffic]]\nname = \"others\"\nclass = \"victim\"\n\
        pattern = { kind = \"random-permutation\", seed = 1 }\n\
        senders = { every = 3, offset = 2 }\nload = 0.3\nsize = \"4 KiB\"\n";

    /// Among them are channels full of acknowledgements, which go where no data of theirs goes, and
    /// in the large tree hot senders that never get anything through.
    #[test]
    fn whatever_is_held_back_on_three_levels_has_a_root() {
        for build in ["xgft:6,6,6;1,3,3", "fat-tree:3456"] {
            all_have_roots(build);
        }
    }

    fn all_have_roots(build: &str) {
        let text = TREE.replace("FABRIC", build);
        let experiment = Experiment::parse(&text, Path::new("roots.toml")).unwrap();
        let options = RunOptions::new(1, "test");
        let result = run(&experiment, &options, &Quiet, &AtomicBool::new(false)).unwrap();
        let (variant, run) = (&result.variants[0], &result.variants[0].runs[0]);
        let frames = Frames::of(run, frames_most(run.figures.channels.len(), 1));
        let flows = flows_of(variant, run);
        let channels = Channels::of(&frames, run.history.as_ref().unwrap(), &flows);
        let (mut held, mut without) = (0, 0);
        for frame in frames.measured() {
            let roots = channels.causes[frame].iter().zip(&channels.roots[frame]);
            for (_, root) in roots.filter(|(cause, _)| **cause != Cause::Free) {
                held += 1;
                without += usize::from(root.is_none());
            }
        }
        // What waits a tenth of a frame by chance has none.
        assert!(held > 1000 && 1000 * without <= held, "{build}: {without} of {held}");
        let suffering = variant.suffering().unwrap();
        let rooted: usize = suffering.roots.iter().map(|(_, count)| count).sum();
        assert_eq!(rooted, suffering.suffer);
    }
}
