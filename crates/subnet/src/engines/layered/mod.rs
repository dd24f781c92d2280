//! What it is: shortest paths on any fabric, freed from deadlock by laying pairs of switches into
//! lanes; where lanes are too few, up*/down* paths for some destinations. Never fails.
//!
//! Source: layers of switch pairs with acyclic dependencies: Skeie, Lysne, Theiss, "Layered
//! shortest path (LASH) routing in irregular system area networks", IPDPS 2002; shortest-path trees
//! balanced over all flows: Domke, Hoefler, Nagel, "Deadlock-free oblivious routing for arbitrary
//! topologies", IPDPS 2011 (DFSSSP); a budget of lanes that always suffices: Domke, Hoefler,
//! Matsuoka, "Routing on the dependency graph: a new approach to deadlock-free high-performance
//! routing", HPDC 2016 (Nue).
//! What we do differently: both ways of a pair take one SL, so that acknowledgements stay in the
//! lane that was proven for them; DFSSSP lays each way by itself. Several rules for ties are tried:
//! on grids the order of dimensions, whose pairs need one lane for each set of datelines at most (8
//! on a torus of three dimensions), on others the fewest flows and then the fewest turns from down
//! to up. Pairs with long paths are laid first; the few that are left are laid by changing entries
//! on their way, and where that fails all are laid again with these first. If no rule fits the
//! lanes, VL 0 is reserved for up-then-down paths, all destinations begin with these, and one by
//! one get shortest paths while all their pairs fit. Last, pairs move to lanes that carry less.
//! Parameters: lmc 0 to 7 (the LIDs of a switch's hosts take different trees where these fit),
//! lanes 1 to 15: as many as may be used; SL = VL.

mod lanes;
mod pairs;
mod repair;
mod shortest;

use super::order::Order;
use super::trees::{self, Trees, lengths};
use super::up_down::Legal;
use super::{Claims, Entry, RouteOptions, RoutingError, dor};
use crate::graph::{SwitchGraph, Target};
use crate::{ForwardingTables, PathSl, Subnet};
use clearlane_fabric::Fabric;
use clearlane_ib::ServiceLevel;
use lanes::Lanes;
use pairs::Pairs;
use repair::Repair;
use shortest::{Ties, shortest};

/// `layered`.
pub(super) const ENTRY: Entry = Entry {
    name: "layered",
    summary: "shortest paths on any fabric, deadlock-free in the lanes given, as LASH and DFSSSP",
    reference: "Skeie et al., LASH, IPDPS 2002; Domke et al., DFSSSP, IPDPS 2011, Nue, HPDC 2016",
    parameters: "lmc 0 to 7; lanes 1 to 15, as many as may be used: the more, the shorter paths",
    lanes: 8,
    adaptive: false,
    roots: false,
    claims: Claims {
        minimal: false,
        deadlock_free: true,
        balanced_on: "trees and full tori, judged by flows over all pairs",
        accepts: "every fabric",
    },
    route,
};

/// How often pairs are laid with one rule, those that were left before first.
const ROUNDS_MAX: usize = 6;

fn route(fabric: &Fabric, options: &RouteOptions) -> Result<Subnet, RoutingError> {
    super::check_lanes(ENTRY.name, 1, options)?;
    let lids = super::lids(fabric, options)?;
    let graph = SwitchGraph::of(fabric);
    let targets = graph.targets(&lids);
    let laid = lay(fabric, &graph, &targets, usize::from(options.lanes));
    let mut tables = ForwardingTables::empty(fabric, lids.table_len());
    super::fill_exits(&graph, &targets, &mut tables);
    laid.trees.fill(&targets, &mut tables);
    let mut subnet = super::plain_subnet(ENTRY.name, fabric, options, lids, tables);
    let used = laid.pairs.lanes_used();
    if used > 1 {
        let (stride, levels) = (graph.rows(), laid.pairs.levels(graph.rows()));
        subnet.path_sl = PathSl::BySwitch { stride, levels };
    } else {
        subnet.path_sl = PathSl::Uniform(ServiceLevel::default());
    }
    subnet.remarks.extend(super::remark_on_parts(fabric, &graph));
    subnet.notes.push(note(&graph, &laid, options.lanes));
    Ok(subnet)
}

/// Trees, and by source and destination row the lane that closes no loop.
pub(super) struct ShortestPaths {
    pub(super) trees: Trees,
    pub(super) levels: Vec<u8>,
    pub(super) lanes_used: u8,
}

/// Paths to the hosts of these targets, as short as so many lanes allow.
pub(super) fn shortest_paths(
    fabric: &Fabric,
    graph: &SwitchGraph,
    targets: &[Target],
    lanes: u8,
) -> ShortestPaths {
    let laid = lay(fabric, graph, targets, usize::from(lanes));
    let levels = laid.pairs.levels(graph.rows());
    ShortestPaths { trees: laid.trees, levels, lanes_used: laid.pairs.lanes_used() }
}

/// Trees, and the lane of every pair.
struct Laid {
    trees: Trees,
    pairs: Pairs,
    /// Destinations with hosts that have up-then-down paths, longer than the shortest.
    fallen_back: usize,
}

/// Finds trees that fit the lanes.
fn lay(fabric: &Fabric, graph: &SwitchGraph, targets: &[Target], budget: usize) -> Laid {
    let ways = dor::of_grid(fabric, graph);
    let (one, many) = (vec![1; graph.rows()], trees::counts(graph, targets));
    let Legal { order, trees: up_down } = Legal::of(graph, &one, Order::around(graph, &[]));
    let of_grid = ways.as_ref().map(|ways| (Ties::Dimensions(ways), &one));
    let turns = Ties::FewTurns(&order);
    let others: [(Ties<'_>, &Vec<usize>); 3] =
        [(Ties::Balanced, &many), (turns, &many), (turns, &one)];
    for (ties, counts) in of_grid.into_iter().chain(others) {
        let shortest = shortest(graph, ties, counts);
        let mut pairs = Pairs::of(graph, &shortest, ties);
        for _ in 0..ROUNDS_MAX {
            let mut trees = shortest.clone();
            let mut lanes = Lanes::new(graph, &order, budget);
            let left = pairs.lay_all(graph, &trees, &mut lanes);
            let Some(mut left) = left else { break };
            let mut repair = Repair::new(graph, &mut trees, &mut pairs, &mut lanes);
            left.retain(|pair| !repair.settle(*pair));
            if left.is_empty() {
                pairs.spread(graph, &trees, &mut lanes);
                trees.adopt(&up_down);
                return Laid { trees, pairs, fallen_back: 0 };
            }
            pairs.advance(&left);
        }
    }
    let Legal { order, mut trees } = Legal::of(graph, &many, order);
    let ties = ways.as_ref().map_or(Ties::FewTurns(&order), Ties::Dimensions);
    let mut lanes = Lanes::new(graph, &order, budget);
    lanes.reserve(0, &order);
    let mut spare = shortest(graph, ties, &one);
    let mut pairs = Pairs::of(graph, &trees, ties);
    let mut fallen_back = 0;
    for destination in by_detour(graph, &trees, &spare) {
        spare.swap(&mut trees, destination);
        if pairs.lay_again(graph, &trees, &mut lanes, destination, |_| true).is_none() {
            spare.swap(&mut trees, destination);
            fallen_back += 1;
        }
        lanes.commit();
    }
    pairs.spread(graph, &trees, &mut lanes);
    Laid { trees, pairs, fallen_back }
}

/// Destinations whose paths could be shorter, those that lose most first.
fn by_detour(graph: &SwitchGraph, trees: &Trees, shortest: &Trees) -> Vec<usize> {
    let sum = |trees: &Trees, destination: usize| -> u64 {
        trees.towards(destination).next().map_or(0, |ports| {
            let lengths = lengths(graph, destination, ports);
            let sources = (0..graph.rows()).filter(|row| graph.has_adapter(*row));
            sources.map(|row| u64::from(lengths[row])).sum()
        })
    };
    let hosted = (0..graph.rows()).filter(|row| graph.has_adapter(*row));
    let mut detours: Vec<(std::cmp::Reverse<u64>, usize)> = hosted
        .map(|row| (sum(trees, row).saturating_sub(sum(shortest, row)), row))
        .filter(|(detour, _)| *detour > 0)
        .map(|(detour, row)| (std::cmp::Reverse(detour), row))
        .collect();
    detours.sort_unstable();
    detours.into_iter().map(|(_, row)| row).collect()
}

/// How many lanes are used, and what that cost.
fn note(graph: &SwitchGraph, laid: &Laid, budget: u8) -> String {
    let used = laid.pairs.lanes_used();
    let (mut paths, mut detours) = (0u64, 0u64);
    let (mut distances, mut queue) = (Vec::new(), Vec::new());
    let hosts: Vec<u64> = (0..graph.rows()).map(|row| graph.adapters(row).count() as u64).collect();
    for destination in (0..graph.rows()).filter(|row| hosts[*row] > 0) {
        graph.distances(destination, &mut distances, &mut queue);
        for ports in laid.trees.towards(destination) {
            let lengths = lengths(graph, destination, ports);
            for row in (0..graph.rows()).filter(|row| *row != destination) {
                let connected = distances[row] != trees::FAR;
                paths += if connected { hosts[row] } else { 0 };
                detours += if lengths[row] > distances[row] { hosts[row] } else { 0 };
            }
        }
    }
    if detours == 0 {
        return format!("{used} of {budget} lanes used, all paths are shortest paths");
    }
    let share = 100.0 * detours as f64 / paths.max(1) as f64;
    let destinations = hosts.iter().filter(|hosts| **hosts > 0).count();
    let why = match laid.fallen_back {
        0 => "some entries were changed to fit".to_string(),
        count => {
            format!("{count} of {destinations} destination switches have up-then-down paths")
        }
    };
    format!(
        "{used} of {budget} lanes used; {share:.2} % of the paths between switches are longer \
         than necessary: {why}; more lanes shorten them"
    )
}
