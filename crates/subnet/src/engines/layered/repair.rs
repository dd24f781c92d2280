//! Pairs that fit no lane: other entries on their paths, the shortest ways first.

use super::lanes::Lanes;
use super::pairs::Pairs;
use super::shortest::through;
use crate::engines::trees::{FAR, Trees, lengths};
use crate::graph::SwitchGraph;

/// Entries changed for one pair.
const CHANGES_MAX: usize = 2;

/// Changes tried for one pair.
const TRIES_MAX: usize = 400;

/// Switches that may come along when an entry is changed in the hope that a second change helps.
const FOLLOWERS_MAX: usize = 64;

/// What may be changed.
pub(super) struct Repair<'a, 'g> {
    graph: &'g SwitchGraph,
    trees: &'a mut Trees,
    pairs: &'a mut Pairs,
    lanes: &'a mut Lanes<'g>,
    tries: usize,
}

impl<'a, 'g> Repair<'a, 'g> {
    pub(super) fn new(
        graph: &'g SwitchGraph,
        trees: &'a mut Trees,
        pairs: &'a mut Pairs,
        lanes: &'a mut Lanes<'g>,
    ) -> Self {
        Repair { graph, trees, pairs, lanes, tries: 0 }
    }

    /// Finds a lane for a pair by changing entries; false, and nothing changed, if none is found.
    /// Only where each destination has a single tree.
    pub(super) fn settle(&mut self, (a, b): (usize, usize)) -> bool {
        let single = |row: usize| self.trees.towards(row).count() == 1;
        if self.pairs.is_laid(a, b) || !single(a) || !single(b) {
            return self.pairs.is_laid(a, b);
        }
        (1..=CHANGES_MAX).any(|changes| {
            self.tries = TRIES_MAX;
            let settled = self.change((a, b), changes);
            self.lanes.commit();
            settled
        })
    }

    fn change(&mut self, pair: (usize, usize), changes: usize) -> bool {
        let (a, b) = pair;
        for (source, destination) in [(a, b), (b, a)] {
            for row in self.trees.path(self.graph, source, destination) {
                if self.change_at(row, (source, destination), changes) {
                    return true;
                }
            }
        }
        false
    }

    /// Leads one switch on the way from source to destination elsewhere, and with it those that
    /// come through it.
    fn change_at(&mut self, row: usize, pair: (usize, usize), changes: usize) -> bool {
        let (source, destination) = pair;
        let Some(ports) = self.trees.towards(destination).next() else { return false };
        let through = through(self.graph, row, ports);
        if changes > 1 && through.iter().filter(|passes| **passes).count() > FOLLOWERS_MAX {
            return false;
        }
        let (own, lengths) = (ports[row], lengths(self.graph, destination, ports));
        let peers = self.graph.switch_peers(row);
        let mut ways: Vec<(u32, u8)> = peers
            .filter(|(port, peer, _)| *port != own && !through[*peer] && lengths[*peer] != FAR)
            .map(|(port, peer, _)| (lengths[peer], port))
            .collect();
        ways.sort_unstable();
        for (_, port) in ways {
            if self.tries == 0 {
                break;
            }
            self.tries -= 1;
            let mark = self.lanes.mark();
            self.trees.set(destination, row, port);
            let is_other = |other: usize| through[other] && other != source;
            let before =
                self.pairs.lay_again(self.graph, self.trees, self.lanes, destination, is_other);
            let Some(before) = before else { continue };
            if self.pairs.lay_one(self.graph, self.trees, self.lanes, pair)
                || (changes > 1 && self.change(pair, changes - 1))
            {
                return true;
            }
            self.pairs.restore(before);
            self.lanes.undo_to(mark);
        }
        self.trees.set(destination, row, own);
        false
    }
}
