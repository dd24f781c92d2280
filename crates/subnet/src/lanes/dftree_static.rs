//! What it is: a fast lane and a slow one. Traffic to and from hosts that counters or a run name
//! hot is on the slow lane, everything else on the fast one.
//!
//! Source: Guay, Reinemo, Lysne, Skeie, "dFtree: a fat-tree routing algorithm using dynamic
//! allocation of virtual lanes to alleviate congestion in InfiniBand networks", NDM 2011.
//! What we do differently: static. The published one watches counters and re-paths flows while they
//! run, with a modified stack; here somebody names the hosts, and clients ask again. Whatever the
//! number of lanes, two are used.
//! Parameters: lanes 2 to 15, of which 2 are used; hot: adapter ports, at least one.

use super::{Assignment, Entry, Ground};

/// `dftree-static`.
pub(super) const ENTRY: Entry = Entry {
    name: "dftree-static",
    summary: "two lanes, the slow one for hot hosts; static, unlike the published one",
    reference: "Guay et al., dFtree, NDM 2011, whose flows change lanes while they run",
    parameters: "lanes 2 to 15, of which 2 are used; hot: hosts, at least one",
    lanes: 2,
    lanes_min: 2,
    hot: true,
    symmetric: true,
    assign,
};

fn assign(ground: &Ground<'_>) -> Assignment {
    let of_host = ground.hot.iter().map(|hot| usize::from(hot.is_some()));
    let hot = ground.hot_hosts();
    let hosts = if hot == 1 { "host" } else { "hosts" };
    let note = format!("static, {hot} hot {hosts} on slow lane 1, everybody else on fast lane 0");
    Assignment::new(of_host, 2, |from, to| from | to, note)
}
