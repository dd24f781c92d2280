//! How far flow mode is from packets: both run an experiment in small, the ratio of their times
//! gives an interval for further sizes, and sizes that had no part in it test the interval.

use crate::experiment::{Axis, DemandSpec, Experiment};
use crate::measure::{kinds, student_t};
use crate::run::{Progress, RunOptions};
use crate::sweep::{Sweep, SweepFolder, SweepResult, run_sweep};
use crate::{LabError, Status};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// What is calibrated, on what.
#[derive(Clone, Debug)]
pub struct Request {
    /// The experiment file.
    pub experiment: PathBuf,
    /// The key that is varied and the values that give the interval, as `key=v1,v2`.
    pub over: String,
    /// The same key and the values that test it.
    pub unseen: String,
    /// These variants; all if none is named.
    pub variants: Vec<String>,
    /// First seed, if it is not the experiment's.
    pub seed: Option<u64>,
    /// Seeds, if not the experiment's.
    pub seeds: Option<u32>,
}

/// One value of the key: the completion times of both modes, us, means over the seeds. Nothing of a
/// run that did not end with its programs.
#[derive(Clone, PartialEq, Debug)]
pub struct Pair {
    /// The value.
    pub value: String,
    /// Time of packets.
    pub packets_us: Option<f64>,
    /// Time of flows.
    pub flow_us: Option<f64>,
}

impl Pair {
    /// How many times as long packets take.
    pub fn ratio(&self) -> Option<f64> {
        match (self.packets_us?, self.flow_us?) {
            (packets, flow) if packets > 0.0 && flow > 0.0 => Some(packets / flow),
            _ => None,
        }
    }
}

/// Where the ratio of one further value lies: in 95 % of cases, if ratios are spread log-normally.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    /// The geometric mean of the ratios.
    pub mean: f64,
    /// The least.
    pub low: f64,
    /// The most.
    pub high: f64,
}

impl Interval {
    /// The prediction interval of one further ratio; nothing of fewer than two. With n logarithms
    /// of mean m and standard deviation s it is m ± t(n − 1) · s · √(1 + 1/n).
    pub fn of(ratios: &[f64]) -> Option<Self> {
        let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
        let n = logs.len() as f64;
        if logs.len() < 2 {
            return None;
        }
        let mean = logs.iter().sum::<f64>() / n;
        let squares: f64 = logs.iter().map(|log| (log - mean) * (log - mean)).sum();
        let spread = (squares / (n - 1.0)).sqrt();
        let half = student_t(logs.len() - 1) * spread * (1.0 + 1.0 / n).sqrt();
        Some(Interval { mean: mean.exp(), low: (mean - half).exp(), high: (mean + half).exp() })
    }

    /// Whether a ratio lies in it.
    pub fn holds(&self, ratio: f64) -> bool {
        (self.low..=self.high).contains(&ratio)
    }
}

/// One variant.
#[derive(Clone, Debug)]
pub struct VariantError {
    /// Its name.
    pub variant: String,
    /// The values that give the interval.
    pub seen: Vec<Pair>,
    /// Those that test it.
    pub unseen: Vec<Pair>,
    /// The interval; nothing if fewer than two values have a ratio.
    pub interval: Option<Interval>,
}

impl VariantError {
    /// Whether the ratio at a value lies in the interval; nothing without both.
    pub fn holds(&self, pair: &Pair) -> Option<bool> {
        Some(self.interval?.holds(pair.ratio()?))
    }
}

/// What a calibration came to.
#[derive(Debug)]
pub struct Calibrated {
    /// All runs, as a sweep over the key and the mode.
    pub sweep: SweepResult,
    /// The key.
    pub key: String,
    /// By variant, in the order of the experiment.
    pub variants: Vec<VariantError>,
}

/// The least share of unseen values that is to lie in the interval.
pub const SHARE_MIN: f64 = 0.9;

impl Calibrated {
    /// How many unseen values lie in the interval, and how many there are that can be asked.
    pub fn held(&self) -> (usize, usize) {
        let all = self
            .variants
            .iter()
            .flat_map(|variant| variant.unseen.iter().filter_map(move |pair| variant.holds(pair)));
        all.fold((0, 0), |(held, all), holds| (held + usize::from(holds), all + 1))
    }

    /// Whether as many do as the interval promises; nothing if none can be asked.
    pub fn is_good(&self) -> Option<bool> {
        let (held, all) = self.held();
        (all > 0).then(|| held as f64 >= SHARE_MIN * all as f64)
    }
}

/// Runs both modes and keeps every run in the folder `out`, as a sweep does: a calibration that was
/// stopped goes on with those that are there. Fails where a sweep does, if the values are of two
/// keys, if fewer than two give the interval, and if a variant has no program.
pub fn calibrate(
    request: &Request,
    (out, force): (&Path, bool),
    options: &RunOptions,
    progress: &dyn Progress,
    cancel: &AtomicBool,
) -> Result<Calibrated, LabError> {
    let over = Axis::parse(&request.over)?;
    let seen = over.count();
    if seen < 2 {
        let problem = "--over needs two values or more: one has no spread; name more";
        return Err(LabError::Request(problem.into()));
    }
    let axis = over.with(Axis::parse(&request.unseen)?)?;
    let values = axis.texts();
    let key = axis.key();
    let text = Experiment::text(&request.experiment)?;
    let axes = vec![axis, Axis::parse(MODES)?];
    let mut sweep = Sweep::over(&text, &request.experiment, axes, &request.variants)?;
    sweep.override_seeds(request.seed, request.seeds)?;
    has_programs(&sweep.base)?;
    let folder = SweepFolder::claim(&sweep, out, force, false)?;
    let sweep = run_sweep(&sweep, options, &folder, progress, cancel)?;
    folder.fill(&sweep)?;
    let names: Vec<String> =
        sweep.experiment.variants.iter().map(|variant| variant.name.clone()).collect();
    let variant = |variant: String| {
        let pair = |(at, value): (usize, &String)| {
            let [packets_us, flow_us] = [0, 1].map(|mode| time(&sweep, &[at, mode], &variant));
            Pair { value: value.clone(), packets_us, flow_us }
        };
        let mut pairs: Vec<Pair> = values.iter().enumerate().map(pair).collect();
        let unseen = pairs.split_off(seen);
        let ratios: Vec<f64> = pairs.iter().filter_map(Pair::ratio).collect();
        VariantError { interval: Interval::of(&ratios), variant, seen: pairs, unseen }
    };
    let variants = names.into_iter().map(variant).collect();
    Ok(Calibrated { sweep, key, variants })
}

/// The second axis: packets first.
const MODES: &str = "run.mode=packets,flow";

/// What both modes are asked for is when programs end.
fn has_programs(experiment: &Experiment) -> Result<(), LabError> {
    let is_program = |demand: &DemandSpec| matches!(demand, DemandSpec::Program(_));
    let without = experiment
        .variants
        .iter()
        .find(|variant| !variant.traffic.iter().any(|group| is_program(&group.demand)));
    match without {
        None => Ok(()),
        Some(variant) => Err(LabError::Request(format!(
            "{}: no traffic has a program, so there is no completion time to compare; give one a \
             program",
            variant.name
        ))),
    }
}

/// The completion time of a variant at a point, us, if its runs ended.
fn time(sweep: &SweepResult, at: &[usize], variant: &str) -> Option<f64> {
    let column = kinds::completion_time::ENTRY.column();
    let figure = sweep.figures.iter().position(|figure| figure.key == column)?;
    let here = |point: &&crate::sweep::VariantPoint| point.at == at && point.variant == variant;
    let point = sweep.points.iter().find(here)?;
    let ended = !matches!(point.status, Status::Partial | Status::Deadlock | Status::NotEnded);
    point.figures.get(figure)?.filter(|_| ended).map(|estimate| estimate.mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_ib::random::Stream;

    #[test]
    fn the_interval_is_that_of_the_textbook() {
        // Logarithms 1, 2, 3, 4, 5: mean 3, s = √2.5, t(4) = 2.776, √(1 + 1/5):
        // half 2.776 · 1.5811 · 1.0954 = 4.808.
        let ratios = [1.0, 2.0, 3.0, 4.0, 5.0].map(f64::exp);
        let Interval { mean, low, high } = Interval::of(&ratios).unwrap();
        assert!((mean.ln() - 3.0).abs() < 1e-12, "{mean}");
        assert!((high.ln() - 7.808).abs() < 1e-3 && (low.ln() + 1.808).abs() < 1e-3);
        assert_eq!(Interval::of(&[1.5]), None);
    }

    /// Ratios of one distribution: 19 of 20 further ones lie in the interval of four.
    #[test]
    fn the_interval_holds_what_it_promises() {
        let mut draws = Stream::new(1, "calibrate", 0);
        // The sum of twelve even draws is nearly normal.
        let mut one = || {
            let sum: f64 = (0..12).map(|_| draws.below(1 << 20) as f64 / (1 << 20) as f64).sum();
            (0.3 + 0.1 * (sum - 6.0)).exp()
        };
        let holds = (0..4000).filter(|_| {
            let seen = [one(), one(), one(), one()];
            Interval::of(&seen).unwrap().holds(one())
        });
        let share = holds.count() as f64 / 4000.0;
        assert!((share - 0.95).abs() < 0.015, "{share}");
    }
}
