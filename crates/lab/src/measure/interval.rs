//! A mean over seeds with its 95 % confidence interval.

use serde::{Deserialize, Deserializer, Serialize};

/// Mean of a figure over the seeds, and how certain it is.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Estimate {
    /// Mean; JSON has no infinity and writes null.
    #[serde(deserialize_with = "null_is_infinite")]
    pub mean: f64,
    /// Half-width of the 95 % confidence interval (Student's t); nothing with one seed or an
    /// infinite mean.
    pub half_width: Option<f64>,
    /// How many seeds it is over.
    pub seeds: usize,
    /// False if the figure was still changing when one of the runs ended, or a run was cut short:
    /// it then says how long the run was and not what the network does.
    pub converged: bool,
    /// False if no longer run would settle it: the latency of traffic that is not served grows for
    /// as long as it is offered.
    pub steady: bool,
}

fn null_is_infinite<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::INFINITY))
}

/// Student's t for 95 % two-sided by degrees of freedom from 1; the last holds from 100 on within
/// 1.3 %. Source: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, column 0.975.
const T_975: &[f64] = &[
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];
/// From these degrees of freedom on, the value beside them is an upper bound.
const T_975_BEYOND: &[(usize, f64)] = &[(31, 2.042), (40, 2.021), (60, 2.000), (100, 1.984)];

impl Estimate {
    /// Over the seeds that have the figure, all of them settled; nothing if none has.
    pub fn over(values: impl IntoIterator<Item = Option<f64>>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().flatten().collect();
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let half_width = (n > 1 && mean.is_finite()).then(|| {
            let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
            student_t(n - 1) * (squares / (n - 1) as f64 / n as f64).sqrt()
        });
        Some(Estimate { mean, half_width, seeds: n, converged: true, steady: true })
    }

    /// The same of a figure that had settled only if so.
    pub fn with_converged(self, converged: bool) -> Self {
        Estimate { converged: self.converged && converged, ..self }
    }

    /// The same of a figure that has a steady value only if so.
    pub fn with_steady(self, steady: bool) -> Self {
        Estimate { steady: self.steady && steady, ..self }
    }

    /// Whether a longer run would tell more of it.
    pub fn is_changing(&self) -> bool {
        self.steady && !self.converged
    }
}

/// Student's t for 95 % two-sided, of at least one degree of freedom.
pub(crate) fn student_t(freedom: usize) -> f64 {
    match T_975.get(freedom - 1) {
        Some(t) => *t,
        None => T_975_BEYOND.iter().rev().find(|(from, _)| freedom >= *from).map_or(2.042, |e| e.1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_textbook() {
        // Mean 3, s = √2.5, t(4) = 2.776: 2.776 · √(2.5 / 5) = 1.963.
        let estimate = Estimate::over([1.0, 2.0, 3.0, 4.0, 5.0].map(Some)).unwrap();
        assert_eq!(estimate.mean, 3.0);
        assert!((estimate.half_width.unwrap() - 1.963).abs() < 1e-3);
    }

    #[test]
    fn one_seed_has_no_interval_and_none_no_mean() {
        assert_eq!(Estimate::over([Some(2.0)]).unwrap().half_width, None);
        assert_eq!(Estimate::over([None, None]), None);
        assert_eq!(Estimate::over([None, Some(1.0), Some(3.0)]).unwrap().seeds, 2);
    }

    #[test]
    fn t_falls_with_the_degrees_of_freedom() {
        let ts: Vec<f64> = (1..=200).map(student_t).collect();
        assert!(ts.windows(2).all(|pair| pair[0] >= pair[1]));
        assert_eq!((ts[0], ts[29], ts[199]), (12.706, 2.042, 1.984));
    }

    /// With x = √ν tan θ the density of Student's t is cos θ to the power of ν - 1.
    #[test]
    fn each_t_covers_95_percent() {
        let integral = |freedom: usize, to: f64| -> f64 {
            let step = to / 10_000.0;
            let middle = |i: u32| (f64::from(i) + 0.5) * step;
            (0..10_000).map(|i| middle(i).cos().powi(freedom as i32 - 1) * step).sum()
        };
        let covered = |freedom: usize| {
            let angle = (student_t(freedom) / (freedom as f64).sqrt()).atan();
            integral(freedom, angle) / integral(freedom, std::f64::consts::FRAC_PI_2)
        };
        for freedom in (1..=30).chain([40, 60, 100]) {
            assert!((covered(freedom) - 0.95).abs() < 1e-4, "{freedom}: {}", covered(freedom));
        }
        for freedom in 31..=300 {
            let over = covered(freedom) - 0.95;
            assert!((-1e-4..3e-3).contains(&over), "{freedom}: {over} too much");
        }
    }
}
