//! `clearlane control`: congestion control of an experiment as options of OpenSM.

use crate::answer::Answer;
use crate::failure::Failure;
use crate::table::wrap;
use crate::writing::{self, Writing};
use clap::Args;
use clearlane_lab::{Experiment, FabricSource, OpensmConf};
use serde_json::json;
use std::path::PathBuf;

/// What to write.
#[derive(Args, Debug)]
#[command(
    after_help = "OpenSM sets iba-cc and no other mechanism; the file says what its options \
    cannot.\n\n\
    Examples:\n  \
    clearlane control experiments/parking-lot.toml --variant 'cc on' -o congestion.conf\n  \
    clearlane control site.toml -o - >> opensm.conf"
)]
pub struct Arguments {
    /// Experiment file
    #[arg(value_name = "EXPERIMENT")]
    experiment: PathBuf,
    /// The variant; need not be named where only one has congestion control
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// File to write; - is stdout
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    writing: Writing,
}

const COLUMNS: usize = 96;

/// Reads and writes.
pub fn run(arguments: &Arguments, json: bool) -> Result<Answer, Failure> {
    let (output, dry) = (&arguments.output, arguments.writing.dry_run);
    let mut experiment = Experiment::read(&arguments.experiment).map_err(Failure::lab)?;
    if let Some(variant) = &arguments.variant {
        experiment.keep_variants(&[variant]).map_err(Failure::lab)?;
    }
    let conf = OpensmConf::of(&experiment).map_err(Failure::lab)?;
    let fabrics = experiment.variants.iter().filter_map(|variant| match &variant.fabric.source {
        FabricSource::File(path) => Some(path.as_path()),
        FabricSource::Build(_) => None,
    });
    let inputs: Vec<_> = [arguments.experiment.as_path()].into_iter().chain(fabrics).collect();
    arguments.writing.files(&[output], &inputs)?;
    if let Some(answer) = writing::deliver(output, dry, json, || conf.text())? {
        return Ok(answer);
    }
    if json {
        let fields = json!({
            "experiment": experiment.name,
            "variant": conf.variant,
            "unsaid": conf.unsaid,
            "written": !dry,
            "file": output.display().to_string(),
        });
        return Ok(Answer::json("clearlane-control/1", fields));
    }
    let would = if dry { "would write " } else { "" };
    let mut text = format!(
        "{would}{}: congestion control of variant \"{}\" for OpenSM\n",
        output.display(),
        conf.variant
    );
    for sentence in &conf.unsaid {
        for line in wrap(&format!("not said: {sentence}"), COLUMNS) {
            text.push_str(&format!("  {line}\n"));
        }
    }
    Ok(Answer::text(text))
}
