//! The network of a partition as it is kept: ports with the packets in their buffers, and what is
//! to happen.

use super::{HomeIndex, Network};
use crate::arbiter::Arbiter;
use crate::packet::{
    ACK, CNP, Carried, Envelope, EnvelopeIndex, Packet, PacketIndex, RELIABLE, Reader,
    ReceiverIndex, Request, UNROUTED,
};
use crate::port::{NEVER, PortIndex, Return, Ring};
use crate::port_set::PortSet;
use crate::queue::{Address, DUE, Event, Kind};
use crate::saved::{
    FLAGS, MESSAGE_MAX, Parts, SavedCarried, SavedLetter, SavedPacket, Whole, holds,
};
use clearlane_ib::wire;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// A port: its transmitter and its receive buffers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedPort {
    free_at: u64,
    wake_at: u64,
    /// Of an adapter: lanes that wait for credits. Of a switch it follows from the heads.
    waiting: u16,
    arbiter: Option<Arbiter>,
    lanes: Vec<SavedLane>,
}

/// One lane of a port.
#[derive(Debug, Serialize, Deserialize)]
struct SavedLane {
    turn: u8,
    ready: u64,
    credits: u16,
    /// Output and lane that the head wants.
    wants: Option<(u8, u8)>,
    packets: Vec<SavedPacket>,
    /// Credits on their way back: when, and how many.
    returns: Vec<(u64, u16)>,
}

/// Something that is to happen.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedEvent {
    time: u64,
    home: u32,
    place: u32,
    what: SavedKind,
}

/// What it is.
#[derive(Debug, Serialize, Deserialize)]
enum SavedKind {
    Arrive {
        lane: u8,
        packet: SavedPacket,
    },
    Due,
    Deliver {
        turn: u8,
        packet: SavedPacket,
    },
    /// The step of a rank, by its number in the run and at its adapter.
    Step {
        number: u8,
        rank: u32,
    },
}

impl<B: PortSet, const V: usize> Network<B, V> {
    /// A packet by value. Its queue pair is one of its source's, or, of an answer, of the host that
    /// it goes to.
    pub(crate) fn save_packet(&self, id: PacketIndex, whole: &Whole<'_>) -> SavedPacket {
        let packet = &self.packets[id];
        let requester = match packet.flags & (ACK | CNP) {
            0 => packet.source,
            _ => whole.lids.host(packet.dlid).unwrap_or(packet.source),
        };
        let queue = (packet.queue_pair != u32::MAX)
            .then(|| whole.queue(requester, packet.queue_pair))
            .filter(|queue| *queue != u32::MAX);
        SavedPacket {
            dlid: packet.dlid,
            slid: packet.slid,
            source: packet.source,
            queue,
            psn: packet.psn,
            bytes: packet.bytes,
            payload: packet.payload,
            group: packet.group,
            sl: packet.sl,
            flags: packet.flags,
            route: packet.route,
            born: packet.born,
            tail: if self.links.mixed { self.tails[id] } else { 0 },
            letter: self.save_letter(packet.envelope, whole),
        }
    }

    /// What an envelope says, if there is one.
    pub(crate) fn save_letter(
        &self,
        index: EnvelopeIndex,
        whole: &Whole<'_>,
    ) -> Option<SavedLetter> {
        if index == EnvelopeIndex::NIL {
            return None;
        }
        let Envelope { what, number, stripes } = self.envelopes[index];
        let what = match what {
            Carried::Data => SavedCarried::Data,
            Carried::Message(envelope) => SavedCarried::Message(envelope),
            Carried::ReadRequest { reader: Reader { rank, token }, bytes, gap } => {
                SavedCarried::ReadRequest { rank, token, bytes, gap }
            }
            Carried::ReadResponse { reader: Reader { rank, token }, request } => {
                let queue = whole.queue(whole.host(rank), request.queue_pair);
                SavedCarried::ReadResponse { rank, token, queue, psn: request.psn }
            }
        };
        Some(SavedLetter { what, number, stripes })
    }

    fn save_chain(&self, head: PacketIndex, whole: &Whole<'_>) -> Vec<SavedPacket> {
        self.chain(head).map(|id| self.save_packet(id, whole)).collect()
    }

    /// All ports, in their order.
    pub(crate) fn save_ports(&self, whole: &Whole<'_>) -> Vec<SavedPort> {
        let mut ports = Vec::with_capacity(self.ports.len());
        for home in 0..self.homes.len() as u32 {
            let switch_ports = u32::from(self.homes[HomeIndex(home)].switch_ports);
            for place in 0..self.places(home) {
                let port = self.homes[HomeIndex(home)].first.plus(place);
                ports.push(self.save_port(port, place >= switch_ports, whole));
            }
        }
        ports
    }

    /// Ports of a home, adapters' included.
    fn places(&self, home: u32) -> u32 {
        let next = self.homes.iter().nth(home as usize + 1);
        let end = next.map_or(self.ports.len() as u32, |next| next.first.0);
        end - self.homes[HomeIndex(home)].first.0
    }

    /// The home of a port.
    pub(crate) fn home_of(&self, port: PortIndex) -> super::Home {
        let homes = self.homes.len() as u32;
        let (mut low, mut high) = (0, homes);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match self.homes[HomeIndex(middle)].first <= port {
                true => low = middle,
                false => high = middle,
            }
        }
        self.homes[HomeIndex(low)]
    }

    fn save_port(&self, port: PortIndex, of_adapter: bool, whole: &Whole<'_>) -> SavedPort {
        let record = &self.ports[port];
        let lane = |at: usize| {
            let lane = &record.lanes[at];
            let further = self.overflow.get(&(port, at as u8)).into_iter().flatten();
            let returns = record.rings[at].iter().chain(further.copied());
            let wants = (record.output[at], record.wants[at]);
            SavedLane {
                turn: record.turn[at],
                ready: lane.ready,
                credits: lane.credits,
                wants: (wants.0 != UNROUTED.0).then_some(wants),
                packets: self.save_chain(lane.head, whole),
                returns: returns.map(|entry| (entry.due(), entry.credits())).collect(),
            }
        };
        SavedPort {
            free_at: record.free_at,
            wake_at: record.wake_at,
            waiting: if of_adapter { record.waiting } else { 0 },
            arbiter: self.arbitration.save(port),
            lanes: (0..V).map(lane).collect(),
        }
    }

    /// What is to happen but for wake-ups that ports know of. `rank` is the number of the rank at a
    /// place.
    pub(crate) fn save_events(
        &self,
        whole: &Whole<'_>,
        rank: impl Fn(u32) -> u32,
    ) -> Vec<SavedEvent> {
        let saved = |event: Event| {
            let packet = |id: u32| self.save_packet(PacketIndex(id), whole);
            let what = match event.kind {
                Kind::Arrive => {
                    SavedKind::Arrive { lane: event.lane, packet: packet(event.packet) }
                }
                Kind::Wake if event.lane == DUE => SavedKind::Due,
                Kind::Wake => return None,
                Kind::Deliver => {
                    SavedKind::Deliver { turn: event.lane, packet: packet(event.packet) }
                }
                Kind::Step => SavedKind::Step { number: event.lane, rank: rank(event.packet) },
            };
            let (home, place) = (whole.first.home + event.address.home(), event.address.place());
            Some(SavedEvent { time: event.time, home, place, what })
        };
        self.queue.remaining().filter_map(saved).collect()
    }

    /// A packet taken in.
    pub(crate) fn load_packet(
        &mut self,
        saved: &SavedPacket,
        parts: &Parts<'_>,
    ) -> Option<PacketIndex> {
        holds(parts.lids.host(saved.dlid).is_some() && parts.lids.host(saved.slid).is_some())?;
        holds(saved.source < parts.hosts && saved.group < parts.groups && saved.sl < 16)?;
        holds(saved.flags & !FLAGS == 0 && saved.payload <= saved.bytes)?;
        let placed = match saved.queue {
            Some(queue) => Some(parts.queues.get(queue as usize)?),
            None => None,
        };
        holds(saved.flags & RELIABLE == 0 || placed.is_some())?;
        if let Some(placed) = placed {
            // Answers come from where the data of their queue pair goes.
            let ends = match saved.flags & (ACK | CNP) {
                0 => (placed.host, placed.destination),
                _ => (placed.destination, placed.host),
            };
            holds((saved.source, parts.lids.host(saved.dlid)) == (ends.0, Some(ends.1)))?;
        }
        // An ACK tells the sender's half where the receiver's is.
        let receiver = placed.filter(|_| saved.flags & (RELIABLE | ACK) != 0);
        let envelope = self.load_letter(saved.letter.as_ref(), parts)?;
        let packet = Packet {
            next: PacketIndex::NIL,
            dlid: saved.dlid,
            slid: saved.slid,
            source: saved.source,
            queue_pair: placed.map_or(u32::MAX, |placed| placed.queue.0),
            receiver: receiver.map_or(ReceiverIndex::NIL, |placed| placed.receiver),
            psn: saved.psn,
            envelope,
            bytes: saved.bytes,
            payload: saved.payload,
            credits: wire::credits(saved.bytes.into()) as u16,
            group: saved.group,
            sl: saved.sl,
            flags: saved.flags,
            route: saved.route,
            born: saved.born,
            hint: (parts.hint)(saved.dlid),
        };
        let id = self.admit(packet);
        if self.links.mixed {
            self.tails[id] = saved.tail;
        }
        Some(id)
    }

    /// An envelope taken in, `NIL` if there is none.
    pub(crate) fn load_letter(
        &mut self,
        saved: Option<&SavedLetter>,
        parts: &Parts<'_>,
    ) -> Option<EnvelopeIndex> {
        let Some(SavedLetter { what, number, stripes }) = saved else {
            return Some(EnvelopeIndex::NIL);
        };
        let what = match what {
            SavedCarried::Data => Carried::Data,
            SavedCarried::Message(envelope) => {
                parts.host(envelope.from).and(parts.host(envelope.to))?;
                holds(envelope.group < parts.groups && envelope.bytes <= MESSAGE_MAX)?;
                Carried::Message(*envelope)
            }
            SavedCarried::ReadRequest { rank, token, bytes, gap } => {
                parts.host(*rank)?;
                holds(*bytes <= MESSAGE_MAX)?;
                let reader = Reader { rank: *rank, token: *token };
                Carried::ReadRequest { reader, bytes: *bytes, gap: *gap }
            }
            SavedCarried::ReadResponse { rank, token, queue, psn } => {
                let placed = parts.queues.get(*queue as usize)?;
                holds(parts.host(*rank)? == placed.host)?;
                let queue_pair = placed.queue.0;
                let reader = Reader { rank: *rank, token: *token };
                Carried::ReadResponse { reader, request: Request { queue_pair, psn: *psn } }
            }
        };
        Some(self.envelopes.insert(Envelope { what, number: *number, stripes: *stripes }))
    }

    /// Ports that are about to begin become what they were; `kept` says whether packets know their
    /// outputs.
    pub(crate) fn load_ports(
        &mut self,
        saved: &[SavedPort],
        parts: &Parts<'_>,
        kept: bool,
    ) -> Option<()> {
        holds(saved.len() == self.ports.len())?;
        self.overflow.clear();
        for port in self.ports.iter_mut() {
            port.waiting = 0;
            port.lanes.iter_mut().for_each(|lane| lane.waiters = B::EMPTY);
        }
        for home in 0..self.homes.len() as u32 {
            let record = self.homes[HomeIndex(home)];
            for place in 0..self.places(home) {
                let port = record.first.plus(place);
                let saved = &saved[port.0 as usize];
                holds(saved.lanes.len() == V && saved.waiting >> (V - 1) <= 1)?;
                self.arbitration.load(port, saved.arbiter)?;
                let is_switch = place < u32::from(record.switch_ports);
                let of = &mut self.ports[port];
                (of.free_at, of.wake_at) = (saved.free_at, saved.wake_at);
                of.waiting |= if is_switch { 0 } else { saved.waiting };
                for (lane, saved) in saved.lanes.iter().enumerate() {
                    holds(is_switch || saved.packets.is_empty())?;
                    self.load_lane(home, place, lane as u8, saved, parts, kept)?;
                }
            }
        }
        Some(())
    }

    fn load_lane(
        &mut self,
        home: u32,
        place: u32,
        at: u8,
        saved: &SavedLane,
        parts: &Parts<'_>,
        kept: bool,
    ) -> Option<()> {
        let record = self.homes[HomeIndex(home)];
        let (port, lane) = (record.first.plus(place), usize::from(at));
        holds(saved.packets.iter().all(|packet| {
            let (output, wants) = packet.route;
            let is_free = packet.route.0 == UNROUTED.0;
            is_free || u16::from(output) < record.switch_ports && usize::from(wants) < parts.lanes
        }))?;
        let head = self.load_chain(&saved.packets, parts, kept)?;
        let of = &mut self.ports[port];
        of.turn[lane] = saved.turn;
        (of.lanes[lane].ready, of.lanes[lane].credits) = (saved.ready, saved.credits);
        of.rings[lane] = Ring::EMPTY;
        of.overflow &= !(1 << at);
        holds(saved.returns.is_sorted_by_key(|(due, _)| *due))?;
        for (due, credits) in &saved.returns {
            let entry = Return::new(*due, *credits);
            let of = &mut self.ports[port];
            if of.rings[lane].is_full() {
                of.overflow |= 1 << at;
                self.overflow.entry((port, at)).or_default().push_back(entry);
            } else {
                of.rings[lane].push(entry);
            }
        }
        holds(saved.wants.is_some() == head.is_some())?;
        let (Some((output, wants)), Some((head, tail))) = (saved.wants, head) else {
            return Some(());
        };
        holds(u16::from(output) < record.switch_ports && usize::from(wants) < parts.lanes)?;
        let need = self.packets[head].credits;
        let of = &mut self.ports[port];
        (of.output[lane], of.wants[lane]) = (output, wants);
        (of.lanes[lane].head, of.lanes[lane].tail, of.lanes[lane].need) = (head, tail, need);
        let out = record.first.plus(output.into());
        holds(self.ports[out].peer != Address::NIL)?;
        self.ports[out].waiting |= 1 << wants;
        self.ports[out].lane_mut(wants).waiters.insert(place as u8);
        Some(())
    }

    /// Packets taken in, one after the other: the first and the last.
    pub(crate) fn load_chain(
        &mut self,
        saved: &[SavedPacket],
        parts: &Parts<'_>,
        kept: bool,
    ) -> Option<Option<(PacketIndex, PacketIndex)>> {
        let mut ends: Option<(PacketIndex, PacketIndex)> = None;
        for packet in saved {
            let id = self.load_packet(packet, parts)?;
            if !kept {
                self.packets[id].route = UNROUTED;
            }
            if let Some((_, last)) = ends {
                self.packets[last].next = id;
            }
            ends = Some((ends.map_or(id, |(head, _)| head), id));
        }
        Some(ends)
    }

    /// What is to happen, from `floor` on. `rank` finds the place of a rank at a slot.
    pub(crate) fn load_events(
        &mut self,
        saved: &[SavedEvent],
        parts: &Parts<'_>,
        rank: impl Fn(u32) -> Option<u32>,
    ) -> Option<()> {
        self.queue.begin_at(self.floor);
        for home in 0..self.homes.len() as u32 {
            for place in 0..self.places(home) {
                let address = Address::new(home, place);
                let time = self.ports[self.port_at(address)].wake_at;
                holds(time >= self.floor)?;
                if time != NEVER {
                    let event = Event { time, address, kind: Kind::Wake, lane: 0, packet: 0 };
                    self.queue.push(event);
                }
            }
        }
        for event in saved {
            let Some(home) = event.home.checked_sub(parts.first.home) else { continue };
            if home as usize >= self.homes.len() {
                continue;
            }
            let is_switch = event.place < u32::from(self.homes[HomeIndex(home)].switch_ports);
            holds(event.place < self.places(home) && event.time >= self.floor)?;
            let (kind, lane, packet) = match &event.what {
                SavedKind::Arrive { lane, packet } => {
                    holds(is_switch && usize::from(*lane) < parts.lanes)?;
                    let id = self.load_packet(packet, parts)?;
                    self.packets[id].route = UNROUTED;
                    (Kind::Arrive, *lane, id.0)
                }
                SavedKind::Due => (Kind::Wake, DUE, 0),
                SavedKind::Deliver { turn, packet } => {
                    holds(!is_switch && *turn < 16 && usize::from(packet.route.1) < parts.lanes)?;
                    (Kind::Deliver, *turn, self.load_packet(packet, parts)?.0)
                }
                SavedKind::Step { number, rank: of } => {
                    holds(!is_switch && *number < 16)?;
                    (Kind::Step, *number, rank(*of)?)
                }
            };
            let address = Address::new(home, event.place);
            self.queue.push(Event { time: event.time, address, kind, lane, packet });
        }
        Some(())
    }
}

impl SavedEvent {
    /// The order of events in what is kept.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        let key = |of: &Self| (of.time, of.home, of.place, of.order());
        key(self).cmp(&key(other))
    }

    /// What orders it among others of its time and place.
    fn order(&self) -> (u8, u8, u32, u32) {
        match &self.what {
            SavedKind::Arrive { lane, packet } => (0, *lane, packet.source, packet.psn),
            SavedKind::Due => (1, 0, 0, 0),
            SavedKind::Deliver { turn, packet } => (2, *turn, packet.source, packet.psn),
            SavedKind::Step { number, rank } => (3, *number, *rank, 0),
        }
    }

    /// The home of the switch that a packet is on its way to, and where it is to go.
    pub(crate) fn way(&self) -> Option<(u32, u32)> {
        match &self.what {
            SavedKind::Arrive { packet, .. } => Some((self.home, packet.dlid)),
            SavedKind::Due | SavedKind::Deliver { .. } | SavedKind::Step { .. } => None,
        }
    }
}

impl SavedPort {
    /// Where the packets in its buffers are to go.
    pub(crate) fn ways(&self) -> impl Iterator<Item = u32> + '_ {
        self.lanes.iter().flat_map(|lane| lane.packets.iter().map(|packet| packet.dlid))
    }
}
