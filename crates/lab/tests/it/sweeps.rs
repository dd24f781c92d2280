//! Sweeps from the request to the folder, and whether a run says that it had not converged.

use clearlane_lab::{
    Experiment, LabError, Progress, Quiet, RunOptions, RunResult, Status, Sweep, SweepFolder,
    SweepResult, Unfinished, run, run_sweep,
};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

const STAR: &str = r#"schema = 1
name = "star"
fabric = { build = "star:8" }
subnet = { engine = "min-hop" }
sim = { preset = "qdr" }
run = { duration = "400 us", seeds = 2 }
[[traffic]]
name = "all"
class = "background"
pattern = { kind = "uniform" }
load = 0.3
size = "2 KiB"
[[variant]]
name = "small"
sim = { buffer = "4 KiB" }
[[variant]]
name = "large"
[sweep]
traffic.load = [0.1, 0.2]
"#;

fn sweep(over: &[&str]) -> Result<Sweep, LabError> {
    let over: Vec<String> = over.iter().map(|text| (*text).to_owned()).collect();
    Sweep::parse(STAR, Path::new("star.toml"), &over, &[])
}

fn error(over: &[&str]) -> String {
    sweep(over).expect_err("it was accepted").to_string()
}

/// A folder of this test's own that is gone afterwards.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("clearlane-sweep-{name}-{}", std::process::id()));
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

fn swept(sweep: &Sweep, out: &Path, jobs: usize, progress: &dyn Progress) -> SweepResult {
    let cancel = AtomicBool::new(false);
    stopped(sweep, out, jobs, progress, &cancel)
}

fn stopped(
    sweep: &Sweep,
    out: &Path,
    jobs: usize,
    progress: &dyn Progress,
    cancel: &AtomicBool,
) -> SweepResult {
    let options = RunOptions::new(jobs, "clearlane sweep star.toml");
    let folder = SweepFolder::claim(sweep, out, false, false, &Unfinished::default()).unwrap();
    let result = run_sweep(sweep, &options, &folder, progress, cancel).unwrap();
    folder.fill(&result).unwrap();
    result
}

#[test]
fn the_values_reach_every_variant_and_the_variants_own_stay() {
    let sweep = sweep(&["traffic.load=0.1,0.4", "run.seeds=1..3:3"]).unwrap();
    assert_eq!(sweep.points.len(), 6);
    let last = &sweep.points[5].experiment;
    assert_eq!((last.plan.seeds, sweep.points[5].at.as_slice()), (3, &[1, 2][..]));
    assert!(last.variants.iter().all(|variant| variant.traffic[0].load() == Some(0.4)));
    assert_eq!(last.variants[0].devices.parameters.buffer.0, 4096);
    let file = self::sweep(&[]).unwrap();
    assert_eq!((file.axes[0].key().as_str(), file.points.len()), ("traffic.load", 2));
    // The resolved experiment has its sweep too, and means the same.
    let again = Experiment::parse(&file.base.resolved(), Path::new("again.toml")).unwrap();
    assert_eq!(again.sweep[0].texts(), ["0.1", "0.2"]);
}

#[test]
fn what_a_variant_sets_itself_is_varied_in_that_variant_alone() {
    let over = |variants: &[&str], over: &str| {
        let text = format!(
            "{STAR}[[variant]]\nname = \"rule\"\nsubnet = {{ forwarding = \"dimension-order\" }}\n\
             [[variant]]\nname = \"more\"\n\
             traffic = [{{ name = \"all\", size = {{ min = \"1 B\", max = \"2 KiB\" }} }}]\n"
        );
        let variants: Vec<String> = variants.iter().map(|name| (*name).to_owned()).collect();
        Sweep::parse(&text, Path::new("star.toml"), &[over.to_owned()], &variants)
    };
    for (key, variant) in [
        ("sim.buffer=8 KiB,16 KiB", "small"),
        ("subnet.engine=min-hop,fat-tree", "rule"),
        ("traffic.size=1 KiB,2 KiB", "more"),
        ("traffic.all.size.min=1 B,2 B", "more"),
    ] {
        let told = over(&[], key).unwrap_err().to_string();
        let key = key.split('=').next().unwrap();
        let words = format!("{key} is varied, but variant {variant} sets it itself");
        assert!(told.starts_with(&words), "{told}");
        assert!(told.contains("--variants ") && told.contains("large"), "{told}");
    }
    // Without it, and alone, there is nothing to mistake.
    assert_eq!(over(&["large", "more"], "sim.buffer=8 KiB,16 KiB").unwrap().points.len(), 2);
    let alone = over(&["small"], "sim.buffer=8 KiB,16 KiB").unwrap();
    let of = |point: usize| &alone.points[point].experiment.variants;
    assert_eq!((of(0).len(), of(1)[0].devices.parameters.buffer.0), (1, 16384));
    // Another part of the same table is another key, and so is that of another group.
    assert!(over(&[], "sim.mtu=1 KiB,2 KiB").is_ok());
    assert!(over(&[], "traffic.load=0.1,0.2").is_ok());
}

#[test]
fn keys_that_exclude_each_other_are_replaced_as_in_a_variant() {
    let rule = self::sweep(&["subnet.forwarding=dimension-order", "fabric.build=mesh:4x4"]);
    assert!(rule.unwrap().points[0].experiment.resolved().contains("forwarding"));
    let patterns = self::sweep(&["traffic.all.pattern={ kind = \"shift\", by = 1 },\
        { kind = \"uniform\" }"]);
    assert_eq!(patterns.unwrap().points.len(), 2);
    let inner = self::sweep(&["traffic.senders.share=0.5,1"]).unwrap();
    assert!(inner.base.resolved().contains("senders = \"all\""));
    assert!(inner.points[0].experiment.resolved().contains("share = 0.5"));
}

#[test]
fn wrong_keys_and_values_are_told_as_those_of_a_file() {
    for (over, expected) in [
        ("traffic.load=0.1,9", "--over: traffic.all.load = 9 is not a number from 0.000001 to 4"),
        ("sim.bufer=4 KiB,8 KiB", "--over: sim has no key `bufer`; the nearest is `buffer`"),
        ("load=0.1,0.2", "--over: `load` is no key of an experiment; write traffic.load"),
        (
            "simm.bufer=1,2",
            "--over: `simm.bufer` is no key of an experiment; the nearest is \
            `sim.buffer`",
        ),
        (
            "traffic.al.load=1,2",
            "--over: traffic has neither a group nor a key `al`; the nearest \
            is `all`",
        ),
        (
            "sim.mtu=4 parsecs,1 KiB",
            "--over: sim.mtu: `4 parsecs` is not a size; write a \
            number and one of B, KiB, MiB, GiB, kB, MB, GB, such as \"64 KiB\"",
        ),
        ("sim.preset=qdr,qrd", "--over: sim.preset = \"qrd\" is no preset; the nearest is `qdr`"),
        (
            "run.duration=1,2",
            "--over: run.duration: `1` is not a time; write a number and one of ps, ns, us, ms, s, \
            such as \"2.5 ms\"",
        ),
    ] {
        assert_eq!(error(&[over]), expected);
    }
    let quoted = STAR.replace("traffic.load = [0.1, 0.2]", "fabric.build = [\"2\", 2]");
    let told = Sweep::parse(&quoted, Path::new("x.toml"), &[], &[]).unwrap_err().to_string();
    assert!(told.contains("`2` is there twice, quoted and not; drop one"), "{told}");
    assert!(error(&["traffic.load=1,2", "traffic.load=3"]).contains("varied twice"));
    assert!(error(&["run.seed=1..200:200", "run.seeds=1..100:100"]).contains("20000 points"));
    let in_file = STAR.replace("traffic.load = [0.1, 0.2]", "traffic.load = [0.1, 9]");
    let told = Sweep::parse(&in_file, Path::new("x.toml"), &[], &[]).unwrap_err().to_string();
    assert!(told.starts_with("x.toml:19: traffic.all.load = 9 is not"), "{told}");
    let without = STAR.replace("[sweep]\ntraffic.load = [0.1, 0.2]\n", "");
    let told = Sweep::parse(&without, Path::new("x.toml"), &[], &[]).unwrap_err().to_string();
    assert!(told.starts_with("nothing is varied"), "{told}");
}

#[test]
fn points_do_not_depend_on_the_threads_and_agree_with_single_runs() {
    let scratch = Scratch::new("threads");
    let sweep = sweep(&["traffic.load=0.2,0.5", "sim.mtu=1 KiB,2 KiB"]).unwrap();
    let one = swept(&sweep, &scratch.0.join("one"), 1, &Quiet);
    swept(&sweep, &scratch.0.join("many"), 5, &Quiet);
    for name in ["sweep.json", "points.parquet", "report.html", "experiment.toml"] {
        let read = |folder| fs::read(scratch.0.join(folder).join(name)).unwrap();
        assert!(!read("one").is_empty() && read("one") == read("many"), "{name}");
    }
    let options = RunOptions::new(1, "");
    let point = &sweep.points[3];
    let single =
        run(&point.experiment, &options, &Quiet, &AtomicBool::new(false)).unwrap().to_json();
    let single: serde_json::Value = serde_json::from_str(&single).unwrap();
    let json: serde_json::Value = serde_json::from_str(&one.to_json()).unwrap();
    let same = |p: &&serde_json::Value| p["at"] == serde_json::json!([1, 1]);
    for found in json["points"].as_array().unwrap().iter().filter(same) {
        let variant = found["variant"].as_str().unwrap();
        assert_eq!(found["figures"], single["headline"][variant], "{variant}");
        assert_eq!(found["values"]["sim.mtu"], 2.0);
    }
    assert_eq!((one.points.len(), one.asked, one.known), (8, 4, 0));
    the_page_says_what_was_asked(&fs::read_to_string(scratch.0.join("one/report.html")).unwrap());
    let (table, names) = one.table();
    assert_eq!((table.rows.len(), names), (8, 3));
    let file = fs::File::open(scratch.0.join("one/points.parquet")).unwrap();
    let rows = SerializedFileReader::new(file).unwrap();
    let row = rows.get_row_iter(None).unwrap().nth(7).unwrap().unwrap();
    assert_eq!((row.get_double(0).unwrap(), row.get_double(1).unwrap()), (0.5, 2.0));
    assert_eq!(row.get_string(2).unwrap(), "large");
}

/// Of the sweep of load and MTU above: where most is delivered, on what fabric, what was varied.
fn the_page_says_what_was_asked(page: &str) {
    let data = page.split_once("id=\"data\">").unwrap().1.split_once("</script>").unwrap().0;
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let summary = data["summary"].as_str().unwrap();
    assert!(summary.starts_with("At most 0."), "{summary}");
    assert!(summary.contains(" of the senders' links' rate is delivered: load 0.5, mtu "));
    let facts = data["facts"].as_array().unwrap();
    let value = |label: &str| {
        let fact = facts.iter().find(|fact| fact["label"] == label);
        fact.unwrap_or_else(|| panic!("no {label} in {facts:?}"))["value"].as_str().unwrap()
    };
    assert_eq!(value("varied traffic.load"), "0.2, 0.5");
    assert_eq!(value("varied sim.mtu"), "1, 2 KiB");
    assert_eq!(value("finished"), "4 points");
    assert!(value("fabric").starts_with("8 hosts, 1 switch"), "{}", value("fabric"));
    assert!(value("reachability").starts_with("all 56 paths"));
    // What differs from point to point is told where it is little.
    let loads = value("traffic all");
    assert!(loads.contains("load 0.2,") && loads.contains("; background; "), "{loads}");
    assert!(data["not_modelled"].as_array().unwrap().len() > 3);
}

/// Raises the flag once a share is done.
struct StopAt<'a>(f64, &'a AtomicBool);

impl Progress for StopAt<'_> {
    fn on_progress(&self, done: f64, _: u64) {
        if done >= self.0 {
            self.1.store(true, Ordering::Relaxed);
        }
    }
}

/// Gaps on a crossbar without congestion only delay: the finding names where and by how much.
#[test]
fn a_sweep_of_programs_finds_where_they_end_soonest() {
    const RING: &str = r#"schema = 1
name = "ring"
fabric = { build = "star:4" }
subnet = { engine = "min-hop" }
sim = { preset = "qdr" }
run = { duration = "1 ms", ends = "programs", seeds = 1 }
[[traffic]]
name = "ring"
class = "background"
program = { kind = "ring-alltoall", size = "4 KiB" }
[sweep]
traffic.gap = [4, "none"]
"#;
    let finding = |file: &str| {
        let scratch = Scratch::new("programs");
        let sweep = Sweep::parse(file, Path::new("ring.toml"), &[], &[]).unwrap();
        swept(&sweep, &scratch.0.join("out"), 1, &Quiet);
        let page = fs::read_to_string(scratch.0.join("out/report.html")).unwrap();
        let data = page.split_once("id=\"data\">").unwrap().1.split_once("</script>").unwrap().0;
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        data["summary"].as_str().unwrap().to_owned()
    };
    let alone = finding(RING);
    assert!(alone.starts_with("The programs end soonest after "), "{alone}");
    assert!(alone.contains(" us (gap none), latest after "), "{alone}");
    assert!(alone.ends_with(" us (gap 4)."), "{alone}");
    let variants = "[[variant]]\nname = \"short\"\n[[variant]]\nname = \"long\"\n\
                    sim = { cable_delay = \"2 us\" }\n";
    let both = finding(&RING.replace("[sweep]", &format!("{variants}[sweep]")));
    let places: Vec<&str> = both.split(" us (").skip(1).collect();
    assert_eq!(places.len(), 2, "{both}");
    assert!(places[0].starts_with("gap none, short), after "), "{both}");
    assert_eq!(places[1], "gap none, long).", "{both}");
    let cut = finding(&RING.replace("1 ms", "12 us"));
    assert!(cut.starts_with("The programs end soonest after "), "{cut}");
    assert!(cut.ends_with(" us (gap none). In 1 of 2 runs they do not end."), "{cut}");
}

#[test]
fn a_stopped_sweep_goes_on_where_it_was_and_ends_with_the_same_bytes() {
    let scratch = Scratch::new("resume");
    let sweep = sweep(&["traffic.load=0.1..0.5:5"]).unwrap();
    let (whole, out) = (scratch.0.join("whole"), scratch.0.join("out"));
    swept(&sweep, &whole, 1, &Quiet);
    let cancel = AtomicBool::new(false);
    let partial = stopped(&sweep, &out, 1, &StopAt(0.5, &cancel), &cancel);
    assert_eq!(partial.status(), Status::Partial);
    assert!((1..5).contains(&partial.finished), "{}", partial.finished);
    assert!(fs::read_to_string(out.join("sweep.json")).unwrap().contains("\"partial\""));
    assert!(partial.oddities()[0].ends_with("points are missing; run it again"));
    // A kill may cut a line off.
    let path = out.join("points.jsonl");
    let kept = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{kept}{}", &kept[..kept.len().min(100)])).unwrap();
    fs::write(out.join(".sweep.json.unfinished"), "half").unwrap();
    let rest = swept(&sweep, &out, 1, &Quiet);
    assert_eq!((rest.known, rest.finished), (partial.finished, 5));
    for name in ["sweep.json", "points.parquet", "report.html"] {
        assert!(fs::read(out.join(name)).unwrap() == fs::read(whole.join(name)).unwrap(), "{name}");
    }
    // More values keep what is known; another question is another sweep's.
    let more = self::sweep(&["traffic.load=0.1..0.6:6"]).unwrap();
    assert_eq!(swept(&more, &out, 1, &Quiet).known, 5);
    // Fewer would lose what is finished.
    let kept = fs::read(&path).unwrap();
    let refused = SweepFolder::claim(&sweep, &out, false, false, &Unfinished::default())
        .unwrap_err()
        .to_string();
    assert!(refused.contains("finished points that this sweep leaves out"), "{refused}");
    assert!(kept == fs::read(&path).unwrap());
    let mut other = more.clone();
    other.override_seeds(Some(9), None).unwrap();
    let refused = SweepFolder::claim(&other, &out, false, false, &Unfinished::default())
        .unwrap_err()
        .to_string();
    assert!(refused.contains("holds another sweep"), "{refused}");
    SweepFolder::claim(&other, &out, true, false, &Unfinished::default()).unwrap();
    fs::write(out.join("notes.txt"), "mine").unwrap();
    let refused = SweepFolder::claim(&more, &out, true, false, &Unfinished::default())
        .unwrap_err()
        .to_string();
    assert!(refused.contains("other files"), "{refused}");
}

#[test]
fn two_writers_of_one_folder_are_told_apart() {
    let scratch = Scratch::new("two");
    let sweep = sweep(&[]).unwrap();
    let out = scratch.0.join("out");
    let first = SweepFolder::claim(&sweep, &out, false, false, &Unfinished::default()).unwrap();
    let second = SweepFolder::claim(&sweep, &out, true, false, &Unfinished::default()).unwrap_err();
    assert!(second.to_string().contains("another clearlane is writing there"), "{second}");
    assert!(!second.is_machine());
    drop(first);
    assert!(!out.exists(), "an empty folder stays behind");
    SweepFolder::claim(&sweep, &out, false, false, &Unfinished::default()).unwrap();
}

fn at_load(load: &str, seeds: u32) -> RunResult {
    let text = STAR
        .replace("load = 0.3", &format!("load = {load}"))
        .replace("pattern = { kind = \"uniform\" }", "pattern = { kind = \"incast\", to = 0 }");
    let mut experiment = Experiment::parse(&text, Path::new("star.toml")).unwrap();
    experiment.keep_variants(&["large"]).unwrap();
    experiment.override_seeds(None, Some(seeds)).unwrap();
    let options = RunOptions::new(2, "");
    run(&experiment, &options, &Quiet, &AtomicBool::new(false)).unwrap()
}

#[test]
fn latencies_of_a_saturated_open_loop_have_no_steady_value_and_those_of_a_light_one_have() {
    // Seven senders to one: the receiver's link is full from a load of 1/7 = 0.143 on.
    for load in ["0.16", "0.3", "1.0"] {
        let result = at_load(load, 3);
        assert_eq!(result.status(), Status::Complete, "{load}");
        assert_eq!(result.not_converged(), Vec::<&str>::new(), "{load}");
        let table = result.headline_table().to_string();
        assert_eq!(table.matches("no steady value").count(), 3, "{table}");
        let said = |oddity: &String| oddity.contains("its latency has no steady value");
        assert_eq!(result.oddities().iter().any(said), load != "1.0", "{load}");
        let json: serde_json::Value = serde_json::from_str(&result.to_json()).unwrap();
        let figures = &json["headline"]["large"];
        assert_eq!(json["status"], "complete");
        assert_eq!(figures["latency_p99"]["converged"], false);
        assert_eq!(figures["latency_p99"]["steady"], false);
        assert_eq!(figures["delivered_load"]["converged"], true);
        assert_eq!(json["variants"][0]["runs"][0]["all"]["latency_converged"], false);
    }
    for load in ["0.01", "0.05", "0.1"] {
        let result = at_load(load, 10);
        assert_eq!(result.status(), Status::Complete, "{load}: {:?}", result.oddities());
        let table = result.headline_table().to_string();
        assert!(table.contains('±') && !table.contains('*'), "{table}");
        let json: serde_json::Value = serde_json::from_str(&result.to_json()).unwrap();
        let p99 = &json["headline"]["large"]["latency_p99"];
        assert_eq!((p99["converged"].as_bool(), p99["seeds"].as_u64()), (Some(true), Some(10)));
        assert!(p99["half_width"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn a_warm_up_set_by_hand_does_not_hide_that_nothing_is_steady() {
    let text = STAR.replace("load = 0.3", "load = 0.3\nstart = \"300 us\"");
    let text = text.replace("seeds = 2", "seeds = 2, warm_up = \"10 us\"");
    let experiment = Experiment::parse(&text, Path::new("star.toml")).unwrap();
    let options = RunOptions::new(2, "");
    let result = run(&experiment, &options, &Quiet, &AtomicBool::new(false)).unwrap();
    assert_eq!(result.status(), Status::NotConverged);
    let said = result.oddities().join("\n");
    assert!(said.contains("not converged: throughput was still changing"), "{said}");
}

/// Says that memory is nearly full once a share is done, as the watcher of a command does.
struct FullAt<'a>(f64, &'a RunOptions, &'a AtomicBool);

impl Progress for FullAt<'_> {
    fn on_progress(&self, done: f64, _: u64) {
        if done >= self.0 {
            let _ = self.1.memory_short.set("the memory of the job".into());
            self.2.store(true, Ordering::SeqCst);
        }
    }
}

#[test]
fn an_open_loop_that_would_fill_the_memory_is_stopped_with_words() {
    let text = STAR.replace("load = 0.3", "load = 4.0").replace("2 KiB", "1 B");
    let experiment = Experiment::parse(&text, Path::new("star.toml")).unwrap();
    let (options, cancel) = (RunOptions::new(2, ""), AtomicBool::new(false));
    let full = FullAt(0.1, &options, &cancel);
    let error = run(&experiment, &options, &full, &cancel).unwrap_err();
    assert!(error.is_machine());
    let said = error.to_string();
    assert!(said.contains("the memory of the job is nearly full, and "), "{said}");
    assert!(said.contains("messages wait at") && said.contains("lower load or duration"), "{said}");
    // Before anything is run there is no message to tell of.
    let error = run(&experiment, &options, &Quiet, &cancel).unwrap_err();
    assert!(error.is_machine());
    let said = error.to_string();
    assert!(said.contains("the memory of the job is nearly full before anything"), "{said}");
    // A sweep ends with the same words.
    let scratch = Scratch::new("full");
    let sweep = sweep(&[]).unwrap();
    let folder =
        SweepFolder::claim(&sweep, &scratch.0.join("out"), false, false, &Unfinished::default())
            .unwrap();
    let (options, cancel) = (RunOptions::new(2, ""), AtomicBool::new(false));
    let full = FullAt(0.1, &options, &cancel);
    let error = run_sweep(&sweep, &options, &folder, &full, &cancel).unwrap_err();
    assert!(error.is_machine() && error.to_string().contains("nearly full"), "{error}");
}

#[test]
fn queues_that_no_memory_holds_are_refused_before_the_run() {
    let options = |bytes| RunOptions { memory_bytes: Some(bytes), ..RunOptions::new(2, "") };
    // They are there from the start: 54 switches of 36 ports and 648 hosts, each port with a lane,
    // 36 outputs and 24 bytes.
    let text = STAR.replace("star:8", "fat-tree:648");
    let text = text.replace("preset = \"qdr\"", "preset = \"qdr\", input_queueing = \"voq\"");
    let queues = Experiment::parse(&text, Path::new("star.toml")).unwrap();
    let error = run(&queues, &options(4 << 20), &Quiet, &AtomicBool::new(false)).unwrap_err();
    assert!(error.is_machine());
    let said = error.to_string();
    assert!(said.contains("takes 2 MiB a run") && said.contains("--jobs"), "{said}");
}

#[test]
fn names_of_variants_may_have_commas() {
    let text = STAR.replace("\"large\"", "\"small, deep\"") + "[[variant]]\nname = \"deep\"\n";
    let kept = |names: &[&str]| -> Result<Vec<String>, LabError> {
        let mut experiment = Experiment::parse(&text, Path::new("star.toml"))?;
        experiment.keep_variants(names)?;
        Ok(experiment.variants.into_iter().map(|variant| variant.name).collect())
    };
    assert_eq!(kept(&["small, deep"]).unwrap(), ["small, deep"]);
    assert_eq!(kept(&["deep,small, deep,small"]).unwrap(), ["deep", "small, deep", "small"]);
    assert_eq!(kept(&["deep", "small", "deep"]).unwrap(), ["deep", "small"]);
    let error = kept(&["small, depe"]).unwrap_err().to_string();
    assert_eq!(error, "the experiment has no variant `depe`; the nearest is `deep`");
}
