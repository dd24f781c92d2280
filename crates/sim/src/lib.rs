//! The devices in motion: switches, links, credits, virtual lanes and channel adapters, simulated
//! packet by packet in integer picoseconds.
//!
//! Entry point: [`Simulation::new`] with a [`Setup`], then [`Simulation::run_until`] as often as
//! wanted, then [`Simulation::finish`].

// ARCHITECTURE.md has the order of the modules. crates/cli/tests/it/tidy.rs holds it.
mod across;
mod adapter;
mod addressing;
mod arbiter;
mod barrier;
mod builder;
mod cabling;
mod checkpoint;
mod control;
mod deadlock;
mod error;
mod finder;
mod fleet;
mod forward;
mod forwarding;
mod gathering;
mod hosts;
pub mod instances;
mod invariants;
mod list;
mod mail;
mod model;
mod network;
mod outcome;
mod packet;
pub mod parameters;
mod partition;
mod port;
mod port_set;
pub mod preset;
mod queue;
pub mod ranges;
mod ranks;
mod received;
mod recorder;
mod records;
mod saved;
mod setup;
mod simulation;
mod switch;
mod team;
mod trials;
mod view;
mod windows;

pub use adapter::GroupSettings;
pub use clearlane_ranks::{Doing, Stuck};
pub use control::Mechanisms;
pub use error::SetupError;
pub use fleet::{Fleet, fleet_of_threads};
pub use forward::GridForwarder;
pub use forwarding::{Forwarding, Ties};
pub use hosts::Hosts;
pub use instances::voq_bytes;
pub use outcome::{
    ChannelRecord, ControlRecord, Deadlock, Ending, FlowControl, FlowRecord, GroupSlice, JobRecord,
    Outcome, PacketKind, Read, Tapped, Totals, WaitingBuffer,
};
pub use parameters::{
    AdapterQueueing, BufferPer, CrossbarReads, InputArbitration, InputQueueing, MessageOrder,
    Parameters, Progress,
};
pub use preset::Preset;
pub use recorder::Recording;
pub use setup::{
    CABLE_ENDS_PER_THREAD, Division, END_GRID, Job, Placed, Setup, Status, cable_ends,
    queue_width_log2,
};
pub use simulation::Simulation;
