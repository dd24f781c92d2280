//! Switches in a circle.

use super::arguments::Arguments;
use super::lattice::Lattice;
use super::{Entry, TopologyError};
use crate::Fabric;

/// `ring:6x1`.
pub(super) const ENTRY: Entry = Entry {
    name: "ring",
    summary: "switches in a circle, each with hosts (a 1-D torus)",
    parameters: "ring:SxH, S = 2 to 65536 switches, H = 1 to 252 hosts on each; speed=4xQDR",
    example: "ring:6x1",
    reference: "",
    build,
};

fn build(text: &str) -> Result<Fabric, TopologyError> {
    let arguments = Arguments::parse(ENTRY.name, text, &[])?;
    let (switches, hosts) = arguments.pair(("switches", "hosts"), (2..=65536, 1..=252))?;
    let (topology, rate) = (ENTRY.name, arguments.rate()?);
    Lattice { topology, sizes: vec![switches], wraps: vec![true], hosts, links: 1, rate }.build()
}
