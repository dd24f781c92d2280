//! What it is: opensm-sl2vl.dump, every switch's mapping (input, output, SL) → VL; ibdmchk reads
//! it (`-d`).

use super::plain_name;
use crate::Subnet;
use clearlane_fabric::{Endpoint, Fabric};
use clearlane_ib::{PortNumber, ServiceLevel};
use std::io::{self, Write};

/// Writes the mapping of all switches, input 0 being the switch's own port. Fails if `out` does.
pub fn write(fabric: &Fabric, subnet: &Subnet, out: &mut dyn Write) -> io::Result<()> {
    for switch in subnet.tables.switches() {
        let node = fabric.node(*switch);
        let own = Endpoint { node: *switch, port: PortNumber::MANAGEMENT };
        let lid = subnet.lids.base(own).map_or(0, |(lid, _)| lid.value());
        writeln!(out, "Switch {}, base LID {lid}, \"{}\"", node.guid, plain_name(&node.name))?;
        writeln!(out, "#in out : 0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15")?;
        writeln!(out, "#--------------------------------------------------------")?;
        let table = subnet.sl_to_vl.table(*switch);
        let ports = (0..=node.port_count()).filter_map(PortNumber::new);
        for (input, output) in
            ports.clone().flat_map(|input| ports.clone().skip(1).map(move |output| (input, output)))
        {
            write!(out, "{:<3} {:<3} :", input.value(), output.value())?;
            for sl in (0..16).filter_map(ServiceLevel::new) {
                write!(out, " {:<2}", table.lane(input, output, sl).value())?;
            }
            writeln!(out)?;
        }
        writeln!(out)?;
    }
    Ok(())
}
