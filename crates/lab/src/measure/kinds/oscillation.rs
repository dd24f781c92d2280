//! How a flow's throughput goes up and down.

use crate::measure::view::within;
use crate::measure::{Flow, RecordView};
use clearlane_workload::Rank;

/// Of the flow in the measured part; nothing if it is not known or nothing of it is delivered.
pub(super) fn oscillation(record: &RecordView<'_>, flow: Option<&Flow>) -> Option<Oscillation> {
    let (flow, ranks) = (flow?, record.hosts.ranks());
    let ends: (Rank, Rank) = (ranks.resolve(&flow.from).ok()?, ranks.resolve(&flow.to).ok()?);
    // Slices of one length tell.
    let slices = record.cut().full(record.figures.measured.clone());
    let flows = record.outcome.flows.iter().filter(|flow| (flow.source, flow.destination) == ends);
    let mut sums: Option<Vec<u64>> = None;
    for flow in flows {
        let bytes = within(&flow.delivered_payload_bytes, &slices);
        let sums = sums.get_or_insert_with(|| vec![0; bytes.len()]);
        sums.iter_mut().zip(bytes).for_each(|(sum, bytes)| *sum += bytes);
    }
    Oscillation::of(&sums?)
}

/// How a series goes up and down.
pub(super) struct Oscillation {
    /// In slices; nothing if it crosses its mean upwards once at most.
    pub(super) period: Option<f64>,
    /// Over the mean.
    pub(super) amplitude: f64,
}

impl Oscillation {
    /// Of a series with a mean above 0.
    pub(super) fn of(series: &[u64]) -> Option<Self> {
        let (n, sum) = (series.len() as u128, series.iter().map(|v| u128::from(*v)).sum::<u128>());
        if sum == 0 {
            return None;
        }
        let mean = sum as f64 / n as f64;
        let square = |value: &u64| (*value as f64 - mean) * (*value as f64 - mean);
        let variance = series.iter().map(square).sum::<f64>() / n as f64;
        // Compared as integers: a level series has no crossings, whatever its mean rounds to.
        let above = |value: u64| u128::from(value) * n > sum;
        let crossings: Vec<usize> =
            (1..series.len()).filter(|i| !above(series[i - 1]) && above(series[*i])).collect();
        let period = match crossings.as_slice() {
            [first, .., last] => Some((last - first) as f64 / (crossings.len() - 1) as f64),
            _ => None,
        };
        Some(Oscillation { period, amplitude: (2.0 * variance).sqrt() / mean })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sine_has_its_period_and_amplitude() {
        let wave = |i: usize| 1_000.0 + 300.0 * (i as f64 * std::f64::consts::TAU / 40.0).sin();
        let series: Vec<u64> = (0..400).map(|i| wave(i).round() as u64).collect();
        let found = Oscillation::of(&series).unwrap();
        assert_eq!(found.period, Some(40.0));
        assert!((found.amplitude - 0.3).abs() < 0.001, "{}", found.amplitude);
    }

    #[test]
    fn what_is_level_has_no_period() {
        for level in [7, 1 << 53] {
            let found = Oscillation::of(&[level; 99]).unwrap();
            assert_eq!((found.period, found.amplitude), (None, 0.0));
        }
        // Once up is no period yet.
        assert_eq!(Oscillation::of(&[1, 1, 3, 3]).unwrap().period, None);
        assert_eq!(Oscillation::of(&[1, 3, 1, 3, 1, 3]).unwrap().period, Some(2.0));
        assert!(Oscillation::of(&[0; 100]).is_none() && Oscillation::of(&[]).is_none());
    }
}
