//! What the engine `fat-tree` promises: no contention for shifts on whole trees, repaired paths on
//! damaged ones, one VL enough on all.

use clearlane_fabric::{Fabric, LinkId, NodeKind, damage, topologies};
use clearlane_ib::{Lmc, random};
use clearlane_subnet::Subnet;
use clearlane_subnet::check::{credit_loop, reachability, shifts};
use clearlane_subnet::engines::{RouteOptions, route};
use std::collections::BTreeSet;

/// Cuts `count` cables between switches, drawn with a seed.
fn cut(fabric: &mut Fabric, count: usize, seed: u64) {
    let between: Vec<usize> = (0..fabric.links().len())
        .filter(|at| {
            let link = &fabric.links()[*at];
            [link.a, link.b].iter().all(|end| fabric.node(end.node).kind == NodeKind::Switch)
        })
        .collect();
    let mut dead: BTreeSet<LinkId> = BTreeSet::new();
    let mut counter = 0;
    while dead.len() < count.min(between.len()) {
        let draw = random::draw(seed, "cut", 0, counter) % between.len() as u64;
        dead.insert(LinkId(between[draw as usize] as u32));
        counter += 1;
    }
    fabric.unplug(|id, _| dead.contains(&id));
}

#[test]
fn every_shift_on_a_whole_tree_is_free_of_contention() {
    for spec in [
        "fat-tree:648",
        "fat-tree:3456",
        "xgft:4,4,4,4;1,4,4,4",
        "xgft:3,4,2;1,4,3",
        "leaf-spine:leaves=6,hosts=6,spines=2,parallel=3",
        "xgft:6,3,4;1,3,3;1,2,2",
        "star:20",
    ] {
        let fabric = topologies::build(spec).unwrap();
        let subnet = route("fat-tree", &fabric, &RouteOptions::default()).unwrap();
        let found = shifts(&fabric, &subnet);
        assert_eq!(
            (found.measured, found.contention_free),
            (found.of, found.of),
            "{spec}: {found}"
        );
        assert_eq!(found.lost, 0);
        assert!(subnet.remarks.is_empty(), "{spec}: {:?}", subnet.remarks);
        assert!(reachability(&fabric, &subnet).is_sane(), "{spec}");
        assert!(credit_loop(&fabric, &subnet).is_sane(), "{spec}");
    }
}

#[test]
fn a_tapered_tree_shares_its_uplinks_evenly() {
    for (spec, most) in [
        ("fat-tree:648,taper=2", 2),
        ("fat-tree:648,taper=3", 3),
        ("leaf-spine:leaves=8,hosts=12,spines=4", 3),
        ("xgft:4,4,4;1,2,2", 4),
    ] {
        let fabric = topologies::build(spec).unwrap();
        let subnet = route("fat-tree", &fabric, &RouteOptions::default()).unwrap();
        let found = shifts(&fabric, &subnet);
        assert_eq!(found.worst.map(|worst| worst.flows), Some(most), "{spec}");
    }
}

#[test]
fn each_lid_offset_is_free_of_contention_and_uses_another_uplink() {
    let fabric = topologies::build("xgft:4,4,4;1,4,4").unwrap();
    let lmc = Lmc::new(2).unwrap();
    let options = RouteOptions { lmc, ..RouteOptions::default() };
    let subnet = route("fat-tree", &fabric, &options).unwrap();
    assert!(reachability(&fabric, &subnet).is_sane());
    assert!(credit_loop(&fabric, &subnet).is_sane());
    for row in 0..16 {
        let entries = subnet.tables.row(row);
        let mut loads = [0; 9];
        for host in 0..64 {
            let ports = &entries[4 + 4 * host..8 + 4 * host];
            if host / 4 != row {
                assert_eq!(ports.iter().collect::<BTreeSet<_>>().len(), 4);
                ports.iter().for_each(|port| loads[usize::from(*port)] += 1);
            }
        }
        assert_eq!(loads[5..], [60; 4]);
    }
}

#[test]
fn a_damaged_tree_is_routed_with_up_and_down_paths() {
    for seed in 0..10 {
        let mut fabric = topologies::build("fat-tree:648").unwrap();
        cut(&mut fabric, 13, seed);
        let subnet = route("fat-tree", &fabric, &RouteOptions::default()).unwrap();
        let reached = reachability(&fabric, &subnet);
        assert!(reached.is_sane() && reached.switches_unreached == 0, "{reached}");
        assert_eq!(reached.hops[3], 648 * 630, "all paths stay minimal");
        assert!(credit_loop(&fabric, &subnet).is_sane());
        let found = shifts(&fabric, &subnet);
        // One lost cable makes two flows share a link in nearly every shift; 13 need not do worse.
        assert!(found.mean <= 2.0 && found.worst.unwrap().flows == 2, "seed {seed}");
        assert_eq!(subnet.remarks.len(), 1, "{:?}", subnet.remarks);
    }
    let mut fabric = topologies::build("xgft:4,4,4;1,4,4").unwrap();
    cut(&mut fabric, 20, 1);
    let subnet = route("fat-tree", &fabric, &RouteOptions::default()).unwrap();
    assert!(reachability(&fabric, &subnet).is_sane());
    assert!(credit_loop(&fabric, &subnet).is_sane());
}

/// A tree of 648 hosts without these cables, as (leaf, spine).
fn without(dead: &[(usize, usize)]) -> Fabric {
    let mut fabric = topologies::build("fat-tree:648").unwrap();
    let names: Vec<String> =
        dead.iter().map(|(leaf, spine)| format!("leaf{leaf:02}[{}]", 19 + spine)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let ids = damage::cables(&fabric, &names).unwrap();
    damage::cut(&mut fabric, &ids);
    fabric
}

/// No tables of two-cable paths can do better than this, by shift: the flows between a leaf and
/// the one or two leaves its hosts are shifted to have only the spines that both ends reach.
fn least_worst_links(dead: &[(usize, usize)]) -> Vec<u32> {
    let spines = |leaf: usize| {
        dead.iter()
            .filter(|cable| cable.0 == leaf)
            .fold(0x3_ffff_u32, |all, cable| all & !(1 << cable.1))
    };
    let mut least = Vec::new();
    for shift in 1..648 {
        let mut worst = 1;
        for (leaf, by) in (0..36).flat_map(|leaf| [(leaf, shift), (leaf, 648 - shift)]) {
            let other = |steps: usize| (leaf + by / 18 + steps) % 36;
            let parts = [(other(0), 18 - by % 18), (other(1), by % 18)];
            let parts = parts.map(|(other, flows)| {
                let flows = if other == leaf { 0 } else { flows as u32 };
                (flows, if flows == 0 { 0 } else { spines(leaf) & spines(other) })
            });
            let both = (parts[0].0 + parts[1].0, parts[0].1 | parts[1].1);
            for (flows, spines) in parts.into_iter().chain([both]).filter(|part| part.0 > 0) {
                worst = worst.max(flows.div_ceil(spines.count_ones()));
            }
        }
        least.push(worst);
    }
    least
}

#[test]
fn damage_in_one_place_costs_little_more_than_it_must() {
    let nine = |leaf: usize| (0..9).map(move |spine| (leaf, spine));
    let others = |spines: [usize; 4]| (20..24).zip(spines);
    for (what, dead, mean_max) in [
        ("13 cables of one spine", (0..13).map(|leaf| (2 * leaf, 5)).collect(), 2.0),
        (
            "7 and 6 of two leaves",
            (0..7).map(|s| (7, s)).chain((0..6).map(|s| (20, s))).collect(),
            2.0,
        ),
        (
            "9 of a leaf and 4 of them of another",
            nine(0).chain((0..4).map(|s| (3, s))).collect(),
            2.0,
        ),
        ("9 of a leaf, 4 of these at others", nine(7).chain(others([1, 3, 5, 7])).collect(), 2.0),
        ("9 of a leaf, 4 more elsewhere", nine(7).chain(others([9, 11, 13, 15])).collect(), 2.2),
        ("9 of a leaf, 4 more of another", nine(7).chain((9..13).map(|s| (20, s))).collect(), 2.2),
    ] {
        let dead: Vec<(usize, usize)> = dead;
        assert_eq!(dead.len(), 13, "{what}");
        let fabric = without(&dead);
        let subnet = route("fat-tree", &fabric, &RouteOptions::default()).unwrap();
        assert!(reachability(&fabric, &subnet).is_sane(), "{what}");
        let least = least_worst_links(&dead);
        let found = shifts(&fabric, &subnet);
        assert_eq!(
            found.worst.as_ref().map(|worst| worst.flows),
            least.iter().copied().max(),
            "{what}"
        );
        let mean = f64::from(least.iter().sum::<u32>()) / 647.0;
        assert!(mean <= found.mean && found.mean <= mean_max, "{what}: {mean} {found}");
    }
}

#[test]
fn three_damaged_levels_share_no_link_among_more_than_two() {
    let mut fabric = topologies::build("fat-tree:3456").unwrap();
    cut(&mut fabric, 69, 1);
    let subnet = route("fat-tree", &fabric, &RouteOptions::default()).unwrap();
    let reached = reachability(&fabric, &subnet);
    assert!(reached.is_sane() && reached.hops.len() == 6, "{reached}");
    assert!(credit_loop(&fabric, &subnet).is_sane());
    let found = shifts(&fabric, &subnet);
    assert!(found.mean <= 2.0 && found.worst.as_ref().unwrap().flows == 2, "{found}");
}

#[test]
fn a_tapered_tree_spreads_what_a_dead_cable_carried() {
    let mut fabric = topologies::build("fat-tree:648,taper=2").unwrap();
    cut(&mut fabric, 5, 1);
    let subnet = route("fat-tree", &fabric, &RouteOptions::default()).unwrap();
    let found = shifts(&fabric, &subnet);
    // Two flows on every uplink, and a leaf with one of nine missing has three on some.
    assert!(found.mean <= 3.0 && found.worst.as_ref().unwrap().flows == 3, "{found}");
}

#[test]
fn hosts_without_a_common_ancestor_get_one() {
    // Leaf 0 keeps the first half of its spines, leaf 1 the second half: only leaf 2 joins them.
    let mut fabric = topologies::build("leaf-spine:leaves=3,hosts=2,spines=4").unwrap();
    let cables: Vec<String> = fabric.links().iter().map(|link| fabric.cable(link)).collect();
    let dead = ["leaf00[3]", "leaf00[4]", "leaf01[5]", "leaf01[6]"];
    fabric.unplug(|id, _| dead.iter().any(|dead| cables[id.index()].contains(dead)));
    let subnet = route("fat-tree", &fabric, &RouteOptions::default()).unwrap();
    let reached = reachability(&fabric, &subnet);
    assert!(reached.is_sane(), "{reached}");
    assert!(credit_loop(&fabric, &subnet).is_sane());
    assert!(subnet.remarks.iter().any(|remark| remark.contains("lifted")), "{:?}", subnet.remarks);
}

#[test]
fn a_fabric_in_two_parts_is_routed_apart_and_says_so() {
    let mut fabric = topologies::build("leaf-spine:leaves=2,hosts=2,spines=1").unwrap();
    let cables: Vec<String> = fabric.links().iter().map(|link| fabric.cable(link)).collect();
    fabric.unplug(|id, _| cables[id.index()].contains("leaf00[3]"));
    let subnet = route("fat-tree", &fabric, &RouteOptions::default()).unwrap();
    let reached = reachability(&fabric, &subnet);
    assert_eq!((reached.pairs, reached.reached), (12, 4));
    assert!(
        subnet.remarks.iter().any(|remark| remark.contains("2 separate parts")),
        "{:?}",
        subnet.remarks
    );
}

/// By leaf uplink, how many LIDs of this offset a leaf sends over it.
fn uplink_loads(fabric: &Fabric, subnet: &Subnet, row: usize, offset: u16) -> Vec<usize> {
    let leaf = subnet.tables.switches()[row];
    let up = fabric.neighbours(leaf).filter(|(_, _, peer)| fabric.node(peer.node).is_switch());
    let loads = up.map(|(port, ..)| {
        let of_offset = subnet.lids.iter().filter(|(lid, owner)| {
            let to_host = !fabric.node(owner.end.node).is_switch();
            to_host && owner.offset == offset && subnet.tables.port(leaf, *lid) == Some(port)
        });
        of_offset.count()
    });
    loads.collect()
}

#[test]
fn the_lids_of_every_offset_are_spread_evenly() {
    for (spec, lmc, leaves) in [
        ("fat-tree:648", 2, 36),
        ("leaf-spine:leaves=6,hosts=8,spines=8", 7, 6),
        ("leaf-spine:leaves=6,hosts=8,spines=4,parallel=2", 3, 6),
        ("leaf-spine:leaves=5,hosts=6,spines=3", 1, 5),
    ] {
        let fabric = topologies::build(spec).unwrap();
        let lmc = Lmc::new(lmc).unwrap();
        let options = RouteOptions { lmc, ..RouteOptions::default() };
        for engine in ["min-hop", "fat-tree"] {
            let subnet = route(engine, &fabric, &options).unwrap();
            for (row, offset) in (0..leaves).flat_map(|row| (0..lmc.lids()).map(move |o| (row, o)))
            {
                let loads = uplink_loads(&fabric, &subnet, row, offset);
                let (least, most) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
                assert!(most - least <= 1, "{spec} {engine} leaf {row} offset {offset}: {loads:?}");
            }
        }
    }
}
