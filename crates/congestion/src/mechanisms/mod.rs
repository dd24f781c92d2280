//! The mechanisms, one a file: what it is, its source, what is done differently, its parameters.

pub mod iba_cc;

use crate::mechanism::Entry;

/// All mechanisms.
pub const ALL: &[&Entry] = &[&iba_cc::ENTRY];

/// The mechanism of that name.
pub fn by_name(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.name == name).copied()
}
