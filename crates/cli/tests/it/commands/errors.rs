//! What goes wrong is told on one line, and nothing is left half-written.

use super::binary::{Called, Scratch};
use std::process::Stdio;

#[test]
fn files_that_are_not_there_or_not_text_are_named() {
    let scratch = Scratch::new("missing");
    std::fs::create_dir(scratch.path("folder")).unwrap();
    std::fs::write(scratch.path("bytes"), [0x80, 0xff, 0x00]).unwrap();
    let failure = |name: &str| scratch.call(&format!("fabric show {name}")).failure(2).to_owned();
    assert_eq!(
        failure("none.topo"),
        "cannot read none.topo: no such file or folder; check the path"
    );
    assert_eq!(failure("folder"), "cannot read folder: is a folder; name a file");
    assert_eq!(
        failure("bytes"),
        "cannot read bytes: is not a text in UTF-8; give the tool's text output"
    );
}

#[test]
fn a_truncated_file_is_refused_with_its_line() {
    let scratch = Scratch::new("truncated");
    scratch.call("fabric build torus:3x3 -o whole.topo").text();
    let whole = scratch.read("whole.topo");
    scratch.write("half.topo", &whole[..whole.len() / 2]);
    let called = scratch.call("fabric cut half.topo --random 1 -o cut.topo");
    assert!(called.failure(2).starts_with("half.topo:"), "{called:?}");
    assert!(called.failure(2).contains("cut off"), "{called:?}");
    assert_eq!(scratch.names(), ["half.topo", "whole.topo"]);
}

#[test]
fn wrong_values_say_what_would_do() {
    let scratch = Scratch::new("values");
    let failure = |line: &str| scratch.call(line).failure(2).to_owned();
    assert!(failure("fabric build tours:4x4 -o t").contains("did you mean \"torus\"?"));
    assert!(failure("fabric build torus:4x4,host=2 -o t").contains("did you mean \"hosts\"?"));
    assert!(failure("fabric cut star:4 leaf00[1] --degrade 4xSRD -o t").contains("SDR, DDR"));
    assert!(
        failure("fabric cut star:4 leaf00[1] --seed 1 -o t")
            .contains("cannot be used with '--seed <S>'")
    );
    assert!(failure("fabric cut star:4 --random many -o t").contains("'many'"));
    assert!(failure("fabric cut star:4 -o t").contains("<NAME>"));
    assert_eq!(scratch.names(), [] as [&str; 0]);
}

#[test]
fn a_bare_name_that_is_nothing_is_answered_with_the_topologies() {
    let scratch = Scratch::new("bare");
    let called = scratch.call("fabric show tours");
    let line = called.failure(2);
    assert!(line.starts_with("tours is neither a file nor a topology; did you mean torus?"));
    assert!(line.contains("known are star, chain"), "{line}");
}

#[test]
fn as_json_too_an_error_is_one_plain_line_on_stderr() {
    let scratch = Scratch::new("json-errors");
    for (line, code) in [
        ("fabric show none.topo --json", 2),
        ("run none.toml --json", 2),
        ("list engnies --json", 2),
        ("fabric build star:4 -o no/such/folder.topo --json", 5),
    ] {
        // No text on stdout, one line on stderr.
        assert!(!scratch.call(line).failure(code).starts_with('{'), "{line}");
    }
}

#[test]
fn flags_that_mean_nothing_are_refused() {
    let scratch = Scratch::new("flags");
    let failure = |line: &str| scratch.call(line).failure(2).to_owned();
    assert_eq!(
        failure("fabric show star:4 --jobs 2"),
        "--jobs has no effect on `clearlane fabric show`, which takes the cores that it needs; \
         leave it out"
    );
    assert_eq!(
        failure("list --seed 2"),
        "--seed has no effect on `clearlane list`, which uses no random numbers; leave it out"
    );
    let spoken = failure("explain pacing");
    assert!(
        spoken.contains("nothing is named `pacing`; it is spoken of at `nsim-2014`, `traffic.gap`"),
        "{spoken}"
    );
    assert_eq!(failure("explain -"), "nothing is named `-`; see `clearlane list`");
    assert!(failure("explain fat-tre").ends_with("did you mean `fat-tree`?"));
    assert!(failure("explain qdr --dry-run").contains("which writes nothing"));
    assert!(failure("fabric build star:4 --wide -o t").contains("'--wide'"));
}

#[test]
fn what_cannot_be_written_is_not_half_there() {
    let scratch = Scratch::new("unwritable");
    let called = scratch.call("fabric build star:4 -o no/such/folder.topo");
    let told = "cannot write no/such/folder.topo: no such file or folder; make the folder, or name \
                another place";
    assert_eq!(called.failure(5), told);
    std::fs::create_dir(scratch.path("taken")).unwrap();
    let called = scratch.call("fabric build star:4 -o taken");
    assert_eq!(called.failure(5), "cannot write taken: is a folder; name a file");
    assert_eq!(scratch.names(), ["taken"]);
}

#[test]
fn a_full_disk_is_told_and_costs_nothing() {
    let scratch = Scratch::new("full");
    let called = scratch.call("fabric build star:4 -o /dev/full");
    assert_eq!(called.failure(5), "cannot write /dev/full: the disk is full; free some space");
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = scratch.command(&["list", "topologies"]).stdout(full).output().unwrap();
    let called = Called::from(output, "list > /dev/full");
    assert!(called.failure(5).starts_with("cannot write stdout: the disk is full"), "{called:?}");
}

#[test]
fn a_file_is_replaced_only_by_a_whole_one() {
    let scratch = Scratch::new("replaced");
    scratch.call("fabric build star:4 -o star.topo").text();
    let before = scratch.read("star.topo");
    scratch.call("fabric build star:4x -o star.topo").failure(2);
    assert_eq!(scratch.read("star.topo"), before);
    let refused = scratch.call("fabric build star:5 -o star.topo");
    assert_eq!(refused.failure(2), "star.topo is there already; name another file or add --force");
    assert_eq!(scratch.read("star.topo"), before);
    scratch.call("fabric build star:5 -o star.topo --force").text();
    assert_ne!(scratch.read("star.topo"), before);
    assert_eq!(scratch.names(), ["star.topo"]);
}

#[test]
fn a_reader_that_has_heard_enough_is_no_failure() {
    let scratch = Scratch::new("pipe");
    let mut command = scratch.command(&["fabric", "show", "torus:8x8x8", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn a_hostile_file_name_stays_on_one_line() {
    let scratch = Scratch::new("hostile");
    let called = scratch.call_words(&["fabric", "show", "a\nb\u{1b}[31m.topo"]);
    let told = "cannot read a b\\u001b[31m.topo: no such file or folder; check the path";
    assert_eq!(called.failure(2), told);
}
