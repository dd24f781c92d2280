//! How many messages wait at each adapter on each lane, where open-loop traffic is bounded by it.

use clearlane_fabric::{Endpoint, Fabric};
use clearlane_ib::{ServiceLevel, VirtualLane};
use clearlane_sim::{Forwarding, GroupSettings, Hosts};
use clearlane_subnet::{PathSl, Subnet};

const LANES: usize = 16;

/// Messages that have not left whole, by port and lane. Nothing is counted without a bound.
pub(crate) struct Backlog {
    most: Option<u32>,
    waiting: Vec<u32>,
    /// By group: a service level by hand.
    levels: Vec<Option<ServiceLevel>>,
    /// Where forwarding is by tables: the service levels of paths.
    paths: Option<Paths>,
}

struct Paths {
    /// By port of a host: its end, as `PathSl` has them.
    ends: Vec<usize>,
    levels: PathSl,
    lanes: [VirtualLane; LANES],
}

impl Backlog {
    /// Nothing waits. With such a bound a message of open-loop traffic is left out for which so many
    /// wait.
    pub(crate) fn new(
        most: Option<u32>,
        fabric: &Fabric,
        hosts: &Hosts,
        forwarding: Forwarding<'_>,
        groups: &[GroupSettings],
    ) -> Self {
        let ports = hosts.all_ports();
        let paths = match (most, forwarding) {
            (Some(_), Forwarding::Tables(subnet)) => Some(Paths::new(fabric, ports, subnet)),
            _ => None,
        };
        let waiting = vec![0; most.map_or(0, |_| ports.len() * LANES)];
        Backlog { most, waiting, levels: groups.iter().map(|group| group.sl).collect(), paths }
    }

    /// The lane of a message of a group from one port to another, on path 0: it is asked for where
    /// there is a bound.
    pub(crate) fn lane(&self, group: u16, from: u32, to: u32) -> u8 {
        let Some(paths) = &self.paths else { return 0 };
        let by_hand = self.levels[usize::from(group)];
        let (from, to) = (paths.ends[from as usize], paths.ends[to as usize]);
        let level = by_hand.unwrap_or_else(|| paths.levels.level(from, to));
        paths.lanes[usize::from(level.value()) % LANES].value()
    }

    /// Whether another message is left out.
    pub(crate) fn is_full(&self, port: u32, lane: u8) -> bool {
        self.most.is_some_and(|most| self.waiting[place(port, lane)] >= most)
    }

    /// A message begins to wait.
    pub(crate) fn joins(&mut self, port: u32, lane: u8) {
        if let Some(waiting) = self.waiting.get_mut(place(port, lane)) {
            *waiting += 1;
        }
    }

    /// A message has left whole.
    pub(crate) fn leaves(&mut self, port: u32, lane: u8) {
        if let Some(waiting) = self.waiting.get_mut(place(port, lane)) {
            *waiting -= 1;
        }
    }
}

impl Paths {
    fn new(fabric: &Fabric, ports: &[Endpoint], subnet: &Subnet) -> Self {
        let end = |port: &Endpoint| {
            let (lid, _) = subnet.lids.base(*port)?;
            let row = subnet.tables.row_of(fabric.peer(*port)?.node)?;
            Some(subnet.path_sl.end(row, lid))
        };
        let ends = ports.iter().map(|port| end(port).unwrap_or(0)).collect();
        Paths { ends, levels: subnet.path_sl.clone(), lanes: subnet.sl_to_vl.adapter }
    }
}

fn place(port: u32, lane: u8) -> usize {
    port as usize * LANES + usize::from(lane) % LANES
}
