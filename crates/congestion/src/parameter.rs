//! Parameters of mechanisms: what they are, their defaults and ranges, and the values of a run.

use clearlane_ib::{BitsPerSecond, Bytes, Picoseconds};
use std::fmt;

/// A parameter.
#[derive(PartialEq, Debug)]
pub struct Parameter {
    /// Name in experiment files: that of the specification, in small letters.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Its default.
    pub default: Value,
    /// Allowed values.
    pub range: Range,
}

/// A value of a parameter.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A count.
    Integer(u64),
    /// A real number.
    Number(f64),
    /// A span of time.
    Time(Picoseconds),
    /// A size.
    Size(Bytes),
    /// A rate.
    Rate(BitsPerSecond),
    /// One of several words.
    Word(&'static str),
    /// Entries of a congestion control table as (shift, multiplier); none if the table is made by a
    /// rule.
    Table(Vec<(u8, u16)>),
}

/// What a parameter may be; ends are included.
#[derive(Clone, PartialEq, Debug)]
pub enum Range {
    /// A count.
    Integer(u64, u64),
    /// A real number.
    Number(f64, f64),
    /// A span of time.
    Time(Picoseconds, Picoseconds),
    /// A size.
    Size(Bytes, Bytes),
    /// A rate.
    Rate(BitsPerSecond, BitsPerSecond),
    /// One of these words.
    Word(&'static [&'static str]),
    /// A table of at most so many entries.
    Table(usize),
}

/// Why a value cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{parameter} {problem}")]
pub struct ParameterError {
    /// Name of the parameter.
    pub parameter: &'static str,
    /// What is wrong, and what would do.
    pub problem: String,
}

/// The values of a run: what was set, and for all else the defaults.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Values(Vec<(&'static str, Value)>);

impl Parameter {
    /// Whether `value` is of the right kind and in range. The error says what would be.
    pub fn check(&self, value: &Value) -> Result<(), ParameterError> {
        let fits = match (value, &self.range) {
            (Value::Integer(v), Range::Integer(least, most)) => (least..=most).contains(&v),
            (Value::Number(v), Range::Number(least, most)) => (least..=most).contains(&v),
            (Value::Time(v), Range::Time(least, most)) => (least..=most).contains(&v),
            (Value::Size(v), Range::Size(least, most)) => (least..=most).contains(&v),
            (Value::Rate(v), Range::Rate(least, most)) => (least..=most).contains(&v),
            (Value::Word(v), Range::Word(words)) => words.contains(v),
            (Value::Table(v), Range::Table(most)) => {
                v.len() <= *most && v.iter().all(|(shift, mult)| *shift < 4 && *mult < 1 << 14)
            }
            _ => false,
        };
        if fits { Ok(()) } else { Err(self.error(format!("is outside {}", self.range))) }
    }

    /// An error about this parameter.
    pub fn error(&self, problem: String) -> ParameterError {
        ParameterError { parameter: self.name, problem }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Range::Integer(least, most) => write!(f, "{least} to {most}"),
            Range::Number(least, most) => write!(f, "{least} to {most}"),
            Range::Time(least, most) => write!(f, "{least} to {most}"),
            Range::Size(least, most) => write!(f, "{least} to {most}"),
            Range::Rate(least, most) => write!(f, "{least} to {most}"),
            Range::Word(words) => f.write_str(&words.join(", ")),
            Range::Table(most) => write!(
                f,
                "at most {most} entries shift:multiplier, shift 0 to 3, multiplier 0 to 16383"
            ),
        }
    }
}

impl Values {
    /// Sets a parameter. Fails if the value is out of range.
    pub fn set(&mut self, parameter: &Parameter, value: Value) -> Result<(), ParameterError> {
        parameter.check(&value)?;
        self.0.retain(|(name, _)| *name != parameter.name);
        self.0.push((parameter.name, value));
        Ok(())
    }

    /// True if the parameter was set, even if to its default.
    pub fn is_set(&self, parameter: &Parameter) -> bool {
        self.0.iter().any(|(name, _)| *name == parameter.name)
    }

    /// The value that was set, or the default.
    pub fn get<'a>(&'a self, parameter: &'a Parameter) -> &'a Value {
        let set = self.0.iter().find(|(name, _)| *name == parameter.name);
        set.map_or(&parameter.default, |(_, value)| value)
    }

    /// The value of a count; 0 for a parameter of another kind, which tests exclude.
    pub fn integer(&self, parameter: &Parameter) -> u64 {
        if let Value::Integer(value) = self.get(parameter) { *value } else { 0 }
    }

    /// The value of a real number; 0 for a parameter of another kind.
    pub fn number(&self, parameter: &Parameter) -> f64 {
        if let Value::Number(value) = self.get(parameter) { *value } else { 0.0 }
    }

    /// The value of a span of time; 0 for a parameter of another kind.
    pub fn time(&self, parameter: &Parameter) -> Picoseconds {
        if let Value::Time(value) = self.get(parameter) { *value } else { Picoseconds(0) }
    }

    /// The value of a size; 0 for a parameter of another kind.
    pub fn size(&self, parameter: &Parameter) -> Bytes {
        if let Value::Size(value) = self.get(parameter) { *value } else { Bytes(0) }
    }

    /// The value of a rate; 0 for a parameter of another kind.
    pub fn rate(&self, parameter: &Parameter) -> BitsPerSecond {
        if let Value::Rate(value) = self.get(parameter) { *value } else { BitsPerSecond(0) }
    }

    /// The chosen word; empty for a parameter of another kind.
    pub fn word(&self, parameter: &Parameter) -> &'static str {
        if let Value::Word(value) = self.get(parameter) { value } else { "" }
    }

    /// The entries of a table; none for a parameter of another kind.
    pub fn table<'a>(&'a self, parameter: &'a Parameter) -> &'a [(u8, u16)] {
        if let Value::Table(value) = self.get(parameter) { value } else { &[] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Parameter = Parameter {
        name: "limit",
        summary: "",
        default: Value::Integer(5),
        range: Range::Integer(1, 9),
    };

    #[test]
    fn a_value_is_the_default_until_one_in_range_is_set() {
        let mut values = Values::default();
        assert_eq!(values.integer(&LIMIT), 5);
        assert!(!values.is_set(&LIMIT));
        values.set(&LIMIT, Value::Integer(7)).unwrap();
        assert_eq!(values.integer(&LIMIT), 7);
        let error = values.set(&LIMIT, Value::Integer(10)).unwrap_err();
        assert_eq!(error.to_string(), "limit is outside 1 to 9");
        assert!(values.set(&LIMIT, Value::Number(2.0)).is_err());
        assert!(values.is_set(&LIMIT));
        assert_eq!(values.integer(&LIMIT), 7);
    }
}
