//! `clearlane tune`: the value of a parameter with which an experiment is fastest.

use super::experiment;
use crate::answer::Answer;
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::memory::Guard;
use crate::progress::Progress;
use crate::table::{Align, Table, count};
use crate::terminal;
use clap::{Args, Subcommand};
use clearlane_ib::visible;
use clearlane_lab::{Status, tune};
use serde_json::{Value, json};
use std::path::PathBuf;

/// What is tuned.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Find the gap between packets with which a program is fastest, and print the curve
    Pacing(Pacing),
}

/// Of which program.
#[derive(Args, Debug)]
#[command(
    after_help = "The gap is the idle time after each packet, in times of a packet. The search \
    runs the experiment\nwith no gap, half a gap and powers of two, and then goes closer around \
    the best. To continue a\nsearch that was stopped, call it again with the same folder.\n\n\
    Examples:\n  clearlane tune pacing experiments/pacing-pwx-4x4x4.toml\n  \
    clearlane tune pacing FILE --variant \"8 B\" --group solver --most 16"
)]
pub struct Pacing {
    /// Experiment file
    #[arg(value_name = "EXPERIMENT")]
    experiment: PathBuf,
    /// Variant to tune [default: the first]
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Traffic whose program is paced [default: the only one]
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
    /// Widest gap tried, in times of a packet, 0.5 to 1024
    #[arg(long, value_name = "GAP", default_value_t = 32.0, value_parser = widest)]
    most: f64,
    /// How often the search goes closer, 0 to 8
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=8))]
    refinements: u32,
    /// Folder for the runs and the report [default: runs/, the experiment's name and -pacing]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Seed of all runs [default: the experiment's first]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Runs at a time; does not change results [default: the machine's cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// Replace other runs that are in the folder
    #[arg(long)]
    force: bool,
}

fn widest(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(gap) if (0.5..=1024.0).contains(&gap) => Ok(gap),
        _ => Err("write a number from 0.5 to 1024".into()),
    }
}

/// Tunes.
pub fn run(command: &Command, json: bool, interrupts: &Interrupts) -> Result<Answer, Failure> {
    match command {
        Command::Pacing(arguments) => pacing(arguments, json, interrupts),
    }
}

fn pacing(arguments: &Pacing, json: bool, interrupts: &Interrupts) -> Result<Answer, Failure> {
    let out = experiment::folder(&arguments.experiment, "pacing", arguments.out.as_deref())?;
    let halt = interrupts.stop_in_good_order(&out);
    let guard = Guard::start(&halt)?;
    let options = experiment::many(arguments.jobs, &guard, again(arguments), interrupts);
    let request = tune::Request {
        experiment: arguments.experiment.clone(),
        variant: arguments.variant.clone(),
        group: arguments.group.clone(),
        most: arguments.most,
        refinements: arguments.refinements,
        seed: arguments.seed,
    };
    let progress = Progress::start("tuning the gap");
    let tuned = tune::pacing(&request, (&out, arguments.force), &options, &progress, &halt);
    let tuned = tuned.map_err(Failure::lab)?;
    let verdict = experiment::verdict(tuned.sweep.status());
    let report = format!("report: {}", out.join("report.html").display());
    if json {
        terminal::remark(&report);
        return Ok(Answer::json("clearlane-tune/1", fields(&tuned)).with(verdict));
    }
    Ok(Answer::text(format!("{}{report}\n", text(&tuned))).with(verdict))
}

fn again(arguments: &Pacing) -> String {
    let mut line = format!(
        "clearlane tune pacing {}",
        experiment::quoted(&arguments.experiment.to_string_lossy())
    );
    for (flag, value) in [("--variant", &arguments.variant), ("--group", &arguments.group)] {
        if let Some(value) = value {
            line.push_str(&format!(" {flag} {}", experiment::quoted(value)));
        }
    }
    line
}

/// Cells of the widest bar.
const BAR: f64 = 40.0;

/// A verdict, and the curve.
fn text(tuned: &tune::Tuned) -> String {
    let (name, variant) = (&tuned.sweep.experiment.name, visible(&tuned.variant));
    let runs = count(tuned.times.len(), "gap", "gaps");
    let mut text = format!("{name}, {variant}: {} over {runs}\n", visible(&tuned.group));
    text.push_str(&match (tuned.best(), tuned.unpaced()) {
        (Some((gap, best)), Some(unpaced)) if gap > 0.0 => format!(
            "best gap: {gap} times of a packet: {} us, {:.2} times as fast as without a gap\n",
            rounded(best),
            unpaced / best
        ),
        (Some((_, best)), Some(_)) => {
            format!("no gap is best: {} us; every gap that was tried takes longer\n", rounded(best))
        }
        _ => "no run ended with its programs: raise run.duration\n".to_owned(),
    });
    if let (Some(time), Some((_, best))) = (tuned.overlap, tuned.best()) {
        let against = if time <= best { "less" } else { "more" };
        text.push_str(&format!(
            "MOD gaps take {} us, {:.1} % {against} than the best gap\n",
            rounded(time),
            100.0 * (time / best - 1.0).abs()
        ));
    }
    if let Some(ideal) = tuned.ideal {
        text.push_str(&format!("ideal time, step by step: {} us\n", rounded(ideal)));
    }
    if tuned.sweep.status() == Status::Partial {
        text.push_str("interrupted: call it again with the same folder to go on\n");
    }
    let most = tuned.times.iter().filter_map(|(_, time)| *time).fold(0.0, f64::max);
    let mut table = Table::plain(&[Align::Right, Align::Right, Align::Left]);
    table.row(["gap", "completion, us", ""]);
    for (gap, time) in &tuned.times {
        let cells = time.map_or(0, |time| (BAR * time / most).round() as usize);
        let is_best = tuned.best().is_some_and(|(best, _)| best == *gap);
        let mark = if is_best { " best" } else { "" };
        table.row([
            gap.to_string(),
            time.map_or("–".to_owned(), rounded),
            format!("{}{mark}", "█".repeat(cells)),
        ]);
    }
    let unfinished = tuned.times.iter().any(|(_, time)| time.is_none());
    let note = if unfinished { "–: the programs had not ended after run.duration\n" } else { "" };
    format!("{text}\n{table}{note}")
}

fn rounded(us: f64) -> String {
    if us < 100.0 { format!("{us:.2}") } else { format!("{us:.0}") }
}

fn fields(tuned: &tune::Tuned) -> Value {
    let curve: Vec<Value> =
        tuned.times.iter().map(|(gap, time)| json!({ "gap": gap, "time_us": time })).collect();
    json!({
        "experiment": tuned.sweep.experiment.name,
        "variant": tuned.variant,
        "group": tuned.group,
        "status": tuned.sweep.status(),
        "best": tuned.best().map(|(gap, time)| json!({ "gap": gap, "time_us": time })),
        "unpaced_us": tuned.unpaced(),
        "mod_us": tuned.overlap,
        "ideal_us": tuned.ideal,
        "curve": curve,
    })
}
