//! A run between two windows, saved from the partitions it is in and loaded into others.
//!
//! What is loaded comes from a file: every number that records are found by is looked at first, and
//! in the end the physics is asked for as at the end of a run.

use crate::adapter::{NumberedKey, SavedAdapter, SavedMemory, SavedQueue};
use crate::invariants;
use crate::model::{Markers, Model, Observer, Reactors};
use crate::network::{SavedEvent, SavedPort};
use crate::outcome::{Tapped, Totals};
use crate::packet::{PacketIndex, QueuePairIndex, ReceiverIndex};
use crate::partition::Partition;
use crate::saved::{First, Parts, Placed, SavedOutput, SavedReactors, SavedRecorder, Whole, holds};
use crate::switch::{SavedSwitches, Switches};
use clearlane_ranks::{JobState, SavedRank};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Everything that moves in a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RunState {
    /// Lanes that a port has here.
    lanes: u8,
    pub(crate) now: u64,
    pub(crate) next_look: u64,
    floor: u64,
    last_effect: u64,
    shortest: u32,
    totals: Totals,
    ports: Vec<SavedPort>,
    events: Vec<SavedEvent>,
    switches: SavedSwitches,
    outputs: Vec<SavedOutput>,
    queues: Vec<SavedQueue>,
    adapters: Vec<SavedAdapter>,
    memories: Vec<SavedMemory>,
    reactors: SavedReactors,
    recorder: Option<SavedRecorder>,
    /// In the order of their numbers.
    ranks: Vec<SavedRank>,
    jobs: Vec<JobState>,
    pub(crate) tapped: Vec<Tapped>,
}

impl RunState {
    /// The switches at which there are packets, by their place among all, and the LIDs these go to.
    pub(crate) fn ways(&self, homes: &[u32]) -> BTreeSet<(u32, u32)> {
        let home = |port: u32| homes.partition_point(|first| *first <= port) as u32 - 1;
        let mut ways = BTreeSet::new();
        for (port, of) in (0..).zip(&self.ports) {
            ways.extend(of.ways().map(|lid| (home(port), lid)));
        }
        ways.extend(self.switches.ways().map(|(port, lid)| (home(port), lid)));
        ways.extend(self.events.iter().filter_map(SavedEvent::way));
        ways
    }
}

/// Where each partition begins, and, once more, where the last one ends.
fn firsts<M: Model, const V: usize>(partitions: &[Partition<M, V>]) -> Vec<First> {
    let mut firsts = vec![First::default()];
    for part in partitions {
        let last = firsts[firsts.len() - 1];
        let (flows, reactors, wholes) = part.adapters.reactors.counts();
        firsts.push(First {
            home: last.home + part.net.homes.len() as u32,
            port: last.port + part.net.ports.len() as u32,
            slot: last.slot + part.adapters.slots(),
            host: last.host + part.adapters.hosts(),
            flow: last.flow + flows,
            reactor: last.reactor + reactors,
            whole: last.whole + wholes,
        });
    }
    firsts
}

/// The run in these partitions. Nothing if a program cannot be saved.
pub(crate) fn save<M: Model, const V: usize>(
    partitions: &[Partition<M, V>],
    (now, next_look): (u64, u64),
    tapped: Vec<Tapped>,
) -> Option<RunState> {
    let firsts = firsts(partitions);
    // Queues have the numbers of their order, whatever partition they are in.
    let mut keys: Vec<(NumberedKey, usize)> = Vec::new();
    for (number, part) in partitions.iter().enumerate() {
        let first = firsts[number].slot;
        let whole =
            |(slot, to, group, path, here): NumberedKey| (first + slot, to, group, path, here);
        keys.extend(part.adapters.queue_keys().into_iter().map(|key| (whole(key), number)));
    }
    keys.sort_unstable();
    let mut queues: Vec<Vec<u32>> = vec![Vec::new(); partitions.len()];
    for (number, ((.., here), part)) in keys.iter().enumerate() {
        let of = &mut queues[*part];
        of.resize(of.len().max(*here as usize + 1), u32::MAX);
        of[*here as usize] = number as u32;
    }
    let first_part = partitions.first()?;
    let mut whole = Whole {
        partition_of: first_part.adapters.partition_of(),
        queues,
        lids: first_part.adapters.host_lids(),
        here: 0,
        first: First::default(),
        hosts: first_part.ranks.placement().hosts,
        others: &first_part.ranks.placement().others,
    };
    let mut state = nothing(partitions, (now, next_look), tapped)?;
    for (number, part) in partitions.iter().enumerate() {
        (whole.here, whole.first) = (number, firsts[number]);
        save_part(part, &whole, &mut state)?;
    }
    for ((_, _, _, _, here), number) in keys {
        let part = &partitions[number];
        (whole.here, whole.first) = (number, firsts[number]);
        let rank = |place: u32| part.ranks.number_at(place);
        let mut queue = part.adapters.save_queue(&part.net, here, &whole, &rank);
        if part.adapters.is_connection(&queue) {
            let source = part.adapters.placed(QueuePairIndex(here), ReceiverIndex::NIL).host;
            let there = &partitions[whole.partition(queue.destination)];
            let known = part.adapters.receiver_of(here);
            let half = (source, here, known);
            queue.receiver = there.adapters.save_receiver(&there.net, half, &whole);
        }
        state.queues.push(queue);
    }
    state.events.sort_by(SavedEvent::compare);
    state.ranks.sort_by_key(SavedRank::number);
    Some(state)
}

/// A state with the times and sums of these partitions, and nothing else yet.
fn nothing<M: Model, const V: usize>(
    partitions: &[Partition<M, V>],
    (now, next_look): (u64, u64),
    tapped: Vec<Tapped>,
) -> Option<RunState> {
    let first_part = partitions.first()?;
    Some(RunState {
        lanes: V as u8,
        now,
        next_look,
        floor: first_part.net.floor,
        last_effect: partitions.iter().map(|part| part.net.last_effect).max().unwrap_or(0),
        shortest: partitions.iter().map(|part| part.net.shortest).min().unwrap_or(u32::MAX),
        totals: Totals::default(),
        ports: Vec::new(),
        events: Vec::new(),
        switches: SavedSwitches::default(),
        outputs: Vec::new(),
        queues: Vec::new(),
        adapters: Vec::new(),
        memories: Vec::new(),
        reactors: SavedReactors::default(),
        recorder: None,
        ranks: Vec::new(),
        jobs: vec![JobState::default(); first_part.ranks.all.jobs().len()],
        tapped,
    })
}

fn save_part<M: Model, const V: usize>(
    part: &Partition<M, V>,
    whole: &Whole<'_>,
    state: &mut RunState,
) -> Option<()> {
    let Partition { net, switches, adapters, ranks, .. } = part;
    let rank = |place: u32| ranks.number_at(place);
    state.totals.add(&net.totals);
    state.ports.extend(net.save_ports(whole));
    state.events.extend(net.save_events(whole, rank));
    state.switches.append(switches.save_switches(net, whole));
    state.outputs.extend(switches.markers.save());
    state.adapters.extend(adapters.save_adapters(net, whole, &rank));
    state.memories.extend(adapters.save_memories(net, whole));
    let packet = |id: PacketIndex| net.save_packet(id, whole);
    state.reactors.append(adapters.reactors.save(whole, &rank, &packet));
    if let Some(saved) = net.observer.save() {
        match &mut state.recorder {
            None => state.recorder = Some(saved),
            Some(recorder) => recorder.append(saved),
        }
    }
    for place in 0..ranks.all.count() as u32 {
        state.ranks.push(ranks.all.save(place)?);
    }
    for (sum, job) in state.jobs.iter_mut().zip(ranks.all.jobs()) {
        sum.add(job);
    }
    Some(())
}

/// Has partitions that are about to begin go on from a state. Nothing if it cannot be theirs; then
/// they are not to be used.
pub(crate) fn load<M: Model, const V: usize>(
    partitions: &mut [Partition<M, V>],
    state: &RunState,
    groups: u16,
) -> Option<()> {
    let firsts = firsts(partitions);
    let end = firsts[partitions.len()];
    holds(usize::from(state.lanes) == V && state.ports.len() == end.port as usize)?;
    holds(state.adapters.len() == end.slot as usize)?;
    holds(state.jobs.len() == partitions.first()?.ranks.all.jobs().len())?;
    holds(state.floor.max(state.now) <= clearlane_ib::Picoseconds::MAX_RUN.0 + 1)?;
    let lids = partitions[0].adapters.host_lids();
    let hosts = partitions[0].ranks.placement().hosts;
    let others = partitions[0].ranks.placement().others.clone();
    holds(state.ranks.len() == hosts as usize + others.len())?;
    holds(state.reactors.flows().all(|source| source < hosts))?;
    holds(state.reactors.reactors().all(|slot| slot < end.slot))?;
    let places = load_queues(partitions, state, &firsts)?;
    let partition_of = partitions[0].adapters.partition_of().to_vec();
    let part_of_host = |host: u32| partition_of.get(host as usize).copied().unwrap_or(0);
    let part_of_slot = |slot: u32| firsts.partition_point(|first| first.slot <= slot) as u32 - 1;
    let flows = numbered(state.reactors.flows().map(part_of_host), partitions.len());
    let reactors = numbered(state.reactors.reactors().map(part_of_slot), partitions.len());
    for number in 0..partitions.len() {
        let forwarder = std::sync::Arc::clone(&partitions[number].switches.forwarder);
        let hint = |dlid: u32| crate::model::Forwarder::hint(&*forwarder, dlid);
        let parts = Parts {
            partition_of: &partition_of,
            here: number as u32,
            first: firsts[number],
            control: &state.reactors,
            queues: &places,
            flows: &flows,
            reactors: &reactors,
            lids: &lids,
            hosts,
            others: &others,
            groups,
            floor: state.floor,
            hint: &hint,
        };
        load_part(&mut partitions[number], state, &parts, (&firsts, number))?;
    }
    let mut totals = Totals::default();
    partitions.iter().for_each(|part| totals.add(&part.net.totals));
    invariants::examine(partitions, &totals)
}

/// By number of the whole run: the partition, and the number there.
fn numbered(parts: impl Iterator<Item = u32>, count: usize) -> Vec<(u32, u32)> {
    let mut next = vec![0; count];
    parts
        .map(|part| {
            let number = next[part as usize];
            next[part as usize] += 1;
            (part, number)
        })
        .collect()
}

/// All send queues and the receivers at their other ends, empty as yet.
fn load_queues<M: Model, const V: usize>(
    partitions: &mut [Partition<M, V>],
    state: &RunState,
    firsts: &[First],
) -> Option<Vec<Placed>> {
    let mut places = Vec::with_capacity(state.queues.len());
    for saved in &state.queues {
        holds(saved.slot < firsts[partitions.len()].slot)?;
        let part = firsts.partition_point(|first| first.slot <= saved.slot) - 1;
        let adapters = &mut partitions[part].adapters;
        let queue = adapters.load_queue(saved, saved.slot - firsts[part].slot)?;
        let mut receiver = ReceiverIndex::NIL;
        if adapters.is_connection(saved) {
            let hosts = partitions[part].ranks.placement().hosts;
            holds(saved.destination < hosts)?;
            let there = partitions[part].adapters.partition_of();
            let there = there.get(saved.destination as usize).map_or(0, |part| *part as usize);
            receiver = partitions[there].adapters.load_receiver(saved);
        }
        places.push(partitions[part].adapters.placed(queue, receiver));
    }
    Some(places)
}

fn load_part<M: Model, const V: usize>(
    part: &mut Partition<M, V>,
    state: &RunState,
    parts: &Parts<'_>,
    (firsts, number): (&[First], usize),
) -> Option<()> {
    let (first, end) = (firsts[number], firsts[number + 1]);
    let Partition { net, switches, adapters, ranks, .. } = part;
    (net.floor, net.now) = (state.floor, state.floor);
    (net.last_effect, net.shortest) = (state.last_effect, state.shortest);
    net.totals = if number == 0 { state.totals } else { Totals::default() };
    for place in 0..ranks.all.count() as u32 {
        let saved = &state.ranks[ranks.number_at(place) as usize];
        ranks.all.load(place, saved).ok()?;
        holds(ranks.names_what_there_is(place, parts))?;
    }
    ranks.all.load_jobs((number == 0).then_some(&state.jobs));
    let by_number = ranks.places_by_number();
    let place = |rank: u32| by_number.get(&rank).copied();
    let reactors = &mut adapters.reactors;
    let mut packet = |saved: &_| net.load_packet(saved, parts);
    reactors.load(&state.reactors, parts, &mut packet)?;
    let ports = state.ports.get(first.port as usize..end.port as usize)?;
    net.load_ports(ports, parts, Switches::<M>::keeps_routes())?;
    switches.load_switches(net, &state.switches, parts)?;
    let outputs = (V as u32 * first.port) as usize..(V as u32 * end.port) as usize;
    let outputs = if M::Markers::ON { state.outputs.get(outputs)? } else { &[] };
    switches.markers.load(outputs)?;
    for (saved, placed) in state.queues.iter().zip(parts.queues) {
        if parts.is_here(placed.host) {
            adapters.load_governed(placed.queue, saved, placed.receiver, parts)?;
            adapters.load_waiting(net, placed.queue, saved, parts, &place)?;
        }
        if parts.is_here(placed.destination) && placed.receiver != ReceiverIndex::NIL {
            adapters.load_early(net, placed.receiver, saved, parts)?;
        }
    }
    let slots = state.adapters.get(first.slot as usize..end.slot as usize)?;
    adapters.load_adapters(net, slots, parts, &place)?;
    let memories = match adapters.share() {
        true => state.memories.get(first.host as usize..end.host as usize)?,
        false => &[],
    };
    adapters.load_memories(net, memories, parts)?;
    net.load_events(&state.events, parts, place)?;
    let recorder = state.recorder.as_ref();
    net.observer.load(recorder, (first.port, end.port), number == 0, &|host| parts.is_here(host))
}
