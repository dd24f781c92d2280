//! When runs under way are kept: at every interval, when they are interrupted, and when they end.

use super::Checkpoints;
use super::parts::Parts;
use crate::LabError;
use crate::processes::Processes;
use crate::simulator::Simulator;
use clearlane_ib::Saved;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// How often it is looked whether runs are to be kept or are interrupted: ticks are the clock here.
const TICK: Duration = Duration::from_millis(25);
/// A finished run that took less is not kept. To run it again is cheaper.
const WORTH_KEEPING: Duration = Duration::from_secs(2);
/// Time that saving takes for each end of a cable, as measured on a torus of 131,072 hosts. Results
/// take about as long.
const SAVING_PER_END: Duration = Duration::from_micros(8);
/// Longest time for saving a run that is interrupted, unless it has taken `WORTH_WAITING` times as
/// long. With the time for results, `PATIENCE` of the program's interrupt.rs, a signal is answered
/// within 2 s.
const SAVED_WITHIN: Duration = Duration::from_secs(1);
/// A run that took less than so many times what saving it takes is not worth it.
const WORTH_WAITING: u64 = 30;

/// Time that saving a run takes, about, in a fabric with so many ends of cables.
fn saving(cable_ends: usize) -> Duration {
    SAVING_PER_END * u32::try_from(cable_ends).unwrap_or(u32::MAX)
}

/// So many ticks are at least so long.
fn ticks(span: Duration) -> u64 {
    span.as_millis().div_ceil(TICK.as_millis()) as u64
}

/// Has runs pause when they are interrupted, and when they are to be kept.
pub(crate) struct Ticker {
    /// By job.
    pauses: Vec<AtomicBool>,
    ticks: AtomicU64,
    is_over: AtomicBool,
    /// Whether anybody ticks.
    is_on: AtomicBool,
}

impl Ticker {
    /// For so many jobs.
    pub(crate) fn of(jobs: usize) -> Self {
        let pauses = (0..jobs).map(|_| AtomicBool::new(false)).collect();
        let [is_over, is_on] = [false; 2].map(AtomicBool::new);
        Ticker { pauses, ticks: AtomicU64::new(0), is_over, is_on }
    }

    /// What a job is to pause at: where nobody ticks, when it is interrupted.
    pub(crate) fn pause<'a>(&'a self, job: usize, cancel: &'a AtomicBool) -> &'a AtomicBool {
        match self.is_on.load(Ordering::SeqCst) {
            true => &self.pauses[job],
            false => cancel,
        }
    }

    /// From now on somebody ticks. Told before the jobs begin.
    pub(crate) fn begin(&self) {
        self.is_on.store(true, Ordering::SeqCst);
    }

    /// Ticks until it is told that all is over.
    pub(crate) fn tick(&self, every: Option<Duration>, cancel: &AtomicBool) {
        let every = every.map(ticks);
        while !self.is_over.load(Ordering::SeqCst) {
            thread::park_timeout(TICK);
            let now = self.ticks.fetch_add(1, Ordering::SeqCst) + 1;
            let due = every.is_some_and(|every| now.is_multiple_of(every));
            if due || cancel.load(Ordering::SeqCst) {
                self.pauses.iter().for_each(|pause| pause.store(true, Ordering::SeqCst));
            }
        }
    }

    /// Whether all has taken so long that results, of runs with so many ends of cables together,
    /// are worth waiting for.
    pub(crate) fn is_worth_results(&self, cable_ends: usize) -> bool {
        self.ticks.load(Ordering::SeqCst) >= ticks(saving(cable_ends)) * WORTH_WAITING
    }

    /// No more ticks.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }
}

/// Keeps one run.
pub(crate) struct Keeper<'a> {
    pub(crate) checkpoints: &'a Checkpoints,
    pub(crate) question: &'a str,
    pub(crate) job: String,
    /// Where there are several, all keep at the same points of the run.
    processes: &'a Processes,
    /// How often several processes have kept the run.
    generation: Cell<u64>,
    ticker: &'a Ticker,
    /// When the run began or was last kept, by the ticks.
    since: Cell<u64>,
    /// Time that saving the run takes, about.
    saving: Duration,
    /// Said if memory is short: then nothing is kept, because that takes memory too.
    memory_short: &'a OnceLock<String>,
}

impl<'a> Keeper<'a> {
    /// Keeper of a job that begins. The fabric has `cable_ends` ends of cables.
    pub(crate) fn of(
        (checkpoints, question): (&'a Checkpoints, &'a str),
        (job, cable_ends): (String, usize),
        processes: &'a Processes,
        ticker: &'a Ticker,
        memory_short: &'a OnceLock<String>,
    ) -> Self {
        let since = Cell::new(ticker.ticks.load(Ordering::SeqCst));
        let saving = saving(cable_ends);
        let generation = Cell::new(0);
        Keeper {
            checkpoints,
            question,
            job,
            processes,
            generation,
            ticker,
            since,
            saving,
            memory_short,
        }
    }

    /// The state to go on from, if there is one.
    pub(crate) fn load(&self) -> Result<Option<Saved>, LabError> {
        let Some((state, parts)) = self.checkpoints.load(self.question, &self.job)? else {
            return Ok(None);
        };
        self.generation.set(parts.map_or(0, |parts| parts.generation));
        Ok(Some(state))
    }

    /// Keeps the run as it is. Where that fails, it goes on without.
    pub(crate) fn keep(&self, simulation: &mut Simulator) {
        if self.processes.any(self.memory_short.get().is_some()) {
            return;
        }
        let problem = match simulation.save() {
            // A program that cannot be saved is known to all processes.
            Err(why) => Some(why.to_owned()),
            Ok(state) if self.processes.count() > 1 => self.keep_together(state),
            Ok(state) => {
                let kept = self.checkpoints.keep(self.question, &self.job, state);
                if kept.is_ok() && self.generation.get() > 0 {
                    self.checkpoints.forget_parts(&self.job, None);
                }
                kept.err().map(|error| error.to_string())
            }
        };
        problem.into_iter().for_each(|problem| self.checkpoints.note_failure(problem));
        self.since.set(self.ticker.ticks.load(Ordering::SeqCst));
    }

    /// Keeps a run that is interrupted, unless that would take too long for what it saves. Returns
    /// whether it was worth it.
    pub(crate) fn keep_interrupted(&self, simulation: &mut Simulator) -> bool {
        let is_worth = self.saving <= SAVED_WITHIN || self.took(self.saving, WORTH_WAITING);
        if is_worth {
            self.keep(simulation);
        } else if self.memory_short.get().is_none() {
            let seconds = self.saving.as_secs();
            self.checkpoints.note_failure(match self.checkpoints.is_kept(&self.job) {
                true => format!("it takes about {seconds} s, and they were saved not long ago"),
                false => format!(
                    "it takes about {seconds} s, and they had just begun; --checkpoint-every 5m \
                     saves them on the way"
                ),
            });
        }
        is_worth
    }

    /// Each process keeps its part, and, when all have, the first names them. Says what failed.
    fn keep_together(&self, state: Saved) -> Option<String> {
        let processes = self.processes.count();
        self.generation.set(self.generation.get().wrapping_add(1));
        let parts = Parts { generation: self.generation.get(), processes };
        let name = parts.name(&self.job, self.processes.rank());
        let kept = self.checkpoints.keep_part(self.question, &name, state);
        let has_failed = self.processes.any(kept.is_err());
        match kept {
            Err(error) => Some(error.to_string()),
            Ok(()) if has_failed => Some("another process could not save its part".into()),
            Ok(()) if self.processes.is_first() => {
                let listed = self.checkpoints.keep_list(self.question, &self.job, parts);
                listed.err().map(|error| error.to_string())
            }
            Ok(()) => None,
        }
    }

    /// Keeps a run that has ended, if it is worth it.
    pub(crate) fn keep_end(&self, simulation: &mut Simulator) {
        if self.took(WORTH_KEEPING, 1) && self.took(self.saving, WORTH_WAITING) {
            self.keep(simulation);
        }
    }

    /// Whether the run has taken so many times this time since it began or was kept.
    fn took(&self, time: Duration, times: u64) -> bool {
        let took = self.ticker.ticks.load(Ordering::SeqCst) - self.since.get();
        self.processes.any(took >= ticks(time).saturating_mul(times))
    }
}
