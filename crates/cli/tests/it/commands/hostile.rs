//! Texts and files that mean no good: escapes for the terminal, marks, files without an end.

use super::binary::{Called, Scratch};
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// `\u001b` and its like are escapes of TOML.
const HOSTILE: &str = r#"schema = 1
name = "star"
summary = "\u001b]0;x\u0007 \u202egpj.exe \u009b31m two\nlines"
fabric = { build = "star:4" }
subnet = { engine = "min-hop" }
sim = { preset = "qdr" }
run = { duration = "20 us" }
[[traffic]]
name = "all"
class = "background"
pattern = { kind = "uniform" }
load = 0.3
size = "2 KiB"
[[variant]]
name = "a\u2066[31mb"
summary = "\u001b[2J"
[[variant]]
name = "c"
[[published]]
name = "row \u200b"
unit = "\u001b[1m"
published = "\u001b[3m5"
note = "\ufeff\u2069"
measure = { kind = "delivered-load" }
[sweep]
traffic.load = [0.1, 0.2]
"#;

/// What must not reach a terminal.
fn acts(c: char) -> bool {
    let hidden = ['\u{200b}', '\u{202e}', '\u{2066}', '\u{2069}', '\u{feff}'];
    (c.is_control() && !"\n\t".contains(c)) || hidden.contains(&c)
}

fn assert_harmless(called: &Called) {
    assert!(!called.stdout.contains(acts) && !called.stderr.contains(acts), "{called:?}");
}

#[test]
fn nothing_from_a_file_or_an_argument_acts_on_a_terminal() {
    let scratch = Scratch::new("hostile-texts");
    scratch.write("star.toml", HOSTILE);
    let out = "o\u{1b}[31m\u{202e}x";
    for command in ["run", "compare", "sweep"] {
        let called = scratch.call_words(&[command, "star.toml", "--out", out, "--force"]);
        assert_eq!(called.code, 0, "{called:?}");
        assert_harmless(&called);
        assert!(called.stdout.contains("\\u001b]0;x\\u0007 \\u202egpj.exe"), "{called:?}");
        assert!(called.stdout.contains("report: o\\u001b[31m\\u202ex/report.html"), "{called:?}");
        let page = fs::read_to_string(scratch.path(out).join("report.html")).unwrap();
        let data = page.split("\"clearlane-report/1\"").nth(1).unwrap();
        let data = data.split("</script>").next().unwrap();
        assert!(!data.contains(acts), "a page of {command}");
        assert!(data.contains("\\\\u202egpj.exe"), "a page of {command}");
        fs::remove_dir_all(scratch.path(out)).unwrap();
    }
    for words in [
        &["run", "star.toml", "--dry-run"][..],
        &["run", "\u{202e}lmot.x", "--out", "x"],
        &["fabric", "show", "\u{1b}[31m.topo"],
        &["fabric", "show", "\u{9b}31m\u{feff}"],
        &["explain", "\u{1b}]0;x\u{7}"],
        &["check", "star:4", "--engine", "\u{2066}min-hop"],
        &["\u{1b}[31m"],
    ] {
        assert_harmless(&scratch.call_words(words));
    }
    // In JSON the texts are what they were.
    let json = scratch.call("run star.toml --out out --json");
    assert_harmless(&json);
    let json = json.json(0);
    assert_eq!(json["variants"][0]["name"], "a\u{2066}[31mb", "{json}");
}

#[test]
fn tables_line_up_whatever_the_names_hold() {
    let scratch = Scratch::new("hostile-table");
    scratch.write("star.toml", HOSTILE);
    let text = scratch.call("run star.toml --out out").stdout;
    let rows: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("variant")).collect();
    let line = |name: &str| rows.iter().find(|line| line.starts_with(name)).unwrap();
    let [long, short] = ["a\\u2066[31mb  ", "c  "].map(line);
    assert_eq!(long.chars().count(), short.chars().count(), "{text}");
}

#[test]
fn names_of_hosts_do_not_act_on_a_terminal() {
    let scratch = Scratch::new("hostile-hosts");
    scratch.call("fabric build star:3 -o t.topo").text();
    let text = scratch.read("t.topo").replace("host0001", "\u{202e}\u{1b}[31mh");
    scratch.write("t.topo", &text);
    let line = "check t.topo --engine min-hop";
    for line in [line, &format!("{line} --json"), "fabric show t.topo", "fabric show t.topo --all"]
    {
        assert_harmless(&scratch.call(line));
    }
}

#[test]
fn a_byte_order_mark_is_taken_by_every_reader() {
    let scratch = Scratch::new("marks");
    scratch.call("fabric build leaf-spine:leaves=2,hosts=2,spines=1 -o t.topo").text();
    scratch.call("route t.topo --engine min-hop -o out").text();
    let plain = HOSTILE.replace("build = \"star:4\"", "file = \"t.topo\"");
    let plain = plain.replace("engine = \"min-hop\"", "engine = \"file\"");
    scratch.write("site.toml", &plain);
    for name in [
        "t.topo",
        "site.toml",
        "out/lfts.txt",
        "out/opensm.fdbs",
        "out/psl.txt",
        "out/sl2vl.dump",
        "out/opensm-subnet.lst",
    ] {
        scratch.write(name, &format!("\u{feff}{}", scratch.read(name)));
    }
    scratch.call("fabric show t.topo").text();
    scratch.call("fabric show out/opensm-subnet.lst").text();
    for tables in ["out/lfts.txt", "out/opensm.fdbs"] {
        let line = format!("check out/opensm-subnet.lst --lft {tables} --lft out/sl2vl.dump");
        scratch.call(&format!("{line} --lft out/psl.txt")).text();
    }
    let line = "run site.toml --out run --fabric out/opensm-subnet.lst --lft out/lfts.txt";
    let called = scratch.call(line);
    assert_eq!(called.code, 0, "{called:?}");
}

#[expect(clippy::disallowed_methods, reason = "that it is told soon is what is tested")]
fn now() -> Instant {
    Instant::now()
}

#[test]
fn files_without_an_end_are_given_up_soon() {
    let scratch = Scratch::new("endless");
    scratch.write("star.toml", HOSTILE);
    let begun = now();
    for device in ["/dev/zero", "/dev/urandom"] {
        let read =
            format!("cannot read {device}: is not a text in UTF-8; give the tool's text output");
        assert_eq!(scratch.call(&format!("fabric show {device}")).failure(2), read);
        let lft = format!("check star:4 --lft {device}");
        assert_eq!(scratch.call(&lft).failure(2), read);
        let line = format!("run {device} --out out");
        let told = format!("{device}: is not a text in UTF-8; check the path");
        assert_eq!(scratch.call(&line).failure(2), told);
        let line = format!("run star.toml --out out --fabric {device}");
        assert!(scratch.call(&line).failure(2).contains(&told));
    }
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    let script = format!("yes | {} run /dev/stdin --out out", env!("CARGO_BIN_EXE_clearlane"));
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(scratch.path("")).stdin(Stdio::null());
    let piped = Called::from(command.output().unwrap(), "yes | clearlane run");
    let told = "/dev/stdin: is larger than the 4 MiB that are read; check the path";
    assert_eq!(piped.failure(2), told);
}

#[test]
fn an_empty_name_is_told_as_one() {
    let scratch = Scratch::new("nameless");
    for words in [
        &["run", "", "--out", "x"][..],
        &["run", "a.toml", "--out", ""],
        &["run", "a.toml", "--fabric", ""],
        &["sweep", "a.toml", "--lft", ""],
        &["fabric", "show", ""],
        &["check", "", "--engine", "min-hop"],
        &["check", "star:4", "--lft", ""],
        &["route", "star:4", "--engine", "min-hop", "-o", ""],
    ] {
        let called = scratch.call_words(words);
        let said = called.failure(2);
        let named =
            said.contains("name of the fabric is empty") || said.contains("value is required");
        assert!(named, "{words:?}: {said}");
    }
}
