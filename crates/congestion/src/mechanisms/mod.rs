//! The mechanisms, one a file: what it is, its source, what is done differently, its parameters.

pub mod drb;
pub mod iba_cc;
pub mod none;

use crate::mechanism::Entry;

/// All mechanisms.
pub const ALL: &[&Entry] = &[&none::ENTRY, &iba_cc::ENTRY, &drb::ENTRY];

/// The mechanism of that name.
pub fn by_name(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.name == name).copied()
}
