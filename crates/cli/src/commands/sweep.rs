//! `clearlane sweep`: one experiment at every point of a grid of values.

use super::experiment::{self, Again, Shared};
use super::narrow;
use super::resume;
use crate::answer::{self, Answer};
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::memory::Guard;
use crate::progress::Progress;
use crate::table::count;
use crate::terminal;
use crate::writing;
use clap::Args;
use clearlane_ib::visible;
use clearlane_lab::{
    self as lab, Checkpoints, Deadline, POINTS_FILE, Processes, RunOptions, Status, Sweep,
    SweepFolder, SweepResult, run_sweep,
};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What to sweep.
#[derive(Args, Debug)]
#[command(
    after_help = "Keys are those of experiment files: see `clearlane list keys`. traffic.load \
    means every\ngroup, traffic.NAME.load one. To continue a sweep that was stopped, call it again \
    with the\nsame folder.\n\n\
    Examples:\n  clearlane sweep experiments/latency-load-torus8.toml --out runs/latency-load\n  \
    clearlane sweep FILE --over traffic.load=0.05..0.6:12 --seeds 5\n  \
    clearlane sweep FILE --over sim.buffer=\"4 KiB,64 KiB\" --over subnet.engine=min-hop,fat-tree"
)]
pub struct Arguments {
    #[command(flatten)]
    pub shared: Shared,
    /// A key and its values, or COUNT values FROM..TO; several make a grid. Put a value with a
    /// comma in quotes of its own, inside the quotes of the shell, as in --over
    /// 'fabric.build="leaf-spine:leaves=4,hosts=6,spines=2","fat-tree:648"'. Without it, the keys
    /// of the experiment's [sweep]
    #[arg(long, value_name = "KEY=V1,V2|FROM..TO:COUNT")]
    over: Vec<String>,
    /// These variants, in this order; without it, all of the experiment
    #[arg(long, value_name = "NAMES")]
    variants: Vec<String>,
    /// Keep the folder of every point's own run, with its report
    #[arg(long)]
    keep_runs: bool,
}

/// Sweeps.
pub fn run(arguments: &Arguments, json: bool, interrupts: &Interrupts) -> Result<Answer, Failure> {
    let shared = &arguments.shared;
    let (over, variants) = (&arguments.over, &arguments.variants);
    let mut sweep = Sweep::read(&shared.experiment, over, variants).map_err(Failure::lab)?;
    sweep.override_site(&shared.site()).map_err(Failure::lab)?;
    sweep.override_seeds(shared.seed, shared.seeds).map_err(Failure::lab)?;
    if shared.dry_run {
        return planned(&sweep, json);
    }
    let default = || Path::new("runs").join(format!("{}-sweep", sweep.base.name));
    let out: PathBuf = shared.out.clone().unwrap_or_else(default);
    let (keep, unfinished) = (arguments.keep_runs, interrupts.unfinished());
    let checkpoints = shared.checkpoints(&out, Again::GoesOn, unfinished)?;
    let folder = SweepFolder::claim(&sweep, &out, shared.force, keep, unfinished);
    let folder = folder.map_err(Failure::lab)?;
    writing::spare(&out, &shared.inputs())?;
    let halt = interrupts.stop_in_good_order(&out);
    checkpoints.begin().map_err(Failure::lab)?;
    let stops = (&halt, interrupts.deadline());
    let names = count(sweep.points.len(), "point", "points");
    let progress = Progress::of_runs(&format!("sweeping {names}"), shared.asked());
    let result = run_watched(arguments, &sweep, &folder, stops, &checkpoints, &progress)
        .inspect_err(|failure| resume::given_up(&checkpoints, &out, failure))?;
    progress.on_results();
    let report = format!("report: {}", folder.fill(&result).map_err(Failure::lab)?.display());
    resume::end(&checkpoints, &out, result.status() == Status::Partial)?;
    let verdict = experiment::verdict(result.status());
    progress.end();
    if json {
        terminal::remark(&report);
        return Ok(Answer::text(result.to_json()).with(verdict));
    }
    let oddities = experiment::oddities(result.oddities(), "sweep.json");
    Ok(Answer::text(format!("{}{oddities}{report}\n", text(&result))).with(verdict))
}

fn run_watched(
    arguments: &Arguments,
    sweep: &Sweep,
    folder: &SweepFolder,
    (halt, deadline): (&Arc<AtomicBool>, &Deadline),
    checkpoints: &Checkpoints,
    progress: &Progress,
) -> Result<SweepResult, Failure> {
    let guard = Guard::start(halt)?;
    let alone = Processes::default();
    let options = RunOptions {
        deadline: deadline.clone(),
        ..arguments.shared.options(again(arguments), &guard, Some(checkpoints), &alone)
    };
    run_sweep(sweep, &options, folder, progress, halt).map_err(Failure::lab)
}

fn again(arguments: &Arguments) -> String {
    let mut line = experiment::again("sweep", &arguments.shared, &arguments.variants);
    for over in &arguments.over {
        line.push_str(&format!(" --over {}", experiment::quoted(over)));
    }
    line
}

fn text(result: &SweepResult) -> String {
    let experiment = &result.experiment;
    let plan = &experiment.plan;
    let status = match result.status() {
        Status::Complete => String::new(),
        status => format!("  [{status}]"),
    };
    let summary = match experiment.summary.as_str() {
        "" => String::new(),
        summary => format!(": {}", visible(summary)),
    };
    let known = match result.known {
        0 => String::new(),
        known => format!(", {known} of them from before"),
    };
    let points = match result.finished == result.asked {
        true => count(result.asked, "point", "points"),
        false => format!("{} of {}", result.finished, count(result.asked, "point", "points")),
    };
    let seeds = count(plan.seeds as usize, "seed", "seeds");
    let interval = if plan.seeds > 1 { ", ± is the 95 % interval over seeds" } else { "" };
    let ended: Vec<Status> = result.points.iter().map(|point| point.status).collect();
    let (table, names) = result.table();
    let table = points_shown(&table, names);
    let marks = experiment::marks(&table, &ended);
    let name = &experiment.name;
    let length = experiment::length(plan);
    let mut text = format!(
        "{name}{summary}{status}\n{points}{known}, {length} per run, {seeds}{interval}\n\n\
         {table}{marks}"
    );
    if let Some((control, names)) = result.control_table() {
        text.push_str(&format!("\n{}", points_shown(&control, names)));
    }
    if let Some(published) = result.published_table() {
        text.push_str(&format!("\n{}", narrow::with_sentences(&published)));
    }
    text
}

/// Rows of points up to which people read them here.
const ROWS_MAX: usize = 100;

/// A table with a row per point, or where it is too long to be read what has it.
fn points_shown(table: &lab::Table, names: usize) -> String {
    match table.rows.len() {
        few if few <= ROWS_MAX => narrow::headline(table, names),
        many => {
            let rows = count(many, "row", "rows");
            format!("{rows} of points: {POINTS_FILE} and report.html have them\n")
        }
    }
}

/// The points, and the experiment with every default spelt out.
fn planned(sweep: &Sweep, json: bool) -> Result<Answer, Failure> {
    let values: Vec<_> = sweep.axes.iter().map(|axis| (axis.key(), axis.texts())).collect();
    if json {
        let axes: Vec<_> =
            values.iter().map(|(key, values)| json!({ "key": key, "values": values })).collect();
        let resolved: toml::Value = toml::from_str(&sweep.base.resolved())
            .map_err(|error| Failure::Internal(error.to_string()))?;
        let fields = json!({
            "axes": axes,
            "points": sweep.points.len(),
            "resolved": answer::value(&resolved)?,
        });
        return Ok(Answer::json("clearlane-experiment/1", fields));
    }
    let mut text = String::new();
    for (key, values) in values {
        text.push_str(&format!("# {key} = {}\n", values.join(", ")));
    }
    let points = count(sweep.points.len(), "point", "points");
    Ok(Answer::text(format!("{text}# {points}\n{}", sweep.base.resolved())))
}
