//! Paths between switches as in-trees: for a destination switch one or several, each with one
//! output port per switch. Several let the hosts of one switch be reached over different cables.

use crate::ForwardingTables;
use crate::graph::{Peer, SwitchGraph, Target};

/// "No port" in a table.
pub(super) const NO_PORT: u8 = u8::MAX;

/// No path.
pub(super) const FAR: u32 = u32::MAX;

/// Most trees of one destination switch.
const TREES_MAX: usize = 128;

/// In-trees by row of the destination.
#[derive(Clone, Debug)]
pub(super) struct Trees {
    rows: usize,
    /// Of each destination, tree after tree: the output port of every row.
    of: Vec<Vec<u8>>,
}

impl Trees {
    /// None yet.
    pub(super) fn new(rows: usize) -> Self {
        Trees { rows, of: vec![Vec::new(); rows] }
    }

    /// Adds a tree with no entry yet; gives it to be filled.
    pub(super) fn push(&mut self, destination: usize) -> &mut [u8] {
        let ports = &mut self.of[destination];
        let first = ports.len();
        ports.resize(first + self.rows, NO_PORT);
        &mut ports[first..]
    }

    /// The trees towards a destination.
    pub(super) fn towards(&self, destination: usize) -> impl Iterator<Item = &[u8]> {
        self.of[destination].chunks_exact(self.rows.max(1))
    }

    /// One tree towards a destination, by its number modulo how many there are; nothing where there
    /// is none.
    pub(super) fn tree(&self, destination: usize, number: usize) -> Option<&[u8]> {
        let count = self.of[destination].len() / self.rows.max(1);
        let first = number.checked_rem(count)? * self.rows;
        Some(&self.of[destination][first..first + self.rows])
    }

    /// Changes one entry of the first tree towards a destination.
    pub(super) fn set(&mut self, destination: usize, row: usize, port: u8) {
        if let Some(entry) = self.of[destination].get_mut(row) {
            *entry = port;
        }
    }

    /// Exchanges the trees towards a destination with those of another set.
    pub(super) fn swap(&mut self, other: &mut Trees, destination: usize) {
        std::mem::swap(&mut self.of[destination], &mut other.of[destination]);
    }

    /// The switches on the path along the first tree, the source first, without the destination.
    pub(super) fn path(
        &self,
        graph: &SwitchGraph,
        source: usize,
        destination: usize,
    ) -> Vec<usize> {
        let mut path = Vec::new();
        let Some(ports) = self.towards(destination).next() else { return path };
        let mut row = source;
        while row != destination && path.len() < self.rows {
            path.push(row);
            match graph.next(row, ports[row]) {
                Some(next) => row = next,
                None => break,
            }
        }
        path
    }

    /// Takes the trees of another set towards destinations that have none.
    pub(super) fn adopt(&mut self, other: &Trees) {
        for (own, other) in self.of.iter_mut().zip(&other.of).filter(|(own, _)| own.is_empty()) {
            own.clone_from(other);
        }
    }

    /// Writes the entries of every LID: those of hosts take the trees of their switch in turn.
    pub(super) fn fill(&self, targets: &[Target], tables: &mut ForwardingTables) {
        for of_switch in targets.chunk_by(|a, b| a.row == b.row) {
            let destination = of_switch[0].row as usize;
            let trees: Vec<&[u8]> = self.towards(destination).collect();
            if trees.is_empty() {
                continue;
            }
            let choice = taken_in_turn(of_switch, trees.len());
            for row in (0..self.rows).filter(|row| *row != destination) {
                let entries = tables.row_mut(row);
                for (target, tree) in of_switch.iter().zip(&choice) {
                    entries[usize::from(target.lid.value())] = trees[*tree][row];
                }
            }
        }
    }
}

/// Which of `count` trees each LID of a switch takes.
pub(super) fn taken_in_turn(of_switch: &[Target], count: usize) -> Vec<usize> {
    let mut taken = 0;
    let next = |target: &Target| {
        let tree = taken % count;
        taken += usize::from(target.exit != 0);
        tree
    };
    of_switch.iter().map(next).collect()
}

/// How many trees each destination switch gets: one per host LID, and one where there is none.
pub(super) fn counts(graph: &SwitchGraph, targets: &[Target]) -> Vec<usize> {
    let mut counts = vec![0; graph.rows()];
    for target in targets.iter().filter(|target| target.exit != 0) {
        counts[target.row as usize] += 1;
    }
    counts.into_iter().map(|count| count.clamp(1, TREES_MAX)).collect()
}

/// Flows on each channel, every host sending to every tree.
#[derive(Clone, Debug)]
pub(super) struct Flows {
    hosts: Vec<u64>,
    /// By channel.
    pub(super) loads: Vec<u64>,
    passing: Vec<u64>,
    order: Vec<u32>,
}

impl Flows {
    /// No flow yet.
    pub(super) fn new(graph: &SwitchGraph) -> Self {
        let hosts = (0..graph.rows()).map(|row| graph.adapters(row).count() as u64).collect();
        let loads = vec![0; graph.channels()];
        Flows { hosts, loads, passing: Vec::new(), order: Vec::new() }
    }

    /// Adds the flows along one tree; `distances` grow along it away from its destination.
    pub(super) fn add(&mut self, graph: &SwitchGraph, ports: &[u8], distances: &[u32]) {
        self.passing.clone_from(&self.hosts);
        self.order.clear();
        self.order.extend((0..graph.rows() as u32).filter(|row| {
            let distance = distances[*row as usize];
            distance != FAR && distance != 0
        }));
        self.order.sort_unstable_by_key(|row| std::cmp::Reverse(distances[*row as usize]));
        for row in &self.order {
            let row = *row as usize;
            let port = ports[row];
            if let Peer::Switch { row: next, .. } = graph.peer(row, port) {
                self.loads[graph.channel(row, port)] += self.passing[row];
                self.passing[next as usize] += self.passing[row];
            }
        }
    }
}

/// Length of every path along one tree, in cables; [`FAR`] where it does not arrive.
pub(super) fn lengths(graph: &SwitchGraph, destination: usize, ports: &[u8]) -> Vec<u32> {
    let mut lengths = vec![FAR; graph.rows()];
    lengths[destination] = 0;
    let mut path = Vec::new();
    for start in 0..graph.rows() {
        let mut row = start;
        path.clear();
        while lengths[row] == FAR && path.len() <= graph.rows() {
            path.push(row);
            match graph.next(row, ports[row]) {
                Some(next) => row = next,
                None => break,
            }
        }
        let mut length = lengths[row];
        for row in path.iter().rev() {
            length = length.saturating_add(1);
            lengths[*row] = length;
        }
    }
    lengths
}
