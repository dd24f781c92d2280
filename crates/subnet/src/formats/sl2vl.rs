//! What it is: opensm-sl2vl.dump, every switch's mapping (input, output, SL) → VL; ibdmchk reads
//! it (`-d`).
//!
//! ```text
//! Switch 0x0ac1ea5100000000, base LID 7, "leaf00"
//! #in out : 0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15
//! 0   1   : 0  1  0  1  0  1  0  1  0  1  0  1  0  1  0  1
//! ```
//! OpenSM writes a section for each adapter port too, with the one line `0 0 : …`, and leaves out
//! outputs without a cable.

use super::{Content, DumpError, Entry, Oddity, Tally, plain_name};
use crate::graph::{Peer, SwitchGraph};
use crate::{SlToVl, SlToVlTable, Subnet};
use clearlane_fabric::{Endpoint, Fabric, NodeId, NodeKind};
use clearlane_ib::{Guid, PortNumber, ServiceLevel, VirtualLane, quoted};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// `opensm-sl2vl`.
pub(super) const ENTRY: Entry = Entry {
    name: "opensm-sl2vl",
    summary: "SL2VL of switches and adapters, opensm-sl2vl.dump as OpenSM writes it",
    forwards: false,
    sniff: |text| text.lines().any(|line| line.trim_start().starts_with(COLUMNS)),
    read: |text, file| read(text, file).map(Content::Lanes),
};

/// How the line above the numbers begins.
const COLUMNS: &str = "#in out :";

/// The lanes of one pair of ports by SL; nothing for VL 15, on which data are discarded (IBA vol.
/// 1, 7.6.6).
type Row = [Option<VirtualLane>; 16];

/// The mapping from one input to one output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaneRow {
    /// Where packets come in; 0 for the switch's own.
    pub input: PortNumber,
    /// Where they leave.
    pub output: PortNumber,
    /// The lane by SL; nothing where they are discarded.
    pub lanes: [Option<VirtualLane>; 16],
    /// Where it stands, from 1.
    pub line: usize,
}

/// One device's mapping.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LaneSection {
    /// Whether it is a switch; an adapter otherwise.
    pub is_switch: bool,
    /// Its port GUID, for a switch the node's.
    pub guid: Guid,
    /// Where the section begins, from 1.
    pub line: usize,
    /// In the order of the file.
    pub rows: Vec<LaneRow>,
}

/// What a file with SL2VL says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LaneDump {
    /// Device by device in the order of the file.
    pub sections: Vec<LaneSection>,
}

fn read(text: &str, file: &str) -> Result<LaneDump, DumpError> {
    let mut dump = LaneDump::default();
    for (index, line) in text.lines().enumerate() {
        let (number, line) = (index + 1, line.trim());
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let error = |what: String| {
            let remedy = "a section is headed Switch 0x<GUID>, its lines are <in> <out> : 16 lanes";
            DumpError::new(file, number, what, remedy)
        };
        if line.starts_with(|first: char| first.is_ascii_digit()) {
            let section = dump.sections.last_mut();
            let section = section.ok_or_else(|| error("a line before the first section".into()))?;
            section.rows.push(row(line, number).map_err(error)?);
        } else {
            let heading = line.split_once(" 0x").and_then(|(kind, rest)| {
                let guid = rest.split(|c: char| c == ',' || c.is_whitespace()).next()?;
                Some((kind.trim() == "Switch", Guid::from_hex(guid).ok()?))
            });
            let (is_switch, guid) = heading
                .ok_or_else(|| error(format!("{} is no heading of a section", quoted(line))))?;
            dump.sections.push(LaneSection { is_switch, guid, line: number, rows: Vec::new() });
        }
    }
    Ok(dump)
}

/// A line such as `1 2 : 0 1 0 1 …`, or what is wrong with it.
fn row(line: &str, number: usize) -> Result<LaneRow, String> {
    let (ports, lanes) = line.split_once(':').ok_or("a line without \":\"")?;
    let mut ports = ports.split_whitespace();
    let mut port = || {
        let word = ports.next().unwrap_or_default();
        let port = super::decimal(word).and_then(PortNumber::new);
        port.ok_or_else(|| format!("{} is no port number", quoted(word)))
    };
    let (input, output) = (port()?, port()?);
    let mut words = lanes.split_whitespace();
    let mut row: Row = [None; 16];
    for lane in &mut row {
        let word = words.next().unwrap_or_default();
        let value: Option<u8> = super::decimal(word).filter(|value| *value <= 15);
        let value = value.ok_or_else(|| format!("{} is no virtual lane", quoted(word)))?;
        *lane = VirtualLane::new(value);
    }
    Ok(LaneRow { input, output, lanes: row, line: number })
}

impl LaneDump {
    /// Puts the mapping onto a fabric. Where the file says nothing SL s goes on VL s mod `count`.
    /// Fails where a line names a port the switch does not have.
    pub fn lanes(
        &self,
        fabric: &Fabric,
        count: u8,
        file: &str,
    ) -> Result<(SlToVl, Vec<Oddity>), DumpError> {
        let mut lanes = SlToVl::modulo(fabric, count);
        let mut placing = Placing {
            graph: SwitchGraph::of(fabric),
            fallback: lanes.adapter,
            discards: Tally::default(),
            holes: Tally::default(),
            links: BTreeMap::new(),
        };
        let (mut strangers, mut seen) = (Tally::default(), vec![false; fabric.nodes().len()]);
        // A table has up to a megabyte: one for each switch, not for each section.
        let of_switches = || self.sections.iter().filter(|section| section.is_switch);
        let last: BTreeMap<Guid, usize> = of_switches().map(|of| (of.guid, of.line)).collect();
        let mut again = Tally::default();
        for section in of_switches() {
            let Some(switch) = super::switch_of(fabric, section.guid) else {
                strangers.add(section.line, || section.guid.to_string());
                continue;
            };
            if last.get(&section.guid) != Some(&section.line) {
                again.add(section.line, || fabric.node(switch).name.escape_debug().to_string());
                continue;
            }
            seen[switch.index()] = true;
            lanes.set(switch, placing.table(fabric, switch, section, file)?);
        }
        let mut oddities = Vec::new();
        strangers.tell(&mut oddities, "switches with SL2VL are not in the fabric");
        again.tell(
            &mut oddities,
            "sections are followed by another of their switch, which is taken",
        );
        let mut missing = Tally::default();
        for switch in fabric.ids(NodeKind::Switch).filter(|switch| !seen[switch.index()]) {
            missing.add(0, || fabric.node(switch).name.escape_debug().to_string());
        }
        missing.tell(&mut oddities, &format!("switches have no SL2VL, {}", modulo(count)));
        let of_adapters = self.sections.iter().filter(|section| !section.is_switch);
        let mut of_adapters: Vec<(usize, [VirtualLane; 16])> = of_adapters
            .flat_map(|section| &section.rows)
            .map(|row| (row.line, placing.filled(row)))
            .collect();
        if of_adapters.is_empty() {
            // Both directions of a cable are programmed alike.
            let links = std::mem::take(&mut placing.links);
            of_adapters = links.into_iter().map(|(lanes, line)| (line, lanes)).collect();
            of_adapters.sort_unstable();
        }
        if let Some((_, first)) = of_adapters.first() {
            lanes.adapter = *first;
            if let Some((line, _)) = of_adapters.iter().find(|(_, row)| row != first) {
                let what = "adapters differ in their SL2VL; all are taken to have the first one";
                oddities.push(Oddity { line: *line, what: what.into() });
            }
        }
        let what = format!("pairs of cabled ports have no SL2VL, {}", modulo(count));
        placing.holes.tell(&mut oddities, &what);
        let what = format!("SLs are on VL 15, which discards data; {}", modulo(count));
        placing.discards.tell(&mut oddities, &what);
        Ok((lanes, oddities))
    }
}

fn modulo(count: u8) -> String {
    format!("taken as SL s on VL s mod {count}")
}

/// Sections being put onto a fabric.
struct Placing {
    graph: SwitchGraph,
    /// For what the file leaves open.
    fallback: [VirtualLane; 16],
    /// SLs on VL 15.
    discards: Tally,
    /// Pairs of cabled ports without a line.
    holes: Tally,
    /// What switches do on cables towards adapters, and the first line that says so.
    links: BTreeMap<[VirtualLane; 16], usize>,
}

impl Placing {
    fn filled(&mut self, row: &LaneRow) -> [VirtualLane; 16] {
        std::array::from_fn(|sl| {
            row.lanes[sl].unwrap_or_else(|| {
                self.discards.add(row.line, || format!("SL {sl}"));
                self.fallback[sl]
            })
        })
    }

    fn table(
        &mut self,
        fabric: &Fabric,
        switch: NodeId,
        section: &LaneSection,
        file: &str,
    ) -> Result<SlToVlTable, DumpError> {
        let stride = usize::from(fabric.node(switch).port_count()) + 1;
        let at = self.graph.row_of(switch).unwrap_or_default();
        let mut rows: Vec<Option<[VirtualLane; 16]>> = vec![None; stride * stride];
        for row in &section.rows {
            let ends = [row.input, row.output].map(|port| Endpoint { node: switch, port });
            if let Some(end) = ends.iter().find(|end| usize::from(end.port.value()) >= stride) {
                return Err(super::no_such_port(fabric, *end, file, row.line));
            }
            let lanes = self.filled(row);
            let (input, output) = (row.input.value(), row.output.value());
            rows[usize::from(input) * stride + usize::from(output)] = Some(lanes);
            if matches!(self.graph.peer(at, output), Peer::Adapter { .. }) && input != output {
                self.links.entry(lanes).or_insert(row.line);
            }
        }
        let name = fabric.node(switch).name.escape_debug();
        let cabled = |port: usize| self.graph.peer(at, port as u8) != Peer::Nothing;
        let mut hole = false;
        for (index, _) in rows.iter().enumerate().filter(|(_, row)| row.is_none()) {
            let (input, output) = (index / stride, index % stride);
            if input != output && cabled(output) && (input == 0 || cabled(input)) {
                self.holes.add(section.line, || format!("{input} to {output} on {name}"));
                hole = true;
            }
        }
        let mut known = rows.iter().flatten();
        if let Some(first) = known.next().filter(|_| !hole)
            && known.all(|row| row == first)
        {
            return Ok(SlToVlTable::Uniform(*first));
        }
        let own = [VirtualLane::default(); 16];
        let open = |output: usize| if output == 0 { own } else { self.fallback };
        let rows = rows.into_iter().enumerate();
        let rows = rows.map(|(index, row)| row.unwrap_or_else(|| open(index % stride))).collect();
        Ok(SlToVlTable::PerPorts { stride, rows })
    }
}

/// Writes the mapping of all switches, input 0 being the switch's own port. Fails if `out` does.
pub fn write(fabric: &Fabric, subnet: &Subnet, out: &mut dyn Write) -> io::Result<()> {
    for switch in subnet.tables.switches() {
        let node = fabric.node(*switch);
        let own = Endpoint { node: *switch, port: PortNumber::MANAGEMENT };
        let lid = subnet.lids.base(own).map_or(0, |(lid, _)| lid.value());
        writeln!(out, "Switch {}, base LID {lid}, \"{}\"", node.guid, plain_name(&node.name))?;
        writeln!(out, "#in out : 0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15")?;
        writeln!(out, "#--------------------------------------------------------")?;
        let table = subnet.sl_to_vl.table(*switch);
        let ports = (0..=node.port_count()).filter_map(PortNumber::new);
        for (input, output) in
            ports.clone().flat_map(|input| ports.clone().skip(1).map(move |output| (input, output)))
        {
            write!(out, "{:<3} {:<3} :", input.value(), output.value())?;
            for sl in (0..16).filter_map(ServiceLevel::new) {
                write!(out, " {:<2}", table.lane(input, output, sl).value())?;
            }
            writeln!(out)?;
        }
        writeln!(out)?;
    }
    Ok(())
}
