//! How the record of a run is cut into slices of time.

use clearlane_ib::Picoseconds;
use std::ops::Range;

/// Slices of one length. The last one of a run that ends with its programs ends with the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slices {
    /// Length of each, at least 1 ps.
    pub length: Picoseconds,
    /// When the last one ends, if the run may have cut it short.
    pub cut_at: Option<Picoseconds>,
}

impl Slices {
    /// When a slice begins.
    pub fn start(self, index: usize) -> Picoseconds {
        Picoseconds(self.length.0.saturating_mul(index as u64))
    }

    /// When a slice ends.
    pub fn end(self, index: usize) -> Picoseconds {
        let end = self.start(index).0.saturating_add(self.length.0);
        Picoseconds(self.cut_at.map_or(end, |cut| end.min(cut.0)))
    }

    /// How long a slice is; 0 of one that begins when the run has ended.
    pub fn length_of(self, index: usize) -> Picoseconds {
        Picoseconds(self.end(index).0.saturating_sub(self.start(index).0))
    }

    /// How many there are of a run of this length, the last one perhaps in part.
    pub fn count(self, run: Picoseconds) -> usize {
        run.0.div_ceil(self.length.0.max(1)) as usize
    }

    /// Those of a range that are of full length.
    pub fn full(self, range: Range<usize>) -> Range<usize> {
        let is_full = |last: usize| self.length_of(last) == self.length;
        match range.end.checked_sub(1).filter(|last| !range.is_empty() && !is_full(*last)) {
            Some(last) => range.start..last,
            None => range,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_slice_of_a_run_that_ends_with_programs_is_short() {
        let of = |cut_at: Option<u64>| Slices {
            length: Picoseconds(10),
            cut_at: cut_at.map(Picoseconds),
        };
        let lengths = |slices: Slices| [0, 5, 6, 7].map(|index| slices.length_of(index).0);
        assert_eq!(lengths(of(Some(64))), [10, 10, 4, 0]);
        assert_eq!(lengths(of(None)), [10; 4]);
        assert_eq!((of(Some(64)).end(6), of(None).end(6)), (Picoseconds(64), Picoseconds(70)));
        assert_eq!((of(Some(64)).full(2..7), of(Some(60)).full(2..6)), (2..6, 2..6));
        assert_eq!((of(Some(64)).full(6..7), of(None).full(2..7)), (6..6, 2..7));
        assert_eq!(of(None).count(Picoseconds(61)), 7);
    }
}
