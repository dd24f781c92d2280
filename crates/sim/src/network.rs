//! The state of links, buffers and packets: one record per port, all ports of a switch together.

use crate::simulation::Setup;
use crate::{Hosts, Parameters};
use clearlane_fabric::{Endpoint, Fabric, NodeId, NodeKind};
use clearlane_ib::{LinkRate, wire};
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

/// A packet under way, with what its headers carry (IBA vol. 1, 5.2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// The next packet in the same buffer.
    pub(crate) next: u32,
    /// Destination LID; the destination's rank where forwarding is by rule.
    pub(crate) dlid: u32,
    /// Source LID, likewise.
    pub(crate) slid: u32,
    /// Rank that sent it.
    pub(crate) source: u32,
    /// Number of the queue pair; an ACK carries that of the request.
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
    /// `ACK`, `LAST`, `TOLD`, `RELIABLE`.
    pub(crate) flags: u8,
    /// When its message was posted.
    pub(crate) born: u64,
    /// When its tail has arrived where it is; kept only where links differ in speed.
    pub(crate) tail: u64,
}

/// Returned credits that have not arrived yet: time and amount in one word.
pub(crate) const RING: usize = 4;

/// The sending side of a lane: who waits and how much the far buffer holds.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct OutLane<const W: usize> {
    /// Input ports whose head wants this lane, one bit each.
    pub(crate) waiters: [u64; W],
    /// Credits in hand.
    pub(crate) credits: u16,
    /// Returned credits under way in `ring`.
    pub(crate) pending: u8,
    /// Where the ring begins.
    pub(crate) first: u8,
    /// The input port after the one served last.
    pub(crate) turn: u8,
    /// True if further returns wait in the engine's overflow list.
    pub(crate) overflow: bool,
    /// `time << 16 | credits`, in the order of time.
    pub(crate) ring: [u64; RING],
}

/// The receiving side of a lane: a first-in-first-out buffer.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct InLane {
    /// When the head may be forwarded: routed, and its predecessor gone.
    pub(crate) ready: u64,
    /// The packet at the head, `NIL` if empty.
    pub(crate) head: u32,
    /// The packet at the end.
    pub(crate) tail: u32,
    /// Credits the head takes.
    pub(crate) credits: u16,
    /// Output port the head wants, counted from 0.
    pub(crate) output: u8,
    /// Lane it wants there.
    pub(crate) lane: u8,
}

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

/// A port: its transmitter and its receive buffers.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Port<const V: usize, const W: usize> {
    /// When the transmitter has finished the packet it sends.
    pub(crate) free_at: u64,
    /// When it is to be looked at next; `NEVER` if nobody waits.
    pub(crate) wake_at: u64,
    /// The port at the other end.
    pub(crate) peer: u32,
    /// The first port of the node.
    pub(crate) base: u32,
    /// Switch index, or rank of a host.
    pub(crate) node: u32,
    /// From grant to the head being arbitrable at the peer, in ps.
    pub(crate) flight: u32,
    /// Rate of the link.
    pub(crate) rate: LinkRate,
    /// Lanes with waiters (a switch) or blocked for credits (a host).
    pub(crate) waiting: u16,
    /// Port number − 1.
    pub(crate) local: u8,
    /// What the link leads to.
    pub(crate) kind: Kind,
    /// Sending side by lane.
    pub(crate) out: [OutLane<W>; V],
    /// Receiving side by lane.
    pub(crate) input: [InLane; V],
}

/// Ports of all switches by switch and number, then one port per rank.
pub(crate) struct Network<const V: usize, const W: usize> {
    pub(crate) ports: Vec<Port<V, W>>,
    /// Node and port number by port.
    pub(crate) ends: Vec<Endpoint>,
    /// Index of the first host port.
    pub(crate) hosts_at: u32,
    /// Whether links differ in rate, so that a packet's tail may hold up its head.
    pub(crate) mixed: bool,
    /// Credits of an empty buffer.
    pub(crate) capacity: u16,
}

impl<const V: usize, const W: usize> Network<V, W> {
    /// The network at rest: all buffers empty, all credits at the sender.
    pub(crate) fn new(setup: &Setup<'_>, hosts: &Hosts) -> Self {
        let (fabric, parameters) = (setup.fabric, &setup.parameters);
        let capacity = (parameters.buffer.0 / u64::from(wire::CREDIT_UNIT)).min(65_535) as u16;
        let mut network =
            Network { ports: vec![], ends: vec![], hosts_at: 0, mixed: false, capacity };
        let mut first_port = vec![NIL; fabric.nodes().len()];
        for (index, switch) in fabric.ids(NodeKind::Switch).enumerate() {
            first_port[switch.index()] = network.ports.len() as u32;
            network.add_switch(fabric, switch, index as u32);
        }
        network.hosts_at = network.ports.len() as u32;
        for (rank, end) in hosts.ends().iter().enumerate() {
            let mut port = network.blank(network.ports.len() as u32, rank as u32, 0);
            port.kind = Kind::Host;
            network.ports.push(port);
            network.ends.push(*end);
        }
        network.connect(fabric, hosts, &first_port, parameters);
        network
    }

    fn blank(&self, base: u32, node: u32, local: u8) -> Port<V, W> {
        let out = OutLane {
            waiters: [0; W],
            credits: self.capacity,
            pending: 0,
            first: 0,
            turn: 0,
            overflow: false,
            ring: [0; RING],
        };
        let input = InLane { ready: 0, head: NIL, tail: NIL, credits: 0, output: 0, lane: 0 };
        let rate = LinkRate::of(clearlane_ib::LinkWidth::X4, clearlane_ib::LinkSpeed::Qdr);
        Port {
            free_at: 0,
            wake_at: NEVER,
            peer: NIL,
            base,
            node,
            flight: 0,
            rate,
            waiting: 0,
            local,
            kind: Kind::Inner,
            out: [out; V],
            input: [input; V],
        }
    }

    fn add_switch(&mut self, fabric: &Fabric, switch: NodeId, index: u32) {
        let base = self.ports.len() as u32;
        for number in 1..=fabric.node(switch).port_count() {
            let port = self.blank(base, index, number - 1);
            self.ports.push(port);
            // A port count comes from the node, so the number is one of its ports.
            let port = clearlane_ib::PortNumber::new(number)
                .unwrap_or(clearlane_ib::PortNumber::MANAGEMENT);
            self.ends.push(Endpoint { node: switch, port });
        }
    }

    fn connect(&mut self, fabric: &Fabric, hosts: &Hosts, first: &[u32], parameters: &Parameters) {
        let forced = parameters.link_rate.and_then(LinkRate::from_bits);
        let at = |end: Endpoint| first[end.node.index()] + u32::from(end.port.value()) - 1;
        let mut rates = std::collections::BTreeSet::new();
        for link in fabric.links() {
            let switches =
                fabric.node(link.a.node).is_switch() && fabric.node(link.b.node).is_switch();
            if switches {
                let rate = forced.unwrap_or(link.rate());
                rates.insert(rate);
                self.join(at(link.a), at(link.b), rate, parameters);
            }
        }
        for rank in 0..hosts.count() as u32 {
            // Hosts::of keeps only adapter ports cabled to a switch.
            let Some(peer) = fabric.peer(hosts.end(Rank(rank))) else { continue };
            let rate = hosts.rate(Rank(rank), parameters);
            rates.insert(rate);
            let (host, exit) = (self.hosts_at + rank, at(peer));
            self.join(host, exit, rate, parameters);
            self.ports[exit as usize].kind = Kind::Exit;
        }
        self.mixed = rates.len() > 1;
    }

    fn join(&mut self, a: u32, b: u32, rate: LinkRate, parameters: &Parameters) {
        let flight = (parameters.cable_delay.0 + parameters.switch_delay.0) as u32;
        for (port, peer) in [(a, b), (b, a)] {
            let port = &mut self.ports[port as usize];
            (port.peer, port.rate, port.flight) = (peer, rate, flight);
        }
    }
}
