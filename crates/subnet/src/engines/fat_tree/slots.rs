//! The closed form: which up port a switch gives to the host at position j.
//!
//! In an extended generalised fat tree every switch of level l has copy digits b1..bl, and its
//! parents differ in b(l+1) alone. Digits are recovered from the cables: the first leaf's parents
//! are numbered in port order, and so are theirs, and what is below a numbered switch shares its
//! digits; a switch not yet reached takes a digit its siblings leave free. The positions of a
//! missing cable go to other cables of the switch, an equal number to each. Any numbering that
//! holds for all cables will do, so names, GUIDs and port conventions do not matter.

use super::super::order::Order;
use crate::graph::SwitchGraph;
use clearlane_fabric::Endpoint;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Up ports of every switch in the order of the closed form.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    starts: Vec<u32>,
    /// 0 where all are missing.
    ports: Vec<u8>,
    peers: Vec<u32>,
    /// By slot: the slot of the same switch whose cable it has, itself where none is missing.
    cable_of: Vec<u16>,
    /// By row: j is divided by this before it chooses the slot.
    divisors: Vec<u32>,
    /// Switches whose cables do not follow the digits.
    pub(super) irregular: usize,
    /// Cables that a whole tree of this shape has and this one has not.
    pub(super) missing: usize,
}

/// Turns that are told apart where a cable is missing.
const TURNS_MAX: usize = 16;

impl Slots {
    /// The slots of all switches.
    pub(super) fn of(graph: &SwitchGraph, order: &Order) -> Self {
        let digits = digits(graph, order);
        let top = order.levels.iter().max().map_or(0, |level| *level as usize);
        // By level: digits of the parents, and parallel cables to one parent.
        let mut widths = vec![1usize; top + 1];
        let mut parallels = vec![1usize; top + 1];
        for row in 0..graph.rows() {
            let level = order.levels[row] as usize;
            if let Some(digit) = digits[row].as_ref().and_then(|digits| digits.last()) {
                widths[level - 1] = widths[level - 1].max(usize::from(*digit) + 1);
            }
            let most = cables_by_parent(graph, order, row).values().map(Vec::len).max();
            parallels[level] = parallels[level].max(most.unwrap_or(1));
        }
        let mut slots = Slots {
            starts: vec![0],
            ports: Vec::new(),
            peers: Vec::new(),
            cable_of: Vec::new(),
            divisors: Vec::with_capacity(graph.rows()),
            irregular: 0,
            missing: 0,
        };
        for row in 0..graph.rows() {
            let level = order.levels[row] as usize;
            let divisor = widths[..level].iter().fold(1usize, |n, width| n.saturating_mul(*width));
            slots.divisors.push(u32::try_from(divisor).unwrap_or(u32::MAX));
            slots.push(graph, order, row, &digits, (widths[level], parallels[level]));
        }
        slots
    }

    fn push(
        &mut self,
        graph: &SwitchGraph,
        order: &Order,
        row: usize,
        digits: &[Option<Vec<u16>>],
        (width, parallel): (usize, usize),
    ) {
        let first = self.ports.len();
        let parents = cables_by_parent(graph, order, row);
        let own = digits[row].as_ref();
        let mut used = vec![false; width];
        let follows = parents.keys().all(|parent| {
            let digits = digits[*parent].as_ref();
            let Some((digit, before)) = digits.and_then(|digits| digits.split_last()) else {
                return false;
            };
            let fresh = used.get_mut(usize::from(*digit)).map(|u| !std::mem::replace(u, true));
            fresh == Some(true) && own.is_some_and(|own| own == before)
        });
        if follows && !parents.is_empty() {
            self.ports.resize(first + width * parallel, 0);
            self.peers.resize(first + width * parallel, u32::MAX);
            self.missing += width * parallel;
            for (parent, cables) in &parents {
                let digit = digits[*parent].as_ref().and_then(|digits| digits.last());
                let digit = digit.map_or(0, |digit| usize::from(*digit));
                for (index, port) in cables.iter().enumerate() {
                    self.ports[first + index * width + digit] = *port;
                    self.peers[first + index * width + digit] = *parent as u32;
                    self.missing -= 1;
                }
            }
            let slots = (width * parallel).saturating_mul(self.divisors[row] as usize);
            let gapped = self.ports[first..].contains(&0);
            let hosts = if gapped { hosts_below(graph, order, row) } else { 0 };
            self.fill_gaps(first, hosts.div_ceil(slots).min(TURNS_MAX));
        } else {
            for (port, peer, _) in graph.switch_peers(row) {
                if order.is_up(row, peer) {
                    self.ports.push(port);
                    self.peers.push(peer as u32);
                }
            }
            self.irregular += usize::from(self.ports.len() > first);
            self.cable_of.extend(0..(self.ports.len() - first) as u16);
        }
        self.starts.push(self.ports.len() as u32);
    }

    /// Gives every gap of a switch another of its cables, the one half way round or the next that
    /// has the fewest. A switch that has lost up to half of its up cables then loads none with more
    /// than two of any run of positions as long as it has slots; and what two switches lack alike,
    /// they replace alike. A switch with more hosts below it than slots meets each slot in several
    /// turns, and another cable may stand in at each.
    fn fill_gaps(&mut self, first: usize, turns: usize) {
        let count = self.ports.len() - first;
        let gaps: Vec<usize> = (0..count).filter(|slot| self.ports[first + slot] == 0).collect();
        let turns = if gaps.is_empty() || gaps.len() == count { 1 } else { turns.max(1) };
        self.cable_of.extend(0..(count * turns) as u16);
        for _ in 1..turns {
            self.ports.extend_from_within(first..first + count);
            self.peers.extend_from_within(first..first + count);
        }
        if gaps.len() == count {
            return;
        }
        let mut taken = vec![0; count];
        for gap in (0..turns).flat_map(|turn| gaps.iter().map(move |gap| turn * count + gap)) {
            let others = (0..count).map(|step| (gap + count.div_ceil(2) + step) % count);
            let whole = others.filter(|other| !gaps.contains(other));
            let Some(other) = whole.min_by_key(|other| taken[*other]) else { return };
            taken[other] += 1;
            self.ports[first + gap] = self.ports[first + other];
            self.peers[first + gap] = self.peers[first + other];
            self.cable_of[first + gap] = (gap - gap % count + other) as u16;
        }
    }

    /// The position that everybody uses for a host on a leaf: its own, but for digits whose cable
    /// is missing on the way up from there. These are replaced as the switches on that way replace
    /// them, so that all flows to the host come down by one cable of its leaf.
    pub(super) fn home(&self, leaf: usize, mut j: u32) -> u32 {
        let mut row = leaf;
        loop {
            let (first, end) = (self.starts[row], self.starts[row + 1]);
            if first == end {
                return j;
            }
            let divisor = self.divisors[row];
            let slot = j / divisor % (end - first);
            let other = u32::from(self.cable_of[(first + slot) as usize]);
            j = j - slot * divisor + other * divisor;
            let next = self.peers[(first + slot) as usize];
            if next == u32::MAX {
                return j;
            }
            row = next as usize;
        }
    }

    /// Port and peer row that the closed form gives to position `j` at `row`, another cable in
    /// place of a missing one; nothing at the top.
    #[inline]
    pub(super) fn choose(&self, row: usize, j: u32) -> Option<(u8, usize)> {
        let (first, end) = (self.starts[row], self.starts[row + 1]);
        if first == end {
            return None;
        }
        let at = (first + j / self.divisors[row] % (end - first)) as usize;
        (self.ports[at] != 0).then(|| (self.ports[at], self.peers[at] as usize))
    }
}

/// How many hosts are on a switch and the switches below it.
fn hosts_below(graph: &SwitchGraph, order: &Order, row: usize) -> usize {
    let mut seen = BTreeSet::from([row]);
    let mut stack = vec![row];
    let mut hosts = 0;
    while let Some(row) = stack.pop() {
        hosts += graph.adapters(row).count();
        let below = graph.switch_peers(row).filter(|(_, peer, _)| order.is_up(*peer, row));
        stack.extend(below.filter(|(_, peer, _)| seen.insert(*peer)).map(|(_, peer, _)| peer));
    }
    hosts
}

/// Parents one level up with the ports that lead to them, in port order.
fn cables_by_parent(graph: &SwitchGraph, order: &Order, row: usize) -> BTreeMap<usize, Vec<u8>> {
    let mut parents: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
    for (port, peer, _) in graph.switch_peers(row) {
        if order.is_up(row, peer) && order.levels[peer] == order.levels[row] + 1 {
            parents.entry(peer).or_default().push(port);
        }
    }
    parents
}

/// Copy digits of every switch, as many as its level; nothing where the cables leave them open.
fn digits(graph: &SwitchGraph, order: &Order) -> Vec<Option<Vec<u16>>> {
    let mut digits: Vec<Option<Vec<u16>>> =
        order.levels.iter().map(|level| (*level == 0).then(Vec::new)).collect();
    let leaves: Vec<usize> = (0..graph.rows()).filter(|row| order.levels[*row] == 0).collect();
    let mut queue = VecDeque::new();
    let mut expanded = vec![false; graph.rows()];
    for leaf in leaves {
        queue.push_back(leaf);
        while let Some(row) = queue.pop_front() {
            if std::mem::replace(&mut expanded[row], true) {
                continue;
            }
            let known: Vec<u16> = digits[row].clone().unwrap_or_default();
            for (_, parent, _) in graph.switch_peers(row) {
                if order.levels[parent] == order.levels[row] + 1 && digits[parent].is_none() {
                    let taken = siblings_digits(graph, order, parent, &digits);
                    let free = (0..).find(|digit| !taken.contains(digit)).unwrap_or(0);
                    let mut label = known.clone();
                    label.push(free);
                    digits[parent] = Some(label);
                    share(graph, order, parent, &mut digits, &mut queue);
                }
            }
        }
    }
    digits
}

/// Last digits of the switches that share a child with this one.
fn siblings_digits(
    graph: &SwitchGraph,
    order: &Order,
    row: usize,
    digits: &[Option<Vec<u16>>],
) -> BTreeSet<u16> {
    let at = |level: u32| move |peer: &usize| order.levels[*peer] == level;
    let level = order.levels[row];
    let peers = |row: usize| graph.switch_peers(row).map(|(_, peer, _)| peer);
    let children = peers(row).filter(|peer| order.levels[*peer] + 1 == level);
    let siblings = children.flat_map(|child| peers(child).filter(at(level)));
    siblings.filter_map(|sibling| digits[sibling].as_ref()?.last().copied()).collect()
}

/// Hands the digits of a switch down to those below it and queues all that are new.
fn share(
    graph: &SwitchGraph,
    order: &Order,
    from: usize,
    digits: &mut [Option<Vec<u16>>],
    queue: &mut VecDeque<usize>,
) {
    let mut stack = vec![from];
    while let Some(row) = stack.pop() {
        queue.push_back(row);
        let Some(known) = digits[row].clone() else { continue };
        let Some((_, below)) = known.split_last() else { continue };
        for (_, peer, _) in graph.switch_peers(row) {
            if order.levels[peer] + 1 == order.levels[row] && digits[peer].is_none() {
                digits[peer] = Some(below.to_vec());
                stack.push(peer);
            }
        }
    }
}

/// The position of every adapter port that is plugged into a switch, counted in each connected
/// part of the fabric: leaves of one subtree stand together, subtrees and leaves in the order of
/// their first host, hosts of a leaf in the order of the fabric. Where hosts are in rank order this
/// is the rank. Second ports of adapters come after all first ones.
pub(super) fn positions(graph: &SwitchGraph, order: &Order) -> BTreeMap<Endpoint, u32> {
    let top = order.levels.iter().max().copied().unwrap_or(0);
    let mut groups = Groups { parent: (0..graph.rows()).collect() };
    let mut firsts: Vec<Vec<Endpoint>> = Vec::new();
    let mut by_level: Vec<Vec<(usize, usize)>> = vec![Vec::new(); top as usize + 1];
    for row in 0..graph.rows() {
        for (_, peer, _) in graph.switch_peers(row) {
            by_level[order.levels[row].max(order.levels[peer]) as usize].push((row, peer));
        }
    }
    let hosts: Vec<(usize, Endpoint)> = (0..graph.rows())
        .flat_map(|row| graph.adapters(row).map(move |(_, end)| (row, end)))
        .collect();
    for cables in &by_level {
        for (a, b) in cables {
            groups.join(*a, *b);
        }
        let mut first: BTreeMap<usize, Endpoint> = BTreeMap::new();
        for (row, end) in &hosts {
            let place = first.entry(groups.find(*row)).or_insert(*end);
            *place = (*place).min(*end);
        }
        firsts.push(hosts.iter().map(|(row, _)| first[&groups.find(*row)]).collect());
    }
    let leaf_first: BTreeMap<usize, Endpoint> = hosts.iter().rev().fold(
        BTreeMap::new(),
        |mut first: BTreeMap<usize, Endpoint>, (row, end)| {
            let place = first.entry(*row).or_insert(*end);
            *place = (*place).min(*end);
            first
        },
    );
    let mut ordinals: BTreeMap<clearlane_fabric::NodeId, Vec<Endpoint>> = BTreeMap::new();
    for (_, end) in &hosts {
        ordinals.entry(end.node).or_default().push(*end);
    }
    let mut keyed: Vec<(Endpoint, usize, Vec<Endpoint>, Endpoint)> = Vec::new();
    for (index, (row, end)) in hosts.iter().enumerate() {
        let mut key: Vec<Endpoint> = firsts.iter().rev().map(|first| first[index]).collect();
        let part = key.first().copied().unwrap_or(*end);
        key.push(leaf_first[row]);
        let ordinal = ordinals[&end.node].iter().filter(|other| **other < *end).count();
        keyed.push((part, ordinal, key, *end));
    }
    keyed.sort();
    let mut positions = BTreeMap::new();
    for part in keyed.chunk_by(|a, b| a.0 == b.0) {
        for (index, (_, _, _, end)) in part.iter().enumerate() {
            positions.insert(*end, index as u32);
        }
    }
    positions
}

/// Disjoint sets of switches.
struct Groups {
    parent: Vec<usize>,
}

impl Groups {
    fn find(&mut self, mut row: usize) -> usize {
        while self.parent[row] != row {
            self.parent[row] = self.parent[self.parent[row]];
            row = self.parent[row];
        }
        row
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        self.parent[a.max(b)] = a.min(b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_fabric::topologies::build;

    #[test]
    fn digits_follow_every_cable_of_a_whole_tree() {
        for spec in ["xgft:3,3,3,3;1,3,2,2", "xgft:2,2,4;1,2,2;1,2,3", "fat-tree:648", "star:4"] {
            let fabric = build(spec).unwrap();
            let graph = SwitchGraph::of(&fabric);
            let slots = Slots::of(&graph, &Order::of(&graph));
            assert_eq!((slots.irregular, slots.missing), (0, 0), "{spec}");
        }
    }

    #[test]
    fn a_dead_cable_leaves_one_gap_and_no_disorder() {
        let mut fabric = build("fat-tree:3456").unwrap();
        let cables: Vec<String> = fabric.links().iter().map(|link| fabric.cable(link)).collect();
        let dead = ["leaf000[13]", "leaf001[14]", "mid000[20]", "mid017[15]"];
        fabric.unplug(|id, _| dead.iter().any(|dead| cables[id.index()].contains(dead)));
        let graph = SwitchGraph::of(&fabric);
        let slots = Slots::of(&graph, &Order::of(&graph));
        assert_eq!((slots.irregular, slots.missing), (0, 4));
    }

    #[test]
    fn positions_of_a_built_tree_are_ranks() {
        let fabric = build("xgft:3,3,3;1,3,2").unwrap();
        let graph = SwitchGraph::of(&fabric);
        let positions = positions(&graph, &Order::of(&graph));
        let ranks: Vec<u32> = graph.hosts(&fabric).iter().map(|h| positions[&h.end]).collect();
        assert!(ranks.into_iter().eq(0..27));
    }
}
