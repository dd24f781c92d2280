//! Whether channels can wait for each other in a circle: a cycle in the channel dependency graph
//! over (switch, output port, VL) (Dally and Seitz 1987) is a possible deadlock.
//!
//! Every host sends to every LID of every other host on the SL of the pair and the LID offset, and
//! the acknowledgement comes back on the same SL to the same offset. For each LID and SL the
//! switches whose hosts use it are the sources, and the dependencies of all of them are gathered in
//! one sweep along the tables.
//! Where a switch may choose among ports (adaptive routing), every choice is followed.

use crate::graph::{Host, Peer, SwitchGraph, Target};
use crate::{SlToVlTable, Subnet};
use clearlane_fabric::{Endpoint, Fabric, NodeId};
use clearlane_ib::{Lid, PortNumber, ServiceLevel, VirtualLane};
use std::fmt;

/// A channel of the cycle, and who makes it wait for the next one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// The switch whose output it is.
    pub switch: NodeId,
    /// The output port.
    pub port: PortNumber,
    /// The lane.
    pub vl: VirtualLane,
    /// A host whose packets hold this channel and ask for the next one.
    pub source: Endpoint,
    /// Where they go.
    pub destination: Lid,
    /// On which SL.
    pub sl: ServiceLevel,
}

/// A cycle; the last entry waits for the first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreditLoop {
    /// The channels in the order in which they wait.
    pub channels: Vec<Waiting>,
    /// The same in words, a line per channel.
    pub lines: Vec<String>,
}

/// What [`credit_loop`] found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreditLoopReport {
    /// Channels (switch to switch, per VL) in use.
    pub channels: usize,
    /// Dependencies between them.
    pub dependencies: u64,
    /// VLs in use: one more than the highest.
    pub lanes: u8,
    /// SLs in use.
    pub levels: usize,
    /// Channels that lie on some cycle.
    pub entangled: usize,
    /// A shortest cycle through the first of them.
    pub cycle: Option<CreditLoop>,
}

impl CreditLoopReport {
    /// Whether there is no cycle.
    pub fn is_sane(&self) -> bool {
        self.cycle.is_none()
    }
}

impl fmt::Display for CreditLoopReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CreditLoopReport { channels, dependencies, lanes, levels, entangled, .. } = self;
        let found = if self.is_sane() { "none" } else { "FOUND" };
        writeln!(
            f,
            "credit loops   {found} ({channels} channels, {dependencies} dependencies, {levels} \
             SLs, {lanes} VLs)"
        )?;
        if let Some(cycle) = &self.cycle {
            let length = cycle.channels.len();
            writeln!(f, "               {entangled} channels on cycles; one of length {length}:")?;
            for line in &cycle.lines {
                writeln!(f, "  {line}")?;
            }
        }
        Ok(())
    }
}

/// Looks for a cycle, every pair on its own SL.
pub fn credit_loop(fabric: &Fabric, subnet: &Subnet) -> CreditLoopReport {
    credit_loop_on(fabric, subnet, &[])
}

/// Looks for a cycle where every pair also sends on each SL of `extra`, whatever SL its path has:
/// traffic whose SL is set by hand.
pub fn credit_loop_on(
    fabric: &Fabric,
    subnet: &Subnet,
    extra: &[ServiceLevel],
) -> CreditLoopReport {
    let graph = SwitchGraph::of(fabric);
    let traffic = Traffic::of(fabric, &graph, subnet, extra);
    let mut dependencies = Dependencies::new(&graph, &traffic);
    let mut sweep = Sweep::new(&graph, subnet, traffic.lanes);
    let mut levels_used = [false; 16];
    let mut masks = Masks::default();
    for target in &traffic.targets {
        let masks = masks.towards(&traffic, target);
        for sl in levels(masks) {
            levels_used[usize::from(sl.value())] = true;
            sweep.run(&traffic, masks, target, sl, |from, to| {
                dependencies.add(&graph, from, to);
                true
            });
            sweep.mark_used(&mut dependencies.used);
        }
    }
    let components = dependencies.components(&graph);
    let cycle = components.first().map(|start| {
        let nodes = dependencies.cycle_through(&graph, *start);
        explain(fabric, &graph, &traffic, &mut sweep, &nodes)
    });
    CreditLoopReport {
        channels: dependencies.used.iter().filter(|used| **used).count(),
        dependencies: dependencies.count,
        lanes: traffic.lanes,
        levels: levels_used.iter().filter(|used| **used).count(),
        entangled: components.len(),
        cycle,
    }
}

/// Who sends to whom on which SL.
struct Traffic<'a> {
    subnet: &'a Subnet,
    hosts: Vec<Host>,
    /// LIDs of hosts.
    targets: Vec<Target>,
    /// Rows with hosts, with the input ports a checker has to tell apart: one host per different
    /// row of SL2VL.
    sources: Vec<(usize, Vec<Host>)>,
    /// Hosts per row.
    count: Vec<u32>,
    /// Bit s: every pair also sends on SL s.
    extra: u16,
    lanes: u8,
}

impl<'a> Traffic<'a> {
    fn of(
        fabric: &Fabric,
        graph: &SwitchGraph,
        subnet: &'a Subnet,
        extra: &[ServiceLevel],
    ) -> Self {
        let hosts = graph.adapter_ports(fabric);
        let mut on_row: Vec<Vec<Host>> = vec![Vec::new(); graph.rows()];
        for host in &hosts {
            on_row[host.row as usize].push(*host);
        }
        let mut targets = graph.targets(&subnet.lids);
        targets.retain(|target| target.exit != 0);
        let count: Vec<u32> = on_row.iter().map(|hosts| hosts.len() as u32).collect();
        let mut sources = Vec::new();
        for (row, hosts) in on_row.into_iter().enumerate().filter(|(_, hosts)| !hosts.is_empty()) {
            let table = subnet.sl_to_vl.table(graph.switch(row));
            sources.push((row, distinct_inputs(table, hosts, graph.ports(row))));
        }
        Traffic {
            subnet,
            hosts,
            targets,
            sources,
            count,
            extra: extra.iter().fold(0, |mask, sl| mask | 1 << sl.value()),
            lanes: subnet.sl_to_vl.lanes(),
        }
    }

    /// Per row, bit s: hosts there send to this LID offset of hosts on `home` on SL s, requests or
    /// acknowledgements.
    fn masks(&self, home: usize, offset: u16, masks: &mut Vec<u16>) {
        let path_sl = &self.subnet.path_sl;
        let level = |from, to| 1 << path_sl.level_at(from, to, offset).value();
        masks.clear();
        masks.resize(self.count.len(), 0);
        for row in self.sources.iter().map(|(row, _)| *row) {
            // A host alone on its switch sends nothing to itself.
            if row == home && self.count[row] < 2 {
                continue;
            }
            masks[row] |= self.extra;
            for end in path_sl.ends_at(row) {
                for other in path_sl.ends_at(home) {
                    masks[row] |= level(end, other) | level(other, end);
                }
            }
        }
    }
}

/// The masks towards one switch, by LID offset as far as the SL depends on it.
#[derive(Default)]
struct Masks {
    home: Option<u32>,
    of_offset: Vec<Option<Vec<u16>>>,
}

impl Masks {
    fn towards(&mut self, traffic: &Traffic<'_>, target: &Target) -> &[u16] {
        let kinds = traffic.subnet.path_sl.offsets();
        if self.home.replace(target.row) != Some(target.row) {
            self.of_offset.clear();
            self.of_offset.resize(kinds, None);
        }
        let offset = target.owner.offset;
        self.of_offset[usize::from(offset) % kinds].get_or_insert_with(|| {
            let mut masks = Vec::new();
            traffic.masks(target.row as usize, offset, &mut masks);
            masks
        })
    }
}

/// The SLs that any row uses.
fn levels(masks: &[u16]) -> impl Iterator<Item = ServiceLevel> + use<> {
    let all = masks.iter().fold(0, |all, mask| all | mask);
    (0..16).filter(move |sl| all & (1 << sl) != 0).filter_map(ServiceLevel::new)
}

/// One host for each distinct way the table treats host ports.
fn distinct_inputs(table: &SlToVlTable, hosts: Vec<Host>, ports: usize) -> Vec<Host> {
    let SlToVlTable::PerPorts { stride, rows } = table else {
        return hosts.into_iter().take(1).collect();
    };
    let row = |host: &Host| {
        let first = usize::from(host.port) * stride;
        rows.get(first..first + ports.min(*stride))
    };
    let mut distinct: Vec<Host> = Vec::new();
    for host in hosts {
        if !distinct.iter().any(|known| row(known) == row(&host)) {
            distinct.push(host);
        }
    }
    distinct
}

/// Edges of the dependency graph. A node is channel × lanes + VL.
struct Dependencies {
    lanes: usize,
    /// First bit of each channel's edge set; a node's set follows at its VL.
    starts: Vec<usize>,
    bits: Vec<u64>,
    used: Vec<bool>,
    count: u64,
}

impl Dependencies {
    fn new(graph: &SwitchGraph, traffic: &Traffic<'_>) -> Self {
        let lanes = usize::from(traffic.lanes);
        let mut starts = Vec::with_capacity(graph.channels() + 1);
        let mut next = 0;
        for channel in 0..graph.channels() {
            starts.push(next);
            if let Peer::Switch { row, .. } = graph.peer_of(channel) {
                next += lanes * graph.ports(row as usize) * lanes;
            }
        }
        starts.push(next);
        let used = vec![false; graph.channels() * lanes];
        Dependencies { lanes, starts, bits: vec![0; next.div_ceil(64)], used, count: 0 }
    }

    /// Edges of a node: first bit, and how many there may be.
    fn range(&self, node: usize) -> (usize, usize) {
        let channel = node / self.lanes;
        let size = (self.starts[channel + 1] - self.starts[channel]) / self.lanes;
        (self.starts[channel] + node % self.lanes * size, size)
    }

    fn add(&mut self, graph: &SwitchGraph, from: usize, to: usize) {
        let Peer::Switch { row, .. } = graph.peer_of(from / self.lanes) else { return };
        let local = to - graph.channel(row as usize, 0) * self.lanes;
        let bit = self.range(from).0 + local;
        let word = &mut self.bits[bit / 64];
        if *word & (1 << (bit % 64)) == 0 {
            *word |= 1 << (bit % 64);
            self.count += 1;
        }
    }

    /// The first successor of `node` at or after position `from` of its set, and its position.
    fn successor(&self, graph: &SwitchGraph, node: usize, from: usize) -> Option<(usize, usize)> {
        let Peer::Switch { row, .. } = graph.peer_of(node / self.lanes) else { return None };
        let (first, size) = self.range(node);
        let mut position = from;
        while position < size {
            let bit = first + position;
            let rest = self.bits[bit / 64] >> (bit % 64);
            if rest == 0 {
                position += 64 - bit % 64;
                continue;
            }
            position += rest.trailing_zeros() as usize;
            if position >= size {
                return None;
            }
            let base = graph.channel(row as usize, 0) * self.lanes;
            return Some((base + position, position));
        }
        None
    }

    /// All nodes on cycles, ascending (Tarjan 1972, without recursion).
    fn components(&self, graph: &SwitchGraph) -> Vec<usize> {
        const NEW: u32 = u32::MAX;
        let nodes = graph.channels() * self.lanes;
        let mut index = vec![NEW; nodes];
        let mut low = vec![0u32; nodes];
        let mut on_stack = vec![false; nodes];
        let (mut stack, mut found, mut next) = (Vec::new(), Vec::new(), 0);
        for root in (0..nodes).filter(|node| self.used[*node]) {
            if index[root] != NEW {
                continue;
            }
            let mut calls = vec![(root, 0usize)];
            while let Some((node, from)) = calls.last_mut() {
                let node = *node;
                if index[node] == NEW {
                    (index[node], low[node]) = (next, next);
                    next += 1;
                    stack.push(node);
                    on_stack[node] = true;
                }
                if let Some((to, position)) = self.successor(graph, node, *from) {
                    *from = position + 1;
                    if index[to] == NEW {
                        calls.push((to, 0));
                    } else if on_stack[to] {
                        low[node] = low[node].min(index[to]);
                    }
                    continue;
                }
                calls.pop();
                if let Some((parent, _)) = calls.last() {
                    low[*parent] = low[*parent].min(low[node]);
                }
                if low[node] == index[node] {
                    let at = stack.iter().rposition(|member| *member == node).unwrap_or(0);
                    let members = stack.split_off(at);
                    members.iter().for_each(|member| on_stack[*member] = false);
                    if members.len() > 1 || self.has_edge(graph, node, node) {
                        found.extend(members);
                    }
                }
            }
        }
        found.sort_unstable();
        found
    }

    fn has_edge(&self, graph: &SwitchGraph, from: usize, to: usize) -> bool {
        let mut position = 0;
        while let Some((next, at)) = self.successor(graph, from, position) {
            if next == to {
                return true;
            }
            position = at + 1;
        }
        false
    }

    /// A shortest cycle through a node that lies on one.
    fn cycle_through(&self, graph: &SwitchGraph, start: usize) -> Vec<usize> {
        let mut before = vec![usize::MAX; graph.channels() * self.lanes];
        let mut queue = std::collections::VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            let mut position = 0;
            while let Some((to, at)) = self.successor(graph, node, position) {
                position = at + 1;
                if before[to] == usize::MAX {
                    before[to] = node;
                    queue.push_back(to);
                }
            }
            if before[start] != usize::MAX {
                break;
            }
        }
        let (mut cycle, mut node) = (vec![start], before[start]);
        while node != start && node != usize::MAX {
            cycle.push(node);
            node = before[node];
        }
        cycle.reverse();
        cycle
    }
}

/// Walks along the tables from all sources of one (LID, SL) at once.
struct Sweep<'a> {
    graph: &'a SwitchGraph,
    subnet: &'a Subnet,
    lanes: usize,
    /// Run in which a node was last visited.
    visited: Vec<u32>,
    run: u32,
    nodes: Vec<usize>,
    stack: Vec<usize>,
}

impl<'a> Sweep<'a> {
    fn new(graph: &'a SwitchGraph, subnet: &'a Subnet, lanes: u8) -> Self {
        let lanes = usize::from(lanes);
        let visited = vec![0; graph.channels() * lanes];
        Sweep { graph, subnet, lanes, visited, run: 0, nodes: Vec::new(), stack: Vec::new() }
    }

    /// The nodes a packet may take out of a switch, one without adaptive routing; none at the end
    /// of its path.
    fn outputs(
        &self,
        (row, input): (usize, u8),
        lid: Lid,
        sl: ServiceLevel,
    ) -> impl Iterator<Item = usize> + use<'_, 'a> {
        let groups = self.subnet.adaptive.as_ref();
        let choices = groups.map_or(&[][..], |groups| groups.ports(row, lid));
        let entries = self.subnet.tables.row(row);
        let own = entries.get(usize::from(lid.value())).copied().unwrap_or(u8::MAX);
        let own = choices.is_empty().then_some(own);
        let table = self.subnet.sl_to_vl.table(self.graph.switch(row));
        own.into_iter().chain(choices.iter().copied()).filter_map(move |port| {
            let Peer::Switch { .. } = self.graph.peer(row, port) else { return None };
            let lane = table.lane(PortNumber::new(input)?, PortNumber::new(port)?, sl);
            Some(self.graph.channel(row, port) * self.lanes + usize::from(lane.value()))
        })
    }

    /// Calls `edge` for every dependency; stops when it says false.
    fn run(
        &mut self,
        traffic: &Traffic<'_>,
        masks: &[u16],
        target: &Target,
        sl: ServiceLevel,
        mut edge: impl FnMut(usize, usize) -> bool,
    ) {
        self.run += 1;
        self.nodes.clear();
        for (row, hosts) in &traffic.sources {
            if masks[*row] & (1 << sl.value()) == 0 {
                continue;
            }
            for host in hosts {
                if !self.follow(host, target, sl, &mut edge) {
                    return;
                }
            }
        }
    }

    /// One path, or all that adaptive routing may take, until they meet one already followed in
    /// this run.
    fn follow(
        &mut self,
        host: &Host,
        target: &Target,
        sl: ServiceLevel,
        edge: &mut impl FnMut(usize, usize) -> bool,
    ) -> bool {
        let mut stack = std::mem::take(&mut self.stack);
        stack.clear();
        stack.extend(self.outputs((host.row as usize, host.port), target.lid, sl));
        let mut wanted = true;
        while let Some(from) = stack.pop().filter(|_| wanted) {
            if std::mem::replace(&mut self.visited[from], self.run) == self.run {
                continue;
            }
            self.nodes.push(from);
            let Peer::Switch { row, port } = self.graph.peer_of(from / self.lanes) else {
                continue;
            };
            for to in self.outputs((row as usize, port), target.lid, sl) {
                wanted = wanted && edge(from, to);
                stack.push(to);
            }
        }
        self.stack = stack;
        wanted
    }

    fn mark_used(&self, used: &mut [bool]) {
        self.nodes.iter().for_each(|node| used[*node] = true);
    }
}

/// Names every channel of a cycle and finds a pair that makes it wait for the next.
fn explain(
    fabric: &Fabric,
    graph: &SwitchGraph,
    traffic: &Traffic<'_>,
    sweep: &mut Sweep<'_>,
    nodes: &[usize],
) -> CreditLoop {
    let mut cycle = CreditLoop { channels: Vec::new(), lines: Vec::new() };
    let next = nodes.iter().cycle().skip(1);
    for (node, next) in nodes.iter().zip(next) {
        let Some((host, target, sl)) = cause(graph, traffic, sweep, *node, *next) else { continue };
        let (row, port) = graph.place(node / sweep.lanes);
        let (Some(port), Some(vl)) =
            (PortNumber::new(port), VirtualLane::new((node % sweep.lanes) as u8))
        else {
            continue;
        };
        let switch = graph.switch(row);
        let name = |end: Endpoint| fabric.node(end.node).name.escape_debug().to_string();
        let at = fabric.describe(Endpoint { node: switch, port }).escape_debug().to_string();
        let (from, to) = (name(host.end), name(target.owner.end));
        let lid = target.lid;
        cycle.lines.push(format!(
            "{at} VL {vl} waits for the next: {from} to {to} (LID {lid}) on SL {sl}"
        ));
        let (source, destination) = (host.end, target.lid);
        cycle.channels.push(Waiting { switch, port, vl, source, destination, sl });
    }
    cycle
}

/// A pair whose path takes both channels one after the other.
fn cause(
    graph: &SwitchGraph,
    traffic: &Traffic<'_>,
    sweep: &mut Sweep<'_>,
    node: usize,
    next: usize,
) -> Option<(Host, Target, ServiceLevel)> {
    let mut masks = Masks::default();
    for target in &traffic.targets {
        let masks = masks.towards(traffic, target);
        for sl in levels(masks) {
            let mut found = false;
            sweep.run(traffic, masks, target, sl, |from, to| {
                found |= (from, to) == (node, next);
                !found
            });
            if !found {
                continue;
            }
            for host in traffic.hosts.iter().filter(|host| host.end != target.owner.end) {
                if masks[host.row as usize] & (1 << sl.value()) != 0
                    && passes(graph, sweep, host, target, sl, node)
                {
                    return Some((*host, *target, sl));
                }
            }
        }
    }
    None
}

fn passes(
    graph: &SwitchGraph,
    sweep: &Sweep<'_>,
    host: &Host,
    target: &Target,
    sl: ServiceLevel,
    wanted: usize,
) -> bool {
    let mut seen: Vec<usize> = Vec::new();
    let mut stack: Vec<usize> =
        sweep.outputs((host.row as usize, host.port), target.lid, sl).collect();
    while let Some(node) = stack.pop() {
        if node == wanted {
            return true;
        }
        if seen.contains(&node) {
            continue;
        }
        seen.push(node);
        if let Peer::Switch { row, port } = graph.peer_of(node / sweep.lanes) {
            stack.extend(sweep.outputs((row as usize, port), target.lid, sl));
        }
    }
    false
}
