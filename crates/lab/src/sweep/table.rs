//! A sweep for a terminal: a row per point and variant.

use super::result::{SweepResult, VariantPoint};
use crate::report::AxisValue;
use crate::results::{align_marks, cell_text, published_table};
use crate::table::{Align, Column, Table};

impl SweepResult {
    /// Axes first, then the variant if there are several, then the figures; `*` at what had not
    /// converged, and in the last column how a point ended if not well. Also how many columns say
    /// which point a row is.
    pub fn table(&self) -> (Table, usize) {
        let several = self.points.iter().any(|point| point.variant != self.points[0].variant);
        let ended = self.points.iter().any(|point| point.status != crate::Status::Complete);
        let column = |label: &str, unit: &str, align| Column {
            label: label.into(),
            unit: unit.into(),
            align,
        };
        let number = |value: &AxisValue| matches!(value, AxisValue::Number(_));
        let axis = |axis: &crate::SweepAxis| {
            let align = if axis.values.iter().all(number) { Align::Right } else { Align::Left };
            column(&axis.label, &axis.unit, align)
        };
        let mut columns: Vec<Column> = self.axes.iter().map(axis).collect();
        columns.extend(several.then(|| column("variant", "", Align::Left)));
        let names = columns.len();
        columns.extend(self.figures.iter().map(|f| column(&f.label, &f.unit, Align::Right)));
        columns.extend(ended.then(|| column("ended", "", Align::Left)));
        let row = |point: &VariantPoint| {
            let mut cells: Vec<String> = self
                .axes
                .iter()
                .zip(&point.at)
                .map(|(axis, at)| axis.values.get(*at).map_or(String::new(), text))
                .collect();
            cells.extend(several.then(|| point.variant.clone()));
            cells.extend(point.figures.iter().map(|figure| cell_text(figure.as_ref())));
            let status = match point.status {
                crate::Status::Complete => String::new(),
                status => status.to_string(),
            };
            cells.extend(ended.then_some(status));
            cells
        };
        let mut table = Table { columns, rows: self.points.iter().map(row).collect() };
        align_marks(&mut table);
        (table, names)
    }

    /// Published numbers beside ours; nothing if the experiment has none that a sweep answers.
    pub fn published_table(&self) -> Option<Table> {
        published_table(self.published())
    }
}

/// A value of an axis as people write it.
fn text(value: &AxisValue) -> String {
    match value {
        AxisValue::Number(number) => number.to_string(),
        AxisValue::Text(text) => text.clone(),
    }
}
