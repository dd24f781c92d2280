//! The event queue: slots of time, each put in order when its turn comes, and a heap for what lies
//! beyond them. Neither the width of a slot nor the order among homes can be seen in any result.

use crate::records::{Records, index, room_for};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Where a port is: the number of its home in this partition and its place there. What events,
/// links and mail name ports by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub(crate) struct Address(u32);

impl Address {
    /// No port.
    pub(crate) const NIL: Address = Address(u32::MAX);
    /// Places of a home: ports of a switch and of the adapters plugged into it.
    pub(crate) const PLACES: u32 = 1 << PLACE_BITS;
    /// Homes there may be, those that stand for cut cables included; the last one is nobody's.
    pub(crate) const HOMES: u32 = (1 << HOME_BITS) - 1;

    /// Panics if either number is too large: ranges are held where addresses are made.
    pub(crate) fn new(home: u32, place: u32) -> Self {
        assert!(home < Self::HOMES && place < Self::PLACES, "home {home}, place {place}");
        Address(home << PLACE_BITS | place)
    }

    /// The same of numbers that are known to be in range.
    #[inline(always)]
    pub(crate) fn of(home: u32, place: u32) -> Self {
        debug_assert!(home < Self::HOMES && place < Self::PLACES, "home {home}, place {place}");
        Address(home << PLACE_BITS | place)
    }

    #[inline(always)]
    pub(crate) const fn home(self) -> u32 {
        self.0 >> PLACE_BITS
    }

    #[inline(always)]
    pub(crate) const fn place(self) -> u32 {
        self.0 & (Self::PLACES - 1)
    }
}

/// What happens, in the order in which what happens at one instant and port is applied: an adapter
/// hears of what arrives before its program posts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    /// The head of a packet is arbitrable at a switch.
    Arrive,
    /// An output or adapter is to be looked at.
    Wake,
    /// A packet is complete in a host's memory.
    Deliver,
    /// A rank's program is to be stepped.
    Step,
}

/// The lane of wake-ups that no earlier one replaces: who asks for one asks once.
pub(crate) const DUE: u8 = 1;

/// Something that happens at a time. No two events share time, address, kind and lane but wake-ups,
/// of which stale ones may stand beside others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Event {
    pub(crate) time: u64,
    pub(crate) address: Address,
    pub(crate) kind: Kind,
    pub(crate) lane: u8,
    /// Number of a packet, of those kinds that have one; of a step the place of its rank.
    pub(crate) packet: u32,
}

const HOME_BITS: u32 = 23;
const PLACE_BITS: u32 = 9;
/// Kind and lane.
const WHAT_BITS: u32 = 6;

/// The widest slot: home, time since the slot's beginning, kind and lane fit in one word.
pub(crate) const WIDTH_LOG2_MAX: u32 = 24;
const _: () = assert!(HOME_BITS + WIDTH_LOG2_MAX + WHAT_BITS < 64);

/// An event of a known slot: in one word that sorts home, time since the slot's beginning, kind and
/// lane; in the other what it happens to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    order: u64,
    address: Address,
    packet: u32,
}

impl Entry {
    /// Ends a window, so that looking at the next event needs no test for the end: a wake-up of the
    /// first port, later than all others.
    const END: Entry = Entry { order: !(2 << 4), address: Address(0), packet: 0 };

    /// Where it happens.
    #[inline(always)]
    pub(crate) const fn address(self) -> Address {
        self.address
    }

    #[inline(always)]
    pub(crate) const fn kind(self) -> Kind {
        match self.order >> 4 & 3 {
            0 => Kind::Arrive,
            1 => Kind::Wake,
            2 => Kind::Deliver,
            _ => Kind::Step,
        }
    }

    #[inline(always)]
    pub(crate) const fn lane(self) -> u8 {
        (self.order & 15) as u8
    }

    #[inline(always)]
    pub(crate) const fn packet(self) -> u32 {
        self.packet
    }
}

/// One home at one time, as the queue knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Instant(u64);

impl Instant {
    /// After the last one of a window.
    pub(crate) const END: Instant = Instant(u64::MAX >> WHAT_BITS);
}

const SLOTS: u64 = 8192;
const WORDS: usize = (SLOTS / 64) as usize;
/// Events in a block of a later slot.
const BLOCK: u32 = 16;
/// How far ahead of the event being served others may be looked at.
pub(crate) const AHEAD: usize = 13;
/// Room before a window's events for those that come up while it is served.
const ROOM_BEFORE: u32 = 64;
/// Up to so many events are put in order one by one.
const FEW: u32 = 8;
/// Events under way per home that there is room for before blocks have to move.
const EVENTS_PER_HOME: usize = 2;

index!(
    /// An entry in the blocks of later slots.
    EntryIndex
);
index!(
    /// A block of entries.
    BlockIndex
);
index!(
    /// A place in the window being served.
    ServedIndex
);
index!(
    /// A share of home and time while a window is put in order.
    BucketIndex
);

/// The events of a later slot: where the next one goes in its newest block. A multiple of `BLOCK`
/// if that block is full, `NONE` if there is none.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Slot(u32);

const NONE: Slot = Slot(0);

impl Slot {
    /// The newest block and how many events it holds.
    #[inline(always)]
    fn newest(self) -> (BlockIndex, u32) {
        // The first block of all stays unused, so that `NONE` is no place.
        let last = self.0.wrapping_sub(1);
        (if self == NONE { BlockIndex::NIL } else { BlockIndex(last / BLOCK) }, last % BLOCK + 1)
    }
}

/// Events in the order of windows, within a window home by home and each home's in the order of
/// time: a window is no longer than the lookahead. A home's records are then at hand, and homes
/// come in the order they lie in memory.
pub(crate) struct Queue {
    width_log2: u32,
    offset_mask: u64,
    /// The longest window.
    lookahead: u64,
    /// Bits that tell homes apart.
    home_log2: u32,
    /// Number of the slot being served.
    slot: u64,
    /// When the window being served ends: at the end of its slot, or before.
    end: u64,
    /// When the slot being served begins.
    begin: u64,
    /// The events of the window being served in their order, from `next` on; `AHEAD` times `END`
    /// after the last. Before `next` there is room for what comes up in the window itself.
    served: Records<ServedIndex, Entry>,
    next: ServedIndex,
    /// The instant being served.
    serving: Instant,
    /// Later slots by number modulo `SLOTS`.
    slots: Box<[Slot; SLOTS as usize]>,
    occupied: [u64; WORDS],
    /// Blocks of all later slots, one after the other: memory follows the events under way, not
    /// the busiest slot.
    entries: Records<EntryIndex, Entry>,
    /// By block: the one filled before it for the same slot, or, of blocks in no slot, the next
    /// free one.
    before: Records<BlockIndex, BlockIndex>,
    /// The first block in no slot.
    free: BlockIndex,
    /// Beyond the last slot.
    far: BinaryHeap<Reverse<Event>>,
    /// While a window is opened: events of its slot that are not of it.
    later: Vec<Entry>,
    /// While it is put in order.
    counts: Records<BucketIndex, u32>,
}

impl Queue {
    /// An empty queue of slots 2^`width_log2` picoseconds wide, for so many homes, between which
    /// nothing is seen sooner than after `lookahead`.
    pub(crate) fn new(width_log2: u32, homes: u32, lookahead: u64) -> Self {
        assert!(width_log2 <= WIDTH_LOG2_MAX, "slots of 2^{width_log2} ps");
        Queue {
            width_log2,
            offset_mask: (1 << width_log2) - 1,
            lookahead,
            home_log2: homes.max(1).next_power_of_two().ilog2(),
            slot: 0,
            end: 0,
            begin: 0,
            served: vec![Entry::END; AHEAD].into(),
            next: ServedIndex(0),
            serving: Instant(0),
            slots: Box::new([NONE; SLOTS as usize]),
            occupied: [0; WORDS],
            entries: first_block(homes as usize * EVENTS_PER_HOME).into(),
            before: vec![BlockIndex::NIL].into(),
            free: BlockIndex::NIL,
            far: BinaryHeap::new(),
            later: Vec::new(),
            counts: Records::default(),
        }
    }

    #[inline(always)]
    fn entry(&self, event: &Event) -> Entry {
        let what = (event.kind as u64) << 4 | u64::from(event.lane);
        let offset = event.time & self.offset_mask;
        let home = u64::from(event.address.home());
        let order = (home << self.width_log2 | offset) << WHAT_BITS | what;
        Entry { order, address: event.address, packet: event.packet }
    }

    /// The time of an entry since its slot's beginning.
    #[inline(always)]
    const fn offset(&self, order: u64) -> u64 {
        order >> WHAT_BITS & self.offset_mask
    }

    /// Turns to an instant of the window being served: its home and time.
    #[inline(always)]
    pub(crate) fn turn_to(&mut self, instant: Instant) -> (u32, u64) {
        self.serving = instant;
        let home = (instant.0 >> self.width_log2) as u32;
        (home, self.begin + (instant.0 & self.offset_mask))
    }

    /// Adds an event, which must not lie before the window being served.
    #[inline(always)]
    pub(crate) fn push(&mut self, event: Event) {
        let slot = event.time >> self.width_log2;
        // One comparison for what is neither of the slot being served nor beyond the last.
        if slot.wrapping_sub(self.slot + 1) < SLOTS - 1 {
            let entry = self.entry(&event);
            self.push_near((slot % SLOTS) as usize, entry);
        } else {
            self.push_elsewhere(event, slot);
        }
    }

    #[inline(never)]
    fn push_elsewhere(&mut self, event: Event, slot: u64) {
        if event.time < self.end {
            let entry = self.entry(&event);
            self.push_now(entry);
        } else if slot == self.slot {
            let entry = self.entry(&event);
            self.push_near((slot % SLOTS) as usize, entry);
        } else {
            self.far.push(Reverse(event));
        }
    }

    /// Adds an event to the window being served. It is of the home being served, so it is soon in
    /// its place.
    fn push_now(&mut self, entry: Entry) {
        if self.next.0 == 0 {
            self.served.make_room(ROOM_BEFORE as usize, Entry::END);
            self.next.0 = ROOM_BEFORE;
        }
        self.next.0 -= 1;
        let mut at = self.next.0;
        let late = entry.order >> WHAT_BITS < self.serving.0;
        assert!(!late, "an event before the one being served: the window is too long");
        while self.served[ServedIndex(at + 1)].order < entry.order {
            self.served[ServedIndex(at)] = self.served[ServedIndex(at + 1)];
            at += 1;
        }
        self.served[ServedIndex(at)] = entry;
    }

    #[inline(always)]
    fn push_near(&mut self, at: usize, entry: Entry) {
        let place = self.slots[at].0;
        if place.is_multiple_of(BLOCK) {
            return self.push_block(at, entry);
        }
        self.slots[at].0 = place + 1;
        self.entries[EntryIndex(place)] = entry;
    }

    /// Adds an event to a slot whose newest block is full, or that has none.
    #[inline(never)]
    fn push_block(&mut self, at: usize, entry: Entry) {
        let (before, _) = self.slots[at].newest();
        let block = if self.free == BlockIndex::NIL {
            (0..BLOCK).for_each(|_| _ = self.entries.push(Entry::END));
            BlockIndex(self.before.push(before) as u32)
        } else {
            let block = self.free;
            self.free = std::mem::replace(&mut self.before[block], before);
            block
        };
        self.entries[EntryIndex(block.0 * BLOCK)] = entry;
        self.slots[at].0 = block.0 * BLOCK + 1;
        self.occupied[at / 64] |= 1 << (at % 64);
    }

    /// The home and time of the next event of the window being served, `Instant::END` after its
    /// last.
    #[inline(always)]
    pub(crate) fn peek(&self) -> Instant {
        Instant(self.served[self.next].order >> WHAT_BITS)
    }

    /// Takes out the next event of the window being served, which must not be at its end.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Entry {
        let entry = self.served[self.next];
        self.next.0 += 1;
        entry
    }

    /// The event so many places on in the window being served; beyond its last any wake-up.
    #[inline(always)]
    pub(crate) fn ahead(&self, places: usize) -> Entry {
        debug_assert!(places < AHEAD);
        self.served[ServedIndex(self.next.0 + places as u32)]
    }

    /// A time no later than the next event, and no earlier than its slot begins; nothing if there
    /// are no events at all. Where windows are shorter than slots it is that of the event.
    pub(crate) fn next_time(&self) -> Option<u64> {
        let near = self.next_occupied().map(|slot| self.next_time_in(slot));
        let far = self.far.peek().map(|Reverse(event)| event.time);
        near.into_iter().chain(far).min()
    }

    fn next_time_in(&self, slot: u64) -> u64 {
        let begin = self.begin(slot).max(self.end);
        if 1 << self.width_log2 <= self.lookahead {
            return begin;
        }
        let entries = self.entries_in(self.slots[(slot % SLOTS) as usize]);
        let first = entries.map(|entry| self.offset(entry.order)).min();
        self.begin(slot) + first.unwrap_or(0)
    }

    /// The window that begins with an event at `time`: when it ends at the latest.
    pub(crate) fn window_end(&self, time: u64) -> u64 {
        let slot = time >> self.width_log2;
        self.begin(slot + 1).min(time.saturating_add(self.lookahead))
    }

    /// When a slot begins.
    pub(crate) fn begin(&self, slot: u64) -> u64 {
        slot << self.width_log2
    }

    /// Opens the window of the events from `time` to `end`, no later than
    /// [`window_end`](Self::window_end) has it, once all of the window before are served. There may
    /// be none before `time`. Returns how many events it has.
    pub(crate) fn open(&mut self, time: u64, end: u64) -> u32 {
        let slot = time >> self.width_log2;
        let first = self.begin(slot);
        debug_assert!(self.peek() == Instant::END);
        debug_assert!(self.next_time().is_none_or(|next| next >= first));
        debug_assert!(time < end && end <= self.window_end(time));
        (self.slot, self.begin, self.end) = (slot, first, end);
        self.serving = Instant(0);
        while let Some(Reverse(event)) = self.far.peek().copied() {
            let at = event.time >> self.width_log2;
            if at >= slot + SLOTS {
                break;
            }
            self.far.pop();
            let entry = self.entry(&event);
            self.push_near((at % SLOTS) as usize, entry);
        }
        let at = (slot % SLOTS) as usize;
        if end < self.begin(slot + 1) {
            self.leave_later(at, end - first);
        }
        self.put_in_order(at)
    }

    /// Makes the events of a slot that lie `end` after its beginning or later those of a slot of
    /// their own, for now.
    fn leave_later(&mut self, at: usize, end: u64) {
        let all: Vec<Entry> = self.entries_in(self.slots[at]).collect();
        self.free_blocks(at);
        let (now, later) = all.into_iter().partition::<Vec<_>, _>(|e| self.offset(e.order) < end);
        now.into_iter().for_each(|entry| self.push_near(at, entry));
        self.later = later;
    }

    /// The blocks of a slot hold nothing any more.
    fn free_blocks(&mut self, at: usize) {
        let (mut block, _) = std::mem::replace(&mut self.slots[at], NONE).newest();
        self.occupied[at / 64] &= !(1 << (at % 64));
        while block != BlockIndex::NIL {
            let before = std::mem::replace(&mut self.before[block], self.free);
            self.free = block;
            block = before;
        }
    }

    /// Calls `take` with the entries of a slot, block by block.
    #[inline(always)]
    fn each_block(&self, slot: Slot, mut take: impl FnMut(&[Entry])) {
        let (mut block, mut filled) = slot.newest();
        while block != BlockIndex::NIL {
            take(self.entries.run(EntryIndex(block.0 * BLOCK), filled));
            (block, filled) = (self.before[block], BLOCK);
        }
    }

    /// Takes the events out of a slot and sorts them: first by shares of home and time about as
    /// many as events, then one by one. Returns how many they are.
    fn put_in_order(&mut self, at: usize) -> u32 {
        let slot = self.slots[at];
        let mut events = 0;
        self.each_block(slot, |block| events += block.len() as u32);
        let mut served = std::mem::take(&mut self.served);
        let end = ROOM_BEFORE + events;
        let needed = end as usize + AHEAD;
        served.resize(needed, Entry::END);
        if events <= FEW {
            let mut to = ROOM_BEFORE;
            self.each_block(slot, |block| {
                for entry in block {
                    served[ServedIndex(to)] = *entry;
                    to += 1;
                }
            });
        } else {
            self.scatter(slot, events, &mut served);
        }
        (end..needed as u32).for_each(|at| served[ServedIndex(at)] = Entry::END);
        insert_in_order(&mut served, ROOM_BEFORE..end);
        (self.served, self.next) = (served, ServedIndex(ROOM_BEFORE));
        self.free_blocks(at);
        for entry in std::mem::take(&mut self.later) {
            self.push_near(at, entry);
        }
        events
    }

    /// Copies the events of a slot to about where they belong.
    fn scatter(&mut self, slot: Slot, events: u32, served: &mut Records<ServedIndex, Entry>) {
        let bits = WHAT_BITS + self.home_log2 + self.width_log2;
        let buckets_log2 = events.next_power_of_two().ilog2().min(bits);
        let shift = bits - buckets_log2;
        let bucket = |order: u64| BucketIndex((order >> shift) as u32);
        let mut counts = std::mem::take(&mut self.counts).into_vec();
        counts.clear();
        counts.resize(1 << buckets_log2, 0);
        let mut counts: Records<BucketIndex, u32> = counts.into();
        self.each_block(slot, |block| {
            block.iter().for_each(|entry| counts[bucket(entry.order)] += 1);
        });
        let mut first = ROOM_BEFORE;
        for count in counts.iter_mut() {
            first += std::mem::replace(count, first);
        }
        self.each_block(slot, |block| {
            for entry in block {
                let next = &mut counts[bucket(entry.order)];
                served[ServedIndex(*next)] = *entry;
                *next += 1;
            }
        });
        self.counts = counts;
    }

    /// The number of the next slot with events among those near, that being served included.
    fn next_occupied(&self) -> Option<u64> {
        let first = (self.slot % SLOTS) as usize;
        for step in 0..=WORDS {
            let word = (first / 64 + step) % WORDS;
            let mut bits = self.occupied[word];
            if step == 0 {
                bits &= !0 << (first % 64);
            } else if step == WORDS {
                bits &= !(!0 << (first % 64));
            }
            if bits != 0 {
                let slot = word as u64 * 64 + u64::from(bits.trailing_zeros());
                let ahead = (slot + SLOTS - first as u64) % SLOTS;
                return Some(self.slot + ahead);
            }
        }
        None
    }

    /// Gives slots another width, or homes another lookahead, between two windows.
    pub(crate) fn reshape(&mut self, width_log2: u32, lookahead: u64) {
        debug_assert!(self.peek() == Instant::END);
        self.lookahead = lookahead;
        if width_log2 == self.width_log2 {
            return;
        }
        let events: Vec<Event> = self.remaining().collect();
        let mut other = Queue::new(width_log2, 1 << self.home_log2, lookahead);
        other.slot = self.end >> width_log2;
        other.begin = other.slot << width_log2;
        other.end = self.end;
        events.into_iter().for_each(|event| other.push(event));
        *self = other;
    }

    /// Forgets all that was to come: what comes now lies at or after `time`.
    pub(crate) fn begin_at(&mut self, time: u64) {
        let mut other = Queue::new(self.width_log2, 1 << self.home_log2, self.lookahead);
        other.slot = time >> self.width_log2;
        (other.begin, other.end) = (other.slot << self.width_log2, time);
        *self = other;
    }

    /// Everything still to come, in no particular order: for audits, between two windows.
    pub(crate) fn remaining(&self) -> impl Iterator<Item = Event> + '_ {
        let first = self.slot;
        let of_slot = move |at: u64| {
            let slot = first + (at + SLOTS - first % SLOTS) % SLOTS;
            let event = move |entry: Entry| self.event(slot, entry);
            self.entries_in(self.slots[at as usize]).map(event)
        };
        let far = self.far.iter().map(|Reverse(event)| *event);
        (0..SLOTS).flat_map(of_slot).chain(far)
    }

    fn event(&self, slot: u64, entry: Entry) -> Event {
        Event {
            time: self.begin(slot) + self.offset(entry.order),
            address: entry.address(),
            kind: entry.kind(),
            lane: entry.lane(),
            packet: entry.packet,
        }
    }

    fn entries_in(&self, slot: Slot) -> impl Iterator<Item = Entry> + '_ {
        let (mut block, mut filled) = slot.newest();
        let mut at = 0;
        std::iter::from_fn(move || {
            if at == filled {
                (block, at, filled) = (self.before[block], 0, BLOCK);
            }
            if block == BlockIndex::NIL {
                return None;
            }
            at += 1;
            Some(self.entries[EntryIndex(block.0 * BLOCK + at - 1)])
        })
    }
}

/// The block that stays unused, and room for so many events.
fn first_block(events: usize) -> Vec<Entry> {
    let mut entries = room_for(events);
    entries.resize(BLOCK as usize, Entry::END);
    entries
}

/// Insertion sort of a range: entries are where they belong but for a few places.
fn insert_in_order(entries: &mut Records<ServedIndex, Entry>, range: std::ops::Range<u32>) {
    let mut before = 0;
    for at in range.clone() {
        let order = entries[ServedIndex(at)].order;
        if order < before {
            insert_back(entries, range.start, at);
        } else {
            before = order;
        }
    }
}

/// Moves an entry to where it belongs among those before it, from `first` on.
#[inline(always)]
fn insert_back(entries: &mut Records<ServedIndex, Entry>, first: u32, at: u32) {
    let entry = entries[ServedIndex(at)];
    let mut to = at;
    while to > first && entries[ServedIndex(to - 1)].order > entry.order {
        entries[ServedIndex(to)] = entries[ServedIndex(to - 1)];
        to -= 1;
    }
    entries[ServedIndex(to)] = entry;
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_ib::random::Stream;

    /// Takes the next event; windows end at `limit`s that come at random.
    fn take(queue: &mut Queue, stream: &mut Stream) -> Option<Event> {
        while queue.peek() == Instant::END {
            let time = queue.next_time()?;
            let long = queue.window_end(time);
            let short = time + 1 + stream.below(long - time);
            let end = if stream.below(3) == 0 { short } else { long };
            queue.open(time, end);
        }
        let slot = queue.slot;
        let entry = queue.pop();
        Some(queue.event(slot, entry))
    }

    /// Random pushes, at or after the last event taken, in any width, against a sorted list.
    #[test]
    fn events_come_out_in_the_order_of_time_whatever_the_width() {
        for width in [0, 6, 9, 13, 20, 24] {
            // Almost without lookahead: no order but that of time will do.
            let mut queue = Queue::new(width, 1000, 1);
            let mut model = BinaryHeap::new();
            let mut stream = Stream::new(3, "queue", u64::from(width));
            let mut now = 0;
            for number in 0..20_000u32 {
                let reach = [1, 500, 200_000, 80_000_000_000][stream.below(4) as usize];
                let address = Address::new(stream.below(1000) as u32, number % 512);
                let time = now + stream.below(reach);
                let event = Event { time, address, kind: Kind::Wake, lane: 3, packet: number };
                queue.push(event);
                model.push(Reverse(event));
                if stream.below(5) < 2 {
                    let next = take(&mut queue, &mut stream).unwrap();
                    now = next.time;
                    let Reverse(expected) = model.pop().unwrap();
                    assert_eq!(next.time, expected.time);
                }
                if number % 5000 == 4999 {
                    while queue.peek() != Instant::END {
                        now = take(&mut queue, &mut stream).unwrap().time;
                        model.pop();
                    }
                    queue.reshape((width + number / 5000) % 24, 1);
                    // Between windows nothing lies before the end of the last.
                    now = now.max(queue.end);
                }
            }
            while let Some(Reverse(event)) = model.pop() {
                assert_eq!(take(&mut queue, &mut stream).map(|e| e.time), Some(event.time));
            }
            assert_eq!(take(&mut queue, &mut stream), None);
        }
    }

    /// What comes up in the window itself comes in its turn, however much of it: more than there is
    /// room for before the window's events, before and among those of the home being served.
    #[test]
    fn events_of_the_window_itself_come_in_their_turn() {
        let mut queue = Queue::new(20, 9, 1 << 20);
        let mut stream = Stream::new(5, "now", 0);
        let event = |home, place, time| Event {
            time,
            address: Address::new(home, place),
            kind: Kind::Wake,
            lane: 0,
            packet: place,
        };
        let mut known = Vec::new();
        for place in 0..300 {
            let (home, time) = (stream.below(9) as u32, stream.below(1 << 20));
            known.push((home, time, place));
            queue.push(event(home, place, time));
        }
        queue.open(0, 1 << 20);
        let (mut served, mut more) = (Vec::new(), 300);
        while queue.peek() != Instant::END {
            let (home, now) = queue.turn_to(queue.peek());
            served.push((home, now, queue.pop().address().place()));
            // More at once than there is room for, twice.
            let burst = if served.len() % 100 == 5 { 100 } else { 0 };
            for _ in 0..burst {
                if more < Address::PLACES {
                    let time = now + 1 + stream.below(1 << 17);
                    queue.push(event(home, more, time));
                    if time < 1 << 20 {
                        known.push((home, time, more));
                    }
                    more += 1;
                }
            }
        }
        assert!(served.is_sorted_by_key(|(home, time, _)| (*home, *time)));
        known.sort_unstable();
        served.sort_by_key(|(home, time, place)| (*home, *time, *place));
        assert!(more == Address::PLACES && known.len() > 400);
        assert_eq!(served, known);
    }

    /// Within a window home by home, each in the order of time; windows in the order of time.
    #[test]
    fn homes_are_served_one_after_the_other() {
        for events in [5u32, 23, 24, 25, 100, 3000] {
            let mut queue = Queue::new(10, 37, 1 << 10);
            let mut stream = Stream::new(7, "homes", u64::from(events));
            for number in 0..events {
                let address = Address::new(stream.below(37) as u32, number % 512);
                let time = stream.below(4096);
                queue.push(Event { time, address, kind: Kind::Arrive, lane: 0, packet: number });
            }
            let mut served = Vec::new();
            while let Some(time) = queue.next_time() {
                queue.open(time, queue.window_end(time));
                let slot = queue.slot;
                while queue.peek() != Instant::END {
                    let entry = queue.pop();
                    let event = queue.event(slot, entry);
                    served.push((slot, event.address.home(), event.time));
                }
            }
            assert_eq!(served.len(), events as usize);
            assert!(served.is_sorted(), "{served:?}");
        }
    }
}
