//! What it is: opensm-subnet.lst, the cables with LIDs as OpenSM writes them; ibdmchk reads it
//! (`-s`). A line per direction of a cable.

use super::plain_name;
use crate::LidMap;
use clearlane_fabric::{Endpoint, Fabric, NodeKind};
use clearlane_ib::{Guid, LinkSpeed, PortNumber};
use std::io::{self, Write};

/// The GUID of a port: the one the file gave, else the node's for a switch and the node's plus the
/// port number for an adapter, as most adapters have it.
pub fn port_guid(fabric: &Fabric, end: Endpoint) -> Guid {
    let node = fabric.node(end.node);
    let known = node.ports.get(usize::from(end.port.value())).map(|port| port.guid);
    match (node.kind, known) {
        (NodeKind::Switch, _) => {
            Some(node.ports[0].guid).filter(|guid| *guid != Guid::default()).unwrap_or(node.guid)
        }
        (_, Some(guid)) if guid != Guid::default() => guid,
        _ => Guid(node.guid.0.wrapping_add(u64::from(end.port.value()))),
    }
}

/// Writes all cables. The first adapter with a cable is marked as the subnet manager's (`CA-SM`).
/// Fails if `out` does.
pub fn write(fabric: &Fabric, lids: &LidMap, out: &mut dyn Write) -> io::Result<()> {
    let mut adapters = fabric.ids(NodeKind::ChannelAdapter);
    let manager = adapters.find(|id| fabric.neighbours(*id).next().is_some());
    for index in 0..fabric.nodes().len() {
        let id = clearlane_fabric::NodeId(index as u32);
        for (port, link, peer) in fabric.neighbours(id) {
            let half = |end: Endpoint, first: bool| {
                let node = fabric.node(end.node);
                let kind = match (node.kind, Some(end.node) == manager) {
                    (NodeKind::Switch, _) => "SW",
                    (_, true) => "CA-SM",
                    _ => "CA",
                };
                let own = match node.kind {
                    NodeKind::Switch => Endpoint { port: PortNumber::MANAGEMENT, ..end },
                    NodeKind::ChannelAdapter => end,
                };
                let lid = lids.base(own).map_or(0, |(lid, _)| lid.value());
                let (vendor, device) = (node.vendor, node.device);
                // OpenSM prints these two differently in the two halves; ibdmchk expects it.
                let ids = if first {
                    format!("VenID:{vendor:06X} DevID:{device:04X}")
                } else {
                    format!("VenID:{vendor:08X} DevID:{device:04X}0000")
                };
                format!(
                    "{{ {kind} Ports:{:02X} SystemGUID:{:016x} NodeGUID:{:016x} PortGUID:{:016x} \
                     {ids} Rev:000000A0 {{{}}} LID:{lid:04X} PN:{:02X} }}",
                    node.port_count(),
                    node.system_guid.0,
                    node.guid.0,
                    port_guid(fabric, end).0,
                    plain_name(&node.name),
                    end.port.value(),
                )
            };
            let (a, b) = (half(Endpoint { node: id, port }, true), half(peer, false));
            let link = fabric.link(link);
            let (width, speed) = (link.width, speed_digits(link.speed));
            writeln!(out, "{a} {b} PHY={width} LOG=ACT SPD={speed}")?;
        }
    }
    Ok(())
}

/// Gigabaud per lane as OpenSM prints it.
fn speed_digits(speed: LinkSpeed) -> &'static str {
    match speed {
        LinkSpeed::Sdr => "2.5",
        LinkSpeed::Ddr => "5",
        LinkSpeed::Qdr => "10",
        LinkSpeed::Fdr10 => "10.3",
        LinkSpeed::Fdr => "14",
        LinkSpeed::Edr => "25",
        LinkSpeed::Hdr => "50",
        LinkSpeed::Ndr => "100",
        LinkSpeed::Xdr => "200",
    }
}
