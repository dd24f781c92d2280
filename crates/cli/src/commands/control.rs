//! `clearlane control`: congestion control of an experiment as a file for OpenSM, and what such a
//! file means.

use crate::answer::Answer;
use crate::failure::Failure;
use crate::table::{Align, Table, count, wrap};
use crate::writing::{self, Writing};
use clap::Args;
use clearlane_congestion::mechanisms::dcqcn;
use clearlane_congestion::policy_file::Row;
use clearlane_lab::{
    ControlFile, Experiment, FabricSource, PolicyFile, Unfinished, named, reference,
};
use serde_json::json;
use std::path::{Path, PathBuf};

/// What to write.
#[derive(Args, Debug)]
#[command(
    after_help = "iba-cc becomes options of opensm.conf, dcqcn a congestion control policy file, \
    which only NVIDIA's OpenSM reads. Each file lists what it cannot set.\n\n\
    Examples:\n  \
    clearlane control experiments/parking-lot.toml --variant 'cc on' -o congestion.conf\n  \
    clearlane control site.toml -o - >> opensm.conf\n  \
    clearlane control --policy /etc/opensm/cc_policy.conf"
)]
pub struct Arguments {
    /// Experiment file
    #[arg(value_name = "EXPERIMENT", required_unless_present = "policy")]
    experiment: Option<PathBuf>,
    /// The variant; needed only if several variants have congestion control
    #[arg(long, value_name = "NAME", conflicts_with = "policy")]
    variant: Option<String>,
    /// File to write; - is stdout
    #[arg(short, long, value_name = "FILE", required_unless_present = "policy")]
    output: Option<PathBuf>,
    /// Print what a congestion control policy file of NVIDIA's OpenSM means, and write nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["experiment", "output"])]
    policy: Option<PathBuf>,
    #[command(flatten)]
    writing: Writing,
}

const COLUMNS: usize = 96;

/// Reads, and writes or prints.
pub fn run(arguments: &Arguments, json: bool, unfinished: &Unfinished) -> Result<Answer, Failure> {
    match (&arguments.policy, &arguments.experiment, &arguments.output) {
        (Some(policy), ..) => meaning(policy, json),
        (None, Some(experiment), Some(output)) => {
            write((experiment, output), arguments, json, unfinished)
        }
        // Refused as the command line is read.
        _ => Err(Failure::Input("name an experiment and -o, or --policy".into())),
    }
}

fn write(
    (path, output): (&Path, &Path),
    arguments: &Arguments,
    json: bool,
    unfinished: &Unfinished,
) -> Result<Answer, Failure> {
    let dry = arguments.writing.dry_run;
    let mut experiment = Experiment::read(path).map_err(Failure::lab)?;
    // Those of all variants: they are read with the experiment.
    let specs = experiment.variants.iter().flat_map(|variant| variant.control.all());
    let policies = specs.filter_map(|spec| spec.policy.as_ref().map(|file| file.path.clone()));
    let policies: Vec<PathBuf> = policies.collect();
    if let Some(variant) = &arguments.variant {
        experiment.keep_variants(&[variant]).map_err(Failure::lab)?;
    }
    let file = ControlFile::of(&experiment).map_err(Failure::lab)?;
    let fabrics = experiment.variants.iter().filter_map(|variant| match &variant.fabric.source {
        FabricSource::File(path) => Some(path.as_path()),
        FabricSource::Build(_) => None,
    });
    let inputs: Vec<_> =
        [path].into_iter().chain(fabrics).chain(policies.iter().map(PathBuf::as_path)).collect();
    arguments.writing.files(&[output], &inputs)?;
    if let Some(answer) = writing::deliver(output, dry, json, unfinished, || file.text())? {
        return Ok(answer);
    }
    if json {
        let fields = json!({
            "experiment": experiment.name,
            "variant": file.variant(),
            "unsaid": file.unsaid(),
            "written": !dry,
            "file": output.display().to_string(),
        });
        return Ok(Answer::json("clearlane-control/1", fields));
    }
    let would = if dry { "would write " } else { "" };
    let mut text = format!(
        "{would}{}: congestion control of variant \"{}\" for {}\n",
        output.display(),
        file.variant(),
        file.reader()
    );
    text.push_str(&sentences("not said", file.unsaid()));
    Ok(Answer::text(text))
}

/// Sentences under a word, wrapped.
fn sentences(word: &str, all: &[String]) -> String {
    let mut text = String::new();
    for sentence in all {
        for line in wrap(&format!("{word}: {sentence}"), COLUMNS) {
            text.push_str(&format!("  {line}\n"));
        }
    }
    text
}

/// What a row's parameter is called and what it is, as an experiment writes it.
fn parameter(row: &Row) -> (&'static str, String) {
    let of = row.parameter.as_ref();
    of.map_or(("", String::new()), |(of, value)| (of.name, reference::value(value)))
}

/// Prints what a policy file means.
fn meaning(path: &Path, json: bool) -> Result<Answer, Failure> {
    let file = PolicyFile::read(path).map_err(Failure::lab)?;
    let (meaning, odd) = (&file.meaning, &file.oddities);
    let odd: Vec<String> = odd.iter().map(ToString::to_string).collect();
    if json {
        let setting = |row: &Row| {
            let (name, value) = parameter(row);
            json!({
                "line": row.line,
                "block": row.block,
                "key": row.key,
                "written": row.written,
                "unit": row.unit,
                "parameter": (!name.is_empty()).then_some(name),
                "value": (!name.is_empty()).then_some(value),
                "note": row.note,
            })
        };
        let all = dcqcn::ENTRY.parameters.iter();
        let all =
            all.map(|of| (of.name.to_owned(), reference::value(meaning.values.get(of)).into()));
        let fields = json!({
            "file": named(path),
            "settings": meaning.rows.iter().map(setting).collect::<Vec<_>>(),
            "parameters": all.collect::<serde_json::Map<_, _>>(),
            "unsaid": meaning.unsaid,
            "oddities": odd,
        });
        return Ok(Answer::json("clearlane-policy/1", fields));
    }
    let mut table = Table::new([
        ("line", "", Align::Right),
        ("block", "", Align::Left),
        ("key", "", Align::Left),
        ("written", "", Align::Right),
        ("unit", "", Align::Left),
        ("parameter", "", Align::Left),
        ("value", "", Align::Right),
        ("note", "", Align::Left),
    ]);
    for row in &meaning.rows {
        let (name, value) = parameter(row);
        let line = row.line.to_string();
        let (block, key, written) = (row.block.as_str(), row.key.as_str(), row.written.as_str());
        table.row([line.as_str(), block, key, written, row.unit, name, &value, row.note]);
    }
    let settings = count(meaning.rows.len(), "setting", "settings");
    let mut text = format!("{}: congestion control policy, {settings}\n\n{table}", named(path));
    text.push('\n');
    text.push_str(&sentences("odd", &odd));
    text.push_str(&sentences("note", &meaning.unsaid));
    Ok(Answer::text(text))
}
