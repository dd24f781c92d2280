//! What flows share: channels, which are directions of links, and what hosts have of their own.

use clearlane_fabric::{Endpoint, Fabric};
use clearlane_ib::{BitsPerSecond, LinkRate, LinkSpeed, LinkWidth};
use clearlane_sim::{Hosts, Parameters};
use clearlane_workload::Rank;

/// A channel, or a limit of a host: in the order of nodes and ports, then limits.
pub(crate) type LinkNumber = u32;

/// A channel that transmits from this port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Channel {
    pub(crate) end: Endpoint,
    /// Its rate; that of the slowest link there is at a port without a cable.
    pub(crate) rate: LinkRate,
}

/// What a host has besides its links: the numbers of these limits, `NONE` if it has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    /// Its adapter fetches no faster.
    pub(crate) dma: LinkNumber,
    /// Its adapter stores no faster.
    pub(crate) drain: LinkNumber,
    /// It does both together no faster.
    pub(crate) memory: LinkNumber,
}

/// No link.
pub(crate) const NONE: LinkNumber = LinkNumber::MAX;

/// All of them.
pub(crate) struct Links {
    /// Ports of switches, cabled or not, and those of hosts that carry traffic, in the order of
    /// nodes and ports, as an outcome lists them.
    pub(crate) channels: Vec<Channel>,
    /// Bytes a picosecond, by number: of channels, then of limits.
    pub(crate) capacities: Vec<f64>,
    /// By node: the channel of its first port, of those that have any.
    pub(crate) first: Vec<LinkNumber>,
    /// By port of a host, in the order of [`Hosts::all_ports`]: the channel that it transmits on.
    pub(crate) injection: Vec<LinkNumber>,
    /// By channel: that of the other end of its cable.
    pub(crate) peers: Vec<Option<LinkNumber>>,
    /// By host.
    pub(crate) limits: Vec<Limits>,
}

/// Bytes that a link carries in a picosecond.
pub(crate) fn bytes_per_picosecond(rate: LinkRate) -> f64 {
    1000.0 / f64::from(rate.femtoseconds_per_byte())
}

impl Links {
    /// Those of a fabric whose hosts these are.
    pub(crate) fn new(fabric: &Fabric, hosts: &Hosts, parameters: &Parameters) -> Self {
        let forced = parameters.link_rate.and_then(LinkRate::from_bits);
        let slowest = LinkRate::of(LinkWidth::X1, LinkSpeed::Sdr);
        let rate = |end: Endpoint| {
            let cable = || fabric.link_at(end).map(|link| fabric.link(link).rate());
            forced.or_else(cable).unwrap_or(slowest)
        };
        let (mut channels, mut first) = (Vec::new(), Vec::with_capacity(fabric.nodes().len()));
        let mut ports: Vec<(Endpoint, usize)> =
            hosts.all_ports().iter().copied().zip(0..).collect();
        ports.sort_unstable();
        let mut injection = vec![NONE; ports.len()];
        let mut ports = ports.into_iter().peekable();
        for (index, node) in fabric.nodes().iter().enumerate() {
            let id = clearlane_fabric::NodeId(index as u32);
            first.push(channels.len() as LinkNumber);
            if node.is_switch() {
                let numbers = (1..=node.port_count()).filter_map(clearlane_ib::PortNumber::new);
                let ends = numbers.map(|port| Endpoint { node: id, port });
                channels.extend(ends.map(|end| Channel { end, rate: rate(end) }));
                continue;
            }
            while let Some((end, port)) = ports.next_if(|(end, _)| end.node == id) {
                injection[port] = channels.len() as LinkNumber;
                channels.push(Channel { end, rate: rate(end) });
            }
        }
        let mut capacities: Vec<f64> =
            channels.iter().map(|channel| bytes_per_picosecond(channel.rate)).collect();
        let limits = limits(hosts, parameters, &mut capacities);
        let at = |end: Endpoint| {
            let found = channels.binary_search_by_key(&end, |channel: &Channel| channel.end);
            found.ok().map(|at| at as LinkNumber)
        };
        let peers = channels.iter().map(|channel| fabric.peer(channel.end).and_then(at)).collect();
        Links { channels, capacities, first, injection, peers, limits }
    }
}

/// The limits of each host, whose capacities join the others.
fn limits(hosts: &Hosts, parameters: &Parameters, capacities: &mut Vec<f64>) -> Vec<Limits> {
    let mut limit = |rate: Option<BitsPerSecond>| match rate.and_then(LinkRate::from_bits) {
        None => NONE,
        Some(rate) => {
            capacities.push(bytes_per_picosecond(rate));
            capacities.len() as LinkNumber - 1
        }
    };
    let of = |_: Rank| Limits {
        dma: limit(parameters.dma_rate),
        drain: limit(parameters.drain_rate),
        memory: limit(parameters.memory_rate),
    };
    (0..hosts.count() as u32).map(Rank).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_in_the_order_of_nodes_and_ports() {
        let fabric = clearlane_fabric::topologies::build("torus:3x3,hosts=2").unwrap();
        let hosts = Hosts::of(&fabric);
        let base = (clearlane_sim::preset::by_name("qdr").unwrap().parameters)();
        let bus = Some(BitsPerSecond(64_000_000_000));
        let parameters = Parameters { drain_rate: bus, ..base };
        let links = Links::new(&fabric, &hosts, &parameters);
        assert!(links.channels.is_sorted_by_key(|channel| channel.end));
        // Nine switches of four ports and two for hosts, and 18 hosts.
        assert_eq!(links.channels.len(), 9 * 6 + 18);
        for (rank, channel) in links.injection.iter().enumerate() {
            assert_eq!(links.channels[*channel as usize].end, hosts.all_ports()[rank]);
        }
        assert_eq!(links.capacities.len(), links.channels.len() + 18);
        let limits = links.limits[17];
        assert_eq!((limits.dma, limits.memory), (NONE, NONE));
        // A byte takes 250 ps on 4x QDR, and half as long to be stored.
        assert_eq!(links.capacities[0], 0.004);
        assert_eq!(links.capacities[limits.drain as usize], 0.008);
    }
}
