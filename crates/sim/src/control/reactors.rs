//! Adapters as mechanisms see them: the flows of sources, their reactors, and what waits for a
//! reactor's word: timers, and send queues whose next packet may not leave yet; the notifiers of
//! destinations; the order of messages over several paths.

use super::order::{Posted, Sequences};
use super::record::Record;
use super::{Decision, SharedMechanisms};
use crate::MessageOrder;
use crate::model::{Arrival, FlowKey, Governed, Leaving, Plan, QueueRank, Reactors, StripePlan};
use crate::outcome::ControlRecord;
use crate::packet::{
    Envelope, Flags, FlowIndex, Packet, PacketIndex, QueuePairIndex, READ, RELIABLE, RESPONSE,
    ReactorIndex, Waiter,
};
use crate::port::NEVER;
use crate::records::Records;
use crate::saved::{Parts, SavedPacket, SavedReactors, TakePacket, Whole};
use clearlane_congestion::{
    Arrived, Feedback, Notification, Notifier, Notifies, Pair, Probe, Reactor, Scope, Sent, Source,
    Stripes,
};
use clearlane_ib::random::Stream;
use clearlane_ib::{Bytes, Picoseconds};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, VecDeque};

/// A reactor that governs a flow, `NIL` if none does, and the pair it knows the flow by.
pub(super) type Governing = (ReactorIndex, Pair);

/// No reactor.
const BY_NONE: Governing = (ReactorIndex::NIL, Pair(0));

/// A flow at its source.
pub(super) struct Flow {
    pub(super) key: FlowKey,
    /// By decision.
    pub(super) governed: [Governing; 2],
}

/// A reactor, whose it is, and the timer that is set for it.
pub(super) struct Governor {
    pub(super) reactor: Box<dyn Reactor>,
    pub(super) slot: u32,
    pub(super) timer: Option<u64>,
    /// Flows it governs.
    pub(super) pairs: u32,
    /// Those of them that have had a message.
    pub(super) flows: Vec<FlowIndex>,
    /// What it showed before it had heard of anything.
    pub(super) first: Vec<Probe>,
    /// Until when slices of the record tell what it showed at their end, and when the next one
    /// ends.
    pub(super) recorded: u64,
    pub(super) recorded_until: u64,
}

/// What an adapter has to do at a time.
pub(super) struct Due {
    /// When first; `NEVER` if nothing.
    pub(super) at: u64,
    /// Reactors that want a timer.
    pub(super) timers: BinaryHeap<Reverse<(u64, ReactorIndex)>>,
    /// Send queues whose next packet may leave: when, when their last one left, and the queue. Of
    /// those that share a limit, the one that has waited longest goes first; of those that have
    /// waited equally long, the one with the smallest destination.
    pub(super) queues: BinaryHeap<Reverse<(u64, u64, QueueRank, QueuePairIndex)>>,
}

impl Due {
    /// Nothing.
    const fn nothing() -> Self {
        Due { at: NEVER, timers: BinaryHeap::new(), queues: BinaryHeap::new() }
    }

    /// Looks anew when the first is.
    pub(super) fn find_first(&mut self) {
        let timer = self.timers.peek().map_or(NEVER, |Reverse((time, _))| *time);
        let queue = self.queues.peek().map_or(NEVER, |Reverse((time, ..))| *time);
        self.at = timer.min(queue);
    }
}

/// What a reactor is found by: decision, slot, destination or service level, and the rest of what
/// its scope tells apart.
type ScopeKey = (u8, u32, u32, u32);

/// What a notifier at a destination is found by, beside the decision it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Notified {
    /// The sender and its queue pair.
    QueuePair(u32, u32),
    /// The slot that marked packets come to.
    Port(u32),
}

/// All of a partition's adapters.
pub(crate) struct AdapterReactors {
    pub(super) mechanisms: SharedMechanisms,
    /// By slot.
    pub(super) sources: Vec<Source>,
    pub(super) flows: Records<FlowIndex, Flow>,
    /// By flow, where reactors hear of ACKs: packets not yet acknowledged, when they left and
    /// their bytes.
    pub(super) sent: Records<FlowIndex, VecDeque<(u64, u32)>>,
    pub(super) hears_acks: bool,
    pub(super) reactors: Records<ReactorIndex, Governor>,
    pub(super) by_scope: FxHashMap<ScopeKey, ReactorIndex>,
    /// By decision: the one notifier of everything, if it has no state.
    pub(super) notifier: [Option<Box<dyn Notifier>>; 2],
    /// Else those that have had a marked packet.
    pub(super) notifiers: FxHashMap<(u8, Notified), Box<dyn Notifier>>,
    /// By slot.
    pub(super) due: Vec<Due>,
    /// Times at which the slot that was told about last will be due, not yet handed out.
    pub(super) fresh: Vec<u64>,
    pub(super) record: Record,
    /// What a reactor shows; empty between two looks.
    pub(super) probes: Vec<Probe>,
    pub(super) plans: FxHashMap<(u32, u32, u16), Stream>,
    pub(super) stripes: Stripes,
    pub(super) posted: Posted,
    /// While a run is loaded: divided messages by their numbers in the whole run, and how many
    /// further stripes may be theirs.
    pub(super) loaded: FxHashMap<u32, (u32, u32)>,
    pub(super) sequences: Sequences,
}

impl AdapterReactors {
    /// Those of adapters that know of nothing yet; `sources` are their source sides, by slot.
    pub(crate) fn new(
        mechanisms: SharedMechanisms,
        sources: Vec<Source>,
        record: Record,
        order: MessageOrder,
    ) -> Self {
        let hears_acks = mechanisms.all().any(|mechanism| mechanism.hears_acks());
        let notifier = Decision::BOTH.map(|decision| {
            let of = mechanisms.of(decision)?;
            (of.notifies() == Notifies::Everything).then(|| of.notifier())?
        });
        AdapterReactors {
            mechanisms,
            notifier,
            hears_acks,
            due: sources.iter().map(|_| Due::nothing()).collect(),
            fresh: Vec::new(),
            sources,
            flows: Records::default(),
            sent: Records::default(),
            reactors: Records::default(),
            by_scope: FxHashMap::default(),
            notifiers: FxHashMap::default(),
            record,
            probes: Vec::new(),
            plans: FxHashMap::default(),
            stripes: Stripes::default(),
            posted: Posted::default(),
            loaded: FxHashMap::default(),
            sequences: Sequences::new(order),
        }
    }

    /// Records this reactor's probes for all slices that have ended since its last event, then
    /// returns it. Its probes cannot change between events.
    fn about_to_tell(&mut self, now: u64, reactor: ReactorIndex) -> &mut Governor {
        if self.reactors[reactor].recorded_until <= now {
            let ended = self.record.ended(now);
            self.show(reactor, ended);
        }
        &mut self.reactors[reactor]
    }

    /// Records what a reactor shows up to a slice.
    fn show(&mut self, reactor: ReactorIndex, upto: usize) {
        let governor = &mut self.reactors[reactor];
        // Slices that have doubled since may be recorded in part.
        let recorded = std::mem::replace(&mut governor.recorded, self.record.begin_of(upto));
        let slices = self.record.number(recorded)..upto;
        let governor = &self.reactors[reactor];
        for number in &governor.flows {
            let flow = &self.flows[*number];
            let mut at = 0;
            for (by, pair) in flow.governed.iter().filter(|one| one.0 != ReactorIndex::NIL) {
                if *by == reactor {
                    governor.reactor.probe(*pair, &mut |probe| self.probes.push(probe));
                    break;
                }
                at += self.reactors[*by].first.len();
            }
            if self.record.wants(number.0) && self.probes != governor.first {
                self.record.begin(number.0, flow.key, first(&self.reactors, flow));
            }
            self.record.shown(number.0, slices.clone(), at, &self.probes);
            self.probes.clear();
        }
        let until = self.record.end(upto);
        self.reactors[reactor].recorded_until = until;
    }

    /// What governs a flow by one of the mechanisms.
    fn govern(&mut self, decision: Decision, slot: u32, key: FlowKey) -> Governing {
        let Some(mechanism) = self.mechanisms.of(decision) else { return BY_NONE };
        let scope = mechanism.scope();
        let scope_key = scope_key(decision, scope, slot, key);
        let by = match self.by_scope.get(&scope_key) {
            Some(reactor) => *reactor,
            None => {
                let reactor = mechanism.reactor(&self.sources[slot as usize]);
                let Some(reactor) = reactor else { return BY_NONE };
                let mut first = Vec::new();
                reactor.probe(Pair(0), &mut |probe| first.push(probe));
                let by = ReactorIndex(self.reactors.push(Governor {
                    reactor,
                    slot,
                    timer: None,
                    pairs: 0,
                    flows: Vec::new(),
                    first,
                    recorded: 0,
                    recorded_until: self.record.end(0),
                }) as u32);
                self.by_scope.insert(scope_key, by);
                by
            }
        };
        let governor = &mut self.reactors[by];
        let pair = match scope {
            Scope::Flow => Pair(key.path.into()),
            _ => Pair(governor.pairs),
        };
        governor.pairs += 1;
        (by, pair)
    }

    fn feed(&mut self, now: u64, of: Governed, decision: Decision, feedback: Feedback) {
        let (by, pair) = self.governing(of, decision);
        if by != ReactorIndex::NIL {
            let governor = self.about_to_tell(now, by);
            governor.reactor.on_feedback(Picoseconds(now), pair, feedback);
            self.set_timer(now, by);
        }
    }

    /// What governs a flow's decision.
    #[inline(always)]
    fn governing(&self, of: Governed, decision: Decision) -> Governing {
        match decision {
            Decision::When => (of.by, Pair(of.pair)),
            Decision::Which if self.mechanisms.which.is_none() => BY_NONE,
            Decision::Which => self.flows[of.flow].governed[decision as usize],
        }
    }

    /// The notifier of a packet that has come to a slot, if destinations notify.
    fn notifier(
        &mut self,
        decision: Decision,
        slot: u32,
        packet: &Packet,
    ) -> Option<&mut Box<dyn Notifier>> {
        if self.notifier[decision as usize].is_some() {
            return self.notifier[decision as usize].as_mut();
        }
        let mechanism = self.mechanisms.of(decision)?;
        let of = match mechanism.notifies() {
            Notifies::Port => Notified::Port(slot),
            _ => Notified::QueuePair(packet.source, packet.queue_pair),
        };
        match self.notifiers.entry((decision as u8, of)) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(place) => Some(place.insert(mechanism.notifier()?)),
        }
    }

    /// Has the reactor's next timer come up.
    fn set_timer(&mut self, now: u64, reactor: ReactorIndex) {
        let governor = &mut self.reactors[reactor];
        let wanted = governor.reactor.next_timer().map(|time| time.0.max(now + 1));
        if let Some(time) = wanted
            && governor.timer != wanted
        {
            let due = &mut self.due[governor.slot as usize];
            due.timers.push(Reverse((time, reactor)));
            due.at = due.at.min(time);
            self.fresh.push(time);
        }
        governor.timer = wanted;
    }

    /// How the mechanism that chooses paths divides a message.
    fn divide(&mut self, now: u64, slot: u32, key: FlowKey, bytes: u64) -> Vec<StripePlan> {
        let scope_key = scope_key(Decision::Which, Scope::Flow, slot, key);
        let reactor = match self.by_scope.get(&scope_key) {
            Some(reactor) => *reactor,
            None => self.govern(Decision::Which, slot, key).0,
        };
        if reactor == ReactorIndex::NIL {
            return vec![StripePlan { path: 0, bytes }];
        }
        let FlowKey { source, destination, group, .. } = key;
        let seed = self.mechanisms.seed;
        let stream = self.plans.entry((source, destination, group));
        let stream = stream.or_insert_with(|| plan_stream(seed, source, destination, group));
        let draw = stream.bits();
        let mut stripes = std::mem::take(&mut self.stripes);
        stripes.clear();
        let governor = self.about_to_tell(now, reactor);
        governor.reactor.plan(Picoseconds(now), Bytes(bytes), draw, &mut stripes);
        self.set_timer(now, reactor);
        let paths = self.sources[slot as usize].paths.max(1);
        let parts = check_stripes(stripes.parts(), bytes, paths);
        self.stripes = stripes;
        parts
    }
}

/// A mechanism that returns stripes which are not the message, or paths there are not, is a fault
/// of this program, and would read tables where there are none.
fn check_stripes(parts: &[clearlane_congestion::Stripe], bytes: u64, paths: u8) -> Vec<StripePlan> {
    let sum: u64 = parts.iter().map(|part| part.bytes.0).sum();
    assert!(!parts.is_empty() && sum == bytes, "stripes of {sum} B for a message of {bytes} B");
    let checked = |part: &clearlane_congestion::Stripe| {
        assert!(part.path.0 < paths, "path {} of {paths}", part.path.0);
        assert!(part.bytes.0 > 0 || parts.len() == 1, "a stripe of no bytes beside others");
        StripePlan { path: part.path.0, bytes: part.bytes.0 }
    };
    parts.iter().map(checked).collect()
}

impl Reactors for AdapterReactors {
    const ON: bool = true;

    fn save(
        &self,
        whole: &Whole<'_>,
        rank: &dyn Fn(u32) -> u32,
        packet: &dyn Fn(PacketIndex) -> SavedPacket,
    ) -> SavedReactors {
        self.save_all(whole, rank, packet)
    }

    fn load(
        &mut self,
        saved: &SavedReactors,
        parts: &Parts<'_>,
        packet: TakePacket<'_>,
    ) -> Option<()> {
        self.load_all(saved, parts, packet)
    }

    fn grown_to(&self) -> u64 {
        self.record.grown_to()
    }

    fn grow(&mut self, reach: u64) {
        self.record.reach(reach);
    }

    fn counts(&self) -> (u32, u32, u32) {
        let wholes = self.posted.wholes().count() as u32;
        (self.flows.len() as u32, self.reactors.len() as u32, wholes)
    }

    fn load_whole(
        &mut self,
        saved: &SavedReactors,
        number: u32,
        place: &dyn Fn(u32) -> Option<u32>,
    ) -> Option<u32> {
        self.load_divided(saved, number, place)
    }

    fn flow(&mut self, now: u64, slot: u32, key: FlowKey) -> Governed {
        let governed = Decision::BOTH.map(|decision| self.govern(decision, slot, key));
        let flow = FlowIndex(self.flows.push(Flow { key, governed }) as u32);
        if self.hears_acks {
            self.sent.push(VecDeque::new());
        }
        for (by, _) in governed.iter().filter(|one| one.0 != ReactorIndex::NIL) {
            self.about_to_tell(now, *by).flows.push(flow);
        }
        let [(by, pair), _] = governed;
        Governed { flow, by, pair: pair.0 }
    }

    fn plan(
        &mut self,
        now: u64,
        slot: u32,
        key: FlowKey,
        bytes: u64,
        waiter: Option<Waiter>,
    ) -> Option<Plan> {
        self.mechanisms.which.as_ref()?;
        let stripes = self.divide(now, slot, key, bytes);
        let to = (slot, key.destination, key.group);
        let (whole, number) = self.posted.post(to, stripes.len() as u32, waiter);
        Some(Plan { stripes, whole, number })
    }

    fn next_injection(&self, of: Governed) -> u64 {
        match of.by {
            ReactorIndex::NIL => 0,
            by => self.reactors[by].reactor.next_injection(Pair(of.pair)).0,
        }
    }

    fn state(&self, of: Governed) -> Option<u64> {
        let mut first = None;
        if of.by != ReactorIndex::NIL {
            let show = &mut |probe: Probe| first = first.or(Some(probe.value));
            self.reactors[of.by].reactor.probe(Pair(of.pair), show);
        }
        first
    }

    fn is_unlimited(&self, now: u64, of: Governed) -> bool {
        match of.by {
            ReactorIndex::NIL => true,
            by => self.reactors[by].reactor.is_unlimited(Picoseconds(now), Pair(of.pair)),
        }
    }

    fn on_sent(&mut self, now: u64, of: Governed, unlimited: bool, packet: Leaving) -> bool {
        let Leaving { bytes, busy, reliable } = packet;
        if self.hears_acks && reliable {
            self.sent[of.flow].push_back((now, bytes.into()));
        }
        for decision in Decision::BOTH {
            let (by, pair) = self.governing(of, decision);
            if by != ReactorIndex::NIL && !(unlimited && decision == Decision::When) {
                let sent = Sent { pair, bytes: bytes.into(), busy: Picoseconds(busy) };
                self.about_to_tell(now, by).reactor.on_sent(Picoseconds(now), &sent);
                self.set_timer(now, by);
            }
        }
        unlimited || self.is_unlimited(now, of)
    }

    fn on_becn(&mut self, now: u64, of: Governed, flags: Flags) {
        if self.record.wants(of.flow.0) {
            let flow = &self.flows[of.flow];
            self.record.begin(of.flow.0, flow.key, first(&self.reactors, flow));
        }
        self.record.becn(now, of.flow.0);
        for decision in Decision::BOTH {
            if flags & decision.becn() != 0 {
                self.feed(now, of, decision, Feedback::Becn);
            }
        }
    }

    fn on_acknowledged(&mut self, now: u64, of: Governed, packets: u32, by_ack: bool) -> bool {
        if !self.hears_acks {
            return false;
        }
        let sent = &mut self.sent[of.flow];
        let (mut last, mut acknowledged) = (None, 0);
        for (time, bytes) in sent.drain(..sent.len().min(packets as usize)) {
            (last, acknowledged) = (Some((time, bytes)), acknowledged + u64::from(bytes));
        }
        if let Some((time, bytes)) = last.filter(|_| by_ack) {
            let latency = Picoseconds(now - time);
            let ack = Feedback::Ack { latency, bytes, acknowledged };
            Decision::BOTH.iter().for_each(|decision| self.feed(now, of, *decision, ack));
        }
        true
    }

    fn on_completed(&mut self, now: u64, of: Governed, bytes: u64, born: u64) {
        let posted_at = Picoseconds(born);
        let completion = Feedback::Completion { bytes: Bytes(bytes), posted_at };
        Decision::BOTH.iter().for_each(|decision| self.feed(now, of, *decision, completion));
    }

    fn on_stripe_sent(&mut self, whole: u32) -> Option<Waiter> {
        self.posted.sent(whole)
    }

    fn on_marked(&mut self, now: u64, slot: u32, packet: &Packet) -> (Flags, Flags) {
        // No ACK follows a READ or the response to it: a BECN would wait for that of others.
        let reliable = packet.flags & (RELIABLE | RESPONSE | READ) == RELIABLE;
        let arrived = Arrived { fecn: true, reliable };
        let (mut on_ack, mut in_cnp) = (0, 0);
        for decision in Decision::BOTH {
            let Some(notifier) = self.notifier(decision, slot, packet) else { continue };
            match notifier.on_arrived(Picoseconds(now), &arrived) {
                Notification::None => {}
                Notification::BecnOnAck if reliable => on_ack |= decision.becn(),
                Notification::BecnOnAck | Notification::Cnp => in_cnp |= decision.becn(),
            }
        }
        (on_ack, in_cnp)
    }

    fn on_arrived(
        &mut self,
        slot: u32,
        id: PacketIndex,
        packet: &Packet,
        envelope: &Envelope,
    ) -> Arrival {
        self.sequences.arrived((slot, packet.source, packet.group), id, envelope)
    }

    fn next_in_turn(&mut self, slot: u32, packet: &Packet) -> Option<PacketIndex> {
        self.sequences.next((slot, packet.source, packet.group))
    }

    fn has_order(&self) -> bool {
        self.mechanisms.which.is_some()
    }

    fn early(&self) -> Vec<PacketIndex> {
        self.sequences.early()
    }

    #[inline(always)]
    fn is_due(&self, now: u64, slot: u32) -> bool {
        self.due[slot as usize].at <= now
    }

    fn run_timers(&mut self, now: u64, slot: u32) -> bool {
        let mut any = false;
        while let Some(Reverse((time, reactor))) = self.due[slot as usize].timers.peek().copied() {
            if time > now {
                break;
            }
            self.due[slot as usize].timers.pop();
            // Another timer may have been asked for since.
            if self.reactors[reactor].timer == Some(time) {
                any = true;
                let governor = self.about_to_tell(time, reactor);
                governor.timer = None;
                governor.reactor.on_timer(Picoseconds(time));
                self.set_timer(now, reactor);
            }
        }
        self.due[slot as usize].find_first();
        any
    }

    fn pause(
        &mut self,
        slot: u32,
        queue: QueuePairIndex,
        injected_at: u64,
        rank: QueueRank,
        time: u64,
    ) {
        let due = &mut self.due[slot as usize];
        due.queues.push(Reverse((time, injected_at, rank, queue)));
        due.at = due.at.min(time);
        self.fresh.push(time);
    }

    fn released(&mut self, now: u64, slot: u32) -> Option<QueuePairIndex> {
        let due = &mut self.due[slot as usize];
        let Reverse((time, _, _, queue)) = *due.queues.peek()?;
        (time <= now).then(|| {
            due.queues.pop();
            due.find_first();
            queue
        })
    }

    #[inline(always)]
    fn take_due(&mut self) -> Option<u64> {
        self.fresh.pop()
    }

    fn finish(mut self, reach: u64) -> ControlRecord {
        self.record.reach(reach);
        let all = self.record.number(u64::MAX);
        for reactor in 0..self.reactors.len() as u32 {
            self.show(ReactorIndex(reactor), all);
        }
        self.record.finish()
    }
}

/// The draws of the paths that a source takes to a destination.
pub(super) fn plan_stream(seed: u64, source: u32, destination: u32, group: u16) -> Stream {
    let noun = format!("paths of group {group}");
    Stream::new(seed, &noun, u64::from(source) << 32 | u64::from(destination))
}

/// What the reactors of a flow showed before they had heard of anything.
pub(super) fn first<'a>(
    reactors: &'a Records<ReactorIndex, Governor>,
    flow: &'a Flow,
) -> impl Iterator<Item = Probe> + 'a {
    let governed = flow.governed.iter().filter(|one| one.0 != ReactorIndex::NIL);
    governed.flat_map(|one| reactors[one.0].first.iter().copied())
}

/// What a flow's reactor is found by.
fn scope_key(decision: Decision, scope: Scope, slot: u32, key: FlowKey) -> ScopeKey {
    let group = u32::from(key.group);
    let (destination, rest) = match scope {
        Scope::ServiceLevel => (key.sl.into(), u32::MAX),
        Scope::QueuePair => (key.destination, group << 8 | u32::from(key.path)),
        // No path has this number.
        Scope::Flow => (key.destination, group << 8 | 0xff),
    };
    (decision as u8, slot, destination, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_congestion::{Path, Stripe};

    fn stripes(parts: &[(u8, u64)]) -> Vec<Stripe> {
        let stripe = |(path, bytes): &(u8, u64)| Stripe { path: Path(*path), bytes: Bytes(*bytes) };
        parts.iter().map(stripe).collect()
    }

    #[test]
    fn stripes_that_are_the_message_pass() {
        let checked = check_stripes(&stripes(&[(1, 10), (0, 5)]), 15, 2);
        assert_eq!(checked.iter().map(|part| part.bytes).sum::<u64>(), 15);
    }

    #[test]
    #[should_panic(expected = "path 2 of 2")]
    fn a_path_that_there_is_not_is_a_fault() {
        check_stripes(&stripes(&[(2, 15)]), 15, 2);
    }

    #[test]
    #[should_panic(expected = "stripes of 14 B for a message of 15 B")]
    fn stripes_of_another_size_are_a_fault() {
        check_stripes(&stripes(&[(0, 14)]), 15, 2);
    }

    #[test]
    #[should_panic(expected = "stripes of 0 B for a message of 15 B")]
    fn no_stripes_are_a_fault() {
        check_stripes(&[], 15, 2);
    }
}
