//! What it is: `opensm-subnet.lst`, which OpenSM writes after every heavy sweep: one line per
//! direction of a cable, `{ SW Ports:24 … {name} LID:0002 PN:05 } { … } PHY=4x LOG=ACT SPD=10`.
//!
//! Every cable is listed from both its ends, so one that is not says that the file is cut off.
//!
//! Numbers are hexadecimal. The node the subnet manager runs on is a `CA-SM`. Old files have no
//! `SPD`; some print the device id of the second half shifted by 16 bits or as zero.

use super::assembly::{Assembly, Listing};
use super::{Entry, FormatError, Problem, Reader, Reading};
use crate::wording::clean;
use crate::{Endpoint, Node, NodeId, NodeKind};
use clearlane_ib::{Guid, Lid, LinkSpeed, LinkWidth, PortNumber, quoted};
use std::collections::BTreeMap;

/// The format's entry.
pub const ENTRY: Entry = Entry {
    name: "opensm-subnet.lst",
    summary: "cable list that OpenSM writes after a sweep",
    endings: &[],
    reader: Some(Reader { sniff, read }),
    write: None,
};

/// What OpenSM calls the logical states of a link.
const STATES: [&str; 5] = ["DWN", "INI", "ARM", "ACT", "ACD"];

fn sniff(line: &str) -> bool {
    line.trim_start().starts_with("{ ") && line.contains(" NodeGUID:")
}

/// One half of a line.
struct Half<'t> {
    kind: NodeKind,
    ports: u8,
    system: Guid,
    node: Guid,
    port_guid: Guid,
    vendor: u32,
    device: u32,
    name: &'t str,
    lid: Option<Lid>,
    port: PortNumber,
}

/// Reads a whole file; `file` is named in errors.
pub fn read(text: &str, file: &str) -> Result<Reading, FormatError> {
    let assembly = Assembly::new(file);
    let mut reader = List { assembly, by_guid: BTreeMap::new(), with_speeds: false };
    let mut last = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let (number, whole, line) = (index + 1, line.ends_with('\n'), line.trim());
        last = number;
        if line.starts_with('{') {
            reader.row(number, line, whole)?;
        } else if !line.is_empty() {
            reader.assembly.noise(number, line);
        }
    }
    drop(reader.by_guid);
    reader.assembly.finish_whole(last)
}

struct List<'t> {
    assembly: Assembly<'t>,
    by_guid: BTreeMap<Guid, NodeId>,
    /// Whether lines before say a speed.
    with_speeds: bool,
}

impl List<'_> {
    /// One line; `whole` says that it has its line feed.
    fn row(&mut self, number: usize, line: &str, whole: bool) -> Result<(), FormatError> {
        let mut rest = line;
        let (Some(first), Some(second)) = (half(&mut rest), half(&mut rest)) else {
            let expected = "a cable line { SW Ports:24 … {name} LID:0002 PN:05 } { … } PHY=4x …";
            return Err(self.assembly.syntax(number, expected, line));
        };
        let value = |key: &str| rest.split_whitespace().find_map(|word| word.strip_prefix(key));
        let (Some(width), Some(state)) = (value("PHY="), value("LOG=")) else {
            return Err(self.assembly.syntax(number, "PHY=… LOG=… after the two ends", line));
        };
        let speed = value("SPD=").and_then(speed);
        // Cut within these words, the last line still reads.
        if !whole && (!STATES.contains(&state) || (self.with_speeds && speed.is_none())) {
            return Err(self.assembly.syntax(number, "a whole last line", rest));
        }
        self.with_speeds |= speed.is_some();
        let from = self.end(number, &first)?;
        let to = self.end(number, &second)?;
        let width = LinkWidth::from_name(&width.to_lowercase());
        self.assembly.listing(Listing { line: number, from, to, width, speed })
    }

    fn end(&mut self, line: usize, half: &Half<'_>) -> Result<Endpoint, FormatError> {
        let id = match self.by_guid.get(&half.node) {
            Some(id) => *id,
            None => {
                let mut node = Node::new(half.kind, half.node, clean(half.name), half.ports);
                node.system_guid = half.system;
                let id = self.assembly.node(line, node)?;
                self.by_guid.insert(half.node, id);
                id
            }
        };
        self.assembly.same_node(line, id, half.kind, Some(half.ports))?;
        let node = &mut self.assembly.nodes[id.index()];
        let (port, ports) = (half.port.value(), node.port_count());
        if port < 1 || port > ports {
            let problem = Problem::NoSuchPort { node: quoted(&node.name), port, ports };
            return Err(self.assembly.error(line, problem));
        }
        if node.vendor == 0 {
            node.vendor = half.vendor;
        }
        if node.device == 0 {
            node.device = half.device;
        }
        let number = if half.kind == NodeKind::Switch { 0 } else { usize::from(port) };
        node.ports[number].guid = half.port_guid;
        let end = Endpoint { node: id, port: half.port };
        self.assembly.lid(line, end, half.lid);
        Ok(end)
    }
}

/// Parses `{ KIND Ports:.. … {name} LID:.. PN:.. }` and moves behind it.
fn half<'t>(text: &mut &'t str) -> Option<Half<'t>> {
    let inner = text.trim_start().strip_prefix('{')?;
    let (facts, rest) = inner.split_once('{')?;
    let (name, rest) = rest.split_once("} LID:")?;
    let (place, rest) = rest.split_once('}')?;
    *text = rest;
    let mut words = facts.split_whitespace();
    let kind = match words.next()? {
        "SW" | "SW-SM" => NodeKind::Switch,
        "CA" | "CA-SM" | "RT" | "RT-SM" => NodeKind::ChannelAdapter,
        _ => return None,
    };
    let field = |key: &str| {
        let text = facts.split_whitespace().find_map(|word| word.strip_prefix(key))?;
        Guid::from_hex(text).ok().map(|value| (value.0, text.len()))
    };
    let (lid, port) = place.split_once("PN:")?;
    let hex = |text: &str| Guid::from_hex(text.trim()).ok().map(|value| value.0);
    let (device, digits) = field("DevID:")?;
    // Eight digits are the 16-bit id in the upper half of a word.
    let device = if digits > 4 { device >> 16 } else { device };
    Some(Half {
        kind,
        ports: u8::try_from(field("Ports:")?.0).ok().filter(|ports| (1..=254).contains(ports))?,
        system: Guid(field("SystemGUID:")?.0),
        node: Guid(field("NodeGUID:")?.0),
        port_guid: Guid(field("PortGUID:")?.0),
        vendor: (field("VenID:")?.0 & 0xff_ffff) as u32,
        device: u32::try_from(device).ok()?,
        name,
        lid: u16::try_from(hex(lid)?).ok().and_then(Lid::new),
        port: PortNumber::new(u8::try_from(hex(port)?).ok()?)?,
    })
}

/// The signalling rate of a lane in Gb/s, as OpenSM prints it.
fn speed(text: &str) -> Option<LinkSpeed> {
    Some(match text {
        "2.5" => LinkSpeed::Sdr,
        "5" => LinkSpeed::Ddr,
        "10" => LinkSpeed::Qdr,
        "FDR10" => LinkSpeed::Fdr10,
        "14" => LinkSpeed::Fdr,
        "25" => LinkSpeed::Edr,
        "50" => LinkSpeed::Hdr,
        "100" => LinkSpeed::Ndr,
        "200" => LinkSpeed::Xdr,
        name => return LinkSpeed::from_name(name),
    })
}
