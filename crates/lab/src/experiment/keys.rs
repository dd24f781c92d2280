//! Reading tables key by key: types, units, ranges, and the nearest name on a miss.

use super::document::{Document, Node, Value};
use crate::LabError;
use clearlane_ib::{short, ticked};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A table being read.
pub(crate) struct Keys<'a> {
    document: &'a Document,
    path: String,
    node: &'a Node,
    /// The keys it may have; nothing until they are named.
    known: Vec<&'static str>,
}

/// A key's value and its place.
#[derive(Clone)]
pub(crate) struct Field<'a> {
    document: &'a Document,
    path: String,
    pub(crate) node: &'a Node,
}

/// The name closest to `word`, as the end of an error message; empty if none is close.
pub(crate) fn nearest<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> String {
    let near = clearlane_ib::nearest(word, names);
    near.map(|name| format!("; the nearest is `{name}`")).unwrap_or_default()
}

/// The word for a value, as a resolved experiment writes it.
pub(crate) fn word<T: PartialEq>(words: &[(&str, T)], value: &T) -> toml::Value {
    words.iter().find(|(_, known)| known == value).map_or("", |(word, _)| word).into()
}

/// The most bytes of a string.
const TEXT_BYTES_MAX: usize = 4096;
/// More keys than that do not help in a message.
const KEYS_SHOWN_MAX: usize = 12;

impl<'a> Keys<'a> {
    /// The keys of a table called `path` in messages. Fails on another value.
    pub(crate) fn of(document: &'a Document, path: &str, node: &'a Node) -> Result<Self, LabError> {
        let keys = Keys { document, path: path.to_owned(), node, known: Vec::new() };
        match node.entries() {
            Some(_) => Ok(keys),
            None => Err(keys.error(&format!("{path} is {}, but is a table", node.quoted()))),
        }
    }

    /// Names the keys the table may have. Fails on the first other one: a misspelt key explains a
    /// missing one, so this comes before any is asked for.
    pub(crate) fn only(&mut self, known: &[&'static str]) -> Result<(), LabError> {
        self.known = known.to_vec();
        let entries = self.node.entries().unwrap_or_default();
        match entries.iter().find(|entry| !known.contains(&entry.key.as_str())) {
            None => Ok(()),
            Some(entry) => {
                let near = match nearest(&entry.key, known.iter().copied()) {
                    near if !near.is_empty() => near,
                    _ if known.len() > KEYS_SHOWN_MAX => "; see `clearlane list keys`".to_owned(),
                    _ => format!("; its keys are {}", known.join(", ")),
                };
                let text = format!("{} has no key {}{near}", self.name(), ticked(&entry.key));
                Err(self.document.error(entry.at, &text))
            }
        }
    }

    /// The value of a key, if it is there.
    pub(crate) fn optional(&self, key: &'static str) -> Option<Field<'a>> {
        debug_assert!(self.known.contains(&key), "{key} is asked for and not named");
        let node = self.node.get(key)?;
        let path =
            if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        Some(Field { document: self.document, path, node })
    }

    /// The value of a key. Fails if it is missing; `example` says what to write.
    pub(crate) fn required(&self, key: &'static str, example: &str) -> Result<Field<'a>, LabError> {
        let missing = format!("{} lacks `{key}`; write {key} = {example}", self.name());
        self.optional(key).ok_or_else(|| self.error(&missing))
    }

    /// An error about the table as a whole.
    pub(crate) fn error(&self, problem: &str) -> LabError {
        self.document.error(self.node.at, problem)
    }

    /// An error at one of its keys or values.
    pub(crate) fn error_at(&self, at: usize, problem: &str) -> LabError {
        self.document.error(at, problem)
    }

    /// What it is called in messages.
    pub(crate) fn name(&self) -> &str {
        if self.path.is_empty() { "the experiment" } else { &self.path }
    }
}

impl<'a> Field<'a> {
    /// A value found elsewhere than in a table.
    pub(crate) fn new(document: &'a Document, path: String, node: &'a Node) -> Self {
        Field { document, path, node }
    }

    /// An error at the value: `traffic.hot.load = 9 <problem>`.
    pub(crate) fn error(&self, problem: &str) -> LabError {
        let text = format!("{} = {} {problem}", self.path, self.node.quoted());
        self.document.error(self.node.at, &text)
    }

    /// An error at another place of the value, such as one of its keys.
    pub(crate) fn error_at(&self, at: usize, problem: &str) -> LabError {
        self.document.error(at, &format!("{}: {problem}", self.path))
    }

    /// `file:line` of the value.
    pub(crate) fn place(&self) -> String {
        self.document.place(self.node.at)
    }

    /// The table that the value is, and the keys it may have.
    pub(crate) fn keys(&self, known: &[&'static str]) -> Result<Keys<'a>, LabError> {
        let mut keys = Keys::of(self.document, &self.path, self.node)?;
        keys.only(known)?;
        Ok(keys)
    }

    /// The table that the value is, for a reader that knows its keys but for `kind`.
    pub(crate) fn any_keys(&self) -> Result<Keys<'a>, LabError> {
        let mut keys = Keys::of(self.document, &self.path, self.node)?;
        keys.known = vec!["kind"];
        Ok(keys)
    }

    /// The entries of a table whose keys are free.
    pub(crate) fn entries(&self) -> Result<Vec<(String, Field<'a>)>, LabError> {
        let Some(entries) = self.node.entries() else {
            return Err(self.error("is not a table; write it in { }"));
        };
        let entry = |entry: &'a super::document::Entry| {
            let path = format!("{}.{}", self.path, short(&entry.key));
            (entry.key.clone(), Field { document: self.document, path, node: &entry.node })
        };
        Ok(entries.iter().map(entry).collect())
    }

    /// The same of a table with a name of its own: messages call it `kind.name`.
    pub(crate) fn named_keys(
        &self,
        kind: &str,
        known: &[&'static str],
    ) -> Result<Keys<'a>, LabError> {
        let field = |node| Field { document: self.document, path: self.path.clone(), node };
        let name = self.node.get("name").and_then(|name| field(name).name().ok());
        let name = name.map_or(self.path.clone(), |name| format!("{kind}.{name}"));
        let mut keys = Keys::of(self.document, &name, self.node)?;
        keys.only(known)?;
        Ok(keys)
    }

    /// A path in the file, seen from where the program was called; `a/../b` becomes `b`.
    pub(crate) fn path_of(&self, text: &str) -> PathBuf {
        use std::path::Component;
        let folder = self.document.path(self.node.at).parent().unwrap_or(Path::new(""));
        let mut plain = PathBuf::new();
        for part in folder.join(text).components() {
            let named = matches!(plain.components().next_back(), Some(Component::Normal(_)));
            match part {
                Component::CurDir => {}
                Component::ParentDir if named => {
                    plain.pop();
                }
                _ => plain.push(part),
            }
        }
        // The folder itself has a name too.
        if plain.as_os_str().is_empty() { PathBuf::from(".") } else { plain }
    }

    /// A string, of at most 4,096 bytes: it is shown in tables and reports.
    pub(crate) fn text(&self) -> Result<&'a str, LabError> {
        match &self.node.value {
            Value::Text(text) if text.len() > TEXT_BYTES_MAX => {
                Err(self.error(&format!("is longer than {TEXT_BYTES_MAX} bytes; shorten it")))
            }
            Value::Text(text) => Ok(text),
            _ => Err(self.error("is not a text; write it in quotes")),
        }
    }

    /// A name: a text of 1 to 80 printable characters.
    pub(crate) fn name(&self) -> Result<String, LabError> {
        let text = self.text()?;
        let fits = !text.trim().is_empty() && text.chars().count() <= 80;
        if fits && !text.chars().any(char::is_control) {
            Ok(text.to_owned())
        } else {
            Err(self.error("is no name; use 1 to 80 printable characters"))
        }
    }

    /// A quantity with its unit between two bounds.
    pub(crate) fn quantity<T>(&self, least: T, most: T) -> Result<T, LabError>
    where
        T: FromStr + PartialOrd + std::fmt::Display,
        T::Err: std::fmt::Display,
    {
        let Value::Text(text) = &self.node.value else {
            // A number without a unit is no quantity; why says which units there are.
            let why = self.node.plain().to_string().parse::<T>().err();
            let is_number = matches!(self.node.value, Value::Integer(_) | Value::Float(_));
            return Err(match why.filter(|_| is_number) {
                Some(why) => self.error_at(self.node.at, &why.to_string()),
                None => self.error("is not a text with a number and a unit"),
            });
        };
        let value = text.parse::<T>().map_err(|error| {
            self.document.error(self.node.at, &format!("{}: {error}", self.path))
        })?;
        if value < least || value > most {
            return Err(self.error(&format!("is outside {least} to {most}")));
        }
        Ok(value)
    }

    /// The same between the bounds of a range.
    pub(crate) fn within<T>(&self, range: RangeInclusive<T>) -> Result<T, LabError>
    where
        T: FromStr + PartialOrd + std::fmt::Display,
        T::Err: std::fmt::Display,
    {
        let (least, most) = range.into_inner();
        self.quantity(least, most)
    }

    /// A whole number in a range.
    pub(crate) fn count(&self, range: RangeInclusive<u32>) -> Result<u32, LabError> {
        let (least, most) = range.into_inner();
        Ok(self.integer(least.into(), most.into())? as u32)
    }

    /// A whole number between two bounds.
    pub(crate) fn integer(&self, least: u64, most: u64) -> Result<u64, LabError> {
        let range = format!("is not a whole number from {least} to {most}");
        match self.node.value {
            Value::Integer(number) => match u64::try_from(number) {
                Ok(number) if (least..=most).contains(&number) => Ok(number),
                _ => Err(self.error(&range)),
            },
            _ => Err(self.error(&range)),
        }
    }

    /// A number between two bounds.
    pub(crate) fn number(&self, least: f64, most: f64) -> Result<f64, LabError> {
        let number = match self.node.value {
            Value::Integer(number) => number as f64,
            Value::Float(number) => number,
            _ => f64::NAN,
        };
        if (least..=most).contains(&number) {
            Ok(number)
        } else {
            Err(self.error(&format!("is not a number from {least} to {most}")))
        }
    }

    /// One of several words.
    pub(crate) fn choice<T: Clone>(&self, words: &[(&str, T)]) -> Result<T, LabError> {
        let text = self.text()?;
        match words.iter().find(|(word, _)| *word == text) {
            Some((_, value)) => Ok(value.clone()),
            None => {
                let all = words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
                let near = nearest(text, words.iter().map(|(word, _)| *word));
                Err(self.error(&format!("is none of {all}{near}")))
            }
        }
    }

    /// `"yes"` or `"no"`; other words for them are answered with the right one.
    pub(crate) fn yes_no(&self) -> Result<bool, LabError> {
        const YES: &[&str] = &["on", "true", "y", "1", "enable", "enabled", "always"];
        let word = match &self.node.value {
            Value::Text(text) if text == "yes" => return Ok(true),
            Value::Text(text) if text == "no" => return Ok(false),
            Value::Text(text) => text.trim().to_lowercase(),
            _ => self.node.plain().to_string(),
        };
        let meant = match YES.contains(&word.as_str()) || word == "yes" {
            true => "yes",
            false if ["off", "false", "n", "0", "no", "none", "never"].contains(&word.as_str()) => {
                "no"
            }
            false => return Err(self.error("is neither \"yes\" nor \"no\"")),
        };
        Err(self.error(&format!("is neither \"yes\" nor \"no\"; write \"{meant}\"")))
    }

    /// The items of a list.
    pub(crate) fn items(&self) -> Result<Vec<Field<'a>>, LabError> {
        match &self.node.value {
            Value::Array(nodes) => {
                let item = |(index, node)| {
                    let path = format!("{}[{index}]", self.path);
                    Field { document: self.document, path, node }
                };
                Ok(nodes.iter().enumerate().map(item).collect())
            }
            _ => Err(self.error("is not a list; write it in [ ]")),
        }
    }

    /// A list of texts.
    pub(crate) fn texts(&self) -> Result<Vec<String>, LabError> {
        self.items()?.iter().map(|item| item.text().map(str::to_owned)).collect()
    }
}
