//! Traffic of one pattern, load and class: the unit experiments are written and reported in.

use crate::{Destinations, Rank, SizeDistribution};
use clearlane_ib::{Picoseconds, ServiceLevel};
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
}

/// One group of flows.
#[derive(Clone, Debug)]
pub struct FlowGroup {
    /// Its name in tables and the report.
    pub name: String,
    /// Its part in the question.
    pub class: Class,
    /// Who sends, in rank order.
    pub senders: Vec<Rank>,
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
    /// RC or UD.
    pub transport: Transport,
    /// A service level that overrides the subnet manager's answer.
    pub sl: Option<ServiceLevel>,
}
