//! What it is: hosts that no subnet manager has given a LID.

use super::Entry;
use crate::words::count;
use crate::{Finding, Severity, Site};
use clearlane_fabric::Endpoint;

/// `without-lid`.
pub(super) const ENTRY: Entry =
    Entry { name: "without-lid", summary: "hosts without a LID in the site's tables", find };

fn find(site: &Site) -> Vec<Finding> {
    let Some(tables) = &site.tables else { return Vec::new() };
    let fabric = &site.fabric;
    let hosts = site.hosts();
    let lacks = |end: Endpoint| tables.subnet.lids.base(end).is_none();
    let ports = hosts.iter().flat_map(|host| {
        let cabled = fabric.neighbours(*host);
        let at_switch = cabled.filter(|(_, _, peer)| fabric.node(peer.node).is_switch());
        at_switch.map(|(port, _, _)| Endpoint { node: *host, port })
    });
    let (without, with): (Vec<Endpoint>, Vec<Endpoint>) = ports.partition(|end| lacks(*end));
    let Some(first) = without.first() else { return Vec::new() };
    let all = (without.len() + with.len()) as f64;
    let left = with.len() as f64;
    vec![Finding {
        fact: ENTRY.name,
        severity: Severity::Lost,
        share: 1.0 - left * (left - 1.0).max(0.0) / (all * (all - 1.0)).max(1.0),
        text: format!(
            "{} no LID, among them {}: nobody can send to it",
            count(without.len() as u64, "host port has", "host ports have"),
            site.port(*first)
        ),
        more: Vec::new(),
        remedy: "look whether the port is down, or the file was taken while the subnet came up"
            .into(),
    }]
}
