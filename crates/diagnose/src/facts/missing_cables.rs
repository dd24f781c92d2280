//! What it is: switches with fewer cables to other switches than their like.
//!
//! In a tree, those of a level are alike; a switch with fewer uplinks counts only if more traffic
//! from below shares each of them. In a torus all switches are alike. In other fabrics pairs of
//! switches are: if most that are joined have several cables, one with fewer lacks some.

use super::Entry;
use crate::words::count;
use crate::{Finding, Severity, Site};
use clearlane_fabric::structure::{self, Tree};
use clearlane_fabric::{Endpoint, Fabric, NodeId, NodeKind};
use clearlane_ib::PortNumber;
use std::collections::BTreeMap;

/// `missing-cables`.
pub(super) const ENTRY: Entry = Entry {
    name: "missing-cables",
    summary: "switches with fewer cables to other switches than those like them",
    find,
};

/// Cables that are missing at one place.
struct Lack {
    /// How many.
    missing: usize,
    /// Where, and how many there are and should be, as a clause.
    text: String,
    /// The share of all traffic that is slower times by how much.
    share: f64,
}

fn find(site: &Site) -> Vec<Finding> {
    let fabric = &site.fabric;
    let is_torus = structure::grid(fabric).is_ok_and(|grid| grid.wraps.iter().all(|wraps| *wraps));
    // In a torus both ends of a cable miss it.
    let (mut lacks, ends) = match structure::tree(fabric) {
        Ok(tree) if tree.height() > 1 => (of_tree(site, &tree), 1),
        _ if is_torus => (of_torus(site), 2),
        _ => (of_bundles(site), 1),
    };
    lacks.sort_by(|a, b| b.share.total_cmp(&a.share));
    let Some((worst, others)) = lacks.split_first() else { return Vec::new() };
    let missing = lacks.iter().map(|lack| lack.missing).sum::<usize>().div_ceil(ends);
    let are = count(missing as u64, "cable is", "cables are");
    let most = if others.is_empty() { "" } else { ", the worst here" };
    vec![Finding {
        fact: ENTRY.name,
        severity: Severity::Shared,
        share: lacks.iter().map(|lack| lack.share).sum(),
        text: format!("{are} missing between switches{most}: {}", worst.text),
        more: others.iter().map(|lack| lack.text.clone()).collect(),
        remedy: "plug the cable in, or look whether its ports are down".into(),
    }]
}

fn trunks(fabric: &Fabric, switch: NodeId) -> impl Iterator<Item = NodeId> + '_ {
    let peers = fabric.neighbours(switch).map(|(_, _, peer)| peer.node);
    peers.filter(move |peer| *peer != switch && fabric.node(*peer).is_switch())
}

/// What most of them have, and how many do; nothing unless more than half of three or more do.
fn mode<T: Ord>(values: impl Iterator<Item = T>) -> Option<(T, usize, usize)> {
    let mut counts: BTreeMap<T, usize> = BTreeMap::new();
    values.for_each(|value| *counts.entry(value).or_default() += 1);
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
                let missing = most - has;
                let text = format!(
                    "{} has {has} uplinks where {same} of {all} switches like it have {most}{}",
                    site.node(*switch),
                    towards(site, *switch)
                );
                lacks.push(Lack { missing, text, share: paths * missing as f64 / most as f64 });
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

fn of_torus(site: &Site) -> Vec<Lack> {
    let fabric = &site.fabric;
    let switches: Vec<NodeId> = fabric.ids(NodeKind::Switch).collect();
    let number = |switch: NodeId| trunks(fabric, switch).count();
    let Some((most, same, all)) = mode(switches.iter().map(|switch| number(*switch))) else {
        return Vec::new();
    };
    let lacking = switches.iter().filter(|switch| number(**switch) < most);
    let lack = |switch: &NodeId| {
        let has = number(*switch);
        Lack {
            missing: most - has,
            text: format!(
                "{} has {has} cables to other switches where {same} of {all} have {most}",
                site.node(*switch)
            ),
            share: (most - has) as f64 / most as f64 / all as f64,
        }
    };
    lacking.map(lack).collect()
}

/// Pairs of switches with fewer cables than most pairs that are joined.
fn of_bundles(site: &Site) -> Vec<Lack> {
    let fabric = &site.fabric;
    let mut bundles: BTreeMap<(NodeId, NodeId), usize> = BTreeMap::new();
    for switch in fabric.ids(NodeKind::Switch) {
        for peer in trunks(fabric, switch).filter(|peer| *peer > switch) {
            *bundles.entry((switch, peer)).or_default() += 1;
        }
    }
    let Some((most, same, all)) = mode(bundles.values().copied()) else { return Vec::new() };
    // One in ten may lack cables; where more do, they were made so.
    let lacking: Vec<_> = bundles.iter().filter(|(_, cables)| **cables < most).collect();
    if 10 * lacking.len() > all || same + lacking.len() < all {
        return Vec::new();
    }
    let lack = |((a, b), has): (&(NodeId, NodeId), &usize)| Lack {
        missing: most - has,
        text: format!(
            "{} and {} are joined by {} where {same} of {all} pairs of switches have {most}",
            site.node(*a),
            site.node(*b),
            count(*has as u64, "cable", "cables")
        ),
        share: (most - has) as f64 / most as f64 / all as f64,
    };
    lacking.into_iter().map(lack).collect()
}

/// Where most others like a switch have a cable to a switch above, and this one has none there: the
/// empty port, or the switch above.
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
        .map(|up| match usual_port(fabric, &alike, up) {
            Some(port) if fabric.peer(Endpoint { node: switch, port }).is_none() => {
                let end = Endpoint { node: switch, port };
                format!("{} is empty, where others have {}", site.port(end), site.node(up))
            }
            _ => format!("look between it and {}", site.node(up)),
        })
        .take(3)
        .collect();
    match lacking.as_slice() {
        [] => String::new(),
        places => format!("; {}", places.join("; ")),
    }
}

/// The port by which most of these switches lead to another.
fn usual_port(fabric: &Fabric, alike: &[NodeId], up: NodeId) -> Option<PortNumber> {
    let ports = alike.iter().flat_map(|switch| {
        let to_it = fabric.neighbours(*switch).filter(|(_, _, peer)| peer.node == up);
        to_it.map(|(port, ..)| port)
    });
    mode(ports).map(|(port, ..)| port)
}
