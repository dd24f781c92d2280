//! The channel adapter: messages become packets, queue pairs take turns, ACKs go ahead of data.

use crate::AdapterQueueing;
use crate::arbiter::Table;
use crate::control::Control;
use crate::engine::{ARRIVE, Engine, key};
use crate::forward::Forwarder;
use crate::list::List;
use crate::network::{ACK, BECN, CNP, LAST, NEVER, NIL, Packet, RELIABLE, TOLD, UNROUTED};
use crate::observe::Observer;
use crate::port_set::PortSet;
use crate::wheel::Event;
use clearlane_ib::{VirtualLane, wire};
use clearlane_workload::{Handle, Transport};
use std::collections::VecDeque;
use std::collections::hash_map::Entry;

/// A message on its way, from being posted to its last packet leaving or arriving.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    /// The next message of the same send queue, or of those posted and not yet ready.
    pub(crate) next: u32,
    /// Source rank.
    pub(crate) source: u32,
    /// Destination rank.
    pub(crate) destination: u32,
    /// Queue pair of a reliable connection, else `NIL`.
    pub(crate) queue_pair: u32,
    /// Matched by two-sided receives.
    pub(crate) tag: u32,
    /// The sender's handle if it waits for completion.
    pub(crate) handle: Option<Handle>,
    /// Payload.
    pub(crate) bytes: u64,
    /// Payload that has left.
    pub(crate) sent: u64,
    /// When the software overhead is over.
    pub(crate) ready: u64,
    /// When it was posted.
    pub(crate) born: u64,
    pub(crate) dlid: u32,
    /// Flow of the mechanisms; `NIL` without.
    pub(crate) flow: u32,
    /// The message this is a stripe of, where a mechanism chooses paths; else `NIL`.
    pub(crate) whole: u32,
    pub(crate) group: u16,
    pub(crate) sl: u8,
    /// Path it takes: LID offset of both ends.
    pub(crate) path: u8,
    /// Lane on the link to the switch.
    pub(crate) lane: u8,
    /// The destination's program is told.
    pub(crate) told: bool,
}

/// Messages waiting their turn, first in, first out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendQueue {
    pub(crate) messages: List,
    /// The next queue of the ring or line it is in.
    pub(crate) next: u32,
    /// Key in the table of queues.
    pub(crate) key: QueueKey,
    /// True while the queue is in a ring or in the line for an engine.
    pub(crate) active: bool,
}

/// What has a send queue or a queue pair of its own: a source, a destination and a flow group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct QueueKey {
    source: u32,
    /// `NIL` for the one queue of an adapter whose messages all wait in line.
    destination: u32,
    group: u16,
    /// A reliable connection for each path.
    path: u8,
}

/// A message, or a stripe of one, that the sender waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unacknowledged {
    pub(crate) handle: Option<Handle>,
    pub(crate) whole: u32,
    pub(crate) bytes: u64,
    pub(crate) born: u64,
}

/// A reliable connection: both ends.
#[derive(Clone, Debug)]
pub(crate) struct QueuePair {
    /// Send queue it feeds.
    pub(crate) queue: u32,
    /// PSN of the next packet.
    pub(crate) next_psn: u32,
    /// Packets acknowledged.
    pub(crate) acknowledged: u32,
    /// At the destination: PSN expected next.
    pub(crate) expected_psn: u32,
    /// At the destination: packets received since the last ACK.
    pub(crate) unacknowledged: u32,
    /// At the destination: packets that overtook the one expected, in no order. Only adaptive
    /// routing lets them.
    pub(crate) early: Vec<u32>,
    /// Flow of the mechanisms; `NIL` without.
    pub(crate) flow: u32,
    /// At the destination: the BECN flags of the next ACK.
    pub(crate) becn: u8,
    /// Messages the sender waits for, by the PSN after their last packet.
    pub(crate) waiting: VecDeque<(u32, Unacknowledged)>,
}

/// One host's adapter.
#[derive(Clone, Copy)]
pub(crate) struct Adapter<const V: usize> {
    /// ACKs and CNPs to be sent, by lane.
    pub(crate) acks: [List; V],
    /// Send queues that have something to send, by lane of their head.
    pub(crate) rings: [List; V],
    /// Send queues waiting for an injection engine.
    pub(crate) line: List,
    /// Messages not yet ready: software overhead.
    pub(crate) posted: List,
    /// When host memory has been read as far as needed for the next packet.
    pub(crate) dma_at: u64,
    /// When the receive buffer is drained.
    pub(crate) drained_at: u64,
    /// Engines at work.
    pub(crate) engines: u32,
    /// PSN of the next datagram.
    pub(crate) next_psn: u32,
    /// Lanes with an ACK or a queue.
    pub(crate) busy_lanes: u16,
}

impl<const V: usize> Adapter<V> {
    pub(crate) const IDLE: Self = Adapter {
        acks: [List::EMPTY; V],
        rings: [List::EMPTY; V],
        line: List::EMPTY,
        posted: List::EMPTY,
        dma_at: 0,
        drained_at: 0,
        engines: 0,
        next_psn: 0,
        busy_lanes: 0,
    };

    fn settle_lane(&mut self, lane: u8) {
        let at = usize::from(lane) % V;
        let busy = !self.acks[at].is_empty() || !self.rings[at].is_empty();
        self.busy_lanes = self.busy_lanes & !(1 << lane) | u16::from(busy) << lane;
    }
}

impl<F: Forwarder, O: Observer, C: Control, B: PortSet, const V: usize> Engine<F, O, C, B, V> {
    /// Takes a message that is ready into its send queue.
    pub(crate) fn enqueue(&mut self, id: u32) {
        let message = &self.messages[id];
        let (source, destination, group) = (message.source, message.destination, message.group);
        let reliable = self.groups[usize::from(group)].transport == Transport::Rc;
        let (path, flow) = (message.path, message.flow);
        let pair = QueueKey { source, destination, group, path };
        let queue = self.queue(match self.parameters.queueing {
            AdapterQueueing::PerDestination => pair,
            AdapterQueueing::SingleFifo => QueueKey { destination: NIL, group: 0, path: 0, ..pair },
        });
        if reliable {
            self.messages[id].queue_pair = self.pair(pair, queue, flow);
        }
        self.queues[queue].messages.push_back(&mut self.messages, id);
        self.activate(source, queue);
    }

    fn queue(&mut self, key: QueueKey) -> u32 {
        let entry = match self.queue_of.entry(key) {
            Entry::Occupied(queue) => return *queue.get(),
            Entry::Vacant(entry) => entry,
        };
        let record = SendQueue { messages: List::EMPTY, next: NIL, key, active: false };
        let queue = match self.free_queues.pop() {
            Some(queue) => {
                self.queues[queue] = record;
                queue
            }
            None => {
                self.queues.push(record);
                self.queues.len() as u32 - 1
            }
        };
        *entry.insert(queue)
    }

    fn pair(&mut self, key: QueueKey, queue: u32, flow: u32) -> u32 {
        if let Some(pair) = self.pair_of.get(&key) {
            self.pairs[*pair].queue = queue;
            return *pair;
        }
        let pair = self.pairs.len() as u32;
        self.pairs.push(QueuePair {
            queue,
            next_psn: 0,
            acknowledged: 0,
            expected_psn: 0,
            unacknowledged: 0,
            early: Vec::new(),
            flow,
            becn: 0,
            waiting: VecDeque::new(),
        });
        self.pair_of.insert(key, pair);
        pair
    }

    /// Whether the window of a message's queue pair lets another packet out.
    fn window_open(&self, message: &Message) -> bool {
        message.queue_pair == NIL || {
            let pair = &self.pairs[message.queue_pair];
            pair.next_psn.wrapping_sub(pair.acknowledged) < self.parameters.outstanding
        }
    }

    /// Puts a queue with something to send into the ring of its head's lane, or into the line for
    /// an injection engine.
    pub(crate) fn activate(&mut self, rank: u32, queue: u32) {
        let record = &self.queues[queue];
        if record.active || record.messages.is_empty() {
            return;
        }
        let message = &self.messages[record.messages.head];
        if !self.window_open(message) {
            return;
        }
        let (lane, flow) = (message.lane, message.flow);
        if C::ON && self.pauses(rank, queue, flow) {
            return;
        }
        self.queues[queue].active = true;
        let adapter = &mut self.adapters[rank];
        if self.parameters.injection_engines.is_some_and(|engines| adapter.engines >= engines) {
            adapter.line.push_back(&mut self.queues, queue);
            return;
        }
        adapter.engines += 1;
        adapter.rings[usize::from(lane) % V].push_back(&mut self.queues, queue);
        adapter.busy_lanes |= 1 << lane;
    }

    /// Phase 2 of an adapter: at most one packet leaves.
    pub(crate) fn inject(&mut self, port: u32) {
        let rank = self.ports[port].node;
        self.before_turn(port, rank);
        while !self.adapters[rank].posted.is_empty() {
            let id = self.adapters[rank].posted.head;
            let ready = self.messages[id].ready;
            if ready > self.now {
                self.wake(port, ready);
                break;
            }
            self.adapters[rank].posted.pop_front(&mut self.messages);
            if !C::ON && self.leaves_at_once(port, rank, id) {
                self.send_at_once(port, rank, id);
            } else {
                self.enqueue(id);
            }
        }
        let free_at = self.ports[port].free_at;
        if self.adapters[rank].busy_lanes == 0 {
            return;
        }
        if free_at > self.now {
            return self.wake(port, free_at);
        }
        if C::ON {
            self.make_way(rank);
        }
        let (mut eligible, mut earliest, mut short) = (0u16, NEVER, false);
        let mut lanes = self.adapters[rank].busy_lanes;
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as u8;
            lanes &= lanes - 1;
            let (need, from) = self.next_need(rank, lane);
            let blocked = from <= self.now && !self.has_credits(port, lane, need);
            let bit = 1 << lane;
            let waiting = &mut self.ports[port].waiting;
            *waiting = if blocked { *waiting | bit } else { *waiting & !bit };
            if blocked {
                short = true;
                earliest = earliest.min(self.credits_at(port, lane, need));
            } else if from <= self.now {
                eligible |= bit;
            } else {
                earliest = earliest.min(from);
            }
        }
        if eligible == 0 {
            return self.hold(port, short, earliest);
        }
        let (lane, table) = self.choose_lane(port, eligible);
        let id = self.next_packet(rank, lane);
        self.adapters[rank].settle_lane(lane);
        self.transmit(port, lane, id);
        if V > 1 && table != Table::Neither {
            let bytes = self.packets[id].bytes;
            self.arbiters[port].charge(&self.tables, table, u32::from(bytes));
        }
        if self.adapters[rank].busy_lanes != 0 {
            let free_at = self.ports[port].free_at;
            self.wake(port, free_at);
        }
    }

    /// The packet whose turn it is in a lane: answers before data.
    #[inline(always)]
    fn next_packet(&mut self, rank: u32, lane: u8) -> u32 {
        let acks = &mut self.adapters[rank].acks[usize::from(lane) % V];
        let Some(answer) = acks.pop_front(&mut self.packets) else {
            return self.next_data(rank, lane);
        };
        let is_cnp = C::ON && self.packets[answer].flags & CNP != 0;
        self.totals.acks_injected += u64::from(!is_cnp);
        self.totals.cnps_injected += u64::from(is_cnp);
        answer
    }

    /// Queues at the front of a ring may have to wait by now, because a packet of another queue
    /// that shares their limit has left: they make way.
    fn make_way(&mut self, rank: u32) {
        let mut lanes = self.adapters[rank].busy_lanes;
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as u8;
            lanes &= lanes - 1;
            let at = usize::from(lane) % V;
            loop {
                let queue = self.adapters[rank].rings[at].head;
                if queue == NIL {
                    break;
                }
                // A queue in a ring has a message.
                let flow = self.messages[self.queues[queue].messages.head].flow;
                if !self.pauses(rank, queue, flow) {
                    break;
                }
                self.adapters[rank].rings[at].pop_front(&mut self.queues);
                self.free_engine(rank);
            }
            self.adapters[rank].settle_lane(lane);
        }
    }

    /// An engine is free: the first queue in the line that may send has it.
    fn free_engine(&mut self, rank: u32) {
        self.adapters[rank].engines -= 1;
        let engines = self.adapters[rank].engines;
        while let Some(next) = self.adapters[rank].line.pop_front(&mut self.queues) {
            self.queues[next].active = false;
            self.activate(rank, next);
            // Without mechanisms a queue in the line may always send.
            if !C::ON || self.adapters[rank].engines > engines {
                return;
            }
        }
    }

    /// Whether a datagram of one packet finds its adapter idle: it needs no queue.
    #[inline(always)]
    fn leaves_at_once(&mut self, port: u32, rank: u32, id: u32) -> bool {
        let (adapter, message) = (&self.adapters[rank], &self.messages[id]);
        let group = &self.groups[usize::from(message.group)];
        // Nothing is in any ring, so no engine is at work and nothing stands in line for one.
        let idle = adapter.busy_lanes == 0
            && adapter.dma_at <= self.now
            && self.ports[port].free_at <= self.now;
        let fits = group.transport == Transport::Ud
            && message.bytes <= u64::from(self.parameters.mtu)
            && self.parameters.queueing == AdapterQueueing::PerDestination;
        if !idle || !fits {
            return false;
        }
        let lane = message.lane;
        let bytes = message.bytes as u32 + self.parameters.header_bytes(Transport::Ud);
        self.has_credits(port, lane, wire::credits(bytes) as u16)
    }

    #[inline(always)]
    fn send_at_once(&mut self, port: u32, rank: u32, id: u32) {
        let lane = self.messages[id].lane;
        let packet = self.inject_data(rank, id);
        self.message_left(rank, id);
        self.transmit(port, lane, packet);
    }

    /// Credits the next packet of a lane needs and when it may leave at the earliest.
    fn next_need(&self, rank: u32, lane: u8) -> (u16, u64) {
        let adapter = &self.adapters[rank];
        let at = usize::from(lane) % V;
        if !adapter.acks[at].is_empty() {
            return (self.packets[adapter.acks[at].head].credits, 0);
        }
        // A busy lane without ACKs has a queue in its ring, and a queue there has a message.
        let queue = &self.queues[adapter.rings[at].head];
        let message = &self.messages[queue.messages.head];
        let payload = (message.bytes - message.sent).min(u64::from(self.parameters.mtu)) as u32;
        let transport = self.groups[usize::from(message.group)].transport;
        (wire::credits(payload + self.parameters.header_bytes(transport)) as u16, adapter.dma_at)
    }

    fn transmit(&mut self, port: u32, lane: u8, id: u32) {
        let packet = &self.packets[id];
        let record = &mut self.ports[port];
        let class = &self.classes[u32::from(record.class)];
        let busy = class.rate.serialisation(u64::from(packet.bytes));
        record.free_at = self.now + busy;
        record.credits[usize::from(lane) % V] -= packet.credits;
        let (peer, time) = (record.peer, self.now + class.flight);
        self.wheel.push(Event { time, key: key(peer, ARRIVE, lane), packet: id });
        if O::ON {
            let bytes = packet.bytes;
            self.note_granted(port, bytes, busy);
        }
    }

    /// The next data packet of a lane: the queue at the front of the ring has its turn, then goes
    /// to the back.
    fn next_data(&mut self, rank: u32, lane: u8) -> u32 {
        // The lane was eligible without an ACK, so its ring has a queue.
        let ring = &mut self.adapters[rank].rings[usize::from(lane) % V];
        let queue = ring.pop_front(&mut self.queues).unwrap_or_default();
        let id = self.queues[queue].messages.head;
        let packet = self.inject_data(rank, id);
        let done = self.packets[packet].flags & LAST != 0;
        if done {
            self.queues[queue].messages.pop_front(&mut self.messages);
            self.message_left(rank, id);
        }
        self.rotate(rank, queue, done);
        packet
    }

    /// The next packet of a message, read from host memory.
    #[inline(always)]
    fn inject_data(&mut self, rank: u32, id: u32) -> u32 {
        let packet = self.packetize(rank, id);
        if let Some(rate) = self.dma {
            let bytes = u64::from(packet.bytes);
            self.adapters[rank].dma_at = self.now + rate.serialisation(bytes);
        }
        self.totals.packets_injected += 1;
        if C::ON {
            let flow = self.messages[id].flow;
            self.note_injected(rank, flow, &packet);
        }
        self.admit(packet)
    }

    /// After a packet: the queue goes to the back of its ring, out of it, or to the line.
    fn rotate(&mut self, rank: u32, queue: u32, message_done: bool) {
        let head = self.queues[queue].messages.head;
        let open = head != NIL && {
            let message = &self.messages[head];
            self.window_open(message) && (!C::ON || self.may_leave(message.flow))
        };
        let adapter = &mut self.adapters[rank];
        if open && (!message_done || adapter.line.is_empty()) {
            let lane = self.messages[head].lane;
            let ring = &mut adapter.rings[usize::from(lane) % V];
            match self.parameters.queueing {
                AdapterQueueing::PerDestination => ring.push_back(&mut self.queues, queue),
                AdapterQueueing::SingleFifo => ring.push_front(&mut self.queues, queue),
            }
            adapter.busy_lanes |= 1 << lane;
            return;
        }
        self.queues[queue].active = false;
        self.free_engine(rank);
        if head == NIL {
            let key = self.queues[queue].key;
            self.queue_of.remove(&key);
            self.free_queues.push(queue);
        } else {
            self.activate(rank, queue);
        }
    }

    /// The next packet of a message.
    fn packetize(&mut self, rank: u32, id: u32) -> Packet {
        let message = &mut self.messages[id];
        let payload = (message.bytes - message.sent).min(u64::from(self.parameters.mtu));
        message.sent += payload;
        let message = *message;
        let reliable = message.queue_pair != NIL;
        let transport = if reliable { Transport::Rc } else { Transport::Ud };
        let bytes = payload as u32 + self.parameters.header_bytes(transport);
        let psn = if reliable {
            &mut self.pairs[message.queue_pair].next_psn
        } else {
            &mut self.adapters[rank].next_psn
        };
        let number = *psn;
        *psn = psn.wrapping_add(1);
        let mut flags = if reliable { RELIABLE } else { 0 };
        if message.sent == message.bytes {
            flags |= LAST;
        }
        if message.told {
            flags |= TOLD;
        }
        Packet {
            next: NIL,
            dlid: message.dlid,
            slid: self.addressing.lid(rank) + u32::from(message.path),
            source: rank,
            queue_pair: if C::ON && !reliable { message.flow } else { message.queue_pair },
            psn: number,
            message: id,
            bytes: bytes as u16,
            payload: payload as u16,
            credits: wire::credits(bytes) as u16,
            group: message.group,
            sl: message.sl,
            flags,
            born: message.born,
            route: UNROUTED,
            hint: self.forwarder.hint(message.dlid),
            tail: 0,
        }
    }

    /// All packets of a message have left.
    fn message_left(&mut self, rank: u32, id: u32) {
        let message = self.messages[id];
        let waits = message.handle.is_some() || C::ON && message.whole != NIL;
        if waits {
            let Message { handle, whole, bytes, born, .. } = message;
            let what = Unacknowledged { handle, whole, bytes, born };
            if message.queue_pair == NIL {
                self.message_sent(rank, what);
            } else {
                let pair = &mut self.pairs[message.queue_pair];
                pair.waiting.push_back((pair.next_psn, what));
            }
        }
        if !message.told && (!C::ON || message.whole == NIL) {
            self.free_messages.push(id);
        }
    }

    /// A message has left for good: a datagram as it leaves, else as it is acknowledged.
    fn message_sent(&mut self, rank: u32, what: Unacknowledged) {
        let handle = if C::ON && what.whole != NIL { self.stripe_sent(&what) } else { what.handle };
        if let Some(handle) = handle {
            self.finish_operation(rank, handle, self.now);
        }
    }

    /// A packet is complete at a host: data is acknowledged and handed on, an ACK opens the window.
    pub(crate) fn deliver(&mut self, port: u32, id: u32) {
        let packet = self.packets[id];
        if C::ON && packet.flags & CNP != 0 {
            self.totals.cnps_delivered += 1;
            self.release(id);
            return self.on_cnp(port, &packet);
        }
        if packet.flags & ACK != 0 {
            self.totals.acks_delivered += 1;
            self.release(id);
            return self.acknowledged(port, &packet);
        }
        if F::ADAPTIVE && packet.flags & RELIABLE != 0 {
            return self.resequence(port, id);
        }
        self.accept(port, id);
    }

    /// A packet that overtook others on an adaptive path waits for them, as adapters that allow it
    /// do: programs and acknowledgements see the order of the queue pair.
    fn resequence(&mut self, port: u32, id: u32) {
        let (pair, psn) = (self.packets[id].queue_pair, self.packets[id].psn);
        if psn != self.pairs[pair].expected_psn {
            return self.pairs[pair].early.push(id);
        }
        self.accept(port, id);
        loop {
            let record = &self.pairs[pair];
            let expected = |id: &u32| self.packets[*id].psn == record.expected_psn;
            let Some(index) = record.early.iter().position(expected) else { return };
            let id = self.pairs[pair].early.swap_remove(index);
            self.accept(port, id);
        }
    }

    /// Data in the order of its queue pair: acknowledged and handed on.
    fn accept(&mut self, port: u32, id: u32) {
        let packet = self.packets[id];
        let rank = self.ports[port].node;
        self.notify(port, &packet);
        if packet.flags & RELIABLE != 0 {
            self.acknowledge(port, &packet);
        }
        if C::ON && packet.flags & LAST != 0 && self.has_order() {
            return self.arrive_in_turn(rank, id);
        }
        self.hand_on(rank, id);
    }

    /// Data whose turn has come.
    pub(crate) fn hand_on(&mut self, rank: u32, id: u32) {
        let packet = self.packets[id];
        if packet.flags & (TOLD | LAST) == TOLD | LAST {
            let message = self.messages[packet.message];
            self.free_messages.push(packet.message);
            self.arrived(rank, message.source, message.tag);
        }
        let now = self.now;
        self.complete(rank, id, now);
    }

    /// The destination's half of a reliable connection.
    fn acknowledge(&mut self, port: u32, packet: &Packet) {
        let pair = &mut self.pairs[packet.queue_pair];
        // IBA vol. 1, 9.7.5.1: a reliable connection delivers in order.
        assert_eq!(packet.psn, pair.expected_psn, "queue pair {} reordered", packet.queue_pair);
        pair.expected_psn = pair.expected_psn.wrapping_add(1);
        pair.unacknowledged += 1;
        let due = pair.unacknowledged >= self.parameters.ack_coalescing;
        if !due && packet.flags & LAST == 0 {
            return;
        }
        pair.unacknowledged = 0;
        let becn = std::mem::take(&mut pair.becn);
        let bytes = wire::RC_ACK;
        let ack = Packet {
            next: NIL,
            dlid: packet.slid,
            slid: packet.dlid,
            source: self.ports[port].node,
            bytes: bytes as u16,
            payload: 0,
            credits: wire::credits(bytes) as u16,
            flags: ACK | becn,
            born: self.now,
            route: UNROUTED,
            hint: self.forwarder.hint(packet.slid),
            tail: 0,
            ..*packet
        };
        self.answer(port, ack.source, ack);
    }

    /// An ACK or a CNP goes ahead of data. The request's SL carries it (IBA vol. 1, 9.4).
    pub(crate) fn answer(&mut self, port: u32, rank: u32, packet: Packet) {
        let lane = self.addressing.lane(packet.sl);
        let id = self.admit(packet);
        let adapter = &mut self.adapters[rank];
        adapter.acks[usize::from(lane.value()) % V].push_back(&mut self.packets, id);
        adapter.busy_lanes |= 1 << lane.value();
        self.dirty.push(port);
    }

    /// The source's half: the window opens, messages complete.
    fn acknowledged(&mut self, port: u32, packet: &Packet) {
        let rank = self.ports[port].node;
        if C::ON && packet.flags & BECN != 0 {
            self.on_becn(port, self.pairs[packet.queue_pair].flow, packet.flags);
        }
        let pair = &mut self.pairs[packet.queue_pair];
        let acknowledged = packet.psn.wrapping_add(1);
        // An ACK that another has overtaken says nothing new.
        if acknowledged.wrapping_sub(pair.acknowledged) > u32::MAX / 2 {
            return;
        }
        let packets = acknowledged.wrapping_sub(pair.acknowledged);
        pair.acknowledged = acknowledged;
        let (queue, flow) = (pair.queue, pair.flow);
        self.on_acknowledged(flow, packets);
        while let Some((psn, what)) = self.pairs[packet.queue_pair].waiting.front().copied() {
            if acknowledged.wrapping_sub(psn) > u32::MAX / 2 {
                break;
            }
            self.pairs[packet.queue_pair].waiting.pop_front();
            if C::ON {
                self.note_completed(flow, &what);
            }
            self.message_sent(rank, what);
        }
        // A queue that has emptied since may serve another pair by now; then this does nothing.
        let head = self.queues[queue].messages.head;
        if head != NIL && self.messages[head].queue_pair == packet.queue_pair {
            self.activate(rank, queue);
        }
        self.dirty.push(port);
    }

    /// The lane a service level takes on the link to the switch.
    pub(crate) fn first_lane(&self, sl: u8) -> VirtualLane {
        self.addressing.lane(sl)
    }
}
