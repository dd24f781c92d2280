//! LIDs and service levels of adapters' ports, as a subnet manager answers for them.

use crate::Hosts;
use crate::forwarding::Forwarding;
use crate::saved::HostLids;
use clearlane_fabric::{Endpoint, Fabric};
use clearlane_ib::{ServiceLevel, VirtualLane};
use clearlane_subnet::PathSl;

/// Pairs of ends up to which the service level of every pair is looked up once, before the run.
const TABLE_MAX: usize = 1 << 20;

/// LIDs and service levels of all ports of adapters, read by all partitions. A port is known by its
/// place among all in the order of ranks; where each rank has one, by its rank.
pub(crate) struct Addressing {
    lids: Vec<u32>,
    /// By rank, and once more at the end: its first port. Empty where each has one.
    first: Vec<u32>,
    /// LIDs that every port has.
    paths: u32,
    levels: Levels,
    adapter_lanes: [VirtualLane; 16],
}

/// Service levels of paths.
enum Levels {
    /// The same for all.
    Uniform(u8),
    /// By the ends of source and destination, as `PathSl` has them; of LID offset 0 from a table,
    /// if there is one.
    ByEnds { ends: Vec<u32>, stride: usize, table: Vec<u8>, path_sl: PathSl },
}

impl Addressing {
    /// Those of the hosts of a fabric.
    pub(crate) fn new(fabric: &Fabric, hosts: &Hosts, forwarding: Forwarding<'_>) -> Self {
        let several = hosts.has_several_ports();
        let first = if several { hosts.first_ports().to_vec() } else { Vec::new() };
        let ports = hosts.all_ports();
        let Forwarding::Tables(subnet) = forwarding else {
            return Addressing {
                lids: (0..ports.len() as u32).collect(),
                first,
                paths: 1,
                levels: Levels::Uniform(ServiceLevel::default().value()),
                adapter_lanes: [VirtualLane::default(); 16],
            };
        };
        // `check_tables` has seen a LID for every port and a switch at its other end; where pairs
        // may be dead, nobody sends to a port without one.
        let lid =
            |port: &Endpoint| subnet.lids.base(*port).map_or(0, |(lid, _)| lid.value().into());
        let row = |port: &Endpoint| {
            let peer = fabric.peer(*port)?;
            subnet.tables.row_of(peer.node)
        };
        let levels = match &subnet.path_sl {
            PathSl::Uniform(sl) => Levels::Uniform(sl.value()),
            path_sl => {
                let end = |port: &Endpoint| {
                    let (lid, _) = subnet.lids.base(*port)?;
                    Some(path_sl.end(row(port)?, lid) as u32)
                };
                let ends: Vec<u32> = ports.iter().map(|port| end(port).unwrap_or(0)).collect();
                let stride = path_sl.ends(subnet.tables.switches().len());
                let pairs = Some(stride * stride).filter(|pairs| *pairs <= TABLE_MAX);
                let level = |pair: usize| path_sl.level(pair / stride, pair % stride).value();
                let table = (0..pairs.unwrap_or(0)).map(level).collect();
                Levels::ByEnds { ends, stride, table, path_sl: path_sl.clone() }
            }
        };
        let lids = ports.iter().map(lid).collect();
        let paths = hosts.paths(subnet).into();
        Addressing { lids, first, paths, levels, adapter_lanes: subnet.sl_to_vl.adapter }
    }

    /// The LIDs of all hosts, in their order.
    pub(crate) fn host_lids(&self) -> HostLids {
        let ports = self.lids.len() as u32;
        let host = |port: u32| match self.first.is_empty() {
            true => port,
            false => self.first.partition_point(|first| *first <= port) as u32 - 1,
        };
        let of = |port: u32| (self.lids[port as usize], self.paths, host(port));
        let mut lids: Vec<(u32, u32, u32)> = (0..ports).map(of).collect();
        lids.sort_unstable();
        HostLids(lids)
    }

    /// A path there is for one that was asked for.
    pub(crate) fn path(&self, asked: u8) -> u8 {
        (u32::from(asked) % self.paths) as u8
    }

    /// LID of a port; its number where forwarding is by rule.
    #[inline(always)]
    pub(crate) fn lid(&self, port: u32) -> u32 {
        self.lids[port as usize]
    }

    /// A port of a rank, counted from 0.
    #[inline(always)]
    pub(crate) fn port(&self, rank: u32, number: u8) -> u32 {
        match self.first.get(rank as usize) {
            None => rank,
            Some(first) => first + u32::from(number),
        }
    }

    /// How many ports a rank has.
    pub(crate) fn ports(&self, rank: u32) -> u32 {
        let rank = rank as usize;
        self.first.get(rank + 1).map_or(1, |end| end - self.first[rank])
    }

    /// Lane of a service level on the link from adapter to switch.
    #[inline(always)]
    pub(crate) fn lane(&self, sl: u8) -> VirtualLane {
        self.adapter_lanes[usize::from(sl & 15)]
    }

    /// Service level of a path between two ports.
    #[inline(always)]
    pub(crate) fn sl(&self, source: u32, destination: u32, path: u8) -> u8 {
        match &self.levels {
            Levels::Uniform(sl) => *sl,
            Levels::ByEnds { ends, stride, table, path_sl } => {
                let (from, to) =
                    (ends[source as usize] as usize, ends[destination as usize] as usize);
                match table.get(from * stride + to) {
                    Some(sl) if path == 0 => *sl,
                    _ => path_sl.level_at(from, to, path.into()).value(),
                }
            }
        }
    }
}
