//! What it is: switches all of whose cables are slower than those of switches like them: the same
//! level, the same kind of cable. A few are a fault; many are another generation.

use super::Entry;
use crate::words::count;
use crate::{Finding, Severity, Site};
use clearlane_fabric::{NodeId, NodeKind, structure};
use clearlane_ib::{LinkRate, LinkSpeed, LinkWidth};
use std::collections::BTreeMap;

/// `slow-switches`.
pub(super) const ENTRY: Entry = Entry {
    name: "slow-switches",
    summary: "switches all of whose cables run slower than those of switches like them",
    find,
};

/// Above this share of the switches like them, slow ones are another generation and no fault.
const FAULTS_MAX: f64 = 0.1;

type Rate = (LinkWidth, LinkSpeed);

/// A switch, the fastest of its cables of a kind, and how many it has.
type Fastest = (NodeId, Rate, usize);

fn bits((width, speed): Rate) -> u64 {
    LinkRate::of(width, speed).bits_per_second().0
}

/// The fastest of a switch's cables to other switches, or to hosts, and how many it has.
fn fastest(site: &Site, switch: NodeId, trunks: bool) -> Option<(Rate, usize)> {
    let fabric = &site.fabric;
    let rates = fabric
        .neighbours(switch)
        .filter(|(_, _, peer)| peer.node != switch && fabric.node(peer.node).is_switch() == trunks)
        .map(|(_, link, _)| (fabric.link(link).width, fabric.link(link).speed));
    let rates: Vec<Rate> = rates.collect();
    Some((rates.iter().copied().max_by_key(|rate| bits(*rate))?, rates.len()))
}

fn find(site: &Site) -> Vec<Finding> {
    let levels = structure::levels(&site.fabric);
    let mut alike: BTreeMap<(Option<u32>, bool), Vec<Fastest>> = BTreeMap::new();
    for switch in site.fabric.ids(NodeKind::Switch) {
        for trunks in [true, false] {
            if let Some((rate, cables)) = fastest(site, switch, trunks) {
                let of = alike.entry((levels[switch.index()], trunks)).or_default();
                of.push((switch, rate, cables));
            }
        }
    }
    let findings = alike.iter().flat_map(|((_, trunks), all)| slow(site, all, *trunks)).collect();
    let more = ["more switch is slow", "more switches are slow"];
    Finding::together(findings, more).into_iter().collect()
}

fn slow(site: &Site, all: &[Fastest], trunks: bool) -> Vec<Finding> {
    let mut counts: BTreeMap<Rate, usize> = BTreeMap::new();
    all.iter().for_each(|(_, rate, _)| *counts.entry(*rate).or_default() += 1);
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    let Some((usual, _)) = most.filter(|(_, count)| all.len() >= 3 && 2 * count > all.len()) else {
        return Vec::new();
    };
    let slow: Vec<_> = all.iter().filter(|(_, rate, _)| bits(*rate) < bits(usual)).collect();
    if slow.len() as f64 > (FAULTS_MAX * all.len() as f64).max(1.0) {
        return Vec::new();
    }
    let (what, severity) = match trunks {
        true => (["cable to another switch", "cables to other switches"], Severity::Shared),
        false => (["cable to a host", "cables to hosts"], Severity::Own),
    };
    let finding = |(switch, rate, cables): &&Fastest| Finding {
        fact: ENTRY.name,
        severity,
        share: (1.0 - bits(*rate) as f64 / bits(usual) as f64) / all.len() as f64,
        text: format!(
            "all of {} is slow: its {} run at {} {} at most, those of most like it at {} {}",
            site.node(*switch),
            count(*cables as u64, what[0], what[1]),
            rate.0,
            rate.1,
            usual.0,
            usual.1
        ),
        more: Vec::new(),
        remedy: "look at the switch's own settings and firmware: all its ports are slow".into(),
    };
    slow.iter().map(finding).collect()
}
