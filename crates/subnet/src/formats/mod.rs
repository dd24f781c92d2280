//! Files with forwarding tables, read and written, and the other files that OpenSM and ibdmchk
//! take. One reader a file, one line in [`ALL`]; writers are functions.
//!
//! A reader gives a [`Content`]: what the file says, with line numbers. [`Dump::tables`],
//! [`sl2vl::LaneDump::lanes`] and [`path_sl::LevelDump::levels`] put it onto a fabric and report
//! everything that does not fit.

pub mod fdbs;
pub mod guid2lid;
mod ibroute;
pub mod lfts;
pub mod path_groups;
pub mod path_sl;
pub mod sl2vl;
pub mod subnet_lst;
mod unicast_lids;

use crate::{ForwardingTables, LidError, LidMap};
use clearlane_fabric::{Endpoint, Fabric, NodeId};
use clearlane_ib::{Guid, Lid, Lmc, PortNumber};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A reader.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// One line on where such files come from.
    pub summary: &'static str,
    /// Whether it holds forwarding tables; the others say which lanes packets take on them.
    pub forwards: bool,
    /// Whether the text looks like one.
    pub sniff: fn(&str) -> bool,
    /// Reads a text; the second argument is the file's name for errors.
    pub read: fn(&str, &str) -> Result<Content, DumpError>,
}

/// All readers.
pub static ALL: &[Entry] =
    &[lfts::ENTRY, ibroute::ENTRY, fdbs::ENTRY, sl2vl::ENTRY, path_groups::ENTRY, path_sl::ENTRY];

/// What a file holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// Forwarding tables.
    Tables(Dump),
    /// SL2VL.
    Lanes(sl2vl::LaneDump),
    /// The SL of paths.
    Levels(path_sl::LevelDump),
    /// The SL of paths by groups of hosts.
    Groups(path_groups::GroupDump),
}

/// Why a dump cannot be used.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{file}:{line}: {what}; {remedy}")]
pub struct DumpError {
    /// Name of the file, control characters escaped.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub what: String,
    /// What to do about it.
    pub remedy: &'static str,
}

impl DumpError {
    fn new(file: &str, line: usize, what: String, remedy: &'static str) -> Self {
        DumpError { file: file.escape_debug().to_string(), line, what, remedy }
    }

    /// One file too many of a kind of which there can be one.
    pub(crate) fn second(file: &str, kind: &str) -> Self {
        let what = format!("a second file with {kind}");
        Self::new(file, 1, what, "leave it out or join the two")
    }
}

/// Something odd in a file and how it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oddity {
    /// Where it was first seen, from 1; 0 for what is missing.
    pub line: usize,
    /// What it is and how it was taken.
    pub what: String,
}

impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.what),
            line => write!(f, "line {line}: {}", self.what),
        }
    }
}

/// One entry of a dump.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DumpEntry {
    /// The destination.
    pub lid: Lid,
    /// The output port; nothing for "unreachable".
    pub port: Option<PortNumber>,
    /// GUID of the port that has the LID, if the file says so.
    pub port_guid: Option<Guid>,
    /// Line number, from 1.
    pub line: usize,
}

/// One switch's entries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Section {
    /// Node GUID of the switch.
    pub guid: Guid,
    /// First line of the section, from 1.
    pub line: usize,
    /// In the order of the file.
    pub entries: Vec<DumpEntry>,
}

/// What a file with forwarding tables says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Dump {
    /// Switch by switch in the order of the file.
    pub sections: Vec<Section>,
    /// Oddities of the text itself.
    pub oddities: Vec<Oddity>,
}

/// Reads a file in any known format, told by its looks.
pub fn read(text: &str, file: &str) -> Result<Content, DumpError> {
    match ALL.iter().find(|entry| (entry.sniff)(text)) {
        Some(entry) => (entry.read)(text, file),
        None => Err(DumpError::new(
            file,
            1,
            "no forwarding tables are recognised".into(),
            "give an opensm-lfts.dump, ibroute or dump_fts text, or opensm.fdbs, and beside it \
             opensm-sl2vl.dump or lines 0x<node GUID> <DLID> <SL>",
        )),
    }
}

/// Every port GUID of a fabric; a switch's own GUID stands for its port 0.
fn ports_by_guid(fabric: &Fabric) -> BTreeMap<Guid, Endpoint> {
    let mut ports = BTreeMap::new();
    for (index, node) in fabric.nodes().iter().enumerate() {
        let node_id = NodeId(index as u32);
        for (number, port) in node.ports.iter().enumerate() {
            if let Some(number) = PortNumber::new(number as u8)
                && port.guid != Guid::default()
                && node.is_switch() == (number == PortNumber::MANAGEMENT)
            {
                ports.entry(port.guid).or_insert(Endpoint { node: node_id, port: number });
            }
        }
        if node.is_switch() {
            let own = Endpoint { node: node_id, port: PortNumber::MANAGEMENT };
            ports.entry(node.guid).or_insert(own);
        }
    }
    ports
}

/// The switch with this node GUID.
fn switch_of(fabric: &Fabric, guid: Guid) -> Option<NodeId> {
    fabric.by_guid(guid).filter(|id| fabric.node(*id).is_switch())
}

/// A number as dumps write it: decimal digits alone.
fn decimal<T: std::str::FromStr>(word: &str) -> Option<T> {
    word.parse().ok().filter(|_| word.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The error of an entry about a port that its switch does not have.
fn no_such_port(fabric: &Fabric, end: Endpoint, file: &str, line: usize) -> DumpError {
    let node = fabric.node(end.node);
    let (port, name, ports) = (end.port, node.name.escape_debug(), node.port_count());
    let what = format!("port {port} on {name}, which has ports 1 to {ports}");
    let remedy = "OpenSM refuses the whole file; use the file of this fabric";
    DumpError::new(file, line, what, remedy)
}

impl Dump {
    /// Whether a fabric has any of the switches.
    pub fn is_about(&self, fabric: &Fabric) -> bool {
        self.sections.iter().any(|section| switch_of(fabric, section.guid).is_some())
    }

    /// The LIDs that the port GUIDs of the entries give to a fabric's ports; nothing if no entry
    /// names a known GUID. The smallest LID of a port is its base.
    pub fn lids(&self, fabric: &Fabric) -> Result<Option<LidMap>, LidError> {
        let ports = ports_by_guid(fabric);
        let mut lids: BTreeMap<Endpoint, BTreeSet<Lid>> = BTreeMap::new();
        for entry in self.sections.iter().flat_map(|section| &section.entries) {
            if let Some(end) = entry.port_guid.and_then(|guid| ports.get(&guid)) {
                lids.entry(*end).or_default().insert(entry.lid);
            }
        }
        if lids.is_empty() {
            return Ok(None);
        }
        let list = lids.iter().filter_map(|(end, lids)| {
            let lmc = Lmc::new(lids.len().next_power_of_two().trailing_zeros() as u8)?;
            Some((*end, *lids.first()?, lmc))
        });
        LidMap::from_list(fabric, list).map(Some)
    }

    /// Puts the entries onto a fabric. An entry that names a port GUID follows that port to the LID
    /// it has now, as in OpenSM. Fails where an entry names a port the switch does not have.
    pub fn tables(
        &self,
        fabric: &Fabric,
        lids: &LidMap,
        file: &str,
    ) -> Result<(ForwardingTables, Vec<Oddity>), DumpError> {
        let mut placing = Placing {
            ports: ports_by_guid(fabric),
            bases: self.bases(),
            fabric,
            lids,
            tables: ForwardingTables::empty(fabric, lids.table_len()),
            seen: vec![false; fabric.nodes().len()],
            strangers: Tally::default(),
            moved: Tally::default(),
            ownerless: Tally::default(),
            oddities: self.oddities.clone(),
        };
        for section in &self.sections {
            placing.section(section, file)?;
        }
        Ok(placing.finish())
    }

    /// The smallest LID the file gives to each port GUID.
    fn bases(&self) -> BTreeMap<Guid, u16> {
        let mut bases = BTreeMap::new();
        for entry in self.sections.iter().flat_map(|section| &section.entries) {
            if let Some(guid) = entry.port_guid {
                let base = bases.entry(guid).or_insert(entry.lid.value());
                *base = (*base).min(entry.lid.value());
            }
        }
        bases
    }
}

/// How often something happened and where first.
#[derive(Clone, Default)]
struct Tally {
    count: usize,
    line: usize,
    first: String,
}

impl Tally {
    fn add(&mut self, line: usize, first: impl FnOnce() -> String) {
        if self.count == 0 {
            (self.line, self.first) = (line, first());
        }
        self.count += 1;
    }

    /// One line on it, if it happened.
    fn tell(&self, oddities: &mut Vec<Oddity>, what: &str) {
        let Tally { count, line, first } = self;
        if *count > 0 {
            oddities.push(Oddity { line: *line, what: format!("{count} {what}, first {first}") });
        }
    }
}

/// A dump being put onto a fabric.
struct Placing<'a> {
    fabric: &'a Fabric,
    lids: &'a LidMap,
    ports: BTreeMap<Guid, Endpoint>,
    bases: BTreeMap<Guid, u16>,
    tables: ForwardingTables,
    seen: Vec<bool>,
    /// Port GUIDs the fabric does not have.
    strangers: Tally,
    /// Entries that followed their port GUID to another LID.
    moved: Tally,
    /// Entries for LIDs that nobody has.
    ownerless: Tally,
    oddities: Vec<Oddity>,
}

impl Placing<'_> {
    fn odd(&mut self, line: usize, what: String) {
        self.oddities.push(Oddity { line, what });
    }

    fn section(&mut self, section: &Section, file: &str) -> Result<(), DumpError> {
        let Some(switch) = switch_of(self.fabric, section.guid) else {
            let (guid, entries) = (section.guid, section.entries.len());
            let known = self.fabric.by_guid(guid).is_some();
            let why = if known { "is an adapter" } else { "is not in the fabric" };
            self.odd(
                section.line,
                format!("switch {guid} {why}; its {entries} entries are unused"),
            );
            return Ok(());
        };
        let node = self.fabric.node(switch);
        if std::mem::replace(&mut self.seen[switch.index()], true) {
            let name = node.name.escape_debug();
            let what = format!("{name} has two sections; later entries win");
            self.odd(section.line, what);
        }
        for entry in &section.entries {
            if let Some(port) = entry.port
                && port.value() > node.port_count()
            {
                let end = Endpoint { node: switch, port };
                return Err(no_such_port(self.fabric, end, file, entry.line));
            }
            let lid = self.current(entry);
            if self.lids.owner(lid).is_none() {
                self.ownerless.add(entry.line, || format!("{}", entry.lid));
            }
            if usize::from(lid.value()) < self.tables.columns() {
                self.tables.set(switch, lid, entry.port);
            }
        }
        Ok(())
    }

    /// The LID that an entry is about on this fabric.
    fn current(&mut self, entry: &DumpEntry) -> Lid {
        let Some(guid) = entry.port_guid else { return entry.lid };
        let Some(end) = self.ports.get(&guid) else {
            self.strangers.add(entry.line, || guid.to_string());
            return entry.lid;
        };
        let Some((base, lmc)) = self.lids.base(*end) else { return entry.lid };
        let offset = entry.lid.value() - self.bases.get(&guid).copied().unwrap_or(1);
        let current = base.value().checked_add(offset).and_then(Lid::new);
        let Some(current) = current.filter(|_| offset < lmc.lids()) else { return entry.lid };
        if current != entry.lid {
            self.moved.add(entry.line, || format!("{} to {current}", entry.lid));
        }
        current
    }

    fn finish(mut self) -> (ForwardingTables, Vec<Oddity>) {
        let Tally { count, line, first } = std::mem::take(&mut self.strangers);
        if count > 0 {
            let what = format!("{count} entries name port GUIDs that are not in the fabric");
            self.odd(line, format!("{what}, first {first}; taken by LID"));
        }
        let what = "entries follow their port GUID to the LID it has now";
        self.moved.tell(&mut self.oddities, what);
        self.ownerless.tell(&mut self.oddities, "entries are for LIDs that nobody has");
        let switches = self.tables.switches().to_vec();
        let omitted: Vec<String> = switches
            .iter()
            .filter(|id| !self.seen[id.index()])
            .map(|id| self.fabric.node(*id).name.escape_debug().to_string())
            .collect();
        if !omitted.is_empty() {
            let (count, of) = (omitted.len(), switches.len());
            let names = omitted[..count.min(8)].join(", ");
            self.odd(0, format!("{count} of {of} switches have no section: {names}"));
        }
        self.report_holes(&switches);
        (self.tables, self.oddities)
    }

    /// One line on entries that sections lack.
    fn report_holes(&mut self, switches: &[NodeId]) {
        let (mut holes, mut first) = (0, String::new());
        for switch in switches.iter().filter(|id| self.seen[id.index()]) {
            for (lid, owner) in self.lids.iter() {
                if self.tables.port(*switch, lid).is_none() {
                    if holes == 0 {
                        let at = &self.fabric.node(*switch).name;
                        let of = self.fabric.describe(owner.end);
                        first = format!("{lid} ({of}) on {at}").escape_debug().to_string();
                    }
                    holes += 1;
                }
            }
        }
        if holes > 0 {
            let what = format!("{holes} entries are missing, first LID {first}; packets end there");
            self.odd(0, what);
        }
    }
}

/// A name as dumps may carry it: no quotes, no control characters, at most 64 characters
/// (NodeDescription, IBA vol. 1, 14.2.5.2), so that lines stay below OpenSM's 1,024 bytes.
fn plain_name(name: &str) -> String {
    let plain = |c: char| if c.is_control() || "'\"{}#".contains(c) { '_' } else { c };
    name.chars().take(64).map(plain).collect()
}
