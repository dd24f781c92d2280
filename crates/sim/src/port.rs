//! Ports: what a link's transmitter and the receive buffers at its end know.

use crate::packet::{PacketIndex, UNROUTED};
use crate::port_set::PortSet;
use crate::queue::Address;
use crate::records::{RecordIndex, index};
use clearlane_ib::LinkRate;

index!(
    /// A port of this partition: those of a switch, then those of the adapters plugged into it,
    /// switch after switch.
    PortIndex
);
/// A class of links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ClassNumber(pub(crate) u8);

impl RecordIndex for ClassNumber {
    #[inline(always)]
    fn place(self) -> usize {
        self.0.into()
    }
}

impl PortIndex {
    /// The port so many places on: whoever asks knows the home it begins.
    #[inline(always)]
    pub(crate) const fn plus(self, places: u32) -> Self {
        PortIndex(self.0 + places)
    }
}

/// A time that never comes.
pub(crate) const NEVER: u64 = u64::MAX;

/// What a port's link leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LinkKind {
    /// Switch to switch, or a switch port without a cable.
    Inner,
    /// Switch to host.
    Exit,
    /// Host to switch.
    Host,
}

/// Links of one kind and rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LinkClass {
    /// What the link leads to.
    pub(crate) kind: LinkKind,
    /// Rate of the link.
    pub(crate) rate: LinkRate,
    /// From grant to the head being arbitrable at the peer, in ps.
    pub(crate) flight: u64,
}

/// Credits on their way back: when they arrive and how many they are, in one word that sorts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Return(u64);

impl Return {
    /// No return in this place of a ring.
    pub(crate) const NONE: Return = Return(u64::MAX);
    /// Returns that arrive then or later arrive after the longest run.
    const LATEST: u64 = (1 << 48) - 1;

    /// `credits` that arrive at `due`. The longest run ends before `LATEST`, so a later time need
    /// not be told apart, and cannot wrap.
    #[inline(always)]
    pub(crate) fn new(due: u64, credits: u16) -> Self {
        Return(due.min(Self::LATEST) << 16 | credits as u64)
    }

    #[inline(always)]
    pub(crate) const fn due(self) -> u64 {
        self.0 >> 16
    }

    #[inline(always)]
    pub(crate) const fn credits(self) -> u16 {
        self.0 as u16
    }
}

/// Returns under way to one lane, in the order of time: as many as a packet a time needs. `NONE`
/// from the first free place on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ring([Return; 3]);

impl Ring {
    pub(crate) const EMPTY: Ring = Ring([Return::NONE; 3]);

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0[0] == Return::NONE
    }

    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.0[2] != Return::NONE
    }

    /// Whether the first has arrived by `now`.
    #[inline(always)]
    pub(crate) fn is_due(&self, now: u64) -> bool {
        self.0[0].due() <= now
    }

    /// Takes the first out and returns its credits.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> u16 {
        let [first, second, third] = self.0;
        self.0 = [second, third, Return::NONE];
        first.credits()
    }

    /// Adds one that arrives no sooner than those there, of which there must be less than three.
    #[inline(always)]
    pub(crate) fn push(&mut self, entry: Return) {
        let [first, second, _] = self.0;
        let place = usize::from(first != Return::NONE) + usize::from(second != Return::NONE);
        self.0[place] = entry;
    }

    /// Adds one that may arrive sooner. Returns the last one of all if there is no room for it,
    /// else `NONE`.
    pub(crate) fn insert(&mut self, mut entry: Return) -> Return {
        for place in &mut self.0 {
            if entry < *place {
                std::mem::swap(place, &mut entry);
            }
        }
        entry
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Return> + '_ {
        self.0.iter().copied().take_while(|entry| *entry != Return::NONE)
    }
}

/// One lane of a port: its receive buffer, and the credits its transmitter has.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Lane<B> {
    /// Receiving: when the head may be forwarded: routed, and its predecessor gone.
    pub(crate) ready: u64,
    /// Receiving: the packet at the head, `NIL` if empty.
    pub(crate) head: PacketIndex,
    /// Receiving: the packet at the end.
    pub(crate) tail: PacketIndex,
    /// Receiving: credits the head takes.
    pub(crate) need: u16,
    /// Sending: credits in hand.
    pub(crate) credits: u16,
    /// Sending: input ports whose head wants this lane.
    pub(crate) waiters: B,
}

/// A port: its transmitter and its receive buffers. With two lanes and up to 16 ports a switch it
/// is two cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Port<B, const V: usize> {
    /// When the transmitter has finished the packet it sends.
    pub(crate) free_at: u64,
    /// When it is to be looked at next; `NEVER` if nobody waits.
    pub(crate) wake_at: u64,
    /// The port at the other end; a home beyond those of the partition stands for a cut cable.
    pub(crate) peer: Address,
    /// Lanes with waiters (a switch) or blocked for credits (a host).
    pub(crate) waiting: u16,
    /// Lanes of which further returns wait in the overflow list.
    pub(crate) overflow: u16,
    /// Index of the link's class.
    pub(crate) class: ClassNumber,
    /// Sending, by lane: the input port after the one served last.
    pub(crate) turn: [u8; V],
    /// Receiving, by lane: output port the head wants, counted from 0; `UNROUTED` without a head
    /// or before the switch has chosen. Side by side with the next, so that one look finds the
    /// lanes that want the same.
    pub(crate) output: [u8; V],
    /// Receiving, by lane: lane it wants there.
    pub(crate) wants: [u8; V],
    /// By lane.
    pub(crate) lanes: [Lane<B>; V],
    /// By lane. Apart, because who sends and who receives look here rarely.
    pub(crate) rings: [Ring; V],
}

impl<B: PortSet, const V: usize> Port<B, V> {
    /// A port without a cable, whose lanes have so many credits.
    pub(crate) fn blank(credits: u16) -> Self {
        let lane = Lane {
            ready: 0,
            head: PacketIndex::NIL,
            tail: PacketIndex::NIL,
            need: 0,
            credits,
            waiters: B::EMPTY,
        };
        Port {
            free_at: 0,
            wake_at: NEVER,
            peer: Address::NIL,
            waiting: 0,
            overflow: 0,
            class: ClassNumber(0),
            turn: [0; V],
            output: [UNROUTED.0; V],
            wants: [0; V],
            lanes: [lane; V],
            rings: [Ring::EMPTY; V],
        }
    }

    /// The lanes whose head wants (output, lane), a bit each.
    #[inline(always)]
    pub(crate) fn wanting(&self, output: u8, lane: u8) -> u32 {
        let mut lanes = 0;
        for from in 0..V {
            let wants = (self.output[from] == output) & (self.wants[from] == lane);
            lanes |= u32::from(wants) << from;
        }
        lanes
    }

    /// The last byte of a lane in the record.
    #[inline(always)]
    pub(crate) const fn end_of_lane(lane: u8) -> usize {
        std::mem::offset_of!(Self, lanes) + (lane as usize % V + 1) * size_of::<Lane<B>>() - 1
    }

    #[inline(always)]
    pub(crate) fn lane(&self, lane: u8) -> &Lane<B> {
        &self.lanes[usize::from(lane) % V]
    }

    #[inline(always)]
    pub(crate) fn ring(&self, lane: u8) -> &Ring {
        &self.rings[usize::from(lane) % V]
    }

    /// A lane and the returns to it.
    #[inline(always)]
    pub(crate) fn lane_and_ring(&mut self, lane: u8) -> (&mut Lane<B>, &mut Ring) {
        let at = usize::from(lane) % V;
        (&mut self.lanes[at], &mut self.rings[at])
    }

    #[inline(always)]
    pub(crate) fn lane_mut(&mut self, lane: u8) -> &mut Lane<B> {
        &mut self.lanes[usize::from(lane) % V]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_of_a_torus_is_two_cache_lines() {
        assert_eq!(size_of::<Port<u16, 2>>(), 128);
        assert_eq!(size_of::<Port<u64, 1>>(), 128);
        assert_eq!(size_of::<Port<u64, 8>>(), 512);
        // All but the returns of the first lane is in the first line.
        assert!(Port::<u16, 2>::end_of_lane(0) < 64 && Port::<u16, 2>::end_of_lane(1) < 128);
        assert!(Port::<u64, 1>::end_of_lane(0) < 64);
    }

    #[test]
    fn a_return_after_the_longest_run_stays_after_it() {
        let longest = clearlane_ib::Picoseconds::MAX_RUN.0;
        for due in [longest + 1, 1 << 48, (1 << 48) + 7, u64::MAX - 1] {
            let late = Return::new(due, 9);
            assert!(late.due() > longest && late < Return::NONE, "{due}");
            assert_eq!(late.credits(), 9);
        }
    }
}
