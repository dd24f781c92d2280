//! The careful choice on damaged trees: where a host's entry goes whose cable is missing.
//!
//! In shift permutation k rank i sends to rank i + k, so a leaf's entry for rank j carries one flow
//! in each of the shifts j - i of its hosts i. With the load of every link in every shift at hand,
//! an entry goes where the sum over its shifts of 4^(worst link of the path) grows least.

use super::relief::Relief;
use super::{FAR, Fill, NO_PORT};
use crate::graph::{Host, Peer, SwitchGraph, Target};
use clearlane_fabric::{Endpoint, Fabric};
use std::collections::BTreeMap;

/// An entry put off until all others are set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pending {
    pub(super) lid: u16,
    pub(super) row: u32,
}

/// What makes one candidate better than another, the smallest being the best: cost, whether it is
/// another parent than the last one, and whose turn it is.
type Merit = (u64, bool, usize);

/// Most link loads that are kept: one byte per switch output and shift.
const LOADS_MAX: usize = 64 << 20;

/// Ranks, and the load of every link in every shift permutation.
pub(super) struct Shifts {
    pub(super) hosts: Vec<Host>,
    ranks: BTreeMap<Endpoint, u32>,
    /// Ranks on each switch.
    pub(super) on_switch: Vec<Vec<u32>>,
    pub(super) channels: usize,
    /// At `channel * hosts + shift`; empty until needed.
    pub(super) loads: Vec<u8>,
}

impl Shifts {
    /// Nothing where the loads would take too much memory.
    pub(super) fn new(fabric: &Fabric, graph: &SwitchGraph, targets: &[Target]) -> Option<Self> {
        let hosts = graph.hosts(fabric);
        let channels = graph.channels();
        if targets.is_empty() || channels.saturating_mul(hosts.len()) > LOADS_MAX {
            return None;
        }
        let mut on_switch = vec![Vec::new(); graph.rows()];
        let mut ranks = BTreeMap::new();
        for (rank, host) in hosts.iter().enumerate() {
            on_switch[host.row as usize].push(rank as u32);
            ranks.insert(host.end, rank as u32);
        }
        Some(Shifts { hosts, ranks, on_switch, channels, loads: Vec::new() })
    }

    /// Whether a target takes part in shifts: the first LID of a host's port.
    pub(super) fn tracks(&self, target: &Target) -> bool {
        target.owner.offset == 0 && target.exit != 0 && self.ranks.contains_key(&target.owner.end)
    }

    /// The rank of a target that takes part.
    pub(super) fn rank(&self, target: &Target) -> u32 {
        self.ranks[&target.owner.end]
    }

    /// The shift in which rank `from` sends to rank `to`.
    pub(super) fn shift(&self, from: u32, to: u32) -> usize {
        let count = self.hosts.len();
        (to as usize + count - from as usize) % count
    }

    /// Adds one flow from each host of a switch to `to` along a path.
    fn add(&mut self, row: usize, to: u32, path: &[usize]) {
        let count = self.hosts.len();
        for index in 0..self.on_switch[row].len() {
            let shift = self.shift(self.on_switch[row][index], to);
            for channel in path {
                let load = &mut self.loads[channel * count + shift];
                *load = load.saturating_add(1);
            }
        }
    }

    /// What it would cost to add that.
    fn cost(&self, row: usize, to: u32, path: &[usize]) -> u64 {
        const EXPONENT_MAX: u8 = 12;
        let count = self.hosts.len();
        let worst = |from: &u32| {
            let shift = self.shift(*from, to);
            path.iter().map(|channel| self.loads[channel * count + shift]).max().unwrap_or(0)
        };
        let cost = |from: &u32| 1u64 << (2 * worst(from).saturating_add(1).min(EXPONENT_MAX));
        self.on_switch[row].iter().map(cost).sum()
    }
}

impl Fill<'_> {
    /// Chooses all pending entries, those of targets with the most of them first.
    pub(super) fn rehome(&mut self, targets: &[Target]) {
        if self.slots.missing == 0 && self.pending.is_empty() {
            return;
        }
        let Some(mut shifts) = self.shifts.take() else { return };
        self.load_all(&mut shifts, targets);
        let pending = std::mem::take(&mut self.pending);
        let mut by_lid: BTreeMap<u16, Vec<u32>> = BTreeMap::new();
        for entry in pending {
            by_lid.entry(entry.lid).or_default().push(entry.row);
        }
        let mut work: Vec<(&Target, Vec<u32>)> = targets
            .iter()
            .filter_map(|target| Some((target, by_lid.remove(&target.lid.value())?)))
            .collect();
        work.sort_by_key(|(target, rows)| (std::cmp::Reverse(rows.len()), target.lid));
        let mut surveyed = None;
        for (target, rows) in work {
            if surveyed != Some(target.row) {
                self.survey(target.row as usize);
                surveyed = Some(target.row);
            }
            self.rehome_target(&mut shifts, target, &rows);
        }
        // Elsewhere than in trees no link is meant to carry less than it does.
        if self.slots.irregular == 0 && self.order.lifted.is_empty() {
            Relief::new(self, &mut shifts, targets).relieve();
        }
    }

    /// Loads of all flows whose paths are complete.
    fn load_all(&self, shifts: &mut Shifts, targets: &[Target]) {
        shifts.loads = vec![0; shifts.channels * shifts.hosts.len()];
        for target in targets {
            if !shifts.tracks(target) {
                continue;
            }
            let to = shifts.ranks[&target.owner.end];
            for row in 0..self.graph.rows() {
                if row == target.row as usize || shifts.on_switch[row].is_empty() {
                    continue;
                }
                let path = self.onward(row, target);
                if self.arrives(&path, target) {
                    shifts.add(row, to, &path);
                }
            }
        }
    }

    fn arrives(&self, path: &[usize], target: &Target) -> bool {
        let last = path.last().map(|channel| self.graph.peer_of(*channel));
        matches!(last, Some(Peer::Switch { row, .. }) if row == target.row)
    }

    /// Chooses the entries of some switches, highest first, for one target.
    fn rehome_target(&mut self, shifts: &mut Shifts, target: &Target, rows: &[u32]) {
        let to = shifts.ranks[&target.owner.end];
        let j = self.position(target) as usize;
        let lid = usize::from(target.lid.value());
        let mut last_peer = None;
        for row in rows.iter().map(|row| *row as usize) {
            debug_assert!(self.distances[row] != FAR, "pending entries have a path");
            let candidates = self.candidates(row);
            let count = candidates.len().max(1);
            let mut best: Option<(Merit, u8, usize, Vec<usize>)> = None;
            for (index, (port, peer)) in candidates.into_iter().enumerate() {
                let mut path = vec![self.graph.channel(row, port)];
                path.extend(self.onward(peer, target));
                let turn = (index + count - j % count) % count;
                // A destination that all switches send over one more parent loads one link more.
                let key: Merit = (shifts.cost(row, to, &path), last_peer != Some(peer), turn);
                if best.as_ref().is_none_or(|(least, ..)| key < *least) {
                    best = Some((key, port, peer, path));
                }
            }
            let Some((_, port, peer, path)) = best else { continue };
            debug_assert_eq!(self.tables.row(row)[lid], NO_PORT);
            self.tables.row_mut(row)[lid] = port;
            last_peer = Some(peer);
            if self.arrives(&path, target) {
                shifts.add(row, to, &path);
            }
        }
    }
}
