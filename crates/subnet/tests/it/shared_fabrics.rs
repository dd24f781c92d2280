//! Real fabrics with their real tables. The files are third parties' and lie beside the workspace;
//! where all are absent the tests say so and pass. Figures were counted by a separate script that
//! shares no code with this crate.

use clearlane_fabric::{Endpoint, Fabric, NodeKind, damage, formats};
use clearlane_ib::Lmc;
use clearlane_subnet::Subnet;
use clearlane_subnet::check::{credit_loop, disjointness, reachability, shifts};
use clearlane_subnet::engines::{RouteOptions, TableFile, route};
use std::collections::BTreeMap;
use std::path::PathBuf;

fn shared_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared")
}

/// The text of a file of third parties; nothing, and a word on it, if the folder with all of them
/// is not here. Fails if it is and the file is not: a test that skips for a wrong name proves
/// nothing.
#[allow(clippy::print_stdout)]
fn shared(test: &str, name: &str) -> Option<String> {
    let all = shared_folder();
    if !all.exists() {
        println!("skipped {test}: {} is not here", all.display());
        return None;
    }
    let file = all.join("data/fabrics").join(name);
    let bytes = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[test]
fn needs_shared_a_missing_file_is_a_failure() {
    let name = "needs_shared_a_missing_file_is_a_failure";
    let read = std::panic::catch_unwind(|| shared(name, "no such file"));
    assert_eq!(read.is_err(), shared_folder().exists());
}

fn with_tables(fabric: &Fabric, name: &str, text: String) -> Subnet {
    let files = vec![TableFile { name: name.into(), text }];
    route("file", fabric, &RouteOptions { files, ..RouteOptions::default() }).unwrap()
}

/// Flows on the worst switch output of every shift, by following cables and tables one by one.
fn worst_links(fabric: &Fabric, subnet: &Subnet) -> Vec<u32> {
    let hosts: Vec<Endpoint> = fabric
        .ids(NodeKind::ChannelAdapter)
        .filter_map(|node| {
            let (port, _, _) = fabric.neighbours(node).next()?;
            Some(Endpoint { node, port })
        })
        .collect();
    let mut worst = Vec::new();
    for shift in 1..hosts.len() {
        let mut flows: BTreeMap<Endpoint, u32> = BTreeMap::new();
        for (from, source) in hosts.iter().enumerate() {
            let destination = hosts[(from + shift) % hosts.len()];
            let (lid, _) = subnet.lids.base(destination).unwrap();
            let mut at = fabric.peer(*source).unwrap();
            while at != destination {
                let port = subnet.tables.port(at.node, lid).unwrap();
                let out = Endpoint { node: at.node, port };
                *flows.entry(out).or_default() += 1;
                at = fabric.peer(out).unwrap();
            }
        }
        worst.push(*flows.values().max().unwrap());
    }
    worst
}

#[test]
fn needs_shared_avakas_with_its_own_tables() {
    let name = "needs_shared_avakas_with_its_own_tables";
    let Some(text) = shared(name, "hwloc-avakas/ib-subnet.ibnetdiscover-p.txt") else { return };
    let Some(dump) = shared(name, "hwloc-avakas/all-ibroutes.lft.txt") else { return };
    let fabric = formats::read(&text, "avakas").unwrap().fabric;
    let subnet = with_tables(&fabric, "all-ibroutes", dump);
    let entries: usize =
        (0..25).map(|row| subnet.tables.row(row).iter().filter(|port| **port != 255).count()).sum();
    assert_eq!(entries, 25 * 306);
    assert_eq!(subnet.remarks, [] as [String; 0]);
    let reached = reachability(&fabric, &subnet);
    assert_eq!((reached.hosts, reached.pairs, reached.reached), (281, 78_680, 78_680));
    assert_eq!(reached.hops, [0, 4660, 0, 74_020]);
    assert_eq!((reached.faults, reached.switches_unreached), ([0; 4], 0));
    assert!(credit_loop(&fabric, &subnet).is_sane());
    let found = shifts(&fabric, &subnet);
    let walked = worst_links(&fabric, &subnet);
    let sum: u32 = walked.iter().sum();
    let worst = found.worst.clone().unwrap();
    assert_eq!((worst.flows, worst.permutation, found.contention_free), (4, 52, 12));
    assert!((found.mean - 2.85).abs() < 1e-9, "{found}");
    assert_eq!(worst.flows, walked.iter().copied().max().unwrap());
    assert!((found.mean - f64::from(sum) / 280.0).abs() < 1e-9);
    assert_eq!(found.contention_free, walked.iter().filter(|flows| **flows == 1).count());
}

#[test]
fn needs_shared_avakas_routed_anew() {
    let name = "needs_shared_avakas_routed_anew";
    let Some(text) = shared(name, "hwloc-avakas/ib-subnet.ibnetdiscover-p.txt") else { return };
    let fabric = formats::read(&text, "avakas").unwrap().fabric;
    for engine in ["min-hop", "fat-tree"] {
        let subnet = route(engine, &fabric, &RouteOptions::default()).unwrap();
        let reached = reachability(&fabric, &subnet);
        assert!(reached.is_sane() && reached.switches_unreached == 0, "{reached}");
        assert_eq!(reached.hops, [0, 4660, 0, 74_020]);
        assert!(credit_loop(&fabric, &subnet).is_sane());
        let found = shifts(&fabric, &subnet);
        let walked = worst_links(&fabric, &subnet);
        assert_eq!(found.worst.clone().unwrap().flows, walked.into_iter().max().unwrap());
        println!("{engine} {found} {:?}", subnet.remarks);
    }
}

#[test]
fn needs_shared_loginoff_with_hosts_on_spines() {
    let name = "needs_shared_loginoff_with_hosts_on_spines";
    let Some(text) = shared(name, "loginoff_qdr_fdr10.ibnetdiscover") else { return };
    let fabric = formats::read(&text, "loginoff").unwrap().fabric;
    for engine in ["min-hop", "fat-tree"] {
        let subnet = route(engine, &fabric, &RouteOptions::default()).unwrap();
        let reached = reachability(&fabric, &subnet);
        assert!(reached.is_sane() && reached.switches_unreached == 0, "{engine}: {reached}");
        // 144 adapters, one of them with both ports cabled.
        assert_eq!((reached.hosts, reached.pairs), (145, 145 * 144));
        let report = credit_loop(&fabric, &subnet);
        assert!(report.is_sane(), "{engine}: {report}");
        println!("{engine} {} {:?}", shifts(&fabric, &subnet), subnet.remarks);
    }
}

#[test]
fn needs_shared_loginoff_over_several_paths() {
    let name = "needs_shared_loginoff_over_several_paths";
    let Some(text) = shared(name, "loginoff_qdr_fdr10.ibnetdiscover") else { return };
    for (cables, least) in [(0, [4, 4]), (6, [2, 4])] {
        let mut fabric = formats::read(&text, "loginoff").unwrap().fabric;
        let choice = damage::Choice { links: cables, seed: 1, uplinks_min: 1 };
        let dead = damage::choose(&fabric, &choice).unwrap();
        damage::cut(&mut fabric, &dead);
        let options = RouteOptions { lmc: Lmc::new(2).unwrap(), lanes: 8, ..Default::default() };
        let subnet = route("multipath", &fabric, &options).unwrap();
        let reached = reachability(&fabric, &subnet);
        assert_eq!((reached.pairs, reached.reached), (4 * 145 * 144, reached.pairs), "{reached}");
        let report = credit_loop(&fabric, &subnet);
        assert!(report.is_sane(), "{report}");
        // Hosts on spines are one cable from those on leaves, all others two.
        let found = disjointness(&fabric, &subnet);
        let of_class: Vec<u32> = found.classes.iter().map(|class| class.disjoint_least).collect();
        assert_eq!(of_class, least, "{found}");
    }
}

#[test]
fn needs_shared_ibutils_over_several_paths() {
    let name = "needs_shared_ibutils_over_several_paths";
    let Some(text) = shared(name, "ibutils_clusters_subnet.lst") else { return };
    let fabric = formats::read(&text, "subnet.lst").unwrap().fabric;
    for lanes in [1, 2, 8] {
        let options = RouteOptions { lmc: Lmc::new(2).unwrap(), lanes, ..Default::default() };
        let subnet = route("multipath", &fabric, &options).unwrap();
        let reached = reachability(&fabric, &subnet);
        assert_eq!((reached.pairs, reached.reached), (4 * 6, 4 * 6), "{reached}");
        let report = credit_loop(&fabric, &subnet);
        assert!(report.is_sane() && report.lanes <= lanes, "{report}");
        let found = disjointness(&fabric, &subnet);
        assert_eq!(found.classes.iter().map(|class| class.pairs).sum::<u64>(), 6, "{found}");
        // One order of up and down leads over its root alone.
        let least = if lanes == 8 { 3 } else { 1 };
        assert!(found.classes[0].disjoint_least >= least, "{found}");
    }
}

#[test]
fn needs_shared_ibutils_pair() {
    let name = "needs_shared_ibutils_pair";
    let Some(text) = shared(name, "ibutils_clusters_subnet.lst") else { return };
    let Some(dump) = shared(name, "ibutils_clusters_osm.fdbs") else { return };
    let fabric = formats::read(&text, "subnet.lst").unwrap().fabric;
    assert_eq!(fabric.summary().switches, 62);
    let subnet = with_tables(&fabric, "osm.fdbs", dump);
    let entries: usize =
        (0..62).map(|row| subnet.tables.row(row).iter().filter(|port| **port != 255).count()).sum();
    assert_eq!(entries, 62 * 65);
    let reached = reachability(&fabric, &subnet);
    assert_eq!((reached.pairs, reached.reached), (6, 6));
    assert_eq!(reached.hops, [0, 0, 0, 0, 0, 2, 4]);
    let report = credit_loop(&fabric, &subnet);
    assert!(report.is_sane() && report.dependencies == 22, "{report}");
}
