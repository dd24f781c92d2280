//! Every engine on random fabrics keeps what it claims.

use clearlane_fabric::{Endpoint, Fabric, Node, NodeId, NodeKind, topologies};
use clearlane_ib::random::Stream;
use clearlane_ib::{Guid, LinkSpeed, LinkWidth, Lmc, PortNumber};
use clearlane_subnet::check::{credit_loop, disjointness, reachability};
use clearlane_subnet::engines::{ALL, RouteOptions, route};
use proptest::prelude::*;
use std::collections::VecDeque;

/// A connected fabric: a random tree of switches, more cables at random, hosts at random.
fn random_fabric(switches: usize, cables: usize, hosts: usize, seed: u64) -> Fabric {
    let mut fabric = Fabric::new();
    let mut stream = Stream::new(seed, "fabric", 0);
    for at in 0..switches + hosts {
        let (kind, ports, name) = if at < switches {
            (NodeKind::Switch, 40, format!("sw{at}"))
        } else {
            (NodeKind::ChannelAdapter, 1, format!("host{at}"))
        };
        fabric.add_node(Node::new(kind, Guid(0x100 * (at as u64 + 1)), name, ports)).unwrap();
    }
    let mut free = vec![1u8; switches + hosts];
    let mut join = |a: usize, b: usize| {
        let ports = |at: usize| if at < switches { 40 } else { 1 };
        if a == b || free[a] > ports(a) || free[b] > ports(b) {
            return;
        }
        let end = |at: usize, port: u8| Endpoint {
            node: NodeId(at as u32),
            port: PortNumber::new(port).unwrap(),
        };
        fabric.join(end(a, free[a]), end(b, free[b]), LinkWidth::X4, LinkSpeed::Qdr).unwrap();
        free[a] += 1;
        free[b] += 1;
    };
    for at in 1..switches {
        join(at, stream.below(at as u64) as usize);
    }
    for host in 0..hosts {
        join(stream.below(switches as u64) as usize, switches + host);
    }
    for _ in 0..cables {
        join(stream.below(switches as u64) as usize, stream.below(switches as u64) as usize);
    }
    fabric
}

/// Hosts by breadth-first search over the fabric's own cables: pairs by switches passed.
fn shortest(fabric: &Fabric) -> Vec<u64> {
    let mut hops = Vec::new();
    for from in fabric.ids(NodeKind::ChannelAdapter) {
        let mut distance = vec![usize::MAX; fabric.nodes().len()];
        distance[from.index()] = 0;
        let mut queue = VecDeque::from([from]);
        while let Some(at) = queue.pop_front() {
            if at != from && !fabric.node(at).is_switch() {
                let passed = distance[at.index()] - 1;
                if hops.len() <= passed {
                    hops.resize(passed + 1, 0);
                }
                hops[passed] += 1;
                continue;
            }
            for (_, _, peer) in fabric.neighbours(at) {
                if distance[peer.node.index()] == usize::MAX {
                    distance[peer.node.index()] = distance[at.index()] + 1;
                    queue.push_back(peer.node);
                }
            }
        }
    }
    hops
}

fn keeps_its_claims(fabric: &Fabric, engine: &str, options: &RouteOptions) {
    let entry = ALL.iter().find(|entry| entry.name == engine).unwrap();
    let subnet = route(engine, fabric, options).unwrap();
    assert_eq!(subnet, route(engine, fabric, options).unwrap(), "the same tables every time");
    let reached = reachability(fabric, &subnet);
    assert!(reached.is_sane() && reached.switches_unreached == 0, "{engine}: {reached}");
    if entry.claims.minimal {
        let times = u64::from(options.lmc.lids());
        let least: Vec<u64> = shortest(fabric).iter().map(|pairs| pairs * times).collect();
        assert_eq!(reached.hops, least, "{engine}");
    }
    if entry.claims.deadlock_free {
        let report = credit_loop(fabric, &subnet);
        assert!(report.is_sane(), "{engine}: {report}");
    }
}

/// Cuts a share of the cables between switches, about.
fn cut_share(fabric: &mut Fabric, share: f64, seed: u64) {
    let mut stream = Stream::new(seed, "cut", 0);
    let links = fabric.links().iter();
    let dead: Vec<bool> = links
        .map(|link| {
            let inner = [link.a, link.b].iter().all(|end| fabric.node(end.node).is_switch());
            stream.unit() < share && inner
        })
        .collect();
    fabric.unplug(|id, _| dead[id.index()]);
}

/// The engine `layered`: all pairs with a cable path arrive, no credit loop in the lanes given,
/// acknowledgements included, and the remark tells the truth about lengths.
fn keeps_to_its_lanes(fabric: &Fabric, lanes: u8) {
    let options = RouteOptions { lanes, ..RouteOptions::default() };
    let subnet = route("layered", fabric, &options).unwrap();
    let least = shortest(fabric);
    let reached = reachability(fabric, &subnet);
    assert_eq!(reached.reached, least.iter().sum::<u64>(), "{reached}");
    let report = credit_loop(fabric, &subnet);
    assert!(report.is_sane() && report.lanes <= lanes, "{report}");
    let rows = subnet.tables.switches().len();
    let levels = (0..rows).flat_map(|a| (0..rows).map(move |b| (a, b)));
    for (a, b) in levels {
        let level = subnet.path_sl.level(a, b);
        assert!(level.value() < lanes && level == subnet.path_sl.level(b, a));
    }
    let says_shortest = subnet.notes.iter().any(|remark| remark.contains("all paths are shortest"));
    assert_eq!(says_shortest, reached.hops == least, "{:?}", subnet.notes);
}

/// The engine `multipath`: the pairs with a cable path arrive at every LID offset, all offsets
/// together have no credit loop in the lanes given, acknowledgements included, and what is said of
/// how different the paths are holds together.
fn offers_several_paths(fabric: &Fabric, lmc: u8, lanes: u8) {
    let options = RouteOptions { lmc: Lmc::new(lmc).unwrap(), lanes, ..RouteOptions::default() };
    let subnet = route("multipath", fabric, &options).unwrap();
    assert_eq!(subnet, route("multipath", fabric, &options).unwrap(), "the same every time");
    let connected: u64 = shortest(fabric).iter().sum();
    for offset in 0..1 << lmc {
        assert_eq!(reachability(fabric, &subnet.at_offset(offset)).reached, connected);
    }
    let report = credit_loop(fabric, &subnet);
    assert!(report.is_sane() && report.lanes <= lanes, "{report}");
    let rows = subnet.tables.switches().len();
    let pairs = (0..rows).flat_map(|a| (0..rows).map(move |b| (a, b)));
    for (a, b) in pairs {
        let level = |a, b, offset| subnet.path_sl.level_at(a, b, offset);
        assert!((0..1 << lmc).all(|offset| level(a, b, offset) == level(b, a, offset)));
    }
    for class in disjointness(fabric, &subnet).classes {
        let most = f64::from(1u32 << lmc);
        assert!(class.disjoint_least >= 1 && f64::from(class.disjoint_least) <= class.disjoint);
        assert!(class.disjoint <= class.distinct && class.distinct <= most, "{class:?}");
        assert!(class.lengths.iter().all(|length| *length >= class.shortest), "{class:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn on_any_connected_fabric(
        switches in 1usize..14,
        cables in 0usize..20,
        hosts in 2usize..24,
        lmc in 0u8..3,
        seed in any::<u64>(),
    ) {
        let fabric = random_fabric(switches, cables, hosts, seed);
        let lmc = Lmc::new(lmc).unwrap();
        let options = RouteOptions { lmc, ..RouteOptions::default() };
        for engine in ["min-hop", "fat-tree", "up-down", "multipath"] {
            keeps_its_claims(&fabric, engine, &options);
        }
    }

    #[test]
    fn in_any_number_of_lanes(
        switches in 2usize..40,
        cables in 0usize..80,
        hosts in 2usize..60,
        lanes in 1u8..9,
        seed in any::<u64>(),
    ) {
        let fabric = random_fabric(switches, cables, hosts, seed);
        keeps_to_its_lanes(&fabric, lanes);
    }

    #[test]
    fn in_any_number_of_lanes_on_damaged_grids(
        spec in prop::sample::select(vec![
            "torus:4x4x4", "torus:5x5", "torus:8x8", "torus:3x3x3,hosts=2", "torus:7x3", "ring:9x2",
            "mesh:2x2x2x2x2", "torus:2x2x2", "torus:6x4",
        ]),
        share in 0.0f64..0.3,
        lanes in 1u8..9,
        seed in any::<u64>(),
    ) {
        let mut fabric = topologies::build(spec).unwrap();
        cut_share(&mut fabric, share, seed);
        keeps_to_its_lanes(&fabric, lanes);
    }

    #[test]
    fn over_several_paths_on_any_connected_fabric(
        switches in 1usize..20,
        cables in 0usize..40,
        hosts in 2usize..24,
        lmc in 0u8..4,
        lanes in 1u8..9,
        seed in any::<u64>(),
    ) {
        let fabric = random_fabric(switches, cables, hosts, seed);
        offers_several_paths(&fabric, lmc, lanes);
    }

    #[test]
    fn over_several_paths_on_damaged_fabrics(
        spec in prop::sample::select(vec![
            "torus:4x4", "torus:5x3", "torus:3x3x3", "ring:6x2", "mesh:4x4", "mesh:5x3,hosts=2",
            "torus:2x2x2", "xgft:3,3,3;1,3,3", "leaf-spine:leaves=5,hosts=4,spines=2,parallel=2",
            "xgft:2,3,2;1,2,3;1,2,1", "dragonfly:a=4,p=2,h=2,g=4",
        ]),
        share in prop::sample::select(vec![0.0, 0.05, 0.3]),
        lmc in 0u8..4,
        lanes in 1u8..9,
        seed in any::<u64>(),
    ) {
        let mut fabric = topologies::build(spec).unwrap();
        cut_share(&mut fabric, share, seed);
        offers_several_paths(&fabric, lmc, lanes);
    }

    #[test]
    fn on_trees_with_cut_cables(
        shape in prop::sample::select(vec![
            "xgft:3,3,3;1,3,3", "leaf-spine:leaves=6,hosts=3,spines=3", "xgft:2,3,2;1,2,3;1,2,1",
            "leaf-spine:leaves=5,hosts=4,spines=2,parallel=2",
        ]),
        share in 0.0f64..0.4,
        seed in any::<u64>(),
    ) {
        let mut fabric = topologies::build(shape).unwrap();
        cut_share(&mut fabric, share, seed);
        for engine in ["fat-tree", "up-down"] {
            let subnet = route(engine, &fabric, &RouteOptions::default()).unwrap();
            // Exactly the pairs with a cable path arrive, on one lane without credit loop.
            let connected: u64 = shortest(&fabric).iter().sum();
            prop_assert_eq!(reachability(&fabric, &subnet).reached, connected);
            let report = credit_loop(&fabric, &subnet);
            prop_assert!(report.is_sane(), "{}: {}", engine, report);
        }
        keeps_to_its_lanes(&fabric, 2);
    }

    #[test]
    fn on_grids_of_any_size(
        sizes in prop::collection::vec(2u32..6, 1..4),
        wrapped in any::<bool>(),
        hosts in 1u32..3,
        lmc in 0u8..2,
    ) {
        let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
        let kind = if wrapped { "torus" } else { "mesh" };
        let spec = format!("{kind}:{},hosts={hosts}", sizes.join("x"));
        let fabric = topologies::build(&spec).unwrap();
        let lmc = Lmc::new(lmc).unwrap();
        let options = RouteOptions { lmc, lanes: 2, ..RouteOptions::default() };
        keeps_its_claims(&fabric, "dor", &options);
        keeps_its_claims(&fabric, "fat-tree", &options);
        keeps_its_claims(&fabric, "up-down", &options);
        keeps_its_claims(&fabric, "layered", &options);
    }
}
