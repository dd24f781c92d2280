//! What it is: up*/down* routing on any connected fabric. Every cable has an up end; a path goes up
//! any number of cables and then down, never up again, so one lane suffices and acknowledgements
//! cannot close a loop either.
//!
//! Source: Schroeder et al., "Autonet: a high-speed, self-configuring local area network using
//! point-to-point links", IEEE JSAC 9(8), 1991; forwarding tables without the input port: Sancho,
//! Robles, Duato, "A new methodology to compute deadlock-free routing tables for irregular
//! networks", CANPC 2000.
//! What we do differently: a tree's cables are turned by its levels, other fabrics around their
//! centre or the roots given (`order`). A forwarding table does not know whether a packet came from
//! above, so a switch that others use on their way down must itself go down: `Search::choose` marks
//! these from the highest switch on and lets all others take the shortest legal path. Among equal
//! ones the path with the fewest flows so far is taken; each host LID of a switch has a tree of its
//! own (`trees`).
//! Parameters: lmc 0 to 7, lanes 1 to 15, roots, adaptive (among equally long legal paths).

use super::order::Order;
use super::trees::{self, FAR, Flows, NO_PORT, Trees, lengths};
use super::{Claims, Entry, RouteOptions, RoutingError};
use crate::graph::{SwitchGraph, Target};
use crate::{AdaptiveGroups, ForwardingTables, Subnet};
use clearlane_fabric::Fabric;

/// `up-down`.
pub(super) const ENTRY: Entry = Entry {
    name: "up-down",
    summary: "up*/down*: every cable has an up end, paths go up and then down; one lane suffices",
    reference: "Schroeder et al., Autonet, IEEE JSAC 9(8), 1991",
    parameters: "lmc 0 to 7; lanes 1 to 15; roots, else a tree's levels or the centre; adaptive",
    lanes: 1,
    adaptive: true,
    roots: true,
    claims: Claims {
        minimal: false,
        deadlock_free: true,
        balanced_on: "trees, judged by flows over all pairs",
        accepts: "every fabric",
    },
    route,
};

fn route(fabric: &Fabric, options: &RouteOptions) -> Result<Subnet, RoutingError> {
    super::check_lanes(ENTRY.name, 1, options)?;
    let lids = super::lids(fabric, options)?;
    let graph = SwitchGraph::of(fabric);
    let targets = graph.targets(&lids);
    let mut tables = ForwardingTables::empty(fabric, lids.table_len());
    super::fill_exits(&graph, &targets, &mut tables);
    let roots: Vec<usize> = options.roots.iter().filter_map(|id| graph.row_of(*id)).collect();
    let counts = trees::counts(&graph, &targets);
    let legal = Legal::of(&graph, &counts, Order::around(&graph, &roots));
    legal.trees.fill(&targets, &mut tables);
    let columns = lids.table_len();
    let mut subnet = super::plain_subnet(ENTRY.name, fabric, options, lids, tables);
    if options.adaptive {
        let mut groups = AdaptiveGroups::empty(graph.rows(), columns);
        legal.groups(&graph, &targets, &mut groups);
        subnet.adaptive = Some(groups);
    }
    subnet.remarks.extend(super::remark_on_parts(fabric, &graph));
    if let Some(first) = legal.order.lifted.first() {
        let name = fabric.node(graph.switch(*first)).name.escape_debug();
        let count = legal.order.lifted.len();
        subnet.remarks.push(format!(
            "some hosts have no common ancestor; {count} switches were lifted above their level, \
             {name} first"
        ));
    }
    Ok(subnet)
}

/// Which end of each cable is up, and the trees that keep to it.
pub(super) struct Legal {
    pub(super) order: Order,
    pub(super) trees: Trees,
}

impl Legal {
    /// So many trees to each switch; lifts switches until every two hosts have a common ancestor.
    pub(super) fn of(graph: &SwitchGraph, counts: &[usize], mut order: Order) -> Self {
        loop {
            match Search::new(graph, &order).all(counts) {
                Ok(trees) => return Legal { order, trees },
                // After it, no two hosts of that part lack a common ancestor.
                Err(NoCommonAncestor { row }) => order.lift(graph, row),
            }
        }
    }
}

impl Legal {
    /// The ports of equally long legal paths, those of each LID along its own tree.
    fn groups(&self, graph: &SwitchGraph, targets: &[Target], groups: &mut AdaptiveGroups) {
        let mut ports = Vec::new();
        for of_switch in targets.chunk_by(|a, b| a.row == b.row) {
            let destination = of_switch[0].row as usize;
            let count = self.trees.towards(destination).count();
            let choice = trees::taken_in_turn(of_switch, count.max(1));
            for (tree, entries) in self.trees.towards(destination).enumerate() {
                let lengths = lengths(graph, destination, entries);
                let phases = self.phases(graph, destination, entries, &lengths);
                for row in (0..graph.rows()).filter(|row| *row != destination) {
                    ports.clear();
                    ports.extend(graph.switch_peers(row).filter_map(|(port, peer, _)| {
                        let nearer = lengths[peer].saturating_add(1) == lengths[row];
                        let legal = match (phases[row], phases[peer]) {
                            (Phase::Aside, _) | (_, Phase::Aside) => false,
                            (Phase::Down, Phase::Up) => false,
                            (Phase::Down, Phase::Down) => self.order.is_up(peer, row),
                            (Phase::Up, Phase::Up) => self.order.is_up(row, peer),
                            (Phase::Up, Phase::Down) => true,
                        };
                        (nearer && legal).then_some(port)
                    }));
                    let of_tree = of_switch.iter().zip(&choice).filter(|(_, of)| **of == tree);
                    groups.set(row, of_tree.map(|(target, _)| target.lid), &ports);
                }
            }
        }
    }

    /// Whether each switch leads packets up or down along one tree.
    fn phases(
        &self,
        graph: &SwitchGraph,
        destination: usize,
        entries: &[u8],
        lengths: &[u32],
    ) -> Vec<Phase> {
        let mut nearest: Vec<usize> =
            (0..graph.rows()).filter(|row| lengths[*row] != FAR && *row != destination).collect();
        nearest.sort_by_key(|row| lengths[*row]);
        let mut phases = vec![Phase::Aside; graph.rows()];
        phases[destination] = Phase::Down;
        for row in nearest {
            let Some(next) = graph.next(row, entries[row]) else { continue };
            phases[row] = match (self.order.is_up(row, next), phases[next]) {
                (_, Phase::Aside) | (false, Phase::Up) => Phase::Aside,
                (true, _) => Phase::Up,
                (false, Phase::Down) => Phase::Down,
            };
        }
        phases
    }
}

/// What a switch does with packets to the destination at hand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Leads them up; nobody sends them down to it.
    Up,
    /// Leads them down, as all switches after it do.
    Down,
    /// Has no legal path: for management only.
    Aside,
}

/// Two hosts between which no up-then-down path exists; one sits on this switch.
struct NoCommonAncestor {
    row: usize,
}

struct Search<'a> {
    graph: &'a SwitchGraph,
    order: &'a Order,
    flows: Flows,
    /// Hops of the shortest down path to the destination at hand.
    down: Vec<u32>,
    /// Hops of the shortest up-then-down path.
    legal: Vec<u32>,
    /// Hops of the path taken.
    taken: Vec<u32>,
    /// Flows on the path taken, added up over its cables; for a while that of the down path.
    costs: Vec<u64>,
    /// Whether others come down over this switch.
    passed: Vec<bool>,
    /// Switches with a down path, nearest first.
    ancestors: Vec<u32>,
}

impl<'a> Search<'a> {
    fn new(graph: &'a SwitchGraph, order: &'a Order) -> Self {
        let rows = graph.rows();
        Search {
            graph,
            order,
            flows: Flows::new(graph),
            down: vec![FAR; rows],
            legal: vec![FAR; rows],
            taken: vec![FAR; rows],
            costs: vec![0; rows],
            passed: vec![false; rows],
            ancestors: Vec::new(),
        }
    }

    fn all(mut self, counts: &[usize]) -> Result<Trees, NoCommonAncestor> {
        let mut trees = Trees::new(self.graph.rows());
        for (destination, count) in counts.iter().enumerate() {
            self.survey(destination);
            for _ in 0..*count {
                let ports = trees.push(destination);
                self.go_down(ports);
                self.choose(destination, ports);
                self.fill_aside(destination, ports)?;
                if self.graph.has_adapter(destination) {
                    self.flows.add(self.graph, ports, &self.taken);
                }
            }
        }
        Ok(trees)
    }

    /// Distances along down paths and along legal ones.
    fn survey(&mut self, destination: usize) {
        let (graph, order) = (self.graph, self.order);
        self.down.fill(FAR);
        self.ancestors.clear();
        self.ancestors.push(destination as u32);
        self.down[destination] = 0;
        let mut next = 0;
        while let Some(&row) = self.ancestors.get(next) {
            next += 1;
            for (_, peer, _) in graph.switch_peers(row as usize) {
                if order.is_up(row as usize, peer) && self.down[peer] == FAR {
                    self.down[peer] = self.down[row as usize] + 1;
                    self.ancestors.push(peer as u32);
                }
            }
        }
        for row in order.descending.iter().map(|row| *row as usize) {
            let up = graph.switch_peers(row).filter(|peer| order.is_up(row, peer.1));
            let nearest = up.map(|peer| self.legal[peer.1]).min().unwrap_or(FAR);
            self.legal[row] = self.down[row].min(nearest.saturating_add(1));
        }
    }

    /// The best way down of every switch that has one.
    fn go_down(&mut self, ports: &mut [u8]) {
        for row in self.ancestors.iter().map(|row| *row as usize) {
            let below = self.graph.switch_peers(row).filter(|(_, peer, _)| {
                self.down[*peer].saturating_add(1) == self.down[row] && self.order.is_up(*peer, row)
            });
            let best = below
                .map(|(port, peer, _)| {
                    let cost = self.costs[peer] + self.flows.loads[self.graph.channel(row, port)];
                    // Rather not keep a switch from a shorter path that goes up first.
                    (self.legal[peer] < self.down[peer], cost, port)
                })
                .min();
            (self.costs[row], ports[row]) = best.map_or((0, NO_PORT), |best| (best.1, best.2));
        }
    }

    /// Settles every switch that has a legal path, the highest first.
    fn choose(&mut self, destination: usize, ports: &mut [u8]) {
        let (graph, order) = (self.graph, self.order);
        self.passed.fill(false);
        self.taken.fill(FAR);
        for row in order.descending.iter().map(|row| *row as usize) {
            if row == destination {
                self.taken[row] = 0;
                continue;
            }
            let mut up = (FAR, 0, NO_PORT);
            if !self.passed[row] {
                let above = graph.switch_peers(row).filter(|peer| order.is_up(row, peer.1));
                let ways = above.map(|(port, peer, _)| {
                    let cost = self.costs[peer] + self.flows.loads[graph.channel(row, port)];
                    (self.taken[peer].saturating_add(1), cost, port)
                });
                up = ways.min().unwrap_or(up);
            }
            if self.down[row] != FAR && self.down[row] <= up.0 {
                self.taken[row] = self.down[row];
                if let Some(next) = graph.next(row, ports[row]) {
                    self.passed[next] = true;
                }
            } else if up.0 != FAR {
                (self.taken[row], self.costs[row], ports[row]) = up;
            }
        }
    }

    /// Entries of switches without a legal path: towards the nearest that has one. They carry
    /// management only, so a host on such a switch is an error if the destination has hosts.
    fn fill_aside(&self, destination: usize, ports: &mut [u8]) -> Result<(), NoCommonAncestor> {
        if !self.taken.contains(&FAR) {
            return Ok(());
        }
        let to_host = self.graph.has_adapter(destination);
        let mut queue: Vec<usize> =
            (0..self.graph.rows()).filter(|row| self.taken[*row] != FAR).collect();
        let mut next = 0;
        while let Some(&row) = queue.get(next) {
            next += 1;
            for (_, peer, peer_port) in self.graph.switch_peers(row) {
                if self.taken[peer] != FAR || ports[peer] != NO_PORT {
                    continue;
                }
                if to_host && self.graph.has_adapter(peer) {
                    return Err(NoCommonAncestor { row: peer });
                }
                ports[peer] = peer_port;
                queue.push(peer);
            }
        }
        Ok(())
    }
}
