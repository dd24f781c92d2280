//! The gap between packets at which a program is fastest, found by runs: first over powers of two,
//! then ever closer around the best.

use crate::experiment::DemandSpec;
use crate::run::{Progress, RunOptions, run};
use crate::sweep::{Sweep, SweepFolder, SweepResult, run_sweep};
use crate::{Experiment, LabError, Status};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// What is tuned.
#[derive(Clone, Debug)]
pub struct Request {
    /// The experiment file.
    pub experiment: PathBuf,
    /// The variant; the first if not given.
    pub variant: Option<String>,
    /// The program whose messages are paced; the only one if not given.
    pub group: Option<String>,
    /// The widest gap, in times of a packet, 0.5 to 1024.
    pub most: f64,
    /// How often the search goes closer, 0 to 8.
    pub refinements: u32,
    /// First seed, if it is not the experiment's.
    pub seed: Option<u64>,
}

/// What a search has found.
#[derive(Debug)]
pub struct Tuned {
    /// All runs, as a sweep over the gap.
    pub sweep: SweepResult,
    /// The variant.
    pub variant: String,
    /// The program.
    pub group: String,
    /// By gap, ascending: the completion time of the programs of the run, us; nothing of a run
    /// without one.
    pub times: Vec<(f64, Option<f64>)>,
    /// The same with MOD gaps; nothing of a program whose steps are not known.
    pub overlap: Option<f64>,
    /// The ideal time of the program, us, if it is known.
    pub ideal: Option<f64>,
}

impl Tuned {
    /// The gap with the least time; of several the narrowest.
    pub fn best(&self) -> Option<(f64, f64)> {
        let known = self.times.iter().filter_map(|(gap, time)| Some((*gap, (*time)?)));
        known.reduce(|best, other| if other.1 < best.1 { other } else { best })
    }

    /// The time without gaps.
    pub fn unpaced(&self) -> Option<f64> {
        self.times.iter().find(|(gap, _)| *gap == 0.0).and_then(|(_, time)| *time)
    }
}

/// Searches, and keeps every run in the folder `out`, as a sweep does: a search that was stopped
/// goes on with those that are there. Fails where a sweep does, and if there is no program, or more
/// than one and none is named.
pub fn pacing(
    request: &Request,
    (out, force): (&Path, bool),
    options: &RunOptions,
    progress: &dyn Progress,
    cancel: &AtomicBool,
) -> Result<Tuned, LabError> {
    let experiment = Experiment::read(&request.experiment)?;
    let variant = variant(request, &experiment)?;
    let (group, has_steps) = program(request, &experiment, &variant)?;
    let sweep_of = |gaps: &[String]| {
        let over = format!("traffic.{}.gap={}", quoted(&group), gaps.join(","));
        let kept = std::slice::from_ref(&variant);
        let mut sweep = Sweep::read(&request.experiment, &[over], kept)?;
        sweep.override_seeds(request.seed, Some(1))?;
        Ok::<_, LabError>(sweep)
    };
    let mut gaps = coarse(request.most);
    if !force {
        gaps.extend(known(out, &group));
        gaps.sort_by(f64::total_cmp);
        gaps.dedup();
    }
    let (mut force, mut left) = (force, request.refinements);
    let (sweep, times) = loop {
        let sweep = sweep_of(&gaps.iter().map(|gap| text(*gap)).collect::<Vec<_>>())?;
        let folder = SweepFolder::claim(&sweep, out, force, false, &options.unfinished)?;
        let result = run_sweep(&sweep, options, &folder, progress, cancel)?;
        folder.fill(&result)?;
        let times = times(&result, &gaps);
        let more = closer(&times);
        if left == 0 || more.is_empty() || result.status() == Status::Partial {
            break (result, times);
        }
        // What is there is gone on with from now on.
        (force, left) = (false, left - 1);
        gaps.extend(more);
        gaps.sort_by(f64::total_cmp);
    };
    let (overlap, ideal) = match has_steps && sweep.status() != Status::Partial {
        true => by_steps(&sweep_of(&["mod".to_owned()])?, options, progress, cancel)?,
        false => (None, None),
    };
    Ok(Tuned { sweep, variant, group, times, overlap, ideal })
}

/// Time with MOD gaps, and the ideal time.
fn by_steps(
    sweep: &Sweep,
    options: &RunOptions,
    progress: &dyn Progress,
    cancel: &AtomicBool,
) -> Result<(Option<f64>, Option<f64>), LabError> {
    let Some(point) = sweep.points.first() else { return Ok((None, None)) };
    let result = run(&point.experiment, options, progress, cancel)?;
    let one = |entry| {
        let asked = crate::measure::Asked::of(entry);
        let series = result.variants.first().map(|variant| variant.series(&asked));
        series.and_then(|series| series.values.first().and_then(|(_, value)| *value))
    };
    let kinds =
        (&crate::measure::kinds::completion_time::ENTRY, &crate::measure::kinds::ideal_time::ENTRY);
    Ok((one(kinds.0), one(kinds.1)))
}

fn variant(request: &Request, experiment: &Experiment) -> Result<String, LabError> {
    let names: Vec<&str> = experiment.variants.iter().map(|v| v.name.as_str()).collect();
    match &request.variant {
        None => Ok(names.first().map_or(String::new(), |name| (*name).to_owned())),
        Some(name) if names.contains(&name.as_str()) => Ok(name.clone()),
        Some(name) => Err(LabError::Request(format!(
            "--variant {name}: the experiment has none of that name; name one of {}",
            names.join(", ")
        ))),
    }
}

/// The program that is paced, and whether its steps are known.
fn program(
    request: &Request,
    experiment: &Experiment,
    variant: &str,
) -> Result<(String, bool), LabError> {
    let of = experiment.variants.iter().find(|known| known.name == variant);
    let traffic = of.map_or(&[][..], |variant| variant.traffic.as_slice());
    let programs = traffic.iter().filter_map(|group| match &group.demand {
        DemandSpec::Program(job) => Some((group.name.clone(), job.spec.has_steps())),
        DemandSpec::OpenLoop(_) => None,
    });
    let programs: Vec<(String, bool)> = programs.collect();
    let names: Vec<&str> = programs.iter().map(|(name, _)| name.as_str()).collect();
    let names = names.join(", ");
    let named = |name: &String| programs.iter().find(|(known, _)| known == name).cloned();
    match (&request.group, programs.as_slice()) {
        (_, []) => Err(LabError::Request(format!(
            "{}: no traffic has a program, and nothing else is paced; give one a program",
            request.experiment.display()
        ))),
        (Some(name), _) => named(name).ok_or_else(|| {
            LabError::Request(format!("--group {name}: no program has that name; name {names}"))
        }),
        (None, [one]) => Ok(one.clone()),
        (None, _) => Err(LabError::Request(format!(
            "several programs can be paced; name one with --group: {names}"
        ))),
    }
}

/// A word of a key that may hold dots or spaces.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if word.chars().all(plain) { word.to_owned() } else { format!("{word:?}") }
}

/// A gap as experiment files write it: in thousandths of the time of a packet.
fn text(gap: f64) -> String {
    format!("{}", (gap * 1000.0).round() / 1000.0)
}

/// None, a half, and powers of two up to the widest.
fn coarse(most: f64) -> Vec<f64> {
    let mut gaps = vec![0.0];
    let mut gap = 0.5;
    while gap < most {
        gaps.push(gap);
        gap *= 2.0;
    }
    gaps.push(most);
    gaps
}

/// Gaps that a search has tried before whose folder this is.
fn known(out: &Path, group: &str) -> Vec<f64> {
    let text = std::fs::read_to_string(out.join("sweep.json")).unwrap_or_default();
    let summary: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let axis = summary["axes"].as_array().and_then(|axes| axes.first());
    let Some(axis) = axis.filter(|axis| axis["key"] == format!("traffic.{group}.gap")) else {
        return Vec::new();
    };
    let values = axis["values"].as_array().into_iter().flatten();
    values.filter_map(serde_json::Value::as_f64).filter(|gap| *gap >= 0.0).collect()
}

fn times(result: &SweepResult, gaps: &[f64]) -> Vec<(f64, Option<f64>)> {
    let at = result.figures.iter().position(|figure| figure.key == "completion_time");
    let time = |index: usize| {
        let point = result.points.iter().find(|point| point.at == [index])?;
        point.figures.get(at?)?.as_ref().map(|estimate| estimate.mean)
    };
    gaps.iter().enumerate().map(|(index, gap)| (*gap, time(index))).collect()
}

/// Gaps half way to the neighbours of the best one; none that is nearer than a twentieth of a
/// packet or a hundredth of the gap.
fn closer(times: &[(f64, Option<f64>)]) -> Vec<f64> {
    let known = times.iter().enumerate().filter_map(|(at, (_, time))| Some((at, (*time)?)));
    let best = known.reduce(|best, other| if other.1 < best.1 { other } else { best });
    let Some((best, _)) = best else { return Vec::new() };
    let gap = times[best].0;
    let sides = [best.checked_sub(1), best.checked_add(1)];
    let others = sides.into_iter().flatten().filter_map(|at| times.get(at)).map(|(gap, _)| *gap);
    let middle = others.map(|other| ((other + gap) * 500.0).round() / 1000.0);
    middle.filter(|middle| (middle - gap).abs() >= (0.01 * gap).max(0.05)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_begins_with_powers_of_two() {
        assert_eq!(coarse(5.0), [0.0, 0.5, 1.0, 2.0, 4.0, 5.0]);
        assert_eq!(coarse(0.5), [0.0, 0.5]);
    }

    #[test]
    fn it_goes_closer_on_both_sides_of_the_best() {
        let times = |best: usize| -> Vec<(f64, Option<f64>)> {
            let all = [0.0, 1.0, 2.0, 4.0];
            let time = |at: usize| Some(if at == best { 1.0 } else { 2.0 });
            all.iter().enumerate().map(|(at, gap)| (*gap, time(at))).collect()
        };
        assert_eq!(closer(&times(0)), [0.5]);
        assert_eq!(closer(&times(2)), [1.5, 3.0]);
        assert_eq!(closer(&times(3)), [3.0]);
        assert!(closer(&[(1.0, Some(1.0)), (1.04, Some(2.0))]).is_empty());
        assert!(closer(&[(1.0, None)]).is_empty());
    }

    #[test]
    fn names_with_dots_are_quoted() {
        assert_eq!(
            [quoted("alltoall"), quoted("a b"), quoted("a.b")],
            ["alltoall", "\"a b\"", "\"a.b\""]
        );
        assert_eq!([text(0.1 + 0.2), text(4.0)], ["0.3", "4"]);
    }
}
