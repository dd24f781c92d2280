//! LIDs and service levels of ranks, as a subnet manager answers for them.

use crate::Hosts;
use crate::forward::Forwarding;
use clearlane_fabric::Fabric;
use clearlane_ib::{ServiceLevel, VirtualLane};
use clearlane_subnet::PathSl;
use clearlane_workload::Rank;

/// Pairs of switches up to which the service level of every pair is looked up once, before the run.
const TABLE_MAX: usize = 1 << 20;

/// LIDs and service levels of all ranks, read by all partitions.
pub(crate) struct Addressing {
    lids: Vec<u32>,
    levels: Levels,
    adapter_lanes: [VirtualLane; 16],
}

/// Service levels of paths.
enum Levels {
    /// The same for all.
    Uniform(u8),
    /// By the switches of source and destination; of LID offset 0 from a table, if there is one.
    BySwitch { rows: Vec<u32>, stride: usize, table: Vec<u8>, path_sl: PathSl },
}

impl Addressing {
    /// Those of the hosts of a fabric.
    pub(crate) fn new(fabric: &Fabric, hosts: &Hosts, forwarding: Forwarding<'_>) -> Self {
        let ranks = || (0..hosts.count() as u32).map(Rank);
        let Forwarding::Tables(subnet) = forwarding else {
            return Addressing {
                lids: ranks().map(|rank| rank.0).collect(),
                levels: Levels::Uniform(ServiceLevel::default().value()),
                adapter_lanes: [VirtualLane::default(); 16],
            };
        };
        // `check_tables` has seen a LID for every host and a switch at its port.
        let lid = |rank| subnet.lids.base(hosts.end(rank)).map_or(0, |(lid, _)| lid.value().into());
        let row = |rank| {
            let peer = fabric.peer(hosts.end(rank))?;
            subnet.tables.row_of(peer.node)
        };
        let levels = match &subnet.path_sl {
            PathSl::Uniform(sl) => Levels::Uniform(sl.value()),
            path_sl => {
                let rows: Vec<u32> = ranks().map(|rank| row(rank).unwrap_or(0) as u32).collect();
                let stride = subnet.tables.switches().len();
                let pairs = Some(stride * stride).filter(|pairs| *pairs <= TABLE_MAX);
                let level = |pair: usize| path_sl.level(pair / stride, pair % stride).value();
                let table = (0..pairs.unwrap_or(0)).map(level).collect();
                Levels::BySwitch { rows, stride, table, path_sl: path_sl.clone() }
            }
        };
        let lids = ranks().map(lid).collect();
        Addressing { lids, levels, adapter_lanes: subnet.sl_to_vl.adapter }
    }

    /// LID of a rank; its number where forwarding is by rule.
    #[inline(always)]
    pub(crate) fn lid(&self, rank: u32) -> u32 {
        self.lids[rank as usize]
    }

    /// Lane of a service level on the link from adapter to switch.
    #[inline(always)]
    pub(crate) fn lane(&self, sl: u8) -> VirtualLane {
        self.adapter_lanes[usize::from(sl & 15)]
    }

    /// Service level of a path.
    #[inline(always)]
    pub(crate) fn sl(&self, source: u32, destination: u32, path: u8) -> u8 {
        match &self.levels {
            Levels::Uniform(sl) => *sl,
            Levels::BySwitch { rows, stride, table, path_sl } => {
                let (from, to) =
                    (rows[source as usize] as usize, rows[destination as usize] as usize);
                match table.get(from * stride + to) {
                    Some(sl) if path == 0 => *sl,
                    _ => path_sl.level_at(from, to, path.into()).value(),
                }
            }
        }
    }
}
