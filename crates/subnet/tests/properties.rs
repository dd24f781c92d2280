//! Every engine on random fabrics keeps what it claims.

use clearlane_fabric::{Endpoint, Fabric, Node, NodeId, NodeKind, topologies};
use clearlane_ib::random::Stream;
use clearlane_ib::{Guid, LinkSpeed, LinkWidth, Lmc, PortNumber};
use clearlane_subnet::check::{credit_loop, reachability};
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
        for engine in ["min-hop", "fat-tree"] {
            keeps_its_claims(&fabric, engine, &options);
        }
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
        let mut stream = Stream::new(seed, "cut", 0);
        let dead: Vec<bool> = fabric
            .links()
            .iter()
            .map(|link| {
                let inner = [link.a, link.b].iter().all(|end| fabric.node(end.node).is_switch());
                stream.unit() < share && inner
            })
            .collect();
        fabric.unplug(|id, _| dead[id.index()]);
        let subnet = route("fat-tree", &fabric, &RouteOptions::default()).unwrap();
        // Exactly the pairs with a cable path arrive, on one lane without credit loop.
        let connected: u64 = shortest(&fabric).iter().sum();
        prop_assert_eq!(reachability(&fabric, &subnet).reached, connected);
        let report = credit_loop(&fabric, &subnet);
        prop_assert!(report.is_sane(), "{}", report);
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
    }
}
