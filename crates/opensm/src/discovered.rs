//! What OpenSM has discovered, as flat lists, made into a fabric with LIDs.
//!
//! Nodes are put in the order of their GUIDs and cables in that of their ends, so that the order of
//! discovery cannot be seen in the tables.

use clearlane_fabric::{Endpoint, Fabric, FabricError, Node, NodeId, NodeKind};
use clearlane_ib::{Guid, Lid, LinkSpeed, LinkWidth, Lmc, PortNumber};
use clearlane_subnet::{LidError, LidMap};

/// A node, laid out as in `plugin/clearlane.h`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct DiscoveredNode {
    /// Node GUID, unique.
    pub guid: u64,
    /// 1 for a switch, 0 for an adapter or a router.
    pub is_switch: u8,
    /// External ports, 1 to 254.
    pub ports: u8,
}

/// A port with LIDs, laid out as in `plugin/clearlane.h`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct DiscoveredPort {
    /// GUID of its node.
    pub node: u64,
    /// Port GUID.
    pub guid: u64,
    /// Base LID, 1 to 49,151; 0 where it has none yet.
    pub lid: u16,
    /// Port number; 0 for a switch.
    pub port: u8,
    /// LMC, 0 to 7.
    pub lmc: u8,
}

/// A cable that is up, laid out as in `plugin/clearlane.h`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct DiscoveredCable {
    /// Node GUID at one end.
    pub a: u64,
    /// Node GUID at the other end.
    pub b: u64,
    /// Port at one end.
    pub a_port: u8,
    /// Port at the other end.
    pub b_port: u8,
    /// Operational data VLs, 1 to 15; more are taken as 15, and 0 as 1.
    pub lanes: u8,
}

/// What OpenSM would list of a fabric.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lists {
    /// All nodes.
    pub nodes: Vec<DiscoveredNode>,
    /// All ports with LIDs.
    pub ports: Vec<DiscoveredPort>,
    /// All cables.
    pub cables: Vec<DiscoveredCable>,
}

impl Lists {
    /// Of a fabric with LIDs, every cable with the same number of data VLs: for tests, and for
    /// whoever has no OpenSM. A port without GUID has its node's plus its number.
    pub fn of(fabric: &Fabric, lids: &LidMap, lanes: u8) -> Self {
        let mut lists = Lists::default();
        for (index, node) in fabric.nodes().iter().enumerate() {
            let (guid, is_switch) = (node.guid.0, u8::from(node.is_switch()));
            lists.nodes.push(DiscoveredNode { guid, is_switch, ports: node.port_count() });
            for (number, port) in node.ports.iter().enumerate() {
                let number = number as u8;
                let Some(port_number) = PortNumber::new(number) else { continue };
                let end = Endpoint { node: NodeId(index as u32), port: port_number };
                let Some((lid, lmc)) = lids.base(end) else { continue };
                let own = guid.wrapping_add(u64::from(number));
                let port_guid = if port.guid == Guid::default() { own } else { port.guid.0 };
                lists.ports.push(DiscoveredPort {
                    node: guid,
                    guid: port_guid,
                    lid: lid.value(),
                    port: number,
                    lmc: lmc.value(),
                });
            }
        }
        let cables = fabric.links().iter().map(|link| DiscoveredCable {
            a: fabric.node(link.a.node).guid.0,
            b: fabric.node(link.b.node).guid.0,
            a_port: link.a.port.value(),
            b_port: link.b.port.value(),
            lanes,
        });
        lists.cables = cables.collect();
        lists
    }

    /// The fabric they make.
    pub fn discovered(&self) -> Result<Discovered, DiscoveredError> {
        Discovered::of(&self.nodes, &self.ports, &self.cables)
    }
}

/// A fabric as discovered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Discovered {
    /// Nodes in the order of their GUIDs; names are GUIDs.
    pub fabric: Fabric,
    /// LIDs as OpenSM has assigned them.
    pub lids: LidMap,
    /// One end of each cable with its operational data VLs, 1 to 15.
    pub lanes: Vec<(Endpoint, u8)>,
}

/// Why the lists make no fabric.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("what OpenSM has discovered makes no fabric: {what}; see its log for nodes it has lost")]
pub struct DiscoveredError {
    what: String,
}

impl From<FabricError> for DiscoveredError {
    fn from(error: FabricError) -> Self {
        DiscoveredError { what: error.to_string() }
    }
}

impl From<LidError> for DiscoveredError {
    fn from(error: LidError) -> Self {
        DiscoveredError { what: error.to_string() }
    }
}

impl Discovered {
    /// Makes the fabric. A cable may be listed from both its ends; one from a port to itself is
    /// left out. Fails on a GUID or LID that is there twice, and on what is no node, port or LID.
    pub fn of(
        nodes: &[DiscoveredNode],
        ports: &[DiscoveredPort],
        cables: &[DiscoveredCable],
    ) -> Result<Self, DiscoveredError> {
        let mut fabric = Fabric::new();
        let mut nodes = nodes.to_vec();
        nodes.sort_unstable_by_key(|node| node.guid);
        for node in nodes {
            let kind = match node.is_switch {
                0 => NodeKind::ChannelAdapter,
                _ => NodeKind::Switch,
            };
            let guid = Guid(node.guid);
            let ports = node.ports.clamp(1, 254);
            let mut node = Node::new(kind, guid, guid.to_string(), ports);
            if kind == NodeKind::Switch {
                node.ports[0].guid = guid;
            }
            fabric.add_node(node)?;
        }
        let lids = assign(&mut fabric, ports)?;
        let lanes = join(&mut fabric, cables)?;
        Ok(Discovered { fabric, lids, lanes })
    }

    /// By node and port: the operational data VLs of its link; 15 where there is none.
    pub fn lanes_of(&self, end: Endpoint) -> u8 {
        let peer = self.fabric.peer(end);
        let of = |end: Endpoint| self.lanes.binary_search_by_key(&end, |(end, _)| *end).ok();
        let at = of(end).or_else(|| of(peer?));
        at.map_or(15, |at| self.lanes[at].1)
    }
}

fn assign(fabric: &mut Fabric, ports: &[DiscoveredPort]) -> Result<LidMap, DiscoveredError> {
    let mut list = Vec::new();
    for port in ports {
        let end = endpoint(fabric, port.node, port.port)?;
        let record = &mut fabric.node_mut(end.node).ports[usize::from(end.port.value())];
        record.guid = Guid(port.guid);
        if port.lid == 0 {
            continue;
        }
        let (lid, lmc) = Lid::new(port.lid).zip(Lmc::new(port.lmc)).ok_or_else(|| {
            let what = format!("port {} has LID {} and LMC {}", record.guid, port.lid, port.lmc);
            DiscoveredError { what }
        })?;
        list.push((end, lid, lmc));
    }
    Ok(LidMap::from_list(fabric, list)?)
}

fn join(
    fabric: &mut Fabric,
    cables: &[DiscoveredCable],
) -> Result<Vec<(Endpoint, u8)>, DiscoveredError> {
    let mut ends = Vec::new();
    for cable in cables {
        let a = endpoint(fabric, cable.a, cable.a_port)?;
        let b = endpoint(fabric, cable.b, cable.b_port)?;
        if a != b {
            ends.push((a.min(b), a.max(b), cable.lanes.clamp(1, 15)));
        }
    }
    // Of two listings that differ in lanes the lower one comes first and counts.
    ends.sort_unstable();
    ends.dedup_by_key(|(a, b, _)| (*a, *b));
    for (a, b, _) in &ends {
        fabric.join(*a, *b, LinkWidth::X4, LinkSpeed::Qdr)?;
    }
    Ok(ends.into_iter().map(|(a, _, lanes)| (a, lanes)).collect())
}

fn endpoint(fabric: &Fabric, node: u64, port: u8) -> Result<Endpoint, DiscoveredError> {
    let guid = Guid(node);
    let found: Option<NodeId> = fabric.by_guid(guid);
    let end = found.zip(PortNumber::new(port));
    let end = end.map(|(node, port)| Endpoint { node, port });
    end.filter(|end| port <= fabric.node(end.node).port_count())
        .ok_or_else(|| DiscoveredError { what: format!("node {guid} with port {port} is unknown") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn star() -> (Vec<DiscoveredNode>, Vec<DiscoveredPort>, Vec<DiscoveredCable>) {
        let node = |guid, is_switch, ports| DiscoveredNode { guid, is_switch, ports };
        let port = |node, guid, lid, port, lmc| DiscoveredPort { node, guid, lid, port, lmc };
        let cable = |a, a_port, b, b_port, lanes| DiscoveredCable { a, b, a_port, b_port, lanes };
        (
            vec![node(30, 0, 1), node(10, 1, 4), node(20, 0, 2)],
            vec![port(10, 10, 1, 0, 0), port(20, 22, 4, 2, 1), port(30, 31, 6, 1, 1)],
            vec![cable(20, 2, 10, 3, 8), cable(10, 3, 20, 2, 4), cable(30, 1, 10, 1, 0)],
        )
    }

    #[test]
    fn the_order_of_discovery_cannot_be_seen() {
        let (mut nodes, mut ports, mut cables) = star();
        let one = Discovered::of(&nodes, &ports, &cables).unwrap();
        nodes.reverse();
        ports.reverse();
        cables.reverse();
        assert_eq!(Discovered::of(&nodes, &ports, &cables).unwrap(), one);
        assert_eq!((one.fabric.nodes().len(), one.fabric.links().len()), (3, 2));
        let end =
            |node, port| Endpoint { node: NodeId(node), port: PortNumber::new(port).unwrap() };
        assert_eq!(one.lids.base(end(1, 2)).unwrap().0.value(), 4);
        // The lower of what two listings say; none is one.
        assert_eq!([one.lanes_of(end(1, 2)), one.lanes_of(end(0, 3))], [4, 4]);
        assert_eq!([one.lanes_of(end(2, 1)), one.lanes_of(end(0, 4))], [1, 15]);
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let fails = |change: fn(&mut (_, _, Vec<DiscoveredCable>)), part: &str| {
            let mut lists = star();
            change(&mut lists);
            let (nodes, ports, cables): (Vec<_>, Vec<_>, Vec<_>) = lists;
            let error = Discovered::of(&nodes, &ports, &cables).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        type Lists = (Vec<DiscoveredNode>, Vec<DiscoveredPort>, Vec<DiscoveredCable>);
        let _: Lists = star();
        fails(|lists: &mut Lists| lists.0[0].guid = 20, "belongs to both");
        fails(|lists: &mut Lists| lists.1[2].lid = 5, "belongs to both");
        fails(|lists: &mut Lists| lists.1[2].lid = 0xffff, "LID 65535");
        fails(|lists: &mut Lists| lists.2[0].b_port = 9, "port 9 is unknown");
        fails(|lists: &mut Lists| lists.2[0].b_port = 1, "already holds the cable");
        fails(|lists: &mut Lists| lists.2[0].a = 7, "is unknown");
    }
}
