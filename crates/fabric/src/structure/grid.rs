//! Coordinates of a mesh or torus.
//!
//! Every switch gets an integer position by walking the cables. Where two walks to one switch
//! disagree, the difference is a multiple of the sizes of wrapped dimensions; the size is the
//! greatest common divisor of all differences. So cut cables cost nothing while enough remain.

use super::StructureError;
use crate::{Endpoint, Fabric, NodeId, NodeKind};
use std::collections::VecDeque;

/// A mesh, torus or mixture, with the place of every switch in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grid {
    /// Switches per dimension, dimension 0 (ports 1 and 2) first; 1 where a dimension has no cable.
    pub dims: Vec<u32>,
    /// Per dimension, whether its ends are joined (a torus). A ring of which so much is cut that
    /// no way around it is left counts as a line.
    pub wraps: Vec<bool>,
    /// Coordinates of node n at `n * dims.len()`; meaningless for adapters.
    coordinates: Vec<u32>,
    is_switch: Vec<bool>,
    /// By place, dimension 0 varying fastest.
    nodes: Vec<Option<NodeId>>,
}

impl Grid {
    /// The coordinates of a switch, one per dimension; nothing for an adapter. The first switch of
    /// the fabric is 0 in every wrapped dimension; in the others the count starts at the end.
    pub fn coords(&self, node: NodeId) -> Option<&[u32]> {
        if !self.is_switch.get(node.index()).copied().unwrap_or(false) {
            return None;
        }
        let n = self.dims.len();
        self.coordinates.get(node.index() * n..(node.index() + 1) * n)
    }

    /// The switch at these coordinates; nothing where one is missing or outside the grid.
    pub fn node_at(&self, coordinates: &[u32]) -> Option<NodeId> {
        self.nodes.get(place(&self.dims, coordinates)?).copied().flatten()
    }
}

/// Index of a place, dimension 0 varying fastest.
fn place(dims: &[u32], coordinates: &[u32]) -> Option<usize> {
    if dims.len() != coordinates.len() {
        return None;
    }
    let mut index = 0usize;
    for (size, coordinate) in dims.iter().zip(coordinates).rev() {
        if coordinate >= size {
            return None;
        }
        index = index * *size as usize + *coordinate as usize;
    }
    Some(index)
}

/// Recovers the grid. Fails with the first cable, host or switch that contradicts one.
pub fn grid(fabric: &Fabric) -> Result<Grid, StructureError> {
    let dimensions = check_ports(fabric)?;
    let walk = Walk::over(fabric, dimensions)?;
    let (dims, wraps) = walk.sizes(fabric);
    let mut size: u64 = 1;
    let switches = fabric.ids(NodeKind::Switch).count();
    for dim in &dims {
        size = size.saturating_mul(u64::from(*dim));
    }
    if size >= 2 * switches as u64 {
        let names: Vec<String> = dims.iter().map(u32::to_string).collect();
        return Err(StructureError::Sparse { switches, dimensions: names.join("x") });
    }
    let is_switch = fabric.nodes().iter().map(|node| node.is_switch()).collect();
    let mut grid = Grid {
        coordinates: vec![0; walk.positions.len()],
        is_switch,
        nodes: vec![None; size as usize],
        dims,
        wraps,
    };
    walk.settle(fabric, &mut grid)?;
    Ok(grid)
}

/// The dimension and direction a port stands for.
fn step(port: u8) -> (usize, i64) {
    (usize::from(port - 1) / 2, if port % 2 == 1 { 1 } else { -1 })
}

/// Counts the dimensions and holds every cable against the port convention.
fn check_ports(fabric: &Fabric) -> Result<usize, StructureError> {
    let mut dimensions = 0;
    for link in fabric.links() {
        let both = fabric.node(link.a.node).is_switch() && fabric.node(link.b.node).is_switch();
        if !both {
            continue;
        }
        let (a, b) = (link.a.port.value(), link.b.port.value());
        let ((d, towards), (e, back)) = (step(a), step(b));
        if d != e || towards == back || link.a.node == link.b.node {
            return Err(StructureError::NotAlongDimension { cable: fabric.cable(link), a, b });
        }
        dimensions = dimensions.max(d + 1);
    }
    if dimensions == 0 {
        return Err(StructureError::Empty { what: "cables between switches" });
    }
    for link in fabric.links() {
        for (end, other) in [(link.a, link.b), (link.b, link.a)] {
            let host = !fabric.node(other.node).is_switch() && fabric.node(end.node).is_switch();
            if host && usize::from(end.port.value()) <= 2 * dimensions {
                let (port, last) = (fabric.describe(end), 2 * dimensions as u32);
                return Err(StructureError::HostOnDimension { port, last });
            }
        }
    }
    Ok(dimensions)
}

/// Positions relative to the first switch, before sizes are known.
struct Walk {
    dimensions: usize,
    /// Position of node n at `n * dimensions`.
    positions: Vec<i64>,
}

impl Walk {
    fn over(fabric: &Fabric, dimensions: usize) -> Result<Self, StructureError> {
        let Some(first) = fabric.ids(NodeKind::Switch).next() else {
            return Err(StructureError::Empty { what: "switches" });
        };
        let mut positions = vec![0; fabric.nodes().len() * dimensions];
        let mut seen = vec![false; fabric.nodes().len()];
        seen[first.index()] = true;
        let mut queue = VecDeque::from([first]);
        while let Some(id) = queue.pop_front() {
            for (port, _, peer) in fabric.neighbours(id) {
                if !fabric.node(peer.node).is_switch() || seen[peer.node.index()] {
                    continue;
                }
                seen[peer.node.index()] = true;
                let (from, to) = (id.index() * dimensions, peer.node.index() * dimensions);
                positions.copy_within(from..from + dimensions, to);
                let (dimension, towards) = step(port.value());
                positions[to + dimension] += towards;
                queue.push_back(peer.node);
            }
        }
        if let Some(lost) = fabric.ids(NodeKind::Switch).find(|id| !seen[id.index()]) {
            let name = |id: NodeId| fabric.node(id).name.clone();
            return Err(StructureError::Apart { from: name(first), to: name(lost) });
        }
        Ok(Walk { dimensions, positions })
    }

    fn of(&self, node: NodeId) -> &[i64] {
        &self.positions[node.index() * self.dimensions..(node.index() + 1) * self.dimensions]
    }

    /// Size and wrap of every dimension.
    fn sizes(&self, fabric: &Fabric) -> (Vec<u32>, Vec<bool>) {
        let mut divisors = vec![0u64; self.dimensions];
        for link in fabric.links() {
            let is_switch = |end: Endpoint| fabric.node(end.node).is_switch();
            if !is_switch(link.a) || !is_switch(link.b) {
                continue;
            }
            let (dimension, towards) = step(link.a.port.value());
            for (d, divisor) in divisors.iter_mut().enumerate() {
                let expected = self.of(link.a.node)[d] + if d == dimension { towards } else { 0 };
                *divisor = gcd(*divisor, expected.abs_diff(self.of(link.b.node)[d]));
            }
        }
        let mut dims = Vec::with_capacity(self.dimensions);
        for (d, divisor) in divisors.iter().enumerate() {
            let (mut low, mut high) = (0, 0);
            for id in fabric.ids(NodeKind::Switch) {
                let at = self.of(id)[d];
                (low, high) = (at.min(low), at.max(high));
            }
            dims.push(if *divisor > 0 { *divisor as u32 } else { (high - low + 1) as u32 });
        }
        (dims, divisors.iter().map(|divisor| *divisor > 0).collect())
    }

    /// Puts every switch in its place; fails where two meet.
    fn settle(&self, fabric: &Fabric, grid: &mut Grid) -> Result<(), StructureError> {
        let mut lows = vec![0i64; self.dimensions];
        for id in fabric.ids(NodeKind::Switch) {
            for (low, at) in lows.iter_mut().zip(self.of(id)) {
                *low = (*low).min(*at);
            }
        }
        for id in fabric.ids(NodeKind::Switch) {
            let mut coordinates = Vec::with_capacity(self.dimensions);
            for (d, at) in self.of(id).iter().enumerate() {
                let wrapped = at.rem_euclid(i64::from(grid.dims[d]));
                coordinates.push(if grid.wraps[d] { wrapped } else { at - lows[d] } as u32);
            }
            let from = id.index() * self.dimensions;
            grid.coordinates[from..from + self.dimensions].copy_from_slice(&coordinates);
            let cell = place(&grid.dims, &coordinates).and_then(|at| grid.nodes.get_mut(at));
            match cell {
                Some(cell @ None) => *cell = Some(id),
                Some(Some(first)) => {
                    let first = fabric.node(*first).name.clone();
                    let second = fabric.node(id).name.clone();
                    return Err(StructureError::SamePlace { first, second, coordinates });
                }
                None => unreachable!("coordinates were reduced to the sizes of the grid"),
            }
        }
        Ok(())
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topologies::build;

    /// Coordinates as the builder put them into the name.
    fn named(fabric: &Fabric, id: NodeId) -> Vec<u32> {
        fabric.node(id).name.split('-').skip(1).map(|text| text.parse().unwrap()).collect()
    }

    fn assert_recovered(fabric: &Fabric, grid: &Grid) {
        for id in fabric.ids(NodeKind::Switch) {
            assert_eq!(grid.coords(id).unwrap(), named(fabric, id));
            assert_eq!(grid.node_at(&named(fabric, id)), Some(id));
        }
        let host = fabric.ids(NodeKind::ChannelAdapter).next().unwrap();
        assert_eq!(grid.coords(host), None);
    }

    #[test]
    fn coordinates_come_back_from_the_cables() {
        for (spec, dims, wrap) in [
            ("torus:4x4x4", vec![4, 4, 4], true),
            ("torus:2x3x5,hosts=2", vec![2, 3, 5], true),
            ("torus:3x2x2x2x2x3", vec![3, 2, 2, 2, 2, 3], true),
            ("mesh:8x5", vec![8, 5], false),
            ("ring:6x1", vec![6], true),
            ("chain:4x2", vec![4], false),
        ] {
            let fabric = build(spec).unwrap();
            let grid = grid(&fabric).unwrap();
            assert_eq!((&grid.dims, &grid.wraps), (&dims, &vec![wrap; dims.len()]), "{spec}");
            assert_recovered(&fabric, &grid);
        }
    }

    #[test]
    fn cut_cables_do_not_hide_the_coordinates() {
        let mut fabric = build("torus:4x4").unwrap();
        // One cable of every ring of dimension 0, each at another place: no ring is whole.
        let cuts = ["sw-0-0[1]", "sw-1-1[1]", "sw-2-2[1]", "sw-3-3[1]"];
        let names: Vec<String> = fabric.links().iter().map(|link| fabric.cable(link)).collect();
        let cut = |at: usize| cuts.iter().any(|cut| names[at].contains(cut));
        fabric.unplug(|id, _| cut(id.index()));
        assert_eq!(fabric.links().len(), 16 + 28);
        let grid = grid(&fabric).unwrap();
        assert_eq!((&grid.dims, &grid.wraps), (&vec![4, 4], &vec![true, true]));
        assert_recovered(&fabric, &grid);
    }

    #[test]
    fn a_ring_cut_once_is_a_line() {
        let mut fabric = build("torus:5,hosts=1").unwrap();
        let last = fabric.links().iter().position(|l| fabric.cable(l).contains("sw-4[1]"));
        fabric.unplug(|id, _| Some(id.index()) == last);
        let grid = grid(&fabric).unwrap();
        assert_eq!((&grid.dims, &grid.wraps), (&vec![5], &vec![false]));
    }

    #[test]
    fn what_is_no_grid_is_refused_with_the_reason() {
        let reason = |spec| grid(&build(spec).unwrap()).unwrap_err().to_string();
        assert!(reason("fat-tree:648").contains("not a grid: cable leaf00[19]-spine00[1] joins"));
        assert!(reason("star:8").contains("no cables between switches"));
        let mut apart = build("mesh:2x2").unwrap();
        let names: Vec<String> = apart.links().iter().map(|link| apart.cable(link)).collect();
        apart.unplug(|id, _| names[id.index()].matches("sw-").count() == 2 && id.index() < 5);
        assert!(matches!(grid(&apart), Err(StructureError::Apart { .. })), "{names:?}");
    }

    #[test]
    fn a_host_in_the_place_of_a_cable_is_named() {
        let mut fabric = build("mesh:3x3").unwrap();
        let host = fabric.ids(NodeKind::ChannelAdapter).next().unwrap();
        let end = |node, port| crate::Endpoint {
            node,
            port: clearlane_ib::PortNumber::new(port).unwrap(),
        };
        fabric.unplug(|_, link| link.b.node == host);
        let rate = (clearlane_ib::LinkWidth::X4, clearlane_ib::LinkSpeed::Qdr);
        fabric.join(end(NodeId(0), 2), end(host, 1), rate.0, rate.1).unwrap();
        let error = grid(&fabric).unwrap_err().to_string();
        assert!(error.contains("a host sits on sw-0-0[2], but ports 1 to 4"), "{error}");
    }
}
