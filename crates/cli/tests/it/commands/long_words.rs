//! A word without an end, wherever a file or the command line has a word: what is said of it stays
//! short.

use super::binary::{Called, Scratch, uniform};
use std::fs;

/// One error, with the sentence around what it quotes.
const ERROR_BYTES_MAX: usize = 4096;
/// Bytes by which an answer may be longer than that to the whole file: some rows have a name of 255
/// letters.
const MORE_BYTES_MAX: usize = 64 << 10;
/// Longer than what any file is quoted with, and soon read.
const LONG: usize = 200_000;
/// The longest that is tried, once a file; an experiment may have 4 MiB.
const ENDLESS: usize = 10 << 20;
const ENDLESS_OF_EXPERIMENT: usize = 3 << 20;
/// The longest argument of a program is 128 KiB.
const ARGUMENT: usize = 100_000;
/// Places of a file that are tried.
const PLACES: usize = 24;

const TRACE: &str = "num_ranks 2
rank 0 {
l1: calc 100
l2: send 5000b to 1 tag 4
l2 requires l1
}
rank 1 {
l1: recv 5000b from 0 tag 4
}
";

const POLICY: &str = "ca_config_start
  group: ALL_CAS
  rpg_gd: 12
  speed: 3
ca_config_end
profiles_config_start
  name: Set
  profile_start
    name: p
    mode: rcm
  profile_end
profiles_config_end
odd_config_start
  a: b
odd_config_end
";

const LINKS: &str = "CA: node1 HCA-1:
      0x0002c90300000101      7    1[  ] ==( 4X          10.0 Gbps Active/  LinkUp)==>       \
1    1[  ] \"leaf01\" (Could be 12X )
Switch: 0x0002c90200000001 leaf01:
           1    1[  ] ==( 4X          10.0 Gbps Active/  LinkUp)==>       7    1[  ] \
\"node1 HCA-1\" (Could be 12X )
";

/// A link to a host that is busy for nine tenths of a second, and one that is not.
const COUNTERS: &str = "Data Counters for 0x0ac1ea5100000000 \"leaf00\"
   GUID 0x0ac1ea5100000000 port 1: [PortRcvPkts == 3 (3.000)] [PortXmitData == 900000000 (3.353GB)]
   GUID 0x0ac1ea5100000000 port 2: [PortXmitData == 1000 (3.906KB)]
";

const QOS: &str = "qos-ulps
    default : 0
    sdp : 1
end-qos-ulps
";

/// Files of every kind that is read, and what reads them.
const READ: &[(&str, &str)] = &[
    ("t.topo", "fabric show t.topo --all"),
    ("t.topo", "check t.topo --engine min-hop"),
    ("t.topo", "diagnose t.topo --lft out/lfts.txt --facts"),
    ("ports.txt", "fabric show ports.txt"),
    ("links.txt", "fabric show links.txt --all"),
    ("out/opensm-subnet.lst", "fabric show out/opensm-subnet.lst --all"),
    ("names.map", "fabric show t.topo --node-name-map names.map --all"),
    ("out/lfts.txt", "check t.topo --lft out/lfts.txt"),
    ("out/opensm.fdbs", "check out/opensm-subnet.lst --lft out/opensm.fdbs"),
    ("out/sl2vl.dump", "check t.topo --lft out/lfts.txt --lft out/sl2vl.dump"),
    ("out/psl.txt", "check t.topo --lft out/lfts.txt --lft out/psl.txt"),
    ("out/path-groups.txt", "check t.topo --lft out/lfts.txt --lft out/path-groups.txt"),
    ("plain.toml", "run plain.toml --dry-run"),
    ("plain.toml", "run plain.toml --out again --force"),
    ("m.matrix", "run matrix.toml --out again --force"),
    ("t.goal", "run trace.toml --out again --force"),
    ("policy.conf", "control --policy policy.conf"),
    ("policy.conf", "control --policy policy.conf --json"),
    ("policy.toml", "control policy.toml -o -"),
    ("hosts.txt", "capture c.pcapng --names hosts.txt"),
    ("hosts.txt", "capture c.pcapng --names hosts.txt --json"),
    (
        "counters.txt",
        "check t.topo --engine min-hop --lane-policy by-class --hot-counters counters.txt \
         --hot-seconds 1",
    ),
    (
        "opensm.conf",
        "deploy t.topo --engine up-down --lane-policy vftree --lanes 4 --opensm-conf \
         opensm.conf -o deployed --force",
    ),
    (
        "qos.conf",
        "deploy t.topo --engine up-down --lane-policy vftree --lanes 4 --qos-policy qos.conf \
         -o deployed --force",
    ),
    (
        "partitions.conf",
        "deploy t.topo --engine up-down --lane-policy vftree --lanes 4 --partitions \
         partitions.conf -o deployed --force",
    ),
];

/// Writes those files.
fn site(scratch: &Scratch) {
    scratch.call("fabric build leaf-spine:leaves=2,hosts=2,spines=1 -o t.topo").text();
    scratch.call("route t.topo --engine min-hop -o out").text();
    let site = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/site/site.ibnetdiscover-p");
    fs::copy(site, scratch.path("ports.txt")).unwrap();
    let plain = uniform("plain", "star:4", "min-hop", "10 us");
    let with = |name: &str, from: &str, to: &str| {
        assert!(plain.contains(from), "{from}");
        scratch.write(name, &plain.replace(from, to));
    };
    let pattern = "pattern = { kind = \"uniform\" }";
    with("plain.toml", pattern, pattern);
    let load = "load = 0.3\nsize = \"2 KiB\"\n";
    with("matrix.toml", pattern, "pattern = { kind = \"matrix\", file = \"m.matrix\" }");
    let program = "senders = { hosts = [0, 1] }\nprogram = { kind = \"trace\", file = \"t.goal\" }";
    with("trace.toml", &format!("{pattern}\n{load}"), &format!("{program}\n"));
    let control = "control = { when = \"dcqcn\", dcqcn = { policy = \"policy.conf\" } }\n";
    with("policy.toml", "[[traffic]]", &format!("{control}[[traffic]]"));
    for (name, text) in [
        ("m.matrix", "# source destination load\n0 1 0.3\n2 3 0.6\n"),
        ("t.goal", TRACE),
        ("policy.conf", POLICY),
        ("links.txt", LINKS),
        ("counters.txt", COUNTERS),
        ("names.map", "0x0ac1ea5100000000 \"leaf zero\"\n0x0ac1ea5100000100 \"other\"\n"),
        ("hosts.txt", "1 h1\n2 \"h2 HCA-1\"\n10.0.0.1 h3\n"),
        ("opensm.conf", "# OpenSM\nrouting_engine updn\nqos TRUE\nmax_op_vls 5\n"),
        ("qos.conf", QOS),
        ("partitions.conf", "Default=0x7fff, ipoib: ALL=full;\n"),
    ] {
        scratch.write(name, text);
    }
    let capture = "run plain.toml --out run --capture host0000";
    let called = scratch.call(capture);
    assert_eq!(called.code, 0, "{called:?}");
    let mut written =
        fs::read_dir(scratch.path("run")).unwrap().flatten().map(|entry| entry.path());
    let pcap = written.find(|path| path.extension().is_some_and(|end| end == "pcapng"));
    fs::copy(pcap.expect("a capture"), scratch.path("c.pcapng")).unwrap();
}

/// Places of words in a text: some of every kind of line, spread over all of it.
fn places(text: &str) -> Vec<(usize, usize)> {
    let is_word = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    let mut all = Vec::new();
    let mut begun = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (begun, is_word(c)) {
            (None, true) => begun = Some(at),
            (Some(from), false) => {
                all.push((from, at));
                begun = None;
            }
            _ => {}
        }
    }
    let step = all.len().div_ceil(PLACES).max(1);
    all.into_iter().step_by(step).collect()
}

fn assert_short(called: &Called, whole: &Called, what: &str) {
    let (out, told) = (&called.stdout, &called.stderr);
    assert!((0..=3).contains(&called.code), "{what}: {}", short(told));
    let longest = told.lines().map(str::len).max().unwrap_or(0);
    assert!(longest <= ERROR_BYTES_MAX, "{what}: a line of {longest} bytes: {}", short(told));
    let most = whole.stdout.len() + whole.stderr.len() + MORE_BYTES_MAX;
    let bytes = out.len() + told.len();
    assert!(bytes <= most, "{what}: {bytes} bytes, {} on stdout: {}", out.len(), short(out));
    if called.code == 2 {
        assert!(out.is_empty() && told.len() <= ERROR_BYTES_MAX, "{what}: {}", short(told));
    }
}

fn short(text: &str) -> String {
    text.chars().take(400).collect()
}

#[test]
fn a_word_without_an_end_in_a_file_is_told_shortly() {
    let scratch = Scratch::new("long-words");
    site(&scratch);
    for (file, line) in READ {
        let text = scratch.read(file);
        let whole = scratch.call(line);
        assert!(whole.code <= 1, "{line}: {whole:?}");
        let endless = if file.ends_with(".toml") { ENDLESS_OF_EXPERIMENT } else { ENDLESS };
        let places = places(&text);
        for (number, (from, to)) in places.iter().enumerate() {
            // Instead of the word and behind it, in turn; once as long as can be.
            let length = if number == places.len() / 2 { endless } else { LONG };
            let cut = if number % 2 == 0 { *from } else { *to };
            let long = [&text[..cut], &"w".repeat(length), &text[*to..]].concat();
            scratch.write(file, &long);
            let what = format!("{line}: byte {from} of {file}, {:?}", &text[*from..*to]);
            assert_short(&scratch.call(line), &whole, &what);
        }
        // A whole line, and a text that is nothing else.
        for long in [format!("{text}{}\n", "w".repeat(LONG)), "w".repeat(endless)] {
            scratch.write(file, &long);
            assert_short(&scratch.call(line), &whole, &format!("{line}: a line of {file}"));
        }
        scratch.write(file, &text);
    }
}

/// Calls with a long word where a command or a flag stands.
const UNREAD: &[&str] = &["LONG", "fabric LONG", "traffic LONG", "--LONG", "run --LONG"];

/// Words of the message for a command line with an unknown word, or without a word that it needs.
/// No word of the line is read then.
const SAID_OF_UNREAD: &[&str] =
    &["unrecognized subcommand", "unexpected argument", "arguments were not provided"];

/// Calls with a long word that is read: a name, a number, a path or a key.
const CALLS: &[&str] = &[
    "explain LONG",
    "list LONG",
    "completions LONG",
    "fabric show LONG",
    "fabric show star:LONG",
    "fabric show star:hosts=LONG",
    "fabric show torus:4x4,LONG=1",
    "fabric build LONG -o x",
    "fabric build star:4 -o LONG",
    "fabric convert t.topo -o x --format LONG",
    "fabric cut t.topo LONG -o x",
    "fabric cut t.topo --random LONG -o x",
    "fabric cut t.topo leaf00[1] --degrade LONG -o x",
    "fabric anonymize t.topo -o LONG",
    "check t.topo --engine LONG",
    "check t.topo --lft LONG",
    "check t.topo --engine up-down --root LONG",
    "check t.topo --engine min-hop --lmc LONG",
    "check t.topo --engine min-hop --shifts LONG",
    "check t.topo --engine min-hop --lane-policy LONG",
    "check t.topo --engine min-hop --lane-policy by-class --hot LONG",
    "check t.topo --engine min-hop --lane-policy vftree --link-lanes LONG",
    "check t.topo --engine min-hop --lane-policy vftree --link-lanes LONG=2",
    "check t.topo --engine min-hop --lane-policy by-class --hot-counters counters.txt \
     --hot-seconds LONG",
    "route t.topo --engine min-hop -o LONG",
    "run LONG",
    "run plain.toml --out LONG",
    "run plain.toml --fabric LONG --out x",
    "run plain.toml --seed LONG",
    "run plain.toml --capture LONG --out x",
    "run plain.toml --capture host0000:LONG --out x",
    "run plain.toml --checkpoint-every LONG",
    "compare plain.toml --variants LONG --dry-run",
    "sweep plain.toml --variants LONG --over traffic.load=0.1,0.2 --dry-run",
    "sweep plain.toml --over LONG --dry-run",
    "sweep plain.toml --over LONG=1,2 --dry-run",
    "sweep plain.toml --over traffic.load=LONG --dry-run",
    "sweep plain.toml --over traffic.load=0.1..LONG:3 --dry-run",
    "sweep plain.toml --over traffic.LONG.load=0.1,0.2 --dry-run",
    "sweep plain.toml --over subnet.engine=LONG --dry-run",
    "resume LONG",
    "control plain.toml --variant LONG -o x",
    "control --policy LONG",
    "capture LONG",
    "capture c.pcapng --names LONG",
    "capture c.pcapng --from LONG",
    "compare LONG",
    "compare LONG LONG",
    "compare run --variants LONG",
    "tune pacing trace.toml --group LONG",
    "calibrate LONG --over traffic.load=0.1,0.2 --unseen traffic.load=0.3",
    "calibrate trace.toml --over LONG --unseen traffic.load=0.3",
    "deploy t.topo --engine up-down --clients LONG -o x",
    "deploy t.topo --engine up-down --opensm-folder LONG -o x",
    "diagnose t.topo --lft out/lfts.txt --hot LONG",
    "diagnose LONG",
    "traffic init --dir LONG",
    "traffic init --name LONG",
    "traffic run LONG",
    "traffic status --dir LONG",
    "traffic agent --dir LONG",
];

#[test]
fn a_word_without_an_end_on_the_command_line_is_told_shortly() {
    let scratch = Scratch::new("long-arguments");
    site(&scratch);
    let long = "w".repeat(ARGUMENT);
    let mut fewest = usize::MAX;
    for line in UNREAD.iter().chain(CALLS) {
        let words: Vec<String> =
            line.split_whitespace().map(|word| word.replace("LONG", &long)).collect();
        let called = scratch.call_words(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let (out, told) = (called.stdout.len(), called.stderr.len());
        fewest = fewest.min(called.code as usize);
        assert!(
            called.code != 0 && out == 0 && told <= ERROR_BYTES_MAX,
            "{line}: {out} and {told}"
        );
        let said = called.stderr.lines().count();
        assert_eq!(said, 1, "{line}: {}", short(&called.stderr));
        // A call whose command or flag is gone ends before its word is read.
        let is_unread = SAID_OF_UNREAD.iter().any(|text| called.stderr.contains(text));
        assert_eq!(is_unread, UNREAD.contains(line), "{line}: {}", short(&called.stderr));
    }
    assert!(fewest >= 2, "all are refused");
}
