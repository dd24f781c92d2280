//! How different the paths of a pair are that lead to its destination's LIDs: of how many no two
//! share a link, and how long they are. A link here is a switch output that leads to another
//! switch; the cables of the two hosts are part of every path.
//!
//! Pairs are counted by switch of the source and port of the destination, as often as the switch
//! has hosts, and gathered in classes: on a mesh or torus by how many dimensions the switches
//! differ in, elsewhere by the cables between them. Pairs on one switch share no link and are left
//! out.

use crate::Subnet;
use crate::graph::{Peer, SwitchGraph, Target};
use clearlane_fabric::structure::{self, Grid};
use clearlane_fabric::{Fabric, NodeId};
use std::collections::BTreeMap;
use std::fmt;

/// So many paths of a pair are compared in every combination; of more, the first in the order of
/// LID offsets that share no link with those taken are counted.
const EXACT_MAX: usize = 16;

/// Pairs that are alike.
#[derive(Clone, PartialEq, Debug)]
pub struct PathClass {
    /// What they have in common, in words.
    pub name: String,
    /// How many (source host, destination port) pairs.
    pub pairs: u64,
    /// Cables between the switches on the shortest way, mean.
    pub shortest: f64,
    /// Cables between the switches by LID offset, mean over the paths that arrive.
    pub lengths: Vec<f64>,
    /// The most cables by which a path is longer than the shortest.
    pub detour_most: u32,
    /// Different paths, mean.
    pub distinct: f64,
    /// Paths of which no two share a link, mean.
    pub disjoint: f64,
    /// Paths without a common link of the pair that has the fewest.
    pub disjoint_least: u32,
}

/// What [`disjointness`] found.
#[derive(Clone, PartialEq, Debug)]
pub struct Disjointness {
    /// The most LIDs a port has.
    pub offsets: usize,
    /// Classes, nearer pairs first; those without pairs are left out.
    pub classes: Vec<PathClass>,
}

impl fmt::Display for Disjointness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for class in &self.classes {
            let PathClass { name, pairs, shortest, detour_most, disjoint, .. } = class;
            let lengths: Vec<String> = class.lengths.iter().map(|l| format!("{l:.2}")).collect();
            writeln!(
                f,
                "paths          {name}: {pairs} pairs, {disjoint:.2} of {} link-disjoint, at least \
                 {}; {} cables, {shortest:.2} the shortest, at most {detour_most} more",
                self.offsets,
                class.disjoint_least,
                lengths.join(", ")
            )?;
        }
        Ok(())
    }
}

/// Compares the paths to all LIDs of every host.
pub fn disjointness(fabric: &Fabric, subnet: &Subnet) -> Disjointness {
    let graph = SwitchGraph::of(fabric);
    let grid = structure::grid(fabric).ok();
    let offsets = usize::from(subnet.lids.lmc_max().lids());
    let hosts: Vec<u64> = (0..graph.rows()).map(|row| graph.adapters(row).count() as u64).collect();
    let mut targets = graph.targets(&subnet.lids);
    targets.retain(|target| target.exit != 0);
    let mut walk = Walk::new(&graph, subnet);
    let mut sums: BTreeMap<u32, Sums> = BTreeMap::new();
    let (mut distances, mut queue, mut home) = (Vec::new(), Vec::new(), None);
    for of_port in targets.chunk_by(|a, b| a.owner.end == b.owner.end) {
        let destination = of_port[0].row as usize;
        if home.replace(destination) != Some(destination) {
            graph.distances(destination, &mut distances, &mut queue);
        }
        for source in (0..graph.rows()).filter(|row| hosts[*row] > 0 && *row != destination) {
            let distance = distances[source];
            if distance == u32::MAX {
                continue;
            }
            let class = grid.as_ref().map_or(distance, |grid| {
                dimensions(grid, graph.switch(source), graph.switch(destination))
            });
            walk.pair(source, of_port);
            let sums = sums.entry(class).or_insert_with(|| Sums::new(offsets));
            sums.add(&walk, distance, hosts[source]);
        }
    }
    let name = |class: &u32| match (&grid, class) {
        (Some(_), 1) => "along 1 dimension".to_owned(),
        (Some(_), _) => format!("along {class} dimensions"),
        (None, 1) => "1 cable apart".to_owned(),
        (None, _) => format!("{class} cables apart"),
    };
    let classes = sums.iter().map(|(class, sums)| sums.class(name(class))).collect();
    Disjointness { offsets, classes }
}

/// In how many dimensions two switches of a grid differ.
fn dimensions(grid: &Grid, a: NodeId, b: NodeId) -> u32 {
    let [a, b] = [a, b].map(|switch| grid.coords(switch).unwrap_or(&[]));
    a.iter().zip(b).filter(|(a, b)| a != b).count() as u32
}

/// The paths of one pair.
struct Walk<'a> {
    graph: &'a SwitchGraph,
    subnet: &'a Subnet,
    /// By offset: length in cables; nothing for a path that does not arrive.
    lengths: Vec<Option<u32>>,
    /// By path that arrives: the others it shares a link with.
    shares: Vec<u128>,
    distinct: u32,
    /// Channels path after path, and where each begins.
    channels: Vec<u32>,
    starts: Vec<usize>,
    /// By channel: the paths over it.
    users: Vec<u128>,
}

impl<'a> Walk<'a> {
    fn new(graph: &'a SwitchGraph, subnet: &'a Subnet) -> Self {
        Walk {
            graph,
            subnet,
            lengths: Vec::new(),
            shares: Vec::new(),
            distinct: 0,
            channels: Vec::new(),
            starts: Vec::new(),
            users: vec![0; graph.channels()],
        }
    }

    /// Walks from a switch to all LIDs of a port.
    fn pair(&mut self, source: usize, of_port: &[Target]) {
        self.channels.drain(..).for_each(|channel| self.users[channel as usize] = 0);
        (self.distinct, self.starts, self.lengths) = (0, vec![0], Vec::new());
        for target in of_port {
            let length = self.path(source, target);
            self.lengths.push(length);
            let first = self.starts[self.starts.len() - 1];
            if length.is_none() {
                self.channels.truncate(first);
                continue;
            }
            let path = &self.channels[first..];
            let paths = self.starts.windows(2).map(|ends| &self.channels[ends[0]..ends[1]]);
            self.distinct += u32::from(paths.into_iter().all(|other| other != path));
            self.starts.push(self.channels.len());
        }
        for (path, ends) in self.starts.windows(2).enumerate() {
            for channel in &self.channels[ends[0]..ends[1]] {
                self.users[*channel as usize] |= 1 << path;
            }
        }
        let shared = |(path, ends): (usize, &[usize])| {
            let channels = self.channels[ends[0]..ends[1]].iter();
            channels.fold(0, |all, channel| all | self.users[*channel as usize]) & !(1 << path)
        };
        self.shares = self.starts.windows(2).enumerate().map(shared).collect();
    }

    fn path(&mut self, source: usize, target: &Target) -> Option<u32> {
        let (mut row, lid) = (source, usize::from(target.lid.value()));
        for length in 0..=self.graph.rows() as u32 {
            if row == target.row as usize {
                return Some(length);
            }
            let port = self.subnet.tables.row(row).get(lid).copied().unwrap_or(u8::MAX);
            let Peer::Switch { row: next, .. } = self.graph.peer(row, port) else { return None };
            self.channels.push(self.graph.channel(row, port) as u32);
            row = next as usize;
        }
        None
    }

    /// The most paths of which no two share a link.
    fn disjoint(&self) -> u32 {
        let count = self.shares.len();
        if count > EXACT_MAX {
            let mut taken = 0u128;
            for (path, shares) in self.shares.iter().enumerate() {
                if shares & taken == 0 {
                    taken |= 1 << path;
                }
            }
            return taken.count_ones();
        }
        most_apart(&self.shares, (1 << count) - 1)
    }
}

/// The size of the largest set among `open` in which nobody shares anything with another.
fn most_apart(shares: &[u128], open: u128) -> u32 {
    if open == 0 {
        return 0;
    }
    let one = open.trailing_zeros() as usize;
    let rest = open & !(1 << one);
    let with = 1 + most_apart(shares, rest & !shares[one]);
    if shares[one] & rest == 0 {
        return with;
    }
    with.max(most_apart(shares, rest))
}

/// What is added up over the pairs of a class.
struct Sums {
    pairs: u64,
    shortest: u64,
    /// By offset: cables, and paths that arrive.
    lengths: Vec<(u64, u64)>,
    detour_most: u32,
    distinct: u64,
    disjoint: u64,
    disjoint_least: u32,
}

impl Sums {
    fn new(offsets: usize) -> Self {
        Sums {
            pairs: 0,
            shortest: 0,
            lengths: vec![(0, 0); offsets],
            detour_most: 0,
            distinct: 0,
            disjoint: 0,
            disjoint_least: u32::MAX,
        }
    }

    /// Adds one pair for each of so many hosts.
    fn add(&mut self, walk: &Walk<'_>, distance: u32, hosts: u64) {
        self.pairs += hosts;
        self.shortest += hosts * u64::from(distance);
        for (sum, length) in self.lengths.iter_mut().zip(&walk.lengths) {
            let Some(length) = length else { continue };
            *sum = (sum.0 + hosts * u64::from(*length), sum.1 + hosts);
            self.detour_most = self.detour_most.max(length.saturating_sub(distance));
        }
        let disjoint = walk.disjoint();
        self.distinct += hosts * u64::from(walk.distinct);
        self.disjoint += hosts * u64::from(disjoint);
        self.disjoint_least = self.disjoint_least.min(disjoint);
    }

    fn class(&self, name: String) -> PathClass {
        let mean = |sum: u64, count: u64| sum as f64 / count.max(1) as f64;
        PathClass {
            name,
            pairs: self.pairs,
            shortest: mean(self.shortest, self.pairs),
            lengths: self.lengths.iter().map(|(sum, count)| mean(*sum, *count)).collect(),
            detour_most: self.detour_most,
            distinct: mean(self.distinct, self.pairs),
            disjoint: mean(self.disjoint, self.pairs),
            disjoint_least: self.disjoint_least,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::{RouteOptions, route};
    use clearlane_fabric::topologies::build;
    use clearlane_ib::Lmc;

    fn of(spec: &str, engine: &str, lmc: u8, lanes: u8) -> Disjointness {
        let fabric = build(spec).unwrap();
        let lmc = Lmc::new(lmc).unwrap();
        let options = RouteOptions { lmc, lanes, ..RouteOptions::default() };
        disjointness(&fabric, &route(engine, &fabric, &options).unwrap())
    }

    #[test]
    fn spines_are_as_many_paths_as_there_are() {
        // Three leaves with two hosts each: 6 hosts to 4 ports elsewhere; min-hop and D-mod-K take
        // the spines in turn.
        let found = of("leaf-spine:leaves=3,hosts=2,spines=3", "fat-tree", 2, 1);
        assert_eq!((found.offsets, found.classes.len()), (4, 1));
        let class = &found.classes[0];
        assert_eq!((class.name.as_str(), class.pairs), ("2 cables apart", 24));
        assert_eq!((class.disjoint, class.disjoint_least, class.distinct), (3.0, 3, 3.0));
        assert_eq!((class.shortest, &class.lengths[..]), (2.0, &[2.0; 4][..]));
    }

    #[test]
    fn one_route_for_all_lids_is_one_path() {
        let found = of("torus:4x4", "dor", 2, 2);
        let names: Vec<&str> = found.classes.iter().map(|class| class.name.as_str()).collect();
        assert_eq!(names, ["along 1 dimension", "along 2 dimensions"]);
        for (class, pairs) in found.classes.iter().zip([16 * 6, 16 * 9]) {
            assert_eq!((class.pairs, class.disjoint, class.disjoint_least), (pairs, 1.0, 1));
            assert_eq!((class.distinct, class.detour_most), (1.0, 0));
            assert!(class.lengths.iter().all(|length| *length == class.shortest));
        }
    }

    #[test]
    fn the_largest_set_is_found_not_the_first() {
        // The first path shares links with all others, which are apart.
        assert_eq!(most_apart(&[0b1110, 0b1, 0b1, 0b1], 0b1111), 3);
        assert_eq!(most_apart(&[0b10, 0b101, 0b1010, 0b100], 0b1111), 2);
        assert_eq!(most_apart(&[0, 0, 0], 0b111), 3);
    }
}
