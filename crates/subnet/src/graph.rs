//! The switches and their ports as flat arrays: what engines and checkers walk over.

use crate::{LidMap, LidOwner};
use clearlane_fabric::{Endpoint, Fabric, NodeId, NodeKind};
use clearlane_ib::{Lid, PortNumber};

/// What a switch port leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Peer {
    /// No cable.
    Nothing,
    /// A port of the switch in this row.
    Switch { row: u32, port: u8 },
    /// A port of an adapter.
    Adapter { node: NodeId, port: u8 },
}

/// Switches by row (the order of [`crate::ForwardingTables::switches`]), ports by number. A switch
/// output is a channel; its index is `channel(row, port)`, dense over the fabric.
#[derive(Clone, Debug)]
pub(crate) struct SwitchGraph {
    switches: Vec<NodeId>,
    row_of: Vec<u32>,
    /// First channel of each row, and one more.
    offsets: Vec<u32>,
    peers: Vec<Peer>,
}

/// A LID and where its path ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Target {
    pub(crate) lid: Lid,
    pub(crate) owner: LidOwner,
    /// Row of the switch that holds it.
    pub(crate) row: u32,
    /// The port of that switch towards it; 0 for the switch's own LID.
    pub(crate) exit: u8,
}

/// A host that takes part, in rank order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Host {
    pub(crate) end: Endpoint,
    pub(crate) row: u32,
    /// The port of the switch it is plugged into.
    pub(crate) port: u8,
}

impl SwitchGraph {
    pub(crate) fn of(fabric: &Fabric) -> Self {
        let switches: Vec<NodeId> = fabric.ids(NodeKind::Switch).collect();
        let mut row_of = vec![u32::MAX; fabric.nodes().len()];
        for (row, switch) in switches.iter().enumerate() {
            row_of[switch.index()] = row as u32;
        }
        let mut offsets = vec![0];
        let mut peers = Vec::new();
        for switch in &switches {
            let first = peers.len();
            peers.resize(first + fabric.node(*switch).ports.len(), Peer::Nothing);
            for (port, _, peer) in fabric.neighbours(*switch) {
                let row = row_of[peer.node.index()];
                let to = peer.port.value();
                peers[first + usize::from(port.value())] = if row == u32::MAX {
                    Peer::Adapter { node: peer.node, port: to }
                } else {
                    Peer::Switch { row, port: to }
                };
            }
            offsets.push(peers.len() as u32);
        }
        SwitchGraph { switches, row_of, offsets, peers }
    }

    /// Number of switches.
    pub(crate) fn rows(&self) -> usize {
        self.switches.len()
    }

    pub(crate) fn switch(&self, row: usize) -> NodeId {
        self.switches[row]
    }

    pub(crate) fn row_of(&self, node: NodeId) -> Option<usize> {
        let row = *self.row_of.get(node.index())?;
        (row != u32::MAX).then_some(row as usize)
    }

    /// Number of channels, port 0 of every switch included.
    pub(crate) fn channels(&self) -> usize {
        self.peers.len()
    }

    pub(crate) fn channel(&self, row: usize, port: u8) -> usize {
        self.offsets[row] as usize + usize::from(port)
    }

    /// Row and port of a channel.
    pub(crate) fn place(&self, channel: usize) -> (usize, u8) {
        let row = self.offsets.partition_point(|first| *first as usize <= channel) - 1;
        (row, (channel - self.offsets[row] as usize) as u8)
    }

    /// Ports of a switch, port 0 included.
    pub(crate) fn ports(&self, row: usize) -> usize {
        (self.offsets[row + 1] - self.offsets[row]) as usize
    }

    /// What a port leads to; nothing for ports the switch does not have.
    pub(crate) fn peer(&self, row: usize, port: u8) -> Peer {
        if usize::from(port) < self.ports(row) {
            self.peers[self.channel(row, port)]
        } else {
            Peer::Nothing
        }
    }

    /// The switch behind a port; nothing where there is none.
    pub(crate) fn next(&self, row: usize, port: u8) -> Option<usize> {
        match self.peer(row, port) {
            Peer::Switch { row, .. } => Some(row as usize),
            _ => None,
        }
    }

    pub(crate) fn peer_of(&self, channel: usize) -> Peer {
        self.peers[channel]
    }

    /// Cabled ports towards other switches in port order: (port, row of the peer, its port).
    /// Self-loop cables are left out: no path uses them.
    pub(crate) fn switch_peers(&self, row: usize) -> impl Iterator<Item = (u8, usize, u8)> + '_ {
        let first = self.offsets[row] as usize;
        let all = self.peers[first..self.offsets[row + 1] as usize].iter().enumerate();
        all.filter_map(move |(port, peer)| match *peer {
            Peer::Switch { row: to, port: at } if to as usize != row => {
                Some((port as u8, to as usize, at))
            }
            _ => None,
        })
    }

    /// Adapter ports plugged into a switch, in port order: (port, adapter).
    pub(crate) fn adapters(&self, row: usize) -> impl Iterator<Item = (u8, Endpoint)> + '_ {
        let first = self.offsets[row] as usize;
        let all = self.peers[first..self.offsets[row + 1] as usize].iter().enumerate();
        all.filter_map(|(port, peer)| match *peer {
            Peer::Adapter { node, port: at } => {
                Some((port as u8, Endpoint { node, port: PortNumber::new(at)? }))
            }
            _ => None,
        })
    }

    /// Whether a host is plugged into the switch.
    pub(crate) fn has_adapter(&self, row: usize) -> bool {
        self.adapters(row).next().is_some()
    }

    /// Distance in hops of every switch from `from`; `u32::MAX` where no cable leads.
    pub(crate) fn distances(&self, from: usize, distances: &mut Vec<u32>, queue: &mut Vec<u32>) {
        distances.clear();
        distances.resize(self.rows(), u32::MAX);
        queue.clear();
        distances[from] = 0;
        queue.push(from as u32);
        let mut next = 0;
        while let Some(&row) = queue.get(next) {
            next += 1;
            let distance = distances[row as usize] + 1;
            for (_, peer, _) in self.switch_peers(row as usize) {
                if distances[peer] == u32::MAX {
                    distances[peer] = distance;
                    queue.push(peer as u32);
                }
            }
        }
    }

    /// Every LID that a switch can forward to, in the order of switch, exit port, LID.
    pub(crate) fn targets(&self, lids: &LidMap) -> Vec<Target> {
        let mut targets = Vec::new();
        for row in 0..self.rows() {
            let own = Endpoint { node: self.switches[row], port: PortNumber::MANAGEMENT };
            self.push_targets(lids, own, row, 0, &mut targets);
            for (exit, end) in self.adapters(row) {
                self.push_targets(lids, end, row, exit, &mut targets);
            }
        }
        targets
    }

    fn push_targets(
        &self,
        lids: &LidMap,
        end: Endpoint,
        row: usize,
        exit: u8,
        targets: &mut Vec<Target>,
    ) {
        let Some((base, lmc)) = lids.base(end) else { return };
        for offset in 0..lmc.lids() {
            if let Some(lid) = base.value().checked_add(offset).and_then(Lid::new) {
                let owner = LidOwner { end, offset };
                targets.push(Target { lid, owner, row: row as u32, exit });
            }
        }
    }

    /// Every adapter port that is plugged into a switch, in the order of nodes and ports.
    pub(crate) fn adapter_ports(&self, fabric: &Fabric) -> Vec<Host> {
        let mut ports = Vec::new();
        for node in fabric.ids(NodeKind::ChannelAdapter) {
            for (port, _, peer) in fabric.neighbours(node) {
                if let Some(row) = self.row_of(peer.node) {
                    let end = Endpoint { node, port };
                    ports.push(Host { end, row: row as u32, port: peer.port.value() });
                }
            }
        }
        ports
    }

    /// Hosts in rank order: of every adapter, in the order of nodes, the first port that leads to
    /// a switch. The simulator counts ranks in the same way.
    pub(crate) fn hosts(&self, fabric: &Fabric) -> Vec<Host> {
        let mut hosts = Vec::new();
        for node in fabric.ids(NodeKind::ChannelAdapter) {
            let at_switch = fabric
                .neighbours(node)
                .find_map(|(port, _, peer)| Some((port, peer, self.row_of(peer.node)?)));
            if let Some((port, peer, row)) = at_switch {
                let end = Endpoint { node, port };
                hosts.push(Host { end, row: row as u32, port: peer.port.value() });
            }
        }
        hosts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_fabric::topologies::build;
    use clearlane_ib::Lmc;

    #[test]
    fn channels_are_dense_and_go_both_ways() {
        let fabric = build("leaf-spine:leaves=3,hosts=2,spines=2").unwrap();
        let graph = SwitchGraph::of(&fabric);
        for channel in 0..graph.channels() {
            let (row, port) = graph.place(channel);
            assert_eq!(graph.channel(row, port), channel);
            if let Peer::Switch { row: to, port: at } = graph.peer(row, port) {
                let back = Peer::Switch { row: row as u32, port };
                assert_eq!(graph.peer(to as usize, at), back);
            }
        }
        assert_eq!(graph.peer(0, 200), Peer::Nothing);
        assert_eq!(graph.adapters(0).count(), 2);
        assert!(!graph.has_adapter(3));
    }

    #[test]
    fn every_lid_is_a_target_once() {
        let fabric = build("leaf-spine:leaves=3,hosts=2,spines=2").unwrap();
        let lids = LidMap::assign(&fabric, Lmc::new(2).unwrap()).unwrap();
        let mut targets: Vec<u16> =
            SwitchGraph::of(&fabric).targets(&lids).iter().map(|t| t.lid.value()).collect();
        targets.sort_unstable();
        let all: Vec<u16> = lids.iter().map(|(lid, _)| lid.value()).collect();
        assert_eq!(targets, all);
        assert_eq!(all.len(), 6 * 4 + 5);
    }
}
