//! What the literature says of a topology's size, degree and diameter holds for what is built.

use clearlane_fabric::{Fabric, NodeId, NodeKind, topologies};
use std::collections::{BTreeSet, VecDeque};

/// The most cables on the shortest way between two switches.
fn diameter(fabric: &Fabric) -> u32 {
    let from = |start: NodeId| {
        let mut distances = vec![u32::MAX; fabric.nodes().len()];
        distances[start.index()] = 0;
        let mut queue = VecDeque::from([start]);
        while let Some(id) = queue.pop_front() {
            let next = distances[id.index()] + 1;
            for (_, _, peer) in fabric.neighbours(id) {
                let at = &mut distances[peer.node.index()];
                if *at == u32::MAX && fabric.node(peer.node).is_switch() {
                    *at = next;
                    queue.push_back(peer.node);
                }
            }
        }
        fabric.ids(NodeKind::Switch).map(|id| distances[id.index()]).max().unwrap()
    };
    fabric.ids(NodeKind::Switch).map(from).max().unwrap()
}

/// How many cables a switch has, hosts included; fails where switches differ.
fn degree(fabric: &Fabric) -> usize {
    let degrees: BTreeSet<usize> =
        fabric.ids(NodeKind::Switch).map(|id| fabric.neighbours(id).count()).collect();
    assert_eq!(degrees.len(), 1, "{degrees:?}");
    degrees.into_iter().next().unwrap()
}

fn built(spec: &str) -> Fabric {
    topologies::build(spec).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_hypercube_of_n_dimensions_has_degree_and_diameter_n() {
    for n in 1..=9 {
        let fabric = built(&format!("hypercube:{n},hosts=3"));
        let summary = fabric.summary();
        assert_eq!((summary.switches, summary.adapters), (1 << n, 3 << n));
        assert_eq!(summary.links, (n << (n - 1)) + (3 << n));
        assert_eq!((degree(&fabric), diameter(&fabric)), (n + 3, n as u32));
    }
}

#[test]
fn a_dragonfly_has_its_papers_size_radix_and_diameter() {
    for (a, p, h) in [(2, 1, 1), (4, 2, 2), (6, 3, 3), (8, 4, 4), (3, 5, 2)] {
        let fabric = built(&format!("dragonfly:a={a},p={p},h={h}"));
        let summary = fabric.summary();
        let groups = a * h + 1;
        assert_eq!((summary.switches, summary.adapters), (groups * a, groups * a * p));
        let local = groups * a * (a - 1) / 2;
        assert_eq!(summary.links, local + groups * (groups - 1) / 2 + groups * a * p);
        // Radix k = p + a + h - 1; one local, one global, one local cable.
        assert_eq!((degree(&fabric), diameter(&fabric)), (p + a + h - 1, 3));
    }
    // One switch a group: a full mesh.
    assert_eq!(diameter(&built("dragonfly:a=1,p=1,h=6")), 1);
}

#[test]
fn a_hyperx_has_one_cable_a_dimension_on_its_longest_way() {
    for (sizes, parallel, hosts) in
        [(vec![5], vec![1], 1), (vec![4, 3], vec![1, 2], 2), (vec![3, 2, 4, 2], vec![2; 4], 3)]
    {
        let words = |of: &[usize]| of.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
        let (shape, counts) = (words(&sizes), words(&parallel));
        let fabric = built(&format!("hyperx:{shape},hosts={hosts},parallel={counts}"));
        let switches: usize = sizes.iter().product();
        let between: usize = sizes.iter().zip(&parallel).map(|(s, k)| (s - 1) * k).sum();
        let summary = fabric.summary();
        assert_eq!((summary.switches, summary.adapters), (switches, switches * hosts));
        assert_eq!(summary.links, switches * between / 2 + switches * hosts);
        assert_eq!(degree(&fabric), between + hosts);
        assert_eq!(diameter(&fabric), sizes.len() as u32);
    }
}

#[test]
fn a_tofu_has_ten_links_a_node_and_half_of_every_ring_on_its_longest_way() {
    for (x, y, z) in [(3, 3, 3), (4, 3, 5), (6, 4, 3)] {
        let fabric = built(&format!("tofu:{x}x{y}x{z}"));
        let switches = 12 * x * y * z;
        let summary = fabric.summary();
        assert_eq!((summary.switches, summary.links), (switches, 5 * switches + switches));
        assert_eq!(degree(&fabric), 10 + 1);
        assert_eq!(diameter(&fabric), (x / 2 + y / 2 + z / 2 + 1 + 1 + 1) as u32);
    }
    // Open in X: the whole length, and no cable around.
    let open = built("tofu:5x3x3,mesh=x");
    assert_eq!(diameter(&open), 4 + 1 + 1 + 3);
    assert_eq!(open.summary().links, 6 * 12 * 45 - 12 * 9);
}

#[test]
fn a_rail_optimised_fabric_is_a_full_leaf_and_spine() {
    let fabric = built("rail-optimised:units=3,hosts=4,rails=2,spines=5,parallel=2");
    let summary = fabric.summary();
    assert_eq!((summary.switches, summary.adapters), (3 * 2 + 5, 3 * 4 * 2));
    assert_eq!((summary.links, diameter(&fabric)), (24 + 6 * 5 * 2, 2));
}
