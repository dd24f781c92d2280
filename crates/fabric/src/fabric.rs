//! What it is: the graph of a subnet as cabled. Nodes in file or builder order, links in the order
//! they were first listed; both orders are part of what makes a run reproducible.

use clearlane_ib::{Guid, Lid, LinkRate, LinkSpeed, LinkWidth, Lmc, PortNumber};
use std::collections::BTreeMap;
use std::fmt;

/// Index of a node in its fabric, dense from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The same number as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Index of a link in its fabric, dense from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub u32);

impl LinkId {
    /// The same number as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What kind of box a node is. A subnet's IBA routers are carried as channel adapters: they end
/// paths and do not forward inside the subnet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum NodeKind {
    /// Forwards packets; has a management port 0.
    Switch,
    /// Host channel adapter: the source and destination of traffic.
    ChannelAdapter,
}

/// One end of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Endpoint {
    /// The node the cable is plugged into.
    pub node: NodeId,
    /// The port it is plugged into, 1..=254.
    pub port: PortNumber,
}

/// A cable: full duplex, the same width and speed both ways. `a` and `b` may be the same node (a
/// self-loop cable) but never the same port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The end that was listed first.
    pub a: Endpoint,
    /// The other end.
    pub b: Endpoint,
    /// Negotiated width.
    pub width: LinkWidth,
    /// Negotiated speed.
    pub speed: LinkSpeed,
}

impl Link {
    /// The rate both directions run at.
    pub const fn rate(&self) -> LinkRate {
        LinkRate::of(self.width, self.speed)
    }

    /// The end opposite to `from`; `from` must be one of the two ends.
    pub fn opposite(&self, from: Endpoint) -> Endpoint {
        debug_assert!(from == self.a || from == self.b);
        if from == self.a { self.b } else { self.a }
    }
}

/// A port. A switch's port 0 is the management port: it has the switch's LID and no cable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Port {
    /// Port GUID; 0 where the file did not give one.
    pub guid: Guid,
    /// Base LID the file gave; builders give none.
    pub lid: Option<Lid>,
    /// LMC the file gave.
    pub lmc: Lmc,
    /// The cable, if one is plugged in.
    pub link: Option<LinkId>,
}

/// A switch or a channel adapter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// Switch or channel adapter.
    pub kind: NodeKind,
    /// Node GUID, unique in the fabric.
    pub guid: Guid,
    /// System image GUID: the chassis the node is part of; 0 where not given.
    pub system_guid: Guid,
    /// Vendor id as the file gave it, 24 bits.
    pub vendor: u32,
    /// Device id as the file gave it.
    pub device: u32,
    /// NodeDescription: what people call it. Not necessarily unique.
    pub name: String,
    /// A switch whose port 0 is an enhanced one (IBA vol. 1, 18.2.4.1).
    pub enhanced_port0: bool,
    /// Indexed by port number; `[0]` is the management port, so the length is ports + 1.
    pub ports: Vec<Port>,
}

impl Node {
    /// A node without cables and with `ports` external ports, 1..=254.
    pub fn new(kind: NodeKind, guid: Guid, name: impl Into<String>, ports: u8) -> Self {
        Node {
            kind,
            guid,
            system_guid: guid,
            vendor: 0,
            device: 0,
            name: name.into(),
            enhanced_port0: false,
            ports: vec![Port::default(); usize::from(ports) + 1],
        }
    }

    /// How many external ports the node has.
    pub fn port_count(&self) -> u8 {
        (self.ports.len() - 1) as u8
    }

    /// True for a switch.
    pub fn is_switch(&self) -> bool {
        self.kind == NodeKind::Switch
    }
}

/// Why two things cannot be joined.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FabricError {
    /// The node has no such port.
    #[error("{node} has ports 1 to {ports}, not {port}; correct the port number")]
    NoSuchPort {
        /// Name of the node.
        node: String,
        /// Port asked for.
        port: u8,
        /// External ports it has.
        ports: u8,
    },
    /// The port already holds another cable.
    #[error("{node} port {port} already holds the cable to {peer}; a port takes one cable")]
    PortTaken {
        /// Name of the node.
        node: String,
        /// Port asked for.
        port: u8,
        /// Where the cable in it goes.
        peer: String,
    },
    /// A cable cannot have both ends in one port.
    #[error("{node} port {port} is cabled to itself; a cable needs two ports")]
    SamePort {
        /// Name of the node.
        node: String,
        /// The port.
        port: u8,
    },
    /// Two nodes carry one GUID.
    #[error("node GUID {guid} belongs to both {first} and {second}; GUIDs are unique in a subnet")]
    DuplicateGuid {
        /// The GUID.
        guid: Guid,
        /// Name of the node that had it first.
        first: String,
        /// Name of the node that has it too.
        second: String,
    },
}

/// Nodes and links. Built by adding nodes, then joining ports; afterwards read-only but for
/// [`Fabric::unplug`] and [`Fabric::set_speed`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fabric {
    nodes: Vec<Node>,
    links: Vec<Link>,
    by_guid: BTreeMap<Guid, NodeId>,
}

impl Fabric {
    /// A fabric without nodes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a node. Fails if its GUID is taken.
    pub fn add_node(&mut self, node: Node) -> Result<NodeId, FabricError> {
        let id = NodeId(self.nodes.len() as u32);
        if let Some(first) = self.by_guid.get(&node.guid) {
            return Err(FabricError::DuplicateGuid {
                guid: node.guid,
                first: self.node(*first).name.clone(),
                second: node.name,
            });
        }
        self.by_guid.insert(node.guid, id);
        self.nodes.push(node);
        Ok(id)
    }

    /// Plugs a cable into two free ports. Fails if a port does not exist, is taken or is the same.
    pub fn join(
        &mut self,
        a: Endpoint,
        b: Endpoint,
        width: LinkWidth,
        speed: LinkSpeed,
    ) -> Result<LinkId, FabricError> {
        if a == b {
            let node = self.node(a.node).name.clone();
            return Err(FabricError::SamePort { node, port: a.port.value() });
        }
        for end in [a, b] {
            self.check_free(end)?;
        }
        let id = LinkId(self.links.len() as u32);
        self.links.push(Link { a, b, width, speed });
        for end in [a, b] {
            self.nodes[end.node.index()].ports[usize::from(end.port.value())].link = Some(id);
        }
        Ok(id)
    }

    fn check_free(&self, end: Endpoint) -> Result<(), FabricError> {
        let node = self.node(end.node);
        let port = end.port.value();
        if port == 0 || usize::from(port) >= node.ports.len() {
            let (node, ports) = (node.name.clone(), node.port_count());
            return Err(FabricError::NoSuchPort { node, port, ports });
        }
        match self.peer(end) {
            Some(peer) => Err(FabricError::PortTaken {
                node: node.name.clone(),
                port,
                peer: self.describe(peer),
            }),
            None => Ok(()),
        }
    }

    /// Takes the links out for which `dead` says so. Link indices are dense again afterwards, in
    /// the old order.
    pub fn unplug(&mut self, mut dead: impl FnMut(LinkId, &Link) -> bool) {
        let old = std::mem::take(&mut self.links);
        for node in &mut self.nodes {
            for port in &mut node.ports {
                port.link = None;
            }
        }
        for (index, link) in old.into_iter().enumerate() {
            if dead(LinkId(index as u32), &link) {
                continue;
            }
            let id = LinkId(self.links.len() as u32);
            self.links.push(link);
            for end in [link.a, link.b] {
                self.nodes[end.node.index()].ports[usize::from(end.port.value())].link = Some(id);
            }
        }
    }

    /// Lets a link run at another width and speed, as a bad cable does.
    pub fn set_speed(&mut self, link: LinkId, width: LinkWidth, speed: LinkSpeed) {
        let link = &mut self.links[link.index()];
        (link.width, link.speed) = (width, speed);
    }

    /// All nodes, in order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The nodes to edit names, ids or LIDs of; cables change through `join` and `unplug` alone.
    pub fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.index()]
    }

    /// One node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// All links, in order.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// One link.
    pub fn link(&self, id: LinkId) -> &Link {
        &self.links[id.index()]
    }

    /// Indices of the nodes of a kind, in order.
    pub fn ids(&self, kind: NodeKind) -> impl Iterator<Item = NodeId> + '_ {
        let of_kind =
            move |(i, node): (usize, &Node)| (node.kind == kind).then_some(NodeId(i as u32));
        self.nodes.iter().enumerate().filter_map(of_kind)
    }

    /// The node with this GUID.
    pub fn by_guid(&self, guid: Guid) -> Option<NodeId> {
        self.by_guid.get(&guid).copied()
    }

    /// The link plugged into a port, if any.
    pub fn link_at(&self, end: Endpoint) -> Option<LinkId> {
        self.node(end.node).ports.get(usize::from(end.port.value()))?.link
    }

    /// What the cable in a port leads to.
    pub fn peer(&self, end: Endpoint) -> Option<Endpoint> {
        self.link_at(end).map(|id| self.link(id).opposite(end))
    }

    /// A node's cabled ports with what they lead to, in port order.
    pub fn neighbours(
        &self,
        id: NodeId,
    ) -> impl Iterator<Item = (PortNumber, LinkId, Endpoint)> + '_ {
        self.node(id).ports.iter().enumerate().filter_map(move |(number, port)| {
            let port_number = PortNumber::new(number as u8)?;
            let link = port.link?;
            let end = Endpoint { node: id, port: port_number };
            Some((port_number, link, self.link(link).opposite(end)))
        })
    }

    /// `leaf03[17]`: how people name a port.
    pub fn describe(&self, end: Endpoint) -> String {
        format!("{}[{}]", self.node(end.node).name, end.port)
    }

    /// `leaf03[19]-spine01[4]`: how people name a cable.
    pub fn cable(&self, link: &Link) -> String {
        format!("{}-{}", self.describe(link.a), self.describe(link.b))
    }

    /// The sizes in one line.
    pub fn summary(&self) -> Summary {
        let mut rates = BTreeMap::new();
        for link in &self.links {
            *rates.entry((link.width, link.speed)).or_insert(0) += 1;
        }
        let switches = self.ids(NodeKind::Switch).count();
        Summary { switches, adapters: self.nodes.len() - switches, links: self.links.len(), rates }
    }
}

/// Sizes of a fabric; prints as `281 hosts, 25 switches, 1214 cables: 1214 × 4x QDR`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Summary {
    /// Switches.
    pub switches: usize,
    /// Channel adapters.
    pub adapters: usize,
    /// Cables.
    pub links: usize,
    /// Cables by width and speed.
    pub rates: BTreeMap<(LinkWidth, LinkSpeed), usize>,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { switches, adapters, links, rates } = self;
        write!(f, "{adapters} hosts, {switches} switches, {links} cables")?;
        for (index, ((width, speed), count)) in rates.iter().enumerate() {
            write!(f, "{}{count} × {width} {speed}", if index == 0 { ": " } else { ", " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_switches() -> (Fabric, NodeId, NodeId) {
        let mut fabric = Fabric::new();
        let a = fabric.add_node(Node::new(NodeKind::Switch, Guid(1), "a", 4)).unwrap();
        let b = fabric.add_node(Node::new(NodeKind::Switch, Guid(2), "b", 4)).unwrap();
        (fabric, a, b)
    }

    fn end(node: NodeId, port: u8) -> Endpoint {
        Endpoint { node, port: PortNumber::new(port).unwrap() }
    }

    #[test]
    fn a_cable_is_seen_from_both_ends() {
        let (mut fabric, a, b) = two_switches();
        fabric.join(end(a, 1), end(b, 3), LinkWidth::X4, LinkSpeed::Qdr).unwrap();
        assert_eq!(fabric.peer(end(a, 1)), Some(end(b, 3)));
        assert_eq!(fabric.peer(end(b, 3)), Some(end(a, 1)));
        assert_eq!(fabric.peer(end(b, 1)), None);
        assert_eq!(fabric.neighbours(a).count(), 1);
    }

    #[test]
    fn impossible_cables_are_refused_with_the_place() {
        let (mut fabric, a, b) = two_switches();
        let mut join = |x, y| fabric.join(x, y, LinkWidth::X4, LinkSpeed::Qdr);
        join(end(a, 1), end(b, 1)).unwrap();
        let taken = join(end(a, 1), end(b, 2)).unwrap_err().to_string();
        assert_eq!(taken, "a port 1 already holds the cable to b[1]; a port takes one cable");
        assert!(
            join(end(a, 5), end(b, 2)).unwrap_err().to_string().contains("ports 1 to 4, not 5")
        );
        assert!(join(end(a, 2), end(a, 2)).unwrap_err().to_string().contains("to itself"));
        join(end(a, 2), end(a, 3)).unwrap();
    }

    #[test]
    fn unplugging_keeps_the_order_of_the_rest() {
        let (mut fabric, a, b) = two_switches();
        for port in 1..=3 {
            fabric.join(end(a, port), end(b, port), LinkWidth::X4, LinkSpeed::Qdr).unwrap();
        }
        fabric.unplug(|id, _| id == LinkId(1));
        assert_eq!(fabric.links().len(), 2);
        assert_eq!(fabric.link_at(end(b, 3)), Some(LinkId(1)));
        assert_eq!(fabric.peer(end(a, 2)), None);
    }
}
