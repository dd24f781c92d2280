//! What it is: opensm.fdbs, the tables with hop counts; ibdmchk reads it (`-f`).
//!
//! ```text
//! dump_ucast_routes: Switch 0x0ac1ea5100000000
//! LID    : Port : Hops : Optimal
//! 0x0001 : 001  : 01   : yes
//! 0x000D : 001  : 04   : No 2 hop path possible via port 4!
//! 0x0010 : UNREACHABLE
//! ```
//! Hops are switches passed after this one, the adapter counting as one: 1 for a host on the
//! switch, 0 for the switch itself.

use super::{Content, Dump, DumpEntry, DumpError, Entry, Section};
use crate::Subnet;
use crate::graph::{Peer, SwitchGraph};
use clearlane_fabric::Fabric;
use clearlane_ib::{Guid, Lid, PortNumber, quoted};
use std::io::{self, Write};

/// `opensm-fdbs`.
pub(super) const ENTRY: Entry = Entry {
    name: "opensm-fdbs",
    summary: "opensm.fdbs, as OpenSM writes and ibdmchk reads it",
    forwards: true,
    sniff: |text| text.lines().any(|line| line.starts_with(HEADING)),
    read: |text, file| read(text, file).map(Content::Tables),
};

const HEADING: &str = "dump_ucast_routes: Switch 0x";

fn read(text: &str, file: &str) -> Result<Dump, DumpError> {
    let mut dump = Dump::default();
    for (index, line) in text.lines().enumerate() {
        let (number, line) = (index + 1, line.trim());
        let error = |what: String| {
            let remedy = "an entry is 0x<LID> : <port> : <hops> : yes, or UNREACHABLE for a port";
            DumpError::new(file, number, what, remedy)
        };
        if let Some(rest) = line.strip_prefix(HEADING) {
            let word = rest.split_whitespace().next().unwrap_or_default();
            let guid = Guid::from_hex(word)
                .map_err(|_| error(format!("{} is no node GUID", quoted(word))))?;
            dump.sections.push(Section { guid, line: number, entries: Vec::new() });
        } else if line.starts_with("0x") {
            let mut fields = line.split(':').map(str::trim);
            let word = fields.next().unwrap_or_default();
            let lid = word
                .strip_prefix("0x")
                .and_then(|digits| u16::from_str_radix(digits, 16).ok())
                .and_then(Lid::new)
                .ok_or_else(|| error(format!("{} is no unicast LID", quoted(word))))?;
            let word = fields.next().unwrap_or_default();
            let port = match word {
                "UNREACHABLE" | "-" => None,
                _ => {
                    let port = super::decimal(word)
                        .ok_or_else(|| error(format!("{} is no port", quoted(word))))?;
                    PortNumber::new(port)
                }
            };
            let section = dump.sections.last_mut();
            let section =
                section.ok_or_else(|| error("an entry before the first heading".into()))?;
            section.entries.push(DumpEntry { lid, port, port_guid: None, line: number });
        }
    }
    if dump.sections.is_empty() {
        let what = "no section \"dump_ucast_routes: Switch\"".to_string();
        return Err(DumpError::new(file, 1, what, "give opensm.fdbs as OpenSM wrote it"));
    }
    Ok(dump)
}

/// Writes the tables with hop counts. Fails if `out` does.
pub fn write(fabric: &Fabric, subnet: &Subnet, out: &mut dyn Write) -> io::Result<()> {
    let graph = SwitchGraph::of(fabric);
    let hops = Hops::of(&graph, subnet);
    for (row, switch) in subnet.tables.switches().iter().enumerate() {
        writeln!(out, "dump_ucast_routes: Switch {}", fabric.node(*switch).guid)?;
        writeln!(out, "LID    : Port : Hops : Optimal")?;
        for (lid, _) in subnet.lids.iter() {
            let at = usize::from(lid.value());
            let port = subnet.tables.row(row).get(at).copied().unwrap_or(u8::MAX);
            let (taken, least) = hops.at(row, at);
            if port == u8::MAX {
                writeln!(out, "0x{at:04X} : UNREACHABLE")?;
                continue;
            }
            write!(out, "0x{at:04X} : {port:03}  : {taken:02}   : ")?;
            if taken <= least {
                writeln!(out, "yes")?;
            } else {
                let best = graph
                    .switch_peers(row)
                    .find(|(_, peer, _)| hops.at(*peer, at).1 + 1 == least)
                    .map_or(port, |(port, _, _)| port);
                writeln!(out, "No {least} hop path possible via port {best}!")?;
            }
        }
    }
    Ok(())
}

/// Hops taken by the tables and least possible, per switch and LID; 255 for more or none.
struct Hops {
    columns: usize,
    taken: Vec<u8>,
    least: Vec<u8>,
}

impl Hops {
    fn of(graph: &SwitchGraph, subnet: &Subnet) -> Self {
        let columns = subnet.tables.columns();
        let cells = graph.rows() * columns;
        let mut hops = Hops { columns, taken: vec![u8::MAX; cells], least: vec![u8::MAX; cells] };
        let targets = graph.targets(&subnet.lids);
        let (mut distances, mut queue) = (Vec::new(), Vec::new());
        let mut path = Vec::new();
        for of_switch in targets.chunk_by(|a, b| a.row == b.row) {
            graph.distances(of_switch[0].row as usize, &mut distances, &mut queue);
            for target in of_switch {
                let lid = usize::from(target.lid.value());
                let at_home = u8::from(target.exit != 0);
                for (row, distance) in distances.iter().enumerate() {
                    let least = distance.saturating_add(u32::from(at_home)).min(255);
                    hops.least[row * columns + lid] = least as u8;
                }
                hops.taken[target.row as usize * columns + lid] = at_home;
                for row in 0..graph.rows() {
                    hops.walk(graph, subnet, row, lid, &mut path);
                }
            }
        }
        hops
    }

    /// Fills the hops of all switches on one path that are not known yet.
    fn walk(
        &mut self,
        graph: &SwitchGraph,
        subnet: &Subnet,
        mut row: usize,
        lid: usize,
        path: &mut Vec<usize>,
    ) {
        path.clear();
        while self.taken[row * self.columns + lid] == u8::MAX && path.len() < 255 {
            path.push(row);
            let port = subnet.tables.row(row).get(lid).copied().unwrap_or(u8::MAX);
            let Peer::Switch { row: next, .. } = graph.peer(row, port) else { return };
            row = next as usize;
        }
        let mut hops = self.taken[row * self.columns + lid];
        for row in path.iter().rev() {
            hops = hops.saturating_add(1);
            self.taken[row * self.columns + lid] = hops;
        }
    }

    fn at(&self, row: usize, lid: usize) -> (u8, u8) {
        (self.taken[row * self.columns + lid], self.least[row * self.columns + lid])
    }
}
