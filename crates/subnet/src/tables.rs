//! What switches and adapters are programmed with. Everything the simulator forwards by is here,
//! in the form a real subnet manager would write it to the devices.

use crate::{AdaptiveGroups, LidMap, PathSl};
use clearlane_fabric::{Fabric, NodeId, NodeKind};
use clearlane_ib::{Guid, Lid, PortNumber, ServiceLevel, VirtualLane};

/// The linear forwarding tables (IBA vol. 1, 14.2.5.10) of all switches, one byte per entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForwardingTables {
    switches: Vec<NodeId>,
    /// Position in `switches` by node, `u32::MAX` for adapters.
    row_of: Vec<u32>,
    columns: usize,
    ports: Vec<u8>,
}

/// "No port": packets to this LID are discarded, so a checker must complain about it.
const NO_PORT: u8 = 255;

impl ForwardingTables {
    /// Tables with no entry yet, for LIDs below `columns`.
    pub fn empty(fabric: &Fabric, columns: usize) -> Self {
        let switches: Vec<NodeId> = fabric.ids(NodeKind::Switch).collect();
        let mut row_of = vec![u32::MAX; fabric.nodes().len()];
        for (row, switch) in switches.iter().enumerate() {
            row_of[switch.index()] = row as u32;
        }
        let ports = vec![NO_PORT; switches.len() * columns];
        ForwardingTables { switches, row_of, columns, ports }
    }

    /// The switches, in the order of the rows.
    pub fn switches(&self) -> &[NodeId] {
        &self.switches
    }

    /// The row of a switch; nothing for an adapter.
    pub fn row_of(&self, node: NodeId) -> Option<usize> {
        match self.row_of.get(node.index()) {
            Some(&row) if row != u32::MAX => Some(row as usize),
            _ => None,
        }
    }

    /// Where `switch` sends packets for `lid`.
    pub fn port(&self, switch: NodeId, lid: Lid) -> Option<PortNumber> {
        let (row, lid) = (self.row_of(switch)?, usize::from(lid.value()));
        if lid >= self.columns {
            return None;
        }
        PortNumber::new(self.ports[row * self.columns + lid])
    }

    /// Programs one entry. `switch` must be a switch and `lid` below the number of columns.
    pub fn set(&mut self, switch: NodeId, lid: Lid, port: Option<PortNumber>) {
        let row = self.row_of[switch.index()] as usize;
        self.ports[row * self.columns + usize::from(lid.value())] =
            port.map_or(NO_PORT, PortNumber::value);
    }

    /// One switch's table, indexed by LID; 255 is "no port".
    pub fn row(&self, row: usize) -> &[u8] {
        &self.ports[row * self.columns..(row + 1) * self.columns]
    }

    /// One switch's table to be filled in bulk by an engine.
    pub fn row_mut(&mut self, row: usize) -> &mut [u8] {
        &mut self.ports[row * self.columns..(row + 1) * self.columns]
    }

    /// Entries per switch: one more than the largest LID.
    pub fn columns(&self) -> usize {
        self.columns
    }
}

/// One switch's mapping (input port, output port, SL) → VL (IBA vol. 1, 14.2.5.8).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SlToVlTable {
    /// The same row for every pair of ports.
    Uniform([VirtualLane; 16]),
    /// `(ports + 1)²` rows, indexed `input * (ports + 1) + output`; port 0 included.
    PerPorts {
        /// Ports + 1.
        stride: usize,
        /// The rows.
        rows: Vec<[VirtualLane; 16]>,
    },
}

impl SlToVlTable {
    /// A table in which every output has one lane per SL: `lane(output, sl)`.
    pub(crate) fn by_output(ports: u8, lane: impl Fn(u8, u8) -> VirtualLane) -> Self {
        let stride = usize::from(ports) + 1;
        let row: Vec<[VirtualLane; 16]> =
            (0..=ports).map(|output| std::array::from_fn(|sl| lane(output, sl as u8))).collect();
        let mut rows = Vec::with_capacity(stride * stride);
        for _ in 0..stride {
            rows.extend_from_slice(&row);
        }
        SlToVlTable::PerPorts { stride, rows }
    }

    /// Its rows: one for all pairs of ports, or one for each.
    pub fn rows(&self) -> &[[VirtualLane; 16]] {
        match self {
            SlToVlTable::Uniform(row) => std::slice::from_ref(row),
            SlToVlTable::PerPorts { rows, .. } => rows,
        }
    }

    /// The lane a packet takes.
    pub fn lane(&self, input: PortNumber, output: PortNumber, sl: ServiceLevel) -> VirtualLane {
        let sl = usize::from(sl.value());
        match self {
            SlToVlTable::Uniform(row) => row[sl],
            SlToVlTable::PerPorts { stride, rows } => {
                rows[usize::from(input.value()) * stride + usize::from(output.value())][sl]
            }
        }
    }
}

/// SL2VL of every switch, equal tables stored once, and the one mapping adapters use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlToVl {
    tables: Vec<SlToVlTable>,
    /// Index into `tables` by node; adapters hold 0 and use `adapter`.
    of_node: Vec<u32>,
    /// SL → VL on the link from an adapter to its switch.
    pub adapter: [VirtualLane; 16],
}

impl SlToVl {
    /// Every switch and adapter maps SL s to VL s mod `lanes`, 1..=15.
    pub fn modulo(fabric: &Fabric, lanes: u8) -> Self {
        let row = std::array::from_fn(|sl| {
            VirtualLane::new(sl as u8 % lanes.clamp(1, 15)).unwrap_or_default()
        });
        SlToVl {
            tables: vec![SlToVlTable::Uniform(row)],
            of_node: vec![0; fabric.nodes().len()],
            adapter: row,
        }
    }

    /// Gives a switch a table of its own, or shares it with an equal one.
    pub fn set(&mut self, switch: NodeId, table: SlToVlTable) {
        let index = self.tables.iter().position(|known| *known == table).unwrap_or_else(|| {
            self.tables.push(table);
            self.tables.len() - 1
        });
        self.of_node[switch.index()] = index as u32;
    }

    /// The table of a switch.
    pub fn table(&self, switch: NodeId) -> &SlToVlTable {
        &self.tables[self.of_node[switch.index()] as usize]
    }

    /// The distinct tables; `table_index` points into them.
    pub fn tables(&self) -> &[SlToVlTable] {
        &self.tables
    }

    /// Which of [`SlToVl::tables`] a switch uses.
    pub fn table_index(&self, switch: NodeId) -> usize {
        self.of_node[switch.index()] as usize
    }

    /// Whether packets of two service levels are on one lane anywhere: from an adapter, or from any
    /// input of a switch to the same output.
    pub fn share_a_lane(&self, a: ServiceLevel, b: ServiceLevel) -> bool {
        let (a, b) = (usize::from(a.value()), usize::from(b.value()));
        let of_output = |table: &SlToVlTable| match table {
            SlToVlTable::Uniform(row) => row[a] == row[b],
            SlToVlTable::PerPorts { stride, rows } => (1..*stride).any(|output| {
                let lanes = |sl: usize| {
                    let rows = rows.iter().skip(output).step_by(*stride);
                    rows.fold(0u16, |all, row| all | 1 << row[sl].value())
                };
                lanes(a) & lanes(b) != 0
            }),
        };
        self.adapter[a] == self.adapter[b] || self.tables.iter().any(of_output)
    }

    /// One more than the highest lane any table names.
    pub fn lanes(&self) -> u8 {
        let mut top = self.adapter.iter().map(|vl| vl.value()).max().unwrap_or(0);
        for table in &self.tables {
            top = table.rows().iter().flatten().map(|vl| vl.value()).max().unwrap_or(0).max(top);
        }
        top + 1
    }
}

/// One entry of an arbitration table: a lane and how much it may send at a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VlWeight {
    /// The lane.
    pub vl: VirtualLane,
    /// In units of 64 bytes, 0..=255; 0 skips the entry (IBA vol. 1, 7.6.9).
    pub weight: u8,
}

/// VL arbitration of every port (IBA vol. 1, 7.6.9): two weighted tables and a limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VlArbitration {
    /// High-priority table.
    pub high: Vec<VlWeight>,
    /// Low-priority table.
    pub low: Vec<VlWeight>,
    /// How many units of 4,096 bytes the high table may send before a low packet gets its turn;
    /// 0 is one packet, 255 is no limit.
    pub high_limit: u8,
}

impl VlArbitration {
    /// All lanes in the low table with one weight: none starves another.
    pub fn equal(lanes: u8) -> Self {
        let entry = |vl| VlWeight { vl: VirtualLane::new(vl).unwrap_or_default(), weight: 64 };
        VlArbitration {
            high: Vec::new(),
            low: (0..lanes.clamp(1, 15)).map(entry).collect(),
            high_limit: 0,
        }
    }
}

/// A fabric with everything a subnet manager put into it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subnet {
    /// Who answers to which LID.
    pub lids: LidMap,
    /// Linear forwarding tables.
    pub tables: ForwardingTables,
    /// Among which ports switches may choose; nothing where the tables alone decide everywhere.
    pub adaptive: Option<AdaptiveGroups>,
    /// SL → VL.
    pub sl_to_vl: SlToVl,
    /// VL arbitration, the same on every port.
    pub vl_arbitration: VlArbitration,
    /// SL of a path.
    pub path_sl: PathSl,
    /// Name of the routing engine that filled the tables.
    pub engine: String,
    /// What the engine says of its work where nothing is amiss, a line each: lanes used, lengths.
    pub notes: Vec<String>,
    /// Warnings from building the tables, one line each: hosts that cannot be reached,
    /// entries of a file that were passed over, a tree that is not whole.
    pub remarks: Vec<String>,
    /// Switches that files have tables of and the fabric does not have.
    pub unknown_switches: Vec<Guid>,
}

impl Subnet {
    /// One more than the highest lane that a path can be on between two cabled ports of a switch.
    pub fn lanes_in_use(&self, fabric: &Fabric) -> u8 {
        let levels = self.path_sl.levels();
        let highest = self.tables.switches().iter().flat_map(|switch| {
            let ports: Vec<PortNumber> =
                fabric.neighbours(*switch).map(|(port, ..)| port).collect();
            let table = self.sl_to_vl.table(*switch);
            let pairs =
                ports.iter().flat_map(|input| ports.iter().map(move |output| (input, output)));
            let lanes = pairs.map(|(input, output)| {
                levels.iter().map(|level| table.lane(*input, *output, *level).value()).max()
            });
            lanes.max().flatten()
        });
        highest.max().unwrap_or(0) + 1
    }

    /// The same tables with every packet on SL 0 and one lane.
    pub fn on_one_lane(&self, fabric: &Fabric) -> Self {
        Subnet {
            path_sl: PathSl::Uniform(ServiceLevel::default()),
            sl_to_vl: SlToVl::modulo(fabric, 1),
            ..self.clone()
        }
    }

    /// The subnet with one LID offset of every port alone, as if it had LMC 0: what tools can judge
    /// that know no LMC.
    pub fn at_offset(&self, offset: u16) -> Self {
        let mut subnet = Subnet {
            lids: self.lids.at_offset(offset),
            path_sl: self.path_sl.of_offset(offset),
            ..self.clone()
        };
        for row in 0..subnet.tables.switches().len() {
            for (lid, port) in subnet.tables.row_mut(row).iter_mut().enumerate() {
                let owner = Lid::new(lid as u16).and_then(|lid| subnet.lids.owner(lid));
                if owner.is_none() {
                    *port = NO_PORT;
                }
            }
        }
        subnet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_fabric::topologies::build;

    /// SL 1 is on VL 1 everywhere, SL 0 on it from input 2 to output 1 only.
    #[test]
    fn levels_share_a_lane_if_any_input_puts_both_on_it() {
        let fabric = build("star:2").unwrap();
        let level = |sl| ServiceLevel::new(sl).unwrap();
        let one = VirtualLane::new(1).unwrap();
        let stride = 3;
        let mut apart = [VirtualLane::default(); 16];
        apart[1] = one;
        let mut rows = vec![apart; stride * stride];
        let mut lanes = SlToVl::modulo(&fabric, 2);
        let switch = fabric.ids(NodeKind::Switch).next().unwrap();
        lanes.set(switch, SlToVlTable::PerPorts { stride, rows: rows.clone() });
        assert!(!lanes.share_a_lane(level(0), level(1)));
        rows[2 * stride + 1][0] = one;
        lanes.set(switch, SlToVlTable::PerPorts { stride, rows });
        assert!(lanes.share_a_lane(level(0), level(1)));
    }
}
