//! Packet sequence numbers of one direction of a connection: which are missing, which come late and
//! which come again.

use clearlane_ib::Psn;

/// Holes that are remembered; the oldest is given up.
const HOLES: usize = 16;
/// A number further away than this, either way, begins a new connection: no sender has so many
/// packets under way.
const JUMP_MAX: u32 = 1 << 16;
/// Sequence numbers and their differences have so many bits.
const BITS: u32 = 24;
const HALF: u32 = 1 << (BITS - 1);
const MASK: u32 = Psn::MAX.value();

/// What sequence numbers told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SequenceCounts {
    /// Jumps ahead of the number expected.
    pub gaps: u64,
    /// Numbers left out by them that never came: lost before the place of the capture, or by it.
    pub missing: u64,
    /// Packets that filled a gap alone: overtaken by others.
    pub reordered: u64,
    /// Packets sent again: their number was seen before, or a run that fills a gap goes on with
    /// numbers seen before.
    pub retransmitted: u64,
}

/// The numbers of one direction so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sequence {
    /// The first number of all.
    first: u32,
    /// The least number that may come next; nothing before the first packet.
    next: Option<u32>,
    /// How much more the next number may be without a gap: an RDMA READ takes as many as its
    /// response has packets, which its request does not say.
    slack: u32,
    /// Numbers left out: the first, and how many.
    holes: Vec<(u32, u32)>,
    /// Packets of a run that fills holes, which may turn out to be sent again.
    late: u64,
    late_next: u32,
    counts: SequenceCounts,
}

/// How far `to` is from `from`: −2^23 to 2^23 − 1.
fn distance(from: u32, to: u32) -> i32 {
    let ahead = to.wrapping_sub(from) & MASK;
    if ahead < HALF { ahead as i32 } else { ahead as i32 - (1 << BITS) }
}

impl Sequence {
    /// A packet of this number, after which the next is one higher or, `slack` of them, more.
    /// Returns how many packets are now known to be sent again.
    #[inline(always)]
    pub(crate) fn add(&mut self, psn: Psn, slack: u32) -> u32 {
        let psn = psn.value();
        if self.next == Some(psn) && self.late == 0 && self.slack == 0 && slack == 0 {
            self.next = Some(psn.wrapping_add(1) & MASK);
            return 0;
        }
        let before = self.counts.retransmitted;
        self.add_slowly(psn, slack);
        (self.counts.retransmitted - before) as u32
    }

    fn add_slowly(&mut self, psn: u32, slack: u32) {
        let after = psn.wrapping_add(1) & MASK;
        let Some(next) = self.next else {
            (self.first, self.next, self.slack) = (psn, Some(after), slack);
            return;
        };
        let ahead = distance(next, psn);
        if ahead.unsigned_abs() > JUMP_MAX.saturating_add(self.slack) {
            // A connection made anew begins with any number (IBA vol. 1, 9.7.1).
            self.settle(false);
            self.holes.clear();
            (self.first, self.next, self.slack) = (psn, Some(after), slack);
            return;
        }
        if ahead < 0 {
            return self.behind(psn, after);
        }
        self.settle(false);
        if ahead as u32 > self.slack {
            self.counts.gaps += 1;
            let many = ahead as u32 - self.slack;
            self.counts.missing += u64::from(many);
            if self.holes.len() == HOLES {
                self.holes.remove(0);
            }
            self.holes.push((next.wrapping_add(self.slack) & MASK, many));
        }
        (self.next, self.slack) = (Some(after), slack);
    }

    /// A packet with a number less than expected.
    fn behind(&mut self, psn: u32, after: u32) {
        let within = |(first, many): &(u32, u32)| (distance(*first, psn) as u32) < *many;
        let Some(place) = self.holes.iter().position(within) else {
            // A run that filled a hole and goes on with what was seen is go-back-N.
            let goes_on = self.late > 0 && self.late_next == psn;
            self.settle(goes_on);
            self.counts.retransmitted += 1;
            return;
        };
        if self.late > 0 && self.late_next != psn {
            self.settle(false);
        }
        (self.late, self.late_next) = (self.late + 1, after);
        self.counts.missing -= 1;
        let (first, many) = self.holes.remove(place);
        let before = distance(first, psn) as u32;
        let mut left = place;
        for hole in [(first, before), (after, many - before - 1)] {
            if hole.1 > 0 {
                self.holes.insert(left, hole);
                left += 1;
            }
        }
        self.holes.truncate(HOLES);
    }

    /// What filled holes is known to have been sent again, or not.
    fn settle(&mut self, again: bool) {
        let late = std::mem::take(&mut self.late);
        match again {
            true => self.counts.retransmitted += late,
            false => self.counts.reordered += late,
        }
    }

    /// How many packets ago a number was seen, or might have been; nothing if it was not, or more
    /// than `window` ago.
    pub(crate) fn ago(&self, psn: Psn, window: u32) -> Option<u32> {
        let behind = distance(psn.value(), self.next?.wrapping_add(self.slack) & MASK);
        (1..=window as i32).contains(&behind).then_some(behind as u32)
    }

    /// Whether a number is between the first and the last.
    pub(crate) fn spans(&self, psn: Psn) -> bool {
        let Some(next) = self.next else { return false };
        let all = next.wrapping_add(self.slack).wrapping_sub(self.first) & MASK;
        (psn.value().wrapping_sub(self.first) & MASK) < all
    }

    /// What numbers have told so far.
    pub(crate) fn counts(&self) -> SequenceCounts {
        let mut counts = self.counts;
        counts.reordered += self.late;
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(numbers: &[u32]) -> [u64; 4] {
        let mut sequence = Sequence::default();
        for number in numbers {
            sequence.add(Psn::new(number & MASK).unwrap(), 0);
        }
        let SequenceCounts { gaps, missing, reordered, retransmitted } = sequence.counts();
        [gaps, missing, reordered, retransmitted]
    }

    #[test]
    fn numbers_in_order_tell_nothing_also_where_they_begin_again() {
        assert_eq!(counted(&[5, 6, 7, 8]), [0; 4]);
        assert_eq!(counted(&[0xff_fffe, 0xff_ffff, 0x100_0000, 0x100_0001]), [0; 4]);
    }

    #[test]
    fn a_loss_is_missing_and_an_overtaken_packet_is_reordered() {
        assert_eq!(counted(&[1, 2, 5, 6]), [1, 2, 0, 0]);
        assert_eq!(counted(&[1, 3, 2, 4, 5]), [1, 0, 1, 0]);
        assert_eq!(counted(&[1, 4, 3, 2, 5]), [1, 0, 2, 0]);
        assert_eq!(counted(&[0xff_fffe, 0x100_0000, 0xff_ffff, 0x100_0001]), [1, 0, 1, 0]);
    }

    #[test]
    fn go_back_n_is_sent_again_from_the_loss_on() {
        // 3 was lost; 3, 4 and 5 come again.
        assert_eq!(counted(&[1, 2, 4, 5, 3, 4, 5, 6]), [1, 0, 0, 3]);
        // At the sender nothing was lost.
        assert_eq!(counted(&[1, 2, 3, 4, 5, 3, 4, 5, 6]), [0, 0, 0, 3]);
    }

    #[test]
    fn a_connection_made_anew_is_no_loss() {
        assert_eq!(counted(&[0x10_0000, 0x10_0001, 0x70_0000, 0x70_0001]), [0; 4]);
        assert_eq!(counted(&[0x70_0000, 0x70_0001, 0x10_0000, 0x10_0001]), [0; 4]);
        assert_eq!(counted(&[1, 2, 60_000, 60_001]), [1, 59_997, 0, 0]);
    }

    #[test]
    fn a_read_takes_as_many_numbers_as_its_response_has_packets() {
        let mut sequence = Sequence::default();
        for (number, slack) in [(1, 0), (2, 9), (7, 0), (8, 0)] {
            sequence.add(Psn::new(number).unwrap(), slack);
        }
        assert_eq!(sequence.counts(), SequenceCounts::default());
        let psn = |number| Psn::new(number).unwrap();
        assert_eq!((sequence.ago(psn(8), 100), sequence.ago(psn(9), 100)), (Some(1), None));
        assert_eq!(sequence.ago(psn(1), 7), None);
        // Behind the next READ, of at most ten packets, two are missing.
        sequence.add(psn(9), 9);
        sequence.add(psn(21), 0);
        assert_eq!((sequence.counts().gaps, sequence.counts().missing), (1, 2));
        assert!(sequence.spans(psn(1)) && sequence.spans(psn(21)));
        assert!(!sequence.spans(psn(0)) && !sequence.spans(psn(22)));
    }

    proptest::proptest! {
        /// Every number that was left out is missing, or one that filled its place is counted.
        #[test]
        fn no_packet_is_counted_twice(numbers in proptest::collection::vec(0_u32..64, 1..200)) {
            let [_, missing, reordered, retransmitted] = counted(&numbers);
            let mut seen: Vec<u32> = numbers.clone();
            seen.sort_unstable();
            seen.dedup();
            // No more than were left out between the first number and the highest.
            proptest::prop_assert!(missing <= 64);
            proptest::prop_assert!(reordered + retransmitted < numbers.len() as u64);
            let above = seen.iter().filter(|number| **number >= numbers[0]).count() as u64;
            let highest = u64::from(*seen.last().unwrap());
            let left_out = highest + 1 - u64::from(numbers[0]) - above;
            // Holes given up stay missing, all others are exact.
            proptest::prop_assert!(missing >= left_out);
        }
    }
}
