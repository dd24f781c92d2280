//! A finished point as it is kept in `points.jsonl`, a line each: what a sweep that was stopped
//! need not run again.

use super::Sweep;
use crate::LabError;
use crate::fact::Fact;
use crate::headline::{control_row, headline};
use crate::measure::{Asked, Estimate, Series};
use crate::question::question;
use crate::report::SweepFigure;
use crate::result::RunResult;
use crate::status::Status;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One variant at one point.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct VariantRecord {
    pub(super) name: String,
    pub(super) status: Status,
    /// By figure.
    pub(super) figures: Vec<Option<Estimate>>,
    /// By measure that published rows of the experiment ask of single runs.
    pub(super) asked: Vec<Answered>,
    /// By column of the table of mechanisms; nothing without any.
    pub(super) control: Option<Vec<Option<Estimate>>>,
}

/// What the runs of a variant say to a measure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Answered {
    /// The seeds that have a value, and the value; JSON has no infinity and writes null.
    values: Vec<(u64, Option<f64>)>,
    settled: bool,
    steady: bool,
}

/// One point.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    /// What was asked: the whole experiment, the files it reads and the version that answered.
    pub(super) question: String,
    pub(super) figures: Vec<SweepFigure>,
    pub(super) variants: Vec<VariantRecord>,
    pub(super) oddities: Vec<String>,
    /// What all variants of the point have in common.
    pub(super) facts: Vec<Fact>,
    /// The report of the point, relative to the folder.
    pub(super) run: Option<String>,
}

impl Answered {
    fn of(series: &Series) -> Self {
        let value = |(seed, value): &(u64, Option<f64>)| {
            value.map(|value| (*seed, Some(value).filter(|value| value.is_finite())))
        };
        Answered {
            values: series.values.iter().filter_map(value).collect(),
            settled: series.settled,
            steady: series.steady,
        }
    }

    pub(super) fn series(&self) -> Series {
        let value =
            |(seed, value): &(u64, Option<f64>)| (*seed, Some(value.unwrap_or(f64::INFINITY)));
        Series {
            values: self.values.iter().map(value).collect(),
            settled: self.settled,
            steady: self.steady,
            chosen: Vec::new(),
        }
    }
}

impl Record {
    /// A finished result.
    pub(super) fn of(question: String, result: &RunResult, run: Option<String>) -> Self {
        let table = headline(result);
        let figure = |column: &crate::headline::HeadlineColumn| SweepFigure {
            key: column.key.clone(),
            label: column.label.into(),
            unit: column.unit.into(),
            better: column.better,
        };
        let asked = result.experiment.asked();
        let variants = result.variants.iter().zip(table.rows);
        let variant = |(variant, (name, figures)): (&crate::VariantResult, (String, Vec<_>))| {
            let answered = |asked: &&Asked| Answered::of(&variant.series(asked));
            VariantRecord {
                name,
                status: result.status_of(variant),
                figures,
                asked: asked.iter().map(answered).collect(),
                control: control_row(variant),
            }
        };
        Record {
            question,
            figures: table.columns.iter().map(figure).collect(),
            variants: variants.map(variant).collect(),
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
