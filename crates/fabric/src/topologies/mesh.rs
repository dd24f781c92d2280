//! A grid without wrap-around.

use super::lattice::Lattice;
use super::{Entry, TopologyError};
use crate::Fabric;

/// `mesh:8x8`.
pub(super) const ENTRY: Entry = Entry {
    name: "mesh",
    summary: "a grid of switches, 1-D to 6-D, ends open",
    parameters: "mesh:AxBx…, 1 to 6 sizes of 2 to 65536; \
                 hosts=1 on each switch, 1 to 252; links=1 cables of a host, 1 to 8; \
                 speed=4xQDR",
    example: "mesh:8x8",
    reference: "Dally, Towles, \"Principles and practices of interconnection networks\", 2004, \
                chapter 5",
    build,
};

fn build(text: &str) -> Result<Fabric, TopologyError> {
    Lattice::parse(ENTRY.name, text, false)?.build()
}
