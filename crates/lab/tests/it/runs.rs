//! Whole experiments: shipped ones against their published numbers, same bytes again, interruption,
//! and what a folder may hold.

use clearlane_lab::{
    Begun, Division, Experiment, LabError, Processes, Progress, Quiet, RunFolder, RunOptions,
    RunResult, SiteFiles, Status, Unfinished, fleet_of_threads, run, write_run_folder,
};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

const FILES: [&str; 7] = [
    "summary.json",
    "experiment.toml",
    "flow-series.parquet",
    "flows.parquet",
    "links.parquet",
    "series.parquet",
    "report.html",
];

/// Hot flows, victims and background on a small tree, in two variants.
const SMALL: &str = r#"schema = 1
name = "small"
summary = "does it work?"
[fabric]
build = "leaf-spine:leaves=4,spines=2,hosts=4"
[subnet]
engine = "min-hop"
[sim]
preset = "qdr"
[[traffic]]
name = "hot"
class = "hot"
pattern = { kind = "incast", to = 0 }
senders = { every = 2, offset = 1 }
load = 1.0
size = "8 KiB"
[[traffic]]
name = "victims"
class = "victim"
pattern = { kind = "uniform" }
senders = { every = 2 }
load = 0.4
size = { min = "64 B", max = "4 KiB" }
[run]
duration = "400 us"
seeds = 2
[[variant]]
name = "one lane"
[[variant]]
name = "two lanes"
subnet = { lanes = 2 }
traffic = [{ name = "hot", sl = 1 }]
[[published]]
name = "slowdown"
measure = { kind = "slowdown" }
published = "more than 1"
[[published]]
name = "slowdown of one lane over two"
measure = { kind = "ratio", of = { kind = "slowdown" }, over = "two lanes" }
"#;

fn small() -> Experiment {
    Experiment::parse(SMALL, Path::new("small.toml")).unwrap()
}

fn shipped(name: &str) -> Experiment {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    Experiment::read(&folder.join(name)).unwrap()
}

fn result(experiment: &Experiment, jobs: usize) -> RunResult {
    let options = RunOptions::new(jobs, "clearlane run small.toml");
    run(experiment, &options, &Quiet, &AtomicBool::new(false)).unwrap()
}

fn attempt(experiment: &Experiment) -> Result<RunResult, LabError> {
    let options = RunOptions::new(1, "clearlane run small.toml");
    run(experiment, &options, &Quiet, &AtomicBool::new(false))
}

fn obtained(result: &RunResult) -> Vec<f64> {
    result.published().iter().map(|row| row.obtained.map_or(f64::NAN, |o| o.mean)).collect()
}

/// A folder of this test's own that is gone afterwards.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("clearlane-lab-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_same_experiment_gives_the_same_bytes_on_one_thread_and_on_three() {
    let scratch = Scratch::new("bytes");
    for (folder, jobs) in [("a", 1), ("b", 3)] {
        write_run_folder(
            &result(&small(), jobs),
            &scratch.0.join(folder),
            false,
            &Unfinished::default(),
        )
        .unwrap();
    }
    for name in FILES {
        let read = |folder| fs::read(scratch.0.join(folder).join(name)).unwrap();
        assert!(!read("a").is_empty(), "{name}");
        assert!(read("a") == read("b"), "{name} differs");
    }
}

/// How runs were divided, and of how many switches.
#[derive(Default)]
struct Beginnings(Mutex<Vec<Begun>>);

impl Progress for Beginnings {
    fn on_begin(&self, run: &Begun) {
        self.0.lock().unwrap().push(*run);
    }

    fn on_progress(&self, _: f64, _: u64) {}
}

/// Threads are for fabrics that have work for them: a small one stays whole unless told otherwise.
#[test]
fn a_fabric_too_small_for_threads_is_not_divided() {
    for (leaves, partitions) in [(4, 1), (80, 2)] {
        let text = SMALL
            .replace("leaves=4,spines=2,hosts=4", &format!("leaves={leaves},spines=18,hosts=18"))
            .replace("400 us", "2 us");
        let begun = Beginnings::default();
        let options = RunOptions { threads: 3, ..RunOptions::new(1, "clearlane run x.toml") };
        let small = Experiment::parse(&text, Path::new("small.toml")).unwrap();
        run(&small, &options, &begun, &AtomicBool::new(false)).unwrap();
        let division = Division { partitions, threads: partitions };
        let cable_ends = leaves * (18 + 18 + 18);
        let (earlier, earlier_hops) = (0.0, 0);
        let switches = leaves + 18;
        let told = Begun { division, switches, cable_ends, earlier, earlier_hops };
        assert_eq!(begun.0.into_inner().unwrap()[0], told);
        assert_eq!(told.worth(), partitions);
    }
}

/// A ring that deadlocks, an incast on connections, a tree with victims: files do not tell how runs
/// were divided.
#[test]
fn the_same_bytes_however_a_run_is_divided() {
    let scratch = Scratch::new("divided");
    let mut incast = shipped("incast-16.toml");
    // The ring has several seeds.
    incast.override_seeds(None, Some(1)).unwrap();
    let experiments = [small(), shipped("ring-deadlock.toml"), incast];
    for (number, experiment) in experiments.iter().enumerate() {
        let folder = |partitions: usize, threads: usize| {
            let plain = RunOptions::new(2, "clearlane run x.toml");
            let options = RunOptions { threads, partitions: Some(partitions), ..plain };
            let begun = Beginnings::default();
            let done = run(experiment, &options, &begun, &AtomicBool::new(false)).unwrap();
            let all = begun.0.into_inner().unwrap();
            assert!(!all.is_empty());
            for Begun { division, switches, .. } in all {
                let partitions = partitions.min(switches);
                assert_eq!(division, Division { partitions, threads: threads.min(partitions) });
            }
            let folder = scratch.0.join(format!("{number}-{partitions}-{threads}"));
            write_run_folder(&done, &folder, false, &Unfinished::default()).unwrap();
            folder
        };
        let together = |processes: usize| {
            let folder = scratch.0.join(format!("{number}-of-{processes}"));
            of_processes(experiment, processes, &folder);
            folder
        };
        let whole = folder(1, 1);
        // A star has one switch, and a process needs one of its own.
        let processes = if experiment.name == "incast-16" { 0..0 } else { 2..4 };
        let divided = [folder(2, 2), folder(3, 1), folder(8, 2)];
        for other in divided.into_iter().chain(processes.map(together)) {
            for name in FILES {
                let [one, other] = [&whole, &other].map(|folder| fs::read(folder.join(name)));
                assert!(one.unwrap() == other.unwrap(), "{name} of {}", experiment.name);
            }
        }
    }
}

/// Runs it in so many processes, which are threads here. The first has the results.
fn of_processes(experiment: &Experiment, processes: usize, folder: &Path) {
    thread::scope(|scope| {
        for (rank, fleet) in fleet_of_threads(processes).into_iter().enumerate() {
            scope.spawn(move || {
                let processes = Processes::of(fleet);
                assert_eq!(processes.is_first(), rank == 0);
                let options =
                    RunOptions { processes, ..RunOptions::new(2, "clearlane run x.toml") };
                let done = run(experiment, &options, &Quiet, &AtomicBool::new(false)).unwrap();
                if rank == 0 {
                    write_run_folder(&done, folder, false, &Unfinished::default()).unwrap();
                }
            });
        }
    });
}

#[test]
fn more_processes_than_switches_are_refused() {
    let star = &shipped("incast-16.toml");
    thread::scope(|scope| {
        for fleet in fleet_of_threads(2) {
            scope.spawn(move || {
                let processes = Processes::of(fleet);
                let options = RunOptions { processes, ..RunOptions::new(1, "") };
                let refused = run(star, &options, &Quiet, &AtomicBool::new(false));
                let error = refused.unwrap_err().to_string();
                assert!(error.contains("2 processes share 1 partitions; start fewer"), "{error}");
            });
        }
    });
}

/// One that is interrupted interrupts all: none waits for another for good.
#[test]
fn processes_stop_together() {
    let text = SMALL.replace("400 us", "1 s");
    let long = Experiment::parse(&text, Path::new("small.toml")).unwrap();
    let cancel = AtomicBool::new(false);
    thread::scope(|scope| {
        for (rank, fleet) in fleet_of_threads(2).into_iter().enumerate() {
            let (long, cancel) = (&long, &cancel);
            scope.spawn(move || {
                let processes = Processes::of(fleet);
                let options = RunOptions { processes, ..RunOptions::new(1, "") };
                let never = AtomicBool::new(false);
                let own = if rank == 1 { cancel } else { &never };
                let done = run(long, &options, &Quiet, own).unwrap();
                let interrupted = done.variants[0].runs.iter().all(|run| run.interrupted);
                assert!(interrupted, "process {rank}");
            });
        }
        thread::park_timeout(Duration::from_millis(300));
        cancel.store(true, Ordering::SeqCst);
    });
}

#[test]
fn another_seed_and_another_rate_give_other_figures() {
    let base = obtained(&result(&small(), 2));
    assert_eq!(base, obtained(&result(&small(), 2)));
    let mut other = small();
    other.override_seeds(Some(77), None).unwrap();
    assert_ne!(base, obtained(&result(&other, 2)));
    let text = SMALL.replace("preset = \"qdr\"", "preset = \"qdr\"\nlink_rate = \"16 Gb/s\"");
    let other = Experiment::parse(&text, Path::new("small.toml")).unwrap();
    assert_ne!(base, obtained(&result(&other, 2)));
}

#[test]
fn victims_suffer_on_a_shared_lane_and_not_on_their_own() {
    let result = result(&small(), 2);
    let obtained = obtained(&result);
    let two_lanes = obtained[0] / obtained[1];
    assert!(obtained[0] > 1.2, "{obtained:?}");
    assert!((0.9..1.1).contains(&two_lanes), "{obtained:?}");
    assert_eq!(result.published_table().unwrap().rows.len(), 2);
    assert_eq!(result.headline_table().rows.len(), 2);
}

#[test]
fn the_parking_lot_gives_the_published_shares() {
    let mut experiment = shipped("parking-lot.toml");
    experiment.override_seeds(None, Some(1)).unwrap();
    let result = result(&experiment, 2);
    let (third, sixth) = (1.0 / 3.0, 1.0 / 6.0);
    let off = [sixth, sixth, third, third, 0.9, 1.0, 0.5, 0.5, 0.25, 0.25, 0.5];
    let obtained = obtained(&result);
    for (row, expected) in obtained.iter().zip(off) {
        assert!((row - expected).abs() < 0.003, "{row} is not {expected}");
    }
    // With congestion control everybody gets about a quarter of what is used.
    let [h1, h2, h3, h5, jain, used] = obtained[11..17] else { panic!("{obtained:?}") };
    for share in [h1, h2, h3, h5] {
        assert!((0.2..0.3).contains(&share), "{obtained:?}");
    }
    assert!(jain >= 0.99 && (0.7..0.95).contains(&used), "{obtained:?}");
    // The senders offer four times what the link carries: their queues grow, the shares stand.
    assert_eq!(result.status(), Status::Complete);
    // Seven variants of eight: H1 alone has the link to itself.
    let table = result.headline_table().to_string();
    assert_eq!(table.matches("no steady value").count(), 3 * 7, "{table}");
}

#[test]
fn the_headline_reads_as_people_expect_it() {
    let mut experiment = shipped("parking-lot.toml");
    experiment.override_seeds(None, Some(1)).unwrap();
    let text = result(&experiment, 1).headline_table().to_string();
    let lines: Vec<&str> = text.lines().collect();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(
        words(lines[0]).join(" "),
        "variant offered delivered accepted latency mean p50 p99 Jain worst link held back"
    );
    assert_eq!(words(lines[1]), ["µs", "µs", "µs"]);
    let row = words(lines[2]);
    // Four senders share one link: a quarter each, 2048 of 2074 bytes of it payload.
    let row = [vec![format!("{} {}", row[0], row[1])], row[2..].to_vec()].concat();
    assert_eq!((row[0].as_str(), row[2].as_str(), row[3].as_str()), ("cc off", "0.250", "0.247"));
    // Queues grow from the start to the end, so no latency is one of a steady state.
    assert_eq!(row[4..13].join(" "), ["no steady value"; 3].join(" "));
    assert_eq!((row[13].as_str(), row[14].as_str()), ("0.900", "1.00"));
}

#[test]
fn latencies_of_an_idle_network_are_those_of_its_parts() {
    let text = SMALL.replace("load = 1.0", "load = 0.001").replace("load = 0.4", "load = 0.001");
    let text = text
        .replace("{ min = \"64 B\", max = \"4 KiB\" }", "\"2 KiB\"")
        .replace("duration = \"400 us\"", "duration = \"20 ms\"");
    let result = result(&Experiment::parse(&text, Path::new("small.toml")).unwrap(), 2);
    let victims = &result.variants[0].runs[0].figures.classes[1].1;
    // Send overhead 400 ns, 2074 B at 4x QDR 518.5 ns, then one switch and two cables or three
    // switches and four cables, 100 ns and 25 ns each: 1.07 or 1.32 us and the receive overhead.
    let (p50, p99) = (victims.latency_p50_us.unwrap(), victims.latency_p99_us.unwrap());
    let mean = victims.latency_mean_us.unwrap();
    assert!((1.0..1.8).contains(&p50) && (1.0..1.8).contains(&mean), "{p50} {mean}");
    assert!(p99 >= p50 && p99 < 3.5, "{p99}");
    assert!((result.variants[0].runs[0].slowdown.unwrap() - 1.0).abs() < 0.02);
}

#[test]
fn an_incast_fills_the_link_and_shares_it() {
    let obtained = obtained(&result(&shipped("incast-16.toml"), 2));
    for (row, (expected, off)) in obtained.iter().zip([(99.37, 0.2), (0.0625, 3e-4), (1.0, 1e-3)]) {
        assert!((row - expected).abs() < off, "{obtained:?}");
    }
}

#[test]
fn a_ring_deadlocks_without_datelines_and_the_summary_names_the_cycle() {
    let result = result(&shipped("ring-deadlock.toml"), 2);
    assert_eq!(result.status(), Status::Deadlock);
    assert_eq!(obtained(&result), [1.0, 0.0]);
    let json: serde_json::Value = serde_json::from_str(&result.to_json()).unwrap();
    let cycle = &json["variants"][0]["runs"][0]["deadlock"]["cycle"];
    assert_eq!(cycle.as_array().unwrap().len(), 6, "{cycle}");
    let mut dor = shipped("ring-deadlock.toml");
    dor.keep_variants(&["dor"]).unwrap();
    assert_ne!(self::result(&dor, 1).status(), Status::Deadlock);
}

#[test]
fn the_torus_saturates_where_the_other_simulator_says() {
    let mut experiment = shipped("torus8-saturation.toml");
    experiment.keep_variants(&["0.4", "0.6", "deep 0.8"]).unwrap();
    experiment.override_seeds(None, Some(2)).unwrap();
    let result = result(&experiment, 2);
    for seed in 0..2 {
        let delivered = result.variants.iter().map(|v| v.runs[seed].figures.all.delivered_load);
        let delivered: Vec<f64> = delivered.collect();
        // Below saturation everything offered is delivered; beyond it, 0.50 to 0.52 in BookSim 2.
        assert!((delivered[0] - 0.4).abs() < 0.01, "{delivered:?}");
        assert!((0.47..0.53).contains(&delivered[1]), "{delivered:?}");
        // Two packets of buffer are what holds it back: deep buffers carry far more.
        assert!((0.62..0.75).contains(&delivered[2]), "{delivered:?}");
    }
}

#[test]
fn every_shipped_experiment_resolves_to_itself() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut seen = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let resolved = Experiment::read(&path).unwrap().resolved();
            let again =
                Experiment::parse(&resolved, Path::new("resolved.toml")).unwrap().resolved();
            assert_eq!(resolved, again, "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen >= 5, "{seen}");
}

#[test]
fn the_resolved_experiment_gives_the_same_results() {
    let again = Experiment::parse(&small().resolved(), Path::new("resolved.toml")).unwrap();
    assert_eq!(result(&small(), 2).to_json(), result(&again, 2).to_json());
}

#[test]
fn the_demo_runs_on_the_shipped_site_and_its_victims_suffer() {
    let mut experiment = shipped("demo-hot-spot.toml");
    experiment.override_seeds(None, Some(1)).unwrap();
    experiment.keep_variants(&["as-is"]).unwrap();
    let result = result(&experiment, 2);
    let run = &result.variants[0].runs[0];
    assert!(run.slowdown.unwrap() > 1.2, "{:?}", run.slowdown);
    assert!(result.oddities().iter().any(|oddity| oddity.contains("runs at 4x SDR")));
}

#[test]
fn on_another_site_the_first_host_stands_in_for_one_that_is_missing_if_it_may() {
    let scratch = Scratch::new("site");
    let fabric = clearlane_fabric::topologies::build("star:6").unwrap();
    let path = scratch.0.join("star.topo");
    fs::write(&path, clearlane_fabric::formats::ibnetdiscover::write(&fabric)).unwrap();
    let mut experiment = shipped("demo-hot-spot.toml");
    experiment.override_seeds(None, Some(1)).unwrap();
    let mut site = SiteFiles { fabric: Some(path), ..SiteFiles::default() };
    let refused = experiment.clone().override_site(&site);
    assert!(refused.unwrap_err().to_string().contains("--lft"));
    experiment.keep_variants(&["fat-tree"]).unwrap();
    let mut without = experiment.clone();
    without.override_site(&site).unwrap();
    let refused = attempt(&without).unwrap_err().to_string();
    assert!(refused.contains("there is no host `storage01`"), "{refused}");
    assert!(refused.contains("--stand-in"), "{refused}");
    site.stand_in = true;
    experiment.override_site(&site).unwrap();
    let result = result(&experiment, 1);
    // It changes what was simulated, so it is what is said first.
    assert!(result.oddities()[0].contains("no host storage01 here"), "{:?}", result.oddities());
}

/// The victims' figures of the demo's own tables on a site given by two files, one seed.
fn demo_on(fabric: PathBuf, lft: PathBuf) -> RunResult {
    let mut experiment = shipped("demo-hot-spot.toml");
    experiment.keep_variants(&["as-is"]).unwrap();
    experiment.override_seeds(None, Some(1)).unwrap();
    let (fabric, lft) = (Some(fabric), vec![lft]);
    let site = SiteFiles { fabric, lft, stand_in: true, ..SiteFiles::default() };
    experiment.override_site(&site).unwrap();
    result(&experiment, 2)
}

#[test]
fn the_site_in_other_formats_gives_the_same_figures() {
    let site = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/site");
    let victims = |fabric: &str, lft: &str| {
        let result = demo_on(site.join(fabric), site.join(lft));
        let run = &result.variants[0].runs[0];
        (run.figures.classes.clone(), run.slowdown)
    };
    let (ours, theirs) = (
        victims("site.ibnetdiscover", "site.dump_fts"),
        victims("site.ibnetdiscover-p", "opensm-lfts.dump"),
    );
    assert!(ours.1.unwrap() > 1.2, "{:?}", ours.1);
    assert_eq!(ours, theirs);
}

/// A site of third parties with its own tables; the files lie beside the workspace or nowhere.
#[test]
#[allow(clippy::print_stdout)]
fn needs_shared_the_demo_runs_on_a_site_of_others() {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    if !shared.exists() {
        println!("skipped: {} is not here", shared.display());
        return;
    }
    let site = shared.join("data/fabrics/hwloc-avakas");
    let result =
        demo_on(site.join("ib-subnet.ibnetdiscover-p.txt"), site.join("all-ibroutes.lft.txt"));
    // The victims are delivered less than they offer; what they are delivered has settled.
    let moving = result.not_converged();
    assert!(moving.iter().all(|label| label.starts_with("victim")));
    assert!(!moving.contains(&"victim payload"), "{:?}", result.oddities());
    assert!(result.to_json().contains("all 78680 paths"));
    let slowdown = result.variants[0].runs[0].slowdown.unwrap();
    // Nothing limits the packets under way: with 16 of them without an ACK it was above 1.2.
    assert!(slowdown > 1.1, "{slowdown}");
}

/// Cancels once a share of the work is done.
struct CancelAt<'a>(f64, &'a AtomicBool);

impl Progress for CancelAt<'_> {
    fn on_progress(&self, done: f64, packet_hops: u64) {
        assert!(done <= 1.0 && packet_hops > 0);
        if done >= self.0 {
            self.1.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn an_interrupted_experiment_keeps_what_it_finished_and_says_partial() {
    let cancel = AtomicBool::new(false);
    let options = RunOptions::new(1, "");
    // Four runs, each with one of the victims alone: the third is under way at 0.55.
    let result = run(&small(), &options, &CancelAt(0.55, &cancel), &cancel).unwrap();
    assert_eq!(result.status(), Status::Partial);
    assert_eq!(result.variants[0].runs.len(), 2);
    assert_eq!(result.variants[1].runs.len(), 1);
    assert!(result.variants[1].runs[0].interrupted);
    let scratch = Scratch::new("partial");
    let report =
        write_run_folder(&result, &scratch.0.join("run"), false, &Unfinished::default()).unwrap();
    assert!(fs::read_to_string(report).unwrap().contains("\"status\":\"partial\""));
    let json = fs::read_to_string(scratch.0.join("run/summary.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (json["schema"].as_str(), json["status"].as_str()),
        (Some("clearlane-summary/2"), Some("partial"))
    );

    // Stopped before anything was finished: there is nothing to put into a folder.
    let error = run(&small(), &options, &Quiet, &AtomicBool::new(true)).unwrap_err();
    assert!(!error.is_machine());
    let said = error.to_string();
    assert!(
        said.ends_with("interrupted before any run was finished; no results are written"),
        "{said}"
    );
}

/// A zero would be told as a measurement.
#[test]
fn a_run_that_was_stopped_in_its_warm_up_has_no_figures() {
    let text = SMALL.replace("seeds = 2", "warm_up = \"200 us\"\nseeds = 1");
    let mut experiment = Experiment::parse(&text, Path::new("small.toml")).unwrap();
    experiment.keep_variants(&["one lane"]).unwrap();
    let cancel = AtomicBool::new(false);
    // Of two runs, the second of the victims alone, this is a fifth of the first.
    let stopped = CancelAt(0.1, &cancel);
    let result = run(&experiment, &RunOptions::new(1, ""), &stopped, &cancel).unwrap();
    assert_eq!(result.status(), Status::Partial);
    let json: serde_json::Value = serde_json::from_str(&result.to_json()).unwrap();
    let cells = json["headline"]["one lane"].as_object().unwrap();
    assert!(cells.len() > 5, "{cells:?}");
    for (name, cell) in cells {
        assert!(cell.is_null() || cell["mean"].is_null(), "{name}: {cell}");
    }
    let said = result.oddities().join("\n");
    assert!(said.contains("us of simulated time, before anything was measured"), "{said}");
    let scratch = Scratch::new("warm-up");
    let report =
        write_run_folder(&result, &scratch.0.join("run"), false, &Unfinished::default()).unwrap();
    assert!(fs::read_to_string(report).unwrap().contains("\"Nothing was measured.\""));
}

#[test]
fn an_interruption_need_not_wait_for_a_share_of_the_run() {
    // One of its 200 steps takes minutes.
    let text = SMALL.replace("400 us", "280 s").replace("seeds = 2", "seeds = 1");
    let mut experiment = Experiment::parse(&text, Path::new("small.toml")).unwrap();
    experiment.keep_variants(&["one lane"]).unwrap();
    let cancel = AtomicBool::new(false);
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            // Time enough to set it up.
            let (_open, never) = channel::<()>();
            never.recv_timeout(Duration::from_secs(1)).unwrap_err();
            cancel.store(true, Ordering::SeqCst);
        });
        run(&experiment, &RunOptions::new(1, ""), &Quiet, &cancel).unwrap()
    });
    assert_eq!(result.status(), Status::Partial);
    let run = &result.variants[0].runs[0];
    assert!(run.interrupted && run.simulated < experiment.plan.duration, "{}", run.simulated);
}

#[test]
fn whoever_looks_while_a_run_is_replaced_finds_the_old_one_or_the_new_one() {
    let scratch = Scratch::new("exchange");
    let mut experiment = small();
    experiment.override_seeds(None, Some(1)).unwrap();
    let result = result(&experiment, 2);
    let out = scratch.0.join("run");
    write_run_folder(&result, &out, false, &Unfinished::default()).unwrap();
    let (done, missing) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                let whole = FILES.iter().all(|name| out.join(name).is_file());
                missing.fetch_add(usize::from(!whole), Ordering::SeqCst);
            }
        });
        for _ in 0..20 {
            write_run_folder(&result, &out, true, &Unfinished::default()).unwrap();
        }
        done.store(true, Ordering::SeqCst);
    });
    assert_eq!(missing.load(Ordering::SeqCst), 0);
    let names = fs::read_dir(&scratch.0).unwrap().count();
    assert_eq!(names, 1, "something is left beside the folder");
}

#[test]
fn a_folder_is_overwritten_only_if_it_is_a_run_and_only_when_forced() {
    let scratch = Scratch::new("folder");
    let mut experiment = small();
    experiment.override_seeds(None, Some(1)).unwrap();
    let result = result(&experiment, 2);
    let out = scratch.0.join("deep/run");
    write_run_folder(&result, &out, false, &Unfinished::default()).unwrap();
    let refused = |force| {
        write_run_folder(&result, &out, force, &Unfinished::default())
            .map(|_| ())
            .map_err(|e| e.to_string())
    };
    let text =
        format!("{}: holds an earlier run; choose another folder or add --force", out.display());
    assert_eq!(refused(false), Err(text));
    refused(true).unwrap();
    fs::write(out.join("notes.txt"), "mine").unwrap();
    assert!(refused(true).unwrap_err().contains("holds other files than a run's"));
    assert_eq!(fs::read_to_string(out.join("notes.txt")).unwrap(), "mine");
    let file = scratch.0.join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(
        RunFolder::claim(&file, true, &Unfinished::default()),
        Err(LabError::Taken { .. })
    ));
    // What was refused left nothing behind.
    let left: Vec<_> = fs::read_dir(out.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1);
}

#[test]
fn a_folder_that_cannot_be_written_is_the_machines_fault() {
    let scratch = Scratch::new("refused");
    fs::write(scratch.0.join("file"), "").unwrap();
    let mut experiment = small();
    experiment.override_seeds(None, Some(1)).unwrap();
    let error = write_run_folder(
        &result(&experiment, 2),
        &scratch.0.join("file/run"),
        false,
        &Unfinished::default(),
    );
    let error = error.unwrap_err();
    let text = error.to_string();
    assert!(error.is_machine() && !text.contains('\n'), "{text}");
    assert!(!text.contains("os error") && !text.contains(".unfinished"), "{text}");
}

#[test]
fn tables_read_back_and_agree_with_the_summary() {
    let scratch = Scratch::new("tables");
    let result = result(&small(), 2);
    write_run_folder(&result, &scratch.0.join("run"), false, &Unfinished::default()).unwrap();
    let open = |name: &str| {
        SerializedFileReader::new(fs::File::open(scratch.0.join("run").join(name)).unwrap())
            .unwrap()
    };
    let columns = |reader: &SerializedFileReader<fs::File>| -> Vec<String> {
        let schema = reader.metadata().file_metadata().schema_descr_ptr();
        schema.columns().iter().map(|column| column.name().to_owned()).collect()
    };
    let links = open("links.parquet");
    assert_eq!(links.num_row_groups(), 4);
    for name in ["PortXmitData_4octets", "PortRcvPkts_packets", "PortXmitWait_ps"] {
        assert!(columns(&links).iter().any(|column| column == name), "{name}");
    }
    // 16 hosts and 4 × 2 cables between switches, two directions, four runs.
    assert_eq!(links.metadata().file_metadata().num_rows(), (16 + 8) * 2 * 4);
    let flows = open("flows.parquet");
    let position =
        columns(&flows).iter().position(|name| name == "delivered_payload_bytes").unwrap();
    let bytes: i64 =
        flows.get_row_iter(None).unwrap().map(|r| r.unwrap().get_long(position).unwrap()).sum();
    let gbits: f64 = result
        .variants
        .iter()
        .flat_map(|variant| &variant.runs)
        .map(|run| {
            let part = &run.figures.warm_up;
            run.figures.all.accepted_gbps * (part.to_us - part.from_us) * 1e-6
        })
        .sum();
    assert!((bytes as f64 * 8e-9 / gbits - 1.0).abs() < 1e-9);
}

#[test]
fn a_report_carries_names_that_look_like_markup_harmlessly() {
    let text = SMALL.replace("does it work?", "</script><b>bold</b>");
    let mut experiment = Experiment::parse(&text, Path::new("small.toml")).unwrap();
    experiment.override_seeds(None, Some(1)).unwrap();
    let scratch = Scratch::new("markup");
    let report = write_run_folder(
        &result(&experiment, 2),
        &scratch.0.join("run"),
        false,
        &Unfinished::default(),
    )
    .unwrap();
    let page = fs::read_to_string(report).unwrap();
    assert!(!page.contains("</script><b>") && page.contains("\\u003c/script>\\u003cb>bold"));
}
