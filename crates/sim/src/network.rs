//! The state of links, buffers and packets: one record per port, all ports of a switch together.

use crate::port_set::PortSet;
use crate::simulation::Setup;
use crate::{Hosts, Parameters};
use clearlane_fabric::{Endpoint, Fabric, NodeId, NodeKind};
use clearlane_ib::{LinkRate, PortNumber, wire};
use clearlane_workload::Rank;

/// No packet, no port.
pub(crate) const NIL: u32 = u32::MAX;
/// A time that never comes.
pub(crate) const NEVER: u64 = u64::MAX;

/// An acknowledgement, not data.
pub(crate) const ACK: u8 = 1;
/// The last packet of its message.
pub(crate) const LAST: u8 = 2;
/// The destination's program is told when the message is complete.
pub(crate) const TOLD: u8 = 4;
/// The queue pair is a reliable connection.
pub(crate) const RELIABLE: u8 = 8;
/// Forward explicit congestion notification: a switch has marked it (IBA vol. 1, A10).
pub(crate) const FECN: u8 = 16;
/// Backward explicit congestion notification: an ACK or a CNP tells the source, here the mechanism
/// that decides when packets are injected.
pub(crate) const BECN_WHEN: u8 = 32;
/// A congestion notification packet.
pub(crate) const CNP: u8 = 64;
/// Backward explicit congestion notification for the mechanism that decides on paths.
pub(crate) const BECN_WHICH: u8 = 128;
/// Either of the two.
pub(crate) const BECN: u8 = BECN_WHEN | BECN_WHICH;

/// No route yet: port numbers end at 254, and outputs count from 0.
pub(crate) const UNROUTED: (u8, u8) = (255, 0);

/// A packet under way, with what its headers carry (IBA vol. 1, 5.2).
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Packet {
    /// The next packet in the same buffer.
    pub(crate) next: u32,
    /// Destination LID; the destination's rank where forwarding is by rule.
    pub(crate) dlid: u32,
    /// Source LID, likewise.
    pub(crate) slid: u32,
    /// Rank that sent it.
    pub(crate) source: u32,
    /// Number of the queue pair, an ACK and a CNP carry that of the request; of a datagram the
    /// flow, if there are mechanisms.
    pub(crate) queue_pair: u32,
    /// Packet sequence number of the queue pair; of an ACK, that of the packet acknowledged.
    pub(crate) psn: u32,
    /// Message it is part of.
    pub(crate) message: u32,
    /// Bytes on the wire.
    pub(crate) bytes: u16,
    /// Bytes of payload.
    pub(crate) payload: u16,
    /// Credits it takes in a buffer.
    pub(crate) credits: u16,
    /// Flow group.
    pub(crate) group: u16,
    /// Service level.
    pub(crate) sl: u8,
    /// `ACK` to `BECN_WHICH`.
    pub(crate) flags: u8,
    /// When its message was posted.
    pub(crate) born: u64,
    /// Output port and lane at the switch it comes to next, `UNROUTED` until looked up.
    pub(crate) route: (u8, u8),
    /// The destination as the forwarder knows it.
    pub(crate) hint: u64,
    /// When its tail has arrived where it is; kept only where links differ in speed.
    pub(crate) tail: u64,
}

/// Returned credits that have not arrived yet fit in the record if they are no more than this.
pub(crate) const RING: usize = 3;
/// No return in this place of a ring.
pub(crate) const NO_RETURN: u64 = u64::MAX;

/// What a port's link leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Switch to switch, or a switch port without a cable.
    Inner,
    /// Switch to host.
    Exit,
    /// Host to switch.
    Host,
}

/// Links of one kind and rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LinkClass {
    /// What the link leads to.
    pub(crate) kind: Kind,
    /// Rate of the link.
    pub(crate) rate: LinkRate,
    /// From grant to the head being arbitrable at the peer, in ps.
    pub(crate) flight: u64,
}

/// A port: its transmitter and its receive buffers. Of the order of fields only this matters: with
/// two lanes and up to 16 ports a switch it is two cache lines, and what an arrival and a grant
/// read comes first.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Port<B, const V: usize> {
    /// When the transmitter has finished the packet it sends.
    pub(crate) free_at: u64,
    /// When it is to be looked at next; `NEVER` if nobody waits.
    pub(crate) wake_at: u64,
    /// Receiving, by lane: when the head may be forwarded: routed, and its predecessor gone.
    pub(crate) ready: [u64; V],
    /// Sending, by lane: input ports whose head wants this lane.
    pub(crate) waiters: [B; V],
    /// The port at the other end.
    pub(crate) peer: u32,
    /// Switch index, or rank of a host.
    pub(crate) node: u32,
    /// Lanes with waiters (a switch) or blocked for credits (a host).
    pub(crate) waiting: u16,
    /// Lanes of which further returns wait in the engine's overflow list.
    pub(crate) overflow: u16,
    /// Sending, by lane: credits in hand.
    pub(crate) credits: [u16; V],
    /// Receiving, by lane: credits the head takes.
    pub(crate) need: [u16; V],
    /// Receiving, by lane: output port the head wants, counted from 0.
    pub(crate) output: [u8; V],
    /// Receiving, by lane: lane it wants there.
    pub(crate) lane: [u8; V],
    /// Sending, by lane: the input port after the one served last.
    pub(crate) turn: [u8; V],
    /// Port number − 1.
    pub(crate) local: u8,
    /// Index of the link's class.
    pub(crate) class: u8,
    /// Sending, by lane: returned credits under way as `time << 16 | credits`, in the order of
    /// time; `NO_RETURN` from the first free place on.
    pub(crate) ring: [[u64; RING]; V],
    /// Receiving, by lane: the packet at the head, `NIL` if empty.
    pub(crate) head: [u32; V],
    /// Receiving, by lane: the packet at the end.
    pub(crate) tail: [u32; V],
}

impl<B, const V: usize> Port<B, V> {
    /// The index of the first port of the node whose port `index` this is.
    #[inline(always)]
    pub(crate) fn base(&self, index: u32) -> u32 {
        index - u32::from(self.local)
    }
}

/// Ports of all switches by switch and number, then one port per rank.
pub(crate) struct Network<B, const V: usize> {
    pub(crate) ports: Vec<Port<B, V>>,
    pub(crate) classes: Vec<LinkClass>,
    pub(crate) places: Places,
    /// Index of the first host port.
    pub(crate) hosts_at: u32,
    /// Whether links differ in rate, so that a packet's tail may hold up its head.
    pub(crate) mixed: bool,
    /// Credits of an empty buffer.
    pub(crate) capacity: u16,
}

/// Where the ports of a network are in the fabric.
pub(crate) struct Places {
    /// By switch index: its first port and its node.
    switches: Vec<(u32, NodeId)>,
    /// The names of all switches one after the other, and where each ends: reports of faults and
    /// deadlocks need few of them, and a string each would be a tenth of all memory.
    names: String,
    name_ends: Vec<u32>,
    /// By rank.
    hosts: Vec<Endpoint>,
    hosts_at: u32,
}

impl Places {
    /// Node and number of the port with this index.
    pub(crate) fn end(&self, port: u32) -> Endpoint {
        if port >= self.hosts_at {
            return self.hosts[(port - self.hosts_at) as usize];
        }
        let (first, node) = self.switches[self.switch(port)];
        // A switch has at most 254 ports, so the number is one.
        let number = PortNumber::new((port - first) as u8 + 1).unwrap_or(PortNumber::MANAGEMENT);
        Endpoint { node, port: number }
    }

    fn switch(&self, port: u32) -> usize {
        self.switches.partition_point(|(first, _)| *first <= port) - 1
    }

    /// Name of the switch the port belongs to; `host` for a host.
    pub(crate) fn name(&self, port: u32) -> &str {
        if port >= self.hosts_at {
            return "host";
        }
        let switch = self.switch(port);
        let begin = switch.checked_sub(1).map_or(0, |before| self.name_ends[before]);
        &self.names[begin as usize..self.name_ends[switch] as usize]
    }
}

impl<B: PortSet, const V: usize> Network<B, V> {
    /// The network at rest: all buffers empty, all credits at the sender.
    pub(crate) fn new(setup: &Setup<'_>, hosts: &Hosts) -> Self {
        let (fabric, parameters) = (setup.fabric, &setup.parameters);
        let capacity = (parameters.buffer.0 / u64::from(wire::CREDIT_UNIT)).min(65_535) as u16;
        let mut network = Network {
            ports: vec![],
            classes: vec![],
            places: Places {
                switches: vec![],
                names: String::new(),
                name_ends: vec![],
                hosts: hosts.ends().to_vec(),
                hosts_at: 0,
            },
            hosts_at: 0,
            mixed: false,
            capacity,
        };
        let switches = || fabric.ids(NodeKind::Switch);
        let ports: usize = switches().map(|s| usize::from(fabric.node(s).port_count())).sum();
        network.ports.reserve_exact(ports + hosts.count());
        let mut first_port = vec![NIL; fabric.nodes().len()];
        for (index, switch) in switches().enumerate() {
            let first = network.ports.len() as u32;
            first_port[switch.index()] = first;
            network.places.switches.push((first, switch));
            network.places.names.push_str(&fabric.node(switch).name);
            network.places.name_ends.push(network.places.names.len() as u32);
            for local in 0..fabric.node(switch).port_count() {
                network.ports.push(network.blank(index as u32, local));
            }
        }
        network.hosts_at = network.ports.len() as u32;
        network.places.hosts_at = network.hosts_at;
        for rank in 0..hosts.count() as u32 {
            network.ports.push(network.blank(rank, 0));
        }
        network.connect(fabric, hosts, &first_port, parameters);
        network
    }

    fn blank(&self, node: u32, local: u8) -> Port<B, V> {
        Port {
            free_at: 0,
            wake_at: NEVER,
            ready: [0; V],
            waiters: [B::EMPTY; V],
            peer: NIL,
            node,
            waiting: 0,
            overflow: 0,
            credits: [self.capacity; V],
            need: [0; V],
            output: [0; V],
            lane: [0; V],
            turn: [0; V],
            local,
            class: 0,
            ring: [[NO_RETURN; RING]; V],
            head: [NIL; V],
            tail: [NIL; V],
        }
    }

    fn connect(&mut self, fabric: &Fabric, hosts: &Hosts, first: &[u32], parameters: &Parameters) {
        let forced = parameters.link_rate.and_then(LinkRate::from_bits);
        let at = |end: Endpoint| first[end.node.index()] + u32::from(end.port.value()) - 1;
        let mut rates = std::collections::BTreeSet::new();
        let flight = parameters.cable_delay.0 + parameters.switch_delay.0;
        let class = |kind, rate| LinkClass { kind, rate, flight };
        // The class of ports without a cable.
        let slowest = LinkRate::of(clearlane_ib::LinkWidth::X1, clearlane_ib::LinkSpeed::Sdr);
        self.class(class(Kind::Inner, slowest));
        for link in fabric.links() {
            let switches =
                fabric.node(link.a.node).is_switch() && fabric.node(link.b.node).is_switch();
            if switches {
                let rate = forced.unwrap_or(link.rate());
                rates.insert(rate);
                let inner = self.class(class(Kind::Inner, rate));
                self.join((at(link.a), inner), (at(link.b), inner));
            }
        }
        for rank in 0..hosts.count() as u32 {
            // Hosts::of keeps only adapter ports cabled to a switch.
            let Some(peer) = fabric.peer(hosts.end(Rank(rank))) else { continue };
            let rate = hosts.rate(Rank(rank), parameters);
            rates.insert(rate);
            let host = self.class(class(Kind::Host, rate));
            let exit = self.class(class(Kind::Exit, rate));
            self.join((self.hosts_at + rank, host), (at(peer), exit));
        }
        self.mixed = rates.len() > 1;
    }

    /// The index of a class. There are at most three for each of the 45 rates of a cable.
    fn class(&mut self, class: LinkClass) -> u8 {
        let known = self.classes.iter().position(|known| *known == class);
        known.unwrap_or_else(|| {
            self.classes.push(class);
            self.classes.len() - 1
        }) as u8
    }

    fn join(&mut self, (a, a_class): (u32, u8), (b, b_class): (u32, u8)) {
        for (port, peer, class) in [(a, b, a_class), (b, a, b_class)] {
            let port = &mut self.ports[port as usize];
            (port.peer, port.class) = (peer, class);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_of_a_torus_is_two_cache_lines() {
        assert_eq!(size_of::<Port<u16, 2>>(), 128);
        assert_eq!(size_of::<Port<u64, 1>>(), 128);
        assert_eq!(size_of::<Packet>(), 64);
    }
}
