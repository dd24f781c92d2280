//! What it is: up and down paths on fat trees of any height, without contention for shift
//! permutations where the tree is whole.
//!
//! Source: Zahavi, "Fat-tree routing and node ordering providing contention free traffic for MPI
//! global collectives", JPDC 72(11), 2012 (D-mod-K: the digits of the destination's position choose
//! the up ports); up and down paths for irregular graphs: Schroeder et al., "Autonet", IEEE JSAC
//! 9(8), 1991.
//! What we do differently: levels and digits come from the cables alone (`order`, `slots`), so a
//! damaged or irregular tree is routed, not refused. Each switch gives the positions of a missing
//! cable to others of its cables, and flows to a host follow the cable its own leaf takes
//! (`slots`). An entry for which that does not do goes to the shortest remaining up path, chosen so
//! that it meets the fewest other flows in any shift permutation (`rehome`); then links that carry
//! too much in some shift are relieved one by one (`relief`). Where hosts lack a common ancestor a
//! switch is lifted to be one, so all host pairs keep to up-then-down paths, which is what makes
//! one VL enough. LIDs of switches may be reached by other paths: management does not wait for data
//! credits.
//! Parameters: lmc 0 to 7 (LID offset o takes the route of position j + o: consecutive up ports),
//! lanes 1 to 15, adaptive (all shortest up-then-down paths).

mod rehome;
mod relief;
mod slots;

use super::order::Order;
use super::{Claims, Entry, RouteOptions, RoutingError};
use crate::graph::{Peer, SwitchGraph, Target};
use crate::{AdaptiveGroups, ForwardingTables, Subnet};
use clearlane_fabric::{Endpoint, Fabric};
use rehome::{Pending, Shifts};
use slots::Slots;
use std::collections::BTreeMap;

/// `fat-tree`.
pub(super) const ENTRY: Entry = Entry {
    name: "fat-tree",
    summary: "up and down paths; no contention for shift permutations on full trees, routes \
              around damage",
    reference: "Zahavi, JPDC 72(11), 2012 (D-mod-K)",
    parameters: "lmc 0 to 7; lanes 1 to 15; adaptive",
    lanes: 1,
    adaptive: true,
    roots: false,
    claims: Claims {
        minimal: false,
        deadlock_free: true,
        balanced_on: "full fat trees: with every shift of the rank order, a link carries at most \
                      one flow",
        accepts: "every fabric; meant for trees",
    },
    route,
};

/// "No port" in a table.
const NO_PORT: u8 = u8::MAX;

/// No path of the kind asked for.
const FAR: u32 = u32::MAX;

/// Entries put off for the careful choice; those beyond are chosen at once.
const PENDING_MAX: usize = 2_000_000;

fn route(fabric: &Fabric, options: &RouteOptions) -> Result<Subnet, RoutingError> {
    routed(fabric, options).map(|(subnet, _)| subnet)
}

/// The tables, and which end of each cable is up to them.
pub(super) fn routed(
    fabric: &Fabric,
    options: &RouteOptions,
) -> Result<(Subnet, Order), RoutingError> {
    super::check_lanes(ENTRY.name, 1, options)?;
    let lids = super::lids(fabric, options)?;
    let graph = SwitchGraph::of(fabric);
    let targets = graph.targets(&lids);
    let mut order = Order::of(&graph);
    let positions = slots::positions(&graph, &order);
    let (tables, groups, slots) = loop {
        let slots = Slots::of(&graph, &order);
        let mut tables = ForwardingTables::empty(fabric, lids.table_len());
        super::fill_exits(&graph, &targets, &mut tables);
        let mut fill = Fill::new(&graph, &order, &slots, &positions, tables);
        fill.shifts = Shifts::new(fabric, &graph, &targets);
        match fill.all(&targets) {
            Ok(()) => {
                let groups = options.adaptive.then(|| fill.groups(&targets));
                break (fill.tables, groups, slots);
            }
            // After it, no two hosts of that part lack a common ancestor.
            Err(NoCommonAncestor { row }) => order.lift(&graph, row),
        }
    };
    let mut subnet = super::plain_subnet(ENTRY.name, fabric, options, lids, tables);
    subnet.adaptive = groups;
    subnet.remarks = remarks(fabric, &graph, &order, &slots);
    Ok((subnet, order))
}

fn remarks(fabric: &Fabric, graph: &SwitchGraph, order: &Order, slots: &Slots) -> Vec<String> {
    let mut remarks: Vec<String> = super::remark_on_parts(fabric, graph).into_iter().collect();
    if slots.missing > 0 {
        let missing = slots.missing;
        remarks
            .push(format!("{missing} uplinks fewer than a full tree; routing works around them"));
    }
    if slots.irregular > 0 {
        let irregular = slots.irregular;
        remarks.push(format!(
            "{irregular} switches are not cabled like their siblings; their loads may be uneven"
        ));
    }
    if let Some(first) = order.lifted.first() {
        let name = fabric.node(graph.switch(*first)).name.escape_debug();
        let count = order.lifted.len();
        remarks.push(format!(
            "some hosts have no common ancestor; {count} switches were lifted above their level, \
             {name} first"
        ));
    }
    remarks
}

/// Two hosts between which no up-then-down path exists; one sits on this switch.
struct NoCommonAncestor {
    row: usize,
}

/// The tables being filled.
struct Fill<'a> {
    graph: &'a SwitchGraph,
    order: &'a Order,
    slots: &'a Slots,
    positions: &'a BTreeMap<Endpoint, u32>,
    tables: ForwardingTables,
    /// Hops of the down path to the destination at hand, for its ancestors.
    down: Vec<u32>,
    /// Hops of the up-then-down path.
    distances: Vec<u32>,
    queue: Vec<usize>,
    /// Down cables of a switch towards the destination: port, peer row, its port.
    children: Vec<(u8, usize, u8)>,
    /// Entries chosen outside the closed form, by channel.
    extra: Vec<u32>,
    /// LID for which a channel was last counted in `extra`.
    counted: Vec<u16>,
    pending: Vec<Pending>,
    shifts: Option<Shifts>,
}

impl<'a> Fill<'a> {
    fn new(
        graph: &'a SwitchGraph,
        order: &'a Order,
        slots: &'a Slots,
        positions: &'a BTreeMap<Endpoint, u32>,
        tables: ForwardingTables,
    ) -> Self {
        Fill {
            graph,
            order,
            slots,
            positions,
            tables,
            down: vec![FAR; graph.rows()],
            distances: vec![FAR; graph.rows()],
            queue: Vec::new(),
            children: Vec::new(),
            extra: vec![0; graph.channels()],
            counted: vec![0; graph.channels()],
            pending: Vec::new(),
            shifts: None,
        }
    }

    fn all(&mut self, targets: &[Target]) -> Result<(), NoCommonAncestor> {
        let order = self.order;
        let mut spares: Vec<(usize, usize)> = Vec::new();
        let mut js: Vec<u32> = Vec::new();
        for of_switch in targets.chunk_by(|a, b| a.row == b.row) {
            let destination = of_switch[0].row as usize;
            self.survey(destination);
            self.fill_aside(destination, of_switch)?;
            js.clear();
            js.extend(of_switch.iter().map(|target| self.position(target)));
            spares.clear();
            for row in order.descending.iter().map(|row| *row as usize) {
                if row != destination && self.distances[row] != FAR {
                    self.fill_row(row, of_switch, &js, &mut spares);
                }
            }
            // Target by target, the highest switch first: a choice looks at the path beyond it.
            spares.sort_by_key(|(at, _)| *at);
            for (at, row) in &spares {
                let (target, j) = (&of_switch[*at], js[*at]);
                let port = self.choose_other(*row, target, j);
                self.tables.row_mut(*row)[usize::from(target.lid.value())] = port;
            }
        }
        self.rehome(targets);
        Ok(())
    }

    /// The entries of one switch that the closed form gives; the others are noted in `spares`.
    fn fill_row(
        &mut self,
        row: usize,
        targets: &[Target],
        js: &[u32],
        spares: &mut Vec<(usize, usize)>,
    ) {
        let (order, slots) = (self.order, self.slots);
        let distance = self.distances[row];
        let entries = self.tables.row_mut(row);
        if self.down[row] == FAR {
            for (at, (target, j)) in targets.iter().zip(js).enumerate() {
                match slots.choose(row, *j) {
                    Some((port, peer)) if self.distances[peer].saturating_add(1) == distance => {
                        entries[usize::from(target.lid.value())] = port;
                    }
                    _ => spares.push((at, row)),
                }
            }
            return;
        }
        self.children.clear();
        self.children.extend(self.graph.switch_peers(row).filter(|(_, peer, _)| {
            self.down[*peer].saturating_add(1) == distance && order.is_up(*peer, row)
        }));
        for (at, (target, j)) in targets.iter().zip(js).enumerate() {
            // The cable by which the child itself would climb for this position: parallel cables
            // then share both directions evenly.
            let same = self
                .children
                .iter()
                .find(|(_, peer, peer_port)| slots.choose(*peer, *j) == Some((*peer_port, row)));
            match (same, &self.children[..]) {
                (Some((port, ..)), _) | (None, [(port, ..)]) => {
                    entries[usize::from(target.lid.value())] = *port;
                }
                _ => spares.push((at, row)),
            }
        }
    }

    /// The number whose digits choose the path.
    fn position(&self, target: &Target) -> u32 {
        let base = self.positions.get(&target.owner.end).copied().unwrap_or(target.row);
        self.slots.home(target.row as usize, base.wrapping_add(u32::from(target.owner.offset)))
    }

    /// Distances to a switch along down paths and along up-then-down paths.
    fn survey(&mut self, destination: usize) {
        self.down.fill(FAR);
        self.distances.fill(FAR);
        self.queue.clear();
        self.queue.push(destination);
        self.down[destination] = 0;
        let mut next = 0;
        while let Some(&row) = self.queue.get(next) {
            next += 1;
            for (_, peer, _) in self.graph.switch_peers(row) {
                if self.order.is_up(row, peer) && self.down[peer] == FAR {
                    self.down[peer] = self.down[row] + 1;
                    self.queue.push(peer);
                }
            }
        }
        for row in &self.order.descending {
            let row = *row as usize;
            self.distances[row] = self.down[row];
            if self.down[row] == FAR {
                let up = self.graph.switch_peers(row).filter(|p| self.order.is_up(row, p.1));
                let nearest = up.map(|p| self.distances[p.1]).min().unwrap_or(FAR);
                self.distances[row] = nearest.saturating_add(1);
            }
        }
    }

    /// Entries of switches without an up-then-down path: towards the nearest that has one. They
    /// carry management only, so a host on such a switch is an error if the destination is a host.
    fn fill_aside(
        &mut self,
        destination: usize,
        targets: &[Target],
    ) -> Result<(), NoCommonAncestor> {
        if !self.distances.contains(&FAR) {
            return Ok(());
        }
        let to_host = self.graph.has_adapter(destination);
        let mut via: Vec<Option<u8>> = vec![None; self.graph.rows()];
        let mut queue: Vec<usize> =
            (0..self.graph.rows()).filter(|row| self.distances[*row] != FAR).collect();
        let mut next = 0;
        while let Some(&row) = queue.get(next) {
            next += 1;
            for (_, peer, peer_port) in self.graph.switch_peers(row) {
                if self.distances[peer] != FAR || via[peer].is_some() {
                    continue;
                }
                if to_host && self.graph.has_adapter(peer) {
                    return Err(NoCommonAncestor { row: peer });
                }
                via[peer] = Some(peer_port);
                queue.push(peer);
            }
        }
        for (row, port) in via.iter().enumerate() {
            let Some(port) = port else { continue };
            for target in targets {
                self.tables.row_mut(row)[usize::from(target.lid.value())] = *port;
            }
        }
        Ok(())
    }

    /// For every switch and target, all ports of shortest legal paths.
    fn groups(&mut self, targets: &[Target]) -> AdaptiveGroups {
        let mut groups = AdaptiveGroups::empty(self.graph.rows(), self.tables.columns());
        let mut ports = Vec::new();
        for of_switch in targets.chunk_by(|a, b| a.row == b.row) {
            let destination = of_switch[0].row as usize;
            self.survey(destination);
            for row in (0..self.graph.rows()).filter(|row| *row != destination) {
                ports.clear();
                if self.distances[row] != FAR {
                    ports.extend(self.candidates(row).iter().map(|(port, _)| *port));
                }
                groups.set(row, of_switch.iter().map(|target| target.lid), &ports);
            }
        }
        groups
    }

    /// The port of a switch towards a target for which the closed form has none.
    fn choose_other(&mut self, row: usize, target: &Target, j: u32) -> u8 {
        let careful = self.shifts.as_ref().is_some_and(|shifts| shifts.tracks(target))
            && self.down[row] == FAR
            && self.graph.has_adapter(row)
            && self.pending.len() < PENDING_MAX;
        if careful {
            self.pending.push(Pending { lid: target.lid.value(), row: row as u32 });
            return NO_PORT;
        }
        self.choose_spare(row, target, j)
    }

    /// Legal next ports of a switch: (port, peer row).
    fn candidates(&self, row: usize) -> Vec<(u8, usize)> {
        let peers = self.graph.switch_peers(row);
        if self.down[row] != FAR {
            let below = |peer: usize| self.down[peer].saturating_add(1) == self.down[row];
            return peers
                .filter(|p| below(p.1) && self.order.is_up(p.1, row))
                .map(|(port, peer, _)| (port, peer))
                .collect();
        }
        let nearer = |peer: usize| self.distances[peer].saturating_add(1) == self.distances[row];
        peers
            .filter(|p| nearer(p.1) && self.order.is_up(row, p.1))
            .map(|(port, peer, _)| (port, peer))
            .collect()
    }

    /// The legal port whose path carries the fewest entries outside the closed form.
    fn choose_spare(&mut self, row: usize, target: &Target, j: u32) -> u8 {
        let lid = target.lid.value();
        let candidates = self.candidates(row);
        let count = candidates.len().max(1);
        let best = candidates.iter().enumerate().min_by_key(|(index, (port, peer))| {
            let own = self.extra[self.graph.channel(row, *port)];
            let onward = self.onward(*peer, target);
            let uncounted = onward.iter().filter(|channel| self.counted[**channel] != lid);
            let load: u32 = uncounted.map(|channel| self.extra[*channel]).sum();
            // Equal ones take turns by position.
            (own + load, own, (index + count - j as usize % count) % count)
        });
        let Some((_, &(port, peer))) = best else { return NO_PORT };
        if target.exit != 0 {
            let mut path = self.onward(peer, target);
            path.push(self.graph.channel(row, port));
            for channel in path {
                if std::mem::replace(&mut self.counted[channel], lid) != lid {
                    self.extra[channel] += 1;
                }
            }
        }
        port
    }

    /// The channels from a switch to the target's switch, as far as entries are set.
    fn onward(&self, mut row: usize, target: &Target) -> Vec<usize> {
        let mut channels = Vec::new();
        while row != target.row as usize && channels.len() < self.graph.rows() {
            let port = self.tables.row(row)[usize::from(target.lid.value())];
            let Peer::Switch { row: next, .. } = self.graph.peer(row, port) else {
                break;
            };
            channels.push(self.graph.channel(row, port));
            row = next as usize;
        }
        channels
    }
}
