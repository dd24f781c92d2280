//! What it is: the tables a site has already, from its own dumps.
//!
//! Source: OpenSM's engine `file` for how entries follow port GUIDs.
//! What we do differently: nothing that does not fit is passed over in silence; unknown switches,
//! LIDs without owners, switches without a section and missing entries become remarks.
//! Parameters: lanes 1 to 15, for SLs that no file puts on a lane; the LIDs are the fabric's own,
//! else those the dump gives to port GUIDs; several files are taken as one. Beside the tables
//! there may be opensm-sl2vl.dump and the SLs of paths; without these all paths are on SL 0.

use super::{Claims, Entry, RouteOptions, RoutingError};
use crate::check::credit_loop;
use crate::formats::path_groups::GroupDump;
use crate::formats::path_sl::LevelDump;
use crate::formats::sl2vl::LaneDump;
use crate::formats::{self, Content, Dump, DumpError, Oddity};
use crate::{ForwardingTables, LidMap, PathSl, Subnet, VlArbitration};
use clearlane_fabric::Fabric;
use clearlane_ib::Guid;
use std::collections::BTreeSet;

/// `file`.
pub(super) const ENTRY: Entry = Entry {
    name: "file",
    summary: "the site's own tables: opensm-lfts.dump, ibroute or dump_fts text, opensm.fdbs",
    reference: "OpenSM, engine file (linux-rdma/opensm, doc/modular-routing.txt)",
    parameters: "files, at least one with tables, also opensm-sl2vl.dump and SLs of paths; lanes \
                 1 to 15; LIDs are the fabric's own",
    lanes: 1,
    adaptive: false,
    roots: false,
    claims: Claims {
        minimal: false,
        deadlock_free: false,
        balanced_on: "",
        accepts: "every fabric with LIDs, or dumps with port GUIDs",
    },
    route,
};

/// What the files hold, with their names.
#[derive(Default)]
struct Files<'a> {
    tables: Vec<(&'a str, Dump)>,
    lanes: Option<(&'a str, LaneDump)>,
    levels: Option<(&'a str, Levels)>,
}

/// SLs of paths, by pairs or by groups.
enum Levels {
    Pairs(LevelDump),
    Groups(GroupDump),
}

impl Levels {
    fn put_on(
        &self,
        fabric: &Fabric,
        lids: &LidMap,
        file: &str,
    ) -> Result<(PathSl, Vec<Oddity>), DumpError> {
        match self {
            Levels::Pairs(dump) => dump.levels(fabric, lids, file),
            Levels::Groups(dump) => Ok(dump.levels(fabric, lids)),
        }
    }
}

fn route(fabric: &Fabric, options: &RouteOptions) -> Result<Subnet, RoutingError> {
    super::check_lanes(ENTRY.name, 1, options)?;
    let Files { tables, lanes, levels } = read(options)?;
    let Some((first, _)) = tables.first() else {
        let known = formats::ALL.iter().filter(|entry| entry.forwards);
        let known = known.map(|entry| entry.name).collect::<Vec<_>>().join(", ");
        return Err(RoutingError::NoFile { known });
    };
    let name = first.escape_debug().to_string();
    if !tables.iter().any(|(_, dump)| dump.is_about(fabric)) {
        let guids = tables.iter().flat_map(|(_, dump)| &dump.sections).map(|section| section.guid);
        let switches = guids.collect::<BTreeSet<_>>().len();
        return Err(RoutingError::OtherFabric { name, switches });
    }
    let lids = match &options.lids {
        Some(lids) => lids.clone(),
        None => match LidMap::from_fabric(fabric)? {
            Some(lids) => lids,
            None => lids_of_dumps(fabric, &tables)?.ok_or(RoutingError::NoLids { name })?,
        },
    };
    let unknown_switches = unknown(fabric, &tables);
    let (tables, remarks) = merge(fabric, &lids, tables)?;
    let mut subnet = super::plain_subnet(ENTRY.name, fabric, options, lids, tables);
    subnet.remarks = remarks;
    subnet.unknown_switches = unknown_switches;
    set_levels(fabric, options.lanes, lanes, levels, &mut subnet)?;
    Ok(subnet)
}

impl<'a> Files<'a> {
    /// SLs of paths, of which there can be one file.
    fn add(&mut self, name: &'a str, levels: Levels) -> Result<(), RoutingError> {
        match self.levels.replace((name, levels)) {
            None => Ok(()),
            Some(_) => Err(RoutingError::Dump(DumpError::second(name, "SLs of paths"))),
        }
    }
}

fn read(options: &RouteOptions) -> Result<Files<'_>, RoutingError> {
    let mut files = Files::default();
    for file in &options.files {
        let name = file.name.as_str();
        match formats::read(&file.text, name)? {
            Content::Tables(dump) => files.tables.push((name, dump)),
            Content::Lanes(dump) => match files.lanes.replace((name, dump)) {
                None => {}
                Some(_) => return Err(RoutingError::Dump(DumpError::second(name, "SL2VL"))),
            },
            Content::Levels(dump) => files.add(name, Levels::Pairs(dump))?,
            Content::Groups(dump) => files.add(name, Levels::Groups(dump))?,
        }
    }
    Ok(files)
}

/// SL2VL and SLs of paths, as far as there are files with them; remarks on what is not known.
fn set_levels(
    fabric: &Fabric,
    count: u8,
    lanes: Option<(&str, LaneDump)>,
    levels: Option<(&str, Levels)>,
    subnet: &mut Subnet,
) -> Result<(), RoutingError> {
    let mapped = lanes.is_some();
    if let Some((name, dump)) = lanes {
        let (sl_to_vl, oddities) = dump.lanes(fabric, count, name)?;
        subnet.vl_arbitration = VlArbitration::equal(count.max(sl_to_vl.lanes()));
        subnet.sl_to_vl = sl_to_vl;
        remark(subnet, name, &oddities);
    }
    if let Some((name, dump)) = levels {
        let (path_sl, oddities) = dump.put_on(fabric, &subnet.lids, name)?;
        subnet.path_sl = path_sl;
        remark(subnet, name, &oddities);
        if !mapped && !matches!(subnet.path_sl, PathSl::Uniform(_)) {
            subnet.remarks.push(format!(
                "lanes are unknown: without opensm-sl2vl.dump SL s is taken on VL s mod {count}"
            ));
        }
        return Ok(());
    }
    let looped = !credit_loop(fabric, subnet).is_sane();
    if looped || (mapped && subnet.sl_to_vl.lanes() > 1) {
        let there = if looped { ", where these tables have a credit loop" } else { "" };
        subnet.remarks.push(format!(
            "service levels are unknown: every path is taken on SL 0{there}; if the site uses \
             several, give a file with the SLs of paths too"
        ));
    }
    Ok(())
}

fn remark(subnet: &mut Subnet, name: &str, oddities: &[Oddity]) {
    let name = name.escape_debug();
    subnet.remarks.extend(oddities.iter().map(|oddity| format!("{name}: {oddity}")));
}

/// Switches that dumps have tables of and the fabric does not have, by GUID.
fn unknown(fabric: &Fabric, dumps: &[(&str, Dump)]) -> Vec<Guid> {
    let guids = dumps.iter().flat_map(|(_, dump)| &dump.sections).map(|section| section.guid);
    let unknown: BTreeSet<Guid> = guids.filter(|guid| fabric.by_guid(*guid).is_none()).collect();
    unknown.into_iter().collect()
}

fn lids_of_dumps(fabric: &Fabric, dumps: &[(&str, Dump)]) -> Result<Option<LidMap>, RoutingError> {
    let sections = dumps.iter().flat_map(|(_, dump)| dump.sections.iter().cloned()).collect();
    Ok(Dump { sections, oddities: Vec::new() }.lids(fabric)?)
}

/// All dumps on one fabric. Line numbers stay meaningful: each file's oddities carry its name.
fn merge(
    fabric: &Fabric,
    lids: &LidMap,
    dumps: Vec<(&str, Dump)>,
) -> Result<(ForwardingTables, Vec<String>), RoutingError> {
    let several = dumps.len() > 1;
    let mut remarks = Vec::new();
    let mut whole = Dump::default();
    for (name, dump) in dumps {
        // Faults of single lines are found here, where the file they stand in is known.
        let (_, oddities) = dump.tables(fabric, lids, name)?;
        let of_lines = oddities.iter().filter(|oddity| oddity.line > 0 || !several);
        let name = name.escape_debug();
        remarks.extend(of_lines.map(|oddity| format!("{name}: {oddity}")));
        whole.sections.extend(dump.sections);
    }
    let (tables, oddities) = whole.tables(fabric, lids, "all files")?;
    if several {
        // What all files together lack.
        let missing = oddities.iter().filter(|oddity| oddity.line == 0);
        remarks.extend(missing.map(|oddity| format!("all files: {oddity}")));
    }
    Ok((tables, remarks))
}
