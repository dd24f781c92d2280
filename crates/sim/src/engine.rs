//! The hot loop. Each timestamp has two phases: everything that happens is applied, then every
//! touched output arbitrates. A grant at t has effects strictly later than t (a link takes time, a
//! cable at least 1 ps), so neither the order of events of one instant nor that of arbitrations can
//! be seen in any result.

use crate::adapter::{Adapter, Message, QueueKey, QueuePair, SendQueue};
use crate::arbiter::{Arbiter, ArbiterTables};
use crate::control::Control;
use crate::deadlock;
use crate::forward::{Forwarder, Forwarding};
use crate::network::{LAST, LinkClass, NEVER, NIL, Network, Packet, Places, Port, UNROUTED};
use crate::observe::Observer;
use crate::outcome::{Deadlock, Ending, Outcome, Totals};
use crate::port_set::PortSet;
use crate::ranks::{Addressing, RankState};
use crate::records::Records;
use crate::simulation::{GroupSettings, Setup, Status, radix};
use crate::voq::Voq;
use crate::wheel::{Event, Wheel};
use crate::{Hosts, Parameters};
use clearlane_ib::{LinkRate, Picoseconds};
use clearlane_subnet::VlArbitration;
use clearlane_workload::Rank;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

/// The head of a packet is arbitrable at a switch.
pub(crate) const ARRIVE: u32 = 0;
/// An output or adapter is to be looked at.
pub(crate) const WAKE: u32 = 1;
/// A packet is complete in a host's memory.
pub(crate) const DELIVER: u32 = 2;
/// A rank's program is to be stepped.
pub(crate) const STEP: u32 = 3;

/// Port records in bytes up to which fetching ahead gains nothing: half a second-level cache.
const FITS_IN_CACHE: usize = 1 << 20;

/// Port records in bytes from which ports and packets are asked for one more window ahead.
const FITS_IN_SHARED_CACHE: usize = 16 << 20;

/// Simulated time between two looks for a deadlock while packets still move elsewhere.
const DEADLOCK_CHECK_PS: u64 = 50_000_000;

/// (port, kind, lane) in one word: unique at one instant, so ties have one order.
#[inline(always)]
pub(crate) const fn key(port: u32, kind: u32, lane: u8) -> u32 {
    port << 6 | kind << 4 | lane as u32
}

/// An engine behind its type parameters.
pub(crate) trait Run: Send {
    fn run_until(&mut self, until: u64, pause: &AtomicBool) -> Status;
    fn now(&self) -> u64;
    fn totals(&self) -> Totals;
    fn messages_kept(&self) -> u64;
    fn finish(self: Box<Self>) -> Outcome;
}

/// Switches, adapters and programs, generic over how switches forward, who watches, the number of
/// lanes and the words of a bit set over ports.
pub(crate) struct Engine<F, O, C, B, const V: usize> {
    pub(crate) now: u64,
    pub(crate) ports: Records<Port<B, V>>,
    pub(crate) packets: Records<Packet>,
    /// Free packet records, linked by `next`.
    free: u32,
    pub(crate) wheel: Wheel,
    pub(crate) forwarder: F,
    pub(crate) observer: O,
    pub(crate) control: C,
    /// Outputs and adapters to arbitrate at this instant.
    pub(crate) dirty: Vec<u32>,
    pub(crate) totals: Totals,
    pub(crate) adapters: Records<Adapter<V>>,
    pub(crate) ranks: Vec<RankState>,
    pub(crate) messages: Records<Message>,
    pub(crate) free_messages: Vec<u32>,
    pub(crate) queues: Records<SendQueue>,
    pub(crate) free_queues: Vec<u32>,
    pub(crate) pairs: Records<QueuePair>,
    pub(crate) queue_of: FxHashMap<QueueKey, u32>,
    pub(crate) pair_of: FxHashMap<QueueKey, u32>,
    pub(crate) addressing: Addressing,
    pub(crate) groups: Vec<GroupSettings>,
    pub(crate) parameters: Parameters,
    pub(crate) dma: Option<LinkRate>,
    pub(crate) drain: Option<LinkRate>,
    /// Cable and credit announcement.
    pub(crate) credit_delay: u64,
    /// Returned credits beyond a lane's ring, by port and lane.
    pub(crate) overflow: FxHashMap<(u32, u8), VecDeque<u64>>,
    pub(crate) tables: ArbiterTables,
    pub(crate) arbiters: Records<Arbiter>,
    /// Since when a port waits for credits, `NEVER` if it does not; empty without an observer.
    pub(crate) blocked_since: Vec<u64>,
    pub(crate) fair: FxHashMap<(u32, u8, u32), u64>,
    pub(crate) fair_now: FxHashMap<(u32, u8), u64>,
    pub(crate) capacity: u16,
    pub(crate) hosts_at: u32,
    /// Whether the arrival of tails is followed: links of several rates, or a crossbar faster than
    /// they are.
    mixed: bool,
    /// Rate of the crossbar in hundredths of the output's.
    pub(crate) speedup: u32,
    /// Heads whose output the switch has yet to choose: (port, lane, packet).
    pub(crate) undecided: Vec<(u32, u8, u32)>,
    /// Credits of packets that wait for an output, by port; empty unless switches choose.
    pub(crate) backlog: Records<u32>,
    /// Virtual output queues by (port, lane, output); empty without.
    pub(crate) voqs: Records<Voq>,
    /// Outputs a lane of an input has queues for.
    pub(crate) radix: u32,
    next_check: u64,
    deadlock: Option<Deadlock>,
    drained: bool,
    fetches_ahead: bool,
    far_ahead: bool,
    pub(crate) places: Places,
    pub(crate) classes: Records<LinkClass>,
}

impl<F: Forwarder, O: Observer, C: Control, B: PortSet, const V: usize> Engine<F, O, C, B, V> {
    pub(crate) fn new(
        setup: Setup<'_>,
        hosts: Hosts,
        network: Network<B, V>,
        forwarder: F,
        observer: O,
        control: C,
    ) -> Self {
        let parameters = setup.parameters;
        let arbitration = match setup.forwarding {
            Forwarding::Tables(subnet) => subnet.vl_arbitration.clone(),
            Forwarding::DimensionOrder(_) => VlArbitration::equal(V as u8),
        };
        let (ports, speedup) = (network.ports.len(), parameters.crossbar_speedup);
        let radix = u32::from(radix(setup.fabric));
        let mut engine = Engine {
            now: 0,
            packets: Records::default(),
            free: NIL,
            wheel: Wheel::new(setup.queue_width_log2),
            forwarder,
            observer,
            control,
            dirty: Vec::new(),
            totals: Totals::default(),
            adapters: vec![Adapter::IDLE; hosts.count()].into(),
            ranks: setup.programs.into_iter().map(RankState::new).collect(),
            messages: Records::default(),
            free_messages: Vec::new(),
            queues: Records::default(),
            free_queues: Vec::new(),
            pairs: Records::default(),
            queue_of: FxHashMap::default(),
            pair_of: FxHashMap::default(),
            addressing: Addressing::new(setup.fabric, &hosts, setup.forwarding),
            groups: setup.groups,
            dma: parameters.dma_rate.and_then(LinkRate::from_bits),
            drain: parameters.drain_rate.and_then(LinkRate::from_bits),
            credit_delay: parameters.cable_delay.0 + parameters.credit_delay.0,
            parameters,
            overflow: FxHashMap::default(),
            tables: ArbiterTables::new(&arbitration),
            arbiters: vec![Arbiter::default(); if V > 1 { ports } else { 0 }].into(),
            blocked_since: if O::ON { vec![NEVER; ports] } else { Vec::new() },
            fair: FxHashMap::default(),
            fair_now: FxHashMap::default(),
            capacity: network.capacity,
            hosts_at: network.hosts_at,
            mixed: network.mixed || speedup > 100,
            speedup,
            undecided: Vec::new(),
            backlog: vec![0; if F::ADAPTIVE { ports } else { 0 }].into(),
            voqs: vec![Voq::EMPTY; if F::VOQ { ports * V * radix as usize } else { 0 }].into(),
            radix,
            next_check: DEADLOCK_CHECK_PS,
            deadlock: None,
            drained: false,
            far_ahead: ports * size_of::<Port<B, V>>() > FITS_IN_SHARED_CACHE,
            fetches_ahead: ports * size_of::<Port<B, V>>() > FITS_IN_CACHE,
            places: network.places,
            classes: network.classes.into(),
            ports: network.ports.into(),
        };
        for rank in 0..engine.ranks.len() as u32 {
            let key = key(engine.hosts_at + rank, STEP, 0);
            engine.wheel.push(Event { time: 0, key, packet: 0 });
        }
        engine
    }

    /// A packet record holding `packet`.
    #[inline(always)]
    pub(crate) fn admit(&mut self, packet: Packet) -> u32 {
        if self.free == NIL {
            self.packets.push(packet);
            return self.packets.len() as u32 - 1;
        }
        let id = self.free;
        let record = &mut self.packets[id];
        self.free = record.next;
        *record = packet;
        id
    }

    #[inline(always)]
    pub(crate) fn release(&mut self, id: u32) {
        self.packets[id].next = self.free;
        self.free = id;
    }

    /// Asks for a look at `port` at `time`, unless an earlier one is already due.
    #[inline(always)]
    pub(crate) fn wake(&mut self, port: u32, time: u64) {
        let wake_at = &mut self.ports[port].wake_at;
        if time < *wake_at {
            *wake_at = time;
            self.wheel.push(Event { time, key: key(port, WAKE, 0), packet: 0 });
        }
    }

    /// Phase 1 of one event.
    #[inline(always)]
    fn apply(&mut self, event: Event) {
        let (port, lane) = (event.key >> 6, (event.key & 15) as u8);
        match event.key >> 4 & 3 {
            ARRIVE => self.arrive(port, lane, event.packet),
            WAKE => {
                let record = &mut self.ports[port];
                // A wake-up that an earlier one has replaced is stale.
                if record.wake_at == event.time {
                    record.wake_at = NEVER;
                    self.dirty.push(port);
                }
            }
            DELIVER => self.deliver(port, event.packet),
            _ => self.step_rank(port - self.hosts_at),
        }
    }

    /// A packet's head has become arbitrable: it joins its buffer.
    #[inline(always)]
    fn arrive(&mut self, port: u32, lane: u8, id: u32) {
        if O::ON {
            let bytes = u32::from(self.packets[id].bytes);
            self.observer.on_received(port, bytes);
        }
        if self.mixed {
            let bytes = u64::from(self.packets[id].bytes);
            let class = u32::from(self.ports[port].class);
            self.packets[id].tail = self.now + self.classes[class].rate.serialisation(bytes);
        }
        if C::ON && !(F::ADAPTIVE && F::VOQ) {
            self.foresee(port, lane, id);
        }
        if F::VOQ {
            return self.expose(port, lane, id);
        }
        let record = &mut self.ports[port];
        let at = usize::from(lane) % V;
        let last = std::mem::replace(&mut record.tail[at], id);
        if record.head[at] == NIL {
            self.expose(port, lane, id);
        } else {
            self.packets[last].next = id;
        }
    }

    /// Markers count a packet for its output from its arrival on, wherever in its buffer it is.
    /// Where the switch has yet to choose, that is the output of its table.
    fn foresee(&mut self, port: u32, lane: u8, id: u32) {
        let (record, packet) = (&self.ports[port], &self.packets[id]);
        let route = match packet.route {
            UNROUTED => self.forwarder.route(record.node, record.local, lane, packet),
            route => route,
        };
        let to = record.base(port) + u32::from(route.0);
        self.packets[id].route = route;
        self.note_queued(to, route.1, id);
    }

    /// A packet has come to the head of its buffer (with virtual output queues: into it): it is
    /// routed and waits at its output.
    #[inline(always)]
    pub(crate) fn expose(&mut self, port: u32, lane: u8, id: u32) {
        let packet = &self.packets[id];
        let record = &mut self.ports[port];
        if F::ADAPTIVE {
            // Until the switch has chosen, the head wants no output.
            record.output[usize::from(lane) % V] = UNROUTED.0;
            self.undecided.push((port, lane, id));
            return;
        }
        let route = match packet.route {
            UNROUTED => self.forwarder.route(record.node, record.local, lane, packet),
            route => route,
        };
        self.settle(port, lane, id, route);
    }

    /// A packet that has been routed waits at its output.
    #[inline(always)]
    pub(crate) fn settle(&mut self, port: u32, lane: u8, id: u32, route: (u8, u8)) {
        if C::ON && F::ADAPTIVE {
            let record = &self.ports[port];
            let to = record.base(port) + u32::from(route.0);
            if F::VOQ {
                self.note_queued(to, route.1, id);
            } else {
                let packet = &self.packets[id];
                let table = self.forwarder.route(record.node, record.local, lane, packet);
                let from = record.base(port) + u32::from(table.0);
                self.note_moved((from, table.1), (to, route.1), id);
            }
        }
        if F::VOQ {
            return self.settle_voq(port, lane, id, route);
        }
        let record = &self.ports[port];
        let (local, at) = (record.local, usize::from(lane) % V);
        let to = record.base(port) + u32::from(route.0);
        let ready = self.ready(to, id, record.ready[at]);
        let record = &mut self.ports[port];
        (record.head[at], record.need[at]) = (id, self.packets[id].credits);
        (record.output[at], record.lane[at]) = route;
        record.ready[at] = ready;
        self.await_output(local, to, route.1, ready);
    }

    /// When a head may be forwarded to `to` whose buffer lets it go at `free`.
    #[inline(always)]
    pub(crate) fn ready(&self, to: u32, id: u32, free: u64) -> u64 {
        let ready = free.max(self.now);
        if !self.mixed {
            return ready;
        }
        // A slow link must not run dry in the middle of a packet on a fast one.
        let packet = &self.packets[id];
        let class = u32::from(self.ports[to].class);
        let sending = self.classes[class].rate.serialisation(u64::from(packet.bytes));
        ready.max(packet.tail.saturating_sub(sending))
    }

    /// Input `local` has a head for (to, lane) that is ready at `ready`.
    #[inline(always)]
    pub(crate) fn await_output(&mut self, local: u8, to: u32, lane: u8, ready: u64) {
        let out = &mut self.ports[to];
        out.waiters[usize::from(lane) % V].insert(local);
        out.waiting |= 1 << lane;
        let when = ready.max(out.free_at);
        if when <= self.now {
            self.dirty.push(to);
        } else if when < out.wake_at {
            out.wake_at = when;
            self.wheel.push(Event { time: when, key: key(to, WAKE, 0), packet: 0 });
        }
    }

    /// A data packet is in the memory of `rank` at `at`.
    #[inline(always)]
    pub(crate) fn complete(&mut self, rank: u32, id: u32, at: u64) {
        let packet = &self.packets[id];
        let last = packet.flags & LAST != 0;
        self.totals.packets_delivered += 1;
        self.totals.messages_delivered += u64::from(last);
        if O::ON {
            self.observer.on_delivered(at, packet, Rank(rank), last);
        }
        self.release(id);
    }

    /// Phase 2: where switches may choose, they do so from the state phase 1 left, then every
    /// touched port arbitrates.
    #[inline(always)]
    fn arbitrate_all(&mut self) {
        if F::ADAPTIVE {
            self.decide();
        }
        let mut index = 0;
        while let Some(port) = self.dirty.get(index).copied() {
            self.arbitrate(port);
            index += 1;
        }
        self.dirty.clear();
    }

    /// Has the processor fetch what the next windows will touch: large fabrics are bound by the
    /// latency of memory, not by instructions. In two stages, because which output an arrival
    /// wants is known only once its port and packet have been read.
    fn fetch_ahead(&mut self) {
        if self.far_ahead {
            for event in self.wheel.coming(2) {
                let port = event.key >> 6;
                self.ports.prefetch::<2>(port);
                match event.key >> 4 & 3 {
                    ARRIVE | DELIVER => self.packets.prefetch::<1>(event.packet),
                    _ => {}
                }
            }
        }
        for event in self.wheel.coming(1) {
            let (port, lane) = (event.key >> 6, (event.key & 15) as u8);
            let record = &self.ports[port];
            match event.key >> 4 & 3 {
                ARRIVE => {
                    let packet = &mut self.packets[event.packet];
                    let route = self.forwarder.route(record.node, record.local, lane, packet);
                    if !F::ADAPTIVE {
                        packet.route = route;
                    }
                    self.ports.prefetch::<2>(record.base(port) + u32::from(route.0));
                    self.ports.prefetch::<2>(record.peer);
                }
                WAKE if port < self.hosts_at => {
                    for lane in 0..V {
                        record.waiters[lane].find_from(record.turn[lane], |local| {
                            self.ports.prefetch::<2>(record.base(port) + u32::from(local));
                            Some(())
                        });
                    }
                }
                _ => {}
            }
        }
    }

    /// Before the event at `time`: looks for a deadlock when that is due, stops at `until`.
    #[inline(never)]
    fn pause(&mut self, time: u64, until: u64) -> Option<Status> {
        if time >= self.next_check && self.next_check <= until {
            self.now = self.next_check;
            self.next_check = (time / DEADLOCK_CHECK_PS + 1) * DEADLOCK_CHECK_PS;
            if self.check_deadlock() {
                return Some(Status::Deadlocked);
            }
        }
        if time > until {
            self.now = until;
            return Some(Status::Running);
        }
        None
    }

    fn check_deadlock(&mut self) -> bool {
        if let Some(cycle) = deadlock::find(self) {
            self.deadlock = Some(Deadlock { found_at: Picoseconds(self.now), cycle });
        }
        self.deadlock.is_some()
    }

    /// Data packets, ACKs and CNPs in the network.
    pub(crate) fn in_flight(&self) -> u64 {
        let t = &self.totals;
        let injected = t.packets_injected + t.acks_injected + t.cnps_injected;
        injected - t.packets_delivered - t.acks_delivered - t.cnps_delivered
    }
}

impl<F: Forwarder, O: Observer, C: Control, B: PortSet, const V: usize> Run
    for Engine<F, O, C, B, V>
{
    fn now(&self) -> u64 {
        self.now
    }

    fn run_until(&mut self, until: u64, pause: &AtomicBool) -> Status {
        if self.deadlock.is_some() {
            return Status::Deadlocked;
        }
        let mut stop = self.next_check.min(until + 1);
        loop {
            let time = self.wheel.peek();
            if time >= stop {
                if time == NEVER {
                    if pause.load(Ordering::Relaxed) {
                        return Status::Paused;
                    }
                    if !self.wheel.advance() {
                        break;
                    }
                    if self.fetches_ahead {
                        self.fetch_ahead();
                    }
                    continue;
                }
                if let Some(status) = self.pause(time, until) {
                    return status;
                }
                stop = self.next_check.min(until + 1);
            }
            self.now = time;
            loop {
                let event = self.wheel.pop();
                self.totals.events += 1;
                self.apply(event);
                if self.wheel.peek() != time {
                    break;
                }
            }
            self.arbitrate_all();
            while F::ADAPTIVE && !self.undecided.is_empty() {
                // Heads that grants of this instant have brought up.
                self.arbitrate_all();
            }
        }
        // Nothing will happen any more: either all is done or what is left waits in a circle.
        if self.check_deadlock() {
            return Status::Deadlocked;
        }
        assert_eq!(self.in_flight(), 0, "packets are left, none waits in a circle, none is woken");
        self.drained = true;
        Status::Drained
    }

    fn totals(&self) -> Totals {
        self.totals
    }

    fn messages_kept(&self) -> u64 {
        (self.messages.len() - self.free_messages.len()) as u64
    }

    fn finish(mut self: Box<Self>) -> Outcome {
        if O::ON {
            for port in 0..self.blocked_since.len() {
                let since = self.blocked_since[port];
                if since != NEVER {
                    self.observer.on_waited(since, self.now.max(since), port as u32);
                }
            }
        }
        self.audit();
        let ending = match self.deadlock.take() {
            Some(deadlock) => Ending::Deadlock(deadlock),
            None if self.drained => match self.unfinished() {
                ranks if ranks.is_empty() => Ending::Drained,
                ranks => Ending::ProgramsWait(ranks),
            },
            None => Ending::TimeReached,
        };
        let mut records = self.observer.records();
        for (port, channel) in records.channels.iter_mut().enumerate() {
            let end = self.places.end(port as u32);
            (channel.node, channel.port) = (end.node.0, end.port.value());
        }
        records.channels.sort_by_key(|channel| (channel.node, channel.port));
        Outcome {
            ending,
            duration: Picoseconds(self.now),
            slice: records.slice,
            totals: self.totals,
            groups: records.groups,
            flows: records.flows,
            flows_dropped: records.flows_dropped,
            channels: records.channels,
            control: self.control.finish(),
        }
    }
}
