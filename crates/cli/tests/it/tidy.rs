//! Style, executed: sizes, the arrows between crates, words that do not belong, licences.
//!
//! What clippy can say is said in `clippy.toml` and the workspace's `Cargo.toml`; here is the rest.

mod licences;
mod rooms;
mod source;
mod tree;

use source::{Source, blank_rust};
use std::collections::BTreeSet;

/// Which crates a crate may use: the map of ARCHITECTURE.md.
const ARROWS: &[(&str, &[&str])] = &[
    ("ib", &[]),
    ("capture", &["ib"]),
    ("fabric", &["ib"]),
    ("subnet", &["fabric", "ib"]),
    ("workload", &["ib"]),
    ("congestion", &["ib"]),
    ("ranks", &["ib", "workload"]),
    ("sim", &["congestion", "fabric", "ib", "ranks", "subnet", "workload"]),
    ("flow", &["fabric", "ib", "ranks", "sim", "subnet", "workload"]),
    ("lab", &["capture", "congestion", "fabric", "flow", "ib", "sim", "subnet", "workload"]),
    ("deploy", &["fabric", "ib", "subnet"]),
    ("diagnose", &["fabric", "ib", "lab", "subnet"]),
    ("observe", &["capture", "ib", "lab"]),
    ("opensm", &["fabric", "ib", "subnet"]),
    ("traffic", &["congestion", "ib", "lab", "workload"]),
    (
        "cli",
        &[
            "capture",
            "congestion",
            "deploy",
            "diagnose",
            "fabric",
            "ib",
            "lab",
            "observe",
            "sim",
            "subnet",
            "traffic",
            "workload",
        ],
    ),
    ("bench", &["capture", "congestion", "fabric", "ib", "sim", "subnet", "workload"]),
];

/// Crates without I/O, clock or globals: everything below `lab`.
const CORE: &[&str] =
    &["ib", "capture", "fabric", "subnet", "workload", "ranks", "congestion", "sim", "flow"];

const FILE_LINES: usize = 800;
const FUNCTION_LINES: usize = 70;
const COLUMNS: usize = 100;

/// Words that say that something is not finished. Put together here so that this file passes.
const UNFINISHED: &[&str] = &[
    concat!("todo", "!"),
    concat!("unimplemented", "!"),
    concat!("FIX", "ME"),
    concat!("X", "XX"),
    concat!("TO", "DO"),
    concat!("#[", "ignore]"),
];

/// What a core crate must not do outside its tests, and what it does instead.
const IMPURE: &[(&str, &str)] = &[
    ("println!", "return the text"),
    ("print!", "return the text"),
    ("process::exit", "return an error"),
    ("Instant::now", "take the time as an argument"),
    ("SystemTime::now", "take the time as an argument"),
    ("fs::", "take &str, BufRead or Write"),
    ("File::", "take &str, BufRead or Write"),
    ("env::", "take a parameter"),
    ("static mut", "pass the state"),
    ("thread_local!", "pass the state"),
];

/// Reason that a test gives which `cargo test` leaves out: its target of make, and its seconds.
const LONG: &str = concat!("#[", "ignore = \"make test-long: ");

/// Fails with one line per finding.
fn assert_none(what: &str, findings: &[String]) {
    assert!(findings.is_empty(), "{what}:\n  {}", findings.join("\n  "));
}

/// The lines of a text that hold `word` as a word of its own, numbered from 1.
fn lines_with<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.lines().enumerate().filter_map(move |(index, line)| {
        let found = line.match_indices(word).any(|(at, _)| {
            let before = line[..at].chars().next_back().is_some_and(part);
            let after = line[at + word.len()..].chars().next().is_some_and(part);
            let glued_before = before && word.starts_with(part);
            let glued_after = after && word.ends_with(part);
            !glued_before && !glued_after
        });
        found.then_some(index + 1)
    })
}

#[test]
fn files_are_short() {
    let long = |s: &Source| s.text.lines().count() >= FILE_LINES;
    let findings: Vec<_> = source::all()
        .iter()
        .filter(|s| long(s))
        .map(|s| format!("{}: {} lines; split it by noun", s.path, s.text.lines().count()))
        .collect();
    assert_none("files of 800 lines or more", &findings);
}

#[test]
fn functions_are_short() {
    let mut findings = Vec::new();
    for source in source::all() {
        for (name, line, length) in source.functions() {
            if length >= FUNCTION_LINES {
                findings.push(format!("{}:{line}: {name} has {length} lines", source.path));
            }
        }
    }
    assert_none("functions of 70 lines or more", &findings);
}

#[test]
fn lines_are_narrow() {
    let mut findings = Vec::new();
    for source in source::all() {
        for (index, line) in source.text.lines().enumerate() {
            let columns = line.chars().count();
            if columns > COLUMNS {
                findings.push(format!("{}:{}: {columns} columns", source.path, index + 1));
            }
        }
    }
    assert_none("lines over 100 columns", &findings);
}

#[test]
fn nothing_is_left_unfinished() {
    let mut findings = Vec::new();
    for source in source::all() {
        for word in UNFINISHED {
            for line in lines_with(&source.text, word) {
                findings.push(format!("{}:{line}: {word}", source.path));
            }
        }
    }
    assert_none("unfinished work", &findings);
}

#[test]
fn tests_that_are_left_out_are_long() {
    let mut findings = Vec::new();
    for source in source::all() {
        for (index, line) in source.text.lines().enumerate() {
            if line.contains(concat!("#[", "ignore = ")) && !line.contains(LONG) {
                findings.push(format!("{}:{}: {}", source.path, index + 1, line.trim()));
            }
        }
    }
    assert_none("tests that no target of make runs", &findings);
}

#[test]
fn core_crates_are_pure() {
    let mut findings = Vec::new();
    let sources = source::all();
    for name in CORE {
        let folder = format!("crates/{name}/src/");
        let of_crate: Vec<_> = sources.iter().filter(|s| s.path.starts_with(&folder)).collect();
        assert!(!of_crate.is_empty(), "no sources in {folder}");
        for source in of_crate {
            let code = blank_rust(&source.text);
            for (word, remedy) in IMPURE {
                for line in lines_with(source::before_tests(&code), word) {
                    findings.push(format!("{}:{line}: {word}; {remedy}", source.path));
                }
            }
        }
    }
    assert_none("I/O, clocks or globals below lab", &findings);
}

#[test]
fn crates_use_only_what_lies_below() {
    let mut findings = Vec::new();
    let crates = tree::crates();
    let mapped: BTreeSet<_> = ARROWS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let present: BTreeSet<_> = crates.iter().map(|c| c.folder.clone()).collect();
    assert_eq!(present, mapped, "crates/ on the left, the map of ARCHITECTURE.md on the right");
    for (name, allowed) in ARROWS {
        let found = crates.iter().find(|c| c.folder == *name).expect("compared above");
        for used in &found.uses {
            if !allowed.contains(&used.as_str()) {
                findings.push(format!("crates/{name}/Cargo.toml: must not use {used}"));
            }
        }
    }
    assert_none("arrows that point upwards", &findings);
}

/// Targets of readers build without the engine.
#[test]
fn readers_are_fuzzed_without_the_engine() {
    let (crates, mut used) = (tree::crates(), BTreeSet::new());
    let mut more = tree::read_crate("fuzz/readers/Cargo.toml").uses;
    assert!(more.contains(&"fabric".to_owned()), "{more:?}");
    while let Some(name) = more.pop() {
        let found = crates.iter().find(|c| c.folder == name).expect("a crate of the workspace");
        if used.insert(name) {
            more.extend(found.uses.iter().cloned());
        }
    }
    assert!(!used.contains("sim") && !used.contains("lab"), "fuzz/readers links {used:?}");
}

#[test]
fn rooms_of_the_simulator_and_the_lab_call_downwards_only() {
    assert_none("imports that point upwards", &rooms::upward());
}

/// Every instance of the simulator costs seconds of every build: crates/sim/src/instances.rs lists
/// them all, a test there counts them, and nothing else may make one.
#[test]
fn the_simulator_is_instantiated_by_its_list_alone() {
    let makes = [
        ("Model for", "crates/sim/src/instances.rs"),
        ("Windows::<", "crates/sim/src/builder.rs"),
        ("Windows::new", "crates/sim/src/builder.rs"),
        ("Partition::new", "crates/sim/src/builder.rs"),
        (".build::<", "crates/sim/src/instances.rs"),
    ];
    let (mut findings, mut found) = (Vec::new(), BTreeSet::new());
    for source in source::all().iter().filter(|s| s.path.starts_with("crates/sim/")) {
        let code = blank_rust(&source.text);
        for (word, place) in makes {
            for line in lines_with(&code, word) {
                match source.path == place {
                    true => _ = found.insert(place),
                    false => findings
                        .push(format!("{}:{line}: {word}; add a line to {place}", source.path)),
                }
            }
        }
    }
    assert_none("instances beside the list", &findings);
    assert_eq!(found.len(), 2, "the list and its builder are where they were");
}

#[test]
fn every_crate_takes_the_workspace_lints() {
    let unlinted = tree::crates().into_iter().filter(|c| !c.workspace_lints);
    let findings: Vec<_> = unlinted.map(|c| format!("crates/{}/Cargo.toml", c.folder)).collect();
    assert_none("manifests without `[lints] workspace = true`", &findings);
}

#[test]
fn every_crate_dependency_may_be_passed_on() {
    assert_none("crates under licences not in the list", &licences::of_crates());
}

#[test]
fn every_page_dependency_may_be_passed_on() {
    assert_none("npm packages under licences not in the list", &licences::of_page());
}

#[test]
fn words_are_found_as_words() {
    let found = |text: &str, word: &str| lines_with(text, word).collect::<Vec<_>>();
    assert_eq!(found("a\n  println!(1)\n", "println!"), [2]);
    assert_eq!(found("eprintln!(1)", "println!"), [] as [usize; 0]);
    assert_eq!(found("use std::fs::File;", "fs::"), [1]);
    assert_eq!(found("xfs::y", "fs::"), [] as [usize; 0]);
    assert_eq!(found("Instant::nowhere", "Instant::now"), [] as [usize; 0]);
}
