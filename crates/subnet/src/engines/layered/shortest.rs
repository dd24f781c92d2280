//! Shortest paths as in-trees, and what decides between equally short ones.

use crate::engines::Datelines;
use crate::engines::order::Order;
use crate::engines::trees::{Flows, NO_PORT, Trees};
use crate::graph::SwitchGraph;

/// Which of several shortest paths is taken.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ties<'a> {
    /// The one with the fewest flows so far, as in single-source shortest-path routing.
    Balanced,
    /// That with the fewest turns from down to up, then that with the fewest flows.
    FewTurns(&'a Order),
    /// The lowest dimension first, half way round a ring as `dor` decides.
    Dimensions(&'a Datelines),
}

/// Trees of shortest paths to all switches with hosts, `counts` of each; none to the others.
pub(super) fn shortest(graph: &SwitchGraph, ties: Ties<'_>, counts: &[usize]) -> Trees {
    let mut trees = Trees::new(graph.rows());
    let mut flows = Flows::new(graph);
    let (mut distances, mut queue) = (Vec::new(), Vec::new());
    let mut costs = vec![(0u32, 0u64); graph.rows()];
    for destination in (0..graph.rows()).filter(|row| graph.has_adapter(*row)) {
        graph.distances(destination, &mut distances, &mut queue);
        for _ in 0..counts[destination] {
            let ports = trees.push(destination);
            costs[destination] = (0, 0);
            for row in queue.iter().skip(1).map(|row| *row as usize) {
                let nearer = |peer: usize| distances[peer].saturating_add(1) == distances[row];
                let ways = graph.switch_peers(row).filter(|(_, peer, _)| nearer(*peer));
                let best = ways.map(|(port, peer, _)| {
                    let (turns, cost) = costs[peer];
                    let cost = cost + flows.loads[graph.channel(row, port)];
                    let turns = turns + u32::from(turns_up(graph, ties, (row, peer), ports));
                    match ties {
                        Ties::Dimensions(ways) => {
                            let other = ways.port(row, destination) != Some(port);
                            ((u32::from(other), u64::from(port)), port, (0, 0))
                        }
                        _ => ((turns, cost), port, (turns, cost)),
                    }
                });
                let best = best.min();
                (ports[row], costs[row]) = best.map_or((NO_PORT, (0, 0)), |b| (b.1, b.2));
            }
            flows.add(graph, ports, &distances);
        }
    }
    trees
}

/// Whether a cable leads down to a switch whose path goes up.
fn turns_up(
    graph: &SwitchGraph,
    ties: Ties<'_>,
    (row, peer): (usize, usize),
    ports: &[u8],
) -> bool {
    let Ties::FewTurns(order) = ties else { return false };
    let next = graph.next(peer, ports[peer]);
    !order.is_up(row, peer) && next.is_some_and(|next| order.is_up(peer, next))
}

/// Which switches have paths along one tree that pass, or start at, `row`.
pub(super) fn through(graph: &SwitchGraph, row: usize, ports: &[u8]) -> Vec<bool> {
    let mut known: Vec<Option<bool>> = vec![None; graph.rows()];
    known[row] = Some(true);
    let mut path = Vec::new();
    for start in 0..graph.rows() {
        let mut at = start;
        path.clear();
        while known[at].is_none() && path.len() <= graph.rows() {
            path.push(at);
            match graph.next(at, ports[at]) {
                Some(next) => at = next,
                None => break,
            }
        }
        let passes = known[at].unwrap_or(false);
        path.iter().for_each(|row| known[*row] = Some(passes));
    }
    known.into_iter().map(|known| known == Some(true)).collect()
}
