//! Where a series settles, by MSER-5, and whether it does at all.
//!
//! Source: White, Cobb, Spratt, "A comparison of five steady-state truncation heuristics for
//! simulation", WSC 2000: of the means of batches of five, drop the first d such that the marginal
//! standard error of the rest, Σ (z − mean)² / (n − d)², is smallest. What we do differently: d is
//! at most half of the batches.
//!
//! MSER-5 finds a minimum in anything, steady growth included, so whether a series settled is asked
//! of its second half by itself: a straight line through the means of ten batches must be level,
//! within a tolerance or within what its residuals let one say at 99 to 99.9 % (batch means and
//! regression on time: Law, "Simulation Modeling and Analysis", 5th ed., 9.5), and so must what is
//! before and after each of them. Residuals and not deviations from the mean: growth is not its own
//! noise. What is measured before that half must lie on the same level, as its figures are of both.

/// How many observations make a batch.
const BATCH: usize = 5;

/// How many batches the second half is cut into.
const TREND_BATCHES: usize = 10;

/// How far the halves of a level series may lie apart, relative to their mean: throughput.
pub(crate) const THROUGHPUT_DRIFT_MAX: f64 = 0.02;
/// The same for mean latencies.
pub(crate) const LATENCY_DRIFT_MAX: f64 = 0.05;

/// Student's t for 99.9 % two-sided by degrees of freedom from 1. By all looks together, six of a
/// thousand steady series are taken to change at most; a test counts them. Source: Fisher and
/// Yates, "Statistical Tables", 6th ed., table III.
const T_9995: [f64; TREND_BATCHES - 2] =
    [636.619, 31.599, 12.924, 8.610, 6.869, 5.959, 5.408, 5.041];
/// The same for 99.98 %, asked for where the step may be anywhere but in the middle: these are up
/// to six further looks, and chance is to make few of all of them. Computed.
const T_9999: [f64; TREND_BATCHES - 2] =
    [3183.099, 70.700, 22.204, 13.034, 9.678, 8.025, 7.063, 6.442];
/// The same for 99 %, enough where the change is half of the mean: chance makes few of those.
const T_995: [f64; TREND_BATCHES - 2] = [63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355];
const LARGE: f64 = 0.5;

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
    let half: Vec<f64> = series[series.len() / 2..].iter().map(|value| *value as f64).collect();
    let converged = is_level(&batch_means(&half), THROUGHPUT_DRIFT_MAX);
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
    Truncation { drop: best.0 * BATCH, converged }
}

/// Means of ten batches of a series, of fewer if it is shorter.
pub(crate) fn batch_means(series: &[f64]) -> Vec<f64> {
    batches(series.len()).map(|batch| mean(&series[batch])).collect()
}

/// Ten ranges of equal length, or as many as there are observations; what is left over is at the
/// front.
pub(crate) fn batches(count: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let size = (count / TREND_BATCHES).max(1);
    let number = (count / size).min(TREND_BATCHES);
    let first = count - number * size;
    (0..number).map(move |batch| first + batch * size..first + (batch + 1) * size)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Whether these means of batches lie on a level line: neither the slope of a line through them nor
/// a step between two of them is more than `drift_max` of their mean and more than chance explains.
/// A line finds growth, which is its own noise within the parts before and after; the parts find a
/// step, which no line fits. Less than four batches tell nothing and are not level.
pub(crate) fn is_level(means: &[f64], drift_max: f64) -> bool {
    let n = means.len();
    if n < 4 {
        return false;
    }
    let (centre, middle) = (mean(means), (n - 1) as f64 / 2.0);
    let across = |i: usize| i as f64 - middle;
    let spread: f64 = (0..n).map(|i| across(i) * across(i)).sum();
    let slope = means.iter().enumerate().map(|(i, value)| across(i) * value).sum::<f64>() / spread;
    let residual = |(i, value): (usize, &f64)| value - centre - slope * across(i);
    let about_line: f64 = means.iter().enumerate().map(|pair| residual(pair).powi(2)).sum();
    let (freedom, half) = ((n - 2) as f64, n as f64 / 2.0);
    let scale = centre.abs();
    let of = |table: &[f64]| table.get(n - 3).or(table.last()).copied().unwrap_or(f64::INFINITY);
    let is_small = |drift: f64, error: f64, table: &[f64]| {
        drift.abs() <= (drift_max * scale).max(of(table) * error)
    };
    let common = |drift: f64| if drift.abs() > LARGE * scale { &T_995 } else { &T_9995 };
    let step = |at: usize| {
        let (first, last) = means.split_at(at);
        let drift = mean(last) - mean(first);
        let sizes = 1.0 / first.len() as f64 + 1.0 / last.len() as f64;
        let error =
            ((squares_about_mean(first) + squares_about_mean(last)) / freedom * sizes).sqrt();
        let table = if at == n / 2 { common(drift) } else { &T_9999 };
        is_small(drift, error, table)
    };
    let drift = slope * half;
    is_small(drift, (about_line / freedom / spread).sqrt() * half, common(drift))
        && (2..=n - 2).all(step)
}

fn squares_about_mean(values: &[f64]) -> f64 {
    let centre = mean(values);
    values.iter().map(|value| (value - centre).powi(2)).sum()
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
    fn a_step_is_taken_for_noise_nowhere_and_noise_for_a_step_rarely() {
        let mut stream = clearlane_ib::random::Stream::new(1, "noise", 1);
        let mut noisy = |level: f64| level * (0.97 + 0.06 * stream.unit());
        for at in 2..=8 {
            let series: Vec<f64> =
                (0..10).map(|i| noisy(if i < at { 30.0 } else { 24.0 })).collect();
            assert!(!is_level(&series, THROUGHPUT_DRIFT_MAX), "{at}: {series:?}");
        }
        let mut level = |_: u32| is_level(&(0..10).map(|_| noisy(30.0)).collect::<Vec<_>>(), 0.0);
        let taken = (0..20_000).filter(|i| !level(*i)).count();
        assert!(taken < 120, "{taken} of 20,000");
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

    #[test]
    fn steady_growth_is_not_taken_for_noise() {
        // However few the slices: the quarters of 40 have two batches of five each.
        for slices in [20, 40, 59, 100, 2000] {
            let step = 2000 / slices;
            let ramp: Vec<u64> = (0..slices).map(|i| 1000 + i * step).collect();
            assert!(!mser5(&ramp).converged, "{slices}");
            let mut stream = clearlane_ib::random::Stream::new(1, "noise", slices);
            let noisy: Vec<u64> = ramp.iter().map(|value| value + stream.below(100)).collect();
            assert!(!mser5(&noisy).converged, "{slices} with noise");
        }
    }

    #[test]
    fn a_line_is_level_within_its_tolerance_or_its_noise() {
        let ramp = |step: f64| (0..10).map(|i| 100.0 + step * f64::from(i)).collect::<Vec<_>>();
        assert!(is_level(&ramp(0.3), 0.02) && !is_level(&ramp(0.5), 0.02));
        assert!(!is_level(&[1.0, 1.0, 1.0], 0.02));
        // A step in the middle: a line through it has a tenth of it as noise.
        let step = [1.0, 1.0, 1.0, 1.0, 1.0, 9.0, 9.0, 9.0, 9.0, 9.0];
        assert!(!is_level(&step, 0.02));
        let early = [31.6, 31.6, 31.5, 28.0, 18.1, 18.4, 17.9, 18.0, 18.2, 18.0];
        assert!(!is_level(&early, 0.02), "a step after a third");
        let late = [0.0, 0.0, 0.0, 0.2, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
        assert!(!is_level(&late, 0.02));
        let zigzag = [100.0, 160.0, 90.0, 170.0, 95.0, 150.0, 130.0, 120.0, 110.0, 140.0];
        assert!(is_level(&zigzag, 0.02));
    }

    #[test]
    fn throughput_is_level_within_two_percent() {
        // Five observations a batch: the halves of the last fifty lie 25 steps apart.
        let converged = |step: u64| {
            let series: Vec<u64> =
                (0..100u64).map(|i| 100_000 + i.saturating_sub(50) * step).collect();
            mser5(&series).converged
        };
        assert!(converged(76) && !converged(84));
    }
}
