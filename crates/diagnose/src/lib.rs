//! From a site's files to a verdict: what is wrong, who suffers, why, and what would help.
//!
//! ```text
//! let site = Site::new(name, fabric, oddities, Some(subnet));
//! let findings = facts::all(&site);                 // ranked by effect
//! let verdict = verdict(&site, &findings, answer, next);   // at most six lines
//! ```
//!
//! Facts are read off cables and tables. What would happen under load is a supposition and is
//! simulated; see [`what_if`].

#![forbid(unsafe_code)]

mod busy;
pub mod facts;
mod finding;
mod site;
mod verdict;
pub mod what_if;
mod words;

pub use busy::{BusyError, stand_out};
pub use finding::{Finding, Severity};
pub use site::{Cable, Cables, Site, Tables};
pub use verdict::verdict;
