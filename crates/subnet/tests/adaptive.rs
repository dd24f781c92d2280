//! Adaptive routing groups: every choice leads to the destination, and the checker sees them all.

use clearlane_fabric::{Endpoint, Fabric, NodeKind, damage, topologies};
use clearlane_ib::{Lid, PortNumber};
use clearlane_subnet::Subnet;
use clearlane_subnet::check::credit_loop;
use clearlane_subnet::engines::{RouteOptions, route};

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
