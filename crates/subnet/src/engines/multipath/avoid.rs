//! Up-then-down trees that keep clear of the paths a source has to the same port already.
//!
//! One tree after the other is laid towards a destination, switch by switch: first the way down of
//! every switch that has one, the lowest first, then from the highest on whether to go up or down.
//! A switch takes the way that shares cables with the fewest of its own paths in the trees before;
//! among these the one with the fewest cables shared, then the shortest, then the one that carries
//! the fewest flows. A way longer than [`DETOUR_MAX`] allows is taken for want of any other.

use super::earlier::Earlier;
use super::improve::{Improve, Tree};
use crate::engines::order::Order;
use crate::engines::trees::{FAR, Flows, NO_PORT, Trees, lengths};
use crate::graph::SwitchGraph;

/// How many cables a path may be longer than the shortest between its ends to keep clear of others
/// (Lugones, Franco, Luque and others let a path set grow by two).
pub(super) const DETOUR_MAX: u32 = 2;

/// Trees of one LID offset, so many by destination; `before` are those of the offsets before, and
/// `flows` is added to.
pub(super) fn up_down(
    graph: &SwitchGraph,
    order: &Order,
    counts: &[usize],
    before: &[&Trees],
    flows: &mut Flows,
) -> Trees {
    let mut trees = Trees::new(graph.rows());
    let mut search = Search::new(graph, order);
    let mut improve = Improve::new(graph, order);
    let mut queue = Vec::new();
    for (destination, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        graph.distances(destination, &mut search.near, &mut queue);
        for number in 0..*count {
            let before = before.iter().filter_map(|trees| trees.tree(destination, number));
            let before: Vec<&[u8]> = before.collect();
            search.lay(destination, &before, flows);
            let ports = trees.push(destination);
            for (port, course) in ports.iter_mut().zip(&search.taken) {
                *port = course.port;
            }
            let tree = Tree { destination, near: &search.near, before: &before };
            improve.entries(&tree, ports);
            if graph.has_adapter(destination) {
                flows.add(graph, ports, &lengths(graph, destination, ports));
            }
        }
    }
    trees
}

/// How a switch sends on.
#[derive(Clone, Copy, Debug)]
struct Course {
    port: u8,
    /// Cables to the destination; [`FAR`] where it is not settled.
    length: u32,
    /// Flows on them, added up.
    cost: u64,
}

const NONE: Course = Course { port: NO_PORT, length: FAR, cost: 0 };

/// What makes one course better than another, the smallest being the best: cables beyond the
/// longest detour, earlier paths it meets, cables it shares with them, cables, flows, port.
type Merit = (u32, u32, u32, u32, u64, u8);

struct Search<'a> {
    graph: &'a SwitchGraph,
    order: &'a Order,
    /// Distance to the destination at hand.
    near: Vec<u32>,
    /// The way down by row.
    down: Vec<Course>,
    taken: Vec<Course>,
    earlier: Earlier,
}

impl<'a> Search<'a> {
    fn new(graph: &'a SwitchGraph, order: &'a Order) -> Self {
        Search {
            graph,
            order,
            near: Vec::new(),
            down: Vec::new(),
            taken: Vec::new(),
            earlier: Earlier::new(graph),
        }
    }

    /// Settles every switch that has an up-then-down path.
    fn lay(&mut self, destination: usize, before: &[&[u8]], flows: &Flows) {
        let (graph, order) = (self.graph, self.order);
        let home = Course { port: NO_PORT, length: 0, cost: 0 };
        self.down.clear();
        self.down.resize(graph.rows(), NONE);
        self.down[destination] = home;
        for row in order.descending.iter().rev().map(|row| *row as usize) {
            if row != destination {
                self.earlier.mark(graph, row, destination, before);
                let best = self.best(row, destination, &self.down, flows, false);
                self.down[row] = best.map_or(NONE, |best| best.1);
            }
        }
        self.taken.clear();
        self.taken.resize(graph.rows(), NONE);
        self.taken[destination] = home;
        for row in order.descending.iter().map(|row| *row as usize) {
            // Others come down over it, so it goes down.
            if self.taken[row].length != FAR {
                continue;
            }
            self.earlier.mark(graph, row, destination, before);
            let up = self.best(row, destination, &self.taken, flows, true);
            let down = self.best(row, destination, &self.down, flows, false);
            match (up, down) {
                (Some(up), Some(down)) if up.0 < down.0 => self.taken[row] = up.1,
                (Some(up), None) => self.taken[row] = up.1,
                (_, Some(_)) => self.go_down(row, destination),
                (None, None) => {}
            }
        }
    }

    /// Settles a switch and all below it on its way down.
    fn go_down(&mut self, mut row: usize, destination: usize) {
        while row != destination {
            self.taken[row] = self.down[row];
            match self.graph.next(row, self.down[row].port) {
                Some(next) => row = next,
                None => return,
            }
        }
    }

    /// The best course of a switch among its cables up, or down, to where `onward` leads on.
    fn best(
        &self,
        row: usize,
        destination: usize,
        onward: &[Course],
        flows: &Flows,
        up: bool,
    ) -> Option<(Merit, Course)> {
        let limit = self.near[row].saturating_add(DETOUR_MAX);
        let peers = self.graph.switch_peers(row).filter(|(_, peer, _)| {
            self.order.is_up(row, *peer) == up && onward[*peer].length != FAR
        });
        let courses = peers.map(|(port, peer, _)| {
            let length = onward[peer].length.saturating_add(1);
            let cost = onward[peer].cost + flows.loads[self.graph.channel(row, port)];
            let follow = |row: usize| onward[row].port;
            let found = self.earlier.meets(self.graph, (row, port), destination, follow);
            let beyond = length.saturating_sub(limit);
            let merit = (beyond, found.paths, found.cables, length, cost, port);
            (merit, Course { port, length, cost })
        });
        courses.min_by_key(|(merit, _)| *merit)
    }
}
