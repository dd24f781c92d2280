//! Links that carry more in some shift permutation than need be, relieved one by one: an entry on
//! the way of one of their flows changes to the port that lowers the excess of all links in all
//! shifts most, or leaves it equal; then that entry rests for a while, so that equal tables are not
//! gone round in a circle (tabu search: Glover, ORSA Journal on Computing 1(3), 1989).

use super::rehome::Shifts;
use super::{FAR, Fill};
use crate::graph::{Peer, Target};
use clearlane_ib::random::Stream;

/// Rounds without an improvement after which the search ends.
const IDLE_MAX: usize = 12;

/// For so many changes an entry stays as it is.
const REST: u32 = 12;

/// Loads of one leaf's hosts on one link looked at in all; bounds the time.
const WORK_MAX: usize = 6_000_000;

/// Excess by flows beyond the aim, from 0.
const EXCESS: [i64; 8] = [0, 1, 6, 30, 150, 700, 3_000, 12_000];

/// No such leaf.
const NOWHERE: u32 = u32::MAX;

/// The search.
pub(super) struct Relief<'f, 'a> {
    fill: &'f mut Fill<'a>,
    shifts: &'f mut Shifts,
    /// Flows on a link that need no relief.
    aim: u8,
    /// By rank: LID and row.
    lids: Vec<u16>,
    rows: Vec<u32>,
    /// By row: its number among the rows with hosts.
    leaf_of: Vec<u32>,
    /// At `leaf * rows + row`: hops of the down path and of the up-then-down path to a leaf.
    down: Vec<u8>,
    legal: Vec<u8>,
    /// By row: rows with hosts below it, itself included.
    below: Vec<Vec<u32>>,
    stream: Stream,
    work: usize,
    /// By rank and row, the change that last made the entry, counted from 1.
    changed: Vec<u32>,
    clock: u32,
    /// Excess of all links in all shifts, counted from where it began.
    excess: i64,
    paths: Paths,
}

/// Room for two paths.
#[derive(Default)]
struct Paths {
    old: Vec<usize>,
    new: Vec<usize>,
    used: Vec<u32>,
}

/// An entry and what it is to become.
#[derive(Clone, Copy, Debug)]
struct Change {
    row: usize,
    rank: u32,
    port: u8,
}

impl<'f, 'a> Relief<'f, 'a> {
    /// Loads of all links must be in `shifts`.
    pub(super) fn new(fill: &'f mut Fill<'a>, shifts: &'f mut Shifts, targets: &[Target]) -> Self {
        let (graph, order) = (fill.graph, fill.order);
        let count = shifts.hosts.len();
        let mut lids = vec![0; count];
        for target in targets.iter().filter(|target| shifts.tracks(target)) {
            lids[shifts.rank(target) as usize] = target.lid.value();
        }
        let rows = shifts.hosts.iter().map(|host| host.row).collect();
        let leaves: Vec<usize> =
            (0..graph.rows()).filter(|row| !shifts.on_switch[*row].is_empty()).collect();
        let mut leaf_of = vec![NOWHERE; graph.rows()];
        let mut below = vec![Vec::new(); graph.rows()];
        let (mut down, mut legal) = (Vec::new(), Vec::new());
        let short = |hops: &u32| u8::try_from(*hops).unwrap_or(u8::MAX);
        for (leaf, row) in leaves.iter().enumerate() {
            leaf_of[*row] = leaf as u32;
            fill.survey(*row);
            down.extend(fill.down.iter().map(short));
            legal.extend(fill.distances.iter().map(short));
            for ancestor in (0..graph.rows()).filter(|other| fill.down[*other] != FAR) {
                below[ancestor].push(*row as u32);
            }
        }
        let aim = leaves.iter().map(|row| {
            let up = graph.switch_peers(*row).filter(|peer| order.is_up(*row, peer.1)).count();
            let hosts = shifts.on_switch[*row].len();
            u8::try_from(hosts.div_ceil(up.max(1))).unwrap_or(u8::MAX)
        });
        let aim = aim.max().unwrap_or(1);
        let (stream, paths) = (Stream::new(0, "relief", 0), Paths::default());
        let changed = vec![0; count * graph.rows()];
        Relief {
            changed,
            clock: 0,
            excess: 0,
            fill,
            shifts,
            aim,
            lids,
            rows,
            leaf_of,
            down,
            legal,
            below,
            stream,
            work: 0,
            paths,
        }
    }

    /// Until nothing is left, nothing has helped for some rounds, or the bound on work is met.
    pub(super) fn relieve(&mut self) {
        let mut idle = 0;
        while idle < IDLE_MAX && self.work < WORK_MAX {
            let heavy = self.heavy();
            if heavy.is_empty() {
                return;
            }
            let before = self.excess;
            for at in heavy {
                if self.work < WORK_MAX && self.is_heavy(at) {
                    self.relieve_link(at);
                }
            }
            idle = if self.excess < before { 0 } else { idle + 1 };
        }
    }

    /// Links with shifts in which they carry more than they should: indices of loads.
    fn heavy(&self) -> Vec<usize> {
        (0..self.shifts.loads.len()).filter(|at| self.is_heavy(*at)).collect()
    }

    fn is_heavy(&self, at: usize) -> bool {
        self.shifts.loads[at] > self.aim && {
            let peer = self.fill.graph.peer_of(at / self.rows.len());
            matches!(peer, Peer::Switch { .. })
        }
    }

    /// Changes an entry of a flow on a link in one shift, unless that would raise the excess.
    fn relieve_link(&mut self, at: usize) {
        let (channel, shift) = (at / self.rows.len(), at % self.rows.len());
        let (tail, port) = self.fill.graph.place(channel);
        let Some(head) = self.fill.graph.next(tail, port) else { return };
        let up = self.fill.order.is_up(tail, head);
        let at = if up { tail } else { head };
        let count = self.rows.len();
        let mut flows: Vec<(u32, u32)> = Vec::new();
        for leaf in &self.below[at] {
            for host in &self.shifts.on_switch[*leaf as usize] {
                let (host, count) = (*host as usize, count);
                flows.push(if up {
                    (host as u32, ((host + shift) % count) as u32)
                } else {
                    (((host + count - shift) % count) as u32, host as u32)
                });
            }
        }
        let turn = self.stream.below(flows.len().max(1) as u64) as usize;
        flows.rotate_left(turn);
        let mut best: Option<(i64, Change)> = None;
        let mut path = Vec::new();
        for (from, to) in flows {
            self.walk(self.rows[from as usize] as usize, to, &mut path);
            let Some(length) = path.iter().position(|other| *other == channel) else { continue };
            for channel in &path[..=length] {
                self.weigh_ways(self.fill.graph.place(*channel).0, to, &mut best);
            }
            if best.is_some_and(|(excess, _)| excess < 0) {
                break;
            }
        }
        if let Some((rise, change)) = best.filter(|(rise, _)| *rise <= 0) {
            self.apply(change);
            self.excess += rise;
            self.clock += 1;
            let entry = self.entry(change.row, change.rank);
            self.changed[entry] = self.clock;
        }
    }

    fn port(&self, row: usize, rank: u32) -> u8 {
        self.fill.tables.row(row)[usize::from(self.lids[rank as usize])]
    }

    fn entry(&self, row: usize, rank: u32) -> usize {
        rank as usize * self.fill.graph.rows() + row
    }

    /// Weighs every other port of an entry that did not change of late; the best one of all stays
    /// in `best`.
    fn weigh_ways(&mut self, row: usize, rank: u32, best: &mut Option<(i64, Change)>) {
        let changed = self.changed[self.entry(row, rank)];
        if changed != 0 && changed + REST > self.clock {
            return;
        }
        let own = self.port(row, rank);
        let mut ways = self.candidates(row, rank);
        ways.retain(|port| *port != own);
        let turn = self.stream.below(ways.len().max(1) as u64) as usize;
        ways.rotate_left(turn);
        for port in ways {
            let change = Change { row, rank, port };
            let rise = self.weigh(change);
            if best.is_none_or(|(least, _)| rise < least) {
                *best = Some((rise, change));
            }
        }
    }

    /// Ports of shortest legal paths.
    fn candidates(&self, row: usize, rank: u32) -> Vec<u8> {
        let (graph, order) = (self.fill.graph, self.fill.order);
        let first = self.leaf_of[self.rows[rank as usize] as usize] as usize * graph.rows();
        let (down, legal) = (&self.down[first..], &self.legal[first..]);
        let below = down[row] != u8::MAX;
        let hops = if below { down } else { legal };
        let fits = |peer: usize| {
            hops[row] != u8::MAX
                && hops[peer].saturating_add(1) == hops[row]
                && order.is_up(row, peer) != below
        };
        let peers = graph.switch_peers(row).filter(|(_, peer, _)| fits(*peer));
        peers.map(|(port, ..)| port).collect()
    }

    /// By how much a change would raise the excess.
    fn weigh(&mut self, change: Change) -> i64 {
        let mut paths = std::mem::take(&mut self.paths);
        self.compare(change, &mut paths);
        self.work += paths.used.len() * (paths.old.len() + paths.new.len());
        let count = self.rows.len();
        let excess = |load: u8| EXCESS[usize::from(load.saturating_sub(self.aim)).min(7)];
        let mut sum = 0;
        for leaf in &paths.used {
            for host in &self.shifts.on_switch[*leaf as usize] {
                let shift = self.shifts.shift(*host, change.rank);
                for channel in &paths.old {
                    let load = self.shifts.loads[channel * count + shift];
                    sum += excess(load.saturating_sub(1)) - excess(load);
                }
                for channel in &paths.new {
                    let load = self.shifts.loads[channel * count + shift];
                    sum += excess(load.saturating_add(1)) - excess(load);
                }
            }
        }
        self.paths = paths;
        sum
    }

    fn apply(&mut self, change: Change) {
        let mut paths = std::mem::take(&mut self.paths);
        self.compare(change, &mut paths);
        let count = self.rows.len();
        for leaf in &paths.used {
            for host in &self.shifts.on_switch[*leaf as usize] {
                let shift = self.shifts.shift(*host, change.rank);
                for channel in &paths.old {
                    let load = &mut self.shifts.loads[channel * count + shift];
                    *load = load.saturating_sub(1);
                }
                for channel in &paths.new {
                    let load = &mut self.shifts.loads[channel * count + shift];
                    *load = load.saturating_add(1);
                }
            }
        }
        self.paths = paths;
        let lid = usize::from(self.lids[change.rank as usize]);
        self.fill.tables.row_mut(change.row)[lid] = change.port;
    }

    /// What a change takes off which links and puts on which, and the leaves whose flows it moves.
    fn compare(&self, change: Change, paths: &mut Paths) {
        let Change { row, rank, port } = change;
        let graph = self.fill.graph;
        self.walk(row, rank, &mut paths.old);
        match graph.next(row, port) {
            Some(next) => self.walk(next, rank, &mut paths.new),
            None => paths.new.clear(),
        }
        paths.new.insert(0, graph.channel(row, port));
        // Both end alike: what they share stays as it is.
        while paths.old.last().is_some() && paths.old.last() == paths.new.last() {
            paths.old.pop();
            paths.new.pop();
        }
        paths.used.clear();
        let lid = usize::from(self.lids[rank as usize]);
        let home = self.rows[rank as usize] as usize;
        let passes = |leaf: &u32| {
            let mut at = *leaf as usize;
            for _ in 0..graph.rows() {
                if at == row || at == home {
                    break;
                }
                match graph.next(at, self.fill.tables.row(at)[lid]) {
                    Some(next) => at = next,
                    None => break,
                }
            }
            at == row
        };
        paths.used.extend(self.below[row].iter().copied().filter(passes));
    }

    /// The channels from a switch to the leaf of a rank.
    fn walk(&self, mut row: usize, rank: u32, path: &mut Vec<usize>) {
        path.clear();
        let graph = self.fill.graph;
        let lid = usize::from(self.lids[rank as usize]);
        let home = self.rows[rank as usize] as usize;
        while row != home && path.len() < graph.rows() {
            let port = self.fill.tables.row(row)[lid];
            let Some(next) = graph.next(row, port) else { break };
            path.push(graph.channel(row, port));
            row = next;
        }
    }
}
