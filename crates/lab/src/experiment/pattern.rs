//! `pattern` of a flow group: serde reads its parameters, and what it says of a fault is put into
//! the words, the place and the remedy of every other fault.

use super::fabric::path;
use super::keys::{Field, Keys, nearest, quote};
use crate::LabError;
use clearlane_workload::patterns::{self, Entry, PatternSpec};
use std::path::{Path, PathBuf};

/// The pattern and, for a matrix, where its table lies.
pub(super) fn read(
    field: &Field<'_>,
    folder: &Path,
) -> Result<(PatternSpec, Option<PathBuf>), LabError> {
    let keys = field.any_keys()?;
    let kind = keys.required("kind", "\"uniform\"")?;
    let name = kind.text()?;
    let Some(entry) = patterns::ALL.iter().find(|entry| entry.name == name) else {
        let names = patterns::ALL.iter().map(|entry| entry.name);
        return Err(kind.error(&format!("is no pattern{}", nearest(name, names))));
    };
    let table = field.node.plain();
    let mut spec = parse(&table).map_err(|problem| fault(field, &keys, entry, &table, &problem))?;
    let mut matrix = None;
    if let PatternSpec::Matrix(params) = &mut spec {
        let file = path(folder, &params.file);
        params.file = file.to_string_lossy().into_owned();
        matrix = Some(file);
    }
    Ok((spec, matrix))
}

fn parse(table: &toml::Value) -> Result<PatternSpec, String> {
    table.clone().try_into().map_err(|error: toml::de::Error| error.message().to_owned())
}

/// What serde says, at the key it is about.
fn fault(
    field: &Field<'_>,
    keys: &Keys<'_>,
    entry: &Entry,
    table: &toml::Value,
    problem: &str,
) -> LabError {
    let takes = format!("`{}` takes {}", entry.name, entry.parameters);
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
        let text = format!("{} has no key {}{near}; {takes}", keys.name(), quote(wrong));
        return keys.error_at(at, &text);
    }
    // Serde does not say which value it means: it is the one without which it says another thing.
    let other = |key: &str| {
        let mut rest = table.clone();
        rest.as_table_mut().and_then(|rest| rest.remove(key));
        parse(&rest).err().as_deref() != Some(problem)
    };
    let mut values = entries.iter().filter(|entry| entry.key != "kind");
    match values.find(|entry| other(&entry.key)) {
        Some(wrong) => {
            let value = wrong.node.quoted();
            let text = format!("{}.{} = {value} does not fit; {takes}", keys.name(), wrong.key);
            keys.error_at(wrong.node.at, &text)
        }
        None => field.error(&format!("does not fit; {takes}")),
    }
}
