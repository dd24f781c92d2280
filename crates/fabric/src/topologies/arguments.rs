//! What comes after a topology's name: values and `key=value` options, separated by commas.

use super::TopologyError;
use crate::wording::nearest;
use clearlane_ib::{LinkSpeed, LinkWidth, quoted};
use std::ops::RangeInclusive;

/// Width and speed of every cable of a built fabric.
pub(super) type Rate = (LinkWidth, LinkSpeed);

/// The arguments of one specification.
#[derive(Debug)]
pub(super) struct Arguments<'a> {
    topology: &'static str,
    /// Everything that is not an option, commas kept.
    pub(super) values: String,
    options: Vec<(&'a str, &'a str)>,
}

impl<'a> Arguments<'a> {
    /// Splits `text`; `known` are the options besides `speed`. Fails on an unknown option and on
    /// one given twice.
    pub(super) fn parse(
        topology: &'static str,
        text: &'a str,
        known: &[&str],
    ) -> Result<Self, TopologyError> {
        let mut arguments = Arguments { topology, values: String::new(), options: Vec::new() };
        let mut values = Vec::new();
        for part in text.split(',') {
            let Some((key, value)) = part.split_once('=') else {
                values.push(part.trim());
                continue;
            };
            let (key, value) = (key.trim(), value.trim());
            let names = || known.iter().copied().chain(["speed"]);
            if !names().any(|name| name == key) {
                return Err(TopologyError::UnknownOption {
                    topology,
                    option: quoted(key),
                    nearest: nearest(key, names()),
                    known: names().collect::<Vec<_>>().join(", "),
                });
            }
            if arguments.option(key).is_some() {
                return Err(arguments.wrong(key, value, "given once"));
            }
            arguments.options.push((key, value));
        }
        arguments.values = values.join(",");
        Ok(arguments)
    }

    /// The text of an option, if it is given.
    pub(super) fn option(&self, key: &str) -> Option<&'a str> {
        self.options.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    /// The error for a value.
    pub(super) fn wrong(&self, key: &str, value: &str, expected: &str) -> TopologyError {
        TopologyError::Value {
            topology: self.topology,
            key: key.to_owned(),
            value: quoted(value),
            expected: expected.to_owned(),
        }
    }

    /// Reads one number in a range.
    pub(super) fn number(
        &self,
        key: &str,
        text: &str,
        range: RangeInclusive<u32>,
    ) -> Result<u32, TopologyError> {
        let text = text.trim();
        match text.parse::<u32>() {
            Ok(number) if range.contains(&number) && !text.starts_with('+') => Ok(number),
            _ => {
                let expected = format!("{} to {}", range.start(), range.end());
                Err(self.wrong(key, text, &expected))
            }
        }
    }

    /// A numeric option, or its default.
    pub(super) fn option_number(
        &self,
        key: &str,
        default: u32,
        range: RangeInclusive<u32>,
    ) -> Result<u32, TopologyError> {
        self.option(key).map_or(Ok(default), |text| self.number(key, text, range))
    }

    /// Two numbers, `4x2`.
    pub(super) fn pair(
        &self,
        keys: (&str, &str),
        range: (RangeInclusive<u32>, RangeInclusive<u32>),
    ) -> Result<(u32, u32), TopologyError> {
        let Some((first, second)) = self.values.split_once('x') else {
            let expected = format!("{} x {}, such as 4x2", keys.0, keys.1);
            return Err(self.wrong("size", &self.values, &expected));
        };
        Ok((self.number(keys.0, first, range.0)?, self.number(keys.1, second, range.1)?))
    }

    /// The option `speed`, 4x QDR where it is not given.
    pub(super) fn rate(&self) -> Result<Rate, TopologyError> {
        let Some(text) = self.option("speed") else {
            return Ok((LinkWidth::X4, LinkSpeed::Qdr));
        };
        let rate = text.split_once('x').and_then(|(lanes, speed)| {
            let width = LinkWidth::from_name(&format!("{lanes}x"))?;
            Some((width, LinkSpeed::from_name(speed)?))
        });
        let expected = "a width and speed such as 4xQDR or 4xEDR";
        rate.ok_or_else(|| self.wrong("speed", text, expected))
    }
}
