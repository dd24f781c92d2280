//! Files of real fabrics and real tools, which are not ours to ship. Expected numbers were counted
//! with grep and awk, not with the readers.

use clearlane_fabric::anonymize::{Naming, anonymize};
use clearlane_fabric::formats::{OddityKind, Reading, read};
use clearlane_fabric::{NodeId, NodeKind, structure};
use clearlane_ib::Lid;
use std::path::PathBuf;

/// A shared file, or nothing where the folder is absent.
#[allow(clippy::print_stdout)] // The person running the tests must see what was not tested.
fn shared(test: &str, file: &str) -> Option<String> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    if !folder.exists() {
        println!("skipped {test}: {} is not here", folder.display());
        return None;
    }
    let path = folder.join("data/fabrics").join(file);
    Some(std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
}

/// The lines of the oddities of a kind.
fn lines(reading: &Reading, kind: OddityKind) -> Vec<usize> {
    let of_kind = reading.oddities.iter().filter(|odd| odd.kind == kind);
    of_kind.map(|odd| odd.line).collect()
}

fn summary(reading: &Reading) -> String {
    reading.fabric.summary().to_string()
}

#[test]
fn needs_shared_ibsim_example() {
    let name = "needs_shared_ibsim_example";
    let Some(text) = shared(name, "ibsim_net.2sw2path4hca") else { return };
    let reading = read(&text, "net").unwrap();
    assert_eq!(summary(&reading), "4 hosts, 2 switches, 6 cables: 6 × 4x SDR");
    assert_eq!(lines(&reading, OddityKind::NoGuid), [21, 27, 33, 36, 39, 42]);
    assert_eq!(lines(&reading, OddityKind::UnknownRate), [22]);
    assert_eq!(lines(&reading, OddityKind::NoLid), [21]);
    assert_eq!(reading.oddities.len(), 8);
    let names: Vec<_> = reading.fabric.nodes().iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["Switch1", "Switch2", "Hca1", "Hca2", "Hca3", "Hca4"]);
    let peers = reading
        .fabric
        .neighbours(NodeId(0))
        .map(|(port, _, peer)| format!("{port} {}", reading.fabric.describe(peer)));
    let peers: Vec<String> = peers.collect();
    assert_eq!(peers, ["1 Hca1[1]", "2 Hca3[1]", "3 Switch2[3]", "5 Switch2[5]"]);
}

#[test]
fn needs_shared_lab_with_self_loops() {
    let name = "needs_shared_lab_with_self_loops";
    let Some(text) = shared(name, "jabl_lab_mixed_edr_fdr_loopback.ibnetdiscover") else { return };
    let reading = read(&text, "lab").unwrap();
    assert_eq!(
        summary(&reading),
        "6 hosts, 2 switches, 10 cables: 1 × 4x SDR, 2 × 4x QDR, 3 × 4x FDR, 4 × 4x EDR"
    );
    assert_eq!(lines(&reading, OddityKind::Noise), [1]);
    assert_eq!(lines(&reading, OddityKind::SelfLoop), [12, 15, 17]);
    assert_eq!(lines(&reading, OddityKind::Slow), [31]);
    assert_eq!(reading.oddities.len(), 5);
    let slow = reading.oddities.iter().find(|odd| odd.kind == OddityKind::Slow).unwrap();
    assert!(slow.text.ends_with("runs at 4x SDR, its neighbours at 4x QDR"), "{slow}");
    let [first, second] = [0, 1].map(|id| reading.fabric.node(NodeId(id)));
    assert_eq!((first.enhanced_port0, second.enhanced_port0), (false, true));
    assert_eq!((first.ports[0].lid, second.ports[0].lid), (Lid::new(268), Lid::new(174)));
    assert_eq!((first.port_count(), second.port_count()), (36, 12));
    // The adapter in line 37 is cabled with its port 2.
    let adapter = reading.fabric.node(NodeId(2));
    assert_eq!(adapter.ports[2].lid, Lid::new(3));
    assert_eq!(adapter.ports[2].guid.0, adapter.guid.0 + 2);
    assert_eq!((adapter.ports[1].lid, adapter.ports[1].link), (None, None));
}

#[test]
fn needs_shared_irregular_site() {
    let name = "needs_shared_irregular_site";
    let Some(text) = shared(name, "loginoff_qdr_fdr10.ibnetdiscover") else { return };
    let reading = read(&text, "site").unwrap();
    assert_eq!(summary(&reading), "144 hosts, 8 switches, 192 cables: 145 × 4x QDR, 47 × 4x FDR10");
    assert_eq!(reading.oddities, []);
    let fabric = &reading.fabric;
    assert!(fabric.ids(NodeKind::Switch).all(|id| fabric.node(id).enhanced_port0));
    let error = structure::tree(fabric).unwrap_err().to_string();
    assert!(error.contains("not a tree: cable"), "{error}");
    assert!(structure::grid(fabric).is_err());
}

#[test]
fn needs_shared_port_list_of_an_exporter() {
    let name = "needs_shared_port_list_of_an_exporter";
    let Some(text) = shared(name, "treydock_fixture.ibnetdiscover-p.txt") else { return };
    let reading = read(&text, "list").unwrap();
    assert_eq!(summary(&reading), "3 hosts, 4 switches, 4 cables: 4 × 4x EDR");
    assert_eq!(lines(&reading, OddityKind::OneSided), [6]);
    assert_eq!(lines(&reading, OddityKind::NoPeer), [8, 9, 9]);
    assert_eq!(reading.oddities.len(), 4);
    let last = reading.fabric.nodes().iter().find(|node| node.ports[0].lid == Lid::new(1781));
    assert_eq!(last.unwrap().port_count(), 80);
}

#[test]
fn needs_shared_subnet_list_of_old_opensm() {
    let name = "needs_shared_subnet_list_of_old_opensm";
    let Some(text) = shared(name, "ibutils_clusters_subnet.lst") else { return };
    let reading = read(&text, "subnet.lst").unwrap();
    // 344 lines, both directions; 61 switches of 8 ports, one of 0x18, three adapters.
    assert_eq!(summary(&reading), "3 hosts, 62 switches, 172 cables: 172 × 4x SDR");
    assert_eq!(lines(&reading, OddityKind::UnknownRate), [1]);
    assert_eq!(lines(&reading, OddityKind::DuplicateName), [1]);
    assert_eq!(reading.oddities.len(), 2);
    assert!(reading.oddities[1].text.starts_with("61 nodes are named"), "{:?}", reading.oddities);
    let fabric = &reading.fabric;
    let ports: Vec<u8> =
        fabric.ids(NodeKind::Switch).map(|id| fabric.node(id).port_count()).collect();
    assert_eq!(ports.iter().filter(|ports| **ports == 8).count(), 61);
    assert_eq!(ports.iter().filter(|ports| **ports == 24).count(), 1);
    let first = fabric.nodes().iter().find(|node| node.ports[0].lid == Lid::new(2)).unwrap();
    assert_eq!((first.device, first.vendor), (0xA87C, 0x2C9));
}

#[test]
fn needs_shared_director_of_a_site() {
    let name = "needs_shared_director_of_a_site";
    let file = "hwloc-avakas/ib-subnet.ibnetdiscover-p.txt";
    let Some(text) = shared(name, file) else { return };
    let reading = read(&text, "list").unwrap();
    assert_eq!(summary(&reading), "281 hosts, 25 switches, 569 cables: 1 × 4x DDR, 568 × 4x QDR");
    let noise = &reading.oddities[0];
    assert_eq!((noise.kind, noise.line, noise.last_line), (OddityKind::Noise, 1, 834));
    assert_eq!(lines(&reading, OddityKind::Slow), [1004]);
    // 43 ports without peer: 20 one by one, one entry for the rest.
    let none: Vec<_> =
        reading.oddities.iter().filter(|odd| odd.kind == OddityKind::NoPeer).collect();
    assert_eq!((none.len(), none[0].line), (21, 1133));
    assert!(none[20].text.starts_with("23 more of the same kind"), "{}", none[20]);
    assert_eq!(reading.oddities.len(), 23);
    assert!(reading.fabric.nodes().iter().all(|node| {
        let port = if node.is_switch() { 0 } else { 1 };
        node.ports[port].lid.is_some()
    }));
    assert_eq!(structure::tree(&reading.fabric).map(|tree| tree.height()), Ok(2));
}

#[test]
fn needs_shared_director_can_be_given_away() {
    let name = "needs_shared_director_can_be_given_away";
    let Some(list) = shared(name, "hwloc-avakas/ib-subnet.ibnetdiscover-p.txt") else { return };
    let Some(dump) = shared(name, "hwloc-avakas/all-ibroutes.lft.txt") else { return };
    let fabric = read(&list, "list").unwrap().fabric;
    for naming in [Naming::Order, Naming::Hash("pepper".into())] {
        let (renamed, aliases) = anonymize(&fabric, &naming).unwrap();
        let renamed_dump = aliases.rename_dump(&dump);
        assert_eq!(renamed_dump.lines().count(), dump.lines().count());
        let text = clearlane_fabric::formats::write(&renamed) + &renamed_dump;
        for old in fabric.nodes() {
            assert!(!text.contains(&format!("{:x}", old.guid.0)), "{}", old.guid);
            assert!(!text.contains(&old.name), "{}", old.name);
        }
        assert_eq!(renamed.summary(), fabric.summary());
    }
}
