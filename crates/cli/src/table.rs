//! Aligned columns, sentences and numbers for people.

pub use clearlane_lab::{Align, Table, wrap};

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
    fn large_numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
