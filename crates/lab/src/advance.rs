//! Advancing a run step by step, so that progress is told and it can be stopped in between. How a
//! run is cut into steps has no influence on any result.

use crate::capturing::Capturing;
use crate::checkpoint::Keeper;
use crate::experiment::{Ends, Plan};
use crate::processes::Processes;
use crate::simulator::Simulator;
use clearlane_ib::Picoseconds;
use clearlane_sim::{END_GRID, Status};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How far runs are of which nobody knows how long they take: they end with their programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Elapsed {
    /// Runs that have ended; of a sweep, points.
    pub ended: u64,
    /// Of so many.
    pub all: u64,
    /// Simulated time of all of them so far.
    pub simulated: Picoseconds,
    /// Packet-hops of all of them so far.
    pub packet_hops: u64,
}

/// A run of known length is advanced in so many steps.
const STEPS: u64 = 200;
/// In a run of unknown length, a step with fewer packet-hops is followed by one twice as long, …
const HOPS_LEAST: u64 = 50_000;
/// … and one with more by one half as long.
const HOPS_MOST: u64 = 400_000;
/// The shortest step of such a run.
const STEP_LEAST: u64 = END_GRID.0;

/// What all runs of an experiment have done.
pub(crate) struct Tally {
    runs: u64,
    ended: AtomicU64,
    /// Steps of runs of known length.
    steps: AtomicU64,
    simulated: AtomicU64,
    packet_hops: AtomicU64,
}

/// Told how far it is.
pub(crate) enum Told {
    /// A share of all simulated time, 0 to 1, and packet-hops.
    Share(f64, u64),
    /// Of runs of unknown length.
    Elapsed(Elapsed),
}

impl Tally {
    /// Of so many runs, none of which has begun.
    pub(crate) fn of(runs: usize) -> Self {
        Tally {
            runs: runs as u64,
            ended: AtomicU64::new(0),
            steps: AtomicU64::new(0),
            simulated: AtomicU64::new(0),
            packet_hops: AtomicU64::new(0),
        }
    }

    /// The share of a run in all of them that has come to an instant.
    pub(crate) fn share(&self, now: Picoseconds, duration: Picoseconds) -> f64 {
        (now.0 as f64 / duration.0 as f64).min(1.0) / self.runs as f64
    }

    /// Whether all runs have ended.
    fn is_over(&self) -> bool {
        self.ended.load(Ordering::Relaxed) >= self.runs
    }

    fn add(&self, ends: Ends, steps: u64, simulated: u64, hops: u64, ended: bool) -> Told {
        let add = |sum: &AtomicU64, more: u64| sum.fetch_add(more, Ordering::Relaxed) + more;
        let (steps, packet_hops) = (add(&self.steps, steps), add(&self.packet_hops, hops));
        let simulated = Picoseconds(add(&self.simulated, simulated));
        let ended = add(&self.ended, u64::from(ended));
        match ends {
            Ends::Duration => Told::Share(steps as f64 / (self.runs * STEPS) as f64, packet_hops),
            Ends::Programs => {
                Told::Elapsed(Elapsed { ended, all: self.runs, simulated, packet_hops })
            }
        }
    }
}

/// The steps of a run.
struct Stride {
    ends: Ends,
    duration: u64,
    /// Number and length of the step; the one counts in runs of known length, the other in others.
    step: u64,
    length: u64,
    until: u64,
}

impl Stride {
    /// The first.
    fn first(plan: &Plan) -> Self {
        let (ends, duration, length) = (plan.ends, plan.duration.0, STEP_LEAST);
        let mut stride = Stride { ends, duration, step: 0, length, until: 0 };
        stride.next(HOPS_LEAST);
        stride
    }

    /// The next, after one with so many packet-hops. False if the run is at its end.
    fn next(&mut self, hops: u64) -> bool {
        if self.until >= self.duration {
            return false;
        }
        self.step += 1;
        self.until = match self.ends {
            Ends::Duration => {
                let until = u128::from(self.duration) * u128::from(self.step);
                (until / u128::from(STEPS)) as u64
            }
            Ends::Programs => {
                if hops < HOPS_LEAST {
                    self.length = self.length.saturating_mul(2);
                } else if hops > HOPS_MOST {
                    self.length = (self.length / 2).max(STEP_LEAST);
                }
                self.until.saturating_add(self.length).min(self.duration)
            }
        };
        true
    }

    /// Steps that have passed with this one.
    fn passed(&self, status: Status) -> u64 {
        match status {
            Status::Running => 1,
            Status::Paused => 0,
            Status::Drained | Status::Deadlocked => (STEPS + 1).saturating_sub(self.step),
        }
    }
}

/// What a run pauses at, and what is done then.
pub(crate) struct Pauses<'a> {
    /// It is interrupted.
    pub(crate) cancel: &'a AtomicBool,
    /// It is to look: the same, or raised too when it is to be kept.
    pub(crate) pause: &'a AtomicBool,
    pub(crate) keeper: Option<&'a Keeper<'a>>,
    /// They come to the same end: what interrupts one interrupts all.
    pub(crate) processes: &'a Processes,
}

/// How a run came to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stopped {
    /// It has served its last event.
    Ended,
    /// It was interrupted.
    Interrupted,
    /// It was interrupted, and saving it would take too long: no state and no figures are made.
    GivenUp,
}

/// Advances a run to its end, or until it is interrupted. It is kept when it is time to, when it is
/// interrupted and, if it took its time and others go on, when it has ended.
pub(crate) fn advance(
    simulation: &mut Simulator,
    plan: &Plan,
    pauses: &Pauses<'_>,
    tally: &Tally,
    mut capturing: Option<&mut Capturing>,
    tell: impl Fn(Told),
) -> Stopped {
    let mut stride = Stride::first(plan);
    let (mut hops, mut time) = (0, 0);
    let mut known = 0;
    // A run that goes on has passed some of its steps.
    while stride.until <= simulation.now().0 && stride.next(HOPS_LEAST) {
        known += 1;
    }
    loop {
        let until = Picoseconds(stride.until);
        let status = match &mut capturing {
            Some(capturing) => capturing.advance(simulation, until, pauses.pause),
            None => simulation.advance(until, pauses.pause),
        };
        let (all_hops, now) = (simulation.totals().packet_hops, simulation.now().0);
        let (more_hops, more) = (all_hops - hops, now.saturating_sub(time));
        (hops, time) = (all_hops, now.max(time));
        let steps = stride.passed(status) + std::mem::take(&mut known);
        let raised = pauses.processes.any(pauses.cancel.load(Ordering::SeqCst));
        let over = matches!(status, Status::Drained | Status::Deadlocked);
        let last = over || (status == Status::Running && !stride.next(more_hops));
        tell(tally.add(plan.ends, steps, more, more_hops, last));
        if last {
            // Of the last of all runs results are written at once.
            let keeper = pauses.keeper.filter(|_| !tally.is_over());
            keeper.iter().for_each(|keeper| keeper.keep_end(simulation));
            return Stopped::Ended;
        }
        if status == Status::Paused || raised {
            match pauses.keeper {
                None => return Stopped::Interrupted,
                Some(keeper) if raised => {
                    return match keeper.keep_interrupted(simulation) {
                        true => Stopped::Interrupted,
                        false => Stopped::GivenUp,
                    };
                }
                Some(keeper) => keeper.keep(simulation),
            }
            pauses.pause.store(false, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Mode, WarmUp};

    fn plan(ends: Ends, duration: u64) -> Plan {
        let duration = Picoseconds(duration);
        let (warm_up, mode) = (WarmUp::Auto, Mode::Packets);
        Plan { duration, warm_up, seeds: 1, seed: 1, slices: 100, ends, mode }
    }

    #[test]
    fn a_run_of_known_length_has_as_many_steps_as_there_are() {
        let mut stride = Stride::first(&plan(Ends::Duration, 1_000_001));
        let mut steps = vec![stride.until];
        while stride.next(0) {
            steps.push(stride.until);
        }
        assert_eq!((steps.len(), steps[0], steps[199]), (200, 5_000, 1_000_001));
    }

    #[test]
    fn a_run_of_unknown_length_is_looked_at_as_often_as_it_works() {
        let mut stride = Stride::first(&plan(Ends::Programs, 1 << 40));
        assert_eq!(stride.until, STEP_LEAST);
        for _ in 0..5 {
            assert!(stride.next(0));
        }
        assert_eq!(stride.length, 32 * STEP_LEAST);
        assert!(stride.next(100_000) && stride.length == 32 * STEP_LEAST);
        assert!(stride.next(1_000_000) && stride.length == 16 * STEP_LEAST);
        while stride.next(0) {}
        assert_eq!(stride.until, 1 << 40);
    }
}
