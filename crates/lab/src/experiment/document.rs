//! A TOML text as a tree in which every value knows its line.

use crate::LabError;
use clearlane_ib::short;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Where a value of the command line stands: in no line of the file.
pub(crate) const COMMAND_LINE: usize = usize::MAX;

/// The files of an experiment and the places of their lines, for error messages and for what paths
/// are relative to. Offsets go on from one file to the next.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    /// In the order of their offsets, at least one.
    files: Vec<File>,
    /// Where the next one begins.
    end: usize,
}

#[derive(Clone, Debug)]
struct File {
    path: PathBuf,
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
        let mut document = Document { files: Vec::new(), end: 0 };
        let root = document.parse_more(text, path)?;
        Ok((document, root))
    }

    /// The same of a further file.
    pub(crate) fn parse_more(&mut self, text: &str, path: &Path) -> Result<Node, LabError> {
        let base = self.end;
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(base).chain(newlines.map(|(at, _)| base + at + 1)).collect();
        self.files.push(File { path: path.to_owned(), lines });
        self.end += text.len() + 1;
        match DeTable::parse(text) {
            Ok(table) => self.table(base, base + table.span().start, table.into_inner()),
            Err(error) => {
                let at = error.span().map_or(0, |span| span.start);
                Err(self.error(base + at, error.message()))
            }
        }
    }

    /// The path of the file in which an offset is; of the command line, that of the experiment.
    pub(crate) fn path(&self, at: usize) -> &Path {
        self.file(at).map_or(Path::new(""), |file| &file.path)
    }

    fn file(&self, at: usize) -> Option<&File> {
        let begins = |file: &&File| at != COMMAND_LINE && file.lines.first() <= Some(&at);
        self.files.iter().rev().find(begins).or(self.files.first())
    }

    /// An error at this offset.
    pub(crate) fn error(&self, at: usize, problem: &str) -> LabError {
        if at == COMMAND_LINE {
            return LabError::Request(LabError::one_line(&format!("--over: {problem}")));
        }
        LabError::Experiment {
            file: LabError::one_line(&self.path(at).display().to_string()),
            line: self.line(at),
            problem: LabError::one_line(problem),
        }
    }

    /// `file:line` of an offset.
    pub(crate) fn place(&self, at: usize) -> String {
        if at == COMMAND_LINE {
            return "--over".into();
        }
        let file = LabError::one_line(&self.path(at).display().to_string());
        format!("{file}:{}", self.line(at))
    }

    /// The line of an offset, from 1.
    fn line(&self, at: usize) -> usize {
        self.file(at).map_or(0, |file| file.lines.partition_point(|start| *start <= at))
    }

    fn table(&self, base: usize, at: usize, table: DeTable<'_>) -> Result<Node, LabError> {
        let mut entries = Vec::new();
        for (key, value) in table {
            let place = base + key.span().start;
            let node = self.node(base, value)?;
            entries.push(Entry { key: key.into_inner().into_owned(), at: place, node });
        }
        entries.sort_by_key(|entry| entry.at);
        Ok(Node { at, value: Value::Table(entries) })
    }

    fn node(&self, base: usize, value: Spanned<DeValue<'_>>) -> Result<Node, LabError> {
        let at = base + value.span().start;
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
                let nodes = items.into_iter().map(|item| self.node(base, item));
                Value::Array(nodes.collect::<Result<_, _>>()?)
            }
            DeValue::Table(table) => return self.table(base, at, table),
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
        short(&text)
    }
}
