//! What lane policies promise: they change lanes and nothing else, on any tables that need no lanes
//! themselves, and what they decide reads back from the files that are written.

use clearlane_fabric::{Endpoint, Fabric, NodeKind, damage, topologies};
use clearlane_ib::{Lid, PortNumber, ServiceLevel};
use clearlane_subnet::check::{credit_loop, reachability};
use clearlane_subnet::engines::{RouteOptions, TableFile, route};
use clearlane_subnet::formats::{lfts, path_groups, path_sl, sl2vl};
use clearlane_subnet::lanes::{ALL, LaneError, LaneOptions, policy};
use clearlane_subnet::{PathSl, SlToVlTable, Subnet};
use proptest::prelude::*;

fn routed(fabric: &Fabric, engine: &str) -> Subnet {
    route(engine, fabric, &RouteOptions::default()).unwrap()
}

/// Host ports with their rows and LIDs, in rank order.
fn hosts(fabric: &Fabric, subnet: &Subnet) -> Vec<(Endpoint, usize, Lid)> {
    let ports = fabric.ids(NodeKind::ChannelAdapter).flat_map(|node| {
        fabric.neighbours(node).map(move |(port, _, peer)| (Endpoint { node, port }, peer.node))
    });
    let known = ports.filter_map(|(end, switch)| {
        Some((end, subnet.tables.row_of(switch)?, subnet.lids.base(end)?.0))
    });
    known.collect()
}

/// The SL from each host to each, in rank order.
fn levels(fabric: &Fabric, subnet: &Subnet) -> Vec<Vec<u8>> {
    let hosts = hosts(fabric, subnet);
    let end = |(_, row, lid): &(Endpoint, usize, Lid)| subnet.path_sl.end(*row, *lid);
    let level = |from, to| subnet.path_sl.level(end(from), end(to)).value();
    hosts.iter().map(|from| hosts.iter().map(|to| level(from, to)).collect()).collect()
}

fn options(entry_is_for_hot: bool, lanes: u8, hot: &[Endpoint]) -> LaneOptions {
    let hot = if entry_is_for_hot { hot.to_vec() } else { Vec::new() };
    LaneOptions { hot, ..LaneOptions::new(lanes) }
}

/// What holds for every policy on a fabric routed without lanes.
fn check_all(fabric: &Fabric, engine: &str, hot: usize) {
    let plain = routed(fabric, engine);
    let all = hosts(fabric, &plain);
    let hot: Vec<Endpoint> = all.iter().rev().take(hot).map(|(end, _, _)| *end).collect();
    for entry in ALL {
        for lanes in entry.lanes_min..=15 {
            let mut subnet = plain.clone();
            entry.assign(fabric, &mut subnet, &options(entry.hot, lanes, &hot)).unwrap();
            let name = entry.name;
            assert!(subnet.tables == plain.tables && subnet.lids == plain.lids, "{name}");
            assert!(credit_loop(fabric, &subnet).is_sane(), "{name} on {lanes}");
            assert_eq!(reachability(fabric, &subnet), reachability(fabric, &plain));
            let of = levels(fabric, &subnet);
            for (from, row) in of.iter().enumerate() {
                assert!(row.iter().all(|level| *level < lanes), "{name} on {lanes}");
                let is_same = |to: usize| row[to] == of[to][from];
                assert!(!entry.symmetric || (0..row.len()).all(is_same), "{name} on {lanes}");
            }
        }
    }
}

#[test]
fn policies_change_lanes_and_nothing_else() {
    for spec in
        ["leaf-spine:leaves=6,hosts=2,spines=2", "leaf-spine:leaves=3,hosts=2,spines=2", "star:5"]
    {
        check_all(&topologies::build(spec).unwrap(), "up-down", 2);
    }
    let mut damaged = topologies::build("leaf-spine:leaves=5,hosts=3,spines=3").unwrap();
    let choice = damage::Choice { links: 4, seed: 3, uplinks_min: 1 };
    let dead = damage::choose(&damaged, &choice).unwrap();
    damage::cut(&mut damaged, &dead);
    check_all(&damaged, "up-down", 1);
    // On a torus up and down paths leave all lanes free.
    check_all(&topologies::build("torus:3x3").unwrap(), "up-down", 1);
}

#[test]
fn three_leaves_on_three_lanes_share_none() {
    let fabric = topologies::build("leaf-spine:leaves=3,hosts=2,spines=2").unwrap();
    let mut subnet = routed(&fabric, "fat-tree");
    policy("vftree").unwrap().assign(&fabric, &mut subnet, &LaneOptions::new(3)).unwrap();
    let of = levels(&fabric, &subnet);
    // Hosts 0 to 5 on leaves 0, 0, 1, 1, 2, 2: lane (i + j) mod 3.
    assert_eq!([of[0][1], of[2][3], of[4][5]], [0, 2, 1]);
    assert_eq!([of[0][2], of[0][4], of[2][4]], [1, 2, 0]);
}

#[test]
fn hot_hosts_have_lanes_of_their_own_both_ways() {
    let fabric = topologies::build("leaf-spine:leaves=3,hosts=2,spines=2").unwrap();
    let plain = routed(&fabric, "fat-tree");
    let hot: Vec<Endpoint> = hosts(&fabric, &plain)[3..5].iter().map(|(end, _, _)| *end).collect();
    let of = |name: &str, lanes: u8| {
        let (mut subnet, entry) = (plain.clone(), policy(name).unwrap());
        entry.assign(&fabric, &mut subnet, &options(true, lanes, &hot)).unwrap();
        levels(&fabric, &subnet)
    };
    let three = of("by-class", 3);
    assert_eq!([three[0][3], three[3][0], three[0][4], three[4][0]], [1, 1, 2, 2]);
    assert_eq!([three[0][5], three[3][4], three[4][3]], [0, 1, 1]);
    let two = of("by-class", 2);
    assert_eq!([two[0][3], two[0][4], two[3][4], two[0][5]], [1, 1, 1, 0]);
    assert_eq!(of("dftree-static", 8), two);
}

#[test]
fn requests_that_cannot_be_met_say_why() {
    let torus = topologies::build("torus:4x4").unwrap();
    let mut subnet =
        route("dor", &torus, &RouteOptions { lanes: 2, ..Default::default() }).unwrap();
    let before = subnet.clone();
    let said = policy("vftree").unwrap().assign(&torus, &mut subnet, &LaneOptions::new(8));
    assert!(matches!(said, Err(LaneError::Taken { .. })), "{said:?}");
    assert_eq!(subnet, before);
    let star = topologies::build("star:4").unwrap();
    let mut subnet = routed(&star, "min-hop");
    let mut said = |name: &str, options: &LaneOptions| {
        let error = policy(name).unwrap().assign(&star, &mut subnet, options).unwrap_err();
        error.to_string()
    };
    assert!(said("by-class", &LaneOptions::new(1)).contains("takes 2 to 15 data VLs, and 1"));
    assert!(said("by-class", &LaneOptions::new(2)).contains("none is named"));
    assert!(said("vftree", &LaneOptions::new(16)).contains("1 to 15"));
    let unknown = policy("vf-tree").unwrap_err().to_string();
    assert!(unknown.contains("did you mean \"vftree\"?"), "{unknown}");
}

fn port(number: u8) -> PortNumber {
    PortNumber::new(number).unwrap()
}

#[test]
fn links_with_fewer_lanes_have_them_by_their_number() {
    let fabric = topologies::build("leaf-spine:leaves=3,hosts=2,spines=2").unwrap();
    let mut subnet = routed(&fabric, "fat-tree");
    let leaf = subnet.tables.switches()[0];
    let of_links = vec![(Endpoint { node: leaf, port: port(3) }, 2)];
    let options = LaneOptions { of_links, ..LaneOptions::new(3) };
    policy("vftree").unwrap().assign(&fabric, &mut subnet, &options).unwrap();
    let spine = fabric.peer(Endpoint { node: leaf, port: port(3) }).unwrap();
    let sl = ServiceLevel::new(2).unwrap();
    let lane = |node, output| subnet.sl_to_vl.table(node).lane(port(1), output, sl).value();
    assert_eq!([lane(leaf, port(3)), lane(leaf, port(4))], [0, 2]);
    assert_eq!(lane(spine.node, spine.port), 0);
    // Another spine has the same row everywhere.
    let other = subnet.tables.switches()[4];
    assert!(matches!(subnet.sl_to_vl.table(other), SlToVlTable::Uniform(_)));
    assert_eq!(subnet.sl_to_vl.adapter[2].value(), 2);
    // All adapters have the mapping of the one with the fewest lanes.
    let mut subnet = routed(&fabric, "fat-tree");
    let of_links = vec![(Endpoint { node: leaf, port: port(1) }, 1)];
    let options = LaneOptions { of_links, ..LaneOptions::new(3) };
    policy("vftree").unwrap().assign(&fabric, &mut subnet, &options).unwrap();
    assert!(subnet.sl_to_vl.adapter.iter().all(|lane| lane.value() == 0));
    assert!(credit_loop(&fabric, &subnet).is_sane());
}

type Write = fn(&Fabric, &Subnet, &mut dyn std::io::Write) -> std::io::Result<()>;

/// The files of a subnet, read by the engine `file`.
fn read_back(fabric: &Fabric, subnet: &Subnet, levels: Write) -> Subnet {
    let file = |name: &str, write: Write| {
        let mut bytes = Vec::new();
        write(fabric, subnet, &mut bytes).unwrap();
        TableFile { name: name.into(), text: String::from_utf8(bytes).unwrap() }
    };
    let files = vec![
        file("lfts.txt", lfts::write),
        file("sl2vl.dump", sl2vl::write),
        file("levels", levels),
    ];
    route("file", fabric, &RouteOptions { files, ..RouteOptions::default() }).unwrap()
}

#[test]
fn what_a_policy_decides_reads_back_from_files() {
    let fabric = topologies::build("leaf-spine:leaves=4,hosts=3,spines=2").unwrap();
    for lmc in [0, 1] {
        let lmc = clearlane_ib::Lmc::new(lmc).unwrap();
        let plain = route("up-down", &fabric, &RouteOptions { lmc, ..Default::default() }).unwrap();
        let hot: Vec<Endpoint> = hosts(&fabric, &plain)[4..6].iter().map(|host| host.0).collect();
        for entry in ALL {
            let mut subnet = plain.clone();
            entry.assign(&fabric, &mut subnet, &options(entry.hot, 3, &hot)).unwrap();
            let again = read_back(&fabric, &subnet, path_sl::write);
            assert_eq!(again.remarks, [] as [String; 0], "{}", entry.name);
            // Nobody sends to itself, so that is not said.
            let (mut ours, mut theirs) = (levels(&fabric, &subnet), levels(&fabric, &again));
            for host in 0..ours.len() {
                (ours[host][host], theirs[host][host]) = (0, 0);
            }
            assert_eq!(theirs, ours, "{}", entry.name);
            let by_groups = read_back(&fabric, &subnet, path_groups::write);
            assert_eq!(by_groups.path_sl, subnet.path_sl, "{}", entry.name);
            for switch in subnet.tables.switches() {
                assert_eq!(again.sl_to_vl.table(*switch), subnet.sl_to_vl.table(*switch));
            }
        }
    }
}

#[test]
fn a_path_with_two_service_levels_is_refused() {
    let fabric = topologies::build("star:3").unwrap();
    let subnet = routed(&fabric, "min-hop");
    let [a, b, c] = [0, 1, 2].map(|host| hosts(&fabric, &subnet)[host]);
    let guid = |host: (Endpoint, usize, Lid)| fabric.node(host.0.node).guid;
    let line = |from, to: (Endpoint, usize, Lid), sl| format!("{} {} {sl}\n", guid(from), to.2);
    let text = line(a, b, 0) + &line(a, c, 1) + &line(a, b, 2);
    let mut bytes = Vec::new();
    lfts::write(&fabric, &subnet, &mut bytes).unwrap();
    let tables = TableFile { name: "lfts".into(), text: String::from_utf8(bytes).unwrap() };
    let files = vec![tables, TableFile { name: "psl.txt".into(), text }];
    let error = route("file", &fabric, &RouteOptions { files, ..Default::default() });
    let error = error.unwrap_err().to_string();
    assert!(error.contains("psl.txt") && error.contains("SL 2 from"), "{error}");
}

/// Puts lines of `<host> <host> <SL>` onto a star, and reads what every pair has.
fn star_with(hosts_of_star: usize, lines: &[(usize, usize, u8)]) -> Vec<Vec<u8>> {
    let fabric = topologies::build(&format!("star:{hosts_of_star}")).unwrap();
    let subnet = routed(&fabric, "min-hop");
    let all = hosts(&fabric, &subnet);
    let line = |(from, to, sl): &(usize, usize, u8)| {
        format!("{} {} {sl}\n", fabric.node(all[*from].0.node).guid, all[*to].2)
    };
    let mut bytes = Vec::new();
    lfts::write(&fabric, &subnet, &mut bytes).unwrap();
    let tables = TableFile { name: "lfts".into(), text: String::from_utf8(bytes).unwrap() };
    let psl = TableFile { name: "psl".into(), text: lines.iter().map(line).collect() };
    let options = RouteOptions { files: vec![tables, psl], ..Default::default() };
    levels(&fabric, &route("file", &fabric, &options).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Every SL of a file is there, however few it names: all other pairs are on SL 0.
    #[test]
    fn a_file_of_some_pairs_says_nothing_of_others(
        drawn in proptest::collection::btree_map((0usize..6, 0usize..6), 0u8..4, 2..20)
    ) {
        let lines: Vec<(usize, usize, u8)> = drawn.into_iter()
            .filter(|((from, to), _)| from != to)
            .map(|((from, to), sl)| (from, to, sl))
            .collect();
        // Where all lines have one SL the switch has it, and it is everybody's.
        prop_assume!(lines.iter().any(|line| line.2 != lines[0].2));
        let of = star_with(6, &lines);
        for (from, to) in (0..6).flat_map(|from| (0..6).map(move |to| (from, to))) {
            let named = lines.iter().find(|line| (line.0, line.1) == (from, to));
            prop_assert!(from == to || of[from][to] == named.map_or(0, |line| line.2));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Any groups of hosts come back from a file as groups that say the same.
    #[test]
    fn groups_read_back(seed in any::<u64>(), leaves in 2usize..5, spines in 1usize..3) {
        let spec = format!("leaf-spine:leaves={leaves},hosts=3,spines={spines}");
        let fabric = topologies::build(&spec).unwrap();
        let mut subnet = routed(&fabric, "up-down");
        let options = LaneOptions { seed, ..LaneOptions::new(4) };
        policy("random").unwrap().assign(&fabric, &mut subnet, &options).unwrap();
        let again = read_back(&fabric, &subnet, path_sl::write);
        let (ours, theirs) = (levels(&fabric, &subnet), levels(&fabric, &again));
        prop_assert_eq!(ours, theirs);
        let groups = |of: &Subnet| match &of.path_sl {
            PathSl::ByGroup(groups) => groups.count(),
            _ => 0,
        };
        prop_assert!(groups(&again) <= groups(&subnet) && groups(&subnet) > 0);
    }
}

#[test]
fn service_levels_of_a_torus_read_back_from_groups() {
    for (spec, engine, lanes, lmc) in [("torus:3x4", "dor", 2, 0), ("torus:4x4", "multipath", 6, 2)]
    {
        let fabric = topologies::build(spec).unwrap();
        let lmc = clearlane_ib::Lmc::new(lmc).unwrap();
        let options = RouteOptions { lanes, lmc, ..Default::default() };
        let subnet = route(engine, &fabric, &options).unwrap();
        let again = read_back(&fabric, &subnet, path_groups::write);
        assert_eq!(again.remarks, [] as [String; 0]);
        let all = hosts(&fabric, &subnet);
        for (from, to) in all.iter().flat_map(|from| all.iter().map(move |to| (from, to))) {
            for offset in 0..lmc.lids() {
                let level = |of: &Subnet| {
                    let end = |host: &(Endpoint, usize, Lid)| of.path_sl.end(host.1, host.2);
                    of.path_sl.level_at(end(from), end(to), offset)
                };
                assert_eq!(level(&again), level(&subnet), "{spec}");
            }
        }
    }
}

#[test]
fn broken_groups_are_refused_in_one_line() {
    let read =
        |text: &str| clearlane_subnet::formats::read(text, "groups").unwrap_err().to_string();
    for (text, words) in [
        ("path-groups 1\ngroup 99999 0x1\n", "groups:2: \"99999\" is no group"),
        ("path-groups 1\ngroup 0 1\n", "\"1\" is no port GUID"),
        ("path-groups 1\ngroup 0 0x1\noffset 1\n", "where offset 0 comes"),
        ("path-groups 1\ngroup 0 0x1\nfrom 0 to 0\n", "SLs before the first offset"),
        ("path-groups 1\ngroup 1 0x1\noffset 0\nfrom 0 to 0 1\n", "not 2 by 2 SLs at offset 0"),
        ("path-groups 1\ngroup 0 0x1\noffset 0\nfrom 0 to 16\n", "\"16\" is no SL"),
        ("path-groups 1\ngroup 0 0x1\noffset 0\nfrom 1 to 0\n", "where those from 0 come"),
        ("path-groups 1\ngroup 0 0x1\n", "no SLs"),
        ("path-groups 1\nx\n", "\"x\""),
    ] {
        let error = read(text);
        assert!(error.contains(words) && !error.contains('\n'), "{error}");
    }
}
