//! Where a published number and ours differ, a row of the same file has a parameter changed and
//! shows that the figure moves by it. Here every such claim is run, and held to the way the file
//! says it moves.

use clearlane_lab::measure::Estimate;
use clearlane_lab::{
    Experiment, PublishedRow, Quiet, RunOptions, Sweep, SweepFolder, run, run_sweep,
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

/// Which way a file says a row moves when the parameter is changed.
#[derive(Clone, Copy)]
enum Way {
    More,
    Less,
    /// Nearer to the published number.
    Nearer,
    /// The file says only that it moves.
    Either,
}

/// A file, what its row and the one it names contain, the way, and the file's words for it.
type Claim = (&'static str, [&'static str; 2], Way, &'static str);

const CLAIMS: &[Claim] = &[
    ("parking-lot", ["share", "rate 7"], Way::Nearer, "the difference goes"),
    ("drb-path-hotspot", ["drb", "slow timer"], Way::Less, "next burst finds too few open"),
    ("mesh16-collapse", ["accepted", "4 KiB"], Way::Less, "Smaller buffers move it further"),
    ("cnp-onset", ["1 QP", "4 QPs"], Way::More, "5 and 5 with one, about 40 and"),
    ("cnp-onset", ["4 QPs", "1 QP"], Way::Less, "5 and 5 with one, about 40 and"),
    ("cnp-onset", ["4 QPs", "16 KiB"], Way::More, "56 to 42 with 16 KiB"),
    ("drb-torus64", ["throughput gain", "rate 15"], Way::Less, "rate 15) the gain is less"),
    ("drb-mesh32", ["throughput gain", "rate 15"], Way::Less, "rate 15) the gain is less"),
    ("drb-torus64", ["latency ratio", "rate 15"], Way::Either, "changes it many times over"),
];

/// The way a file says that one row is moved by another. Fails if it is not among the claims, or if
/// the file no longer says so.
fn way(file: &Path, row: &PublishedRow, other: &PublishedRow) -> Way {
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap();
    let is = |(of, [one, two], ..): &&Claim| {
        *of == stem && row.name.contains(one) && other.name.contains(two)
    };
    let claim = CLAIMS.iter().find(is);
    let (.., way, words) =
        claim.unwrap_or_else(|| panic!("{stem}: which way does {} move {}?", other.name, row.name));
    assert!(std::fs::read_to_string(file).unwrap().contains(words), "{stem}: \"{words}\"?");
    *way
}

/// `1/4` or `0.25`.
fn number(text: &str) -> f64 {
    let parts: Vec<f64> = text.split('/').map(|part| part.parse().unwrap()).collect();
    parts[1..].iter().fold(parts[0], |whole, part| whole / part)
}

/// Fails unless the two are apart by more than both intervals, the way the file says.
fn moves(file: &Path, row: &PublishedRow, other: &PublishedRow) {
    let found = |row: &PublishedRow| -> Estimate {
        row.obtained.unwrap_or_else(|| panic!("{}: {} has no figure", file.display(), row.name))
    };
    let (one, two) = (found(row), found(other));
    let width = |estimate: Estimate| estimate.half_width.unwrap_or(0.0);
    let by = two.mean - one.mean;
    let apart = width(one) + width(two);
    let holds = match way(file, row, other) {
        Way::More => by > apart,
        Way::Less => by < -apart,
        Way::Nearer => {
            let published = number(row.published.as_deref().unwrap());
            let off = |of: Estimate| (of.mean - published).abs();
            by.abs() > apart && off(two) < off(one)
        }
        Way::Either => by.abs() > apart,
    };
    assert!(
        holds,
        "{}: {} ({one:?}) is not moved so by {} ({two:?})",
        file.display(),
        row.name,
        other.name
    );
}

#[test]
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
    assert!(tried >= 10, "{tried}");
}

#[test]
fn what_is_said_to_move_a_sweep_moves_it() {
    let mut tried = 0;
    for file in experiments() {
        let text = std::fs::read_to_string(&file).unwrap();
        let Ok(base) = Sweep::parse(&text, &file, &[], &[]) else { continue };
        // Fewer seeds and variants than the file has are enough for the claim.
        let kept = base.base.variants.iter().map(|variant| variant.name.clone());
        let kept: Vec<String> = kept.filter(|name| !name.ends_with(", both")).collect();
        let mut sweep = Sweep::parse(&text, &file, &[], &kept).unwrap();
        sweep.override_seeds(None, Some(4)).unwrap();
        let claimed = |row: &clearlane_lab::Published| row.moved_by.is_some();
        if !base.base.published.iter().any(claimed) {
            continue;
        }
        let scratch = std::env::temp_dir().join(format!("clearlane-moved-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&scratch);
        let folder = SweepFolder::claim(&sweep, &scratch, false, false).unwrap();
        let cancel = AtomicBool::new(false);
        let result = run_sweep(&sweep, &options(), &folder, &Quiet, &cancel).unwrap();
        for (row, other) in claims(result.published()) {
            moves(&file, row, other);
            tried += 1;
        }
        std::fs::remove_dir_all(&scratch).unwrap();
    }
    assert!(tried >= 7, "{tried}");
}
