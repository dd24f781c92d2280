//! Published numbers beside what was obtained.

use super::cell_text;
use crate::experiment::Published;
use crate::measure::Estimate;
use crate::result::RunResult;
use crate::table::{Align, Table};
use serde::Serialize;

/// A published number beside what was obtained.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PublishedRow {
    /// What the row is called.
    pub name: String,
    /// As the source prints it.
    pub published: Option<String>,
    /// What the runs gave.
    pub obtained: Option<Estimate>,
    /// Unit of both.
    pub unit: String,
    /// Where it is published and why the two differ.
    pub note: String,
    /// The row that shows what a changed parameter makes of this one.
    pub moved_by: Option<String>,
    /// Of a sweep: the point that was taken.
    pub point: Option<String>,
    /// How many seeds were run and have no such figure.
    pub seeds_without: usize,
}

impl PublishedRow {
    /// A row with what was obtained for it in so many seeds.
    pub(crate) fn of(
        row: &Published,
        obtained: Option<Estimate>,
        point: Option<String>,
        seeds: usize,
    ) -> Self {
        let with = obtained.map_or(seeds, |estimate| estimate.seeds);
        PublishedRow {
            seeds_without: seeds.saturating_sub(with),
            name: row.name.clone(),
            published: row.published.clone(),
            obtained,
            unit: row.unit.clone(),
            note: row.note.clone(),
            moved_by: row.moved_by.clone(),
            point,
        }
    }

    /// Where it is published, which point of a sweep was taken, and what moves it.
    pub fn remarks(&self) -> String {
        let point = self.point.as_ref().map(|point| format!("at {point}"));
        let without = match self.seeds_without {
            0 => None,
            1 => Some("1 seed has none".to_owned()),
            some => Some(format!("{some} seeds have none")),
        };
        let moved = self.moved_by.as_ref();
        let moved = moved.map(|row| format!("with a parameter changed: see row \"{row}\""));
        let note = (!self.note.is_empty()).then(|| self.note.clone());
        point.into_iter().chain(without).chain(note).chain(moved).collect::<Vec<_>>().join("; ")
    }
}

impl RunResult {
    /// The published numbers with what was obtained, but for those that only a sweep answers.
    pub fn published(&self) -> Vec<PublishedRow> {
        let rows = self.experiment.published.iter().filter(|row| !row.measure.is_of_sweep());
        let seeds = self.experiment.plan.seeds as usize;
        rows.map(|row| PublishedRow::of(row, self.obtained(row), None, seeds)).collect()
    }

    fn obtained(&self, row: &Published) -> Option<Estimate> {
        self.ask(&row.measure, self.variant(row.variant.as_deref())?)
    }

    /// Published numbers beside ours; nothing if the experiment has none.
    pub fn published_table(&self) -> Option<Table> {
        published_table(&self.published())
    }
}

/// Published numbers beside ours; nothing without any.
pub(crate) fn published_table(rows: &[PublishedRow]) -> Option<Table> {
    if rows.is_empty() {
        return None;
    }
    let mut table = Table::new([
        ("", "", Align::Left),
        ("published", "", Align::Right),
        ("obtained", "", Align::Right),
        ("unit", "", Align::Left),
        ("source, and why they differ", "", Align::Left),
    ]);
    for row in rows {
        let published = row.published.clone().unwrap_or_else(|| "–".into());
        let (name, unit) = (row.name.clone(), row.unit.clone());
        table.rows.push(vec![name, published, row.obtained_text(), unit, row.remarks()]);
    }
    Some(table)
}

impl PublishedRow {
    /// The obtained number as a table shows it.
    pub(crate) fn obtained_text(&self) -> String {
        cell_text(self.obtained.as_ref())
    }
}
