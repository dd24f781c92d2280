//! Which adapter ports take part: rank r is the first cabled port of the r-th adapter that has one.

use crate::Parameters;
use clearlane_fabric::{Endpoint, Fabric, NodeKind};
use clearlane_ib::LinkRate;
use clearlane_subnet::Subnet;
use clearlane_workload::{Rank, Ranks};

/// The hosts of a fabric in rank order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hosts {
    ends: Vec<Endpoint>,
    rates: Vec<LinkRate>,
    names: Vec<String>,
}

impl Hosts {
    /// The hosts of `fabric`. Further ports of an adapter with several carry no traffic, and an
    /// adapter cabled to another adapter instead of a switch is left out.
    pub fn of(fabric: &Fabric) -> Self {
        let mut hosts = Hosts { ends: Vec::new(), rates: Vec::new(), names: Vec::new() };
        for node in fabric.ids(NodeKind::ChannelAdapter) {
            let to_switch = fabric
                .neighbours(node)
                .find(|(_, _, peer)| fabric.node(peer.node).kind == NodeKind::Switch);
            if let Some((port, link, _)) = to_switch {
                hosts.ends.push(Endpoint { node, port });
                hosts.rates.push(fabric.link(link).rate());
                hosts.names.push(fabric.node(node).name.clone());
            }
        }
        hosts
    }

    /// How many ranks there are.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// The adapter port of a rank.
    pub fn end(&self, rank: Rank) -> Endpoint {
        self.ends[rank.0 as usize]
    }

    /// The adapter ports in rank order.
    pub fn ends(&self) -> &[Endpoint] {
        &self.ends
    }

    /// The rate of a rank's link under these parameters.
    pub fn rate(&self, rank: Rank, parameters: &Parameters) -> LinkRate {
        let forced = parameters.link_rate.and_then(LinkRate::from_bits);
        forced.unwrap_or(self.rates[rank.0 as usize])
    }

    /// Paths between any two hosts: LIDs of the host that has the fewest, 1 if one has none.
    pub fn paths(&self, subnet: &Subnet) -> u8 {
        let lids = |end: &Endpoint| subnet.lids.base(*end).map_or(1, |(_, lmc)| lmc.lids());
        self.ends.iter().map(lids).min().unwrap_or(1) as u8
    }

    /// Names by rank.
    pub fn ranks(&self) -> Ranks {
        Ranks::new(self.names.clone())
    }
}
