//! How many paths cross each link, and where those that do not arrive come to their end.
//!
//! A path is a host and a LID of another host, as in [`super::reachability`]; hosts without a LID
//! are left out. Per LID every switch with hosts is walked once with all of them.

use super::FaultKind;
use crate::Subnet;
use crate::graph::{Host, Peer, SwitchGraph, Target};
use clearlane_fabric::{Endpoint, Fabric, NodeId};
use clearlane_ib::{Lid, PortNumber};
use std::collections::BTreeMap;

/// Where paths come to their end without arriving.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LostAt {
    /// Why.
    pub kind: FaultKind,
    /// The switch; of a loop, the first of its switches in the fabric's order.
    pub switch: NodeId,
    /// The port the table names there; nothing where it has no entry.
    pub port: Option<PortNumber>,
    /// Paths that end here.
    pub paths: u64,
    /// LIDs of hosts these lead to.
    pub lids: u64,
    /// The first of them.
    pub lid: Lid,
    /// The host's port it belongs to.
    pub host: Endpoint,
    /// Switches of the loop in the order they are passed; empty for other kinds.
    pub circle: Vec<NodeId>,
}

/// What [`usage`] found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Usage {
    /// All paths.
    pub paths: u64,
    /// Those that do not arrive.
    pub lost: u64,
    /// By place, most paths first.
    pub lost_at: Vec<LostAt>,
    crossing: BTreeMap<Endpoint, u64>,
}

impl Usage {
    /// Paths that arrive and leave a switch by this port; 0 for what is no port of a switch.
    pub fn crossing(&self, output: Endpoint) -> u64 {
        self.crossing.get(&output).copied().unwrap_or(0)
    }

    /// Switch outputs in use with their paths, in the order of nodes and ports.
    pub fn outputs(&self) -> impl Iterator<Item = (Endpoint, u64)> + '_ {
        self.crossing.iter().map(|(output, paths)| (*output, *paths))
    }
}

/// Counts the paths.
pub fn usage(fabric: &Fabric, subnet: &Subnet) -> Usage {
    let graph = SwitchGraph::of(fabric);
    let mut hosts: Vec<Vec<Host>> = vec![Vec::new(); graph.rows()];
    let with_lid = |host: &Host| subnet.lids.base(host.end).is_some();
    for host in graph.adapter_ports(fabric).into_iter().filter(with_lid) {
        hosts[host.row as usize].push(host);
    }
    let rows: Vec<usize> = (0..hosts.len()).filter(|row| !hosts[*row].is_empty()).collect();
    let channels = vec![0; graph.channels()];
    let walker = Walker { graph: &graph, subnet };
    let mut count = Count { channels, lost: BTreeMap::new(), paths: 0 };
    for target in graph.targets(&subnet.lids).iter().filter(|target| target.exit != 0) {
        for row in &rows {
            let sources = hosts[*row].iter().filter(|host| host.end != target.owner.end);
            count.take(&walker, *row, target, sources.count() as u64);
        }
    }
    count.usage(&graph)
}

/// How much of the traffic of others stands behind traffic to some hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exposure {
    /// Paths between other hosts that arrive.
    pub paths: u64,
    /// Those of them that share the input buffer of a switch with paths to these hosts.
    pub exposed: u64,
}

impl Exposure {
    /// The share that is exposed, 0 to 1.
    pub fn share(&self) -> f64 {
        self.exposed as f64 / self.paths.max(1) as f64
    }
}

/// Counts the paths of others that share a cable between switches, and so the input buffer behind
/// it, with paths from anywhere to these ports of hosts. What is on another lane does not share it:
/// lanes are not looked at here.
pub fn exposure(fabric: &Fabric, subnet: &Subnet, hot: &[Endpoint]) -> Exposure {
    let graph = SwitchGraph::of(fabric);
    let walker = Walker { graph: &graph, subnet };
    let mut hosts: Vec<u64> = vec![0; graph.rows()];
    for host in graph.adapter_ports(fabric) {
        hosts[host.row as usize] += u64::from(subnet.lids.base(host.end).is_some());
    }
    let rows: Vec<usize> = (0..hosts.len()).filter(|row| hosts[*row] > 0).collect();
    let targets = graph.targets(&subnet.lids);
    let (hot, others): (Vec<&Target>, Vec<&Target>) = targets
        .iter()
        .filter(|target| target.exit != 0)
        .partition(|target| hot.contains(&target.owner.end));
    let mut is_hot = vec![false; graph.channels()];
    let mut passed = Vec::new();
    let into_switch = |channel: &usize| matches!(graph.peer_of(*channel), Peer::Switch { .. });
    for (target, row) in hot.iter().flat_map(|target| rows.iter().map(move |row| (*target, *row))) {
        if matches!(walker.walk(row, target, &mut passed), End::Arrived) {
            passed.iter().for_each(|channel| is_hot[*channel] = true);
        }
    }
    let mut found = Exposure { paths: 0, exposed: 0 };
    for (target, row) in
        others.iter().flat_map(|target| rows.iter().map(move |row| (*target, *row)))
    {
        if matches!(walker.walk(row, target, &mut passed), End::Arrived) {
            let shares = passed.iter().filter(|channel| into_switch(channel));
            let own = u64::from(row == target.row as usize);
            let paths = hosts[row] - own.min(hosts[row]);
            found.paths += paths;
            found.exposed += paths * u64::from(shares.into_iter().any(|channel| is_hot[*channel]));
        }
    }
    found
}

struct Walker<'a> {
    graph: &'a SwitchGraph,
    subnet: &'a Subnet,
}

/// How a walk ends.
enum End {
    Arrived,
    Lost { kind: FaultKind, row: usize, port: Option<u8>, circle: Vec<usize> },
}

impl Walker<'_> {
    /// Follows the tables from a switch; the channels passed go into `passed`.
    fn walk(&self, from: usize, target: &Target, passed: &mut Vec<usize>) -> End {
        let lid = usize::from(target.lid.value());
        let mut row = from;
        passed.clear();
        let lost = |kind, row, port| End::Lost { kind, row, port, circle: Vec::new() };
        loop {
            let port = self.subnet.tables.row(row).get(lid).copied().unwrap_or(u8::MAX);
            if port == u8::MAX {
                return lost(FaultKind::NoEntry, row, None);
            }
            if passed.len() > self.graph.rows() {
                return self.circle(passed);
            }
            if usize::from(port) < self.graph.ports(row) {
                passed.push(self.graph.channel(row, port));
            }
            if row == target.row as usize && port == target.exit {
                return End::Arrived;
            }
            row = match self.graph.peer(row, port) {
                Peer::Switch { row: next, .. } => next as usize,
                Peer::Nothing if port != 0 => return lost(FaultKind::NoCable, row, Some(port)),
                _ => return lost(FaultKind::WrongEnd, row, Some(port)),
            };
        }
    }

    /// The loop that a walk longer than there are switches has come into.
    fn circle(&self, passed: &[usize]) -> End {
        let rows: Vec<usize> = passed.iter().map(|channel| self.graph.place(*channel).0).collect();
        let last = rows.last().copied().unwrap_or(0);
        let before = rows.iter().rev().skip(1).position(|row| *row == last).unwrap_or(0);
        let mut circle: Vec<usize> = rows[rows.len() - 1 - before..].to_vec();
        let first = (0..circle.len()).min_by_key(|at| circle[*at]).unwrap_or(0);
        circle.rotate_left(first);
        let row = circle.first().copied().unwrap_or(last);
        let port = passed.iter().map(|channel| self.graph.place(*channel));
        let port = port.filter(|(at, _)| *at == row).map(|(_, port)| port).next();
        End::Lost { kind: FaultKind::Loop, row, port, circle }
    }
}

/// Where paths end, and why; ordered for a table of them.
type Place = (FaultKind, usize, Option<u8>, Vec<usize>);

/// Paths that end at a place, the LIDs they lead to, and the first of these.
struct Lost {
    paths: u64,
    lids: u64,
    first: (Lid, Endpoint),
    /// The LID that was counted last.
    last: Option<Lid>,
}

struct Count {
    channels: Vec<u64>,
    /// By place.
    lost: BTreeMap<Place, Lost>,
    paths: u64,
}

impl Count {
    fn take(&mut self, walker: &Walker<'_>, row: usize, target: &Target, sources: u64) {
        if sources == 0 {
            return;
        }
        self.paths += sources;
        let mut passed = Vec::new();
        match walker.walk(row, target, &mut passed) {
            End::Arrived => {
                for channel in passed {
                    self.channels[channel] += sources;
                }
            }
            End::Lost { kind, row, port, circle } => {
                let first = (target.lid, target.owner.end);
                let new = || Lost { paths: 0, lids: 0, first, last: None };
                let found = self.lost.entry((kind, row, port, circle)).or_insert_with(new);
                found.paths += sources;
                if found.last.replace(target.lid) != Some(target.lid) {
                    found.lids += 1;
                }
            }
        }
    }

    fn usage(self, graph: &SwitchGraph) -> Usage {
        let port = |port: u8| PortNumber::new(port).unwrap_or(PortNumber::MANAGEMENT);
        let place = |((kind, row, at, circle), lost): (Place, Lost)| LostAt {
            kind,
            switch: graph.switch(row),
            port: at.map(port),
            paths: lost.paths,
            lids: lost.lids,
            lid: lost.first.0,
            host: lost.first.1,
            circle: circle.into_iter().map(|row| graph.switch(row)).collect(),
        };
        let mut lost_at: Vec<LostAt> = self.lost.into_iter().map(place).collect();
        lost_at.sort_by_key(|place| std::cmp::Reverse(place.paths));
        let used = self.channels.iter().enumerate().filter(|(_, paths)| **paths > 0);
        let crossing = used.map(|(channel, paths)| {
            let (row, at) = graph.place(channel);
            (Endpoint { node: graph.switch(row), port: port(at) }, *paths)
        });
        Usage {
            paths: self.paths,
            lost: lost_at.iter().map(|place| place.paths).sum(),
            crossing: crossing.collect(),
            lost_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::reachability;
    use crate::engines::{RouteOptions, route};
    use clearlane_fabric::NodeKind;
    use clearlane_fabric::topologies::build;

    fn routed(spec: &str) -> (Fabric, Subnet) {
        let fabric = build(spec).unwrap();
        let subnet = route("min-hop", &fabric, &RouteOptions::default()).unwrap();
        (fabric, subnet)
    }

    #[test]
    fn every_path_enters_its_host_and_crosses_as_many_links_as_it_passes_switches() {
        for spec in ["leaf-spine:leaves=3,hosts=2,spines=2", "torus:3x3", "star:5"] {
            let (fabric, subnet) = routed(spec);
            let (found, reached) = (usage(&fabric, &subnet), reachability(&fabric, &subnet));
            assert_eq!((found.paths, found.lost), (reached.pairs, 0), "{spec}");
            let crossed: u64 = found.outputs().map(|(_, paths)| paths).sum();
            let passed: u64 = (0..).zip(&reached.hops).map(|(hops, paths)| hops * paths).sum();
            assert_eq!(crossed, passed, "{spec}");
            for host in fabric.ids(NodeKind::ChannelAdapter) {
                let (_, _, peer) = fabric.neighbours(host).next().unwrap();
                assert_eq!(found.crossing(peer) as usize, reached.hosts - 1, "{spec}");
            }
        }
    }

    #[test]
    fn who_goes_where_hot_traffic_goes_is_exposed() {
        // One spine: whoever goes to the leaf of the hot host shares the cable down to it.
        let (fabric, subnet) = routed("leaf-spine:leaves=3,hosts=2,spines=1");
        let hot = fabric.ids(NodeKind::ChannelAdapter).next().unwrap();
        let (port, _, _) = fabric.neighbours(hot).next().unwrap();
        let found = exposure(&fabric, &subnet, &[Endpoint { node: hot, port }]);
        // Five others, to each of which five send. Hot traffic is on the cables from two leaves up,
        // over which two hosts each send to three others, and from the spine down to the first.
        assert_eq!((found.paths, found.exposed), (5 * 5, 2 * 3 + 2 * 3));
        let (fabric, subnet) = routed("star:5");
        let hot = fabric.ids(NodeKind::ChannelAdapter).next().unwrap();
        let (port, _, _) = fabric.neighbours(hot).next().unwrap();
        assert_eq!(exposure(&fabric, &subnet, &[Endpoint { node: hot, port }]).exposed, 0);
    }

    #[test]
    fn what_is_lost_is_counted_where_it_ends() {
        let (fabric, mut subnet) = routed("leaf-spine:leaves=3,hosts=2,spines=1");
        let hosts: Vec<NodeId> = fabric.ids(NodeKind::ChannelAdapter).collect();
        let switches: Vec<NodeId> = fabric.ids(NodeKind::Switch).collect();
        let lid = |host: NodeId| {
            let (port, _, _) = fabric.neighbours(host).next().unwrap();
            subnet.lids.base(Endpoint { node: host, port }).unwrap().0
        };
        let (first, last) = (lid(hosts[0]), lid(hosts[5]));
        let up = subnet.tables.port(switches[1], first);
        subnet.tables.set(switches[1], first, None);
        let spine =
            fabric.neighbours(switches[0]).find(|(_, _, peer)| fabric.node(peer.node).is_switch());
        let (back, _, peer) = spine.unwrap();
        // The spine sends what is for the last host to the first leaf, which sends it back.
        subnet.tables.set(peer.node, last, Some(peer.port));
        let found = usage(&fabric, &subnet);
        assert_eq!((found.lost, found.lost_at.len()), (2 + 4, 2));
        let [round, dead] = &found.lost_at[..] else { panic!("{found:?}") };
        assert_eq!((round.kind, round.paths, round.lids), (FaultKind::Loop, 4, 1));
        assert_eq!(round.circle, [switches[0], peer.node]);
        assert_eq!(round.port, Some(back));
        assert_eq!((round.lid, round.host.node), (last, hosts[5]));
        assert_eq!((dead.lid, dead.host.node), (first, hosts[0]));
        assert_eq!((dead.kind, dead.switch, dead.port), (FaultKind::NoEntry, switches[1], None));
        assert_eq!((dead.paths, dead.lids), (2, 1));
        let reached = reachability(&fabric, &subnet);
        assert_eq!(reached.pairs - reached.reached, found.lost);
        assert_ne!(up, None);
    }
}
