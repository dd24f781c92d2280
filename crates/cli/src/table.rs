//! Aligned columns for people.

/// Which side a column is flush with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Align {
    /// Names and sentences.
    Left,
    /// Numbers.
    Right,
}

/// Rows of cells; the last column is never padded.
#[derive(Debug)]
pub struct Table {
    align: Vec<Align>,
    rows: Vec<Vec<String>>,
}

const GAP: &str = "  ";

impl Table {
    /// A table without rows.
    pub fn new(align: &[Align]) -> Self {
        Table { align: align.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; cells past the last column are not shown.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Whether there are no rows yet.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows, each with its newline and without trailing blanks.
    pub fn render(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.align.len()).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, width), align) in row.iter().zip(&widths).zip(&self.align) {
                let blanks = " ".repeat(width - cell.chars().count());
                match align {
                    Align::Left => line.extend([cell, blanks.as_str(), GAP]),
                    Align::Right => line.extend([blanks.as_str(), cell, GAP]),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Breaks a sentence into lines of at most `columns`, a longer word alone on its line.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
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

/// `1 cable`, `1,214 cables`: a count with its noun.
pub fn count(number: usize, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number as u64), if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_have_no_tail() {
        let mut table = Table::new(&[Align::Left, Align::Right, Align::Left]);
        table.row(["flow", "Gb/s", "why"]);
        table.row(["H1 → H4", "2.4", ""]);
        assert_eq!(table.render(), "flow     Gb/s  why\nH1 → H4   2.4\n");
    }

    #[test]
    fn sentences_are_broken_between_words() {
        assert_eq!(wrap("a bb ccc dddd", 4), ["a bb", "ccc", "dddd"]);
        assert_eq!(wrap("enormous a", 4), ["enormous", "a"]);
        assert_eq!(wrap(" ", 4), [] as [&str; 0]);
    }

    #[test]
    fn large_numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
