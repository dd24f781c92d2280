//! What it is: shortest paths, each LID over the least loaded of the minimal ports.
//!
//! Source: OpenSM's MINHOP engine as its documentation describes it.
//! What we do differently: destinations are visited by switch and port, not by switch load, and
//! parallel or equal ports are told apart by load, then by port number; so the tables do not depend
//! on GUIDs or names. The LIDs of one port (LMC > 0) first use different neighbours, then different
//! cables; each takes the port that carries the fewest LIDs of its own offset and, of equals, the
//! one after its predecessor's. So the base LIDs alone are spread as evenly as all LIDs together,
//! and so are those of every other offset.
//! Parameters: lmc 0 to 7, lanes 1 to 15, adaptive (all shortest paths; whether they close a loop
//! is for the checker to say).

use super::{Claims, Entry, RouteOptions, RoutingError};
use crate::graph::{SwitchGraph, Target};
use crate::{AdaptiveGroups, ForwardingTables, Subnet};
use clearlane_fabric::Fabric;

/// `min-hop`.
pub(super) const ENTRY: Entry = Entry {
    name: "min-hop",
    summary: "shortest paths, every LID over the least loaded minimal port",
    reference: "OpenSM, engine MINHOP (linux-rdma/opensm, doc/current-routing.txt)",
    parameters: "lmc 0 to 7; lanes 1 to 15; adaptive",
    lanes: 1,
    adaptive: true,
    roots: false,
    claims: Claims {
        minimal: true,
        deadlock_free: false,
        balanced_on: "two-level fat trees",
        accepts: "every fabric",
    },
    route,
};

fn route(fabric: &Fabric, options: &RouteOptions) -> Result<Subnet, RoutingError> {
    super::check_lanes(ENTRY.name, 1, options)?;
    let lids = super::lids(fabric, options)?;
    let graph = SwitchGraph::of(fabric);
    let targets = graph.targets(&lids);
    let mut tables = ForwardingTables::empty(fabric, lids.table_len());
    super::fill_exits(&graph, &targets, &mut tables);
    let offsets = targets.iter().map(|target| usize::from(target.owner.offset) + 1).max();
    let offsets = offsets.unwrap_or(1);
    let mut search = Search {
        graph: &graph,
        loads: vec![0; graph.channels()],
        offsets,
        loads_by_offset: vec![0; graph.channels() * offsets],
        distances: Vec::new(),
        queue: Vec::new(),
    };
    for of_switch in targets.chunk_by(|a, b| a.row == b.row) {
        search.fill(of_switch, &mut tables);
    }
    let columns = lids.table_len();
    let mut subnet = super::plain_subnet(ENTRY.name, fabric, options, lids, tables);
    if options.adaptive {
        subnet.adaptive = Some(search.groups(&targets, columns));
    }
    subnet.remarks.extend(super::remark_on_parts(fabric, &graph));
    Ok(subnet)
}

/// A port that leads nearer, as the LIDs of one destination see it.
struct Candidate {
    port: u8,
    peer: usize,
    channel: usize,
    /// How many cables to the same neighbour have lower ports.
    cable: usize,
    /// How many LIDs of the destination at hand use this port, and this neighbour.
    uses: u32,
    peer_uses: u32,
}

struct Search<'a> {
    graph: &'a SwitchGraph,
    /// Adapter LIDs by channel.
    loads: Vec<u32>,
    /// Offsets of LIDs there are: 2^LMC.
    offsets: usize,
    /// Adapter LIDs by channel and offset, at channel × offsets + offset.
    loads_by_offset: Vec<u32>,
    distances: Vec<u32>,
    queue: Vec<u32>,
}

impl Search<'_> {
    /// Fills the columns of all LIDs behind one switch.
    fn fill(&mut self, targets: &[Target], tables: &mut ForwardingTables) {
        let Some(first) = targets.first() else { return };
        self.graph.distances(first.row as usize, &mut self.distances, &mut self.queue);
        let mut candidates: Vec<Candidate> = Vec::new();
        for row in 0..self.graph.rows() {
            let distance = self.distances[row];
            if distance == 0 || distance == u32::MAX {
                continue;
            }
            candidates.clear();
            for (port, peer, _) in self.graph.switch_peers(row) {
                if self.distances[peer] + 1 == distance {
                    let channel = self.graph.channel(row, port);
                    let cable = candidates.iter().filter(|other| other.peer == peer).count();
                    let (uses, peer_uses) = (0, 0);
                    candidates.push(Candidate { port, peer, channel, cable, uses, peer_uses });
                }
            }
            // One after another they lead to different neighbours.
            candidates.sort_by_key(|candidate| (candidate.cable, candidate.port));
            let entries = tables.row_mut(row);
            for of_port in targets.chunk_by(|a, b| a.owner.end == b.owner.end) {
                for candidate in &mut candidates {
                    (candidate.uses, candidate.peer_uses) = (0, 0);
                }
                let mut last = None;
                for target in of_port {
                    last = self.choose(&mut candidates, last, target);
                    let port = last.map_or(u8::MAX, |chosen| candidates[chosen].port);
                    entries[usize::from(target.lid.value())] = port;
                }
            }
        }
    }

    /// For every switch and LID, all ports that lead nearer.
    fn groups(&mut self, targets: &[Target], columns: usize) -> AdaptiveGroups {
        let mut groups = AdaptiveGroups::empty(self.graph.rows(), columns);
        let mut ports = Vec::new();
        for of_switch in targets.chunk_by(|a, b| a.row == b.row) {
            let home = of_switch[0].row as usize;
            self.graph.distances(home, &mut self.distances, &mut self.queue);
            for row in (0..self.graph.rows()).filter(|row| *row != home) {
                let distance = self.distances[row];
                let nearer = |peer: usize| self.distances[peer].saturating_add(1) == distance;
                let peers = self.graph.switch_peers(row).filter(|(_, peer, _)| nearer(*peer));
                ports.clear();
                ports.extend(peers.filter(|_| distance != u32::MAX).map(|(port, ..)| port));
                groups.set(row, of_switch.iter().map(|target| target.lid), &ports);
            }
        }
        groups
    }

    /// The candidate for one LID, after that for the LID before it.
    fn choose(
        &mut self,
        candidates: &mut [Candidate],
        last: Option<usize>,
        target: &Target,
    ) -> Option<usize> {
        let (count, offset) = (candidates.len(), usize::from(target.owner.offset));
        let best = (0..count).min_by_key(|at| {
            let c = &candidates[*at];
            let of_offset = self.loads_by_offset[c.channel * self.offsets + offset];
            let behind = last.map_or(0, |last| (at + count - last) % count);
            (c.peer_uses, c.uses, of_offset, behind, self.loads[c.channel], c.port)
        })?;
        let (channel, peer) = (candidates[best].channel, candidates[best].peer);
        candidates[best].uses += 1;
        for candidate in candidates.iter_mut().filter(|candidate| candidate.peer == peer) {
            candidate.peer_uses += 1;
        }
        if target.exit != 0 {
            self.loads[channel] += 1;
            self.loads_by_offset[channel * self.offsets + offset] += 1;
        }
        Some(best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_fabric::topologies::build;
    use clearlane_ib::Lmc;
    use std::collections::BTreeSet;

    #[test]
    fn a_row_of_a_small_tree_as_a_person_would_write_it() {
        let fabric = build("leaf-spine:leaves=2,hosts=3,spines=3").unwrap();
        let subnet = route(&fabric, &RouteOptions::default()).unwrap();
        // LIDs 1 to 6 are the hosts, 7 and 8 the leaves, 9 to 11 the spines.
        assert_eq!(subnet.tables.row(0)[1..], [1, 2, 3, 4, 5, 6, 0, 4, 4, 5, 6]);
        assert_eq!(subnet.tables.row(2)[1..], [1, 1, 1, 2, 2, 2, 1, 2, 0, 1, 1]);
    }

    #[test]
    fn four_paths_of_a_port_use_four_uplinks() {
        let fabric = build("fat-tree:648").unwrap();
        let lmc = Lmc::new(2).unwrap();
        let options = RouteOptions { lmc, ..RouteOptions::default() };
        let subnet = route(&fabric, &options).unwrap();
        let row = subnet.tables.row(35);
        let mut loads = [0; 37];
        for host in 0..35 * 18 {
            let ports = &row[4 + host * 4..8 + host * 4];
            assert_eq!(ports.iter().collect::<BTreeSet<_>>().len(), 4);
            ports.iter().for_each(|port| loads[usize::from(*port)] += 1);
        }
        assert_eq!(loads[19..], [140; 18], "as even as OpenSM's");
    }
}
