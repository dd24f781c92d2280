//! `route` and `check`: tables written, read back, and judged.

use super::binary::Scratch;
use serde_json::json;

/// A dump cut off in the middle: OpenSM would load the rest without a word.
#[test]
fn tables_with_holes_are_not_written_for_deployment() {
    let scratch = Scratch::new("holes");
    scratch.call("fabric build leaf-spine:leaves=4,hosts=3,spines=3 -o t.topo").text();
    scratch.call("route t.topo --engine fat-tree -o out").text();
    let whole = scratch.read("out/lfts.txt");
    let lines: Vec<&str> = whole.lines().collect();
    scratch.write("half.lft", &(lines[..lines.len() / 2].join("\n") + "\n"));
    let refused = scratch.call("route t.topo --lft half.lft -o deploy");
    let line = refused.failure(2);
    assert!(line.contains("nothing written: "), "{line}");
    assert!(line.contains(" of 132 paths do not arrive"), "{line}");
    assert_eq!(scratch.names(), ["half.lft", "out", "t.topo"]);
}

#[test]
fn tables_that_can_deadlock_are_written_only_by_force() {
    let scratch = Scratch::new("loops");
    let refused = scratch.call("route torus:5x5 --engine min-hop -o out");
    let line = refused.failure(2);
    assert!(line.starts_with("nothing written: by these tables a credit loop of "), "{line}");
    assert!(line.contains("route with up-down"), "{line}");
    assert_eq!(scratch.names(), [] as [&str; 0]);
    let forced = scratch.call("route torus:5x5 --engine min-hop -o out --force");
    assert!(forced.text().contains("a credit loop is possible by these tables"));
    // What the error recommends is written without a word of it.
    scratch.call("route torus:5x5 --engine up-down -o safe").text();
}

#[test]
fn new_tables_are_compared_with_those_there_are() {
    let scratch = Scratch::new("compared");
    scratch.call("route torus:5x5 --engine up-down -o now").text();
    let dor = "route torus:5x5 --engine dor --lanes 8 --lft now/lfts.txt -o dor";
    let found = scratch.call(&format!("{dor} --json")).json(0);
    let compared = &found["compared"];
    assert!(compared["entries_changed"].as_u64() > Some(0), "{compared}");
    assert!(compared["verdict"].as_str().unwrap().starts_with("better: "), "{compared}");
    let back = scratch.call("route torus:5x5 --engine up-down --lft dor/lfts.txt -o back");
    let text = back.text();
    assert!(text.contains("\nverdict: WORSE: ") || text.contains("; WORSE: "), "{text}");
    let whole = scratch.read("now/lfts.txt");
    let lines: Vec<&str> = whole.lines().collect();
    scratch.write("half.lft", &(lines[..lines.len() / 2].join("\n") + "\n"));
    let found =
        scratch.call("route torus:5x5 --engine up-down --lft half.lft -o whole --json").json(0);
    let compared = &found["compared"];
    assert_eq!(compared["entries"], 25 * 50, "{compared}");
    let verdict = compared["verdict"].as_str().unwrap();
    assert!(verdict.starts_with("better: 0 paths lost instead of "), "{verdict}");
    assert!(!verdict.contains("WORSE"), "{verdict}");
    let same = scratch.call("route torus:5x5 --engine up-down --lft now/lfts.txt -o same");
    assert!(same.text().contains("entries that change: 0 of 1,250\n"), "{same:?}");
    assert!(same.text().contains("verdict: no better and no worse than the tables there are\n"));
}

#[test]
fn several_paths_are_told_and_judged_one_by_one() {
    let scratch = Scratch::new("multipath");
    let multipath = "--engine multipath --lmc 2 --lanes 6";
    let routed = scratch.call(&format!("route torus:4x4 {multipath} -o out"));
    let text = routed.text();
    assert!(text.starts_with("16 hosts and 16 switches routed by multipath: 80 LIDs on 6 lanes\n"));
    assert!(text.contains("\n  LID offset 2: up and down around sw-0-0, VL 4, SL 8\n"), "{text}");
    assert!(text.contains("\npaths        to 4 LIDs "), "{text}");
    assert!(
        text.contains("QoS policy cannot say so, it needs a routing-engine plug-in\n"),
        "{text}"
    );
    let checked = format!("check torus:4x4 {multipath} --random-permutations 0");
    let found = scratch.call(&format!("{checked} --json")).json(0);
    let along = &found["disjointness"]["classes"][0];
    assert_eq!((&along["name"], &along["pairs"]), (&json!("along 1 dimension"), &json!(96)));
    assert_eq!(along["cables_by_offset"].as_array().unwrap().len(), 4);
    assert_eq!(found["reachability"]["paths"], 16 * 15 * 4);
    let alone = scratch.call(&format!("{checked} --lid-offset 3 --json")).json(0);
    assert_eq!((&alone["disjointness"], &alone["credit_loop"]["lanes"]), (&json!(null), &json!(6)));
    assert_eq!(alone["reachability"]["paths"], 16 * 15);
    // Written and read, the lanes and service levels of all offsets are the same.
    let files = "--lft out/lfts.txt --lft out/sl2vl.dump --lft out/psl.txt";
    let back = format!("check torus:4x4 {files} --lanes 6 --random-permutations 0 --json");
    assert_eq!(scratch.call(&back).json(0)["credit_loop"], found["credit_loop"]);
    let refused = scratch.call("check torus:4x4 --engine multipath --lmc 1 --lid-offset 2");
    let line = refused.failure(2);
    assert!(line.contains("--lid-offset 2: hosts have 2 LIDs; give 0 to 1"), "{line}");
}

#[test]
fn what_is_routed_reads_back_and_is_sane() {
    let scratch = Scratch::new("route");
    scratch.call("fabric build leaf-spine:leaves=4,hosts=3,spines=3 -o t.topo").text();
    let routed = scratch.call("route t.topo --engine fat-tree -o out");
    assert!(
        routed
            .text()
            .starts_with("12 hosts and 7 switches routed by fat-tree: 19 LIDs on 1 lane\n")
    );
    let written = [
        "README",
        "guid2lid",
        "lfts.txt",
        "opensm-subnet.lst",
        "opensm.fdbs",
        "path-groups.txt",
        "psl.txt",
        "sl2vl.dump",
    ];
    for name in written {
        assert!(!scratch.read(&format!("out/{name}")).is_empty(), "{name}");
        assert!(routed.stdout.contains(&format!("out/{name}")), "{name}");
    }
    assert_eq!(scratch.names(), ["out", "t.topo"]);
    for tables in ["out/lfts.txt", "out/opensm.fdbs"] {
        let back =
            scratch.call(&format!("route out/opensm-subnet.lst --lft {tables} -o back --force"));
        assert!(back.text().contains("routed by file: 19 LIDs"));
        let [ours, read] = ["out/lfts.txt", "back/lfts.txt"].map(|name| scratch.read(name));
        assert_eq!(sections(&read), sections(&ours));
    }
    let checked = scratch.call("check t.topo --lft out/lfts.txt --random-permutations 0");
    assert_eq!(
        checked.text(),
        "\
reachable    132 of 132 paths, 12 hosts with 12 LIDs
switches     1 (18.2 %), 3 (81.8 %)
deadlock     no credit loop among 24 channels (1 lane, 1 service level)
balance      permutations  flows on the worst link: mean  most  no two on a link  worst
             11 shift                               1.00     1           100.0 %  leaf00[1], shift 1
verdict      sane: every host reaches every other, and no credit loop is possible
"
    );
}

#[test]
fn a_dry_route_writes_nothing_and_a_foreign_folder_is_left_alone() {
    let scratch = Scratch::new("route-dry");
    let dry = scratch.call("route star:4 --engine min-hop -o out --dry-run");
    assert!(dry.text().contains("would write out/lfts.txt"));
    assert_eq!(scratch.names(), [] as [&str; 0]);
    std::fs::create_dir(scratch.path("mine")).unwrap();
    scratch.write("mine/thesis.tex", "x");
    let refused = scratch.call("route star:4 --engine min-hop -o mine");
    assert_eq!(
        refused.failure(2),
        "mine holds thesis.tex, which is not written here; name another folder with -o"
    );
    assert_eq!(scratch.names(), ["mine"]);
    assert_eq!(scratch.read("mine/thesis.tex"), "x");
}

#[test]
fn engines_and_their_flags_are_checked() {
    let scratch = Scratch::new("route-flags");
    let failure = |line: &str| scratch.call(line).failure(2).to_owned();
    assert!(failure("route star:4 --engine minhop -o o").contains("did you mean \"min-hop\"?"));
    assert!(failure("route star:4 --engine file -o o").contains("name them with --lft"));
    assert!(failure("check star:4 --engine min-hop --lft x").contains("leave --lft"));
    assert!(failure("route star:4 --engine min-hop --lft x -o o").contains("x: no such file"));
    assert!(
        failure("route star:4 --engine min-hop --lmc 8 -o o")
            .contains("from 0 to 7; see `clearlane route --help`")
    );
    assert!(failure("route torus:4 --engine dor --lanes 1 -o o").contains("2 to 15 data VLs"));
    assert_eq!(
        failure("route torus:4 --engine dor --root sw-0 -o o"),
        "engine dor has no roots, and \"sw-0\" is named; those that have are up-down"
    );
    let wrong = failure("route torus:4 --engine up-down --root sw-9 -o o");
    assert!(wrong.starts_with("root: no node is named \"sw-9\"; did you"), "{wrong}");
    for line in ["check star:4", "route star:4 -o o"] {
        assert_eq!(
            failure(line),
            "name the tables with --lft FILE, or with --engine ENGINE what fills them; \
             see `clearlane list engines`"
        );
    }
    assert_eq!(scratch.names(), [] as [&str; 0]);
}

/// The sections of a table file, sorted: files of one fabric list its switches in their own order.
fn sections(text: &str) -> Vec<&str> {
    let mut sections: Vec<_> = text.split("Unicast lids ").collect();
    sections.sort_unstable();
    sections
}

/// Two leaves under one spine, and the tables of it.
fn two_leaves(scratch: &Scratch) -> String {
    scratch.call("fabric build leaf-spine:leaves=2,hosts=2,spines=1 -o t.topo").text();
    scratch.call("route t.topo --engine min-hop -o out").text();
    scratch.read("out/lfts.txt")
}

/// Changes the port for `host` in the table of `switch`.
fn with_entry(tables: &str, switch: &str, host: &str, port: Option<u8>) -> String {
    let (mut inside, mut changed, mut text) = (false, 0, String::new());
    for line in tables.lines() {
        if line.starts_with("Unicast lids") {
            inside = line.contains(&format!("'{switch}'"));
        }
        if inside && line.starts_with("0x") && line.contains(&format!("'{host}'")) {
            changed += 1;
            let Some(port) = port else { continue };
            let (lid, rest) = line.split_once(' ').unwrap();
            let (_, comment) = rest.split_once(' ').unwrap();
            text.push_str(&format!("{lid} {port:03} {comment}\n"));
        } else {
            text.push_str(&format!("{line}\n"));
        }
    }
    assert_eq!(changed, 1, "{switch} has no entry for {host} in\n{tables}");
    text
}

#[test]
fn a_forwarding_loop_is_bad_news_and_is_named() {
    let scratch = Scratch::new("loop");
    let tables = two_leaves(&scratch);
    // Port 3 of leaf01 leads back up.
    scratch.write("loop.txt", &with_entry(&tables, "leaf01", "host0003", Some(3)));
    let called = scratch.call("check t.topo --lft loop.txt --random-permutations 0");
    assert_eq!((called.code, called.stderr.as_str()), (1, ""), "{called:?}");
    assert_eq!(
        called.stdout.lines().next_back(),
        Some(
            "verdict      NOT sane: 3 paths go round in a loop; a credit loop of 2 channels can \
             deadlock"
        ),
        "{called:?}"
    );
    let proof = called.stdout.lines().find(|line| line.contains("loop") && line.contains("leaf01"));
    assert!(proof.is_some_and(|line| line.contains("spine00")), "{called:?}");
    let json = scratch.call("check t.topo --lft loop.txt --json").json(1);
    assert_eq!((&json["sane"], &json["reachability"]["loop"]), (&false.into(), &3.into()));
}

#[test]
fn a_dead_end_is_bad_news_and_is_named() {
    let scratch = Scratch::new("dead-end");
    let tables = two_leaves(&scratch);
    scratch.write("end.txt", &with_entry(&tables, "spine00", "host0003", None));
    let called = scratch.call("check t.topo --lft end.txt --random-permutations 0");
    assert_eq!(called.code, 1);
    assert!(called.stdout.contains("NOT sane: 2 paths come to a dead end\n"), "{called:?}");
    // One flow of shift 2 and one of shift 3.
    assert!(called.stdout.contains("\nlost         2 flows are excluded: no path\n"), "{called:?}");
    assert!(called.stdout.lines().any(|l| l.contains("spine00") && l.contains("host0003")));
}

#[test]
fn hosts_without_lids_are_bad_news_and_are_counted() {
    let scratch = Scratch::new("without-lid");
    two_leaves(&scratch);
    let whole = scratch.read("out/opensm-subnet.lst");
    for (hosts, verdict) in [
        (1, "NOT sane: 1 host has no LID; "),
        (
            3,
            "NOT sane: 3 hosts have no LID; fewer than two hosts have LIDs; there is nothing to \
             check",
        ),
    ] {
        let without = (0..hosts).fold(whole.clone(), |text, host| {
            let [with, without] =
                [host + 1, 0].map(|lid| format!("{{host000{host}}} LID:000{lid}"));
            assert!(text.contains(&with), "{text}");
            text.replace(&with, &without)
        });
        scratch.write("few.lst", &without);
        let called = scratch.call("check few.lst --lft out/lfts.txt --random-permutations 0");
        assert_eq!(called.code, 1, "{called:?}");
        assert!(called.stdout.contains(verdict), "{called:?}");
        let json = scratch.call("check few.lst --lft out/lfts.txt --json").json(1);
        assert_eq!(json["reachability"]["without_lid"], hosts);
    }
}

#[test]
fn a_credit_loop_is_bad_news_and_datelines_cure_it() {
    let scratch = Scratch::new("credit-loop");
    let called = scratch.call("check ring:6x1 --engine min-hop");
    assert_eq!(called.code, 1);
    assert!(called.stdout.contains("deadlock     credit loop of 6 channels"), "{called:?}");
    let json = scratch.call("check ring:6x1 --engine min-hop --json").json(1);
    assert_eq!(json["credit_loop"]["cycle"].as_array().unwrap().len(), 6);
    let cured = scratch.call("check ring:6x1 --engine dor --json").json(0);
    assert_eq!(cured["credit_loop"]["cycle"], serde_json::Value::Null);
    assert_eq!(cured["credit_loop"]["lanes"], 2);
}

#[test]
fn tables_with_lanes_and_levels_read_back_are_as_sane_as_they_were() {
    let scratch = Scratch::new("lanes-back");
    scratch.call("fabric build ring:6x1 -o t.topo").text();
    scratch.call("route t.topo --engine dor -o out").text();
    let back = "check out/opensm-subnet.lst --lft out/lfts.txt";
    let whole = format!("{back} --lft out/sl2vl.dump --lft out/psl.txt --json");
    let [ours, read] = ["check t.topo --engine dor --json", &whole].map(|line| {
        let found = scratch.call(line).json(0);
        (found["credit_loop"].clone(), found["reachability"].clone())
    });
    assert_eq!(read, ours);
    // Without lanes and levels the same tables can deadlock, and that is told.
    let bare = scratch.call(&format!("{back} --json")).json(1);
    assert!(bare["credit_loop"]["cycle"].is_array(), "{bare}");
}

#[test]
fn seeds_choose_the_random_permutations() {
    let scratch = Scratch::new("permutations");
    let mean = |seed: u32| {
        let line = format!("check fat-tree:648 --engine fat-tree --seed {seed} --json");
        let json = scratch.call(&line).json(0);
        assert_eq!(json["balance"]["shifts"]["measured"], 647);
        assert_eq!(json["balance"]["shifts"]["worst"], 1);
        json["balance"]["bisection"]["mean_share"].as_f64().unwrap()
    };
    assert!((mean(1) - mean(1)).abs() < 1e-12);
    assert!((mean(1) - mean(2)).abs() > 1e-6);
}

#[test]
fn an_interrupted_check_ends_with_the_code_that_says_so() {
    let scratch = Scratch::new("check-interrupted");
    let words =
        ["check", "fat-tree:3456", "--engine", "min-hop", "--random-permutations", "1000000"];
    let (called, _) = scratch.interrupted(&words);
    assert_eq!((called.code, called.stdout.as_str()), (4, ""), "{called:?}");
    assert_eq!(scratch.names(), [] as [&str; 0]);
}
