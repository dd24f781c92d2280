//! Congestion mechanisms in motion: markers at switch outputs, notifiers at destinations, reactors
//! at sources. The mechanisms decide; this module tells them what happens and does what they say.
//!
//! Statically dispatched: a run without mechanisms is another instance of the engine, which has
//! none of this.

mod flow;
mod gate;
mod order;
mod record;

use crate::adapter::{Message, Unacknowledged};
use crate::engine::Engine;
use crate::forward::Forwarder;
use crate::network::{ACK, CNP, FECN, LAST, NIL, Network, Packet, RELIABLE, TOLD, UNROUTED};
use crate::observe::Observer;
use crate::port_set::PortSet;
use crate::{Hosts, Parameters};
use clearlane_congestion::{Arrived, Mechanism, Notification, Source, Stripe};
use clearlane_ib::wire;
use clearlane_workload::{Handle, Rank, Transport};
use flow::Half;
pub(crate) use flow::{FlowKey, Flows};
use gate::Gates;
use order::{Arrival, Order};
pub(crate) use record::Record;
pub use record::{ControlRecord, FlowControl};

/// The mechanisms of a run: one for each decision at most.
#[derive(Debug, Default)]
pub struct Mechanisms {
    /// Decides when packets are injected.
    pub when: Option<Box<dyn Mechanism>>,
    /// Decides which path they take.
    pub which: Option<Box<dyn Mechanism>>,
    /// Seed of their random draws.
    pub seed: u64,
}

impl Mechanisms {
    fn all(&self) -> impl Iterator<Item = &dyn Mechanism> {
        Half::BOTH.into_iter().filter_map(|half| self.of(half))
    }

    fn of(&self, half: Half) -> Option<&dyn Mechanism> {
        match half {
            Half::When => self.when.as_deref(),
            Half::Which => self.which.as_deref(),
        }
    }
}

/// Whether a run has mechanisms.
pub(crate) trait Control: Send {
    /// Whether it has.
    const ON: bool;
    /// What they know, if there are any.
    fn get(&self) -> Option<&Controlled>;
    /// Likewise.
    fn get_mut(&mut self) -> Option<&mut Controlled>;
    /// What they did.
    fn finish(&mut self) -> ControlRecord;
}

/// No mechanism.
pub(crate) struct NoControl;

impl Control for NoControl {
    const ON: bool = false;

    #[inline(always)]
    fn get(&self) -> Option<&Controlled> {
        None
    }

    #[inline(always)]
    fn get_mut(&mut self) -> Option<&mut Controlled> {
        None
    }

    fn finish(&mut self) -> ControlRecord {
        ControlRecord::default()
    }
}

/// Mechanisms and all they know.
pub(crate) struct Controlled {
    pub(crate) gates: Gates,
    pub(crate) flows: Flows,
    pub(crate) order: Order,
}

impl Controlled {
    /// Mechanisms that know of nothing yet.
    pub(crate) fn new<B: PortSet, const V: usize>(
        mechanisms: Mechanisms,
        network: &Network<B, V>,
        parameters: &Parameters,
        hosts: &Hosts,
        paths: u8,
        record: Record,
    ) -> Self {
        let header = [Transport::Rc, Transport::Ud].map(|t| parameters.header_bytes(t));
        let packet_max = parameters.mtu + header[0].max(header[1]);
        let gates = Gates::new(&mechanisms, network, parameters, packet_max);
        let link = |rank| hosts.rate(Rank(rank), parameters);
        let source = |rank| Source { link: link(rank), packet_max, paths };
        let sources = (0..hosts.count() as u32).map(source).collect();
        let flows = Flows::new(mechanisms, sources, record);
        Controlled { gates, flows, order: Order::default() }
    }
}

impl Control for Controlled {
    const ON: bool = true;

    #[inline(always)]
    fn get(&self) -> Option<&Controlled> {
        Some(self)
    }

    #[inline(always)]
    fn get_mut(&mut self) -> Option<&mut Controlled> {
        Some(self)
    }

    fn finish(&mut self) -> ControlRecord {
        self.flows.finish()
    }
}

impl<F: Forwarder, O: Observer, C: Control, B: PortSet, const V: usize> Engine<F, O, C, B, V> {
    /// The stripes of a message, if a mechanism chooses paths.
    pub(crate) fn stripes(&mut self, message: &Message) -> Option<Vec<Message>> {
        let now = self.now;
        let control = self.control.get_mut()?;
        let ends = (message.source, message.destination, message.group);
        let parts = control.flows.plan(now, ends, message.bytes)?.parts();
        let whole = control.order.post(ends, parts.len() as u32, message.handle);
        let by_hand = self.groups[usize::from(message.group)].sl.is_some();
        let stripe = |part: &Stripe| {
            let path = part.path.0;
            let sl = self.addressing.sl(message.source, message.destination, path);
            Message {
                bytes: part.bytes.0,
                dlid: message.dlid + u32::from(path),
                sl: if by_hand { message.sl } else { sl },
                path,
                whole,
                ..*message
            }
        };
        Some(parts.iter().map(stripe).collect())
    }

    /// Whether messages are handed on in the order they were posted in, whatever their paths.
    pub(crate) fn has_order(&self) -> bool {
        self.control.get().is_some_and(|control| control.flows.chooses_paths())
    }

    /// A stripe has left for good. Returns the handle of its message if it was the last one.
    pub(crate) fn stripe_sent(&mut self, what: &Unacknowledged) -> Option<Handle> {
        self.control.get_mut().and_then(|control| control.order.sent(what.whole))
    }

    /// A stripe has been acknowledged whole.
    pub(crate) fn note_completed(&mut self, flow: u32, what: &Unacknowledged) {
        let now = self.now;
        if let Some(control) = self.control.get_mut() {
            control.flows.completed(now, flow, what.bytes, what.born);
        }
    }

    /// The last packet of a stripe has arrived: its message is handed on in its turn.
    pub(crate) fn arrive_in_turn(&mut self, rank: u32, id: u32) {
        let (now, message) = (self.now, self.packets[id].message);
        let whole = self.messages[message].whole;
        let Some(control) = self.control.get_mut() else { return };
        match control.order.arrived(whole, id) {
            Arrival::Early => {}
            Arrival::Part => {
                // The stripe that comes last ends the message.
                self.packets[id].flags &= !LAST;
                self.free_messages.push(message);
                self.complete(rank, id, now);
            }
            Arrival::InTurn(sequence) => {
                let mut next = Some(id);
                while let Some(id) = next {
                    let packet = &self.packets[id];
                    let (told, message) = (packet.flags & TOLD != 0, packet.message);
                    self.hand_on(rank, id);
                    if !told {
                        self.free_messages.push(message);
                    }
                    next = self.control.get_mut().and_then(|c| c.order.next(sequence));
                }
            }
        }
    }

    /// The number of a flow; `NIL` without mechanisms.
    #[inline(always)]
    pub(crate) fn flow(&mut self, key: FlowKey) -> u32 {
        let now = self.now;
        self.control.get_mut().map_or(NIL, |control| control.flows.flow(now, key))
    }

    /// A packet waits for (port, lane) from now on.
    #[inline(always)]
    pub(crate) fn note_queued(&mut self, port: u32, lane: u8, id: u32) {
        let now = self.now;
        if let Some(control) = self.control.get_mut() {
            control.gates.queued(now, port * V as u32 + u32::from(lane), self.packets[id].bytes);
        }
    }

    /// A packet that waited for one (port, lane) waits for another.
    #[inline(always)]
    pub(crate) fn note_moved(&mut self, from: (u32, u8), to: (u32, u8), id: u32) {
        let now = self.now;
        let gate = |(port, lane): (u32, u8)| port * V as u32 + u32::from(lane);
        if let Some(control) = self.control.get_mut().filter(|_| from != to) {
            let bytes = self.packets[id].bytes;
            control.gates.left(now, gate(from), bytes);
            control.gates.queued(now, gate(to), bytes);
        }
    }

    /// The lane of an output has a packet and no credits for it.
    #[inline(always)]
    pub(crate) fn note_starved(&mut self, port: u32, lane: u8) {
        if let Some(control) = self.control.get_mut() {
            control.gates.starved(port * V as u32 + u32::from(lane));
        }
    }

    /// A packet departs from (port, lane), marked if the mechanisms say so.
    #[inline(always)]
    pub(crate) fn note_departed(&mut self, port: u32, lane: u8, id: u32) {
        let now = self.now;
        if let Some(control) = self.control.get_mut() {
            let packet = &mut self.packets[id];
            let gate = port * V as u32 + u32::from(lane);
            let may = packet.flags & (ACK | CNP) == 0;
            if control.gates.departed(now, gate, packet.bytes, may) {
                packet.flags |= FECN;
                self.totals.packets_marked += 1;
            }
        }
    }

    /// A data packet begins to leave its adapter.
    #[inline(always)]
    pub(crate) fn note_injected(&mut self, rank: u32, flow: u32, packet: &Packet) {
        let now = self.now;
        if let Some(control) = self.control.get_mut() {
            let class = u32::from(self.ports[self.hosts_at + rank].class);
            let busy = self.classes[class].rate.serialisation(u64::from(packet.bytes));
            let reliable = packet.flags & RELIABLE != 0;
            control.flows.injected(now, flow, packet.bytes, busy, reliable);
        }
    }

    /// The beginning of an adapter's turn: timers that are due, queues whose time has come.
    #[inline(always)]
    pub(crate) fn before_turn(&mut self, port: u32, rank: u32) {
        let now = self.now;
        let Some(control) = self.control.get_mut() else { return };
        control.flows.run_timers(now, rank);
        while let Some(queue) = self.control.get_mut().and_then(|c| c.flows.released(now, rank)) {
            self.queues[queue].active = false;
            self.activate(rank, queue);
        }
        if let Some(time) = self.control.get().and_then(|control| control.flows.next_due(rank)) {
            self.wake(port, time);
        }
    }

    /// Whether the next packet of a flow may not leave yet; then its queue waits for that time.
    #[inline(always)]
    pub(crate) fn pauses(&mut self, rank: u32, queue: u32, flow: u32) -> bool {
        let now = self.now;
        let Some(control) = self.control.get_mut() else { return false };
        let time = control.flows.next_injection(flow);
        if time <= now {
            return false;
        }
        control.flows.pause(rank, queue, flow, time);
        self.queues[queue].active = true;
        self.wake(self.hosts_at + rank, time);
        true
    }

    /// Whether the next packet of a flow may leave now.
    #[inline(always)]
    pub(crate) fn may_leave(&self, flow: u32) -> bool {
        self.control.get().is_none_or(|control| control.flows.next_injection(flow) <= self.now)
    }

    /// The flow a packet, its ACK or its CNP belongs to.
    fn flow_of(&self, packet: &Packet) -> u32 {
        match packet.flags & (RELIABLE | ACK) {
            0 => packet.queue_pair,
            _ => self.pairs[packet.queue_pair].flow,
        }
    }

    /// A data packet has arrived whole: its source may be notified.
    #[inline(always)]
    pub(crate) fn notify(&mut self, port: u32, packet: &Packet) {
        if !C::ON {
            return;
        }
        let (now, flow) = (self.now, self.flow_of(packet));
        let Some(control) = self.control.get_mut() else { return };
        let reliable = packet.flags & RELIABLE != 0;
        let arrived = Arrived { fecn: packet.flags & FECN != 0, reliable };
        let mut in_cnp = 0;
        for (becn, answer) in control.flows.arrived(now, flow, &arrived) {
            match answer {
                Notification::None => {}
                Notification::BecnOnAck if reliable => {
                    self.pairs[packet.queue_pair].becn |= becn;
                }
                Notification::BecnOnAck | Notification::Cnp => in_cnp |= becn,
            }
        }
        if in_cnp != 0 {
            self.send_cnp(port, packet, in_cnp);
        }
    }

    /// A congestion notification packet for the source of `packet` (IBA vol. 1, A10.3.2).
    fn send_cnp(&mut self, port: u32, packet: &Packet, becn: u8) {
        let bytes = wire::CNP;
        let rank = self.ports[port].node;
        let cnp = Packet {
            next: NIL,
            // The LIDs of the marked packet, exchanged: the source learns which path it took.
            dlid: packet.slid,
            slid: packet.dlid,
            source: rank,
            psn: 0,
            bytes: bytes as u16,
            payload: 0,
            credits: wire::credits(bytes) as u16,
            flags: CNP | becn | packet.flags & RELIABLE,
            born: self.now,
            route: UNROUTED,
            hint: self.forwarder.hint(packet.slid),
            tail: 0,
            ..*packet
        };
        self.answer(port, rank, cnp);
    }

    /// A CNP has arrived at the source of the marked packet.
    pub(crate) fn on_cnp(&mut self, port: u32, packet: &Packet) {
        let flow = self.flow_of(packet);
        self.on_becn(port, flow, packet.flags);
    }

    /// BECN has arrived for a flow, in a packet with these flags.
    pub(crate) fn on_becn(&mut self, port: u32, flow: u32, flags: u8) {
        let now = self.now;
        let Some(control) = self.control.get_mut() else { return };
        self.totals.becns += 1;
        control.flows.becn(now, flow, flags);
        self.dirty.push(port);
    }

    /// `packets` more of a flow have been acknowledged.
    #[inline(always)]
    pub(crate) fn on_acknowledged(&mut self, flow: u32, packets: u32) {
        let now = self.now;
        if let Some(control) = self.control.get_mut() {
            control.flows.acknowledged(now, flow, packets);
        }
    }
}
