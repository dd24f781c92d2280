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
"#;

fn site(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.call("fabric build leaf-spine:leaves=2,hosts=2,spines=1 -o site.topo").text();
    scratch.write("hot.toml", HOT);
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
        "2 variants have congestion control, and a file is for one: name it with --variant \
         (`on`, `rate`)"
    );
    assert!(error("--variant off").starts_with("variant `off` has no congestion control; "));
    assert!(error("--variant rate").contains("OpenSM sets iba-cc and no other mechanism"));
    assert!(error("--variant onn").starts_with("the experiment has no variant `onn`"));
    let input = "name another file";
    let over = |name| scratch.call(&format!("control hot.toml --variant on -o {name} --force"));
    for name in ["hot.toml", "site.topo"] {
        assert!(over(name).failure(2).contains(input), "{name}");
    }
    assert_eq!(scratch.names(), ["hot.toml", "site.topo"]);
    scratch.call("control hot.toml --variant on -o cc.conf --dry-run").text();
    assert_eq!(scratch.names(), ["hot.toml", "site.topo"]);
}
