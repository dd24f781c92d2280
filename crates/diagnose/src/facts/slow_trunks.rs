//! What it is: cables between switches that are slower than those around them.

use super::Entry;
use crate::words::grouped;
use crate::{Cable, Finding, Severity, Site};

/// `slow-trunks`.
pub(super) const ENTRY: Entry = Entry {
    name: "slow-trunks",
    summary: "cables between switches that run slower than those around them",
    find,
};

fn find(site: &Site) -> Vec<Finding> {
    let slow = site.cables.slow.iter().filter(|cable| cable.is_trunk);
    let trunks = slow.map(|cable| trunk(site, cable)).collect();
    let more = ["more cable between switches is slow", "more cables between switches are slow"];
    Finding::together(trunks, more).into_iter().collect()
}

fn trunk(site: &Site, cable: &Cable) -> Finding {
    let link = site.fabric.link(cable.link);
    let missing = cable.missing(&site.fabric);
    let usage = site.tables.as_ref().map(|tables| &tables.usage);
    let crossing = usage.map(|usage| usage.crossing(link.a) + usage.crossing(link.b));
    let all = usage.map_or(0, |usage| usage.paths).max(1);
    let (width, speed) = cable.expected;
    let over = crossing.map_or(String::new(), |crossing| {
        format!("; {} of {} paths cross it", grouped(crossing), grouped(all))
    });
    Finding {
        fact: ENTRY.name,
        severity: Severity::Shared,
        share: missing * crossing.unwrap_or(0) as f64 / all as f64,
        text: format!(
            "the cable {} runs at {} {} among cables at {width} {speed}{over}",
            site.cable(link),
            link.width,
            link.speed
        ),
        more: Vec::new(),
        remedy: "reseat or replace the cable".into(),
    }
}
