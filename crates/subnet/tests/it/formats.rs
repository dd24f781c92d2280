//! What is written reads back, what does not fit is reported, and nothing that is read can panic.

use clearlane_fabric::{Endpoint, Fabric, Node, NodeId, NodeKind, topologies};
use clearlane_ib::{Guid, Lid, LinkSpeed, LinkWidth, Lmc, PortNumber, VirtualLane};
use clearlane_subnet::check::credit_loop;
use clearlane_subnet::engines::{RouteOptions, RoutingError, TableFile, route};
use clearlane_subnet::formats::{
    self, Content, Dump, fdbs, guid2lid, lfts, path_sl, sl2vl, subnet_lst,
};
use clearlane_subnet::{LidMap, Subnet};
use proptest::prelude::*;

fn routed(spec: &str, engine: &str, lanes: u8, lmc: u8) -> (Fabric, Subnet) {
    let fabric = topologies::build(spec).unwrap();
    let lmc = Lmc::new(lmc).unwrap();
    let options = RouteOptions { lanes, lmc, ..RouteOptions::default() };
    let subnet = route(engine, &fabric, &options).unwrap();
    (fabric, subnet)
}

fn text(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn dump_of(text: &str) -> Dump {
    match formats::read(text, "dump").unwrap() {
        Content::Tables(dump) => dump,
        other => panic!("{other:?}"),
    }
}

/// The same tables as ibroute prints them.
fn ibroute_text(fabric: &Fabric, subnet: &Subnet) -> String {
    let dump = text(|out| lfts::write(fabric, subnet, out));
    let line = |line: &str| match line.split_once(" # ") {
        Some((entry, comment)) => format!("{entry} : ({comment})\n"),
        None => format!("{}\n", line.replace("lids dumped", "valid lids dumped")),
    };
    dump.lines().map(line).collect()
}

#[test]
fn tables_read_back_in_every_format() {
    for (spec, engine, lanes, lmc) in [
        ("fat-tree:648", "fat-tree", 1, 0),
        ("torus:3x4,hosts=2", "dor", 2, 1),
        ("mesh:3x3", "min-hop", 1, 2),
    ] {
        let (fabric, subnet) = routed(spec, engine, lanes, lmc);
        let dumps = [
            text(|out| lfts::write(&fabric, &subnet, out)),
            text(|out| fdbs::write(&fabric, &subnet, out)),
            ibroute_text(&fabric, &subnet),
        ];
        for (dump, name) in dumps.iter().zip(["opensm-lfts", "opensm-fdbs", "ibroute"]) {
            let sniffed: Vec<&str> = formats::ALL
                .iter()
                .filter(|entry| (entry.sniff)(dump))
                .map(|entry| entry.name)
                .collect();
            assert_eq!(sniffed, [name]);
            let read = dump_of(dump);
            let (tables, oddities) = read.tables(&fabric, &subnet.lids, "dump").unwrap();
            assert!(tables == subnet.tables, "{spec} {name}");
            assert_eq!(oddities, []);
        }
    }
}

#[test]
fn the_engine_file_takes_what_was_written() {
    let (fabric, subnet) = routed("mesh:3x4,hosts=2", "dor", 1, 1);
    let files = |text: String| vec![TableFile { name: "our.lfts".into(), text }];
    let dump = text(|out| lfts::write(&fabric, &subnet, out));
    // The built fabric has no LIDs: they come from the port GUIDs of the dump.
    let options = RouteOptions { files: files(dump.clone()), ..RouteOptions::default() };
    let again = route("file", &fabric, &options).unwrap();
    assert_eq!((&again.lids, &again.tables), (&subnet.lids, &subnet.tables));
    assert_eq!(again.remarks, [] as [String; 0]);
    // Switch by switch in files of their own.
    let split: Vec<TableFile> = dump
        .split_inclusive("lids dumped\n")
        .map(|text| TableFile { name: "part".into(), text: text.into() })
        .collect();
    assert_eq!(split.len(), 12);
    let options = RouteOptions { files: split, ..RouteOptions::default() };
    let again = route("file", &fabric, &options).unwrap();
    assert_eq!((&again.tables, again.remarks.len()), (&subnet.tables, 0), "{:?}", again.remarks);
    // Without GUIDs nobody knows whose LIDs they are.
    let fdbs = text(|out| fdbs::write(&fabric, &subnet, out));
    let options = RouteOptions { files: files(fdbs), ..RouteOptions::default() };
    assert!(matches!(route("file", &fabric, &options), Err(RoutingError::NoLids { .. })));
    // SL2VL alone forwards nothing.
    let lanes = files(text(|out| sl2vl::write(&fabric, &subnet, out)));
    let options = RouteOptions { files: lanes, ..RouteOptions::default() };
    assert!(matches!(route("file", &fabric, &options), Err(RoutingError::NoFile { .. })));
    let none = route("file", &fabric, &RouteOptions::default()).unwrap_err().to_string();
    assert!(none.contains("known are opensm-lfts, ibroute, opensm-fdbs"), "{none}");
}

/// What `route` writes, as files for the engine `file`.
fn written(fabric: &Fabric, subnet: &Subnet) -> [TableFile; 3] {
    let file = |name: &str, text: String| TableFile { name: name.into(), text };
    [
        file("lfts.txt", text(|out| lfts::write(fabric, subnet, out))),
        file("sl2vl.dump", text(|out| sl2vl::write(fabric, subnet, out))),
        file("psl.txt", text(|out| path_sl::write(fabric, subnet, out))),
    ]
}

fn read_back(fabric: &Fabric, files: &[TableFile], lanes: u8) -> Result<Subnet, RoutingError> {
    let options = RouteOptions { files: files.to_vec(), lanes, ..RouteOptions::default() };
    route("file", fabric, &options)
}

#[test]
fn service_levels_and_lanes_read_back() {
    for (spec, engine, lanes, lmc) in [
        ("torus:4x4x4", "dor", 2, 0),
        ("torus:3x5,hosts=2", "dor", 2, 1),
        ("mesh:3x3", "dor", 4, 0),
        ("torus:3x4,hosts=2", "multipath", 6, 2),
        ("leaf-spine:leaves=3,hosts=2,spines=3", "multipath", 2, 1),
    ] {
        let (fabric, subnet) = routed(spec, engine, lanes, lmc);
        let files = written(&fabric, &subnet);
        let again = read_back(&fabric, &files, lanes).unwrap();
        assert_eq!(again.remarks, [] as [String; 0], "{spec}");
        assert!(again.tables == subnet.tables && again.lids == subnet.lids, "{spec}");
        assert!(again.sl_to_vl == subnet.sl_to_vl, "{spec}");
        assert_eq!(again.vl_arbitration, subnet.vl_arbitration);
        let rows = subnet.tables.switches().len();
        for (from, to) in (0..rows).flat_map(|from| (0..rows).map(move |to| (from, to))) {
            for offset in 0..1 << lmc {
                let level = |of: &Subnet| of.path_sl.level_at(from, to, offset);
                assert_eq!(level(&subnet), level(&again), "{spec} {from} {to} {offset}");
            }
        }
        assert_eq!(credit_loop(&fabric, &again), credit_loop(&fabric, &subnet));
        assert!(credit_loop(&fabric, &again).is_sane());
        // The lanes come from the file, whatever is given; adapters' own sections are heeded.
        let mut files = files;
        let vl_1 = ["1 "; 16].join(" ");
        files[1].text.push_str(&format!("Channel Adapter 0x77, base LID 1, \"x\"\n0 0 : {vl_1}\n"));
        let again = read_back(&fabric, &files, 1).unwrap();
        let switches = subnet.tables.switches();
        assert!(switches.iter().all(|id| again.sl_to_vl.table(*id) == subnet.sl_to_vl.table(*id)));
        assert_eq!(again.sl_to_vl.adapter, [VirtualLane::new(1).unwrap(); 16]);
    }
}

#[test]
fn unknown_service_levels_and_lanes_are_said() {
    let (fabric, subnet) = routed("torus:4x4", "dor", 2, 0);
    let [tables, lanes, levels] = written(&fabric, &subnet);
    let unknown = "service levels are unknown: every path is taken on SL 0, where these tables";
    let alone = read_back(&fabric, std::slice::from_ref(&tables), 2).unwrap();
    assert!(alone.remarks[0].starts_with(unknown), "{:?}", alone.remarks);
    let mapped = read_back(&fabric, &[tables.clone(), lanes.clone()], 2).unwrap();
    assert!(mapped.remarks[0].starts_with(unknown), "{:?}", mapped.remarks);
    let leveled = read_back(&fabric, &[tables.clone(), levels.clone()], 2).unwrap();
    assert!(leveled.remarks[0].starts_with("lanes are unknown"), "{:?}", leveled.remarks);
    // Nothing to say where SL 0 is enough.
    let (tree, of_tree) = routed("leaf-spine:leaves=3,hosts=2,spines=2", "fat-tree", 1, 0);
    assert!(read_back(&tree, &written(&tree, &of_tree)[..1], 1).unwrap().remarks.is_empty());
    // What is missing or strange in the two files.
    let cut = |file: &TableFile, from: &str, to: &str| TableFile {
        name: file.name.clone(),
        text: file.text.replacen(from, to, 1),
    };
    let host = format!("{} 2 ", fabric.node(NodeId(16)).guid);
    for (lanes, levels, words) in [
        (
            cut(&lanes, "\n1   2   :", "\n#"),
            levels.clone(),
            "sl2vl.dump: line 1: 1 pairs of cabled",
        ),
        (
            cut(&lanes, "Switch", "Router"),
            levels.clone(),
            "1 switches have no SL2VL, taken as SL s",
        ),
        (
            cut(&lanes, "1   : 0 ", "1   : 15"),
            levels.clone(),
            "1 SLs are on VL 15, which discards data",
        ),
        (
            cut(&lanes, "00000000, base", "0000ffff, base"),
            levels.clone(),
            "1 switches with SL2VL are",
        ),
        (
            lanes.clone(),
            cut(&levels, &host, "#"),
            "1 pairs of switches have no SL and are taken on",
        ),
        (lanes.clone(), cut(&levels, &host, "0x77 2 "), "1 lines are of GUIDs that are not in the"),
        (lanes.clone(), cut(&levels, &host, &host.replace(" 2 ", " 999 ")), "for LIDs that nobody"),
    ] {
        let read = read_back(&fabric, &[tables.clone(), lanes, levels], 2).unwrap();
        assert!(read.remarks.iter().any(|odd| odd.contains(words)), "{words}: {:?}", read.remarks);
    }
    // What cannot be taken.
    let stranger = TableFile { name: "levels".into(), text: format!("{host}0\n{host}1\n") };
    for (file, words) in [
        (stranger, "levels:2: SL 1 from host0000 to host0001, SL 0 above; a path has one SL"),
        (cut(&levels, &host, "0x1 99999999 "), "\"99999999\" is no unicast LID; a line is"),
        (cut(&lanes, "\n1   2   :", "\n1   77  :"), "port 77 on sw-0-0, which has ports 1 to 5"),
        (cut(&lanes, "1   : 0 ", "1   : x "), "sl2vl.dump:4: \"x\" is no virtual lane; a section"),
        (
            cut(&lanes, "Switch 0x", "Switch x"),
            "sl2vl.dump:1: \"Switch x0ac1ea5100000000, base LID 17, \\\"sw-0-0\\\"\" is no heading",
        ),
    ] {
        let error = read_back(&fabric, &[tables.clone(), file], 2).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let error = read_back(&fabric, &[tables, levels.clone(), levels], 2).unwrap_err().to_string();
    assert!(error.starts_with("psl.txt:1: a second file with SLs of paths"), "{error}");
}

#[test]
fn tables_of_another_fabric_are_refused_in_one_line() {
    let (fabric, subnet) = routed("torus:4x4", "dor", 2, 0);
    let mut files = written(&fabric, &subnet);
    files[0].text = files[0].text.replace(" guid 0x0ac1ea51", " guid 0x0ac1ea77");
    let error = read_back(&fabric, &files, 2).unwrap_err().to_string();
    let what = "of another fabric: none of its 16 switches is in this one; give";
    assert!(error.starts_with("lfts.txt: these tables") && error.contains(what), "{error}");
}

#[test]
fn entries_follow_their_port_to_its_new_lid() {
    let (fabric, subnet) = routed("leaf-spine:leaves=2,hosts=2,spines=2", "fat-tree", 1, 0);
    let dump = text(|out| lfts::write(&fabric, &subnet, out));
    let moved = subnet
        .lids
        .iter()
        .map(|(lid, owner)| (owner.end, Lid::new(lid.value() + 100).unwrap(), Lmc::default()));
    let lids = LidMap::from_list(&fabric, moved).unwrap();
    let read = dump_of(&dump);
    let (tables, oddities) = read.tables(&fabric, &lids, "dump").unwrap();
    for row in 0..4 {
        assert_eq!(tables.row(row)[101..], subnet.tables.row(row)[1..]);
    }
    assert_eq!(oddities.len(), 1);
    assert!(oddities[0].to_string().contains("follow their port GUID"), "{}", oddities[0]);
}

#[test]
fn what_does_not_fit_is_reported_with_its_line() {
    let (fabric, subnet) = routed("chain:2x1", "min-hop", 1, 0);
    let dump = text(|out| lfts::write(&fabric, &subnet, out));
    let oddities = |dump: &str| -> Vec<String> {
        let read = dump_of(dump);
        let (_, oddities) = read.tables(&fabric, &subnet.lids, "dump").unwrap();
        oddities.iter().map(ToString::to_string).collect()
    };
    assert_eq!(oddities(&dump), [] as [&str; 0]);
    let other_switch = dump.replace("guid 0x0ac1ea5100000100 (", "guid 0x0ac1ea5100000f00 (");
    let found = oddities(&other_switch);
    assert!(found[0].starts_with("line 7: switch 0x0ac1ea5100000f00 is not in the fabric"));
    assert_eq!(found[1], "1 of 2 switches have no section: sw-1");
    let cut = dump.replacen("0x0002 001 # Channel Adapter portguid", "# 0x0002", 1);
    let found = oddities(&cut);
    assert!(found[0].contains("4 LIDs are announced") && found[0].contains("and 3 given"));
    assert!(found[1].contains("1 entries are missing, first LID 2 (host0001[1]) on sw-0"));
    let found = oddities(&dump.replace("portguid 0x0ac1eaca00000101", "portguid 0x77"));
    assert!(found[0].contains("2 entries name port GUIDs that are not in the fabric, first 0x"));
    let found = oddities(&dump.replace("0x0002 001 # Channel Adapter portguid", "0x0009 001 # x"));
    assert!(found.iter().any(|odd| odd.contains("LIDs that nobody has, first 9")), "{found:?}");
}

#[test]
fn errors_name_file_line_and_remedy() {
    let head = "Unicast lids [0-1] of switch Lid 3 guid 0x0ac1ea5100000000 ('sw-0'):\n";
    for (text, words) in [
        (format!("{head}0x0001 1 #\n0xc001 1\n"), "f:3: \"0xc001\" is no unicast LID; an entry is"),
        (format!("{head}0x0001\n"), "f:2: \"\" is no port number"),
        (format!("{head}0x0001 +1\n"), "f:2: \"+1\" is no port number"),
        (format!("{head}0x0001 1 # x portguid zz:\n"), "f:2: \"zz\" is no port GUID"),
        (format!("0x0001 1\n{head}"), "f:1: an entry before the first heading"),
        ("Unicast lids of switch\n".into(), "f:1: a heading without"),
        ("hello\n".into(), "f:1: no forwarding tables are recognised; give an opensm-lfts.dump"),
        ("dump_ucast_routes: Switch 0xg\n".into(), "f:1: \"g\" is no node GUID"),
        ("dump_ucast_routes: Switch 0x1\n0x1 : x : 1\n".into(), "f:2: \"x\" is no port"),
    ] {
        let error = formats::read(&text, "f").unwrap_err().to_string();
        assert!(error.starts_with(words) || error.contains(words), "{error}");
        assert!(!error.contains('\n'));
    }
    let fabric = topologies::build("chain:2x1").unwrap();
    let lids = LidMap::assign(&fabric, Lmc::default()).unwrap();
    let read = dump_of(&format!("{head}0x0001 9 #\n"));
    let error = read.tables(&fabric, &lids, "f").unwrap_err().to_string();
    assert!(error.starts_with("f:2: port 9 on sw-0, which has ports 1 to 3; OpenSM"), "{error}");
}

#[test]
fn a_small_subnet_as_the_tools_read_it() {
    let (fabric, subnet) = routed("leaf-spine:leaves=1,hosts=2,spines=1", "fat-tree", 1, 1);
    assert_eq!(
        guid2lid::write(&fabric, &subnet.lids),
        "0x0ac1eaca00000001 0x0002 0x0003\n\n0x0ac1eaca00000101 0x0004 0x0005\n\n\
         0x0ac1ea5100000000 0x0006 0x0006\n\n0x0ac1ea5100000100 0x0007 0x0007\n\n"
    );
    assert_eq!(
        text(|out| path_sl::write(&fabric, &subnet, out)),
        "0x0ac1eaca00000000 4 0\n0x0ac1eaca00000000 5 0\n\
         0x0ac1eaca00000100 2 0\n0x0ac1eaca00000100 3 0\n"
    );
    let fdbs = text(|out| fdbs::write(&fabric, &subnet, out));
    assert!(fdbs.contains("0x0004 : 002  : 01   : yes\n0x0005 : 002  : 01   : yes\n"), "{fdbs}");
    assert!(fdbs.contains("0x0002 : 001  : 02   : yes\n"), "{fdbs}");
    let list = text(|out| subnet_lst::write(&fabric, &subnet.lids, out));
    assert_eq!(list.lines().count(), 6);
    assert!(list.contains(
        "{ CA-SM Ports:01 SystemGUID:0ac1eaca00000000 NodeGUID:0ac1eaca00000000 \
         PortGUID:0ac1eaca00000001 "
    ));
    let lanes = text(|out| sl2vl::write(&fabric, &subnet, out));
    assert!(lanes.starts_with("Switch 0x0ac1ea5100000000, base LID 6, \"leaf00\"\n#in out : 0  1"));
    assert_eq!(lanes.lines().filter(|line| line.starts_with("0   1   : 0 ")).count(), 2);
}

#[test]
fn lids_have_the_digits_that_each_tool_writes() {
    let (fabric, subnet) = routed("star:12", "min-hop", 1, 0);
    // Hosts 1 to 12, then the switch, which is no hop away from itself.
    let fdbs = text(|out| fdbs::write(&fabric, &subnet, out));
    assert!(fdbs.contains("0x000A : 010  : 01   : yes\n"), "{fdbs}");
    assert!(fdbs.ends_with("0x000D : 000  : 00   : yes\n"), "{fdbs}");
    let lfts = text(|out| lfts::write(&fabric, &subnet, out));
    let heading = "Unicast lids [0-13] of switch Lid 13 guid 0x0ac1ea5100000000 (";
    assert!(lfts.starts_with(heading), "{lfts}");
    assert!(lfts.contains("\n0x000a 010 # Channel Adapter portguid 0x"), "{lfts}");
    assert!(lfts.contains("\n0x000d 000 # Switch portguid 0x0ac1ea5100000000: "), "{lfts}");
    assert!(lfts.ends_with("\n13 lids dumped\n"), "{lfts}");
}

#[test]
fn both_ports_of_an_adapter_have_service_levels() {
    let mut fabric = Fabric::new();
    let nodes =
        [(NodeKind::Switch, 3), (NodeKind::ChannelAdapter, 2), (NodeKind::ChannelAdapter, 1)];
    for (at, (kind, ports)) in nodes.into_iter().enumerate() {
        let guid = Guid(0x10 * (at as u64 + 1));
        fabric.add_node(Node::new(kind, guid, format!("n{at}"), ports)).unwrap();
    }
    let end = |node, port| Endpoint { node: NodeId(node), port: PortNumber::new(port).unwrap() };
    for (port, adapter) in [(1, end(1, 1)), (2, end(1, 2)), (3, end(2, 1))] {
        fabric.join(end(0, port), adapter, LinkWidth::X4, LinkSpeed::Qdr).unwrap();
    }
    let subnet = route("min-hop", &fabric, &RouteOptions::default()).unwrap();
    // The ports of the first adapter have LIDs 1 and 2 and send to each other.
    let lines = text(|out| path_sl::write(&fabric, &subnet, out));
    let lines: Vec<&str> = lines.lines().map(|line| line.trim_start_matches("0x")).collect();
    let expected = [(0x20, 1), (0x20, 2), (0x20, 3), (0x30, 1), (0x30, 2)];
    let expected: Vec<String> =
        expected.iter().map(|(guid, lid)| format!("{guid:016x} {lid} 0")).collect();
    assert_eq!(lines, expected);
}

#[test]
fn a_detour_is_marked_as_not_optimal() {
    let (fabric, mut subnet) = routed("torus:4,hosts=1", "min-hop", 1, 0);
    let lid = Lid::new(2).unwrap();
    let port = |number| PortNumber::new(number);
    // From switch 0 to the host of switch 1 the long way round.
    for switch in [0, 3, 2] {
        subnet.tables.set(NodeId(switch), lid, port(2));
    }
    let fdbs = text(|out| fdbs::write(&fabric, &subnet, out));
    assert!(fdbs.contains("0x0002 : 002  : 04   : No 2 hop path possible via port 1!"), "{fdbs}");
}

fn dump_texts() -> Vec<String> {
    let (fabric, subnet) = routed("leaf-spine:leaves=2,hosts=2,spines=2", "fat-tree", 1, 0);
    vec![
        text(|out| lfts::write(&fabric, &subnet, out)),
        text(|out| fdbs::write(&fabric, &subnet, out)),
        ibroute_text(&fabric, &subnet),
        text(|out| sl2vl::write(&fabric, &subnet, out)),
        text(|out| path_sl::write(&fabric, &subnet, out)),
    ]
}

/// Reads by every reader and through the engine; errors must be one line.
fn read_all(text: &str) {
    let fabric = topologies::build("leaf-spine:leaves=2,hosts=2,spines=2").unwrap();
    for entry in formats::ALL {
        if let Err(error) = (entry.read)(text, "file\nname") {
            assert!(!error.to_string().contains('\n'), "{error}");
        }
    }
    // Lanes and levels are placed beside tables that are whole.
    let mut files = vec![TableFile { name: "file".into(), text: text.into() }];
    if matches!(formats::read(text, "file"), Ok(Content::Lanes(_) | Content::Levels(_))) {
        files.push(TableFile { name: "tables".into(), text: dump_texts()[0].clone() });
    }
    let lids = LidMap::assign(&fabric, Lmc::default()).unwrap();
    for lids in [None, Some(lids)] {
        let options = RouteOptions { files: files.clone(), lids, ..RouteOptions::default() };
        match route("file", &fabric, &options) {
            Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
            Ok(subnet) => {
                assert!(subnet.remarks.iter().all(|remark| !remark.contains('\n')));
                // Whatever was read, the checkers can judge it.
                let reached = clearlane_subnet::check::reachability(&fabric, &subnet);
                assert!(reached.reached <= reached.pairs);
                clearlane_subnet::check::credit_loop(&fabric, &subnet);
                let options = clearlane_subnet::check::BalanceOptions::default();
                clearlane_subnet::check::balance(&fabric, &subnet, &options);
                text_of_all(&fabric, &subnet);
            }
        }
    }
}

fn text_of_all(fabric: &Fabric, subnet: &Subnet) {
    text(|out| lfts::write(fabric, subnet, out));
    text(|out| fdbs::write(fabric, subnet, out));
    text(|out| subnet_lst::write(fabric, &subnet.lids, out));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn truncated_and_garbled_dumps_never_panic(
        which in 0usize..5,
        cut in 0.0f64..1.0,
        edits in prop::collection::vec((0.0f64..1.0, any::<u8>()), 0..6),
    ) {
        let mut bytes = dump_texts()[which].clone().into_bytes();
        let length = bytes.len();
        for (at, byte) in edits {
            bytes[(at * length as f64) as usize] = byte;
        }
        bytes.truncate((cut * length as f64) as usize);
        read_all(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn lines_in_any_order_never_panic(which in 0usize..5, order in any::<u64>()) {
        let text = dump_texts()[which].clone();
        let mut lines: Vec<&str> = text.lines().collect();
        let mut stream = clearlane_ib::random::Stream::new(order, "lines", 0);
        for at in 0..lines.len() {
            let other = stream.below(lines.len() as u64) as usize;
            lines.swap(at, other);
        }
        lines.extend_from_within(0..3);
        read_all(&lines.join("\n"));
    }

    #[test]
    fn words_of_the_formats_in_any_mixture_never_panic(
        words in prop::collection::vec(prop::sample::select(vec![
            "Unicast lids", " guid 0x", "0ac1ea5100000000", "\n", " ", "0x0001", "0xffff", "255",
            "001", "254", " portguid ", ":", "#", "dump_ucast_routes: Switch 0x", "UNREACHABLE",
            "lids dumped", "99999999999999999999", "Multicast", "(", "é", "\u{0}",
            "Switch 0x", ", base LID 1", "#in out :", "\n1 2 : ", " 0 1 2 3",
            "\n0x0ac1eaca00000000 2 3",
        ]), 0..60),
    ) {
        read_all(&words.concat());
    }
}
