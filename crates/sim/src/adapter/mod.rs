//! Channel adapters: messages become packets, queue pairs take turns, ACKs go ahead of data.
//!
//! A connection has two halves, each at its end: the sender's [`QueuePair`] and the receiver's
//! [`Receiver`]. What one half has to know of the other travels in packets.

mod backlog;
mod injection;
mod memory;
mod message;
mod posted;
mod queue_pair;
mod receiving;
mod saved;

use crate::AdapterQueueing;
use crate::addressing::Addressing;
use crate::list::List;
use crate::model::{FlowKey, Governed, Model, Plan, QueueRank, Reactors};
use crate::network::NetworkOf;
use crate::packet::{
    Carried, Envelope as Letter, EnvelopeIndex, PacketIndex, QueuePairIndex, READ, RELIABLE,
    RESPONSE, Reader, ReceiverIndex, Waiter,
};
use crate::port::PortIndex;
use crate::queue::{DUE, Kind};
use crate::records::{Records, Slab, index, room_for};
use backlog::Backlog;
use clearlane_ib::{LinkRate, ServiceLevel, wire};
use clearlane_ranks::Envelope;
use clearlane_workload::Transport;
use memory::Hosts;
pub(crate) use message::Post;
use message::{DIVIDED, Message, MessageIndex, TRACKED};
use posted::Overtaking;
use queue_pair::{QueueKey, QueuePair, QueuePairs, RESPONSES, Receiver};
use rustc_hash::FxHashMap;
pub(crate) use saved::{NumberedKey, SavedAdapter, SavedMemory, SavedQueue, SavedReceiver};
use std::collections::BTreeMap;
use std::sync::Arc;

index!(
    /// An adapter's place among those of the partition.
    SlotIndex
);

/// How messages of a flow group travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupSettings {
    /// RC or UD.
    pub transport: Transport,
    /// A service level that overrides the subnet manager's answer.
    pub sl: Option<ServiceLevel>,
}

impl GroupSettings {
    fn sl_number(&self) -> Option<u8> {
        self.sl.map(ServiceLevel::value)
    }
}

/// What ranks are told: by their place in the partition where they are the ones that know it, by
/// their number in the run where others do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    /// A message has left for good.
    Sent(Waiter),
    /// The head of a two-sided message has come.
    Head(Envelope),
    /// A two-sided message has come whole.
    Arrived(Envelope),
    /// What a rank reads has come.
    Read(Reader),
}

/// One host's adapter.
#[derive(Clone, Copy)]
struct Adapter<const V: usize> {
    /// ACKs and CNPs to be sent, by lane.
    acks: [List<PacketIndex>; V],
    /// Send queues that have something to send, by lane of their head.
    rings: [List<QueuePairIndex>; V],
    /// Send queues waiting for an injection engine.
    line: List<QueuePairIndex>,
    /// Messages not yet ready, ascending; those that overtake stand beside.
    posted: List<MessageIndex>,
    /// When host memory has been read as far as needed for the next packet.
    dma_at: u64,
    /// When the receive buffer is drained.
    drained_at: u64,
    /// The rank.
    rank: u32,
    /// Engines at work.
    engines: u32,
    /// PSN of the next datagram.
    next_psn: u32,
    /// Lanes with an ACK or a queue.
    busy_lanes: u16,
}

impl<const V: usize> Adapter<V> {
    fn idle(rank: u32) -> Self {
        Adapter {
            acks: [List::empty(); V],
            rings: [List::empty(); V],
            line: List::empty(),
            posted: List::empty(),
            dma_at: 0,
            drained_at: 0,
            rank,
            engines: 0,
            next_psn: 0,
            busy_lanes: 0,
        }
    }

    fn settle_lane(&mut self, lane: u8) {
        let at = usize::from(lane) % V;
        let busy = !self.acks[at].is_empty() || !self.rings[at].is_empty();
        self.busy_lanes = self.busy_lanes & !(1 << lane) | u16::from(busy) << lane;
    }
}

/// Bytes of data packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketSize {
    /// Payload of a full one.
    pub(crate) payload_max: u32,
    pub(crate) header: u32,
}

/// What all adapters of a run have in common.
#[derive(Clone, Debug)]
pub(crate) struct AdapterSettings {
    pub(crate) groups: Vec<GroupSettings>,
    /// Of datagrams and of reliable connections.
    pub(crate) packets: [PacketSize; 2],
    pub(crate) dma: Option<LinkRate>,
    pub(crate) drain: Option<LinkRate>,
    /// The memory bus.
    pub(crate) memory: Option<LinkRate>,
    /// Whether adapters have several ports or hosts have a bus: then ports share.
    pub(crate) share: bool,
    pub(crate) injection_engines: Option<u32>,
    pub(crate) outstanding: u32,
    /// RDMA READs that a connection may have under way.
    pub(crate) read_depth: u32,
    pub(crate) ack_coalescing: u32,
    pub(crate) queueing: AdapterQueueing,
    /// Messages that wait on a lane up to which open-loop traffic is posted.
    pub(crate) source_backlog: Option<u32>,
}

impl AdapterSettings {
    #[inline(always)]
    fn packet(&self, reliable: bool) -> PacketSize {
        self.packets[usize::from(reliable)]
    }
}

/// The adapters of a partition.
pub(crate) struct Adapters<M: Model, const V: usize> {
    settings: Arc<AdapterSettings>,
    addressing: Arc<Addressing>,
    forwarder: Arc<M::Forwarder>,
    adapters: Records<SlotIndex, Adapter<V>>,
    hosts: Hosts,
    messages: Slab<MessageIndex, Message>,
    backlog: Backlog,
    /// Messages not yet ready that overtake others.
    overtaking: Overtaking,
    queue_pairs: QueuePairs,
    /// The one queue of each adapter whose messages all wait in line; empty otherwise.
    fifos: Records<SlotIndex, QueuePairIndex>,
    receivers: Records<ReceiverIndex, Receiver>,
    /// RDMA READs under way, by connection; none of those that have none.
    reads: FxHashMap<QueuePairIndex, u32>,
    /// Send queues that keep a gap after a packet, by slot, time and queue.
    paced: BTreeMap<(u32, u64, QueueRank), QueuePairIndex>,
    /// Receivers that senders of other partitions have, by rank and queue pair.
    by_sender: FxHashMap<(u32, u32), ReceiverIndex>,
    /// The number of this partition, and by rank that of its own; empty if there is only one.
    partition: (u32, Arc<Vec<u32>>),
    pub(crate) reactors: M::Reactors,
    /// What ranks are to be told of this event, and the slot of their adapter.
    pub(crate) told: Vec<(u32, Told)>,
}

impl<M: Model, const V: usize> Adapters<M, V> {
    /// The ports of adapters, at rest: the rank of each and its number there.
    pub(crate) fn new(
        settings: Arc<AdapterSettings>,
        addressing: Arc<Addressing>,
        forwarder: Arc<M::Forwarder>,
        slots: &[(u32, u8)],
        partition: (u32, Arc<Vec<u32>>),
        reactors: M::Reactors,
    ) -> Self {
        let mut adapters = room_for(slots.len());
        adapters.extend(slots.iter().map(|(rank, _)| Adapter::idle(*rank)));
        let hosts = if settings.share { Hosts::new(slots) } else { Hosts::default() };
        let mut queue_pairs = QueuePairs::default();
        let mut fifos = Records::default();
        if settings.queueing == AdapterQueueing::SingleFifo {
            for slot in 0..slots.len() as u32 {
                let key = QueueKey { slot, destination: u32::MAX, group: 0, path: 0 };
                fifos.push(queue_pairs.apart(key));
            }
        }
        let backlog = Backlog::new(settings.source_backlog, slots.len(), V);
        Adapters {
            settings,
            backlog,
            addressing,
            forwarder,
            adapters: adapters.into(),
            hosts,
            messages: Slab::default(),
            overtaking: Overtaking::new(),
            queue_pairs,
            fifos,
            receivers: Records::default(),
            reads: FxHashMap::default(),
            paced: BTreeMap::new(),
            by_sender: FxHashMap::default(),
            partition,
            reactors,
            told: Vec::new(),
        }
    }

    /// The rank in a slot.
    #[inline(always)]
    pub(crate) fn rank(&self, slot: u32) -> u32 {
        self.adapters[SlotIndex(slot)].rank
    }

    /// Messages that take memory.
    pub(crate) fn messages_kept(&self) -> u64 {
        self.messages.len() as u64
    }

    /// Adapters whose records may be of use soon.
    #[inline(always)]
    pub(crate) fn prefetch(&self, slot: u32) {
        self.adapters.prefetch::<2>(SlotIndex(slot));
    }

    /// Bytes of what is fetched of send queues and of connections.
    #[inline(always)]
    pub(crate) fn queue_bytes(&self) -> usize {
        self.queue_pairs.len() * size_of::<QueuePair>()
            + self.receivers.len() * size_of::<Receiver>()
    }

    /// Asks for what finds the send queue to a rank, to which a message may soon be posted.
    #[inline(always)]
    pub(crate) fn prefetch_key(&self, slot: u32, destination: u32, group: u16) {
        self.queue_pairs.prefetch_key(QueueKey { slot, destination, group, path: 0 });
    }

    /// Asks for that queue, once what finds it is at hand.
    #[inline(always)]
    pub(crate) fn prefetch_queue(&self, slot: u32, destination: u32, group: u16) {
        self.queue_pairs.prefetch_found(QueueKey { slot, destination, group, path: 0 });
    }

    /// A path there is for one that was asked for.
    pub(crate) fn path(&self, asked: u8) -> u8 {
        self.addressing.path(asked)
    }

    fn lane_of(&self, sl: u8) -> u8 {
        self.addressing.lane(sl).value()
    }

    /// The number of a port among those of all adapters.
    #[inline(always)]
    fn here(&self, slot: u32) -> u32 {
        let rank = self.rank(slot);
        if self.share() { self.addressing.port(rank, self.number(slot)) } else { rank }
    }

    /// That of the destination's port by which a slot sends to it: the one of the same number.
    #[inline(always)]
    fn there(&self, slot: u32, destination: u32) -> u32 {
        match self.share() {
            true => self.addressing.port(destination, self.number(slot)),
            false => destination,
        }
    }

    /// The service level of the way from a slot to a destination.
    #[inline(always)]
    fn sl(&self, slot: u32, destination: u32, path: u8) -> u8 {
        self.addressing.sl(self.here(slot), self.there(slot, destination), path)
    }

    #[inline(always)]
    fn is_reliable(&self, group: u16) -> bool {
        self.settings.groups[usize::from(group)].transport == Transport::Rc
    }

    /// Whether a message of open-loop traffic is left out because its lane is full.
    #[inline(always)]
    pub(crate) fn leaves_out(&mut self, slot: u32, post: &Post) -> bool {
        if !self.backlog.is_bounded() {
            return false;
        }
        let by_hand = self.settings.groups[usize::from(post.group)].sl_number();
        let sl = by_hand.unwrap_or_else(|| self.sl(slot, post.destination, 0));
        let lane = self.lane_of(sl);
        self.backlog.is_full(slot, lane)
    }

    /// Takes a message from a rank at the adapter in a slot, or one of the adapter's own. Returns
    /// in how many stripes it travels.
    #[inline(always)]
    pub(crate) fn post(
        &mut self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        post: &Post,
    ) -> u32 {
        net.totals.messages_posted += 1;
        let path = post.path.unwrap_or(0);
        let sl = match post.sl.or(self.settings.groups[usize::from(post.group)].sl_number()) {
            Some(sl) => sl,
            None => self.sl(slot, post.destination, path),
        };
        if M::Reactors::ON {
            return self.post_controlled(net, slot, port, post, sl);
        }
        self.note_posted(net, post);
        let message = self.message(net, post, sl);
        if post.ready > net.now || self.is_any_ready(net.now, slot) {
            self.post_stripe(net, slot, port, message);
            return 1;
        }
        // What an adapter hears of in this instant, it hears of before its program is stepped.
        if self.leaves_at_once(net, slot, port, &message) {
            self.send_at_once(net, slot, port, &message);
            return 1;
        }
        self.backlog.joins(slot, message.lane);
        let id = self.messages.insert(message);
        self.enqueue(net.now, slot, id);
        self.look(net, slot, port);
        1
    }

    /// Takes a message that mechanisms may divide.
    fn post_controlled(
        &mut self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        post: &Post,
        sl: u8,
    ) -> u32 {
        let rank = self.rank(slot);
        let (destination, group) = (post.destination, post.group);
        let key = |path, sl| FlowKey { source: rank, destination, group, path, sl };
        // A path asked for is taken.
        let plan = match post.path {
            None => self.reactors.plan(net.now, slot, key(0, sl), post.bytes, post.waiter),
            Some(_) => None,
        };
        let Some(Plan { stripes, whole, number }) = plan else {
            self.note_posted(net, post);
            let responses = post.is_response();
            let key = key(post.path.unwrap_or(0), sl);
            let queue_pair = self.governed(net.now, slot, key, responses);
            let message = Message { queue_pair, ..self.message(net, post, sl) };
            self.post_stripe(net, slot, port, message);
            return 1;
        };
        let by_hand = post.sl.is_some() || self.settings.groups[usize::from(group)].sl.is_some();
        for (at, stripe) in stripes.iter().enumerate() {
            let path = stripe.path;
            let sl = if by_hand { sl } else { self.sl(slot, destination, path) };
            let ready = post.ready + at as u64 * post.stripe_overhead;
            let part = Post { bytes: stripe.bytes, ready, waiter: None, path: Some(path), ..*post };
            self.note_posted(net, &part);
            let queue_pair = self.governed(net.now, slot, key(path, sl), post.is_response());
            let stripes = stripes.len() as u32;
            let envelope = net.envelopes.insert(Letter { what: post.what, number, stripes });
            let data = Post { what: Carried::Data, ..part };
            let message = self.message(net, &data, sl);
            let flags = message.flags | post.flags() | DIVIDED;
            let message = Message { queue_pair, envelope, token: whole, flags, ..message };
            self.post_stripe(net, slot, port, message);
        }
        stripes.len() as u32
    }

    /// The connection or send queue of a flow that mechanisms know, or its queue of `responses`:
    /// one reactor governs both, as both are one queue pair.
    fn governed(&mut self, now: u64, slot: u32, key: FlowKey, responses: bool) -> QueuePairIndex {
        let FlowKey { destination, group, path, .. } = key;
        let queue = self.queue_pair(QueueKey { slot, destination, group, path });
        if self.queue_pairs[queue].governed == Governed::NONE {
            let governed = self.reactors.flow(now, slot, key);
            self.queue_pairs[queue].governed = governed;
            self.heard(now, queue);
        }
        if !responses {
            return queue;
        }
        let path = path | RESPONSES;
        let twin = self.queue_pair(QueueKey { slot, destination, group, path });
        self.queue_pairs[twin].governed = self.queue_pairs[queue].governed;
        let unlimited = self.queue_pairs[queue].is_unlimited();
        self.queue_pairs[twin].set_unlimited(unlimited);
        self.queue_pairs[queue].set_has_twin();
        self.queue_pairs[twin].set_has_twin();
        twin
    }

    #[inline(always)]
    fn message(&self, net: &mut NetworkOf<M, V>, post: &Post, sl: u8) -> Message {
        let envelope = match post.what {
            Carried::Data => EnvelopeIndex::NIL,
            // IBA vol. 1, 9.2.1: of datagrams there is no such operation.
            Carried::ReadRequest { .. } if !self.is_reliable(post.group) => {
                panic!("group {} of an RDMA READ has datagrams; give it connections", post.group)
            }
            what => net.envelopes.insert(Letter { what, number: 0, stripes: 0 }),
        };
        let reliable = if self.is_reliable(post.group) { RELIABLE } else { 0 };
        let tracked = if post.waiter.is_some() { TRACKED } else { 0 };
        let Waiter { rank, token } = post.waiter.unwrap_or(Waiter { rank: 0, token: 0 });
        Message {
            next: MessageIndex::NIL,
            destination: post.destination,
            born: post.born,
            bytes: post.bytes,
            sent: post.ready,
            queue_pair: QueuePairIndex::NIL,
            envelope,
            rank,
            token,
            end_psn: 0,
            group: post.group,
            flags: post.flags() | reliable | tracked,
            sl,
            path: post.path.unwrap_or(0),
            gap: post.gap,
            lane: self.lane_of(sl),
        }
    }

    #[inline(always)]
    fn note_posted(&self, net: &mut NetworkOf<M, V>, post: &Post) {
        if !post.is_control() {
            let reliable = self.is_reliable(post.group);
            let PacketSize { payload_max, header } = self.settings.packet(reliable);
            let packets = post.bytes.div_ceil(payload_max.into()).max(1);
            let bytes = post.bytes + packets * u64::from(header);
            net.recorder.on_posted(post.born, post.group, bytes);
        }
    }

    /// Takes a message that is ready into its send queue.
    fn enqueue(&mut self, now: u64, slot: u32, id: MessageIndex) {
        self.messages[id].sent = 0;
        let &Message { destination, group, path, flags, .. } = &self.messages[id];
        let path = if flags & RESPONSE != 0 { path | RESPONSES } else { path };
        let message = &self.messages[id];
        let fifo = self.settings.queueing == AdapterQueueing::SingleFifo;
        let mut queue = message.queue_pair;
        if queue == QueuePairIndex::NIL && (message.is_reliable() || !fifo) {
            queue = self.queue_pair(QueueKey { slot, destination, group, path });
            self.messages[id].queue_pair = queue;
        }
        if fifo {
            queue = self.fifos[SlotIndex(slot)];
        }
        self.queue_pairs[queue].messages.push_back(self.messages.all_mut(), id);
        self.activate(now, slot, queue);
    }

    #[inline(always)]
    fn queue_pair(&mut self, key: QueueKey) -> QueuePairIndex {
        let (queue, is_new) = self.queue_pairs.of(key);
        if is_new && (self.is_reliable(key.group) || key.path & RESPONSES != 0) {
            let (here, partition_of) = &self.partition;
            let there = partition_of.get(key.destination as usize);
            if there.is_none_or(|there| there == here) {
                // Both ends are of this partition: the halves know each other from the beginning.
                self.queue_pairs[queue].receiver = new_receiver(&mut self.receivers);
            }
        }
        queue
    }

    /// Whether the window of a message's queue pair lets another packet out.
    fn window_open(&self, message: &Message) -> bool {
        !message.is_reliable() || message.flags & RESPONSE != 0 || {
            let pair = &self.queue_pairs[message.queue_pair];
            pair.next_psn.wrapping_sub(pair.acknowledged) < self.settings.outstanding
                && (message.flags & READ == 0
                    || message.sent > 0
                    || self.may_read(message.queue_pair))
        }
    }

    /// Whether a connection may have one RDMA READ more under way. Apart, because few ask.
    #[inline(never)]
    fn may_read(&self, queue: QueuePairIndex) -> bool {
        self.reads.get(&queue).is_none_or(|reads| *reads < self.settings.read_depth)
    }

    /// Something was heard about the flow of a queue: what governs it may have changed its mind.
    fn heard(&mut self, now: u64, queue: QueuePairIndex) {
        let of = &mut self.queue_pairs[queue];
        let unlimited = self.reactors.is_unlimited(now, of.governed);
        of.set_unlimited(unlimited);
        if of.has_twin() {
            let twin = self.queue_pairs.twin(queue);
            self.queue_pairs[twin].set_unlimited(unlimited);
        }
    }

    /// Has a port looked at when a slot that was told about will be due.
    #[inline(always)]
    pub(crate) fn heed(&mut self, net: &mut NetworkOf<M, V>, port: PortIndex) {
        while let Some(time) = self.reactors.take_due() {
            net.schedule(time, port, Kind::Wake, DUE, 0);
        }
    }

    /// An adapter may have something to send that it had not before.
    #[inline(always)]
    fn look(&self, net: &mut NetworkOf<M, V>, slot: u32, port: PortIndex) {
        if self.adapters[SlotIndex(slot)].busy_lanes == 0 {
            return;
        }
        match net.ports[port].free_at {
            free_at if free_at > net.now => net.wake(port, free_at),
            _ => net.touch(port),
        }
    }

    /// Puts a queue with something to send into the ring of its head's lane, or into the line for
    /// an injection engine.
    fn activate(&mut self, now: u64, slot: u32, queue: QueuePairIndex) {
        let record = &self.queue_pairs[queue];
        if record.is_active() || record.messages.is_empty() {
            return;
        }
        let message = &self.messages[record.messages.head];
        if !self.window_open(message) {
            return;
        }
        let (lane, governs) = (message.lane, message.queue_pair);
        if M::Reactors::ON && self.pauses(now, slot, queue, governs) {
            return;
        }
        self.queue_pairs[queue].set_active(true);
        let adapter = &mut self.adapters[SlotIndex(slot)];
        let queues = self.queue_pairs.all_mut();
        if self.settings.injection_engines.is_some_and(|engines| adapter.engines >= engines) {
            adapter.line.push_back(queues, queue);
            return;
        }
        adapter.engines += 1;
        adapter.rings[usize::from(lane) % V].push_back(queues, queue);
        adapter.busy_lanes |= 1 << lane;
    }

    /// Whether the next packet of a queue may not leave yet, because of what governs the flow of
    /// its head; then the queue waits for that time.
    fn pauses(
        &mut self,
        now: u64,
        slot: u32,
        queue: QueuePairIndex,
        governs: QueuePairIndex,
    ) -> bool {
        let of = &self.queue_pairs[governs];
        if of.is_unlimited() {
            return false;
        }
        let (governed, injected_at) = (of.governed, of.injected_at);
        let time = self.reactors.next_injection(governed);
        if time <= now {
            return false;
        }
        let rank = self.queue_pairs[queue].rank();
        self.reactors.pause(slot, queue, injected_at, rank, time);
        self.queue_pairs[queue].set_active(true);
        true
    }

    /// ACKs that wait for their adapter, and data packets that wait for those they overtook: both
    /// are not in the network.
    pub(crate) fn beside_the_network(&self, net: &NetworkOf<M, V>) -> (u64, Vec<PacketIndex>) {
        let lists = self.adapters.iter().flat_map(|adapter| &adapter.acks);
        let is_ack = |id: &PacketIndex| net.packets[*id].flags & crate::packet::ACK != 0;
        let count = |list: &List<PacketIndex>| net.chain(list.head).filter(is_ack).count() as u64;
        let acks = lists.map(count).sum();
        let mut early: Vec<_> =
            self.receivers.iter().flat_map(|one| net.chain(one.early.head)).collect();
        early.extend(self.reactors.early());
        (acks, early)
    }
}

fn new_receiver(receivers: &mut Records<ReceiverIndex, Receiver>) -> ReceiverIndex {
    ReceiverIndex(receivers.push(Receiver::new()) as u32)
}

/// Credits of a packet of so many bytes.
#[inline(always)]
fn credits(bytes: u32) -> u16 {
    wire::credits(bytes) as u16
}
