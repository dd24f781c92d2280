//! The devices in motion: switches, links, credits, virtual lanes and channel adapters, simulated
//! packet by packet in integer picoseconds.
//!
//! Entry point: [`Simulation::new`] with a [`Setup`], then [`Simulation::run_until`] as often as
//! wanted, then [`Simulation::finish`].

// From the bottom up: each module imports from those above it in this list alone
// (crates/cli/tests/tidy.rs).
mod error;
mod port_set;
pub mod preset;
pub mod ranges;
mod records;
mod list;
mod hosts;
mod packet;
mod outcome;
mod queue;
mod port;
mod mail;
mod arbiter;
mod model;
mod recorder;
mod network;
mod forward;
mod addressing;
mod switch;
mod control;
mod adapter;
mod ranks;
mod cabling;
mod partition;
mod deadlock;
mod invariants;
mod barrier;
mod setup;
mod windows;
mod simulation;

pub use adapter::GroupSettings;
pub use control::Mechanisms;
pub use error::SetupError;
pub use forward::Forwarding;
pub use hosts::Hosts;
pub use outcome::{
    ChannelRecord, ControlRecord, Deadlock, Ending, FlowControl, FlowRecord, GroupSlice, Outcome,
    PacketKind, Tapped, Totals, WaitingBuffer,
};
pub use preset::{AdapterQueueing, InputArbitration, InputQueueing, Parameters, Preset};
pub use recorder::Recording;
pub use setup::{Division, Setup, Status, queue_width_log2, voq_bytes};
pub use simulation::Simulation;
