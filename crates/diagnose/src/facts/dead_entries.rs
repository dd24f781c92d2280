//! What it is: switches whose tables lack an entry for a host.

use super::Entry;
use crate::words::{count, grouped};
use crate::{Finding, Severity, Site};
use clearlane_subnet::check::{FaultKind, LostAt};

/// `dead-entries`.
pub(super) const ENTRY: Entry =
    Entry { name: "dead-entries", summary: "switches without an entry for a host", find };

/// How many further places are listed.
const LISTED_MAX: usize = 8;

fn find(site: &Site) -> Vec<Finding> {
    let found = entries(site);
    match without_table(site) {
        None => found,
        Some(text) => found
            .into_iter()
            .map(|finding| Finding {
                text: format!("{text}: {}", finding.text),
                remedy: "dump the tables again: the file may be cut off".into(),
                ..finding
            })
            .collect(),
    }
}

/// How many switches have no table at all, if any.
fn without_table(site: &Site) -> Option<String> {
    let tables = &site.tables.as_ref()?.subnet.tables;
    let rows = tables.switches().len();
    let is_empty = |row: &usize| tables.row(*row).iter().all(|port| *port == u8::MAX);
    let empty = (0..rows).filter(is_empty).count();
    (empty > 0).then(|| {
        let have = if empty == 1 { "switch has" } else { "switches have" };
        format!("{empty} of {rows} {have} no table in the files")
    })
}

fn entries(site: &Site) -> Vec<Finding> {
    lost(site, ENTRY.name, &[FaultKind::NoEntry], |place, paths| {
        let switch = site.node(place.switch);
        format!("{switch} has no entry for {}; {paths} end there", to_hosts(site, place))
    })
}

/// The host that packets are for that end at a place, or how many.
pub(super) fn to_hosts(site: &Site, place: &LostAt) -> String {
    let first = format!("{} (LID {})", site.node(place.host.node), place.lid);
    match place.lids {
        0 | 1 => first,
        lids => format!("{first} and {}", count(lids - 1, "other LID", "other LIDs")),
    }
}

/// A finding of all paths lost for one of these reasons, if there are any: the place with most of
/// them as `text` has it, the others listed.
pub(super) fn lost(
    site: &Site,
    fact: &'static str,
    kinds: &[FaultKind],
    text: impl Fn(&LostAt, String) -> String,
) -> Vec<Finding> {
    let Some(tables) = &site.tables else { return Vec::new() };
    let usage = &tables.usage;
    let places: Vec<&LostAt> =
        usage.lost_at.iter().filter(|place| kinds.contains(&place.kind)).collect();
    let Some((first, others)) = places.split_first() else { return Vec::new() };
    let of = |paths: u64| format!("{} of {} paths", grouped(paths), grouped(usage.paths));
    let all: u64 = places.iter().map(|place| place.paths).sum();
    let mut said = text(first, of(first.paths));
    if !others.is_empty() {
        let places = count(others.len() as u64, "place", "places");
        said.push_str(&format!("; with {places} more, {}", of(all)));
    }
    let listed = others.iter().take(LISTED_MAX);
    let more: Vec<String> = listed.map(|place| text(place, of(place.paths))).collect();
    vec![Finding {
        fact,
        severity: Severity::Lost,
        share: all as f64 / usage.paths.max(1) as f64,
        text: said,
        more,
        remedy: "let the subnet manager route anew, or load complete tables".into(),
    }]
}
