//! Hosts of a fabric in the place of those that an experiment names and the fabric lacks.

use super::Variant;
use clearlane_workload::{HostRef, Rank, Ranks};

impl Variant {
    /// Replaces named hosts that are not there by the first ranks, one for each name wherever it
    /// stands, and says so.
    pub(crate) fn replace_missing(&mut self, ranks: &Ranks) -> Vec<String> {
        let (mut missing, mut said) = (Vec::new(), Vec::new());
        for group in &mut self.traffic {
            let place = format!("traffic {}", group.name);
            let hosts = group.hosts().into_iter();
            hosts.for_each(|host| said.extend(replace(host, ranks, &mut missing, &place)));
        }
        if let Some(policy) = &mut self.subnet.lane_policy {
            let hosts = policy.hot.iter_mut();
            hosts.for_each(|host| said.extend(replace(host, ranks, &mut missing, "lane_policy")));
        }
        said
    }
}

/// Replaces a host that is not there; what is said of it at the first place of its name.
fn replace(
    host: &mut HostRef,
    ranks: &Ranks,
    missing: &mut Vec<String>,
    place: &str,
) -> Option<String> {
    if !ranks.lacks(host) {
        return None;
    }
    let HostRef::Name(name) = &*host else { return None };
    let known = missing.iter().position(|other| other == name);
    let name = name.clone();
    let rank = known.unwrap_or(missing.len());
    *host = HostRef::Number(rank as u32);
    if known.is_some() {
        return None;
    }
    let stand_in = ranks.name(Rank(rank as u32));
    let said = format!("{place}: no host {name} here; {stand_in} stands in for it");
    missing.push(name);
    Some(said)
}
