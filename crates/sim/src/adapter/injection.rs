//! The sending side's turn: which packet leaves next.

use super::message::{DIVIDED, Message, MessageIndex, TRACKED};
use super::{Adapters, PacketSize, SlotIndex, Told, credits};
use crate::AdapterQueueing;
use crate::arbiter::{Arbiter, Table};
use crate::model::{Forwarder, Leaving, Model, Reactors};
use crate::network::NetworkOf;
use crate::outcome::Aside;
use crate::packet::{
    CNP, CONTROL, Carried, EnvelopeIndex, LAST, Packet, PacketIndex, QueuePairIndex, READ,
    RELIABLE, RESPONSE, ReceiverIndex, TOLD, UNROUTED,
};
use crate::port::{NEVER, PortIndex};

/// The lane that sends, if it has the bus.
struct Chosen {
    lane: u8,
    table: Table,
    /// Turns of the lanes before the choice. `None` if they cannot have moved, or if no bus may
    /// refuse.
    turns: Option<Arbiter>,
    /// When another lane may send. The port is looked at then if the bus refuses.
    sooner: u64,
}

impl<M: Model, const V: usize> Adapters<M, V> {
    /// Phase 2 of an adapter: at most one packet leaves.
    pub(crate) fn inject(&mut self, net: &mut NetworkOf<M, V>, slot: u32, port: PortIndex) {
        if M::Reactors::ON && self.reactors.is_due(net.now, slot) {
            self.before_turn(net, slot);
        }
        self.take_ready(net, slot, port);
        if !self.paced.is_empty() {
            self.go_on_after_gaps(net, slot, port);
        }
        if self.has_memory_bus() {
            self.look_at_bus(slot);
        }
        let free_at = net.ports[port].free_at;
        if self.adapters[SlotIndex(slot)].busy_lanes == 0 {
            return;
        }
        if free_at > net.now {
            return net.wake(port, free_at);
        }
        if M::Reactors::ON {
            self.make_way(net.now, slot);
        }
        let Some(Chosen { lane, table, turns, sooner }) = self.choose_lane(net, slot, port) else {
            return;
        };
        if self.has_memory_bus() && !self.has_bus(slot, lane) {
            if let Some(turns) = turns {
                net.arbitration.set_turns(port, turns);
            }
            return net.hold(port, false, sooner);
        }
        let id = self.next_packet(net, slot, port, lane);
        self.adapters[SlotIndex(slot)].settle_lane(lane);
        self.fetch_next(slot, lane);
        self.transmit(net, port, lane, id);
        if V > 1 {
            let bytes = net.packets[id].bytes;
            net.arbitration.charge(port, table, bytes);
        }
        if self.adapters[SlotIndex(slot)].busy_lanes != 0 {
            let free_at = net.ports[port].free_at;
            net.wake(port, free_at);
        }
    }

    /// Has the processor fetch the message whose turn comes next in a lane, and the queue after its
    /// own: backlogs are longer than what caches hold, and turns a packet apart.
    #[inline(always)]
    fn fetch_next(&self, slot: u32, lane: u8) {
        let head = self.adapters[SlotIndex(slot)].rings[usize::from(lane) % V].head;
        if head != QueuePairIndex::NIL {
            let queue = &self.queue_pairs[head];
            self.messages.all().prefetch::<1>(queue.messages.head);
            if queue.next != QueuePairIndex::NIL {
                self.queue_pairs.prefetch(queue.next);
            }
        }
    }

    /// The lane that sends; nothing if none may, and then when to look again is known.
    #[inline(always)]
    fn choose_lane(
        &mut self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
    ) -> Option<Chosen> {
        let (mut eligible, mut earliest, mut stalled) = (0u16, NEVER, false);
        let mut lanes = self.adapters[SlotIndex(slot)].busy_lanes;
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as u8;
            lanes &= lanes - 1;
            let (need, from) = self.next_need(net, slot, lane);
            let blocked = from <= net.now && !net.has_credits(port, lane, need);
            let bit = 1 << lane;
            let waiting = &mut net.ports[port].waiting;
            *waiting = if blocked { *waiting | bit } else { *waiting & !bit };
            if blocked {
                stalled = true;
                earliest = earliest.min(net.credits_at(port, lane, need));
            } else if from <= net.now {
                eligible |= bit;
            } else {
                earliest = earliest.min(from);
            }
        }
        if eligible == 0 {
            net.hold(port, stalled, earliest);
            return None;
        }
        if V == 1 {
            let lane = eligible.trailing_zeros() as u8;
            return Some(Chosen { lane, table: Table::Neither, turns: None, sooner: NEVER });
        }
        let may_move = self.has_memory_bus() && !eligible.is_power_of_two();
        let turns = may_move.then(|| net.arbitration.turns(port));
        let (lane, table) = net.arbitration.choose(port, eligible);
        Some(Chosen { lane, table, turns, sooner: earliest })
    }

    /// The packet whose turn it is in a lane: answers before data.
    #[inline(always)]
    fn next_packet(
        &mut self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        lane: u8,
    ) -> PacketIndex {
        let acks = &mut self.adapters[SlotIndex(slot)].acks[usize::from(lane) % V];
        let Some(answer) = acks.pop_front(net.packets.all_mut()) else {
            return self.next_data(net, slot, port, lane);
        };
        let is_cnp = M::Reactors::ON && net.packets[answer].flags & CNP != 0;
        net.totals.acks_injected += u64::from(!is_cnp);
        net.totals.cnps_injected += u64::from(is_cnp);
        answer
    }

    /// The beginning of an adapter's turn: timers that are due, queues whose time has come.
    #[inline(never)]
    fn before_turn(&mut self, net: &mut NetworkOf<M, V>, slot: u32) {
        if self.reactors.run_timers(net.now, slot) {
            net.last_effect = net.now.max(net.last_effect);
        }
        while let Some(queue) = self.reactors.released(net.now, slot) {
            self.queue_pairs[queue].set_active(false);
            self.activate(net.now, slot, queue);
        }
    }

    /// Queues at the front of a ring may have to wait by now, because a packet of another queue
    /// that shares their limit has left: they make way.
    fn make_way(&mut self, now: u64, slot: u32) {
        let mut lanes = self.adapters[SlotIndex(slot)].busy_lanes;
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as u8;
            lanes &= lanes - 1;
            let at = usize::from(lane) % V;
            loop {
                let queue = self.adapters[SlotIndex(slot)].rings[at].head;
                if queue == QueuePairIndex::NIL {
                    break;
                }
                // A queue in a ring has a message.
                let governs = self.messages[self.queue_pairs[queue].messages.head].queue_pair;
                if !self.pauses(now, slot, queue, governs) {
                    break;
                }
                let ring = &mut self.adapters[SlotIndex(slot)].rings[at];
                ring.pop_front(self.queue_pairs.all_mut());
                self.free_engine(now, slot);
            }
            self.adapters[SlotIndex(slot)].settle_lane(lane);
        }
    }

    /// An engine is free: the first queue in the line that may send has it.
    fn free_engine(&mut self, now: u64, slot: u32) {
        let index = SlotIndex(slot);
        self.adapters[index].engines -= 1;
        let engines = self.adapters[index].engines;
        while let Some(next) = self.adapters[index].line.pop_front(self.queue_pairs.all_mut()) {
            self.queue_pairs[next].set_active(false);
            self.activate(now, slot, next);
            // Without mechanisms a queue in the line may always send.
            if !M::Reactors::ON || self.adapters[index].engines > engines {
                return;
            }
        }
    }

    /// Whether a datagram of one packet finds its adapter idle: it needs no queue, nor to be kept.
    #[inline(always)]
    pub(super) fn leaves_at_once(
        &self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        message: &Message,
    ) -> bool {
        let adapter = &self.adapters[SlotIndex(slot)];
        // Nothing is in any ring, so no engine is at work and nothing stands in line for one.
        let idle = adapter.busy_lanes == 0
            && adapter.dma_at <= net.now
            && net.ports[port].free_at <= net.now;
        let PacketSize { payload_max, header } = self.settings.packet(false);
        let fits = message.bytes <= u64::from(payload_max)
            && !self.share()
            && message.gap == 0
            && !message.is_reliable()
            && self.settings.queueing == AdapterQueueing::PerDestination;
        if !idle || !fits {
            return false;
        }
        let bytes = message.bytes as u32 + header;
        net.has_credits(port, message.lane, credits(bytes))
    }

    /// Sends a datagram of one packet.
    #[inline(always)]
    pub(super) fn send_at_once(
        &mut self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        message: &Message,
    ) {
        let adapter = &mut self.adapters[SlotIndex(slot)];
        let psn = adapter.next_psn;
        adapter.next_psn = psn.wrapping_add(1);
        let packet = self.packet(slot, message, message.bytes, psn, true);
        let id = self.read(net, slot, port, packet);
        if message.flags & TRACKED != 0 {
            self.told.push((slot, Told::Sent(message.waiter())));
        }
        self.transmit(net, port, message.lane, id);
    }

    /// Credits the next packet of a lane needs and when it may leave at the earliest.
    fn next_need(&self, net: &NetworkOf<M, V>, slot: u32, lane: u8) -> (u16, u64) {
        let adapter = &self.adapters[SlotIndex(slot)];
        let at = usize::from(lane) % V;
        if !adapter.acks[at].is_empty() {
            return (net.packets[adapter.acks[at].head].credits, 0);
        }
        // A busy lane without ACKs has a queue in its ring, and a queue there has a message.
        let queue = &self.queue_pairs[adapter.rings[at].head];
        let message = &self.messages[queue.messages.head];
        let PacketSize { payload_max, header } = self.settings.packet(message.is_reliable());
        let left = message.bytes - message.sent;
        let payload = left.min(payload_max.into()) as u32;
        let dma_at = self.adapters[SlotIndex(self.first_slot(slot))].dma_at;
        (credits(payload + header), dma_at)
    }

    fn transmit(&mut self, net: &mut NetworkOf<M, V>, port: PortIndex, lane: u8, id: PacketIndex) {
        let packet = &net.packets[id];
        let class = net.class(port);
        let busy = class.rate.serialisation(u64::from(packet.bytes));
        let (credits, flight) = (packet.credits, class.flight);
        let now = net.now;
        let record = &mut net.ports[port];
        record.free_at = now + busy;
        record.lane_mut(lane).credits -= credits;
        let peer = record.peer;
        net.last_effect = now.max(net.last_effect);
        net.recorder.on_granted(now, port, &net.packets[id], busy);
        if net.recorder.is_tapped(port) {
            let state = self.state_of(&net.packets[id]);
            net.tap(now, port, lane, true, id, Aside { queued: None, state });
        }
        net.send(now + flight, peer, lane, id);
    }

    /// What the mechanism that decides when shows of the flow of a packet that leaves: of a
    /// connection's, as queues of datagrams come and go.
    fn state_of(&self, packet: &Packet) -> Option<u64> {
        if !M::Reactors::ON || packet.flags & RELIABLE == 0 || !packet.is_data() {
            return None;
        }
        self.reactors.state(self.queue_pairs[QueuePairIndex(packet.queue_pair)].governed)
    }

    /// The next data packet of a lane: the queue at the front of the ring has its turn, then goes
    /// to the back.
    fn next_data(
        &mut self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        lane: u8,
    ) -> PacketIndex {
        let ring = &mut self.adapters[SlotIndex(slot)].rings[usize::from(lane) % V];
        let queue = ring.pop_front(self.queue_pairs.all_mut());
        let queue = queue.expect("a lane that was eligible without an ACK has a queue in its ring");
        let id = self.queue_pairs[queue].messages.head;
        let is_first = self.messages[id].sent == 0;
        let mut packet = self.packetize(slot, id);
        if packet.flags & (READ | TOLD) != 0 {
            self.for_ranks(net, id, is_first, &mut packet);
        }
        let done = packet.flags & LAST != 0;
        if M::Reactors::ON {
            let rate = net.class(port).rate;
            let busy = rate.serialisation(u64::from(packet.bytes));
            // A response to a READ is acknowledged by nobody.
            let reliable = packet.flags & (RELIABLE | RESPONSE) == RELIABLE;
            let of = &mut self.queue_pairs[self.messages[id].queue_pair];
            of.injected_at = net.now;
            let leaving = Leaving { bytes: packet.bytes, busy, reliable };
            let before = of.is_unlimited();
            of.set_unlimited(self.reactors.on_sent(net.now, of.governed, before, leaving));
        }
        let gap = self.messages[id].gap;
        let packet = self.read(net, slot, port, packet);
        if done {
            self.queue_pairs[queue].messages.pop_front(self.messages.all_mut());
            self.message_left(slot, id);
        }
        if gap > 0 {
            self.keep_gap(net, slot, port, queue, packet, gap);
        } else {
            self.rotate(net.now, slot, queue, done);
        }
        packet
    }

    /// A packet of a message that ranks will be told of, the first or a later one. The head of a
    /// two-sided message is matched before its tail is there: the first packet of several carries
    /// its envelope too.
    #[inline(never)]
    fn for_ranks(
        &mut self,
        net: &mut NetworkOf<M, V>,
        id: MessageIndex,
        is_first: bool,
        packet: &mut Packet,
    ) {
        if is_first && packet.flags & READ != 0 {
            *self.reads.entry(self.messages[id].queue_pair).or_default() += 1;
        }
        if is_first && packet.flags & (TOLD | LAST) == TOLD {
            packet.envelope = self.head_of(net, id);
        }
    }

    /// What the first packet of a message of several carries: of one that is divided only the end
    /// counts.
    fn head_of(&self, net: &mut NetworkOf<M, V>, id: MessageIndex) -> EnvelopeIndex {
        let letter = net.envelopes[self.messages[id].envelope];
        match letter.what {
            Carried::Message(_) if letter.stripes < 2 => net.envelopes.insert(letter),
            _ => EnvelopeIndex::NIL,
        }
    }

    /// A packet is read from host memory.
    #[inline(always)]
    fn read(
        &mut self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        packet: Packet,
    ) -> PacketIndex {
        let bytes = u64::from(packet.bytes);
        if let Some(rate) = self.settings.dma {
            let first = SlotIndex(self.first_slot(slot));
            self.adapters[first].dma_at = net.now + rate.serialisation(bytes);
            self.touch_siblings(net, slot, port);
        }
        if self.share() {
            self.has_read_memory(net.now, slot, bytes);
        }
        net.totals.packets_injected += 1;
        net.admit(packet)
    }

    /// After a packet that a gap follows: its queue, and the engine that serves it, are idle for so
    /// many thousandths of what the packet takes on the link.
    #[inline(never)]
    fn keep_gap(
        &mut self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        queue: QueuePairIndex,
        packet: PacketIndex,
        gap: u32,
    ) {
        let bytes = u64::from(net.packets[packet].bytes);
        let busy = net.class(port).rate.serialisation(bytes);
        let idle = (u128::from(busy) * u128::from(gap) / 1000) as u64;
        let until = net.now.saturating_add(busy).saturating_add(idle);
        self.paced.insert((slot, until, self.queue_pairs[queue].rank()), queue);
        net.wake(port, until);
    }

    /// Queues whose gap is over go on.
    #[inline(never)]
    fn go_on_after_gaps(&mut self, net: &mut NetworkOf<M, V>, slot: u32, port: PortIndex) {
        let of_slot = (slot, 0, (0, 0, 0))..(slot + 1, 0, (0, 0, 0));
        while let Some((key, queue)) = self.paced.range(of_slot.clone()).next() {
            let (key, queue) = (*key, *queue);
            if key.1 > net.now {
                return net.wake(port, key.1);
            }
            self.paced.remove(&key);
            let head = self.queue_pairs[queue].messages.head;
            let done = head == MessageIndex::NIL || self.messages[head].sent == 0;
            self.rotate(net.now, slot, queue, done);
        }
    }

    /// After a packet: the queue goes to the back of its ring, out of it, or to the line.
    #[inline(always)]
    fn rotate(&mut self, now: u64, slot: u32, queue: QueuePairIndex, message_done: bool) {
        let head = self.queue_pairs[queue].messages.head;
        let open = head != MessageIndex::NIL && {
            let message = &self.messages[head];
            self.window_open(message) && self.may_leave(now, message)
        };
        let adapter = &mut self.adapters[SlotIndex(slot)];
        if open && (!message_done || adapter.line.is_empty()) {
            let lane = self.messages[head].lane;
            let ring = &mut adapter.rings[usize::from(lane) % V];
            let queues = self.queue_pairs.all_mut();
            match self.settings.queueing {
                AdapterQueueing::PerDestination => ring.push_back(queues, queue),
                AdapterQueueing::SingleFifo => ring.push_front(queues, queue),
            }
            adapter.busy_lanes |= 1 << lane;
            return;
        }
        self.queue_pairs[queue].set_active(false);
        self.free_engine(now, slot);
        if head != MessageIndex::NIL {
            self.activate(now, slot, queue);
        } else {
            self.let_go(queue);
        }
    }

    /// Whether what governs the flow of a message lets its next packet go.
    #[inline(always)]
    fn may_leave(&self, now: u64, message: &Message) -> bool {
        !M::Reactors::ON || {
            let of = &self.queue_pairs[message.queue_pair];
            of.is_unlimited() || self.reactors.next_injection(of.governed) <= now
        }
    }

    /// An empty queue of datagrams is no longer needed; a connection is, and so are the one queue
    /// of an adapter and one that mechanisms know.
    #[inline(always)]
    fn let_go(&mut self, queue: QueuePairIndex) {
        let datagrams = self.settings.queueing == AdapterQueueing::PerDestination
            && !self.is_reliable(self.queue_pairs[queue].group);
        if datagrams && !M::Reactors::ON {
            self.queue_pairs.remove(queue);
        }
    }

    /// The next packet of a message.
    fn packetize(&mut self, slot: u32, id: MessageIndex) -> Packet {
        let message = &mut self.messages[id];
        let left = message.bytes - message.sent;
        let size = self.settings.packet(message.is_reliable());
        let payload = left.min(size.payload_max.into());
        message.sent += payload;
        let psn = match message.is_reliable() {
            false => &mut self.adapters[SlotIndex(slot)].next_psn,
            true => &mut self.queue_pairs[message.queue_pair].next_psn,
        };
        let number = *psn;
        *psn = psn.wrapping_add(1);
        message.end_psn = *psn;
        self.packet(slot, &self.messages[id], payload, number, payload == left)
    }

    #[inline(always)]
    fn packet(&self, slot: u32, message: &Message, payload: u64, psn: u32, last: bool) -> Packet {
        let reliable = message.is_reliable();
        let bytes = payload as u32 + self.settings.packet(reliable).header;
        let source = self.rank(slot);
        let pair = message.queue_pair;
        let receiver = match reliable {
            true => self.queue_pairs[pair].receiver,
            false => ReceiverIndex::NIL,
        };
        let there = self.there(slot, message.destination);
        let dlid = self.addressing.lid(there) + u32::from(message.path);
        Packet {
            next: PacketIndex::NIL,
            dlid,
            slid: self.addressing.lid(self.here(slot)) + u32::from(message.path),
            source,
            queue_pair: if reliable || M::Reactors::ON { pair.0 } else { u32::MAX },
            receiver,
            psn,
            envelope: if last { message.envelope } else { EnvelopeIndex::NIL },
            bytes: bytes as u16,
            payload: if message.flags & CONTROL != 0 { 0 } else { payload as u16 },
            credits: credits(bytes),
            group: message.group,
            sl: message.sl,
            flags: message.flags & (RELIABLE | TOLD | RESPONSE | CONTROL | READ)
                | if last { LAST } else { 0 },
            route: UNROUTED,
            born: message.born,
            hint: self.forwarder.hint(dlid),
        }
    }

    /// All packets of a message have left.
    fn message_left(&mut self, slot: u32, id: MessageIndex) {
        let message = &self.messages[id];
        self.backlog.leaves(slot, message.lane);
        if message.is_awaited() {
            if message.is_reliable() {
                let pair = &mut self.queue_pairs[message.queue_pair];
                return pair.waiting.push_back(self.messages.all_mut(), id);
            }
            self.message_sent(slot, id);
        }
        self.messages.remove(id);
    }

    /// A message has left for good: a datagram as it leaves, else as it is acknowledged.
    pub(super) fn message_sent(&mut self, slot: u32, id: MessageIndex) {
        let message = &self.messages[id];
        let waiter = match message.flags & DIVIDED {
            0 => (message.flags & TRACKED != 0).then(|| message.waiter()),
            _ => self.reactors.on_stripe_sent(message.token),
        };
        if let Some(waiter) = waiter {
            self.told.push((slot, Told::Sent(waiter)));
        }
    }
}
