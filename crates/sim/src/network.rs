//! The room below all others: the time, links, buffers and credits of one partition, the packets
//! in them, and what is still to happen.

mod saved;

use crate::arbiter::Arbitration;
use crate::mail::{FarEnd, Mail};
use crate::model::Model;
use crate::outcome::{Aside, Read, Tapped, Totals};
use crate::packet::{Carried, Envelope, EnvelopeIndex, Packet, PacketIndex, READ, RESPONSE};
use crate::port::{ClassNumber, LinkClass, NEVER, Port, PortIndex, Return};
use crate::port_set::PortSet;
use crate::queue::{Address, Event, Kind, Queue};
use crate::recorder::Recorder;
use crate::records::{Records, Slab, index};
use clearlane_ib::LinkRate;
use rustc_hash::FxHashMap;
pub(crate) use saved::{SavedEvent, SavedPort};
use std::collections::VecDeque;

index!(
    /// A home of this partition: a switch and the adapters plugged into it.
    HomeIndex
);
index!(
    /// A cut cable, seen from here.
    CutIndex
);

/// Where a home's ports and adapters are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Home {
    /// Its first port: that of number 1 of the switch. Those of the adapters follow the switch's.
    pub(crate) first: PortIndex,
    /// The slot of its first adapter.
    pub(crate) first_slot: u32,
    /// Ports of the switch.
    pub(crate) switch_ports: u16,
}

/// Parameters of links and buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Links {
    /// From the tail leaving one end to its being at the other, in ps.
    pub(crate) cable_delay: u64,
    /// Cable and credit announcement.
    pub(crate) credit_delay: u64,
    /// Rate of the crossbar in hundredths of the output's.
    pub(crate) speedup: u32,
    /// Credits of an empty buffer.
    pub(crate) capacity: u16,
    /// Whether the arrival of tails is followed: links of several rates, or a crossbar faster than
    /// they are.
    pub(crate) mixed: bool,
    /// Whether credits of a lane return in the order of time: with one queue a lane they do, unless
    /// ACKs overtake packets that wait for memory.
    pub(crate) in_order: bool,
    /// The fastest link of all; nothing if no two switches are cabled to each other.
    pub(crate) fastest: Option<LinkRate>,
    /// From a grant to the head being arbitrable at the next switch.
    pub(crate) flight: u64,
    /// Where adapters have ports at switches of several homes: how they return credits.
    pub(crate) far_adapters: Option<FarAdapters>,
}

/// Adapters that are plugged into several switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FarAdapters {
    /// The fastest at which they store what has come, if that takes its time: their credits return
    /// after it. Else the switch knows when credits return as it grants.
    pub(crate) stores: Option<LinkRate>,
}

impl Links {
    /// How long a packet of `busy` ps on the link takes to leave its buffer through the crossbar.
    #[inline(always)]
    pub(crate) fn crossing(&self, busy: u64) -> u64 {
        // Later than now, however fast: what a grant does is not seen at its own instant.
        (busy * 100 / u64::from(self.speedup)).max(1)
    }

    /// The least time after which anything done at one home is seen at another, while no packet is
    /// shorter than `shortest` bytes.
    pub(crate) fn lookahead(&self, shortest: u32) -> u64 {
        let Some(rate) = self.fastest else { return NEVER };
        let busy = rate.serialisation(u64::from(shortest));
        let left = self.crossing(busy);
        let between = self.flight.min(left + self.credit_delay);
        let Some(far) = self.far_adapters else { return between.max(1) };
        let stored = far.stores.map_or(NEVER, |rate| rate.serialisation(u64::from(shortest)));
        between.min(busy + self.cable_delay).min(stored.saturating_add(self.credit_delay)).max(1)
    }
}

/// The network of an instance.
pub(crate) type NetworkOf<M, const V: usize> = Network<<M as Model>::Ports, V>;

/// Packets under way per home that there is room for before records have to move.
const PACKETS_PER_HOME: usize = 1;

/// See the module.
pub(crate) struct Network<B, const V: usize> {
    pub(crate) now: u64,
    /// The time every home has reached: where the window begins.
    pub(crate) floor: u64,
    /// The last time anything was done that a result shows.
    pub(crate) last_effect: u64,
    /// The home being served, and its first port.
    home: u32,
    base: PortIndex,
    pub(crate) homes: Records<HomeIndex, Home>,
    pub(crate) ports: Records<PortIndex, Port<B, V>>,
    pub(crate) classes: Records<ClassNumber, LinkClass>,
    pub(crate) links: Links,
    pub(crate) arbitration: Arbitration,
    pub(crate) packets: Slab<PacketIndex, Packet>,
    /// When a packet's tail has arrived where it is; only where links are mixed.
    pub(crate) tails: Records<PacketIndex, u64>,
    pub(crate) envelopes: Slab<EnvelopeIndex, Envelope>,
    pub(crate) queue: Queue,
    pub(crate) recorder: Recorder,
    pub(crate) totals: Totals,
    /// Outputs and adapters of the home being served to arbitrate at this instant.
    pub(crate) dirty: Vec<PortIndex>,
    /// Bytes of the shortest packet so far.
    pub(crate) shortest: u32,
    /// Returned credits beyond a lane's ring.
    pub(crate) overflow: FxHashMap<(PortIndex, u8), VecDeque<Return>>,
    far_ends: Records<CutIndex, FarEnd>,
    /// By port: its number among those of its adapter; of switches' ports nothing. Empty where each
    /// adapter has one.
    pub(crate) adapter_ports: Vec<u8>,
    /// Mail of this window by partition.
    pub(crate) outbox: Vec<Vec<Mail>>,
}

/// What a network is made of at first.
pub(crate) struct Parts<B, const V: usize> {
    pub(crate) homes: Vec<Home>,
    pub(crate) ports: Vec<Port<B, V>>,
    pub(crate) classes: Vec<LinkClass>,
    pub(crate) links: Links,
    pub(crate) far_ends: Vec<FarEnd>,
    pub(crate) adapter_ports: Vec<u8>,
    pub(crate) partitions: usize,
}

impl<B: PortSet, const V: usize> Network<B, V> {
    /// The network at rest.
    pub(crate) fn new(
        parts: Parts<B, V>,
        arbitration: Arbitration,
        recorder: Recorder,
        width_log2: u32,
    ) -> Self {
        let homes = parts.homes.len() as u32;
        let lookahead = parts.links.lookahead(u32::MAX);
        Network {
            now: 0,
            floor: 0,
            last_effect: 0,
            home: 0,
            base: PortIndex(0),
            homes: parts.homes.into(),
            ports: parts.ports.into(),
            classes: parts.classes.into(),
            links: parts.links,
            arbitration,
            packets: Slab::with_room_for(PACKETS_PER_HOME * homes as usize),
            tails: Records::default(),
            envelopes: Slab::default(),
            queue: Queue::new(width_log2, homes, lookahead),
            recorder,
            totals: Totals::default(),
            dirty: Vec::new(),
            shortest: u32::MAX,
            overflow: FxHashMap::default(),
            far_ends: parts.far_ends.into(),
            adapter_ports: parts.adapter_ports,
            outbox: vec![Vec::new(); parts.partitions],
        }
    }

    /// Turns to a home at a time: from now on its ports may be woken and touched.
    #[inline(always)]
    pub(crate) fn enter(&mut self, home: u32, now: u64) -> Home {
        let record = self.homes[HomeIndex(home)];
        (self.home, self.base, self.now) = (home, record.first, now);
        record
    }

    /// Number of the home being served.
    #[inline(always)]
    pub(crate) fn home(&self) -> u32 {
        self.home
    }

    /// The port at a place of the home being served.
    #[inline(always)]
    pub(crate) fn port(&self, place: u32) -> PortIndex {
        self.base.plus(place)
    }

    /// The place of a port of the home being served.
    #[inline(always)]
    pub(crate) fn place(&self, port: PortIndex) -> u32 {
        port.0 - self.base.0
    }

    #[inline(always)]
    pub(crate) fn address(&self, port: PortIndex) -> Address {
        Address::of(self.home, port.0 - self.base.0)
    }

    /// The port at an address of this partition.
    #[inline(always)]
    pub(crate) fn port_at(&self, address: Address) -> PortIndex {
        self.homes[HomeIndex(address.home())].first.plus(address.place())
    }

    /// Asks for what is needed of the record of a port when a packet comes or leaves on a lane.
    #[inline(always)]
    pub(crate) fn prefetch_port(&self, port: PortIndex, lane: u8) {
        self.ports.prefetch::<2>(port);
        if V > 2 {
            self.ports.prefetch_at(port, Port::<B, V>::end_of_lane(lane));
        }
    }

    /// The same of a port that may be at the end of a cut cable.
    #[inline(always)]
    pub(crate) fn prefetch_peer(&self, address: Address, lane: u8) {
        if self.is_here(address) {
            self.prefetch_port(self.port_at(address), lane);
        }
    }

    #[inline(always)]
    pub(crate) fn class(&self, port: PortIndex) -> &LinkClass {
        &self.classes[self.ports[port].class]
    }

    /// Has a port of the home being served looked at in this instant's second phase.
    #[inline(always)]
    pub(crate) fn touch(&mut self, port: PortIndex) {
        self.dirty.push(port);
    }

    /// Asks for a look at a port of the home being served at `time`, unless an earlier one is due.
    #[inline(always)]
    pub(crate) fn wake(&mut self, port: PortIndex, time: u64) {
        let address = self.address(port);
        self.wake_at(port, address, time);
    }

    #[inline(always)]
    fn wake_at(&mut self, port: PortIndex, address: Address, time: u64) {
        let wake_at = &mut self.ports[port].wake_at;
        if time < *wake_at {
            *wake_at = time;
            let event = Event { time, address, kind: Kind::Wake, lane: 0, packet: 0 };
            self.queue.push(event);
        }
    }

    /// Has something happen at a port of the home being served.
    #[inline(always)]
    pub(crate) fn schedule(&mut self, time: u64, port: PortIndex, kind: Kind, lane: u8, id: u32) {
        let event = Event { time, address: self.address(port), kind, lane, packet: id };
        self.queue.push(event);
    }

    /// The head of a packet will be arbitrable at `peer`.
    #[inline(always)]
    pub(crate) fn send(&mut self, time: u64, peer: Address, lane: u8, id: PacketIndex) {
        if self.is_here(peer) {
            let event = Event { time, address: peer, kind: Kind::Arrive, lane, packet: id.0 };
            self.queue.push(event);
        } else {
            self.post_packet(time, peer, lane, id);
        }
    }

    /// The tail of a packet comes in at an adapter's port at `time`. In what happens there at one
    /// instant ports come in their order, what has been stored after what has just come.
    pub(crate) fn deliver_at(&mut self, time: u64, at: Address, id: PacketIndex) {
        if !self.is_here(at) {
            let lane = self.packets[id].route.1;
            return self.post_packet(time, at, lane, id);
        }
        let lane = self.turn_of(self.port_at(at), false);
        self.queue.push(Event { time, address: at, kind: Kind::Deliver, lane, packet: id.0 });
    }

    /// What orders a packet among all that its adapter has come or stored at one instant.
    pub(crate) fn turn_of(&self, port: PortIndex, stored: bool) -> u8 {
        let number = self.adapter_ports.get(port.0 as usize).copied().unwrap_or(0);
        number << 1 | u8::from(stored)
    }

    #[inline(always)]
    pub(crate) fn is_here(&self, address: Address) -> bool {
        (address.home() as usize) < self.homes.len()
    }

    /// The other end of a cable that leads to another partition.
    pub(crate) fn far_end(&self, address: Address) -> Option<FarEnd> {
        let cut = address.home().checked_sub(self.homes.len() as u32)?;
        // Rare, so checked: the address of a port without a cable is none of a cut one.
        Some(self.far_ends.run(CutIndex(cut), 1)[0])
    }

    /// Puts mail for the port at the other end of a cut cable into the box of its partition.
    #[inline(never)]
    fn post_mail(&mut self, to: Address, mail: impl FnOnce(Address) -> Mail) {
        if let Some(FarEnd { partition, address }) = self.far_end(to) {
            self.outbox[partition as usize].push(mail(address));
        }
    }

    #[inline(never)]
    fn post_packet(&mut self, time: u64, peer: Address, lane: u8, id: PacketIndex) {
        let mut packet = self.packets[id];
        let envelope = self.take_envelope(&mut packet);
        self.packets.remove(id);
        self.post_mail(peer, |at| Mail::Packet { time, at, lane, packet, envelope });
    }

    fn take_envelope(&mut self, packet: &mut Packet) -> Option<Envelope> {
        let index = std::mem::replace(&mut packet.envelope, EnvelopeIndex::NIL);
        (index != EnvelopeIndex::NIL).then(|| {
            self.envelopes.remove(index);
            self.envelopes[index]
        })
    }

    /// Takes in mail, between two windows.
    pub(crate) fn take_in(&mut self, mail: &Mail) {
        let (time, floor) = (mail.time(), self.floor);
        assert!(time >= floor, "mail of {time} ps after {floor} ps: the window was too long");
        match *mail {
            Mail::Packet { time, at, lane, mut packet, envelope } => {
                if let Some(envelope) = envelope {
                    packet.envelope = self.envelopes.insert(envelope);
                }
                let id = self.admit(packet);
                if at.place() < u32::from(self.homes[HomeIndex(at.home())].switch_ports) {
                    return self.send(time, at, lane, id);
                }
                self.note_head(time, self.port_at(at), id);
                self.deliver_at(time, at, id);
            }
            Mail::Credits { time, at, lane, credits } => {
                self.return_credits(time, at, lane, credits);
            }
        }
    }

    /// The tail of a packet comes in at an adapter's port at `time`: whoever watches the port sees
    /// its head come in before.
    pub(crate) fn note_head(&mut self, time: u64, port: PortIndex, id: PacketIndex) {
        if self.recorder.is_tapped(port) {
            let packet = &self.packets[id];
            let lane = packet.route.1;
            let busy = self.class(port).rate.serialisation(packet.bytes.into());
            self.received(time - busy, port, lane, id);
        }
    }

    /// The head of a packet comes in by `port` on `lane` at `at`: told when a switch may forward
    /// it, and of an adapter as soon as it is known.
    #[inline(always)]
    pub(crate) fn received(&mut self, at: u64, port: PortIndex, lane: u8, id: PacketIndex) {
        if self.recorder.is_tapped(port) {
            self.tap(at, port, lane, false, id, Aside::default());
        }
    }

    /// Notes a packet at a port that is tapped.
    #[cold]
    pub(crate) fn tap(
        &mut self,
        at: u64,
        port: PortIndex,
        lane: u8,
        granted: bool,
        id: PacketIndex,
        aside: Aside,
    ) {
        let packet = &self.packets[id];
        let carried = || match packet.envelope {
            EnvelopeIndex::NIL => None,
            index => Some(self.envelopes[index].what),
        };
        let read = match packet.flags {
            flags if flags & RESPONSE != 0 => Read::Response,
            flags if flags & READ != 0 => match carried() {
                Some(Carried::ReadRequest { bytes, .. }) => Read::Request(bytes),
                _ => Read::Not,
            },
            _ => Read::Not,
        };
        let tapped = Tapped::new(at, lane, granted, packet, read, aside);
        self.recorder.on_tapped(port, tapped);
    }

    /// A packet record holding `packet`.
    #[inline(always)]
    pub(crate) fn admit(&mut self, packet: Packet) -> PacketIndex {
        self.shortest = self.shortest.min(packet.bytes.into());
        let id = self.packets.insert(packet);
        if self.links.mixed && id.0 as usize >= self.tails.len() {
            self.tails.push(0);
        }
        id
    }

    /// Credits for space freed in a buffer reach the port that fills it at `time`. Who waits for
    /// them looks then.
    #[inline(always)]
    pub(crate) fn return_credits(&mut self, time: u64, to: Address, lane: u8, credits: u16) {
        if !self.is_here(to) {
            return self.post_mail(to, |at| Mail::Credits { time, at, lane, credits });
        }
        let port = self.port_at(to);
        let entry = Return::new(time, credits);
        let in_order = self.links.in_order;
        let (floor, record) = (self.floor, &mut self.ports[port]);
        let in_order = in_order && record.overflow == 0;
        let (of, ring) = record.lane_and_ring(lane);
        // The port's own time is not known here; that of all homes is.
        if ring.is_due(floor) {
            of.credits += ring.take();
        }
        if in_order && !ring.is_full() {
            ring.push(entry);
        } else {
            self.insert_return(port, lane, entry);
        }
        let record = &self.ports[port];
        if record.waiting >> lane & 1 == 1 {
            let when = time.max(record.free_at);
            self.wake_at(port, to, when);
        }
    }

    /// A return for which the ring has no room, or one that need not come in the order of its
    /// time, because packets leave one buffer side by side: it is put in order.
    #[inline(never)]
    fn insert_return(&mut self, port: PortIndex, lane: u8, entry: Return) {
        // What waits beyond the ring comes before it has room again.
        self.settle(port, lane, self.floor);
        let last = self.ports[port].lane_and_ring(lane).1.insert(entry);
        if last == Return::NONE {
            return;
        }
        self.ports[port].overflow |= 1 << lane;
        let list = self.overflow.entry((port, lane)).or_default();
        list.insert(list.partition_point(|known| *known <= last), last);
    }

    /// Returns that are due by `now` become credits, and what waits beyond the ring moves up.
    #[inline(never)]
    fn settle(&mut self, port: PortIndex, lane: u8, now: u64) {
        let record = &mut self.ports[port];
        let waits_further = record.overflow >> lane & 1 == 1;
        let (of, ring) = record.lane_and_ring(lane);
        while ring.is_due(now) {
            of.credits += ring.take();
        }
        if !waits_further {
            return;
        }
        let Some(list) = self.overflow.get_mut(&(port, lane)) else { return };
        while let Some(entry) = list.front().copied() {
            if ring.is_full() {
                return;
            }
            if ring.is_empty() && entry.due() <= now {
                of.credits += entry.credits();
            } else {
                ring.push(entry);
            }
            list.pop_front();
        }
        record.overflow &= !(1 << lane);
    }

    /// Whether the credits of a lane suffice at a port of the home being served. Those that have
    /// arrived are taken in when they are needed.
    #[inline(always)]
    pub(crate) fn has_credits(&mut self, port: PortIndex, lane: u8, need: u16) -> bool {
        if self.ports[port].lane(lane).credits >= need {
            return true;
        }
        self.settle(port, lane, self.now);
        self.ports[port].lane(lane).credits >= need
    }

    /// Credits a lane has at this instant.
    pub(crate) fn credits_now(&self, port: PortIndex, lane: u8) -> u16 {
        let record = &self.ports[port];
        let of = record.lane(lane);
        let arrived = |entry: &Return| entry.due() <= self.now;
        let returned = record.ring(lane).iter().take_while(arrived).map(Return::credits);
        let mut credits = of.credits + returned.sum::<u16>();
        if record.overflow >> lane & 1 == 1 {
            let list = self.overflow.get(&(port, lane)).into_iter().flatten().copied();
            credits += list.take_while(arrived).map(Return::credits).sum::<u16>();
        }
        credits
    }

    /// When there will be `need` credits if no further one is returned; `NEVER` if there will not.
    #[inline(always)]
    pub(crate) fn credits_at(&self, port: PortIndex, lane: u8, need: u16) -> u64 {
        let record = &self.ports[port];
        let of = record.lane(lane);
        let mut credits = of.credits;
        for entry in record.ring(lane).iter() {
            credits += entry.credits();
            if credits >= need {
                return entry.due();
            }
        }
        if record.overflow >> lane & 1 == 1 {
            for entry in self.overflow.get(&(port, lane)).into_iter().flatten() {
                credits += entry.credits();
                if credits >= need {
                    return entry.due();
                }
            }
        }
        NEVER
    }

    /// Nothing can go: a port of the home being served is looked at again at `earliest`; `stalled`
    /// if credits are missing.
    pub(crate) fn hold(&mut self, port: PortIndex, stalled: bool, earliest: u64) {
        if stalled {
            self.recorder.on_credit_stalled(self.now, port);
        }
        if earliest != NEVER {
            self.wake(port, earliest);
        }
    }

    /// A data packet is in the memory of a host at `at`.
    #[inline(always)]
    pub(crate) fn complete(
        &mut self,
        to: clearlane_workload::Rank,
        id: PacketIndex,
        at: u64,
        last: bool,
    ) {
        self.totals.packets_delivered += 1;
        self.totals.messages_delivered += u64::from(last);
        self.last_effect = self.last_effect.max(at);
        self.recorder.on_delivered(at, &self.packets[id], to, last);
        self.packets.remove(id);
    }

    /// The packets of a list from `head` on.
    pub(crate) fn chain(&self, head: PacketIndex) -> impl Iterator<Item = PacketIndex> + '_ {
        let some = |id: PacketIndex| (id != PacketIndex::NIL).then_some(id);
        std::iter::successors(some(head), move |id| some(self.packets[*id].next))
    }
}
