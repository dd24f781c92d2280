//! `clearlane compare`: one workload, several variants, one table; or records of flows laid over
//! each other.

use super::experiment::{self, Captured, Picture, Shared, Task};
use super::narrow;
use super::overlay;
use crate::answer::Answer;
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use clap::Args;
use clearlane_lab::{Processes, RunResult};
use std::path::{Path, PathBuf};

/// What to compare.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    clearlane compare experiments/demo-hot-spot.toml --variants as-is,fat-tree --out runs/both\n  \
    clearlane compare experiments/demo-hot-spot.toml --fabric site.topo --lft site.lft --seeds 5\n\
    \x20 clearlane compare runs/measured runs/simulated --out runs/overlay")]
pub struct Arguments {
    #[command(flatten)]
    pub shared: Shared,
    /// Further records: with them, and with a folder in place of the experiment, the flows of
    /// captures and runs are laid over each other. Folders of `run --out` or `capture --out`, or
    /// their flow-series.parquet
    #[arg(value_name = "RECORD")]
    records: Vec<PathBuf>,
    /// These variants, in this order; without it, all of the experiment
    #[arg(long, value_name = "NAMES")]
    variants: Vec<String>,
    /// Of records: scale each to all that the first carried, so that shares of flows are compared
    /// where one network is slower than the other
    #[arg(long)]
    scaled: bool,
    #[command(flatten)]
    picture: Picture,
    #[command(flatten)]
    captured: Captured,
}

/// Compares.
pub fn run(
    arguments: &Arguments,
    json: bool,
    interrupts: &Interrupts,
    processes: &Processes,
) -> Result<Answer, Failure> {
    let Arguments { shared, records, variants, scaled, picture, captured } = arguments;
    if overlay::is_asked(&shared.experiment, records) {
        processes.is_first().then_some(()).ok_or_else(|| {
            Failure::Input("compare of records runs in one process; call it without mpirun".into())
        })?;
        let flags = [
            ("--capture", captured.is_asked()),
            ("--picture", picture.is_asked()),
            ("--fabric", shared.fabric.is_some()),
            ("--lft", !shared.lft.is_empty()),
            ("--seed", shared.seed.is_some()),
            ("--seeds", shared.seeds.is_some()),
            ("--dry-run", shared.dry_run),
        ];
        if let Some((flag, _)) = flags.iter().find(|(_, is_asked)| *is_asked) {
            let why = "is for experiments, and records are compared; leave it out";
            return Err(Failure::Input(format!("{flag} {why}")));
        }
        let all: Vec<&Path> =
            [&shared.experiment].into_iter().chain(records).map(PathBuf::as_path).collect();
        let shown = overlay::Shown { wanted: variants, scaled: *scaled };
        let out = (shared.out.as_deref(), shared.force);
        return overlay::run(&all, shown, out, json, interrupts.unfinished());
    }
    if *scaled {
        let why = "is for records of flows, and an experiment is compared; leave it out";
        return Err(Failure::Input(format!("--scaled {why}")));
    }
    let task = Task { command: "compare", variants, picture, captured, processes };
    experiment::answer(&task, shared, json, interrupts, text)
}

fn text(result: &RunResult) -> String {
    let table = narrow::headline(&result.headline_table(), 1);
    let worst = experiment::worst_links(result);
    let marks = experiment::marks(&table, &experiment::ended(result));
    let (programs, control) = (experiment::programs(result), experiment::control(result));
    format!("{}\n{table}{worst}{marks}{programs}{control}", experiment::title(result))
}
