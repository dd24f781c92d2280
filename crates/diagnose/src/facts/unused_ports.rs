//! What it is: ports of switches that lead nowhere, in one line.

use super::Entry;
use crate::words::count;
use crate::{Finding, Severity, Site};
use clearlane_fabric::formats::OddityKind;

/// `unused-ports`.
pub(super) const ENTRY: Entry =
    Entry { name: "unused-ports", summary: "listed ports without a cable", find };

fn find(site: &Site) -> Vec<Finding> {
    super::file_noise::of_kind(site, |kind| kind == OddityKind::NoPeer)
        .map(|listed| Finding {
            fact: ENTRY.name,
            severity: Severity::Note,
            share: 0.0,
            text: format!(
                "{} without a cable",
                count(listed.len() as u64, "listed port or node is", "listed ports or nodes are")
            ),
            more: listed,
            remedy: String::new(),
        })
        .into_iter()
        .collect()
}
