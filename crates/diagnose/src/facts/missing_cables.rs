//! What it is: switches of a tree or torus with fewer cables to other switches than their like.
//!
//! In a tree, those of a level are alike; a switch with fewer uplinks counts only if more traffic
//! from below shares each of them. In a torus all switches are alike. Of other fabrics nobody can
//! say what they lack.

use super::Entry;
use crate::words::count;
use crate::{Finding, Severity, Site};
use clearlane_fabric::structure::{self, Tree};
use clearlane_fabric::{Fabric, NodeId, NodeKind};
use std::collections::BTreeMap;

/// `missing-cables`.
pub(super) const ENTRY: Entry = Entry {
    name: "missing-cables",
    summary: "switches with fewer cables to other switches than those like them",
    find,
};

/// A switch that lacks cables.
struct Lack {
    switch: NodeId,
    has: usize,
    /// What most like it have.
    most: usize,
    /// How many have that, of how many.
    of: (usize, usize),
    /// Share of all paths that leave or reach hosts below it.
    paths: f64,
}

fn find(site: &Site) -> Vec<Finding> {
    let fabric = &site.fabric;
    let is_torus = structure::grid(fabric).is_ok_and(|grid| grid.wraps.iter().all(|wraps| *wraps));
    let (lacks, what) = match structure::tree(fabric) {
        Ok(tree) if tree.height() > 1 => (of_tree(site, &tree), "uplinks"),
        _ if is_torus => (of_torus(fabric), "cables to other switches"),
        _ => return Vec::new(),
    };
    let finding = |lack: &Lack| {
        let missing = lack.most - lack.has;
        let (same, all) = lack.of;
        Finding {
            fact: ENTRY.name,
            severity: Severity::Shared,
            share: lack.paths * missing as f64 / lack.most as f64,
            text: format!(
                "{} missing: {} has {} {what} where {same} of {all} switches like it have {}",
                count(missing as u64, "cable is", "cables are"),
                site.node(lack.switch),
                lack.has,
                lack.most
            ) + &towards(site, lack.switch),
            more: Vec::new(),
            remedy: "plug the cable in, or look whether its ports are down".into(),
        }
    };
    let more = ["more switch lacks cables", "more switches lack cables"];
    Finding::together(lacks.iter().map(finding).collect(), more).into_iter().collect()
}

fn trunks(fabric: &Fabric, switch: NodeId) -> impl Iterator<Item = NodeId> + '_ {
    let peers = fabric.neighbours(switch).map(|(_, _, peer)| peer.node);
    peers.filter(move |peer| *peer != switch && fabric.node(*peer).is_switch())
}

/// What most of them have, and how many do; nothing unless more than half of three or more do.
fn mode(numbers: impl Iterator<Item = usize>) -> Option<(usize, usize, usize)> {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    numbers.for_each(|number| *counts.entry(number).or_default() += 1);
    let all: usize = counts.values().sum();
    let (most, same) = counts.into_iter().max_by_key(|(_, same)| *same)?;
    (all >= 3 && 2 * same > all).then_some((most, same, all))
}

fn of_tree(site: &Site, tree: &Tree) -> Vec<Lack> {
    let fabric = &site.fabric;
    let hosts = site.hosts().len();
    let ups = |switch: NodeId, level: u32| {
        trunks(fabric, switch).filter(|peer| tree.level(*peer) == Some(level + 1)).count()
    };
    let mut lacks = Vec::new();
    for level in 0..tree.height() - 1 {
        let switches = tree.switches(level);
        let Some((most, same, all)) = mode(switches.iter().map(|s| ups(*s, level))) else {
            continue;
        };
        let downs = |switch: NodeId| fabric.neighbours(switch).count() - ups(switch, level);
        let whole = switches.iter().filter(|switch| ups(**switch, level) == most);
        let Some((usual, ..)) = mode(whole.map(|switch| downs(*switch))).or(Some((0, 0, 0))) else {
            continue;
        };
        for switch in switches {
            let has = ups(*switch, level);
            // More of those below share an uplink than usual.
            if has < most && downs(*switch) * most > usual * has {
                let below = hosts_below(fabric, tree, *switch) as f64;
                let all_hosts = hosts as f64;
                let pairs = (all_hosts * (all_hosts - 1.0)).max(1.0);
                let paths = 2.0 * below * (all_hosts - below).max(0.0) / pairs;
                lacks.push(Lack { switch: *switch, has, most, of: (same, all), paths });
            }
        }
    }
    lacks
}

/// Hosts that a switch leads down to.
fn hosts_below(fabric: &Fabric, tree: &Tree, switch: NodeId) -> usize {
    let mut seen = vec![false; fabric.nodes().len()];
    let (mut hosts, mut reached) = (0, vec![switch]);
    while let Some(node) = reached.pop() {
        for (_, _, peer) in fabric.neighbours(node) {
            let below = tree.level(peer.node) < tree.level(node);
            if below && !std::mem::replace(&mut seen[peer.node.index()], true) {
                match fabric.node(peer.node).is_switch() {
                    true => reached.push(peer.node),
                    false => hosts += 1,
                }
            }
        }
    }
    hosts
}

fn of_torus(fabric: &Fabric) -> Vec<Lack> {
    let switches: Vec<NodeId> = fabric.ids(NodeKind::Switch).collect();
    let number = |switch: NodeId| trunks(fabric, switch).count();
    let Some((most, same, all)) = mode(switches.iter().map(|switch| number(*switch))) else {
        return Vec::new();
    };
    let lacking = switches.iter().filter(|switch| number(**switch) < most);
    let lack = |switch: &NodeId| Lack {
        switch: *switch,
        has: number(*switch),
        most,
        of: (same, all),
        paths: 1.0 / all as f64,
    };
    lacking.map(lack).collect()
}

/// Which switch a cable leads to from most others like it, and not from this one.
fn towards(site: &Site, switch: NodeId) -> String {
    let fabric = &site.fabric;
    let levels = structure::levels(fabric);
    let level = |node: NodeId| levels.get(node.index()).copied().flatten();
    let alike: Vec<NodeId> =
        fabric.ids(NodeKind::Switch).filter(|other| level(*other) == level(switch)).collect();
    let above = fabric.ids(NodeKind::Switch).filter(|up| level(*up) > level(switch));
    let number = |from: NodeId, to: NodeId| trunks(fabric, from).filter(|peer| *peer == to).count();
    let lacking: Vec<String> = above
        .filter(|up| {
            let usual = mode(alike.iter().map(|other| number(*other, *up)));
            usual.is_some_and(|(most, ..)| number(switch, *up) < most)
        })
        .map(|up| site.node(up))
        .take(3)
        .collect();
    match lacking.as_slice() {
        [] => String::new(),
        names => format!("; look between it and {}", names.join(", ")),
    }
}
