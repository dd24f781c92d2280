//! Where a series settles: MSER-5.
//!
//! Source: White, Cobb, Spratt, "A comparison of five steady-state truncation heuristics for
//! simulation", WSC 2000: of the means of batches of five, drop the first d such that the marginal
//! standard error of the rest, Σ (z − mean)² / (n − d)², is smallest. What we do differently: d is
//! at most half of the batches. And because MSER-5 finds a minimum in anything, a series counts as
//! converged only if its two last quarters agree within [`DRIFT_MAX`], or within three standard
//! errors where its noise is larger.

/// How many observations make a batch.
const BATCH: usize = 5;

/// How far the means of the two last quarters may lie apart, relative to the larger.
const DRIFT_MAX: f64 = 0.02;

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
    Truncation { drop: best.0 * BATCH, converged: settled(&batches) }
}

/// Whether the two last quarters have the same mean, as far as their noise lets one say so.
fn settled(batches: &[f64]) -> bool {
    let n = batches.len();
    let (third, fourth) = (&batches[n / 2..n * 3 / 4], &batches[n * 3 / 4..]);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    // Square of the standard error of a quarter's mean.
    let error = |part: &[f64]| {
        let m = mean(part);
        let squares: f64 = part.iter().map(|value| (value - m) * (value - m)).sum();
        if part.len() > 1 { squares / (part.len() - 1) as f64 / part.len() as f64 } else { 0.0 }
    };
    let (a, b) = (mean(third), mean(fourth));
    let noise = 3.0 * (error(third) + error(fourth)).sqrt();
    (a - b).abs() <= (DRIFT_MAX * a.abs().max(b.abs())).max(noise)
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
    fn noise_settles() {
        let mut stream = clearlane_ib::random::Stream::new(1, "noise", 0);
        let converged = |_| mser5(&[(); 100].map(|()| 900 + stream.below(200))).converged;
        assert!((0..200).map(converged).filter(|converged| *converged).count() > 190);
    }

    #[test]
    fn a_series_that_never_settles_says_so() {
        let series: Vec<u64> = (0..100).map(|i| i * i).collect();
        assert!(!mser5(&series).converged);
        let series: Vec<u64> = (0..100).map(|i| 100 + i).collect();
        assert!(!mser5(&series).converged);
        assert!(!mser5(&[1; 19]).converged);
    }
}
