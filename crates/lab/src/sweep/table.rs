//! A sweep for a terminal: a row per point and variant.

use super::result::{SweepResult, VariantPoint};
use crate::headline::{CONTROL_COLUMNS, align_marks, cell_text, published_table};
use crate::report::AxisValue;
use crate::table::{Align, Column, Table};

impl SweepResult {
    /// Axes first, then the variant if there are several, then the figures; `*` at what had not
    /// converged, and in the last column how a point ended if not well. Also how many columns say
    /// which point a row is.
    pub fn table(&self) -> (Table, usize) {
        let ended = self.points.iter().any(|point| point.status != crate::Status::Complete);
        let mut columns = self.places();
        let names = columns.len();
        columns.extend(self.figures.iter().map(|f| column(&f.label, &f.unit, Align::Right)));
        columns.extend(ended.then(|| column("ended", "", Align::Left)));
        let row = |point: &VariantPoint| {
            let mut cells = self.place_cells(point);
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

    /// What mechanisms did, a row per point and variant that has some; nothing without any. Also
    /// how many columns say which point a row is.
    pub fn control_table(&self) -> Option<(Table, usize)> {
        let mut columns = self.places();
        let names = columns.len();
        columns.extend(CONTROL_COLUMNS.iter().map(|c| column(c.label, c.unit, Align::Right)));
        let row = |point: &VariantPoint| {
            let of = point.control.as_ref()?.iter().map(|cell| cell_text(cell.as_ref()));
            Some(self.place_cells(point).into_iter().chain(of).collect())
        };
        let rows: Vec<Vec<String>> = self.points.iter().filter_map(row).collect();
        (!rows.is_empty()).then_some((Table { columns, rows }, names))
    }

    /// The columns that say which point a row is: a key each, and the variant if there are several.
    fn places(&self) -> Vec<Column> {
        let number = |value: &AxisValue| matches!(value, AxisValue::Number(_));
        let axis = |axis: &crate::SweepAxis| {
            let align = if axis.values.iter().all(number) { Align::Right } else { Align::Left };
            column(&axis.label, &axis.unit, align)
        };
        let variant = self.has_variants().then(|| column("variant", "", Align::Left));
        self.axes.iter().map(axis).chain(variant).collect()
    }

    fn place_cells(&self, point: &VariantPoint) -> Vec<String> {
        let axes = self.axes.iter().zip(&point.at);
        let values = axes.map(|(axis, at)| axis.values.get(*at).map_or(String::new(), text));
        values.chain(self.has_variants().then(|| point.variant.clone())).collect()
    }

    fn has_variants(&self) -> bool {
        self.points.iter().any(|point| point.variant != self.points[0].variant)
    }

    /// Published numbers beside ours; nothing if the experiment has none that a sweep answers.
    pub fn published_table(&self) -> Option<Table> {
        published_table(self.published())
    }
}

fn column(label: &str, unit: &str, align: Align) -> Column {
    Column { label: label.into(), unit: unit.into(), align }
}

/// A value of an axis as people write it.
fn text(value: &AxisValue) -> String {
    match value {
        AxisValue::Number(number) => number.to_string(),
        AxisValue::Text(text) => text.clone(),
    }
}
