//! What it is: the SL of every path, as ibdmchk reads it (`-c`): a line
//! `0x<node GUID of the source> <DLID> <SL>`, numbers decimal.

use super::unicast_lids::shown;
use super::{Content, DumpError, Entry, Oddity, Tally};
use crate::graph::SwitchGraph;
use crate::{LidMap, PathSl, Subnet};
use clearlane_fabric::{Endpoint, Fabric, NodeId};
use clearlane_ib::{Guid, Lid, ServiceLevel};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// `path-sl`.
pub(super) const ENTRY: Entry = Entry {
    name: "path-sl",
    summary: "SLs of paths, a line 0x<node GUID> <DLID> <SL> each, as ibdmchk reads them",
    forwards: false,
    sniff: |text| lines(text).next().is_some_and(|(_, line)| is_entry(line)),
    read: |text, file| read(text, file).map(Content::Levels),
};

/// The SL of one path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Level {
    /// Node GUID of the adapter that sends.
    pub source: Guid,
    /// To which LID.
    pub lid: Lid,
    /// The SL.
    pub sl: ServiceLevel,
    /// Where it stands, from 1.
    pub line: usize,
}

/// What a file with SLs of paths says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LevelDump {
    /// In the order of the file.
    pub levels: Vec<Level>,
}

/// Lines that say something, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

fn is_entry(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().take(4).collect();
    let digits = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    matches!(words[..], [guid, lid, sl] if guid.starts_with("0x") && digits(lid) && digits(sl))
}

fn read(text: &str, file: &str) -> Result<LevelDump, DumpError> {
    let mut dump = LevelDump::default();
    for (number, line) in lines(text) {
        let mut words = line.split_whitespace();
        let mut word = || words.next().unwrap_or_default();
        let (guid, lid, sl) = (word(), word(), word());
        let error = |word: &str, kind: &str| {
            let what = format!("{:?} is no {kind}", shown(word));
            let remedy = "a line is 0x<node GUID> <DLID> <SL>, decimal, SLs 0 to 15";
            DumpError::new(file, number, what, remedy)
        };
        let source = guid.strip_prefix("0x").and_then(|digits| Guid::from_hex(digits).ok());
        dump.levels.push(Level {
            source: source.ok_or_else(|| error(guid, "node GUID"))?,
            lid: super::decimal(lid).and_then(Lid::new).ok_or_else(|| error(lid, "unicast LID"))?,
            sl: super::decimal(sl)
                .and_then(ServiceLevel::new)
                .ok_or_else(|| error(sl, "service level"))?,
            line: number,
        });
    }
    Ok(dump)
}

impl LevelDump {
    /// Puts the SLs onto a fabric, by the switches of source and destination and by LID offset.
    /// Fails where hosts of the same two switches are told apart. SLs of paths from or to switches
    /// are management's and not looked at.
    pub fn levels(
        &self,
        fabric: &Fabric,
        lids: &LidMap,
        file: &str,
    ) -> Result<(PathSl, Vec<Oddity>), DumpError> {
        let graph = SwitchGraph::of(fabric);
        let mut rows: BTreeMap<NodeId, usize> = BTreeMap::new();
        let mut ends: BTreeMap<Endpoint, usize> = BTreeMap::new();
        for host in graph.adapter_ports(fabric) {
            rows.entry(host.end.node).or_insert(host.row as usize);
            ends.insert(host.end, host.row as usize);
        }
        let stride = graph.rows();
        let offsets = usize::from(lids.lmc_max().lids());
        let mut levels = vec![vec![UNSET; stride * stride]; offsets];
        let (mut strangers, mut ownerless) = (Tally::default(), Tally::default());
        for Level { source, lid, sl, line } in &self.levels {
            let (Some(node), Some(owner)) = (fabric.by_guid(*source), lids.owner(*lid)) else {
                match fabric.by_guid(*source) {
                    None => strangers.add(*line, || source.to_string()),
                    Some(_) => ownerless.add(*line, || lid.to_string()),
                }
                continue;
            };
            let (Some(from), Some(to)) = (rows.get(&node), ends.get(&owner.end)) else { continue };
            let level = &mut levels[usize::from(owner.offset)][from * stride + to];
            if *level != UNSET && *level != sl.value() {
                let name = |row: usize| fabric.node(graph.switch(row)).name.escape_debug();
                let (from, to) = (name(*from), name(*to));
                let what =
                    format!("SL {sl} from a host on {from} to one on {to}, SL {level} above");
                let remedy = "one SL for all hosts of a pair of switches is what can be taken; \
                              give such a file or none";
                return Err(DumpError::new(file, *line, what, remedy));
            }
            *level = sl.value();
        }
        let mut oddities = Vec::new();
        strangers.tell(&mut oddities, "lines are of GUIDs that are not in the fabric");
        ownerless.tell(&mut oddities, "lines are for LIDs that nobody has");
        let addressed = ends.iter().filter(|(end, _)| lids.base(**end).is_some());
        let mut hosts = vec![0usize; stride];
        addressed.for_each(|(_, row)| hosts[*row] += 1);
        let mut holes = Tally::default();
        for levels in &mut levels {
            fill_holes(fabric, &graph, &hosts, levels, &mut holes);
        }
        holes.tell(&mut oddities, "pairs of switches have no SL and are taken on SL 0");
        let mut of_offset: Vec<PathSl> =
            levels.into_iter().map(|levels| path_sl(stride, levels)).collect();
        if of_offset.iter().all(|of| *of == of_offset[0]) {
            return Ok((of_offset.swap_remove(0), oddities));
        }
        Ok((PathSl::ByOffset(of_offset), oddities))
    }
}

/// No SL yet.
const UNSET: u8 = u8::MAX;

/// Puts SL 0 where hosts have none, and counts how often.
fn fill_holes(
    fabric: &Fabric,
    graph: &SwitchGraph,
    hosts: &[usize],
    levels: &mut [u8],
    holes: &mut Tally,
) {
    let name = |row: usize| fabric.node(graph.switch(row)).name.escape_debug();
    for (at, level) in levels.iter_mut().enumerate().filter(|(_, level)| **level == UNSET) {
        let (from, to) = (at / hosts.len(), at % hosts.len());
        let talk = hosts[from] > 0 && hosts[to] > usize::from(from == to);
        if talk {
            holes.add(0, || format!("{} to {}", name(from), name(to)));
            *level = 0;
        }
    }
}

/// One SL where all pairs that talk have the same.
fn path_sl(stride: usize, mut levels: Vec<u8>) -> PathSl {
    let mut known = levels.iter().copied().filter(|level| *level != UNSET);
    let first = known.next().unwrap_or(0);
    if known.all(|level| level == first) {
        return PathSl::Uniform(ServiceLevel::new(first).unwrap_or_default());
    }
    levels.iter_mut().filter(|level| **level == UNSET).for_each(|level| *level = 0);
    PathSl::BySwitch { stride, levels }
}

/// Writes a line for every adapter and every LID of every other one, and of its own ports where it
/// has several cabled. Fails if `out` does.
pub fn write(fabric: &Fabric, subnet: &Subnet, out: &mut dyn Write) -> io::Result<()> {
    let graph = SwitchGraph::of(fabric);
    let ports = graph.adapter_ports(fabric);
    for of_adapter in ports.chunk_by(|a, b| a.end.node == b.end.node) {
        let guid = fabric.node(of_adapter[0].end.node).guid;
        for destination in &ports {
            // A port sends nothing to itself.
            let source = of_adapter.iter().find(|port| port.end != destination.end);
            let lids = subnet.lids.base(destination.end);
            let (Some(source), Some((base, lmc))) = (source, lids) else { continue };
            let (from, to) = (source.row as usize, destination.row as usize);
            for offset in 0..lmc.lids() {
                let sl = subnet.path_sl.level_at(from, to, offset);
                writeln!(out, "{guid} {} {sl}", base.value().saturating_add(offset))?;
            }
        }
    }
    Ok(())
}
