//! What it is: what is odd in the files of tables: entries for nobody, repeated sections, unknown
//! lanes.

use super::Entry;
use crate::words::count;
use crate::{Finding, Severity, Site};

/// `table-noise`.
pub(super) const ENTRY: Entry =
    Entry { name: "table-noise", summary: "what else is odd in the files of tables", find };

fn find(site: &Site) -> Vec<Finding> {
    let Some(tables) = &site.tables else { return Vec::new() };
    let remarks = &tables.subnet.remarks;
    let number = count(remarks.len() as u64, "remark", "remarks");
    let noise = Finding {
        fact: ENTRY.name,
        severity: Severity::Note,
        share: 0.0,
        text: format!("the files of tables give {number}; `clearlane check` has them"),
        more: remarks.iter().map(|remark| remark.replace(['\n', '\r'], " ")).collect(),
        remedy: String::new(),
    };
    if remarks.is_empty() { Vec::new() } else { vec![noise] }
}
