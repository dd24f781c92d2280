//! What it is: dimension-order routing on meshes and tori, freed from deadlock by a dateline in
//! every ring (Dally and Seitz, "Deadlock-free message routing in multiprocessor interconnection
//! networks", IEEE Trans. Computers C-36(5), 1987), coded in the service level.
//!
//! What we do differently: SL2VL sees (input, output, SL) and not the lane a packet came on, so the
//! SL says beforehand what will happen: bit d is set if and only if the path crosses the wrap link
//! of the d-th wrapping dimension, and that dimension's links carry the packet on the VL that bit d
//! says. In one direction of a ring of k, VL 1 holds paths over the wrap link of at most k/2 hops:
//! none of them passes the switches k/2 - 1 and k/2, so the ring is cut there; VL 0 is cut at the
//! wrap link. Rings follow one another in the order of dimensions, so nothing closes a loop.
//!
//! SL(s, d) = SL(d, s), so acknowledgements on the request's SL stay on these lanes. That needs a
//! tie (half way round an even ring) to use the same arc both ways: the choice is symmetric in the
//! two ends. It is the parity of the smaller coordinate plus all coordinates of both ends in
//! dimensions that come later, which is as much as a forwarding table (switch, destination) can
//! tell. So half of the ties go each way in every dimension but the last, where the smaller
//! coordinate alone decides and the links near coordinate 0 carry more. One flow between every two
//! switches loads the links of the first dimension of an 8x8 torus with 64 flows each, those of the
//! last with 64 on average and 72 at most; of a 4x4x4 torus with 32, and 32 to 48 at most in the
//! last (`loads_are_as_documented`).
//!
//! Any number of hosts per switch is sound. All 2^LMC LIDs of a port take the same route.
//! Parameters: lmc 0 to 7; lanes 2 to 15 if a dimension wraps, else 1 to 15; at most 4 wrapping
//! dimensions.

use super::{Claims, Entry, RouteOptions, RoutingError};
use crate::graph::{Peer, SwitchGraph};
use crate::{ForwardingTables, PathSl, Subnet};
use clearlane_fabric::structure::{self, Grid};
use clearlane_fabric::{Endpoint, Fabric};
use clearlane_ib::{PortNumber, ServiceLevel, VirtualLane};

/// `dor`.
pub(super) const ENTRY: Entry = Entry {
    name: "dor",
    summary: "dimension order on meshes and tori, datelines coded in the SL",
    reference: "Dally, Seitz, IEEE Trans. Computers C-36(5), 1987; SL coding as torus-2QoS",
    parameters: "lmc 0 to 7 (all LIDs of a port take one route); lanes 2 to 15 on a torus",
    lanes: 1,
    adaptive: false,
    roots: false,
    claims: Claims {
        minimal: true,
        deadlock_free: true,
        balanced_on: "tori under uniform traffic",
        accepts: "whole meshes and tori with ports 2d+1 and 2d+2 along dimension d, at most 4 of \
                  them wrapping",
    },
    route,
};

/// SL bits there are, and so dimensions that may wrap.
const WRAPS_MAX: usize = 4;

/// Places of the switches of a torus and the rule which way a packet goes; gives the SL of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Datelines {
    dims: Vec<u32>,
    wraps: Vec<bool>,
    /// Coordinates of row r at `r * dims.len()`.
    coordinates: Vec<u32>,
    /// Dimensions in the order in which packets go along them.
    order: Vec<usize>,
    /// The SL of paths that cross no wrap link; those of all others follow.
    first: u8,
    /// Whether every tie goes the other way: half way round an even ring both arcs are as long.
    other_ties: bool,
}

impl Datelines {
    /// The SL of a path between switches by row: the first one plus a number in which bit d is set
    /// if the path crosses the wrap link of the d-th wrapping dimension. Symmetric.
    pub fn level(&self, source: usize, destination: usize) -> ServiceLevel {
        let (from, to) = (self.of(source), self.of(destination));
        let mut level = self.first;
        for (place, dimension) in self.order.iter().enumerate() {
            let Some(bit) = self.bit(*dimension) else { continue };
            let (a, b) = (from[*dimension], to[*dimension]);
            if a != b && self.towards_plus(place, from, to) == (b < a) {
                level += 1 << bit;
            }
        }
        ServiceLevel::new(level).unwrap_or_default()
    }

    /// The SLs that paths may have, a bit each: any set of datelines.
    pub(crate) fn levels(&self) -> u16 {
        let all = u16::MAX >> (16 - self.level_count().min(16));
        all.checked_shl(self.first.into()).unwrap_or(0)
    }

    /// The same grid with dimensions taken in opposite order, and its SLs from `first` on.
    pub(super) fn opposite(&self, first: u8) -> Self {
        let order = self.order.iter().rev().copied().collect();
        Datelines { order, first, ..self.clone() }
    }

    /// The same with every tie the other way, and its SLs from `first` on.
    pub(super) fn other_ties(&self, first: u8) -> Self {
        Datelines { other_ties: !self.other_ties, first, ..self.clone() }
    }

    /// Whether there are ties: rings of an even number of switches, two of which are one link.
    pub(super) fn has_ties(&self) -> bool {
        let even = |(size, wraps): (&u32, &bool)| *wraps && *size > 2 && size.is_multiple_of(2);
        self.dims.iter().zip(&self.wraps).any(even)
    }

    /// Whether ties go the other way than in [`dor`](super::dor).
    pub(super) fn has_other_ties(&self) -> bool {
        self.other_ties
    }

    /// How many SLs there are: 2 to the power of the dimensions that wrap.
    pub(super) fn level_count(&self) -> usize {
        1 << self.wraps.iter().filter(|wraps| **wraps).count()
    }

    /// Dimensions in the order in which packets go along them.
    pub(super) fn order(&self) -> &[usize] {
        &self.order
    }

    /// How many dimensions have more than one switch.
    pub(super) fn extended(&self) -> usize {
        self.dims.iter().filter(|size| **size > 1).count()
    }

    /// Which of two lanes a link carries a packet on: the bit of its SL where the output port lies
    /// on a wrapping dimension, else 0.
    pub(super) fn lane(&self, output: u8, sl: u8) -> u8 {
        let dimension = output.checked_sub(1).map(|port| usize::from(port) / 2);
        let bit = dimension.and_then(|dimension| self.bit(dimension));
        bit.map_or(0, |bit| (sl.saturating_sub(self.first) >> bit) & 1)
    }

    /// The SL bit of a dimension; nothing for those that do not wrap.
    fn bit(&self, dimension: usize) -> Option<usize> {
        let wraps = self.wraps.get(dimension).copied().unwrap_or(false);
        wraps.then(|| self.wraps[..dimension].iter().filter(|wraps| **wraps).count())
    }

    fn of(&self, row: usize) -> &[u32] {
        &self.coordinates[row * self.dims.len()..(row + 1) * self.dims.len()]
    }

    /// Whether the way along the dimension at `place` of the order leads towards +; the two ends
    /// differ in it.
    fn towards_plus(&self, place: usize, from: &[u32], to: &[u32]) -> bool {
        let dimension = self.order[place];
        let (a, b, size) = (from[dimension], to[dimension], self.dims[dimension]);
        if !self.wraps[dimension] {
            return b > a;
        }
        let ahead = if b > a { b - a } else { b + size - a };
        if 2 * ahead != size {
            return 2 * ahead < size;
        }
        let later =
            self.order[place + 1..].iter().map(|later| from[*later].wrapping_add(to[*later]));
        let parity = later.fold(a.min(b), u32::wrapping_add) & 1;
        // Even: the arc without the wrap link, upwards for the lower end.
        ((parity == 0) == (a < b)) != self.other_ties
    }

    /// The port a switch sends by towards another one; nothing for itself.
    pub(super) fn port(&self, row: usize, destination: usize) -> Option<u8> {
        let (from, to) = (self.of(row), self.of(destination));
        let place = self.order.iter().position(|d| from[*d] != to[*d])?;
        let plus = self.towards_plus(place, from, to);
        let dimension = self.order[place];
        Some((2 * dimension + if plus { 1 } else { 2 }) as u8)
    }
}

fn route(fabric: &Fabric, options: &RouteOptions) -> Result<Subnet, RoutingError> {
    let structure = |source| RoutingError::Structure { engine: ENTRY.name, source };
    let grid = structure::grid(fabric).map_err(structure)?;
    let wraps = grid.wraps.iter().filter(|wraps| **wraps).count();
    if wraps > WRAPS_MAX {
        return Err(RoutingError::TooManyWraps { engine: ENTRY.name, wraps });
    }
    super::check_lanes(ENTRY.name, if wraps > 0 { 2 } else { 1 }, options)?;
    let graph = SwitchGraph::of(fabric);
    let datelines = datelines(&graph, &grid);
    check_whole(fabric, &graph, &datelines)?;
    let lids = super::lids(fabric, options)?;
    let targets = graph.targets(&lids);
    let mut tables = ForwardingTables::empty(fabric, lids.table_len());
    super::fill_exits(&graph, &targets, &mut tables);
    for of_switch in targets.chunk_by(|a, b| a.row == b.row) {
        let destination = of_switch[0].row as usize;
        for row in 0..graph.rows() {
            let Some(port) = datelines.port(row, destination) else { continue };
            let entries = tables.row_mut(row);
            for target in of_switch {
                entries[usize::from(target.lid.value())] = port;
            }
        }
    }
    let mut subnet = super::plain_subnet(ENTRY.name, fabric, options, lids, tables);
    if wraps > 0 {
        set_lanes(fabric, &datelines, &mut subnet);
        subnet.path_sl = PathSl::Datelines(datelines);
    }
    Ok(subnet)
}

/// Places and the rule for a grid, cables and switches of which may be missing; nothing for other
/// fabrics.
pub(super) fn of_grid(fabric: &Fabric, graph: &SwitchGraph) -> Option<Datelines> {
    Some(datelines(graph, &structure::grid(fabric).ok()?))
}

fn datelines(graph: &SwitchGraph, grid: &Grid) -> Datelines {
    let mut coordinates = Vec::with_capacity(graph.rows() * grid.dims.len());
    for row in 0..graph.rows() {
        // Every switch has coordinates: the grid would not have been recovered otherwise.
        coordinates.extend_from_slice(grid.coords(graph.switch(row)).unwrap_or(&[]));
    }
    let order = (0..grid.dims.len()).collect();
    let (dims, wraps) = (grid.dims.clone(), grid.wraps.clone());
    Datelines { dims, wraps, coordinates, order, first: 0, other_ties: false }
}

/// The same for a grid of which nothing is missing and whose datelines can be coded.
pub(super) fn of_whole_grid(fabric: &Fabric, graph: &SwitchGraph) -> Option<Datelines> {
    let ways = of_grid(fabric, graph)?;
    let coded = ways.level_count() <= 1 << WRAPS_MAX;
    (coded && check_whole(fabric, graph, &ways).is_ok()).then_some(ways)
}

/// Fails at the first cable that a whole grid would have.
fn check_whole(
    fabric: &Fabric,
    graph: &SwitchGraph,
    datelines: &Datelines,
) -> Result<(), RoutingError> {
    for row in 0..graph.rows() {
        for (dimension, coordinate) in datelines.of(row).iter().enumerate() {
            let (size, wraps) = (datelines.dims[dimension], datelines.wraps[dimension]);
            let ends = [(1, *coordinate + 1 == size), (2, *coordinate == 0)];
            for (side, at_end) in ends {
                let port = (2 * dimension + side) as u8;
                let cabled = matches!(graph.peer(row, port), Peer::Switch { .. });
                if cabled || (at_end && !wraps) {
                    continue;
                }
                let port = PortNumber::new(port).unwrap_or(PortNumber::MANAGEMENT);
                let port = fabric.describe(Endpoint { node: graph.switch(row), port });
                let port = port.escape_debug().to_string();
                return Err(RoutingError::Hole { engine: ENTRY.name, port, dimension });
            }
        }
    }
    Ok(())
}

/// Links of the d-th wrapping dimension carry the lane that SL bit d says; all others VL 0.
fn set_lanes(fabric: &Fabric, datelines: &Datelines, subnet: &mut Subnet) {
    let lane =
        |output: u8, sl: u8| VirtualLane::new(datelines.lane(output, sl)).unwrap_or_default();
    super::set_by_output(fabric, subnet, lane);
    // Adapters put everything on VL 0: their links belong to no ring.
    subnet.sl_to_vl.adapter = [VirtualLane::default(); 16];
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_fabric::topologies::build;

    fn two_lanes() -> RouteOptions {
        RouteOptions { lanes: 2, ..RouteOptions::default() }
    }

    /// Walks from switch to switch; gives ports taken.
    fn walk(datelines: &Datelines, graph: &SwitchGraph, from: usize, to: usize) -> Vec<u8> {
        let (mut row, mut ports) = (from, Vec::new());
        while let Some(port) = datelines.port(row, to) {
            let Peer::Switch { row: next, .. } = graph.peer(row, port) else { panic!("no cable") };
            ports.push(port);
            row = next as usize;
        }
        ports
    }

    fn prepared(spec: &str) -> (SwitchGraph, Datelines) {
        let fabric = build(spec).unwrap();
        let graph = SwitchGraph::of(&fabric);
        let datelines = datelines(&graph, &structure::grid(&fabric).unwrap());
        (graph, datelines)
    }

    #[test]
    fn the_sl_says_which_wrap_links_are_crossed_and_is_symmetric() {
        for spec in ["torus:4x4x4", "torus:5x2x3", "torus:8x8", "torus:2x2x2x2", "torus:7"] {
            let (graph, datelines) = prepared(spec);
            for (from, to) in (0..graph.rows()).flat_map(|a| (0..graph.rows()).map(move |b| (a, b)))
            {
                let mut expected = 0;
                let mut row = from;
                for port in walk(&datelines, &graph, from, to) {
                    let dimension = usize::from(port - 1) / 2;
                    let at = datelines.of(row)[dimension];
                    let wrap = if port % 2 == 1 { datelines.dims[dimension] - 1 } else { 0 };
                    if at == wrap {
                        expected |= 1 << dimension;
                    }
                    let Peer::Switch { row: next, .. } = graph.peer(row, port) else { panic!() };
                    row = next as usize;
                }
                assert_eq!(datelines.level(from, to).value(), expected, "{spec} {from} {to}");
                assert_eq!(datelines.level(from, to), datelines.level(to, from));
            }
        }
    }

    #[test]
    fn loads_are_as_documented() {
        for (spec, dimension, mean, most) in [
            ("torus:8x8", 0, 64, 64),
            ("torus:8x8", 1, 64, 72),
            ("torus:5x5", 0, 15, 15),
            ("torus:4x4x4", 0, 32, 32),
            ("torus:4x4x4", 1, 32, 32),
            ("torus:4x4x4", 2, 32, 48),
            ("torus:2x2", 0, 1, 1),
        ] {
            let (graph, datelines) = prepared(spec);
            let mut loads = vec![0; graph.channels()];
            for from in 0..graph.rows() {
                for to in 0..graph.rows() {
                    let mut row = from;
                    for port in walk(&datelines, &graph, from, to) {
                        loads[graph.channel(row, port)] += 1;
                        let Peer::Switch { row: next, .. } = graph.peer(row, port) else {
                            panic!()
                        };
                        row = next as usize;
                    }
                }
            }
            let of_dimension: Vec<u64> = (0..graph.channels())
                .filter(|channel| {
                    let port = graph.place(*channel).1;
                    port > 0 && usize::from(port - 1) / 2 == dimension
                })
                .filter(|channel| matches!(graph.peer_of(*channel), Peer::Switch { .. }))
                .map(|channel| loads[channel])
                .collect();
            let sum: u64 = of_dimension.iter().sum();
            let measured = (sum / of_dimension.len() as u64, *of_dimension.iter().max().unwrap());
            assert_eq!(measured, (mean, most), "{spec} dimension {dimension}");
        }
    }

    #[test]
    fn a_tie_goes_by_the_parity_of_its_lower_end() {
        let (_, datelines) = prepared("torus:4");
        // Between 0 and 2 without the wrap link, between 1 and 3 over it.
        let ports = [(0, 2), (2, 0), (1, 3), (3, 1)].map(|(a, b)| datelines.port(a, b));
        assert_eq!(ports, [1, 2, 2, 1].map(Some));
    }

    #[test]
    fn adapters_put_everything_on_one_lane() {
        let subnet = route(&build("torus:4x4").unwrap(), &two_lanes()).unwrap();
        assert_eq!(subnet.sl_to_vl.adapter, [VirtualLane::default(); 16]);
        assert_eq!(subnet.sl_to_vl.lanes(), 2);
    }

    #[test]
    fn what_cannot_be_routed_is_refused_with_the_remedy() {
        let reason =
            |spec: &str, o: &RouteOptions| route(&build(spec).unwrap(), o).unwrap_err().to_string();
        let error = reason("torus:2x2x2x2x2", &two_lanes());
        assert!(error.contains("5 dimensions wrap") && error.contains("use fat-tree"), "{error}");
        let error = reason("fat-tree:648", &two_lanes());
        assert!(error.contains("not a grid") && error.contains("route it with"), "{error}");
        let error = reason("torus:4x4", &RouteOptions::default());
        assert!(error.contains("needs 2 to 15 data VLs here, and 1 are given"), "{error}");
        let mut holed = build("torus:4x4").unwrap();
        let cables: Vec<String> = holed.links().iter().map(|link| holed.cable(link)).collect();
        holed.unplug(|id, _| cables[id.index()].starts_with("sw-1-2[1]-sw-2-2[2]"));
        let error = route(&holed, &two_lanes()).unwrap_err().to_string();
        assert!(error.contains("from port sw-1-2[1] onwards in dimension 0"), "{error}");
    }
}
