//! What it is: hosts and switches of the file that no cable is plugged into.

use super::Entry;
use crate::words::count;
use crate::{Finding, Severity, Site};
use clearlane_fabric::NodeId;

/// `unplugged`.
pub(super) const ENTRY: Entry =
    Entry { name: "unplugged", summary: "hosts and switches without any cable", find };

fn find(site: &Site) -> Vec<Finding> {
    let all = site.fabric.nodes().len();
    let nodes = (0..all as u32).map(NodeId);
    let mut bare = nodes.filter(|node| site.fabric.neighbours(*node).next().is_none());
    let Some(first) = bare.next() else { return Vec::new() };
    let others: Vec<String> = bare.map(|node| site.node(node)).collect();
    let number = 1 + others.len();
    vec![Finding {
        fact: ENTRY.name,
        severity: Severity::Own,
        share: number as f64 / all as f64,
        text: format!(
            "{} no cable: {}",
            count(number as u64, "node has", "nodes have"),
            site.node(first)
        ),
        more: others,
        remedy: "plug the cable in, or look whether its ports are down".into(),
    }]
}
