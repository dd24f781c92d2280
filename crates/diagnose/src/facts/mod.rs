//! Facts of a site's files. One kind a file, one line in the list below.

use crate::{Finding, Site};

/// A kind of fact.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// One line on what it says.
    pub summary: &'static str,
    /// Finds it; nothing, one or several.
    pub find: fn(&Site) -> Vec<Finding>,
}

macro_rules! facts {
    ($($module:ident),* $(,)?) => {
        $(mod $module;)*
        /// All kinds.
        pub static ALL: &[Entry] = &[$($module::ENTRY),*];
    };
}

facts! {
    forwarding_loops,
    dead_entries,
    stale_entries,
    parts,
    without_lid,
    credit_loops,
    slow_switches,
    slow_trunks,
    missing_cables,
    imbalance,
    unknown_switches,
    slow_host_links,
    unplugged,
    unused_ports,
    file_noise,
    table_noise,
}

/// Every fact, the worst first.
pub fn all(site: &Site) -> Vec<Finding> {
    let mut findings: Vec<Finding> = ALL.iter().flat_map(|entry| (entry.find)(site)).collect();
    Finding::rank(&mut findings);
    findings
}
