//! `include`: files whose tables stand under those of the file that names them.

use super::document::{Document, Entry, Node, Value};
use super::keys::{Field, Keys};
use super::merge::{self, SECTIONS};
use super::{FILE_BYTES_MAX, KEYS};
use crate::{LabError, text};
use clearlane_ib::quoted;
use std::path::PathBuf;

/// Files within each other, at most.
const DEPTH_MAX: usize = 8;
/// Files in all, at most.
const FILES_MAX: usize = 100;

/// Lists of tables to which a file adds its own.
const LISTS: &[&str] = &["variant", "axis", "published"];

/// A root with what it includes under it. A file may leave out whatever the one that includes it
/// has.
pub(super) fn included(document: &mut Document, root: Node) -> Result<Node, LabError> {
    let mut left = FILES_MAX;
    let mut above = vec![document.path(root.at).to_owned()];
    within(document, root, &mut above, &mut left)
}

fn within(
    document: &mut Document,
    mut root: Node,
    above: &mut Vec<PathBuf>,
    left: &mut usize,
) -> Result<Node, LabError> {
    let named = names(document, &root)?;
    if let Value::Table(entries) = &mut root.value {
        entries.retain(|entry| entry.key != "include");
    }
    let mut base: Option<Node> = None;
    for (at, path) in named {
        let fault = |problem: &str| {
            let problem = format!("include = {} {problem}", quoted(&path.to_string_lossy()));
            Err(document.error(at, &problem))
        };
        if above.contains(&path) {
            return fault("includes itself; leave it out");
        }
        if above.len() > DEPTH_MAX || *left == 0 {
            let problem = format!("is one file of more than {FILES_MAX}, or {DEPTH_MAX} deep");
            return fault(&problem);
        }
        *left -= 1;
        let text = match text::read(&path, FILE_BYTES_MAX) {
            Ok(text) => text,
            Err(error) => return fault(&format!("cannot be read: {error}")),
        };
        let node = document.parse_more(&text, &path)?;
        Keys::of(document, "", &node)?.only(KEYS)?;
        above.push(path);
        let node = within(document, node, above, left)?;
        above.pop();
        base = Some(match base {
            None => node,
            Some(base) => laid_over(document, &base, &node)?,
        });
    }
    match base {
        None => Ok(root),
        Some(base) => laid_over(document, &base, &root),
    }
}

/// The files that a root names, and where.
fn names(document: &Document, root: &Node) -> Result<Vec<(usize, PathBuf)>, LabError> {
    let Some(node) = root.get("include") else { return Ok(Vec::new()) };
    let field = Field::new(document, "include".into(), node);
    let named = |field: &Field<'_>| Ok((field.node.at, field.path_of(field.text()?)));
    match &node.value {
        Value::Text(_) => Ok(vec![named(&field)?]),
        Value::Array(_) => field.items()?.iter().map(named).collect(),
        _ => Err(field.error("is neither a path nor a list of paths")),
    }
}

/// A file over those it includes: tables merge as those of a variant do, lists follow each other,
/// other values are replaced.
fn laid_over(document: &Document, base: &Node, over: &Node) -> Result<Node, LabError> {
    let merged = merge::merged(document, base, over)?;
    let Value::Table(mut entries) = merged.value else { return Ok(over.clone()) };
    for change in over.entries().unwrap_or_default() {
        if SECTIONS.contains(&change.key.as_str()) {
            continue;
        }
        match entries.iter_mut().find(|entry| entry.key == change.key) {
            None => entries.push(change.clone()),
            Some(entry) => entry.node = joined(entry, change),
        }
    }
    Ok(Node { at: over.at, value: Value::Table(entries) })
}

fn joined(entry: &Entry, change: &Entry) -> Node {
    match (&entry.node.value, &change.node.value) {
        (Value::Array(base), Value::Array(more)) if LISTS.contains(&entry.key.as_str()) => {
            let all = base.iter().chain(more).cloned().collect();
            Node { at: change.node.at, value: Value::Array(all) }
        }
        _ => merge::section("", &entry.node, &change.node),
    }
}
