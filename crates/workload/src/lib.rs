//! What the ranks want to send: programs, traffic patterns and flow groups. Nothing here knows how
//! packets travel.

#![forbid(unsafe_code)]

pub mod bounds;
mod flow_group;
mod open_loop;
mod pacing;
pub mod patterns;
mod program;
pub mod programs;
mod ranks;
mod routes;
mod sizes;
pub mod traces;
mod walks;

pub use bounds::Bounds;
pub use flow_group::{Arrivals, Class, Demand, FlowGroup, Offered, Transport};
pub use open_loop::OpenLoop;
pub use pacing::{Pacing, PacingSpec, StepGaps};
pub use patterns::{Destinations, Entry, PatternError, PatternSpec};
pub use program::{
    Completion, Event, Filter, Gap, Handle, Handles, Hints, Message, Op, Rank, RankProgram,
};
pub use programs::{PingPong, ProgramError, ProgramSpec, TraceFile};
pub use ranks::{Host, HostRef, Ranks};
pub use routes::{Channel, Routes};
pub use sizes::{SizeDistribution, SizeError};
