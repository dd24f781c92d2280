//! Counter-based randomness: a draw is a pure function of (seed, noun, entity, counter), so no
//! generator is shared and no order of events can change a draw.

/// A stream of draws for one entity of one noun, such as the arrivals of host 17.
///
/// All of it that moves is its [counter](Stream::counter): a stream of the same seed, noun and
/// entity, [set](Stream::set_counter) to the counter of another, goes on as that one does, in
/// whatever process. That is what is saved of a stream; any number is a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream {
    key: u64,
    counter: u64,
}

impl Stream {
    /// The stream named `noun` of `entity` under `seed`, at its beginning.
    pub fn new(seed: u64, noun: &str, entity: u64) -> Self {
        // FNV-1a over the noun, then mixed with seed and entity: distinct names, distinct streams.
        let hash = |h: u64, b: u8| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        let noun = noun.bytes().fold(0xcbf2_9ce4_8422_2325, hash);
        let key =
            mix(mix(seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_add(mix(noun)).wrapping_add(entity));
        Stream { key, counter: 0 }
    }

    /// How many draws have been made or left out, modulo 2^64.
    pub const fn counter(&self) -> u64 {
        self.counter
    }

    /// Has the stream go on after so many draws.
    pub const fn set_counter(&mut self, counter: u64) {
        self.counter = counter;
    }

    /// The next 64 uniform bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(1);
        mix(self.key.wrapping_add(self.counter.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// Leaves out the next draw.
    #[inline]
    pub fn skip(&mut self) {
        self.counter = self.counter.wrapping_add(1);
    }

    /// Uniform in 0..n; `n` must be at least 1. The bias is below n / 2^64.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Uniform in the open interval (0, 1).
    #[inline]
    pub fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Exponentially distributed with this mean, rounded up to at least 1; never beyond `u64::MAX`.
    #[inline]
    pub fn exponential(&mut self, mean: f64) -> u64 {
        ((-self.unit().ln() * mean) as u64).saturating_add(1)
    }
}

/// One draw without a stream: 64 uniform bits for (seed, noun, entity, counter).
pub fn draw(seed: u64, noun: &str, entity: u64, counter: u64) -> u64 {
    let mut stream = Stream::new(seed, noun, entity);
    stream.counter = counter;
    stream.bits()
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): a bijection of 64 bits.
#[inline]
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_every_part_of_their_name() {
        let first = |seed, noun, entity| Stream::new(seed, noun, entity).bits();
        let base = first(1, "arrivals", 0);
        assert_eq!(base, first(1, "arrivals", 0));
        assert_ne!(base, first(2, "arrivals", 0));
        assert_ne!(base, first(1, "sizes", 0));
        assert_ne!(base, first(1, "arrivals", 1));
        assert_eq!(draw(1, "arrivals", 0, 0), base);
    }

    #[test]
    fn a_draw_left_out_is_the_one_that_would_have_come() {
        let [mut drawn, mut skipped] = [Stream::new(7, "test", 0); 2];
        drawn.bits();
        skipped.skip();
        assert_eq!(drawn.bits(), skipped.bits());
    }

    #[test]
    fn a_stream_set_to_the_counter_of_another_goes_on_as_that_one() {
        let mut first = Stream::new(7, "test", 0);
        for _ in 0..9 {
            first.bits();
        }
        first.skip();
        let mut second = Stream::new(7, "test", 0);
        second.set_counter(first.counter());
        assert_eq!((second, second.counter()), (first, 10));
        assert_eq!(second.bits(), first.bits());
        // No counter is out of range.
        second.set_counter(u64::MAX);
        second.bits();
        assert_eq!(second.counter(), 0);
    }

    #[test]
    fn draws_have_the_mean_and_range_they_claim() {
        let mut stream = Stream::new(7, "test", 0);
        let draws = 100_000;
        let mut counts = [0u32; 10];
        let mut sum = 0.0;
        for _ in 0..draws {
            counts[stream.below(10) as usize] += 1;
            sum += stream.exponential(1000.0) as f64;
        }
        assert!(counts.iter().all(|c| (9_500..10_500).contains(c)), "{counts:?}");
        assert!((sum / f64::from(draws) - 1000.5).abs() < 15.0);
    }
}
