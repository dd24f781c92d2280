//! Running the variants and seeds of an experiment on some threads.

use crate::LabError;
use crate::advance::{Elapsed, Pauses, Stopped, Tally, Told, advance};
use crate::alone::AloneDelivered;
use crate::capturing::{CaptureRequest, Capturing};
use crate::checkpoint::{Checkpoints, Keeper, Ticker};
use crate::experiment::{Ends, Experiment, Mode, Plan};
use crate::figures::{History, figures, trim};
use crate::folder::Unfinished;
use crate::halt::{Deadline, Halt};
use crate::measure::{Asked, RecordView, kinds, opened_to};
use crate::part::Part;
use crate::prepare::Prepared;
use crate::processes::Processes;
use crate::question::question;
use crate::queue_pairs::QueuePairs;
use crate::result::{Alone, RunResult, SeedResult, VariantResult};
use crate::simulator::{Refused, Simulator};
use clearlane_fabric::{Fabric, NodeKind};
use clearlane_ib::Picoseconds;
use clearlane_sim::{
    CABLE_ENDS_PER_THREAD, Division, Ending, GroupSettings, Job as SimJob, Outcome, Placed,
    Recording, Setup, SetupError, cable_ends, queue_width_log2,
};
use clearlane_workload::programs::Group;
use clearlane_workload::{FlowGroup, OpenLoop, ProgramSpec, Rank, RankProgram};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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
    /// Where runs under way are kept; nothing for nowhere.
    pub checkpoints: Option<Checkpoints>,
    /// The processes that run it together, one run at a time.
    pub processes: Processes,
    /// What is captured of each variant's first run; such a run is not kept.
    pub capture: Option<CaptureRequest>,
    /// List in which folders that are claimed note what they have not finished.
    pub unfinished: Unfinished,
    /// Time limit for making results after an interruption. Each run that begins is noted in it.
    pub deadline: Deadline,
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
            checkpoints: None,
            processes: Processes::default(),
            capture: None,
            unfinished: Unfinished::default(),
            deadline: Deadline::default(),
        }
    }

    /// How runs of a fabric are divided.
    fn division(&self, fabric: &Fabric) -> Division {
        let processes = self.processes.count();
        let most = || self.threads.min((worth(cable_ends(fabric)) / processes).max(1));
        let partitions = self.partitions.unwrap_or_else(|| processes * most());
        Division { partitions, threads: self.threads.min(partitions / processes).max(1) }
    }
}

/// How a run that begins is divided, and what its fabric has to divide.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Begun {
    /// Partitions and threads of the run.
    pub division: Division,
    /// Switches, none of which is divided.
    pub switches: usize,
    /// Ends of cables at them: what the work of a run goes by.
    pub cable_ends: usize,
    /// Its part in what [`Progress`] tells that an earlier command had done: the share, …
    pub earlier: f64,
    /// … and the packet-hops.
    pub earlier_hops: u64,
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

    /// Told instead where runs end with their programs: nobody knows how long they take.
    fn on_elapsed(&self, _elapsed: Elapsed) {}

    /// A run that began has served its last event, or was interrupted.
    fn on_simulated(&self) {}
}

/// Says nothing.
pub struct Quiet;

impl Progress for Quiet {
    fn on_progress(&self, _: f64, _: u64) {}
}

/// Flows are recorded one by one as long as their slices take no more than this.
const FLOW_BYTES_MAX: u64 = 64 << 20;

/// One simulation: a variant, a seed, with or without the hot flows.
#[derive(Clone, Copy)]
struct Job {
    variant: usize,
    seed: u64,
    of: Part,
}

impl Job {
    /// What its checkpoint is called.
    fn name(&self) -> String {
        format!("{}-{}{}", self.variant, self.seed, self.of.suffix())
    }
}

/// What a job hands back.
enum Finished {
    /// The run proper.
    Run(Box<SeedResult>),
    /// The victims alone; nothing after a deadlock.
    Alone(Option<AloneDelivered>),
}

struct Shared<'a> {
    plan: &'a Plan,
    progress: &'a dyn Progress,
    halt: Halt<'a>,
    /// What is asked of records before they are put away.
    recorded: Vec<Asked>,
    tally: Tally,
    options: &'a RunOptions,
    /// What is asked, if runs are kept.
    question: String,
    ticker: Ticker,
}

impl Shared<'_> {
    /// Notes and tells that a run begins. If it cannot in one process, it begins in none.
    fn begin_run(
        &self,
        name: &str,
        prepared: &Prepared,
        simulation: &Simulator,
    ) -> Result<(), LabError> {
        let processes = &self.options.processes;
        let mut kept = self.options.checkpoints.iter().filter(|_| processes.is_first());
        let begun = kept.try_for_each(Checkpoints::begin_run);
        if processes.any(begun.is_err()) {
            return begun.and(Err(LabError::Interrupted { variant: name.to_owned() }));
        }
        self.options.deadline.begin();
        let (partitions, threads) = simulation.division();
        self.progress.on_begin(&Begun {
            division: Division { partitions, threads },
            switches: prepared.fabric.ids(NodeKind::Switch).count(),
            cable_ends: cable_ends(&prepared.fabric),
            earlier: self.tally.share(simulation.now(), self.plan.duration),
            earlier_hops: simulation.totals().packet_hops,
        });
        Ok(())
    }

    /// Whether the time for making results of an interrupted command has passed. Several processes
    /// come to the same end: theirs does not.
    fn is_late(&self) -> bool {
        self.options.processes.count() == 1 && self.options.deadline.go_on().is_err()
    }
}

/// Runs every variant and seed. Fails if a variant cannot be made ready; what goes wrong in the
/// simulated network is a result. Once `cancel` is true, runs stop and the result is partial, or an
/// error if none has finished or memory is short.
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
            let fabric = &ready.fabric;
            let mut rows = experiment.published.iter().filter(|row| {
                (first && row.variant.is_none()) || row.named().any(|name| name == variant.name)
            });
            rows.try_for_each(|row| row.check_site(ranks, fabric))?;
        }
        prepared.push(ready);
    }
    let jobs = jobs(experiment, &prepared);
    let threads = prepared.iter().map(|ready| options.division(&ready.fabric).threads).max();
    let at_once = match options.processes.count() {
        1 => options.jobs.of(threads.unwrap_or(1)).min(jobs.len().max(1)),
        _ => 1,
    };
    let memory_bytes = options.memory_bytes.map(|bytes| bytes / at_once as u64);
    for (variant, prepared) in experiment.variants.iter().zip(&prepared) {
        queues_fit(&variant.name, prepared, memory_bytes)?;
    }
    modes_fit(plan, options)?;
    captures_fit(experiment, &prepared, options)?;
    let question = asked(experiment, options)?;
    let shared = Shared {
        plan,
        progress,
        halt,
        recorded: experiment.recorded(),
        tally: Tally::of(jobs.len()),
        options,
        question,
        ticker: Ticker::of(jobs.len()),
    };
    let finished = work(experiment, &prepared, &jobs, at_once, &shared);
    check_left_out(experiment, &jobs, &finished, &shared)?;
    let ends = jobs.iter().map(|job| cable_ends(&prepared[job.variant].fabric)).sum();
    if finished.iter().all(Option::is_some) && shared.ticker.is_worth_results(ends) {
        options.deadline.waive();
    }
    let runs = runs_of(plan, &jobs, finished, &prepared)?;
    let named = experiment.variants.iter().zip(prepared).zip(runs);
    let variants = named
        .map(|((spec, prepared), runs)| VariantResult { name: spec.name.clone(), runs, prepared })
        .collect();
    let (experiment, command) = (experiment.clone(), options.command.clone());
    Ok(RunResult { experiment, command, variants, verdict: None })
}

/// Fails if nothing is finished of what was interrupted, or if a job was left out for want of
/// memory: that makes the others no partial result.
fn check_left_out(
    experiment: &Experiment,
    jobs: &[Job],
    finished: &[Done],
    shared: &Shared<'_>,
) -> Result<(), LabError> {
    let halt = shared.halt;
    let left_out = jobs.iter().zip(finished).find(|(_, done)| done.is_none());
    let failed = finished.iter().any(|done| matches!(done, Some(Err(_))));
    let is_raised = shared.options.processes.any(halt.is_raised());
    let is_nothing = finished.iter().all(Option::is_none) && is_raised;
    let is_short = halt.memory_short.get().is_some();
    let Some((job, _)) = left_out.filter(|_| !failed && (is_short || is_nothing)) else {
        return Ok(());
    };
    let variant = &experiment.variants[job.variant].name;
    halt.set_up(variant)?;
    // Another process was told to stop.
    Err(LabError::Interrupted { variant: variant.clone() })
}

/// The question that the runs answer, if they are kept. Fails if runs that are kept answer another.
fn asked(experiment: &Experiment, options: &RunOptions) -> Result<String, LabError> {
    let Some(kept) = &options.checkpoints else { return Ok(String::new()) };
    let asked = question(experiment, &mut BTreeMap::new())?;
    kept.check(&asked)?;
    Ok(asked)
}

/// Fails if what is to be captured is not there, or would be of two variants in one file.
fn captures_fit(
    experiment: &Experiment,
    prepared: &[Prepared],
    options: &RunOptions,
) -> Result<(), LabError> {
    let Some(request) = &options.capture else { return Ok(()) };
    let names = experiment.variants.iter().map(|variant| variant.name.as_str());
    request.fits(names.zip(prepared))
}

/// Fails if flow mode is asked for what only packets can do.
fn modes_fit(plan: &Plan, options: &RunOptions) -> Result<(), LabError> {
    let together = options.processes.count() > 1;
    let every = options.checkpoints.as_ref().and_then(Checkpoints::every);
    let problem = match plan.mode {
        Mode::Flow if every.is_some() => {
            "flow mode saves no checkpoints; leave out --checkpoint-every or take run.mode = \
             \"packets\""
        }
        Mode::Flow if together => "flow mode runs in one process; start it without mpirun",
        Mode::Flow | Mode::Packets => return Ok(()),
    };
    Err(LabError::Request(problem.into()))
}

/// By variant, the runs that were finished or interrupted. Fails with the first job that failed.
fn runs_of(
    plan: &Plan,
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
                let prepared = &prepared[job.variant];
                match (same, alone, job.of) {
                    (Some(run), Some(alone), Part::Uncontrolled) => {
                        run.slowdown_uncontrolled = alone.slowdown(run, plan, prepared);
                    }
                    (None, ..) | (_, _, Part::Uncontrolled) => {}
                    (Some(run), None, _) => run.alone = Alone::Deadlocked,
                    (Some(run), Some(alone), _) => {
                        alone.note(run, plan, prepared);
                        if !prepared.control.is_on() {
                            run.slowdown_uncontrolled = run.slowdown;
                        }
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

fn jobs(experiment: &Experiment, prepared: &[Prepared]) -> Vec<Job> {
    let uncontrolled = experiment.asks(&kinds::slowdown_uncontrolled::ENTRY);
    let mut jobs = Vec::new();
    for (variant, prepared) in prepared.iter().enumerate() {
        for seed in experiment.plan.all_seeds() {
            let mut add = |of| jobs.push(Job { variant, seed, of });
            add(Part::Whole);
            if prepared.groups_without_hot().is_some() {
                add(Part::Alone);
                if uncontrolled && prepared.control.is_on() {
                    add(Part::Uncontrolled);
                }
            }
        }
    }
    jobs
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
        while !shared.options.processes.any(shared.halt.is_raised()) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(index) else { return };
            let name = &experiment.variants[job.variant].name;
            let finished = simulate(&prepared[job.variant], (index, *job), name, shared);
            if let Ok(mut place) = done[index].lock() {
                *place = finished.transpose();
            }
        }
    };
    thread::scope(|scope| {
        let started = |_| thread::Builder::new().spawn_scoped(scope, worker).ok();
        let checkpoints = shared.options.checkpoints.as_ref();
        let (every, cancel) = (checkpoints.and_then(Checkpoints::every), shared.halt.cancel);
        let tick = move || shared.ticker.tick(every, cancel);
        // Without, runs are kept only when they are interrupted.
        let ticker = thread::Builder::new().spawn_scoped(scope, tick).ok();
        ticker.iter().filter(|_| checkpoints.is_some()).for_each(|_| shared.ticker.begin());
        // Those that are there take the jobs of those that are not.
        let workers: Vec<_> = (1..at_once).map_while(started).collect();
        worker();
        workers.into_iter().for_each(|worker| drop(worker.join()));
        shared.ticker.end();
        if let Some(ticker) = ticker {
            ticker.thread().unpark();
        }
    });
    done.into_iter().map(|place| place.into_inner().unwrap_or(None)).collect()
}

/// Runs one job. `None` if it was interrupted and its result would be partial victims alone, would
/// take too long to save, or comes after the deadline.
fn simulate(
    prepared: &Prepared,
    (number, job): (usize, Job),
    name: &str,
    shared: &Shared<'_>,
) -> Result<Option<Finished>, LabError> {
    let plan = shared.plan;
    let whole = job.of == Part::Whole;
    let without = if whole { None } else { prepared.groups_without_hot() };
    let groups = without.as_ref().unwrap_or(&prepared.groups);
    let mut setup = setup(prepared, groups, plan, job.seed);
    setup.division = shared.options.division(&prepared.fabric);
    setup.fleet = shared.options.processes.fleet();
    if job.of != Part::Uncontrolled {
        let control = prepared.control.mechanisms(job.seed);
        setup.control = control.map_err(|error| LabError::variant(name, error))?;
    }
    let mut capturing = capturing(prepared, job, name, shared)?;
    setup.taps = capturing.as_ref().map_or(Vec::new(), |begun| begun.ports().to_vec());
    // What was captured before is not known to a run that goes on.
    let checkpoints = shared.options.checkpoints.as_ref().filter(|_| capturing.is_none());
    let keeper = checkpoints.map(|kept| {
        let short = shared.halt.memory_short;
        let (asked, processes) = ((kept, shared.question.as_str()), &shared.options.processes);
        let job = (job.name(), cable_ends(&prepared.fabric));
        Keeper::of(asked, job, processes, &shared.ticker, short)
    });
    let kept = keeper.as_ref().map_or(Ok(None), Keeper::load)?;
    let simulation = Simulator::new(setup, plan.mode, kept.as_ref());
    let mut simulation = simulation.map_err(|error| match (error, &keeper) {
        (Refused::Setup(SetupError::Threads { threads }), _) => {
            LabError::Threads { variant: name.to_owned(), threads }
        }
        (Refused::Setup(SetupError::State(error)), Some(keeper)) => {
            keeper.checkpoints.refused(&keeper.job, &error)
        }
        (wrong, _) => LabError::variant(name, wrong),
    })?;
    shared.begin_run(name, prepared, &simulation)?;
    let tell = |told| match told {
        Told::Share(done, packet_hops) => shared.progress.on_progress(done, packet_hops),
        Told::Elapsed(elapsed) => shared.progress.on_elapsed(elapsed),
    };
    let pause = shared.ticker.pause(number, shared.halt.cancel);
    let processes = &shared.options.processes;
    let (cancel, keeper) = (shared.halt.cancel, keeper.as_ref());
    let pauses = Pauses { cancel, pause, keeper, processes };
    let stopped = advance(&mut simulation, plan, &pauses, &shared.tally, capturing.as_mut(), tell);
    let interrupted = stopped != Stopped::Ended;
    shared.progress.on_simulated();
    capturing.map_or(Ok(()), Capturing::finish)?;
    if let Some(what) = shared.halt.memory_short.get().filter(|_| interrupted) {
        let (waiting, at) = (simulation.messages_kept(), simulation.now());
        let (variant, what) = (name.to_owned(), what.clone());
        return Err(LabError::Memory { variant, what, waiting, at });
    }
    if stopped == Stopped::GivenUp || shared.is_late() {
        // Taking it apart takes seconds too, and the command is about to end.
        std::mem::forget(simulation);
        return Ok(None);
    }
    let outcome = simulation.finish();
    Ok(finished(prepared, job, outcome, interrupted, shared))
}

/// The capture of a job, if one is asked for: of each variant's first run.
fn capturing(
    prepared: &Prepared,
    job: Job,
    name: &str,
    shared: &Shared<'_>,
) -> Result<Option<Capturing>, LabError> {
    let is_first = job.of == Part::Whole && job.seed == shared.plan.seed;
    let request = shared.options.capture.as_ref().filter(|_| is_first);
    request.map(|request| Capturing::begin(request, prepared, (name, job.seed))).transpose()
}

/// Makes the result of a job whose simulation has ended or was stopped. `None` if it comes too
/// late, or was interrupted and is of victims alone.
fn finished(
    prepared: &Prepared,
    job: Job,
    mut outcome: Outcome,
    interrupted: bool,
    shared: &Shared<'_>,
) -> Option<Finished> {
    let plan = shared.plan;
    prepared.queue_pairs.join(&mut outcome);
    if plan.ends == Ends::Programs {
        trim(&mut outcome);
    }
    if shared.is_late() {
        std::mem::forget(outcome);
        return None;
    }
    let figures = figures(&outcome, plan, prepared);
    let first = job.seed == plan.seed;
    let whole = job.of == Part::Whole;
    let without = if whole { None } else { prepared.groups_without_hot() };
    let completions = completions(without.as_ref().unwrap_or(&prepared.groups), &outcome);
    if !whole {
        let deadlocked = matches!(outcome.ending, Ending::Deadlock(_) | Ending::RanksWait(_));
        let alone = || AloneDelivered::of(outcome, &figures, completions, prepared, first);
        return (!interrupted).then(|| Finished::Alone((!deadlocked).then(alone)));
    }
    let Prepared { hosts, fabric, .. } = prepared;
    let record = RecordView { outcome: &outcome, figures: &figures, hosts, fabric };
    let asked = |asked: &Asked| (asked.clone(), record.value(asked));
    let recorded = shared.recorded.iter().map(asked).collect();
    Some(Finished::Run(Box::new(SeedResult {
        seed: job.seed,
        ending: outcome.ending.clone(),
        interrupted,
        simulated: outcome.duration,
        totals: outcome.totals,
        completions,
        recorded,
        opened_to: opened_to(&outcome),
        figures,
        history: first.then(|| History::of(outcome)),
        slowdown: None,
        slowdown_uncontrolled: None,
        alone_gbps: None,
        alone: match prepared.groups_without_hot() {
            None => Alone::NotNeeded,
            Some(_) => Alone::Missing,
        },
    })))
}

fn setup<'a>(prepared: &'a Prepared, groups: &[FlowGroup], plan: &Plan, seed: u64) -> Setup<'a> {
    let parameters = &prepared.parameters;
    let (whole, groups) = (groups, prepared.queue_pairs.groups(groups));
    // Shared by the programs of all ranks.
    let groups: Vec<Arc<FlowGroup>> = groups.into_iter().map(Arc::new).collect();
    let packet = |group: &FlowGroup| parameters.packet(group.transport);
    let program = |rank: u32| -> Box<dyn RankProgram> {
        let rate = prepared.hosts.rate(Rank(rank), parameters);
        Box::new(OpenLoop::new(Rank(rank), &groups, rate, packet, seed))
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
        recording: Recording {
            slice: plan.slice(),
            slices: plan.slices,
            grows: plan.ends == Ends::Programs,
            flow_bytes_max: FLOW_BYTES_MAX,
        },
        control: None,
        queue_width_log2: queue_width_log2(prepared.hosts.count()),
        division: Division::WHOLE,
        fleet: None,
        taps: Vec::new(),
        dead_pairs: prepared.has_dead_pairs,
        jobs: jobs_of(whole, &prepared.queue_pairs),
        ends_with_jobs: plan.ends == Ends::Programs,
    }
}

/// The groups that run a program, in the order of the simulation's jobs.
fn with_programs(groups: &[FlowGroup]) -> impl Iterator<Item = (usize, &FlowGroup, &ProgramSpec)> {
    // Hot groups have no senders where the victims are alone.
    let groups = groups.iter().enumerate().filter(|(_, group)| !group.senders.is_empty());
    groups.filter_map(|(index, group)| Some((index, group, group.program()?)))
}

/// By group: when its program had ended, in a run of these groups.
fn completions(groups: &[FlowGroup], outcome: &Outcome) -> Vec<Option<Picoseconds>> {
    let mut completions = vec![None; groups.len()];
    for ((index, ..), job) in with_programs(groups).zip(&outcome.jobs) {
        completions[index] = (job.unfinished == 0).then_some(job.ended_at);
    }
    completions
}

/// The programs among the groups: a rank at each sender.
fn jobs_of(groups: &[FlowGroup], queue_pairs: &QueuePairs) -> Vec<SimJob> {
    let job = |(index, group, program): (usize, &FlowGroup, &ProgramSpec)| {
        let ranks = Group {
            ranks: group.senders.len() as u32,
            group: queue_pairs.first(index),
            pacing: group.pacing().cloned().unwrap_or_default(),
        };
        // `TrafficSpec::group` has built it before, for as many ranks.
        let programs = program.build(&ranks).unwrap_or_default();
        let placed = |(host, program): (&Rank, _)| Placed { host: host.0, program };
        SimJob { ranks: group.senders.iter().zip(programs).map(placed).collect() }
    };
    with_programs(groups).map(job).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status;
    use clearlane_workload::{Event, Filter, Op};
    use serde_json::{Value, json};
    use std::path::Path;

    /// No kind of program deadlocks; these ranks take the place of its ranks.
    const TEXT: &str = "schema = 1\nname = \"crossed\"\n\
        run = { duration = \"1 ms\", ends = \"programs\" }\nfabric = { build = \"star:6\" }\n\
        subnet = { engine = \"min-hop\" }\nsim = { preset = \"qdr\" }\n\
        [[traffic]]\nname = \"solver\"\nclass = \"victim\"\n\
        program = { kind = \"ring-allreduce\", size = \"1 KiB\" }\n\
        senders = { hosts = [0, 1, 3, 4, 5] }\n";

    /// Receives first, as all others do: nobody sends.
    struct Crossed(Filter);

    impl RankProgram for Crossed {
        fn step(&mut self, _: Picoseconds, event: Event) -> Op {
            match event {
                Event::Start => Op::Recv { filter: self.0, stream: 0 },
                Event::Posted(handle) => Op::Wait(handle),
                _ => Op::Done,
            }
        }
    }

    fn crossed() -> RunResult {
        let experiment = Experiment::parse(TEXT, Path::new("x.toml")).unwrap();
        let (plan, cancel, options) =
            (&experiment.plan, AtomicBool::new(false), RunOptions::new(1, ""));
        let halt = Halt { cancel: &cancel, memory_short: &options.memory_short };
        let prepared = Prepared::of(&experiment.variants[0], plan, halt).unwrap();
        let mut setup = setup(&prepared, &prepared.groups, plan, 1);
        let program = |rank: u32| -> Box<dyn RankProgram> {
            // The last one takes what comes.
            let source = (rank < 4).then_some(Rank((rank + 1) % 5));
            Box::new(Crossed(Filter { source, tag: source.map(|_| 7), context: 3 }))
        };
        let hosts = prepared.groups[0].senders.iter();
        let placed =
            hosts.zip(0..).map(|(host, rank)| Placed { host: host.0, program: program(rank) });
        setup.jobs = vec![SimJob { ranks: placed.collect() }];
        let shared = Shared {
            plan,
            progress: &Quiet,
            halt,
            recorded: Vec::new(),
            tally: Tally::of(1),
            options: &options,
            question: String::new(),
            ticker: Ticker::of(1),
        };
        let mut simulation = Simulator::new(setup, plan.mode, None).unwrap();
        let processes = &Processes::default();
        let pauses = Pauses { cancel: &cancel, pause: &cancel, keeper: None, processes };
        let stopped = advance(&mut simulation, plan, &pauses, &shared.tally, None, |_| {});
        assert_eq!(stopped, Stopped::Ended);
        let job = Job { variant: 0, seed: 1, of: Part::Whole };
        let done = finished(&prepared, job, simulation.finish(), false, &shared);
        let Some(Finished::Run(run)) = done else { panic!("no run") };
        let variant = VariantResult { name: "as-is".into(), runs: vec![*run], prepared };
        RunResult { experiment, command: String::new(), variants: vec![variant], verdict: None }
    }

    #[test]
    fn ranks_that_wait_for_ever_are_named_wherever_results_are() {
        let result = crossed();
        // The exit code follows from it (crates/cli/src/commands/experiment.rs, `verdict`).
        assert_eq!(result.status(), Status::Deadlock);
        let said = "seed 1: deadlock: 5 ranks wait for operations that never complete";
        let rank = |rank: u32, host: u32, peer: u32, at: u32| {
            format!(
                "seed 1: rank {rank} of solver on host000{host} waits for a receive from rank \
                 {peer} on host000{at}, tag 7, context 3"
            )
        };
        let oddities = result.oddities();
        assert_eq!(oddities[0], said);
        assert_eq!(oddities[1..4], [rank(0, 0, 1, 1), rank(1, 1, 2, 3), rank(2, 3, 3, 4)]);
        assert_eq!(oddities[4], "seed 1: and 2 more in summary.json");
        let summary: Value = serde_json::from_str(&result.to_json()).unwrap();
        let run = &summary["variants"][0]["runs"][0];
        assert_eq!(
            (&summary["status"], &run["ending"]),
            (&json!("deadlock"), &json!("ranks wait"))
        );
        assert_eq!(run["completion_us"], json!({ "solver": null }));
        let waiting = run["waiting_ranks"].as_array().unwrap();
        let any = json!({
            "program": "solver", "kind": "ring-allreduce", "rank": 4, "host": "host0005",
            "operation": "receive", "peer": null, "peer_host": null, "tag": null, "context": 3,
        });
        assert_eq!((waiting.len(), &waiting[4]), (5, &any));
        let last = result.variants[0].waiting(&result.variants[0].runs[0])[4].to_string();
        let any =
            "rank 4 of solver on host0005 waits for a receive from any rank, any tag, context 3";
        assert_eq!(last, any);
        let page = crate::report::page(&result, &Deadline::default()).unwrap();
        assert!(page.contains("Ranks wait for ever.") && page.contains("\"waiting_all\":5"));
    }
}
