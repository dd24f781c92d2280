//! Places of switches by how many cables lie between them: those that are near by cable stand near
//! each other on the map. Stress majorization (Gansner, Koren and North 2004) with the same steps
//! and the same start on every run.

use super::layout::natural;
use clearlane_fabric::{Fabric, NodeId, NodeKind};
use std::collections::BTreeMap;

/// Switches from which on a circle has to do: the work grows with their square.
const SWITCHES_MAX: usize = 1500;
/// Pairs that are moved in all rounds together.
const PAIRS_MAX: usize = 40_000_000;
/// Rounds after which small fabrics no longer move visibly.
const ROUNDS: usize = 300;

type Point = (f64, f64);

/// Places in 0..1, the longest extent from left to right; by node, as hosts are placed later.
pub(super) fn by_distance(fabric: &Fabric) -> Vec<(f64, f64, Option<u32>)> {
    let mut places = vec![(0.5, 0.5, None); fabric.nodes().len()];
    let mut ids: Vec<NodeId> = fabric.ids(NodeKind::Switch).collect();
    ids.sort_by_cached_key(|id| natural(&fabric.node(*id).name));
    let mut points = circle(ids.len());
    if ids.len() <= SWITCHES_MAX {
        settle(&mut points, &distances(&neighbours(fabric, &ids)));
        turn(&mut points);
    }
    fill(&mut points);
    for (id, (x, y)) in ids.iter().zip(points) {
        places[id.index()] = (x, y, None);
    }
    places
}

/// Whether more than half of all pairs of switches are cabled: in a circle their cables show.
pub(super) fn is_dense(fabric: &Fabric) -> bool {
    let ids: Vec<NodeId> = fabric.ids(NodeKind::Switch).collect();
    let ends: usize = neighbours(fabric, &ids).iter().map(Vec::len).sum();
    ids.len() > 2 && 2 * ends > ids.len() * (ids.len() - 1)
}

/// By switch, the places in `ids` of those it is cabled to, each once.
fn neighbours(fabric: &Fabric, ids: &[NodeId]) -> Vec<Vec<usize>> {
    let place: BTreeMap<NodeId, usize> = ids.iter().copied().zip(0..).collect();
    let near = |(at, id): (usize, &NodeId)| {
        let peers = fabric.neighbours(*id).filter_map(|(_, _, peer)| place.get(&peer.node));
        let mut peers: Vec<usize> = peers.copied().filter(|peer| *peer != at).collect();
        peers.sort_unstable();
        peers.dedup();
        peers
    };
    ids.iter().enumerate().map(near).collect()
}

/// Cables between every two switches; parts without a cable between them stand a little apart.
fn distances(near: &[Vec<usize>]) -> Vec<Vec<u32>> {
    const FAR: u32 = u32::MAX;
    let from = |start: usize| {
        let mut steps = vec![FAR; near.len()];
        steps[start] = 0;
        let mut queue = vec![start];
        let mut next = 0;
        while let Some(at) = queue.get(next).copied() {
            for peer in &near[at] {
                if steps[*peer] == FAR {
                    steps[*peer] = steps[at] + 1;
                    queue.push(*peer);
                }
            }
            next += 1;
        }
        steps
    };
    let mut all: Vec<Vec<u32>> = (0..near.len()).map(from).collect();
    let longest = all.iter().flatten().filter(|d| **d != FAR).max().copied().unwrap_or(0);
    all.iter_mut().flatten().filter(|d| **d == FAR).for_each(|d| *d = longest + 2);
    all
}

/// A circle that opens slowly, so that no two switches are mirror images of each other.
fn circle(count: usize) -> Vec<Point> {
    let at = |index: usize| {
        let share = index as f64 / count.max(1) as f64;
        let angle = std::f64::consts::TAU * share;
        let radius = 0.4 + 0.1 * share;
        (0.5 + radius * angle.sin(), 0.5 - radius * angle.cos())
    };
    (0..count).map(at).collect()
}

/// Moves every point to where its distances to all others want it, round after round.
fn settle(points: &mut [Point], distances: &[Vec<u32>]) {
    let count = points.len();
    let rounds = (PAIRS_MAX / (count * count).max(1)).clamp(10, ROUNDS);
    for _ in 0..rounds {
        for at in 0..count {
            let (x, y) = points[at];
            let (mut to_x, mut to_y, mut all) = (0.0, 0.0, 0.0);
            for (other, steps) in distances[at].iter().enumerate().filter(|(o, _)| *o != at) {
                let wanted = f64::from(*steps);
                let weight = 1.0 / (wanted * wanted);
                let (dx, dy) = (x - points[other].0, y - points[other].1);
                let apart = (dx * dx + dy * dy).sqrt().max(1e-9);
                to_x += weight * (points[other].0 + wanted * dx / apart);
                to_y += weight * (points[other].1 + wanted * dy / apart);
                all += weight;
            }
            if all > 0.0 {
                points[at] = (to_x / all, to_y / all);
            }
        }
    }
}

/// Turns the points so that they reach farthest from left to right.
fn turn(points: &mut [Point]) {
    let count = points.len().max(1) as f64;
    let sum = points.iter().fold((0.0, 0.0), |sum, p| (sum.0 + p.0, sum.1 + p.1));
    let (middle_x, middle_y) = (sum.0 / count, sum.1 / count);
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (x, y) in points.iter_mut() {
        (*x, *y) = (*x - middle_x, *y - middle_y);
        (xx, xy, yy) = (xx + *x * *x, xy + *x * *y, yy + *y * *y);
    }
    let angle = 0.5 * (2.0 * xy).atan2(xx - yy);
    let (sin, cos) = angle.sin_cos();
    for (x, y) in points {
        (*x, *y) = (*x * cos + *y * sin, *y * cos - *x * sin);
    }
}

/// Spreads the points over 0..1 in both directions, rounded so that every machine draws the same
/// map. A direction with little difference is stretched a few times at most: a chain stays a chain.
fn fill(points: &mut [Point]) {
    const STRETCH: f64 = 3.0;
    let range = |of: fn(&Point) -> f64| {
        let values = points.iter().map(of);
        values.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)))
    };
    let (wide, tall) = (range(|p| p.0), range(|p| p.1));
    let longest = (wide.1 - wide.0).max(tall.1 - tall.0).max(f64::MIN_POSITIVE);
    let share = |value: f64, (low, high): Point| {
        let size = (high - low).max(longest / STRETCH);
        (1e4 * (0.5 + (value - (low + high) / 2.0) / size)).round() / 1e4
    };
    for (x, y) in points {
        (*x, *y) = (share(*x, wide), share(*y, tall));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(near: &[&[usize]]) -> Vec<Point> {
        let near: Vec<Vec<usize>> = near.iter().map(|peers| peers.to_vec()).collect();
        let mut points = circle(near.len());
        settle(&mut points, &distances(&near));
        turn(&mut points);
        fill(&mut points);
        points
    }

    #[test]
    fn a_chain_is_a_line_in_its_own_order() {
        let points = settled(&[&[1], &[0, 2], &[1, 3], &[2]]);
        let mut xs: Vec<f64> = points.iter().map(|p| p.0).collect();
        if xs[0] > xs[3] {
            xs.reverse();
        }
        assert!(xs.windows(2).all(|pair| pair[1] - pair[0] > 0.25), "{points:?}");
        assert!(points.iter().all(|p| (p.1 - 0.5).abs() < 0.2), "{points:?}");
    }

    #[test]
    fn the_whole_area_is_used_and_neighbours_are_near() {
        // Two triangles, joined by one cable between 2 and 3.
        let near: [&[usize]; 6] = [&[1, 2], &[0, 2], &[0, 1, 3], &[2, 4, 5], &[3, 5], &[3, 4]];
        let points = settled(&near);
        for of in [|p: &Point| p.0, |p: &Point| p.1] {
            let mut values: Vec<f64> = points.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            assert_eq!((values[0], values[5]), (0.0, 1.0), "{points:?}");
        }
        let apart = |a: usize, b: usize| (points[a].0 - points[b].0).abs();
        assert!(apart(0, 1) < apart(0, 5) && apart(4, 5) < apart(4, 1), "{points:?}");
    }

    #[test]
    fn parts_without_a_cable_between_them_stand_apart() {
        let points = settled(&[&[1], &[0], &[3], &[2]]);
        assert!(points.iter().all(|(x, y)| (0.0..=1.0).contains(x) && (0.0..=1.0).contains(y)));
        let apart = |a: usize, b: usize| (points[a].0 - points[b].0).abs();
        assert!(apart(0, 2) > apart(0, 1), "{points:?}");
    }
}
