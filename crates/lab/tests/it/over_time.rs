//! Measures over time and rows that only a sweep answers.

use clearlane_ib::wire;
use clearlane_lab::{Experiment, Quiet, RunOptions, RunResult, Sweep, SweepFolder, run, run_sweep};
use clearlane_lab::{Unfinished, measure::Estimate};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Two flows of a torus share a link from 200 us on, one path each or more.
const SHARED: &str = r#"schema = 1
name = "shared"
fabric = { build = "torus:4x4" }
subnet = { engine = "multipath", lmc = 2, lanes = 8 }
sim = { preset = "qdr" }
run = { duration = "1 ms", warm_up = "200 us", seeds = 2, slices = 20 }
[control]
when = "none"
[[traffic]]
name = "first"
class = "hot"
pattern = { kind = "incast", to = 2 }
senders = { hosts = [0] }
load = 0.6
size = "8 KiB"
start = "200 us"
stop = "600 us"
[[traffic]]
name = "second"
class = "hot"
pattern = { kind = "incast", to = 6 }
senders = { hosts = [1] }
load = 0.6
size = "8 KiB"
start = "200 us"
stop = "600 us"
[[variant]]
name = "one path"
[[variant]]
name = "drb"
control = { which = "drb" }
"#;

const STAR: &str = r#"schema = 1
name = "star"
fabric = { build = "star:8" }
subnet = { engine = "min-hop" }
sim = { preset = "qdr" }
run = { duration = "1 ms", seeds = 2 }
[[traffic]]
name = "all"
class = "background"
pattern = { kind = "uniform" }
load = 0.3
size = "2 KiB"
[sweep]
traffic.load = [0.2, 0.4, 0.9]
"#;

fn row(name: &str, measure: &str, more: &str) -> String {
    format!("[[published]]\nname = \"{name}\"\nmeasure = {measure}\n{more}\n")
}

fn refusal(text: &str) -> String {
    Experiment::parse(text, Path::new("x.toml")).expect_err("it was accepted").to_string()
}

fn result(text: &str) -> RunResult {
    let experiment = Experiment::parse(text, Path::new("x.toml")).unwrap_or_else(|e| panic!("{e}"));
    run(&experiment, &RunOptions::new(2, ""), &Quiet, &AtomicBool::new(false)).unwrap()
}

/// What was obtained for each row, in order.
fn obtained(result: &RunResult) -> Vec<Option<Estimate>> {
    result.published().into_iter().map(|row| row.obtained).collect()
}

#[test]
fn a_shared_link_is_relieved_once_paths_open() {
    let span =
        |kind: &str| format!("{{ kind = \"{kind}\", from = \"200 us\", until = \"600 us\" }}");
    let mut text = SHARED.to_owned();
    let kinds = ["peak-load", "time-to-relief", "first-path-open", "last-path-open", "open-paths"];
    let busiest = "{ kind = \"span-load\", from = \"200 us\", until = \"600 us\" }";
    for variant in ["one path", "drb"] {
        for kind in kinds {
            let name = format!("{kind}, {variant}");
            text += &row(&name, &span(kind), &format!("variant = \"{variant}\""));
        }
    }
    for source in [0, 1] {
        let measure = format!("{{ kind = \"becns\", source = {source} }}");
        text += &row(&format!("becns {source}"), &measure, "variant = \"drb\"");
    }
    let before = "{ kind = \"open-paths\", until = \"200 us\" }";
    text += &row("before", before, "variant = \"drb\"");
    let overhead = "{ kind = \"notification-overhead\" }";
    text += &row("overhead", overhead, "variant = \"drb\"");
    text += &row("busiest, one path", busiest, "variant = \"one path\"");
    text += &row("busiest, drb", busiest, "variant = \"drb\"");
    let result = result(&text);
    let all = obtained(&result);
    let mean = |index: usize| all[index].map(|estimate| estimate.mean);
    // Without further paths the link is busy to the end and past it.
    assert!(mean(0) > Some(0.999) && mean(0) <= Some(1.0), "{:?}", mean(0));
    assert_eq!((mean(1), mean(2), mean(3), mean(4)), (None, None, None, Some(1.0)));
    let (first, last) = (mean(7).unwrap(), mean(8).unwrap());
    assert!(first > 0.0 && first <= last && last <= 400.0, "{first} {last}");
    assert!(mean(6).is_some_and(|relief| relief <= 200.0), "{:?}", mean(6));
    assert!((2.0..=4.0).contains(&mean(9).unwrap()), "{:?}", mean(9));
    let becns: u64 = result.variants[1].runs.iter().map(|run| run.totals.becns).sum();
    assert_eq!((mean(10).unwrap() + mean(11).unwrap()) * 2.0, becns as f64);
    assert_eq!(mean(12), Some(1.0));
    let overhead = mean(13).unwrap();
    assert!(overhead > 0.0 && overhead < 0.02, "{overhead}");
    // The peak is no less than the mean, and further paths take load away.
    let (one, drb) = (mean(14).unwrap(), mean(15).unwrap());
    assert!(one > 0.9 && one <= mean(0).unwrap() && drb < 0.9 * one, "{one} {drb}");
}

#[test]
fn a_sweep_answers_with_the_point_a_row_takes() {
    let load = "{ kind = \"offered-load\" }";
    let of = |kind: &str, more: &str| format!("{{ kind = \"{kind}\", of = {load}{more} }}");
    let served = ", provided = { measure = { kind = \"served\" }, least = 0.95 }";
    let text = STAR.to_owned()
        + &row("most", &of("largest", ""), "")
        + &row("least", &of("smallest", ""), "")
        + &row("first", &of("first", ""), "")
        + &row("last served", &of("last", served), "value = 1.0\nmoved_by = \"most\"")
        + &row("alone", load, "");
    let single = result(&text);
    let names = |rows: &[clearlane_lab::PublishedRow]| -> Vec<String> {
        rows.iter().map(|row| row.name.clone()).collect()
    };
    assert_eq!(names(&single.published()), ["alone"]);
    let sweep = Sweep::parse(&text, Path::new("x.toml"), &[], &[]).unwrap();
    let scratch = std::env::temp_dir().join(format!("clearlane-take-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&scratch);
    let folder =
        SweepFolder::claim(&sweep, &scratch, false, false, &Unfinished::default()).unwrap();
    let cancel = AtomicBool::new(false);
    let swept = run_sweep(&sweep, &RunOptions::new(2, ""), &folder, &Quiet, &cancel).unwrap();
    let rows = swept.published();
    assert_eq!(names(rows), ["most", "least", "first", "last served"]);
    let places: Vec<_> = rows.iter().map(|row| row.point.clone().unwrap()).collect();
    // At 0.9 one queue an input holds the star back.
    assert_eq!(places, ["load 0.9", "load 0.2", "load 0.2", "load 0.4"]);
    let mean = |index: usize| rows[index].obtained.unwrap().mean;
    assert!((mean(0) - 0.9).abs() < 0.05 && (mean(3) - 0.4).abs() < 0.05);
    assert_eq!(mean(1), mean(2));
    assert_eq!(rows[3].remarks(), "at load 0.4; moved 83 % of the way by row \"most\"");
    std::fs::remove_dir_all(&scratch).unwrap();
}

#[test]
fn variants_are_told_how_far_they_are_apart() {
    let spread = "{ kind = \"spread\", of = { kind = \"accepted-load\" } }";
    let only = "{ kind = \"spread\", of = { kind = \"accepted-load\" }, variants = [\"drb\"] }";
    let text = SHARED.to_owned()
        + &row("all", spread, "")
        + &row("one", only, "")
        + &row("one path", "{ kind = \"accepted-load\" }", "variant = \"one path\"")
        + &row("drb", "{ kind = \"accepted-load\" }", "variant = \"drb\"");
    let means: Vec<f64> = obtained(&result(&text)).iter().map(|e| e.unwrap().mean).collect();
    assert_eq!(means[1], 0.0);
    // Seed by seed is not quite what the means give.
    assert!(means[0] > 0.05 && (means[0] - (means[3] / means[2] - 1.0)).abs() < 0.01, "{means:?}");
}

#[test]
fn hosts_that_rows_name_are_there() {
    let flow = "from = \"host0001\", to = 99";
    for (measure, says) in [
        (
            "{ kind = \"becns\", source = \"hots0001\" }".to_owned(),
            "the nearest name is `host0001`",
        ),
        (format!("{{ kind = \"flow-share\", {flow} }}"), "there is no rank 99; ranks are 0 to 15"),
        (format!("{{ kind = \"oscillation-period\", {flow} }}"), "there is no rank 99"),
        ("{ kind = \"peak-load\", link = \"leaf9[1]\" }".to_owned(), "link = leaf9[1]: "),
    ] {
        let text = SHARED.to_owned() + &row("x", &measure, "");
        let experiment = Experiment::parse(&text, Path::new("x.toml")).unwrap();
        let error = run(&experiment, &RunOptions::new(1, ""), &Quiet, &AtomicBool::new(false));
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("x.toml:") && error.contains("published.x: "), "{error}");
        assert!(error.contains(says) && !error.contains('\n'), "{error}");
    }
}

#[test]
fn what_rows_ask_for_is_checked() {
    let peak = |span: &str| row("peak", &format!("{{ kind = \"peak-load\"{span} }}"), "");
    let load = "{ kind = \"accepted-load\" }";
    let last = format!("kind = \"last\", of = {load}");
    let largest = |of: String, _| format!("{{ kind = \"largest\", of = {of} }}");
    let deep = (0..10).fold(load.to_owned(), largest);
    for (added, says) in [
        (peak(", from = \"205 us\""), "205 us is no edge of a slice of 50 us"),
        (peak(", until = \"2 ms\""), "from 0 ps until 2 ms is no span within a run of 1 ms"),
        (peak(", from = \"9 lightyears\""), "9 lightyears"),
        (peak(", group = \"all\""), "group"),
        (row("x", load, "take = \"last\""), "measure = { kind = \"largest\", of = { kind = … } }"),
        (row("x", load, "provided = 1"), "write it into the measure over the points"),
        (row("x", load, "value = 2\nmoved_by = \"y\""), "no published row is named y"),
        (row("x", load, "moved_by = \"x\""), "lacks the value it is moved towards"),
        (row("x", load, "value = [3, 2]"), "begins with 3, which is above 2; swap them"),
        (row("x", &format!("{{ {last}, provided = {{ measure = {load} }} }}"), ""), "least"),
        (row("x", &format!("{{ {last}, within = {{ \"run.seed\" = 3 }} }}"), ""), "not a list"),
        (row("x", &format!("{{ {last}, settled = true }}"), ""), "write \"yes\""),
        (row("x", &deep, ""), "more than 8 measures within each other"),
        (row("x", "{ kind = \"becns\", link = \"S1[1]\" }", ""), "has no key `link`"),
        (row("x", "{ kind = \"becns\" }", ""), "source"),
    ] {
        let error = refusal(&(SHARED.to_owned() + &added));
        assert!(error.contains(says) && !error.contains('\n'), "{error}");
    }
}

/// A periodic flow, so that links are busy for a share that is known.
#[test]
fn an_output_is_relieved_at_no_more_than_95_percent() {
    let star = STAR.split("[sweep]").next().unwrap();
    // Slices of 250 us: a packet more or less in one is nothing.
    let star = star.replace("seeds = 2", "seeds = 1, slices = 20");
    let star = star.replace("duration = \"1 ms\"", "duration = \"5 ms\"");
    let star = star.replace("{ kind = \"uniform\" }", "{ kind = \"incast\", to = 1 }");
    let star =
        star.replace("size = ", "arrivals = \"periodic\"\nsenders = { hosts = [0] }\nsize = ");
    for (load, relieved) in [(0.93, 1.0), (0.97, 0.0)] {
        let text = star.replace("load = 0.3", &format!("load = {load}"));
        let text = text + &row("relieved", "{ kind = \"relieved\" }", "");
        assert_eq!(obtained(&result(&text))[0].unwrap().mean, relieved, "at load {load}");
    }
}

#[test]
fn a_flow_has_its_share_in_what_its_destination_receives() {
    let share = |from, to| format!("{{ kind = \"flow-share\", from = {from}, to = {to} }}");
    let more = "variant = \"one path\"";
    let text = SHARED.to_owned()
        + &row("first", &share(0, 2), more)
        + &row("second", &share(1, 6), more)
        + &row("none", &share(1, 2), more);
    let means: Vec<f64> = obtained(&result(&text)).iter().map(|e| e.unwrap().mean).collect();
    assert_eq!(means, [1.0, 1.0, 0.0]);
}

/// What opens no path has no time at which it has; the second one is open before all are.
#[test]
fn paths_are_open_from_the_second_one_on() {
    let rows = |text: String| {
        let of = |kind: &str| row(kind, &format!("{{ kind = \"{kind}\" }}"), "variant = \"drb\"");
        obtained(&result(&(text + &of("first-path-open") + &of("last-path-open"))))
    };
    assert_eq!(rows(SHARED.replace("load = 0.6", "load = 0.1")), [None, None]);
    let most = |paths: u32| {
        let which = format!("which = \"drb\", drb = {{ max_paths = {paths} }}");
        rows(SHARED.replace("which = \"drb\"", &which))
    };
    assert_eq!(most(1), [None, None]);
    let [first, last] = most(2)[..] else { panic!("two rows") };
    assert!(first.unwrap().mean <= last.unwrap().mean);
}

/// CNPs over all that switches sent, headers and check sums included.
#[test]
fn notifications_are_counted_in_bytes_on_the_wire() {
    let text = SHARED.replace("seeds = 2", "seeds = 1");
    let text = text + &row("overhead", "{ kind = \"notification-overhead\" }", "variant = \"drb\"");
    let result = result(&text);
    let overhead = obtained(&result)[0].unwrap().mean;
    let run = &result.variants[1].runs[0];
    // Packets of 2 KiB; counters count whole words.
    let [data, acks, cnps] = [
        run.totals.packet_hops * (2048 + u64::from(wire::RC_DATA)),
        run.totals.ack_hops * u64::from(wire::RC_ACK),
        run.totals.cnp_hops * u64::from(wire::CNP),
    ];
    assert!(data > 1_000_000 && cnps > 0);
    let expected = cnps as f64 / (data + acks + cnps) as f64;
    assert!((overhead / expected - 1.0).abs() < 2e-4, "{overhead} instead of {expected}");
}
