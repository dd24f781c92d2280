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
}
