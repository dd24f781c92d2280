//! What would happen under load: a supposition, simulated.
//!
//! The question is an experiment file like any other: a third of the hosts write to the hot hosts
//! as fast as they can, another third talk among all at 30 % of their links, over the site's tables
//! and over what could be done instead. Source of the question: Pfister and Norton, "Hot Spot
//! Contention and Combining in Multistage Interconnection Networks" (IEEE ToC 1985).

mod answer;
mod candidates;
mod question;
mod screen;

pub use answer::{Answer, answer};
pub use candidates::{Hot, HotError, hot};
pub use question::{AS_IS, FIRMWARE, FabricFile, IBA_CC, LANE, Question, Traffic, VFTREE};
pub use screen::{Screened, screen};
