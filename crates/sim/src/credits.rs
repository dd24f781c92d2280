//! Credits of a lane: how many are in hand and which are on their way back. A return is a time at
//! the port that will have it, looked at when that port has something to send: it is no event.

use crate::control::Control;
use crate::engine::{Engine, WAKE, key};
use crate::forward::Forwarder;
use crate::network::{NEVER, NO_RETURN, RING};
use crate::observe::Observer;
use crate::port_set::PortSet;
use crate::wheel::Event;

/// When a return arrives.
#[inline(always)]
fn due(entry: u64) -> u64 {
    entry >> 16
}

/// Takes the first return out of a ring.
#[inline(always)]
fn take_first(ring: &mut [u64; RING]) -> u16 {
    let [first, rest @ ..] = *ring;
    *ring = [rest[0], rest[1], NO_RETURN];
    first as u16
}

impl<F: Forwarder, O: Observer, C: Control, B: PortSet, const V: usize> Engine<F, O, C, B, V> {
    /// Takes in the returned credits that have arrived and says whether they suffice.
    #[inline(always)]
    pub(crate) fn has_credits(&mut self, port: u32, lane: u8, need: u16) -> bool {
        let record = &mut self.ports[port];
        let at = usize::from(lane) % V;
        while due(record.ring[at][0]) <= self.now {
            record.credits[at] += take_first(&mut record.ring[at]);
        }
        if record.overflow != 0 && record.overflow >> lane & 1 == 1 {
            self.refill(port, lane);
            return self.ports[port].credits[at] >= need;
        }
        record.credits[at] >= need
    }

    /// Moves returns from the overflow list into the ring, the oldest first.
    #[inline(never)]
    fn refill(&mut self, port: u32, lane: u8) {
        let record = &mut self.ports[port];
        let at = usize::from(lane);
        let Some(list) = self.overflow.get_mut(&(port, lane)) else { return };
        while let Some(entry) = list.front().copied() {
            let free = record.ring[at].iter().position(|entry| *entry == NO_RETURN);
            match free {
                Some(0) if due(entry) <= self.now => record.credits[at] += entry as u16,
                Some(place) => record.ring[at][place] = entry,
                None => return,
            }
            list.pop_front();
        }
        record.overflow &= !(1 << lane);
    }

    /// Credits a lane has at this instant.
    pub(crate) fn credits_now(&self, port: u32, lane: u8) -> u16 {
        let record = &self.ports[port];
        let at = usize::from(lane) % V;
        let arrived = |entry: &&u64| due(**entry) <= self.now;
        let returned = record.ring[at].iter().take_while(arrived).map(|entry| *entry as u16);
        let mut credits = record.credits[at] + returned.sum::<u16>();
        if record.overflow >> lane & 1 == 1 {
            let list = self.overflow.get(&(port, lane)).into_iter().flatten();
            credits += list.take_while(arrived).map(|entry| *entry as u16).sum::<u16>();
        }
        credits
    }

    /// When there will be `need` credits if no further one is returned; `NEVER` if there will not.
    #[inline(always)]
    pub(crate) fn credits_at(&self, port: u32, lane: u8, need: u16) -> u64 {
        let record = &self.ports[port];
        let at = usize::from(lane) % V;
        let mut credits = record.credits[at];
        for entry in record.ring[at] {
            if entry == NO_RETURN {
                break;
            }
            credits += entry as u16;
            if credits >= need {
                return due(entry);
            }
        }
        if record.overflow >> lane & 1 == 1 {
            for entry in self.overflow.get(&(port, lane)).into_iter().flatten() {
                credits += *entry as u16;
                if credits >= need {
                    return due(*entry);
                }
            }
        }
        NEVER
    }

    /// Credits for space freed in a buffer reach the port that fills it at `time`. Who waits for
    /// them looks then.
    #[inline(always)]
    pub(crate) fn return_credits(&mut self, port: u32, lane: u8, credits: u16, time: u64) {
        let record = &mut self.ports[port];
        let at = usize::from(lane) % V;
        let entry = time << 16 | u64::from(credits);
        let ring = &mut record.ring[at];
        if ring[RING - 1] != NO_RETURN && due(ring[0]) <= self.now {
            record.credits[at] += take_first(ring);
        }
        let full = ring[RING - 1] != NO_RETURN || record.overflow != 0;
        if F::VOQ || full {
            self.insert_return(port, lane, entry);
        } else {
            let place = usize::from(ring[0] != NO_RETURN) + usize::from(ring[1] != NO_RETURN);
            ring[place] = entry;
        }
        let record = &mut self.ports[port];
        if record.waiting >> lane & 1 == 1 {
            let when = time.max(record.free_at);
            if when < record.wake_at {
                record.wake_at = when;
                self.wheel.push(Event { time: when, key: key(port, WAKE, 0), packet: 0 });
            }
        }
    }

    /// A return for which the ring has no room, or, with a queue per output, which need not come
    /// in the order of its time, because packets leave one buffer side by side: it is put in order.
    #[inline(never)]
    fn insert_return(&mut self, port: u32, lane: u8, mut entry: u64) {
        if self.ports[port].overflow >> lane & 1 == 1 {
            // What waits beyond the ring comes before it has room again.
            self.refill(port, lane);
        }
        let record = &mut self.ports[port];
        for place in &mut record.ring[usize::from(lane) % V] {
            if entry < *place {
                std::mem::swap(place, &mut entry);
            }
        }
        if entry == NO_RETURN {
            return;
        }
        record.overflow |= 1 << lane;
        let list = self.overflow.entry((port, lane)).or_default();
        list.insert(list.partition_point(|known| *known <= entry), entry);
    }
}
