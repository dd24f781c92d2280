//! The receiving side: what arrives is acknowledged, put in order and handed on.

use super::message::{MessageIndex, Post};
use super::{Adapters, SlotIndex, Told, credits, new_receiver};
use crate::model::{Adaptive, Arrival, Forwarder, Model, Reactors};
use crate::network::NetworkOf;
use crate::packet::{
    ACK, BECN, CNP, CONTROL, Carried, EnvelopeIndex, FECN, Flags, HELD, LAST, Packet, PacketIndex,
    QueuePairIndex, READ, RELIABLE, RESPONSE, Reader, ReceiverIndex, Request, TOLD, UNROUTED,
};
use crate::port::PortIndex;
use crate::queue::Kind;
use crate::switch::Exit;
use clearlane_ib::wire;
use clearlane_workload::Rank;

impl<M: Model, const V: usize> Adapters<M, V> {
    /// The last link: a packet will be in the buffer of the host at `host` when its tail is there,
    /// and in its memory when drained.
    #[inline(always)]
    pub(crate) fn receive(
        &mut self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        host: PortIndex,
        exit: &Exit,
    ) {
        let packet = &net.packets[exit.packet];
        let (bytes, credits, flags) = (packet.bytes, packet.credits, packet.flags);
        let tail = exit.sent + net.links.cable_delay;
        let done = match self.settings.drain {
            None => tail,
            Some(rate) => {
                let adapter = &mut self.adapters[SlotIndex(slot)];
                let done = tail.max(adapter.drained_at) + rate.serialisation(bytes.into());
                adapter.drained_at = done;
                done
            }
        };
        net.received(net.now + net.links.cable_delay, host, exit.lane, exit.packet);
        let switch_port = net.ports[host].peer;
        net.return_credits(done + net.links.credit_delay, switch_port, exit.lane, credits);
        if M::Reactors::ON || flags & (ACK | RELIABLE | TOLD) != 0 {
            net.schedule(done, host, Kind::Deliver, exit.lane, exit.packet.0);
        } else {
            let to = Rank(self.rank(slot));
            net.complete(to, exit.packet, done, flags & LAST != 0);
        }
    }

    /// A packet is complete at a host: data is acknowledged and handed on, an ACK opens the window.
    pub(crate) fn deliver(
        &mut self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        id: PacketIndex,
    ) {
        net.last_effect = net.now.max(net.last_effect);
        let packet = net.packets[id];
        if packet.flags & HELD != 0 {
            return self.store(net, slot, port, id);
        }
        if M::Reactors::ON && packet.flags & CNP != 0 {
            net.totals.cnps_delivered += 1;
            net.packets.remove(id);
            return self.on_becn(net, slot, port, &packet);
        }
        if packet.flags & ACK != 0 {
            net.totals.acks_delivered += 1;
            net.packets.remove(id);
            return self.acknowledged(net, slot, port, &packet);
        }
        if packet.flags & RELIABLE == 0 {
            return self.accept(net, slot, port, id, ReceiverIndex::NIL);
        }
        let receiver = self.receiver(&packet);
        if M::Forwarder::ADAPTIVE != Adaptive::Never && self.forwarder.chooses() {
            self.resequence(net, slot, port, id, receiver);
        } else {
            self.accept(net, slot, port, id, receiver);
        }
    }

    /// Has the processor fetch the half of a connection that a packet is for.
    #[inline(always)]
    pub(crate) fn prefetch_halves(&self, packet: &Packet) {
        if packet.flags & (ACK | CNP) != 0 {
            self.queue_pairs.prefetch(QueuePairIndex(packet.queue_pair));
        } else if packet.receiver != ReceiverIndex::NIL {
            self.receivers.prefetch::<1>(packet.receiver);
        }
    }

    /// The receiver's half of the connection of a packet.
    #[inline(always)]
    fn receiver(&mut self, packet: &Packet) -> ReceiverIndex {
        if packet.receiver != ReceiverIndex::NIL {
            return packet.receiver;
        }
        let receivers = &mut self.receivers;
        let key = (packet.source, packet.queue_pair);
        *self.by_sender.entry(key).or_insert_with(|| new_receiver(receivers))
    }

    /// A packet that overtook others on an adaptive path waits for them, as adapters that allow it
    /// do: programs and acknowledgements see the order of the queue pair.
    fn resequence(
        &mut self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        id: PacketIndex,
        receiver: ReceiverIndex,
    ) {
        if net.packets[id].psn != self.receivers[receiver].expected_psn {
            return self.receivers[receiver].early.push_back(net.packets.all_mut(), id);
        }
        self.accept(net, slot, port, id, receiver);
        while let Some(id) = self.take_expected(net, receiver) {
            self.accept(net, slot, port, id, receiver);
        }
    }

    /// Takes the packet expected next out of those that came early.
    fn take_expected(
        &mut self,
        net: &mut NetworkOf<M, V>,
        receiver: ReceiverIndex,
    ) -> Option<PacketIndex> {
        let of = &mut self.receivers[receiver];
        let expected = of.expected_psn;
        let mut early = std::mem::replace(&mut of.early, crate::list::List::empty());
        let mut found = None;
        while let Some(id) = early.pop_front(net.packets.all_mut()) {
            if net.packets[id].psn == expected {
                found = Some(id);
            } else {
                self.receivers[receiver].early.push_back(net.packets.all_mut(), id);
            }
        }
        found
    }

    /// Data in the order of its queue pair: acknowledged and handed on.
    fn accept(
        &mut self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        id: PacketIndex,
        receiver: ReceiverIndex,
    ) {
        let packet = net.packets[id];
        if M::Reactors::ON && packet.flags & FECN != 0 {
            self.notify(net, slot, port, &packet, receiver);
        }
        if packet.flags & RELIABLE != 0 {
            self.acknowledge(net, slot, port, &packet, receiver);
        }
        if M::Reactors::ON && packet.flags & LAST != 0 && self.reactors.has_order() {
            return self.arrive_in_turn(net, slot, port, id);
        }
        self.hand_on(net, slot, port, id, packet.flags & LAST != 0);
    }

    /// The last packet of a stripe has arrived: its message is handed on in its turn.
    fn arrive_in_turn(
        &mut self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        id: PacketIndex,
    ) {
        let packet = net.packets[id];
        let is_numbered =
            packet.envelope != EnvelopeIndex::NIL && net.envelopes[packet.envelope].stripes > 0;
        if !is_numbered {
            return self.hand_on(net, slot, port, id, true);
        }
        let envelope = net.envelopes[packet.envelope];
        match self.reactors.on_arrived(slot, id, &packet, &envelope) {
            Arrival::Early => {}
            // The stripe that comes last ends the message.
            Arrival::Part => {
                net.envelopes.remove(packet.envelope);
                net.packets[id].envelope = EnvelopeIndex::NIL;
                self.hand_on(net, slot, port, id, false);
            }
            Arrival::InTurn => {
                let mut next = Some(id);
                while let Some(id) = next {
                    self.hand_on(net, slot, port, id, true);
                    next = self.reactors.next_in_turn(slot, &packet);
                }
            }
        }
    }

    /// Data whose turn has come; `last` if it ends its message.
    fn hand_on(
        &mut self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        id: PacketIndex,
        last: bool,
    ) {
        let packet = net.packets[id];
        if packet.envelope != EnvelopeIndex::NIL {
            let what = net.envelopes[packet.envelope].what;
            net.envelopes.remove(packet.envelope);
            match what {
                Carried::Data => {}
                Carried::Message(envelope) if last => {
                    self.told.push((slot, Told::Arrived(envelope)))
                }
                Carried::Message(envelope) => self.told.push((slot, Told::Head(envelope))),
                Carried::ReadResponse { reader, request } => {
                    self.told.push((slot, Told::Read(reader)));
                    self.has_read(net, slot, port, request);
                }
                Carried::ReadRequest { reader, bytes, gap } => {
                    self.respond(net, slot, port, &packet, (reader, bytes, gap));
                }
            }
        }
        let (to, now) = (Rank(self.rank(slot)), net.now);
        net.complete(to, id, now, last && packet.flags & CONTROL == 0);
    }

    /// An RDMA READ has come: the adapter sends what it asks for, by the way it came; no CPU has a
    /// part in it.
    fn respond(
        &mut self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        packet: &Packet,
        (reader, bytes, gap): (Reader, u64, u32),
    ) {
        let request = Request { queue_pair: packet.queue_pair, psn: packet.psn };
        let path = packet.dlid - self.addressing.lid(self.here(slot));
        let post = Post {
            born: packet.born,
            ready: net.now,
            stripe_overhead: 0,
            destination: packet.source,
            bytes,
            group: packet.group,
            waiter: None,
            what: Carried::ReadResponse { reader, request },
            sl: Some(packet.sl),
            path: Some(path as u8),
            gap,
        };
        self.post(net, slot, port, &post);
    }

    /// The response to an RDMA READ has come whole: it acknowledges the request, and another may
    /// leave.
    fn has_read(&mut self, net: &mut NetworkOf<M, V>, slot: u32, port: PortIndex, of: Request) {
        let queue = QueuePairIndex(of.queue_pair);
        if let Some(reads) = self.reads.get_mut(&queue) {
            *reads -= 1;
            if *reads == 0 {
                self.reads.remove(&queue);
            }
        }
        self.acknowledged_up_to(net, slot, port, (queue, of.psn), false);
        self.go_on(net, slot, port, queue);
    }

    /// The receiver's half of a reliable connection.
    fn acknowledge(
        &mut self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        packet: &Packet,
        receiver: ReceiverIndex,
    ) {
        let of = &mut self.receivers[receiver];
        // IBA vol. 1, 9.7.5.1: a reliable connection delivers in order.
        assert_eq!(packet.psn, of.expected_psn, "queue pair {} reordered", packet.queue_pair);
        of.expected_psn = of.expected_psn.wrapping_add(1);
        if packet.flags & (RESPONSE | READ) != 0 {
            return;
        }
        of.unacknowledged += 1;
        let due = of.unacknowledged >= self.settings.ack_coalescing;
        if !due && packet.flags & LAST == 0 {
            return;
        }
        of.unacknowledged = 0;
        let becn = std::mem::take(&mut of.becn);
        let ack = self.reply(net.now, slot, packet, ACK | becn, wire::RC_ACK);
        self.answer(net, slot, port, Packet { receiver, ..ack });
    }

    /// A marked packet has arrived whole: its source may be notified.
    fn notify(
        &mut self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        packet: &Packet,
        receiver: ReceiverIndex,
    ) {
        let (on_ack, in_cnp) = self.reactors.on_marked(net.now, slot, packet);
        if on_ack != 0 {
            self.receivers[receiver].becn |= on_ack;
        }
        if in_cnp != 0 {
            // A congestion notification packet (IBA vol. 1, A10.3.2).
            let flags = CNP | in_cnp | packet.flags & RELIABLE;
            let cnp = self.reply(net.now, slot, packet, flags, wire::CNP);
            self.answer(net, slot, port, Packet { psn: 0, ..cnp });
        }
    }

    /// A packet back to the source of `packet`. The LIDs are exchanged: the source learns which
    /// path it took.
    fn reply(&self, now: u64, slot: u32, packet: &Packet, flags: Flags, bytes: u32) -> Packet {
        Packet {
            next: PacketIndex::NIL,
            dlid: packet.slid,
            slid: packet.dlid,
            source: self.rank(slot),
            envelope: EnvelopeIndex::NIL,
            bytes: bytes as u16,
            payload: 0,
            credits: credits(bytes),
            flags,
            born: now,
            route: UNROUTED,
            hint: self.forwarder.hint(packet.slid),
            ..*packet
        }
    }

    /// An ACK or a CNP goes ahead of data. The request's SL carries it (IBA vol. 1, 9.4).
    fn answer(&mut self, net: &mut NetworkOf<M, V>, slot: u32, port: PortIndex, packet: Packet) {
        let lane = self.lane_of(packet.sl);
        let id = net.admit(packet);
        let adapter = &mut self.adapters[SlotIndex(slot)];
        adapter.acks[usize::from(lane) % V].push_back(net.packets.all_mut(), id);
        adapter.busy_lanes |= 1 << lane;
        self.look(net, slot, port);
    }

    /// A packet with BECN has arrived: it tells of the flow of its queue pair.
    fn on_becn(&mut self, net: &mut NetworkOf<M, V>, slot: u32, port: PortIndex, packet: &Packet) {
        net.totals.becns += 1;
        let queue = QueuePairIndex(packet.queue_pair);
        self.reactors.on_becn(net.now, self.queue_pairs[queue].governed, packet.flags);
        self.heard(net.now, queue);
        self.look(net, slot, port);
    }

    /// The sender's half: the window opens, messages complete.
    fn acknowledged(
        &mut self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        packet: &Packet,
    ) {
        let index = QueuePairIndex(packet.queue_pair);
        let pair = &mut self.queue_pairs[index];
        pair.receiver = packet.receiver;
        if M::Reactors::ON && packet.flags & BECN != 0 {
            self.on_becn(net, slot, port, packet);
        }
        self.acknowledged_up_to(net, slot, port, (index, packet.psn), true);
    }

    /// A connection's packets are acknowledged up to a PSN, that one included: by an ACK, or by
    /// what a READ has read.
    #[inline(always)]
    fn acknowledged_up_to(
        &mut self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        (index, psn): (QueuePairIndex, u32),
        by_ack: bool,
    ) {
        let pair = &mut self.queue_pairs[index];
        let governed = pair.governed;
        let acknowledged = psn.wrapping_add(1);
        let packets = acknowledged.wrapping_sub(pair.acknowledged);
        // An ACK that another has overtaken says nothing new.
        if packets > u32::MAX / 2 {
            return;
        }
        pair.acknowledged = acknowledged;
        if M::Reactors::ON && self.reactors.on_acknowledged(net.now, governed, packets, by_ack) {
            self.heard(net.now, index);
        }
        self.complete_up_to(net, slot, index, acknowledged);
        self.go_on(net, slot, port, index);
    }

    /// A connection may send again what its window held back.
    #[inline(always)]
    fn go_on(
        &mut self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        index: QueuePairIndex,
    ) {
        let fifo = self.settings.queueing == crate::AdapterQueueing::SingleFifo;
        let queue = if fifo { self.fifos[SlotIndex(slot)] } else { index };
        let head = self.queue_pairs[queue].messages.head;
        if head != MessageIndex::NIL && self.messages[head].queue_pair == index {
            self.activate(net.now, slot, queue);
        }
        self.look(net, slot, port);
    }

    /// Messages whose packets are acknowledged up to a PSN are complete.
    fn complete_up_to(
        &mut self,
        net: &NetworkOf<M, V>,
        slot: u32,
        pair: QueuePairIndex,
        acknowledged: u32,
    ) {
        loop {
            let id = self.queue_pairs[pair].waiting.head;
            if id == MessageIndex::NIL {
                return;
            }
            let message = &self.messages[id];
            if acknowledged.wrapping_sub(message.end_psn) > u32::MAX / 2 {
                return;
            }
            if M::Reactors::ON {
                let (bytes, born) = (message.bytes, message.born);
                let governed = self.queue_pairs[pair].governed;
                self.reactors.on_completed(net.now, governed, bytes, born);
                self.heard(net.now, pair);
            }
            self.queue_pairs[pair].waiting.pop_front(self.messages.all_mut());
            self.message_sent(slot, id);
            self.messages.remove(id);
        }
    }
}
