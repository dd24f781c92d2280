//! What it is: pairs of leaf switches spread over the lanes, so that flows to a hot host block only
//! the pairs that share their lane.
//!
//! Source: Guay, Bogdanski, Reinemo, Lysne, Skeie, "vFtree - a fat-tree routing algorithm using
//! virtual lanes to alleviate congestion", IPDPS 2011; US patent 9,325,619, claim 1: lanes belong
//! to pairs of source leaf and destination leaf, the same both ways.
//! What we do differently: the formula is ours, the paper's is not printed. Leaves i and j have
//! lane (i + j) mod V, a leaf with itself too, because its own flows share host ports with others.
//! Where V allows, no two leaves of a leaf share a lane: with V ≥ L lanes for L leaves (i + j) mod
//! L; for even L with L - 1 lanes the last leaf's lane with i is 2i mod (L - 1), the edge colouring
//! of a complete graph.
//! Parameters: lanes 1 to 15.

use super::{Assignment, Entry, Ground};

/// `vftree`.
pub(super) const ENTRY: Entry = Entry {
    name: "vftree",
    summary: "pairs of leaf switches over all lanes, the same lane both ways",
    reference: "Guay et al., vFtree, IPDPS 2011; US patent 9,325,619",
    parameters: "lanes 1 to 15; as many as leaves keep all pairs of a leaf apart",
    lanes: super::LANES,
    lanes_min: 1,
    hot: false,
    symmetric: true,
    assign,
};

fn assign(ground: &Ground<'_>) -> Assignment {
    let (leaves, lanes) = (ground.leaves, ground.lanes());
    let note = match separates(leaves, lanes) {
        true => format!("{leaves} leaves on {lanes} lanes, no two pairs of a leaf share one"),
        false => {
            let most = shared(leaves, lanes);
            let others = if most == 1 { "other" } else { "others" };
            format!("{leaves} leaves on {lanes} lanes, a leaf has up to {most} {others} on each")
        }
    };
    let level = |from, to| lane(leaves, lanes, from, to);
    Assignment::new(ground.leaf.iter().copied(), leaves, level, note)
}

/// Whether no two other leaves of a leaf share a lane.
fn separates(leaves: usize, lanes: usize) -> bool {
    lanes >= leaves || (leaves.is_multiple_of(2) && lanes + 1 == leaves)
}

/// How many other leaves a leaf has on one lane at most, where pairs are not all apart.
fn shared(leaves: usize, lanes: usize) -> usize {
    match lanes {
        1 => leaves - 1,
        // Some leaf is not itself among the leaves of the fullest lane.
        _ => leaves.div_ceil(lanes),
    }
}

/// The lane of two leaves, the same both ways.
fn lane(leaves: usize, lanes: usize, i: usize, j: usize) -> usize {
    let last = leaves - 1;
    if leaves.is_multiple_of(2) && lanes == last && (i == last) != (j == last) {
        return 2 * i.min(j) % last;
    }
    (i + j) % lanes.min(leaves)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_a_leaf_are_apart_wherever_lanes_suffice_and_even_everywhere() {
        for leaves in 1..=40 {
            for lanes in 1..=15 {
                let mut worst = 0;
                for i in 0..leaves {
                    let mut used = vec![0; lanes];
                    for j in 0..leaves {
                        assert_eq!(lane(leaves, lanes, i, j), lane(leaves, lanes, j, i));
                        used[lane(leaves, lanes, i, j)] += usize::from(i != j);
                    }
                    let most = used.iter().max().copied().unwrap_or(0);
                    if separates(leaves, lanes) {
                        assert!(most <= 1, "{leaves} leaves, {lanes} lanes: {used:?}");
                    }
                    worst = worst.max(most);
                }
                if !separates(leaves, lanes) {
                    assert_eq!(worst, shared(leaves, lanes), "{leaves} leaves, {lanes} lanes");
                }
            }
        }
        assert!(separates(3, 3) && separates(36, 36) && !separates(36, 8) && !separates(3, 2));
    }
}
