//! What a sweep varies: a key and the values it takes, from `--over` or the table `[sweep]`.

use super::document::{Node, Value};
use super::keys::Field;
use super::overlay::{self, Overlay, dotted};
use crate::LabError;
use clearlane_ib::{BitsPerSecond, Bytes, Picoseconds, short, ticked};

/// A key and its values.
#[derive(Clone, Debug)]
pub struct Axis {
    path: Vec<String>,
    values: Vec<Node>,
}

/// Most values of an axis.
const VALUES_MAX: usize = 1000;

impl Axis {
    /// `key=v1,v2,…` or `key=a..b:n`: n values from a to b, both included, evenly spaced.
    pub fn parse(text: &str) -> Result<Self, LabError> {
        let fault = |problem: String| LabError::Request(format!("--over {problem}"));
        let Some((key, values)) = text.split_once('=') else {
            return Err(fault(format!("{}: write KEY=V1,V2 or KEY=FROM..TO:COUNT", ticked(text))));
        };
        let path = overlay::path(key.trim()).map_err(fault)?;
        let key = short(&dotted(&path));
        let values = match range(values) {
            Some(range) => range.map_err(|problem| fault(format!("{key}: {problem}")))?,
            None => split(values).into_iter().map(str::to_owned).collect(),
        };
        let axis = Axis { path, values: values.iter().map(|v| overlay::value(v)).collect() };
        axis.check().map_err(|problem| fault(format!("{key}: {problem}")))?;
        Ok(axis)
    }

    fn check(&self) -> Result<(), String> {
        let texts: Vec<String> = self.values.iter().map(shown).collect();
        if texts.iter().any(String::is_empty) {
            return Err("a value is empty; leave the comma out".into());
        }
        if texts.len() > VALUES_MAX {
            return Err(format!("{} values are more than {VALUES_MAX}", texts.len()));
        }
        let twice = texts.iter().enumerate().find(|(index, text)| texts[..*index].contains(text));
        match twice {
            Some((_, text)) => {
                let quoted = |node: &Node| matches!(node.value, Value::Text(_));
                let mut same = self.values.iter().filter(|node| shown(node) == *text).map(quoted);
                // "2" and 2: a reader of the message has to know that both were read.
                let first = same.next();
                let how = if same.any(|now| Some(now) != first) { ", quoted and not" } else { "" };
                Err(format!("{} is there twice{how}; drop one", ticked(text)))
            }
            None => Ok(()),
        }
    }

    /// The values of both, those of `other` last. Fails if it is of another key, or has a value
    /// that is here already.
    pub fn with(mut self, other: Axis) -> Result<Self, LabError> {
        let fault = |problem: String| Err(LabError::Request(problem));
        let key = self.short_key();
        if other.path != self.path {
            return fault(format!("{key} and {} are two keys; name one", other.short_key()));
        }
        self.values.extend(other.values);
        match self.check() {
            Err(problem) => fault(format!("{key}: {problem}")),
            Ok(()) => Ok(self),
        }
    }

    /// The key: `traffic.hot.load`.
    pub fn key(&self) -> String {
        dotted(&self.path)
    }

    /// How many values it has.
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// The values as people write them.
    pub fn texts(&self) -> Vec<String> {
        self.values.iter().map(shown).collect()
    }

    /// The values as numbers in one unit, if all are: plain numbers, times in us, sizes in KiB or
    /// B, rates in Gb/s.
    pub fn numbers(&self) -> Option<(Vec<f64>, &'static str)> {
        let number = |node: &Node| match node.value {
            Value::Integer(number) => Some(number as f64),
            Value::Float(number) => Some(number),
            _ => None,
        };
        let all = |of: &dyn Fn(&Node) -> Option<f64>| -> Option<Vec<f64>> {
            self.values.iter().map(of).collect()
        };
        let text = |node: &Node| match &node.value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        };
        if let Some(numbers) = all(&number) {
            return Some((numbers, ""));
        }
        let time = |node: &Node| Some(text(node)?.parse::<Picoseconds>().ok()?.as_microseconds());
        if let Some(numbers) = all(&time) {
            return Some((numbers, "us"));
        }
        let size = |node: &Node| Some(text(node)?.parse::<Bytes>().ok()?.0 as f64);
        if let Some(numbers) = all(&size) {
            let whole = numbers.iter().all(|bytes| bytes % 1024.0 == 0.0);
            return Some(match whole {
                true => (numbers.iter().map(|bytes| bytes / 1024.0).collect(), "KiB"),
                false => (numbers, "B"),
            });
        }
        let rate = |node: &Node| Some(text(node)?.parse::<BitsPerSecond>().ok()?.as_gigabits());
        all(&rate).map(|numbers| (numbers, "Gb/s"))
    }

    /// The key, fit for an error of one line.
    pub(crate) fn short_key(&self) -> String {
        short(&self.key())
    }

    /// The mechanism whose parameter is varied.
    pub(crate) fn mechanism(&self) -> Option<&str> {
        Overlay::mechanism(&self.path)
    }

    /// Whether its values take the place of what a variant says of the key `own`.
    pub(crate) fn replaces(&self, own: &[String]) -> bool {
        overlay::replaces(&self.path, own)
    }

    /// The value at this place, to be laid over the experiment.
    pub(crate) fn overlay(&self, index: usize) -> Option<Overlay> {
        let node = self.values.get(index)?.clone();
        Some(Overlay { path: self.path.clone(), node })
    }
}

/// The axes of `[sweep]`, in the order of the file: `traffic.load = [0.1, 0.2]` or
/// `traffic.load = "0.05..0.6:12"`.
pub(super) fn of_file(field: &Field<'_>) -> Result<Vec<Axis>, LabError> {
    let mut axes = Vec::new();
    collect(field, field.node, &mut Vec::new(), &mut axes)?;
    Ok(axes)
}

fn collect(
    field: &Field<'_>,
    node: &Node,
    path: &mut Vec<String>,
    axes: &mut Vec<Axis>,
) -> Result<(), LabError> {
    let key = short(&dotted(path));
    let fault = |problem: &str| Err(field.error_at(node.at, &format!("{key}: {problem}")));
    let values: Vec<Node> = match &node.value {
        Value::Table(entries) => {
            for entry in entries {
                path.push(entry.key.clone());
                collect(field, &entry.node, path, axes)?;
                path.pop();
            }
            return Ok(());
        }
        Value::Array(items) => items.clone(),
        Value::Text(text) => match range(text) {
            Some(Ok(texts)) => texts
                .iter()
                .map(|text| {
                    let mut value = overlay::value(text);
                    value.place_at(node.at);
                    value
                })
                .collect(),
            Some(Err(problem)) => return fault(&problem),
            None => return fault("is neither a list nor a range such as \"0.1..0.9:9\""),
        },
        _ => return fault("is neither a list nor a range such as \"0.1..0.9:9\""),
    };
    if values.is_empty() {
        return fault("has no values; name some");
    }
    let axis = Axis { path: path.clone(), values };
    if let Err(problem) = axis.check() {
        return fault(&problem);
    }
    axes.push(axis);
    Ok(())
}

/// The table that reads back as these axes.
pub(super) fn resolved(axes: &[Axis]) -> toml::Table {
    let mut table = toml::Table::new();
    for axis in axes {
        let mut place = &mut table;
        let (last, way) = axis.path.split_last().map_or(("", &[][..]), |(l, w)| (l.as_str(), w));
        for word in way {
            let inner =
                place.entry(word.clone()).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            match inner {
                toml::Value::Table(inner) => place = inner,
                _ => return table,
            }
        }
        let values: Vec<_> = axis.values.iter().map(Node::plain).collect();
        place.insert(last.to_owned(), values.into());
    }
    table
}

fn shown(node: &Node) -> String {
    match &node.value {
        Value::Text(text) => text.clone(),
        _ => node.plain().to_string(),
    }
}

/// The pieces between the commas that no bracket or quote encloses.
fn split(text: &str) -> Vec<&str> {
    let (mut pieces, mut depth, mut quoted, mut from) = (Vec::new(), 0i32, None, 0);
    for (at, c) in text.char_indices() {
        match (quoted, c) {
            (Some(mark), c) if c == mark => quoted = None,
            (None, '"' | '\'') => quoted = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 => {
                pieces.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(text[from..].trim());
    pieces
}

/// The values of `a..b:n`; nothing if the text is no range.
fn range(text: &str) -> Option<Result<Vec<String>, String>> {
    let (from, rest) = text.trim().split_once("..")?;
    let Some((to, count)) = rest.rsplit_once(':') else {
        // What begins and ends with numbers is meant as a range.
        let (from, to) = (from.trim(), rest.trim());
        let ends = number(from).zip(number(to))?;
        let range = format!("{from}..{to}");
        let counted = ticked(&format!("{range}:{}", usual_count(ends.0.0, ends.1.0)));
        let problem = format!("the range {} lacks a count; write {counted}", ticked(&range));
        return Some(Err(problem));
    };
    let (from, unit_from) = number(from)?;
    let (to, unit) = number(to)?;
    if !unit_from.is_empty() && unit_from != unit {
        let (from, to) = (ticked(unit_from), ticked(unit));
        return Some(Err(format!("the range goes from {from} to {to}; use one unit")));
    }
    let count = match count.trim().parse::<usize>() {
        Ok(count) if (2..=VALUES_MAX).contains(&count) => count,
        _ => return Some(Err(format!("a range has 2 to {VALUES_MAX} values, as in 0.1..0.9:9"))),
    };
    let value = |index: usize| {
        let value = from + (to - from) * index as f64 / (count - 1) as f64;
        // Twelve digits: 0.15 rather than 0.15000000000000002.
        let value = format!("{value:.11e}").parse().unwrap_or(value);
        if unit.is_empty() { format!("{value}") } else { format!("{value} {unit}") }
    };
    Some(Ok((0..count).map(value).collect()))
}

/// How many values a range is likely meant to have: of a few whole numbers each.
fn usual_count(from: f64, to: f64) -> usize {
    let steps = to - from;
    let whole = from.fract() == 0.0 && to.fract() == 0.0 && (1.0..=32.0).contains(&steps);
    if whole { steps as usize + 1 } else { 9 }
}

/// A number and what follows it.
fn number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || ".+-eE".contains(c)));
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    Some((number.parse().ok().filter(|n: &f64| n.is_finite())?, unit.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_separated_by_commas_outside_brackets() {
        let axis = Axis::parse("sim.buffer = 4 KiB, 64 KiB").unwrap();
        assert_eq!(
            (axis.key(), axis.texts()),
            ("sim.buffer".into(), vec!["4 KiB".into(), "64 KiB".into()])
        );
        assert_eq!(axis.numbers(), Some((vec![4.0, 64.0], "KiB")));
        let axis =
            Axis::parse("traffic.\"to all\".pattern={kind=\"shift\",by=1},{kind=\"uniform\"}");
        let axis = axis.unwrap();
        assert_eq!((axis.key().as_str(), axis.count()), ("traffic.\"to all\".pattern", 2));
        assert_eq!(axis.numbers(), None);
    }

    #[test]
    fn a_range_has_round_values_and_both_ends() {
        let axis = Axis::parse("traffic.load=0.05..0.6:12").unwrap();
        let (numbers, unit) = axis.numbers().unwrap();
        assert_eq!((numbers.len(), numbers[2], numbers[11], unit), (12, 0.15, 0.6, ""));
        assert_eq!(Axis::parse("subnet.lanes=1..8:8").unwrap().texts()[7], "8");
        assert_eq!(Axis::parse("run.duration=1..3 ms:3").unwrap().texts()[1], "2 ms");
    }

    #[test]
    fn what_cannot_be_is_told_with_its_remedy() {
        let error = |text: &str| Axis::parse(text).unwrap_err().to_string();
        for (text, part) in [
            ("load", "KEY=V1,V2"),
            ("=1", "is no key"),
            ("a.b=1,,2", "is empty"),
            ("a.b=1,1", "twice"),
            ("a.b=1..2:1", "2 to 1000"),
            ("a.b=0.1..0.9", "the range `0.1..0.9` lacks a count; write `0.1..0.9:9`"),
            ("a.b=1..3m\0s", "write `1..3m\\0s:3`"),
            ("a.b=0..7", "write `0..7:8`"),
            ("a.b=1 us..2 ms:3", "goes from `us` to `ms`; use one unit"),
            ("a.b=1 us..2 \u{1a}:3", "to `\\u{1a}`; use"),
            ("a b=1", "is no key"),
        ] {
            assert!(error(text).contains(part), "{text}: {}", error(text));
        }
    }
}
