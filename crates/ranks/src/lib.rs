//! Ranks above a fabric: their programs, their clocks and CPUs, and the message-passing library
//! between them: matching, eager and long messages. Whatever carries messages can be below: it
//! implements [`Transport`].

#![forbid(unsafe_code)]

mod few;
pub mod loggops;
mod matching;
mod order;
mod perform;
mod process;
mod protocol;
mod ranks;
mod requests;
mod saved;
mod settings;
mod stuck;
mod transport;

pub use process::Process;
pub use ranks::{JobState, Ranks};
pub use requests::Doing;
pub use saved::{Named, SavedRank};
pub use settings::{Progress, Settings};
pub use stuck::Stuck;
pub use transport::{Envelope, Kind, Outgoing, Transport, What};
