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

/// A port that leads nearer to the destination at hand.
#[derive(Clone, Copy, Debug)]
struct Way {
    port: u8,
    peer: u32,
    channel: u32,
}

/// Trees of shortest paths to all switches with hosts, `counts` of each; none to the others.
pub(super) fn shortest(graph: &SwitchGraph, ties: Ties<'_>, counts: &[usize]) -> Trees {
    let mut trees = Trees::new(graph.rows());
    let mut flows = Flows::new(graph);
    let (mut distances, mut queue) = (Vec::new(), Vec::new());
    let mut costs = vec![(0u32, 0u64); graph.rows()];
    // Of the rows in the order of the queue, one after the other.
    let (mut ways, mut ends): (Vec<Way>, Vec<usize>) = (Vec::new(), Vec::new());
    for destination in (0..graph.rows()).filter(|row| graph.has_adapter(*row)) {
        graph.distances(destination, &mut distances, &mut queue);
        ways.clear();
        ends.clear();
        for row in queue.iter().skip(1).map(|row| *row as usize) {
            let peers = graph.switch_peers(row);
            let nearer = peers.filter(|(_, peer, _)| distances[*peer] < distances[row]);
            ways.extend(nearer.map(|(port, peer, _)| {
                let channel = graph.channel(row, port) as u32;
                Way { port, peer: peer as u32, channel }
            }));
            ends.push(ways.len());
        }
        for _ in 0..counts[destination] {
            let ports = trees.push(destination);
            costs[destination] = (0, 0);
            let mut first = 0;
            for (row, end) in queue.iter().skip(1).map(|row| *row as usize).zip(&ends) {
                let mut best = ((u32::MAX, u64::MAX), NO_PORT);
                for way in &ways[first..*end] {
                    let peer = way.peer as usize;
                    let (turns, cost) = costs[peer];
                    let cost = cost + flows.loads[way.channel as usize];
                    let merit = match ties {
                        Ties::Balanced => (0, cost),
                        Ties::FewTurns(order) => {
                            let turns_up = turns_up(graph, order, (row, peer), ports);
                            (turns + u32::from(turns_up), cost)
                        }
                        Ties::Dimensions(ways) => {
                            (u32::from(ways.port(row, destination) != Some(way.port)), 0)
                        }
                    };
                    // Ports ascend: the first of equals stays.
                    if merit < best.0 {
                        best = (merit, way.port);
                    }
                }
                (costs[row], ports[row]) = best;
                first = *end;
            }
            flows.add(graph, ports, &distances);
        }
    }
    trees
}

/// Whether a cable leads down to a switch whose path goes up.
fn turns_up(graph: &SwitchGraph, order: &Order, (row, peer): (usize, usize), ports: &[u8]) -> bool {
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
