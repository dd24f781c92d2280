//! What keeps experiment files free of copies: axes, variants like others, rows for each variant,
//! files that are included, queue pairs.

use clearlane_lab::{Experiment, Quiet, RunOptions, RunResult, Sweep, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

const STAR: &str = r#"schema = 1
name = "star"
fabric = { build = "star:4" }
subnet = { engine = "min-hop" }
sim = { preset = "qdr" }
run = { duration = "400 us", warm_up = "100 us" }
[[traffic]]
name = "hot"
class = "hot"
pattern = { kind = "incast", to = 0 }
senders = { hosts = [1] }
load = 0.8
size = "2 KiB"
arrivals = "periodic"
"#;

const AXES: &str = r#"
[[axis]]
settings = [
  { name = "one lane", summary = "a lane" },
  { name = "two lanes", subnet = { lanes = 2 } },
]
[[axis]]
settings = [
  { name = "iba-cc", summary = "marked", control = { when = "iba-cc" } },
  { name = "none" },
  { name = "dcqcn", control = { when = "dcqcn" } },
]
[[variant]]
name = "light"
like = "two lanes, iba-cc"
traffic = [{ name = "hot", load = 0.2 }]
"#;

fn read(text: &str) -> Experiment {
    Experiment::parse(text, Path::new("x.toml")).unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(text: &str) -> String {
    let error = Experiment::parse(text, Path::new("x.toml")).expect_err("it was accepted");
    let error = error.to_string();
    assert!(!error.contains('\n'), "{error}");
    error
}

fn result(experiment: &Experiment) -> RunResult {
    run(experiment, &RunOptions::new(2, ""), &Quiet, &AtomicBool::new(false)).unwrap()
}

fn names(experiment: &Experiment) -> Vec<&str> {
    experiment.variants.iter().map(|variant| variant.name.as_str()).collect()
}

#[test]
fn every_combination_of_settings_is_a_variant() {
    let experiment = read(&(STAR.to_owned() + AXES));
    let all = [
        "one lane, iba-cc",
        "one lane, none",
        "one lane, dcqcn",
        "two lanes, iba-cc",
        "two lanes, none",
        "two lanes, dcqcn",
        "light",
    ];
    assert_eq!(names(&experiment), all);
    let lanes: Vec<u8> = experiment.variants.iter().map(|variant| variant.subnet.lanes).collect();
    assert_eq!(lanes, [1, 1, 1, 2, 2, 2, 2]);
    let control = |index: usize| {
        let control = &experiment.variants[index].control;
        control.all().map(|mechanism| mechanism.entry.name).collect::<Vec<_>>().join(" ")
    };
    let controls: Vec<String> = (0..7).map(control).collect();
    assert_eq!(controls, ["iba-cc", "", "dcqcn", "iba-cc", "", "dcqcn", "iba-cc"]);
    assert_eq!(experiment.variants[0].summary, "a lane, marked");
    assert_eq!(experiment.variants[6].traffic[0].load(), Some(0.2));
    // Spelt out it is the same experiment, without axes.
    let resolved = experiment.resolved();
    assert_eq!(read(&resolved).resolved(), resolved);
    assert!(!resolved.contains("[[axis]]") && !resolved.contains("like"), "{resolved}");
}

#[test]
fn a_row_stands_for_each_variant_of_a_kind() {
    let rows = r#"
[[published]]
each = ["{lanes}, {mechanism}"]
name = "load, {variant}"
measure = { kind = "ratio", of = { kind = "accepted-load" }, over = "{lanes}, none" }
published = "{mechanism}"
note = "with {lanes}"
[[published]]
name = "all of it"
measure = { kind = "accepted-load" }
variant = "light"
value = [0.3, 0.4]
moved_by = "load, two lanes, dcqcn"
"#;
    let experiment = read(&(STAR.to_owned() + AXES + rows));
    assert_eq!(experiment.published.len(), 7);
    let last = &experiment.published[5];
    assert_eq!(last.name, "load, two lanes, dcqcn");
    assert_eq!(last.variant.as_deref(), Some("two lanes, dcqcn"));
    assert_eq!(last.measure.arguments.over.as_deref(), Some("two lanes, none"));
    assert_eq!((last.published.as_deref(), &*last.note), (Some("dcqcn"), "with two lanes"));
    assert_eq!(experiment.published[6].moved_by.as_deref(), Some("load, two lanes, dcqcn"));
}

#[test]
fn what_cannot_be_is_told_where_it_stands() {
    let row = |each: &str| {
        format!("[[published]]\neach = {each}\nname = \"x\"\nmeasure = {{ kind = \"jain\" }}\n")
    };
    let all = STAR.to_owned() + AXES;
    for (text, says) in [
        (
            all.clone() + &row("\"three lanes\""),
            "x.toml:32: published.each = \"three lanes\" matches the name of no variant",
        ),
        (all.clone() + &row("7"), "published.each = 7 is not a list"),
        (
            all.clone() + &row("\"{lanes}, {m}\"").replace("\"x\"", "\"x, {mech}\""),
            "x.toml:33: published[0]: {mech} stands for nothing here; known are {lanes}, {m}, \
             {variant}",
        ),
        (
            all.clone() + &row("\"{lanes}, {m}\"").replace("\"x\"", "\"x, {lanes}\""),
            "x.toml:31: published.x, one lane: another row has this name; with `each`, write \
             {variant} or another word in it",
        ),
        (
            all.clone() + &row("\"light\"") + "value = 1.0\nmoved_by = \"x\"\n",
            "x.toml:31: published.x: moved_by names the row itself; name one in which a parameter \
             differs",
        ),
        (
            all.clone() + &row("\"light\"") + "value = [1.3, 1.1]\n",
            "begins with 1.3, which is above 1.1; swap them",
        ),
        (all.clone() + &row("\"light\"\nvariant = \"light\""), "stands beside `variant`"),
        (
            all.replace("like = \"two lanes, iba-cc\"", "like = \"two lane, iba-cc\""),
            "is no variant before this one; the nearest is `two lanes, iba-cc`",
        ),
        (
            all.replace("name = \"light\"", "name = \"one lane, none\""),
            "is the name of two variants",
        ),
        (
            all.replace("name = \"none\"", "name = \"iba-cc\""),
            "`one lane, iba-cc` is the name of two variants",
        ),
        (all.replace("lanes = 2", "lane = 2"), "subnet has no key `lane`"),
        (
            all.replace("settings = [\n  { name = \"one", "setting = [\n  { name = \"one"),
            "has no key `setting`; the nearest is `settings`",
        ),
        (STAR.to_owned() + "[[axis]]\nsettings = []\n", "settings = a list is empty; name"),
        (
            STAR.to_owned() + "queue_pairs = 65\n",
            "queue_pairs = 65 is not a whole number from 1 to 64",
        ),
        (STAR.to_owned() + "ramp = \"9 us\"\n", "goes with arrivals = \"ramp\""),
        (STAR.replace("periodic", "ramp"), "lacks `ramp`; write ramp = \"200 us\""),
    ] {
        let error = refusal(&text);
        assert!(error.contains(says), "{error}\n{says}");
    }
    let over = ["traffic.load=0.1..0.9".to_owned()];
    let error = Sweep::parse(STAR, Path::new("x.toml"), &over, &[]).err().unwrap().to_string();
    assert!(error.contains("lacks a count; write `0.1..0.9:9`"), "{error}");
    let error = refusal(&(STAR.to_owned() + "[sweep]\ntraffic.load = \"0.1..0.9\"\n"));
    assert!(error.contains("lacks a count; write `0.1..0.9:9`"), "{error}");
}

/// A folder that is gone in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("clearlane-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("parts")).unwrap();
        Scratch(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn an_included_file_stands_under_the_one_that_names_it() {
    let scratch = Scratch::new("include");
    let matrix = "pattern = { kind = \"matrix\", file = \"pairs.txt\" }";
    let site = STAR.replace("pattern = { kind = \"incast\", to = 0 }", matrix);
    scratch.write("parts/site.toml", &site.replace("schema = 1\n", ""));
    scratch.write("parts/pairs.txt", "1 2 0.5\n");
    scratch.write("parts/lanes.toml", AXES);
    let own = "schema = 1\nname = \"mine\"\ninclude = [\"parts/site.toml\", \"parts/lanes.toml\"]\n\
        run = { duration = \"200 us\" }\n\
        [[traffic]]\nname = \"hot\"\nload = 0.5\n[[variant]]\nname = \"more\"\n";
    let path = scratch.write("mine.toml", own);
    let experiment = Experiment::read(&path).unwrap();
    assert_eq!(experiment.name, "mine");
    // Tables merge key by key, lists follow each other.
    assert_eq!(experiment.plan.duration.as_microseconds(), 200.0);
    assert!(experiment.resolved().contains("warm_up = \"100 us\""));
    assert_eq!(names(&experiment).len(), 8);
    assert_eq!(names(&experiment)[6..], ["light", "more"]);
    assert_eq!(experiment.variants[7].traffic[0].load(), Some(0.5));
    // A path in it is seen from its own folder.
    let resolved = experiment.resolved();
    assert!(resolved.contains("parts/pairs.txt"), "{resolved}");
    assert!(result(&experiment).variants[0].runs[0].figures.all.accepted_load > 0.2);
    // A fault is told of the file it is in.
    scratch.write("parts/lanes.toml", &AXES.replace("lanes = 2", "lanes = 99"));
    let error = Experiment::read(&path).unwrap_err().to_string();
    assert!(error.contains("parts/lanes.toml:5: subnet.lanes = 99 is not"), "{error}");
    scratch.write("parts/lanes.toml", "[[axis]\n");
    let error = Experiment::read(&path).unwrap_err().to_string();
    assert!(error.contains("parts/lanes.toml:1: "), "{error}");
    scratch.write("parts/lanes.toml", "include = \"../mine.toml\"\n");
    let error = Experiment::read(&path).unwrap_err().to_string();
    assert!(
        error.contains("parts/lanes.toml:1: include = ") && error.contains("includes itself"),
        "{error}"
    );
    fs::remove_file(scratch.0.join("parts/lanes.toml")).unwrap();
    let error = Experiment::read(&path).unwrap_err().to_string();
    assert!(error.contains("parts/lanes.toml") && error.contains("check the path"), "{error}");
}

#[test]
fn queue_pairs_share_the_load_of_their_group() {
    let one = result(&read(STAR));
    let four = result(&read(&(STAR.to_owned() + "queue_pairs = 4\n")));
    let load = |result: &RunResult| result.variants[0].runs[0].figures.all.accepted_load;
    assert!((load(&one) / load(&four) - 1.0).abs() < 0.01, "{} {}", load(&one), load(&four));
    let run = &four.variants[0].runs[0];
    // In results they are one group and one flow.
    assert_eq!((run.figures.groups.len(), run.figures.flows.len()), (1, 1));
    assert_eq!(run.figures.all.senders, 1);
    let bytes: u64 = run.figures.flows.iter().map(|flow| flow.payload_bytes).sum();
    let part = &run.figures.warm_up;
    let gbps = bytes as f64 * 8e-3 / (part.to_us - part.from_us);
    assert!((gbps - run.figures.all.accepted_gbps).abs() < 1e-9, "{gbps}");
    // Beside programs, whose group has another index in the simulation.
    let program = "queue_pairs = 3\n[[traffic]]\nname = \"solver\"\nclass = \"victim\"\n\
        program = { kind = \"ring-allreduce\", size = \"1 MiB\" }\n";
    let both = result(&read(&(STAR.to_owned() + program)));
    let run = &both.variants[0].runs[0];
    assert!(run.figures.groups[1].messages > 0 && run.figures.groups[0].messages > 0);
}

#[test]
fn congestion_acts_on_each_queue_pair() {
    let hot = STAR.replace("hosts = [1]", "hosts = [1, 2, 3]") + "queue_pairs = 2\n";
    let text = hot + "[control]\nwhen = \"iba-cc\"\n";
    let result = result(&read(&text));
    let history = result.variants[0].runs[0].history.as_ref().unwrap();
    let mut pairs: Vec<(u32, u16)> =
        history.control.flows.iter().map(|flow| (flow.source.0, flow.queue_pair)).collect();
    pairs.sort_unstable();
    assert_eq!(pairs, [(1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)]);
    assert!(history.control.flows.iter().all(|flow| flow.group == 0));
}

#[test]
fn a_ramp_comes_up_to_its_load() {
    let text = STAR.replace("arrivals = \"periodic\"", "arrivals = \"ramp\"\nramp = \"200 us\"");
    let text = text.replace("warm_up = \"100 us\"", "warm_up = \"0 us\", slices = 40");
    let result = result(&read(&text));
    let series = &result.variants[0].runs[0].figures.series[0];
    let offered = |slices: std::ops::Range<usize>| -> u64 {
        series[slices].iter().map(|slice| slice.offered_bytes).sum()
    };
    // Half of the load on the way up, and a quarter of that in the first half of the way.
    let (up, after, early) = (offered(0..20), offered(20..40), offered(0..10));
    assert!((up as f64 / after as f64 - 0.5).abs() < 0.02, "{up} {after}");
    assert!((early as f64 / up as f64 - 0.25).abs() < 0.02, "{early} {up}");
    let resolved = read(&text).resolved();
    assert!(resolved.contains("arrivals = \"ramp\"") && resolved.contains("ramp = \"200 us\""));
}
