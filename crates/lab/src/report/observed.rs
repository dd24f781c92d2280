//! The page of what was observed and not run as an experiment: captures of real networks, and
//! records of flows laid over each other.

use super::control::{ControlData, Line, Quantity};
use super::data::Series;
use crate::fact::Fact;
use crate::headline::Better;
use crate::status::Status;
use crate::verdict::Verdict;
use serde::Serialize;

/// What a page of records of flows shows.
#[derive(Clone, PartialEq, Debug)]
pub struct ObservedPage {
    /// One line.
    pub title: String,
    /// The finding in one sentence.
    pub summary: String,
    /// The same in a few lines, the cause first.
    pub verdict: Option<Verdict>,
    /// The command line that makes the same page again.
    pub command: String,
    /// Whether it gives the same figures again: files do, real hosts do not.
    pub repeats: bool,
    /// What a row of the table is, such as `Flow`.
    pub row: &'static str,
    /// The table's columns.
    pub columns: Vec<ObservedColumn>,
    /// Its rows.
    pub rows: Vec<ObservedRow>,
    /// What is known besides.
    pub facts: Vec<Fact>,
    /// What a reader should know, one sentence each.
    pub oddities: Vec<String>,
    /// The records, a chart each.
    pub records: Vec<ObservedRecord>,
}

/// A column of the table.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ObservedColumn {
    /// Unique among the columns.
    pub key: String,
    /// What a reader is told.
    pub label: &'static str,
    /// Unit; empty for a pure number.
    pub unit: &'static str,
    /// Which end of the scale is better, if either.
    pub better: Option<Better>,
    /// What it measures, in one line.
    pub explained: &'static str,
}

/// A row of the table.
#[derive(Clone, PartialEq, Debug)]
pub struct ObservedRow {
    /// What it is of.
    pub name: String,
    /// What is said of it, in one line; may be empty.
    pub summary: String,
    /// By column; nothing where it is not known.
    pub values: Vec<Option<f64>>,
}

/// A record of flows over time.
#[derive(Clone, PartialEq, Debug)]
pub struct ObservedRecord {
    /// What it is called.
    pub name: String,
    /// How long its slices are, µs.
    pub slice_us: f64,
    /// Throughput of flows, Gb/s.
    pub flows: Vec<ObservedLine>,
    /// What else is drawn: its name with its unit, decimals, lines.
    pub quantities: Vec<(&'static str, u8, Vec<ObservedLine>)>,
}

/// A line of a chart.
#[derive(Clone, PartialEq, Debug)]
pub struct ObservedLine {
    /// What it is called.
    pub name: String,
    /// Whether it is the cause of congestion (`hot`), suffers (`victim`), or is neither
    /// (`background`).
    pub class: &'static str,
    /// A value per slice.
    pub values: Vec<f64>,
}

/// What the page is told that experiments have no word for.
#[derive(Serialize)]
pub(super) struct ObservedData {
    row: &'static str,
    repeats: bool,
}

/// Rounded to what a chart shows.
fn shown(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| (value * 1e4).round() / 1e4).collect()
}

impl ObservedRecord {
    pub(super) fn lines(&self) -> Vec<Series> {
        let of = |line: &ObservedLine| Series::of(&line.name, line.class, shown(&line.values));
        self.flows.iter().map(of).collect()
    }

    pub(super) fn control(&self) -> Option<ControlData> {
        let line = |line: &ObservedLine| Line {
            name: line.name.clone(),
            class: line.class,
            values: shown(&line.values),
        };
        let quantity = |(name, decimals, lines): &(&'static str, u8, Vec<ObservedLine>)| Quantity {
            name,
            decimals: *decimals,
            lines: lines.iter().map(line).collect(),
        };
        let is_any = self.quantities.iter().any(|(_, _, lines)| !lines.is_empty());
        is_any.then(|| ControlData {
            mechanisms: vec!["marks and notifications"],
            quantities: self.quantities.iter().map(quantity).collect(),
        })
    }
}

impl ObservedPage {
    pub(super) fn data(&self) -> ObservedData {
        ObservedData { row: self.row, repeats: self.repeats }
    }

    /// Observing ends when the files do.
    pub(super) const STATUS: Status = Status::Complete;
}
