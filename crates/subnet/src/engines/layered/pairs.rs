//! Pairs of switches with hosts, and the lane each is laid into.

use super::lanes::{Lanes, Wait};
use super::shortest::Ties;
use crate::engines::Datelines;
use crate::engines::trees::{Trees, lengths};
use crate::graph::SwitchGraph;

/// No lane yet.
const NO_LANE: u8 = u8::MAX;

/// Of so many pairs one may be left to be repaired, and so many in small fabrics.
const LEFT_SHARE: usize = 50;
const LEFT_MIN: usize = 16;

/// Lanes that pairs had.
pub(super) struct Before(Vec<(usize, u8)>);

/// Unordered pairs of different switches with hosts; both ways of a pair are in one lane.
pub(super) struct Pairs {
    /// Rows with hosts, ascending.
    rows: Vec<u32>,
    hosts: Vec<u64>,
    /// Lane by pair: that of the i-th and the j-th row, j < i, at i (i - 1) / 2 + j.
    lanes: Vec<u8>,
    /// Pairs with longer paths first: (i, j).
    order: Vec<(u32, u32)>,
    waits: Vec<Wait>,
}

impl Pairs {
    /// All pairs, in VL 0 until laid. Those are laid first that `ties` says have most in common.
    pub(super) fn of(graph: &SwitchGraph, trees: &Trees, ties: Ties<'_>) -> Self {
        let hosted = (0..graph.rows()).filter(|row| graph.has_adapter(*row));
        let rows: Vec<u32> = hosted.map(|row| row as u32).collect();
        let hosts = rows.iter().map(|row| graph.adapters(*row as usize).count() as u64).collect();
        let count = rows.len() * rows.len().saturating_sub(1) / 2;
        let mut keyed = Vec::with_capacity(count);
        for (i, a) in rows.iter().enumerate() {
            let ports = trees.towards(*a as usize).next();
            let lengths = ports.map(|ports| lengths(graph, *a as usize, ports));
            for (j, b) in rows[..i].iter().enumerate() {
                let length = lengths.as_ref().map_or(0, |lengths| lengths[*b as usize]);
                let (a, b) = (*a as usize, *b as usize);
                let kind = match ties {
                    Ties::Dimensions(ways) if is_plain(graph, trees, ways, (a, b)) => {
                        ways.level(a, b).value()
                    }
                    Ties::Dimensions(_) => u8::MAX,
                    _ => 0,
                };
                keyed.push((kind, std::cmp::Reverse(length), i as u32, j as u32));
            }
        }
        keyed.sort_unstable();
        let order = keyed.into_iter().map(|(.., i, j)| (i, j)).collect();
        Pairs { rows, hosts, lanes: vec![0; count], order, waits: Vec::new() }
    }

    /// Lays every pair into the first lane it fits. Gives the rows of those that fit none; nothing
    /// where they are too many to be laid one by one.
    pub(super) fn lay_all(
        &mut self,
        graph: &SwitchGraph,
        trees: &Trees,
        lanes: &mut Lanes<'_>,
    ) -> Option<Vec<(usize, usize)>> {
        let left_max = self.order.len() / LEFT_SHARE + LEFT_MIN;
        self.lanes.fill(NO_LANE);
        let mut left = Vec::new();
        for at in 0..self.order.len() {
            let (i, j) = self.order[at];
            match self.lay(graph, trees, lanes, (i as usize, j as usize)) {
                Some(lane) => self.lanes[index(i as usize, j as usize)] = lane,
                None if left.len() == left_max => return None,
                None => {
                    left.push((self.rows[i as usize] as usize, self.rows[j as usize] as usize));
                }
            }
            lanes.commit();
        }
        Some(left)
    }

    /// The first lane that a pair fits, and puts it there.
    fn lay(
        &mut self,
        graph: &SwitchGraph,
        trees: &Trees,
        lanes: &mut Lanes<'_>,
        pair: (usize, usize),
    ) -> Option<u8> {
        self.gather(graph, trees, lanes, pair);
        let waits = &self.waits;
        (0..lanes.count()).find(|lane| lanes.fit(*lane, waits)).map(|lane| lane as u8)
    }

    /// Puts pairs, named by rows, before all others.
    pub(super) fn advance(&mut self, first: &[(usize, usize)]) {
        let rows = &self.rows;
        let is_first = |(i, j): &(u32, u32)| {
            first.contains(&(rows[*i as usize] as usize, rows[*j as usize] as usize))
        };
        let (mut order, rest): (Vec<_>, Vec<_>) = self.order.iter().copied().partition(is_first);
        order.extend(rest);
        self.order = order;
    }

    /// Whether a pair has a lane.
    pub(super) fn is_laid(&self, a: usize, b: usize) -> bool {
        match (self.rows.binary_search(&(a as u32)), self.rows.binary_search(&(b as u32))) {
            (Ok(i), Ok(j)) if i != j => self.lanes[index(i, j)] != NO_LANE,
            _ => true,
        }
    }

    /// Lays the pairs of one switch with some others anew, trees having changed, and gives the
    /// lanes they had; nothing, and nothing changed, if one of them fits no lane.
    pub(super) fn lay_again(
        &mut self,
        graph: &SwitchGraph,
        trees: &Trees,
        lanes: &mut Lanes<'_>,
        row: usize,
        is_other: impl Fn(usize) -> bool,
    ) -> Option<Before> {
        let mut found = Vec::new();
        let Ok(i) = self.rows.binary_search(&(row as u32)) else { return Some(Before(found)) };
        let mark = lanes.mark();
        for j in 0..self.rows.len() {
            if j == i || !is_other(self.rows[j] as usize) {
                continue;
            }
            // What has no lane yet is not looked for here.
            if self.lanes[index(i, j)] == NO_LANE {
                continue;
            }
            let Some(lane) = self.lay(graph, trees, lanes, (i, j)) else {
                lanes.undo_to(mark);
                return None;
            };
            found.push((index(i, j), lane));
        }
        for (pair, lane) in &mut found {
            std::mem::swap(&mut self.lanes[*pair], lane);
        }
        Some(Before(found))
    }

    /// Gives pairs the lanes they had; what they put into these is there still.
    pub(super) fn restore(&mut self, before: Before) {
        before.0.into_iter().for_each(|(pair, lane)| self.lanes[pair] = lane);
    }

    /// Lays one pair, named by rows; false if it fits no lane.
    pub(super) fn lay_one(
        &mut self,
        graph: &SwitchGraph,
        trees: &Trees,
        lanes: &mut Lanes<'_>,
        (a, b): (usize, usize),
    ) -> bool {
        let at = |row: usize| self.rows.binary_search(&(row as u32));
        let (Ok(i), Ok(j)) = (at(a), at(b)) else { return true };
        let Some(lane) = self.lay(graph, trees, lanes, (i, j)) else { return false };
        self.lanes[index(i, j)] = lane;
        true
    }

    /// Moves pairs to lanes with fewer pairs of hosts, where they fit.
    pub(super) fn spread(&mut self, graph: &SwitchGraph, trees: &Trees, lanes: &mut Lanes<'_>) {
        let mut loads = vec![0u64; lanes.count()];
        for (i, j) in &self.order {
            let (i, j) = (*i as usize, *j as usize);
            loads[usize::from(self.lanes[index(i, j)])] += self.hosts[i] * self.hosts[j];
        }
        let mut by_load: Vec<usize> = (0..loads.len()).collect();
        for at in (0..self.order.len()).rev() {
            let (i, j) = (self.order[at].0 as usize, self.order[at].1 as usize);
            let (own, weight) =
                (usize::from(self.lanes[index(i, j)]), self.hosts[i] * self.hosts[j]);
            by_load.sort_by_key(|lane| (loads[*lane], *lane));
            if loads[by_load[0]] + weight > loads[own] {
                continue;
            }
            self.gather(graph, trees, lanes, (i, j));
            let lighter = by_load.iter().take_while(|lane| loads[**lane] + weight <= loads[own]);
            let waits = &self.waits;
            if let Some(lane) = lighter.copied().find(|lane| lanes.fit(*lane, waits)) {
                self.lanes[index(i, j)] = lane as u8;
                loads[own] -= weight;
                loads[lane] += weight;
            }
            lanes.commit();
        }
    }

    /// How many lanes hold pairs, counted up to the highest.
    pub(super) fn lanes_used(&self) -> u8 {
        self.lanes.iter().copied().max().map_or(1, |lane| lane + 1)
    }

    /// The lane of every ordered pair of switches, source-major.
    pub(super) fn levels(&self, rows: usize) -> Vec<u8> {
        let mut levels = vec![0; rows * rows];
        for (i, a) in self.rows.iter().enumerate() {
            for (j, b) in self.rows[..i].iter().enumerate() {
                let lane = self.lanes[index(i, j)];
                levels[*a as usize * rows + *b as usize] = lane;
                levels[*b as usize * rows + *a as usize] = lane;
            }
        }
        levels
    }

    /// The dependencies of a pair, both ways over all trees, each once.
    fn gather(
        &mut self,
        graph: &SwitchGraph,
        trees: &Trees,
        lanes: &Lanes<'_>,
        (i, j): (usize, usize),
    ) {
        self.waits.clear();
        let (a, b) = (self.rows[i] as usize, self.rows[j] as usize);
        for (source, destination) in [(a, b), (b, a)] {
            for ports in trees.towards(destination) {
                let mut row = source;
                let mut last = None;
                for _ in 0..graph.rows() {
                    let Some(next) = graph.next(row, ports[row]) else { break };
                    if let Some(last) = last {
                        self.waits.push(lanes.wait(last, ports[row]));
                    }
                    last = Some(graph.channel(row, ports[row]));
                    row = next;
                }
            }
        }
        self.waits.sort_unstable();
        self.waits.dedup();
    }
}

/// Of a pair of two different places.
fn index(i: usize, j: usize) -> usize {
    let (high, low) = (i.max(j), i.min(j));
    high * (high - 1) / 2 + low
}

/// Whether a pair's paths are those that dimension order takes on a whole grid.
fn is_plain(graph: &SwitchGraph, trees: &Trees, ways: &Datelines, (a, b): (usize, usize)) -> bool {
    [(a, b), (b, a)].into_iter().all(|(source, destination)| {
        trees.towards(destination).all(|ports| {
            let mut row = source;
            while let Some(next) = graph.next(row, ports[row]) {
                if ways.port(row, destination) != Some(ports[row]) {
                    return false;
                }
                row = next;
            }
            true
        })
    })
}
