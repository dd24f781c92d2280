//! How a recorder cuts time.

use clearlane_sim::Recording;

/// Slices of time; where they grow they double, two becoming one, as often as a run outlasts them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slices {
    /// Length of each, ps.
    pub(crate) length: u64,
    pub(crate) count: usize,
    grow: bool,
}

impl Slices {
    /// As a recording begins.
    pub(crate) fn of(what: &Recording) -> Self {
        let grow = what.grows && what.slices > 0 && what.slice.0 > 0;
        Slices { length: what.slice.0.max(1), count: what.slices as usize, grow }
    }

    /// Whether they are to double before they reach `time`.
    pub(crate) fn outlasted_by(&self, time: u64) -> bool {
        self.grow && self.length.saturating_mul(self.count as u64) < time
    }

    /// Doubles their length until they reach `time`. Returns how often.
    pub(crate) fn reach(&mut self, time: u64) -> u32 {
        let mut doublings = 0;
        while self.outlasted_by(time) {
            self.length = self.length.saturating_mul(2);
            doublings += 1;
        }
        doublings
    }

    /// The slice of a time, if there is one.
    pub(crate) fn at(&self, time: u64) -> Option<usize> {
        let number = (time / self.length) as usize;
        (number < self.count).then_some(number)
    }

    /// The slice that a span of time is in, even beyond the last; nothing if there are several.
    pub(crate) fn only(&self, (from, to): (u64, u64)) -> Option<usize> {
        let first = from / self.length;
        (first == to.saturating_sub(1).max(from) / self.length).then_some(first as usize)
    }

    /// Divides an amount evenly over the time from `from` to `to`: tells each slice its part. Parts
    /// add up to the whole; what is beyond the last slice is not told. An amount of no time is all
    /// at its beginning.
    pub(crate) fn spread(
        &self,
        (from, to): (u64, u64),
        amount: u64,
        mut tell: impl FnMut(usize, u64),
    ) {
        if let Some(slice) = self.only((from, to)) {
            if slice < self.count {
                tell(slice, amount);
            }
            return;
        }
        let (first, last) = (from / self.length, (to - 1) / self.length);
        let span = u128::from(to - from);
        let mut before = 0;
        for number in first..=last.min(self.count.saturating_sub(1) as u64) {
            let end = ((number + 1) * self.length).min(to);
            let until = (u128::from(amount) * u128::from(end - from) / span) as u64;
            tell(number as usize, until - before);
            before = until;
        }
    }
}

/// Makes one of each two slices, `both` of a pair; those at the end become `empty`.
pub(crate) fn halve<T>(slices: &mut [T], empty: impl Fn() -> T, both: impl Fn(&mut T, T)) {
    for index in 0..slices.len() {
        let one = std::mem::replace(&mut slices[index], empty());
        match index % 2 {
            0 => slices[index / 2] = one,
            _ => both(&mut slices[index / 2], one),
        }
    }
}

/// Moves what is above `most` on to the next slices, and what is left in the end to those before: a
/// message of changing rate was spread evenly, and so a link may seem busier than it can be.
pub(crate) fn level(slices: &mut [u64], most: u64) {
    let mut over = 0;
    let mut pour = |slice: &mut u64| {
        let all = *slice + over;
        *slice = all.min(most);
        over = all - *slice;
    };
    slices.iter_mut().for_each(&mut pour);
    slices.iter_mut().rev().for_each(&mut pour);
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_ib::Picoseconds;

    fn slices(grows: bool) -> Slices {
        let slice = Picoseconds(100);
        Slices::of(&Recording { slice, slices: 4, grows, flow_bytes_max: 0 })
    }

    fn spread(span: (u64, u64), amount: u64) -> [u64; 4] {
        let mut parts = [0; 4];
        slices(false).spread(span, amount, |slice, part| parts[slice] += part);
        parts
    }

    #[test]
    fn parts_are_by_time_and_add_up() {
        assert_eq!(spread((10, 90), 7), [7, 0, 0, 0]);
        assert_eq!(spread((50, 250), 10), [2, 5, 3, 0]);
        assert_eq!(spread((0, 100), 5), [5, 0, 0, 0]);
        assert_eq!(spread((100, 100), 5), [0, 5, 0, 0]);
        assert_eq!(spread((300, 500), 10), [0, 0, 0, 5]);
        assert_eq!(spread((400, 500), 10), [0; 4]);
    }

    #[test]
    fn slices_double_until_they_reach() {
        let mut growing = slices(true);
        assert_eq!((growing.reach(400), growing.length), (0, 100));
        assert_eq!((growing.reach(1601), growing.length), (3, 800));
        assert_eq!((growing.at(799), growing.at(3200)), (Some(0), None));
        let mut fixed = slices(false);
        assert_eq!((fixed.reach(1601), fixed.at(400)), (0, None));
    }

    #[test]
    fn what_is_too_much_goes_elsewhere() {
        let mut busy = [150, 20, 90, 120, 10];
        level(&mut busy, 100);
        assert_eq!(busy, [100, 70, 90, 100, 30]);
        let mut busy = [10, 20, 150];
        level(&mut busy, 100);
        assert_eq!(busy, [10, 70, 100]);
    }
}
