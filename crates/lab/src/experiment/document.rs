//! A TOML text as a tree in which every value knows its line.

use crate::LabError;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Where a value of the command line stands: in no line of the file.
pub(crate) const COMMAND_LINE: usize = usize::MAX;

/// A file's name and the places of its lines, for error messages.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    file: String,
    /// Offsets at which lines begin.
    lines: Vec<usize>,
}

/// A value and where it begins.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) at: usize,
    pub(crate) value: Value,
}

/// A TOML value; tables keep the order of the file.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Date(String),
    Array(Vec<Node>),
    Table(Vec<Entry>),
}

/// A key, where it stands, and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) at: usize,
    pub(crate) node: Node,
}

impl Document {
    /// Parses `text` read from `path`. Fails with the line of the first fault.
    pub(crate) fn parse(text: &str, path: &Path) -> Result<(Self, Node), LabError> {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect();
        let document = Document { file: path.display().to_string(), lines };
        match DeTable::parse(text) {
            Ok(table) => {
                let at = table.span().start;
                let root = document.table(at, table.into_inner())?;
                Ok((document, root))
            }
            Err(error) => {
                let at = error.span().map_or(0, |span| span.start);
                Err(document.error(at, error.message()))
            }
        }
    }

    /// An error at this offset.
    pub(crate) fn error(&self, at: usize, problem: &str) -> LabError {
        if at == COMMAND_LINE {
            return LabError::Request(LabError::one_line(&format!("--over: {problem}")));
        }
        LabError::Experiment {
            file: LabError::one_line(&self.file),
            line: self.line(at),
            problem: LabError::one_line(problem),
        }
    }

    /// `file:line` of an offset.
    pub(crate) fn place(&self, at: usize) -> String {
        if at == COMMAND_LINE {
            return "--over".into();
        }
        format!("{}:{}", LabError::one_line(&self.file), self.line(at))
    }

    /// The line of an offset, from 1.
    fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|start| *start <= at)
    }

    fn table(&self, at: usize, table: DeTable<'_>) -> Result<Node, LabError> {
        let mut entries = Vec::new();
        for (key, value) in table {
            let place = key.span().start;
            let node = self.node(value)?;
            entries.push(Entry { key: key.into_inner().into_owned(), at: place, node });
        }
        entries.sort_by_key(|entry| entry.at);
        Ok(Node { at, value: Value::Table(entries) })
    }

    fn node(&self, value: Spanned<DeValue<'_>>) -> Result<Node, LabError> {
        let at = value.span().start;
        let value = match value.into_inner() {
            DeValue::String(text) => Value::Text(text.into_owned()),
            DeValue::Integer(number) => {
                match i64::from_str_radix(number.as_str(), number.radix()) {
                    Ok(number) => Value::Integer(number),
                    Err(_) => return Err(self.error(at, "an integer beyond 64 bits")),
                }
            }
            DeValue::Float(number) => match number.as_str().parse() {
                Ok(number) => Value::Float(number),
                Err(_) => return Err(self.error(at, "a number that cannot be read")),
            },
            DeValue::Boolean(flag) => Value::Boolean(flag),
            DeValue::Datetime(date) => Value::Date(date.to_string()),
            DeValue::Array(items) => {
                let nodes = items.into_iter().map(|item| self.node(item));
                Value::Array(nodes.collect::<Result<_, _>>()?)
            }
            DeValue::Table(table) => return self.table(at, table),
        };
        Ok(Node { at, value })
    }
}

impl Node {
    /// The entries of a table; nothing for another value.
    pub(crate) fn entries(&self) -> Option<&[Entry]> {
        match &self.value {
            Value::Table(entries) => Some(entries),
            _ => None,
        }
    }

    /// The value of a key of a table.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entries()?.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    /// The same value without places, for serde and for the resolved experiment.
    pub(crate) fn plain(&self) -> toml::Value {
        match &self.value {
            Value::Text(text) => toml::Value::String(text.clone()),
            Value::Integer(number) => toml::Value::Integer(*number),
            Value::Float(number) => toml::Value::Float(*number),
            Value::Boolean(flag) => toml::Value::Boolean(*flag),
            Value::Date(date) => toml::Value::String(date.clone()),
            Value::Array(items) => toml::Value::Array(items.iter().map(Node::plain).collect()),
            Value::Table(entries) => {
                let pairs = entries.iter().map(|entry| (entry.key.clone(), entry.node.plain()));
                toml::Value::Table(pairs.collect())
            }
        }
    }

    /// Says that the value and all within it stand there.
    pub(crate) fn place_at(&mut self, at: usize) {
        self.at = at;
        match &mut self.value {
            Value::Array(items) => items.iter_mut().for_each(|item| item.place_at(at)),
            Value::Table(entries) => entries.iter_mut().for_each(|entry| {
                entry.at = at;
                entry.node.place_at(at);
            }),
            _ => {}
        }
    }

    /// The value as an error message quotes it: one line, not longer than a line.
    pub(crate) fn quoted(&self) -> String {
        let text = match &self.value {
            Value::Table(_) => "a table".to_owned(),
            Value::Array(_) => "a list".to_owned(),
            Value::Date(date) => format!("the date {date}"),
            _ => self.plain().to_string(),
        };
        // TOML lets the control characters beyond ASCII stand as they are; a terminal would not.
        let shown = |c: char| match c.is_control() {
            true => c.escape_unicode().to_string(),
            false => c.to_string(),
        };
        let text: String = text.chars().map(shown).collect();
        match text.char_indices().nth(60) {
            Some((cut, _)) => format!("{}…", &text[..cut]),
            None => text,
        }
    }
}
