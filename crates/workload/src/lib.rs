//! What the ranks want to send: programs, traffic patterns and flow groups. Nothing here knows how
//! packets travel.

#![forbid(unsafe_code)]

mod flow_group;
mod open_loop;
pub mod patterns;
mod ping_pong;
mod program;
mod ranks;
mod routes;
mod sizes;

pub use flow_group::{Arrivals, Class, FlowGroup, Transport};
pub use open_loop::OpenLoop;
pub use patterns::{Destinations, Entry, PatternError, PatternSpec};
pub use ping_pong::PingPong;
pub use program::{Event, Handle, Op, Rank, RankProgram};
pub use ranks::{HostRef, Ranks};
pub use routes::{Channel, Routes};
pub use sizes::{SizeDistribution, SizeError};
