//! Where nodes are drawn: a tree by levels, a grid by coordinates. Anything else stands in rows
//! where its cables allow that, else in its groups, else by its distances in cables.

use super::distances::{by_distance, is_dense};
use super::groups::{Group, groups};
use clearlane_fabric::structure::{self, Grid};
use clearlane_fabric::{Fabric, NodeId, NodeKind};
use std::collections::BTreeMap;

/// Height over width of a graph's drawing; the page draws it so (`web/src/layout-graph.ts`). The
/// whole map and the verdict above it fit on one screen.
pub(super) const ASPECT: f64 = 0.42;

/// The fabric as a drawing.
pub(super) struct Layout {
    pub(super) structure: &'static str,
    pub(super) levels: Option<u32>,
    pub(super) dims: Option<Vec<u32>>,
    /// Groups of switches, where that is what it is drawn by.
    pub(super) groups: Vec<Group>,
    /// By node: x, y in 0..1, level of a tree's switch.
    pub(super) places: Vec<(f64, f64, Option<u32>)>,
}

/// Lays a fabric out.
pub(super) fn layout(fabric: &Fabric) -> Layout {
    let mut layout = match (structure::grid(fabric), structure::tree(fabric)) {
        (Ok(grid), _) => of_grid(fabric, &grid),
        (_, Ok(tree)) => Layout {
            structure: "tree",
            levels: Some(tree.height()),
            dims: None,
            groups: Vec::new(),
            places: by_level(fabric, &structure::levels(fabric), tree.height()),
        },
        _ => of_graph(fabric),
    };
    hang_hosts(fabric, &mut layout.places);
    layout
}

/// What is neither a grid nor a tree.
fn of_graph(fabric: &Fabric) -> Layout {
    let (places, groups) = match rows(fabric) {
        Some(levels) => (in_rows(fabric, &levels), Vec::new()),
        None => {
            let groups = groups(fabric);
            let places = match groups.is_empty() {
                false => by_group(fabric, &groups),
                true if is_dense(fabric) => around(fabric),
                true => by_distance(fabric),
            };
            (places, groups)
        }
    };
    Layout { structure: "graph", levels: None, dims: None, groups, places }
}

/// Levels of a fabric that is a tree but for a few cables or hosts: leaves are the switches with
/// many hosts, as one server at a spine makes no leaf of it. Nothing if one cable in ten joins
/// switches of a row: it would be drawn through the others.
fn rows(fabric: &Fabric) -> Option<Vec<Option<u32>>> {
    const FEW: usize = 4;
    let hosts = |id: NodeId| {
        let peers = fabric.neighbours(id).map(|(_, _, peer)| peer.node);
        peers.filter(|peer| !fabric.node(*peer).is_switch()).count()
    };
    let most = fabric.ids(NodeKind::Switch).map(hosts).max()?;
    let mut levels = vec![None; fabric.nodes().len()];
    let is_leaf = |id: &NodeId| most > 0 && FEW * hosts(*id) >= most;
    let mut row: Vec<NodeId> = fabric.ids(NodeKind::Switch).filter(is_leaf).collect();
    for level in 0.. {
        row.iter().for_each(|id| levels[id.index()] = Some(level));
        let above = row.iter().flat_map(|id| fabric.neighbours(*id)).map(|(_, _, peer)| peer.node);
        let is_new = |id: &NodeId| fabric.node(*id).is_switch() && levels[id.index()].is_none();
        row = above.filter(is_new).collect();
        if row.is_empty() {
            break;
        }
    }
    let ends = |link: &clearlane_fabric::Link| {
        let (a, b) = (link.a.node, link.b.node);
        let trunk = a != b && fabric.node(a).is_switch() && fabric.node(b).is_switch();
        trunk.then(|| levels[a.index()] == levels[b.index()])
    };
    let trunks: Vec<bool> = fabric.links().iter().filter_map(ends).collect();
    let level = trunks.iter().filter(|same| **same).count();
    (!trunks.is_empty() && 10 * level < trunks.len()).then_some(levels)
}

/// Rows of a graph: they fill the map from three on, two stand half as far apart.
fn in_rows(fabric: &Fabric, levels: &[Option<u32>]) -> Vec<(f64, f64, Option<u32>)> {
    let height = levels.iter().flatten().max().map_or(1, |top| top + 1);
    let mut places = by_level(fabric, levels, height);
    let ys = fabric.ids(NodeKind::Switch).map(|id| places[id.index()].1);
    let (low, high) = ys.fold((f64::MAX, f64::MIN), |(l, h), y| (l.min(y), h.max(y)));
    let tall = if height <= 2 { 0.5 } else { 1.0 };
    let mut sizes: BTreeMap<u32, usize> = BTreeMap::new();
    places.iter().filter_map(|place| place.2).for_each(|l| *sizes.entry(l).or_insert(0) += 1);
    let widest = sizes.values().max().copied().unwrap_or(1);
    for (x, y, level) in &mut places {
        // Two spines stand in the middle of the leaves' row, not above its ends.
        let size = level.and_then(|level| sizes.get(&level)).copied().unwrap_or(widest);
        if size < widest {
            let count = size as f64;
            *x = (*x * (count - 1.0).max(1.0) + 0.5) / count.max(2.0);
        }
        let share = (*y - low) / (high - low).max(f64::EPSILON);
        (*y, *level) = ((tall * share).clamp(0.0, 1.0), None);
    }
    places
}

/// A name as a key in which `leaf9` comes before `leaf10`: words and numbers by turns, numbers by
/// their length without leading zeros, then by their digits.
pub(super) fn natural(name: &str) -> Vec<(String, usize, String)> {
    let mut parts = vec![(String::new(), 0, String::new())];
    let mut in_number = false;
    for c in name.chars() {
        if in_number && !c.is_ascii_digit() {
            parts.push((String::new(), 0, String::new()));
        }
        in_number = c.is_ascii_digit();
        let Some((word, length, digits)) = parts.last_mut() else { continue };
        match in_number {
            false => word.push(c),
            true if c == '0' && digits.is_empty() => {}
            true => {
                *length += 1;
                digits.push(c);
            }
        }
    }
    parts
}

/// `index` of `count` spread evenly over 0..1.
fn spread(index: usize, count: usize) -> f64 {
    if count <= 1 { 0.5 } else { index as f64 / (count - 1) as f64 }
}

fn by_level(fabric: &Fabric, levels: &[Option<u32>], height: u32) -> Vec<(f64, f64, Option<u32>)> {
    let mut places = vec![(0.5, 1.0, None); fabric.nodes().len()];
    // Switches no host reaches stand above the top.
    let level_of = |id: NodeId| levels.get(id.index()).copied().flatten().unwrap_or(height);
    for level in 0..=height {
        let mut row: Vec<NodeId> =
            fabric.ids(NodeKind::Switch).filter(|id| level_of(*id) == level).collect();
        // A file lists switches as they were discovered; people look for leaf03 beside leaf02.
        row.sort_by_cached_key(|id| natural(&fabric.node(*id).name));
        for (index, id) in row.iter().enumerate() {
            let y = 1.0 - f64::from(level + 1) / f64::from(height + 1);
            places[id.index()] = (spread(index, row.len()), y.max(0.0), Some(level));
        }
    }
    places
}

/// Switches in a circle in the order of their names, so that the groups of a dragonfly are arcs.
fn around(fabric: &Fabric) -> Vec<(f64, f64, Option<u32>)> {
    let mut places = vec![(0.5, 0.5, None); fabric.nodes().len()];
    let mut circle: Vec<NodeId> = fabric.ids(NodeKind::Switch).collect();
    circle.sort_by_cached_key(|id| natural(&fabric.node(*id).name));
    for (index, id) in circle.iter().enumerate() {
        let angle = std::f64::consts::TAU * index as f64 / circle.len() as f64;
        places[id.index()] = (0.5 + 0.48 * angle.sin(), 0.48 - 0.46 * angle.cos(), None);
    }
    places
}

/// Groups on an ellipse, evenly far from each other, the switches of each in a ring.
fn by_group(fabric: &Fabric, groups: &[Group]) -> Vec<(f64, f64, Option<u32>)> {
    const STEPS: usize = 2000;
    let mut places = vec![(0.5, 0.5, None); fabric.nodes().len()];
    // Of the width, as all lengths here; rings do not reach beyond the edge or into each other.
    let mut ring: f64 = 0.07;
    let mut centres = Vec::new();
    for _ in 0..2 {
        let radii = (0.5 - ring, ASPECT / 2.0 - ring);
        let at = |step: usize| {
            let angle = std::f64::consts::TAU * step as f64 / STEPS as f64;
            (radii.0 * angle.sin(), -radii.1 * angle.cos())
        };
        let apart = |a: (f64, f64), b: (f64, f64)| (a.0 - b.0).hypot(a.1 - b.1);
        let around: f64 = (0..STEPS).map(|step| apart(at(step), at(step + 1))).sum();
        let pitch = around / groups.len() as f64;
        let mut gone = 0.0;
        centres.clear();
        for step in 0..STEPS {
            if gone >= pitch * centres.len() as f64 - 1e-9 && centres.len() < groups.len() {
                centres.push(at(step));
            }
            gone += apart(at(step), at(step + 1));
        }
        ring = ring.min(0.32 * pitch);
    }
    for (group, (x, y)) in groups.iter().zip(centres) {
        for (index, id) in group.switches.iter().enumerate() {
            let angle = std::f64::consts::TAU * index as f64 / group.switches.len() as f64;
            let (aside, down) = (x + ring * angle.sin(), y - ring * angle.cos());
            places[id.index()] = (0.5 + aside, 0.5 + down / ASPECT, None);
        }
    }
    places
}

/// Even dimensions to the right, odd ones downwards; of more than two, the higher ones repeat the
/// plane of the lower with a gap.
fn of_grid(fabric: &Fabric, grid: &Grid) -> Layout {
    let axis = |coordinates: &[u32], first: usize| {
        let (mut at, mut size) = (0u64, 1u64);
        for dimension in (first..grid.dims.len()).step_by(2) {
            let gap = u64::from(dimension >= 2);
            at += u64::from(coordinates[dimension]) * (size + gap);
            size = size.saturating_add(gap).saturating_mul(u64::from(grid.dims[dimension]));
        }
        (at, size)
    };
    let mut places = vec![(0.5, 0.5, None); fabric.nodes().len()];
    for id in fabric.ids(NodeKind::Switch) {
        if let Some(coordinates) = grid.coords(id) {
            let share = |(at, size): (u64, u64)| match size {
                0 | 1 => 0.5,
                _ => (at as f64 / (size - 1) as f64).clamp(0.0, 1.0),
            };
            places[id.index()] = (share(axis(coordinates, 0)), share(axis(coordinates, 1)), None);
        }
    }
    Layout {
        structure: "grid",
        levels: None,
        dims: Some(grid.dims.clone()),
        groups: Vec::new(),
        places,
    }
}

/// Hosts stand at their switch, in the order of its ports.
fn hang_hosts(fabric: &Fabric, places: &mut [(f64, f64, Option<u32>)]) {
    for switch in fabric.ids(NodeKind::Switch) {
        let (x, y, _) = places[switch.index()];
        let hosts: Vec<NodeId> = fabric
            .neighbours(switch)
            .map(|(_, _, peer)| peer.node)
            .filter(|peer| !fabric.node(*peer).is_switch())
            .collect();
        for (index, host) in hosts.iter().enumerate() {
            let aside = (spread(index, hosts.len()) - 0.5) * 0.01;
            places[host.index()] = ((x + aside).clamp(0.0, 1.0), (y + 0.02).min(1.0), None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_fabric::topologies::build;
    use clearlane_fabric::{Endpoint, Node};
    use clearlane_ib::{Guid, LinkSpeed, LinkWidth, PortNumber};

    fn places_of(spec: &str) -> (Fabric, Layout) {
        let fabric = build(spec).unwrap();
        let layout = layout(&fabric);
        let inside = |v: f64| (0.0..=1.0).contains(&v);
        assert!(layout.places.iter().all(|(x, y, _)| inside(*x) && inside(*y)), "{spec}");
        (fabric, layout)
    }

    #[test]
    fn a_tree_has_leaves_below_and_spines_on_top() {
        let (fabric, layout) = places_of("fat-tree:648");
        assert_eq!((layout.structure, layout.levels), ("tree", Some(2)));
        let y = |level| {
            let at = fabric.ids(NodeKind::Switch).map(|id| layout.places[id.index()]);
            at.filter(|place| place.2 == Some(level)).map(|place| place.1).next().unwrap()
        };
        assert!(y(0) > y(1));
    }

    #[test]
    fn switches_stand_nearest_to_their_own_group() {
        let (_, layout) = places_of("dragonfly:a=4,p=2,h=2");
        assert_eq!((layout.structure, layout.groups.len()), ("graph", 9));
        let place = |id: &NodeId| layout.places[id.index()];
        let middle = |group: &Group| {
            let count = group.switches.len() as f64;
            let sum = |of: fn((f64, f64, Option<u32>)) -> f64| {
                group.switches.iter().map(|id| of(place(id))).sum::<f64>() / count
            };
            (sum(|place| place.0), sum(|place| place.1))
        };
        let middles: Vec<(f64, f64)> = layout.groups.iter().map(middle).collect();
        for (own, group) in layout.groups.iter().enumerate() {
            for (x, y, _) in group.switches.iter().map(place) {
                let apart = |(a, b): (f64, f64)| (a - x).hypot((b - y) * ASPECT);
                for other in (0..middles.len()).filter(|other| *other != own) {
                    assert!(1.5 * apart(middles[own]) < apart(middles[other]));
                }
            }
        }
    }

    /// Switches with so many hosts each, and the cables between them.
    fn site(hosts: &[u8], cables: &[(u32, u32)]) -> Fabric {
        let mut fabric = Fabric::new();
        let mut used = vec![0u8; hosts.len()];
        for at in 0..hosts.len() {
            let node = Node::new(NodeKind::Switch, Guid(1 + at as u64), format!("s{at}"), 60);
            fabric.add_node(node).unwrap();
        }
        let mut free = |node: u32| {
            used[node as usize] += 1;
            Endpoint { node: NodeId(node), port: PortNumber::new(used[node as usize]).unwrap() }
        };
        let join = |fabric: &mut Fabric, a, b| {
            fabric.join(a, b, LinkWidth::X4, LinkSpeed::Qdr).unwrap();
        };
        for (a, b) in cables {
            let ends = (free(*a), free(*b));
            join(&mut fabric, ends.0, ends.1);
        }
        for (at, count) in hosts.iter().enumerate() {
            for _ in 0..*count {
                let guid = Guid(1000 + fabric.nodes().len() as u64);
                let name = format!("h{}", fabric.nodes().len());
                let node =
                    fabric.add_node(Node::new(NodeKind::ChannelAdapter, guid, name, 1)).unwrap();
                let port = PortNumber::new(1).unwrap();
                let switch = free(at as u32);
                join(&mut fabric, switch, Endpoint { node, port });
            }
        }
        fabric
    }

    #[test]
    fn a_server_at_a_spine_leaves_the_rows_as_they_are() {
        let cables = [(0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4)];
        let layout = layout(&site(&[1, 0, 8, 8, 8], &cables));
        assert_eq!((layout.structure, layout.levels), ("graph", None));
        let ys: Vec<f64> = layout.places[..5].iter().map(|place| place.1).collect();
        assert_eq!(ys, [0.0, 0.0, 0.5, 0.5, 0.5]);
        let xs: Vec<f64> = layout.places[..5].iter().map(|place| place.0).collect();
        assert_eq!(xs, [0.25, 0.75, 0.0, 0.5, 1.0]);
    }

    #[test]
    fn switches_whose_cables_would_lie_on_each_other_stand_in_no_row() {
        let cables = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 1), (4, 0)];
        let layout = layout(&site(&[4, 4, 4, 4, 4], &cables));
        let ys: Vec<f64> = layout.places[..5].iter().map(|place| place.1).collect();
        assert!(ys.iter().any(|y| (y - ys[0]).abs() > 0.3), "{ys:?}");
    }

    #[test]
    fn names_are_ordered_as_people_count() {
        let mut names =
            vec!["leaf10", "leaf9", "leaf010b", "spine1", "leaf", "leaf9-2", "leaf9-11"];
        names.sort_by_cached_key(|name| natural(name));
        let expected = ["leaf", "leaf9", "leaf9-2", "leaf9-11", "leaf10", "leaf010b", "spine1"];
        assert_eq!(names, expected);
    }

    #[test]
    fn switches_that_are_all_leaves_have_places_of_their_own() {
        for (spec, structure) in [
            ("torus:8x8", "grid"),
            ("mesh:3x5", "grid"),
            ("torus:4x4x4", "grid"),
            ("torus:2x3x4x5", "grid"),
            ("tofu:3x2x2", "grid"),
            ("hypercube:6", "grid"),
            ("dragonfly:a=4,p=2,h=2", "graph"),
            ("hyperx:4x4", "graph"),
        ] {
            let (fabric, layout) = places_of(spec);
            assert_eq!(layout.structure, structure);
            let mut seen: Vec<(u64, u64)> = fabric
                .ids(NodeKind::Switch)
                .map(|id| layout.places[id.index()])
                .map(|(x, y, _)| (x.to_bits(), y.to_bits()))
                .collect();
            let count = seen.len();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), count, "{spec}");
        }
    }
}
