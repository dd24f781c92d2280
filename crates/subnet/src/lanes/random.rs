//! What it is: pairs of leaf switches on lanes drawn at random, the same both ways: what a policy
//! with a rule has to beat.
//!
//! Source: ours, the control of an experiment.
//! Parameters: lanes 1 to 15; seed.

use super::{Assignment, Entry, Ground};
use clearlane_ib::random::Stream;

/// `random`.
pub(super) const ENTRY: Entry = Entry {
    name: "random",
    summary: "pairs of leaf switches on lanes drawn at random, the same lane both ways",
    reference: "ours: what a rule has to beat",
    parameters: "lanes 1 to 15; seed of the draw, 1 by default",
    lanes: super::LANES,
    lanes_min: 1,
    hot: false,
    symmetric: true,
    assign,
};

fn assign(ground: &Ground<'_>) -> Assignment {
    let (leaves, lanes, seed) = (ground.leaves, ground.lanes(), ground.options.seed);
    let level = |from: usize, to: usize| {
        let pair = (from.min(to) as u64) << 32 | from.max(to) as u64;
        Stream::new(seed, "lane of two leaves", pair).below(lanes as u64) as usize
    };
    let note = format!("{leaves} leaves on {lanes} lanes, drawn with seed {seed}");
    Assignment::new(ground.leaf.iter().copied(), leaves, level, note)
}
