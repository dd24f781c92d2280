//! A finished point as it is kept in `points.jsonl`, a line each: what a sweep that was stopped
//! need not run again.

use super::Sweep;
use crate::LabError;
use crate::measure::Estimate;
use crate::prepare::Fact;
use crate::question::question;
use crate::report::SweepFigure;
use crate::result::{RunResult, Status};
use crate::results::headline;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    sweep.points.iter().map(|point| question(&point.experiment, &mut files)).collect()
}
