//! Lanes that stay free of cycles: for each a graph of which channel waits for which, in a
//! topological order that is kept up to date (Pearce, Kelly, "A dynamic topological sort algorithm
//! for directed acyclic graphs", ACM JEA 11, 2006).

use crate::engines::order::Order;
use crate::graph::{Peer, SwitchGraph};

/// One channel waits for another: `edge` numbers the pair.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Wait {
    pub(super) edge: u32,
    pub(super) from: u32,
    pub(super) to: u32,
}

/// All lanes.
pub(super) struct Lanes<'a> {
    graph: &'a SwitchGraph,
    /// First edge of each channel: one per port of the switch it leads to.
    starts: Vec<u32>,
    /// By edge, bit l: lane l has it.
    present: Vec<u16>,
    /// By edge, bit l: it would close a cycle in lane l.
    barred: Vec<u16>,
    /// By lane and channel: its place in the topological order.
    places: Vec<Vec<u32>>,
    /// Edges put in, and bars set, since the last [`Lanes::commit`].
    added: Vec<(usize, u32)>,
    bars: Vec<(usize, u32)>,
    search: Search,
}

/// A moment to go back to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    added: usize,
    bars: usize,
}

/// Room for the search for a cycle.
#[derive(Default)]
struct Search {
    /// Run in which a channel was last visited.
    visited: Vec<u32>,
    run: u32,
    ahead: Vec<u32>,
    behind: Vec<u32>,
    stack: Vec<u32>,
    free: Vec<u32>,
}

impl<'a> Lanes<'a> {
    /// So many empty lanes. All begin with the order in which channels that lead up come first, the
    /// lowest of them, then those that lead down, the highest first: up-then-down paths need no
    /// other.
    pub(super) fn new(graph: &'a SwitchGraph, order: &Order, count: usize) -> Self {
        let mut starts = Vec::with_capacity(graph.channels() + 1);
        let mut next = 0;
        let mut keyed = Vec::with_capacity(graph.channels());
        for channel in 0..graph.channels() {
            starts.push(next);
            let tail = graph.place(channel).0;
            let height = i64::from(order.height(tail));
            if let Peer::Switch { row, .. } = graph.peer_of(channel) {
                next += graph.ports(row as usize) as u32;
                let up = order.is_up(tail, row as usize);
                keyed.push((!up, if up { height } else { -height }, channel));
            } else {
                keyed.push((true, 1, channel));
            }
        }
        starts.push(next);
        keyed.sort_unstable();
        let mut places = vec![0; graph.channels()];
        for (place, (_, _, channel)) in keyed.iter().enumerate() {
            places[*channel] = place as u32;
        }
        let visited = vec![0; graph.channels()];
        Lanes {
            graph,
            starts,
            present: vec![0; next as usize],
            barred: vec![0; next as usize],
            places: vec![places; count],
            added: Vec::new(),
            bars: Vec::new(),
            search: Search { visited, ..Search::default() },
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.places.len()
    }

    /// Puts every turn of up-then-down paths into a lane: such paths fit there for good.
    pub(super) fn reserve(&mut self, lane: usize, order: &Order) {
        let graph = self.graph;
        for from in 0..graph.channels() {
            let Peer::Switch { row, .. } = graph.peer_of(from) else { continue };
            let (tail, row) = (graph.place(from).0, row as usize);
            for (port, next, _) in graph.switch_peers(row) {
                let legal = order.is_up(tail, row) || !order.is_up(row, next);
                if legal && row != tail && next != tail {
                    let wait = self.wait(from, port);
                    let fits = self.put(lane, wait);
                    debug_assert!(fits, "legal turns close no cycle");
                }
            }
        }
        self.commit();
    }

    /// The dependency of a packet that leaves the switch behind `from` by `port`.
    pub(super) fn wait(&self, from: usize, port: u8) -> Wait {
        let to = match self.graph.peer_of(from) {
            Peer::Switch { row, .. } => self.graph.channel(row as usize, port),
            _ => from,
        };
        let edge = self.starts[from] + u32::from(port);
        Wait { edge, from: from as u32, to: to as u32 }
    }

    /// Puts all of these into a lane, or none where they would close a cycle.
    pub(super) fn fit(&mut self, lane: usize, waits: &[Wait]) -> bool {
        let bit = 1u16 << lane;
        if waits.iter().any(|wait| self.barred[wait.edge as usize] & bit != 0) {
            return false;
        }
        let before = self.added.len();
        for wait in waits {
            if self.present[wait.edge as usize] & bit != 0 || self.put(lane, *wait) {
                continue;
            }
            let alone = self.added.len() == before;
            self.take_back(before);
            // With the others gone it may fit; if not, no later attempt need look again.
            if alone || self.closes_cycle(lane, wait) {
                self.barred[wait.edge as usize] |= bit;
                self.bars.push((lane, wait.edge));
            }
            return false;
        }
        true
    }

    /// Makes everything put in so far stay.
    pub(super) fn commit(&mut self) {
        self.added.clear();
        self.bars.clear();
    }

    /// What has been put in since the last commit, for [`Lanes::undo_to`].
    pub(super) fn mark(&self) -> Mark {
        Mark { added: self.added.len(), bars: self.bars.len() }
    }

    /// Takes out everything put in since a mark.
    pub(super) fn undo_to(&mut self, mark: Mark) {
        self.take_back(mark.added);
        for (lane, edge) in self.bars.drain(mark.bars..) {
            self.barred[edge as usize] &= !(1 << lane);
        }
    }

    /// An order without an edge is an order still.
    fn take_back(&mut self, keep: usize) {
        for (lane, edge) in self.added.drain(keep..) {
            self.present[edge as usize] &= !(1 << lane);
        }
    }

    fn closes_cycle(&mut self, lane: usize, wait: &Wait) -> bool {
        let places = &self.places[lane];
        places[wait.from as usize] > places[wait.to as usize] && !self.look_ahead(lane, wait)
    }

    /// Puts one dependency in; false where it would close a cycle.
    fn put(&mut self, lane: usize, wait: Wait) -> bool {
        let (from, to) = (wait.from as usize, wait.to as usize);
        if self.places[lane][from] > self.places[lane][to] {
            if !self.look_ahead(lane, &wait) {
                return false;
            }
            self.look_behind(lane, &wait);
            self.reorder(lane);
        }
        self.present[wait.edge as usize] |= 1 << lane;
        self.added.push((lane, wait.edge));
        true
    }

    /// Gathers what is reached from `to` before the place of `from`; false if that is `from`.
    fn look_ahead(&mut self, lane: usize, wait: &Wait) -> bool {
        let (graph, places, search) = (self.graph, &self.places[lane], &mut self.search);
        let limit = places[wait.from as usize];
        search.begin(wait.to);
        while let Some(channel) = search.stack.pop() {
            search.ahead.push(channel);
            let channel = channel as usize;
            let Peer::Switch { row, .. } = graph.peer_of(channel) else { continue };
            let first = graph.channel(row as usize, 0);
            let edges = self.starts[channel] as usize..self.starts[channel + 1] as usize;
            for (port, present) in self.present[edges].iter().enumerate() {
                let next = first + port;
                if present & (1 << lane) == 0 || places[next] > limit {
                    continue;
                }
                if next == wait.from as usize {
                    return false;
                }
                search.visit(next);
            }
        }
        true
    }

    /// Gathers what reaches `from` after the place of `to`.
    fn look_behind(&mut self, lane: usize, wait: &Wait) {
        let (graph, places, search) = (self.graph, &self.places[lane], &mut self.search);
        let limit = places[wait.to as usize];
        let ahead = std::mem::take(&mut search.ahead);
        search.begin(wait.from);
        search.ahead = ahead;
        while let Some(channel) = search.stack.pop() {
            search.behind.push(channel);
            let (row, port) = graph.place(channel as usize);
            for (_, peer, peer_port) in graph.switch_peers(row) {
                let before = graph.channel(peer, peer_port);
                let edge = self.starts[before] as usize + usize::from(port);
                if self.present[edge] & (1 << lane) != 0 && places[before] > limit {
                    search.visit(before);
                }
            }
        }
    }

    /// Gives those behind the lower places, those ahead the higher ones, of all they have.
    fn reorder(&mut self, lane: usize) {
        let (places, search) = (&mut self.places[lane], &mut self.search);
        let place = |channel: &u32| places[*channel as usize];
        search.ahead.sort_unstable_by_key(place);
        search.behind.sort_unstable_by_key(place);
        search.free.clear();
        search.free.extend(search.behind.iter().chain(&search.ahead).map(place));
        search.free.sort_unstable();
        let channels = search.behind.iter().chain(&search.ahead);
        for (channel, place) in channels.zip(&search.free) {
            places[*channel as usize] = *place;
        }
    }
}

impl Search {
    fn begin(&mut self, channel: u32) {
        self.run += 1;
        self.ahead.clear();
        self.behind.clear();
        self.stack.clear();
        self.visit(channel as usize);
    }

    fn visit(&mut self, channel: usize) {
        if std::mem::replace(&mut self.visited[channel], self.run) != self.run {
            self.stack.push(channel as u32);
        }
    }
}
