//! Mechanisms in motion, saved and loaded.

use super::Decision;
use super::markers::{OutputLane, OutputMarkers, told_from};
use super::order::{Sequence, Whole as Message};
use super::reactors::{AdapterReactors, Due, Flow, Governor, Notified, first, plan_stream};
use crate::model::FlowKey;
use crate::packet::{FlowIndex, PacketIndex, ReactorIndex, Waiter};
use crate::saved::{
    Parts, SavedDue, SavedFlow, SavedNotified, SavedOutput, SavedPacket, SavedPause, SavedReactor,
    SavedReactors, SavedSequence, TakePacket, Whole, holds,
};
use clearlane_congestion::{Notifies, Pair, Probe};
use std::cmp::Reverse;
use std::collections::BTreeMap;

impl OutputMarkers {
    pub(super) fn save_lanes(&self) -> Vec<SavedOutput> {
        let save = |lane: &OutputLane| SavedOutput {
            queued: lane.queue.queued.0,
            starved: lane.queue.starved,
            markers: lane.markers.iter().map(|marker| marker.save()).collect(),
            draws: lane.draws.counter(),
        };
        self.lanes.iter().map(save).collect()
    }

    pub(super) fn load_lanes(&mut self, saved: &[SavedOutput]) -> Option<()> {
        holds(saved.len() == self.lanes.len())?;
        for (lane, saved) in self.lanes.iter_mut().zip(saved) {
            holds(saved.markers.len() == lane.markers.len())?;
            for (marker, state) in lane.markers.iter_mut().zip(&saved.markers) {
                marker.load(state).ok()?;
            }
            lane.queue.queued.0 = saved.queued;
            lane.queue.starved = saved.starved;
            lane.draws.set_counter(saved.draws);
            lane.told_from = told_from(&lane.markers);
        }
        Some(())
    }
}

impl AdapterReactors {
    pub(super) fn save_all(
        &self,
        whole: &Whole<'_>,
        rank: &dyn Fn(u32) -> u32,
        packet: &dyn Fn(PacketIndex) -> SavedPacket,
    ) -> SavedReactors {
        let mut saved = SavedReactors {
            slice: self.record.slice(),
            flows: (0..self.flows.len() as u32).map(|flow| self.save_flow(flow, whole)).collect(),
            reactors: self.save_reactors(whole),
            dropped: self.record.has_dropped(),
            ..SavedReactors::default()
        };
        saved.due = self.due.iter().map(|due| self.save_due(due, whole)).collect();
        #[expect(clippy::iter_over_hash_type, reason = "sorted below")]
        for ((decision, of), notifier) in &self.notifiers {
            let of = match of {
                Notified::QueuePair(source, queue) => {
                    SavedNotified::Queue(whole.queue(*source, *queue))
                }
                Notified::Port(slot) => SavedNotified::Slot(whole.first.slot + slot),
            };
            saved.notifiers.push((*decision, of, notifier.save()));
        }
        saved.notifiers.sort_by_key(|(decision, of, _)| (*decision, *of));
        #[expect(clippy::iter_over_hash_type, reason = "sorted below")]
        for ((source, destination, group), stream) in &self.plans {
            saved.plans.push((*source, *destination, *group, stream.counter()));
        }
        saved.plans.sort_unstable();
        let waiter = |waiter: Waiter| (rank(waiter.rank), waiter.token);
        let message = |of: &Message| (of.unsent, of.waiter.map(waiter));
        saved.wholes = self.posted.wholes().map(message).collect();
        for ((slot, destination, group), next) in self.posted.numbers() {
            saved.posted.push((whole.first.slot + slot, destination, group, next));
        }
        for ((slot, source, group), of) in self.sequences.all() {
            let early = of.early.iter().map(|(number, id)| (*number, packet(*id)));
            saved.sequences.push(SavedSequence {
                slot: whole.first.slot + slot,
                source,
                group,
                next: of.next,
                partial: of.partial.iter().map(|(number, missing)| (*number, *missing)).collect(),
                early: early.collect(),
            });
        }
        saved
    }

    fn save_flow(&self, number: u32, whole: &Whole<'_>) -> SavedFlow {
        let flow = &self.flows[FlowIndex(number)];
        let FlowKey { source, destination, group, path, sl } = flow.key;
        let governed = flow.governed.map(|(by, pair)| {
            (by != ReactorIndex::NIL).then(|| (whole.first.reactor + by.0, pair.0))
        });
        let sent = if self.hears_acks {
            self.sent[FlowIndex(number)].iter().copied().collect()
        } else {
            Vec::new()
        };
        let record = self.record.save(number);
        SavedFlow { source, destination, group, path, sl, governed, sent, record }
    }

    fn save_reactors(&self, whole: &Whole<'_>) -> Vec<SavedReactor> {
        let mut found = vec![(0, 0, 0); self.reactors.len()];
        #[expect(clippy::iter_over_hash_type, reason = "each has a place of its own")]
        for ((decision, _, destination, rest), reactor) in &self.by_scope {
            found[reactor.0 as usize] = (*decision, *destination, *rest);
        }
        let save = |(of, found): (&Governor, (u8, u32, u32))| SavedReactor {
            slot: whole.first.slot + of.slot,
            found,
            state: of.reactor.save(),
            timer: of.timer,
            pairs: of.pairs,
            flows: of.flows.iter().map(|flow| whole.first.flow + flow.0).collect(),
            recorded: (of.recorded, of.recorded_until),
        };
        self.reactors.iter().zip(found).map(save).collect()
    }

    fn save_due(&self, due: &Due, whole: &Whole<'_>) -> SavedDue {
        let mut timers: Vec<(u64, u32)> = due
            .timers
            .iter()
            .map(|Reverse((time, of))| (*time, whole.first.reactor + of.0))
            .collect();
        timers.sort_unstable();
        let mut queues: Vec<SavedPause> = due
            .queues
            .iter()
            .map(|Reverse((time, left, rank, queue))| {
                (*time, *left, *rank, whole.queues[whole.here][queue.0 as usize])
            })
            .collect();
        queues.sort_unstable();
        SavedDue { timers, queues }
    }

    fn load_notifiers(&mut self, saved: &SavedReactors, parts: &Parts<'_>) -> Option<()> {
        let (first_slot, slots) = (parts.first.slot, self.sources.len() as u32);
        let here = |slot: u32| slot.checked_sub(first_slot).filter(|slot| *slot < slots);
        for (decision, of, state) in &saved.notifiers {
            let mechanism = self.mechanisms.of(Decision::of(*decision)?)?;
            let of = match (of, mechanism.notifies()) {
                (SavedNotified::Queue(queue), Notifies::QueuePair) => {
                    let placed = parts.queues.get(*queue as usize)?;
                    let of = Notified::QueuePair(placed.host, placed.queue.0);
                    parts.is_here(placed.destination).then_some(of)
                }
                (SavedNotified::Slot(slot), Notifies::Port) => {
                    holds((*slot as usize) < saved.due.len())?;
                    here(*slot).map(Notified::Port)
                }
                _ => return None,
            };
            if let Some(of) = of {
                let mut notifier = mechanism.notifier()?;
                notifier.load(state).ok()?;
                holds(self.notifiers.insert((*decision, of), notifier).is_none())?;
            }
        }
        Some(())
    }

    pub(super) fn load_all(
        &mut self,
        saved: &SavedReactors,
        parts: &Parts<'_>,
        packet: TakePacket<'_>,
    ) -> Option<()> {
        let first_slot = parts.first.slot;
        let slots = self.sources.len() as u32;
        let here = |slot: u32| slot.checked_sub(first_slot).filter(|slot| *slot < slots);
        self.record.load_slice(saved.slice)?;
        if saved.dropped {
            self.record.drop_all();
        }
        for reactor in &saved.reactors {
            if let Some(slot) = here(reactor.slot) {
                self.load_reactor(reactor, slot, parts)?;
            }
        }
        for flow in saved.flows.iter().filter(|flow| parts.is_here(flow.source)) {
            self.load_flow(flow, parts)?;
        }
        holds(saved.due.len() >= (first_slot + slots) as usize)?;
        for slot in 0..slots {
            let SavedDue { timers, queues } = &saved.due[(first_slot + slot) as usize];
            let due = &mut self.due[slot as usize];
            for (time, reactor) in timers {
                due.timers.push(Reverse((*time, parts.reactor(*reactor)?)));
            }
            for (time, left, rank, queue) in queues {
                due.queues.push(Reverse((*time, *left, *rank, parts.queue(*queue)?)));
            }
            due.find_first();
        }
        self.load_notifiers(saved, parts)?;
        for (source, destination, group, counter) in &saved.plans {
            if parts.is_here(*source) {
                let mut stream = plan_stream(self.mechanisms.seed, *source, *destination, *group);
                stream.set_counter(*counter);
                self.plans.insert((*source, *destination, *group), stream);
            }
        }
        for (slot, destination, group, next) in &saved.posted {
            if let Some(slot) = here(*slot) {
                self.posted.set_number((slot, *destination, *group), *next);
            }
        }
        for of in &saved.sequences {
            if let Some(slot) = here(of.slot) {
                let mut early = BTreeMap::new();
                for (number, saved) in &of.early {
                    early.insert(*number, packet(saved)?);
                }
                holds(of.partial.iter().all(|(_, missing)| *missing > 0))?;
                let partial = of.partial.iter().copied().collect();
                let sequence = Sequence { next: of.next, partial, early };
                self.sequences.set((slot, of.source, of.group), sequence);
            }
        }
        Some(())
    }

    /// A message that has been divided, by its number in the whole run.
    pub(super) fn load_divided(
        &mut self,
        saved: &SavedReactors,
        number: u32,
        place: &dyn Fn(u32) -> Option<u32>,
    ) -> Option<u32> {
        if let Some((known, further)) = self.loaded.get_mut(&number) {
            // Of those that are missing one each.
            *further = further.checked_sub(1)?;
            return Some(*known);
        }
        let (unsent, waiter) = *saved.wholes.get(number as usize)?;
        let further = unsent.checked_sub(1)?;
        let waiter = match waiter {
            None => None,
            Some((rank, token)) => Some(Waiter { rank: place(rank)?, token }),
        };
        let index = self.posted.insert(Message { unsent, waiter });
        self.loaded.insert(number, (index, further));
        Some(index)
    }

    fn load_reactor(&mut self, saved: &SavedReactor, slot: u32, parts: &Parts<'_>) -> Option<()> {
        let (decision, destination, rest) = saved.found;
        let mechanism = self.mechanisms.of(Decision::of(decision)?)?;
        let mut reactor = mechanism.reactor(&self.sources[slot as usize])?;
        let mut first = Vec::new();
        reactor.probe(Pair(0), &mut |probe| first.push(probe));
        reactor.load(&saved.state).ok()?;
        let flow = |number: &u32| parts.flow(*number);
        let flows = saved.flows.iter().map(flow).collect::<Option<Vec<FlowIndex>>>()?;
        let (recorded, recorded_until) = saved.recorded;
        let by = ReactorIndex(self.reactors.push(Governor {
            reactor,
            slot,
            timer: saved.timer,
            pairs: saved.pairs,
            flows,
            first,
            recorded,
            recorded_until,
        }) as u32);
        let known = self.by_scope.insert((decision, slot, destination, rest), by);
        holds(known.is_none())
    }

    fn load_flow(&mut self, saved: &SavedFlow, parts: &Parts<'_>) -> Option<()> {
        let SavedFlow { source, destination, group, path, sl, .. } = *saved;
        let key = FlowKey { source, destination, group, path, sl };
        let mut governed = [(ReactorIndex::NIL, Pair(0)); 2];
        for (of, saved) in governed.iter_mut().zip(saved.governed) {
            if let Some((by, pair)) = saved {
                *of = (parts.reactor(by)?, Pair(pair));
                holds((of.0.0 as usize) < self.reactors.len())?;
            }
        }
        let number = self.flows.push(Flow { key, governed }) as u32;
        if self.hears_acks {
            holds(saved.sent.iter().all(|(time, _)| *time <= parts.floor))?;
            self.sent.push(saved.sent.iter().copied().collect());
        }
        if let Some(record) = &saved.record {
            let probes: Vec<Probe> =
                first(&self.reactors, &self.flows[FlowIndex(number)]).collect();
            self.record.load(number, key, probes.into_iter(), record)?;
        }
        Some(())
    }
}
