//! Where answers come from: a single run has one point, a sweep as many as its grid.

use super::entry::Answer;
use super::{Asked, Estimate};

/// Results that have values of measures of single runs.
pub trait Answers {
    /// What is varied; nothing by a single run.
    fn varied(&self) -> &[Varied];

    /// The variants, in the order of the experiment.
    fn variants(&self) -> Vec<&str>;

    /// What a measure of single runs gave for a variant at a point, seed by seed; nothing if that
    /// was not run. `point` has an index into the values of each key that is varied.
    fn of_runs(&self, asked: &Asked, variant: &str, point: &[usize]) -> Option<Series>;
}

/// A key that a sweep varies.
#[derive(Clone, PartialEq, Debug)]
pub struct Varied {
    /// The key: `traffic.load`.
    pub key: String,
    /// Its values as numbers in one unit, nothing for one that is none.
    pub values: Vec<Option<f64>>,
}

/// What an answer is about: a variant, and by key of the sweep the value, as far as they are fixed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct At<'a> {
    /// The variant.
    pub variant: &'a str,
    /// By key that is varied, the index of its value.
    pub point: Vec<Option<usize>>,
}

/// An answer seed by seed.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// By seed; nothing where a run has no such value.
    pub values: Vec<(u64, Option<f64>)>,
    /// Whether every run had settled in it.
    pub settled: bool,
    /// Whether it has a steady value in every run; see [`Estimate::steady`].
    pub steady: bool,
    /// Of a sweep, at which points of which variants it was found, where the answer chose.
    pub chosen: Vec<(String, Vec<Option<usize>>)>,
}

impl<'a> At<'a> {
    /// A variant of which nothing is fixed.
    pub fn of(variant: &'a str, answers: &dyn Answers) -> Self {
        At { variant, point: vec![None; answers.varied().len()] }
    }
}

impl Asked {
    /// What results say to it; nothing if they have no answer.
    pub fn answer(&self, answers: &dyn Answers, at: &At<'_>) -> Option<Series> {
        match self.entry.answer {
            Answer::Combined(combine) => combine(&self.arguments, answers, at),
            Answer::Figures(_) | Answer::Record(_) => {
                let point: Option<Vec<usize>> = at.point.iter().copied().collect();
                answers.of_runs(self, at.variant, &point?)
            }
        }
    }

    /// The same over the seeds.
    pub fn estimate(&self, answers: &dyn Answers, at: &At<'_>) -> Option<Estimate> {
        self.answer(answers, at)?.estimate()
    }
}

impl Series {
    /// Over the seeds that have a value; nothing if none has.
    pub fn estimate(&self) -> Option<Estimate> {
        let values = self.values.iter().map(|(_, value)| *value);
        Some(Estimate::over(values)?.with_converged(self.settled).with_steady(self.steady))
    }

    /// The value of a seed.
    pub(super) fn of_seed(&self, seed: u64) -> Option<f64> {
        self.values.iter().find(|(own, _)| *own == seed).and_then(|(_, value)| *value)
    }

    /// Of several series, what `of` makes of their values with the same seed, where all have one.
    pub(super) fn combined(all: &[Series], of: impl Fn(&[f64]) -> Option<f64>) -> Option<Series> {
        let first = all.first()?;
        let value = |(seed, _): &(u64, Option<f64>)| {
            let values: Option<Vec<f64>> = all.iter().map(|series| series.of_seed(*seed)).collect();
            (*seed, values.and_then(|values| of(&values)))
        };
        Some(Series {
            values: first.values.iter().map(value).collect(),
            settled: all.iter().all(|series| series.settled),
            steady: all.iter().all(|series| series.steady),
            chosen: all.iter().flat_map(|series| series.chosen.clone()).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Arguments, Points, Provided, kinds};

    /// Load 0.1 to 0.4 by threshold 1 and 2: accepted load and latency of two variants, two seeds.
    struct Table(Vec<Varied>);

    impl Table {
        fn new() -> Self {
            let varied = |key: &str, values: &[f64]| Varied {
                key: key.into(),
                values: values.iter().copied().map(Some).collect(),
            };
            let loads = varied("traffic.load", &[0.1, 0.2, 0.3, 0.4]);
            Table(vec![loads, varied("control.iba-cc.threshold", &[1.0, 2.0])])
        }
    }

    impl Answers for Table {
        fn varied(&self) -> &[Varied] {
            &self.0
        }

        fn variants(&self) -> Vec<&str> {
            vec!["drb", "iba-cc"]
        }

        fn of_runs(&self, asked: &Asked, variant: &str, point: &[usize]) -> Option<Series> {
            let [load, threshold] = [0, 1].map(|axis| self.0[axis].values[point[axis]].unwrap());
            // What is carried grows with the load, up to a most that the threshold gives.
            let most = if variant == "drb" { 0.3 } else { 0.1 * threshold };
            let value = match asked.entry.name {
                "accepted-load" => load.min(most),
                "served" => load.min(most) / load,
                "latency-mean" => 1.0 / (0.5 - load.min(most)),
                _ => return None,
            };
            let values = vec![(1, Some(value)), (2, Some(value * 1.1))];
            Some(Series { values, settled: load <= most, steady: load <= most, chosen: Vec::new() })
        }
    }

    fn within(name: &str, of: Asked, arguments: Arguments) -> Asked {
        let of = Some(Box::new(of));
        Asked { entry: kinds::by_name(name).unwrap(), arguments: Arguments { of, ..arguments } }
    }

    fn accepted() -> Asked {
        Asked::of(&kinds::accepted_load::ENTRY)
    }

    fn over(name: &str) -> Arguments {
        Arguments { over: Some(name.into()), ..Arguments::default() }
    }

    fn points(points: Points) -> Arguments {
        Arguments { points, ..Arguments::default() }
    }

    fn along(key: &str) -> Points {
        Points { along: vec![key.into()], ..Points::default() }
    }

    fn mean(asked: &Asked) -> Option<f64> {
        let table = Table::new();
        asked.estimate(&table, &At::of("drb", &table)).map(|e| (e.mean * 1e6).round() / 1e6)
    }

    #[test]
    fn a_ratio_of_maxima_takes_each_where_it_is_largest() {
        let most = within("largest", accepted(), Arguments::default());
        let ratio = within("ratio", most, over("iba-cc"));
        // 0.3 over 0.2; at one point after another it is 3 at most.
        assert_eq!(mean(&ratio), Some(1.5));
        let each =
            within("largest", within("ratio", accepted(), over("iba-cc")), points(along("")));
        assert_eq!(mean(&each), None, "no key is called so");
        let each = within("ratio", accepted(), over("iba-cc"));
        assert_eq!(mean(&within("largest", each, Arguments::default())), Some(3.0));
        let table = Table::new();
        let found = ratio.answer(&table, &At::of("drb", &table)).unwrap();
        let at = |variant: &str, load, threshold| {
            (variant.to_owned(), vec![Some(load), Some(threshold)])
        };
        assert_eq!(found.chosen, [at("drb", 2, 0), at("iba-cc", 1, 1)]);
    }

    #[test]
    fn a_band_goes_along_one_key_around_a_maximum_along_another() {
        let most = within("largest", accepted(), points(along("traffic.load")));
        let ratio = within("ratio", most, over("iba-cc"));
        let band = |kind| within(kind, ratio.clone(), points(along("control.iba-cc.threshold")));
        assert_eq!([mean(&band("smallest")), mean(&band("largest"))], [Some(1.5), Some(3.0)]);
        // Without a value for the threshold there is no answer.
        assert_eq!(mean(&ratio), None);
    }

    #[test]
    fn bounds_conditions_and_settling_leave_points_out() {
        let load =
            |bounds| Points { within: vec![("traffic.load".into(), bounds)], ..Points::default() };
        let of = |kind, points_of| mean(&within(kind, accepted(), points(points_of)));
        // Means over both seeds: 1.05 of the first's.
        assert_eq!(of("mean-over", load([0.1, 0.2])), Some(0.1575));
        assert_eq!(of("largest", load([0.15, 0.25])), Some(0.21));
        assert_eq!(of("largest", load([0.5, 0.6])), None);
        assert_eq!(of("last", Points::default()), Some(0.315));
        assert_eq!(of("first", Points::default()), Some(0.105));
        let served = |least| Points {
            provided: Some(Box::new(Provided {
                asked: Asked::of(&kinds::served::ENTRY),
                variant: Some("iba-cc".into()),
                least,
            })),
            ..Points::default()
        };
        assert_eq!(of("largest", served(1.0)), Some(0.21));
        // A condition holds at its bound, here the mean of what is served in full.
        let full = Estimate::over([Some(1.0), Some(1.1)]).unwrap().mean;
        assert_eq!(of("largest", served(full)), Some(0.21));
        let settled = Points { settled: true, ..Points::default() };
        let table = Table::new();
        let of_settled = |settled: &Points| {
            let asked = within("last", accepted(), points(settled.clone()));
            asked.answer(&table, &At::of("drb", &table)).unwrap()
        };
        let (all, some) = (of_settled(&Points::default()), of_settled(&settled));
        assert_eq!((all.settled, some.settled), (false, true));
        // What is made of a value that is not steady is not steady either.
        let estimate = |series: &Series| series.estimate().unwrap();
        assert_eq!((estimate(&all).steady, estimate(&some).steady), (false, true));
        assert_eq!(some.chosen[0].1[0], Some(2));
    }

    #[test]
    fn a_seed_without_a_value_on_either_side_has_no_ratio() {
        let series = |values: &[(u64, Option<f64>)]| Series {
            values: values.to_vec(),
            settled: true,
            steady: true,
            chosen: Vec::new(),
        };
        let [above, below] = [
            series(&[(1, Some(4.0)), (2, None), (3, Some(1.0))]),
            series(&[(1, Some(2.0)), (2, Some(1.0))]),
        ];
        let ratio = Series::combined(&[above, below], |v| Some(v[0] / v[1])).unwrap();
        assert_eq!(ratio.values, [(1, Some(2.0)), (2, None), (3, None)]);
        // A ratio of what has no steady value has none.
        let steady = series(&[(1, Some(1.0))]);
        let growing = Series { steady: false, ..steady.clone() };
        let of = |both: [&Series; 2]| Series::combined(&both.map(Clone::clone), |v| Some(v[0]));
        assert!(!of([&steady, &growing]).unwrap().steady && of([&steady; 2]).unwrap().steady);
    }
}
