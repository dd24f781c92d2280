//! A run cut into frames, the steps of the page's slider: one or several slices of the time series
//! each.

use crate::result::SeedResult;
use clearlane_ib::Picoseconds;
use std::ops::Range;

/// How a run is cut.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Frames {
    slice: Picoseconds,
    /// Slices in a frame; the last frame may have fewer.
    slices: usize,
    /// Slices that were simulated, the last one perhaps in part.
    whole: usize,
    end: Picoseconds,
    measured: Range<usize>,
}

impl Frames {
    /// At most `most` frames of what was simulated.
    pub(super) fn of(run: &SeedResult, most: usize) -> Self {
        let slices = run.figures.slices;
        let recorded = run.figures.series.first().map_or(0, Vec::len);
        let whole = slices.count(run.simulated).min(recorded);
        let slice = slices.length;
        let slices = whole.div_ceil(most.max(1)).max(1);
        Frames { slice, slices, whole, end: run.simulated, measured: run.figures.measured.clone() }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.whole.div_ceil(self.slices)
    }

    /// Length of a frame; the last may be shorter.
    pub(super) fn length(&self) -> Picoseconds {
        Picoseconds(self.slice.0 * self.slices as u64)
    }

    /// The frames that lie wholly in the measured part.
    pub(super) fn measured(&self) -> Range<usize> {
        let to = match self.measured.end >= self.whole {
            true => self.count(),
            false => self.measured.end / self.slices,
        };
        self.measured.start.div_ceil(self.slices).min(to)..to
    }

    /// Simulated time of a frame.
    pub(super) fn span(&self, frame: usize) -> Picoseconds {
        let from = self.length().0 * frame as u64;
        Picoseconds((from + self.length().0).min(self.end.0).saturating_sub(from))
    }

    /// Sums by frame of what was recorded by slice.
    pub(super) fn sums<'a>(&'a self, slices: &'a [u64]) -> impl Iterator<Item = u64> + 'a {
        let whole = &slices[..self.whole.min(slices.len())];
        whole.chunks(self.slices).map(|part| part.iter().sum())
    }

    /// Shares of time by frame, 0..1, of times recorded by slice in ps.
    pub(super) fn shares<'a>(&'a self, slices: &'a [u64]) -> impl Iterator<Item = f64> + 'a {
        let share = |(frame, sum): (usize, u64)| match self.span(frame).0 {
            0 => 0.0,
            span => (sum as f64 / span as f64).min(1.0),
        };
        self.sums(slices).enumerate().map(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Frames {
        // Seven slices of 10 ps, the last cut short after 4 ps, three to a frame.
        let (slice, end) = (Picoseconds(10), Picoseconds(64));
        Frames { slice, slices: 3, whole: 7, end, measured: 2..7 }
    }

    #[test]
    fn the_last_frame_is_as_long_as_what_is_left() {
        let frames = frames();
        assert_eq!(frames.count(), 3);
        let spans: Vec<u64> = (0..3).map(|frame| frames.span(frame).0).collect();
        assert_eq!(spans, [30, 30, 4]);
        let shares: Vec<f64> = frames.shares(&[10, 10, 10, 5, 5, 5, 1, 9, 9]).collect();
        assert_eq!(shares, [1.0, 0.5, 0.25]);
    }

    #[test]
    fn a_frame_with_warm_up_in_it_is_not_measured() {
        assert_eq!(frames().measured(), 1..3);
        assert_eq!(Frames { measured: 3..6, ..frames() }.measured(), 1..2);
        assert_eq!(Frames { measured: 7..7, ..frames() }.measured(), 3..3);
    }
}
