//! Runs under way, kept in a folder beside that of their results, so that a command that was
//! interrupted or killed goes on to the same bytes.

mod folder;
mod format;
mod keeper;
mod parts;

pub use folder::Checkpoints;
pub use format::{Refusal, decode, encode};
pub(crate) use keeper::{Keeper, Ticker};
