//! Sweeps: one experiment at every point of a grid of values, one table of what came out.

mod folder;
mod grid;
mod parquet;
mod record;
mod result;
mod table;

pub use folder::SweepFolder;
pub use parquet::{POINTS_COLUMNS, POINTS_FILE};
pub use result::{SweepResult, VariantPoint};

use crate::LabError;
use crate::advance::Elapsed;
use crate::experiment::{Axis, Experiment, SiteFiles, Variant};
use crate::run::{Begun, Jobs, Progress, RunOptions, run};
use clearlane_ib::Picoseconds;
use record::Record;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Most points of a grid.
const POINTS_MAX: usize = 10_000;

/// A point of the grid.
#[derive(Clone, Debug)]
pub struct Point {
    /// By axis, the index among its values.
    pub at: Vec<usize>,
    /// The experiment with these values.
    pub experiment: Experiment,
}

/// An experiment and what is varied in it.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The experiment as its file has it.
    pub base: Experiment,
    /// What is varied, at least one key.
    pub axes: Vec<Axis>,
    /// All combinations; the last axis varies fastest.
    pub points: Vec<Point>,
}

impl Sweep {
    /// Reads an experiment file and lays `over` (`key=v1,v2` or `key=a..b:n`) over it; without any,
    /// the file's `[sweep]`. Keeps the named variants, all if none is named. Fails if any point is
    /// no experiment, and if one of several variants sets itself what is varied.
    pub fn read(path: &Path, over: &[String], variants: &[String]) -> Result<Self, LabError> {
        Self::parse(&Experiment::text(path)?, path, over, variants)
    }

    /// The same of the text of a file called `path`.
    pub fn parse(
        text: &str,
        path: &Path,
        over: &[String],
        variants: &[String],
    ) -> Result<Self, LabError> {
        let axes = over.iter().map(|text| Axis::parse(text)).collect::<Result<_, _>>()?;
        Self::over(text, path, axes, variants)
    }

    /// The same, with what is varied as axes; without any, the file's `[sweep]`.
    pub(crate) fn over(
        text: &str,
        path: &Path,
        axes: Vec<Axis>,
        variants: &[String],
    ) -> Result<Self, LabError> {
        let kept = |mut experiment: Experiment| -> Result<Experiment, LabError> {
            if !variants.is_empty() {
                experiment.keep_variants(variants)?;
            }
            Ok(experiment)
        };
        let base = kept(Experiment::parse(text, path)?)?;
        let axes = if axes.is_empty() { base.sweep.clone() } else { axes };
        if axes.is_empty() {
            let problem = "nothing is varied; name a key and its values with \
                --over traffic.load=0.1..0.9:9 or in the experiment's [sweep]";
            return Err(LabError::Request(problem.into()));
        }
        let mut keys: Vec<String> = axes.iter().map(Axis::short_key).collect();
        keys.sort_unstable();
        if let Some(pair) = keys.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(LabError::Request(format!("{} is varied twice; drop one", pair[0])));
        }
        axes.iter().try_for_each(|axis| is_used(axis, &base))?;
        axes.iter().try_for_each(|axis| differs(axis, &base))?;
        let count = axes.iter().fold(1usize, |all, axis| all.saturating_mul(axis.count()));
        if count > POINTS_MAX {
            let problem = format!("{count} points are more than {POINTS_MAX}; name fewer values");
            return Err(LabError::Request(problem));
        }
        let point = |index: usize| {
            let at = at(&axes, index);
            let overlays: Vec<_> =
                axes.iter().zip(&at).filter_map(|(axis, at)| axis.overlay(*at)).collect();
            let experiment = kept(Experiment::parse_with(text, path, &overlays)?)?;
            Ok(Point { at, experiment })
        };
        let points = (0..count).map(point).collect::<Result<_, LabError>>()?;
        let mut sweep = Sweep { base, axes, points };
        sweep.run_once();
        Ok(sweep)
    }

    /// Has variants that a key does not change run at its first value alone.
    fn run_once(&mut self) {
        let here = |sweep: &Sweep, index: usize, variant: &Variant| {
            sweep.runs_at(&variant.name, &sweep.points[index].at) == index
        };
        let kept: Vec<Vec<bool>> = (0..self.points.len())
            .map(|index| self.base.variants.iter().map(|v| here(self, index, v)).collect())
            .collect();
        for (point, kept) in self.points.iter_mut().zip(kept) {
            let mut kept = kept.into_iter();
            point.experiment.variants.retain(|_| kept.next().unwrap_or(true));
        }
    }

    /// The number of the point whose run of a variant stands for the one at `at`.
    fn runs_at(&self, variant: &str, at: &[usize]) -> usize {
        let variant = self.base.variants.iter().find(|known| known.name == variant);
        let axes = self.axes.iter().zip(at);
        axes.fold(0, |index, (axis, at)| {
            let changed = variant.is_none_or(|variant| is_changed(variant, axis));
            index * axis.count() + if changed { *at } else { 0 }
        })
    }

    /// See [`Experiment::override_site`]; of several engines one that reads the tables will do.
    pub fn override_site(&mut self, site: &SiteFiles) -> Result<(), LabError> {
        let mut reads = self.base.set_site(site)?;
        for point in &mut self.points {
            reads |= point.experiment.set_site(site)?;
        }
        site.check(reads)
    }

    /// See [`Experiment::override_seeds`].
    pub fn override_seeds(
        &mut self,
        seed: Option<u64>,
        seeds: Option<u32>,
    ) -> Result<(), LabError> {
        self.each(|experiment| experiment.override_seeds(seed, seeds))
    }

    fn each(
        &mut self,
        change: impl Fn(&mut Experiment) -> Result<(), LabError>,
    ) -> Result<(), LabError> {
        change(&mut self.base)?;
        self.points.iter_mut().try_for_each(|point| change(&mut point.experiment))
    }
}

/// Whether a variant is another one with other values of what is varied: the parameter of a
/// mechanism that it does not have changes nothing.
fn is_changed(variant: &Variant, axis: &Axis) -> bool {
    match axis.mechanism() {
        None => true,
        Some(mechanism) => variant.control.all().any(|known| known.entry.name == mechanism),
    }
}

/// Fails if the parameter of a mechanism is varied that no variant has.
fn is_used(axis: &Axis, experiment: &Experiment) -> Result<(), LabError> {
    let used = experiment.variants.iter().any(|variant| is_changed(variant, axis));
    match axis.mechanism().filter(|_| !used) {
        None => Ok(()),
        Some(mechanism) => Err(LabError::Request(format!(
            "{} is varied, but no variant has {mechanism}; name {mechanism} in [control]",
            axis.short_key()
        ))),
    }
}

/// Fails if a variant sets itself what is varied: beside others its rows would say of it what is
/// not so, or repeat those of another. A variant alone may be varied in anything.
fn differs(axis: &Axis, experiment: &Experiment) -> Result<(), LabError> {
    let variants = &experiment.variants;
    let sets = |variant: &&Variant| variant.own.iter().any(|own| axis.replaces(own));
    let Some(first) = variants.iter().find(sets).filter(|_| variants.len() > 1) else {
        return Ok(());
    };
    let key = axis.short_key();
    let others: Vec<&str> =
        variants.iter().filter(|v| !sets(v)).map(|variant| variant.name.as_str()).collect();
    let remedy = match others.as_slice() {
        [] => format!("vary one variant alone (--variants {})", first.name),
        others => format!("leave it out (--variants {})", others.join(",")),
    };
    Err(LabError::Request(format!(
        "{key} is varied, but variant {} sets it itself and would lose its own value; {remedy} or \
         vary another key",
        first.name
    )))
}

/// By axis, the place among its values of the point of this number.
fn at(axes: &[Axis], index: usize) -> Vec<usize> {
    let mut rest = index;
    let mut at: Vec<usize> = axes
        .iter()
        .rev()
        .map(|axis| {
            let own = rest % axis.count();
            rest /= axis.count();
            own
        })
        .collect();
    at.reverse();
    at
}

/// Runs the points that the folder does not hold yet and keeps each in it as soon as it is done.
/// Once `cancel` is true the points under way are dropped and the result is partial.
pub fn run_sweep(
    sweep: &Sweep,
    options: &RunOptions,
    folder: &SweepFolder,
    progress: &dyn Progress,
    cancel: &AtomicBool,
) -> Result<SweepResult, LabError> {
    let records: Vec<Mutex<Option<Record>>> =
        folder.known(sweep)?.into_iter().map(Mutex::new).collect();
    let is_missing = |record: &Mutex<Option<Record>>| record.lock().is_ok_and(|r| r.is_none());
    let missing: Vec<usize> =
        records.iter().enumerate().filter(|(_, r)| is_missing(r)).map(|(index, _)| index).collect();
    let known = records.len() - missing.len();
    let share = Share {
        progress,
        points: Mutex::new(vec![(0.0, 0); missing.len()]),
        elapsed: Mutex::new(vec![Elapsed::default(); missing.len()]),
    };
    if let Some(kept) = &options.checkpoints {
        missing.iter().try_for_each(|index| kept.point(*index).check(folder.question(*index)))?;
    }
    let next = AtomicUsize::new(0);
    let failed: Mutex<Option<LabError>> = Mutex::new(None);
    let jobs = options.jobs.of(options.threads);
    let outer = jobs.min(missing.len().max(1));
    let worker = |inner: usize| {
        while !cancel.load(Ordering::Relaxed) {
            let order = next.fetch_add(1, Ordering::Relaxed);
            let Some(index) = missing.get(order).copied() else { return };
            let memory_bytes = options.memory_bytes.map(|bytes| bytes / outer as u64);
            let checkpoints = options.checkpoints.as_ref().map(|kept| kept.point(index));
            let jobs = Jobs::Exactly(inner);
            let options = RunOptions { jobs, memory_bytes, checkpoints, ..options.clone() };
            let told = OfPoint { share: &share, order };
            let point = &sweep.points[index];
            let done = run(&point.experiment, &options, &told, cancel)
                .and_then(|result| folder.keep(index, point, &result));
            if let (Ok(Some(_)), Some(kept)) = (&done, &options.checkpoints) {
                // The point is in the folder: what is left of it does no harm.
                let _ = kept.clear();
            }
            match done {
                Ok(record) => *records[index].lock().unwrap_or_else(|e| e.into_inner()) = record,
                Err(LabError::Interrupted { .. }) => {}
                Err(error) => {
                    // Whatever is wrong with one point will be wrong with others.
                    next.store(missing.len(), Ordering::Relaxed);
                    failed.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(error);
                }
            }
        }
    };
    // Threads that the points leave over go to the first points' seeds.
    let inner = |thread: usize| jobs / outer + usize::from(thread < jobs % outer);
    on_threads(outer, |thread| worker(inner(thread)));
    if let Some(error) = failed.into_inner().unwrap_or_else(|e| e.into_inner()) {
        return Err(error);
    }
    let records = records.into_iter().map(|r| r.into_inner().unwrap_or_else(|e| e.into_inner()));
    Ok(SweepResult::of(sweep, records.collect(), known, options.command.clone()))
}

/// Has `worker` run on so many threads, of which the caller's is number 0. Where one cannot be
/// started, those that are there do its work.
fn on_threads(threads: usize, worker: impl Fn(usize) + Sync) {
    std::thread::scope(|scope| {
        for thread in 1..threads {
            let (worker, builder) = (&worker, std::thread::Builder::new());
            if builder.spawn_scoped(scope, move || worker(thread)).is_err() {
                break;
            }
        }
        worker(0);
    });
}

/// What all points together have done: share and packet-hops of each.
struct Share<'a> {
    progress: &'a dyn Progress,
    points: Mutex<Vec<(f64, u64)>>,
    elapsed: Mutex<Vec<Elapsed>>,
}

struct OfPoint<'a> {
    share: &'a Share<'a>,
    order: usize,
}

impl Progress for OfPoint<'_> {
    fn on_begin(&self, run: &Begun) {
        let points = self.share.points.lock().unwrap_or_else(|e| e.into_inner()).len();
        self.share.progress.on_begin(&Begun { earlier: run.earlier / points as f64, ..*run });
    }

    fn on_simulated(&self) {
        self.share.progress.on_simulated();
    }

    fn on_progress(&self, done: f64, packet_hops: u64) {
        let mut points = self.share.points.lock().unwrap_or_else(|e| e.into_inner());
        points[self.order] = (done, packet_hops);
        let (sum, hops) = points.iter().fold((0.0, 0), |(d, h), (done, hops)| (d + done, h + hops));
        let all = points.len() as f64;
        drop(points);
        self.share.progress.on_progress(sum / all, hops);
    }

    fn on_elapsed(&self, elapsed: Elapsed) {
        let mut points = self.share.elapsed.lock().unwrap_or_else(|e| e.into_inner());
        points[self.order] = elapsed;
        let ended = points.iter().filter(|point| point.all > 0 && point.ended == point.all).count();
        let simulated = Picoseconds(points.iter().map(|point| point.simulated.0).sum());
        let packet_hops = points.iter().map(|point| point.packet_hops).sum();
        let (ended, all) = (ended as u64, points.len() as u64);
        drop(points);
        self.share.progress.on_elapsed(Elapsed { ended, all, simulated, packet_hops });
    }
}
