//! `clearlane compare` of records: a capture laid over a simulation.

use super::experiment::quoted;
use crate::answer::{self, Answer};
use crate::failure::Failure;
use crate::terminal;
use crate::writing;
use clearlane_ib::visible;
use clearlane_lab::{
    FLOW_SERIES_FILE, RunFolder, Unfinished, named, observed_page, read_flow_series,
};
use clearlane_observe::{Overlay, Record};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Everything the folder holds.
const FILES: &[&str] = &["overlay.json", "report.html"];
/// A file of flows that is believed.
const SERIES_BYTES_MAX: u64 = 1 << 30;
const ROWS_MAX: usize = 40;

/// Whether a command line asks for records to be compared instead of an experiment's variants.
pub fn is_asked(first: &Path, others: &[PathBuf]) -> bool {
    !others.is_empty() || first.is_dir()
}

/// What is laid over each other, and how.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// Variants of runs; all if there are none.
    pub wanted: &'a [String],
    /// Whether each record is scaled to the first.
    pub scaled: bool,
}

/// Lays records over each other; of a run with several variants each is a record.
pub fn run(
    paths: &[&Path],
    Shown { wanted, scaled }: Shown<'_>,
    (out, force): (Option<&Path>, bool),
    json: bool,
    unfinished: &Unfinished,
) -> Result<Answer, Failure> {
    let mut records = Vec::new();
    for path in paths {
        records.extend(read(path, paths, wanted)?);
    }
    let overlay = Overlay::of(records).map_err(Failure::Input)?;
    let overlay = if scaled { overlay.scaled() } else { overlay };
    if !overlay.is_comparable() {
        return Err(Failure::Input(overlay.finding()));
    }
    let mut told = String::new();
    if let Some(out) = out {
        let folder = RunFolder::claim_for(out, force, FILES, unfinished).map_err(Failure::lab)?;
        writing::spare(out, paths)?;
        let words = paths.iter().map(|path| quoted(&path.to_string_lossy()));
        let mut command = format!("clearlane compare {}", words.collect::<Vec<_>>().join(" "));
        if !wanted.is_empty() {
            command.push_str(&format!(" --variants {}", quoted(&wanted.join(","))));
        }
        if scaled {
            command.push_str(" --scaled");
        }
        let document = answer::document("clearlane-overlay/1", &overlay.summary());
        let page = observed_page(&overlay.page(&command));
        let contents = vec![(FILES[0], document.into_bytes()), (FILES[1], page.into_bytes())];
        let report = folder.fill_with(contents).map_err(Failure::lab)?;
        told = format!("report: {}\n", report.display());
    }
    if json {
        (!told.is_empty()).then(|| terminal::remark(told.trim_end()));
        return Ok(Answer::json("clearlane-overlay/1", overlay.summary()));
    }
    let (table, left_out) = overlay.table(ROWS_MAX);
    let more = match left_out {
        0 => String::new(),
        many => format!("and {many} flows with less; --json has all\n"),
    };
    let finding = visible(&overlay.finding()).into_owned();
    Ok(Answer::text(format!("{finding}\n\n{table}{more}{told}")))
}

/// The records in a folder of `run` or `capture`, or in a file of flows.
fn read(path: &Path, all: &[&Path], wanted: &[String]) -> Result<Vec<Record>, Failure> {
    let file = match path.is_dir() {
        true => path.join(FLOW_SERIES_FILE),
        false => path.to_owned(),
    };
    if path.is_dir() && !file.exists() {
        return Err(Failure::Input(format!(
            "{} has no {FLOW_SERIES_FILE}; give a folder of `run --out` or `capture --out`",
            named(path)
        )));
    }
    let size = fs::metadata(&file).map_err(|e| Failure::reading(&file, &e))?.len();
    if size > SERIES_BYTES_MAX {
        let many = size >> 20;
        return Err(Failure::Input(format!("{} has {many} MiB; 1 GiB is read", named(&file))));
    }
    let bytes = fs::read(&file).map_err(|e| Failure::reading(&file, &e))?;
    let rows =
        read_flow_series(bytes).map_err(|why| Failure::Input(format!("{} {why}", named(&file))))?;
    let same = all.iter().filter(|other| other.file_name() == path.file_name()).count();
    let name = path.file_name().filter(|_| same == 1).unwrap_or(path.as_os_str());
    let name = name.to_string_lossy();
    let mut variants: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for row in rows {
        variants.entry(row.variant.clone()).or_default().push(row);
    }
    let many = variants.len() > 1;
    // Captures have no variants.
    let is_run = !variants.contains_key("");
    if is_run && !wanted.is_empty() {
        // A name may have commas itself.
        let split = |text: &'_ String| -> Vec<String> {
            match variants.contains_key(text) {
                true => vec![text.clone()],
                false => text.split(',').map(|name| name.trim().to_owned()).collect(),
            }
        };
        let names: Vec<String> = wanted.iter().flat_map(split).collect();
        if let Some(missing) = names.iter().find(|name| !variants.contains_key(*name)) {
            let there: Vec<&str> = variants.keys().map(String::as_str).collect();
            return Err(Failure::Input(format!(
                "{} has no variant {}; it has {}",
                named(&file),
                clearlane_ib::quoted(missing),
                there.join(", ")
            )));
        }
        variants.retain(|name, _| names.contains(name));
    }
    let record = |(variant, rows): (String, Vec<_>)| match many {
        true => Record { name: format!("{name}: {variant}"), rows },
        false => Record { name: name.clone().into_owned(), rows },
    };
    Ok(variants.into_iter().map(record).collect())
}
