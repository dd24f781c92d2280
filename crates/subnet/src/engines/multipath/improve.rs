//! Changes single entries of an up-then-down tree as long as that keeps more sources clear of their
//! other paths: a switch is laid without knowing who will come over it, this looks at all of them.

use super::avoid::DETOUR_MAX;
use super::earlier::Earlier;
use crate::engines::order::Order;
use crate::graph::SwitchGraph;

/// What a cable beyond the longest detour, an earlier path met, and a cable shared with it cost, in
/// cables of the path.
const BEYOND: u64 = 16;
const MET: u64 = 16;
const SHARED: u64 = 2;

/// How often all entries of a tree are looked at.
const ROUNDS_MAX: usize = 4;

/// One tree after another being improved.
pub(super) struct Improve<'a> {
    graph: &'a SwitchGraph,
    order: &'a Order,
    hosts: Vec<u64>,
    earlier: Earlier,
    /// Of the path of every switch.
    judged: Vec<Judged>,
    /// Switches whose paths lead over the one at hand, itself first, and what they would cost.
    above: Vec<usize>,
    comes_down: bool,
    changed: Vec<Judged>,
}

/// What a path costs all hosts of its switch, and whether it meets an earlier one.
#[derive(Clone, Copy, Debug)]
struct Judged {
    cost: u64,
    meets: bool,
}

/// A tree to be improved: output ports by row.
pub(super) struct Tree<'a> {
    pub(super) destination: usize,
    /// Distance of every switch to the destination.
    pub(super) near: &'a [u32],
    /// The trees before.
    pub(super) before: &'a [&'a [u8]],
}

impl<'a> Improve<'a> {
    pub(super) fn new(graph: &'a SwitchGraph, order: &'a Order) -> Self {
        Improve {
            graph,
            order,
            hosts: (0..graph.rows()).map(|row| graph.adapters(row).count() as u64).collect(),
            earlier: Earlier::new(graph),
            judged: Vec::new(),
            above: Vec::new(),
            comes_down: false,
            changed: Vec::new(),
        }
    }

    /// Improves the entries of a tree; whether any was changed.
    pub(super) fn entries(&mut self, tree: &Tree<'_>, ports: &mut [u8]) -> bool {
        self.judged.clear();
        for row in 0..self.graph.rows() {
            let judged = self.judge(row, tree, ports);
            self.judged.push(judged);
        }
        let mut changed = false;
        for _ in 0..ROUNDS_MAX {
            let mut any = false;
            for row in self.passed(tree, ports) {
                any |= self.switch(row, tree, ports);
            }
            changed |= any;
            if !any {
                break;
            }
        }
        changed
    }

    /// The switches on paths that meet others.
    fn passed(&self, tree: &Tree<'_>, ports: &[u8]) -> Vec<usize> {
        let mut passed = vec![false; self.graph.rows()];
        for row in (0..self.graph.rows()).filter(|row| self.judged[*row].meets) {
            let mut at = row;
            while at != tree.destination && !std::mem::replace(&mut passed[at], true) {
                match self.graph.next(at, ports[at]) {
                    Some(next) => at = next,
                    None => break,
                }
            }
        }
        (0..self.graph.rows()).filter(|row| passed[*row]).collect()
    }

    /// Gives one switch the port that costs all who come over it least; whether that is another.
    fn switch(&mut self, row: usize, tree: &Tree<'_>, ports: &mut [u8]) -> bool {
        self.gather(row, ports);
        self.comes_down = self.comes_down(row, ports);
        let mut least: u64 = self.above.iter().map(|row| self.judged[*row].cost).sum();
        let own = ports[row];
        let mut best: Option<(u8, Vec<Judged>)> = None;
        let graph = self.graph;
        for (port, peer, _) in graph.switch_peers(row) {
            if port == own || !self.may(row, peer, tree.destination, ports) {
                continue;
            }
            ports[row] = port;
            self.changed.clear();
            let mut sum = 0;
            for at in 0..self.above.len() {
                let judged = self.judge(self.above[at], tree, ports);
                self.changed.push(judged);
                sum += judged.cost;
                if sum >= least {
                    break;
                }
            }
            if sum < least {
                least = sum;
                best = Some((port, self.changed.clone()));
            }
            ports[row] = own;
        }
        let Some((port, judged)) = best else { return false };
        ports[row] = port;
        for (row, judged) in self.above.iter().zip(judged) {
            self.judged[*row] = judged;
        }
        true
    }

    /// Gathers the switches whose paths lead over one, itself first.
    fn gather(&mut self, row: usize, ports: &[u8]) {
        self.above.clear();
        self.above.push(row);
        let mut next = 0;
        while let Some(&row) = self.above.get(next) {
            next += 1;
            for (_, peer, back) in self.graph.switch_peers(row) {
                if ports[peer] == back {
                    self.above.push(peer);
                }
            }
        }
    }

    /// Whether a switch may send to a neighbour: no circle is closed, and all paths of hosts go up
    /// and then down.
    fn may(&self, row: usize, peer: usize, destination: usize, ports: &[u8]) -> bool {
        let mut at = peer;
        let mut down = !self.order.is_up(row, peer);
        while at != destination {
            let Some(next) = self.graph.next(at, ports[at]) else { return false };
            let up = self.order.is_up(at, next);
            if at == row || (up && down) {
                return false;
            }
            down |= !up;
            at = next;
        }
        if !self.order.is_up(row, peer) {
            return true;
        }
        // Who comes down to a switch must go down from it.
        !self.comes_down
    }

    /// Whether a host's path comes down to the switch that the others were gathered for. Entries
    /// that carry management alone need not keep to up and down.
    fn comes_down(&self, row: usize, ports: &[u8]) -> bool {
        let hosts = self.above[1..].iter().filter(|above| self.hosts[**above] > 0);
        let last = |above: &usize| {
            let mut at = *above;
            while let Some(next) = self.graph.next(at, ports[at]).filter(|next| *next != row) {
                at = next;
            }
            at
        };
        hosts.map(last).any(|last| self.order.is_up(row, last))
    }

    /// The path of a switch; of one without hosts nothing counts.
    fn judge(&mut self, row: usize, tree: &Tree<'_>, ports: &[u8]) -> Judged {
        if self.hosts[row] == 0 || row == tree.destination {
            return Judged { cost: 0, meets: false };
        }
        self.earlier.mark(self.graph, row, tree.destination, tree.before);
        let first = (row, ports[row]);
        let meeting = self.earlier.meets(self.graph, first, tree.destination, |row| ports[row]);
        let limit = tree.near[row].saturating_add(DETOUR_MAX);
        let beyond = u64::from(meeting.length.saturating_sub(limit));
        let [length, met, shared] = [meeting.length, meeting.paths, meeting.cables].map(u64::from);
        let cost = length + BEYOND * beyond + MET * met + SHARED * shared;
        Judged { cost: self.hosts[row] * cost, meets: met > 0 }
    }
}
