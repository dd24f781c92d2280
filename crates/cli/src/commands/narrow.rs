//! Wide tables of results, made to fit a terminal.

use crate::table::{Align, Table, wrap};
use clearlane_lab as lab;

/// What fits a terminal that somebody has made a little wider.
const COLUMNS: usize = 100;
/// The most rows a table may have to become its columns.
const SIDE_BY_SIDE: usize = 5;
/// A sentence is never wrapped to less.
const SENTENCE_MIN: usize = 32;

/// A row per variant if that fits; else a column per variant if they are few; else the columns in
/// several tables below each other, each beginning with the first `names` columns.
pub fn headline(table: &lab::Table, names: usize) -> String {
    if width(table) <= COLUMNS {
        return table.to_string();
    }
    if names == 1 && table.rows.len() <= SIDE_BY_SIDE {
        return turned(table);
    }
    let blocks: Vec<_> = blocks(table, names).iter().map(ToString::to_string).collect();
    blocks.join("\n")
}

/// The sentences of the last column wrapped, if the table is too wide.
pub fn with_sentences(table: &lab::Table) -> String {
    let Some(last) = table.columns.len().checked_sub(1) else { return table.to_string() };
    if width(table) <= COLUMNS {
        return table.to_string();
    }
    let others = width(&lab::Table {
        columns: table.columns[..last].to_vec(),
        rows: table.rows.iter().map(|row| row.iter().take(last).cloned().collect()).collect(),
    });
    let room = COLUMNS.saturating_sub(others + 2).max(SENTENCE_MIN);
    let mut narrow = lab::Table { columns: table.columns.clone(), rows: Vec::new() };
    for row in &table.rows {
        let sentence = row.get(last).map(String::as_str).unwrap_or_default();
        let mut lines = wrap(sentence, room).into_iter();
        let mut first: Vec<String> = row.iter().take(last).cloned().collect();
        first.push(lines.next().unwrap_or_default());
        narrow.rows.push(first);
        for line in lines {
            let mut cells = vec![String::new(); last];
            cells.push(line);
            narrow.rows.push(cells);
        }
    }
    narrow.to_string()
}

fn width(table: &lab::Table) -> usize {
    table.to_string().lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

fn turned(table: &lab::Table) -> String {
    let mut turned = Table::plain(&[&[Align::Left; 2][..], &[Align::Right; SIDE_BY_SIDE]].concat());
    for (index, column) in table.columns.iter().enumerate() {
        let head = [column.label.clone(), column.unit.clone()];
        let cells = table.rows.iter().map(|row| row.get(index).cloned().unwrap_or_default());
        turned.row(head.into_iter().chain(cells));
    }
    turned.to_string()
}

/// The first `names` columns and as many of the others as fit, as often as needed.
fn blocks(table: &lab::Table, names: usize) -> Vec<lab::Table> {
    let part = |columns: &[usize]| lab::Table {
        columns: columns.iter().map(|index| table.columns[*index].clone()).collect(),
        rows: table
            .rows
            .iter()
            .map(|row| columns.iter().filter_map(|index| row.get(*index).cloned()).collect())
            .collect(),
    };
    let mut blocks = Vec::new();
    let mut taken: Vec<usize> = (0..names).collect();
    for index in names..table.columns.len() {
        taken.push(index);
        if taken.len() > names + 1 && width(&part(&taken)) > COLUMNS {
            taken.pop();
            blocks.push(part(&taken));
            taken = (0..names).chain([index]).collect();
        }
    }
    blocks.push(part(&taken));
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(columns: usize, rows: usize) -> lab::Table {
        let column = |index| lab::Column {
            label: format!("column {index}"),
            unit: "Gb/s".into(),
            align: lab::Align::Right,
        };
        let cell = |row, index| format!("{row}.{index} ± 0.001");
        lab::Table {
            columns: (0..columns).map(column).collect(),
            rows: (0..rows).map(|row| (0..columns).map(|i| cell(row, i)).collect()).collect(),
        }
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        assert_eq!(headline(&table(4, 3), 1), table(4, 3).to_string());
        assert_eq!(with_sentences(&table(4, 3)), table(4, 3).to_string());
    }

    #[test]
    fn few_rows_become_columns_and_many_are_cut_into_blocks() {
        let turned = headline(&table(12, 2), 1);
        assert!(turned.lines().next().unwrap().starts_with("column 0 "), "{turned}");
        assert_eq!(turned.lines().count(), 12);
        let cut = headline(&table(12, 9), 1);
        assert!(cut.lines().all(|line| line.chars().count() <= COLUMNS), "{cut}");
        for cell in (0..9).flat_map(|row| (0..12).map(move |index| format!("{row}.{index} ±"))) {
            assert!(cut.contains(&cell) && headline(&table(12, 2), 1).contains("1.11 ±"), "{cell}");
        }
    }

    #[test]
    fn sentences_go_on_below_themselves() {
        let mut wide = table(3, 2);
        wide.columns[2].align = lab::Align::Left;
        wide.rows[0][2] = "why ".repeat(60).trim_end().into();
        let text = with_sentences(&wide);
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
        assert_eq!(text.matches("why").count(), 60);
    }
}
