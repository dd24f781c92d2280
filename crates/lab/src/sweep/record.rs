//! A finished point as it is kept in `points.jsonl`, a line each: what a sweep that was stopped
//! need not run again.

use super::{Point, Sweep};
use crate::LabError;
use crate::experiment::{Experiment, FabricSource, Routing};
use crate::measure::Estimate;
use crate::prepare::Fact;
use crate::report::SweepFigure;
use crate::result::{RunResult, Status};
use crate::results::headline;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One variant at one point.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct VariantRecord {
    pub(super) name: String,
    pub(super) status: Status,
    /// By figure.
    pub(super) figures: Vec<Option<Estimate>>,
}

/// One point.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    /// What was asked: the whole experiment, the files it reads and the version that answered.
    pub(super) question: String,
    pub(super) figures: Vec<SweepFigure>,
    pub(super) variants: Vec<VariantRecord>,
    /// By row of `[[published]]`, what this point says.
    pub(super) published: Vec<Option<Estimate>>,
    /// By row, whether this point fulfils its condition.
    pub(super) provided: Vec<bool>,
    pub(super) oddities: Vec<String>,
    /// What all variants of the point have in common.
    pub(super) facts: Vec<Fact>,
    /// The report of the point, relative to the folder.
    pub(super) run: Option<String>,
}

impl Record {
    /// A finished result.
    pub(super) fn of(question: String, result: &RunResult, run: Option<String>) -> Self {
        let table = headline(result);
        let figure = |column: &crate::results::HeadlineColumn| SweepFigure {
            key: column.key.into(),
            label: column.label.into(),
            unit: column.unit.into(),
            better: column.better,
        };
        let rows = result.experiment.published.iter();
        let variants = result.variants.iter().zip(table.rows);
        let variant = |(variant, (name, figures)): (&crate::VariantResult, (String, Vec<_>))| {
            VariantRecord { name, status: result.status_of(variant), figures }
        };
        Record {
            question,
            figures: table.columns.iter().map(figure).collect(),
            variants: variants.map(variant).collect(),
            published: rows.clone().map(|row| result.obtained(row)).collect(),
            provided: rows.map(|row| result.provides(row)).collect(),
            oddities: result.oddities(),
            facts: facts(result),
            run,
        }
    }
}

/// The facts that all variants share.
fn facts(result: &RunResult) -> Vec<Fact> {
    let Some((first, others)) = result.variants.split_first() else { return Vec::new() };
    let shared = |fact: &&Fact| others.iter().all(|other| other.prepared.facts.contains(fact));
    first.prepared.facts.iter().filter(shared).cloned().collect()
}

/// What the points of a sweep ask, each as a fingerprint. A file that several points read is read
/// once.
pub(super) fn questions(sweep: &Sweep) -> Result<Vec<String>, LabError> {
    let mut files = BTreeMap::new();
    sweep.points.iter().map(|point| question(point, &mut files)).collect()
}

fn question(point: &Point, files: &mut BTreeMap<PathBuf, Vec<u8>>) -> Result<String, LabError> {
    let mut hash = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    add(env!("CARGO_PKG_VERSION").as_bytes());
    let mut asked = point.experiment.resolved_table();
    // What else is asked, and what others found, changes nothing here.
    asked.remove("sweep");
    add(toml::to_string(&asked).unwrap_or_default().as_bytes());
    for path in inputs(&point.experiment) {
        if !files.contains_key(path) {
            let bytes = std::fs::read(path)
                .map_err(|source| LabError::Read { path: path.to_owned(), source })?;
            files.insert(path.to_owned(), Sha256::digest(&bytes).to_vec());
        }
        add(files.get(path).map_or(&[][..], Vec::as_slice));
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The files an experiment reads.
fn inputs(experiment: &Experiment) -> Vec<&Path> {
    let mut paths: Vec<&Path> = Vec::new();
    for variant in &experiment.variants {
        if let FabricSource::File(path) = &variant.fabric.source {
            paths.push(path);
        }
        if let Routing::Files(tables) = &variant.subnet.routing {
            paths.extend(tables.iter().map(PathBuf::as_path));
        }
        paths.extend(variant.traffic.iter().filter_map(|group| group.matrix()));
    }
    paths
}
