//! Where a published number and ours differ, a row of the same file may have a parameter changed
//! that moves the figure towards the published one. Here every such claim is run.

use clearlane_lab::{
    Experiment, PublishedRow, Quiet, RunOptions, Sweep, SweepFolder, Unfinished, run, run_sweep,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

fn options() -> RunOptions {
    RunOptions::new(std::thread::available_parallelism().map_or(1, usize::from), "")
}

fn experiments() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    files.sort();
    files
}

/// Rows that say what moves them, each with the row it names.
fn claims(rows: &[PublishedRow]) -> Vec<(&PublishedRow, &PublishedRow)> {
    let other = |row: &PublishedRow| {
        let name = row.moved_by.clone()?;
        rows.iter().find(|other| other.name == name)
    };
    rows.iter().filter_map(|row| Some((row, other(row)?))).collect()
}

/// Fails unless the changed parameter moves the row towards the published value, by more than both
/// intervals.
fn moves(file: &Path, row: &PublishedRow, other: &PublishedRow) {
    let (file, name, by) = (file.display(), &row.name, &other.name);
    let moved = row.moved.unwrap_or_else(|| panic!("{file}: {name} or {by} has no figure"));
    let (one, two) = (row.obtained, other.obtained);
    assert!(
        moved.is_towards(),
        "{file}: {name} ({one:?}) is not moved towards {:?} by {by} ({two:?})",
        row.value
    );
    let said = row.remarks();
    let words = if moved.is_past { "nearer" } else { "of the way" };
    assert!(said.contains(&format!("% {words} by row \"{by}\"")), "{said}");
}

#[test]
#[ignore = "make test-long: 60 s"]
fn what_is_said_to_move_a_figure_moves_it() {
    let mut tried = 0;
    for file in experiments() {
        let mut experiment = Experiment::read(&file).unwrap_or_else(|error| panic!("{error}"));
        let claimed = |row: &clearlane_lab::Published| row.moved_by.is_some();
        if !experiment.published.iter().any(claimed) {
            continue;
        }
        let seeds = experiment.plan.seeds.min(10);
        experiment.override_seeds(None, Some(seeds)).unwrap();
        let result = run(&experiment, &options(), &Quiet, &AtomicBool::new(false)).unwrap();
        for (row, other) in claims(&result.published()) {
            moves(&file, row, other);
            tried += 1;
        }
    }
    assert!(tried >= 8, "{tried}");
}

/// Where the whole grid of a file takes long: what is run of it here.
const GRIDS: &[(&str, &[&str])] = &[(
    "drb-torus64.toml",
    &[
        "traffic.load=0.3,0.4,0.6,0.8",
        "control.iba-cc.cct=linear,quadratic",
        "control.iba-cc.marking_rate=1,63",
    ],
)];

#[test]
#[ignore = "make test-long: 120 s"]
fn what_is_said_to_move_a_sweep_moves_it() {
    let mut tried = 0;
    for file in experiments() {
        let text = std::fs::read_to_string(&file).unwrap();
        // Of the same rows on another fabric or at another rate nothing is claimed.
        if text.lines().any(|line| line.starts_with("include = ")) {
            continue;
        }
        let Ok(base) = Sweep::parse(&text, &file, &[], &[]) else { continue };
        let claimed = |row: &clearlane_lab::Published| row.moved_by.is_some();
        if !base.base.published.iter().any(claimed) {
            continue;
        }
        let grid = GRIDS.iter().find(|(name, _)| file.ends_with(name));
        let grid: Vec<String> =
            grid.iter().flat_map(|(_, grid)| grid.iter().map(|text| (*text).to_owned())).collect();
        let mut sweep = Sweep::parse(&text, &file, &grid, &[]).unwrap();
        sweep.override_seeds(None, Some(3)).unwrap();
        let scratch = std::env::temp_dir().join(format!("clearlane-moved-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&scratch);
        let folder =
            SweepFolder::claim(&sweep, &scratch, false, false, &Unfinished::default()).unwrap();
        let cancel = AtomicBool::new(false);
        let result = run_sweep(&sweep, &options(), &folder, &Quiet, &cancel).unwrap();
        for (row, other) in claims(result.published()) {
            moves(&file, row, other);
            tried += 1;
        }
        std::fs::remove_dir_all(&scratch).unwrap();
    }
    assert!(tried >= 3, "{tried}");
}
