//! The library's face: a set-up goes in, an outcome comes out.

use crate::checkpoint::RunState;
use crate::error::SetupError;
use crate::forwarding::Forwarding;
use crate::instances;
use crate::outcome::Tapped;
use crate::setup::{self, Setup, Status};
use crate::windows::Windows;
use crate::{Hosts, Outcome, Totals};
use clearlane_ib::{Picoseconds, Saved, StateError};
use std::sync::atomic::AtomicBool;

/// Whose state it is, and the version of its layout.
const STATE: &str = "simulation";
const VERSION: u16 = 3;

/// A simulation under way.
pub struct Simulation {
    run: Windows,
    instance: &'static str,
}

impl Simulation {
    /// Builds the network and starts the programs. Fails if a parameter is out of range or a table
    /// would send a packet nowhere.
    pub fn new(mut setup: Setup<'_>) -> Result<Self, SetupError> {
        let hosts = Hosts::with_ports(setup.fabric, setup.parameters.adapter_ports);
        setup.check(&hosts)?;
        // From here on a buffer is that of a lane.
        setup.parameters.buffer = setup.parameters.lane_buffer(setup.forwarding.lanes());
        let instance = instances::suited(&setup, &hosts)?;
        Ok(Simulation { run: (instance.build)(setup, hosts)?, instance: instance.name })
    }

    /// Name of the [instance](crate::instances) that the set-up runs on.
    pub fn instance(&self) -> &'static str {
        self.instance
    }

    /// A simulation that goes on from where one of the same set-up was [saved](Self::save), however
    /// either is divided: it comes to the same outcome to the last byte. Fails if the set-up is
    /// refused, or the state is of another set-up or version, or damaged.
    pub fn resume(setup: Setup<'_>, saved: &Saved) -> Result<Self, SetupError> {
        let state: RunState = saved.state(STATE, VERSION)?;
        let (fabric, forwarding, groups) = (setup.fabric, setup.forwarding, setup.groups.len());
        let mut simulation = Self::new(setup)?;
        let ways = state.ways(simulation.run.homes());
        let leads = match forwarding {
            // The rule leads from everywhere to everywhere.
            Forwarding::DimensionOrder(..) => true,
            Forwarding::Tables(subnet) => setup::lead(fabric, subnet, ways),
        };
        let loaded = simulation.run.load(state, groups as u16).filter(|()| leads);
        loaded.ok_or(SetupError::State(StateError::Damaged(STATE)))?;
        Ok(simulation)
    }

    /// The state of a whole run, of what its processes saved at one instant, in their order. Fails
    /// if they are not of one run and instant, or damaged.
    pub fn joined(parts: &[Saved]) -> Result<Saved, StateError> {
        let mut parts = parts.iter().map(|part| part.state::<RunState>(STATE, VERSION));
        let mut whole = parts.next().ok_or(StateError::Damaged(STATE))??;
        for part in parts {
            whole.append(part?).ok_or(StateError::Damaged(STATE))?;
        }
        whole.sort();
        Ok(Saved::new(STATE, VERSION, &whole))
    }

    /// Everything that moves in the run, so that [`Simulation::resume`] can go on from here, or end
    /// as it has ended; of several processes, which all save at one instant, the part of this one:
    /// see [`Simulation::joined`]. Nothing if a program cannot be saved.
    pub fn save(&mut self) -> Option<Saved> {
        self.run.save().map(|state| Saved::new(STATE, VERSION, &state))
    }

    /// Advances simulated time to `until` or to the end, whichever comes first.
    pub fn run_until(&mut self, until: Picoseconds) -> Status {
        self.advance(until, &AtomicBool::new(false))
    }

    /// The same, but returns [`Status::Paused`] soon after `pause` is set: within microseconds of
    /// simulated time. Whoever sets it, clears it.
    pub fn advance(&mut self, until: Picoseconds, pause: &AtomicBool) -> Status {
        self.run.advance(until.0.min(Picoseconds::MAX_RUN.0), pause)
    }

    /// Simulated time reached.
    pub fn now(&self) -> Picoseconds {
        Picoseconds(self.run.now())
    }

    /// Totals so far.
    pub fn totals(&self) -> Totals {
        self.run.totals()
    }

    /// Messages that take memory: those posted and not yet done with. Where a mechanism divides
    /// messages, each part counts.
    pub fn messages_kept(&self) -> u64 {
        self.run.messages_kept()
    }

    /// Events served so far. No result: it differs with the division of a run.
    pub fn events(&self) -> u64 {
        self.run.events()
    }

    /// Parts of the fabric that are simulated side by side.
    pub fn partitions(&self) -> usize {
        self.run.partitions()
    }

    /// Threads they are simulated on.
    pub fn threads(&self) -> usize {
        self.run.threads()
    }

    /// Tries out again and again, by a clock of nanoseconds, whether all threads are faster than
    /// one, and goes on with the faster. Without this call all threads serve throughout. No result
    /// depends on it. A run on several processes makes no trials.
    pub fn try_threads(&mut self, clock: fn() -> u64) {
        self.run.try_threads(clock);
    }

    /// Measures what windows take on each thread from now on, by `clock`, the CPU time of the
    /// calling thread in any unit: for [`Simulation::balance`].
    pub fn measure(&mut self, clock: fn() -> u64) {
        self.run.measure(clock);
    }

    /// What windows took on all threads together, and what they took on the thread each took
    /// longest on: their ratio is the speed-up that an even share of work would allow. 0 and 0
    /// unless it is measured on several partitions.
    pub fn balance(&self) -> (u64, u64) {
        self.run.balance()
    }

    /// What taps have seen up to now since the last call, by time, port, lane and kind.
    pub fn take_tapped(&mut self) -> Vec<Tapped> {
        self.run.take_tapped()
    }

    /// Checks every invariant (credits and packets conserved, no link above its rate) and hands out
    /// what was found. Panics with the place if an invariant does not hold: that is a fault of this
    /// program, never of its input.
    pub fn finish(self) -> Outcome {
        self.run.finish()
    }
}
