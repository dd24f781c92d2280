//! Every fabric of third parties that lies beside the workspace, whole and damaged: a verdict with
//! the right identity, and no crash. Where the files are absent the tests say so and pass.

use clearlane_diagnose::{Finding, Site, facts, verdict};
use clearlane_fabric::{Fabric, LinkId, NodeId, NodeKind, damage, formats};
use clearlane_ib::random::Stream;
use clearlane_lab::Verdict;
use clearlane_subnet::LidMap;
use clearlane_subnet::Subnet;
use clearlane_subnet::check::usage;
use clearlane_subnet::engines::{RouteOptions, TableFile, route};
use std::path::{Path, PathBuf};

/// Fabric files with their tables, where there are some.
const FILES: &[(&str, Option<&str>)] = &[
    ("hwloc-avakas/ib-subnet.ibnetdiscover-p.txt", Some("hwloc-avakas/all-ibroutes.lft.txt")),
    ("loginoff_qdr_fdr10.ibnetdiscover", None),
    ("jabl_lab_mixed_edr_fdr_loopback.ibnetdiscover", None),
    ("treydock_fixture.ibnetdiscover-p.txt", None),
    ("ibutils_clusters_subnet.lst", Some("ibutils_clusters_osm.fdbs")),
    ("ibsim_net.2sw2path4hca", None),
];

/// The folder of the files, if it is there.
#[expect(clippy::print_stdout, reason = "who runs the tests learns what was skipped")]
fn folder(test: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/fabrics");
    if !folder.is_dir() {
        println!("skipped {test}: {} is not here", folder.display());
        return None;
    }
    Some(folder)
}

fn read(folder: &Path, name: &str) -> formats::Reading {
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    formats::read(&text, name).unwrap_or_else(|error| panic!("{error}"))
}

/// The site's own tables, or those of an engine that takes any fabric.
fn tables(folder: &Path, fabric: &Fabric, lft: Option<&str>) -> Option<Subnet> {
    let lids = LidMap::from_fabric(fabric).unwrap();
    let Some(lft) = lft else {
        let options = RouteOptions { lids, ..RouteOptions::default() };
        return route("up-down", fabric, &options).ok();
    };
    let text = std::fs::read_to_string(folder.join(lft)).unwrap();
    let files = vec![TableFile { name: lft.into(), text }];
    let options = RouteOptions { lids, files, ..RouteOptions::default() };
    Some(route("file", fabric, &options).unwrap_or_else(|error| panic!("{lft}: {error}")))
}

fn judged(fabric: Fabric, subnet: Option<Subnet>) -> (Vec<Finding>, Verdict) {
    let site = Site::new("site", fabric, Vec::new(), subnet);
    let findings = facts::all(&site);
    let verdict = verdict(&site, &findings, None, "");
    let lines = 1..=Verdict::LINES_MAX;
    assert!(lines.contains(&verdict.lines.len()), "{:#?}", verdict.lines);
    assert!(verdict.lines.iter().all(|line| !line.text.is_empty() && !line.text.contains('\n')));
    assert!(findings.iter().all(|finding| (0.0..=1.0 + 1e-9).contains(&finding.share)));
    (findings, verdict)
}

#[test]
fn needs_shared_whole_and_damaged_files_have_a_verdict() {
    let Some(folder) = folder("needs_shared_whole_and_damaged_files_have_a_verdict") else {
        return;
    };
    let mut random = Stream::new(1, "site files", 0);
    for (name, lft) in FILES {
        let fabric = read(&folder, name).fabric;
        let whole = tables(&folder, &fabric, *lft);
        judged(fabric.clone(), None);
        judged(fabric.clone(), whole.clone());
        // Entries are missing, one by one and a third of all.
        let Some(whole) = whole else { continue };
        for share in [0.01, 0.3] {
            let mut less = whole.clone();
            let rows = less.tables.switches().len();
            for row in 0..rows {
                for entry in less.tables.row_mut(row) {
                    if random.unit() < share {
                        *entry = u8::MAX;
                    }
                }
            }
            // Of a few entries none may be missing.
            let is_lost = usage(&fabric, &less).lost > 0;
            let (findings, verdict) = judged(fabric.clone(), Some(less));
            let first = findings.first().filter(|finding| finding.is_fault());
            let is_seen =
                first.is_some_and(|first| ["dead-entries", "parts"].contains(&first.fact));
            assert!(is_seen || !is_lost, "{name}: {first:?}");
            assert!(!(verdict.healthy && is_lost), "{name}");
        }
        // Cables are cut under the same tables.
        let trunks = |(_, link): &(usize, &clearlane_fabric::Link)| {
            [link.a, link.b].iter().all(|end| fabric.node(end.node).is_switch())
        };
        let links = fabric.links().iter().enumerate().filter(trunks);
        let ids: Vec<LinkId> = links.map(|(id, _)| LinkId(id as u32)).collect();
        let mut less = fabric.clone();
        damage::cut(&mut less, &ids[..ids.len() / 2]);
        let is_lost = usage(&less, &whole).lost > 0;
        let (findings, _) = judged(less, Some(whole));
        let fault = findings.first().is_some_and(Finding::is_fault);
        assert!(fault || !is_lost, "{name}: {findings:?}");
    }
}

/// Many sites leave the adapters' factory description: a host is then known by its GUID alone.
#[test]
fn needs_shared_hosts_of_one_name_are_told_apart() {
    let Some(folder) = folder("needs_shared_hosts_of_one_name_are_told_apart") else { return };
    let (name, lft) = FILES[0];
    let mut fabric = read(&folder, name).fabric;
    let (found, _) = judged(fabric.clone(), tables(&folder, &fabric, lft));
    let slow = found.iter().find(|finding| finding.fact == "slow-host-links").unwrap();
    let hosts: Vec<NodeId> = fabric.ids(NodeKind::ChannelAdapter).collect();
    let host = hosts.iter().find(|host| slow.text.starts_with(&fabric.node(**host).name)).unwrap();
    let of_port = fabric.node(*host).ports.iter().map(|port| port.guid).find(|guid| guid.0 != 0);
    let guid = of_port.unwrap().to_string();
    for host in hosts {
        fabric.node_mut(host).name = "MT25408 ConnectX Mellanox Technologies".into();
    }
    let (found, _) = judged(fabric.clone(), tables(&folder, &fabric, lft));
    let slow = found.iter().find(|finding| finding.fact == "slow-host-links").unwrap();
    assert!(slow.text.contains(&guid), "{guid}: {}", slow.text);
}
