//! `clearlane run`: an experiment, all its variants, published numbers beside ours.

use super::experiment::{self, Captured, Picture, Shared, Task};
use super::narrow;
use crate::answer::Answer;
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use clap::Args;
use clearlane_lab::{Processes, RunResult};

/// What to run.
#[derive(Args, Debug)]
#[command(
    after_help = "Ctrl-C stops the command safely: finished runs are written and the result is \
    marked partial.\n\n\
    Examples:\n  clearlane run experiments/demo-hot-spot.toml --out runs/demo\n  \
    clearlane run experiments/demo-hot-spot.toml --fabric site.topo --lft site.lft\n  \
    clearlane run experiments/incast-16.toml --dry-run"
)]
pub struct Arguments {
    #[command(flatten)]
    pub shared: Shared,
    #[command(flatten)]
    picture: Picture,
    #[command(flatten)]
    captured: Captured,
}

/// Runs.
pub fn run(
    arguments: &Arguments,
    json: bool,
    interrupts: &Interrupts,
    processes: &Processes,
) -> Result<Answer, Failure> {
    let task = Task {
        command: "run",
        variants: &[],
        picture: &arguments.picture,
        captured: &arguments.captured,
        processes,
    };
    experiment::answer(&task, &arguments.shared, json, interrupts, text)
}

fn text(result: &RunResult) -> String {
    let table = narrow::headline(&result.headline_table(), 1);
    let worst = experiment::worst_links(result);
    let marks = experiment::marks(&table, &experiment::ended(result));
    let programs = experiment::programs(result);
    let control = experiment::control(result);
    let mut text =
        format!("{}\n{table}{worst}{marks}{programs}{control}", experiment::title(result));
    if let Some(published) = result.published_table() {
        text.push_str(&format!("\n{}", narrow::with_sentences(&published)));
    }
    text
}
