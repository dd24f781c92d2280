//! The links that messages take: as the tables say, or the rule.

use crate::links::{LinkNumber, Links, NONE};
use clearlane_fabric::{Fabric, NodeId, NodeKind};
use clearlane_sim::{Forwarding, GridForwarder, Hosts, SetupError};
use clearlane_subnet::Subnet;

/// What leads to no switch.
const NO_SWITCH: u32 = u32::MAX;

/// What a switch sends packets on by.
enum By {
    /// Its table: by row and LID the port, 255 for none.
    Tables {
        ports: Vec<u8>,
        columns: usize,
        /// By port of a host: its base LID, 0 for none.
        lids: Vec<u16>,
        /// LIDs that every port has.
        paths: u8,
    },
    /// Dimension order.
    Rule(Box<GridForwarder>),
}

/// From everywhere to everywhere.
pub(crate) struct Routes {
    by: By,
    /// By switch, in the order of nodes: the channel of its port 1, and how many ports it has.
    switches: Vec<(LinkNumber, u8)>,
    /// By channel: the switch that it leads to, or `NO_SWITCH`.
    far: Vec<u32>,
    /// By port of a host: the switch it is plugged into, and that switch's channel to it.
    plugs: Vec<(u32, LinkNumber)>,
}

impl Routes {
    /// Those of a fabric whose channels these are. Fails where there is a rule that it does not fit.
    pub(crate) fn new(
        fabric: &Fabric,
        hosts: &Hosts,
        forwarding: Forwarding<'_>,
        links: &Links,
    ) -> Result<Self, SetupError> {
        let by = match forwarding {
            Forwarding::Tables(subnet) => tables(hosts, subnet),
            Forwarding::DimensionOrder(grid, ties) => {
                By::Rule(Box::new(GridForwarder::new(fabric, (grid, ties), hosts)?))
            }
        };
        let ids: Vec<NodeId> = fabric.ids(NodeKind::Switch).collect();
        let mut number = vec![NO_SWITCH; fabric.nodes().len()];
        for (switch, id) in (0..).zip(&ids) {
            number[id.index()] = switch;
        }
        let first = |id: NodeId| links.first[id.index()];
        let switches = ids.iter().map(|id| (first(*id), fabric.node(*id).port_count())).collect();
        let far = |channel: &crate::links::Channel| {
            fabric.peer(channel.end).map_or(NO_SWITCH, |peer| number[peer.node.index()])
        };
        let far = links.channels.iter().map(far).collect();
        let plug = |port: &clearlane_fabric::Endpoint| match fabric.peer(*port) {
            Some(peer) if number[peer.node.index()] != NO_SWITCH => {
                let exit = first(peer.node) + u32::from(peer.port.value()) - 1;
                (number[peer.node.index()], exit)
            }
            _ => (NO_SWITCH, NONE),
        };
        let plugs = hosts.all_ports().iter().map(plug).collect();
        Ok(Routes { by, switches, far, plugs })
    }

    /// A path there is for one that was asked for.
    pub(crate) fn path(&self, asked: u8) -> u8 {
        match &self.by {
            By::Tables { paths, .. } => asked % paths,
            By::Rule(_) => 0,
        }
    }

    /// Whether there is a way from every switch to every port of a host, on all paths.
    pub(crate) fn lead_everywhere(&self) -> bool {
        let By::Tables { paths, .. } = self.by else { return true };
        // By switch: the last walk on which it was found to lead there.
        let mut leads = vec![0u64; self.switches.len()];
        let ways =
            (0..self.plugs.len() as u32).flat_map(|to| (0..paths).map(move |path| (to, path)));
        let mut seen = Vec::new();
        for ((to, path), walk) in ways.zip(1..) {
            let (_, exit) = self.plugs[to as usize];
            for start in 0..self.switches.len() as u32 {
                let mut switch = start;
                seen.clear();
                while leads.get(switch as usize) != Some(&walk) {
                    let output = self.output(switch, to, path, exit);
                    let Some(channel) = output.filter(|_| seen.len() <= self.switches.len()) else {
                        return false;
                    };
                    seen.push(switch);
                    if channel == exit {
                        break;
                    }
                    switch = self.far[channel as usize];
                }
                seen.iter().for_each(|switch| leads[*switch as usize] = walk);
            }
        }
        true
    }

    /// Adds the channels of switches on the way from one port of a host to another; the last one
    /// leads to the host. False if there is no way, or it leads in a circle.
    pub(crate) fn walk(&self, from: u32, to: u32, path: u8, route: &mut Vec<LinkNumber>) -> bool {
        let ((mut switch, _), (_, exit)) = (self.plugs[from as usize], self.plugs[to as usize]);
        for _ in 0..=self.switches.len() {
            let Some(channel) = self.output(switch, to, path, exit) else { return false };
            route.push(channel);
            if channel == exit {
                return true;
            }
            switch = self.far[channel as usize];
        }
        false
    }

    /// The channel by which a switch sends on what is for a port of a host.
    fn output(&self, switch: u32, to: u32, path: u8, exit: LinkNumber) -> Option<LinkNumber> {
        let (first, ports) = *self.switches.get(switch as usize)?;
        let port = match &self.by {
            By::Tables { ports: table, columns, lids, .. } => {
                let lid = usize::from(lids[to as usize].checked_add(path.into())?);
                if lid >= *columns || lids[to as usize] == 0 {
                    return None;
                }
                table[switch as usize * columns + lid]
            }
            By::Rule(rule) => match rule.output(switch, to) {
                Some(port) => port.value(),
                None => return Some(exit),
            },
        };
        (1..=ports).contains(&port).then(|| first + u32::from(port) - 1)
    }
}

fn tables(hosts: &Hosts, subnet: &Subnet) -> By {
    // Rows are in the order of switches, which is that of nodes.
    let rows = 0..subnet.tables.switches().len();
    let ports = rows.flat_map(|row| subnet.tables.row(row).iter().copied()).collect();
    let lid = |port: &clearlane_fabric::Endpoint| {
        subnet.lids.base(*port).map_or(0, |(lid, _)| lid.value())
    };
    let lids = hosts.all_ports().iter().map(lid).collect();
    By::Tables { ports, columns: subnet.tables.columns(), lids, paths: hosts.paths(subnet).max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_fabric::{structure, topologies};
    use clearlane_sim::{Ties, preset};
    use clearlane_subnet::engines::{self, RouteOptions};

    /// By tables and by rule a route begins at the source's switch, ends at the destination, and
    /// goes by cables.
    #[test]
    fn routes_go_by_cables_from_switch_to_host() {
        let fabric = topologies::build("torus:4x3").unwrap();
        let hosts = Hosts::of(&fabric);
        let links = Links::new(&fabric, &hosts, &(preset::ALL[0].parameters)());
        let engine = engines::engine("dor").unwrap();
        let subnet =
            engine.fill(&fabric, &RouteOptions { lanes: 2, ..RouteOptions::default() }).unwrap();
        let grid = structure::grid(&fabric).unwrap();
        let all = [Forwarding::Tables(&subnet), Forwarding::DimensionOrder(&grid, Ties::Both)];
        for forwarding in all {
            let routes = Routes::new(&fabric, &hosts, forwarding, &links).unwrap();
            assert!(routes.lead_everywhere());
            for (from, to) in (0..12).flat_map(|from| (0..12).map(move |to| (from, to))) {
                let mut route = Vec::new();
                assert!(routes.walk(from, to, 0, &mut route));
                let mut at = fabric.peer(hosts.all_ports()[from as usize]).unwrap();
                for channel in &route {
                    let end = links.channels[*channel as usize].end;
                    assert_eq!(end.node, at.node);
                    at = fabric.peer(end).unwrap();
                }
                assert_eq!(at, hosts.all_ports()[to as usize]);
                // At most two links in a dimension of four and one in one of three.
                assert!(route.len() <= 4);
            }
        }
    }

    #[test]
    fn a_circle_is_no_route() {
        let fabric = topologies::build("torus:4x3").unwrap();
        let hosts = Hosts::of(&fabric);
        let links = Links::new(&fabric, &hosts, &(preset::ALL[0].parameters)());
        let engine = engines::engine("dor").unwrap();
        let mut subnet =
            engine.fill(&fabric, &RouteOptions { lanes: 2, ..RouteOptions::default() }).unwrap();
        let (lid, _) = subnet.lids.base(hosts.all_ports()[5]).unwrap();
        let up = clearlane_ib::PortNumber::new(1);
        for switch in fabric.ids(NodeKind::Switch) {
            subnet.tables.set(switch, lid, up);
        }
        let routes = Routes::new(&fabric, &hosts, Forwarding::Tables(&subnet), &links).unwrap();
        assert!(!routes.lead_everywhere());
        assert!(!routes.walk(0, 5, 0, &mut Vec::new()));
        assert!(routes.walk(0, 6, 0, &mut Vec::new()));
    }
}
