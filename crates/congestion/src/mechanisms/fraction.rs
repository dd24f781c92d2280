//! Numbers from 0 to 1 in fixed point: gains and probabilities that come out alike everywhere.

/// A number from 0 to 1 in units of 2^-32.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Fraction(u64);

impl Fraction {
    /// 1.
    pub(super) const ONE: Fraction = Fraction(1 << 32);

    /// The nearest one; what lies outside 0 to 1 becomes its end.
    pub(super) fn of(number: f64) -> Self {
        Fraction((number.clamp(0.0, 1.0) * Self::ONE.0 as f64).round() as u64)
    }

    /// That many units of 2^-32, at most 1.
    pub(super) fn of_units(units: u64) -> Self {
        Fraction(units.min(Self::ONE.0))
    }

    /// Units of 2^-32.
    pub(super) fn units(self) -> u64 {
        self.0
    }

    /// 1 less this.
    pub(super) fn complement(self) -> Self {
        Fraction(Self::ONE.0 - self.0)
    }

    /// The product, rounded down.
    pub(super) fn times(self, value: u64) -> u64 {
        ((u128::from(self.0) * u128::from(value)) >> 32) as u64
    }

    /// This times `over / under`, rounded down and at most 1; `under` is at least 1.
    pub(super) fn scaled(self, over: u64, under: u64) -> Self {
        let units = u128::from(self.0) * u128::from(over) / u128::from(under);
        Self::of_units(u64::try_from(units).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_multiply_without_overflow_and_round_down() {
        assert_eq!(Fraction::ONE.times(u64::MAX), u64::MAX);
        assert_eq!(Fraction::of(1.0 / 256.0).times(1_000), 3);
        assert_eq!(Fraction::of(0.25).complement().times(400), 300);
        assert_eq!(Fraction::of(0.5).scaled(3, 4), Fraction::of(0.375));
        assert_eq!(Fraction::of(0.5).scaled(u64::MAX, 1), Fraction::ONE);
        assert_eq!([Fraction::of(-1.0), Fraction::of(7.0)], [Fraction::of(0.0), Fraction::ONE]);
    }
}
