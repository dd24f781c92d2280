//! The fabrics of real sites, where the folder with third parties' files is at hand.

use super::binary::Scratch;
use std::path::{Path, PathBuf};

/// The folder of third parties' fabric files, if it is here.
#[expect(clippy::print_stdout, reason = "what a test leaves out is said")]
fn fabrics(test: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/fabrics");
    if !folder.is_dir() {
        println!("skipped {test}: {} is not here", folder.display());
        return None;
    }
    Some(folder)
}

#[test]
fn needs_shared_every_fabric_is_shown() {
    let Some(folder) = fabrics("needs_shared_every_fabric_is_shown") else { return };
    let scratch = Scratch::new("shared-show");
    // Counted with grep in the files: ports that lead to a peer, node GUIDs by kind.
    let sizes = [
        ("hwloc-avakas/ib-subnet.ibnetdiscover-p.txt", "281 hosts, 25 switches"),
        ("loginoff_qdr_fdr10.ibnetdiscover", "144 hosts, 8 switches"),
        ("jabl_lab_mixed_edr_fdr_loopback.ibnetdiscover", "6 hosts, 2 switches, 10 cables"),
        ("ibsim_net.2sw2path4hca", "4 hosts, 2 switches, 6 cables"),
        ("treydock_fixture.ibnetdiscover-p.txt", "3 hosts, 4 switches, 4 cables"),
        ("ibutils_clusters_subnet.lst", "3 hosts, 62 switches"),
    ];
    for (name, size) in sizes {
        let path = folder.join(name);
        let called = scratch.call_words(&["fabric", "show", path.to_str().unwrap()]);
        assert!(called.text().lines().next().unwrap().contains(size), "{name}: {called:?}");
        assert!(called.stdout.contains("\nstructure  ") && called.stdout.contains("\noddities  "));
    }
}

#[test]
fn needs_shared_avakas_is_sane_under_its_own_tables() {
    let Some(folder) = fabrics("needs_shared_avakas_is_sane_under_its_own_tables") else { return };
    let scratch = Scratch::new("shared-avakas");
    let avakas = folder.join("hwloc-avakas");
    let (fabric, tables) =
        (avakas.join("ib-subnet.ibnetdiscover-p.txt"), avakas.join("all-ibroutes.lft.txt"));
    let words = ["check", fabric.to_str().unwrap(), "--lft", tables.to_str().unwrap(), "--json"];
    let found = scratch.call_words(&words).json(0);
    assert_eq!(found["sane"], true);
    assert_eq!(found["reachability"]["paths"], 281 * 280);
    assert_eq!(found["reachability"]["arrive"], 281 * 280);
    assert_eq!(found["balance"]["shifts"]["measured"], 280);
    // The site's own tables are not perfect, or there would be nothing to mend.
    assert!(found["balance"]["shifts"]["worst"].as_u64().unwrap() > 1);
    let out = scratch.call_words(&[
        "route",
        fabric.to_str().unwrap(),
        "--lft",
        tables.to_str().unwrap(),
        "-o",
        "out",
    ]);
    assert!(out.text().contains("281 hosts and 25 switches routed by file: 306 LIDs"), "{out:?}");
}
