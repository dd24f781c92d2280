//! The event queue: a wheel of narrow windows, each sorted when its turn comes, and a heap for what
//! lies beyond the wheel. The width of a window has no influence on the order events come out in.

use crate::network::NIL;
use crate::records::Records;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that happens at a time. Of two events at one time the one with the smaller key comes
/// first; keys are built so that no two events share time and key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Event {
    pub(crate) time: u64,
    pub(crate) key: u32,
    pub(crate) packet: u32,
}

/// An event in one word that sorts by (time, key): 64 bits of time, 32 of key, 32 of packet.
type Packed = u128;

#[inline(always)]
const fn pack(event: Event) -> Packed {
    (event.time as u128) << 64 | (event.key as u128) << 32 | event.packet as u128
}

#[inline(always)]
const fn unpack(packed: Packed) -> Event {
    let time = (packed >> 64) as u64;
    Event { time, key: (packed >> 32) as u32, packet: packed as u32 }
}

/// Ends the current window, so that looking at the next event needs no test for the end.
const END: Packed = u128::MAX;

const SLOTS: u64 = 8192;
const WORDS: usize = (SLOTS / 64) as usize;

/// Events in a block of a later window.
const BLOCK: u32 = 16;

/// The events of a later window: where the next one goes in its newest block. A multiple of
/// `BLOCK` if that block is full, `NONE` if there is none.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Slot(u32);

const NONE: Slot = Slot(0);

impl Slot {
    /// The newest block and how many events it holds.
    #[inline(always)]
    fn newest(self) -> (u32, u32) {
        // The first block of all stays unused, so that `NONE` is no place.
        let last = self.0.wrapping_sub(1);
        (if self == NONE { NIL } else { last / BLOCK }, last % BLOCK + 1)
    }
}

/// Events in the order of (time, key).
pub(crate) struct Wheel {
    width_log2: u32,
    /// Number of the window being served.
    window: u64,
    /// Its events in order, then `END`; those before `cursor` are gone.
    current: Vec<Packed>,
    cursor: usize,
    /// Later windows by window number modulo `SLOTS`.
    slots: Box<[Slot; SLOTS as usize]>,
    occupied: [u64; WORDS],
    /// Blocks of all later windows, one after the other: memory follows the events under way, not
    /// the busiest window.
    events: Records<Packed>,
    /// By block: the one filled before it for the same window, or, of blocks in no window, the
    /// next free one.
    before: Records<u32>,
    /// The first block in no window.
    free: u32,
    /// Beyond the last slot.
    far: BinaryHeap<Reverse<Packed>>,
}

impl Wheel {
    /// An empty queue whose windows are 2^`width_log2` picoseconds wide.
    pub(crate) fn new(width_log2: u32) -> Self {
        Wheel {
            width_log2,
            window: 0,
            current: vec![END],
            cursor: 0,
            slots: Box::new([NONE; SLOTS as usize]),
            occupied: [0; WORDS],
            events: vec![END; BLOCK as usize].into(),
            before: vec![NIL].into(),
            free: NIL,
            far: BinaryHeap::new(),
        }
    }

    /// Adds an event, which must not lie before the last one taken out.
    #[inline(always)]
    pub(crate) fn push(&mut self, event: Event) {
        let window = event.time >> self.width_log2;
        if window.wrapping_sub(self.window + 1) < SLOTS - 1 {
            self.push_near((window % SLOTS) as usize, pack(event));
        } else {
            self.push_apart(window, event);
        }
    }

    #[inline(always)]
    fn push_near(&mut self, at: usize, packed: Packed) {
        let place = self.slots[at].0;
        if place.is_multiple_of(BLOCK) {
            return self.push_block(at, packed);
        }
        self.slots[at].0 = place + 1;
        self.events[place] = packed;
    }

    /// Adds an event to a window whose newest block is full, or that has none.
    #[inline(never)]
    fn push_block(&mut self, at: usize, packed: Packed) {
        let (before, _) = self.slots[at].newest();
        let block = if self.free == NIL {
            (0..BLOCK).for_each(|_| self.events.push(END));
            self.before.push(before);
            self.before.len() as u32 - 1
        } else {
            let block = self.free;
            self.free = std::mem::replace(&mut self.before[block], before);
            block
        };
        self.events[block * BLOCK] = packed;
        self.slots[at].0 = block * BLOCK + 1;
        self.occupied[at / 64] |= 1 << (at % 64);
    }

    #[inline(never)]
    fn push_apart(&mut self, window: u64, event: Event) {
        let packed = pack(event);
        if window <= self.window {
            let later = self.current[self.cursor..].partition_point(|known| *known < packed);
            self.current.insert(self.cursor + later, packed);
        } else {
            self.far.push(Reverse(packed));
        }
    }

    /// The next event of the current window, or `END`.
    #[inline(always)]
    fn next(&self) -> Packed {
        debug_assert!(self.cursor < self.current.len());
        // SAFETY: `END` is the last element and never taken, so the cursor stays on or before it.
        unsafe { *self.current.get_unchecked(self.cursor) }
    }

    /// The time of the next event of the current window, `NEVER` after its last.
    #[inline(always)]
    pub(crate) fn peek(&self) -> u64 {
        (self.next() >> 64) as u64
    }

    /// Takes out the next event of the current window, which must not be at its end.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Event {
        let packed = self.next();
        debug_assert!(packed != END);
        self.cursor += 1;
        unpack(packed)
    }

    /// Makes the next window that holds events the current one; false if there are none.
    pub(crate) fn advance(&mut self) -> bool {
        let near = self.next_occupied();
        let far = self.far.peek().map(|Reverse(packed)| self.window_of(*packed));
        let window = match (near, far) {
            (None, None) => return false,
            (Some(window), None) | (None, Some(window)) => window,
            (Some(near), Some(far)) => near.min(far),
        };
        self.window = window;
        let at = (window % SLOTS) as usize;
        self.cursor = 0;
        self.take_slot(at);
        self.occupied[at / 64] &= !(1 << (at % 64));
        while let Some(Reverse(packed)) = self.far.peek() {
            let at = self.window_of(*packed);
            if at >= window + SLOTS {
                break;
            }
            let packed = *packed;
            self.far.pop();
            if at == window {
                self.current.push(packed);
            } else {
                self.push_near((at % SLOTS) as usize, packed);
            }
        }
        self.current.sort_unstable();
        self.current.push(END);
        true
    }

    /// Makes the events of a slot the current ones and frees its blocks.
    fn take_slot(&mut self, at: usize) {
        let (mut block, mut filled) = std::mem::replace(&mut self.slots[at], NONE).newest();
        self.current.clear();
        while block != NIL {
            self.current.extend_from_slice(self.events.slice(block * BLOCK, filled));
            filled = BLOCK;
            let before = std::mem::replace(&mut self.before[block], self.free);
            self.free = block;
            block = before;
        }
    }

    #[inline(always)]
    fn window_of(&self, packed: Packed) -> u64 {
        (packed >> 64) as u64 >> self.width_log2
    }

    /// What is known so far of the `ahead`th window after the current one, in no particular order.
    #[inline(always)]
    pub(crate) fn coming(&self, ahead: u64) -> impl Iterator<Item = Event> + '_ {
        self.events_in(self.slots[((self.window + ahead) % SLOTS) as usize])
    }

    #[inline(always)]
    fn events_in(&self, slot: Slot) -> impl Iterator<Item = Event> + '_ {
        let (mut block, mut filled) = slot.newest();
        let mut at = 0;
        std::iter::from_fn(move || {
            if at == filled {
                (block, at, filled) = (self.before[block], 0, BLOCK);
            }
            if block == NIL {
                return None;
            }
            at += 1;
            Some(unpack(self.events[block * BLOCK + at - 1]))
        })
    }

    /// The number of the next window after the current one with an occupied slot.
    fn next_occupied(&self) -> Option<u64> {
        let first = ((self.window + 1) % SLOTS) as usize;
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
                return Some(self.window + 1 + ahead);
            }
        }
        None
    }

    /// Everything still to come, in no particular order: for the final audit.
    pub(crate) fn remaining(&self) -> impl Iterator<Item = Event> + '_ {
        let now = self.current[self.cursor..self.current.len() - 1].iter();
        let far = self.far.iter().map(|Reverse(packed)| packed);
        let later = self.slots.iter().flat_map(|slot| self.events_in(*slot));
        now.chain(far).map(|packed| unpack(*packed)).chain(later)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_ib::random::Stream;

    fn take(wheel: &mut Wheel) -> Option<Event> {
        while wheel.peek() == u64::MAX {
            if !wheel.advance() {
                return None;
            }
        }
        Some(wheel.pop())
    }

    /// Random pushes, always at or after the last event taken, in any width, against a sorted list.
    #[test]
    fn events_come_out_in_order_whatever_the_width() {
        for width in [6, 9, 13, 20, 24] {
            let mut wheel = Wheel::new(width);
            let mut model = BinaryHeap::new();
            let mut stream = Stream::new(3, "wheel", u64::from(width));
            let mut now = 0;
            for number in 0..20_000u32 {
                let reach = [1, 500, 200_000, 80_000_000_000][stream.below(4) as usize];
                let event = Event { time: now + stream.below(reach), key: number, packet: number };
                wheel.push(event);
                model.push(Reverse(event));
                if stream.below(5) < 2 {
                    let next = take(&mut wheel).unwrap();
                    now = next.time;
                    assert_eq!(Some(next), model.pop().map(|Reverse(event)| event));
                }
            }
            assert_eq!(wheel.remaining().count(), model.len());
            while let Some(Reverse(event)) = model.pop() {
                assert_eq!(take(&mut wheel), Some(event));
            }
            assert_eq!(take(&mut wheel), None);
        }
    }
}
