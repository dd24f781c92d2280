//! The channel adapter: messages become packets, queue pairs take turns, ACKs go ahead of data.

use crate::AdapterQueueing;
use crate::arbiter::Table;
use crate::engine::{ARRIVE, Engine, key};
use crate::forward::Forwarder;
use crate::network::{ACK, LAST, NEVER, NIL, Packet, RELIABLE, TOLD, UNROUTED};
use crate::observe::Observer;
use crate::port_set::PortSet;
use crate::wheel::Event;
use clearlane_ib::{VirtualLane, wire};
use clearlane_workload::{Handle, Transport};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// A message on its way, from being posted to its last packet leaving or arriving.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    /// The next message of the same send queue.
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
    /// When it was posted.
    pub(crate) born: u64,
    pub(crate) dlid: u32,
    pub(crate) group: u16,
    pub(crate) sl: u8,
    /// Lane on the link to the switch.
    pub(crate) lane: u8,
    /// The destination's program is told.
    pub(crate) told: bool,
}

/// Messages waiting their turn, first in, first out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendQueue {
    pub(crate) head: u32,
    pub(crate) tail: u32,
    /// Key in the adapter's table of queues.
    pub(crate) key: u64,
    /// True while the queue is in a ring or in the line for an engine.
    pub(crate) active: bool,
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
    /// Messages the sender waits for, by the PSN after their last packet.
    pub(crate) waiting: VecDeque<(u32, Handle)>,
}

/// One host's adapter.
pub(crate) struct Adapter {
    /// ACKs to be sent, by lane.
    pub(crate) acks: Vec<VecDeque<u32>>,
    /// Send queues that have something to send, by lane of their head.
    pub(crate) rings: Vec<VecDeque<u32>>,
    /// Lanes with an ACK or a queue.
    pub(crate) busy_lanes: u16,
    /// Send queues waiting for an injection engine.
    pub(crate) line: VecDeque<u32>,
    /// Engines at work.
    pub(crate) engines: u32,
    /// Messages not yet ready: software overhead.
    pub(crate) posted: VecDeque<(u64, u32)>,
    pub(crate) queue_of: FxHashMap<u64, u32>,
    pub(crate) pair_of: FxHashMap<u64, u32>,
    /// When host memory has been read as far as needed for the next packet.
    pub(crate) dma_at: u64,
    /// When the receive buffer is drained.
    pub(crate) drained_at: u64,
    /// PSN of the next datagram.
    pub(crate) next_psn: u32,
}

impl Adapter {
    pub(crate) fn new(lanes: usize) -> Self {
        Adapter {
            acks: (0..lanes).map(|_| VecDeque::new()).collect(),
            rings: (0..lanes).map(|_| VecDeque::new()).collect(),
            busy_lanes: 0,
            line: VecDeque::new(),
            engines: 0,
            posted: VecDeque::new(),
            queue_of: FxHashMap::default(),
            pair_of: FxHashMap::default(),
            dma_at: 0,
            drained_at: 0,
            next_psn: 0,
        }
    }

    fn settle_lane(&mut self, lane: u8) {
        let lane = usize::from(lane);
        let busy = !self.acks[lane].is_empty() || !self.rings[lane].is_empty();
        self.busy_lanes = self.busy_lanes & !(1 << lane) | u16::from(busy) << lane;
    }
}

/// The one queue of an adapter whose messages all wait in line.
const SINGLE: u64 = u64::MAX;

fn pair_key(destination: u32, group: u16) -> u64 {
    u64::from(destination) << 16 | u64::from(group)
}

impl<F: Forwarder, O: Observer, B: PortSet, const V: usize> Engine<F, O, B, V> {
    /// Takes a message that is ready into its send queue.
    pub(crate) fn enqueue(&mut self, id: u32) {
        let message = self.messages[id as usize];
        let rank = message.source as usize;
        let reliable = self.groups[usize::from(message.group)].transport == Transport::Rc;
        let pair = pair_key(message.destination, message.group);
        let key = match self.parameters.queueing {
            AdapterQueueing::PerDestination => pair,
            AdapterQueueing::SingleFifo => SINGLE,
        };
        let queue = self.queue(rank, key);
        if reliable {
            self.messages[id as usize].queue_pair = self.pair(rank, pair, queue);
        }
        let record = &mut self.queues[queue as usize];
        let empty = record.head == NIL;
        let last = std::mem::replace(&mut record.tail, id);
        if empty {
            record.head = id;
        } else {
            self.messages[last as usize].next = id;
        }
        self.activate(rank, queue);
    }

    fn queue(&mut self, rank: usize, key: u64) -> u32 {
        if let Some(queue) = self.adapters[rank].queue_of.get(&key) {
            return *queue;
        }
        let record = SendQueue { head: NIL, tail: NIL, key, active: false };
        let queue = match self.free_queues.pop() {
            Some(queue) => {
                self.queues[queue as usize] = record;
                queue
            }
            None => {
                self.queues.push(record);
                self.queues.len() as u32 - 1
            }
        };
        self.adapters[rank].queue_of.insert(key, queue);
        queue
    }

    fn pair(&mut self, rank: usize, key: u64, queue: u32) -> u32 {
        if let Some(pair) = self.adapters[rank].pair_of.get(&key) {
            self.pairs[*pair as usize].queue = queue;
            return *pair;
        }
        let pair = self.pairs.len() as u32;
        self.pairs.push(QueuePair {
            queue,
            next_psn: 0,
            acknowledged: 0,
            expected_psn: 0,
            unacknowledged: 0,
            waiting: VecDeque::new(),
        });
        self.adapters[rank].pair_of.insert(key, pair);
        pair
    }

    /// Whether the window of a message's queue pair lets another packet out.
    fn window_open(&self, message: &Message) -> bool {
        message.queue_pair == NIL || {
            let pair = &self.pairs[message.queue_pair as usize];
            pair.next_psn.wrapping_sub(pair.acknowledged) < self.parameters.outstanding
        }
    }

    /// Puts a queue with something to send into the ring of its head's lane, or into the line for
    /// an injection engine.
    pub(crate) fn activate(&mut self, rank: usize, queue: u32) {
        let record = &self.queues[queue as usize];
        if record.active || record.head == NIL {
            return;
        }
        let message = &self.messages[record.head as usize];
        if !self.window_open(message) {
            return;
        }
        let lane = message.lane;
        self.queues[queue as usize].active = true;
        let adapter = &mut self.adapters[rank];
        if self.parameters.injection_engines.is_some_and(|engines| adapter.engines >= engines) {
            adapter.line.push_back(queue);
            return;
        }
        adapter.engines += 1;
        adapter.rings[usize::from(lane)].push_back(queue);
        adapter.busy_lanes |= 1 << lane;
    }

    /// Phase 2 of an adapter: at most one packet leaves.
    pub(crate) fn inject(&mut self, port: u32) {
        let rank = self.ports[port].node as usize;
        while let Some((ready, id)) = self.adapters[rank].posted.front().copied() {
            if ready > self.now {
                self.wake(port, ready);
                break;
            }
            self.adapters[rank].posted.pop_front();
            self.enqueue(id);
        }
        let free_at = self.ports[port].free_at;
        if self.adapters[rank].busy_lanes == 0 {
            return;
        }
        if free_at > self.now {
            return self.wake(port, free_at);
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
        let id = match self.adapters[rank].acks[usize::from(lane)].pop_front() {
            Some(ack) => {
                self.totals.acks_injected += 1;
                ack
            }
            None => self.next_data(rank, lane),
        };
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

    /// Credits the next packet of a lane needs and when it may leave at the earliest.
    fn next_need(&self, rank: usize, lane: u8) -> (u16, u64) {
        let adapter = &self.adapters[rank];
        if let Some(ack) = adapter.acks[usize::from(lane)].front() {
            return (self.packets[*ack].credits, 0);
        }
        // A busy lane without ACKs has a queue in its ring, and a queue there has a message.
        let queue = adapter.rings[usize::from(lane)][0];
        let message = &self.messages[self.queues[queue as usize].head as usize];
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
    fn next_data(&mut self, rank: usize, lane: u8) -> u32 {
        let adapter = &mut self.adapters[rank];
        // The lane was eligible without an ACK, so its ring has a queue.
        let queue = adapter.rings[usize::from(lane)].pop_front().unwrap_or_default();
        let id = self.queues[queue as usize].head;
        let packet = self.packetize(rank, id);
        if let Some(rate) = self.dma {
            let bytes = u64::from(packet.bytes);
            self.adapters[rank].dma_at = self.now + rate.serialisation(bytes);
        }
        self.totals.packets_injected += 1;
        let done = packet.flags & LAST != 0;
        let packet = self.admit(packet);
        if done {
            self.message_left(rank, queue, id);
        }
        self.rotate(rank, queue, done);
        packet
    }

    /// After a packet: the queue goes to the back of its ring, out of it, or to the line.
    fn rotate(&mut self, rank: usize, queue: u32, message_done: bool) {
        let head = self.queues[queue as usize].head;
        let open = head != NIL && self.window_open(&self.messages[head as usize]);
        let others = !self.adapters[rank].line.is_empty();
        if open && !(message_done && others) {
            let lane = self.messages[head as usize].lane;
            let adapter = &mut self.adapters[rank];
            match self.parameters.queueing {
                AdapterQueueing::PerDestination => {
                    adapter.rings[usize::from(lane)].push_back(queue);
                }
                AdapterQueueing::SingleFifo => adapter.rings[usize::from(lane)].push_front(queue),
            }
            adapter.busy_lanes |= 1 << lane;
            return;
        }
        self.queues[queue as usize].active = false;
        self.adapters[rank].engines -= 1;
        if let Some(next) = self.adapters[rank].line.pop_front() {
            self.queues[next as usize].active = false;
            self.activate(rank, next);
        }
        if head == NIL {
            let key = self.queues[queue as usize].key;
            self.adapters[rank].queue_of.remove(&key);
            self.free_queues.push(queue);
        } else {
            self.activate(rank, queue);
        }
    }

    /// The next packet of a message.
    fn packetize(&mut self, rank: usize, id: u32) -> Packet {
        let message = &mut self.messages[id as usize];
        let payload = (message.bytes - message.sent).min(u64::from(self.parameters.mtu));
        message.sent += payload;
        let message = *message;
        let reliable = message.queue_pair != NIL;
        let transport = if reliable { Transport::Rc } else { Transport::Ud };
        let bytes = payload as u32 + self.parameters.header_bytes(transport);
        let psn = if reliable {
            &mut self.pairs[message.queue_pair as usize].next_psn
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
            slid: self.addressing.lid(rank as u32),
            source: rank as u32,
            queue_pair: message.queue_pair,
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

    /// All packets of the head message have left: it makes room for the next one.
    fn message_left(&mut self, rank: usize, queue: u32, id: u32) {
        let message = self.messages[id as usize];
        let record = &mut self.queues[queue as usize];
        record.head = message.next;
        if let Some(handle) = message.handle {
            if message.queue_pair == NIL {
                self.finish_operation(rank as u32, handle, self.now);
            } else {
                let pair = &mut self.pairs[message.queue_pair as usize];
                pair.waiting.push_back((pair.next_psn, handle));
            }
        }
        if !message.told {
            self.free_messages.push(id);
        }
    }

    /// A packet is complete at a host: data is acknowledged and handed on, an ACK opens the window.
    pub(crate) fn deliver(&mut self, port: u32, id: u32) {
        let rank = self.ports[port].node;
        let packet = self.packets[id];
        if packet.flags & ACK != 0 {
            self.totals.acks_delivered += 1;
            self.release(id);
            return self.acknowledged(port, &packet);
        }
        if packet.flags & RELIABLE != 0 {
            self.acknowledge(port, &packet);
        }
        if packet.flags & (TOLD | LAST) == TOLD | LAST {
            let message = self.messages[packet.message as usize];
            self.free_messages.push(packet.message);
            self.arrived(rank, message.source, message.tag);
        }
        let now = self.now;
        self.complete(rank, id, now);
    }

    /// The destination's half of a reliable connection.
    fn acknowledge(&mut self, port: u32, packet: &Packet) {
        let pair = &mut self.pairs[packet.queue_pair as usize];
        // IBA vol. 1, 9.7.5.1: a reliable connection delivers in order; no path here reorders.
        assert_eq!(packet.psn, pair.expected_psn, "queue pair {} reordered", packet.queue_pair);
        pair.expected_psn = pair.expected_psn.wrapping_add(1);
        pair.unacknowledged += 1;
        let due = pair.unacknowledged >= self.parameters.ack_coalescing;
        if !due && packet.flags & LAST == 0 {
            return;
        }
        pair.unacknowledged = 0;
        let bytes = wire::RC_ACK;
        let ack = Packet {
            next: NIL,
            // The request's SL carries its acknowledgement (IBA vol. 1, 9.4).
            dlid: packet.slid,
            slid: packet.dlid,
            source: self.ports[port].node,
            bytes: bytes as u16,
            payload: 0,
            credits: wire::credits(bytes) as u16,
            flags: ACK,
            born: self.now,
            route: UNROUTED,
            hint: self.forwarder.hint(packet.slid),
            tail: 0,
            ..*packet
        };
        let lane = self.addressing.lane(packet.sl);
        let rank = ack.source as usize;
        let id = self.admit(ack);
        self.adapters[rank].acks[usize::from(lane.value())].push_back(id);
        self.adapters[rank].busy_lanes |= 1 << lane.value();
        self.dirty.push(port);
    }

    /// The source's half: the window opens, messages complete.
    fn acknowledged(&mut self, port: u32, packet: &Packet) {
        let rank = self.ports[port].node;
        let pair = &mut self.pairs[packet.queue_pair as usize];
        pair.acknowledged = packet.psn.wrapping_add(1);
        let (acknowledged, queue) = (pair.acknowledged, pair.queue);
        while let Some((psn, handle)) = self.pairs[packet.queue_pair as usize].waiting.front() {
            if acknowledged.wrapping_sub(*psn) > u32::MAX / 2 {
                break;
            }
            let handle = *handle;
            self.pairs[packet.queue_pair as usize].waiting.pop_front();
            self.finish_operation(rank, handle, self.now);
        }
        // A queue that has emptied since may serve another pair by now; then this does nothing.
        let head = self.queues[queue as usize].head;
        if head != NIL && self.messages[head as usize].queue_pair == packet.queue_pair {
            self.activate(rank as usize, queue);
        }
        self.dirty.push(port);
    }

    /// The lane a service level takes on the link to the switch.
    pub(crate) fn first_lane(&self, sl: u8) -> VirtualLane {
        self.addressing.lane(sl)
    }
}
