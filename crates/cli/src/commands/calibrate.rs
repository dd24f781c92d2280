//! `clearlane calibrate`: how far flow mode is from packets, an interval, and whether it holds.

use super::experiment;
use crate::answer::Answer;
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::memory::Guard;
use crate::progress::Progress;
use crate::table::{Align, Table};
use crate::terminal;
use clap::Args;
use clearlane_ib::visible;
use clearlane_lab::Status;
use clearlane_lab::calibrate::{self, Calibrated, Pair, VariantError};
use serde_json::{Value, json};
use std::path::PathBuf;

/// What is calibrated.
#[derive(Args, Debug)]
#[command(
    after_help = "Both modes run the experiment at every value. Of each variant, the ratios of \
    packets' completion\ntime to flows' at the values of --over, and how they go with the time of \
    flows, give an interval\nthat holds the ratio of one further value in 95 % of cases. The \
    values of --unseen have no part in\nit: they test it. To continue a calibration that was \
    stopped, call it again with the same folder.\n\n\
    Examples:\n  clearlane calibrate experiments/pacing-mod-alltoall.toml \
    --over fabric.build=torus:4x4,torus:5x5,torus:6x6 \
    --unseen fabric.build=torus:8x8,torus:10x10\n  \
    clearlane calibrate FILE --over 'traffic.ring.program.size=4 KiB,16 KiB' \
    --unseen 'traffic.ring.program.size=64 KiB'"
)]
pub struct Arguments {
    /// Experiment file
    #[arg(value_name = "EXPERIMENT")]
    experiment: PathBuf,
    /// A key and the values that give the interval, two or more
    #[arg(long, value_name = "KEY=V1,V2|FROM..TO:COUNT")]
    over: String,
    /// The same key and the values that test the interval
    #[arg(long, value_name = "KEY=V1,V2|FROM..TO:COUNT")]
    unseen: String,
    /// These variants, in this order; without it, all of the experiment
    #[arg(long, value_name = "NAMES")]
    variants: Vec<String>,
    /// Folder for the runs and the report [default: runs/, the experiment's name and -calibrated]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// First seed [default: the experiment's]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Seeds of each run [default: the experiment's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: Option<u32>,
    /// Runs at a time; does not change results [default: the machine's cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// Replace other runs that are in the folder
    #[arg(long)]
    force: bool,
}

/// Calibrates.
pub fn run(arguments: &Arguments, json: bool, interrupts: &Interrupts) -> Result<Answer, Failure> {
    let out = experiment::folder(&arguments.experiment, "calibrated", arguments.out.as_deref())?;
    let halt = interrupts.stop_in_good_order(&out);
    let guard = Guard::start(&halt)?;
    let options = experiment::many(arguments.jobs, &guard, again(arguments), interrupts);
    let request = calibrate::Request {
        experiment: arguments.experiment.clone(),
        over: arguments.over.clone(),
        unseen: arguments.unseen.clone(),
        variants: arguments.variants.clone(),
        seed: arguments.seed,
        seeds: arguments.seeds,
    };
    let progress = Progress::start("calibrating flow mode");
    let folder = (out.as_path(), arguments.force);
    let done = calibrate::calibrate(&request, folder, &options, &progress, &halt);
    let done = done.map_err(Failure::lab)?;
    let verdict = experiment::verdict(done.sweep.status());
    let report = format!("report: {}", out.join("report.html").display());
    if json {
        terminal::remark(&report);
        return Ok(Answer::json("clearlane-calibration/1", fields(&done)).with(verdict));
    }
    Ok(Answer::text(format!("{}{report}\n", text(&done))).with(verdict))
}

fn again(arguments: &Arguments) -> String {
    let quoted = experiment::quoted;
    let mut line = format!(
        "clearlane calibrate {} --over {} --unseen {}",
        quoted(&arguments.experiment.to_string_lossy()),
        quoted(&arguments.over),
        quoted(&arguments.unseen)
    );
    for names in &arguments.variants {
        line.push_str(&format!(" --variants {}", quoted(names)));
    }
    let numbers = [
        arguments.seed.map(|seed| format!(" --seed {seed}")),
        arguments.seeds.map(|seeds| format!(" --seeds {seeds}")),
    ];
    numbers.into_iter().flatten().for_each(|flag| line.push_str(&flag));
    line
}

/// The verdict, the intervals, and the values one by one.
fn text(done: &Calibrated) -> String {
    let name = &done.sweep.experiment.name;
    let mut text = format!("{name}: flow mode beside packets over {}\n", visible(&done.key));
    text.push_str(&format!("{}\n", done.verdict()));
    if done.sweep.status() == Status::Partial {
        text.push_str("interrupted: call it again with the same folder to go on\n");
    }
    let mut trends = Table::plain(&[Align::Left, Align::Right, Align::Right]);
    trends.row(["variant", "packets / flow, mean", "tenfold time multiplies it by"]);
    for variant in &done.variants {
        let cells = match variant.trend {
            Some(trend) => [trend.mean, trend.tenfold].map(|number| format!("{number:.3}")),
            None => ["–", "–"].map(str::to_owned),
        };
        let [mean, tenfold] = cells;
        trends.row([visible(&variant.variant).to_string(), mean, tenfold]);
    }
    format!("{text}\n{trends}\n{}", values(done))
}

/// The values one by one, and where packets were to be expected.
fn values(done: &Calibrated) -> Table {
    let right = [Align::Right; 5];
    let columns = [&[Align::Left, Align::Left][..], &right, &[Align::Left]].concat();
    let mut table = Table::plain(&columns);
    let names = ["packets, us", "flow, us", "packets / flow", "95 % from", "to", ""];
    table.row([&["variant", done.key.as_str()][..], &names].concat());
    for variant in &done.variants {
        let seen = variant.seen.iter().map(|pair| (pair, None, "gives the interval"));
        let unseen =
            variant.unseen.iter().map(|pair| (pair, variant.interval(pair), held(variant, pair)));
        for (pair, interval, said) in seen.chain(unseen) {
            let cell = |number: Option<f64>, digits: usize| {
                number.map_or("–".to_owned(), |number| format!("{number:.digits$}"))
            };
            table.row([
                visible(&variant.variant).to_string(),
                visible(&pair.value).to_string(),
                cell(pair.packets_us, 1),
                cell(pair.flow_us, 1),
                cell(pair.ratio(), 3),
                cell(interval.map(|all| all.low), 3),
                cell(interval.map(|all| all.high), 3),
                said.to_owned(),
            ]);
        }
    }
    table
}

fn held(variant: &VariantError, pair: &Pair) -> &'static str {
    match variant.holds(pair) {
        Some(true) => "unseen: inside",
        Some(false) => "unseen: outside",
        None => "unseen: not ended",
    }
}

fn fields(done: &Calibrated) -> Value {
    let pair = |variant: &VariantError, pair: &Pair, inside: Option<bool>| {
        let interval = variant.interval(pair);
        json!({
            "value": pair.value,
            "packets_us": pair.packets_us,
            "flow_us": pair.flow_us,
            "ratio": pair.ratio(),
            "interval": interval.map(|all| {
                json!({ "expected": all.expected, "low": all.low, "high": all.high })
            }),
            "inside": inside,
        })
    };
    let variant = |variant: &VariantError| {
        let seen: Vec<Value> = variant.seen.iter().map(|seen| pair(variant, seen, None)).collect();
        let unseen =
            variant.unseen.iter().map(|unseen| pair(variant, unseen, variant.holds(unseen)));
        json!({
            "variant": variant.variant,
            "trend": variant.trend.map(|trend| {
                json!({ "mean": trend.mean, "tenfold": trend.tenfold })
            }),
            "seen": seen,
            "unseen": unseen.collect::<Vec<Value>>(),
        })
    };
    let (held, all) = done.held();
    json!({
        "experiment": done.sweep.experiment.name,
        "key": done.key,
        "status": done.sweep.status(),
        "unseen_inside": held,
        "unseen_asked": all,
        "holds": done.is_good(),
        "variants": done.variants.iter().map(variant).collect::<Vec<Value>>(),
    })
}
