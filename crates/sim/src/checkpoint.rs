//! A run between two windows, saved from the partitions it is in and loaded into others.
//!
//! What is loaded comes from a file: every number that records are found by is looked at first, and
//! in the end the physics is asked for as at the end of a run.

use crate::adapter::{NumberedKey, SavedAdapter, SavedMemory, SavedQueue, SavedReceiver};
use crate::fleet::Crew;
use crate::invariants;
use crate::model::{Forwarder, Markers, Model, Reactors};
use crate::network::{SavedEvent, SavedPort};
use crate::outcome::{Tapped, Totals};
use crate::packet::{PacketIndex, QueuePairIndex, ReceiverIndex};
use crate::partition::Partition;
use crate::saved::{
    First, HostLids, Parts, Placed, SavedOutput, SavedReactors, SavedRecorder, Whole, holds,
};
use crate::switch::SavedSwitches;
use crate::view::PartitionView;
use clearlane_ranks::{JobState, SavedRank};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

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
    /// Adds the part of the next process. `None` if it is not of the same instant.
    pub(crate) fn append(&mut self, part: RunState) -> Option<()> {
        let instant = |state: &RunState| (state.lanes, state.now, state.next_look, state.floor);
        holds(instant(self) == instant(&part) && self.jobs.len() == part.jobs.len())?;
        self.last_effect = self.last_effect.max(part.last_effect);
        self.shortest = self.shortest.min(part.shortest);
        self.totals.add(&part.totals);
        self.ports.extend(part.ports);
        self.events.extend(part.events);
        self.switches.append(part.switches);
        self.outputs.extend(part.outputs);
        self.queues.extend(part.queues);
        self.adapters.extend(part.adapters);
        self.memories.extend(part.memories);
        self.reactors.append(part.reactors);
        match (&mut self.recorder, part.recorder) {
            (Some(recorder), Some(part)) => recorder.append(part),
            (None, None) => {}
            _ => return None,
        }
        self.ranks.extend(part.ranks);
        self.jobs.iter_mut().zip(&part.jobs).for_each(|(sum, job)| sum.add(job));
        self.tapped.extend(part.tapped);
        Some(())
    }

    /// Puts what several parts have in the order that one process has it in.
    pub(crate) fn sort(&mut self) {
        self.events.sort_by(SavedEvent::compare);
        self.ranks.sort_by_key(SavedRank::number);
        self.queues.sort_by_key(SavedQueue::key);
        self.tapped.sort_unstable();
    }

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

/// Some of the partitions of a run, the number of the first, and the processes that have the rest.
#[derive(Clone, Copy)]
pub(crate) struct Share<'a> {
    pub(crate) first: usize,
    /// How many partitions the run has.
    pub(crate) count: usize,
    pub(crate) crew: &'a Crew,
}

impl Share<'_> {
    /// The place here of a partition, if it is here, of so many.
    fn here(&self, number: usize, own: usize) -> Option<usize> {
        number.checked_sub(self.first).filter(|place| *place < own)
    }
}

/// The face of a partition for saving and loading, whatever its types.
pub(crate) trait PartitionState: PartitionView {
    /// Numbers of its records of each kind.
    fn counts(&self) -> First;
    /// The partition of each host; empty if there is only one.
    fn partition_of(&self) -> &[u32];
    /// The LIDs of all hosts.
    fn host_lids(&self) -> HostLids;
    /// The keys of its send queues.
    fn queue_keys(&self) -> Vec<NumberedKey>;
    /// A send queue, but for its receiver's half.
    fn save_queue(&self, queue: u32, whole: &Whole<'_>) -> SavedQueue;
    /// The receiver's half in this partition of a connection. The send queue may be elsewhere.
    fn save_receiver(
        &self,
        half: (u32, u32, ReceiverIndex),
        whole: &Whole<'_>,
    ) -> Option<SavedReceiver>;
    /// Whether a send queue has a receiver's half.
    fn is_connection(&self, queue: &SavedQueue) -> bool;
    /// The ends of a send queue.
    fn placed(&self, queue: QueuePairIndex, receiver: ReceiverIndex) -> Placed;
    /// The receiver's half of a send queue, as far as the queue knows it.
    fn receiver_of(&self, queue: u32) -> ReceiverIndex;
    /// Adds all but send queues to a state. `None` if a program cannot be saved.
    fn save(&self, whole: &Whole<'_>, state: &mut RunState) -> Option<()>;
    /// Takes in a send queue, which is still empty.
    fn load_queue(&mut self, saved: &SavedQueue, slot: u32) -> Option<QueuePairIndex>;
    /// Takes in the receiver's half of a send queue.
    fn load_receiver(&mut self, saved: &SavedQueue) -> ReceiverIndex;
    /// Takes in its part of a state whose queues are placed.
    fn load(
        &mut self,
        state: &RunState,
        parts: &Parts<'_>,
        firsts: (&[First], usize),
    ) -> Option<()>;
}

impl<M: Model, const V: usize> PartitionState for Partition<M, V> {
    fn counts(&self) -> First {
        let (flow, reactor, whole) = self.adapters.reactors.counts();
        First {
            home: self.net.homes.len() as u32,
            port: self.net.ports.len() as u32,
            slot: self.adapters.slots(),
            host: self.adapters.hosts(),
            flow,
            reactor,
            whole,
        }
    }

    fn partition_of(&self) -> &[u32] {
        self.adapters.partition_of()
    }

    fn host_lids(&self) -> HostLids {
        self.adapters.host_lids()
    }

    fn queue_keys(&self) -> Vec<NumberedKey> {
        self.adapters.queue_keys()
    }

    fn save_queue(&self, queue: u32, whole: &Whole<'_>) -> SavedQueue {
        let rank = |place: u32| self.ranks.number_at(place);
        self.adapters.save_queue(&self.net, queue, whole, &rank)
    }

    fn save_receiver(
        &self,
        half: (u32, u32, ReceiverIndex),
        whole: &Whole<'_>,
    ) -> Option<SavedReceiver> {
        self.adapters.save_receiver(&self.net, half, whole)
    }

    fn is_connection(&self, queue: &SavedQueue) -> bool {
        self.adapters.is_connection(queue)
    }

    fn placed(&self, queue: QueuePairIndex, receiver: ReceiverIndex) -> Placed {
        self.adapters.placed(queue, receiver)
    }

    fn receiver_of(&self, queue: u32) -> ReceiverIndex {
        self.adapters.receiver_of(queue)
    }

    fn save(&self, whole: &Whole<'_>, state: &mut RunState) -> Option<()> {
        save_part(self, whole, state)
    }

    fn load_queue(&mut self, saved: &SavedQueue, slot: u32) -> Option<QueuePairIndex> {
        self.adapters.load_queue(saved, slot)
    }

    fn load_receiver(&mut self, saved: &SavedQueue) -> ReceiverIndex {
        self.adapters.load_receiver(saved)
    }

    fn load(
        &mut self,
        state: &RunState,
        parts: &Parts<'_>,
        firsts: (&[First], usize),
    ) -> Option<()> {
        load_part(self, state, parts, firsts)
    }
}

/// The numbers at which each partition of the run begins, and those at which the last one ends.
fn firsts(partitions: &[&dyn PartitionState], share: Share<'_>) -> Vec<First> {
    let counts = partitions.iter().map(|part| part.counts());
    let mut firsts = vec![First::default()];
    for counts in share.crew.all(counts.collect::<Vec<_>>()).concat() {
        firsts.push(firsts[firsts.len() - 1].plus(&counts));
    }
    firsts
}

/// All send queues of the run in the order of their keys, each with its partition, and by partition
/// and number there the number it has in that order.
fn queue_numbers(
    partitions: &[&dyn PartitionState],
    share: Share<'_>,
    firsts: &[First],
) -> (Vec<(NumberedKey, u32)>, Vec<Vec<u32>>) {
    let mut own: Vec<(NumberedKey, u32)> = Vec::new();
    for (number, part) in (share.first..).zip(partitions) {
        let first = firsts[number].slot;
        let whole =
            |(slot, to, group, path, here): NumberedKey| (first + slot, to, group, path, here);
        let keys = part.queue_keys().into_iter();
        own.extend(keys.map(|key| (whole(key), number as u32)));
    }
    let mut keys = share.crew.all(own).concat();
    keys.sort_unstable();
    let mut queues: Vec<Vec<u32>> = vec![Vec::new(); share.count];
    for (number, ((.., here), part)) in keys.iter().enumerate() {
        let of = &mut queues[*part as usize];
        of.resize(of.len().max(*here as usize + 1), u32::MAX);
        of[*here as usize] = number as u32;
    }
    (keys, queues)
}

/// Saves the part of the run in these partitions, which is the whole of a single process. `None` if
/// a program cannot be saved. All processes save at the same point of the run.
pub(crate) fn save(
    partitions: &[&dyn PartitionState],
    share: Share<'_>,
    (now, next_look): (u64, u64),
    tapped: Vec<Tapped>,
) -> Option<RunState> {
    let firsts = firsts(partitions, share);
    // Queues have the numbers of their order, whatever partition they are in.
    let (keys, queues) = queue_numbers(partitions, share, &firsts);
    let first_part = partitions.first()?;
    let mut whole = Whole {
        partition_of: first_part.partition_of(),
        queues,
        lids: first_part.host_lids(),
        here: 0,
        first: First::default(),
        hosts: first_part.ranks().placement().hosts,
        others: &first_part.ranks().placement().others,
    };
    let mut state = nothing(partitions, (now, next_look), tapped)?;
    let mut saved = Some(());
    for (number, part) in (share.first..).zip(partitions) {
        (whole.here, whole.first) = (number, firsts[number]);
        saved = saved.and_then(|()| part.save(&whole, &mut state));
    }
    save_queues(partitions, (share, &firsts), &keys, &mut whole, &mut state);
    state.events.sort_by(SavedEvent::compare);
    state.ranks.sort_by_key(SavedRank::number);
    // All have a part, or none.
    holds(!share.crew.all(saved.is_none()).contains(&true))?;
    Some(state)
}

/// A receiver's half that another process has: of which sender's half (partition, host, number
/// there) it is, and its number in its partition, if that is known.
#[derive(Serialize, Deserialize)]
struct Half {
    from: u32,
    source: u32,
    queue: u32,
    to: u32,
    known: u32,
}

/// The send queues here with the receivers' halves, wherever these are.
fn save_queues(
    partitions: &[&dyn PartitionState],
    (share, firsts): (Share<'_>, &[First]),
    keys: &[(NumberedKey, u32)],
    whole: &mut Whole<'_>,
    state: &mut RunState,
) {
    let mut asked: Vec<Vec<Half>> = (0..share.crew.size()).map(|_| Vec::new()).collect();
    // By process that is asked, the place of the queue among those here.
    let mut places: Vec<Vec<usize>> = vec![Vec::new(); share.crew.size()];
    let receiver = |whole: &mut Whole<'_>, half: &Half| {
        let there = &partitions[share.here(half.to as usize, partitions.len())?];
        let (from, known) = (half.from as usize, ReceiverIndex(half.known));
        (whole.here, whole.first) = (from, firsts[from]);
        there.save_receiver((half.source, half.queue, known), whole)
    };
    for ((.., here), number) in keys {
        let Some(place) = share.here(*number as usize, partitions.len()) else { continue };
        let part = &partitions[place];
        (whole.here, whole.first) = (*number as usize, firsts[*number as usize]);
        let mut queue = part.save_queue(*here, whole);
        if part.is_connection(&queue) {
            let source = part.placed(QueuePairIndex(*here), ReceiverIndex::NIL).host;
            let to = whole.partition(queue.destination);
            let known = part.receiver_of(*here).0;
            let half = Half { from: *number, source, queue: *here, to: to as u32, known };
            match share.here(to, partitions.len()) {
                Some(_) => queue.receiver = receiver(whole, &half),
                None => {
                    let holder = share.crew.holder(share.count, to);
                    places[holder].push(state.queues.len());
                    asked[holder].push(half);
                }
            }
        }
        state.queues.push(queue);
    }
    if share.crew.is_alone() {
        return;
    }
    let heard = share.crew.to_each(asked).into_iter();
    let found: Vec<Vec<Option<SavedReceiver>>> =
        heard.map(|halves| halves.iter().map(|half| receiver(whole, half)).collect()).collect();
    for (places, found) in places.iter().zip(share.crew.to_each(found)) {
        for (place, receiver) in places.iter().zip(found) {
            state.queues[*place].receiver = receiver;
        }
    }
}

/// A state with the times and sums of these partitions, and nothing else yet.
fn nothing(
    partitions: &[&dyn PartitionState],
    (now, next_look): (u64, u64),
    tapped: Vec<Tapped>,
) -> Option<RunState> {
    let first_part = partitions.first()?;
    Some(RunState {
        lanes: first_part.net().lanes() as u8,
        now,
        next_look,
        floor: first_part.net().floor(),
        last_effect: partitions.iter().map(|part| part.net().last_effect()).max().unwrap_or(0),
        shortest: partitions.iter().map(|part| part.net().shortest()).min().unwrap_or(u32::MAX),
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
        jobs: vec![JobState::default(); first_part.ranks().all.jobs().len()],
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
    let recorded = net.recorder.save();
    match &mut state.recorder {
        None => state.recorder = Some(recorded),
        Some(recorder) => recorder.append(recorded),
    }
    for place in 0..ranks.all.count() as u32 {
        state.ranks.push(ranks.all.save(place)?);
    }
    for (sum, job) in state.jobs.iter_mut().zip(ranks.all.jobs()) {
        sum.add(job);
    }
    Some(())
}

/// Has partitions that are about to begin go on from a state of the whole run. `None` if the state
/// cannot be theirs in some process; then they are not to be used.
pub(crate) fn load(
    partitions: &mut [&mut dyn PartitionState],
    share: Share<'_>,
    state: &RunState,
    groups: u16,
) -> Option<()> {
    let firsts = firsts(&seen(partitions), share);
    let agreed = |here: Option<()>| holds(!share.crew.all(here.is_none()).contains(&true));
    agreed(fits(&seen(partitions), state, &firsts))?;
    let placed = load_queues(partitions, share, state, &firsts);
    agreed(placed.as_ref().map(|_| ()))?;
    let places = known_everywhere(placed?, share);
    agreed(load_parts(partitions, share, (state, groups), (&firsts, &places)))?;
    let mut own = Totals::default();
    partitions.iter().for_each(|part| own.add(part.net().totals()));
    let mut totals = Totals::default();
    share.crew.all(own).iter().for_each(|of| totals.add(of));
    let own = share.first..share.first + partitions.len();
    let views: Vec<_> = partitions.iter().map(|part| &**part as &dyn PartitionView).collect();
    agreed(invariants::examine(&views, own, (share.crew, share.count), &totals))
}

/// Shared references to the partitions.
fn seen<'a>(partitions: &'a [&mut dyn PartitionState]) -> Vec<&'a dyn PartitionState> {
    partitions.iter().map(|part| &**part).collect()
}

/// Whether a state may be of this run at all.
fn fits(partitions: &[&dyn PartitionState], state: &RunState, firsts: &[First]) -> Option<()> {
    let end = firsts[firsts.len() - 1];
    holds(usize::from(state.lanes) == partitions.first()?.net().lanes())?;
    holds(state.ports.len() == end.port as usize)?;
    holds(state.adapters.len() == end.slot as usize)?;
    holds(state.jobs.len() == partitions.first()?.ranks().all.jobs().len())?;
    holds(state.floor.max(state.now) <= clearlane_ib::Picoseconds::MAX_RUN.0 + 1)?;
    let placement = partitions[0].ranks().placement();
    holds(state.ranks.len() == placement.hosts as usize + placement.others.len())?;
    holds(state.reactors.flows().all(|source| source < placement.hosts))?;
    holds(state.reactors.reactors().all(|slot| slot < end.slot))
}

/// All that each partition has of a state whose queues are placed.
fn load_parts(
    partitions: &mut [&mut dyn PartitionState],
    share: Share<'_>,
    (state, groups): (&RunState, u16),
    (firsts, places): (&[First], &[Placed]),
) -> Option<()> {
    let lids = partitions[0].host_lids();
    let hosts = partitions[0].ranks().placement().hosts;
    let others = partitions[0].ranks().placement().others.clone();
    let partition_of = partitions[0].partition_of().to_vec();
    let part_of_host = |host: u32| partition_of.get(host as usize).copied().unwrap_or(0);
    let part_of_slot = |slot: u32| firsts.partition_point(|first| first.slot <= slot) as u32 - 1;
    let flows = numbered(state.reactors.flows().map(part_of_host), share.count);
    let reactors = numbered(state.reactors.reactors().map(part_of_slot), share.count);
    for (number, partition) in (share.first..).zip(partitions) {
        let parts = Parts {
            partition_of: &partition_of,
            here: number as u32,
            first: firsts[number],
            control: &state.reactors,
            queues: places,
            flows: &flows,
            reactors: &reactors,
            lids: &lids,
            hosts,
            others: &others,
            groups,
            lanes: 0,
            floor: state.floor,
            hint: &|_| 0,
        };
        partition.load(state, &parts, (firsts, number))?;
    }
    Some(())
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

/// All send queues here and the receivers at their other ends, empty as yet, as far as they are
/// here: `NIL` is elsewhere, or nothing.
fn load_queues(
    partitions: &mut [&mut dyn PartitionState],
    share: Share<'_>,
    state: &RunState,
    firsts: &[First],
) -> Option<Vec<Placed>> {
    let own = partitions.len();
    let mut places = Vec::with_capacity(state.queues.len());
    for saved in &state.queues {
        holds(saved.slot < firsts[share.count].slot)?;
        let number = firsts.partition_point(|first| first.slot <= saved.slot) - 1;
        let (nil, nobody) = (QueuePairIndex::NIL, ReceiverIndex::NIL);
        let mut placed =
            Placed { host: 0, destination: saved.destination, queue: nil, receiver: nobody };
        if let Some(place) = share.here(number, own) {
            let partition = &mut partitions[place];
            let queue = partition.load_queue(saved, saved.slot - firsts[number].slot)?;
            placed = partition.placed(queue, nobody);
        }
        // Whether groups are reliable is known everywhere.
        let any = &partitions[0];
        if any.is_connection(saved) {
            holds(saved.destination < any.ranks().placement().hosts)?;
            let there = any.partition_of();
            let there = there.get(saved.destination as usize).map_or(0, |part| *part as usize);
            if let Some(place) = share.here(there, own) {
                placed.receiver = partitions[place].load_receiver(saved);
            }
        }
        places.push(placed);
    }
    Some(places)
}

/// What each process knows of where queues are, put together.
fn known_everywhere(own: Vec<Placed>, share: Share<'_>) -> Vec<Placed> {
    if share.crew.is_alone() {
        return own;
    }
    let mut all = own.clone();
    for other in share.crew.all(own) {
        for (known, here) in all.iter_mut().zip(other) {
            if here.queue != QueuePairIndex::NIL {
                (known.host, known.destination) = (here.host, here.destination);
                known.queue = here.queue;
            }
            if here.receiver != ReceiverIndex::NIL {
                known.receiver = here.receiver;
            }
        }
    }
    all
}

fn load_part<M: Model, const V: usize>(
    part: &mut Partition<M, V>,
    state: &RunState,
    parts: &Parts<'_>,
    (firsts, number): (&[First], usize),
) -> Option<()> {
    let (first, end) = (firsts[number], firsts[number + 1]);
    let Partition { net, switches, adapters, ranks, .. } = part;
    let forwarder = Arc::clone(&switches.forwarder);
    let lanes = switches.lanes as usize;
    let parts = &Parts { hint: &|dlid| forwarder.hint(dlid), lanes, ..*parts };
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
    net.load_ports(ports, parts, switches.keeps_routes())?;
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
    let recorder = state.recorder.as_ref()?;
    net.recorder.load(recorder, (first.port, end.port), number == 0, &|host| parts.is_here(host))
}
