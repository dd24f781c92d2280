//! How long messages are.

use clearlane_ib::Bytes;
use clearlane_ib::random::Stream;

/// A distribution of message sizes in bytes.
#[derive(Clone, PartialEq, Debug)]
pub enum SizeDistribution {
    /// Always the same.
    Fixed(Bytes),
    /// Uniform between two sizes, both included.
    Uniform {
        /// Smallest.
        min: Bytes,
        /// Largest.
        max: Bytes,
    },
    /// One of several sizes, with weights.
    Mix(Vec<(Bytes, f64)>),
}

/// Why a distribution is none.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SizeError {
    /// A message has at least one byte.
    #[error("message size {0} is outside 1 B to 1 GiB; write a size such as \"4 KiB\"")]
    OutOfRange(Bytes),
    /// Minimum above maximum.
    #[error("message sizes run from {min} down to {max}; swap min and max")]
    Reversed {
        /// Smallest.
        min: Bytes,
        /// Largest.
        max: Bytes,
    },
    /// No weight is positive, or one is negative or not finite.
    #[error("the weights of a mix of message sizes must be finite, not negative and not all zero")]
    Weights,
}

impl SizeDistribution {
    const LARGEST: Bytes = Bytes(1 << 30);

    /// Checks ranges: sizes 1 B to 1 GiB, ordered bounds, usable weights.
    pub fn check(&self) -> Result<(), SizeError> {
        let sizes: Vec<Bytes> = match self {
            SizeDistribution::Fixed(size) => vec![*size],
            SizeDistribution::Uniform { min, max } => vec![*min, *max],
            SizeDistribution::Mix(mix) => mix.iter().map(|(size, _)| *size).collect(),
        };
        if let Some(size) = sizes.iter().find(|s| **s < Bytes(1) || **s > Self::LARGEST) {
            return Err(SizeError::OutOfRange(*size));
        }
        match self {
            SizeDistribution::Uniform { min, max } if min > max => {
                Err(SizeError::Reversed { min: *min, max: *max })
            }
            SizeDistribution::Mix(mix) => {
                let total: f64 = mix.iter().map(|(_, weight)| *weight).sum();
                let bad = mix.iter().any(|(_, w)| !w.is_finite() || *w < 0.0);
                if bad || total <= 0.0 { Err(SizeError::Weights) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// Mean size, and mean of the squared size, in bytes.
    fn moments(&self) -> (f64, f64) {
        match self {
            SizeDistribution::Fixed(size) => (size.0 as f64, (size.0 as f64).powi(2)),
            SizeDistribution::Uniform { min, max } => {
                let (min, max) = (min.0 as f64, max.0 as f64);
                // Of whole numbers, both ends included: variance ((max - min + 1)^2 - 1) / 12.
                let (mean, count) = ((min + max) / 2.0, max - min + 1.0);
                (mean, mean * mean + (count * count - 1.0) / 12.0)
            }
            SizeDistribution::Mix(mix) => {
                let total: f64 = mix.iter().map(|(_, weight)| *weight).sum();
                let of = |power| -> f64 {
                    let term = |(size, w): &(Bytes, f64)| w * (size.0 as f64).powi(power);
                    mix.iter().map(term).sum::<f64>() / total
                };
                (of(1), of(2))
            }
        }
    }

    /// Mean size in bytes.
    pub fn mean(&self) -> f64 {
        self.moments().0
    }

    /// As how many messages of one size a message counts where bytes are summed: 1 for equal ones,
    /// less the more a few large ones decide. The bytes of n messages that come at random vary as
    /// those of so many times n equal ones (Kish's effective sample size).
    pub fn evenness(&self) -> f64 {
        let (mean, square) = self.moments();
        mean * mean / square
    }

    /// A size. A fixed one draws nothing.
    #[inline]
    pub fn draw(&self, stream: &mut Stream) -> u64 {
        match self {
            SizeDistribution::Fixed(size) => size.0,
            SizeDistribution::Uniform { min, max } => min.0 + stream.below(max.0 - min.0 + 1),
            SizeDistribution::Mix(mix) => {
                let total: f64 = mix.iter().map(|(_, weight)| *weight).sum();
                let mut left = stream.unit() * total;
                for (size, weight) in mix {
                    left -= weight;
                    if left <= 0.0 {
                        return size.0;
                    }
                }
                mix.last().map_or(1, |(size, _)| size.0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_is_drawn_in_proportion() {
        let mix = SizeDistribution::Mix(vec![(Bytes(64), 3.0), (Bytes(4096), 1.0)]);
        mix.check().unwrap();
        let mut stream = Stream::new(1, "sizes", 0);
        let small = (0..10_000).filter(|_| mix.draw(&mut stream) == 64).count();
        assert!((7_300..7_700).contains(&small), "{small}");
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert!(SizeDistribution::Fixed(Bytes(0)).check().is_err());
        assert!(SizeDistribution::Uniform { min: Bytes(9), max: Bytes(3) }.check().is_err());
        assert!(SizeDistribution::Mix(vec![(Bytes(9), 0.0)]).check().is_err());
        assert!(SizeDistribution::Mix(vec![(Bytes(9), f64::NAN)]).check().is_err());
    }

    #[test]
    fn means_and_evenness_are_those_of_the_distribution() {
        let bytes = Bytes;
        assert_eq!(SizeDistribution::Fixed(bytes(4096)).evenness(), 1.0);
        // 1, 2, 3: mean 2, mean square 14/3.
        let uniform = SizeDistribution::Uniform { min: bytes(1), max: bytes(3) };
        assert_eq!(uniform.mean(), 2.0);
        assert!((uniform.evenness() - 4.0 / (14.0 / 3.0)).abs() < 1e-12);
        // Nine of 1 and one of 91: mean 10, mean square 829.
        let mix = SizeDistribution::Mix(vec![(bytes(1), 9.0), (bytes(91), 1.0)]);
        assert_eq!(mix.mean(), 10.0);
        assert!((mix.evenness() - 100.0 / 829.0).abs() < 1e-12);
    }
}
