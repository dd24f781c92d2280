//! What each LID offset gets: a kind of path, and lanes and service levels of its own.

use super::roots::roots;
use super::{WAYS_MAX, avoid};
use crate::PathSl;
use crate::engines::order::Order;
use crate::engines::trees::{self, Flows, Trees, lengths};
use crate::engines::{Datelines, dor, layered};
use crate::graph::{SwitchGraph, Target};
use clearlane_fabric::Fabric;
use clearlane_ib::{ServiceLevel, VirtualLane};

/// The most lanes a link can have.
const LANES_MAX: u8 = 15;

/// Paths of all LID offsets.
pub(super) struct Plan {
    blocks: Vec<Block>,
    /// Offset o takes the one at o mod their number.
    ways: Vec<Way>,
}

/// The paths of an offset.
struct Way {
    block: usize,
    trees: Trees,
}

/// Lanes and service levels that no other block has: what keeps to it closes no loop.
struct Block {
    kind: Kind,
    lanes: Numbers,
    levels: Numbers,
}

enum Kind {
    /// Dimension order with its datelines, or without any where nothing wraps.
    Dimensions(Datelines),
    /// Shortest paths, each pair of switches in a lane it fits: SLs from 0 on by source and
    /// destination.
    Shortest(Vec<u8>),
    /// Up and then down, around these switches.
    UpDown(Vec<usize>),
}

/// Numbers one after another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Numbers {
    first: u8,
    count: u8,
}

impl Numbers {
    fn holds(self, number: u8) -> bool {
        (self.first..self.first + self.count).contains(&number)
    }

    /// `VL 4`, `VLs 0 to 1`.
    fn text(self, noun: &str) -> String {
        let Numbers { first, count } = self;
        if count == 1 {
            return format!("{noun} {first}");
        }
        format!("{noun}s {first} to {}", first + count - 1)
    }
}

/// How many blocks of each kind a budget of lanes and service levels is spent on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Budget {
    /// Orders of dimensions, more than two with ties the other way.
    dimensions: u8,
    /// Lanes for shortest paths.
    shortest: u8,
    /// up*/down* orders.
    orders: u8,
}

impl Budget {
    /// For so many offsets, at least one. Dimension order comes first; the opposite order where
    /// something is left for up*/down* after it, and that in as many orders as fit. Three or four
    /// offsets of a torus with ties take both orders with ties either way, if they fit: all of
    /// these are as short as can be, and a tree has a root that all its paths crowd around.
    fn of(grid: Option<&Datelines>, wanted: usize, lanes: u8) -> Self {
        let (mut dimensions, mut shortest) = (0, 0);
        let (mut lanes_left, mut levels_left) = (lanes, ServiceLevel::COUNT);
        if let Some(grid) = grid.filter(|grid| takes_ties(grid, wanted, lanes)) {
            dimensions = wanted as u8;
            lanes_left -= lanes_of(grid) * dimensions;
            levels_left -= grid.level_count() * wanted;
        } else if let Some(grid) = grid {
            let each = lanes_of(grid);
            let opposite = usize::from(wanted > 1 && grid.extended() > 1);
            for after in [0, usize::from(wanted > 2)].into_iter().take(1 + opposite) {
                let fits = usize::from(lanes_left) >= usize::from(each) + after
                    && levels_left >= grid.level_count() + after;
                if fits {
                    dimensions += 1;
                    lanes_left -= each;
                    levels_left -= grid.level_count();
                }
            }
        } else if wanted == 1 || lanes > 1 {
            shortest = lanes - (lanes / 2).min((wanted - 1).min(WAYS_MAX) as u8);
            lanes_left -= shortest;
            levels_left -= usize::from(shortest);
        }
        let settled = usize::from(dimensions) + usize::from(shortest > 0);
        let rest = wanted.saturating_sub(settled);
        let orders = rest.min(usize::from(lanes_left)).min(levels_left) as u8;
        Budget { dimensions, shortest, orders }
    }

    /// Blocks of lanes.
    fn blocks(self) -> u8 {
        self.dimensions + u8::from(self.shortest > 0) + self.orders
    }
}

/// Whether all of so many offsets are orders of dimensions with ties either way.
fn takes_ties(grid: &Datelines, wanted: usize, lanes: u8) -> bool {
    (3..=4).contains(&wanted)
        && grid.extended() > 1
        && grid.has_ties()
        && usize::from(lanes) >= usize::from(lanes_of(grid)) * wanted
        && ServiceLevel::COUNT >= grid.level_count() * wanted
}

/// Lanes that an order of dimensions takes: two where a dateline is crossed.
fn lanes_of(grid: &Datelines) -> u8 {
    if grid.level_count() > 1 { 2 } else { 1 }
}

impl Plan {
    /// Finds paths for so many LID offsets in so many lanes, both at least 1. `targets` are those
    /// of all LIDs.
    pub(super) fn of(
        fabric: &Fabric,
        graph: &SwitchGraph,
        targets: &[Target],
        offsets: usize,
        lanes: u8,
    ) -> Self {
        let grid = dor::of_whole_grid(fabric, graph);
        let wanted = offsets.clamp(1, WAYS_MAX);
        let budget = Budget::of(grid.as_ref(), wanted, lanes);
        let mut plan = Plan { blocks: Vec::new(), ways: Vec::new() };
        if let Some(grid) = grid.filter(|_| budget.dimensions > 0) {
            plan.add_dimensions(graph, &grid, usize::from(budget.dimensions));
        }
        // One LID of each port stands for all.
        let base: Vec<Target> =
            targets.iter().copied().filter(|target| target.owner.offset == 0).collect();
        if budget.shortest > 0 {
            let found = layered::shortest_paths(fabric, graph, &base, budget.shortest);
            let count = found.lanes_used;
            let way = Way { block: 0, trees: found.trees };
            plan.add(Kind::Shortest(found.levels), (count, usize::from(count)), way);
        }
        plan.add_up_down(graph, &base, wanted, usize::from(budget.orders));
        plan
    }

    /// Adds a block behind the others, and a way on it.
    fn add(&mut self, kind: Kind, (lanes, levels): (u8, usize), way: Way) {
        let next = |of: fn(&Block) -> Numbers| {
            self.blocks.last().map(of).map_or(0, |last| last.first + last.count)
        };
        let lanes = Numbers { first: next(|block| block.lanes), count: lanes };
        let levels = Numbers { first: next(|block| block.levels), count: levels as u8 };
        self.ways.push(Way { block: self.blocks.len(), ..way });
        self.blocks.push(Block { kind, lanes, levels });
    }

    /// One order, then the opposite one, then both with ties the other way.
    fn add_dimensions(&mut self, graph: &SwitchGraph, grid: &Datelines, count: usize) {
        for number in 0..count {
            let first = (number * grid.level_count()) as u8;
            let ways = if number % 2 == 0 { grid.clone() } else { grid.opposite(first) };
            let ways = if number < 2 { ways } else { ways.other_ties(first) };
            let mut trees = Trees::new(graph.rows());
            for destination in 0..graph.rows() {
                for (row, port) in trees.push(destination).iter_mut().enumerate() {
                    *port = ways.port(row, destination).unwrap_or(trees::NO_PORT);
                }
            }
            let size = (lanes_of(&ways), ways.level_count());
            self.add(Kind::Dimensions(ways), size, Way { block: 0, trees });
        }
    }

    /// Fills up to `wanted` ways, in turn over so many orders.
    fn add_up_down(&mut self, graph: &SwitchGraph, base: &[Target], wanted: usize, count: usize) {
        if count == 0 {
            return;
        }
        let roots = roots(graph, count);
        let orders: Vec<Order> = roots.iter().map(|roots| Order::around(graph, roots)).collect();
        let mut flows = self.flows(graph);
        // More trees than there are cables to a switch would only be the same again, and beside
        // dimension order, which has one, a second would keep clear of the same paths.
        let one = self.blocks.iter().any(|block| matches!(block.kind, Kind::Dimensions(_)));
        let mut counts = trees::counts(graph, base);
        for (row, count) in counts.iter_mut().enumerate() {
            let hostless = !graph.has_adapter(row);
            let cables = graph.switch_peers(row).count();
            *count = (*count).min(if one { 1 } else { cables }).max(1);
            if hostless && !self.ways.is_empty() {
                *count = 0;
            }
        }
        let first = self.blocks.len();
        for at in 0..wanted.saturating_sub(self.ways.len()) {
            let before: Vec<&Trees> = self.ways.iter().map(|way| &way.trees).collect();
            let order = &orders[at % count];
            let trees = avoid::up_down(graph, order, &counts, &before, &mut flows);
            let way = Way { block: first + at % count, trees };
            if at < count {
                self.add(Kind::UpDown(roots[at].clone()), (1, 1), way);
            } else {
                self.ways.push(way);
            }
        }
    }

    /// Flows over all ways there are.
    fn flows(&self, graph: &SwitchGraph) -> Flows {
        let mut flows = Flows::new(graph);
        for way in &self.ways {
            for destination in (0..graph.rows()).filter(|row| graph.has_adapter(*row)) {
                for ports in way.trees.towards(destination) {
                    flows.add(graph, ports, &lengths(graph, destination, ports));
                }
            }
        }
        flows
    }

    /// The output ports towards the n-th host of a switch, by row, for one of its LID offsets.
    pub(super) fn ports(&self, destination: usize, host: usize, offset: u16) -> Option<&[u8]> {
        let way = self.ways.get(usize::from(offset) % self.ways.len().max(1))?;
        way.trees.tree(destination, host)
    }

    /// The SL of every pair by LID offset.
    pub(super) fn path_sl(&self, rows: usize) -> PathSl {
        let of_way = |way: &Way| {
            let Block { kind, levels, .. } = &self.blocks[way.block];
            match kind {
                Kind::Dimensions(ways) => match ways.level_count() {
                    1 => PathSl::Uniform(level(levels.first)),
                    _ => PathSl::Datelines(ways.clone()),
                },
                Kind::Shortest(levels) => PathSl::BySwitch { stride: rows, levels: levels.clone() },
                Kind::UpDown(_) => PathSl::Uniform(level(levels.first)),
            }
        };
        let mut levels: Vec<PathSl> = self.ways.iter().map(of_way).collect();
        if levels.len() == 1 || levels.iter().all(|of| *of == levels[0]) {
            return levels.swap_remove(0);
        }
        PathSl::ByOffset(levels)
    }

    /// How many lanes the blocks take.
    pub(super) fn lanes_used(&self) -> u8 {
        self.blocks.last().map_or(1, |block| block.lanes.first + block.lanes.count)
    }

    /// The lane of an SL on the link behind an output port; adapters use that of port 0.
    pub(super) fn lane(&self, output: u8, sl: u8) -> VirtualLane {
        let block = self.blocks.iter().find(|block| block.levels.holds(sl));
        let lane = block.map_or(0, |block| match &block.kind {
            Kind::Dimensions(ways) => block.lanes.first + ways.lane(output, sl),
            Kind::Shortest(_) => block.lanes.first + sl - block.levels.first,
            Kind::UpDown(_) => block.lanes.first,
        });
        VirtualLane::new(lane).unwrap_or_default()
    }

    /// What each offset got, a line for each block.
    pub(super) fn notes(&self, fabric: &Fabric, graph: &SwitchGraph) -> Vec<String> {
        let mut notes = Vec::new();
        for (at, block) in self.blocks.iter().enumerate() {
            let ways = (0..self.ways.len()).filter(|way| self.ways[*way].block == at);
            let ways: Vec<String> = ways.map(|way| way.to_string()).collect();
            let what = match &block.kind {
                Kind::Dimensions(ways) => {
                    let order: Vec<String> = ways.order().iter().map(usize::to_string).collect();
                    let ties = if ways.has_other_ties() { ", ties the other way" } else { "" };
                    format!("dimension order {}{ties}", order.join(", "))
                }
                Kind::Shortest(_) => "paths as short as these lanes allow".to_owned(),
                Kind::UpDown(roots) => {
                    let root = roots.first().map_or(String::new(), |root| {
                        fabric.node(graph.switch(*root)).name.escape_debug().to_string()
                    });
                    format!("up and down around {root}")
                }
            };
            let plural = if ways.len() == 1 { "" } else { "s" };
            notes.push(format!(
                "LID offset{plural} {}: {what}, {}, {}",
                ways.join(", "),
                block.lanes.text("VL"),
                block.levels.text("SL")
            ));
        }
        notes
    }

    /// A remark on offsets that do not have paths or lanes of their own, and on the lanes that
    /// would give them some.
    pub(super) fn shortage(
        &self,
        fabric: &Fabric,
        graph: &SwitchGraph,
        offsets: usize,
        lanes: u8,
    ) -> Option<String> {
        let ways = self.ways.len();
        let wanted = offsets.clamp(1, WAYS_MAX);
        let grid = dor::of_whole_grid(fabric, graph);
        let blocks = |lanes| Budget::of(grid.as_ref(), wanted, lanes).blocks();
        let most = blocks(LANES_MAX);
        let better = (lanes..=LANES_MAX).find(|more| blocks(*more) == most);
        let better = better.filter(|more| *more > lanes).map_or(String::new(), |more| {
            format!(
                "; {more} lanes, instead of {lanes}, would give {most} offsets lanes of their own"
            )
        });
        if ways < offsets {
            let last = offsets - 1;
            return Some(format!(
                "LID offsets {ways} to {last} repeat the paths of those before{better}"
            ));
        }
        match ways - self.blocks.len() {
            0 => None,
            1 => Some(format!("1 LID offset shares lanes with others{better}")),
            shared => Some(format!("{shared} LID offsets share lanes with others{better}")),
        }
    }
}

fn level(number: u8) -> ServiceLevel {
    ServiceLevel::new(number).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_fabric::topologies::build;

    #[test]
    fn lanes_and_service_levels_are_spent_on_what_keeps_paths_apart() {
        let of = |spec: &str, wanted, lanes| {
            let fabric = build(spec).unwrap();
            let grid = dor::of_whole_grid(&fabric, &SwitchGraph::of(&fabric));
            let found = Budget::of(grid.as_ref(), wanted, lanes);
            [found.dimensions, found.shortest, found.orders]
        };
        let by_lanes = (1..=8).map(|lanes| of("torus:8x8", 4, lanes)).collect::<Vec<_>>();
        let expected = [[0, 0, 1], [1, 0, 0], [1, 0, 1], [1, 0, 2], [2, 0, 1]];
        assert_eq!(by_lanes[..5], expected);
        assert_eq!(by_lanes[5..], [[2, 0, 2], [2, 0, 2], [4, 0, 0]]);
        // Without ties, and with more or fewer offsets, nothing changes.
        assert_eq!((of("torus:5x5", 4, 8), of("torus:8x8", 3, 6)), ([2, 0, 2], [3, 0, 0]));
        assert_eq!((of("torus:8x8", 2, 8), of("torus:8x8", 8, 15)), ([2, 0, 0], [2, 0, 6]));
        // Eight SLs an order of three dimensions: the opposite one only where nothing follows it.
        assert_eq!(of("torus:4x4x4", 2, 8), [2, 0, 0]);
        assert_eq!(of("torus:4x4x4", 4, 8), [1, 0, 3]);
        assert_eq!((of("torus:2x2x2x2", 4, 8), of("ring:8x1", 4, 8)), ([1, 0, 0], [1, 0, 3]));
        assert_eq!(of("mesh:4x4", 4, 4), [2, 0, 2]);
        assert_eq!((of("torus:8x8", 16, 15), of("torus:8x8", 1, 8)), ([2, 0, 8], [1, 0, 0]));
        // No grid: half of the lanes at most for trees.
        assert_eq!((of("fat-tree:648", 4, 8), of("fat-tree:648", 4, 4)), ([0, 5, 3], [0, 2, 2]));
        assert_eq!((of("fat-tree:648", 4, 1), of("fat-tree:648", 1, 3)), ([0, 0, 1], [0, 3, 0]));
    }
}
