//! Congestion mechanisms in motion: markers at switch outputs, notifiers at destinations, reactors
//! at sources. The mechanisms decide; this module tells them what happens and does what they say.

mod markers;
mod order;
mod reactors;
mod record;
mod saved;

use crate::packet::{BECN_WHEN, BECN_WHICH, Flags};
use clearlane_congestion::Mechanism;
pub(crate) use markers::{MarkedPort, OutputMarkers};
pub(crate) use reactors::AdapterReactors;
pub(crate) use record::Record;
use std::sync::Arc;

/// The mechanisms of a run: one for each decision at most.
#[derive(Debug, Default)]
pub struct Mechanisms {
    /// Decides when packets are injected.
    pub when: Option<Box<dyn Mechanism>>,
    /// Decides which path they take.
    pub which: Option<Box<dyn Mechanism>>,
    /// Seed of their random draws.
    pub seed: u64,
}

/// The same, read by all partitions.
#[derive(Clone, Debug)]
pub(crate) struct SharedMechanisms {
    when: Option<Arc<dyn Mechanism>>,
    which: Option<Arc<dyn Mechanism>>,
    seed: u64,
}

impl From<Mechanisms> for SharedMechanisms {
    fn from(mechanisms: Mechanisms) -> Self {
        let Mechanisms { when, which, seed } = mechanisms;
        SharedMechanisms { when: when.map(Arc::from), which: which.map(Arc::from), seed }
    }
}

impl SharedMechanisms {
    fn all(&self) -> impl Iterator<Item = &dyn Mechanism> {
        Decision::BOTH.into_iter().filter_map(|decision| self.of(decision))
    }

    fn of(&self, decision: Decision) -> Option<&dyn Mechanism> {
        match decision {
            Decision::When => self.when.as_deref(),
            Decision::Which => self.which.as_deref(),
        }
    }
}

/// Which of the two decisions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Decision {
    When,
    Which,
}

impl Decision {
    /// When first.
    const BOTH: [Decision; 2] = [Decision::When, Decision::Which];

    /// The decision of that number.
    fn of(number: u8) -> Option<Self> {
        Self::BOTH.into_iter().find(|decision| *decision as u8 == number)
    }

    /// The flag of packets that notify the mechanism which makes it.
    fn becn(self) -> Flags {
        match self {
            Decision::When => BECN_WHEN,
            Decision::Which => BECN_WHICH,
        }
    }
}
