//! What it is: hosts that no cables lead to each other.

use super::Entry;
use crate::{Finding, Severity, Site};
use clearlane_fabric::NodeId;

/// `parts`.
pub(super) const ENTRY: Entry =
    Entry { name: "parts", summary: "hosts that no cables join to the others", find };

fn find(site: &Site) -> Vec<Finding> {
    let mut parts = parts(site);
    parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
    let Some((largest, others)) = parts.split_first().filter(|(_, others)| !others.is_empty())
    else {
        return Vec::new();
    };
    let all: usize = parts.iter().map(Vec::len).sum();
    let within: usize = parts.iter().map(|part| part.len() * part.len().saturating_sub(1)).sum();
    let pairs = (all * all.saturating_sub(1)).max(1);
    let apart: usize = others.iter().map(Vec::len).sum();
    let hosts = |count: usize| if count == 1 { "host" } else { "hosts" };
    let first = others.first().and_then(|part| part.first());
    let among = if apart == 1 { "" } else { ", among them" };
    let first = first.map_or(String::new(), |host| format!("{among} {}", site.node(*host)));
    vec![Finding {
        fact: ENTRY.name,
        severity: Severity::Lost,
        share: 1.0 - within as f64 / pairs as f64,
        text: format!(
            "no cables join {apart} {}{first} to the other {} {}",
            hosts(apart),
            largest.len(),
            hosts(largest.len())
        ),
        more: Vec::new(),
        remedy: "look for a switch or cable that is down, or that the file leaves out".into(),
    }]
}

/// Hosts by what cables join.
fn parts(site: &Site) -> Vec<Vec<NodeId>> {
    let fabric = &site.fabric;
    let mut seen = vec![false; fabric.nodes().len()];
    let mut parts = Vec::new();
    for host in site.hosts() {
        if std::mem::replace(&mut seen[host.index()], true) {
            continue;
        }
        let (mut part, mut reached) = (Vec::new(), vec![host]);
        while let Some(node) = reached.pop() {
            if !fabric.node(node).is_switch() {
                part.push(node);
            }
            for (_, _, peer) in fabric.neighbours(node) {
                if !std::mem::replace(&mut seen[peer.node.index()], true) {
                    reached.push(peer.node);
                }
            }
        }
        part.sort_unstable();
        parts.push(part);
    }
    parts
}
