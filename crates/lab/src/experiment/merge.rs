//! Laying a variant over the experiment: tables merge key by key, values are replaced whole.

use super::document::{Document, Entry, Node, Value};
use super::keys::nearest;
use super::{control, job, subnet, traffic};
use crate::LabError;
use clearlane_ib::ticked;
use clearlane_subnet::engines;

/// Keys of one table that exclude each other: naming one in a variant drops the others.
const EXCLUSIVE: &[(&str, &[&str])] =
    &[("fabric", &["file", "build"]), ("subnet", &["engine", "forwarding"])];

/// What a flow group cannot do without: open-loop traffic, and a program.
const REQUIRED: [&[&str]; 2] = [&["class", "pattern", "load", "size"], &["class", "program"]];

/// The tables a variant may change.
pub(crate) const SECTIONS: &[&str] = &["fabric", "subnet", "sim", "control", "traffic"];

/// The experiment as one variant sees it.
pub(crate) fn merged(document: &Document, base: &Node, over: &Node) -> Result<Node, LabError> {
    let mut entries: Vec<Entry> = base.entries().unwrap_or_default().to_vec();
    for change in over.entries().unwrap_or_default() {
        if !SECTIONS.contains(&change.key.as_str()) {
            continue;
        }
        match entries.iter_mut().find(|entry| entry.key == change.key) {
            None => entries.push(change.clone()),
            Some(entry) if change.key == "traffic" => {
                entry.node = groups(document, &entry.node, &change.node)?;
            }
            Some(entry) => entry.node = section(&change.key, &entry.node, &change.node),
        }
    }
    Ok(Node { at: over.at, value: Value::Table(entries) })
}

/// Whether a value for `key` makes one of the same table go whose key is `other`.
pub(crate) fn drops(table: &str, key: &str, other: &str) -> bool {
    let rivals = |keys: &&[&str]| key != other && keys.contains(&key) && keys.contains(&other);
    let demand = match key {
        "program" => traffic::OF_OPEN_LOOP.contains(&other),
        "pattern" => other == "program" || job::KEYS.contains(&other),
        _ => false,
    };
    (table == "traffic" && demand)
        || EXCLUSIVE.iter().filter(|(name, _)| *name == table).any(|(_, keys)| rivals(keys))
}

/// A table with changes laid over it; `name` is the section's, for keys that exclude each other.
pub(crate) fn section(name: &str, base: &Node, over: &Node) -> Node {
    let (Value::Table(under), Value::Table(changes)) = (&base.value, &over.value) else {
        // A fault of type is found where the section is read.
        return over.clone();
    };
    let mut entries = under.clone();
    if name == "traffic" {
        // A program takes the place of open-loop traffic, and a pattern that of a program.
        let dropped = |key: &str| changes.iter().any(|change| drops(name, &change.key, key));
        entries.retain(|entry| !dropped(&entry.key));
    }
    for change in changes {
        let group = EXCLUSIVE.iter().filter(|(table, _)| *table == name).map(|(_, keys)| *keys);
        let rivals = group.flatten().copied().collect::<Vec<_>>();
        if rivals.contains(&change.key.as_str()) {
            entries.retain(|entry| !rivals.contains(&entry.key.as_str()));
            // A table file belongs to the engine that reads it.
            let reads = change.key == "engine"
                && matches!(&change.node.value, Value::Text(engine) if engine == "file");
            if name == "subnet" && !reads {
                entries.retain(|entry| entry.key != "lft");
            }
            // So do roots.
            let rooted = matches!(&change.node.value, Value::Text(name)
                if engines::engine(name).is_ok_and(|entry| entry.roots));
            if name == "subnet" && !rooted {
                entries.retain(|entry| entry.key != "roots");
            }
        }
        let mut change = change.clone();
        let merges = name == control::TABLE || (name == "subnet" && change.key == subnet::LANES);
        if merges && let Some(under) = entries.iter().find(|entry| entry.key == change.key) {
            // The parameters of a mechanism or a lane policy merge as well.
            change.node = section("", &under.node, &change.node);
        }
        entries.retain(|entry| entry.key != change.key);
        entries.push(change);
    }
    if name == control::TABLE {
        drop_unused(&mut entries, changes);
    }
    Node { at: over.at, value: Value::Table(entries) }
}

/// Parameters belong to the mechanism that is named: those of one that `changes` replace go.
fn drop_unused(entries: &mut Vec<Entry>, changes: &[Entry]) {
    let is_table = |entry: &Entry| entry.node.entries().is_some();
    if changes.iter().all(is_table) {
        return;
    }
    let named: Vec<String> = entries
        .iter()
        .filter_map(|entry| match &entry.node.value {
            Value::Text(name) => Some(name.clone()),
            _ => None,
        })
        .collect();
    let named: Vec<&str> = named.iter().map(String::as_str).collect();
    entries.retain(|entry| {
        let changed = changes.iter().any(|change| change.key == entry.key);
        changed || !control::is_unnamed(&entry.key, &named)
    });
}

/// Whether a table says all that a flow group needs.
fn is_whole(group: &Node) -> bool {
    let has = |keys: &&[&str]| keys.iter().all(|key| group.get(key).is_some());
    REQUIRED.iter().any(has)
}

/// Traffic groups are matched by name; a new name adds a group.
fn groups(document: &Document, base: &Node, over: &Node) -> Result<Node, LabError> {
    let (Value::Array(under), Value::Array(changes)) = (&base.value, &over.value) else {
        return Ok(over.clone());
    };
    let mut groups = under.clone();
    for change in changes {
        let name = |node: &Node| match node.get("name").map(|node| &node.value) {
            Some(Value::Text(name)) => Some(name.clone()),
            _ => None,
        };
        let Some(wanted) = name(change) else {
            let text = "traffic of a variant lacks `name`; name the group that is changed";
            return Err(document.error(change.at, text));
        };
        match groups.iter_mut().find(|group| name(group).as_ref() == Some(&wanted)) {
            Some(group) => *group = section("traffic", group, change),
            None if is_whole(change) => groups.push(change.clone()),
            None => {
                // Half a group is not a new one but an old one misspelt.
                let names: Vec<String> = under.iter().filter_map(name).collect();
                let near = nearest(&wanted, names.iter().map(String::as_str));
                let problem = format!(
                    "traffic names no group {} of the experiment{near}; a new one needs {}, or {}",
                    ticked(&wanted),
                    REQUIRED[0].join(", "),
                    REQUIRED[1].join(", ")
                );
                return Err(document.error(change.at, &problem));
            }
        }
    }
    Ok(Node { at: over.at, value: Value::Array(groups) })
}
