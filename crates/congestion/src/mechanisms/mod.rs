//! The mechanisms, one a file: what it is, its source, what is done differently, its parameters.

pub mod dcqcn;
pub mod drb;
mod fraction;
pub mod iba_cc;
mod injection_rate;
pub mod none;
pub mod timely;

use crate::mechanism::Entry;

/// All mechanisms.
pub const ALL: &[&Entry] =
    &[&none::ENTRY, &iba_cc::ENTRY, &dcqcn::ENTRY, &timely::ENTRY, &drb::ENTRY];

/// The mechanism of that name.
pub fn by_name(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.name == name).copied()
}
