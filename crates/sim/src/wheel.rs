//! The event queue: a wheel of narrow windows, each sorted when its turn comes, and a heap for what
//! lies beyond the wheel. The width of a window has no influence on the order events come out in.

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

/// An event of the current window in one word that sorts by (time, key): 32 bits of time since the
/// window began, 32 of key, 32 of packet.
type Packed = u128;

#[inline(always)]
fn pack(event: &Event, begin: u64) -> Packed {
    u128::from(event.time - begin) << 64 | u128::from(event.key) << 32 | u128::from(event.packet)
}

const SLOTS: u64 = 4096;
const WORDS: usize = (SLOTS / 64) as usize;

/// Events in the order of (time, key).
pub(crate) struct Wheel {
    width_log2: u32,
    /// Number of the window being served.
    window: u64,
    /// Its events in order; those before `cursor` are gone.
    current: Vec<Packed>,
    cursor: usize,
    /// Later windows, unsorted, by window number modulo `SLOTS`.
    slots: Vec<Vec<Event>>,
    occupied: [u64; WORDS],
    /// Beyond the last slot.
    far: BinaryHeap<Reverse<Event>>,
}

impl Wheel {
    /// An empty queue whose windows are 2^`width_log2` picoseconds wide.
    pub(crate) fn new(width_log2: u32) -> Self {
        Wheel {
            width_log2,
            window: 0,
            current: Vec::new(),
            cursor: 0,
            slots: (0..SLOTS).map(|_| Vec::new()).collect(),
            occupied: [0; WORDS],
            far: BinaryHeap::new(),
        }
    }

    /// Adds an event, which must not lie before the last one taken out.
    #[inline(always)]
    pub(crate) fn push(&mut self, event: Event) {
        let window = event.time >> self.width_log2;
        if window.wrapping_sub(self.window + 1) < SLOTS - 1 {
            let slot = (window % SLOTS) as usize;
            self.slots[slot].push(event);
            self.occupied[slot / 64] |= 1 << (slot % 64);
        } else {
            self.push_apart(window, event);
        }
    }

    #[inline(never)]
    fn push_apart(&mut self, window: u64, event: Event) {
        if window <= self.window {
            let packed = pack(&event, self.begin());
            let later = self.current[self.cursor..].partition_point(|known| *known < packed);
            self.current.insert(self.cursor + later, packed);
        } else {
            self.far.push(Reverse(event));
        }
    }

    /// The time of the next event.
    #[inline(always)]
    pub(crate) fn peek(&mut self) -> Option<u64> {
        if self.cursor == self.current.len() && !self.advance() {
            return None;
        }
        Some(self.begin() + (self.current[self.cursor] >> 64) as u64)
    }

    /// When the current window begins.
    #[inline(always)]
    fn begin(&self) -> u64 {
        self.window << self.width_log2
    }

    /// The next event if it lies at `time`, which `peek` has just returned.
    #[inline(always)]
    pub(crate) fn pop_at(&mut self, time: u64) -> Option<Event> {
        let packed = *self.current.get(self.cursor)?;
        if self.begin() + (packed >> 64) as u64 != time {
            return None;
        }
        self.cursor += 1;
        Some(Event { time, key: (packed >> 32) as u32, packet: packed as u32 })
    }

    /// Makes the next window that holds events the current one.
    fn advance(&mut self) -> bool {
        let near = self.next_occupied();
        let far = self.far.peek().map(|Reverse(event)| event.time >> self.width_log2);
        let window = match (near, far) {
            (None, None) => return false,
            (Some(window), None) | (None, Some(window)) => window,
            (Some(near), Some(far)) => near.min(far),
        };
        self.window = window;
        let slot = (window % SLOTS) as usize;
        self.current.clear();
        self.cursor = 0;
        let begin = self.begin();
        self.current.extend(self.slots[slot].drain(..).map(|event| pack(&event, begin)));
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        while let Some(Reverse(event)) = self.far.peek() {
            let at = event.time >> self.width_log2;
            if at >= window + SLOTS {
                break;
            }
            let event = *event;
            self.far.pop();
            if at == window {
                self.current.push(pack(&event, begin));
            } else {
                let slot = (at % SLOTS) as usize;
                self.slots[slot].push(event);
                self.occupied[slot / 64] |= 1 << (slot % 64);
            }
        }
        self.current.sort_unstable();
        true
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
        let near = self.slots.iter().flatten().copied();
        let far = self.far.iter().map(|Reverse(event)| *event);
        let unpacked = |packed: &Packed| Event {
            time: self.begin() + (packed >> 64) as u64,
            key: (packed >> 32) as u32,
            packet: *packed as u32,
        };
        self.current[self.cursor..].iter().map(unpacked).chain(near).chain(far)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_ib::random::Stream;

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
                    now = wheel.peek().unwrap();
                    let next = wheel.pop_at(now);
                    assert_eq!(next, model.pop().map(|Reverse(event)| event));
                }
            }
            assert_eq!(wheel.remaining().count(), model.len());
            while let Some(Reverse(event)) = model.pop() {
                assert_eq!(wheel.peek(), Some(event.time));
                assert_eq!(wheel.pop_at(event.time), Some(event));
            }
            assert_eq!(wheel.peek(), None);
        }
    }
}
