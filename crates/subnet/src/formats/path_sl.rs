//! What it is: the SL of every path, as ibdmchk reads it (`-c`): a line
//! `0x<node GUID of the source> <DLID> <SL>`, numbers decimal.

use crate::Subnet;
use crate::graph::SwitchGraph;
use clearlane_fabric::Fabric;
use std::io::{self, Write};

/// Writes a line for every host and every LID of every other host. Fails if `out` does.
pub fn write(fabric: &Fabric, subnet: &Subnet, out: &mut dyn Write) -> io::Result<()> {
    let graph = SwitchGraph::of(fabric);
    let hosts = graph.hosts(fabric);
    for source in &hosts {
        let guid = fabric.node(source.end.node).guid;
        for destination in hosts.iter().filter(|host| host.end != source.end) {
            let Some((base, lmc)) = subnet.lids.base(destination.end) else { continue };
            let sl = subnet.path_sl.level(source.row as usize, destination.row as usize);
            for offset in 0..lmc.lids() {
                writeln!(out, "{guid} {} {sl}", base.value().saturating_add(offset))?;
            }
        }
    }
    Ok(())
}
