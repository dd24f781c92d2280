//! Runs that are stopped, kept and gone on with: from where they were, and to the same bytes.

use clearlane_lab::{
    Begun, Checkpoints, Experiment, LabError, Processes, Progress, RunOptions, RunResult, Status,
    Unfinished, fleet_of_threads, run,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const TEXT: &str = "schema = 1\nname = \"kept\"\nrun = { duration = \"2 ms\" }\n\
    fabric = { build = \"star:8\" }\nsubnet = { engine = \"min-hop\" }\n\
    sim = { preset = \"qdr\" }\n\
    [[traffic]]\nname = \"all\"\nclass = \"background\"\npattern = { kind = \"uniform\" }\n\
    load = 0.5\nsize = \"2 KiB\"\n";

/// Stops a run at a share of its time, and notes where it began.
#[derive(Default)]
struct Watch {
    stop_at: Option<f64>,
    cancel: AtomicBool,
    begun: Mutex<Vec<Begun>>,
}

impl Progress for Watch {
    fn on_begin(&self, run: &Begun) {
        self.begun.lock().unwrap().push(*run);
    }

    fn on_progress(&self, done: f64, _: u64) {
        if self.stop_at.is_some_and(|stop_at| done >= stop_at) {
            self.cancel.store(true, Ordering::SeqCst);
        }
    }
}

/// A folder of its own that is gone in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn of(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("checkpoints-{name}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }

    fn kept(&self) -> Checkpoints {
        Checkpoints::of(&self.0.join("out"), None, "what was asked".into(), &Unfinished::default())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn ran(text: &str, kept: Option<&Checkpoints>, watch: &Watch) -> RunResult {
    let experiment = Experiment::parse(text, Path::new("x.toml")).unwrap();
    let options = RunOptions { checkpoints: kept.cloned(), ..RunOptions::new(1, "") };
    run(&experiment, &options, watch, &watch.cancel).unwrap()
}

#[test]
fn a_run_goes_on_from_where_it_was_stopped() {
    let scratch = Scratch::of("half");
    let whole = ran(TEXT, None, &Watch::default());
    let kept = scratch.kept();
    let half = ran(TEXT, Some(&kept), &Watch { stop_at: Some(0.5), ..Watch::default() });
    assert_eq!(half.status(), Status::Partial);
    assert_eq!(kept.command().unwrap().as_deref(), Some("what was asked"));
    let rest = Watch::default();
    let resumed = ran(TEXT, Some(&scratch.kept().resumed()), &rest);
    assert_eq!(resumed.to_json(), whole.to_json());
    let begun = rest.begun.into_inner().unwrap();
    assert!(begun.len() == 1 && (0.4..0.6).contains(&begun[0].earlier), "{begun:?}");
    assert!(begun[0].earlier_hops > 1000, "{begun:?}");
}

/// Runs it in so many processes, which are threads here; the result of the first. All of them keep
/// what is kept.
fn ran_by(
    processes: usize,
    text: &str,
    kept: &Checkpoints,
    watch: &Watch,
) -> Result<RunResult, LabError> {
    let text = &text.replace("star:8", "torus:2x3");
    let experiment = &Experiment::parse(text, Path::new("x.toml")).unwrap();
    let quiet = &Watch::default();
    let of = |rank: usize, fleet| {
        let watch = if rank == 0 { watch } else { quiet };
        let checkpoints = Some(kept.clone());
        let processes = Processes::of(fleet);
        let options = RunOptions { checkpoints, processes, ..RunOptions::new(1, "") };
        run(experiment, &options, watch, &watch.cancel)
    };
    thread::scope(|scope| {
        let fleet = fleet_of_threads(processes).into_iter().enumerate();
        let ran: Vec<_> =
            fleet.map(|(rank, member)| scope.spawn(move || of(rank, member))).collect();
        let mut ran = ran.into_iter().map(|ran| ran.join().unwrap());
        let first = ran.next().unwrap();
        ran.for_each(|other| assert_eq!(other.is_ok(), first.is_ok()));
        first
    })
}

/// The names of what is kept, but for what was asked.
fn files(kept: &Checkpoints) -> Vec<String> {
    let entries = fs::read_dir(kept.folder()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name != "command.json").collect();
    names.sort();
    names
}

#[test]
fn what_several_processes_kept_any_number_goes_on_with() {
    let scratch = Scratch::of("several");
    let stop = |stop_at: f64| Watch { stop_at: Some(stop_at), ..Watch::default() };
    let resumed = || scratch.kept().resumed();
    let whole = ran(&TEXT.replace("star:8", "torus:2x3"), None, &Watch::default());
    ran_by(2, TEXT, &scratch.kept(), &stop(0.2)).unwrap();
    assert_eq!(files(&scratch.kept()), ["0-1.1-0.part", "0-1.1-1.part", "0-1.state"]);
    // Some that were lost while they kept their parts: nothing names these.
    fs::write(scratch.kept().folder().join("0-1.2-2.part"), "torn").unwrap();
    ran_by(3, TEXT, &resumed(), &stop(0.4)).unwrap();
    let three = ["0-1.2-0.part", "0-1.2-1.part", "0-1.2-2.part", "0-1.state"];
    assert_eq!(files(&scratch.kept()), three);
    ran_by(1, TEXT, &resumed(), &stop(0.6)).unwrap();
    assert_eq!(files(&scratch.kept()), ["0-1.state"]);
    ran_by(2, TEXT, &resumed(), &stop(0.8)).unwrap();
    let part = scratch.kept().folder().join("0-1.1-1.part");
    let bytes = fs::read(&part).unwrap();
    for damaged in [None, Some(&bytes[..bytes.len() / 2])] {
        match damaged {
            None => fs::remove_file(&part).unwrap(),
            Some(bytes) => fs::write(&part, bytes).unwrap(),
        }
        let refused = ran_by(2, TEXT, &resumed(), &Watch::default()).unwrap_err().to_string();
        assert!(refused.contains("its part 2 of 2 is not there or damaged: 0-1.1-1"), "{refused}");
    }
    fs::write(&part, bytes).unwrap();
    let rest = Watch::default();
    let done = ran_by(2, TEXT, &resumed(), &rest).unwrap();
    assert_eq!(done.to_json(), whole.to_json());
    let begun = rest.begun.into_inner().unwrap();
    assert!(begun.len() == 1 && (0.7..0.9).contains(&begun[0].earlier), "{begun:?}");
    scratch.kept().clear().unwrap();
    assert!(!scratch.kept().folder().exists());
}

#[test]
fn a_run_of_another_experiment_is_refused_or_let_go() {
    let scratch = Scratch::of("another");
    ran(TEXT, Some(&scratch.kept()), &Watch { stop_at: Some(0.5), ..Watch::default() });
    let state = scratch.kept().folder().join("0-1.state");
    assert!(state.is_file());
    let other = TEXT.replace("load = 0.5", "load = 0.4");
    let experiment = Experiment::parse(&other, Path::new("x.toml")).unwrap();
    let checkpoints = Some(scratch.kept().resumed());
    let options = RunOptions { checkpoints, ..RunOptions::new(1, "") };
    let watch = Watch::default();
    let refused = run(&experiment, &options, &watch, &watch.cancel).unwrap_err().to_string();
    assert!(
        refused.ends_with("undo the change, or run from the beginning with --force"),
        "{refused}"
    );
    assert!(state.is_file() && !refused.contains('\n'));
    // Called again, it begins anew.
    let watch = Watch::default();
    let anew = ran(&other, Some(&scratch.kept().called_again()), &watch);
    assert_eq!(watch.begun.into_inner().unwrap()[0].earlier, 0.0);
    assert_eq!(anew.to_json(), ran(&other, None, &Watch::default()).to_json());
    assert!(!state.exists());
}

/// Where headers have none, there are packets of no bytes.
#[test]
fn packets_of_no_bytes_are_kept() {
    let text = TEXT
        .replace("preset = \"qdr\"", "preset = \"qdr\", header = \"0 B\"")
        .replace("pattern = { kind = \"uniform\" }\nload = 0.5\nsize = \"2 KiB\"", "")
        + "program = { kind = \"pairwise-alltoall\", size = \"0 B\", rounds = 1000000 }\n";
    let scratch = Scratch::of("empty");
    let stop = |stop_at: f64| Watch { stop_at: Some(stop_at), ..Watch::default() };
    let whole = ran(&text, None, &Watch::default());
    ran(&text, Some(&scratch.kept()), &stop(0.3));
    ran(&text, Some(&scratch.kept().resumed()), &stop(0.6));
    let resumed = ran(&text, Some(&scratch.kept().resumed()), &Watch::default());
    assert_eq!(resumed.to_json(), whole.to_json());
}

#[test]
fn only_what_was_kept_is_cleared() {
    let scratch = Scratch::of("others");
    let kept = scratch.kept();
    kept.clear().unwrap();
    ran(TEXT, Some(&kept), &Watch { stop_at: Some(0.5), ..Watch::default() });
    let place = |name: &str| kept.folder().join(name);
    fs::create_dir(place("point-0003")).unwrap();
    let ours = [
        "point-0003/2-77-alone.state",
        "0-1-uncontrolled.state",
        "0-1-alone.12-3.part",
        ".0-1.1-0.part.unfinished",
        ".0-1.state.unfinished",
        ".command.json.unfinished",
    ];
    ours.iter().for_each(|name| fs::write(place(name), "").unwrap());
    kept.check_owner().unwrap();
    let theirs = [
        "notes.txt",
        "notes.state",
        "notes.1-0.part",
        "0-1.part",
        "0-1-alone-uncontrolled.state",
        "point-0003/0-x.state",
    ];
    for name in theirs {
        fs::write(place(name), "theirs").unwrap();
        assert!(kept.check_owner().is_err(), "{name}");
    }
    kept.clear().unwrap();
    assert!(!kept.is_there() && !place("0-1.state").exists());
    assert!(ours.iter().all(|name| !place(name).exists()));
    assert!(theirs.iter().all(|name| place(name).is_file()));
    theirs.iter().for_each(|name| fs::remove_file(place(name)).unwrap());
    kept.clear().unwrap();
    assert!(!kept.folder().exists());
    fs::write(kept.folder(), "theirs").unwrap();
    let refused = kept.check_owner().unwrap_err().to_string();
    kept.clear().unwrap();
    assert!(
        kept.folder().is_file() && refused.contains("holds files that are not saved runs"),
        "{refused}"
    );
}

#[test]
fn a_folder_without_a_name_of_its_own_is_the_one_it_stands_for() {
    let scratch = Scratch::of("nameless");
    let out = scratch.0.join("out");
    fs::create_dir_all(out.join("deeper")).unwrap();
    let named = Checkpoints::of(&out, None, String::new(), &Unfinished::default());
    let same = Checkpoints::of(&out.join("deeper/.."), None, String::new(), &Unfinished::default());
    let real = |path: &Path| path.parent().unwrap().canonicalize().unwrap();
    assert_eq!(same.folder().file_name(), named.folder().file_name());
    assert_eq!(real(same.folder()), real(named.folder()));
    assert!(!same.folder().starts_with(out.canonicalize().unwrap()));
}
