//! Congestion mechanisms in experiments: read, laid over, written back, run, swept, and told of.

use clearlane_lab::{
    Experiment, Quiet, RunOptions, RunResult, Sweep, SweepFolder, Unfinished, run, run_sweep,
    write_run_folder,
};
use parquet::file::reader::SerializedFileReader;
use parquet::record::RowAccessor;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The parking lot for a while: without a mechanism, with one, with one that never marks.
const LOT: &str = r#"schema = 1
name = "lot"
fabric = { file = "../fixtures/parking-lot.topo" }
subnet = { engine = "min-hop" }
sim = { preset = "sdr-2011", buffer = "256 KiB" }
run = { duration = "40 ms", warm_up = "20 ms" }
[control]
when = "iba-cc"
[control.iba-cc]
preset = "gran-2010"
threshold = 14
[[traffic]]
name = "all to H4"
class = "hot"
pattern = { kind = "incast", to = "H4" }
senders = { except = ["H4"] }
load = 1.0
size = "64 KiB"
[[variant]]
name = "on"
[[variant]]
name = "off"
control = { when = "none" }
[[variant]]
name = "unmarked"
control.iba-cc.threshold = 0
"#;

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/lot.toml")
}

fn read(text: &str) -> Experiment {
    Experiment::parse(text, &path()).unwrap_or_else(|error| panic!("{error}"))
}

fn result(text: &str) -> RunResult {
    let options = RunOptions::new(2, "clearlane run lot.toml");
    run(&read(text), &options, &Quiet, &AtomicBool::new(false)).unwrap()
}

fn refusal(text: &str) -> String {
    let options = RunOptions::new(1, "");
    run(&read(text), &options, &Quiet, &AtomicBool::new(false)).unwrap_err().to_string()
}

fn summary(result: &RunResult) -> Value {
    serde_json::from_str(&result.to_json()).unwrap()
}

/// The first run of the variant at this place.
fn totals(summary: &Value, variant: usize) -> &Value {
    &summary["variants"][variant]["runs"][0]["totals"]
}

#[test]
fn parameters_merge_and_go_with_their_mechanism() {
    let text = LOT.to_owned()
        + "[[variant]]\nname = \"other\"\ncontrol.when = \"dcqcn\"\ncontrol.which = \"drb\"\n\
           control.dcqcn = { preset = \"zhu-2015\", g = 0.5 }\n";
    let resolved: toml::Table = read(&text).resolved().parse().unwrap();
    let control = |index: usize| resolved["variant"][index]["control"].clone();
    let on = control(0);
    assert_eq!(on["when"].as_str(), Some("iba-cc"));
    assert_eq!(on["which"].as_str(), Some("none"));
    assert_eq!(on["iba-cc"]["preset"].as_str(), Some("gran-2010"));
    assert_eq!(on["iba-cc"]["threshold"].as_integer(), Some(14));
    assert_eq!(on["iba-cc"]["ccti_timer"].as_integer(), Some(150));
    assert_eq!(control(1).as_table().map(|table| table.len()), Some(2), "{:?}", control(1));
    let unmarked = control(2);
    assert_eq!(unmarked["iba-cc"]["threshold"].as_integer(), Some(0));
    assert_eq!(unmarked["iba-cc"]["preset"].as_str(), Some("gran-2010"));
    let other = control(3);
    assert!(other.get("iba-cc").is_none() && other.get("drb").is_some(), "{other:?}");
    assert_eq!(other["dcqcn"]["g"].as_float(), Some(0.5));
}

#[test]
fn the_resolved_experiment_reads_back_as_the_same() {
    let text = LOT.replace(
        "threshold = 14\n",
        "cct = \"given\"\nccti_limit = 2\ncct_entries = [\"0:0\", \"1:3\", \"3:16383\"]\n\
         [[control.iba-cc.port]]\nport = \"S2[4]\"\nthreshold = 3\nmarking_rate = 7\n",
    );
    for name in ["iba-cc", "dcqcn", "timely", "drb"] {
        let key = if name == "drb" { "which" } else { "when" };
        let text = match name {
            "iba-cc" => text.clone(),
            _ => LOT
                .replace("when = \"iba-cc\"\n[control.iba-cc]\npreset = \"gran-2010\"\n", "")
                .replace("threshold = 14\n", &format!("{key} = \"{name}\"\n"))
                .replace("control.iba-cc.threshold = 0\n", ""),
        };
        let once = read(&text).resolved();
        assert!(once.contains(&format!("{key} = \"{name}\"")), "{once}");
        assert_eq!(read(&once).resolved(), once, "{name}");
    }
}

#[test]
fn a_mechanism_changes_who_gets_how_much() {
    let result = result(LOT);
    let summary = summary(&result);
    let jain = |variant: &str| summary["headline"][variant]["jain"]["mean"].as_f64().unwrap();
    assert!((jain("off") - 0.9).abs() < 0.01, "{}", jain("off"));
    assert!((jain("unmarked") - 0.9).abs() < 0.01, "{}", jain("unmarked"));
    assert!(jain("on") > 0.95, "{}", jain("on"));
    let marked = |variant| totals(&summary, variant)["packets_marked"].as_u64();
    assert!(marked(0).is_some_and(|marked| marked > 100), "{:?}", marked(0));
    assert_eq!((marked(1), marked(2)), (None, Some(0)));
    let on = totals(&summary, 0);
    assert!(on["becns"].as_u64() > Some(100) && on["becns"] == on["cnps_delivered"], "{on}");
    let share = on["cnp_byte_share"].as_f64().unwrap();
    assert!(share > 0.0 && share < 0.05, "{share}");
    // Whoever sends as fast as its link does so on purpose: nothing is odd.
    assert_eq!(result.oddities(), Vec::<String>::new());
    let table = result.control_table().unwrap();
    let rows: Vec<&str> = table.rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(rows, ["on", "unmarked"]);
    let fact = |variant: usize| {
        let facts = summary["variants"][variant]["facts"].as_array().unwrap();
        let found = facts.iter().find(|fact| fact["label"] == "congestion control");
        found.map(|fact| fact["value"].as_str().unwrap().to_owned())
    };
    let on = fact(0).unwrap();
    assert!(on.contains("preset gran-2010") && on.contains("threshold 14 (default 15)"), "{on}");
    assert!(!on.contains("ccti_timer"), "{on}");
    assert_eq!(fact(1), None);
    let parameters = summary["variants"][0]["parameters"].as_array().unwrap();
    let of = |name: &str| {
        let found = parameters.iter().find(|parameter| parameter["name"] == name).unwrap();
        found["source"].as_str().unwrap().to_owned()
    };
    assert_eq!(of("control.iba-cc.threshold"), "set by the experiment; the preset has 15");
    assert!(of("control.iba-cc.ccti_timer").starts_with("Gran et al."));
}

#[test]
fn what_mechanisms_did_over_time_is_in_a_table_and_in_the_report() {
    let scratch =
        std::env::temp_dir().join(format!("clearlane-lab-control-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&scratch);
    let text = LOT.replace("\"40 ms\"", "\"4 ms\"").replace("20 ms", "1 ms");
    let result = result(&text);
    write_run_folder(&result, &scratch, false, &Unfinished::default()).unwrap();
    let file = std::fs::File::open(scratch.join("control.parquet")).unwrap();
    let rows: Vec<_> = SerializedFileReader::new(file).unwrap().into_iter().flatten().collect();
    let becns = rows.iter().filter(|row| row.get_string(9).unwrap() == "BECNs");
    let becns: i64 = becns.map(|row| row.get_long(10).unwrap()).sum();
    // That of the variant which never marks is empty, and one has none.
    assert!(rows.iter().all(|row| row.get_string(0).unwrap() == "on"));
    assert_eq!(Some(becns as u64), totals(&summary(&result), 0)["becns"].as_u64());
    let ccti = rows.iter().filter(|row| row.get_string(9).unwrap() == "CCTI");
    assert!(ccti.map(|row| row.get_long(10).unwrap()).max() > Some(0));
    let report = std::fs::read_to_string(scratch.join("report.html")).unwrap();
    assert!(report.contains(r#""control":{"mechanisms":["iba-cc"],"quantities":[{"name":"BECNs"#));
    std::fs::remove_dir_all(&scratch).unwrap();
    // Without mechanisms there is no table.
    let off = text.replace("when = \"iba-cc\"", "when = \"none\"");
    let head = off.split("[[variant]]").next().unwrap().replace("[control.iba-cc]", "");
    let head = head.replace("preset = \"gran-2010\"\nthreshold = 14\n", "");
    write_run_folder(&self::result(&head), &scratch, false, &Unfinished::default()).unwrap();
    assert!(!scratch.join("control.parquet").exists());
    std::fs::remove_dir_all(&scratch).unwrap();
}

#[test]
fn a_port_has_settings_of_its_own() {
    let port = |name: &str| {
        let port =
            format!("threshold = 0\n[[control.iba-cc.port]]\nport = \"{name}\"\nthreshold = 15\n");
        LOT.replace("threshold = 14\n", &port)
            .replace("\"40 ms\"", "\"2 ms\"")
            .replace("20 ms", "1 ms")
    };
    let marked = |name: &str| {
        let summary = summary(&result(&port(name)));
        totals(&summary, 0)["packets_marked"].as_u64().unwrap()
    };
    // S2 leads to H4 by port 2.
    assert!(marked("S2[2]") > 10);
    assert_eq!(marked("S2[1]"), 0);
    for (name, expected) in [
        ("S3[1]", "no node is named \"S3\"; did you mean \"S1\"?"),
        ("S2", "is no port; write the switch and the port, as in S1[3]"),
        ("S2[36]", "has no cable; name one that has"),
        ("H1[1]", "is a port of a channel adapter; only switches have settings"),
    ] {
        let error = refusal(&port(name));
        assert!(error.contains("lot.toml:13: control.iba-cc.port = "), "{error}");
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn more_flows_than_are_recorded_are_said() {
    let text = LOT.replace("\"40 ms\"", "\"1 ms\"").replace("20 ms", "500 us");
    let mut result = result(&text);
    let said = |result: &RunResult| {
        result.oddities().iter().any(|oddity| oddity.contains("acted on too many flows"))
    };
    assert!(!said(&result));
    result.variants[0].runs[0].history.as_mut().unwrap().control.dropped = true;
    assert!(said(&result));
}

#[test]
fn one_path_leaves_nothing_to_choose() {
    let text = LOT.replace(
        "name = \"off\"\ncontrol = { when = \"none\" }",
        "name = \"drb\"\ncontrol.which = \"drb\"",
    );
    let text = text.replace("\"40 ms\"", "\"100 us\"").replace("20 ms", "50 us");
    let remark = "drb cannot choose: there is only one path between two hosts; raise subnet.lmc";
    assert!(result(&text).oddities().iter().any(|oddity| oddity == remark));
    let paths = text.replace("engine = \"min-hop\"", "engine = \"min-hop\", lmc = 1");
    let oddities = result(&paths).oddities();
    assert!(!oddities.iter().any(|oddity| oddity == remark));
    // There is one cable, whatever the LID.
    let same = "drb chooses among LIDs that mostly take the same links: on average 1.00 \
                different paths to the 2 LIDs of a host; engine multipath makes different ones";
    assert!(oddities.iter().any(|oddity| oddity == same), "{oddities:?}");
}

#[test]
fn a_port_has_one_table_whatever_it_is_called() {
    let twice = "threshold = 0\n[[control.iba-cc.port]]\nport = \"S2[2]\"\nthreshold = 15\n\
                 [[control.iba-cc.port]]\nport = \"0x02c1ea9a51000002[2]\"\nmarking_rate = 7\n";
    let error = refusal(&LOT.replace("threshold = 14\n", twice));
    assert!(error.contains("lot.toml:16: control.iba-cc.port = 0x02c1ea9a51000002[2]"), "{error}");
    assert!(error.ends_with("has a table as S2[2] too; write its settings in one"), "{error}");
}

#[test]
fn mechanisms_and_their_parameters_can_be_swept() {
    let plain = LOT.split("[[variant]]").next().unwrap().replace("\"40 ms\"", "\"2 ms\"");
    let plain = plain.replace("20 ms", "1 ms");
    let sweep = |text: &str, over: &[&str]| {
        let over: Vec<String> = over.iter().map(|text| (*text).to_owned()).collect();
        Sweep::parse(text, &path(), &over, &[])
    };
    let marked = |text: &str, over: &[&str]| {
        let sweep = sweep(text, over).unwrap();
        let result = |point: &clearlane_lab::Point| {
            let options = RunOptions::new(1, "");
            let result = run(&point.experiment, &options, &Quiet, &AtomicBool::new(false)).unwrap();
            totals(&summary(&result), 0)["packets_marked"].as_u64()
        };
        sweep.points.iter().map(result).collect::<Vec<_>>()
    };
    let marks = marked(&plain, &["control.iba-cc.threshold=0,1,15"]);
    // More marks at first may be fewer in the end, because senders hold back.
    let marks = marks.into_iter().map(Option::unwrap).collect::<Vec<_>>();
    assert!(marks[0] == 0 && marks[1] > 0 && marks[2] > 0 && marks[1] != marks[2], "{marks:?}");
    let marks = marked(&plain, &["control.when=none,iba-cc,timely"]);
    assert!(marks[0].is_none() && marks[1] > Some(0) && marks[2] == Some(0), "{marks:?}");
    // A table that is not there is made.
    let (head, tail) = plain.split_once("[control]").unwrap();
    let bare = format!("{head}[[traffic]]{}", tail.split_once("[[traffic]]").unwrap().1);
    let marks = marked(&bare, &["control.when=none,iba-cc"]);
    assert!(marks[0].is_none() && marks[1] > Some(0), "{marks:?}");
    let error = |over| sweep(&plain, &[over]).err().unwrap().to_string();
    assert_eq!(
        error("control.iba-cc.treshold=1,2"),
        "--over: control.iba-cc has no key `treshold`; the nearest is `threshold`"
    );
    assert_eq!(
        error("control.dcqcn.g=0.5,0.25"),
        "control.dcqcn.g is varied, but no variant has dcqcn; name dcqcn in [control]"
    );
    assert!(error("threshold=1,2").contains("control.iba-cc.threshold"));
}

#[test]
fn what_a_key_does_not_change_is_run_once_and_stands_at_every_point() {
    let text = LOT.to_owned()
        + "[[published]]\nname = \"gain\"\nmeasure = { kind = \"largest\", of = { kind = \
           \"ratio\", of = { kind = \"accepted-load\" }, over = \"off\" } }\n";
    let over = ["control.iba-cc.threshold=1,8,15".to_owned()];
    let kept = ["on".to_owned(), "off".to_owned()];
    let sweep = Sweep::parse(&text, &path(), &over, &kept).unwrap();
    let names = |point: &clearlane_lab::Point| -> Vec<String> {
        point.experiment.variants.iter().map(|variant| variant.name.clone()).collect()
    };
    let run: Vec<Vec<String>> = sweep.points.iter().map(names).collect();
    assert_eq!(run, [vec!["on", "off"], vec!["on"], vec!["on"]]);
    let scratch = std::env::temp_dir().join(format!("clearlane-flat-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&scratch);
    let folder =
        SweepFolder::claim(&sweep, &scratch, false, false, &Unfinished::default()).unwrap();
    let cancel = AtomicBool::new(false);
    let swept = run_sweep(&sweep, &RunOptions::new(2, ""), &folder, &Quiet, &cancel).unwrap();
    let _ = std::fs::remove_dir_all(&scratch);
    let of = |variant: &str| -> Vec<&clearlane_lab::VariantPoint> {
        swept.points.iter().filter(|point| point.variant == variant).collect()
    };
    let (on, off) = (of("on"), of("off"));
    assert_eq!((on.len(), off.len()), (3, 3));
    assert!(off.iter().all(|point| point.figures == off[0].figures));
    assert!(on[0].figures != on[2].figures);
    // A table of what mechanisms did: three rows, none of them of the variant without.
    let (control, names) = swept.control_table().unwrap();
    assert_eq!((control.rows.len(), names), (3, 2));
    assert!(control.rows.iter().all(|row| row[1] == "on"), "{control}");
    assert!(control.columns.iter().any(|column| column.label == "packets marked"), "{control}");
    let gain = &swept.published()[0];
    assert!(gain.obtained.is_some_and(|gain| gain.mean > 0.0), "{gain:?}");
    assert!(gain.point.as_deref().is_some_and(|point| point.contains("threshold")), "{gain:?}");
}

#[test]
fn two_flows_share_a_link_fairly_under_every_set_of_dcqcn() {
    let text = "schema = 1\nname = \"two\"\nfabric = { build = \"star:3\" }\n\
        subnet = { engine = \"min-hop\" }\nsim = { preset = \"qdr\" }\n\
        run = { duration = \"40 ms\", warm_up = \"20 ms\", seeds = 5 }\n\
        [control]\nwhen = \"dcqcn\"\n[[traffic]]\nname = \"two\"\nclass = \"hot\"\n\
        pattern = { kind = \"incast\", to = 0 }\nsenders = { hosts = [1, 2] }\nload = 1.0\n\
        size = \"64 KiB\"\n[[variant]]\nname = \"default\"\n[[variant]]\nname = \"zhu-2015\"\n\
        control = { dcqcn = { preset = \"zhu-2015\" } }\n";
    let summary = summary(&result(text));
    for variant in ["default", "zhu-2015"] {
        let of = |key: &str| summary["headline"][variant][key]["mean"].as_f64().unwrap();
        let (jain, delivered) = (of("jain"), of("delivered_load"));
        assert!(jain >= 0.99, "{variant}: {jain}");
        // The receiver's link is half of what both could send.
        assert!(delivered > 0.4 && delivered <= 0.5, "{variant}: {delivered}");
    }
}
