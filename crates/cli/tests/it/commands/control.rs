//! `control`: an experiment's congestion control as a file for OpenSM.

use super::binary::Scratch;

const HOT: &str = r#"schema = 1
name = "hot"
fabric = { file = "site.topo" }
subnet = { engine = "min-hop" }
sim = { preset = "qdr" }
run = { duration = "300 us" }
[control]
when = "iba-cc"
[control.iba-cc]
preset = "gran-2010"
threshold = 11
[[traffic]]
name = "all"
class = "background"
pattern = { kind = "uniform" }
load = 0.3
size = "2 KiB"
[[variant]]
name = "off"
control.when = "none"
[[variant]]
name = "on"
[[variant]]
name = "rate"
control.when = "dcqcn"
[[variant]]
name = "delay"
control.when = "timely"
[[variant]]
name = "site"
control.when = "dcqcn"
control.dcqcn.policy = "site.conf"
"#;

/// A policy with a key of every kind: of a parameter, without a published meaning, not known.
const POLICY: &str = "\
ca_config_start
  rpg_gd:12 # a quarter
  speed: 3
ca_config_end
switch_config_start
  enable: 1
  aqs_time: 9
switch_config_end
";

fn site(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.call("fabric build leaf-spine:leaves=2,hosts=2,spines=1 -o site.topo").text();
    scratch.write("hot.toml", HOT);
    scratch.write("site.conf", POLICY);
    scratch
}

#[test]
fn the_variant_asked_for_is_written_and_what_cannot_be_is_told() {
    let scratch = site("control");
    let called = scratch.call("control hot.toml --variant on -o cc.conf");
    let mut lines = called.text().lines();
    let first = "cc.conf: congestion control of variant \"on\" for OpenSM";
    assert_eq!(lines.next(), Some(first));
    let told = "  not said: all switches have one victim mask, so it also covers ports that face";
    assert!(lines.next().is_some_and(|line| line.starts_with(told)), "{called:?}");
    let text = scratch.read("cc.conf");
    assert!(text.contains("\ncc_sw_cong_setting_threshold 0x0B\n"), "{text}");
    // Hosts are at ports 1 and 2 of the leaves.
    let mask = format!("\ncc_sw_cong_setting_victim_mask 0x{:064X}\n", 0b110);
    assert!(text.contains(&mask), "{text}");
    let again = scratch.call("control hot.toml --variant on -o cc.conf");
    assert!(again.failure(2).ends_with("or add --force"), "{again:?}");
    let stdout = scratch.call("control hot.toml --variant on -o -");
    assert_eq!(stdout.text(), text);
    let json = scratch.call("control hot.toml --variant on -o cc.conf --force --json").json(0);
    assert_eq!((&json["schema"], &json["variant"]), (&"clearlane-control/1".into(), &"on".into()));
    assert_eq!(json["unsaid"].as_array().map(Vec::len), Some(1), "{json}");
    assert!(scratch.call("control hot.toml --variant on -o - --json").failure(2).contains("-o -"));
}

#[test]
fn a_variant_that_opensm_cannot_have_is_an_error() {
    let scratch = site("control-refused");
    let error = |line: &str| {
        let called = scratch.call(&format!("control hot.toml -o cc.conf {line}"));
        called.failure(2).to_owned()
    };
    assert_eq!(
        error(""),
        "4 variants have congestion control, and a file is for one: name it with --variant \
         (`on`, `rate`, `delay`, `site`)"
    );
    assert!(error("--variant off").starts_with("variant `off` has no congestion control; "));
    assert_eq!(
        error("--variant delay"),
        "variant delay: control.when = \"timely\" cannot be written: OpenSM sets iba-cc, NVIDIA's \
         dcqcn too, and no other mechanism; write when = \"iba-cc\" or \"dcqcn\""
    );
    assert!(error("--variant onn").starts_with("the experiment has no variant `onn`"));
    let input = "name another file";
    let over = |name| scratch.call(&format!("control hot.toml --variant on -o {name} --force"));
    for name in ["hot.toml", "site.topo", "site.conf"] {
        assert!(over(name).failure(2).contains(input), "{name}");
    }
    assert_eq!(scratch.names(), ["hot.toml", "site.conf", "site.topo"]);
    scratch.call("control hot.toml --variant on -o cc.conf --dry-run").text();
    assert_eq!(scratch.names(), ["hot.toml", "site.conf", "site.topo"]);
}

#[test]
fn dcqcn_becomes_a_policy_file_and_one_that_is_there_stays() {
    let scratch = site("control-policy");
    let called = scratch.call("control hot.toml --variant rate -o cc.conf");
    let first = "cc.conf: congestion control of variant \"rate\" for NVIDIA's OpenSM\n  not said: ";
    assert!(called.text().starts_with(first), "{called:?}");
    let text = scratch.read("cc.conf");
    assert!(text.starts_with("# Congestion control (dcqcn) of variant \"rate\""), "{text}");
    assert!(text.contains("\nca_config_start\n    group: ALL_CAS\n"), "{text}");
    assert!(text.contains("\n    rpg_time_reset: 55\n"), "{text}");
    // The paper's first notification halves the rate, and no file says so.
    let told = called.text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("rate_first 0, a first notification that cuts"), "{told}");
    let json = scratch.call("control hot.toml --variant rate -o cc.conf --force --json").json(0);
    assert_eq!(json["variant"], "rate");
    scratch.call("control hot.toml --variant site -o their.conf").text();
    let their = scratch.read("their.conf");
    let blocks: Vec<&str> = their.lines().filter(|line| !line.starts_with('#')).collect();
    let same = POLICY.replace("  rpg_gd:12 # a quarter", "  rpg_gd: 12").replace("  ", "    ");
    let same = same.replace("ca_config_end\n", "ca_config_end\n\n");
    assert_eq!(blocks.join("\n").trim(), same.trim());
}

#[test]
fn a_policy_file_is_explained_key_by_key() {
    let scratch = site("control-explained");
    let called = scratch.call("control --policy site.conf");
    let text = called.text();
    assert!(text.starts_with("site.conf: congestion control policy, 4 settings\n"), "{text}");
    let row = |key: &str| {
        let line = text.lines().find(|line| line.split_whitespace().nth(2) == Some(key));
        line.unwrap_or_else(|| panic!("{key}\n{text}")).split_whitespace().collect::<Vec<_>>()
    };
    assert_eq!(row("rpg_gd"), ["2", "ca_config", "rpg_gd", "12", "log2", "cut", "0.25"]);
    assert_eq!(row("speed")[3..].join(" "), "3 not known; kept as it is");
    assert_eq!(row("aqs_time")[3..].join(" "), "9 meaning not published; kept as it is");
    assert!(text.contains("  odd: line 3: ca_config has no key `speed`"), "{text}");
    assert!(text.contains("  note: there are no profiles; switches mark"), "{text}");
    let json = scratch.call("control --policy site.conf --json").json(0);
    assert_eq!(json["schema"], "clearlane-policy/1");
    assert_eq!(json["settings"][0]["parameter"], "cut");
    assert_eq!(json["settings"][1]["parameter"], serde_json::Value::Null);
    assert_eq!(json["parameters"]["cut"], "0.25");
    assert_eq!(json["oddities"].as_array().map(Vec::len), Some(1), "{json}");
    assert_eq!(scratch.names(), ["hot.toml", "site.conf", "site.topo"]);
}

#[test]
fn a_policy_that_is_none_is_one_line_and_nothing_is_written() {
    let scratch = site("control-wrong");
    let wrong = [
        ("missing.conf", None, "missing.conf: no such file or folder; check the path"),
        ("cut.conf", Some("ca_config_start\n rpg_gd: 12\n"), "cut.conf:1: block `ca_config` does"),
        (
            "unit.conf",
            Some("ca_config_start\n rpg_ai_rate: 5Mb\nca_config_end\n"),
            "unit.conf:2: rpg_ai_rate is `5Mb`, no whole number from 0 to 65535",
        ),
        (
            "name.conf",
            Some("vl_config_start\n vl_profiles: Lost\nvl_config_end\n"),
            "name.conf:2: no set of profiles has the name `Lost`; add it, or name one",
        ),
    ];
    for (name, text, said) in wrong {
        if let Some(text) = text {
            scratch.write(name, text);
        }
        let shown = scratch.call(&format!("control --policy {name}"));
        assert!(shown.failure(2).starts_with(said), "{shown:?}");
        scratch.write("wrong.toml", &HOT.replace("site.conf", name));
        let written = scratch.call("control wrong.toml --variant site -o out.conf");
        let failure = written.failure(2);
        assert!(failure.starts_with("wrong.toml:") && failure.contains(said), "{written:?}");
        assert!(!scratch.names().contains(&"out.conf".to_owned()), "{name}");
    }
    let both = scratch.call("control hot.toml --policy site.conf");
    assert!(both.failure(2).contains("cannot be used with"), "{both:?}");
    assert!(scratch.call("control").failure(2).contains("<EXPERIMENT>"), "neither is named");
}
