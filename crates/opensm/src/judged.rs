//! Whether tables are good for the fabric at hand: every pair of hosts that cables connect is
//! served, no packet goes round in circles and no circle of channels can wait for itself.

use crate::discovered::Discovered;
use clearlane_fabric::{Endpoint, Fabric, NodeId, NodeKind};
use clearlane_ib::{Lid, PortNumber, VirtualLane};
use clearlane_subnet::check::{credit_loop, reachability};
use clearlane_subnet::{PathSl, SlToVlTable, Subnet};

/// What is known of tables that are good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Served {
    /// Paths walked: hosts × LIDs of other hosts.
    pub(crate) paths: u64,
    /// True if packets may have any SL: the tables ask for none, and have no credit loop even where
    /// all packets are on one lane.
    pub(crate) any_level: bool,
}

/// Judges tables whose lanes are [bounded](bound). What is wrong is said in one line.
pub(crate) fn judge(found: &Discovered, subnet: &Subnet) -> Result<Served, String> {
    let report = reachability(&found.fabric, subnet);
    let paths = connected(found);
    if report.reached != paths {
        let lost = paths.saturating_sub(report.reached);
        let example = report.examples.first().map_or("", |fault| fault.text.as_str());
        return Err(format!("{lost} of {paths} paths do not arrive, such as {example}"));
    }
    let looped = |subnet: &Subnet| {
        let cycle = credit_loop(&found.fabric, subnet).cycle?;
        let first = cycle.channels.first()?;
        let at = &found.fabric.node(first.switch).name;
        let length = cycle.channels.len();
        Some(format!("a credit loop of {length} channels, one of them {at}[{}]", first.port))
    };
    if let Some(looped) = looped(subnet) {
        return Err(looped);
    }
    // Asked of tables that want no SL in particular alone.
    let any_level = matches!(subnet.path_sl, PathSl::Uniform(_))
        && looped(&subnet.on_one_lane(&found.fabric)).is_none();
    Ok(Served { paths, any_level })
}

/// Paths between hosts at switches that cables connect: what has to arrive. A host is an adapter
/// port, and adapters forward nothing.
fn connected(found: &Discovered) -> u64 {
    let parts = Parts::of(&found.fabric);
    let mut hosts = vec![(0u64, 0u64); found.fabric.nodes().len()];
    for adapter in found.fabric.ids(NodeKind::ChannelAdapter) {
        for (port, _, peer) in found.fabric.neighbours(adapter) {
            let lids = found.lids.base(Endpoint { node: adapter, port });
            if let Some((_, lmc)) = lids.filter(|_| found.fabric.node(peer.node).is_switch()) {
                let of = &mut hosts[parts.part(peer.node)];
                *of = (of.0 + 1, of.1 + u64::from(lmc.lids()));
            }
        }
    }
    hosts.iter().map(|(hosts, lids)| hosts.saturating_sub(1) * lids).sum()
}

/// Switches that cables connect.
struct Parts(Vec<usize>);

impl Parts {
    fn of(fabric: &Fabric) -> Self {
        let mut part: Vec<usize> = (0..fabric.nodes().len()).collect();
        for start in fabric.ids(NodeKind::Switch) {
            if part[start.index()] != start.index() {
                continue;
            }
            let mut queue = vec![start];
            while let Some(at) = queue.pop() {
                for (_, _, peer) in fabric.neighbours(at) {
                    let next = peer.node.index();
                    let fresh = next != start.index() && part[next] == next;
                    if fresh && fabric.node(peer.node).is_switch() {
                        part[next] = start.index();
                        queue.push(peer.node);
                    }
                }
            }
        }
        Parts(part)
    }

    fn part(&self, node: NodeId) -> usize {
        self.0[node.index()]
    }
}

/// Bounds lanes to what each link has: a port with n operational data VLs takes VL v as v mod n, as
/// OpenSM does where it programs the port.
pub(crate) fn bound(found: &Discovered, subnet: &mut Subnet) {
    let lanes = subnet.sl_to_vl.lanes();
    let fabric = &found.fabric;
    for switch in fabric.ids(NodeKind::Switch) {
        let ports = fabric.node(switch).port_count();
        let of: Vec<u8> = (0..=ports)
            .filter_map(PortNumber::new)
            .map(|port| found.lanes_of(Endpoint { node: switch, port }))
            .collect();
        if of.iter().any(|of| *of < lanes) {
            let table = bounded(subnet.sl_to_vl.table(switch), &of);
            subnet.sl_to_vl.set(switch, table);
        }
    }
    let of_adapters = fabric.ids(NodeKind::ChannelAdapter).flat_map(|node| {
        fabric.neighbours(node).map(move |(port, ..)| found.lanes_of(Endpoint { node, port }))
    });
    let least = of_adapters.min().unwrap_or(15);
    subnet.sl_to_vl.adapter = subnet.sl_to_vl.adapter.map(|lane| within(lane, least));
}

/// `of` has the lanes of every port, port 0 first.
fn bounded(table: &SlToVlTable, of: &[u8]) -> SlToVlTable {
    let stride = of.len();
    let mut rows = Vec::with_capacity(stride * stride);
    for input in 0..stride {
        for (output, lanes) in of.iter().enumerate() {
            let row = match table {
                SlToVlTable::Uniform(row) => row,
                SlToVlTable::PerPorts { stride, rows } => &rows[input * stride + output],
            };
            rows.push(row.map(|lane| within(lane, *lanes)));
        }
    }
    SlToVlTable::PerPorts { stride, rows }
}

fn within(lane: VirtualLane, lanes: u8) -> VirtualLane {
    VirtualLane::new(lane.value() % lanes).unwrap_or_default()
}

/// Takes out entries that no packet may follow: those for LIDs that nobody has, and those of
/// switches from which a packet would go round in circles. Host LIDs have none of the latter at any
/// switch that hosts send through, or [`judge`] would have refused. How many circled.
pub(crate) fn prune(found: &Discovered, subnet: &mut Subnet) -> usize {
    let switches = subnet.tables.switches().to_vec();
    let next: Vec<Vec<Option<usize>>> = switches
        .iter()
        .map(|switch| {
            let ports = (0..=found.fabric.node(*switch).port_count()).filter_map(PortNumber::new);
            let peer = |port| found.fabric.peer(Endpoint { node: *switch, port });
            ports.map(|port| subnet.tables.row_of(peer(port)?.node)).collect()
        })
        .collect();
    let mut circled = 0;
    for lid in (1..subnet.tables.columns()).filter_map(|lid| Lid::new(lid as u16)) {
        let owner = subnet.lids.owner(lid);
        let column = usize::from(lid.value());
        let port = |subnet: &Subnet, row: usize| usize::from(subnet.tables.row(row)[column]);
        let step = |row: usize| next[row].get(port(subnet, row)).copied().flatten();
        let circles = match owner {
            Some(_) => circles(switches.len(), step),
            None => vec![true; switches.len()],
        };
        for row in (0..switches.len()).filter(|row| circles[*row]) {
            circled += usize::from(owner.is_some());
            subnet.tables.row_mut(row)[column] = u8::MAX;
        }
    }
    circled
}

/// From which of so many rows one comes to a row that one has passed.
fn circles(rows: usize, step: impl Fn(usize) -> Option<usize>) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        Unknown,
        OnPath,
        Known(bool),
    }
    let mut states = vec![State::Unknown; rows];
    let mut path = Vec::new();
    for start in 0..rows {
        let mut at = Some(start);
        let circles = loop {
            let Some(row) = at else { break false };
            match states[row] {
                State::Known(circles) => break circles,
                State::OnPath => break true,
                State::Unknown => {}
            }
            states[row] = State::OnPath;
            path.push(row);
            at = step(row);
        };
        for row in path.drain(..) {
            states[row] = State::Known(circles);
        }
    }
    states.iter().map(|state| *state == State::Known(true)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_back_circles_and_who_leads_there_too() {
        let next = [Some(1), Some(2), Some(1), None, Some(3), Some(0), Some(6)];
        let expected = [true, true, true, false, false, true, true];
        assert_eq!(circles(next.len(), |row| next[row]), expected);
    }
}
