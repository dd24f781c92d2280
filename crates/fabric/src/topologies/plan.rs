//! Collects nodes and cables, then plugs the cables in the order in which a reader of the written
//! file meets them: by the lower end's node and port.

use super::arguments::Rate;
use super::{NODES_MAX, TopologyError};
use crate::{Endpoint, Fabric, Node, NodeId, NodeKind};
use clearlane_ib::{Guid, PortNumber};

/// Locally administered, see the module header of `topologies`.
const SWITCH_GUID: u64 = 0x0ac1_ea51_0000_0000;
const ADAPTER_GUID: u64 = 0x0ac1_eaca_0000_0000;

/// A fabric being drawn.
pub(super) struct Plan {
    topology: &'static str,
    fabric: Fabric,
    cables: Vec<(Endpoint, Endpoint)>,
    counts: [u64; 2],
}

impl Plan {
    /// An empty plan for at most `nodes` nodes. Fails if that is more than a builder makes.
    pub(super) fn new(topology: &'static str, nodes: u64) -> Result<Self, TopologyError> {
        if nodes > NODES_MAX {
            return Err(TopologyError::TooLarge { topology, nodes });
        }
        Ok(Plan { topology, fabric: Fabric::new(), cables: Vec::new(), counts: [0; 2] })
    }

    /// Adds a switch.
    pub(super) fn switch(&mut self, name: String, ports: u8) -> Result<NodeId, TopologyError> {
        self.add(NodeKind::Switch, name, ports)
    }

    /// Adds an adapter.
    pub(super) fn host(&mut self, name: String, ports: u8) -> Result<NodeId, TopologyError> {
        self.add(NodeKind::ChannelAdapter, name, ports)
    }

    fn add(&mut self, kind: NodeKind, name: String, ports: u8) -> Result<NodeId, TopologyError> {
        let switch = kind == NodeKind::Switch;
        let count = &mut self.counts[usize::from(switch)];
        let guid = if switch { SWITCH_GUID } else { ADAPTER_GUID } + (*count << 8);
        *count += 1;
        let mut node = Node::new(kind, Guid(guid), name, ports);
        // A switch has one GUID for all its ports, that of port 0 (IBA vol. 1, 4.1.1).
        if switch {
            node.ports[0].guid = Guid(guid);
        } else {
            for (number, port) in node.ports.iter_mut().enumerate().skip(1) {
                port.guid = Guid(guid + number as u64);
            }
        }
        let topology = self.topology;
        self.fabric.add_node(node).map_err(|source| TopologyError::Fabric { topology, source })
    }

    /// Makes a node part of the same box as `first`, whose GUID is the system image's (IBA vol. 1,
    /// 14.2.5.3).
    pub(super) fn part_of(&mut self, node: NodeId, first: NodeId) {
        self.fabric.node_mut(node).system_guid = self.fabric.node(first).guid;
    }

    /// Draws a cable; port numbers are those of `u8` range by the caller's check of the radix.
    pub(super) fn cable(&mut self, a: (NodeId, u32), b: (NodeId, u32)) {
        let end = |(node, port): (NodeId, u32)| Endpoint {
            node,
            port: u8::try_from(port)
                .ok()
                .and_then(PortNumber::new)
                .expect("the builder checked its radix against 254"),
        };
        let (a, b) = (end(a), end(b));
        self.cables.push((a.min(b), a.max(b)));
    }

    /// Plugs all cables.
    pub(super) fn finish(mut self, (width, speed): Rate) -> Result<Fabric, TopologyError> {
        self.cables.sort_unstable();
        let topology = self.topology;
        for (a, b) in self.cables {
            self.fabric
                .join(a, b, width, speed)
                .map_err(|source| TopologyError::Fabric { topology, source })?;
        }
        Ok(self.fabric)
    }
}

/// The radix of a switch, if InfiniBand can number that many ports.
pub(super) fn radix(topology: &'static str, switch: &str, ports: u64) -> Result<u8, TopologyError> {
    match u8::try_from(ports) {
        Ok(radix @ 1..=254) => Ok(radix),
        _ => Err(TopologyError::TooManyPorts { topology, switch: switch.to_owned(), ports }),
    }
}

/// `leaf07`: a name with its number padded to the width of the last one, at least `digits_min`.
pub(crate) fn numbered(name: &str, number: u64, count: u64, digits_min: usize) -> String {
    let digits = count.saturating_sub(1).max(1).ilog10() as usize + 1;
    format!("{name}{number:0width$}", width = digits.max(digits_min))
}
