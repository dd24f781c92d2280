//! What it is: what is odd in the file and says nothing of cables.

use super::Entry;
use crate::words::count;
use crate::{Finding, Severity, Site};
use clearlane_fabric::formats::OddityKind;

/// `file-noise`.
pub(super) const ENTRY: Entry =
    Entry { name: "file-noise", summary: "what else is odd in the file", find };

fn find(site: &Site) -> Vec<Finding> {
    // Slow cables and empty ports have facts of their own.
    of_kind(site, |kind| !matches!(kind, OddityKind::NoPeer | OddityKind::Slow))
        .map(|listed| Finding {
            fact: ENTRY.name,
            severity: Severity::Note,
            share: 0.0,
            text: format!(
                "the file has {}; `clearlane fabric show` lists them",
                count(listed.len() as u64, "further oddity", "further oddities")
            ),
            more: listed,
            remedy: String::new(),
        })
        .into_iter()
        .collect()
}

/// Oddities of some kinds, a line each; nothing if there are none.
pub(super) fn of_kind(site: &Site, is: impl Fn(OddityKind) -> bool) -> Option<Vec<String>> {
    let odd = site.oddities.iter().filter(|oddity| is(oddity.kind));
    let listed: Vec<String> = odd.map(ToString::to_string).collect();
    (!listed.is_empty()).then_some(listed)
}
