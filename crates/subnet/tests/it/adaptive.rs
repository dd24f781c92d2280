//! Adaptive routing groups: every choice leads to the destination, and the checker sees them all.

use clearlane_fabric::{Endpoint, Fabric, Node, NodeKind, damage, topologies};
use clearlane_ib::{Guid, Lid, LinkSpeed, LinkWidth, PortNumber};
use clearlane_subnet::Subnet;
use clearlane_subnet::check::credit_loop;
use clearlane_subnet::engines::{RouteOptions, route};
use std::collections::BTreeMap;

fn routed(fabric: &Fabric, engine: &str) -> Subnet {
    let options = RouteOptions { adaptive: true, ..RouteOptions::default() };
    route(engine, fabric, &options).unwrap()
}

/// Follows every choice from every host to every other; gives how many switches had one.
fn follow_all(fabric: &Fabric, subnet: &Subnet) -> usize {
    let groups = subnet.adaptive.as_ref().unwrap();
    let mut choices = 0;
    for (lid, owner) in subnet.lids.iter().filter(|(_, owner)| owner.end.port.value() != 0) {
        // What arrives from a switch whatever it chooses: false while it is being followed.
        let mut arrives = vec![None; fabric.nodes().len()];
        arrives[owner.end.node.index()] = Some(true);
        for source in fabric.ids(NodeKind::ChannelAdapter).filter(|id| *id != owner.end.node) {
            let (_, _, first) = fabric.neighbours(source).next().unwrap();
            let mut stack = vec![first.node];
            while let Some(&at) = stack.last() {
                if arrives[at.index()] == Some(true) {
                    stack.pop();
                    continue;
                }
                let row = subnet.tables.row_of(at).expect("paths pass no other host");
                let own = subnet.tables.port(at, lid);
                let own =
                    [own.unwrap_or_else(|| panic!("{lid} at {at:?} {}", subnet.engine)).value()];
                let ports = groups.ports(row, lid);
                assert!(ports.is_empty() || ports.len() > 1 && ports.contains(&own[0]));
                let ports = if ports.is_empty() { &own[..] } else { ports };
                let port = |port: &u8| PortNumber::new(*port).unwrap();
                let ends = ports.iter().map(|p| Endpoint { node: at, port: port(p) });
                let next: Vec<_> = ends.map(|end| fabric.peer(end).unwrap().node).collect();
                if next.iter().all(|node| arrives[node.index()] == Some(true)) {
                    arrives[at.index()] = Some(true);
                    choices += usize::from(next.len() > 1);
                    continue;
                }
                arrives[at.index()] = Some(false);
                for node in next.into_iter().filter(|node| arrives[node.index()] != Some(true)) {
                    assert_ne!(arrives[node.index()], Some(false), "a loop to LID {lid}");
                    stack.push(node);
                }
            }
        }
    }
    choices
}

fn damaged(spec: &str, links: usize, seed: u64) -> Fabric {
    let mut fabric = topologies::build(spec).unwrap();
    let choice = damage::Choice { links, seed, uplinks_min: 2 };
    let dead = damage::choose(&fabric, &choice).unwrap();
    damage::cut(&mut fabric, &dead);
    fabric
}

#[test]
fn every_choice_arrives_and_closes_no_loop() {
    for (spec, links) in [
        ("xgft:4,4,4;1,4,4", 0),
        ("xgft:4,4,4;1,4,4", 12),
        ("leaf-spine:leaves=6,hosts=3,spines=3,parallel=2", 5),
        ("torus:5x5", 0),
        ("torus:4x4x4", 10),
        ("mesh:4x4x2", 3),
    ] {
        for seed in 1..4 {
            let fabric = damaged(spec, links, seed);
            for engine in ["fat-tree", "up-down", "min-hop"] {
                let subnet = routed(&fabric, engine);
                assert!(follow_all(&fabric, &subnet) > 0, "{spec} {engine}");
                let report = credit_loop(&fabric, &subnet);
                let least = credit_loop(&fabric, &Subnet { adaptive: None, ..subnet });
                assert!(report.dependencies > least.dependencies, "{spec} {engine}");
                assert!(report.is_sane() || engine == "min-hop", "{spec} {engine}: {report}");
            }
        }
    }
}

#[test]
fn a_leaf_may_use_all_its_uplinks() {
    let fabric = topologies::build("fat-tree:648").unwrap();
    for engine in ["fat-tree", "up-down", "min-hop"] {
        let subnet = routed(&fabric, engine);
        let groups = subnet.adaptive.as_ref().unwrap();
        // One group to other leaves; hosts of its own leaf are no choice.
        let to_last = Lid::new(648).unwrap();
        assert_eq!(groups.ports(0, to_last), (19..=36).collect::<Vec<u8>>());
        assert!(groups.ports(0, Lid::new(1).unwrap()).is_empty());
        assert!(groups.ports(40, to_last).is_empty(), "a spine has one cable to each leaf");
    }
    let plain = route("fat-tree", &fabric, &RouteOptions::default()).unwrap();
    assert_eq!(plain.adaptive, None);
}

/// Z0 is the root, R and W are two below it, all others but Z1 and Z2 three. R's shortest legal way
/// to D is down: N, A, B, D. From N over W would be shorter, and so it would be over P and W, but
/// both go up after R went down.
#[test]
fn who_is_passed_on_the_way_down_goes_down_itself() {
    let mut fabric = Fabric::new();
    // Of switches as near to the root the later one is up.
    let names = ["D", "B", "A", "P", "N", "Z0", "Z1", "Z2", "R", "W"];
    let mut ends = Vec::new();
    for (number, name) in names.into_iter().enumerate() {
        let guid = Guid(1 + number as u64);
        ends.push((fabric.add_node(Node::new(NodeKind::Switch, guid, name, 8)).unwrap(), 0));
    }
    for host in ["from", "to"] {
        let guid = Guid(1 + ends.len() as u64);
        ends.push((
            fabric.add_node(Node::new(NodeKind::ChannelAdapter, guid, host, 1)).unwrap(),
            0,
        ));
    }
    let place = |name: &str| names.iter().position(|known| *known == name).unwrap();
    let mut ports = BTreeMap::new();
    let cables = "Z0 Z1, Z0 Z2, Z1 R, Z2 W, R N, W N, W P, W A, W B, W D, N A, N P, A B, B D";
    let pairs = cables.split(", ").map(|pair| pair.split_once(' ').unwrap());
    let pairs = pairs.map(|(a, b)| (place(a), place(b)));
    for (a, b) in pairs.chain([(place("R"), 10), (place("D"), 11)]) {
        let [a, b] = [a, b].map(|at| {
            ends[at].1 += 1;
            (at, Endpoint { node: ends[at].0, port: PortNumber::new(ends[at].1).unwrap() })
        });
        fabric.join(a.1, b.1, LinkWidth::X4, LinkSpeed::Qdr).unwrap();
        ports.insert((a.0, b.0), a.1);
    }
    let options =
        RouteOptions { adaptive: true, roots: vec![ends[5].0], ..RouteOptions::default() };
    let subnet = route("up-down", &fabric, &options).unwrap();
    let to = Endpoint { node: ends[11].0, port: PortNumber::new(1).unwrap() };
    let (lid, _) = subnet.lids.base(to).unwrap();
    let taken = |from: &str, to: &str| {
        let end = ports[&(place(from), place(to))];
        subnet.tables.port(end.node, lid) == Some(end.port)
    };
    for (from, to) in [("R", "N"), ("N", "A"), ("A", "B"), ("B", "D")] {
        assert!(taken(from, to), "{from} does not send to {to}");
    }
    // By no choice either.
    let row = subnet.tables.row_of(ends[place("N")].0).unwrap();
    assert!(subnet.adaptive.as_ref().unwrap().ports(row, lid).is_empty());
    assert!(credit_loop(&fabric, &subnet).is_sane());
}

#[test]
fn a_choice_that_closes_a_loop_is_found() {
    // Dimension order on a mesh is sane by its tables; choosing either dimension is not.
    let fabric = topologies::build("mesh:4x4").unwrap();
    let options = RouteOptions::default();
    let mut subnet = route("dor", &fabric, &options).unwrap();
    assert!(credit_loop(&fabric, &subnet).is_sane());
    subnet.adaptive = routed(&fabric, "min-hop").adaptive;
    let report = credit_loop(&fabric, &subnet);
    let cycle = report.cycle.as_ref().unwrap();
    assert_eq!(cycle.channels.len(), cycle.lines.len());
    assert!(cycle.lines.len() >= 4, "{report}");
}
