//! What it is: the list of `ibnetdiscover -p`, one line per port:
//! `CA   182  1 0x… 4x QDR - SW    18 18 0x… ( 'host' - 'switch' )`, without the part after the
//! rate but the name where nothing is plugged in.
//!
//! GUIDs are those of ports. A switch has the same on all of them, so it is the node's. An
//! adapter's is not: its ports are taken as one node if they have one description, different port
//! numbers and GUIDs as far apart as those numbers. The node's GUID is taken to be that of a port
//! less the port's number, as most vendors number them and ibsim does; where another node has that,
//! the GUID of the first port met.
//! The number of ports is not in the file: of an adapter it is the highest that is listed, of all
//! switches the highest of any.

use super::assembly::{Assembly, Listing};
use super::{Entry, FormatError, OddityKind, Reader, Reading};
use crate::wording::clean;
use crate::{Endpoint, Node, NodeId, NodeKind};
use clearlane_ib::{Guid, Lid, LinkSpeed, LinkWidth, PortNumber, quoted};
use std::collections::{BTreeMap, BTreeSet};

/// The format's entry.
pub const ENTRY: Entry = Entry {
    name: "ibnetdiscover -p",
    summary: "port list of ibnetdiscover -p",
    endings: &[],
    reader: Some(Reader { sniff, read }),
    write: None,
};

/// One end as listed.
#[derive(Clone, Copy)]
struct End {
    kind: NodeKind,
    router: bool,
    lid: Option<Lid>,
    port: PortNumber,
    guid: Guid,
}

/// One line: an end, its rate, and what it leads to.
struct Row<'t> {
    end: End,
    name: &'t str,
    width: Option<LinkWidth>,
    speed: Option<LinkSpeed>,
    peer: Option<(End, &'t str)>,
}

fn sniff(line: &str) -> bool {
    row(line).is_some()
}

/// Reads a whole file; `file` is named in errors.
pub fn read(text: &str, file: &str) -> Result<Reading, FormatError> {
    let mut reader = Report {
        assembly: Assembly::new(file),
        by_guid: BTreeMap::new(),
        adapters: BTreeMap::new(),
    };
    for (index, line) in text.lines().enumerate() {
        let (number, line) = (index + 1, line.trim());
        match row(line) {
            Some(row) => reader.row(number, &row)?,
            None if line.is_empty() => {}
            None if looks_like_row(line) => {
                let expected = "a port line such as SW 18 1 0x… 4x QDR - CA 2 1 0x… ( 'a' - 'b' )";
                return Err(reader.assembly.syntax(number, expected, line));
            }
            None => reader.assembly.noise(number, line),
        }
    }
    reader.number_adapters();
    reader.size_switches()?;
    // What finds nodes is as large as what is found: it goes before the fabric is put together.
    drop((reader.by_guid, reader.adapters));
    reader.assembly.finish()
}

/// A line that starts as a port does but does not parse is a damaged one, not noise.
fn looks_like_row(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let kind = words.next().is_some_and(|word| kind(word).is_some());
    kind && words.next().is_none_or(|word| word.bytes().all(|b| b.is_ascii_digit()))
}

struct Report<'t> {
    assembly: Assembly<'t>,
    /// The node with a port of this GUID.
    by_guid: BTreeMap<Guid, NodeId>,
    /// Adapters by description and port GUID less port number, which all ports of one share.
    adapters: BTreeMap<(&'t str, i128), NodeId>,
}

impl<'t> Report<'t> {
    fn row(&mut self, line: usize, row: &Row<'t>) -> Result<(), FormatError> {
        let from = self.end(line, row.end, row.name)?;
        let Some((peer, name)) = row.peer else {
            let text = format!("{}[{}] leads nowhere", quoted(row.name), row.end.port);
            self.assembly.odd(line, OddityKind::NoPeer, text);
            return Ok(());
        };
        let to = self.end(line, peer, name)?;
        let (width, speed) = (row.width, row.speed);
        self.assembly.listing(Listing { line, from, to, width, speed })
    }

    /// The node and port of an end; both are made where they are new.
    fn end(&mut self, line: usize, end: End, name: &'t str) -> Result<Endpoint, FormatError> {
        let node = match self.by_guid.get(&end.guid) {
            Some(node) => *node,
            None => self.node(line, end, name.trim())?,
        };
        self.assembly.same_node(line, node, end.kind, None)?;
        let place = Endpoint { node, port: end.port };
        self.assembly.grow(line, place)?;
        if end.kind == NodeKind::ChannelAdapter {
            let ports = &mut self.assembly.nodes[node.index()].ports;
            ports[usize::from(end.port.value())].guid = end.guid;
        }
        self.assembly.lid(line, place, end.lid);
        Ok(place)
    }

    /// Gives switches as many ports as the largest has: of one whose last ports are empty the file
    /// does not say how many there are, and tables may name them.
    fn size_switches(&mut self) -> Result<(), FormatError> {
        let nodes = self.assembly.nodes.iter();
        let most = nodes.filter(|node| node.is_switch()).map(Node::port_count).max();
        let Some(port) = most.and_then(PortNumber::new) else { return Ok(()) };
        for index in 0..self.assembly.nodes.len() {
            if self.assembly.nodes[index].is_switch() {
                self.assembly.grow(1, Endpoint { node: NodeId(index as u32), port })?;
            }
        }
        Ok(())
    }

    /// Gives adapters the GUIDs that go with those of their ports.
    fn number_adapters(&mut self) {
        let nodes = &mut self.assembly.nodes;
        let mut taken: BTreeSet<Guid> = nodes.iter().map(|node| node.guid).collect();
        for node in nodes.iter_mut().filter(|node| !node.is_switch()) {
            let first = node.ports.iter().position(|port| port.guid.0 != 0).unwrap_or(0);
            let base = Guid(node.ports[first].guid.0.wrapping_sub(first as u64));
            if taken.insert(base) {
                node.guid = base;
            }
        }
    }

    fn node(&mut self, line: usize, end: End, name: &'t str) -> Result<NodeId, FormatError> {
        let adapter = end.kind == NodeKind::ChannelAdapter;
        let base = i128::from(end.guid.0) - i128::from(end.port.value());
        let key = (name, base);
        if let Some(node) = self.adapters.get(&key).filter(|_| adapter) {
            let node = *node;
            self.by_guid.insert(end.guid, node);
            let text = format!("port {} is taken as another port of {}", end.guid, quoted(name));
            self.assembly.odd(line, OddityKind::Grouped, text);
            return Ok(node);
        }
        let mut node = Node::new(end.kind, end.guid, clean(name), 1);
        node.system_guid = Guid(0);
        node.ports[0].guid = if adapter { Guid(0) } else { end.guid };
        let id = self.assembly.node(line, node)?;
        if end.router {
            let text = format!("router {} is carried as a channel adapter", quoted(name));
            self.assembly.odd(line, OddityKind::Router, text);
        }
        self.by_guid.insert(end.guid, id);
        if adapter {
            self.adapters.insert(key, id);
        }
        Ok(id)
    }
}

fn kind(word: &str) -> Option<(NodeKind, bool)> {
    match word {
        "SW" => Some((NodeKind::Switch, false)),
        "CA" => Some((NodeKind::ChannelAdapter, false)),
        "RT" => Some((NodeKind::ChannelAdapter, true)),
        _ => None,
    }
}

/// Splits off one word.
fn word<'t>(text: &mut &'t str) -> Option<&'t str> {
    let start = text.trim_start();
    let end = start.find(char::is_whitespace).unwrap_or(start.len());
    let (word, rest) = start.split_at(end);
    *text = rest;
    (!word.is_empty()).then_some(word)
}

/// `SW    18 17 0x00066a00ec002dd9`.
fn end(text: &mut &str) -> Option<End> {
    let (kind, router) = kind(word(text)?)?;
    let lid = word(text)?.parse::<u16>().ok()?;
    let port = PortNumber::new(word(text)?.parse().ok()?)?;
    let guid = Guid::from_hex(word(text)?.strip_prefix("0x")?).ok()?;
    Some(End { kind, router, lid: Lid::new(lid), port, guid })
}

fn row(line: &str) -> Option<Row<'_>> {
    let mut rest = line;
    let from = end(&mut rest)?;
    let (width, speed) = (word(&mut rest)?, word(&mut rest)?);
    let (width, speed) = (LinkWidth::from_name(&width.to_lowercase()), LinkSpeed::from_name(speed));
    let rest = rest.trim();
    let Some(mut rest) = rest.strip_prefix("- ") else {
        let name = rest.strip_prefix('\'')?.strip_suffix('\'')?;
        return Some(Row { end: from, name, width, speed, peer: None });
    };
    let to = end(&mut rest)?;
    let names = rest.trim().strip_prefix("( '")?.strip_suffix("' )")?;
    let (name, peer_name) = names.split_once("' - '")?;
    Some(Row { end: from, name, width, speed, peer: Some((to, peer_name)) })
}
