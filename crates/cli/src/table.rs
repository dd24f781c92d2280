//! Aligned columns, sentences and numbers for people.

pub use clearlane_ib::wrap;
pub use clearlane_lab::{Align, Table, grouped};

/// `1 cable`, `1,214 cables`: a count with its noun.
pub fn count(number: usize, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number as u64), if number == 1 { one } else { many })
}
