//! Channel adapters: messages become packets, queue pairs take turns, ACKs go ahead of data.
//!
//! A connection has two halves, each at its end: the sender's [`QueuePair`] and the receiver's
//! [`Receiver`]. What one half has to know of the other travels in packets.

mod injection;
mod receiving;

use crate::AdapterQueueing;
use crate::addressing::Addressing;
use crate::list::{Linked, List};
use crate::model::{FlowKey, Forwarder, Model, Observer, Plan, QueueRank, Reactors};
use crate::network::NetworkOf;
use crate::packet::{FlowIndex, PacketIndex, QueuePairIndex, ReceiverIndex, TWO_SIDED};
use crate::port::PortIndex;
use crate::records::{Records, Slab, index, room_for};
use clearlane_ib::{LinkRate, ServiceLevel, wire};
use clearlane_workload::{Handle, Transport};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

index!(
    /// A message at its sender.
    MessageIndex
);
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

/// A message that a program posts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Post {
    /// When.
    pub(crate) born: u64,
    /// When its first packet may leave: the software overhead is over.
    pub(crate) ready: u64,
    /// Destination rank, not the sender.
    pub(crate) destination: u32,
    /// Payload, at least 1.
    pub(crate) bytes: u64,
    pub(crate) group: u16,
    /// The sender's handle if it waits for completion.
    pub(crate) handle: Option<Handle>,
    /// What a two-sided message is matched by.
    pub(crate) tag: Option<u32>,
}

/// What programs are told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    /// An operation of the rank in a slot is complete.
    Finished { slot: u32, handle: Handle },
    /// A two-sided message is complete there.
    Arrived { slot: u32, source: u32, tag: u32 },
}

impl Told {
    /// Whose program it is.
    pub(crate) const fn slot(self) -> u32 {
        match self {
            Told::Finished { slot, .. } | Told::Arrived { slot, .. } => slot,
        }
    }
}

/// A message at its sender, from being posted to its last packet leaving, or, if somebody waits
/// for it, being acknowledged.
#[derive(Clone, Copy, Debug)]
struct Message {
    /// The next message of the same send queue, of those posted and not yet ready, or of those
    /// waiting for their ACK.
    next: MessageIndex,
    post: Post,
    /// Payload that has left.
    sent: u64,
    /// Its reliable connection, else `NIL`.
    queue_pair: QueuePairIndex,
    dlid: u32,
    /// Flow of the mechanisms; `NIL` without.
    flow: FlowIndex,
    /// The message this is a stripe of, where a mechanism chooses paths.
    stripe: Option<StripeOf>,
    /// PSN after its last packet, once that has left.
    end_psn: u32,
    sl: u8,
    /// Path it takes: LID offset of both ends.
    path: u8,
    /// Lane on the link to the switch.
    lane: u8,
}

/// What a stripe belongs to.
#[derive(Clone, Copy, Debug)]
struct StripeOf {
    /// What the sender knows the message by.
    whole: u32,
    /// Its number among those with the same ends.
    number: u32,
    /// How many stripes it has.
    stripes: u32,
}

impl Linked<MessageIndex> for Message {
    #[inline(always)]
    fn next(&mut self) -> &mut MessageIndex {
        &mut self.next
    }
}

/// What has a send queue or a queue pair of its own: a source, a destination, a flow group and a
/// path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct QueueKey {
    slot: u32,
    /// The largest number for the one queue of an adapter whose messages all wait in line.
    destination: u32,
    group: u16,
    /// A reliable connection for each path.
    path: u8,
}

/// A send queue; of a reliable connection the sender's half.
#[derive(Clone, Copy, Debug)]
struct QueuePair {
    /// The next queue of the ring or line it is in.
    next: QueuePairIndex,
    /// Messages waiting their turn.
    messages: List<MessageIndex>,
    key: QueueKey,
    /// True while the queue is in a ring, in the line for an engine, or paused by a mechanism.
    active: bool,
    /// PSN of the next packet.
    next_psn: u32,
    /// Packets acknowledged.
    acknowledged: u32,
    /// The other half; `NIL` until it is known.
    receiver: ReceiverIndex,
    /// Flow of the mechanisms; `NIL` without.
    flow: FlowIndex,
    /// Messages that have left and that the sender waits for.
    waiting: List<MessageIndex>,
}

impl QueuePair {
    fn new(key: QueueKey, flow: FlowIndex) -> Self {
        QueuePair {
            next: QueuePairIndex::NIL,
            messages: List::empty(),
            key,
            active: false,
            next_psn: 0,
            acknowledged: 0,
            receiver: ReceiverIndex::NIL,
            flow,
            waiting: List::empty(),
        }
    }

    /// What orders it among the queues of its adapter.
    fn rank(&self) -> QueueRank {
        (self.key.destination, self.key.group, self.key.path)
    }
}

impl Linked<QueuePairIndex> for QueuePair {
    #[inline(always)]
    fn next(&mut self) -> &mut QueuePairIndex {
        &mut self.next
    }
}

/// The receiver's half of a reliable connection.
#[derive(Clone, Copy, Debug)]
struct Receiver {
    /// PSN expected next.
    expected_psn: u32,
    /// Packets received since the last ACK.
    unacknowledged: u32,
    /// Packets that overtook the one expected, in no order. Only adaptive routing lets them.
    early: List<PacketIndex>,
    /// The BECN flags of the next ACK.
    becn: u8,
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
    /// Messages not yet ready: software overhead.
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

/// What all adapters of a run have in common.
#[derive(Clone, Debug)]
pub(crate) struct AdapterSettings {
    pub(crate) groups: Vec<GroupSettings>,
    pub(crate) mtu: u32,
    /// Header bytes of data on reliable connections and in datagrams.
    pub(crate) headers: [u32; 2],
    pub(crate) dma: Option<LinkRate>,
    pub(crate) drain: Option<LinkRate>,
    pub(crate) injection_engines: Option<u32>,
    pub(crate) outstanding: u32,
    pub(crate) ack_coalescing: u32,
    pub(crate) queueing: AdapterQueueing,
}

impl AdapterSettings {
    #[inline(always)]
    fn header(&self, reliable: bool) -> u32 {
        self.headers[usize::from(!reliable)]
    }
}

/// The adapters of a partition.
pub(crate) struct Adapters<M: Model, const V: usize> {
    settings: Arc<AdapterSettings>,
    addressing: Arc<Addressing>,
    forwarder: Arc<M::Forwarder>,
    adapters: Records<SlotIndex, Adapter<V>>,
    messages: Slab<MessageIndex, Message>,
    queue_pairs: Slab<QueuePairIndex, QueuePair>,
    by_key: FxHashMap<QueueKey, QueuePairIndex>,
    /// The one queue of each adapter whose messages all wait in line; empty otherwise.
    fifos: Records<SlotIndex, QueuePairIndex>,
    receivers: Records<ReceiverIndex, Receiver>,
    /// Receivers that senders of other partitions have, by rank and queue pair.
    by_sender: FxHashMap<(u32, u32), ReceiverIndex>,
    /// By rank: whether it is in this partition; empty if all are.
    is_here: Arc<Vec<bool>>,
    pub(crate) reactors: M::Reactors,
    /// What programs are to be told of this event.
    pub(crate) told: Vec<Told>,
}

impl<M: Model, const V: usize> Adapters<M, V> {
    /// The adapters of these ranks, at rest.
    pub(crate) fn new(
        settings: Arc<AdapterSettings>,
        addressing: Arc<Addressing>,
        forwarder: Arc<M::Forwarder>,
        ranks: &[u32],
        is_here: Arc<Vec<bool>>,
        reactors: M::Reactors,
    ) -> Self {
        let mut adapters = room_for(ranks.len());
        adapters.extend(ranks.iter().map(|rank| Adapter::idle(*rank)));
        let mut queue_pairs = Slab::default();
        let mut fifos = Records::default();
        if settings.queueing == AdapterQueueing::SingleFifo {
            for slot in 0..ranks.len() as u32 {
                let key = QueueKey { slot, destination: u32::MAX, group: 0, path: 0 };
                fifos.push(queue_pairs.insert(QueuePair::new(key, FlowIndex::NIL)));
            }
        }
        Adapters {
            settings,
            addressing,
            forwarder,
            adapters: adapters.into(),
            messages: Slab::default(),
            queue_pairs,
            by_key: FxHashMap::default(),
            fifos,
            receivers: Records::default(),
            by_sender: FxHashMap::default(),
            is_here,
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

    fn lane_of(&self, sl: u8) -> u8 {
        self.addressing.lane(sl).value()
    }

    #[inline(always)]
    fn is_reliable(&self, group: u16) -> bool {
        self.settings.groups[usize::from(group)].transport == Transport::Rc
    }

    /// Takes a message from the program in a slot.
    #[inline(always)]
    pub(crate) fn post(
        &mut self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        post: Post,
    ) {
        net.totals.messages_posted += 1;
        let settings = self.settings.groups[usize::from(post.group)];
        let rank = self.rank(slot);
        let sl = match settings.sl {
            Some(sl) => sl.value(),
            None => self.addressing.sl(rank, post.destination, 0),
        };
        if !M::Reactors::ON {
            self.note_posted(net, &post);
            // What an adapter hears of in this instant, it hears of before its program is stepped.
            let first = self.adapters[SlotIndex(slot)].posted.is_empty() && post.ready <= net.now;
            if first && self.leaves_at_once(net, slot, port, &post, sl) {
                return self.send_at_once(net, slot, port, &post, sl);
            }
            return self.post_stripe(net, slot, port, self.message(&post, sl, FlowIndex::NIL));
        }
        self.post_controlled(net, slot, port, post, sl);
    }

    /// Takes a message that mechanisms may divide.
    fn post_controlled(
        &mut self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        post: Post,
        sl: u8,
    ) {
        let rank = self.rank(slot);
        let (destination, group) = (post.destination, post.group);
        let key = |path, sl| FlowKey { source: rank, destination, group, path, sl };
        let plan = self.reactors.plan(net.now, slot, key(0, sl), post.bytes, post.handle);
        let Some(Plan { stripes, whole, number }) = plan else {
            self.note_posted(net, &post);
            let flow = self.reactors.flow(net.now, slot, key(0, sl));
            return self.post_stripe(net, slot, port, self.message(&post, sl, flow));
        };
        let by_hand = self.settings.groups[usize::from(group)].sl.is_some();
        for stripe in &stripes {
            let path = stripe.path;
            let sl = if by_hand { sl } else { self.addressing.sl(rank, destination, path) };
            let post = Post { bytes: stripe.bytes, ..post };
            self.note_posted(net, &post);
            let flow = self.reactors.flow(net.now, slot, key(path, sl));
            let message = self.message(&post, sl, flow);
            let stripe = StripeOf { whole, number, stripes: stripes.len() as u32 };
            let dlid = message.dlid + u32::from(path);
            let message = Message { dlid, path, stripe: Some(stripe), ..message };
            self.post_stripe(net, slot, port, message);
        }
    }

    fn message(&self, post: &Post, sl: u8, flow: FlowIndex) -> Message {
        Message {
            next: MessageIndex::NIL,
            post: *post,
            sent: 0,
            queue_pair: QueuePairIndex::NIL,
            dlid: self.addressing.lid(post.destination),
            flow,
            stripe: None,
            end_psn: 0,
            sl,
            path: 0,
            lane: self.lane_of(sl),
        }
    }

    #[inline(always)]
    fn note_posted(&self, net: &mut NetworkOf<M, V>, post: &Post) {
        if M::Observer::ON {
            let header = u64::from(self.settings.header(self.is_reliable(post.group)));
            let packets = post.bytes.div_ceil(u64::from(self.settings.mtu));
            net.observer.on_posted(post.born, post.group, post.bytes + packets * header);
        }
    }

    /// Has a message, or one of its stripes, wait for the software overhead to be over.
    fn post_stripe(
        &mut self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        message: Message,
    ) {
        let ready = message.post.ready;
        let id = self.messages.insert(message);
        self.adapters[SlotIndex(slot)].posted.push_back(self.messages.all_mut(), id);
        if ready <= net.now {
            net.touch(port);
        } else {
            net.wake(port, ready);
        }
    }

    /// Takes a message that is ready into its send queue.
    fn enqueue(&mut self, net: &mut NetworkOf<M, V>, slot: u32, port: PortIndex, id: MessageIndex) {
        let message = &self.messages[id];
        let (Post { destination, group, .. }, path) = (message.post, message.path);
        let flow = message.flow;
        let key = QueueKey { slot, destination, group, path };
        let fifo = self.settings.queueing == AdapterQueueing::SingleFifo;
        let reliable = self.is_reliable(group);
        let mut queue = QueuePairIndex::NIL;
        if reliable || !fifo {
            queue = self.queue_pair(key, flow, reliable);
        }
        if reliable {
            self.messages[id].queue_pair = queue;
        }
        if fifo {
            queue = self.fifos[SlotIndex(slot)];
        }
        self.queue_pairs[queue].messages.push_back(self.messages.all_mut(), id);
        self.activate(net, slot, port, queue);
    }

    fn queue_pair(&mut self, key: QueueKey, flow: FlowIndex, reliable: bool) -> QueuePairIndex {
        let entry = match self.by_key.entry(key) {
            Entry::Occupied(queue) => return *queue.get(),
            Entry::Vacant(entry) => entry,
        };
        let mut queue_pair = QueuePair::new(key, flow);
        let is_here = |rank: u32| self.is_here.get(rank as usize).is_none_or(|here| *here);
        if reliable && is_here(key.destination) {
            // Both ends are of this partition: the halves know each other from the beginning.
            queue_pair.receiver = new_receiver(&mut self.receivers);
        }
        *entry.insert(self.queue_pairs.insert(queue_pair))
    }

    /// Whether the window of a message's queue pair lets another packet out.
    fn window_open(&self, message: &Message) -> bool {
        message.queue_pair == QueuePairIndex::NIL || {
            let pair = &self.queue_pairs[message.queue_pair];
            pair.next_psn.wrapping_sub(pair.acknowledged) < self.settings.outstanding
        }
    }

    /// Puts a queue with something to send into the ring of its head's lane, or into the line for
    /// an injection engine.
    fn activate(
        &mut self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        queue: QueuePairIndex,
    ) {
        let record = &self.queue_pairs[queue];
        if record.active || record.messages.is_empty() {
            return;
        }
        let message = &self.messages[record.messages.head];
        if !self.window_open(message) {
            return;
        }
        let (lane, flow) = (message.lane, message.flow);
        if M::Reactors::ON && self.pauses(net, slot, port, queue, flow) {
            return;
        }
        self.queue_pairs[queue].active = true;
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

    /// Whether the next packet of a flow may not leave yet; then its queue waits for that time.
    fn pauses(
        &mut self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        queue: QueuePairIndex,
        flow: FlowIndex,
    ) -> bool {
        let time = self.reactors.next_injection(flow);
        if time <= net.now {
            return false;
        }
        let rank = self.queue_pairs[queue].rank();
        self.reactors.pause(slot, queue, flow, rank, time);
        self.queue_pairs[queue].active = true;
        net.wake(port, time);
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
    let fresh = Receiver { expected_psn: 0, unacknowledged: 0, early: List::empty(), becn: 0 };
    ReceiverIndex(receivers.push(fresh) as u32)
}

/// The flags of a message's packets besides the transport's.
#[inline(always)]
const fn two_sided(tag: Option<u32>) -> u8 {
    if tag.is_some() { TWO_SIDED } else { 0 }
}

/// Credits of a packet of so many bytes.
#[inline(always)]
fn credits(bytes: u32) -> u16 {
    wire::credits(bytes) as u16
}

/// What packets to a LID carry for the forwarder.
#[inline(always)]
fn hint<F: Forwarder>(forwarder: &F, dlid: u32) -> u64 {
    forwarder.hint(dlid)
}
