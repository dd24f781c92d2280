//! Where a series settles: MSER-5.
//!
//! Source: White, Cobb, Spratt, "A comparison of five steady-state truncation heuristics for
//! simulation", WSC 2000: of the means of batches of five, drop the first d such that the marginal
//! standard error of the rest, Σ (z − mean)² / (n − d)², is smallest. What we do differently: d is
//! at most half of the batches, and a minimum at that border counts as "not converged", because
//! the series was still moving when it ended.

/// How many observations make a batch.
pub(crate) const BATCH: usize = 5;

/// What MSER-5 says of a series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Truncation {
    /// Observations to drop at the front, a multiple of [`BATCH`].
    pub(crate) drop: usize,
    /// Whether the series settled in its first half.
    pub(crate) converged: bool,
}

/// Truncates a series of at least 20 observations; a shorter one does not converge.
pub(crate) fn mser5(series: &[u64]) -> Truncation {
    let batches: Vec<f64> = series
        .chunks_exact(BATCH)
        .map(|batch| batch.iter().map(|value| *value as f64).sum::<f64>() / BATCH as f64)
        .collect();
    let n = batches.len();
    if n < 4 {
        return Truncation { drop: 0, converged: false };
    }
    let last = n / 2;
    let mut best = (0, f64::INFINITY);
    for d in 0..=last {
        let rest = &batches[d..];
        let count = rest.len() as f64;
        let mean = rest.iter().sum::<f64>() / count;
        let squares = rest.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
        let error = squares / (count * count);
        if error < best.1 {
            best = (d, error);
        }
    }
    Truncation { drop: best.0 * BATCH, converged: best.0 < last }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_is_cut_where_the_plateau_begins() {
        let series: Vec<u64> =
            (0..100).map(|i| if i < 20 { i * 50 } else { 1000 + i % 3 }).collect();
        assert_eq!(mser5(&series), Truncation { drop: 20, converged: true });
    }

    #[test]
    fn a_steady_series_loses_nothing() {
        assert_eq!(mser5(&[7; 100]), Truncation { drop: 0, converged: true });
    }

    #[test]
    fn a_series_that_never_settles_says_so() {
        let series: Vec<u64> = (0..100).map(|i| i * i).collect();
        assert!(!mser5(&series).converged);
        assert!(!mser5(&[1; 19]).converged);
    }
}
