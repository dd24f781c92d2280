//! What it is: the tables a site has already, from its own dumps.
//!
//! Source: OpenSM's engine `file` for how entries follow port GUIDs.
//! What we do differently: nothing that does not fit is passed over in silence; unknown switches,
//! LIDs without owners, switches without a section and missing entries become remarks.
//! Parameters: lanes 1 to 15; the LIDs are the fabric's own, else those the dump gives to port
//! GUIDs; several files are taken as one.

use super::{Claims, Entry, RouteOptions, RoutingError};
use crate::formats::{self, Dump};
use crate::{ForwardingTables, LidMap, Subnet};
use clearlane_fabric::Fabric;

/// `file`.
pub(super) const ENTRY: Entry = Entry {
    name: "file",
    summary: "the site's own tables: opensm-lfts.dump, ibroute or dump_fts text, opensm.fdbs",
    reference: "OpenSM, engine file (linux-rdma/opensm, doc/modular-routing.txt)",
    parameters: "files, at least one; lanes 1 to 15; LIDs are the fabric's own",
    claims: Claims {
        minimal: false,
        deadlock_free: false,
        balanced_on: "",
        accepts: "every fabric with LIDs, or dumps with port GUIDs",
    },
    route,
};

fn route(fabric: &Fabric, options: &RouteOptions) -> Result<Subnet, RoutingError> {
    super::check_lanes(ENTRY.name, 1, options)?;
    let Some(first) = options.files.first() else {
        let known = formats::ALL.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
        return Err(RoutingError::NoFile { known });
    };
    let mut dumps = Vec::with_capacity(options.files.len());
    for file in &options.files {
        dumps.push((file.name.as_str(), formats::read(&file.text, &file.name)?));
    }
    let lids = match &options.lids {
        Some(lids) => lids.clone(),
        None => match LidMap::from_fabric(fabric)? {
            Some(lids) => lids,
            None => lids_of_dumps(fabric, &dumps)?
                .ok_or_else(|| RoutingError::NoLids { name: first.name.clone() })?,
        },
    };
    let (tables, remarks) = merge(fabric, &lids, dumps)?;
    let mut subnet = super::plain_subnet(ENTRY.name, fabric, options, lids, tables);
    subnet.remarks = remarks;
    Ok(subnet)
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
