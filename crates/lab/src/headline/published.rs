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
    /// The bounds of the published value, if it is a number.
    pub value: Option<[f64; 2]>,
    /// The row that shows what a changed parameter makes of this one.
    pub moved_by: Option<String>,
    /// What that came to; nothing without such a row or a figure on either side.
    pub moved: Option<Moved>,
    /// Of a sweep: the point that was taken.
    pub point: Option<String>,
    /// How many seeds were run and have no such figure.
    pub seeds_without: usize,
}

/// How far a changed parameter moves a figure towards the published value.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Moved {
    /// By which share of the way to the published value: 1 if it comes there, less if it stays
    /// short of it or ends beyond it, negative if it ends farther away. Nothing if the figure is
    /// there without it.
    pub way: Option<f64>,
    /// Whether it ends on the other side of the published value.
    pub is_past: bool,
    /// Whether the two figures are apart by more than both of their intervals.
    pub beyond_intervals: bool,
}

impl Moved {
    /// Of a figure with a published value by another; nothing where one has none.
    fn of(row: &PublishedRow, other: &PublishedRow) -> Option<Self> {
        let ([least, most], from, to) = (row.value?, row.obtained?, other.obtained?);
        let off = |figure: Estimate| (least - figure.mean).max(figure.mean - most).max(0.0);
        let width = |figure: Estimate| figure.half_width.unwrap_or(0.0);
        let (before, after) = (off(from), off(to));
        Some(Moved {
            way: (before > 0.0).then(|| (before - after) / before),
            is_past: (from.mean < least && to.mean > most) || (from.mean > most && to.mean < least),
            beyond_intervals: (to.mean - from.mean).abs() > width(from) + width(to),
        })
    }

    /// Whether it is nearer to the published value, by more than chance.
    pub fn is_towards(&self) -> bool {
        self.beyond_intervals && self.way.is_some_and(|way| way > 0.0)
    }

    fn text(&self) -> String {
        match self.way {
            None => "not to be moved, and moved".to_owned(),
            _ if !self.beyond_intervals => "not moved beyond the intervals".to_owned(),
            Some(way) if way > 0.0 && self.is_past => {
                format!("moved past it and {:.0} % nearer", way * 100.0)
            }
            Some(way) if way > 0.0 => format!("moved {:.0} % of the way", way * 100.0),
            Some(_) if self.is_past => "moved past it and farther away".to_owned(),
            Some(_) => "moved away".to_owned(),
        }
    }
}

/// Notes how far rows move others.
pub(crate) fn note_moves(rows: &mut [PublishedRow]) {
    let moved = |row: &PublishedRow| {
        let name = row.moved_by.as_ref()?;
        Moved::of(row, rows.iter().find(|other| other.name == *name)?)
    };
    let all: Vec<Option<Moved>> = rows.iter().map(moved).collect();
    rows.iter_mut().zip(all).for_each(|(row, moved)| row.moved = moved);
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
            value: row.value,
            moved_by: row.moved_by.clone(),
            moved: None,
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
        let moved = self.moved_by.as_ref().zip(self.moved.as_ref());
        let moved = moved.map(|(row, moved)| format!("{} by row \"{row}\"", moved.text()));
        let note = (!self.note.is_empty()).then(|| self.note.clone());
        point.into_iter().chain(without).chain(note).chain(moved).collect::<Vec<_>>().join("; ")
    }
}

impl RunResult {
    /// The published numbers with what was obtained, but for those that only a sweep answers.
    pub fn published(&self) -> Vec<PublishedRow> {
        let rows = self.experiment.published.iter().filter(|row| !row.measure.is_of_sweep());
        let seeds = self.experiment.plan.seeds as usize;
        let rows = rows.map(|row| PublishedRow::of(row, self.obtained(row), None, seeds));
        let mut rows: Vec<PublishedRow> = rows.collect();
        note_moves(&mut rows);
        rows
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A row between whose bounds 2 and 3 a mean is published.
    fn row(name: &str, mean: f64, half_width: f64, moved_by: Option<&str>) -> PublishedRow {
        PublishedRow {
            name: name.into(),
            published: None,
            obtained: Some(Estimate {
                mean,
                half_width: Some(half_width),
                seeds: 5,
                converged: true,
                steady: true,
            }),
            unit: String::new(),
            note: String::new(),
            value: Some([2.0, 3.0]),
            moved_by: moved_by.map(Into::into),
            moved: None,
            point: None,
            seeds_without: 0,
        }
    }

    /// What is said of a row of mean 7 that another one moves.
    fn said(mean: f64, half_width: f64) -> (Option<f64>, bool, String) {
        let mut rows = [row("a", 7.0, 0.5, Some("b")), row("b", mean, half_width, None)];
        note_moves(&mut rows);
        assert_eq!(rows[1].moved, None);
        let moved = rows[0].moved.unwrap();
        (moved.way, moved.is_towards(), rows[0].remarks())
    }

    #[test]
    fn a_row_is_moved_by_a_share_of_its_way_to_the_bounds() {
        // 4 beyond the bounds, then 1.
        let told = "moved 75 % of the way by row \"b\"";
        assert_eq!(said(4.0, 0.5), (Some(0.75), true, told.into()));
        assert_eq!(said(2.5, 0.5).0, Some(1.0));
        // Past them by 1 on the other side.
        let told = "moved past it and 75 % nearer by row \"b\"";
        assert_eq!(said(1.0, 0.5), (Some(0.75), true, told.into()));
        let told = "moved past it and farther away by row \"b\"";
        assert_eq!(said(-3.0, 0.1), (Some(-0.25), false, told.into()));
        assert_eq!(said(8.0, 0.1), (Some(-0.25), false, "moved away by row \"b\"".into()));
    }

    #[test]
    fn a_row_is_not_moved_within_the_intervals_of_both() {
        let told = "not moved beyond the intervals by row \"b\"";
        assert_eq!(said(6.0, 0.5), (Some(0.25), false, told.into()));
        assert!(said(6.0, 0.25).1);
    }

    #[test]
    fn a_row_within_its_bounds_has_no_way_to_go() {
        let mut rows = [row("a", 2.5, 0.1, Some("b")), row("b", 5.0, 0.1, None)];
        note_moves(&mut rows);
        assert_eq!(
            rows[0].moved,
            Some(Moved { way: None, is_past: false, beyond_intervals: true })
        );
        assert_eq!(rows[0].remarks(), "not to be moved, and moved by row \"b\"");
    }
}
