//! Where several up*/down* orders of one fabric have their roots.

use crate::engines::order::centrality;
use crate::engines::trees::FAR;
use crate::graph::SwitchGraph;
use std::cmp::Reverse;

/// The roots of `count` orders, one for each part of the fabric: the centre first, then the most
/// central of the other switches, of equally central ones the one farthest from the roots before.
/// A part with fewer switches than orders has the same roots again.
pub(super) fn roots(graph: &SwitchGraph, count: usize) -> Vec<Vec<usize>> {
    let centrality = centrality(graph);
    let mut orders = vec![Vec::new(); count];
    let mut seen = vec![false; graph.rows()];
    let (mut distances, mut part) = (Vec::new(), Vec::new());
    for row in 0..graph.rows() {
        if seen[row] {
            continue;
        }
        graph.distances(row, &mut distances, &mut part);
        part.iter().for_each(|row| seen[*row as usize] = true);
        let mut chosen: Vec<usize> = Vec::new();
        let mut nearest = vec![FAR; graph.rows()];
        let mut queue = Vec::new();
        for (at, roots) in orders.iter_mut().enumerate() {
            let others = part.iter().map(|row| *row as usize).filter(|row| !chosen.contains(row));
            let next = others.min_by_key(|row| (centrality[*row], Reverse(nearest[*row]), *row));
            let Some(root) = next.or_else(|| chosen.get(at % part.len()).copied()) else {
                continue;
            };
            roots.push(root);
            if next.is_none() {
                continue;
            }
            chosen.push(root);
            graph.distances(root, &mut distances, &mut queue);
            let pairs = nearest.iter_mut().zip(&distances);
            pairs.for_each(|(nearest, distance)| *nearest = (*nearest).min(*distance));
        }
    }
    orders
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_fabric::topologies::build;

    fn of(spec: &str, count: usize) -> Vec<Vec<usize>> {
        roots(&SwitchGraph::of(&build(spec).unwrap()), count)
    }

    #[test]
    fn of_equals_the_farthest_is_the_next_root() {
        // On a 4x4 torus (2, 2) is opposite (0, 0); on a mesh the middle four are the centre.
        assert_eq!(of("torus:4x4", 2), [[0], [10]]);
        assert_eq!(of("mesh:4x4", 4), [[5], [10], [6], [9]]);
        // More orders than switches.
        assert_eq!(of("chain:2x1", 3).iter().flatten().count(), 3);
    }
}
