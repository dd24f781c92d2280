//! The paths of one switch in the trees before, and which of them another path of it meets.

use crate::graph::SwitchGraph;

/// So many trees before are looked at.
pub(super) const BEFORE_MAX: usize = 128;

/// The paths by channel: bit k for that in the k-th tree.
pub(super) struct Earlier {
    used: Vec<u128>,
    marked: Vec<usize>,
}

/// What a path has in common with the earlier ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Meeting {
    /// Its cables.
    pub(super) length: u32,
    /// Earlier paths with which it shares a cable.
    pub(super) paths: u32,
    /// Cables shared, one with several paths as often.
    pub(super) cables: u32,
}

impl Earlier {
    pub(super) fn new(graph: &SwitchGraph) -> Self {
        Earlier { used: vec![0; graph.channels()], marked: Vec::new() }
    }

    /// Takes the paths of a switch in place of those of the last one.
    pub(super) fn mark(
        &mut self,
        graph: &SwitchGraph,
        row: usize,
        destination: usize,
        before: &[&[u8]],
    ) {
        self.marked.drain(..).for_each(|channel| self.used[channel] = 0);
        for (bit, ports) in before.iter().take(BEFORE_MAX).enumerate() {
            let mut at = row;
            for _ in 0..ports.len() {
                if at == destination {
                    break;
                }
                let Some(next) = graph.next(at, ports[at]) else { break };
                let channel = graph.channel(at, ports[at]);
                self.used[channel] |= 1 << bit;
                self.marked.push(channel);
                at = next;
            }
        }
    }

    /// Compares a path that begins with a port of a switch and goes on by `onward`, which leads to
    /// the destination or ends.
    pub(super) fn meets(
        &self,
        graph: &SwitchGraph,
        (mut row, mut port): (usize, u8),
        destination: usize,
        onward: impl Fn(usize) -> u8,
    ) -> Meeting {
        let (mut met, mut cables, mut length) = (0u128, 0, 0);
        while let Some(next) = graph.next(row, port) {
            let used = self.used[graph.channel(row, port)];
            met |= used;
            cables += used.count_ones();
            length += 1;
            if next == destination {
                break;
            }
            (row, port) = (next, onward(next));
        }
        Meeting { length, paths: met.count_ones(), cables }
    }
}
