//! Time cut into slices that grow: how long a capture is, is known at its end.

/// Slices there are at most; when a packet comes later, two become one everywhere.
pub const SLICES_MAX: usize = 256;

/// The slices of all flows of an analysis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grid {
    /// When the first begins: nanoseconds since 1970.
    pub start_ns: u64,
    /// How long each is.
    pub length_ns: u64,
    /// How often that was doubled.
    doubled: u32,
    /// Whether it never is: packets beyond the last slice are counted in that.
    fixed: bool,
    /// The slice asked for last, and where it begins and ends.
    recent: (usize, u64, u64),
}

impl Grid {
    /// Slices of a microsecond at first.
    pub(crate) fn growing(start_ns: u64) -> Self {
        Grid { start_ns, length_ns: 1000, doubled: 0, fixed: false, recent: (0, 0, 0) }
    }

    /// As many slices as a span takes.
    pub(crate) fn fixed(start_ns: u64, length_ns: u64) -> Self {
        Grid { start_ns, length_ns: length_ns.max(1), doubled: 0, fixed: true, recent: (0, 0, 0) }
    }

    /// The slice of an instant; what was before the first is in that.
    #[inline(always)]
    pub(crate) fn slice_of(&mut self, time_ns: u64) -> usize {
        let (recent, from, to) = self.recent;
        if from <= time_ns && time_ns < to {
            return recent;
        }
        self.search(time_ns)
    }

    fn search(&mut self, time_ns: u64) -> usize {
        let since = time_ns.saturating_sub(self.start_ns);
        let most = SLICES_MAX as u64;
        while !self.fixed && since / self.length_ns >= most {
            self.length_ns *= 2;
            self.doubled += 1;
        }
        let slice = (since / self.length_ns).min(most - 1);
        let from = self.start_ns.saturating_add(slice * self.length_ns);
        self.recent = (slice as usize, from, from.saturating_add(self.length_ns));
        slice as usize
    }
}

/// Something that two slices have together.
pub(crate) trait Joined: Copy + Default {
    /// Adds what another slice has.
    fn join(&mut self, other: &Self);
}

/// What one flow has in each slice.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sliced<T> {
    slices: Vec<T>,
    doubled: u32,
}

impl<T: Joined> Sliced<T> {
    /// The slice of this number, on a grid as it is now.
    #[inline(always)]
    pub(crate) fn at(&mut self, grid: &Grid, slice: usize) -> &mut T {
        if self.doubled != grid.doubled {
            self.fold(grid);
        }
        if self.slices.len() <= slice {
            self.slices.resize(slice + 1, T::default());
        }
        &mut self.slices[slice]
    }

    #[cold]
    fn fold(&mut self, grid: &Grid) {
        let shift = grid.doubled - self.doubled;
        self.doubled = grid.doubled;
        if self.slices.is_empty() {
            return;
        }
        let place = |index: usize| index.checked_shr(shift).unwrap_or(0);
        for index in 1..self.slices.len() {
            let slice = std::mem::take(&mut self.slices[index]);
            self.slices[place(index)].join(&slice);
        }
        self.slices.truncate(place(self.slices.len() - 1) + 1);
    }

    /// All slices, on the grid as it is in the end.
    pub(crate) fn all(&self, grid: &Grid) -> Vec<T> {
        let mut folded = self.clone();
        folded.fold(grid);
        folded.slices
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Joined for u64 {
        fn join(&mut self, other: &Self) {
            *self += other;
        }
    }

    #[test]
    fn slices_grow_and_nothing_is_lost() {
        let mut grid = Grid::growing(1000);
        let (mut early, mut late) = (Sliced::<u64>::default(), Sliced::<u64>::default());
        for time in [0, 1000, 1999, 2000, 256_999] {
            let slice = grid.slice_of(time);
            *early.at(&grid, slice) += 1;
        }
        assert_eq!((grid.length_ns, early.all(&grid).len()), (1000, 256));
        let slice = grid.slice_of(1000 + 1_000_000);
        *late.at(&grid, slice) += 1;
        assert_eq!((grid.length_ns, slice), (4000, 250));
        let early = early.all(&grid);
        assert_eq!((early[0], early.len(), early.iter().sum::<u64>()), (4, 64, 5));
        assert_eq!(late.all(&grid).iter().sum::<u64>(), 1);
        let slice = grid.slice_of(u64::MAX);
        assert!(slice < SLICES_MAX);
    }

    #[test]
    fn fixed_slices_stay() {
        let mut grid = Grid::fixed(0, 10);
        assert_eq!((grid.slice_of(9), grid.slice_of(10), grid.slice_of(1 << 60)), (0, 1, 255));
        assert_eq!(grid.length_ns, 10);
    }
}
