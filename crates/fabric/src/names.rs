//! Names of nodes: those of a node name map, and what tells nodes of one name apart.
//!
//! Source of the map's format: `ibnetdiscover(8)`, "NODE NAME MAP FILE FORMAT": a line has a node
//! GUID and a name in double quotes; `#` begins a comment.

use crate::formats::FormatError;
use crate::wording::clean;
use crate::{Fabric, NodeId};
use clearlane_ib::{Guid, quoted};
use std::collections::{BTreeMap, BTreeSet};

/// Names by node GUID, as administrators give them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeNameMap {
    names: BTreeMap<Guid, String>,
}

impl NodeNameMap {
    /// Reads a map; `file` is named in errors. Fails on a line that is neither a GUID with a name
    /// nor a comment.
    pub fn read(text: &str, file: &str) -> Result<Self, FormatError> {
        let mut names = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let Some((guid, name)) = entry(line) else {
                let expected = "a node GUID and a name in double quotes";
                return Err(FormatError::syntax(file, index + 1, expected, line));
            };
            // ibnetdiscover takes the first of several, too.
            names.entry(guid).or_insert_with(|| clean(name));
        }
        Ok(NodeNameMap { names })
    }

    /// How many nodes it names.
    pub fn count(&self) -> usize {
        self.names.len()
    }

    /// Gives nodes their names; returns how many have got one. GUIDs the fabric does not have are
    /// passed over: a map is of more than one fabric as a rule.
    pub fn apply(&self, fabric: &mut Fabric) -> usize {
        let mut ports: BTreeMap<Guid, NodeId> = BTreeMap::new();
        for (number, node) in fabric.nodes().iter().enumerate().filter(|(_, n)| !n.is_switch()) {
            let guids = node.ports.iter().map(|port| port.guid).filter(|guid| guid.0 != 0);
            ports.extend(guids.map(|guid| (guid, NodeId(number as u32))));
        }
        let mut named = 0;
        for (guid, name) in &self.names {
            // Lists of ports have no GUIDs of adapters: who makes a map of them takes the ports'.
            if let Some(node) = fabric.by_guid(*guid).or_else(|| ports.get(guid).copied()) {
                fabric.node_mut(node).name.clone_from(name);
                named += 1;
            }
        }
        named
    }
}

/// `0x0002c902004048b8 "leaf 3"`, with a comment behind it or none.
fn entry(line: &str) -> Option<(Guid, &str)> {
    let (guid, rest) = line.split_once(char::is_whitespace)?;
    let guid = guid.strip_prefix("0x").and_then(|digits| Guid::from_hex(digits).ok())?;
    let (name, rest) = rest.trim_start().strip_prefix('"')?.split_once('"')?;
    let rest = rest.trim_start();
    (!name.is_empty() && (rest.is_empty() || rest.starts_with('#'))).then_some((guid, name))
}

impl Fabric {
    /// Puts a GUID behind names that several nodes have, so that every name is of one node: of a
    /// switch its own, of an adapter that of its first port, which every list of cables has.
    /// Returns how many nodes have got another name.
    pub fn tell_apart(&mut self) -> usize {
        let mut seen = BTreeSet::new();
        let again = self.nodes().iter().filter(|node| !seen.insert(node.name.as_str()));
        let repeated: BTreeSet<String> = again.map(|node| node.name.clone()).collect();
        let mut renamed = 0;
        for id in (0..self.nodes().len() as u32).map(NodeId) {
            if repeated.contains(&self.node(id).name) {
                let node = self.node_mut(id);
                let of_port = node.ports.iter().map(|port| port.guid).find(|guid| guid.0 != 0);
                let guid = of_port.unwrap_or(node.guid);
                node.name = format!("{} {guid}", node.name).trim_start().to_owned();
                renamed += 1;
            }
        }
        renamed
    }
}

impl FormatError {
    fn syntax(file: &str, line: usize, expected: &'static str, found: &str) -> Self {
        let problem = crate::formats::Problem::Syntax { expected, found: quoted(found) };
        FormatError { file: clean(file), line, problem }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topologies::build;
    use proptest::prelude::*;

    #[test]
    fn nodes_of_one_name_get_their_guids() {
        let mut fabric = build("star:3").unwrap();
        for id in [1, 2] {
            fabric.node_mut(NodeId(id)).name = "MT25408".into();
        }
        fabric.node_mut(NodeId(3)).name = "io".into();
        let before: Vec<String> = fabric.nodes().iter().map(|node| node.name.clone()).collect();
        assert_eq!(fabric.tell_apart(), 2);
        for (node, before) in fabric.nodes().iter().zip(&before) {
            let wanted = match before.as_str() {
                "MT25408" => format!("MT25408 {}", node.ports[1].guid),
                other => other.to_owned(),
            };
            assert_eq!(node.name, wanted);
        }
        assert_eq!(fabric.tell_apart(), 0);
    }

    #[test]
    fn a_map_names_the_nodes_it_knows() {
        let mut fabric = build("star:2").unwrap();
        let guid = fabric.node(NodeId(1)).guid;
        let text =
            format!("# ours\n\n{guid} \"storage 1\"  # rack 3\n{guid} \"late\"\n0x9 \"x\"\n");
        let map = NodeNameMap::read(&text, "map").unwrap();
        assert_eq!((map.count(), map.apply(&mut fabric)), (2, 1));
        assert_eq!(fabric.node(NodeId(1)).name, "storage 1");
        let port = fabric.node(NodeId(2)).ports[1].guid;
        let map = NodeNameMap::read(&format!("{port} \"by port\"\n"), "map").unwrap();
        assert_eq!(map.apply(&mut fabric), 1);
        assert_eq!(fabric.node(NodeId(2)).name, "by port");
        let error = NodeNameMap::read("0x1 \"a\"\n0x2 a\n", "map").unwrap_err().to_string();
        assert!(error.starts_with("map:2: expected a node GUID and a name"), "{error}");
    }

    proptest! {
        #[test]
        fn no_map_is_too_odd(text in "(0x[0-9a-g]{0,17}|[\" #\\n\\PC]){0,40}") {
            if let Ok(map) = NodeNameMap::read(&text, "map") {
                prop_assert!(map.count() <= text.lines().count());
            }
        }
    }
}
