//! Sites whose tables do not reach every host, and whose hosts have one name: what can run runs,
//! pairs without a path are left out and reported, and every host has a name of its own.

use clearlane_fabric::{NodeId, formats};
use clearlane_lab::{
    Experiment, LabError, Quiet, RunOptions, RunResult, SiteFiles, Status, Unfinished, run,
    write_run_folder,
};
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/site").join(name)
}

/// A file of this test's own that is gone afterwards.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, text: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("clearlane-dead-{name}-{}", std::process::id()));
        fs::write(&path, text).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The demo with the site's own tables and one seed.
fn demo() -> Experiment {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut experiment = Experiment::read(&folder.join("demo-hot-spot.toml")).unwrap();
    experiment.keep_variants(&["as-is"]).unwrap();
    experiment.override_seeds(None, Some(1)).unwrap();
    experiment
}

fn on(mut experiment: Experiment, fabric: PathBuf, lft: PathBuf) -> Result<RunResult, LabError> {
    let site = SiteFiles { fabric: Some(fabric), lft: vec![lft], ..SiteFiles::default() };
    experiment.override_site(&site).unwrap();
    run(&experiment, &RunOptions::new(1, "test"), &Quiet, &AtomicBool::new(false))
}

/// The site's dump with some lines of one switch changed or left out.
fn dump(switch: &str, change: impl Fn(&str) -> Option<String>) -> String {
    let text = fs::read_to_string(fixture("site.dump_fts")).unwrap();
    let mut here = false;
    let mut out = String::new();
    for line in text.lines() {
        if line.starts_with("Unicast") {
            here = line.contains(&format!("({switch})"));
        }
        let kept = if here && line.starts_with("0x") { change(line) } else { Some(line.into()) };
        out.extend(kept.map(|line| line + "\n"));
    }
    out
}

#[test]
fn pairs_without_a_path_are_left_out_and_said() {
    // Without entries for nodes leaf17 reaches its own hosts and nobody else.
    let text = dump("leaf17", |line| (!line.contains("'node")).then(|| line.into()));
    let lft = Scratch::new("entries", &text);
    let result = on(demo(), fixture("site.ibnetdiscover"), lft.0.clone()).unwrap();
    assert_ne!(result.status(), Status::Deadlock);
    let said = result.oddities().iter().find(|oddity| oddity.contains("do not arrive")).cloned();
    let said = said.expect("dead pairs are said");
    assert!(said.contains(" of 77,562 paths do not arrive; the first: no entry"), "{said}");
    assert!(said.contains("traffic between hosts without a path is left out"), "{said}");
    let whole = run(&demo(), &RunOptions::new(1, "test"), &Quiet, &AtomicBool::new(false)).unwrap();
    let sent = |result: &RunResult| {
        let of_class = result.victims_gbps("as-is").unwrap();
        of_class.mean
    };
    assert!(sent(&result) > 0.8 * sent(&whole) && sent(&result) != sent(&whole));
}

/// A line of a dump with another port.
fn port(line: &str, port: &str) -> String {
    let (lid, rest) = line.split_once(' ').unwrap();
    format!("{lid} {port} {}", &rest[4..])
}

#[test]
fn what_a_loop_leaves_is_run() {
    // leaf17 sends what is for node007 (LID 6) by its port 15 to spine02, which sends it back.
    let text = dump("spine02", |line| {
        Some(if line.starts_with("0x0006") { port(line, "018") } else { line.into() })
    });
    let lft = Scratch::new("loop", &text);
    let result = on(demo(), fixture("site.ibnetdiscover"), lft.0.clone()).unwrap();
    let said = result.oddities().join("\n");
    assert!(said.contains("do not arrive; the first: loop: "), "{said}");
    // Nothing goes round: the run ends as it would without these pairs.
    assert!(!result.variants[0].runs[0].is_deadlock());
    let lost = result.victims_gbps("as-is").unwrap().mean;
    let whole = run(&demo(), &RunOptions::new(1, "test"), &Quiet, &AtomicBool::new(false)).unwrap();
    assert!(lost > 0.9 * whole.victims_gbps("as-is").unwrap().mean, "{lost}");
}

#[test]
fn what_leads_to_another_host_is_left_out_with_its_sender() {
    let text = dump("leaf17", |line| {
        Some(if line.contains("'node0") { port(line, "001") } else { line.into() })
    });
    let lft = Scratch::new("ends", &text);
    let result = on(demo(), fixture("site.ibnetdiscover"), lft.0.clone()).unwrap();
    let said = result.oddities().join("\n");
    assert!(said.contains("do not arrive; the first: wrong end"), "{said}");
    // A sender that reaches nobody is no sender that starves: of these there are no more.
    let starved = |result: &RunResult| result.variants[0].runs[0].figures.groups[1].starved;
    let whole = run(&demo(), &RunOptions::new(1, "test"), &Quiet, &AtomicBool::new(false)).unwrap();
    assert!(starved(&result) <= starved(&whole) + 1, "{}", starved(&result));
    let senders = |result: &RunResult| result.variants[0].runs[0].figures.groups[1].senders;
    assert!(senders(&result) < senders(&whole));
}

#[test]
fn tables_that_reach_nobody_and_programs_that_need_everybody_are_refused() {
    let none = dump("leaf17", |line| Some(line.into()));
    let away = |line: &str| match line.starts_with("0x") {
        true => line.replace(" 0", " 2") + "\n",
        false => line.to_owned() + "\n",
    };
    let none: String = none.lines().map(away).collect();
    let lft = Scratch::new("none", &none);
    assert!(on(demo(), fixture("site.ibnetdiscover"), lft.0.clone()).is_err());
    let text = dump("leaf17", |line| (!line.contains("'node")).then(|| line.into()));
    let lft = Scratch::new("program", &text);
    let program = "schema = 1\nname = \"p\"\nfabric = { file = \"x\" }\n\
        subnet = { engine = \"file\", lft = \"x\" }\nsim = { preset = \"qdr\" }\n\
        run = { duration = \"1 ms\" }\n[[traffic]]\nname = \"all\"\nclass = \"background\"\n\
        program = { kind = \"ring-allreduce\", size = \"1 KiB\" }\n";
    let experiment = Experiment::parse(program, Path::new("p.toml")).unwrap();
    let error = on(experiment, fixture("site.ibnetdiscover"), lft.0.clone()).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("program ring-allreduce of traffic all may need a path from"),
        "{error}"
    );
}

#[test]
fn hosts_of_one_name_are_told_apart_by_guid() {
    let text = fs::read_to_string(fixture("site.ibnetdiscover")).unwrap();
    let mut fabric = formats::read(&text, "site").unwrap().fabric;
    let mut guids = BTreeSet::new();
    for id in (0..fabric.nodes().len() as u32).map(NodeId) {
        let node = fabric.node_mut(id);
        if !node.is_switch() {
            node.name = "MT25408 ConnectX".into();
            guids.insert(node.guid);
        }
    }
    let text = formats::write(&fabric);
    let file = Scratch::new("names", &text);
    let hot = guids.iter().next().unwrap();
    let with = |to: &str| {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/demo-hot-spot.toml");
        let text = fs::read_to_string(&path).unwrap().replace("storage01", to);
        let mut experiment = Experiment::parse(&text, &path).unwrap();
        experiment.keep_variants(&["as-is"]).unwrap();
        experiment.override_seeds(None, Some(1)).unwrap();
        on(experiment, file.0.clone(), fixture("site.dump_fts"))
    };
    let error = with("MT25408 ConnectX").unwrap_err().to_string();
    assert!(error.contains("279 hosts are named `MT25408 ConnectX`"), "{error}");
    let result = with(&hot.to_string()).unwrap();
    let folder = std::env::temp_dir().join(format!("clearlane-dead-run-{}", std::process::id()));
    write_run_folder(&result, &folder, true, &Unfinished::default()).unwrap();
    let flows = fs::File::open(folder.join("flows.parquet")).unwrap();
    let rows = SerializedFileReader::new(flows).unwrap();
    let mut names = BTreeSet::new();
    for row in rows.get_row_iter(None).unwrap() {
        let fields = row.unwrap();
        let named = fields.get_column_iter().filter(|(name, _)| *name == "source");
        names.extend(named.map(|(_, value)| value.to_string()));
    }
    fs::remove_dir_all(&folder).unwrap();
    assert!(names.len() > 150, "{} senders have names of their own", names.len());
}
