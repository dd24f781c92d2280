//! Which end of a cable is up: levels of the switches, and a total order that turns every cable
//! one way, so that up-then-down paths cannot close a loop.

use crate::graph::SwitchGraph;

/// Levels and order. A cable leads up towards the greater height.
#[derive(Clone, Debug)]
pub(super) struct Order {
    /// 0 for a leaf switch.
    pub(super) levels: Vec<u32>,
    /// A permutation of 0..rows at first; lifted switches get numbers above.
    heights: Vec<u32>,
    /// Rows, highest first.
    pub(super) descending: Vec<u32>,
    /// Switches lifted above their level so that all hosts have a common ancestor.
    pub(super) lifted: Vec<usize>,
}

/// How many thresholds for "this is a leaf" are tried.
const THRESHOLDS_MAX: usize = 16;

/// How often switches are lifted before the order is taken from distances to one root.
const LIFTS_MAX: usize = 64;

impl Order {
    /// Levels are distances from the leaves. Which switches are leaves is clear in a tree: those
    /// with hosts. Where spines hold hosts too, those with at least as many hosts as leave the
    /// fewest cables within a level.
    pub(super) fn of(graph: &SwitchGraph) -> Self {
        Self::from_levels(levels_of_tree(graph).1)
    }

    /// For fabrics of any shape: nearer to a root is higher. Roots are those given; without any,
    /// the levels of a tree where no cable joins two switches of one level, else the centre of each
    /// part: the switch with the smallest greatest distance, then the smallest sum of distances,
    /// to switches with hosts.
    pub(super) fn around(graph: &SwitchGraph, roots: &[usize]) -> Self {
        if roots.is_empty() {
            let (flat, levels) = levels_of_tree(graph);
            if flat == 0 {
                return Self::from_levels(levels);
            }
        }
        let mut seen = vec![false; graph.rows()];
        let mut levels = vec![0; graph.rows()];
        let centrality = centrality(graph);
        let (mut distances, mut part) = (Vec::new(), Vec::new());
        for row in 0..graph.rows() {
            if seen[row] {
                continue;
            }
            graph.distances(row, &mut distances, &mut part);
            part.iter().for_each(|row| seen[*row as usize] = true);
            let mut of_part: Vec<usize> =
                roots.iter().copied().filter(|root| part.contains(&(*root as u32))).collect();
            if of_part.is_empty() {
                let centre = part.iter().min_by_key(|row| (centrality[**row as usize], **row));
                of_part.push(centre.map_or(row, |row| *row as usize));
            }
            let mut nearest = vec![u32::MAX; graph.rows()];
            for root in of_part {
                graph.distances(root, &mut distances, &mut part);
                let pairs = nearest.iter_mut().zip(&distances);
                pairs.for_each(|(nearest, distance)| *nearest = (*nearest).min(*distance));
            }
            for row in &part {
                levels[*row as usize] = graph.rows() as u32 - nearest[*row as usize];
            }
        }
        Self::from_levels(levels)
    }

    /// Whether switches have levels and every cable joins different ones.
    pub(super) fn is_tree(graph: &SwitchGraph) -> bool {
        levels_of_tree(graph).0 == 0
    }

    fn from_levels(levels: Vec<u32>) -> Self {
        let mut ascending: Vec<u32> = (0..levels.len() as u32).collect();
        ascending.sort_by_key(|row| levels[*row as usize]);
        let mut heights = vec![0; levels.len()];
        for (height, row) in ascending.iter().enumerate() {
            heights[*row as usize] = height as u32;
        }
        ascending.reverse();
        Order { levels, heights, descending: ascending, lifted: Vec::new() }
    }

    /// A number for each switch, greater for higher ones.
    pub(super) fn height(&self, row: usize) -> u32 {
        self.heights[row]
    }

    /// Whether a cable from `row` to `peer` leads up.
    pub(super) fn is_up(&self, row: usize, peer: usize) -> bool {
        self.heights[peer] > self.heights[row]
    }

    /// Changes the order so that every switch that cables connect to `member` has an up path to
    /// one root: as long as some have none, the one nearest to them is lifted above all others,
    /// with the switches between it and the old root. Up paths to the first lifted one stay.
    pub(super) fn lift(&mut self, graph: &SwitchGraph, member: usize) {
        let (mut distances, mut part) = (Vec::new(), Vec::new());
        graph.distances(member, &mut distances, &mut part);
        let root = part.iter().max_by_key(|row| self.heights[**row as usize]);
        let mut root = root.map_or(member, |row| *row as usize);
        let mut via = Vec::new();
        for _ in 0..LIFTS_MAX {
            self.descend(graph, root, &mut via);
            let outside = |row: &u32| {
                graph.switch_peers(*row as usize).filter(|p| via[p.1].is_none()).count()
            };
            let reached = part.iter().filter(|row| via[**row as usize].is_some());
            let Some((cables, next)) =
                reached.map(|row| (outside(row), *row)).max_by_key(|(n, row)| (*n, !*row))
            else {
                break;
            };
            if cables == 0 {
                self.sort();
                return;
            }
            let mut chain = vec![next as usize];
            while let Some(Some(above)) = chain.last().map(|row| via[*row]) {
                if chain.last() == Some(&above) {
                    break;
                }
                chain.push(above);
            }
            for row in chain.into_iter().rev() {
                self.raise(row);
            }
            root = next as usize;
        }
        // Too irregular for lifting: nearer to the root is higher.
        graph.distances(root, &mut distances, &mut part);
        for row in part.iter().rev() {
            self.raise(*row as usize);
        }
        self.sort();
    }

    /// Puts a switch above all others.
    fn raise(&mut self, row: usize) {
        let top = self.heights.iter().max().copied().unwrap_or(0);
        self.heights[row] = top.saturating_add(1);
        if !self.lifted.contains(&row) {
            self.lifted.push(row);
        }
    }

    fn sort(&mut self) {
        self.descending.sort_by_key(|row| std::cmp::Reverse(self.heights[*row as usize]));
    }

    /// Per row that has an up path to `root`: the next switch on it; the root itself for the root.
    fn descend(&self, graph: &SwitchGraph, root: usize, via: &mut Vec<Option<usize>>) {
        via.clear();
        via.resize(graph.rows(), None);
        via[root] = Some(root);
        let mut queue = vec![root];
        let mut next = 0;
        while let Some(&row) = queue.get(next) {
            next += 1;
            for (_, peer, _) in graph.switch_peers(row) {
                if self.is_up(peer, row) && via[peer].is_none() {
                    via[peer] = Some(row);
                    queue.push(peer);
                }
            }
        }
    }
}

/// The levels of a tree by the best threshold for "this is a leaf", and how many cable ends lie
/// within a level.
fn levels_of_tree(graph: &SwitchGraph) -> (usize, Vec<u32>) {
    let hosts: Vec<usize> = (0..graph.rows()).map(|row| graph.adapters(row).count()).collect();
    let mut thresholds: Vec<usize> = hosts.iter().copied().filter(|n| *n > 0).collect();
    thresholds.sort_unstable();
    thresholds.dedup();
    let mut best: Option<(usize, Vec<u32>)> = None;
    for threshold in thresholds.into_iter().take(THRESHOLDS_MAX) {
        let levels = levels(graph, |row| hosts[row] >= threshold);
        let flat = (0..graph.rows())
            .flat_map(|row| graph.switch_peers(row).map(move |(_, peer, _)| (row, peer)))
            .filter(|(row, peer)| levels[*row] == levels[*peer])
            .count();
        if best.as_ref().is_none_or(|(fewest, _)| flat < *fewest) {
            best = Some((flat, levels));
        }
        if flat == 0 {
            break;
        }
    }
    best.unwrap_or_else(|| (usize::MAX, vec![0; graph.rows()]))
}

/// By row: the greatest distance to a switch with hosts, and the sum of all.
pub(super) fn centrality(graph: &SwitchGraph) -> Vec<(u32, u64)> {
    let mut centrality = vec![(0, 0); graph.rows()];
    let (mut distances, mut part) = (Vec::new(), Vec::new());
    for row in (0..graph.rows()).filter(|row| graph.has_adapter(*row)) {
        graph.distances(row, &mut distances, &mut part);
        for row in &part {
            let (distance, (most, sum)) =
                (distances[*row as usize], &mut centrality[*row as usize]);
            (*most, *sum) = ((*most).max(distance), *sum + u64::from(distance));
        }
    }
    centrality
}

/// Distance from the nearest leaf; 0 where none is in reach.
fn levels(graph: &SwitchGraph, is_leaf: impl Fn(usize) -> bool) -> Vec<u32> {
    let mut levels = vec![u32::MAX; graph.rows()];
    let mut queue: Vec<usize> = (0..graph.rows()).filter(|row| is_leaf(*row)).collect();
    for row in &queue {
        levels[*row] = 0;
    }
    let mut next = 0;
    while let Some(&row) = queue.get(next) {
        next += 1;
        for (_, peer, _) in graph.switch_peers(row) {
            if levels[peer] == u32::MAX {
                levels[peer] = levels[row] + 1;
                queue.push(peer);
            }
        }
    }
    for level in &mut levels {
        if *level == u32::MAX {
            *level = 0;
        }
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_fabric::topologies::build;

    #[test]
    fn a_lifted_order_has_one_root_for_all() {
        for spec in ["torus:5x5", "ring:9x1", "chain:7x1", "xgft:2,2,4;1,2,2", "torus:4x4x4"] {
            let fabric = build(spec).unwrap();
            let graph = SwitchGraph::of(&fabric);
            let mut order = Order::of(&graph);
            order.lift(&graph, 0);
            let mut via = Vec::new();
            order.descend(&graph, order.descending[0] as usize, &mut via);
            assert!(via.iter().all(Option::is_some), "{spec}");
            let mut heights = order.heights.clone();
            heights.sort_unstable();
            heights.dedup();
            assert_eq!(heights.len(), graph.rows(), "{spec}: a total order");
        }
    }

    #[test]
    fn hosts_on_a_spine_do_not_make_it_a_leaf() {
        let mut fabric = build("leaf-spine:leaves=4,hosts=4,spines=3").unwrap();
        // Of leaf 0's hosts keep two, and leave the spines as they are but for one host.
        let spine = clearlane_fabric::NodeId(4);
        let host = fabric.ids(clearlane_fabric::NodeKind::ChannelAdapter).next().unwrap();
        fabric.unplug(|_, link| link.a.node == host || link.b.node == host);
        let free = fabric.node(spine).port_count();
        let port = |n| clearlane_ib::PortNumber::new(n).unwrap();
        let last = clearlane_fabric::Endpoint { node: spine, port: port(free) };
        fabric.unplug(|_, link| link.a == last || link.b == last);
        let end = clearlane_fabric::Endpoint { node: host, port: port(1) };
        let rate = (clearlane_ib::LinkWidth::X4, clearlane_ib::LinkSpeed::Qdr);
        fabric.join(last, end, rate.0, rate.1).unwrap();
        let order = Order::of(&SwitchGraph::of(&fabric));
        assert_eq!(order.levels, [0, 0, 0, 0, 1, 1, 1]);
    }
}
