//! A grid with wrap-around in every dimension (a k-ary n-cube where all sizes are k).

use super::lattice::Lattice;
use super::{Entry, TopologyError};
use crate::Fabric;

/// `torus:4x4x4`.
pub(super) const ENTRY: Entry = Entry {
    name: "torus",
    summary: "a grid of switches, 1-D to 6-D, ends joined; size 2 has two parallel cables",
    parameters: "torus:AxBx…, 1 to 6 sizes of 2 to 65536; \
                 hosts=1 on each switch, 1 to 252; links=1 cables of a host, 1 to 8; \
                 speed=4xQDR",
    example: "torus:4x4x4",
    reference: "Dally, Towles, \"Principles and practices of interconnection networks\", 2004, \
                chapter 5",
    build,
};

fn build(text: &str) -> Result<Fabric, TopologyError> {
    Lattice::parse(ENTRY.name, text, true)?.build()
}
