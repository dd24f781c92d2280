//! What it is: tables that put much more on a link than tables of an engine would.
//!
//! Measured in paths between hosts, all alike: what every host sends to every other. A fault is
//! said only where an engine that is free of deadlock in the lanes there are does clearly better.

use super::Entry;
use crate::words::grouped;
use crate::{Finding, Severity, Site, Tables};
use clearlane_fabric::{Endpoint, NodeId};
use clearlane_subnet::Subnet;
use clearlane_subnet::check::{Usage, credit_loop, usage};
use clearlane_subnet::engines::{RouteOptions, route};
use std::collections::BTreeMap;

/// `imbalance`.
pub(super) const ENTRY: Entry = Entry {
    name: "imbalance",
    summary: "tables that put much more on a link than an engine's would",
    find,
};

/// Engines compared with: those that need no more than tables.
const ENGINES: &[&str] = &["fat-tree", "min-hop", "up-down"];
/// From how many times an engine's busiest link on it is a fault.
const TIMES_MIN: f64 = 2.0;
/// From which share of all paths beyond an engine's busiest link on it is a fault.
const EXCESS_MIN: f64 = 0.01;

fn find(site: &Site) -> Vec<Finding> {
    let Some(tables) = &site.tables else { return Vec::new() };
    let Some((busiest, most)) = busiest(site, &tables.usage) else { return Vec::new() };
    let Some((engine, least)) = reference(site, tables) else { return Vec::new() };
    let beyond: Vec<(Endpoint, u64)> = trunks(site, &tables.usage)
        .filter(|(_, paths)| *paths > least)
        .map(|(output, paths)| (output, paths - least))
        .collect();
    let excess: u64 = beyond.iter().map(|(_, paths)| paths).sum();
    let share = excess as f64 / tables.usage.paths.max(1) as f64;
    if (most as f64) < TIMES_MIN * least as f64 || share < EXCESS_MIN {
        return Vec::new();
    }
    let switch = crowded(site, &beyond);
    vec![Finding {
        fact: ENTRY.name,
        severity: Severity::Shared,
        share,
        text: format!(
            "the tables crowd {}: {} of {} paths cross {}; with {engine} tables no cable between \
             switches has more than {}",
            site.node(switch),
            grouped(most),
            grouped(tables.usage.paths),
            site.port(busiest),
            grouped(least),
        ),
        more: Vec::new(),
        remedy: format!("route anew, for example with engine {engine}"),
    }]
}

/// Outputs that lead to a switch, with their paths.
fn trunks<'a>(site: &'a Site, usage: &'a Usage) -> impl Iterator<Item = (Endpoint, u64)> + 'a {
    let fabric = &site.fabric;
    usage.outputs().filter(|(output, _)| {
        fabric.peer(*output).is_some_and(|peer| fabric.node(peer.node).is_switch())
    })
}

fn busiest(site: &Site, usage: &Usage) -> Option<(Endpoint, u64)> {
    let mut found: Option<(Endpoint, u64)> = None;
    for (output, paths) in trunks(site, usage) {
        if found.is_none_or(|(_, most)| paths > most) {
            found = Some((output, paths));
        }
    }
    found
}

/// The switch with most of what is beyond, at either end of its cables; of equals one that no host
/// is plugged into, then the first.
fn crowded(site: &Site, beyond: &[(Endpoint, u64)]) -> NodeId {
    let fabric = &site.fabric;
    let mut by_switch: BTreeMap<NodeId, u64> = BTreeMap::new();
    for (output, paths) in beyond {
        let peer = fabric.peer(*output).map(|peer| peer.node);
        for node in [Some(output.node), peer].into_iter().flatten() {
            *by_switch.entry(node).or_default() += paths;
        }
    }
    let has_host = |switch: NodeId| {
        fabric.neighbours(switch).any(|(_, _, peer)| !fabric.node(peer.node).is_switch())
    };
    let rank = |(switch, paths): &(NodeId, u64)| {
        (*paths, !has_host(*switch), std::cmp::Reverse(*switch))
    };
    by_switch.into_iter().max_by_key(rank).map_or(NodeId(0), |(switch, _)| switch)
}

/// The engine whose busiest link has the fewest paths, and how many.
fn reference(site: &Site, tables: &Tables) -> Option<(&'static str, u64)> {
    let lanes = tables.subnet.sl_to_vl.lanes();
    let lids = Some(tables.subnet.lids.clone());
    let options = RouteOptions { lanes, lids, ..RouteOptions::default() };
    let routed = |engine: &'static str| -> Option<(&'static str, u64)> {
        let subnet: Subnet = route(engine, &site.fabric, &options).ok()?;
        credit_loop(&site.fabric, &subnet).is_sane().then_some(())?;
        let usage = usage(&site.fabric, &subnet);
        let (_, most) = (usage.lost == 0).then(|| busiest(site, &usage))??;
        Some((engine, most))
    };
    let mut best: Option<(&'static str, u64)> = None;
    for (engine, most) in ENGINES.iter().filter_map(|engine| routed(engine)) {
        if best.is_none_or(|(_, least)| most < least) {
            best = Some((engine, most));
        }
    }
    best
}
