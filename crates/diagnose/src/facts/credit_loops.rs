//! What it is: channels that can wait for each other in a circle, a possible deadlock.
//!
//! Source: Dally and Seitz, "Deadlock-Free Message Routing in Multiprocessor Interconnection
//! Networks" (1987).

use super::Entry;
use crate::{Finding, Severity, Site};

/// `credit-loops`.
pub(super) const ENTRY: Entry =
    Entry { name: "credit-loops", summary: "channels that can wait for each other for ever", find };

fn find(site: &Site) -> Vec<Finding> {
    let Some(tables) = &site.tables else { return Vec::new() };
    let report = &tables.credit_loop;
    let Some(cycle) = &report.cycle else { return Vec::new() };
    let switches: Vec<String> =
        cycle.channels.iter().take(4).map(|waiting| site.node(waiting.switch)).collect();
    let dots = if cycle.channels.len() > switches.len() { " → …" } else { "" };
    vec![Finding {
        fact: ENTRY.name,
        severity: Severity::Deadlock,
        share: report.entangled as f64 / report.channels.max(1) as f64,
        text: format!(
            "the tables have a credit loop of {} channels and can deadlock: {}{dots}",
            cycle.channels.len(),
            switches.join(" → ")
        ),
        more: cycle.lines.clone(),
        remedy: format!(
            "clearlane route {} --engine up-down -o tables; up-down has no credit loop on any \
             fabric",
            site.name
        ),
    }]
}
