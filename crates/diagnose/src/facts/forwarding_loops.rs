//! What it is: tables that send packets round in a circle.

use super::Entry;
use crate::{Finding, Severity, Site};
use clearlane_subnet::check::{FaultKind, LostAt};

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
    super::dead_entries::lost(site, ENTRY.name, &[FaultKind::Loop], |place, paths| {
        format!("the tables go round in a loop, {}; {paths} never arrive", circle(place))
    })
    .into_iter()
    .map(|finding| Finding {
        severity: Severity::Lost,
        remedy: "load tables without the loop, or restart the subnet manager so that it routes anew"
            .into(),
        ..finding
    })
    .collect()
}
