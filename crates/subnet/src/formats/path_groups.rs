//! What it is: the SL of every path by groups of hosts, ours: what our routing engine for OpenSM
//! reads. Hosts are known by port GUID, so that LIDs may change.
//!
//! ```text
//! path-groups 1
//! group 0 0x0ac1ea5ca0010000 0x0ac1ea5ca0010001
//! group 1 0x0ac1ea5ca0010002
//! offset 0
//! from 0 to 0 1
//! from 1 to 1 0
//! ```
//! A line `from <group> to …` has the SLs to groups 0, 1 and so on; `offset` begins those of a LID
//! offset. Offsets without lines have those of offset o mod the number there is.

pub use super::subnet_lst::port_guid;
use super::{Content, DumpError, Entry, Oddity, Tally};
use crate::graph::SwitchGraph;
use crate::path_sl::GROUPS_MAX;
use crate::{HostGroups, LidMap, PathSl, Subnet};
use clearlane_fabric::Fabric;
use clearlane_ib::{Guid, ServiceLevel, quoted};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// `path-groups`.
pub(super) const ENTRY: Entry = Entry {
    name: "path-groups",
    summary: "SLs of paths by groups of hosts, for the routing engine clearlane of OpenSM",
    forwards: false,
    sniff: |text| text.trim_start().starts_with(HEAD),
    read: |text, file| read(text, file).map(Content::Groups),
};

const HEAD: &str = "path-groups 1";
/// Port GUIDs on a line.
const GUIDS_A_LINE: usize = 8;
/// Most LID offsets a port has (IBA vol. 1, 14.2.5.6: an LMC of 7).
const OFFSETS_MAX: usize = 128;

/// What such a file says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GroupDump {
    /// Port GUIDs with their groups and, of a file, their lines.
    pub members: Vec<(Guid, u16, usize)>,
    /// By LID offset: `groups × groups` SLs, source-major.
    pub levels: Vec<Vec<u8>>,
    /// How many groups there are.
    pub count: usize,
}

fn read(text: &str, file: &str) -> Result<GroupDump, DumpError> {
    let mut dump = GroupDump::default();
    let mut rows: Vec<Vec<Vec<u8>>> = Vec::new();
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let mut last = 1;
    let mut known: BTreeMap<Guid, usize> = BTreeMap::new();
    for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        last = number;
        let error = |what: String| {
            let remedy = "lines are `group N 0x…`, `offset N` and `from N to SL SL …`";
            DumpError::new(file, number, what, remedy)
        };
        let mut words = line.split_whitespace();
        match words.next().unwrap_or_default() {
            "path-groups" if line == HEAD => {}
            "group" => {
                let group = words.next().unwrap_or_default();
                let group = super::decimal::<u16>(group)
                    .filter(|group| usize::from(*group) < GROUPS_MAX)
                    .ok_or_else(|| error(format!("{} is no group", quoted(group))))?;
                dump.count = dump.count.max(usize::from(group) + 1);
                for word in words {
                    let guid = word.strip_prefix("0x").and_then(|word| Guid::from_hex(word).ok());
                    let guid =
                        guid.ok_or_else(|| error(format!("{} is no port GUID", quoted(word))))?;
                    if let Some(before) = known.insert(guid, number) {
                        let what = format!("port GUID {guid} again, it is in line {before}");
                        return Err(error(what));
                    }
                    dump.members.push((guid, group, number));
                }
            }
            "offset" => {
                let offset = words.next().unwrap_or_default();
                if super::decimal::<usize>(offset) != Some(rows.len()) || rows.len() == OFFSETS_MAX
                {
                    let next = rows.len();
                    return Err(error(format!("{} where offset {next} comes", quoted(offset))));
                }
                rows.push(Vec::new());
            }
            "from" => row(words, &mut rows).map_err(error)?,
            _ => return Err(error(quoted(line))),
        }
    }
    let count = dump.count;
    for (offset, rows) in rows.iter().enumerate() {
        if rows.len() != count || rows.iter().any(|row| row.len() != count) {
            let what = format!("not {count} by {count} SLs at offset {offset}");
            let remedy = "there is a line for each group with an SL for each";
            return Err(DumpError::new(file, last, what, remedy));
        }
    }
    if rows.is_empty() {
        let remedy = "give lines `offset 0` and `from N to SL SL …`";
        return Err(DumpError::new(file, last, "no SLs".into(), remedy));
    }
    dump.levels = rows.into_iter().map(|rows| rows.concat()).collect();
    Ok(dump)
}

/// A line `from 1 to 1 0`, put at the end of the last offset.
fn row<'a>(
    mut words: impl Iterator<Item = &'a str>,
    rows: &mut [Vec<Vec<u8>>],
) -> Result<(), String> {
    let rows = rows.last_mut().ok_or("SLs before the first offset")?;
    let source = words.next().unwrap_or_default();
    if super::decimal::<usize>(source) != Some(rows.len()) || words.next() != Some("to") {
        return Err(format!("{} where those from {} come", quoted(source), rows.len()));
    }
    let level = |word: &str| {
        let level = super::decimal(word).and_then(ServiceLevel::new);
        level.map(ServiceLevel::value).ok_or_else(|| format!("{} is no SL", quoted(word)))
    };
    rows.push(words.map(level).collect::<Result<_, _>>()?);
    Ok(())
}

impl GroupDump {
    /// Puts the groups onto a fabric. A host that the file does not name goes into group 0, with a
    /// word on it.
    pub fn levels(&self, fabric: &Fabric, lids: &LidMap) -> (PathSl, Vec<Oddity>) {
        let graph = SwitchGraph::of(fabric);
        let hosts = graph.adapter_ports(fabric);
        let group: BTreeMap<Guid, u16> =
            self.members.iter().map(|(guid, group, _)| (*guid, *group)).collect();
        let (mut left, mut missing) = (group.clone(), Tally::default());
        let of_host: Vec<u16> = hosts
            .iter()
            .map(|host| {
                let guid = port_guid(fabric, host.end);
                left.remove(&guid);
                group.get(&guid).copied().unwrap_or_else(|| {
                    missing.add(0, || fabric.node(host.end.node).name.escape_debug().to_string());
                    0
                })
            })
            .collect();
        let mut oddities = Vec::new();
        missing.tell(&mut oddities, "hosts are in no group and are taken to be in group 0");
        let mut strangers = Tally::default();
        for (guid, _, line) in self.members.iter().filter(|member| left.contains_key(&member.0)) {
            strangers.add(*line, || guid.to_string());
        }
        strangers.tell(&mut oddities, "port GUIDs are of no host of the fabric");
        let groups =
            HostGroups::of(&graph, lids, (&hosts, &of_host), self.count, self.levels.clone());
        (PathSl::ByGroup(groups), oddities)
    }
}

/// The SLs of a subnet by groups of hosts: where they depend on switches, the hosts of a switch are
/// a group. Groups without hosts are left out.
pub fn of(fabric: &Fabric, subnet: &Subnet) -> GroupDump {
    let graph = SwitchGraph::of(fabric);
    let mut members: BTreeMap<usize, Vec<Guid>> = BTreeMap::new();
    for host in graph.adapter_ports(fabric) {
        if let Some((lid, _)) = subnet.lids.base(host.end) {
            let end = match subnet.path_sl {
                PathSl::Uniform(_) => 0,
                _ => subnet.path_sl.end(host.row as usize, lid),
            };
            members.entry(end).or_default().push(port_guid(fabric, host.end));
        }
    }
    let ends: Vec<usize> = members.keys().copied().collect();
    let level = |from: &usize, to: &usize, offset| {
        subnet.path_sl.level_at(*from, *to, offset as u16).value()
    };
    let of_offset = |offset: usize| {
        ends.iter().flat_map(|from| ends.iter().map(move |to| level(from, to, offset))).collect()
    };
    let levels = (0..subnet.path_sl.offsets()).map(of_offset).collect();
    let in_group = |(group, guids): (usize, Vec<Guid>)| {
        guids.into_iter().map(move |guid| (guid, group as u16, 0))
    };
    let count = ends.len();
    let members = members.into_values().enumerate().flat_map(in_group).collect();
    GroupDump { members, levels, count }
}

/// Writes the SLs of a subnet, by the groups of [`of`]. Fails if `out` does, or if there are more
/// groups than can be read back.
pub fn write(fabric: &Fabric, subnet: &Subnet, out: &mut dyn Write) -> io::Result<()> {
    let dump = of(fabric, subnet);
    if dump.count > GROUPS_MAX {
        let what = format!("{} groups of hosts, and {GROUPS_MAX} can be read back", dump.count);
        return Err(io::Error::other(what));
    }
    writeln!(out, "{HEAD}")?;
    for members in dump.members.chunk_by(|a, b| a.1 == b.1) {
        for some in members.chunks(GUIDS_A_LINE) {
            write!(out, "group {}", some[0].1)?;
            some.iter().try_for_each(|(guid, _, _)| write!(out, " {guid}"))?;
            writeln!(out)?;
        }
    }
    for (offset, levels) in dump.levels.iter().enumerate() {
        writeln!(out, "offset {offset}")?;
        for (group, row) in levels.chunks(dump.count.max(1)).enumerate() {
            write!(out, "from {group} to")?;
            row.iter().try_for_each(|level| write!(out, " {level}"))?;
            writeln!(out)?;
        }
    }
    Ok(())
}
