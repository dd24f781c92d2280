//! `[sim]`: a preset of delays, buffers and rates, and what differs from it.

use super::keys::{Field, Keys, nearest};
use crate::LabError;
use clearlane_ib::{BitsPerSecond, Bytes};
use clearlane_sim::parameters::{Access, KEYS, Key};
use clearlane_sim::{Parameters, Preset, preset};

/// Switches and adapters of a variant.
#[derive(Clone, Debug)]
pub struct DevicesSpec {
    /// Where the numbers come from.
    pub preset: &'static Preset,
    /// The numbers, overrides applied.
    pub parameters: Parameters,
}

/// The keys of the table: where the numbers come from, and every parameter.
pub(crate) fn names() -> Vec<&'static str> {
    ["preset"].into_iter().chain(KEYS.iter().map(|key| key.name)).collect()
}

/// `word` means nothing, everything else is read; who writes something wrong is told of both.
fn unless<T>(
    field: &Field<'_>,
    word: &str,
    read: impl Fn(&Field<'_>) -> Result<T, LabError>,
) -> Result<Option<T>, LabError> {
    if field.text().is_ok_and(|text| text == word) {
        return Ok(None);
    }
    let and_the_word = |error| match error {
        LabError::Experiment { file, line, problem } => {
            let problem = format!("{problem}; it may also be \"{word}\"");
            LabError::Experiment { file, line, problem }
        }
        other => other,
    };
    read(field).map(Some).map_err(and_the_word)
}

/// Reads the value of a parameter.
fn read(field: &Field<'_>, access: &Access, p: &mut Parameters) -> Result<(), LabError> {
    match access {
        Access::Time(range, at) => (at.set)(p, field.within(range.clone())?),
        Access::Size(range, at) => (at.set)(p, field.within(range.clone())?),
        Access::SizeOf(sizes, at) => (at.set)(p, one_of(field, sizes)?),
        Access::SizeOr(word, range, at) => {
            let size = unless(field, word, |field| field.within(range.clone()))?;
            (at.set)(p, size.map(|size: Bytes| size.0 as u32));
        }
        Access::RateOr(word, range, at) => {
            (at.set)(p, unless(field, word, |field| field.within(range.clone()))?);
        }
        Access::Count(range, at) => (at.set)(p, field.count(range.clone())?),
        Access::CountOr(word, range, at) => {
            (at.set)(p, unless(field, word, |field| field.count(range.clone()))?);
        }
        Access::Hundredths(range, at) => {
            let (least, most) = (f64::from(*range.start()), f64::from(*range.end()));
            let number = field.number(least / 100.0, most / 100.0)?;
            (at.set)(p, (number * 100.0).round() as u32);
        }
        Access::Word(words, at) => {
            let numbered: Vec<_> = words.iter().copied().zip(0..).collect();
            (at.set)(p, field.choice(&numbered)?);
        }
    }
    Ok(())
}

/// One of several sizes.
fn one_of(field: &Field<'_>, sizes: &[u32]) -> Result<u32, LabError> {
    let most = sizes.iter().copied().max().unwrap_or(0);
    let size = field.quantity(Bytes(0), Bytes(most.into()))?.0 as u32;
    if sizes.contains(&size) {
        return Ok(size);
    }
    Err(field.error(&format!("is none of {}", listed(sizes))))
}

fn listed(sizes: &[u32]) -> String {
    let sizes = sizes.iter().map(|size| Bytes(u64::from(*size)).exact());
    sizes.collect::<Vec<_>>().join(", ")
}

/// The value of a parameter as a file has it.
fn value(access: &Access, p: &Parameters) -> toml::Value {
    let or = |value: Option<String>, none: &str| value.unwrap_or(none.to_owned()).into();
    match access {
        Access::Time(_, at) => (at.get)(p).exact().into(),
        Access::Size(_, at) => (at.get)(p).exact().into(),
        Access::SizeOf(_, at) => Bytes((at.get)(p).into()).exact().into(),
        Access::SizeOr(none, _, at) => or((at.get)(p).map(|size| format!("{size} B")), none),
        Access::RateOr(none, _, at) => or((at.get)(p).map(BitsPerSecond::exact), none),
        Access::Count(_, at) => i64::from((at.get)(p)).into(),
        Access::CountOr(none, _, at) => match (at.get)(p) {
            Some(count) => i64::from(count).into(),
            None => (*none).into(),
        },
        Access::Hundredths(_, at) => (f64::from((at.get)(p)) / 100.0).into(),
        Access::Word(words, at) => words.get((at.get)(p)).copied().unwrap_or_default().into(),
    }
}

/// A parameter's kind of value and its range, in words.
pub(crate) fn in_words(access: &Access) -> (String, String) {
    fn range<T: std::fmt::Display>(range: &std::ops::RangeInclusive<T>) -> String {
        format!("{} to {}", range.start(), range.end())
    }
    match access {
        Access::Time(of, _) => ("time".into(), range(of)),
        Access::Size(of, _) => ("size".into(), range(of)),
        Access::SizeOf(sizes, _) => ("size".into(), listed(sizes)),
        Access::SizeOr(word, of, _) => (format!("size or \"{word}\""), range(of)),
        Access::RateOr(word, of, _) => (format!("rate or \"{word}\""), range(of)),
        Access::Count(of, _) => ("whole number".into(), range(of)),
        Access::CountOr(word, of, _) => (format!("whole number or \"{word}\""), range(of)),
        Access::Hundredths(of, _) => {
            ("number".into(), format!("{} to {}", of.start() / 100, of.end() / 100))
        }
        Access::Word(words, _) => ("text".into(), words.join(", ")),
    }
}

impl DevicesSpec {
    /// Reads the table.
    pub(crate) fn read(mut keys: Keys<'_>) -> Result<Self, LabError> {
        keys.only(&names())?;
        let field = keys.required("preset", "\"qdr\"")?;
        let name = field.text()?;
        let Some(preset) = preset::by_name(name) else {
            let names = preset::ALL.iter().map(|preset| preset.name);
            return Err(field.error(&format!("is no preset{}", nearest(name, names))));
        };
        let mut p = (preset.parameters)();
        for key in KEYS {
            if let Some(field) = keys.optional(key.name) {
                read(&field, &key.access, &mut p)?;
            }
        }
        if p.ack_coalescing > p.outstanding
            && let Some(field) = keys.optional("ack_coalescing")
        {
            let most = p.outstanding;
            return Err(field.error(&format!("is more than the {most} packets outstanding")));
        }
        Ok(DevicesSpec { preset, parameters: p })
    }

    /// Every parameter as (key, value of a file).
    fn values(p: &Parameters) -> Vec<(&'static str, toml::Value)> {
        KEYS.iter().map(|key| (key.name, value(&key.access, p))).collect()
    }

    /// Every parameter of a preset as an experiment writes it.
    pub(crate) fn of_preset(preset: &Preset) -> Vec<(&'static str, String)> {
        let values = Self::values(&(preset.parameters)());
        values.into_iter().map(|(key, value)| (key, plain(&value))).collect()
    }

    /// The table that reads back as this, every number spelt out.
    pub(crate) fn resolved(&self) -> toml::Table {
        let mut table = toml::Table::new();
        table.insert("preset".into(), self.preset.name.into());
        table.extend(Self::values(&self.parameters).into_iter().map(|(k, v)| (k.to_owned(), v)));
        table
    }

    /// Every parameter with its value and where that comes from.
    pub(crate) fn tagged(&self) -> Vec<(&'static str, toml::Value, String)> {
        let theirs = (self.preset.parameters)();
        let tag = |key: &Key| {
            let (value, default) =
                (value(&key.access, &self.parameters), value(&key.access, &theirs));
            let source = match value == default {
                false => format!("set by the experiment; the preset has {default}"),
                true => self.preset.source(key).to_owned(),
            };
            (key.name, value, source)
        };
        KEYS.iter().map(tag).collect()
    }

    /// What differs from the preset, as `buffer 4224 B (preset 64 KiB)`.
    pub(crate) fn overrides(&self) -> Vec<String> {
        let (ours, theirs) =
            (Self::values(&self.parameters), Self::values(&(self.preset.parameters)()));
        let pairs = ours.iter().zip(&theirs).filter(|(ours, theirs)| ours.1 != theirs.1);
        pairs.map(|(a, b)| format!("{} {} (preset {})", a.0, plain(&a.1), plain(&b.1))).collect()
    }
}

/// A value without the quotes of TOML.
pub(super) fn plain(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
