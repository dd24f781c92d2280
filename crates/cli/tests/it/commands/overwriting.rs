//! Nothing is lost: a command writes neither over what it reads nor over what is read-only, and
//! over what is there only if told so.

use super::binary::{Scratch, uniform};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

/// A fabric and its tables.
fn site(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.call("fabric build leaf-spine:leaves=2,hosts=2,spines=1 -o t.topo").text();
    scratch.call("route t.topo --engine min-hop -o out").text();
    scratch
}

fn set_mode(scratch: &Scratch, name: &str, mode: u32) {
    fs::set_permissions(scratch.path(name), Permissions::from_mode(mode)).unwrap();
}

#[test]
fn what_is_read_is_never_written_over_however_it_is_named() {
    let scratch = site("overwrite-input");
    symlink("t.topo", scratch.path("link.topo")).unwrap();
    let before = (scratch.read("t.topo"), scratch.read("out/lfts.txt"));
    for line in [
        "fabric anonymize t.topo -o t.topo",
        "fabric anonymize t.topo -o ./out/../t.topo",
        "fabric anonymize link.topo -o t.topo",
        "fabric cut t.topo spine00 -o t.topo",
        "fabric cut t.topo spine00 -o link.topo",
        "fabric anonymize t.topo --lft out/lfts.txt -o away --lft-out out/lfts.txt",
        "fabric anonymize t.topo --lft out/lfts.txt -o out/lfts.txt --lft-out away",
        "route t.topo --lft out/lfts.txt -o out",
        "route out/opensm-subnet.lst --engine min-hop -o out",
    ] {
        for line in [format!("{line} --force"), format!("{line} --force --dry-run")] {
            let called = scratch.call(&line);
            assert!(called.failure(2).contains("this command reads; name another"), "{called:?}");
        }
    }
    assert_eq!((scratch.read("t.topo"), scratch.read("out/lfts.txt")), before);
    assert_eq!(scratch.names(), ["link.topo", "out", "t.topo"]);
}

#[test]
fn two_outputs_are_two_files() {
    let scratch = site("overwrite-twice");
    let line = "fabric anonymize t.topo --lft out/lfts.txt -o away --lft-out ./away";
    assert_eq!(scratch.call(line).failure(2), "./away is to be written twice; name another file");
    assert_eq!(scratch.names(), ["out", "t.topo"]);
}

#[test]
fn what_is_there_is_replaced_only_with_force() {
    let scratch = site("overwrite-force");
    let lines = [
        "fabric build star:4 -o t.topo",
        "fabric cut star:4 leaf00[1] -o t.topo",
        "fabric anonymize out/opensm-subnet.lst -o t.topo",
        "route star:4 --engine min-hop -o out",
    ];
    for line in lines {
        let before = (scratch.read("t.topo"), scratch.read("out/lfts.txt"));
        assert!(scratch.call(line).failure(2).ends_with("or add --force"), "{line}");
        assert_eq!((scratch.read("t.topo"), scratch.read("out/lfts.txt")), before, "{line}");
        scratch.call(&format!("{line} --force")).text();
        let after = (scratch.read("t.topo"), scratch.read("out/lfts.txt"));
        assert!(before != after, "{line} --force changed nothing");
    }
}

#[test]
fn what_is_read_only_stays_even_with_force_and_for_root() {
    let scratch = site("overwrite-read-only");
    set_mode(&scratch, "t.topo", 0o444);
    set_mode(&scratch, "out/guid2lid", 0o444);
    let before = (scratch.read("t.topo"), scratch.read("out/guid2lid"));
    for (line, name) in [
        ("fabric build star:4 -o t.topo", "t.topo"),
        ("fabric cut star:4 leaf00[1] -o t.topo", "t.topo"),
        ("route star:4 --engine min-hop -o out", "out/guid2lid"),
    ] {
        let called = scratch.call(&format!("{line} --force"));
        let told = "it is read-only; name another place, or have its owner allow it with chmod u+w";
        assert_eq!(called.failure(5), format!("cannot write {name}: {told}"));
    }
    assert_eq!((scratch.read("t.topo"), scratch.read("out/guid2lid")), before);
}

fn star() -> String {
    uniform("star", "star:4", "min-hop", "20 us")
}

#[test]
fn a_drawing_is_never_written_over_the_results() {
    let scratch = Scratch::new("overwrite-report");
    scratch.write("star.toml", &star());
    fs::create_dir(scratch.path("there")).unwrap();
    symlink("there", scratch.path("link")).unwrap();
    for (out, picture) in [
        ("out", "out/report.html"),
        ("out", "./out/picture.svg"),
        ("a/b/out", "a/../a/b/out/deep/x.svg"),
        ("there", "link/report.html"),
        ("link", "there/x.svg"),
    ] {
        for command in ["run", "compare"] {
            let line = format!("{command} star.toml --out {out} --picture {picture} --force");
            let told =
                format!("{picture} lies in the folder of the results; name a file elsewhere");
            assert_eq!(scratch.call(&line).failure(2), told);
        }
    }
    assert_eq!(scratch.names(), ["link", "star.toml", "there"]);
    // Beside it there is room, even under a name that begins alike.
    scratch.call("run star.toml --out out --picture out.svg").text();
    assert!(scratch.read("out/report.html").contains("clearlane-report/1"));
}

#[test]
fn a_sweep_that_is_refused_leaves_nothing() {
    let scratch = Scratch::new("overwrite-sweep");
    scratch.write("star.toml", &star());
    let one = "sweep star.toml --out out --jobs 1 --over fabric.build=star:1,star:4";
    scratch.call(one).failure(2);
    assert_eq!(scratch.names(), ["star.toml"]);
    // What another sweep left is there until there is something in its place.
    scratch.call("sweep star.toml --out out --over traffic.load=0.1,0.2").text();
    let points = scratch.read("out/points.jsonl");
    scratch.call(&format!("{one} --force")).failure(2);
    assert_eq!(scratch.read("out/points.jsonl"), points);
    scratch.call("sweep star.toml --out out --over traffic.load=0.2,0.3 --force").text();
    assert_eq!(scratch.read("out/points.jsonl").lines().count(), 2);
}
