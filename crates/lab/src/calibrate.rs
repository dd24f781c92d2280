//! How far flow mode is from packets: both run an experiment in small, the ratio of their times
//! gives an interval for further sizes, and sizes that had no part in it test the interval.

use crate::experiment::{Axis, DemandSpec, Experiment};
use crate::fact::Fact;
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

/// Where the ratio of one further value lies: in 95 % of cases, if ratios are spread log-normally
/// around their trend.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    /// The ratio to expect.
    pub expected: f64,
    /// The least.
    pub low: f64,
    /// The most.
    pub high: f64,
}

impl Interval {
    /// Whether a ratio lies in it.
    pub fn holds(&self, ratio: f64) -> bool {
        (self.low..=self.high).contains(&ratio)
    }
}

/// How ratios go with size: the longer flows take, the longer they are in each other's way. A line
/// through the logarithms, by least squares, of the ratio over that of the time of flows, which is
/// known of any further value. It is level through two ratios.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Trend {
    /// How many ratios it is through, at least 2.
    pub ratios: usize,
    /// The geometric mean of the ratios.
    pub mean: f64,
    /// By how much a tenfold time of flows multiplies the ratio.
    pub tenfold: f64,
    /// Mean of the logarithms of flows' times, the sum of their squared distances from it, and the
    /// slope.
    line: (f64, f64, f64),
    /// Standard deviation of the logarithms of ratios from the line, and degrees of freedom.
    spread: (f64, usize),
}

impl Trend {
    /// Through pairs of (time of flows, ratio); nothing of fewer than two.
    pub fn through(pairs: &[(f64, f64)]) -> Option<Self> {
        let n = pairs.len();
        if n < 2 {
            return None;
        }
        let logs: Vec<(f64, f64)> = pairs.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
        let mean = |of: fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / n as f64;
        let (x, y) = (mean(|log| log.0), mean(|log| log.1));
        let sxx: f64 = logs.iter().map(|log| (log.0 - x).powi(2)).sum();
        let sxy: f64 = logs.iter().map(|log| (log.0 - x) * (log.1 - y)).sum();
        let is_line = n > 2 && sxx > 0.0;
        let slope = if is_line { sxy / sxx } else { 0.0 };
        let off = |log: &(f64, f64)| (log.1 - y - slope * (log.0 - x)).powi(2);
        let freedom = n - if is_line { 2 } else { 1 };
        let spread = (logs.iter().map(off).sum::<f64>() / freedom as f64).sqrt();
        let sxx = if is_line { sxx } else { f64::INFINITY };
        Some(Trend {
            ratios: n,
            mean: y.exp(),
            tenfold: (slope * std::f64::consts::LN_10).exp(),
            line: (x, sxx, slope),
            spread: (spread, freedom),
        })
    }

    /// The prediction interval of one further ratio, where flows take so long. With distance d of
    /// its logarithm from the mean of the n known, S the sum of their squared distances, f degrees
    /// of freedom and standard deviation s, half of it is t(f) · s · √(1 + 1/n + d²/S): it widens
    /// with the distance.
    pub fn at(&self, flow_us: f64) -> Interval {
        let ((x, sxx, slope), (spread, freedom)) = (self.line, self.spread);
        let distance = flow_us.ln() - x;
        let expected = self.mean.ln() + slope * distance;
        let off = 1.0 + 1.0 / self.ratios as f64 + distance * distance / sxx;
        let half = student_t(freedom) * spread * off.sqrt();
        Interval {
            expected: expected.exp(),
            low: (expected - half).exp(),
            high: (expected + half).exp(),
        }
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
    /// What gives the interval; nothing if fewer than two values have a ratio.
    pub trend: Option<Trend>,
}

impl VariantError {
    /// Whether the ratio at a value lies in the interval; nothing without both.
    pub fn holds(&self, pair: &Pair) -> Option<bool> {
        Some(self.interval(pair)?.holds(pair.ratio()?))
    }

    /// Where the ratio at a value lies, by the time of flows there; nothing without one.
    pub fn interval(&self, pair: &Pair) -> Option<Interval> {
        Some(self.trend?.at(pair.flow_us.filter(|us| *us > 0.0)?))
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
        (all > 0).then_some(held as f64 >= SHARE_MIN * all as f64)
    }

    /// Whether flow mode may be trusted where packets were not run, in a sentence.
    pub fn verdict(&self) -> String {
        let (held, all) = self.held();
        let share = 100.0 * held as f64 / all.max(1) as f64;
        let lie = format!("{held} of {all} unseen runs of packets lie in them ({share:.0} %");
        match self.is_good() {
            Some(true) => format!("The intervals hold: {lie})."),
            Some(false) => {
                let asked = 100.0 * SHARE_MIN;
                format!("The intervals do not hold: {lie}, {asked:.0} % are asked for).")
            }
            None => {
                "No unseen run of packets ended with its programs: raise run.duration.".to_owned()
            }
        }
    }

    /// By variant, how many times as long packets take, and where they were to be expected.
    fn facts(&self) -> Vec<Fact> {
        let mut facts = Vec::new();
        for variant in &self.variants {
            let name = &variant.variant;
            if let Some(Trend { mean, tenfold, .. }) = variant.trend {
                let label = format!("packets / flow of {name}");
                let value = format!("{mean:.3}; tenfold time multiplies it by {tenfold:.3}");
                facts.push(Fact { label, value });
            }
            for pair in &variant.unseen {
                let (Some(ratio), Some(all)) = (pair.ratio(), variant.interval(pair)) else {
                    continue;
                };
                let Interval { low, high, .. } = all;
                let side = if all.holds(ratio) { "inside" } else { "outside" };
                let label = format!("{name} at {}, unseen", pair.value);
                let value = format!("{ratio:.3}, {side} {low:.3} to {high:.3}");
                facts.push(Fact { label, value });
            }
        }
        facts
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
    let folder = SweepFolder::claim(&sweep, out, force, false, &options.unfinished)?;
    let sweep = run_sweep(&sweep, options, &folder, progress, cancel)?;
    let names: Vec<String> =
        sweep.experiment.variants.iter().map(|variant| variant.name.clone()).collect();
    let variant = |variant: String| {
        let pair = |(at, value): (usize, &String)| {
            let [packets_us, flow_us] = [0, 1].map(|mode| time(&sweep, &[at, mode], &variant));
            Pair { value: value.clone(), packets_us, flow_us }
        };
        let mut pairs: Vec<Pair> = values.iter().enumerate().map(pair).collect();
        let unseen = pairs.split_off(seen);
        let known = pairs.iter().filter_map(|pair| Some((pair.flow_us?, pair.ratio()?)));
        let trend = Trend::through(&known.collect::<Vec<_>>());
        VariantError { trend, variant, seen: pairs, unseen }
    };
    let variants = names.into_iter().map(variant).collect();
    let mut done = Calibrated { sweep, key, variants };
    done.sweep.tell(done.verdict(), done.facts());
    folder.fill(&done.sweep)?;
    Ok(done)
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
        // Logarithms of times 1 to 5 and of ratios 1, 2, 1.3, 3.75, 2.25 (Lane, Online Statistics
        // Education, 14.1): slope 0.425, intercept 0.785, s = 0.964. At 6: t(3) = 3.182,
        // √(1 + 1/5 + 9/10) = 1.449, half 4.446 around 3.335.
        let pairs = [(1.0, 1.0), (2.0, 2.0), (3.0, 1.3), (4.0, 3.75), (5.0, 2.25)];
        let pairs = pairs.map(|(x, y): (f64, f64)| (x.exp(), y.exp()));
        let trend = Trend::through(&pairs).unwrap();
        let Interval { expected, low, high } = trend.at(6f64.exp());
        assert!((expected.ln() - 3.335).abs() < 1e-9, "{expected}");
        assert!((high.ln() - 7.781).abs() < 2e-3 && (low.ln() + 1.111).abs() < 2e-3, "{high}");
        assert!((trend.tenfold.log10() - 0.425).abs() < 1e-9);
        // Two are no line: the mean, and t(1).
        let two = Trend::through(&[(1.0, 1.0), (2.0, 4.0)]).unwrap();
        assert!((two.at(1e6).expected - 2.0).abs() < 1e-12 && two.tenfold == 1.0);
        assert_eq!(Trend::through(&[(1.0, 1.5)]), None);
    }

    /// Ratios around one trend: 19 of 20 further ones lie in the interval of five.
    #[test]
    fn the_interval_holds_what_it_promises() {
        let mut draws = Stream::new(1, "calibrate", 0);
        // The sum of twelve even draws is nearly normal.
        let mut one = |us: f64| {
            let sum: f64 = (0..12).map(|_| draws.below(1 << 20) as f64 / (1 << 20) as f64).sum();
            (us, us.powf(0.1) * (0.1 * (sum - 6.0)).exp())
        };
        let holds = (0..4000).filter(|_| {
            let seen = [1.0, 3.0, 9.0, 20.0, 50.0].map(&mut one);
            let (us, ratio) = one(500.0);
            Trend::through(&seen).unwrap().at(us).holds(ratio)
        });
        let share = holds.count() as f64 / 4000.0;
        assert!((share - 0.95).abs() < 0.015, "{share}");
    }
}
