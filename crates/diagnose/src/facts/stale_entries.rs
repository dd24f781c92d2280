//! What it is: tables that do not fit the cables: entries that lead into a port without a cable or
//! to another host, as those of yesterday do after a cable was moved.

use super::Entry;
use super::dead_entries::{lost, to_hosts};
use crate::{Finding, Site};
use clearlane_subnet::check::{FaultKind, LostAt};

/// `stale-entries`.
pub(super) const ENTRY: Entry = Entry {
    name: "stale-entries",
    summary: "tables older than the cables: entries that lead to an empty port or a wrong host",
    find,
};

fn find(site: &Site) -> Vec<Finding> {
    let kinds = [FaultKind::NoCable, FaultKind::WrongEnd];
    let found = lost(site, ENTRY.name, &kinds, |place: &LostAt, paths| {
        let hosts = to_hosts(site, place);
        let port = place.port.map_or(0, |port| port.value());
        let switch = site.node(place.switch);
        match place.kind {
            FaultKind::NoCable => format!(
                "the tables do not fit the cables: {switch} sends what is for {hosts} to port \
                 {port}, which has no cable; {paths} end there"
            ),
            _ => format!(
                "the tables do not fit the cables: {switch} sends what is for {hosts} to port \
                 {port}, where another node is; {paths} end there"
            ),
        }
    });
    let remedy = "take fabric and tables at the same time; if they are, restart the subnet manager";
    found.into_iter().map(|finding| Finding { remedy: remedy.into(), ..finding }).collect()
}
