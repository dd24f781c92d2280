//! The mechanisms, one a file: what it is, its source, what is done differently, its parameters. A
//! new one is its file and its line in `mechanisms!`.

mod fraction;
mod injection_rate;

use crate::mechanism::Entry;

macro_rules! mechanisms {
    ($($module:ident)*) => {
        $(pub mod $module;)*

        /// All mechanisms.
        pub static ALL: &[&Entry] = &[$(&$module::ENTRY),*];
    };
}

mechanisms! {
    none
    iba_cc
    dcqcn
    timely
    drb
}

/// The mechanism of that name.
pub fn by_name(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.name == name).copied()
}
