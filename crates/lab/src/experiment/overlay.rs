//! A value that takes the place of what the file says, in every variant: a point of a sweep.

use super::document::{COMMAND_LINE, Document, Entry, Node, Value};
use super::keys::nearest;
use super::merge::{self, SECTIONS};
use super::reference::Key;
use super::{control, reference, traffic};
use crate::LabError;
use clearlane_ib::{short, ticked};

/// A key and its value.
#[derive(Clone, Debug)]
pub(crate) struct Overlay {
    /// The key's words: `["sim", "buffer"]`, `["traffic", "hot", "load"]`.
    pub(crate) path: Vec<String>,
    /// The value, and where it stands.
    pub(crate) node: Node,
}

/// The words a key begins with.
const TABLES: [&str; 6] = ["run", "fabric", "subnet", "sim", "control", "traffic"];

impl Overlay {
    /// The experiment, or what one variant sees of it, with this value. Fails if the key cannot be
    /// one; whether its table has it and the value fits is found where the table is read.
    pub(crate) fn laid_over(&self, document: &Document, root: &Node) -> Result<Node, LabError> {
        let fault = |problem: &str| Err(document.error(self.node.at, problem));
        let key = dotted(&self.path);
        let [table, rest @ ..] = self.path.as_slice() else {
            return fault("a key is empty; name one such as traffic.load");
        };
        if !TABLES.contains(&table.as_str()) || rest.is_empty() {
            let names: Vec<String> = reference::swept().iter().map(Key::dotted).collect();
            let last = self.path.last().map_or("", String::as_str);
            let whole = names.iter().find(|name| name.rsplit('.').next() == Some(last));
            let near = match whole {
                Some(name) => format!("; write {name}"),
                None => nearest(&key, names.iter().map(String::as_str)),
            };
            return fault(&format!("{} is no key of an experiment{near}", ticked(&key)));
        }
        let Value::Table(entries) = &root.value else { return Ok(root.clone()) };
        let mut entries = entries.clone();
        if table == control::TABLE && !entries.iter().any(|entry| entry.key == *table) {
            let node = Node { at: self.node.at, value: Value::Table(Vec::new()) };
            entries.push(Entry { key: table.clone(), at: self.node.at, node });
        }
        // A variant without the mechanism has nothing to vary; a sweep of it alone is refused.
        if let (control::TABLE, [mechanism, _, ..]) = (table.as_str(), rest)
            && let Some(entry) = entries.iter().find(|entry| entry.key == *table)
            && control::is_unnamed(mechanism, &control::named(&entry.node))
        {
            return Ok(root.clone());
        }
        let place = entries.iter_mut().find(|entry| entry.key == *table);
        let Some(entry) = place else {
            let key = short(&key);
            return fault(&format!("{key}: the experiment has no table [{table}]; add it"));
        };
        entry.node = match table.as_str() {
            "traffic" => self.over_groups(document, &entry.node, rest)?,
            _ => set(table, &entry.node, rest, &self.node),
        };
        Ok(Node { at: root.at, value: Value::Table(entries) })
    }

    /// The mechanism whose parameter it is.
    pub(crate) fn mechanism(path: &[String]) -> Option<&str> {
        match path {
            [table, mechanism, _, ..] if table == control::TABLE => Some(mechanism),
            _ => None,
        }
    }

    /// Whether it changes what all variants have in common.
    pub(crate) fn is_of_plan(&self) -> bool {
        self.path.first().is_some_and(|table| table == "run")
    }

    /// `traffic.hot.load` means that group, `traffic.load` all of them.
    fn over_groups(
        &self,
        document: &Document,
        groups: &Node,
        rest: &[String],
    ) -> Result<Node, LabError> {
        let Value::Array(items) = &groups.value else { return Ok(groups.clone()) };
        let names: Vec<&str> =
            items.iter().map(|group| group_name(group).unwrap_or_default()).collect();
        let one = names.iter().position(|name| rest.len() > 1 && *name == rest[0]);
        if one.is_none() && !traffic::KEYS.contains(&rest[0].as_str()) {
            let all = names.iter().chain(traffic::KEYS).copied();
            let near = nearest(&rest[0], all);
            let word = ticked(&rest[0]);
            let problem = format!("traffic has neither a group nor a key {word}{near}");
            return Err(document.error(self.node.at, &problem));
        }
        let changed = |(index, item): (usize, &Node)| match one {
            Some(one) if one != index => item.clone(),
            Some(_) => set("traffic", item, &rest[1..], &self.node),
            None => set("traffic", item, rest, &self.node),
        };
        let items = items.iter().enumerate().map(changed).collect();
        Ok(Node { at: groups.at, value: Value::Array(items) })
    }
}

/// The keys that a variant sets itself, to the last: `["traffic", "hot", "load"]` of a group that
/// the experiment has.
pub(crate) fn own(base: &Node, variant: &Node) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for entry in variant.entries().unwrap_or_default() {
        match (&entry.node.value, base.get(&entry.key).map(|node| &node.value)) {
            (Value::Array(groups), Some(Value::Array(known))) if entry.key == "traffic" => {
                let known: Vec<&str> = known.iter().filter_map(group_name).collect();
                for group in groups {
                    // A group that only this variant has makes it differ whatever is varied.
                    if let Some(name) = group_name(group).filter(|name| known.contains(name)) {
                        leaves(group, &mut vec![entry.key.clone(), name.to_owned()], &mut all);
                    }
                }
            }
            _ if SECTIONS.contains(&entry.key.as_str()) => {
                leaves(&entry.node, &mut vec![entry.key.clone()], &mut all);
            }
            _ => {}
        }
    }
    all
}

fn leaves(node: &Node, path: &mut Vec<String>, all: &mut Vec<Vec<String>>) {
    match node.entries() {
        None => all.push(path.clone()),
        Some(entries) => {
            for entry in entries {
                path.push(entry.key.clone());
                leaves(&entry.node, path, all);
                path.pop();
            }
        }
    }
}

/// Whether a value for the key `path` takes the place of what a variant says of the key `own`.
pub(crate) fn replaces(path: &[String], own: &[String]) -> bool {
    let within = |a: &[String], b: &[String]| a.starts_with(b) || b.starts_with(a);
    match (path, own) {
        ([table, rest @ ..], [of, group, key @ ..]) if table == "traffic" && of == table => {
            // `traffic.hot.load` means that group, `traffic.load` all of them.
            let one = rest.len() > 1 && rest[0] == *group;
            let rest = if one { &rest[1..] } else { rest };
            let of_demand = rest.first().zip(key.first());
            within(rest, key) || of_demand.is_some_and(|(a, b)| merge::drops(table, a, b))
        }
        ([table, key, ..], [of, drops, ..]) if table == of => {
            within(path, own) || merge::drops(table, key, drops)
        }
        _ => false,
    }
}

fn group_name(group: &Node) -> Option<&str> {
    match group.get("name").map(|node| &node.value) {
        Some(Value::Text(name)) => Some(name),
        _ => None,
    }
}

/// A table with the value at the end of a path of keys; tables on the way are made.
fn set(section: &str, table: &Node, path: &[String], value: &Node) -> Node {
    let [key, rest @ ..] = path else { return value.clone() };
    let node = match (rest.is_empty(), table.get(key)) {
        (true, _) => value.clone(),
        (false, Some(inner)) if inner.entries().is_some() => set("", inner, rest, value),
        (false, _) => {
            let empty = Node { at: value.at, value: Value::Table(Vec::new()) };
            set("", &empty, rest, value)
        }
    };
    let entry = Entry { key: key.clone(), at: value.at, node };
    let over = Node { at: table.at, value: Value::Table(vec![entry]) };
    merge::section(section, table, &over)
}

/// A key as TOML writes it: `traffic."all to all".load`.
pub(crate) fn dotted(path: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let word = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => toml::Value::String(word.clone()).to_string(),
    };
    path.iter().map(word).collect::<Vec<_>>().join(".")
}

/// A value of the command line: TOML where it is one (`0.5`, `["a"]`, `{ kind = "uniform" }`), else
/// a text (`4 KiB`, `min-hop`).
pub(crate) fn value(text: &str) -> Node {
    let text = text.trim();
    let parsed = Document::parse(&format!("value = {text}\n"), "".as_ref());
    let only = |root: &Node| root.entries().is_some_and(|entries| entries.len() == 1);
    let node = match parsed {
        Ok((_, root)) if only(&root) => root.get("value").cloned(),
        _ => None,
    };
    let mut node = node.unwrap_or(Node { at: 0, value: Value::Text(text.to_owned()) });
    node.place_at(COMMAND_LINE);
    node
}

/// A key of the command line as its words. Fails if it is none.
pub(crate) fn path(text: &str) -> Result<Vec<String>, String> {
    let fault = || format!("{} is no key; write one such as traffic.load", ticked(text));
    let (_, root) = Document::parse(&format!("{text} = 0\n"), "".as_ref()).map_err(|_| fault())?;
    let mut path = Vec::new();
    let mut node = &root;
    while let Some([entry]) = node.entries() {
        path.push(entry.key.clone());
        node = &entry.node;
    }
    match node.value {
        Value::Integer(0) if !path.is_empty() => Ok(path),
        _ => Err(fault()),
    }
}

const _: () = assert!(SECTIONS.len() + 1 == TABLES.len());
