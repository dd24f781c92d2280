//! What a sweep found out, as the page and the files of a sweep hold it: figures at the points of a
//! grid of parameters.

use crate::fact::Fact;
use crate::headline::Better;
use crate::headline::PublishedRow;
use crate::status::Status;
use serde::{Deserialize, Serialize};

/// A value of an axis.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum AxisValue {
    /// A number in the unit of the axis; an axis of nothing but numbers can be drawn along.
    Number(f64),
    /// Anything else, such as the name of an engine.
    Text(String),
}

/// A parameter that was varied.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SweepAxis {
    /// The experiment's key, such as `traffic.uniform.load`; unique among the axes.
    pub key: String,
    /// What a reader is told.
    pub label: String,
    /// Unit of its numbers; empty for a pure number.
    pub unit: String,
    /// Its values in the order of the points.
    pub values: Vec<AxisValue>,
}

/// A quantity that was measured at every point.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SweepFigure {
    /// Unique among the figures.
    pub key: String,
    /// What a reader is told.
    pub label: String,
    /// Unit; empty for a pure number.
    pub unit: String,
    /// Which end of the scale is better, if either.
    pub better: Option<Better>,
}

/// One variant at one place of the grid.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SweepPoint {
    /// By axis, the index among its values.
    pub at: Vec<usize>,
    /// The variant; the same name at every place of the grid.
    pub variant: String,
    /// By figure, the mean over the seeds; nothing if it was not measured or is not steady.
    pub mean: Vec<Option<f64>>,
    /// By figure, half of the 95 % confidence interval; nothing with one seed.
    pub half_width: Vec<Option<f64>>,
    /// False if a seed had not settled when it ended, was cut short or deadlocked.
    pub converged: bool,
    /// By figure, false if that figure was still changing; latencies may, where throughput is not.
    pub settled: Vec<bool>,
    /// By figure, false if it has no steady value: what is not served waits longer and longer.
    pub steady: Vec<bool>,
    /// The report of this point, relative to the page that shows the sweep.
    pub run: Option<String>,
}

/// Figures at the points of a grid of parameters. Points that are missing were not run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SweepData {
    /// At least one.
    pub axes: Vec<SweepAxis>,
    /// At least one; the first is drawn first.
    pub figures: Vec<SweepFigure>,
    /// In any order.
    pub points: Vec<SweepPoint>,
}

/// What the page of a sweep says besides its data.
#[derive(Clone, PartialEq, Debug)]
pub struct SweepPage {
    /// The experiment's title, one line.
    pub title: String,
    /// The finding in one sentence; may be empty.
    pub summary: String,
    /// The command line that makes the same results again.
    pub command: String,
    /// Every seed of a point.
    pub seeds: Vec<u64>,
    /// The worst of the points counts.
    pub status: Status,
    /// What all points have in common.
    pub facts: Vec<Fact>,
    /// Published numbers beside what the points give.
    pub published: Vec<PublishedRow>,
    /// What a careful reader should know.
    pub oddities: Vec<String>,
    /// The points.
    pub data: SweepData,
}
