//! What it is: several paths per pair, one for each LID offset, as link-disjoint as the fabric and
//! the lanes allow, for sources that choose the path (DRB, HSAM). For one LID forwarding is one
//! tree towards the destination, so the paths of an offset are in-trees, not free choices per pair.
//!
//! Source: Franco, Garcés, Luque, "A new method to make communication latency uniform: distributed
//! routing balancing", ICS 1999 (several paths per pair, the shortest first); XY and YX with
//! datelines: Dally and Seitz, IEEE Trans. Computers C-36(5), 1987; up*/down*: Schroeder et al.,
//! Autonet, IEEE JSAC 9(8), 1991; D-mod-K: Zahavi, JPDC 72(11), 2012.
//! What we do differently: paths found by search and laid into lanes until no loop is left may take
//! more lanes than links have. Here each offset keeps to rules that close no loop, in lanes of its
//! own (`plan`):
//! * whole meshes and tori: offset 0 in dimension order, offset 1 in the opposite one, each with
//!   datelines coded in the SL (`dor`). With rings of an even number of switches, offsets 2 and 3
//!   are the same with ties the other way where the lanes suffice: four offsets of a 2-D torus take
//!   8 VLs and all 16 SLs, every path is as short as can be, and no root draws paths together. The
//!   others go up*/down* around roots far apart (`roots`): four offsets in 6 VLs and 10 SLs. Pairs
//!   on one line have several paths only so;
//! * fat trees: D-mod-K of `fat-tree`, shifted by the offset, so that each goes over another root.
//!   All go up and then down and share one lane. Where cables are missing and two offsets would
//!   share one, the later is changed (`improve`);
//! * any other fabric: offset 0 shortest paths of `layered`, the others up*/down* around the most
//!   central switches.
//!
//! An up*/down* tree is laid so that every switch keeps clear of its own paths at the offsets
//! before (`avoid`, `earlier`), then changed entry by entry for those who come over it (`improve`).
//! Where lanes are too few, offsets share an up*/down* order and so its lane, or repeat the paths
//! before; a remark says so.
//!
//! SL(s, d, offset) = SL(d, s, offset) and acknowledgements go to the same offset, so they stay in
//! the lanes of the offset.
//! Parameters: lmc 0 to 7 (16 offsets have paths of their own, on fat trees all 128); lanes 1 to
//! 15: as many as may be used.

mod avoid;
mod earlier;
mod improve;
mod plan;
mod roots;

use super::order::Order;
use super::{Claims, Entry, RouteOptions, RoutingError, fat_tree};
use crate::graph::{SwitchGraph, Target};
use crate::{ForwardingTables, SlToVl, Subnet};
use clearlane_fabric::Fabric;
use clearlane_ib::{Lmc, VirtualLane};
use improve::{Improve, Tree};
use plan::Plan;

/// Offsets that get paths of their own; those beyond repeat them, and on a fat tree are as
/// `fat-tree` has them.
const WAYS_MAX: usize = 16;

/// `multipath`.
pub(super) const ENTRY: Entry = Entry {
    name: "multipath",
    summary: "a path per LID offset, as disjoint as can be, each offset free of deadlock",
    reference: "Franco et al., DRB, ICS 1999; Dally, Seitz 1987; Autonet 1991; Zahavi 2012",
    parameters: "lmc 0 to 7: 2^lmc paths per pair, 2 for four; lanes 1 to 15, as many as may be \
                 used: four paths on a 2-D torus take 6 with two up*/down* trees among them, 8 \
                 with shortest paths alone",
    lanes: 8,
    adaptive: false,
    roots: false,
    claims: Claims {
        minimal: false,
        deadlock_free: true,
        balanced_on: "full fat trees: every shift of the rank order, at each LID offset",
        accepts: "every fabric",
    },
    route,
};

fn route(fabric: &Fabric, options: &RouteOptions) -> Result<Subnet, RoutingError> {
    super::check_lanes(ENTRY.name, 1, options)?;
    let graph = SwitchGraph::of(fabric);
    let mut subnet = if Order::is_tree(&graph) {
        over_a_tree(fabric, &graph, options)?
    } else {
        by_plan(fabric, &graph, options)?
    };
    if subnet.lids.lmc_max() == Lmc::default() {
        subnet.notes.push("every host has one LID and so one path; set lmc to 1 to 7".to_owned());
    }
    Ok(subnet)
}

/// D-mod-K, and where cables are missing other entries for the offsets that would share some.
fn over_a_tree(
    fabric: &Fabric,
    graph: &SwitchGraph,
    options: &RouteOptions,
) -> Result<Subnet, RoutingError> {
    let (mut subnet, order) = fat_tree::routed(fabric, options)?;
    subnet.engine = ENTRY.name.to_string();
    let mut improve = Improve::new(graph, &order);
    let (mut near, mut queue, mut home) = (Vec::new(), Vec::new(), None);
    let mut targets = graph.targets(&subnet.lids);
    targets.retain(|target| target.exit != 0);
    for of_port in targets.chunk_by(|a, b| a.owner.end == b.owner.end) {
        let destination = of_port[0].row as usize;
        if home.replace(destination) != Some(destination) {
            graph.distances(destination, &mut near, &mut queue);
        }
        let mut trees: Vec<Vec<u8>> = Vec::new();
        for target in of_port.iter().take(WAYS_MAX) {
            let lid = usize::from(target.lid.value());
            let mut ports: Vec<u8> =
                (0..graph.rows()).map(|row| subnet.tables.row(row)[lid]).collect();
            let before: Vec<&[u8]> = trees.iter().map(Vec::as_slice).collect();
            let tree = Tree { destination, near: &near, before: &before };
            if target.owner.offset > 0 && improve.entries(&tree, &mut ports) {
                for (row, port) in ports.iter().enumerate() {
                    subnet.tables.row_mut(row)[lid] = *port;
                }
            }
            trees.push(ports);
        }
    }
    subnet.notes.push("all LID offsets go up and then down, on one SL".to_owned());
    Ok(subnet)
}

fn by_plan(
    fabric: &Fabric,
    graph: &SwitchGraph,
    options: &RouteOptions,
) -> Result<Subnet, RoutingError> {
    let lids = super::lids(fabric, options)?;
    let targets = graph.targets(&lids);
    let offsets = usize::from(lids.lmc_max().lids());
    let plan = Plan::of(fabric, graph, &targets, offsets, options.lanes);
    let mut tables = ForwardingTables::empty(fabric, lids.table_len());
    super::fill_exits(graph, &targets, &mut tables);
    for of_switch in targets.chunk_by(|a, b| a.row == b.row) {
        fill(graph, &plan, of_switch, &mut tables);
    }
    let mut subnet = super::plain_subnet(ENTRY.name, fabric, options, lids, tables);
    subnet.sl_to_vl = SlToVl::modulo(fabric, plan.lanes_used());
    // Packets for the switch itself take no link.
    let at_home = VirtualLane::default();
    super::set_by_output(fabric, &mut subnet, |output, sl| {
        if output == 0 { at_home } else { plan.lane(output, sl) }
    });
    subnet.sl_to_vl.adapter = std::array::from_fn(|sl| plan.lane(0, sl as u8));
    subnet.path_sl = plan.path_sl(graph.rows());
    subnet.remarks.extend(super::remark_on_parts(fabric, graph));
    subnet.notes.extend(plan.notes(fabric, graph));
    subnet.remarks.extend(plan.shortage(fabric, graph, offsets, options.lanes));
    Ok(subnet)
}

/// Entries of all other switches for the LIDs of one and its hosts.
fn fill(graph: &SwitchGraph, plan: &Plan, of_switch: &[Target], tables: &mut ForwardingTables) {
    let (mut host, mut last) = (0, None);
    for target in of_switch {
        if target.exit != 0 && last.replace(target.exit).is_some_and(|last| last != target.exit) {
            host += 1;
        }
        let destination = target.row as usize;
        let Some(ports) = plan.ports(destination, host, target.owner.offset) else { continue };
        for (row, port) in ports.iter().enumerate().filter(|(row, _)| *row != destination) {
            tables.row_mut(row)[usize::from(target.lid.value())] = *port;
        }
    }
    debug_assert!(of_switch.iter().all(|target| (target.row as usize) < graph.rows()));
}
