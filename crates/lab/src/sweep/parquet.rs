//! `points.parquet`: a row per point and variant.

use super::result::{SweepResult, VariantPoint};
use crate::columns::{Column, Described, column_name, text, written};
use crate::measure::Estimate;
use crate::report::AxisValue;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;

/// In the metadata of the file.
const SCHEMA: &str = "clearlane-points/2";

/// The file of a sweep's points.
pub const POINTS_FILE: &str = "points.parquet";

/// What its columns are; words in capitals stand for those of the sweep.
pub const POINTS_COLUMNS: &[Described] = &[
    Described {
        name: "KEY_UNIT",
        kind: "real",
        unit: "the key's",
        summary: "value of a key that was varied, such as traffic_load; text where it is no number",
    },
    Described { name: "variant", kind: "text", unit: "", summary: "name of the variant" },
    Described {
        name: "status",
        kind: "text",
        unit: "",
        summary: "how its runs ended: complete, starved, not converged, not ended, deadlock, \
                  partial",
    },
    Described {
        name: "MEASURE_UNIT",
        kind: "real",
        unit: "the measure's",
        summary: "mean over the seeds of a measure, such as latency_mean_us; hot_ or victim_ \
                  before the name where it is of one class; null if it was not measured or is not \
                  steady",
    },
    Described {
        name: "MEASURE_UNIT_half_width",
        kind: "real",
        unit: "the measure's",
        summary: "half of the 95 % confidence interval over the seeds; null with one seed",
    },
    Described {
        name: "MEASURE_converged",
        kind: "yes or no",
        unit: "",
        summary: "whether it converged; null if it was not measured",
    },
    Described {
        name: "MEASURE_steady",
        kind: "yes or no",
        unit: "",
        summary: "no if it has no steady value (latency when less traffic arrives than is \
                  offered), and mean and half-width are null; null if it was not measured",
    },
];

/// Axes, variant, and for every figure mean, half-width and whether it had converged; a figure that
/// was not measured is null.
pub(super) fn parquet(sweep: &SweepResult) -> Result<Vec<u8>, ParquetError> {
    written(std::iter::once(columns(sweep)), SCHEMA)
}

fn columns(sweep: &SweepResult) -> Vec<Column> {
    let mut columns = Vec::new();
    for (index, axis) in sweep.axes.iter().enumerate() {
        let value = |point: &VariantPoint| axis.values.get(*point.at.get(index)?).cloned();
        let values: Vec<_> = sweep.points.iter().map(value).collect();
        let name = column_name(&[&axis.key, &axis.unit]);
        let number = |value: &Option<AxisValue>| match value {
            Some(AxisValue::Number(number)) => Some(*number),
            _ => None,
        };
        let text = |value: &Option<AxisValue>| match value {
            Some(AxisValue::Text(text)) => ByteArray::from(text.as_str()),
            _ => ByteArray::new(),
        };
        columns.push(match axis.values.iter().all(|v| matches!(v, AxisValue::Number(_))) {
            true => Column::RealIfAny(name, values.iter().map(number).collect()),
            false => Column::Text(name, values.iter().map(text).collect()),
        });
    }
    columns.push(text("variant", sweep.points.iter().map(|point| point.variant.clone())));
    columns.push(text("status", sweep.points.iter().map(|point| point.status.to_string())));
    for (index, figure) in sweep.figures.iter().enumerate() {
        let of = |point: &VariantPoint| *point.figures.get(index)?;
        let of: Vec<Option<Estimate>> = sweep.points.iter().map(of).collect();
        let name = |what: &str| column_name(&[&figure.key, &figure.unit, what]);
        let steady = |estimate: &Option<Estimate>| estimate.filter(|e| e.steady);
        let mean = of.iter().map(|estimate| Some(steady(estimate)?.mean)).collect();
        columns.push(Column::RealIfAny(name(""), mean));
        let half = of.iter().map(|estimate| steady(estimate)?.half_width).collect();
        columns.push(Column::RealIfAny(name("half_width"), half));
        let converged = of.iter().map(|estimate| estimate.map(|e| e.converged)).collect();
        columns.push(Column::YesNoIfAny(column_name(&[&figure.key, "converged"]), converged));
        let steady = of.iter().map(|estimate| estimate.map(|e| e.steady)).collect();
        columns.push(Column::YesNoIfAny(column_name(&[&figure.key, "steady"]), steady));
    }
    columns
}
