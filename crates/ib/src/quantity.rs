//! Times, sizes and rates: integers with a unit in the type, and their notation in files.

use crate::short;
use std::fmt;
use std::str::FromStr;

/// What is wrong with a quantity someone wrote: "`5 parsecs` is not a time; write a number and one
/// of ps, ns, us, ms, s".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantityError {
    what: &'static str,
    text: String,
    remedy: &'static str,
    /// What was meant, where only the case of the unit is wrong.
    meant: Option<String>,
}

impl QuantityError {
    /// `what` with its article ("a time"), the offending `text`, and what would be accepted.
    pub fn new(what: &'static str, text: &str, remedy: &'static str) -> Self {
        QuantityError { what, text: short(text), remedy, meant: None }
    }

    /// The same for a number with a unit, which is named as it is spelt: `mib` is no unit, and
    /// whether `mb/s` are bits or bytes nobody knows.
    fn scaled(what: &'static str, text: &str, remedy: &'static str, units: &[(&str, u64)]) -> Self {
        let (number, unit) = split(text).unwrap_or((text, ""));
        let mut alike = units.iter().filter(|(name, _)| name.eq_ignore_ascii_case(unit));
        let meant = match (alike.next(), alike.next()) {
            (Some((name, _)), None) if *name != unit => Some(format!("{number} {name}")),
            _ => None,
        };
        QuantityError { meant, ..QuantityError::new(what, text, remedy) }
    }
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not {}; write ", self.text, self.what)?;
        match &self.meant {
            Some(meant) => write!(f, "\"{meant}\""),
            None => f.write_str(self.remedy),
        }
    }
}

impl std::error::Error for QuantityError {}

/// A point in simulated time or a span of it, in picoseconds. 2^48 ps (281 s) is the longest run.
/// In saved states it is its number.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Debug,
    Default,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct Picoseconds(pub u64);

impl Picoseconds {
    /// The longest simulated time: credits on their way back keep their time in 48 bits, and the
    /// last of these times means "after the run". The instant after the longest run is before it.
    pub const MAX_RUN: Picoseconds = Picoseconds((1 << 48) - 3);

    /// The same span in seconds, for people and ratios; never used to advance the clock.
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 * 1e-12
    }

    /// The same span in microseconds.
    pub fn as_microseconds(self) -> f64 {
        self.0 as f64 * 1e-6
    }

    /// A text that reads back as the same: a whole number of the largest unit that has one.
    pub fn exact(self) -> String {
        let units =
            [("s", 1_000_000_000_000), ("ms", 1_000_000_000), ("us", 1_000_000), ("ns", 1_000)];
        exact(self.0, &units, "ps")
    }
}

const TIME_UNITS: &[(&str, u64)] = &[
    ("ps", 1),
    ("ns", 1_000),
    ("us", 1_000_000),
    ("µs", 1_000_000),
    ("ms", 1_000_000_000),
    ("s", 1_000_000_000_000),
];
const TIME_REMEDY: &str = "a number and one of ps, ns, us, ms, s, such as \"2.5 ms\"";

/// A count in the first of these units of which it is a whole number above 0.
fn exact(count: u64, units: &[(&str, u64)], least: &str) -> String {
    let is_whole = |(_, scale): &&(&str, u64)| count > 0 && count.is_multiple_of(*scale);
    match units.iter().find(is_whole) {
        Some((unit, scale)) => format!("{} {unit}", count / scale),
        None => format!("{count} {least}"),
    }
}

impl FromStr for Picoseconds {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let error = || QuantityError::scaled("a time", text, TIME_REMEDY, TIME_UNITS);
        scaled(text, TIME_UNITS).map(Picoseconds).ok_or_else(error)
    }
}

impl fmt::Display for Picoseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, scale) = match self.0 {
            0..1_000 => ("ps", 1),
            1_000..1_000_000 => ("ns", 1_000),
            1_000_000..1_000_000_000 => ("us", 1_000_000),
            1_000_000_000..1_000_000_000_000 => ("ms", 1_000_000_000),
            _ => ("s", 1_000_000_000_000),
        };
        write!(f, "{} {unit}", trimmed(self.0, scale))
    }
}

/// A size in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Bytes(pub u64);

impl Bytes {
    /// A text that reads back as the same: a whole number of the largest binary unit that has one.
    pub fn exact(self) -> String {
        exact(self.0, &[("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)], "B")
    }
}

const SIZE_UNITS: &[(&str, u64)] = &[
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];
const SIZE_REMEDY: &str = "a number and one of B, KiB, MiB, GiB, kB, MB, GB, such as \"64 KiB\"";

impl FromStr for Bytes {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let error = || QuantityError::scaled("a size", text, SIZE_REMEDY, SIZE_UNITS);
        scaled(text, SIZE_UNITS).map(Bytes).ok_or_else(error)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, scale) = match self.0 {
            0..1_024 => ("B", 1),
            1_024..1_048_576 => ("KiB", 1 << 10),
            1_048_576..1_073_741_824 => ("MiB", 1 << 20),
            _ => ("GiB", 1 << 30),
        };
        // A size that is no whole multiple of the unit is shown exactly rather than rounded.
        if self.0.is_multiple_of(scale) {
            write!(f, "{} {unit}", self.0 / scale)
        } else {
            write!(f, "{} B", self.0)
        }
    }
}

/// A data rate in bits per second, after line coding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct BitsPerSecond(pub u64);

impl BitsPerSecond {
    /// The same rate in Gb/s, for people.
    pub fn as_gigabits(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// A text that reads back as the same: in Gb/s with all decimals it has.
    pub fn exact(self) -> String {
        let (whole, rest) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        let decimals = format!("{rest:09}");
        match decimals.trim_end_matches('0') {
            "" => format!("{whole} Gb/s"),
            decimals => format!("{whole}.{decimals} Gb/s"),
        }
    }
}

const RATE_UNITS: &[(&str, u64)] = &[
    ("Mb/s", 1_000_000),
    ("Gb/s", 1_000_000_000),
    ("Tb/s", 1_000_000_000_000),
    ("MB/s", 8_000_000),
    ("GB/s", 8_000_000_000),
];
const RATE_REMEDY: &str = "a number and one of Mb/s, Gb/s, Tb/s, MB/s, GB/s, such as \"32 Gb/s\"";

impl FromStr for BitsPerSecond {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let error = || QuantityError::scaled("a rate", text, RATE_REMEDY, RATE_UNITS);
        scaled(text, RATE_UNITS).map(BitsPerSecond).ok_or_else(error)
    }
}

impl fmt::Display for BitsPerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} Gb/s", trimmed(self.0, 1_000_000_000))
    }
}

/// `12.5 ms` → 12_500_000_000, exactly: decimal arithmetic, no floating point, no silent rounding.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, unit) = split(text)?;
    let scale = units.iter().find(|(name, _)| *name == unit)?.1;
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() || fraction.contains('.') || fraction.len() > 18 {
        return None;
    }
    let whole: u128 = whole.parse().ok()?;
    let ten = 10u128.pow(fraction.len() as u32);
    let fraction: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let total = whole.checked_mul(u128::from(scale))?.checked_mul(ten)?;
    let total = total.checked_add(fraction.checked_mul(u128::from(scale))?)?;
    if !total.is_multiple_of(ten) {
        return None;
    }
    u64::try_from(total / ten).ok()
}

/// Number and unit, without the blanks around them.
fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let (number, unit) =
        text.split_at(text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))?);
    Some((number, unit.trim()))
}

/// `value / scale` with up to three decimals and no trailing zeros.
fn trimmed(value: u64, scale: u64) -> String {
    let text = format!("{:.3}", value as f64 / scale as f64);
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_exactly() {
        assert_eq!("2.5 ms".parse::<Picoseconds>().unwrap().0, 2_500_000_000);
        assert_eq!("10us".parse::<Picoseconds>().unwrap().0, 10_000_000);
        assert_eq!("64 KiB".parse::<Bytes>().unwrap().0, 65_536);
        assert_eq!("32 Gb/s".parse::<BitsPerSecond>().unwrap().0, 32_000_000_000);
        assert_eq!("4 GB/s".parse::<BitsPerSecond>().unwrap().0, 32_000_000_000);
    }

    #[test]
    fn what_cannot_be_said_exactly_is_refused() {
        for text in ["", "5", "5 parsecs", "-1 ns", "0.5 ps", "1e3 ns", "1.2.3 ns", "99999999999 s"]
        {
            let error = text.parse::<Picoseconds>().unwrap_err().to_string();
            assert!(error.contains("is not a time; write"), "{error}");
        }
    }

    #[test]
    fn a_unit_in_the_wrong_case_is_answered_with_the_right_one() {
        let size = |text: &str| text.parse::<Bytes>().unwrap_err().to_string();
        assert_eq!(size("4 mib"), "`4 mib` is not a size; write \"4 MiB\"");
        assert_eq!(size("64KB"), "`64KB` is not a size; write \"64 kB\"");
        assert_eq!(size("4 mim"), format!("`4 mim` is not a size; write {SIZE_REMEDY}"));
        let time = "5 MS".parse::<Picoseconds>().unwrap_err().to_string();
        assert_eq!(time, "`5 MS` is not a time; write \"5 ms\"");
        let rate = "5 mb/s".parse::<BitsPerSecond>().unwrap_err().to_string();
        assert_eq!(rate, format!("`5 mb/s` is not a rate; write {RATE_REMEDY}"));
    }

    #[test]
    fn quantities_print_with_the_unit_a_person_would_choose() {
        assert_eq!(Picoseconds(2_500_000_000).to_string(), "2.5 ms");
        assert_eq!(Picoseconds(104).to_string(), "104 ps");
        assert_eq!(Bytes(65_536).to_string(), "64 KiB");
        assert_eq!(Bytes(2_082).to_string(), "2082 B");
        assert_eq!(BitsPerSecond(54_545_454_545).to_string(), "54.545 Gb/s");
    }
}
