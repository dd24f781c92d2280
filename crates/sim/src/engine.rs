//! The hot loop. Each timestamp has two phases: everything that happens is applied, then every
//! touched output arbitrates. A grant at t has effects strictly later than t (a link takes time, a
//! cable at least 1 ps), so neither the order of events of one instant nor that of arbitrations can
//! be seen in any result.

use crate::adapter::{Adapter, Message, QueuePair, SendQueue};
use crate::arbiter::{Arbiter, ArbiterTables, Table};
use crate::deadlock;
use crate::forward::{Forwarder, Forwarding};
use crate::network::{ACK, Kind, LAST, NEVER, NIL, Network, Packet, Port, RELIABLE, RING, TOLD};
use crate::observe::Observer;
use crate::outcome::{Deadlock, Ending, Outcome, Totals};
use crate::ranks::{Addressing, RankState};
use crate::simulation::{GroupSettings, Setup, Status};
use crate::wheel::{Event, Wheel};
use crate::{Hosts, InputArbitration, Parameters};
use clearlane_ib::{LinkRate, Picoseconds};
use clearlane_subnet::VlArbitration;
use clearlane_workload::Rank;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// The head of a packet is arbitrable at a switch.
pub(crate) const ARRIVE: u32 = 0;
/// An output or adapter is to be looked at.
pub(crate) const WAKE: u32 = 1;
/// A packet is complete in a host's memory.
pub(crate) const DELIVER: u32 = 2;
/// A rank's program is to be stepped.
pub(crate) const STEP: u32 = 3;

/// Simulated time between two looks for a deadlock while packets still move elsewhere.
const DEADLOCK_CHECK_PS: u64 = 50_000_000;

/// (port, kind, lane) in one word: unique at one instant, so ties have one order.
#[inline(always)]
pub(crate) const fn key(port: u32, kind: u32, lane: u8) -> u32 {
    port << 6 | kind << 4 | lane as u32
}

/// An engine behind its type parameters.
pub(crate) trait Run: Send {
    fn run_until(&mut self, until: u64) -> Status;
    fn totals(&self) -> Totals;
    fn finish(self: Box<Self>) -> Outcome;
}

/// What a lane's next packet is, seen from an output.
pub(crate) enum Candidate {
    /// It may go if there are credits for it. A head that is ready at `sooner` may take the turn
    /// from it if it still waits then.
    Ready { input: u32, lane: u8, credits: u16, sooner: u64 },
    /// Nothing before this time.
    Later(u64),
}

/// Switches, adapters and programs, generic over how switches forward, who watches, the number of
/// lanes and the words of a bit set over ports.
pub(crate) struct Engine<F, O, const V: usize, const W: usize> {
    pub(crate) now: u64,
    pub(crate) ports: Vec<Port<V, W>>,
    pub(crate) packets: Vec<Packet>,
    /// Free packet records, linked by `next`.
    free: u32,
    pub(crate) wheel: Wheel,
    forwarder: F,
    pub(crate) observer: O,
    /// Outputs and adapters to arbitrate at this instant.
    pub(crate) dirty: Vec<u32>,
    pub(crate) totals: Totals,
    pub(crate) adapters: Vec<Adapter>,
    pub(crate) ranks: Vec<RankState>,
    pub(crate) messages: Vec<Message>,
    pub(crate) free_messages: Vec<u32>,
    pub(crate) queues: Vec<SendQueue>,
    pub(crate) free_queues: Vec<u32>,
    pub(crate) pairs: Vec<QueuePair>,
    pub(crate) addressing: Addressing,
    pub(crate) groups: Vec<GroupSettings>,
    pub(crate) parameters: Parameters,
    pub(crate) dma: Option<LinkRate>,
    drain: Option<LinkRate>,
    /// Cable and credit announcement.
    credit_delay: u64,
    /// Returned credits beyond a lane's ring, by port and lane.
    pub(crate) overflow: FxHashMap<(u32, u8), VecDeque<u64>>,
    pub(crate) tables: ArbiterTables,
    pub(crate) arbiters: Vec<Arbiter>,
    /// Since when a port waits for credits, `NEVER` if it does not; empty without an observer.
    pub(crate) blocked_since: Vec<u64>,
    fair: FxHashMap<(u32, u8, u32), u64>,
    fair_now: FxHashMap<(u32, u8), u64>,
    pub(crate) capacity: u16,
    pub(crate) hosts_at: u32,
    mixed: bool,
    next_check: u64,
    deadlock: Option<Deadlock>,
    drained: bool,
    pub(crate) ends: Vec<clearlane_fabric::Endpoint>,
    pub(crate) names: Vec<String>,
}

impl<F: Forwarder, O: Observer, const V: usize, const W: usize> Engine<F, O, V, W> {
    pub(crate) fn new(
        setup: Setup<'_>,
        hosts: Hosts,
        network: Network<V, W>,
        forwarder: F,
        observer: O,
    ) -> Self {
        let parameters = setup.parameters;
        let arbitration = match setup.forwarding {
            Forwarding::Tables(subnet) => subnet.vl_arbitration.clone(),
            Forwarding::DimensionOrder(_) => VlArbitration::equal(V as u8),
        };
        let ports = network.ports.len();
        let rate = |bits| LinkRate::from_bits(bits);
        let mut engine = Engine {
            now: 0,
            packets: Vec::new(),
            free: NIL,
            wheel: Wheel::new(setup.queue_width_log2),
            forwarder,
            observer,
            dirty: Vec::new(),
            totals: Totals::default(),
            adapters: (0..hosts.count()).map(|_| Adapter::new(V)).collect(),
            ranks: setup.programs.into_iter().map(RankState::new).collect(),
            messages: Vec::new(),
            free_messages: Vec::new(),
            queues: Vec::new(),
            free_queues: Vec::new(),
            pairs: Vec::new(),
            addressing: Addressing::new(setup.fabric, &hosts, setup.forwarding),
            groups: setup.groups,
            dma: parameters.dma_rate.and_then(rate),
            drain: parameters.drain_rate.and_then(rate),
            credit_delay: parameters.cable_delay.0 + parameters.credit_delay.0,
            parameters,
            overflow: FxHashMap::default(),
            tables: ArbiterTables::new(&arbitration),
            arbiters: if V > 1 { vec![Arbiter::default(); ports] } else { Vec::new() },
            blocked_since: if O::ON { vec![NEVER; ports] } else { Vec::new() },
            fair: FxHashMap::default(),
            fair_now: FxHashMap::default(),
            capacity: network.capacity,
            hosts_at: network.hosts_at,
            mixed: network.mixed,
            next_check: DEADLOCK_CHECK_PS,
            deadlock: None,
            drained: false,
            names: setup.fabric.nodes().iter().map(|node| node.name.clone()).collect(),
            ends: network.ends,
            ports: network.ports,
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
        let record = &mut self.packets[id as usize];
        self.free = record.next;
        *record = packet;
        id
    }

    #[inline(always)]
    pub(crate) fn release(&mut self, id: u32) {
        self.packets[id as usize].next = self.free;
        self.free = id;
    }

    /// Asks for a look at `port` at `time`, unless an earlier one is already due.
    #[inline(always)]
    pub(crate) fn wake(&mut self, port: u32, time: u64) {
        let wake_at = &mut self.ports[port as usize].wake_at;
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
                let record = &mut self.ports[port as usize];
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
            let bytes = u32::from(self.packets[id as usize].bytes);
            self.observer.on_received(port, bytes);
        }
        if self.mixed {
            let bytes = u64::from(self.packets[id as usize].bytes);
            let tail = self.now + self.ports[port as usize].rate.serialisation(bytes);
            self.packets[id as usize].tail = tail;
        }
        let input = &mut self.ports[port as usize].input[usize::from(lane)];
        let last = input.tail;
        input.tail = id;
        if input.head == NIL {
            self.expose(port, lane, id);
        } else {
            self.packets[last as usize].next = id;
        }
    }

    /// A packet has come to the head of its buffer: it is routed and waits at its output.
    #[inline(always)]
    fn expose(&mut self, port: u32, lane: u8, id: u32) {
        let packet = &self.packets[id as usize];
        let record = &self.ports[port as usize];
        let (base, local) = (record.base, record.local);
        let (output, out_lane) = self.forwarder.route(record.node, local, lane, packet);
        let to = base + u32::from(output);
        let mut ready = record.input[usize::from(lane)].ready.max(self.now);
        if self.mixed {
            // A slow link must not run dry in the middle of a packet on a fast one.
            let sending = self.ports[to as usize].rate.serialisation(u64::from(packet.bytes));
            ready = ready.max(packet.tail.saturating_sub(sending));
        }
        let credits = packet.credits;
        let input = &mut self.ports[port as usize].input[usize::from(lane)];
        (input.head, input.ready, input.credits) = (id, ready, credits);
        (input.output, input.lane) = (output, out_lane);
        let out = &mut self.ports[to as usize];
        let waiters = &mut out.out[usize::from(out_lane)].waiters;
        waiters[usize::from(local) / 64 % W] |= 1 << (local % 64);
        out.waiting |= 1 << out_lane;
        let when = ready.max(out.free_at);
        if when <= self.now {
            self.dirty.push(to);
        } else {
            self.wake(to, when);
        }
    }

    /// Phase 2 of one port: a switch output grants one packet, an adapter injects one.
    #[inline(always)]
    fn arbitrate(&mut self, port: u32) {
        let record = &self.ports[port as usize];
        if record.kind == Kind::Host {
            return self.inject(port);
        }
        if record.waiting == 0 {
            return;
        }
        if record.free_at > self.now {
            let free_at = record.free_at;
            return self.wake(port, free_at);
        }
        let (mut eligible, mut earliest, mut short) = (0u16, NEVER, false);
        let mut chosen = [(0u32, 0u8); V];
        let mut lanes = record.waiting;
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as u8;
            lanes &= lanes - 1;
            match self.candidate(port, lane) {
                Candidate::Ready { input, lane: from, credits, sooner } => {
                    if self.has_credits(port, lane, credits) {
                        eligible |= 1 << lane;
                        chosen[usize::from(lane)] = (input, from);
                    } else {
                        // The packet whose turn it is holds the lane: were a smaller one let past,
                        // full packets would starve beside ACKs.
                        short = true;
                        earliest = earliest.min(self.credits_at(port, lane, credits)).min(sooner);
                    }
                }
                Candidate::Later(time) => earliest = earliest.min(time),
            }
        }
        if eligible == 0 {
            return self.hold(port, short, earliest);
        }
        let (lane, table) = self.choose_lane(port, eligible);
        let (input, from) = chosen[usize::from(lane)];
        self.grant(port, lane, table, input, from);
    }

    /// VL arbitration among eligible lanes.
    #[inline(always)]
    pub(crate) fn choose_lane(&mut self, port: u32, eligible: u16) -> (u8, Table) {
        // A lane that is alone needs no turn and is not charged for one.
        if V == 1 || eligible.is_power_of_two() {
            (eligible.trailing_zeros() as u8, Table::Neither)
        } else {
            self.arbiters[port as usize].choose(&self.tables, eligible)
        }
    }

    /// The packet whose turn it is for a lane of an output.
    #[inline(always)]
    pub(crate) fn candidate(&self, port: u32, lane: u8) -> Candidate {
        if self.parameters.arbitration != InputArbitration::RoundRobin {
            return self.fair_candidate(port, lane);
        }
        let record = &self.ports[port as usize];
        let out = &record.out[usize::from(lane)];
        let mut earliest = NEVER;
        let turn = u32::from(out.turn);
        if W == 1 {
            let mut bits = out.waiters[0].rotate_right(turn);
            while bits != 0 {
                let local = (bits.trailing_zeros() + turn) & 63;
                bits &= bits - 1;
                match self.head_for(record.base + local, record.local, lane) {
                    Candidate::Later(time) => earliest = earliest.min(time),
                    Candidate::Ready { input, lane, credits, .. } => {
                        return Candidate::Ready { input, lane, credits, sooner: earliest };
                    }
                }
            }
        } else {
            let words = out.waiters.len() as u32 * 64;
            for step in 0..words {
                let local = (turn + step) % words;
                if out.waiters[(local / 64) as usize] >> (local % 64) & 1 == 0 {
                    continue;
                }
                match self.head_for(record.base + local, record.local, lane) {
                    Candidate::Later(time) => earliest = earliest.min(time),
                    Candidate::Ready { input, lane, credits, .. } => {
                        return Candidate::Ready { input, lane, credits, sooner: earliest };
                    }
                }
            }
        }
        Candidate::Later(earliest)
    }

    /// The head of an input port that wants (output, lane); of several lanes the longest ready.
    #[inline(always)]
    fn head_for(&self, input: u32, output: u8, lane: u8) -> Candidate {
        let lanes = &self.ports[input as usize].input;
        let (mut best, mut ready) = (0, NEVER);
        if V == 1 {
            ready = lanes[0].ready;
        } else {
            for (index, head) in lanes.iter().enumerate() {
                let wants = head.head != NIL && head.output == output && head.lane == lane;
                if wants && head.ready < ready {
                    (best, ready) = (index, head.ready);
                }
            }
        }
        if ready > self.now {
            return Candidate::Later(ready);
        }
        let credits = lanes[best].credits;
        Candidate::Ready { input, lane: best as u8, credits, sooner: NEVER }
    }

    /// Age-fair and flow-fair turns: every ready head is looked at.
    #[inline(never)]
    fn fair_candidate(&self, port: u32, lane: u8) -> Candidate {
        let record = &self.ports[port as usize];
        let out = &record.out[usize::from(lane)];
        let (mut best, mut earliest) = (None::<(u64, u32, u8, u16)>, NEVER);
        for local in 0..out.waiters.len() as u32 * 64 {
            if out.waiters[(local / 64) as usize] >> (local % 64) & 1 == 0 {
                continue;
            }
            match self.head_for(record.base + local, record.local, lane) {
                Candidate::Later(time) => earliest = earliest.min(time),
                Candidate::Ready { input, lane: from, credits, .. } => {
                    let head = self.ports[input as usize].input[usize::from(from)].head;
                    let packet = &self.packets[head as usize];
                    let rank = match self.parameters.arbitration {
                        InputArbitration::FlowFair => self.fair_tag(port, lane, packet.source),
                        _ => packet.born,
                    };
                    if best.is_none_or(|(known, ..)| rank < known) {
                        best = Some((rank, input, from, credits));
                    }
                }
            }
        }
        match best {
            Some((_, input, lane, credits)) => {
                Candidate::Ready { input, lane, credits, sooner: earliest }
            }
            None => Candidate::Later(earliest),
        }
    }

    /// Self-clocked fair queueing (Golestani, INFOCOM 1994): a source that was idle starts at the
    /// tag in service, so it cannot save up.
    fn fair_tag(&self, port: u32, lane: u8, source: u32) -> u64 {
        let now = self.fair_now.get(&(port, lane)).copied().unwrap_or(0);
        self.fair.get(&(port, lane, source)).copied().unwrap_or(0).max(now)
    }

    #[inline(never)]
    fn charge_fair(&mut self, port: u32, lane: u8, source: u32, bytes: u16) {
        let tag = self.fair_tag(port, lane, source);
        self.fair_now.insert((port, lane), tag);
        self.fair.insert((port, lane, source), tag + u64::from(bytes));
    }

    /// Takes in the returned credits that have arrived and says whether they suffice.
    #[inline(always)]
    pub(crate) fn has_credits(&mut self, port: u32, lane: u8, need: u16) -> bool {
        let out = &mut self.ports[port as usize].out[usize::from(lane)];
        while out.pending > 0 {
            let entry = out.ring[usize::from(out.first) % RING];
            if entry >> 16 > self.now {
                break;
            }
            out.credits += entry as u16;
            out.first = (out.first + 1) % RING as u8;
            out.pending -= 1;
        }
        if out.overflow {
            self.refill(port, lane);
        }
        self.ports[port as usize].out[usize::from(lane)].credits >= need
    }

    /// Moves returns from the overflow list into the ring, the oldest first.
    #[inline(never)]
    fn refill(&mut self, port: u32, lane: u8) {
        let out = &mut self.ports[port as usize].out[usize::from(lane)];
        let Some(list) = self.overflow.get_mut(&(port, lane)) else { return };
        while let Some(entry) = list.front().copied() {
            if out.pending == 0 && entry >> 16 <= self.now {
                out.credits += entry as u16;
            } else if usize::from(out.pending) < RING {
                out.ring[usize::from(out.first + out.pending) % RING] = entry;
                out.pending += 1;
            } else {
                return;
            }
            list.pop_front();
        }
        out.overflow = false;
        self.overflow.remove(&(port, lane));
    }

    /// When there will be `need` credits if no further one is returned; `NEVER` if there will not.
    #[inline(always)]
    pub(crate) fn credits_at(&self, port: u32, lane: u8, need: u16) -> u64 {
        let out = &self.ports[port as usize].out[usize::from(lane)];
        let mut credits = out.credits;
        for index in 0..out.pending {
            let entry = out.ring[usize::from(out.first + index) % RING];
            credits += entry as u16;
            if credits >= need {
                return entry >> 16;
            }
        }
        let further = out.overflow.then(|| self.overflow.get(&(port, lane))).flatten();
        for entry in further.into_iter().flatten() {
            credits += *entry as u16;
            if credits >= need {
                return entry >> 16;
            }
        }
        NEVER
    }

    /// Credits for space freed in a buffer reach the port that fills it at `time`.
    #[inline(always)]
    fn return_credits(&mut self, port: u32, lane: u8, credits: u16, time: u64) {
        let record = &mut self.ports[port as usize];
        let out = &mut record.out[usize::from(lane)];
        let entry = time << 16 | u64::from(credits);
        if usize::from(out.pending) == RING && !out.overflow {
            let oldest = out.ring[usize::from(out.first)];
            if oldest >> 16 <= self.now {
                out.credits += oldest as u16;
                out.first = (out.first + 1) % RING as u8;
                out.pending -= 1;
            }
        }
        if usize::from(out.pending) == RING || out.overflow {
            out.overflow = true;
            self.overflow.entry((port, lane)).or_default().push_back(entry);
        } else {
            out.ring[usize::from(out.first + out.pending) % RING] = entry;
            out.pending += 1;
        }
        let record = &self.ports[port as usize];
        if record.waiting >> lane & 1 == 1 {
            let when = time.max(record.free_at);
            self.wake(port, when);
        }
    }

    /// Sends the head of (input, from) out of (port, lane).
    #[inline(always)]
    fn grant(&mut self, port: u32, lane: u8, table: Table, input: u32, from: u8) {
        let head = self.ports[input as usize].input[usize::from(from)].head;
        let packet = &mut self.packets[head as usize];
        let (bytes, credits, next) = (packet.bytes, packet.credits, packet.next);
        let (is_ack, source) = (packet.flags & ACK != 0, packet.source);
        packet.next = NIL;
        let source_port = &self.ports[input as usize];
        let (upstream, local) = (source_port.peer, source_port.local);
        let record = &mut self.ports[port as usize];
        let busy = record.rate.serialisation(u64::from(bytes));
        let done = self.now + busy;
        record.free_at = done;
        let out = &mut record.out[usize::from(lane)];
        out.credits -= credits;
        out.turn = ((u32::from(local) + 1) % (64 * W as u32)) as u8;
        let (kind, peer, flight) = (record.kind, record.peer, record.flight);
        let output = record.local;
        self.leave(port, output, lane, input, from, next);
        self.ports[input as usize].input[usize::from(from)].ready = done;
        if V > 1 {
            self.arbiters[port as usize].charge(&self.tables, table, u32::from(bytes));
        }
        if self.parameters.arbitration == InputArbitration::FlowFair {
            self.charge_fair(port, lane, source, bytes);
        }
        self.totals.packet_hops += u64::from(!is_ack);
        self.totals.ack_hops += u64::from(is_ack);
        if O::ON {
            self.note_granted(port, bytes, busy);
        }
        if kind == Kind::Exit {
            self.eject(port, lane, head, done);
        } else {
            let time = self.now + u64::from(flight);
            self.wheel.push(Event { time, key: key(peer, ARRIVE, lane), packet: head });
        }
        self.return_credits(upstream, from, credits, done + self.credit_delay);
        if next != NIL {
            self.expose(input, from, next);
        }
        if self.ports[port as usize].waiting != 0 {
            self.wake(port, done);
        }
    }

    /// Takes the head of (input, from) off its buffer and off the waiters of (port, lane).
    #[inline(always)]
    fn leave(&mut self, port: u32, output: u8, lane: u8, input: u32, from: u8, next: u32) {
        let record = &mut self.ports[input as usize];
        let local = record.local;
        record.input[usize::from(from)].head = next;
        // Another lane of the same input may want the same output and lane.
        let still = V > 1
            && record.input.iter().enumerate().any(|(index, other)| {
                index != usize::from(from)
                    && other.head != NIL
                    && other.output == output
                    && other.lane == lane
            });
        if still {
            return;
        }
        let record = &mut self.ports[port as usize];
        let out = &mut record.out[usize::from(lane)];
        out.waiters[usize::from(local) / 64 % W] &= !(1 << (local % 64));
        if out.waiters.iter().all(|word| *word == 0) {
            record.waiting &= !(1 << lane);
        }
    }

    #[inline(always)]
    pub(crate) fn note_granted(&mut self, port: u32, bytes: u16, busy: u64) {
        let since = std::mem::replace(&mut self.blocked_since[port as usize], NEVER);
        if since != NEVER {
            self.observer.on_waited(since, self.now, port);
        }
        self.observer.on_granted(self.now, port, u32::from(bytes), busy);
    }

    /// Nothing can go: the port is looked at again at `earliest`; `short` if for want of credits.
    pub(crate) fn hold(&mut self, port: u32, short: bool, earliest: u64) {
        if O::ON && short {
            let since = &mut self.blocked_since[port as usize];
            *since = (*since).min(self.now);
        }
        if earliest != NEVER {
            self.wake(port, earliest);
        }
    }

    /// The last link: the packet is in the host's buffer at `tail` and in its memory when drained.
    #[inline(always)]
    fn eject(&mut self, port: u32, lane: u8, id: u32, sent: u64) {
        let host = self.ports[port as usize].peer;
        let rank = self.ports[host as usize].node;
        let packet = self.packets[id as usize];
        let tail = sent + self.parameters.cable_delay.0;
        let done = match self.drain {
            None => tail,
            Some(rate) => {
                let adapter = &mut self.adapters[rank as usize];
                let done = tail.max(adapter.drained_at) + rate.serialisation(packet.bytes.into());
                adapter.drained_at = done;
                done
            }
        };
        if O::ON {
            self.observer.on_received(host, u32::from(packet.bytes));
        }
        self.return_credits(port, lane, packet.credits, done + self.credit_delay);
        if packet.flags & (ACK | RELIABLE | TOLD) != 0 {
            let key = key(host, DELIVER, lane);
            self.wheel.push(Event { time: done, key, packet: id });
        } else {
            self.complete(rank, id, done);
        }
    }

    /// A data packet is in the memory of `rank` at `at`.
    #[inline(always)]
    pub(crate) fn complete(&mut self, rank: u32, id: u32, at: u64) {
        let packet = self.packets[id as usize];
        let last = packet.flags & LAST != 0;
        self.totals.packets_delivered += 1;
        self.totals.messages_delivered += u64::from(last);
        if O::ON {
            self.observer.on_delivered(at, &packet, Rank(rank), last);
        }
        self.release(id);
    }

    fn check_deadlock(&mut self) -> bool {
        if let Some(cycle) = deadlock::find(self) {
            self.deadlock = Some(Deadlock { found_at: Picoseconds(self.now), cycle });
        }
        self.deadlock.is_some()
    }

    /// Data packets and ACKs in the network.
    pub(crate) fn in_flight(&self) -> u64 {
        let t = &self.totals;
        t.packets_injected + t.acks_injected - t.packets_delivered - t.acks_delivered
    }
}

impl<F: Forwarder, O: Observer, const V: usize, const W: usize> Run for Engine<F, O, V, W> {
    fn run_until(&mut self, until: u64) -> Status {
        if self.deadlock.is_some() {
            return Status::Deadlocked;
        }
        while let Some(time) = self.wheel.peek() {
            if time >= self.next_check && self.next_check <= until {
                self.now = self.next_check;
                self.next_check = (time / DEADLOCK_CHECK_PS + 1) * DEADLOCK_CHECK_PS;
                if self.check_deadlock() {
                    return Status::Deadlocked;
                }
            }
            if time > until {
                self.now = until;
                return Status::Running;
            }
            self.now = time;
            while let Some(event) = self.wheel.pop_at(time) {
                self.totals.events += 1;
                self.apply(event);
            }
            let mut index = 0;
            while let Some(port) = self.dirty.get(index).copied() {
                self.arbitrate(port);
                index += 1;
            }
            self.dirty.clear();
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
        for (channel, end) in records.channels.iter_mut().zip(&self.ends) {
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
        }
    }
}
