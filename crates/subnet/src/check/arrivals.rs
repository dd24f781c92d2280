//! Which hosts reach which, pair by pair, where tables do not reach all.

use super::reachability::{State, Walk};
use crate::Subnet;
use crate::graph::{Host, SwitchGraph};
use clearlane_fabric::{Endpoint, Fabric};
use std::collections::BTreeMap;

/// Whether a port of a host reaches another; a bit for each switch and port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrivals {
    /// By port of a host: its place, and the row of its switch.
    places: BTreeMap<Endpoint, (usize, usize)>,
    /// By row of a switch and place of a port: whether a LID of the port is not reached.
    lost: Vec<u64>,
}

impl Arrivals {
    /// Walks the tables to every LID of every host.
    pub fn of(fabric: &Fabric, subnet: &Subnet) -> Self {
        let graph = SwitchGraph::of(fabric);
        let hosts = graph.adapter_ports(fabric);
        let places: BTreeMap<Endpoint, (usize, usize)> = hosts
            .iter()
            .enumerate()
            .map(|(place, host)| (host.end, (place, host.row as usize)))
            .collect();
        let mut on_switch: Vec<Vec<Host>> = vec![Vec::new(); graph.rows()];
        hosts.iter().for_each(|host| on_switch[host.row as usize].push(*host));
        let mut all = Arrivals { lost: vec![0; (graph.rows() * hosts.len()).div_ceil(64)], places };
        let mut walk = Walk::new(&graph, subnet);
        for target in graph.targets(&subnet.lids).iter().filter(|target| target.exit != 0) {
            let Some((place, _)) = all.places.get(&target.owner.end).copied() else { continue };
            walk.all(target, &on_switch);
            for row in 0..graph.rows() {
                if matches!(walk.state(row), State::Lost(_)) {
                    all.set_lost(row, place);
                }
            }
        }
        // Nobody can send to a host without a LID.
        for host in hosts.iter().filter(|host| subnet.lids.base(host.end).is_none()) {
            let (place, _) = all.places[&host.end];
            (0..graph.rows()).for_each(|row| all.set_lost(row, place));
        }
        all
    }

    fn set_lost(&mut self, row: usize, place: usize) {
        let bit = row * self.places.len() + place;
        self.lost[bit / 64] |= 1 << (bit % 64);
    }

    /// Whether packets from one port of a host arrive at every LID of another. What is no port of
    /// a host at a switch reaches nothing.
    pub fn arrives(&self, from: Endpoint, to: Endpoint) -> bool {
        let (Some((_, row)), Some((place, _))) = (self.places.get(&from), self.places.get(&to))
        else {
            return false;
        };
        let bit = row * self.places.len() + place;
        self.lost[bit / 64] >> (bit % 64) & 1 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::usage;
    use crate::engines::{RouteOptions, route};
    use clearlane_fabric::{NodeKind, topologies};
    use clearlane_ib::random::Stream;
    use proptest::prelude::*;

    proptest! {
        /// As many pairs arrive as paths do, whatever entries are taken out or bent.
        #[test]
        fn pairs_and_paths_agree(seed in 0u64..1000, spoilt in 0usize..12) {
            let fabric = topologies::build("leaf-spine:leaves=4,hosts=3,spines=2").unwrap();
            let mut subnet = route("min-hop", &fabric, &RouteOptions::default()).unwrap();
            let mut stream = Stream::new(seed, "test", 0);
            for _ in 0..spoilt {
                let row = stream.below(6) as usize;
                let lids = subnet.tables.columns() as u64;
                let port = [u8::MAX, 1, 2, 4][stream.below(4) as usize];
                subnet.tables.row_mut(row)[stream.below(lids) as usize] = port;
            }
            let arrivals = Arrivals::of(&fabric, &subnet);
            let hosts: Vec<Endpoint> = fabric
                .ids(NodeKind::ChannelAdapter)
                .flat_map(|node| fabric.neighbours(node).map(move |(port, ..)| Endpoint { node, port }))
                .collect();
            let mut found = 0;
            for (from, to) in hosts.iter().flat_map(|from| hosts.iter().map(move |to| (*from, *to))) {
                found += u64::from(from != to && arrivals.arrives(from, to));
            }
            let usage = usage(&fabric, &subnet);
            prop_assert_eq!(found, usage.paths - usage.lost);
        }
    }
}
