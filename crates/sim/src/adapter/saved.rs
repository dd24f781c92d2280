//! Adapters as they are kept: send queues with their messages and the receivers at their other
//! ends, what ports are about to send, and the memories they share.

use super::memory::HostIndex;
use super::message::{DIVIDED, Message, MessageIndex, TRACKED};
use super::queue_pair::{QueueKey, RESPONSES, Receiver};
use super::{Adapters, SlotIndex, new_receiver};
use crate::list::List;
use crate::model::{Governed, Model, Reactors};
use crate::network::NetworkOf;
use crate::packet::{
    Flags, FlowIndex, PacketIndex, QueuePairIndex, ReactorIndex, ReceiverIndex, UNROUTED,
};
use crate::saved::{HostLids, MESSAGE_MAX, Parts, Placed, SavedMessage, SavedPacket, Whole, holds};
use serde::{Deserialize, Serialize};

/// What orders send queues of a run: slot, destination, group, path; and the number here.
pub(crate) type NumberedKey = (u32, u32, u16, u8, u32);

/// A send queue, and of a connection the receiver's half.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedQueue {
    pub(crate) slot: u32,
    /// The largest number for the one queue of a port whose messages all wait in line.
    pub(crate) destination: u32,
    group: u16,
    path: u8,
    flags: u8,
    next_psn: u32,
    acknowledged: u32,
    /// Flow, reactor and the pair it knows the flow by.
    governed: Option<(u32, Option<u32>, u32)>,
    injected_at: u64,
    messages: Vec<SavedMessage>,
    waiting: Vec<SavedMessage>,
    /// RDMA READs under way.
    reads: u32,
    pub(crate) receiver: Option<SavedReceiver>,
}

impl SavedQueue {
    /// What all queues of a run are in the order of: no two have the same.
    pub(crate) fn key(&self) -> (u32, u32, u16, u8) {
        (self.slot, self.destination, self.group, self.path)
    }
}

/// The receiver's half of a connection.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedReceiver {
    expected_psn: u32,
    unacknowledged: u32,
    becn: Flags,
    early: Vec<SavedPacket>,
}

/// A port of an adapter.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedAdapter {
    /// By lane.
    acks: Vec<Vec<SavedPacket>>,
    rings: Vec<Vec<u32>>,
    line: Vec<u32>,
    posted: Vec<SavedMessage>,
    /// Queues that keep a gap, and until when.
    paced: Vec<(u64, u32)>,
    dma_at: u64,
    drained_at: u64,
    engines: u32,
    next_psn: u32,
}

/// What the ports of a host share.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedMemory {
    free_at: u64,
    writes: Vec<(u8, SavedPacket)>,
    reads: u8,
    next: u8,
    has_written: bool,
}

impl<M: Model, const V: usize> Adapters<M, V> {
    /// By host, its partition; empty if there is one.
    pub(crate) fn partition_of(&self) -> &[u32] {
        &self.partition.1
    }

    /// The LIDs of all hosts.
    pub(crate) fn host_lids(&self) -> HostLids {
        self.addressing.host_lids()
    }

    /// How many ports of adapters there are.
    pub(crate) fn slots(&self) -> u32 {
        self.adapters.len() as u32
    }

    /// How many hosts.
    pub(crate) fn hosts(&self) -> u32 {
        match self.share() {
            true => self.hosts.memories.len() as u32,
            false => self.slots(),
        }
    }

    /// All send queues.
    pub(crate) fn queue_keys(&self) -> Vec<NumberedKey> {
        let key = |queue: QueuePairIndex| {
            let QueueKey { slot, destination, group, path } = self.queue_pairs[queue].key();
            (slot, destination, group, path, queue.0)
        };
        self.queue_pairs.live().map(key).collect()
    }

    /// A send queue, but for its receiver's half.
    pub(crate) fn save_queue(
        &self,
        net: &NetworkOf<M, V>,
        queue: u32,
        whole: &Whole<'_>,
        rank: &dyn Fn(u32) -> u32,
    ) -> SavedQueue {
        let index = QueuePairIndex(queue);
        let of = &self.queue_pairs[index];
        let QueueKey { slot, destination, group, path } = of.key();
        let Governed { flow, by, pair } = of.governed;
        let by = (by != ReactorIndex::NIL).then(|| whole.first.reactor + by.0);
        let messages = |list: &List<MessageIndex>| self.save_messages(net, list, whole, rank);
        SavedQueue {
            slot: whole.first.slot + slot,
            destination,
            group,
            path,
            flags: of.flags(),
            next_psn: of.next_psn,
            acknowledged: of.acknowledged,
            governed: (flow != FlowIndex::NIL).then(|| (whole.first.flow + flow.0, by, pair)),
            injected_at: of.injected_at,
            messages: messages(&of.messages),
            waiting: messages(&of.waiting),
            reads: self.reads.get(&index).copied().unwrap_or(0),
            receiver: None,
        }
    }

    /// The receiver's half, here, of the connection that a queue of a host elsewhere, or one whose
    /// receiver is known, is the sender's half of.
    pub(crate) fn save_receiver(
        &self,
        net: &NetworkOf<M, V>,
        (source, queue, known): (u32, u32, ReceiverIndex),
        whole: &Whole<'_>,
    ) -> Option<SavedReceiver> {
        let index = match known {
            ReceiverIndex::NIL => *self.by_sender.get(&(source, queue))?,
            known => known,
        };
        let of = &self.receivers[index];
        Some(SavedReceiver {
            expected_psn: of.expected_psn,
            unacknowledged: of.unacknowledged,
            becn: of.becn,
            early: net.chain(of.early.head).map(|id| net.save_packet(id, whole)).collect(),
        })
    }

    /// What a queue knows of its receiver's half.
    pub(crate) fn receiver_of(&self, queue: u32) -> ReceiverIndex {
        self.queue_pairs[QueuePairIndex(queue)].receiver
    }

    fn save_messages(
        &self,
        net: &NetworkOf<M, V>,
        list: &List<MessageIndex>,
        whole: &Whole<'_>,
        rank: &dyn Fn(u32) -> u32,
    ) -> Vec<SavedMessage> {
        let all = self.messages_of(list);
        all.map(|id| self.save_message(net, &self.messages[id], whole, rank)).collect()
    }

    /// The messages of a list.
    pub(super) fn messages_of(
        &self,
        list: &List<MessageIndex>,
    ) -> impl Iterator<Item = MessageIndex> {
        let some = |id: MessageIndex| (id != MessageIndex::NIL).then_some(id);
        std::iter::successors(some(list.head), move |id| some(self.messages[*id].next))
    }

    fn save_message(
        &self,
        net: &NetworkOf<M, V>,
        message: &Message,
        whole: &Whole<'_>,
        rank: &dyn Fn(u32) -> u32,
    ) -> SavedMessage {
        let queue = message.queue_pair;
        let here = &whole.queues[self.partition.0 as usize];
        let tracked = message.flags & TRACKED != 0;
        SavedMessage {
            destination: message.destination,
            born: message.born,
            bytes: message.bytes,
            sent: message.sent,
            queue: (queue != QueuePairIndex::NIL).then(|| here[queue.0 as usize]),
            letter: net.save_letter(message.envelope, whole),
            rank: if tracked { rank(message.rank) } else { 0 },
            token: match message.flags & DIVIDED {
                0 => message.token,
                _ => message.token + whole.first.whole,
            },
            end_psn: message.end_psn,
            group: message.group,
            flags: message.flags,
            sl: message.sl,
            path: message.path,
            gap: message.gap,
        }
    }

    /// All ports of adapters.
    pub(crate) fn save_adapters(
        &self,
        net: &NetworkOf<M, V>,
        whole: &Whole<'_>,
        rank: &dyn Fn(u32) -> u32,
    ) -> Vec<SavedAdapter> {
        let numbers = &whole.queues[self.partition.0 as usize];
        let queues = |list: &List<QueuePairIndex>| {
            let some = |id: QueuePairIndex| (id != QueuePairIndex::NIL).then_some(id);
            let all = std::iter::successors(some(list.head), |id| some(self.queue_pairs[*id].next));
            all.map(|id| numbers[id.0 as usize]).collect::<Vec<u32>>()
        };
        let posted = |slot: u32| {
            let all = self.all_posted(slot).into_iter();
            all.map(|id| self.save_message(net, &self.messages[id], whole, rank)).collect()
        };
        let save = |slot: u32| {
            let of = &self.adapters[SlotIndex(slot)];
            let acks = |list: &List<PacketIndex>| {
                net.chain(list.head).map(|id| net.save_packet(id, whole)).collect()
            };
            let of_slot = (slot, 0, (0, 0, 0))..(slot + 1, 0, (0, 0, 0));
            let paced = self.paced.range(of_slot);
            SavedAdapter {
                acks: of.acks.iter().map(acks).collect(),
                rings: of.rings.iter().map(queues).collect(),
                line: queues(&of.line),
                posted: posted(slot),
                paced: paced.map(|(key, queue)| (key.1, numbers[queue.0 as usize])).collect(),
                dma_at: of.dma_at,
                drained_at: of.drained_at,
                engines: of.engines,
                next_psn: of.next_psn,
            }
        };
        (0..self.slots()).map(save).collect()
    }

    /// What the ports of hosts share; nothing where they share nothing.
    pub(crate) fn save_memories(
        &self,
        net: &NetworkOf<M, V>,
        whole: &Whole<'_>,
    ) -> Vec<SavedMemory> {
        let save = |of: &super::memory::Memory| SavedMemory {
            free_at: of.free_at,
            writes: of
                .writes
                .iter()
                .map(|(slot, id)| ((slot - of.first) as u8, net.save_packet(*id, whole)))
                .collect(),
            reads: of.reads,
            next: of.next,
            has_written: of.has_written,
        };
        self.hosts.memories.iter().map(save).collect()
    }

    /// A send queue at a slot here, empty as yet.
    pub(crate) fn load_queue(&mut self, saved: &SavedQueue, slot: u32) -> Option<QueuePairIndex> {
        let SavedQueue { destination, group, path, .. } = *saved;
        holds(usize::from(group) < self.settings.groups.len())?;
        let queue = match destination {
            u32::MAX => *self.fifos.iter().nth(slot as usize)?,
            _ => {
                let (queue, is_new) =
                    self.queue_pairs.of(QueueKey { slot, destination, group, path });
                holds(is_new)?;
                queue
            }
        };
        let of = &mut self.queue_pairs[queue];
        of.set_flags(saved.flags)?;
        (of.next_psn, of.acknowledged) = (saved.next_psn, saved.acknowledged);
        of.injected_at = saved.injected_at;
        if saved.reads > 0 {
            self.reads.insert(queue, saved.reads);
        }
        Some(queue)
    }

    /// Whether a queue is the sender's half of a connection.
    pub(crate) fn is_connection(&self, saved: &SavedQueue) -> bool {
        let responds = saved.path & RESPONSES != 0;
        saved.destination != u32::MAX && (responds || self.is_reliable(saved.group))
    }

    /// The receiver's half, here, of a connection.
    pub(crate) fn load_receiver(&mut self, saved: &SavedQueue) -> ReceiverIndex {
        let index = new_receiver(&mut self.receivers);
        if let Some(of) = &saved.receiver {
            let early = List::empty();
            let SavedReceiver { expected_psn, unacknowledged, becn, .. } = *of;
            self.receivers[index] = Receiver { expected_psn, unacknowledged, early, becn };
        }
        index
    }

    /// A queue here knows where its receiver's half is, and what governs its flow.
    pub(crate) fn load_governed(
        &mut self,
        queue: QueuePairIndex,
        saved: &SavedQueue,
        receiver: ReceiverIndex,
        parts: &Parts<'_>,
    ) -> Option<()> {
        let governed = match saved.governed {
            None => Governed::NONE,
            Some((number, by, pair)) => {
                let by = match by {
                    None => ReactorIndex::NIL,
                    Some(by) => parts.reactor(by)?,
                };
                Governed { flow: parts.flow(number)?, by, pair }
            }
        };
        let of = &mut self.queue_pairs[queue];
        (of.receiver, of.governed) = (receiver, governed);
        Some(())
    }

    /// The messages of a queue here.
    pub(crate) fn load_waiting(
        &mut self,
        net: &mut NetworkOf<M, V>,
        queue: QueuePairIndex,
        saved: &SavedQueue,
        parts: &Parts<'_>,
        place: &dyn Fn(u32) -> Option<u32>,
    ) -> Option<()> {
        let slot = self.queue_pairs[queue].key().slot;
        for message in &saved.messages {
            // There is something left to send: the message itself, or a packet of none.
            holds(message.sent < message.bytes || message.sent == 0)?;
            let id = self.load_message(net, message, slot, parts, place)?;
            // What sends it asks its queue.
            holds(self.messages[id].queue_pair != QueuePairIndex::NIL || self.is_datagram(id))?;
            self.backlog.joins(slot, self.messages[id].lane);
            self.queue_pairs[queue].messages.push_back(self.messages.all_mut(), id);
        }
        for message in &saved.waiting {
            let id = self.load_message(net, message, slot, parts, place)?;
            self.queue_pairs[queue].waiting.push_back(self.messages.all_mut(), id);
        }
        Some(())
    }

    fn is_datagram(&self, id: MessageIndex) -> bool {
        !self.messages[id].is_reliable()
    }

    /// Packets that overtook others on their way to a receiver here.
    pub(crate) fn load_early(
        &mut self,
        net: &mut NetworkOf<M, V>,
        receiver: ReceiverIndex,
        saved: &SavedQueue,
        parts: &Parts<'_>,
    ) -> Option<()> {
        for packet in saved.receiver.iter().flat_map(|of| &of.early) {
            let id = net.load_packet(packet, parts)?;
            self.receivers[receiver].early.push_back(net.packets.all_mut(), id);
        }
        Some(())
    }

    fn load_message(
        &mut self,
        net: &mut NetworkOf<M, V>,
        saved: &SavedMessage,
        slot: u32,
        parts: &Parts<'_>,
        place: &dyn Fn(u32) -> Option<u32>,
    ) -> Option<MessageIndex> {
        holds(saved.destination < parts.hosts && saved.group < parts.groups && saved.sl < 16)?;
        holds(saved.path < RESPONSES && saved.bytes <= MESSAGE_MAX)?;
        let lid = self.addressing.lid(self.addressing.port(saved.destination, 0));
        holds(parts.lids.host(lid + u32::from(saved.path)) == Some(saved.destination))?;
        let queue_pair = match saved.queue {
            None => QueuePairIndex::NIL,
            Some(queue) => parts.queue(queue)?,
        };
        if queue_pair != QueuePairIndex::NIL {
            let QueueKey { slot: of, destination, group, path } =
                self.queue_pairs[queue_pair].key();
            let key = (of, destination, group, path & !RESPONSES);
            holds(key == (slot, saved.destination, saved.group, saved.path))?;
        }
        let rank = if saved.flags & TRACKED != 0 { place(saved.rank)? } else { 0 };
        let token = match saved.flags & DIVIDED {
            0 => saved.token,
            _ => self.reactors.load_whole(parts.control, saved.token, place)?,
        };
        let envelope = net.load_letter(saved.letter.as_ref(), parts)?;
        Some(self.messages.insert(Message {
            next: MessageIndex::NIL,
            destination: saved.destination,
            born: saved.born,
            bytes: saved.bytes,
            sent: saved.sent,
            queue_pair,
            envelope,
            rank,
            token,
            end_psn: saved.end_psn,
            group: saved.group,
            flags: saved.flags,
            sl: saved.sl,
            path: saved.path,
            gap: saved.gap,
            lane: self.lane_of(saved.sl),
        }))
    }

    /// Ports of adapters become what they were.
    pub(crate) fn load_adapters(
        &mut self,
        net: &mut NetworkOf<M, V>,
        saved: &[SavedAdapter],
        parts: &Parts<'_>,
        place: &dyn Fn(u32) -> Option<u32>,
    ) -> Option<()> {
        holds(saved.len() == self.adapters.len())?;
        let mut listed = 0;
        for (slot, saved) in (0..).zip(saved) {
            let index = SlotIndex(slot);
            holds(saved.acks.len() == V && saved.rings.len() == V)?;
            listed += self.count_listed(saved, slot, parts)?;
            let of = &mut self.adapters[index];
            (of.dma_at, of.drained_at) = (saved.dma_at, saved.drained_at);
            (of.engines, of.next_psn) = (saved.engines, saved.next_psn);
            for (lane, acks) in saved.acks.iter().enumerate() {
                for packet in acks {
                    let id = net.load_packet(packet, parts)?;
                    net.packets[id].route = UNROUTED;
                    let list = &mut self.adapters[index].acks[lane];
                    list.push_back(net.packets.all_mut(), id);
                }
            }
            for (lane, ring) in saved.rings.iter().enumerate() {
                for queue in ring {
                    let queue = self.ready_queue(*queue, parts)?;
                    let head = self.queue_pairs[queue].messages.head;
                    holds(usize::from(self.messages[head].lane) % V == lane)?;
                    let list = &mut self.adapters[index].rings[lane];
                    list.push_back(self.queue_pairs.all_mut(), queue);
                }
                self.adapters[index].settle_lane(lane as u8);
            }
            for queue in &saved.line {
                let queue = self.ready_queue(*queue, parts)?;
                self.adapters[index].line.push_back(self.queue_pairs.all_mut(), queue);
            }
            for message in &saved.posted {
                let id = self.load_message(net, message, slot, parts, place)?;
                self.backlog.joins(slot, self.messages[id].lane);
                self.keep_posted(slot, id, message.sent);
            }
            for (until, queue) in &saved.paced {
                let queue = parts.queue(*queue)?;
                self.paced.insert((slot, *until, self.queue_pairs[queue].rank()), queue);
            }
        }
        let active = |queue: &QueuePairIndex| self.queue_pairs[*queue].is_active();
        holds(listed == self.queue_pairs.live().filter(active).count())
    }

    /// How many queues of a slot are in a list. Nothing if one is twice, or in none of its own, or
    /// if not each in a ring and each that keeps a gap has an engine.
    fn count_listed(&self, saved: &SavedAdapter, slot: u32, parts: &Parts<'_>) -> Option<usize> {
        let with_engine = saved.rings.iter().flatten().chain(saved.paced.iter().map(|(_, of)| of));
        holds(saved.engines as usize == with_engine.clone().count())?;
        let due = parts.control.due.get((parts.first.slot + slot) as usize);
        let due = due.iter().flat_map(|due| &due.queues).map(|(.., of)| of);
        let mut all: Vec<u32> = with_engine.chain(&saved.line).chain(due).copied().collect();
        all.sort_unstable();
        holds(all.is_sorted_by(|one, next| one < next))?;
        for queue in &all {
            let of = &self.queue_pairs[parts.queue(*queue)?];
            holds(of.key().slot == slot && of.is_active())?;
        }
        Some(all.len())
    }

    /// A queue that has something to send.
    fn ready_queue(&self, number: u32, parts: &Parts<'_>) -> Option<QueuePairIndex> {
        let queue = parts.queue(number)?;
        holds(!self.queue_pairs[queue].messages.is_empty())?;
        Some(queue)
    }

    /// What ports share becomes what it was.
    pub(crate) fn load_memories(
        &mut self,
        net: &mut NetworkOf<M, V>,
        saved: &[SavedMemory],
        parts: &Parts<'_>,
    ) -> Option<()> {
        holds(saved.len() == self.hosts.memories.len())?;
        for (host, saved) in (0..).map(HostIndex).zip(saved) {
            let first = self.hosts.memories[host].first;
            let ports = self.addressing.ports(self.rank(first));
            holds(saved.next < 8 && u32::from(saved.reads) >> ports == 0)?;
            for (number, packet) in &saved.writes {
                holds(u32::from(*number) < ports && usize::from(packet.route.1) < parts.lanes)?;
                let id = net.load_packet(packet, parts)?;
                self.hosts.memories[host].writes.push_back((first + u32::from(*number), id));
            }
            let of = &mut self.hosts.memories[host];
            (of.free_at, of.reads, of.next) = (saved.free_at, saved.reads, saved.next);
            of.has_written = saved.has_written;
        }
        Some(())
    }

    /// A queue as the whole run knows it, and where it is.
    pub(crate) fn placed(&self, queue: QueuePairIndex, receiver: ReceiverIndex) -> Placed {
        let QueueKey { slot, destination, .. } = self.queue_pairs[queue].key();
        Placed { host: self.rank(slot), destination, queue, receiver }
    }
}
