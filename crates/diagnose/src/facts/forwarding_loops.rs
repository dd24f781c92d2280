//! What it is: tables that send packets round in a circle.

use super::Entry;
use super::dead_entries::{lost, to_hosts};
use crate::{Finding, Site};
use clearlane_fabric::NodeId;
use clearlane_subnet::check::{FaultKind, LostAt};
use std::collections::VecDeque;

/// `forwarding-loops`.
pub(super) const ENTRY: Entry = Entry {
    name: "forwarding-loops",
    summary: "tables that send packets round in a circle",
    find,
};

fn find(site: &Site) -> Vec<Finding> {
    let circle = |place: &LostAt| {
        let first = place.circle.iter().take(1);
        let names: Vec<String> =
            place.circle.iter().chain(first).map(|switch| site.node(*switch)).collect();
        names.join(" → ")
    };
    let found = lost(site, ENTRY.name, &[FaultKind::Loop], |place, paths| {
        let wrong = astray(site, place).map_or(String::new(), |switch| {
            format!("; {} sends them away from it", site.node(switch))
        });
        let hosts = to_hosts(site, place);
        let circle = circle(place);
        format!("packets to {hosts} go round in a loop, {circle}{wrong}; {paths} never arrive")
    });
    let remedy =
        "load tables without the loop, or restart the subnet manager so that it routes anew";
    found.into_iter().map(|finding| Finding { remedy: remedy.into(), ..finding }).collect()
}

/// The switch of a loop that sends packets further from their host, if it is one alone.
fn astray(site: &Site, place: &LostAt) -> Option<NodeId> {
    let fabric = &site.fabric;
    let mut hops = vec![u32::MAX; fabric.nodes().len()];
    let leaf = fabric.peer(place.host)?.node;
    let mut reached = VecDeque::from([leaf]);
    hops[leaf.index()] = 0;
    while let Some(node) = reached.pop_front() {
        for (_, _, peer) in fabric.neighbours(node) {
            if fabric.node(peer.node).is_switch() && hops[peer.node.index()] == u32::MAX {
                hops[peer.node.index()] = hops[node.index()] + 1;
                reached.push_back(peer.node);
            }
        }
    }
    let next = place.circle.iter().cycle().skip(1);
    let mut away = place
        .circle
        .iter()
        .zip(next)
        .filter(|(from, to)| hops[to.index()] > hops[from.index()])
        .map(|(from, _)| *from);
    let first = away.next()?;
    away.next().is_none().then_some(first)
}
