//! What it is: HyperX, switches at the points of a grid, in every dimension each joined to all
//! others of its line.
//!
//! Source: Ahn, Binkert, Davis, McLaren, Schreiber, "HyperX: topology, routing, and packaging of
//! efficient large-scale networks", SC 2009: L dimensions, S_k switches in dimension k, K_k cables
//! between two of them, T hosts (terminals) on each. A flattened butterfly is one with all S
//! equal, a full mesh one with L = 1.
//!
//! Ports: hosts 1 to T, then dimension by dimension the other switches of the line in the order of
//! their coordinate; with K > 1 that row K times. Dimension 0 varies fastest in the order of the
//! switches.

use super::arguments::Arguments;
use super::lattice::{digits, place_name};
use super::plan::{Plan, numbered, radix};
use super::{Entry, TopologyError};
use crate::{Fabric, NodeId};

/// `hyperx:4x4`.
pub(super) const ENTRY: Entry = Entry {
    name: "hyperx",
    summary: "a grid of switches, each joined to all others of its line in every dimension",
    parameters: "hyperx:S1xS2x…, 1 to 6 sizes of 2 to 254; hosts=1 on each switch, 1 to 253; \
                 parallel=1 cables between two switches, 1 to 253, or one for each dimension, \
                 1x2x…; ports: hosts, then the others of each line by coordinate; speed=4xQDR",
    example: "hyperx:4x3,hosts=2,parallel=1x2",
    reference: "Ahn, Binkert, Davis, McLaren, Schreiber, \"HyperX: topology, routing, and \
                packaging of efficient large-scale networks\", SC 2009",
    build,
};

fn build(text: &str) -> Result<Fabric, TopologyError> {
    let arguments = Arguments::parse(ENTRY.name, text, &["hosts", "parallel"])?;
    let texts: Vec<&str> = arguments.values.split('x').take(7).collect();
    if texts.len() > 6 {
        return Err(arguments.wrong("shape", &arguments.values, "1 to 6 sizes, such as 4x4"));
    }
    let sizes: Result<Vec<u32>, TopologyError> =
        texts.iter().map(|text| arguments.number("size", text, 2..=254)).collect();
    let sizes = sizes?;
    let hosts = arguments.option_number("hosts", 1, 1..=253)?;
    let text = arguments.option("parallel").unwrap_or("1");
    let counts: Vec<&str> = text.split('x').take(sizes.len() + 1).collect();
    let counts: Result<Vec<u32>, TopologyError> =
        counts.iter().map(|text| arguments.number("parallel", text, 1..=253)).collect();
    let parallel = match counts?.as_slice() {
        [all] => vec![*all; sizes.len()],
        each if each.len() == sizes.len() => each.to_vec(),
        _ => return Err(arguments.wrong("parallel", text, "one number, or one for each size")),
    };
    HyperX { sizes, parallel, hosts }.build(&arguments)
}

struct HyperX {
    sizes: Vec<u32>,
    parallel: Vec<u32>,
    hosts: u32,
}

impl HyperX {
    fn build(&self, arguments: &Arguments<'_>) -> Result<Fabric, TopologyError> {
        let product = |n: u64, size: &u32| n.saturating_mul(u64::from(*size));
        let switches = self.sizes.iter().fold(1, product);
        let nodes = switches.saturating_mul(1 + u64::from(self.hosts));
        let mut plan = Plan::new(ENTRY.name, nodes)?;
        let lines = self.sizes.iter().zip(&self.parallel);
        let between: u64 = lines.map(|(size, k)| u64::from(size - 1) * u64::from(*k)).sum();
        let ports = radix(ENTRY.name, "grid", u64::from(self.hosts) + between)?;
        for index in 0..switches {
            plan.switch(place_name(&digits(index as u32, &self.sizes)), ports)?;
        }
        for index in 0..switches {
            self.cables_of(&mut plan, index as u32);
        }
        let hosts = switches * u64::from(self.hosts);
        for rank in 0..hosts {
            let host = plan.host(numbered("host", rank, hosts, 4), 1)?;
            let switch = NodeId((rank / u64::from(self.hosts)) as u32);
            plan.cable((host, 1), (switch, 1 + (rank % u64::from(self.hosts)) as u32));
        }
        plan.finish(arguments.rate()?)
    }

    /// Draws the cables from a switch to those of its lines that come after it.
    fn cables_of(&self, plan: &mut Plan, index: u32) {
        let at = digits(index, &self.sizes);
        let (mut stride, mut first_port) = (1, self.hosts + 1);
        for ((size, parallel), own) in self.sizes.iter().zip(&self.parallel).zip(&at) {
            for other in own + 1..*size {
                for cable in 0..*parallel {
                    // Seen from each end, the own coordinate is left out of the count.
                    let row = first_port + cable * (size - 1);
                    let peer = NodeId(index + (other - own) * stride);
                    plan.cable((NodeId(index), row + other - 1), (peer, row + own));
                }
            }
            first_port += parallel * (size - 1);
            stride *= size;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::NodeId;
    use crate::topologies::build;

    #[test]
    fn a_line_is_a_full_mesh_of_as_many_cables_as_said() {
        let fabric = build("hyperx:4x3,hosts=2,parallel=1x2").unwrap();
        let peers = fabric.neighbours(NodeId(5));
        let peers: Vec<String> =
            peers.map(|(port, _, peer)| format!("{port}:{}", fabric.describe(peer))).collect();
        assert_eq!(
            peers,
            [
                "1:host0010[1]",
                "2:host0011[1]",
                "3:sw-0-1[3]",
                "4:sw-2-1[4]",
                "5:sw-3-1[4]",
                "6:sw-1-0[6]",
                "7:sw-1-2[7]",
                "8:sw-1-0[8]",
                "9:sw-1-2[9]",
            ]
        );
    }
}
