//! Traffic of one pattern, load and class: the unit experiments are written and reported in.

use crate::{Destinations, Pacing, ProgramSpec, Rank, SizeDistribution};
use clearlane_ib::{Picoseconds, ServiceLevel};
use std::ops::Range;
use std::sync::Arc;

/// The part a flow group plays in the question an experiment asks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Causes the congestion.
    Hot,
    /// Suffers from it without using the congested receiver.
    Victim,
    /// Neither.
    Background,
}

impl Class {
    /// The word of experiment files and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Hot => "hot",
            Class::Victim => "victim",
            Class::Background => "background",
        }
    }
}

/// Transport service of a flow group's queue pairs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Reliable connection: ACKs on the wire, a bounded window of packets under way.
    Rc,
    /// Unreliable datagram: nothing comes back.
    Ud,
}

/// When messages are posted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// Exponentially distributed gaps.
    Poisson,
    /// Equal gaps, each host starting at a random phase.
    Periodic,
    /// The load grows evenly from nothing for so long, and gaps are equal from then on: a source
    /// that comes up to speed.
    Ramp(Picoseconds),
}

/// One group of flows: what its senders want and how it travels.
#[derive(Clone, Debug)]
pub struct FlowGroup {
    /// Its name in tables and the report.
    pub name: String,
    /// Its part in the question.
    pub class: Class,
    /// Who sends, in rank order; of a program where its ranks are, in their order.
    pub senders: Vec<Rank>,
    /// What they send.
    pub demand: Demand,
    /// RC or UD.
    pub transport: Transport,
    /// A service level that overrides the subnet manager's answer.
    pub sl: Option<ServiceLevel>,
}

/// What the senders of a group send.
#[derive(Clone, Debug)]
pub enum Demand {
    /// Messages at times that do not depend on what becomes of them.
    OpenLoop(Arc<Offered>),
    /// What a program does, a rank at each sender.
    Program(ProgramSpec, Pacing),
}

/// Open-loop traffic.
#[derive(Clone, Debug)]
pub struct Offered {
    /// Whom a sender sends to.
    pub destinations: Arc<dyn Destinations>,
    /// How long messages are.
    pub sizes: SizeDistribution,
    /// Offered load per sender as a share of its link's rate, headers included; 0 < load ≤ 4.
    pub load: f64,
    /// When messages are posted.
    pub arrivals: Arrivals,
    /// First instant a message may be posted.
    pub start: Picoseconds,
    /// No message is posted from here on.
    pub stop: Picoseconds,
}

impl FlowGroup {
    /// Its open-loop traffic, if it is that.
    pub fn offered(&self) -> Option<&Arc<Offered>> {
        match &self.demand {
            Demand::OpenLoop(offered) => Some(offered),
            Demand::Program(..) => None,
        }
    }

    /// Its program, if it is one.
    pub const fn program(&self) -> Option<&ProgramSpec> {
        match &self.demand {
            Demand::OpenLoop(_) => None,
            Demand::Program(program, _) => Some(program),
        }
    }

    /// How far apart the packets of its program are, if it is one.
    pub const fn pacing(&self) -> Option<&Pacing> {
        match &self.demand {
            Demand::OpenLoop(_) => None,
            Demand::Program(_, pacing) => Some(pacing),
        }
    }

    /// From when on and until when it may post messages: a program whenever it likes.
    pub fn span(&self) -> Range<Picoseconds> {
        self.offered()
            .map_or(Picoseconds(0)..Picoseconds::MAX_RUN, |offered| offered.start..offered.stop)
    }

    /// The share of the group's demand that comes from one of its hosts: 0 for one that sends
    /// nothing, 1 as a rule.
    pub fn weight(&self, sender: Rank) -> f64 {
        self.offered().map_or(1.0, |offered| offered.destinations.weight(sender))
    }
}
