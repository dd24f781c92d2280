//! Which adapter ports take part: rank r is the r-th adapter that is cabled to a switch.

use crate::Parameters;
use crate::ranges::ADAPTER_PORTS_MAX;
use clearlane_fabric::{Endpoint, Fabric, NodeKind};
use clearlane_ib::{BitsPerSecond, LinkRate};
use clearlane_subnet::Subnet;
use clearlane_workload::{Host, HostRef, Rank, Ranks};
use std::sync::Arc;

/// The hosts of a fabric in rank order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hosts {
    /// First ports by rank.
    ends: Vec<Endpoint>,
    /// Name, GUIDs and LID of each host. The list is long, so it is made once.
    ranks: Arc<Ranks>,
    /// All ports in use, host after host, and the rates of their links.
    ports: Vec<Endpoint>,
    rates: Vec<LinkRate>,
    /// By rank, and once more at the end: where its ports begin.
    first: Vec<u32>,
}

impl Hosts {
    /// The hosts of `fabric`, of which the first port that is cabled to a switch carries traffic.
    /// An adapter that is cabled to none is left out.
    pub fn of(fabric: &Fabric) -> Self {
        Self::with_ports(fabric, Some(1))
    }

    /// The same with so many ports of each adapter that carry traffic, or as many as are cabled to
    /// switches; no more than [`ADAPTER_PORTS_MAX`].
    pub fn with_ports(fabric: &Fabric, ports: Option<u32>) -> Self {
        let most = ports.unwrap_or(ADAPTER_PORTS_MAX).clamp(1, ADAPTER_PORTS_MAX) as usize;
        let mut names = Vec::new();
        let mut hosts = Hosts {
            ends: Vec::new(),
            ranks: Arc::new(Ranks::new(Vec::new())),
            ports: Vec::new(),
            rates: Vec::new(),
            first: vec![0],
        };
        for node in fabric.ids(NodeKind::ChannelAdapter) {
            let cabled = fabric
                .neighbours(node)
                .filter(|(_, _, peer)| fabric.node(peer.node).kind == NodeKind::Switch);
            let before = hosts.ports.len();
            for (port, link, _) in cabled.take(most) {
                hosts.ports.push(Endpoint { node, port });
                hosts.rates.push(fabric.link(link).rate());
            }
            if hosts.ports.len() > before {
                hosts.ends.push(hosts.ports[before]);
                names.push(known_by(fabric, hosts.ports[before]));
                hosts.first.push(hosts.ports.len() as u32);
            }
        }
        hosts.ranks = Arc::new(Ranks::new(names));
        hosts
    }

    /// How many ranks there are.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// The adapter port of a rank, of several the first.
    pub fn end(&self, rank: Rank) -> Endpoint {
        self.ends[rank.0 as usize]
    }

    /// The adapter ports in rank order, of several the first.
    pub fn ends(&self) -> &[Endpoint] {
        &self.ends
    }

    /// All ports of a rank that carry traffic.
    pub fn ports(&self, rank: Rank) -> &[Endpoint] {
        let rank = rank.0 as usize;
        &self.ports[self.first[rank] as usize..self.first[rank + 1] as usize]
    }

    /// All ports of the hosts that are named so. Fails on one that is not there, in
    /// words.
    pub fn ports_named<'a>(
        &self,
        hosts: impl IntoIterator<Item = &'a HostRef>,
    ) -> Result<Vec<Endpoint>, String> {
        let ranks = self.ranks();
        let mut ports = Vec::new();
        for host in hosts {
            ports.extend(self.ports(ranks.resolve(host)?));
        }
        Ok(ports)
    }

    /// All ports that carry traffic, in the order of ranks.
    pub fn all_ports(&self) -> &[Endpoint] {
        &self.ports
    }

    /// By rank, and once more at the end: where its ports begin among all.
    pub(crate) fn first_ports(&self) -> &[u32] {
        &self.first
    }

    /// Whether what ports receive is stored one after the other, by host: there are adapters with
    /// several, or a bus is a limit.
    pub(crate) fn share_memory(&self, parameters: &Parameters) -> bool {
        self.has_several_ports() || parameters.memory_rate.is_some()
    }

    /// Whether any adapter has several.
    pub(crate) fn has_several_ports(&self) -> bool {
        self.ports.len() > self.ends.len()
    }

    /// The rate of a rank's links together under these parameters, 8 Tb/s at most.
    pub fn rate(&self, rank: Rank, parameters: &Parameters) -> LinkRate {
        let (first, end) = (self.first[rank.0 as usize], self.first[rank.0 as usize + 1]);
        let one = self.port_rate(first, parameters);
        if end - first == 1 {
            return one;
        }
        let rates = (first..end).map(|port| self.port_rate(port, parameters).bits_per_second().0);
        let all = rates.sum::<u64>().min(8_000_000_000_000);
        LinkRate::from_bits(BitsPerSecond(all)).unwrap_or(one)
    }

    /// The ports by which a host sends to another unless a program asks for others: of each the one
    /// of the same number.
    pub fn ports_between(&self, from: Rank, to: Rank) -> (Endpoint, Endpoint) {
        let number = self.number_between(from, to, None);
        (self.ports(from)[number], self.ports(to)[number])
    }

    /// The number, among its ports, of the one by which a host sends to another: the one that is
    /// asked for, modulo the ports that both have, or else one of these, by the two.
    pub fn number_between(&self, from: Rank, to: Rank, asked: Option<u8>) -> usize {
        let both = self.ports(from).len().min(self.ports(to).len());
        match asked {
            Some(number) => usize::from(number) % both,
            None => port_between(from.0, to.0, both as u32) as usize,
        }
    }

    /// The rate of the first link of a rank.
    pub fn port_rate_of(&self, rank: Rank, parameters: &Parameters) -> LinkRate {
        self.rate_at(rank, 0, parameters)
    }

    /// The rate of the link at one of its ports.
    pub(crate) fn rate_at(&self, rank: Rank, number: u8, parameters: &Parameters) -> LinkRate {
        self.port_rate(self.first[rank.0 as usize] + u32::from(number), parameters)
    }

    /// The rate of the link at a port, by its place among all.
    pub(crate) fn port_rate(&self, port: u32, parameters: &Parameters) -> LinkRate {
        let forced = parameters.link_rate.and_then(LinkRate::from_bits);
        forced.unwrap_or(self.rates[port as usize])
    }

    /// Paths between any two hosts: LIDs of the host that has the fewest, 1 if one has none.
    pub fn paths(&self, subnet: &Subnet) -> u8 {
        let lids = |end: &Endpoint| subnet.lids.base(*end).map_or(1, |(_, lmc)| lmc.lids());
        self.ports.iter().map(lids).min().unwrap_or(1) as u8
    }

    /// Name, GUIDs and LID of each rank.
    pub fn ranks(&self) -> &Ranks {
        &self.ranks
    }
}

/// What the host is known by whose first port this is.
fn known_by(fabric: &Fabric, first: Endpoint) -> Host {
    let node = fabric.node(first.node);
    let port = node.ports.get(usize::from(first.port.value()));
    let guids = [node.guid, port.map_or(node.guid, |port| port.guid)];
    Host { name: node.name.clone(), guids, lid: port.and_then(|port| port.lid) }
}

/// By which of so many ports two hosts send to each other: static spreading, as MVAPICH spreads
/// over the paths of a subnet.
#[inline(always)]
pub(crate) const fn port_between(from: u32, to: u32, ports: u32) -> u32 {
    from.wrapping_add(to) % ports
}
