//! What it is: guid2lid, OpenSM's memory of which port has which LIDs. Put into its cache folder
//! before it starts, it makes OpenSM assign our LIDs.

use super::subnet_lst::port_guid;
use crate::LidMap;
use clearlane_fabric::Fabric;
use std::fmt::Write;

/// One line `0x<port GUID> 0x<first LID> 0x<last LID>` per port, with an empty line after each.
pub fn write(fabric: &Fabric, lids: &LidMap) -> String {
    let mut text = String::new();
    for (lid, owner) in lids.iter().filter(|(_, owner)| owner.offset == 0) {
        let lmc = lids.base(owner.end).map_or(0, |(_, lmc)| lmc.lids() - 1);
        let guid = port_guid(fabric, owner.end);
        let (first, last) = (lid.value(), lid.value().saturating_add(lmc));
        let _ = write!(text, "{guid} 0x{first:04x} 0x{last:04x}\n\n");
    }
    text
}
