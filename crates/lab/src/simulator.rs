//! The simulators that the same set-up runs on: packets, or flows in their place.

use crate::experiment::Mode;
use clearlane_ib::{Picoseconds, Saved};
use clearlane_sim::{Outcome, Setup, SetupError, Status, Tapped, Totals};
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::AtomicBool;

/// A clock of nanoseconds: which threads serve goes by it, and no result.
fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Why flows cannot be resumed or saved, as the end of a sentence.
const NOT_SAVED: &str = "flow mode saves no state";

/// A simulation under way.
pub(crate) enum Simulator {
    Packets(Box<clearlane_sim::Simulation>),
    Flow(Box<clearlane_flow::Simulation>),
}

/// Why a set-up cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    /// By any simulator, or by that of packets.
    #[error(transparent)]
    Setup(SetupError),
    /// By that of flows.
    #[error(transparent)]
    Flow(clearlane_flow::SetupError),
}

impl From<clearlane_flow::SetupError> for Refused {
    fn from(error: clearlane_flow::SetupError) -> Self {
        match error {
            clearlane_flow::SetupError::Setup(error) => Refused::Setup(error),
            of_flows => Refused::Flow(of_flows),
        }
    }
}

impl Simulator {
    /// Builds the network and starts the programs, or goes on from where packets were saved.
    pub(crate) fn new(
        setup: Setup<'_>,
        mode: Mode,
        saved: Option<&Saved>,
    ) -> Result<Self, Refused> {
        match (mode, saved) {
            (Mode::Flow, _) => {
                let flows = clearlane_flow::Simulation::new(setup)?;
                Ok(Simulator::Flow(Box::new(flows)))
            }
            (Mode::Packets, saved) => {
                let packets = match saved {
                    None => clearlane_sim::Simulation::new(setup),
                    Some(saved) => clearlane_sim::Simulation::resume(setup, saved),
                };
                let mut packets = packets.map_err(Refused::Setup)?;
                packets.try_threads(monotonic);
                Ok(Simulator::Packets(Box::new(packets)))
            }
        }
    }

    /// Everything that moves in the run. Why not, if it cannot be saved, as the end of a sentence.
    pub(crate) fn save(&mut self) -> Result<Saved, &'static str> {
        match self {
            Simulator::Packets(packets) => packets.save().ok_or("a program in it cannot be saved"),
            Simulator::Flow(_) => Err(NOT_SAVED),
        }
    }

    /// What taps have seen since the last call; nothing of flows.
    pub(crate) fn take_tapped(&mut self) -> Vec<Tapped> {
        match self {
            Simulator::Packets(packets) => packets.take_tapped(),
            Simulator::Flow(_) => Vec::new(),
        }
    }

    /// Advances simulated time to `until` or to the end, or until `pause` is set.
    pub(crate) fn advance(&mut self, until: Picoseconds, pause: &AtomicBool) -> Status {
        match self {
            Simulator::Packets(packets) => packets.advance(until, pause),
            Simulator::Flow(flows) => flows.advance(until, pause),
        }
    }

    /// Simulated time reached.
    pub(crate) fn now(&self) -> Picoseconds {
        match self {
            Simulator::Packets(packets) => packets.now(),
            Simulator::Flow(flows) => flows.now(),
        }
    }

    /// Totals so far.
    pub(crate) fn totals(&self) -> Totals {
        match self {
            Simulator::Packets(packets) => packets.totals(),
            Simulator::Flow(flows) => flows.totals(),
        }
    }

    /// Messages that take memory.
    pub(crate) fn messages_kept(&self) -> u64 {
        match self {
            Simulator::Packets(packets) => packets.messages_kept(),
            Simulator::Flow(flows) => flows.messages_kept(),
        }
    }

    /// Parts of the fabric that are simulated side by side, and threads.
    pub(crate) fn division(&self) -> (usize, usize) {
        match self {
            Simulator::Packets(packets) => (packets.partitions(), packets.threads()),
            Simulator::Flow(flows) => (flows.partitions(), flows.threads()),
        }
    }

    /// What was found out.
    pub(crate) fn finish(self) -> Outcome {
        match self {
            Simulator::Packets(packets) => packets.finish(),
            Simulator::Flow(flows) => flows.finish(),
        }
    }
}
