//! What it is: opensm-lfts.dump, which OpenSM writes with `-D 0x43` and loads with
//! `-R file -U FILE`.
//!
//! Every entry carries the port GUID it is about, so OpenSM follows the port if its LID changes.

use super::{Content, Entry, plain_name, unicast_lids};
use crate::Subnet;
use clearlane_fabric::Fabric;
use clearlane_ib::PortNumber;
use std::io::{self, Write};

/// `opensm-lfts`.
pub(super) const ENTRY: Entry = Entry {
    name: "opensm-lfts",
    summary: "opensm-lfts.dump, as OpenSM writes and loads it (-R file -U FILE)",
    forwards: true,
    sniff: |text| unicast_lids::sniff(text, "#"),
    read: |text, file| unicast_lids::read(text, file).map(Content::Tables),
};

/// Writes the tables. Entries without a port are left out. Fails if `out` does.
pub fn write(fabric: &Fabric, subnet: &Subnet, out: &mut dyn Write) -> io::Result<()> {
    // What follows the port is the same on every switch.
    let comments: Vec<(usize, String)> = subnet
        .lids
        .iter()
        .map(|(lid, owner)| {
            let node = fabric.node(owner.end.node);
            let kind = if node.is_switch() { "Switch" } else { "Channel Adapter" };
            let guid = super::subnet_lst::port_guid(fabric, owner.end);
            let name = plain_name(&node.name);
            (usize::from(lid.value()), format!(" # {kind} portguid {guid}: '{name}'\n"))
        })
        .collect();
    let last = subnet.tables.columns().saturating_sub(1);
    for (row, switch) in subnet.tables.switches().iter().enumerate() {
        let node = fabric.node(*switch);
        let own = clearlane_fabric::Endpoint { node: *switch, port: PortNumber::MANAGEMENT };
        let lid = subnet.lids.base(own).map_or(0, |(lid, _)| lid.value());
        let (guid, name) = (node.guid, plain_name(&node.name));
        writeln!(out, "Unicast lids [0-{last}] of switch Lid {lid} guid {guid} ('{name}'):")?;
        let entries = subnet.tables.row(row);
        let mut count = 0;
        for (lid, comment) in &comments {
            if let Some(port) = entries.get(*lid).filter(|port| **port != u8::MAX) {
                write!(out, "0x{lid:04x} {port:03}")?;
                out.write_all(comment.as_bytes())?;
                count += 1;
            }
        }
        writeln!(out, "{count} lids dumped")?;
    }
    Ok(())
}
