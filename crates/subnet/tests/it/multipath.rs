//! What the engine `multipath` promises: a path per LID offset, as disjoint as the fabric allows,
//! all of them together free of deadlock in the lanes given.

use clearlane_fabric::structure::grid;
use clearlane_fabric::{Endpoint, Fabric, NodeKind, damage, topologies};
use clearlane_ib::{Lid, Lmc, PortNumber, ServiceLevel};
use clearlane_subnet::check::{Disjointness, credit_loop, disjointness, reachability, shifts};
use clearlane_subnet::engines::{RouteOptions, route};
use clearlane_subnet::{PathSl, Subnet};
use std::collections::BTreeSet;

fn options(lmc: u8, lanes: u8) -> RouteOptions {
    RouteOptions { lmc: Lmc::new(lmc).unwrap(), lanes, ..RouteOptions::default() }
}

fn routed(fabric: &Fabric, lmc: u8, lanes: u8) -> Subnet {
    route("multipath", fabric, &options(lmc, lanes)).unwrap()
}

/// All paths arrive, and none of all LID offsets together closes a loop.
fn sane(fabric: &Fabric, subnet: &Subnet, lanes: u8) {
    let reached = reachability(fabric, subnet);
    assert!(reached.is_sane() && reached.switches_unreached == 0, "{reached}");
    let report = credit_loop(fabric, subnet);
    assert!(report.is_sane() && report.lanes <= lanes, "{report}");
}

fn cut(fabric: &mut Fabric, links: usize, seed: u64) {
    let choice = damage::Choice { links, seed, uplinks_min: 0 };
    let dead = damage::choose(fabric, &choice).unwrap();
    damage::cut(fabric, &dead);
}

/// The n-th LID of a host.
fn lid(fabric: &Fabric, subnet: &Subnet, name: &str, offset: u16) -> Lid {
    let node = fabric.ids(NodeKind::ChannelAdapter).find(|id| fabric.node(*id).name == name);
    let end = Endpoint { node: node.unwrap(), port: PortNumber::new(1).unwrap() };
    let (base, _) = subnet.lids.base(end).unwrap();
    Lid::new(base.value() + offset).unwrap()
}

/// Where all switches send to a LID.
fn column(subnet: &Subnet, lid: Lid) -> Vec<Option<PortNumber>> {
    subnet.tables.switches().iter().map(|row| subnet.tables.port(*row, lid)).collect()
}

/// Where each switch of a two-dimensional grid sends to a LID: dimension 0 across, dimension 1
/// down, `o` the switch that has it.
fn arrows(fabric: &Fabric, subnet: &Subnet, lid: Lid) -> Vec<String> {
    let grid = grid(fabric).unwrap();
    let arrow = |x: u32, y: u32| {
        let port = subnet.tables.port(grid.node_at(&[x, y]).unwrap(), lid).unwrap();
        match port.value() {
            1 => '>',
            2 => '<',
            3 => 'v',
            4 => '^',
            _ => 'o',
        }
    };
    let line = |y: u32| (0..grid.dims[0]).map(|x| arrow(x, y)).collect();
    (0..grid.dims[1]).map(line).collect()
}

#[test]
fn a_torus_of_four_by_four_to_read() {
    let fabric = topologies::build("torus:4x4").unwrap();
    let subnet = routed(&fabric, 2, 6);
    sane(&fabric, &subnet, 6);
    let of = |offset| arrows(&fabric, &subnet, lid(&fabric, &subnet, "host0005", offset));
    // Across first; half way round is a tie, which both ends break alike.
    assert_eq!(of(0), [">v<<", ">o<>", ">^<<", ">v<>"]);
    // Down first.
    assert_eq!(of(1), ["vvvv", ">o<>", "^^^^", "^v^v"]);
    // Up towards sw-0-0 in the first corner, then down: (0, 1), (2, 1) and (3, 1) keep clear of
    // the cables along their own line, which both offsets before take.
    assert_eq!(of(2), [">v<>", "^o^^", "v^v>", "v<v>"]);
    // Up towards sw-2-2, then down: (1, 0) and (1, 2) keep clear of their column.
    assert_eq!(of(3), ["v>v^", "<o<<", "<>^<", "<>^<"]);
}

/// SLs of all pairs at one LID offset.
fn levels(subnet: &Subnet, offset: u16) -> BTreeSet<u8> {
    let rows = subnet.tables.switches().len();
    let pairs = (0..rows).flat_map(|a| (0..rows).map(move |b| (a, b)));
    let level = |(a, b)| {
        let [there, back] = [(a, b), (b, a)].map(|(a, b)| subnet.path_sl.level_at(a, b, offset));
        assert_eq!(there, back, "acknowledgements stay in the lanes of the request");
        there.value()
    };
    pairs.map(level).collect()
}

/// Mean and least link-disjoint paths of each class.
fn figures(found: &Disjointness) -> Vec<(f64, u32)> {
    found.classes.iter().map(|class| (class.disjoint, class.disjoint_least)).collect()
}

#[test]
fn four_paths_on_a_torus_take_six_lanes_and_ten_service_levels() {
    for spec in ["torus:4x4", "torus:8x8", "torus:5x6,hosts=2"] {
        let fabric = topologies::build(spec).unwrap();
        for lanes in [6, 7] {
            let subnet = routed(&fabric, 2, lanes);
            sane(&fabric, &subnet, 6);
            let of_offset: Vec<BTreeSet<u8>> = (0..4).map(|o| levels(&subnet, o)).collect();
            let expected: [&[u8]; 4] = [&[0, 1, 2, 3], &[4, 5, 6, 7], &[8], &[9]];
            for (found, expected) in of_offset.iter().zip(expected) {
                assert!(found.iter().eq(expected), "{spec}: {of_offset:?}");
            }
            let found = disjointness(&fabric, &subnet);
            let [along, across] = figures(&found)[..] else { panic!("two dimensions: {found}") };
            // Dimension order and its opposite meet nowhere unless the ends lie on one line.
            assert!(along.0 > 1.9 && along.1 >= 1, "{spec}: {found}");
            assert!(across.0 > 2.5 && across.1 >= 2, "{spec}: {found}");
            for class in &found.classes {
                assert_eq!(class.lengths[..2], [class.shortest; 2], "{spec}: {found}");
                assert!(class.lengths.iter().all(|l| *l < class.shortest + 1.5), "{found}");
            }
        }
    }
}

#[test]
fn eight_lanes_give_a_torus_four_shortest_paths_where_there_are_ties() {
    for spec in ["torus:4x4", "torus:8x8", "torus:8x5", "torus:8x2"] {
        let fabric = topologies::build(spec).unwrap();
        let subnet = routed(&fabric, 2, 8);
        sane(&fabric, &subnet, 8);
        for offset in 0..4u8 {
            let found = levels(&subnet, offset.into());
            let first = 4 * offset;
            assert!(found.iter().all(|level| (first..first + 4).contains(level)), "{found:?}");
        }
        // Every path is as short as can be, and no offset repeats another everywhere.
        let found = disjointness(&fabric, &subnet);
        for class in &found.classes {
            assert_eq!(class.lengths[..], [class.shortest; 4], "{spec}: {found}");
        }
        let of = |offset| column(&subnet, lid(&fabric, &subnet, "host0005", offset));
        for (one, other) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
            assert!(of(one) != of(other), "{spec}: {one} and {other}");
        }
    }
    // Without ties there is nothing to be gained, and three dimensions have too many datelines.
    for spec in ["torus:5x5", "torus:4x4x4", "mesh:8x4"] {
        let subnet = routed(&topologies::build(spec).unwrap(), 2, 8);
        assert!(subnet.notes.iter().any(|note| note.contains("up and down")), "{spec}");
    }
}

#[test]
fn it_is_the_service_levels_and_their_lanes_that_break_the_loops() {
    let fabric = topologies::build("torus:4x4").unwrap();
    let whole = routed(&fabric, 2, 8);
    let loops = |path_sl: PathSl| {
        let subnet = Subnet { path_sl, ..whole.clone() };
        !credit_loop(&fabric, &subnet).is_sane()
    };
    let PathSl::ByOffset(of) = &whole.path_sl else { panic!("{:?}", whole.path_sl) };
    assert!(!loops(whole.path_sl.clone()));
    // All offsets on the SLs of the base LID.
    assert!(loops(of[0].clone()));
    // Both trees on one SL, and so both orders in one lane.
    assert!(loops(PathSl::ByOffset(vec![
        of[0].clone(),
        of[1].clone(),
        of[2].clone(),
        of[2].clone()
    ])));
    // Acknowledgements that forget the datelines of requests over the second offset.
    let (stride, first) = (16, 4);
    let level = |at: usize| {
        let (a, b) = (at / stride, at % stride);
        if a < b { whole.path_sl.level_at(a, b, 1).value() } else { first }
    };
    let levels = (0..stride * stride).map(level).collect();
    let forgetful = PathSl::BySwitch { stride, levels };
    assert!(loops(PathSl::ByOffset(vec![of[0].clone(), forgetful, of[2].clone(), of[3].clone()])));
}

#[test]
fn fewer_lanes_give_fewer_paths_and_say_so() {
    let fabric = topologies::build("torus:8x8").unwrap();
    let mut before = 0.0;
    for (lanes, said) in [
        (1, "; 6 lanes, instead of 1, would give 4 offsets lanes of their own"),
        (3, "2 LID offsets share lanes with others; 6 lanes, instead of 3, would give 4"),
        (4, "1 LID offset shares lanes with others"),
        (6, ""),
    ] {
        let subnet = routed(&fabric, 2, lanes);
        sane(&fabric, &subnet, lanes);
        let found = disjointness(&fabric, &subnet);
        let [_, across] = figures(&found)[..] else { panic!("{found}") };
        assert!(across.0 > before, "{lanes} lanes: {found}");
        before = across.0;
        match (said, &subnet.remarks[..]) {
            ("", remarks) => assert_eq!(remarks, [] as [String; 0]),
            (said, [remark]) => assert!(remark.contains(said), "{remark}"),
            (_, remarks) => panic!("{remarks:?}"),
        }
    }
    // Two lanes are those of dimension order: every offset takes it.
    let subnet = routed(&fabric, 2, 2);
    sane(&fabric, &subnet, 2);
    let remark = &subnet.remarks[0];
    assert!(
        remark.starts_with("LID offsets 1 to 3 repeat the paths of those before; 6"),
        "{remark}"
    );
    assert!(disjointness(&fabric, &subnet).classes.iter().all(|class| class.distinct == 1.0));
}

#[test]
fn a_mesh_takes_both_orders_of_its_dimensions() {
    for (spec, lanes) in [("mesh:4x4", 4), ("mesh:8x4", 4), ("mesh:3x3x3", 4)] {
        let fabric = topologies::build(spec).unwrap();
        let subnet = routed(&fabric, 2, lanes);
        sane(&fabric, &subnet, lanes);
        let found = disjointness(&fabric, &subnet);
        let least: Vec<u32> = figures(&found).iter().map(|(_, least)| *least).collect();
        assert!(least[1..].iter().all(|least| *least >= 2), "{spec}: {found}");
        for class in &found.classes {
            assert_eq!(class.lengths[..2], [class.shortest; 2], "{spec}");
        }
    }
}

#[test]
fn a_torus_of_three_dimensions_keeps_to_sixteen_service_levels() {
    let fabric = topologies::build("torus:4x4x4").unwrap();
    // Two orders with eight SLs each, or one and three trees.
    for (lmc, lanes, most) in [(1, 4, [8, 16]), (2, 5, [8, 9])] {
        let subnet = routed(&fabric, lmc, 8);
        sane(&fabric, &subnet, lanes);
        for (offset, most) in most.into_iter().enumerate() {
            let levels = levels(&subnet, offset as u16);
            assert_eq!(levels.last().map(|level| level + 1), Some(most), "{lmc} {levels:?}");
        }
    }
    let found = disjointness(&fabric, &routed(&fabric, 2, 8));
    assert!(figures(&found).iter().all(|(mean, _)| *mean > 2.5), "{found}");
}

#[test]
fn a_whole_tree_has_as_many_disjoint_paths_as_lids() {
    for (spec, lmc) in [("fat-tree:648", 2), ("xgft:4,4,4;1,4,4", 2), ("fat-tree:648", 4)] {
        let fabric = topologies::build(spec).unwrap();
        let subnet = routed(&fabric, lmc, 1);
        sane(&fabric, &subnet, 1);
        let found = disjointness(&fabric, &subnet);
        for class in &found.classes {
            assert_eq!((class.disjoint_least, class.detour_most), (1 << lmc, 0), "{spec}: {found}");
        }
        for offset in 0..1 << lmc {
            let alone = shifts(&fabric, &subnet.at_offset(offset));
            assert_eq!(alone.contention_free, alone.of, "{spec} {offset}");
        }
    }
}

#[test]
fn a_damaged_tree_keeps_what_its_cables_allow() {
    for seed in 0..3 {
        let mut fabric = topologies::build("fat-tree:648").unwrap();
        cut(&mut fabric, 40, seed);
        let fewer = disjointness(&fabric, &route("fat-tree", &fabric, &options(2, 1)).unwrap());
        let subnet = routed(&fabric, 2, 1);
        sane(&fabric, &subnet, 1);
        let found = disjointness(&fabric, &subnet);
        // Every leaf has far more than four spines left in common with any other.
        assert_eq!(figures(&found), [(4.0, 4)], "{found}");
        assert!(fewer.classes[0].disjoint < 4.0, "{fewer}");
    }
}

#[test]
fn a_damaged_torus_goes_by_shortest_paths_and_trees() {
    let mut fabric = topologies::build("torus:8x8").unwrap();
    cut(&mut fabric, 6, 1);
    let subnet = routed(&fabric, 2, 8);
    sane(&fabric, &subnet, 8);
    assert!((0..4).all(|offset| !levels(&subnet, offset).is_empty()));
    let found = disjointness(&fabric, &subnet);
    for class in &found.classes {
        assert_eq!(class.lengths[0], class.shortest, "{found}");
        assert!(class.disjoint > 2.0, "{found}");
    }
    // In one lane all keep to one order.
    sane(&fabric, &routed(&fabric, 2, 1), 1);
}

#[test]
fn more_lids_than_paths_repeat_them() {
    let fabric = topologies::build("torus:4x4").unwrap();
    let subnet = routed(&fabric, 5, 8);
    sane(&fabric, &subnet, 8);
    for offset in 16..32 {
        for name in ["host0000", "host0009"] {
            let lids = [offset, offset - 16].map(|offset| lid(&fabric, &subnet, name, offset));
            let [later, earlier] = lids.map(|lid| column(&subnet, lid));
            assert_eq!(later, earlier);
        }
        assert_eq!(levels(&subnet, offset), levels(&subnet, offset - 16));
    }
    let told = |remark: &String| remark.starts_with("LID offsets 16 to 31 repeat the paths of");
    assert!(subnet.remarks.iter().any(told), "{:?}", subnet.remarks);
}

#[test]
fn one_offset_alone_is_a_subnet_of_its_own() {
    let fabric = topologies::build("torus:4x4").unwrap();
    let subnet = routed(&fabric, 2, 6);
    for offset in 0..4 {
        let alone = subnet.at_offset(offset);
        sane(&fabric, &alone, 6);
        assert_eq!((alone.lids.lmc_max(), alone.lids.iter().count()), (Lmc::default(), 32));
        for (lid, owner) in alone.lids.iter() {
            let of_switch = owner.end.port == PortNumber::MANAGEMENT;
            let expected = if of_switch { 0 } else { offset };
            assert_eq!(subnet.lids.owner(lid).unwrap().offset, expected);
            assert_eq!(column(&alone, lid), column(&subnet, lid));
        }
        // Nothing is left of the other offsets.
        let other = lid(&fabric, &subnet, "host0003", (offset + 1) % 4);
        assert!(column(&alone, other).iter().all(Option::is_none));
        assert_eq!(alone.path_sl.level(0, 1), subnet.path_sl.level_at(0, 1, offset));
    }
}

#[test]
fn one_lid_is_one_path() {
    let fabric = topologies::build("torus:4x4").unwrap();
    let subnet = routed(&fabric, 0, 8);
    sane(&fabric, &subnet, 2);
    assert!(subnet.notes.iter().any(|note| note.contains("set lmc to 1 to 7")));
    let dor = route("dor", &fabric, &options(0, 8)).unwrap();
    assert_eq!((&subnet.tables, &subnet.path_sl), (&dor.tables, &dor.path_sl));
}

#[test]
fn no_lane_and_too_many_are_refused() {
    let fabric = topologies::build("star:3").unwrap();
    for lanes in [0, 16] {
        let error = route("multipath", &fabric, &options(1, lanes)).unwrap_err().to_string();
        assert!(error.contains("multipath needs 1 to 15 data VLs here"), "{error}");
    }
    let unused = ServiceLevel::new(15).unwrap();
    assert_eq!(routed(&fabric, 1, 1).sl_to_vl.adapter[usize::from(unused.value())].value(), 0);
}
