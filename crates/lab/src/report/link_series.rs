//! What links between switches carry over time: figures 4 and 5 of the pacing paper (Shibamura
//! 2014) have a line a link; here five lines stand for all of them.

use super::data::Series;
use super::map::rate;
use crate::figures::History;
use crate::result::{SeedResult, VariantResult};

/// Lines, and the place among the links that each is of: 0 the busiest at the time, 1 the idlest.
const LINES: &[(&str, f64)] = &[
    ("busiest link", 0.0),
    ("busier quarter", 0.25),
    ("median link", 0.5),
    ("idler quarter", 0.75),
    ("idlest link", 1.0),
];

/// Numbers that are sorted for one variant at most: of larger fabrics nothing is drawn.
const NUMBERS_MAX: usize = 20_000_000;

/// Throughput on the wire of links between switches that carry anything in the run, Gb/s by slice:
/// in each slice of its own the busiest link, the one that a quarter are busier than, and so on.
pub(super) fn link_series(
    variant: &VariantResult,
    run: &SeedResult,
    history: &History,
    slices: usize,
) -> Vec<Series> {
    let fabric = &variant.prepared.fabric;
    let channels = run.figures.channels.iter().zip(&history.busy_ps);
    let between_switches = channels.filter_map(|(channel, busy)| {
        let (from, to) = variant.channel_ends(channel)?;
        let switches = [from, to].into_iter().all(|end| fabric.node(end.node).is_switch());
        let used = switches && busy.iter().any(|busy| *busy > 0);
        used.then(|| Some((rate(variant, channel)?.as_gigabits(), busy)))?
    });
    let links: Vec<(f64, &Vec<u64>)> = between_switches.collect();
    if links.is_empty() || links.len().saturating_mul(slices) > NUMBERS_MAX {
        return Vec::new();
    }
    let mut lines: Vec<Series> =
        LINES.iter().map(|(name, _)| Series::of_links(name, slices)).collect();
    let mut all = Vec::with_capacity(links.len());
    for slice in 0..slices {
        let length = run.figures.slices.length_of(slice).0;
        all.clear();
        all.extend(links.iter().map(|(gbps, busy)| {
            let busy = busy.get(slice).copied().unwrap_or(0);
            // What is leaving when the run ends is booked to its own end.
            let share = if length > 0 { (busy as f64 / length as f64).min(1.0) } else { 0.0 };
            gbps * share
        }));
        all.sort_by(|a, b| b.total_cmp(a));
        for (line, (_, place)) in lines.iter_mut().zip(LINES) {
            let at = (place * (all.len() - 1) as f64).round() as usize;
            line.push(all[at]);
        }
    }
    lines
}
