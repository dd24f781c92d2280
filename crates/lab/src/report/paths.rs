//! The ways of flows through the tables, as channels of a run.

use crate::measure::ChannelFigures;
use crate::prepare::Prepared;
use crate::routes::Routed;
use clearlane_fabric::Endpoint;
use clearlane_ib::ServiceLevel;
use clearlane_ib::random::Stream;
use clearlane_subnet::Subnet;
use clearlane_workload::{FlowGroup, Rank};
use std::collections::BTreeMap;

/// How often a sender draws where its destinations are not recorded.
const DRAWS: usize = 8;

/// A way through the fabric.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Path {
    /// Channels by their index in the run's figures.
    pub(super) channels: Vec<u32>,
    /// The lane on each.
    pub(super) lanes: Vec<u8>,
}

impl Path {
    /// Channel and lane of each step.
    pub(super) fn queues(&self) -> impl Iterator<Item = (u32, u8)> + '_ {
        self.channels.iter().copied().zip(self.lanes.iter().copied())
    }
}

/// Finds ways in the tables of a variant.
pub(super) struct Paths<'a> {
    prepared: &'a Prepared,
    subnet: &'a Subnet,
    channels: &'a [ChannelFigures],
}

impl<'a> Paths<'a> {
    /// Over `channels`, which are sorted by node and port. Nothing where forwarding is by rule:
    /// there are no tables to follow.
    pub(super) fn new(prepared: &'a Prepared, channels: &'a [ChannelFigures]) -> Option<Self> {
        match &prepared.routed {
            Routed::Tables(subnet) => Some(Paths { prepared, subnet, channels }),
            Routed::Rule(..) => None,
        }
    }

    /// The way from one host to another, the sender's channel first: that of packets to the
    /// destination's base LID. Without a service level of its own, the traffic has the path's.
    /// Nothing if the tables do not lead there.
    pub(super) fn path(&self, from: Rank, to: Rank, sl: Option<ServiceLevel>) -> Option<Path> {
        let fabric = &self.prepared.fabric;
        let hosts = &self.prepared.hosts;
        let count = hosts.count() as u32;
        if from.0 >= count || to.0 >= count {
            return None;
        }
        let (mut at, target) = hosts.ports_between(from, to);
        let (lid, _) = self.subnet.lids.base(target)?;
        let sl = match sl {
            Some(sl) => sl,
            None => self.subnet.path_sl.level(self.end(at)?, self.end(target)?),
        };
        let mut lane = self.subnet.sl_to_vl.adapter[usize::from(sl.value())];
        let mut path = Path::default();
        // A way with a loop in it does not end: it is given up.
        while path.channels.len() <= fabric.nodes().len() {
            path.channels.push(self.channel(at)?);
            path.lanes.push(lane.value());
            let next = fabric.peer(at)?;
            if next == target {
                return Some(path);
            }
            let output = self.subnet.tables.port(next.node, lid)?;
            lane = self.subnet.sl_to_vl.table(next.node).lane(next.port, output, sl);
            at = Endpoint { node: next.node, port: output };
        }
        None
    }

    /// What the SL depends on at a host.
    fn end(&self, host: Endpoint) -> Option<usize> {
        let row = self.subnet.tables.row_of(self.prepared.fabric.peer(host)?.node)?;
        let (lid, _) = self.subnet.lids.base(host)?;
        Some(self.subnet.path_sl.end(row, lid))
    }

    fn channel(&self, end: Endpoint) -> Option<u32> {
        let key = (end.node.0, end.port.value());
        let found =
            self.channels.binary_search_by_key(&key, |channel| (channel.node, channel.port));
        found.ok().map(|index| index as u32)
    }
}

/// How often the senders of a group draw each destination: a sample of its flows, the same for
/// every seed.
pub(super) fn drawn(group: &FlowGroup, purpose: &'static str) -> BTreeMap<(Rank, Rank), u64> {
    let mut counts = BTreeMap::new();
    let Some(offered) = group.offered() else { return counts };
    for sender in &group.senders {
        let mut stream = Stream::new(0, purpose, u64::from(sender.0));
        for _ in 0..DRAWS {
            if let Some(to) = offered.destinations.draw(*sender, &mut stream) {
                *counts.entry((*sender, to)).or_insert(0) += 1;
            }
        }
    }
    counts
}
