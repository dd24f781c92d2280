//! Decisions, no machinery: what a congestion mechanism marks, notifies and does about it.
//!
//! A mechanism sits in up to three places: a [`Marker`] at a switch output, a [`Notifier`] at the
//! destination adapter, a [`Reactor`] at the source. Reactors make two decisions, *when* the next
//! packet goes and on *which* path, and a run composes one mechanism for each ([`Decides`]): they
//! share the signal and nothing else, so congestion control × multipath is a matter of two words.
//!
//! All of it is pure: time is an argument, random bits are an argument, nothing is scheduled and
//! nothing is printed. The same code drives a simulated adapter, a test with three events made by
//! hand, and the sender of a real traffic generator. A new mechanism is one file in `mechanisms/`
//! and one line in [`mechanisms::ALL`].

#![forbid(unsafe_code)]

mod marker;
mod mechanism;
pub mod mechanisms;
mod notifier;
mod parameter;
pub mod policy_file;
mod reactor;

pub use clearlane_ib::{Saved, StateError};
pub use marker::{Departing, Marker, OutputQueue};
pub use mechanism::{Decides, Entry, Mechanism, Notifies, Output, Preset, Scope, Source};
pub use notifier::{Arrived, Notification, Notifier};
pub use parameter::{Parameter, ParameterError, Range, Value, Values};
pub use reactor::{Feedback, OPEN_PATHS, Pair, Path, Probe, Reactor, Sent, Stripe, Stripes};
