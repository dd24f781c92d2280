//! Tables for people: aligned columns, units below the labels.

use clearlane_ib::{visible, within};
use std::borrow::Cow;
use std::fmt;

/// How the cells of a column line up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A column's head.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// First line.
    pub label: String,
    /// Second line; empty for text and pure numbers.
    pub unit: String,
    /// How cells line up.
    pub align: Align,
}

/// A table. Printing it ends with the last row's line feed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Table {
    /// Heads.
    pub columns: Vec<Column>,
    /// Rows of as many cells as there are columns.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: impl IntoIterator<Item = (&'static str, &'static str, Align)>) -> Self {
        let column = |(label, unit, align): (&str, &str, Align)| Column {
            label: label.into(),
            unit: unit.into(),
            align,
        };
        Table { columns: columns.into_iter().map(column).collect(), rows: Vec::new() }
    }

    /// A table without heads.
    pub fn plain(align: &[Align]) -> Self {
        let column =
            |align: &Align| Column { label: String::new(), unit: String::new(), align: *align };
        Table { columns: align.iter().map(column).collect(), rows: Vec::new() }
    }

    /// Adds a row; cells past the last column are not shown.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Whether there are no rows yet.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether a cell or a head holds what must not reach a terminal, or is too long for one.
    fn acts(&self) -> bool {
        let acts = |text: &String| matches!(cell(text), Cow::Owned(_));
        self.columns.iter().any(|column| acts(&column.label) || acts(&column.unit))
            || self.rows.iter().flatten().any(acts)
    }

    /// The table with such characters spelt out and such texts cut.
    fn visible(&self) -> Table {
        let shown = |text: &String| cell(text).into_owned();
        let column = |column: &Column| Column {
            label: shown(&column.label),
            unit: shown(&column.unit),
            align: column.align,
        };
        Table {
            columns: self.columns.iter().map(column).collect(),
            rows: self.rows.iter().map(|row| row.iter().map(shown).collect()).collect(),
        }
    }

    fn widths(&self) -> Vec<usize> {
        let width = |text: &str| text.chars().count();
        let of = |(index, column): (usize, &Column)| {
            let cells = self.rows.iter().filter_map(|row| row.get(index)).map(|cell| width(cell));
            cells.chain([width(&column.label), width(&column.unit)]).max().unwrap_or(0)
        };
        self.columns.iter().enumerate().map(of).collect()
    }

    fn line(&self, widths: &[usize], cells: &[&str]) -> String {
        let mut line = String::new();
        for ((column, width), cell) in self.columns.iter().zip(widths).zip(cells) {
            let space = " ".repeat(width - cell.chars().count().min(*width));
            match column.align {
                Align::Left => line.extend([*cell, &space]),
                Align::Right => line.extend([&space, *cell]),
            }
            line.push_str("  ");
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// The most characters of a cell: one that is longer would make every row as long.
const CELL_CHARS_MAX: usize = 500;

/// Text as a cell shows it.
fn cell(text: &str) -> Cow<'_, str> {
    match visible(text) {
        Cow::Borrowed(text) => within(text, CELL_CHARS_MAX),
        Cow::Owned(text) => Cow::Owned(within(&text, CELL_CHARS_MAX).into_owned()),
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What cells hold came from files: it must neither act on a terminal nor break a line.
        if self.acts() {
            return self.visible().fmt(f);
        }
        let widths = self.widths();
        let heads: Vec<&str> = self.columns.iter().map(|column| column.label.as_str()).collect();
        if heads.iter().any(|head| !head.is_empty()) {
            writeln!(f, "{}", self.line(&widths, &heads))?;
        }
        let units: Vec<&str> = self.columns.iter().map(|column| column.unit.as_str()).collect();
        if units.iter().any(|unit| !unit.is_empty()) {
            writeln!(f, "{}", self.line(&widths, &units))?;
        }
        for row in &self.rows {
            let cells: Vec<&str> = row.iter().map(String::as_str).collect();
            writeln!(f, "{}", self.line(&widths, &cells))?;
        }
        Ok(())
    }
}

/// A number in three significant digits, or whole from 1000 on; ∞ without end.
pub(crate) fn significant(value: f64) -> String {
    if value == f64::INFINITY {
        return "∞".into();
    }
    let digits = if value == 0.0 || !value.is_finite() {
        0
    } else {
        // Rounding may carry into the next power of ten; one digit more than needed is no harm.
        2 - (value.abs().log10().floor() as i32)
    };
    format!("{value:.*}", digits.clamp(0, 6) as usize)
}

/// A mean with its interval: `23.4 ± 0.5`, both to the same digit.
pub(crate) fn with_interval(mean: f64, half_width: Option<f64>) -> String {
    let text = significant(mean);
    let decimals = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    match half_width {
        Some(half) => format!("{text} ± {half:.decimals$}"),
        None => text,
    }
}

/// 1234567 as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn columns_line_up_under_their_units() {
        let mut table =
            Table::new([("variant", "", Align::Left), ("victims", "Gb/s", Align::Right)]);
        table.rows.push(vec!["as-is".into(), "3.90".into()]);
        table.rows.push(vec!["fat-tree".into(), "19.2 ± 0.4".into()]);
        let expected = "\
variant      victims
                Gb/s
as-is           3.90
fat-tree  19.2 ± 0.4
";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn columns_line_up_whatever_the_cells_hold() {
        let mut table = Table::new([("name", "", Align::Left), ("load", "", Align::Right)]);
        table.row(["\u{1b}[31ma\nb", "1"]);
        table.row(["c", "20"]);
        table.columns[1].unit = "\u{202e}b".into();
        let expected = "\
name                   load
                    \\u202eb
\\u001b[31ma\\u000ab        1
c                        20
";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn a_long_cell_does_not_make_every_row_long() {
        let mut table = Table::plain(&[Align::Left, Align::Right]);
        let long = ["x".repeat(10 << 20), "\u{1b}".repeat(10 << 20), "\u{1b}".repeat(400)];
        for text in &long {
            table.row([text.as_str(), "1"]);
        }
        let shown = table.to_string();
        assert!(shown.len() < 10_000 && shown.contains('…'), "{}", shown.len());
    }

    #[test]
    fn a_table_may_have_no_heads_and_lines_have_no_tail() {
        let mut table = Table::plain(&[Align::Left, Align::Right, Align::Left]);
        assert!(table.is_empty());
        table.row(["flow", "Gb/s", "why"]);
        table.row(["H1 → H4", "2.4", ""]);
        assert_eq!(table.to_string(), "flow     Gb/s  why\nH1 → H4   2.4\n");
    }

    #[test]
    fn numbers_have_three_digits() {
        let texts = [0.0, 0.16667, 3.1449, 25.14, 412.4, 12345.6, 0.000123].map(significant);
        assert_eq!(texts, ["0", "0.167", "3.14", "25.1", "412", "12346", "0.000123"]);
        assert_eq!(with_interval(f64::INFINITY, None), "∞");
        assert_eq!(with_interval(0.5, Some(0.0123)), "0.500 ± 0.012");
    }
}
