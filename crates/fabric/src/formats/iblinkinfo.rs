//! What it is: the output of `iblinkinfo`, one line per port, under a header per node or, with
//! `-l`, all in one line:
//!
//! ```text
//! Switch: 0x0002c902004048b8 leaf01:
//!      2    1[  ] ==( 4X          10.0 Gbps Active/  LinkUp)==>       8    1[  ] "node01" ( )
//! ```
//!
//! Switches are known by their node GUID. Of an adapter the port GUID is given: its node GUID is
//! taken to be that less the port number, as most vendors number them. Without `-l` the other end
//! of a cable is known by its LID alone; a LID without a node of its own (`--switches-only`) is
//! taken as an adapter. With `-l` a line does not say what its node is: a GUID that has several
//! ports is a switch.
//!
//! Source: `iblinkinfo(8)` and its output under ibsim (infiniband-diags 44.0).

use super::assembly::{Assembly, Listing};
use super::{Entry, FormatError, OddityKind, Reader, Reading};
use crate::wording::clean;
use crate::{Endpoint, Node, NodeId, NodeKind};
use clearlane_ib::{Guid, Lid, LinkSpeed, LinkWidth, PortNumber, quoted};
use std::collections::{BTreeMap, BTreeSet};

/// The format's entry.
pub const ENTRY: Entry = Entry {
    name: "iblinkinfo",
    summary: "output of iblinkinfo, with -l or without",
    endings: &[],
    reader: Some(Reader { sniff, read }),
    write: None,
};

/// A port as one end of a line has it.
#[derive(Clone, Copy)]
struct End<'t> {
    guid: Option<Guid>,
    lid: Option<Lid>,
    port: PortNumber,
    name: &'t str,
}

/// A line.
struct Row<'t> {
    line: usize,
    /// What the header above it says the node is, if there is one.
    kind: Option<NodeKind>,
    from: End<'t>,
    width: Option<LinkWidth>,
    speed: Option<LinkSpeed>,
    /// Nothing if the port is down.
    to: Option<End<'t>>,
}

/// A header.
struct Header<'t> {
    kind: NodeKind,
    /// Of a switch.
    guid: Option<Guid>,
    name: &'t str,
    is_router: bool,
}

fn sniff(line: &str) -> bool {
    line.contains(" ==(") && line.contains(")==>") && row(line, 1, None).is_some()
}

/// Reads a whole file; `file` is named in errors.
pub fn read(text: &str, file: &str) -> Result<Reading, FormatError> {
    let mut assembly = Assembly::new(file);
    let mut above: Option<Header<'_>> = None;
    let mut rows = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if line.contains("==(") {
            let expected = "a port line such as 2 1[ ] ==( 4X 10.0 Gbps Active/ LinkUp)==> 8 1[ ]";
            let row = row(line, number, above.as_ref());
            rows.push(row.ok_or_else(|| assembly.syntax(number, expected, line))?);
        } else if let Some(header) = header(line) {
            if header.is_router {
                let text =
                    format!("router {} is carried as a channel adapter", quoted(header.name));
                assembly.odd(number, OddityKind::Router, text);
            }
            above = Some(header);
        } else if !line.trim().is_empty() {
            assembly.noise(number, line.trim());
        }
    }
    let mut links = Links::of(assembly, &rows);
    for row in &rows {
        links.row(row)?;
    }
    links.assembly.finish()
}

/// What the rows say of nodes, and the nodes made so far.
struct Links<'t> {
    assembly: Assembly<'t>,
    /// GUIDs of switches.
    switches: BTreeSet<Guid>,
    /// GUIDs of ports by LID.
    by_lid: BTreeMap<Lid, Guid>,
    /// Nodes by GUID, and by name, as adapters of two names may be numbered alike.
    known: BTreeMap<(Guid, &'t str), NodeId>,
    /// GUIDs of nodes.
    taken: BTreeSet<Guid>,
    /// Nodes of which no GUID is known.
    strangers: BTreeMap<Lid, NodeId>,
}

impl<'t> Links<'t> {
    fn of(assembly: Assembly<'t>, rows: &[Row<'t>]) -> Self {
        let mut ports: BTreeMap<Guid, PortNumber> = BTreeMap::new();
        let (mut switches, mut by_lid) = (BTreeSet::new(), BTreeMap::new());
        for row in rows {
            for (end, kind) in [(Some(&row.from), row.kind), (row.to.as_ref(), None)] {
                let Some((end, guid)) = end.and_then(|end| Some((end, end.guid?))) else {
                    continue;
                };
                let first = *ports.entry(guid).or_insert(end.port);
                if kind == Some(NodeKind::Switch) || (kind.is_none() && first != end.port) {
                    switches.insert(guid);
                }
                if let Some(lid) = end.lid {
                    by_lid.entry(lid).or_insert(guid);
                }
            }
        }
        let (known, strangers, taken) = (BTreeMap::new(), BTreeMap::new(), switches.clone());
        Links { assembly, switches, by_lid, known, taken, strangers }
    }

    fn row(&mut self, row: &Row<'t>) -> Result<(), FormatError> {
        let from = self.end(row.line, &row.from)?;
        let Some(to) = &row.to else {
            let text = format!("{}[{}] leads nowhere", quoted(row.from.name), row.from.port);
            self.assembly.odd(row.line, OddityKind::NoPeer, text);
            return Ok(());
        };
        let to = self.end(row.line, to)?;
        let (line, width, speed) = (row.line, row.width, row.speed);
        self.assembly.listing(Listing { line, from, to, width, speed })
    }

    /// The node and port of an end; both are made where they are new.
    fn end(&mut self, line: usize, end: &End<'t>) -> Result<Endpoint, FormatError> {
        let by_lid = || end.lid.and_then(|lid| self.by_lid.get(&lid).copied());
        let node = match end.guid.or_else(by_lid) {
            Some(guid) if self.switches.contains(&guid) => self.switch(line, guid, end)?,
            Some(guid) => self.adapter(line, guid, end)?,
            None => self.stranger(line, end)?,
        };
        let place = Endpoint { node, port: end.port };
        self.assembly.grow(line, place)?;
        let (guid, is_adapter) = (end.guid, !self.assembly.nodes[node.index()].is_switch());
        if let Some(guid) = guid.filter(|_| is_adapter) {
            let ports = &mut self.assembly.nodes[node.index()].ports;
            ports[usize::from(end.port.value())].guid = guid;
        }
        self.assembly.lid(line, place, end.lid);
        Ok(place)
    }

    fn switch(&mut self, line: usize, guid: Guid, end: &End<'t>) -> Result<NodeId, FormatError> {
        if let Some(node) = self.known.get(&(guid, "")) {
            return Ok(*node);
        }
        let id = self.node(line, NodeKind::Switch, guid, end)?;
        self.assembly.nodes[id.index()].ports[0].guid = guid;
        self.known.insert((guid, ""), id);
        Ok(id)
    }

    /// The adapter that has a port of this GUID; the GUID of the port is its own where the one it
    /// should have is another's.
    fn adapter(&mut self, line: usize, port: Guid, end: &End<'t>) -> Result<NodeId, FormatError> {
        let base = Guid(port.0.wrapping_sub(end.port.value().into()));
        if let Some(node) = self.known.get(&(base, end.name)) {
            return Ok(*node);
        }
        let guid = if self.taken.contains(&base) { port } else { base };
        let id = self.node(line, NodeKind::ChannelAdapter, guid, end)?;
        self.known.insert((base, end.name), id);
        Ok(id)
    }

    /// A node that has a LID and nothing else.
    fn stranger(&mut self, line: usize, end: &End<'t>) -> Result<NodeId, FormatError> {
        let Some(lid) = end.lid else {
            let expected = "a LID at both ends; start the subnet manager, or use iblinkinfo -l";
            return Err(self.assembly.syntax(line, expected, end.name));
        };
        if let Some(node) = self.strangers.get(&lid) {
            return Ok(*node);
        }
        let guid = Guid(self.assembly.made_up_guid());
        let text = format!("{} has no GUID here; {guid} is made up", quoted(end.name));
        self.assembly.odd(line, OddityKind::NoGuid, text);
        let id = self.node(line, NodeKind::ChannelAdapter, guid, end)?;
        self.strangers.insert(lid, id);
        Ok(id)
    }

    fn node(
        &mut self,
        line: usize,
        kind: NodeKind,
        guid: Guid,
        end: &End<'t>,
    ) -> Result<NodeId, FormatError> {
        self.taken.insert(guid);
        let mut node = Node::new(kind, guid, clean(end.name), 1);
        node.system_guid = Guid(0);
        self.assembly.node(line, node)
    }
}

/// `CA: node01:`, `Switch: 0x… leaf01:`.
fn header(line: &str) -> Option<Header<'_>> {
    let (word, rest) = line.trim().split_once(": ")?;
    let name = rest.trim().strip_suffix(':')?;
    let kind = match word {
        "Switch" => NodeKind::Switch,
        "CA" | "Router" => NodeKind::ChannelAdapter,
        _ => return None,
    };
    let is_router = word == "Router";
    if kind == NodeKind::ChannelAdapter {
        return Some(Header { kind, guid: None, name, is_router });
    }
    let (guid, name) = name.split_once(' ').unwrap_or((name, ""));
    let guid = Some(Guid::from_hex(guid.strip_prefix("0x")?).ok()?);
    Some(Header { kind, guid, name, is_router })
}

fn row<'t>(line: &'t str, number: usize, above: Option<&Header<'t>>) -> Option<Row<'t>> {
    let (left, rest) = line.split_once("==(")?;
    let (link, right) = rest.split_once("==>")?;
    let mut left = left;
    let own = quoted_end(&mut left)?;
    let from = match above {
        Some(header) => End { guid: own.guid.or(header.guid), name: header.name, ..own },
        None => own,
    };
    let mut link = link.split_whitespace();
    let width = link.next().and_then(|word| LinkWidth::from_name(&word.to_lowercase()));
    let gbps = link.next();
    let is_fdr10 = line.contains("Gbps (FDR10");
    let speed = gbps.and_then(|gbps| speed(gbps, is_fdr10));
    let mut right = right;
    let is_up = rest.contains("LinkUp");
    let to = if is_up { Some(peer(&mut right)?) } else { None };
    let kind = above.map(|header| header.kind);
    Some(Row { line: number, kind, from, width, speed, to })
}

/// Speed of a lane as `iblinkinfo` prints it.
fn speed(gbps: &str, is_fdr10: bool) -> Option<LinkSpeed> {
    Some(match gbps {
        "2.5" => LinkSpeed::Sdr,
        "5.0" => LinkSpeed::Ddr,
        "10.0" if is_fdr10 => LinkSpeed::Fdr10,
        "10.0" => LinkSpeed::Qdr,
        "14.0625" => LinkSpeed::Fdr,
        "25.78125" => LinkSpeed::Edr,
        "53.125" => LinkSpeed::Hdr,
        "106.25" => LinkSpeed::Ndr,
        "212.5" => LinkSpeed::Xdr,
        _ => return None,
    })
}

/// `[0x… ["name"]] LID port[external]`.
fn quoted_end<'t>(text: &mut &'t str) -> Option<End<'t>> {
    let guid = guid(text);
    let name = name(text).unwrap_or_default();
    let (lid, port) = place(text)?;
    Some(End { guid, lid, port, name })
}

/// `[0x…] LID port[external] "name"`.
fn peer<'t>(text: &mut &'t str) -> Option<End<'t>> {
    let guid = guid(text);
    let (lid, port) = place(text)?;
    Some(End { guid, lid, port, name: name(text)? })
}

fn guid(text: &mut &str) -> Option<Guid> {
    let start = text.trim_start();
    let digits = start.strip_prefix("0x")?;
    let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
    let guid = Guid::from_hex(&digits[..end]).ok()?;
    *text = &digits[end..];
    Some(guid)
}

/// A name in double quotes, which may have some itself: `iblinkinfo` writes `(` behind it.
fn name<'t>(text: &mut &'t str) -> Option<&'t str> {
    let start = text.trim_start().strip_prefix('"')?;
    let end = start.find("\" (").or_else(|| start.rfind('"'))?;
    *text = &start[end + 1..];
    Some(start[..end].trim())
}

fn place(text: &mut &str) -> Option<(Option<Lid>, PortNumber)> {
    let start = text.trim_start();
    let (lid, rest) = start.split_once(char::is_whitespace)?;
    let (port, rest) = rest.trim_start().split_once('[')?;
    let (_, rest) = rest.split_once(']')?;
    let port = PortNumber::new(port.trim().parse().ok()?).filter(|port| port.value() > 0)?;
    let lid = lid.parse::<u16>().ok()?;
    *text = rest;
    Some((Lid::new(lid), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPINE: &str = "\
CA: node \"1\" HCA-1:
      0x0002c90300000101      7    1[  ] ==( 4X          10.0 Gbps Active/  LinkUp)==>       \
1    1[  ] \"leaf01\" (Could be 12X )
Switch: 0x0002c90200000001 leaf01:
           1    1[  ] ==( 4X          10.0 Gbps Active/  LinkUp)==>       7    1[  ] \
\"node \"1\" HCA-1\" (Could be 12X )
           1    2[ 18] ==( 4X       14.0625 Gbps Active/  LinkUp)==>       9    2[  ] \
\"node2\" ( )
           1    3[  ] ==(                Down/ Polling)==>             [  ] \"\" ( )
";

    #[test]
    fn headers_say_what_nodes_are_and_lids_who_is_meant() {
        let reading = read(SPINE, "links").unwrap();
        let fabric = reading.fabric;
        assert_eq!(
            fabric.summary().to_string().split(':').next(),
            Some("2 hosts, 1 switches, 2 cables")
        );
        let host = fabric.by_guid(Guid(0x0002_c903_0000_0100)).unwrap();
        assert_eq!(fabric.node(host).name, "node \"1\" HCA-1");
        assert_eq!(fabric.node(host).ports[1].guid, Guid(0x0002_c903_0000_0101));
        assert_eq!(fabric.node(host).ports[1].lid, Lid::new(7));
        let kinds: Vec<OddityKind> = reading.oddities.iter().map(|odd| odd.kind).collect();
        assert!(kinds.contains(&OddityKind::NoGuid) && kinds.contains(&OddityKind::NoPeer));
        let speeds: Vec<LinkSpeed> = fabric.links().iter().map(|link| link.speed).collect();
        assert_eq!(speeds, [LinkSpeed::Qdr, LinkSpeed::Fdr]);
    }

    #[test]
    fn a_line_for_each_link_says_the_same() {
        let line = |guid: u64, name: &str, port: u8, to: &str| {
            format!(
                "0x{guid:016x} \"  {name}\"     {port}    {port}[  ] ==( 4X          10.0 Gbps \
                     Active/  LinkUp)==>  {to}\n"
            )
        };
        let text = [
            line(0x101, "node01", 1, "0x0000000000000001      1    1[  ] \"leaf\" ( )"),
            line(0x1, "leaf", 1, "0x0000000000000101      1    1[  ] \"node01\" ( )"),
            line(0x1, "leaf", 2, "0x0000000000000202      2    2[  ] \"node02\" ( )"),
        ];
        let fabric = read(&text.concat(), "links").unwrap().fabric;
        let switch = fabric.by_guid(Guid(1)).unwrap();
        assert!(fabric.node(switch).is_switch());
        assert_eq!(fabric.neighbours(switch).count(), 2);
        assert!(fabric.by_guid(Guid(0x100)).is_some() && fabric.by_guid(Guid(0x200)).is_some());
    }

    #[test]
    fn a_damaged_line_is_named() {
        let error = read(&SPINE.replace("1    2[ 18]", "1    x[ 18]"), "links").unwrap_err();
        assert!(error.to_string().starts_with("links:5: expected a port line"), "{error}");
        // Without LIDs nobody can say whom a cable leads to.
        let error =
            read(&SPINE.replace(">       9    2[", ">       0    2["), "links").unwrap_err();
        assert!(error.to_string().contains("links:5: expected a LID at both ends"), "{error}");
        assert!(sniff(SPINE.lines().nth(1).unwrap()) && !sniff("CA: node:"));
    }
}
