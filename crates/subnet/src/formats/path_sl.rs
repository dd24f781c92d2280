//! What it is: the SL of every path, as ibdmchk reads it (`-c`): a line
//! `0x<node GUID of the source> <DLID> <SL>`, numbers decimal.

mod by_host;

use super::{Content, DumpError, Entry, Oddity, Tally};
use crate::graph::{Host, SwitchGraph};
use crate::{LidMap, PathSl, Subnet};
use clearlane_fabric::{Endpoint, Fabric, NodeId};
use clearlane_ib::{Guid, Lid, ServiceLevel, quoted};
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
            let what = format!("{} is no {kind}", quoted(word));
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

/// A line put onto a fabric: host ports by their place, and the LID offset.
struct Placed {
    from: usize,
    to: usize,
    offset: usize,
    sl: u8,
    line: usize,
}

/// Host ports of a fabric, in the order of nodes and ports.
struct Ports<'a> {
    fabric: &'a Fabric,
    lids: &'a LidMap,
    graph: SwitchGraph,
    hosts: Vec<Host>,
    /// The first port of an adapter, which stands for all: lines name the sender's node.
    first: BTreeMap<NodeId, usize>,
    place: BTreeMap<Endpoint, usize>,
}

impl<'a> Ports<'a> {
    fn of(fabric: &'a Fabric, lids: &'a LidMap) -> Self {
        let graph = SwitchGraph::of(fabric);
        let hosts = graph.adapter_ports(fabric);
        let (mut first, mut place) = (BTreeMap::new(), BTreeMap::new());
        for (index, host) in hosts.iter().enumerate() {
            first.entry(host.end.node).or_insert(index);
            place.insert(host.end, index);
        }
        Ports { fabric, lids, graph, hosts, first, place }
    }

    /// Lines between host ports. SLs of paths from or to switches are management's and not looked
    /// at.
    fn placed<'b>(&'b self, dump: &'b LevelDump) -> impl Iterator<Item = Placed> + 'b {
        dump.levels.iter().filter_map(|Level { source, lid, sl, line }| {
            let owner = self.lids.owner(*lid)?;
            let from = *self.first.get(&self.fabric.by_guid(*source)?)?;
            let to = *self.place.get(&owner.end)?;
            let offset = usize::from(owner.offset);
            Some(Placed { from, to, offset, sl: sl.value(), line: *line })
        })
    }

    /// What lines cannot be placed.
    fn oddities(&self, dump: &LevelDump) -> Vec<Oddity> {
        let (mut strangers, mut ownerless) = (Tally::default(), Tally::default());
        for Level { source, lid, line, .. } in &dump.levels {
            if self.fabric.by_guid(*source).is_none() {
                strangers.add(*line, || source.to_string());
            } else if self.lids.owner(*lid).is_none() {
                ownerless.add(*line, || lid.to_string());
            }
        }
        let mut oddities = Vec::new();
        strangers.tell(&mut oddities, "lines are of GUIDs that are not in the fabric");
        ownerless.tell(&mut oddities, "lines are for LIDs that nobody has");
        oddities
    }

    fn name(&self, host: usize) -> String {
        let node = self.hosts[host].end.node;
        self.fabric.node(node).name.escape_debug().to_string()
    }
}

/// No SL yet.
const UNSET: u8 = u8::MAX;

impl LevelDump {
    /// Puts the SLs onto a fabric: by the switches of source and destination and by LID offset, or,
    /// where hosts of the same two switches differ, by groups of hosts. Fails if a path has two
    /// SLs, or if there are more groups than can be held.
    pub fn levels(
        &self,
        fabric: &Fabric,
        lids: &LidMap,
        file: &str,
    ) -> Result<(PathSl, Vec<Oddity>), DumpError> {
        let ports = Ports::of(fabric, lids);
        let mut oddities = ports.oddities(self);
        let levels = match self.by_switch(&ports, &mut oddities) {
            Some(levels) => levels,
            None => PathSl::ByGroup(by_host::groups(self, &ports, &mut oddities, file)?),
        };
        Ok((levels, oddities))
    }

    /// The SLs by switch; nothing where hosts of the same two switches differ.
    fn by_switch(&self, ports: &Ports<'_>, oddities: &mut Vec<Oddity>) -> Option<PathSl> {
        let stride = ports.graph.rows();
        let offsets = usize::from(ports.lids.lmc_max().lids());
        let mut levels = vec![vec![UNSET; stride * stride]; offsets];
        let row = |host: usize| ports.hosts[host].row as usize;
        for Placed { from, to, offset, sl, .. } in ports.placed(self) {
            let level = &mut levels[offset][row(from) * stride + row(to)];
            if *level != UNSET && *level != sl {
                return None;
            }
            *level = sl;
        }
        let mut count = vec![0usize; stride];
        let addressed = ports.hosts.iter().filter(|host| ports.lids.base(host.end).is_some());
        addressed.for_each(|host| count[host.row as usize] += 1);
        let mut holes = Tally::default();
        for levels in &mut levels {
            fill_holes(ports.fabric, &ports.graph, &count, levels, &mut holes);
        }
        holes.tell(oddities, "pairs of switches have no SL and are taken on SL 0");
        let mut of_offset: Vec<PathSl> =
            levels.into_iter().map(|levels| path_sl(stride, levels)).collect();
        Some(match of_offset.iter().all(|of| *of == of_offset[0]) {
            true => of_offset.swap_remove(0),
            false => PathSl::ByOffset(of_offset),
        })
    }
}

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
            let Some((own, _)) = subnet.lids.base(source.end) else { continue };
            let from = subnet.path_sl.end(source.row as usize, own);
            let to = subnet.path_sl.end(destination.row as usize, base);
            for offset in 0..lmc.lids() {
                let sl = subnet.path_sl.level_at(from, to, offset);
                writeln!(out, "{guid} {} {sl}", base.value().saturating_add(offset))?;
            }
        }
    }
    Ok(())
}
