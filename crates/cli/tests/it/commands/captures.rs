//! `run --capture`, `capture`, and `compare` of records.

use super::binary::Scratch;

/// Two hosts write to one as fast as they can, under congestion control; another pair is apart.
const CONGESTED: &str = r#"
schema = 1
name = "congested"
[fabric]
build = "leaf-spine:leaves=3,hosts=2,spines=2"
[subnet]
engine = "min-hop"
[sim]
preset = "qdr"
buffer = "16 KiB"
[[traffic]]
name = "hot"
class = "hot"
pattern = { kind = "incast", to = "host0000" }
senders = { hosts = ["host0001", "host0002"] }
load = 1.0
size = "64 KiB"
[[traffic]]
name = "apart"
class = "victim"
pattern = { kind = "shift", by = 1 }
senders = { hosts = ["host0004"] }
load = 0.3
size = "2 KiB"
[control]
when = "iba-cc"
iba-cc = { preset = "gran-2010" }
[run]
duration = "2 ms"
warm_up = "0 us"
seeds = 2
"#;

fn congested(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.write("congested.toml", CONGESTED);
    scratch
}

#[test]
fn a_captured_run_is_found_in_its_capture() {
    let scratch = congested("capture-run");
    let run = scratch.call("run congested.toml --out sim --capture hosts");
    assert_eq!(run.code, 0, "{run:?}");
    let names = ["capture-as-is.pcapng", "capture-as-is.hosts"];
    let there = scratch
        .call("capture sim/capture-as-is.pcapng --names sim/capture-as-is.hosts --crc --json");
    let found = there.json(0);
    for name in names {
        assert!(scratch.path("sim").join(name).is_file(), "{name}");
    }
    let flows = found["flows"].as_array().unwrap();
    let standing = |source: &str| {
        let flow = flows.iter().find(|flow| flow["source_name"] == source).unwrap();
        (flow["standing"].as_str().unwrap(), flow["wrong_crcs"].as_u64().unwrap())
    };
    assert_eq!(standing("host0001"), ("contributor", 0));
    assert_eq!(standing("host0002"), ("contributor", 0));
    assert_ne!(standing("host0004").0, "contributor");
    // Every host sees what it sends and receives: each packet is in two places.
    let summary: serde_json::Value =
        serde_json::from_str(&scratch.read("sim/summary.json")).unwrap();
    assert_eq!(summary["schema"], "clearlane-summary/2");
    let marked: u64 = flows.iter().map(|flow| flow["marked"].as_u64().unwrap()).sum();
    let cnps: u64 = flows.iter().filter_map(|flow| flow["back"]["cnp"].as_u64()).sum();
    assert!(marked > 0 && cnps > 0, "{marked} {cnps}");
    assert!(found["verdict"][0]["text"].as_str().unwrap().starts_with("2 flows contend"));
}

/// What is captured does not tell how a run was divided.
#[test]
fn captures_have_the_same_bytes_on_one_thread_and_two() {
    let scratch = congested("capture-threads");
    for (out, threads) in [("one", "1"), ("two", "2"), ("again", "1")] {
        let line = format!("run congested.toml --out {out} --capture all --threads {threads}");
        let run = scratch.call(&format!("{line} --partitions {threads} --capture-headers"));
        assert_eq!(run.code, 0, "{run:?}");
    }
    let file = |out: &str| std::fs::read(scratch.path(out).join("capture-as-is.pcapng")).unwrap();
    assert!(file("one").len() > 100_000);
    assert!(file("one") == file("two") && file("one") == file("again"));
}

#[test]
fn a_capture_and_its_simulation_are_laid_over_each_other() {
    let scratch = congested("capture-overlay");
    scratch.call("run congested.toml --out sim --capture hosts --capture-headers").text();
    let words = "capture sim/capture-as-is.pcapng --names sim/capture-as-is.hosts --out seen";
    let captured = scratch.call(words).text().to_owned();
    assert!(captured.ends_with("report: seen/report.html\n"), "{captured}");
    let found = scratch.call("compare seen sim --out both --json").json(0);
    assert_eq!(found["flows_in_common"], serde_json::json!([3]));
    for flow in found["flows"].as_array().unwrap() {
        let records = flow["records"].as_array().unwrap();
        let gbps = |place: usize| records[place]["gbps"].as_f64().unwrap();
        // A capture's rate is that from its first packet to its last slice.
        assert!((gbps(0) / gbps(1) - 1.0).abs() < 0.02, "{flow}");
    }
    let page = scratch.read("both/report.html");
    assert!(page.contains("Laid over each other"));
    // The folder is not taken without being told to.
    let again = scratch.call("compare seen sim --out both");
    assert!(again.code == 2 && again.stderr.contains("add --force"), "{again:?}");
}

#[test]
fn what_cannot_be_captured_is_told_in_a_line() {
    let scratch = congested("capture-errors");
    for (flags, why) in [
        ("--capture H9", "--capture H9: "),
        ("--capture host0001:9", "has no cable; host0001 has some at ports 1"),
        ("--capture host0001:x", "is no port; write a host, or a switch and port as S2:3"),
        ("--capture-headers", "--capture"),
    ] {
        let run = scratch.call(&format!("run congested.toml --out no {flags}"));
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.stderr.contains(why), "{run:?}");
    }
    let both = "[[variant]]\nname = \"a b\"\n[[variant]]\nname = \"a_b\"\n";
    scratch.write("both.toml", &format!("{}\n{both}", scratch.read("congested.toml")));
    let same = scratch.call("run both.toml --out no --capture host0001");
    assert!(same.code == 2 && same.stderr.contains("would be of two variants"), "{same:?}");
    scratch.write("archive", "PK\x03\x04 and what a zip file has\n");
    let archive = scratch.call("capture archive");
    let remedy = "is packed by zip; unpack it, or give `unzip -p FILE | clearlane capture -`";
    assert!(archive.code == 2 && archive.stderr.contains(remedy), "{archive:?}");
    scratch.write("nothing", "");
    assert!(scratch.call("capture nothing").stderr.contains("is empty; nothing was captured"));
    scratch.write("text", "no capture at all, but a text of some length\n");
    let refused = scratch.call("capture text");
    assert_eq!(
        (refused.code, refused.stderr.as_str()),
        (
            2,
            "clearlane: text is no capture; give a pcap, pcapng or ERF file of tcpdump, ibdump or \
             Wireshark\n"
        )
    );
    let refused = scratch.call("capture - text");
    assert!(refused.stderr.starts_with("clearlane: - cannot be one of several"), "{refused:?}");
    let refused = scratch.call("compare text congested.toml");
    assert!(refused.stderr.contains("is no flow-series.parquet, which `run"), "{refused:?}");
    let refused = scratch.call("capture text --from 2s --to 1s");
    assert!(refused.stderr.contains("--to 1 s is not after --from 2 s"), "{refused:?}");
    let refused = scratch.call("compare text congested.toml --seeds 2");
    assert!(refused.stderr.contains("--seeds is for experiments"), "{refused:?}");
}

#[test]
fn a_post_dissector_is_printed() {
    let scratch = Scratch::new("capture-lua");
    let lua = scratch.call("capture --post-dissector").text().to_owned();
    assert!(lua.contains("register_postdissector") && lua.contains("clearlane.fecn"));
}
