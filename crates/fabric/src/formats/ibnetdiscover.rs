//! What it is: the topology file of `ibnetdiscover`, which is also the netlist of `ibsim`.
//!
//! Source: ibnetdiscover(8), ibsim's README and net-examples, and files found in the wild, among
//! them: `enhanced port 0`, single blanks for tabs, messages on top, no GUIDs and no comments.
//! A cable may be listed from one end. Lines of no known form are skipped and reported.

use super::assembly::{Assembly, Listing};
use super::{Entry, FormatError, OddityKind, Problem, Reader, Reading};
use crate::wording::clean;
use crate::{Endpoint, Fabric, LinkId, Node, NodeId, NodeKind};
use clearlane_ib::{Guid, Lid, LinkSpeed, LinkWidth, Lmc, PortNumber, quoted};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The format's entry.
pub const ENTRY: Entry = Entry {
    name: "ibnetdiscover",
    summary: "topology file of ibnetdiscover, netlist of ibsim",
    endings: &["topo", "ibnetdiscover", "txt"],
    reader: Some(Reader { sniff, read }),
    write: Some(write),
};

/// What a header begins with: switch, channel adapter (ibsim has two words for it), router.
const NODE_WORDS: [&str; 4] = ["Switch", "Ca", "Hca", "Rt"];

/// A node's header or one of its GUIDs.
fn sniff(line: &str) -> bool {
    let line = line.trim_start();
    let guid = ["switchguid=", "caguid=", "rtguid="].iter().any(|key| line.starts_with(key));
    guid || header(line).is_some()
}

/// What is known of a node before its header.
#[derive(Clone, Copy, Default)]
struct Ids {
    vendor: u32,
    device: u32,
    system: u64,
    node: Option<u64>,
    port0: u64,
    line: usize,
}

/// A port line whose other end may be a node further down.
struct Pending<'t> {
    line: usize,
    from: Endpoint,
    peer: &'t str,
    port: PortNumber,
    peer_guid: u64,
    comment: Comment,
}

/// What stands behind the `#` of a port line.
#[derive(Clone, Copy, Default)]
struct Comment {
    own_lid: Option<Lid>,
    own_lmc: Option<Lmc>,
    peer_lid: Option<Lid>,
    width: Option<LinkWidth>,
    speed: Option<LinkSpeed>,
}

/// Reads a whole file; `file` is named in errors.
pub fn read(text: &str, file: &str) -> Result<Reading, FormatError> {
    let mut reader = Netlist {
        assembly: Assembly::new(file),
        ids: Ids::default(),
        by_id: BTreeMap::new(),
        current: None,
        pending: Vec::new(),
    };
    for (index, line) in text.lines().enumerate() {
        reader.line(index + 1, line.trim())?;
    }
    reader.finish()
}

struct Netlist<'t> {
    assembly: Assembly<'t>,
    ids: Ids,
    by_id: BTreeMap<&'t str, (NodeId, usize)>,
    current: Option<NodeId>,
    pending: Vec<Pending<'t>>,
}

impl<'t> Netlist<'t> {
    fn line(&mut self, number: usize, line: &'t str) -> Result<(), FormatError> {
        if line.is_empty() {
            self.end_node();
        } else if line.starts_with('[') {
            self.port(number, line)?;
        } else if let Some((kind, ports, rest)) = header(line) {
            self.header(number, line, (kind, ports, rest))?;
        } else if NODE_WORDS.iter().any(|word| begins_with_word(line, word)) {
            return Err(self.assembly.syntax(number, "a header such as Switch 36 \"S-…\"", line));
        } else if let Some((key, value)) = attribute(line) {
            self.attribute(number, line, key, value)?;
        } else if line.starts_with("include ") {
            return Err(self.assembly.error(number, Problem::Include { line: quoted(line) }));
        } else if !line.starts_with('#') {
            self.assembly.noise(number, line);
        }
        Ok(())
    }

    /// A blank line ends a node.
    fn end_node(&mut self) {
        if self.ids.line > 0 {
            self.assembly.noise(self.ids.line, "GUIDs without a node");
        }
        (self.ids, self.current) = (Ids::default(), None);
    }

    fn attribute(
        &mut self,
        number: usize,
        line: &str,
        key: &str,
        value: &str,
    ) -> Result<(), FormatError> {
        let (value, inner) = match value.split_once('(') {
            Some((value, inner)) => (value, inner.strip_suffix(')')),
            None => (value, Some("0")),
        };
        let inner = inner.and_then(|text| Guid::from_hex(text).ok());
        let (Ok(value), Some(inner)) = (Guid::from_hex(value.trim()), inner) else {
            return Err(self.assembly.syntax(number, "a hexadecimal number after =", line));
        };
        self.ids.line = number;
        match key {
            "vendid" => self.ids.vendor = value.0.min(0xff_ffff) as u32,
            "devid" => self.ids.device = value.0.min(u64::from(u32::MAX)) as u32,
            "sysimgguid" => self.ids.system = value.0,
            _ => (self.ids.node, self.ids.port0) = (Some(value.0), inner.0),
        }
        Ok(())
    }

    fn header(
        &mut self,
        number: usize,
        line: &'t str,
        (word, ports, rest): (&str, &str, &'t str),
    ) -> Result<(), FormatError> {
        let ports = match ports.parse::<u8>() {
            Ok(ports @ 1..=254) => ports,
            _ => return Err(self.assembly.syntax(number, "1 to 254 ports", line)),
        };
        let Some((id, rest)) = in_quotes(rest) else {
            return Err(self.assembly.syntax(number, "a node id in quotes", line));
        };
        if let Some((_, first)) = self.by_id.get(id) {
            let problem = Problem::DuplicateNode { node: quoted(id), line: *first };
            return Err(self.assembly.error(number, problem));
        }
        let kind = if word == "Switch" { NodeKind::Switch } else { NodeKind::ChannelAdapter };
        let ids = std::mem::take(&mut self.ids);
        let guid = self.guid(number, id, ids.node);
        let (name, facts) = described(rest);
        let mut node = Node::new(kind, guid, clean(name.unwrap_or(id)), ports);
        (node.vendor, node.device) = (ids.vendor, ids.device);
        node.system_guid = Guid(ids.system);
        if kind == NodeKind::Switch {
            node.ports[0].guid = Guid(ids.port0);
            node.enhanced_port0 = facts.starts_with("enhanced");
            node.ports[0].lmc = number_after(facts, "lmc").and_then(lmc).unwrap_or_default();
            node.ports[0].lid = number_after(facts, "lid").and_then(lid);
        }
        let added = self.assembly.node(number, node)?;
        if word == "Rt" {
            let text = format!("router {} is carried as a channel adapter", quoted(id));
            self.assembly.odd(number, OddityKind::Router, text);
        }
        self.by_id.insert(id, (added, number));
        self.current = Some(added);
        Ok(())
    }

    /// The GUID given, that in an id such as `S-0002c9…`, or one made up.
    fn guid(&mut self, number: usize, id: &str, given: Option<u64>) -> Guid {
        if let Some(guid) = given {
            return Guid(guid);
        }
        let digits = id.strip_prefix("S-").or(id.strip_prefix("H-")).or(id.strip_prefix("R-"));
        let whole = digits.filter(|digits| digits.len() == 16);
        if let Some(Ok(guid)) = whole.map(Guid::from_hex) {
            return guid;
        }
        let guid = Guid(self.assembly.made_up_guid());
        let text = format!("node {} has no GUID; taken as {guid}", quoted(id));
        self.assembly.odd(number, OddityKind::NoGuid, text);
        guid
    }

    fn port(&mut self, number: usize, line: &'t str) -> Result<(), FormatError> {
        let expected = "a port line such as [1] \"S-0002c9…\"[2]";
        let Some(node) = self.current else {
            return Err(self.assembly.syntax(number, "a node's header before its ports", line));
        };
        let parsed = (|| {
            let (port, rest) = bracketed(line)?;
            let (own_guid, rest) = parenthesised(rest)?;
            let (peer, rest) = in_quotes(rest)?;
            let (peer_port, rest) = bracketed(rest)?;
            let (peer_guid, rest) = parenthesised(rest)?;
            let rest = rest.trim();
            let comment = if rest.is_empty() { "" } else { rest.strip_prefix('#')? };
            Some((port, own_guid, peer, peer_port, peer_guid, comment))
        })();
        let Some((port, own_guid, peer, peer_port, peer_guid, comment)) = parsed else {
            return Err(self.assembly.syntax(number, expected, line));
        };
        let Some(comment) = port_comment(comment) else {
            return Err(self.assembly.syntax(number, "a comment with a closed quote", line));
        };
        let from = Endpoint { node, port };
        let owner = &mut self.assembly.nodes[node.index()];
        if let Some(port) = owner.ports.get_mut(usize::from(port.value()))
            && !matches!(owner.kind, NodeKind::Switch)
        {
            if own_guid != 0 {
                port.guid = Guid(own_guid);
            }
            port.lmc = comment.own_lmc.unwrap_or(port.lmc);
        }
        self.assembly.lid(number, from, comment.own_lid);
        let pending = Pending { line: number, from, peer, port: peer_port, peer_guid, comment };
        self.pending.push(pending);
        Ok(())
    }

    fn finish(mut self) -> Result<Reading, FormatError> {
        self.end_node();
        for pending in std::mem::take(&mut self.pending) {
            let Pending { line, from, peer, port, peer_guid, comment } = pending;
            let Some((node, _)) = self.by_id.get(peer) else {
                let name = quoted(&self.assembly.nodes[from.node.index()].name);
                let end = format!("{name}[{}]", from.port);
                let problem = Problem::UnknownPeer { end, peer: quoted(peer) };
                return Err(self.assembly.error(line, problem));
            };
            let to = Endpoint { node: *node, port };
            let Comment { width, speed, peer_lid, .. } = comment;
            self.assembly.listing(Listing { line, from, to, width, speed })?;
            self.assembly.lid(line, to, peer_lid);
            let other = &mut self.assembly.nodes[node.index()];
            let place = &mut other.ports[usize::from(port.value())];
            if place.guid.0 == 0 && other.kind != NodeKind::Switch {
                place.guid = Guid(peer_guid);
            }
        }
        drop(self.by_id);
        self.assembly.finish()
    }
}

fn begins_with_word(line: &str, word: &str) -> bool {
    line.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// `Switch 36 rest`: the word, the number and the rest; nothing if the line is no header.
fn header(line: &str) -> Option<(&str, &str, &str)> {
    let (word, rest) = line.split_once(char::is_whitespace)?;
    if !NODE_WORDS.contains(&word) {
        return None;
    }
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit())?;
    (end > 0).then(|| (word, &rest[..end], &rest[end..]))
}

fn attribute(line: &str) -> Option<(&str, &str)> {
    let known = ["vendid", "devid", "sysimgguid", "switchguid", "caguid", "rtguid"];
    line.split_once('=').filter(|(key, _)| known.contains(key))
}

/// `"text" rest`.
fn in_quotes(text: &str) -> Option<(&str, &str)> {
    text.trim_start().strip_prefix('"')?.split_once('"').filter(|(inner, _)| !inner.is_empty())
}

/// `[12] rest`.
fn bracketed(text: &str) -> Option<(PortNumber, &str)> {
    let (number, rest) = text.trim_start().strip_prefix('[')?.split_once(']')?;
    Some((PortNumber::new(number.trim().parse().ok()?)?, rest))
}

/// `(guid) rest`, or 0 where there is no parenthesis.
fn parenthesised(text: &str) -> Option<(u64, &str)> {
    let Some(inner) = text.trim_start().strip_prefix('(') else {
        return Some((0, text));
    };
    let (guid, rest) = inner.split_once(')')?;
    Some((Guid::from_hex(guid.trim()).ok()?.0, rest))
}

/// The description in a header's comment, and what follows it.
fn described(rest: &str) -> (Option<&str>, &str) {
    let Some((_, comment)) = rest.split_once('#') else { return (None, "") };
    match comment.split_once('"').and_then(|(_, text)| text.rsplit_once('"')) {
        Some((name, facts)) => (Some(name).filter(|name| !name.is_empty()), facts.trim()),
        None => (None, comment.trim()),
    }
}

/// Facts before the quotes are the port's own, those after them the peer's and the cable's.
fn port_comment(comment: &str) -> Option<Comment> {
    let (own, peer) = match comment.split_once('"') {
        Some((own, rest)) => (own, rest.rsplit_once('"')?.1),
        None => ("", comment),
    };
    let rate = peer.split_whitespace().rev().find_map(|word| {
        let (lanes, speed) = word.split_once('x')?;
        Some((LinkWidth::from_name(&format!("{lanes}x"))?, LinkSpeed::from_name(speed)?))
    });
    Some(Comment {
        own_lid: number_after(own, "lid").and_then(lid),
        own_lmc: number_after(own, "lmc").and_then(lmc),
        peer_lid: number_after(peer, "lid").and_then(lid),
        width: rate.map(|rate| rate.0),
        speed: rate.map(|rate| rate.1),
    })
}

/// The decimal number after a word.
fn number_after(text: &str, word: &str) -> Option<u16> {
    let mut words = text.split_whitespace();
    words.find(|w| *w == word)?;
    words.next()?.parse().ok()
}

fn lid(number: u16) -> Option<Lid> {
    Lid::new(number)
}

fn lmc(number: u16) -> Option<Lmc> {
    u8::try_from(number).ok().and_then(Lmc::new)
}

/// Writes the netlist that `ibsim` boots: every cable from both ends, LID and LMC where known.
///
/// Double quotes and control characters in a name become `'` and blanks: the format cannot carry
/// them. LID and GUID of an adapter's port without cable are lost: it lists cabled ports alone.
pub fn write(fabric: &Fabric) -> String {
    let mut text = String::from("# Netlist written by Clearlane; ibsim and OpenSM read it.\n");
    for (index, node) in fabric.nodes().iter().enumerate() {
        text.push('\n');
        write_node(&mut text, fabric, NodeId(index as u32), node);
    }
    text
}

/// Writing to a `String` cannot fail, so results of `write!` are dropped.
fn write_node(text: &mut String, fabric: &Fabric, id: NodeId, node: &Node) {
    let (word, key) = if node.is_switch() { ("Switch", "switchguid") } else { ("Ca", "caguid") };
    let _ = writeln!(text, "vendid=0x{:x}\ndevid=0x{:x}", node.vendor, node.device);
    if node.system_guid.0 != 0 {
        let _ = writeln!(text, "sysimgguid=0x{:x}", node.system_guid.0);
    }
    let _ = write!(text, "{key}=0x{:x}", node.guid.0);
    if node.is_switch() && node.ports[0].guid.0 != 0 {
        let _ = write!(text, "({:x})", node.ports[0].guid.0);
    }
    let ports = node.port_count();
    let _ = write!(text, "\n{word}\t{ports} \"{}\"\t\t# \"{}\"", netlist_id(node), name(node));
    if node.is_switch() {
        let kind = if node.enhanced_port0 { "enhanced" } else { "base" };
        let _ = write!(text, " {kind} port 0");
        write_lid(text, node, 0, true);
    }
    text.push('\n');
    for (port, link, peer) in fabric.neighbours(id) {
        let other = fabric.node(peer.node);
        let _ = write!(text, "[{port}]");
        write_guid(text, node, port);
        let _ = write!(text, "\t\"{}\"[{}]", netlist_id(other), peer.port);
        write_guid(text, other, peer.port);
        text.push_str("\t\t#");
        if !node.is_switch() {
            write_lid(text, node, port.value(), true);
        }
        let _ = write!(text, " \"{}\"", name(other));
        let number = if other.is_switch() { 0 } else { peer.port.value() };
        write_lid(text, other, number, false);
        write_rate(text, fabric, link);
    }
}

fn write_rate(text: &mut String, fabric: &Fabric, link: LinkId) {
    let link = fabric.link(link);
    let _ = writeln!(text, " {}{}", link.width, link.speed);
}

fn write_guid(text: &mut String, node: &Node, port: PortNumber) {
    let guid = node.ports[usize::from(port.value())].guid.0;
    if !node.is_switch() && guid != 0 {
        let _ = write!(text, "({guid:x})");
    }
}

/// LID 0 is written where none is known: without a LID ibsim does not read the speed.
fn write_lid(text: &mut String, node: &Node, port: u8, with_lmc: bool) {
    let port = &node.ports[usize::from(port)];
    let _ = write!(text, " lid {}", port.lid.map_or(0, Lid::value));
    if with_lmc {
        let _ = write!(text, " lmc {}", port.lmc.value());
    }
}

/// What ibsim 0.10 will not take from the written file, one line each; empty where it takes all.
pub fn ibsim_limits(fabric: &Fabric) -> Vec<String> {
    let too_fast = |link: &&crate::Link| link.speed > LinkSpeed::Hdr;
    let mut limits = Vec::new();
    // Measured: SDR to HDR, FDR10 and all widths are kept; other speeds are warned of.
    let count = fabric.links().iter().filter(too_fast).count();
    if count > 0 {
        limits.push(format!("{count} cables faster than HDR, which ibsim 0.10 runs at SDR"));
    }
    // Measured: an adapter's port has the node's GUID plus its number, whatever the file says.
    let is_other = |node: &&Node| {
        let numbered = |(number, port): (usize, &crate::Port)| {
            port.guid.0 == 0 || port.guid.0 == node.guid.0.wrapping_add(number as u64)
        };
        !node.is_switch() && !node.ports.iter().enumerate().skip(1).all(numbered)
    };
    let count = fabric.nodes().iter().filter(is_other).count();
    if count > 0 {
        limits.push(format!(
            "{count} adapters with other port GUIDs than ibsim 0.10 gives: node GUID plus port \
             number; tables that name port GUIDs do not fit there"
        ));
    }
    limits
}

/// `S-0002c9…` or `H-…`: the id a node has in the netlist, also the attach point of a client.
pub fn netlist_id(node: &Node) -> String {
    format!("{}-{:016x}", if node.is_switch() { 'S' } else { 'H' }, node.guid.0)
}

fn name(node: &Node) -> String {
    let plain = |c: char| match c {
        '"' => '\'',
        c if c.is_control() => ' ',
        c => c,
    };
    node.name.chars().map(plain).collect()
}
