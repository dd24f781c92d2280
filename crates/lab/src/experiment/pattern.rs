//! `pattern` and `program` of a flow group: serde reads their parameters, and what it says of a
//! fault is put into the words, the place and the remedy of every other fault.

use super::keys::{Field, Keys, nearest};
use crate::LabError;
use clearlane_ib::ticked;
use clearlane_workload::patterns::{self, PatternSpec};
use clearlane_workload::programs::{self, ProgramSpec};
use serde::de::DeserializeOwned;

/// The pattern; the file it reads is where it lies.
pub(super) fn read(field: &Field<'_>) -> Result<PatternSpec, LabError> {
    let known = patterns::ALL.iter().map(|entry| (entry.name, entry.parameters));
    let mut spec: PatternSpec = kind(field, "pattern", "uniform", known)?;
    if let Some(file) = spec.table() {
        file.path = field.path_of(&file.path).to_string_lossy().into_owned();
    }
    Ok(spec)
}

/// The program.
pub(super) fn program(field: &Field<'_>) -> Result<ProgramSpec, LabError> {
    let known = programs::ALL.iter().map(|entry| (entry.name, entry.parameters));
    let mut spec: ProgramSpec = kind(field, "program", "ping-pong", known)?;
    if let Some(file) = spec.trace_file() {
        file.path = field.path_of(&file.path).to_string_lossy().into_owned();
    }
    Ok(spec)
}

/// One of the kinds of a registry: their names and what their parameters are.
fn kind<T: DeserializeOwned>(
    field: &Field<'_>,
    what: &str,
    example: &str,
    known: impl Iterator<Item = (&'static str, &'static str)> + Clone,
) -> Result<T, LabError> {
    let keys = field.any_keys()?;
    let kind = keys.required("kind", &format!("\"{example}\""))?;
    let name = kind.text()?;
    let Some(entry) = known.clone().find(|entry| entry.0 == name) else {
        let names = known.map(|entry| entry.0);
        let near = match nearest(name, names.clone()) {
            near if near.is_empty() => format!("; write {}", names.collect::<Vec<_>>().join(", ")),
            near => near,
        };
        return Err(kind.error(&format!("is no {what}{near}")));
    };
    let table = field.node.plain();
    parse(&table).map_err(|problem| fault::<T>(field, &keys, entry, &table, &problem))
}

fn parse<T: DeserializeOwned>(table: &toml::Value) -> Result<T, String> {
    table.clone().try_into().map_err(|error: toml::de::Error| error.message().to_owned())
}

/// What serde says, at the key it is about.
fn fault<T: DeserializeOwned>(
    field: &Field<'_>,
    keys: &Keys<'_>,
    (name, parameters): (&str, &str),
    table: &toml::Value,
    problem: &str,
) -> LabError {
    let takes = format!("`{name}` takes {parameters}");
    let entries = field.node.entries().unwrap_or_default();
    if let Some(missing) = problem.strip_prefix("missing field ") {
        return keys.error(&format!("{} lacks {missing}; {takes}", keys.name()));
    }
    if let Some(rest) = problem.strip_prefix("unknown field ") {
        // `unknown field `x`, expected one of `a`, `b``: every second piece is a word.
        let mut words = rest.split('`').skip(1).step_by(2);
        let wrong = words.next().unwrap_or_default();
        let near = nearest(wrong, words);
        let at = entries.iter().find(|entry| entry.key == wrong).map_or(field.node.at, |e| e.at);
        let text = format!("{} has no key {}{near}; {takes}", keys.name(), ticked(wrong));
        return keys.error_at(at, &text);
    }
    // Serde does not say which value it means: it is the one without which it says another thing.
    let other = |key: &str| {
        let mut rest = table.clone();
        rest.as_table_mut().and_then(|rest| rest.remove(key));
        parse::<T>(&rest).err().as_deref() != Some(problem)
    };
    let mut values = entries.iter().filter(|entry| entry.key != "kind");
    match values.find(|entry| other(&entry.key)) {
        Some(wrong) => {
            let value = wrong.node.quoted();
            // A quantity says which units there are; serde's own words name types of Rust.
            let units = problem.split_once(" is not a ").filter(|(_, rest)| rest.contains("write"));
            let why = units.map_or(String::new(), |(_, rest)| format!(": it is not a {rest}"));
            let key = &wrong.key;
            let text = format!("{}.{key} = {value} does not fit{why}; {takes}", keys.name());
            keys.error_at(wrong.node.at, &text)
        }
        None => field.error(&format!("does not fit; {takes}")),
    }
}
