//! The devices in motion: switches, links, credits, virtual lanes and channel adapters, simulated
//! packet by packet in integer picoseconds.
//!
//! Entry point: [`Simulation::new`] with a [`Setup`], then [`Simulation::run_until`] as often as
//! wanted, then [`Simulation::finish`].

mod adapter;
mod adaptive;
mod arbiter;
mod control;
mod credits;
mod deadlock;
mod engine;
mod forward;
mod hosts;
mod invariants;
mod list;
mod network;
mod observe;
mod outcome;
mod port_set;
pub mod preset;
pub mod ranges;
mod ranks;
mod records;
mod simulation;
mod switch;
mod voq;
mod wheel;

pub use control::{ControlRecord, FlowControl, Mechanisms};
pub use forward::Forwarding;
pub use hosts::Hosts;
pub use observe::Recording;
pub use outcome::{
    ChannelRecord, Deadlock, Ending, FlowRecord, GroupSlice, Outcome, Totals, WaitingBuffer,
};
pub use preset::{AdapterQueueing, InputArbitration, InputQueueing, Parameters, Preset};
pub use simulation::{GroupSettings, Setup, SetupError, Simulation, Status, queue_width_log2};
pub use voq::voq_bytes;
