//! `clearlane compare`: one workload, several variants, one table.

use super::experiment::{self, Captured, Picture, Shared, Task};
use super::narrow;
use crate::answer::Answer;
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use clap::Args;
use clearlane_lab::{Processes, RunResult};

/// What to compare.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    clearlane compare experiments/demo-hot-spot.toml --variants as-is,fat-tree --out runs/both\n  \
    clearlane compare experiments/demo-hot-spot.toml --fabric site.topo --lft site.lft --seeds 5")]
pub struct Arguments {
    #[command(flatten)]
    pub shared: Shared,
    /// These variants, in this order; without it, all of the experiment
    #[arg(long, value_name = "NAMES")]
    variants: Vec<String>,
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
    let Arguments { shared, variants, picture, captured } = arguments;
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
