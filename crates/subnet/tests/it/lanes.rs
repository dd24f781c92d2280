//! What the engines `layered` and `up-down` promise: freedom from deadlock on any fabric in the
//! lanes given, and paths as short as these allow.

use clearlane_fabric::{Fabric, NodeId, NodeKind, damage, topologies};
use clearlane_ib::Lid;
use clearlane_subnet::check::{credit_loop, reachability, shifts};
use clearlane_subnet::engines::{RouteOptions, route};
use clearlane_subnet::{SlToVl, Subnet};
use std::collections::VecDeque;

fn routed(fabric: &Fabric, engine: &str, lanes: u8) -> Subnet {
    route(engine, fabric, &RouteOptions { lanes, ..RouteOptions::default() }).unwrap()
}

fn sane(fabric: &Fabric, subnet: &Subnet, lanes: u8) -> Vec<u64> {
    let reached = reachability(fabric, subnet);
    assert!(reached.is_sane() && reached.switches_unreached == 0, "{reached}");
    let report = credit_loop(fabric, subnet);
    assert!(report.is_sane() && report.lanes <= lanes, "{report}");
    reached.hops
}

fn cut(fabric: &mut Fabric, links: usize, seed: u64) {
    let choice = damage::Choice { links, seed, uplinks_min: 0 };
    let dead = damage::choose(fabric, &choice).unwrap();
    damage::cut(fabric, &dead);
}

/// Paths by number of switches on a torus of these sizes, all hosts to all others, by counting
/// steps round each ring.
fn torus_hops(sizes: &[usize], hosts: u64) -> Vec<u64> {
    let mut steps = vec![1u64];
    for size in sizes {
        let mut next = vec![0; steps.len() + size / 2];
        for at in 0..*size {
            let ring = at.min(size - at);
            steps.iter().enumerate().for_each(|(far, count)| next[far + ring] += count);
        }
        steps = next;
    }
    let switches: usize = sizes.iter().product();
    let pairs = switches as u64 * hosts;
    let mut hops = vec![0];
    hops.extend(steps.iter().map(|count| count * pairs * hosts));
    // Nobody sends to itself.
    hops[1] -= pairs;
    hops
}

#[test]
fn a_torus_of_2048_hosts_fits_eight_lanes_with_shortest_paths() {
    let fabric = topologies::build("torus:8x8x8,hosts=4").unwrap();
    let subnet = routed(&fabric, "layered", 8);
    assert_eq!(sane(&fabric, &subnet, 8), torus_hops(&[8, 8, 8], 4));
    assert!(subnet.notes[0].contains("of 8 lanes used, all paths are shortest paths"));
    // It is the lanes that break the loops.
    let one_lane = Subnet { sl_to_vl: SlToVl::modulo(&fabric, 1), ..subnet };
    assert!(!credit_loop(&fabric, &one_lane).is_sane());
}

#[test]
fn fewer_lanes_than_datelines_cost_a_few_longer_paths() {
    for (spec, lanes, share_max) in
        [("torus:6x6x6", 5, 0.002), ("torus:8x8", 3, 0.01), ("torus:8x8", 1, 0.3)]
    {
        let fabric = topologies::build(spec).unwrap();
        let subnet = routed(&fabric, "layered", lanes);
        let hops = sane(&fabric, &subnet, lanes);
        let sum = |hops: &[u64]| hops.iter().zip(0u64..).map(|(n, hops)| n * hops).sum::<u64>();
        let sizes: Vec<usize> = spec[6..].split('x').map(|size| size.parse().unwrap()).collect();
        let (is, least) = (sum(&hops) as f64, sum(&torus_hops(&sizes, 1)) as f64);
        assert!(is <= least * (1.0 + share_max), "{spec} {lanes}: {is} of {least}");
        assert!(subnet.notes[0].contains("longer than necessary"), "{:?}", subnet.notes);
    }
}

#[test]
fn a_damaged_torus_keeps_to_its_lanes() {
    let mut fabric = topologies::build("torus:6x6x6").unwrap();
    cut(&mut fabric, 20, 3);
    let subnet = routed(&fabric, "layered", 8);
    sane(&fabric, &subnet, 8);
    assert!(subnet.notes[0].contains("all paths are shortest paths"), "{:?}", subnet.notes);
    // No grid is left to recover in a fabric whose first switches are gone.
    let gone: Vec<NodeId> = fabric.ids(NodeKind::Switch).take(3).collect();
    let fabric = damage::without(&fabric, &gone).unwrap();
    let hosts: Vec<NodeId> = fabric
        .ids(NodeKind::ChannelAdapter)
        .filter(|id| fabric.neighbours(*id).next().is_none())
        .collect();
    let fabric = damage::without(&fabric, &hosts).unwrap();
    sane(&fabric, &routed(&fabric, "layered", 4), 4);
}

#[test]
fn parallel_spines_are_used_by_the_hosts_of_one_leaf() {
    for (spec, lanes) in [("fat-tree:648", 1), ("fat-tree:648", 4), ("xgft:4,4,4;1,4,4", 2)] {
        let fabric = topologies::build(spec).unwrap();
        for engine in ["layered", "up-down"] {
            let subnet = routed(&fabric, engine, lanes);
            sane(&fabric, &subnet, lanes);
            let found = shifts(&fabric, &subnet);
            assert_eq!(found.contention_free, found.of, "{spec} {engine}: {found}");
        }
    }
}

/// Distance in cables of every switch from one.
fn distances(fabric: &Fabric, root: NodeId) -> Vec<usize> {
    let mut distances = vec![usize::MAX; fabric.nodes().len()];
    distances[root.index()] = 0;
    let mut queue = VecDeque::from([root]);
    while let Some(at) = queue.pop_front() {
        for (_, _, peer) in fabric.neighbours(at) {
            if distances[peer.node.index()] == usize::MAX && fabric.node(peer.node).is_switch() {
                distances[peer.node.index()] = distances[at.index()] + 1;
                queue.push_back(peer.node);
            }
        }
    }
    distances
}

/// Walks every path; gives how often one goes up after it went down, nearer to the root being up
/// and of equally near switches the one with the greater number.
fn turns_up(fabric: &Fabric, subnet: &Subnet, root: NodeId) -> usize {
    let near = distances(fabric, root);
    let height = |node: NodeId| (usize::MAX - near[node.index()], node.0);
    let mut turns = 0;
    for source in fabric.ids(NodeKind::ChannelAdapter) {
        for (lid, owner) in subnet.lids.iter().filter(|(_, owner)| owner.end.port.value() != 0) {
            let (_, _, first) = fabric.neighbours(source).next().unwrap();
            let (mut at, mut went_down) = (first.node, false);
            while owner.end.node != source && fabric.node(at).is_switch() {
                let port = subnet.tables.port(at, Lid::new(lid.value()).unwrap()).unwrap();
                let out = clearlane_fabric::Endpoint { node: at, port };
                let next = fabric.peer(out).unwrap().node;
                if fabric.node(next).is_switch() {
                    let up = height(next) > height(at);
                    turns += usize::from(up && went_down);
                    went_down |= !up;
                }
                at = next;
            }
        }
    }
    turns
}

#[test]
fn paths_never_go_up_after_they_went_down() {
    for spec in ["torus:5x5", "mesh:4x4", "torus:3x3x3", "ring:8x1"] {
        let fabric = topologies::build(spec).unwrap();
        // The first switch is a centre of all of these but the mesh.
        for root in [0, 5] {
            let root = fabric.ids(NodeKind::Switch).nth(root).unwrap();
            let options = RouteOptions { roots: vec![root], ..RouteOptions::default() };
            let subnet = route("up-down", &fabric, &options).unwrap();
            sane(&fabric, &subnet, 1);
            assert_eq!(turns_up(&fabric, &subnet, root), 0, "{spec}");
        }
        let other = fabric.ids(NodeKind::Switch).last().unwrap();
        let min_hop = routed(&fabric, "min-hop", 1);
        assert!(turns_up(&fabric, &min_hop, other) > 0, "{spec}: the count can be other than 0");
    }
}

#[test]
fn the_middle_of_a_mesh_is_its_root() {
    let fabric = topologies::build("mesh:5x5").unwrap();
    let subnet = routed(&fabric, "up-down", 1);
    let middle = fabric.ids(NodeKind::Switch).nth(12).unwrap();
    assert_eq!(turns_up(&fabric, &subnet, middle), 0);
    // Up and down suffices for shortest paths in a mesh with its root in a corner or the middle.
    let least = routed(&fabric, "min-hop", 1);
    assert_eq!(sane(&fabric, &subnet, 1), reachability(&fabric, &least).hops);
}
