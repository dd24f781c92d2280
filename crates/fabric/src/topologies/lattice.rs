//! Switches at the points of a grid, as meshes, tori, rings and chains have them.

use super::TopologyError;
use super::arguments::{Arguments, Rate};
use super::plan::{Plan, numbered, radix};
use crate::{Fabric, NodeId};
use std::ops::RangeInclusive;

/// Cables that a host may have.
pub(super) const LINKS: RangeInclusive<u32> = 1..=8;

/// The dimensions of a grid and what hangs on it.
pub(super) struct Lattice {
    pub(super) topology: &'static str,
    pub(super) sizes: Vec<u32>,
    /// Per dimension, whether its ends are joined.
    pub(super) wraps: Vec<bool>,
    pub(super) hosts: u32,
    /// Cables of each host to its switch, one a port.
    pub(super) links: u32,
    pub(super) rate: Rate,
}

impl Lattice {
    /// Reads `4x4x4,hosts=2,links=4`.
    pub(super) fn parse(
        topology: &'static str,
        text: &str,
        wrapped: bool,
    ) -> Result<Self, TopologyError> {
        let arguments = Arguments::parse(topology, text, &["hosts", "links"])?;
        let texts: Vec<&str> = arguments.values.split('x').take(7).collect();
        if texts.len() > 6 {
            return Err(arguments.wrong("shape", &arguments.values, "1 to 6 sizes, such as 4x4x4"));
        }
        let sizes: Result<Vec<u32>, TopologyError> =
            texts.iter().map(|text| arguments.number("size", text, 2..=65536)).collect();
        let hosts = arguments.option_number("hosts", 1, 1..=252)?;
        let links = arguments.option_number("links", 1, LINKS)?;
        let (sizes, rate) = (sizes?, arguments.rate()?);
        Ok(Lattice { topology, wraps: vec![wrapped; sizes.len()], sizes, hosts, links, rate })
    }

    /// Builds it. Port 2d + 1 leads towards + in dimension d and 2d + 2 towards -; hosts follow.
    /// Dimension 0 varies fastest in the order of the switches. One of size 1 has no cables.
    pub(super) fn build(&self) -> Result<Fabric, TopologyError> {
        let product = |n: u64, size: &u32| n.saturating_mul(u64::from(*size));
        let switches = self.sizes.iter().fold(1, product);
        let nodes = switches.saturating_mul(1 + u64::from(self.hosts));
        let mut plan = Plan::new(self.topology, nodes)?;
        let first_host_port = 2 * self.sizes.len() as u32 + 1;
        let host_ports = self.hosts * self.links;
        let ports = radix(self.topology, "grid", u64::from(first_host_port - 1 + host_ports))?;
        for index in 0..switches {
            plan.switch(place_name(&digits(index as u32, &self.sizes)), ports)?;
        }
        for index in 0..switches {
            let id = NodeId(index as u32);
            let mut stride = 1;
            for (dimension, size) in self.sizes.iter().enumerate() {
                let coordinate = index as u32 / stride % size;
                let last = coordinate + 1 == *size;
                let peer = if last { id.0 - coordinate * stride } else { id.0 + stride };
                if !last || (self.wraps[dimension] && *size > 1) {
                    let port = 2 * dimension as u32 + 1;
                    plan.cable((id, port), (NodeId(peer), port + 1));
                }
                stride *= size;
            }
        }
        let hosts = switches * u64::from(self.hosts);
        for rank in 0..hosts {
            let host = plan.host(numbered("host", rank, hosts, 4), self.links as u8)?;
            let switch = NodeId((rank / u64::from(self.hosts)) as u32);
            let port = first_host_port + (rank % u64::from(self.hosts)) as u32 * self.links;
            for link in 0..self.links {
                plan.cable((host, 1 + link), (switch, port + link));
            }
        }
        plan.finish(self.rate)
    }
}

/// The coordinates of the switch at this place in the order of the switches, dimension 0 varying
/// fastest.
pub(super) fn digits(index: u32, sizes: &[u32]) -> Vec<u32> {
    let mut rest = index;
    sizes
        .iter()
        .map(|size| {
            let digit = rest % size;
            rest /= size;
            digit
        })
        .collect()
}

/// `sw-0-3`: a switch by its coordinates.
pub(super) fn place_name(coordinates: &[u32]) -> String {
    let texts: Vec<String> = coordinates.iter().map(u32::to_string).collect();
    format!("sw-{}", texts.join("-"))
}
