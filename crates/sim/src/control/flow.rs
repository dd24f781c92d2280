//! Flows as notifiers and reactors see them, and what waits for a reactor's word: timers, and send
//! queues whose next packet may not leave yet.

use super::Mechanisms;
use super::record::{ControlRecord, Record};
use crate::network::{BECN_WHEN, BECN_WHICH, NIL};
use clearlane_congestion::{
    Arrived, Feedback, Notification, Notifier, Pair, Path, Probe, Reactor, Scope, Sent, Source,
    Stripes,
};
use clearlane_ib::random::Stream;
use clearlane_ib::{Bytes, Picoseconds};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A queue pair: what one source sends one destination for one flow group on one path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct FlowKey {
    pub(crate) source: u32,
    pub(crate) destination: u32,
    pub(crate) group: u16,
    pub(crate) path: u8,
    pub(crate) sl: u8,
}

/// A reactor and the pair it knows a flow by.
#[derive(Clone, Copy, Debug)]
struct Seat {
    reactor: u32,
    pair: Pair,
}

/// Both ends of a flow.
struct Flow {
    key: FlowKey,
    /// By half: the reactor.
    seats: [Option<Seat>; 2],
    /// Likewise, at the destination.
    notifiers: [Option<Box<dyn Notifier>>; 2],
    /// Packets not yet acknowledged: when they left and their bytes.
    sent: VecDeque<(u64, u32)>,
    /// When its last packet left; 0 before the first.
    injected_at: u64,
}

/// A reactor, whose it is, and the timer that is set for it.
struct Active {
    reactor: Box<dyn Reactor>,
    rank: u32,
    timer: Option<u64>,
    /// Flows it has seats for.
    pairs: u32,
    /// Those of them that have had a message.
    flows: Vec<u32>,
    /// What it showed before it had heard of anything.
    first: Vec<Probe>,
    /// Slices of the record that tell what it showed at their end, and when the next one ends.
    recorded: usize,
    recorded_until: u64,
}

/// What an adapter has to do at a time.
#[derive(Default)]
struct Due {
    /// Reactors that want a timer.
    timers: BinaryHeap<Reverse<(u64, u32)>>,
    /// Send queues whose next packet may leave: when, when their last one left, and the queue. Of
    /// those that share a limit, the one that has waited longest goes first.
    queues: BinaryHeap<Reverse<(u64, u64, u32)>>,
}

/// What a reactor is found by: source and service level, queue pair, or source and destination.
type Found = (u8, u32, u32, u32);

/// All flows.
pub(crate) struct Flows {
    mechanisms: Mechanisms,
    sources: Vec<Source>,
    flows: Vec<Flow>,
    by_key: FxHashMap<FlowKey, u32>,
    reactors: Vec<Active>,
    by_scope: FxHashMap<Found, u32>,
    due: Vec<Due>,
    record: Record,
    /// What a reactor shows; empty between two looks.
    probes: Vec<Probe>,
    plans: FxHashMap<(u32, u32, u16), Stream>,
    stripes: Stripes,
}

impl Flows {
    /// No flow yet. `sources` are those of the ranks.
    pub(crate) fn new(mechanisms: Mechanisms, sources: Vec<Source>, record: Record) -> Self {
        let due = sources.iter().map(|_| Due::default()).collect();
        Flows {
            mechanisms,
            sources,
            flows: Vec::new(),
            by_key: FxHashMap::default(),
            reactors: Vec::new(),
            by_scope: FxHashMap::default(),
            due,
            record,
            probes: Vec::new(),
            plans: FxHashMap::default(),
            stripes: Stripes::default(),
        }
    }

    /// The number of the flow with this key, which has a message at `now`.
    pub(crate) fn flow(&mut self, now: u64, key: FlowKey) -> u32 {
        if let Some(flow) = self.by_key.get(&key) {
            return *flow;
        }
        let flow = self.flows.len() as u32;
        let seats = Half::BOTH.map(|half| self.seat(half, key));
        let notifiers = Half::BOTH.map(|half| self.mechanisms.of(half)?.notifier());
        let sent = VecDeque::new();
        self.flows.push(Flow { key, seats, notifiers, sent, injected_at: 0 });
        self.by_key.insert(key, flow);
        for seat in seats.into_iter().flatten() {
            self.told(now, seat.reactor).flows.push(flow);
        }
        flow
    }

    /// A reactor that is about to be told something at `now`. What it shows cannot have changed
    /// since it was told something last: that is what it showed at the end of the slices since.
    fn told(&mut self, now: u64, reactor: u32) -> &mut Active {
        if self.reactors[reactor as usize].recorded_until <= now {
            self.show(reactor, self.record.ended(now));
        }
        &mut self.reactors[reactor as usize]
    }

    /// Records what a reactor shows up to a slice.
    fn show(&mut self, reactor: u32, upto: usize) {
        let active = &mut self.reactors[reactor as usize];
        let slices = std::mem::replace(&mut active.recorded, upto)..upto;
        let active = &self.reactors[reactor as usize];
        for number in &active.flows {
            let flow = &self.flows[*number as usize];
            let mut at = 0;
            for seat in flow.seats.iter().flatten() {
                if seat.reactor == reactor {
                    active.reactor.probe(seat.pair, &mut |probe| self.probes.push(probe));
                    break;
                }
                at += self.reactors[seat.reactor as usize].first.len();
            }
            if !self.record.knows(*number) && self.probes != active.first {
                self.record.begin(*number, flow.key, first(&self.reactors, flow));
            }
            self.record.shown(*number, slices.clone(), at, &self.probes);
            self.probes.clear();
        }
        let until = self.record.end(upto);
        self.reactors[reactor as usize].recorded_until = until;
    }

    /// The seat of a flow with the reactor of one of the mechanisms.
    fn seat(&mut self, half: Half, key: FlowKey) -> Option<Seat> {
        let mechanism = self.mechanisms.of(half)?;
        let scope = mechanism.scope();
        let found = half.scope(scope, key);
        let reactor = match self.by_scope.get(&found) {
            Some(reactor) => *reactor,
            None => {
                let reactor = mechanism.reactor(&self.sources[key.source as usize])?;
                let mut first = Vec::new();
                reactor.probe(Pair(0), &mut |probe| first.push(probe));
                self.reactors.push(Active {
                    reactor,
                    rank: key.source,
                    timer: None,
                    pairs: 0,
                    flows: Vec::new(),
                    first,
                    recorded: 0,
                    recorded_until: self.record.end(0),
                });
                let reactor = self.reactors.len() as u32 - 1;
                self.by_scope.insert(found, reactor);
                reactor
            }
        };
        let active = &mut self.reactors[reactor as usize];
        let pair = match scope {
            Scope::Flow => Pair(key.path.into()),
            _ => Pair(active.pairs),
        };
        active.pairs += 1;
        Some(Seat { reactor, pair })
    }

    /// The earliest time at which the next packet of a flow may leave.
    pub(crate) fn next_injection(&self, flow: u32) -> u64 {
        let [when, _] = self.flows[flow as usize].seats;
        when.map_or(0, |seat| {
            self.reactors[seat.reactor as usize].reactor.next_injection(seat.pair).0
        })
    }

    pub(crate) fn injected(&mut self, now: u64, flow: u32, bytes: u16, busy: u64, reliable: bool) {
        let flow = &mut self.flows[flow as usize];
        flow.injected_at = now;
        if reliable {
            flow.sent.push_back((now, bytes.into()));
        }
        for seat in flow.seats.into_iter().flatten() {
            let sent = Sent { pair: seat.pair, bytes: bytes.into(), busy: Picoseconds(busy) };
            self.told(now, seat.reactor).reactor.on_sent(Picoseconds(now), &sent);
            self.set_timer(now, seat.reactor);
        }
    }

    /// What the destination of a flow sends back: the answer of each half, with its BECN flag.
    pub(crate) fn arrived(
        &mut self,
        now: u64,
        flow: u32,
        packet: &Arrived,
    ) -> [(u8, Notification); 2] {
        let notifiers = &mut self.flows[flow as usize].notifiers;
        Half::BOTH.map(|half| {
            let answer = match &mut notifiers[half as usize] {
                Some(notifier) => notifier.on_arrived(Picoseconds(now), packet),
                None => Notification::None,
            };
            (half.becn(), answer)
        })
    }

    /// BECN has arrived for a flow, for the halves with a flag among `flags`.
    pub(crate) fn becn(&mut self, now: u64, flow: u32, flags: u8) {
        if !self.record.knows(flow) {
            let of = &self.flows[flow as usize];
            self.record.begin(flow, of.key, first(&self.reactors, of));
        }
        self.record.becn(now, flow);
        for half in Half::BOTH.into_iter().filter(|half| flags & half.becn() != 0) {
            self.feed(now, flow, half, Feedback::Becn);
        }
    }

    pub(crate) fn acknowledged(&mut self, now: u64, flow: u32, packets: u32) {
        let sent = &mut self.flows[flow as usize].sent;
        let (mut last, mut acknowledged) = (None, 0);
        for (time, bytes) in sent.drain(..sent.len().min(packets as usize)) {
            (last, acknowledged) = (Some((time, bytes)), acknowledged + u64::from(bytes));
        }
        if let Some((time, bytes)) = last {
            let latency = Picoseconds(now - time);
            let ack = Feedback::Ack { latency, bytes, acknowledged };
            Half::BOTH.iter().for_each(|half| self.feed(now, flow, *half, ack));
        }
    }

    fn feed(&mut self, now: u64, flow: u32, half: Half, feedback: Feedback) {
        if let Some(seat) = self.flows[flow as usize].seats[half as usize] {
            let active = self.told(now, seat.reactor);
            active.reactor.on_feedback(Picoseconds(now), seat.pair, feedback);
            self.set_timer(now, seat.reactor);
        }
    }

    /// Has the reactor's next timer come up.
    fn set_timer(&mut self, now: u64, reactor: u32) {
        let active = &mut self.reactors[reactor as usize];
        let wanted = active.reactor.next_timer().map(|time| time.0.max(now + 1));
        if let Some(time) = wanted
            && active.timer != wanted
        {
            self.due[active.rank as usize].timers.push(Reverse((time, reactor)));
        }
        active.timer = wanted;
    }

    /// Tells reactors of an adapter whose time has come.
    pub(crate) fn run_timers(&mut self, now: u64, rank: u32) {
        while let Some(Reverse((time, reactor))) = self.due[rank as usize].timers.peek().copied() {
            if time > now {
                break;
            }
            self.due[rank as usize].timers.pop();
            // Another timer may have been asked for since.
            if self.reactors[reactor as usize].timer == Some(time) {
                let active = self.told(time, reactor);
                active.timer = None;
                active.reactor.on_timer(Picoseconds(time));
                self.set_timer(now, reactor);
            }
        }
    }

    /// Has a send queue, whose head is of `flow`, wait until `time`.
    pub(crate) fn pause(&mut self, rank: u32, queue: u32, flow: u32, time: u64) {
        let injected_at = self.flows[flow as usize].injected_at;
        self.due[rank as usize].queues.push(Reverse((time, injected_at, queue)));
    }

    /// A send queue whose next packet may leave.
    pub(crate) fn released(&mut self, now: u64, rank: u32) -> Option<u32> {
        let queues = &mut self.due[rank as usize].queues;
        let Reverse((time, _, queue)) = *queues.peek()?;
        (time <= now).then(|| {
            queues.pop();
            queue
        })
    }

    /// When the adapter has to look again.
    pub(crate) fn next_due(&self, rank: u32) -> Option<u64> {
        let due = &self.due[rank as usize];
        let timer = due.timers.peek().map(|Reverse((time, _))| *time);
        let queue = due.queues.peek().map(|Reverse((time, ..))| *time);
        timer.into_iter().chain(queue).min()
    }

    /// Whether a mechanism chooses paths.
    pub(crate) fn chooses_paths(&self) -> bool {
        self.mechanisms.which.is_some()
    }

    /// Splits a message over paths; nothing if no mechanism chooses paths.
    pub(crate) fn plan(
        &mut self,
        now: u64,
        (source, destination, group): (u32, u32, u16),
        bytes: u64,
    ) -> Option<&Stripes> {
        self.mechanisms.which.as_ref()?;
        self.stripes.clear();
        let first = FlowKey { source, destination, group, path: 0, sl: 0 };
        let found = Half::Which.scope(Scope::Flow, first);
        let reactor = match self.by_scope.get(&found) {
            Some(reactor) => Some(*reactor),
            None => self.seat(Half::Which, first).map(|seat| seat.reactor),
        };
        let Some(reactor) = reactor else {
            self.stripes.push(Path(0), Bytes(bytes));
            return Some(&self.stripes);
        };
        let seed = self.mechanisms.seed;
        let stream = self.plans.entry((source, destination, group)).or_insert_with(|| {
            let noun = format!("paths of group {group}");
            Stream::new(seed, &noun, u64::from(source) << 32 | u64::from(destination))
        });
        let draw = stream.bits();
        let mut stripes = std::mem::take(&mut self.stripes);
        let active = self.told(now, reactor);
        active.reactor.plan(Picoseconds(now), Bytes(bytes), draw, &mut stripes);
        self.stripes = stripes;
        self.set_timer(now, reactor);
        Some(&self.stripes)
    }

    /// A stripe has been acknowledged whole.
    pub(crate) fn completed(&mut self, now: u64, flow: u32, bytes: u64, born: u64) {
        let posted_at = Picoseconds(born);
        let completion = Feedback::Completion { bytes: Bytes(bytes), posted_at };
        Half::BOTH.iter().for_each(|half| self.feed(now, flow, *half, completion));
    }

    /// What the mechanisms did.
    pub(crate) fn finish(&mut self) -> ControlRecord {
        for reactor in 0..self.reactors.len() as u32 {
            self.show(reactor, self.record.ended(u64::MAX));
        }
        self.record.finish()
    }
}

/// What the reactors of a flow showed before they had heard of anything.
fn first<'a>(reactors: &'a [Active], flow: &'a Flow) -> impl Iterator<Item = Probe> + 'a {
    let seats = flow.seats.iter().flatten();
    seats.flat_map(|seat| reactors[seat.reactor as usize].first.iter().copied())
}

/// Which of the two mechanisms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Half {
    When,
    Which,
}

impl Half {
    /// The one that decides when first.
    pub(super) const BOTH: [Half; 2] = [Half::When, Half::Which];

    /// The flag of packets that notify it.
    fn becn(self) -> u8 {
        match self {
            Half::When => BECN_WHEN,
            Half::Which => BECN_WHICH,
        }
    }

    /// What a flow's reactor is found by.
    fn scope(self, scope: Scope, key: FlowKey) -> Found {
        let group = u32::from(key.group);
        let (destination, rest) = match scope {
            Scope::ServiceLevel => (key.sl.into(), NIL),
            Scope::QueuePair => (key.destination, group << 8 | u32::from(key.path)),
            // No path has this number.
            Scope::Flow => (key.destination, group << 8 | 0xff),
        };
        (self as u8, key.source, destination, rest)
    }
}
