//! Switches in a row.

use super::arguments::Arguments;
use super::lattice::Lattice;
use super::{Entry, TopologyError};
use crate::Fabric;

/// `chain:4x2`.
pub(super) const ENTRY: Entry = Entry {
    name: "chain",
    summary: "switches in a row, each with hosts (a 1-D mesh)",
    parameters: "chain:SxH, S = 2 to 65536 switches, H = 1 to 252 hosts on each; speed=4xQDR",
    example: "chain:4x2",
    reference: "",
    build,
};

fn build(text: &str) -> Result<Fabric, TopologyError> {
    let arguments = Arguments::parse(ENTRY.name, text, &[])?;
    let (switches, hosts) = arguments.pair(("switches", "hosts"), (2..=65536, 1..=252))?;
    let (topology, rate) = (ENTRY.name, arguments.rate()?);
    Lattice { topology, sizes: vec![switches], wraps: vec![false], hosts, links: 1, rate }.build()
}
