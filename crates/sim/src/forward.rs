//! How a switch chooses the output port and lane of a packet.

use crate::forwarding::{Forwarding, Ties};
use crate::model::{Adaptive, Forwarder};
use crate::packet::Packet;
use crate::records::{Records, index};
use crate::{Hosts, SetupError};
use clearlane_fabric::structure::Grid;
use clearlane_fabric::{Endpoint, Fabric, NodeId, NodeKind};
use clearlane_ib::{Lid, PortNumber, ServiceLevel};
use clearlane_subnet::{AdaptiveGroups, SlToVlTable, Subnet};

index!(
    /// A switch and a LID.
    LftIndex
);
index!(
    /// A switch, as the fabric numbers them.
    SwitchIndex
);
index!(
    /// An input and an output of a switch.
    PairIndex
);
index!(
    /// A list of outputs.
    GroupIndex
);
index!(
    /// Two coordinates in one dimension.
    StepIndex
);
index!(
    /// A port of an adapter, where forwarding is by rule.
    RankIndex
);

/// LFT and SL2VL.
pub(crate) struct TableForwarder {
    lft: Records<LftIndex, u8>,
    columns: u32,
    /// SL → lane where all switches agree and neither port matters.
    uniform: Option<[u8; 16]>,
    sl_to_vl: Records<PairIndex, [u8; 16]>,
    /// Per switch: where its rows begin in `sl_to_vl` and how many ports it has.
    rows: Records<SwitchIndex, (u32, u32)>,
}

impl TableForwarder {
    /// A copy of the subnet's tables in the form the hot loop reads.
    pub(crate) fn new(fabric: &Fabric, subnet: &Subnet) -> Self {
        let columns = subnet.tables.columns();
        let mut lft = Vec::with_capacity(subnet.tables.switches().len() * columns);
        for row in 0..subnet.tables.switches().len() {
            // Port numbers count from 1, the engine's ports from 0; "no port" (255) becomes 254
            // and port 0, the switch itself, 255: both are refused before the run.
            lft.extend(subnet.tables.row(row).iter().map(|port| port.wrapping_sub(1)));
        }
        let lanes = |row: &[clearlane_ib::VirtualLane; 16]| row.map(|vl| vl.value());
        let tables = subnet.sl_to_vl.tables();
        if let [SlToVlTable::Uniform(row)] = tables {
            let uniform = Some(lanes(row));
            let (lft, columns) = (lft.into(), columns as u32);
            let (sl_to_vl, rows) = Default::default();
            return TableForwarder { lft, columns, uniform, sl_to_vl, rows };
        }
        let (mut sl_to_vl, mut rows) = (Vec::new(), Vec::new());
        for switch in subnet.tables.switches() {
            let ports = u32::from(fabric.node(*switch).port_count());
            rows.push((sl_to_vl.len() as u32, ports));
            let table = subnet.sl_to_vl.table(*switch);
            for input in 1..=ports {
                for output in 1..=ports {
                    let number =
                        |n: u32| PortNumber::new(n as u8).unwrap_or(PortNumber::MANAGEMENT);
                    let lane = |sl| {
                        let sl = ServiceLevel::new(sl as u8).unwrap_or_default();
                        table.lane(number(input), number(output), sl).value()
                    };
                    sl_to_vl.push(std::array::from_fn(lane));
                }
            }
        }
        TableForwarder {
            lft: lft.into(),
            columns: columns as u32,
            uniform: None,
            sl_to_vl: sl_to_vl.into(),
            rows: rows.into(),
        }
    }

    #[inline(always)]
    fn sl_to_vl(&self, switch: u32, input: u8, output: u8, sl: u8) -> u8 {
        let sl = usize::from(sl & 15);
        if let Some(row) = &self.uniform {
            return row[sl];
        }
        let (base, ports) = self.rows[SwitchIndex(switch)];
        let row = base + u32::from(input) * ports + u32::from(output);
        self.sl_to_vl[PairIndex(row)][sl]
    }
}

impl Forwarder for TableForwarder {
    fn build(fabric: &Fabric, forwarding: Forwarding<'_>, _: &Hosts) -> Result<Self, SetupError> {
        match forwarding {
            Forwarding::Tables(subnet) => Ok(TableForwarder::new(fabric, subnet)),
            Forwarding::DimensionOrder(..) => Err(SetupError::Forwarder),
        }
    }

    fn suits(forwarding: &Forwarding<'_>) -> bool {
        matches!(forwarding, Forwarding::Tables(subnet) if subnet.adaptive.is_none())
    }

    #[inline(always)]
    fn route(&self, switch: u32, input: u8, _: u8, packet: &Packet) -> (u8, u8) {
        let output = self.lft[LftIndex(switch * self.columns + packet.dlid)];
        (output, self.sl_to_vl(switch, input, output, packet.sl))
    }

    #[inline(always)]
    fn hint(&self, _: u32) -> u64 {
        0
    }
}

/// Groups of ports among which a switch chooses for every packet anew.
pub(crate) struct Groups {
    /// Index into `lists` by switch and LID.
    group: Records<LftIndex, GroupIndex>,
    /// Outputs, each list once a switch; the first list is empty.
    lists: Records<GroupIndex, Box<[u8]>>,
}

impl Groups {
    /// The groups of a subnet in the form the hot loop reads. `columns` is the number of LIDs in a
    /// row of the tables.
    fn new(subnet: &Subnet, groups: &AdaptiveGroups, columns: u32) -> Self {
        let (mut group, mut lists) = (Vec::new(), vec![Box::default()]);
        for row in 0..subnet.tables.switches().len() {
            let first = lists.len() as u32;
            let outputs = |ports: &[u8]| ports.iter().map(|port| port - 1).collect();
            lists.extend(groups.lists(row).iter().map(|ports| outputs(ports)));
            let number = |lid: u32| {
                let lid = Lid::new(lid as u16)?;
                groups.group(row, lid).map(|group| first + u32::from(group))
            };
            group.extend((0..columns).map(|lid| GroupIndex(number(lid).unwrap_or(0))));
        }
        Groups { group: group.into(), lists: lists.into() }
    }

    /// The outputs that a switch may choose for a LID; none without a group.
    #[inline(always)]
    fn outputs(&self, at: LftIndex) -> &[u8] {
        &self.lists[self.group[at]]
    }
}

/// Tables and groups. Switches choose in every run.
pub(crate) struct AdaptiveForwarder {
    tables: TableForwarder,
    groups: Groups,
}

impl Forwarder for AdaptiveForwarder {
    const ADAPTIVE: Adaptive = Adaptive::Always;

    fn build(fabric: &Fabric, forwarding: Forwarding<'_>, _: &Hosts) -> Result<Self, SetupError> {
        let Forwarding::Tables(subnet) = forwarding else { return Err(SetupError::Forwarder) };
        let Some(of) = &subnet.adaptive else { return Err(SetupError::Forwarder) };
        let tables = TableForwarder::new(fabric, subnet);
        let groups = Groups::new(subnet, of, tables.columns);
        Ok(AdaptiveForwarder { tables, groups })
    }

    fn suits(forwarding: &Forwarding<'_>) -> bool {
        matches!(forwarding, Forwarding::Tables(subnet) if subnet.adaptive.is_some())
    }

    #[inline(always)]
    fn route(&self, switch: u32, input: u8, lane: u8, packet: &Packet) -> (u8, u8) {
        self.tables.route(switch, input, lane, packet)
    }

    #[inline(always)]
    fn hint(&self, _: u32) -> u64 {
        0
    }

    #[inline(always)]
    fn choices(&self, switch: u32, packet: &Packet) -> &[u8] {
        self.groups.outputs(LftIndex(switch * self.tables.columns + packet.dlid))
    }

    #[inline(always)]
    fn lane(&self, switch: u32, input: u8, _: u8, output: u8, packet: &Packet) -> u8 {
        self.tables.sl_to_vl(switch, input, output, packet.sl)
    }
}

/// A forwarder of any kind, for settings that few runs have.
pub(crate) enum AnyForwarder {
    /// Tables, with groups if switches choose.
    Tables(TableForwarder, Option<Groups>),
    Grid(GridForwarder),
}

impl Forwarder for AnyForwarder {
    const ADAPTIVE: Adaptive = Adaptive::AsSet;

    fn build(
        fabric: &Fabric,
        forwarding: Forwarding<'_>,
        hosts: &Hosts,
    ) -> Result<Self, SetupError> {
        let Forwarding::Tables(subnet) = forwarding else {
            return GridForwarder::build(fabric, forwarding, hosts).map(AnyForwarder::Grid);
        };
        let tables = TableForwarder::new(fabric, subnet);
        let groups = subnet.adaptive.as_ref();
        let groups = groups.map(|groups| Groups::new(subnet, groups, tables.columns));
        Ok(AnyForwarder::Tables(tables, groups))
    }

    fn suits(_: &Forwarding<'_>) -> bool {
        true
    }

    fn chooses(&self) -> bool {
        matches!(self, AnyForwarder::Tables(_, Some(_)))
    }

    #[inline(always)]
    fn route(&self, switch: u32, input: u8, lane: u8, packet: &Packet) -> (u8, u8) {
        match self {
            AnyForwarder::Tables(tables, _) => tables.route(switch, input, lane, packet),
            AnyForwarder::Grid(rule) => rule.route_apart(switch, input, lane, packet),
        }
    }

    #[inline(always)]
    fn hint(&self, dlid: u32) -> u64 {
        match self {
            AnyForwarder::Grid(rule) => rule.hint(dlid),
            AnyForwarder::Tables(..) => 0,
        }
    }

    #[inline(always)]
    fn choices(&self, switch: u32, packet: &Packet) -> &[u8] {
        let AnyForwarder::Tables(tables, Some(groups)) = self else { return &[] };
        groups.outputs(LftIndex(switch * tables.columns + packet.dlid))
    }

    #[inline(always)]
    fn lane(&self, switch: u32, input: u8, lane: u8, output: u8, packet: &Packet) -> u8 {
        let AnyForwarder::Tables(tables, _) = self else { return lane };
        tables.sl_to_vl(switch, input, output, packet.sl)
    }
}

/// A dimension of the grid.
#[derive(Clone, Copy, Default)]
struct Ring {
    k: u32,
    /// Where its entries begin in `steps`.
    steps_at: u32,
}

/// The way is down.
const MINUS: u8 = 1;
/// It is by a wrap link, one bit further up.
const WRAPS_AT: u32 = 1;
/// From this bit on the same for the switches that go the other way at a tie.
const OTHER_AT: u32 = 4;

/// The step from `a` towards `b` on a ring (or a line) of `k`.
fn step(a: u32, b: u32, k: u32, wraps: bool, ties: Ties) -> u8 {
    let ahead = (b + k - a) % k;
    let way = |minus: bool| {
        let wrap = wraps && if minus { a == 0 } else { a + 1 == k };
        (u8::from(minus) * MINUS) | (u8::from(wrap) << WRAPS_AT)
    };
    let minus = if wraps { 2 * ahead > k } else { b < a };
    let tie = wraps && 2 * ahead == k && ties == Ties::Both;
    way(minus) | way(minus || tie) << OTHER_AT
}

/// Dimension order on a grid with a dateline in the lane.
pub struct GridForwarder {
    rings: [Ring; 8],
    /// The step from coordinate a towards b, in each dimension: `MINUS` and `WRAPS_AT`, and from
    /// bit `OTHER_AT` on the same for half of the switches.
    steps: Records<StepIndex, u8>,
    /// Coordinates of each switch, one byte a dimension from the lowest byte on.
    coords: Records<SwitchIndex, u64>,
    /// Switch index and output of each port of an adapter.
    hosts: Records<RankIndex, (u32, u8)>,
}

impl GridForwarder {
    /// Prepares the rule. Fails if a switch has no coordinates, a cable of the grid is missing, a
    /// dimension has over 256 switches or there are more than 8 dimensions.
    pub fn new(
        fabric: &Fabric,
        (grid, ties): (&Grid, Ties),
        hosts: &Hosts,
    ) -> Result<Self, SetupError> {
        let switches: Vec<NodeId> = fabric.ids(NodeKind::Switch).collect();
        if grid.dims.len() > 8 || grid.dims.iter().any(|k| *k > 256) {
            return Err(SetupError::NotAGrid);
        }
        let mut index_of = vec![0; fabric.nodes().len()];
        let mut coords = Vec::with_capacity(switches.len());
        for (index, switch) in switches.iter().enumerate() {
            index_of[switch.index()] = index as u32;
            let mut packed = [0; 8];
            let coordinates = grid.coords(*switch).ok_or(SetupError::NotAGrid)?;
            for (dim, value) in coordinates.iter().enumerate() {
                packed[dim] = *value as u8;
                check_cables(fabric, grid, *switch, dim, *value)?;
            }
            coords.push(u64::from_le_bytes(packed));
        }
        let place = |end: &clearlane_fabric::Endpoint| {
            let peer = fabric.peer(*end)?;
            Some((index_of[peer.node.index()], peer.port.value() - 1))
        };
        let hosts = hosts.all_ports().iter().map(place).collect::<Option<Vec<_>>>();
        let hosts = hosts.ok_or(SetupError::NotAGrid)?;
        let (mut rings, mut steps) = ([Ring::default(); 8], Vec::new());
        for (ring, (k, wraps)) in rings.iter_mut().zip(grid.dims.iter().zip(&grid.wraps)) {
            *ring = Ring { k: *k, steps_at: steps.len() as u32 };
            steps.extend((0..k * k).map(|pair| step(pair / k, pair % k, *k, *wraps, ties)));
        }
        let steps = steps.into();
        Ok(GridForwarder { rings, steps, coords: coords.into(), hosts: hosts.into() })
    }
}

/// The rule sends packets by port 2d + 1 or 2d + 2 without asking: both must hold their cable.
fn check_cables(
    fabric: &Fabric,
    grid: &Grid,
    switch: NodeId,
    dim: usize,
    at: u32,
) -> Result<(), SetupError> {
    let (k, wraps) = (grid.dims[dim], grid.wraps[dim]);
    let wanted = [(2 * dim + 1, wraps || at + 1 < k), (2 * dim + 2, wraps || at > 0)];
    for (number, _) in wanted.into_iter().filter(|(_, wanted)| *wanted && k > 1) {
        let port = PortNumber::new(number as u8).ok_or(SetupError::NotAGrid)?;
        let end = Endpoint { node: switch, port };
        if fabric.peer(end).is_none() {
            return Err(SetupError::Hole { port: fabric.describe(end) });
        }
    }
    Ok(())
}

impl GridForwarder {
    /// The output of a switch on the way to the coordinates `there`, its dimension, and whether it
    /// is a wrap link; nothing once it is there.
    #[inline(always)]
    fn way(&self, switch: u32, there: u64) -> Option<(u8, u32, u8)> {
        let here = self.coords[SwitchIndex(switch)];
        if here == there {
            return None;
        }
        let dim = (here ^ there).trailing_zeros() / 8;
        let (a, b) = ((here >> (8 * dim)) as u8, (there >> (8 * dim)) as u8);
        let ring = &self.rings[dim as usize % 8];
        let step = self.steps[StepIndex(ring.steps_at + u32::from(a) * ring.k + u32::from(b))];
        // A tie: half of the switches of every ring go each way.
        let way = step >> (OTHER_AT * ((switch ^ (switch >> 5)) & 1));
        let (minus, wrap) = (way & MINUS, way >> WRAPS_AT & 1);
        Some((2 * dim as u8 + minus, dim, wrap))
    }

    /// The output of a switch on the way to an adapter's port; nothing at the switch that it is
    /// plugged into. Switches are counted in the order of nodes, ports of adapters as in
    /// [`Hosts::all_ports`](crate::Hosts::all_ports).
    #[inline]
    pub fn output(&self, switch: u32, port: u32) -> Option<PortNumber> {
        let (output, ..) = self.way(switch, self.hint(port))?;
        PortNumber::new(output + 1)
    }

    /// [`Forwarder::route`] in a function of its own: the loop of [`AnyForwarder`] keeps its
    /// registers for tables.
    #[inline(never)]
    fn route_apart(&self, switch: u32, input: u8, lane: u8, packet: &Packet) -> (u8, u8) {
        self.route(switch, input, lane, packet)
    }
}

impl Forwarder for GridForwarder {
    fn build(
        fabric: &Fabric,
        forwarding: Forwarding<'_>,
        hosts: &Hosts,
    ) -> Result<Self, SetupError> {
        match forwarding {
            Forwarding::DimensionOrder(grid, ties) => {
                GridForwarder::new(fabric, (grid, ties), hosts)
            }
            Forwarding::Tables(_) => Err(SetupError::Forwarder),
        }
    }

    fn suits(forwarding: &Forwarding<'_>) -> bool {
        matches!(forwarding, Forwarding::DimensionOrder(..))
    }

    #[inline(always)]
    fn route(&self, switch: u32, input: u8, lane: u8, packet: &Packet) -> (u8, u8) {
        let Some((output, dim, wrap)) = self.way(switch, packet.hint) else {
            return (self.hosts[RankIndex(packet.dlid)].1, 0);
        };
        let stays = u32::from(input >> 1) == dim;
        (output, wrap | if stays { lane } else { 0 })
    }

    #[inline(always)]
    fn hint(&self, dlid: u32) -> u64 {
        self.coords[SwitchIndex(self.hosts[RankIndex(dlid)].0)]
    }
}
