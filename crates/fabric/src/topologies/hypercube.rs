//! What it is: the binary n-cube, 2^n switches whose coordinates are n bits; two are joined where
//! one bit differs.
//!
//! Source: Saad, Schultz, "Topological properties of hypercubes", IEEE Trans. Computers 37(7),
//! 1988.
//!
//! It is built as the mesh of n sizes of 2 and keeps that convention: dimension d leaves the switch
//! whose bit d is 0 by port 2d + 1 and the other by port 2d + 2; hosts sit on the ports from
//! 2n + 1 on. So `structure::grid` finds the bits again and dimension order routes it.

use super::arguments::Arguments;
use super::lattice::Lattice;
use super::{Entry, TopologyError};
use crate::Fabric;

/// `hypercube:4`.
pub(super) const ENTRY: Entry = Entry {
    name: "hypercube",
    summary: "2^n switches, joined where one bit of their numbers differs (a mesh of 2s)",
    parameters: "hypercube:n, n = 1 to 19 dimensions; hosts=1 on each switch, 1 to 252; ports: \
                 dimension d on port 2d + 1 (bit 0) or 2d + 2 (bit 1), then hosts; speed=4xQDR",
    example: "hypercube:4",
    reference: "Saad, Schultz, \"Topological properties of hypercubes\", IEEE Trans. Computers \
                37(7), 1988",
    build,
};

fn build(text: &str) -> Result<Fabric, TopologyError> {
    let arguments = Arguments::parse(ENTRY.name, text, &["hosts"])?;
    let dimensions = arguments.number("dimensions", &arguments.values, 1..=19)? as usize;
    let hosts = arguments.option_number("hosts", 1, 1..=252)?;
    let lattice = Lattice {
        topology: ENTRY.name,
        sizes: vec![2; dimensions],
        wraps: vec![false; dimensions],
        hosts,
        links: 1,
        rate: arguments.rate()?,
    };
    lattice.build()
}

#[cfg(test)]
mod tests {
    use crate::topologies::build;
    use crate::{NodeId, NodeKind};

    #[test]
    fn cables_join_numbers_that_differ_in_one_bit() {
        let fabric = build("hypercube:5,hosts=2").unwrap();
        let switches = fabric.ids(NodeKind::Switch).count() as u32;
        for id in (0..switches).map(NodeId) {
            let peers = fabric.neighbours(id).map(|(_, _, peer)| peer.node.0);
            let mut others: Vec<u32> = peers.filter(|peer| *peer < switches).collect();
            others.sort_unstable();
            let mut expected: Vec<u32> = (0..5).map(|bit| id.0 ^ (1 << bit)).collect();
            expected.sort_unstable();
            assert_eq!(others, expected);
        }
    }
}
