//! Whatever a file holds, readers neither panic nor answer with more than one line; and what is
//! written is read back the same.

use clearlane_fabric::formats::{self, read, write};
use clearlane_fabric::{Fabric, topologies};
use proptest::prelude::*;

/// Small texts of every format, with an oddity or two each.
fn samples() -> Vec<String> {
    let netlist = write(&topologies::build("leaf-spine:leaves=2,hosts=2,spines=2").unwrap());
    let noisy = format!("src/query_smp.c:195; umad bad status 110\n{netlist}");
    let ports = "\
DR path slid 0; dlid 0; 0 -> new Channel Adapter {02c9000000000001} portnum 1 lid 0-0 \"\"
CA     2  1 0x02c9000000000011 4x QDR - SW     1  1 0x02c9000000000001 ( 'a HCA-1' - 'top' )
SW     1  1 0x02c9000000000001 4x QDR - CA     2  1 0x02c9000000000011 ( 'top' - 'a HCA-1' )
SW     1  2 0x02c9000000000001 4x ???                                    'top'
SW     1  3 0x02c9000000000001 4x EDR - SW     7  3 0x02c9000000000002 ( 'top' - 'low' )
";
    let list = "\
{ SW Ports:04 SystemGUID:02c9000000000001 NodeGUID:02c9000000000001 \
PortGUID:02c9000000000001 VenID:0002C9 DevID:BD36 Rev:000000A1 {top} LID:0002 PN:01 } \
{ CA-SM Ports:01 SystemGUID:02c9000000000010 NodeGUID:02c9000000000010 \
PortGUID:02c9000000000011 VenID:000002C9 DevID:673C0000 Rev:000000A1 {a HCA-1} \
LID:0001 PN:01 } PHY=4x LOG=ACT SPD=10
";
    let reversed = "\
{ CA-SM Ports:01 SystemGUID:02c9000000000010 NodeGUID:02c9000000000010 \
PortGUID:02c9000000000011 VenID:0002C9 DevID:673C Rev:000000A1 {a HCA-1} LID:0001 PN:01 } \
{ SW Ports:04 SystemGUID:02c9000000000001 NodeGUID:02c9000000000001 \
PortGUID:02c9000000000001 VenID:000002C9 DevID:BD360000 Rev:000000A1 {top} LID:0002 PN:01 } \
PHY=4x LOG=ACT SPD=10
";
    let links = include_str!("../../../../fuzz/corpus/links/info");
    let lines = include_str!("../../../../fuzz/corpus/links/line");
    let list = format!("{list}{reversed}");
    vec![netlist, noisy, ports.into(), list, links.into(), lines.into()]
}

/// Reads with the sniffed reader and with every other; checks that errors are one line.
fn read_all(text: &str) {
    let answers = formats::readers().map(|(_, reader)| (reader.read)(text, "fabric.net"));
    for answer in answers.chain([read(text, "fabric.net")]) {
        match answer {
            Err(error) => {
                let error = error.to_string();
                assert!(error.starts_with("fabric.net:"), "{error}");
                assert!(!error.contains(['\n', '\r']), "{error:?}");
            }
            Ok(reading) => {
                let lines = text.lines().count();
                for odd in &reading.oddities {
                    assert!(!odd.to_string().contains(['\n', '\r']), "{odd:?}");
                    assert!(odd.line >= 1 && odd.last_line <= lines.max(1), "{odd:?}");
                }
                settles(&reading.fabric);
            }
        }
    }
}

/// What was read can be written and read, and then stays as it is.
fn settles(fabric: &Fabric) {
    if fabric.nodes().is_empty() {
        return;
    }
    let once = read(&write(fabric), "again").unwrap().fabric;
    assert_eq!(once.summary(), fabric.summary());
    assert_eq!(read(&write(&once), "again").unwrap().fabric, once);
}

#[test]
fn the_samples_themselves_are_read() {
    let sizes: Vec<String> = samples()
        .iter()
        .map(|text| read(text, "x").unwrap().fabric.summary().to_string())
        .collect();
    assert_eq!(
        sizes,
        [
            "4 hosts, 4 switches, 8 cables: 8 × 4x QDR",
            "4 hosts, 4 switches, 8 cables: 8 × 4x QDR",
            "1 hosts, 2 switches, 2 cables: 1 × 4x QDR, 1 × 4x EDR",
            "1 hosts, 1 switches, 1 cables: 1 × 4x QDR",
            "6 hosts, 5 switches, 12 cables: 12 × 4x QDR",
            "6 hosts, 5 switches, 12 cables: 12 × 4x QDR",
        ]
    );
}

#[test]
fn every_builder_is_read_back_as_built() {
    let specs = ["torus:3x3,hosts=2,speed=12xHDR", "fat-tree:3456,taper=3", "xgft:2,3;2,2;2,1"];
    for spec in topologies::ALL.iter().map(|entry| entry.example).chain(specs) {
        let fabric = topologies::build(spec).unwrap();
        let reading = read(&write(&fabric), spec).unwrap();
        assert!(reading.fabric == fabric, "{spec}");
        assert_eq!(reading.oddities.len(), 1, "{spec}: only the missing LIDs are odd");
    }
}

#[test]
fn every_cut_of_a_file_is_read_or_refused() {
    for text in samples() {
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            read_all(&text[..at]);
        }
    }
}

#[test]
fn a_header_cannot_claim_more_memory_than_the_bound() {
    let claims: String = (0..40_000).map(|n| format!("Switch 254 \"x{n}\"\n")).collect();
    let error = read(&claims, "big.net").unwrap_err().to_string();
    assert!(error.contains("big.net:16449: more than 4194304 ports"), "{error}");
    for ports in ["2147483648", "255", "0", "-1", ""] {
        let text = format!(
            "Switch 4 \"y\"
Switch {ports} \"x\"
"
        );
        let error = read(&text, "x").unwrap_err().to_string();
        assert!(error.starts_with("x:2: expected"), "{error}");
    }
}

#[test]
fn a_file_cut_off_is_never_taken_for_a_whole_one() {
    let text = samples().remove(0);
    let whole = read(&text, "x").unwrap();
    let last = text.trim_end().len();
    for at in 0..last {
        if let Ok(part) = read(&text[..at], "x") {
            assert!(part.oddities.len() > whole.oddities.len(), "{:?}", &text[..at]);
        }
    }
}

#[test]
fn a_cable_list_cut_off_is_refused_wherever_it_is_cut() {
    let list = samples().remove(3);
    let (first, second) = list.trim_end().split_once('\n').unwrap();
    // A second cable, from port 2 of the switch to an adapter of its own.
    let more = |line: &str| {
        line.replace("PN:01 } { CA", "PN:02 } { CA").replace("PN:01 } PHY", "PN:02 } PHY")
    };
    let other = format!("{}\n{}", more(first), more(second).replace("CA-SM", "CA"));
    let other = other.replace("02c900000000001", "02c900000000002").replace("a HCA-1", "b HCA-1");
    let other = other.replace("CA-SM", "CA").replace("LID:0001 PN:02", "LID:0003 PN:01");
    let text = format!("{}\n", format!("{first}\n{second}\n{other}").trim_end());
    assert_eq!(read(&text, "x").unwrap().fabric.summary().links, 2, "{text}");
    let last = text.trim_end().len();
    assert!(read(&text[..last], "x").is_ok(), "a line feed less is no fault");
    for at in 1..last {
        let whole_cable = text[..at].trim_end().len() == first.len() + 1 + second.len();
        let part = read(&text[..at], "x");
        assert!(part.is_err() || whole_cable, "{:?}", &text[..at]);
    }
    let third = text.match_indices('\n').nth(2).unwrap().0;
    assert_eq!(
        read(&text[..=third], "x").unwrap_err().to_string(),
        "x:3: 1 of 2 cables are listed from one end only, the first of them \"top\"[2]-\"b \
         HCA-1\"[1] in line 3, and OpenSM lists both; the file is cut off, save it again"
    );
}

/// Line and text of the oddities, one a line.
fn oddities(text: &str) -> String {
    let reading = read(text, "x").unwrap();
    let lines: Vec<String> = reading.oddities.iter().map(|odd| odd.to_string()).collect();
    lines.join("\n")
}

#[test]
fn what_contradicts_itself_is_refused_with_place_and_remedy() {
    let switches = "Switch 4 \"A\"\n[1] \"B\"[2]\n\nSwitch 4 \"B\"\n";
    for (text, error) in [
        (
            format!("{switches}[2] \"C\"[1]\n\nSwitch 4 \"C\"\n"),
            "net:5: port \"B\"[2] leads to \"C\"[1] here, but line 2 says that \"A\"[1] leads to \
             \"B\"[2]; correct one of the lines, or save the file while no cable is moved",
        ),
        (
            format!("{switches}[3] \"A\"[1]\n"),
            "net:5: port \"B\"[3] leads to \"A\"[1] here, but line 2 says that \"A\"[1] leads to \
             \"B\"[2]; correct one of the lines, or save the file while no cable is moved",
        ),
        (
            format!("{switches}[2] \"Q\"[1]\n"),
            "net:5: port \"B\"[2] leads to node \"Q\", which the file does not list; the file may \
             be cut off, save it again",
        ),
        (
            format!("{switches}[5] \"A\"[2]\n"),
            "net:5: port 5 of \"B\" is listed, but it has ports 1 to 4; correct one of them",
        ),
        (
            format!("{switches}\nSwitch 4 \"A\"\n"),
            "net:6: node \"A\" is listed again, first in line 1; delete one of them",
        ),
        (
            "switchguid=0x7\nSwitch 4 \"A\"\n\ncaguid=0x7\nCa 1 \"B\"\n".into(),
            "net:5: node GUID 0x0000000000000007 belongs to both A and B; GUIDs are unique in a \
             subnet",
        ),
        (
            "Switch 4 \"A\"\n[1] \"B\"[".into(),
            "net:2: expected a port line such as [1] \"S-0002c9…\"[2], found \"[1] \\\"B\\\"[\"; \
             the file may be cut off here, save it again",
        ),
        (
            "include \"other.net\"\nSwitch 4 \"A\"\n".into(),
            "net:1: \"include \\\"other.net\\\"\" asks for another file, which is not read; \
             put its lines here instead",
        ),
        ("\n".into(), "net:1: the file lists no node; it may be cut off, save it again"),
        (
            "hello\n".into(),
            "net:1: no line is of a known fabric format; give one of: ibnetdiscover, \
             ibnetdiscover -p, iblinkinfo, opensm-subnet.lst",
        ),
    ] {
        assert_eq!(read(&text, "net").unwrap_err().to_string(), error);
    }
}

#[test]
fn what_is_odd_is_told_with_its_line_and_how_it_was_taken() {
    let text = "\
switchguid=0x10(10)
Switch 4 \"S-10\" # \"top\" base port 0 lid 1 lmc 0
[1] \"H-20\"[1](21) # \"a\" lid 2 4xQDR
[1] \"H-20\"[1](21) # \"a\" lid 2 4xQDR
[2] \"R-30\"[1](31) # \"r\" lid 1 4xQDR
[3] \"S-10\"[3] # \"top\" lid 1 4xQDR

caguid=0x20
Ca 1 \"H-20\" # \"a\"
[1](21) \"S-10\"[1] # lid 9 lmc 0 \"top\" lid 1 4xSDR
[1](21) \"S-10\"[1] # lid 9 lmc 0 \"top\" lid 1 4xSDR

rtguid=0x30
Rt 1 \"R-30\" # \"a\"
[1](31) \"S-10\"[2] # lid 1 lmc 0 \"top\" lid 1
timed out
";
    assert_eq!(
        oddities(text),
        "\
line 3: \"a\" has LID 2 here, 9 elsewhere; 9 is taken
line 4: \"a\" has LID 2 here, 9 elsewhere; 9 is taken
line 4: \"top\"[1] is listed again; skipped
line 6: \"top\"[3] is plugged into itself; left out
line 9: 2 nodes are named \"a\"; GUIDs tell them apart
line 10: \"a\"[1] says 4x SDR, but line 3 says 4x QDR; the slower is taken
line 11: \"a\"[1] is listed again; skipped
line 14: \"top\"[0] and \"a\"[1] both have LID 1; both kept
line 14: router \"R-30\" is carried as a channel adapter
line 15: \"a\"[1] has no known speed; line 5 says it
line 16: 1 line(s) of another kind skipped: \"timed out\""
    );
}

#[test]
fn ports_of_one_adapter_come_together_by_name_and_guid_distance() {
    let row = |lid, port, guid, to| {
        format!(
            "CA {lid} {port} 0x{guid:016x} 4x QDR - SW 1 {to} 0x00000000000000a0 ( 'h' - 's' )\n"
        )
    };
    let text = row(2, 1, 0x21, 1) + &row(3, 2, 0x22, 2) + &row(4, 2, 0x32, 3);
    let fabric = read(&text, "x").unwrap().fabric;
    assert_eq!(fabric.summary().to_string(), "2 hosts, 1 switches, 3 cables: 3 × 4x QDR");
    let adapter = fabric.node(fabric.by_guid(clearlane_ib::Guid(0x20)).unwrap());
    assert_eq!(adapter.ports[2].guid, clearlane_ib::Guid(0x22));
    assert_eq!(adapter.ports[2].lid, clearlane_ib::Lid::new(3));
    assert!(
        oddities(&text)
            .contains("line 2: port 0x0000000000000022 is taken as another port of \"h\"\n")
    );
}

#[test]
fn what_ibsim_cannot_run_is_said() {
    let limits = |speed| {
        let spec = format!("star:3,speed=4x{speed}");
        formats::ibnetdiscover::ibsim_limits(&topologies::build(&spec).unwrap())
    };
    assert_eq!(limits("HDR"), Vec::<String>::new());
    assert_eq!(limits("NDR"), ["3 cables faster than HDR, which ibsim 0.10 runs at SDR"]);
    let mut fabric = topologies::build("star:3").unwrap();
    fabric.node_mut(clearlane_fabric::NodeId(1)).ports[1].guid = clearlane_ib::Guid(0x99);
    let said = formats::ibnetdiscover::ibsim_limits(&fabric);
    assert!(said.len() == 1 && said[0].starts_with("1 adapters with other port GUIDs"), "{said:?}");
}

proptest! {
    #[test]
    fn random_fabrics_come_back(
        sizes in prop::collection::vec(2u32..5, 1..4),
        hosts in 1u32..4,
        wrapped: bool,
        lids: bool,
    ) {
        let name = if wrapped { "torus" } else { "mesh" };
        let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
        let mut fabric =
            topologies::build(&format!("{name}:{},hosts={hosts}", sizes.join("x"))).unwrap();
        for index in 0..fabric.nodes().len() as u32 * u32::from(lids) {
            let node = fabric.node_mut(clearlane_fabric::NodeId(index));
            let port = usize::from(!node.is_switch());
            node.ports[port].lid = clearlane_ib::Lid::new(index as u16 * 4 + 4);
            node.ports[port].lmc = clearlane_ib::Lmc::new(2).unwrap();
        }
        let reading = read(&write(&fabric), "x").unwrap();
        prop_assert!(reading.fabric == fabric);
        prop_assert_eq!(reading.oddities.len(), usize::from(!lids));
    }

    #[test]
    fn random_bytes_are_read_or_refused(bytes: Vec<u8>) {
        read_all(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn changed_bytes_are_read_or_refused(
        which in 0usize..6,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = samples()[which].clone().into_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        read_all(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn shuffled_and_doubled_lines_are_read_or_refused(
        (which, order) in (0usize..6).prop_flat_map(|which| {
            let lines = samples()[which].lines().count();
            (Just(which), prop::collection::vec(0..lines, 0..2 * lines))
        }),
    ) {
        let text = samples()[which].clone();
        let lines: Vec<&str> = text.lines().collect();
        let mixed: Vec<&str> = order.iter().map(|at| lines[*at]).collect();
        read_all(&mixed.join("\n"));
        let doubled: Vec<&str> = lines.iter().flat_map(|line| [*line, *line]).collect();
        read_all(&doubled.join("\n"));
    }

    #[test]
    fn any_specification_builds_or_is_refused_in_one_line(
        entry in prop::sample::select(topologies::ALL),
        text in "[0-9x,;= a-z\n-]{0,24}",
    ) {
        if let Err(error) = topologies::build(&format!("{}:{text}", entry.name)) {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }
}
