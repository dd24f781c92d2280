//! A mechanism as a whole, and its entry in the registry.

use crate::marker::Marker;
use crate::notifier::Notifier;
use crate::parameter::{Parameter, ParameterError, Value, Values};
use crate::reactor::Reactor;
use clearlane_ib::{Bytes, LinkRate, VirtualLane};
use std::fmt;

/// Which of the two decisions a mechanism makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decides {
    /// When the next packet is injected.
    When,
    /// Which path it takes.
    Which,
}

/// What one reactor governs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// One queue pair.
    QueuePair,
    /// All queue pairs of a port on one service level (IBA vol. 1, A10.4.3.8: Port_Control).
    ServiceLevel,
    /// All queue pairs from a source to a destination: one for each path.
    Flow,
}

/// What one notifier answers for at a destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notifies {
    /// Everything: it has no state.
    Everything,
    /// One queue pair.
    QueuePair,
    /// All queue pairs of a port.
    Port,
}

/// A switch output and lane that may mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Output {
    /// Node of the switch in the fabric.
    pub node: u32,
    /// Port number.
    pub port: u8,
    /// Lane.
    pub lane: VirtualLane,
    /// Whether the port leads to a channel adapter.
    pub faces_adapter: bool,
    /// Receive buffer of the lane at each port.
    pub buffer: Bytes,
    /// Bytes of the largest packet, headers included.
    pub packet_max: u32,
}

/// The source side of a reactor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Source {
    /// Rate of the adapter's link.
    pub link: LinkRate,
    /// Bytes of the largest packet, headers included.
    pub packet_max: u32,
    /// Paths to the destination: 2^LMC, or fewer where the subnet has not as many.
    pub paths: u8,
}

/// A mechanism with its parameters.
pub trait Mechanism: fmt::Debug + Send + Sync {
    /// The marker of a switch output and lane; nothing if it marks no packets there.
    fn marker(&self, _output: &Output) -> Option<Box<dyn Marker>> {
        None
    }

    /// The notifier of a queue pair at its destination; nothing if destinations stay silent.
    fn notifier(&self) -> Option<Box<dyn Notifier>> {
        None
    }

    /// What one notifier answers for.
    fn notifies(&self) -> Notifies {
        Notifies::QueuePair
    }

    /// What one reactor governs.
    fn scope(&self) -> Scope;

    /// A new reactor; nothing if sources do not react.
    fn reactor(&self, source: &Source) -> Option<Box<dyn Reactor>>;

    /// True if its reactors use [`Feedback::Ack`](crate::Feedback::Ack). If not, the adapter does
    /// not store when each packet left.
    fn hears_acks(&self) -> bool {
        true
    }

    /// Gives the markers of one switch port settings of their own: those of
    /// [`Entry::port_parameters`] that `values` sets, all others as in the whole fabric. Fails if
    /// the mechanism knows none, or if they contradict each other.
    fn override_port(
        &mut self,
        _node: u32,
        _port: u8,
        _values: &Values,
    ) -> Result<(), ParameterError> {
        let problem = "cannot be set with this mechanism; set it for the whole fabric".to_owned();
        Err(ParameterError { parameter: "a setting of one port", problem })
    }
}

/// Values that go together, such as those of a published experiment.
#[derive(Debug)]
pub struct Preset {
    /// Name in experiment files.
    pub name: &'static str,
    /// Where the values come from.
    pub reference: &'static str,
    /// What differs from the defaults.
    pub values: &'static [(&'static Parameter, Value)],
}

/// A mechanism's entry in the registry.
pub struct Entry {
    /// Name in experiment files.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Where it is published.
    pub reference: &'static str,
    /// What is done differently from there, or was left open there and decided here; empty if
    /// nothing.
    pub notes: &'static str,
    /// Which decision it makes.
    pub decides: Decides,
    /// Its parameters.
    pub parameters: &'static [&'static Parameter],
    /// Those of them that a switch port may have its own values of.
    pub port_parameters: &'static [&'static Parameter],
    /// Named sets of values.
    pub presets: &'static [Preset],
    /// Builds it. Fails if values contradict each other.
    pub build: fn(&Values) -> Result<Box<dyn Mechanism>, ParameterError>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("name", &self.name).finish_non_exhaustive()
    }
}
