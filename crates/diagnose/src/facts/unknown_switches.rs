//! What it is: switches that the tables are of and the cables do not have: they are down, or were
//! exchanged after the tables were dumped.

use super::Entry;
use crate::{Finding, Severity, Site};

/// `unknown-switches`.
pub(super) const ENTRY: Entry = Entry {
    name: "unknown-switches",
    summary: "switches that have tables and no cables",
    find,
};

fn find(site: &Site) -> Vec<Finding> {
    let Some(tables) = &site.tables else { return Vec::new() };
    let unknown = &tables.subnet.unknown_switches;
    let Some((first, others)) = unknown.split_first() else { return Vec::new() };
    let all = tables.subnet.tables.switches().len() + unknown.len();
    let switches = match unknown.len() {
        1 => "a switch has tables and is not among the cables".to_owned(),
        many => format!("{many} switches have tables and are not among the cables"),
    };
    vec![Finding {
        fact: ENTRY.name,
        severity: Severity::Shared,
        share: unknown.len() as f64 / all as f64,
        text: format!("{switches}: {first}"),
        more: others.iter().map(ToString::to_string).collect(),
        remedy: "look whether the switch is up; if so, take fabric and tables at the same time"
            .into(),
    }]
}
