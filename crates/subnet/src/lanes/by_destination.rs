//! What it is: the lane of a path is its destination's alone, so that flows to different hosts
//! rarely share one.
//!
//! Source: queues by destination in as many lanes as there are: Gómez, Gilabert, Gómez, López,
//! Duato, "VOQsw", IPDPS 2007; in fat trees by SL: Escudero-Sahuquillo, Garcia, Quiles, Reinemo,
//! Skeie, Lysne, Duato, "A new proposal to deal with congestion in InfiniBand-based fat-trees"
//! (Flow2SL), JPDC 74(1), 2014.
//! What we do differently: a host has the sum of its leaf's number and its place there, mod V:
//! destinations of one uplink lie at different leaves, those of one leaf at different places, and
//! both kinds are spread. Not symmetric: a reply has the lane of whom it goes to.
//! Parameters: lanes 1 to 15.

use super::{Assignment, Entry, Ground};

/// `by-destination`.
pub(super) const ENTRY: Entry = Entry {
    name: "by-destination",
    summary: "the lane of a path is that of its destination, as with VOQsw and Flow2SL",
    reference: "Escudero-Sahuquillo et al., Flow2SL, JPDC 74(1), 2014; Gómez et al., VOQsw, 2007",
    parameters: "lanes 1 to 15",
    lanes: super::LANES,
    lanes_min: 1,
    hot: false,
    symmetric: false,
    assign,
};

fn assign(ground: &Ground<'_>) -> Assignment {
    let lanes = ground.lanes();
    let sums = ground.leaf.iter().zip(&ground.place).map(|(leaf, place)| leaf + place);
    let groups = sums.clone().max().map_or(1, |most| lanes.min(most + 1));
    let note = format!("destinations on {groups} lanes by leaf and place");
    Assignment::new(sums.map(|sum| sum % lanes), groups, |_, to| to, note)
}
