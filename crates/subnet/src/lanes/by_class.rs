//! What it is: all traffic to and from hot hosts on lanes of its own, everything else on lane 0.
//!
//! Source: service levels as classes of traffic, IBA vol. 1, 7.6.5 and A13 (QoS annex); what
//! administrators do by hand with two lanes.
//! What we do differently: with more than two lanes, hot host k has lane 1 + k mod (V - 1), so that
//! hot hosts do not block each other. A pair of hot hosts has the lane of the earlier one.
//! Parameters: lanes 2 to 15; hot: adapter ports, at least one.

use super::{Assignment, Entry, Ground};

/// `by-class`.
pub(super) const ENTRY: Entry = Entry {
    name: "by-class",
    summary: "traffic to and from hot hosts on lanes of its own, all else on lane 0",
    reference: "InfiniBand Architecture Specification, vol. 1, 7.6.5",
    parameters: "lanes 2 to 15; hot: hosts, at least one",
    lanes: 2,
    lanes_min: 2,
    hot: true,
    symmetric: true,
    assign,
};

fn assign(ground: &Ground<'_>) -> Assignment {
    let own = ground.lanes() - 1;
    let lane = |hot: usize| 1 + hot % own;
    let hot = ground.hot_hosts();
    let of_host = ground.hot.iter().map(|hot| hot.map_or(0, &lane));
    let level = |from: usize, to: usize| match (from, to) {
        (0, one) | (one, 0) => one,
        (a, b) => a.min(b),
    };
    let lanes = own.min(hot);
    let note = match (hot, lanes) {
        (1, _) => "one hot host on lane 1, everybody else on lane 0".into(),
        (hot, 1) => format!("{hot} hot hosts on lane 1, everybody else on lane 0"),
        (hot, lanes) => format!("{hot} hot hosts on lanes 1 to {lanes}, everybody else on lane 0"),
    };
    Assignment::new(of_host, lanes + 1, level, note)
}
