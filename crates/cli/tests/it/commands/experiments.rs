//! `run` and `compare`: experiments from the file to the folder.

use super::binary::{Scratch, uniform};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const PAIR: &str = r#"
schema = 1
name = "pair"
summary = "two engines, one hot host"
[fabric]
build = "leaf-spine:leaves=2,hosts=4,spines=2"
[subnet]
engine = "min-hop"
[sim]
preset = "qdr"
[[traffic]]
name = "hot"
class = "hot"
pattern = { kind = "incast", to = 0 }
load = 0.5
size = "2 KiB"
[[traffic]]
name = "rest"
class = "victim"
pattern = { kind = "uniform" }
load = 0.2
size = "2 KiB"
[run]
duration = "200 us"
warm_up = "20 us"
seeds = 2
[[variant]]
name = "min-hop"
[[variant]]
name = "fat-tree"
subnet = { engine = "fat-tree" }
"#;

const FOLDER: [&str; 7] = [
    "experiment.toml",
    "flow-series.parquet",
    "flows.parquet",
    "links.parquet",
    "report.html",
    "series.parquet",
    "summary.json",
];

fn names(scratch: &Scratch, folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(scratch.path(folder)).unwrap();
    let mut names: Vec<_> =
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_run_says_what_came_out_and_where_the_report_is() {
    let scratch = Scratch::new("run");
    scratch.write("pair.toml", PAIR);
    let called = scratch.call("run pair.toml --out runs/one --jobs 1");
    let text = called.text();
    assert!(text.starts_with("pair: two engines, one hot host"), "{text}");
    assert!(text.contains("200 us per variant, 2 seeds, ± is the 95 % interval over seeds\n"));
    assert!(text.ends_with("report: runs/one/report.html\n"), "{text}");
    for word in ["min-hop", "fat-tree", "slowdown", "Gb/s", "Jain", "worst link"] {
        assert!(text.contains(word), "{word} is not in\n{text}");
    }
    assert_eq!(names(&scratch, "runs/one"), FOLDER);
    let again = scratch.call("run pair.toml --out runs/one");
    assert!(again.failure(2).contains("--force"), "{again:?}");
    assert_eq!(scratch.call("run pair.toml --out runs/one --force --jobs 2").text(), text);
    let onto_itself = scratch.call("run runs/one/experiment.toml --out runs/one --force");
    assert!(onto_itself.failure(2).contains("which this command reads"), "{onto_itself:?}");
    let moved = scratch.call("run pair.toml --out runs/two --seed 7");
    for seeds in ["0", "1001"] {
        let wrong = scratch.call(&format!("run pair.toml --out never --seeds {seeds}"));
        assert!(wrong.failure(2).contains("give a number from 1 to 1000"), "{wrong:?}");
    }
    scratch.call("run pair.toml --out never --seeds 1000 --dry-run").text();
    assert_ne!(moved.text().replace("runs/two", "runs/one"), text);
}

#[test]
fn a_comparison_keeps_the_variants_asked_for_in_their_order() {
    let scratch = Scratch::new("compare");
    scratch.write("pair.toml", PAIR);
    let called = scratch.call("compare pair.toml --variants fat-tree,min-hop --seeds 1");
    let text = called.text();
    let at = |name: &str| text.find(name).unwrap_or_else(|| panic!("no {name} in\n{text}"));
    assert!(at("fat-tree") < at("min-hop"));
    assert!(!text.contains('±'), "one seed has no interval: {text}");
    assert_eq!(names(&scratch, "runs/pair"), FOLDER);
    let wrong = scratch.call("compare pair.toml --variants fat-trie --out runs/never");
    assert!(wrong.failure(2).contains("fat-tree"), "{wrong:?}");
    assert_eq!(names(&scratch, "runs"), ["pair"]);
}

#[test]
fn as_json_a_run_is_its_summary() {
    let scratch = Scratch::new("run-json");
    scratch.write("pair.toml", PAIR);
    let called = scratch.call("run pair.toml --out out --json");
    let json = called.json(0);
    assert_eq!(json["schema"], "clearlane-summary/2");
    assert_eq!(called.stdout, scratch.read("out/summary.json"));
    assert_eq!(called.stderr, "report: out/report.html\n");
}

#[test]
fn a_dry_run_spells_the_experiment_out() {
    let scratch = Scratch::new("run-dry");
    scratch.write("pair.toml", PAIR);
    let text = scratch.call("run pair.toml --dry-run --seeds 9").text().to_owned();
    assert!(text.contains("seeds = 9") && text.contains("switch_delay"), "{text}");
    let json = scratch.call("compare pair.toml --variants fat-tree --dry-run --json").json(0);
    assert_eq!(json["schema"], "clearlane-experiment/1");
    assert_eq!(json["resolved"]["variant"].as_array().unwrap().len(), 1);
    assert_eq!(scratch.names(), ["pair.toml"]);
    // What is printed is an experiment itself, and means the same.
    scratch.write("again.toml", &text);
    let again = scratch.call("run again.toml --dry-run");
    assert_eq!(again.text(), text);
}

#[test]
fn every_shipped_experiment_is_spelt_out_by_the_command_that_runs_it() {
    let scratch = Scratch::new("run-shipped");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<PathBuf> = paths.filter(|path| path.is_file()).collect();
    assert!(files.len() > 25);
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let path = path.to_str().unwrap();
        let mut commands = vec![vec!["run", path, "--dry-run"]];
        if text.contains("\n[sweep]") {
            commands.push(vec!["sweep", path, "--dry-run"]);
            // Variants that set the swept key themselves are run by `compare`.
            for (file, swept) in [("parking-lot.toml", "cc on"), ("drb-path-hotspot.toml", "drb")] {
                if path.ends_with(file) {
                    commands[1].extend(["--variants", swept]);
                }
            }
        }
        commands.iter().for_each(|words| _ = scratch.call_words(words).text());
    }
}

#[test]
fn wrong_experiments_are_told_with_their_line_and_leave_nothing() {
    let scratch = Scratch::new("run-wrong");
    let failure = |text: &str| {
        scratch.write("wrong.toml", text);
        let called = scratch.call("run wrong.toml --out out");
        assert_eq!(scratch.names(), ["wrong.toml"]);
        called.failure(2).to_owned()
    };
    let unit = failure(&PAIR.replace("\"200 us\"", "\"200 parsecs\""));
    assert!(unit.starts_with("wrong.toml:24: ") && unit.contains("is not a time"), "{unit}");
    let key = failure(&PAIR.replace("duration", "duratoin"));
    assert!(key.starts_with("wrong.toml:") && key.contains("duration"), "{key}");
    let half = failure(&PAIR[..PAIR.len() / 2]);
    assert!(half.starts_with("wrong.toml:"), "{half}");
    let name = failure(&PAIR.replace("\"min-hop\"\n[sim]", "\"min-hip\"\n[sim]"));
    assert!(name.contains("min-hop"), "{name}");
    let missing = scratch.call("run none.toml");
    assert!(missing.failure(2).starts_with("none.toml: "), "{missing:?}");
    let site = scratch.call("run wrong.toml --fabric none.topo --out out");
    site.failure(2);
}

#[test]
fn a_site_takes_the_place_of_the_experiments_own_fabric() {
    let scratch = Scratch::new("run-site");
    scratch.write("pair.toml", PAIR);
    scratch.call("fabric build leaf-spine:leaves=3,hosts=2,spines=1 -o site.topo").text();
    let called = scratch.call("compare pair.toml --fabric site.topo --out out --json");
    let text = called.json(0).to_string();
    assert!(text.contains("site.topo"), "{text}");
    let tables = scratch.call("compare pair.toml --lft site.lft --out never");
    assert!(tables.failure(2).contains("--lft"), "{tables:?}");
}

#[test]
fn a_deadlock_is_an_answer_with_its_own_code() {
    let scratch = Scratch::new("run-deadlock");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/ring-deadlock.toml");
    let called = scratch.call_words(&["run", file, "--out", "out", "--seeds", "1"]);
    assert_eq!((called.code, called.stderr.as_str()), (3, ""), "{called:?}");
    assert!(called.stdout.contains("[deadlock]") && called.stdout.contains("waits for"));
    assert!(called.stdout.contains("* not converged: the run ended in a deadlock\n"), "{called:?}");
    assert!(scratch.read("out/summary.json").contains("\"deadlock\""));
}

#[test]
fn an_interrupted_run_leaves_a_partial_result() {
    let scratch = Scratch::new("run-interrupted");
    // Long enough that nobody waits for its end.
    scratch.write("pair.toml", &PAIR.replace("\"200 us\"", "\"20 s\""));
    let words = ["run", "pair.toml", "--out", "out", "--jobs", "1"];
    let (called, took) = scratch.interrupted(&words);
    assert!(took < Duration::from_secs(60), "it took {took:?} to stop");
    assert_eq!(called.code, 4, "{called:?}");
    assert!(called.stdout.contains("[partial]"), "{called:?}");
    assert!(!called.stdout.contains("still changing"), "{called:?}");
    assert!(scratch.read("out/summary.json").contains("\"partial\""));
    assert_eq!(scratch.names(), ["out", "out.checkpoint", "pair.toml"]);
}

#[test]
fn results_that_cannot_be_written_are_refused_before_the_run() {
    let scratch = Scratch::new("run-unwritable");
    scratch.write("pair.toml", PAIR);
    scratch.write("file", "x");
    let called = scratch.call("run pair.toml --out file");
    assert!(called.failure(2).starts_with("file: "), "{called:?}");
    let called = scratch.call("run pair.toml --out /proc/clearlane/out");
    assert!(called.failure(5).starts_with("/proc/clearlane"), "{called:?}");
}

#[test]
fn an_experiment_reads_all_the_files_a_route_writes() {
    let scratch = Scratch::new("run-lanes");
    scratch.call("fabric build torus:4x4 -o torus.topo").text();
    scratch.call("route torus.topo --engine dor -o deploy").text();
    let experiment = PAIR
        .replace("build = \"leaf-spine:leaves=2,hosts=4,spines=2\"", "file = \"torus.topo\"")
        .replace("engine = \"min-hop\"", "engine = \"file\"\nlft = [\"deploy/lfts.txt\"]")
        .replace("name = \"min-hop\"", "name = \"tables alone\"")
        .replace("name = \"fat-tree\"", "name = \"all files\"")
        .replace(
            "subnet = { engine = \"fat-tree\" }",
            "subnet = { lft = [\"deploy/lfts.txt\", \"deploy/psl.txt\", \"deploy/sl2vl.dump\"] }",
        );
    scratch.write("lanes.toml", &experiment);
    let free = |line: &str| {
        let json = scratch.call(line).json(0);
        let variants = json["variants"].as_array().unwrap().clone();
        let fact = |variant: &serde_json::Value| {
            let facts = variant["facts"].as_array().unwrap();
            let found = facts.iter().find(|fact| fact["label"] == "deadlock-free").unwrap();
            found["value"].as_str().unwrap().starts_with("yes")
        };
        variants.iter().map(fact).collect::<Vec<_>>()
    };
    assert_eq!(free("run lanes.toml --out one --json --seeds 1"), [false, true]);
    // The same of the command line, for every variant.
    let files = "--lft deploy/lfts.txt --lft deploy/sl2vl.dump --lft deploy/psl.txt";
    assert_eq!(free(&format!("run lanes.toml --out two --json --seeds 1 {files}")), [true, true]);
    let wrong = experiment.replace("[\"deploy/lfts.txt\"]", "[1]");
    scratch.write("wrong.toml", &wrong);
    let told = scratch.call("run wrong.toml --out three");
    assert!(
        told.failure(2).starts_with("wrong.toml:9: subnet.lft[0] = 1 is not a text"),
        "{told:?}"
    );
}

#[test]
fn a_comparison_can_be_drawn() {
    let scratch = Scratch::new("picture");
    scratch.write("pair.toml", PAIR);
    let line = "compare pair.toml --seeds 1 --out out --picture pair.svg --theme dark";
    scratch.call(line).text();
    let drawn = scratch.read("pair.svg");
    assert!(drawn.starts_with("<svg") && drawn.contains("min-hop") && drawn.contains("fat-tree"));
    let again = scratch.call("run pair.toml --seeds 1 --out two --picture pair.svg");
    assert!(again.failure(2).contains("--force"), "{again:?}");
    assert_eq!(scratch.names(), ["out", "pair.svg", "pair.toml"]);
    let input = scratch.call("run pair.toml --out two --picture pair.toml --force");
    assert!(input.failure(2).contains("is what this command reads"), "{input:?}");
}

/// Whoever asks for threads is told at the beginning what they get and why, once.
#[test]
fn what_threads_come_to_is_said_by_run_and_by_sweep() {
    let scratch = Scratch::new("threads");
    scratch.write(
        "small.toml",
        &uniform("small", "leaf-spine:leaves=8,spines=8,hosts=2", "min-hop", "50 us"),
    );
    let why = "each run in 1 partition on 1 thread, not 2: its fabric keeps 1 thread busy\n";
    for command in ["run small.toml --seeds 3", "sweep small.toml --over traffic.load=0.1,0.2"] {
        let called = scratch.call(&format!("{command} --out runs/1 --force --threads 2"));
        assert_eq!((called.code, called.stderr.matches(why).count()), (0, 1), "{called:?}");
        let forced = scratch.call(&format!("{command} --out runs/2 --partitions 2 --threads 2"));
        let told = "each run in 2 partitions on 2 threads: no faster than on fewer, because ";
        assert_eq!((forced.code, forced.stderr.matches(told).count()), (0, 1), "{forced:?}");
        let plain = scratch.call(&format!("{command} --out runs/1 --force"));
        plain.text();
        assert!(!plain.stderr.contains("thread"), "{plain:?}");
        fs::remove_dir_all(scratch.path("runs")).unwrap();
    }
    for wrong in ["x", "0", "-3", "2000", ""] {
        let called = scratch.call(&format!("run small.toml --out never --threads={wrong}"));
        assert!(called.failure(2).contains("give a number from 1 to 1024"), "{called:?}");
    }
    for name in ["threads", "--threads"] {
        let explained = scratch.call(&format!("explain {name}"));
        let text = explained.text();
        assert!(text.starts_with("--threads, flag of `clearlane run`\n"), "{text}");
        assert!(text.contains("do not change results"), "{text}");
    }
}
