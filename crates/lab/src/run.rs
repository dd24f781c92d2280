//! Running the variants and seeds of an experiment on some threads.

use crate::LabError;
use crate::experiment::{Experiment, Plan};
use crate::measure::{History, RunFigures, Timed, figures, opened_to};
use crate::prepare::Prepared;
use crate::result::{Alone, RunResult, SeedResult, VariantResult};
use clearlane_fabric::{Fabric, NodeKind};
use clearlane_ib::Picoseconds;
use clearlane_sim::Status as SimStatus;
use clearlane_sim::{
    CABLE_ENDS_PER_THREAD, Division, Ending, FlowRecord, GroupSettings, Outcome, Recording, Setup,
    SetupError, Simulation, cable_ends, queue_width_log2,
};
use clearlane_workload::{Class, FlowGroup, OpenLoop, Rank, RankProgram};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

/// How many runs at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Jobs {
    /// So many, at least 1.
    Exactly(usize),
    /// As many as so many cores have room for, at least 1, each run taking as many threads as it
    /// gets.
    Filling(usize),
}

impl Jobs {
    /// How many they are, at least 1, of runs on so many threads.
    pub fn of(self, threads: usize) -> usize {
        match self {
            Jobs::Exactly(jobs) => jobs.max(1),
            Jobs::Filling(cores) => (cores / threads.max(1)).max(1),
        }
    }
}

/// How to run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// How many runs at a time; has no influence on any result.
    pub jobs: Jobs,
    /// Threads each run is simulated on, as far as its fabric has work for them, at least 1. Runs
    /// at a time and threads a run multiply. No influence on any result either.
    pub threads: usize,
    /// Parts that each run's fabric is cut into whether it has work for them or not, as far as it
    /// has switches; nothing for one for each thread.
    pub partitions: Option<usize>,
    /// The command line that makes the same results again, for the report.
    pub command: String,
    /// Memory that the queues per output of switches may fill, all runs together, in bytes; nothing
    /// for all there is.
    pub memory_bytes: Option<u64>,
    /// Which limit of memory is nearly reached, as the subject of a sentence. Whoever watches
    /// memory says so here and then raises `cancel`: an open loop that offers more than is
    /// delivered fills any.
    pub memory_short: Arc<OnceLock<String>>,
}

impl RunOptions {
    /// So many runs at a time, without a limit of memory.
    pub fn new(jobs: usize, command: impl Into<String>) -> Self {
        let command = command.into();
        RunOptions {
            jobs: Jobs::Exactly(jobs),
            threads: 1,
            partitions: None,
            command,
            memory_bytes: None,
            memory_short: Arc::default(),
        }
    }

    /// How runs of a fabric are divided.
    fn division(&self, fabric: &Fabric) -> Division {
        let most = || self.threads.min(worth(cable_ends(fabric)));
        let partitions = self.partitions.unwrap_or_else(most);
        Division { partitions, threads: self.threads.min(partitions) }
    }
}

/// How a run that begins is divided, and what its fabric has to divide.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Begun {
    /// As it is.
    pub division: Division,
    /// Switches, none of which is divided.
    pub switches: usize,
    /// Ends of cables at them: what the work of a run goes by.
    pub cable_ends: usize,
}

impl Begun {
    /// Threads for which the fabric has work, at least 1: with more, a run is slower.
    pub fn worth(&self) -> usize {
        worth(self.cable_ends)
    }
}

fn worth(cable_ends: usize) -> usize {
    (cable_ends / CABLE_ENDS_PER_THREAD).max(1)
}

/// Told how far an experiment is. Called from the threads that run.
pub trait Progress: Sync {
    /// A run begins.
    fn on_begin(&self, _run: &Begun) {}

    /// `done` is the share of all simulated time that has passed, 0 to 1; `packet_hops` counts
    /// those of all runs so far.
    fn on_progress(&self, done: f64, packet_hops: u64);
}

/// Says nothing.
pub struct Quiet;

impl Progress for Quiet {
    fn on_progress(&self, _: f64, _: u64) {}
}

/// A run's simulated time is advanced in so many steps, between which progress is told.
const STEPS: u64 = 200;
/// Flows are recorded one by one as long as their slices take no more than this.
const FLOW_BYTES_MAX: u64 = 64 << 20;

/// One simulation: a variant, a seed, with or without the hot flows.
#[derive(Clone, Copy)]
struct Job {
    variant: usize,
    seed: u64,
    alone: bool,
}

/// What a job hands back.
enum Finished {
    /// The run proper.
    Run(Box<SeedResult>),
    /// The victims alone; nothing after a deadlock.
    Alone(Option<AloneDelivered>),
}

/// What the victims are delivered alone.
struct AloneDelivered {
    /// Payload by slice.
    payload: Vec<u64>,
    /// Their flows, of the first seed.
    flows: Vec<FlowRecord>,
}

/// Why work stops before its end, if it does.
#[derive(Clone, Copy)]
pub(crate) struct Halt<'a> {
    cancel: &'a AtomicBool,
    memory_short: &'a OnceLock<String>,
}

impl Halt<'_> {
    fn is_raised(self) -> bool {
        self.cancel.load(Ordering::SeqCst)
    }

    /// Between the steps of setting a variant up: fails if it is to stop there.
    pub(crate) fn set_up(self, variant: &str) -> Result<(), LabError> {
        let variant = || variant.to_owned();
        match self.memory_short.get() {
            Some(what) => Err(LabError::MemorySetUp { variant: variant(), what: what.clone() }),
            None if self.is_raised() => Err(LabError::Interrupted { variant: variant() }),
            None => Ok(()),
        }
    }
}

struct Shared<'a> {
    plan: &'a Plan,
    progress: &'a dyn Progress,
    halt: Halt<'a>,
    /// What is measured over time.
    timed: Vec<Timed>,
    /// Steps done of all jobs, and how many there are.
    steps: AtomicU64,
    steps_all: u64,
    packet_hops: AtomicU64,
    options: &'a RunOptions,
}

/// Runs every variant and seed. Fails if a variant cannot be made ready; what goes wrong in the
/// simulated network is a result. Once `cancel` is true, runs stop and the result is partial, or an
/// error if none has begun or memory is short.
pub fn run(
    experiment: &Experiment,
    options: &RunOptions,
    progress: &dyn Progress,
    cancel: &AtomicBool,
) -> Result<RunResult, LabError> {
    let plan = &experiment.plan;
    let halt = Halt { cancel, memory_short: &options.memory_short };
    let mut prepared = Vec::new();
    for variant in &experiment.variants {
        let ready = Prepared::of(variant, plan, halt)?;
        // Of another site its own hosts are not asked.
        if !variant.foreign_site {
            let (ranks, first) = (ready.hosts.ranks(), prepared.is_empty());
            let mut rows = experiment.published.iter().filter(|row| {
                (first && row.variant.is_none()) || row.named().any(|name| name == variant.name)
            });
            rows.try_for_each(|row| row.check_hosts(&ranks))?;
        }
        prepared.push(ready);
    }
    let jobs = jobs(plan, &prepared);
    let threads = prepared.iter().map(|ready| options.division(&ready.fabric).threads).max();
    let at_once = options.jobs.of(threads.unwrap_or(1)).min(jobs.len().max(1));
    let memory_bytes = options.memory_bytes.map(|bytes| bytes / at_once as u64);
    for (variant, prepared) in experiment.variants.iter().zip(&prepared) {
        queues_fit(&variant.name, prepared, memory_bytes)?;
    }
    let shared = Shared {
        plan,
        progress,
        halt,
        timed: experiment.timed(),
        steps: AtomicU64::new(0),
        steps_all: jobs.len() as u64 * STEPS,
        packet_hops: AtomicU64::new(0),
        options,
    };
    let finished = work(experiment, &prepared, &jobs, at_once, &shared);
    // One that was left out for want of memory makes the others no partial result.
    let left_out = jobs.iter().zip(&finished).find(|(_, done)| done.is_none());
    let failed = finished.iter().any(|done| matches!(done, Some(Err(_))));
    if let Some((job, _)) = left_out.filter(|_| !failed && halt.memory_short.get().is_some()) {
        halt.set_up(&experiment.variants[job.variant].name)?;
    }
    let runs = runs_of(&jobs, finished, &prepared)?;
    let named = experiment.variants.iter().zip(prepared).zip(runs);
    let variants = named
        .map(|((spec, prepared), runs)| VariantResult { name: spec.name.clone(), runs, prepared })
        .collect();
    let (experiment, command) = (experiment.clone(), options.command.clone());
    Ok(RunResult { experiment, command, variants })
}

/// By variant, the runs that were finished or interrupted. Fails with the first job that failed.
fn runs_of(
    jobs: &[Job],
    finished: Vec<Done>,
    prepared: &[Prepared],
) -> Result<Vec<Vec<SeedResult>>, LabError> {
    let mut runs: Vec<Vec<SeedResult>> = prepared.iter().map(|_| Vec::new()).collect();
    // A job of the victims alone follows the run it belongs to.
    for (job, done) in jobs.iter().zip(finished) {
        match done {
            None => {}
            Some(Err(error)) => return Err(error),
            Some(Ok(Finished::Run(run))) => runs[job.variant].push(*run),
            Some(Ok(Finished::Alone(alone))) => {
                let same = runs[job.variant].iter_mut().find(|run| run.seed == job.seed);
                if let Some(run) = same {
                    run.alone = alone.as_ref().map_or(Alone::Deadlocked, |_| Alone::Finished);
                    let Some(alone) = alone else { continue };
                    run.slowdown = slowdown(run, &prepared[job.variant], &alone.payload);
                    if let Some(history) = &mut run.history {
                        history.set_alone(&alone.flows, &run.figures.measured);
                    }
                }
            }
        }
    }
    Ok(runs)
}

/// Fails if the queues per output of a variant alone fill what a run may take.
fn queues_fit(name: &str, prepared: &Prepared, memory: Option<u64>) -> Result<(), LabError> {
    let needed = prepared.voq_bytes();
    match memory {
        Some(free) if needed > free => Err(LabError::Queues {
            variant: name.to_owned(),
            needed_mib: needed >> 20,
            free_mib: free >> 20,
        }),
        _ => Ok(()),
    }
}

fn jobs(plan: &Plan, prepared: &[Prepared]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (variant, prepared) in prepared.iter().enumerate() {
        for seed in plan.all_seeds() {
            jobs.push(Job { variant, seed, alone: false });
            if prepared.groups_without_hot().is_some() {
                jobs.push(Job { variant, seed, alone: true });
            }
        }
    }
    jobs
}

/// What the victims are delivered alone over what they are delivered in the run, both over the part
/// of it that is measured; an interrupted run has none, and neither has one without victims' bytes
/// on either side.
fn slowdown(run: &SeedResult, prepared: &Prepared, alone: &[u64]) -> Option<f64> {
    let part = run.figures.measured.clone();
    let beside = victims(&run.figures, prepared);
    let sum = |slices: &[u64]| slices.get(part.clone()).map(|part| part.iter().sum::<u64>());
    let (beside, alone) = (sum(&beside)?, sum(alone)?);
    match beside {
        _ if run.interrupted || alone == 0 => None,
        0 => Some(f64::INFINITY),
        _ => Some(alone as f64 / beside as f64),
    }
}

/// Payload the victims are delivered, by slice.
fn victims(figures: &RunFigures, prepared: &Prepared) -> Vec<u64> {
    let mut sums: Vec<u64> = Vec::new();
    for (group, slices) in prepared.groups.iter().zip(&figures.series) {
        if group.class == Class::Victim {
            sums.resize(sums.len().max(slices.len()), 0);
            let both = sums.iter_mut().zip(slices);
            both.for_each(|(sum, slice)| *sum += slice.delivered_payload_bytes);
        }
    }
    sums
}

type Done = Option<Result<Finished, LabError>>;

/// Runs so many jobs at a time, or as many as threads can be started for; results come in the order
/// of the jobs, nothing for those that an interruption left out.
fn work(
    experiment: &Experiment,
    prepared: &[Prepared],
    jobs: &[Job],
    at_once: usize,
    shared: &Shared<'_>,
) -> Vec<Done> {
    let next = AtomicUsize::new(0);
    let done: Vec<Mutex<Done>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let worker = || {
        while !shared.halt.is_raised() {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(index) else { return };
            let name = &experiment.variants[job.variant].name;
            let finished = simulate(&prepared[job.variant], *job, name, shared);
            if let Ok(mut place) = done[index].lock() {
                *place = finished.transpose();
            }
        }
    };
    thread::scope(|scope| {
        let started = |_: &usize| thread::Builder::new().spawn_scoped(scope, worker).is_ok();
        // Those that are there take the jobs of those that are not.
        (1..at_once).take_while(started).for_each(drop);
        worker();
    });
    done.into_iter().map(|place| place.into_inner().unwrap_or(None)).collect()
}

/// Runs one job; nothing if it is one of the victims alone and was interrupted.
fn simulate(
    prepared: &Prepared,
    job: Job,
    name: &str,
    shared: &Shared<'_>,
) -> Result<Option<Finished>, LabError> {
    let plan = shared.plan;
    let without = if job.alone { prepared.groups_without_hot() } else { None };
    let groups = without.as_ref().unwrap_or(&prepared.groups);
    let mut setup = setup(prepared, groups, plan, job.seed);
    setup.division = shared.options.division(&prepared.fabric);
    let control = prepared.control.mechanisms(job.seed);
    setup.control = control.map_err(|error| LabError::variant(name, error))?;
    let mut simulation = Simulation::new(setup).map_err(|error| match error {
        SetupError::Threads { threads } => LabError::Threads { variant: name.to_owned(), threads },
        wrong => LabError::variant(name, wrong),
    })?;
    let (partitions, threads) = (simulation.partitions(), simulation.threads());
    shared.progress.on_begin(&Begun {
        division: Division { partitions, threads },
        switches: prepared.fabric.ids(NodeKind::Switch).count(),
        cable_ends: cable_ends(&prepared.fabric),
    });
    let mut hops = 0;
    let mut interrupted = false;
    for step in 1..=STEPS {
        let until = u128::from(plan.duration.0) * u128::from(step) / u128::from(STEPS);
        let status = simulation.advance(Picoseconds(until as u64), shared.halt.cancel);
        let totals = simulation.totals();
        let now = totals.packet_hops;
        let all = shared.packet_hops.fetch_add(now - hops, Ordering::Relaxed) + (now - hops);
        hops = now;
        let ended = matches!(status, SimStatus::Drained | SimStatus::Deadlocked);
        let steps = match status {
            SimStatus::Running => 1,
            SimStatus::Paused => 0,
            SimStatus::Drained | SimStatus::Deadlocked => STEPS - step + 1,
        };
        let steps = shared.steps.fetch_add(steps, Ordering::Relaxed) + steps;
        shared.progress.on_progress(steps as f64 / shared.steps_all as f64, all);
        if ended {
            break;
        }
        if status == SimStatus::Paused || (step < STEPS && shared.halt.is_raised()) {
            interrupted = true;
            break;
        }
    }
    if let Some(what) = shared.halt.memory_short.get().filter(|_| interrupted) {
        let (waiting, at) = (simulation.messages_kept(), simulation.now());
        let (variant, what) = (name.to_owned(), what.clone());
        return Err(LabError::Memory { variant, what, waiting, at });
    }
    let outcome = simulation.finish();
    Ok(finished(prepared, job, outcome, interrupted, shared))
}

/// What a job hands back of a simulation that has ended or was stopped.
fn finished(
    prepared: &Prepared,
    job: Job,
    outcome: Outcome,
    interrupted: bool,
    shared: &Shared<'_>,
) -> Option<Finished> {
    let plan = shared.plan;
    let figures = figures(&outcome, plan, prepared);
    let first = job.seed == plan.seed;
    if job.alone {
        let deadlocked = matches!(outcome.ending, Ending::Deadlock(_));
        let flows = if first { outcome.flows } else { Vec::new() };
        let payload = victims(&figures, prepared);
        let alone = (!deadlocked).then_some(AloneDelivered { payload, flows });
        return (!interrupted).then_some(Finished::Alone(alone));
    }
    let timed = |timed: &Timed| (timed.clone(), timed.of(&outcome, prepared, &figures.measured));
    let timed = shared.timed.iter().map(timed).collect();
    Some(Finished::Run(Box::new(SeedResult {
        seed: job.seed,
        ending: outcome.ending.clone(),
        interrupted,
        simulated: outcome.duration,
        totals: outcome.totals,
        timed,
        opened_to: opened_to(&outcome),
        figures,
        history: first.then(|| History::of(outcome)),
        slowdown: None,
        alone: match prepared.groups_without_hot() {
            None => Alone::NotNeeded,
            Some(_) => Alone::Missing,
        },
    })))
}

fn setup<'a>(prepared: &'a Prepared, groups: &[FlowGroup], plan: &Plan, seed: u64) -> Setup<'a> {
    let parameters = &prepared.parameters;
    let header = |group: &FlowGroup| parameters.header_bytes(group.transport);
    let program = |rank: u32| -> Box<dyn RankProgram> {
        let rate = prepared.hosts.rate(Rank(rank), parameters);
        Box::new(OpenLoop::new(Rank(rank), groups, rate, parameters.mtu, header, seed))
    };
    Setup {
        fabric: &prepared.fabric,
        forwarding: prepared.forwarding(),
        parameters: parameters.clone(),
        groups: groups
            .iter()
            .map(|group| GroupSettings { transport: group.transport, sl: group.sl })
            .collect(),
        programs: (0..prepared.hosts.count() as u32).map(program).collect(),
        recording: Some(Recording {
            slice: plan.slice(),
            slices: plan.slices,
            flow_bytes_max: FLOW_BYTES_MAX,
        }),
        control: None,
        queue_width_log2: queue_width_log2(prepared.hosts.count()),
        division: Division::WHOLE,
        taps: Vec::new(),
    }
}
