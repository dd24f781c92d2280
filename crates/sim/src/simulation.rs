//! The library's face: a set-up goes in, an outcome comes out.

use crate::control::{Controlled, Mechanisms, NoControl, Record};
use crate::engine::{Engine, Run};
use crate::forward::{
    AdaptiveForwarder, Forwarder, Forwarding, GridForwarder, TableForwarder, WithVoq,
};
use crate::network::Network;
use crate::observe::{NoObserver, Recorder, Recording};
use crate::port_set::PortSet;
use crate::{Hosts, InputQueueing, Outcome, Parameters, Totals, ranges};
use clearlane_fabric::{Endpoint, Fabric, NodeId, NodeKind};
use clearlane_ib::{Bytes, Lid, Picoseconds, PortNumber, ServiceLevel, wire};
use clearlane_subnet::{AdaptiveGroups, Subnet};
use clearlane_workload::{RankProgram, Transport};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::atomic::AtomicBool;

/// How messages of a flow group travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupSettings {
    /// RC or UD.
    pub transport: Transport,
    /// A service level that overrides the subnet manager's answer.
    pub sl: Option<ServiceLevel>,
}

/// Everything a simulation needs. Randomness lives in the programs: a set-up fixes every byte.
pub struct Setup<'a> {
    /// The cables.
    pub fabric: &'a Fabric,
    /// What switches forward by.
    pub forwarding: Forwarding<'a>,
    /// Delays, buffers, rates.
    pub parameters: Parameters,
    /// By the group index messages carry.
    pub groups: Vec<GroupSettings>,
    /// One program per rank, in the order of [`Hosts::of`].
    pub programs: Vec<Box<dyn RankProgram>>,
    /// Congestion mechanisms; none costs nothing.
    pub control: Option<Mechanisms>,
    /// What to record; nothing costs nothing.
    pub recording: Option<Recording>,
    /// Width of a slot of the event queue, as a power of two of picoseconds, 6..=24. It has no
    /// influence on any result; [`queue_width_log2`] gives one that is fast.
    pub queue_width_log2: u32,
}

/// A width of the event queue's slots at which a slot of a busy fabric holds a handful of events:
/// 8 ns for a hundred hosts, half a nanosecond for four thousand.
pub fn queue_width_log2(hosts: usize) -> u32 {
    let busier = (hosts / 128).max(1).ilog2();
    13u32.saturating_sub(busier).max(8)
}

/// Why a set-up cannot be simulated.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SetupError {
    /// No host is cabled to a switch.
    #[error("the fabric has {0} hosts on switches; traffic needs at least 2")]
    TooFewHosts(usize),
    /// Not one program per rank.
    #[error("{programs} programs were given for {ranks} ranks; give one per rank")]
    Programs {
        /// Programs given.
        programs: usize,
        /// Ranks.
        ranks: usize,
    },
    /// A parameter is outside its range.
    #[error("parameter {name} = {value} is outside {range}")]
    Parameter {
        /// Name.
        name: &'static str,
        /// Value.
        value: String,
        /// Range.
        range: String,
    },
    /// A buffer that cannot hold one packet moves nothing.
    #[error("buffer = {buffer} does not hold a packet of {packet} B; raise buffer or lower mtu")]
    BufferTooSmall {
        /// Bytes per lane.
        buffer: Bytes,
        /// Largest packet in bytes.
        packet: u32,
    },
    /// A host has no LID.
    #[error("host {0} has no LID; let the lid manager assign them or correct the file")]
    NoLid(String),
    /// A table sends a packet nowhere.
    #[error(
        "packets for host {host} (LID {lid}) stop at switch {switch}: its table has {what}; \
         run `check` and mend the table"
    )]
    DeadEnd {
        /// Destination.
        host: String,
        /// Its LID.
        lid: u16,
        /// The switch.
        switch: String,
        /// What the entry says.
        what: String,
    },
    /// A group of adaptive routing has a port that leads to no switch.
    #[error("an adaptive group names {port}, which leads to no switch; mend the groups")]
    Group {
        /// The port.
        port: String,
    },
    /// A cable of the grid is missing.
    #[error(
        "the dimension-order rule needs every cable of the grid and {port} is empty; repair it or \
         route with tables"
    )]
    Hole {
        /// The empty port.
        port: String,
    },
    /// The rule forwarder does not fit the fabric.
    #[error(
        "the dimension-order rule needs a grid of at most 8 dimensions of at most 256 switches"
    )]
    NotAGrid,
}

/// Where a run stands after [`Simulation::run_until`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Simulated time has reached the point asked for.
    Running,
    /// It stopped earlier because it was asked to pause; going on changes no result.
    Paused,
    /// Nothing will ever happen again: all programs are done and all packets arrived.
    Drained,
    /// The network is deadlocked.
    Deadlocked,
}

/// A simulation under way.
pub struct Simulation {
    run: Box<dyn Run>,
}

impl Simulation {
    /// Builds the network and starts the programs. Fails if a parameter is out of range or a table
    /// would send a packet nowhere.
    pub fn new(setup: Setup<'_>) -> Result<Self, SetupError> {
        let hosts = Hosts::of(setup.fabric);
        check(&setup, &hosts)?;
        let run = match setup.forwarding {
            Forwarding::Tables(subnet) => {
                if let Some(groups) = &subnet.adaptive {
                    check_groups(setup.fabric, subnet, groups)?;
                }
                let all = setup.control.as_ref().is_some_and(|control| control.which.is_some());
                check_tables(setup.fabric, &hosts, subnet, all)?;
                let lanes = usize::from(subnet.sl_to_vl.lanes());
                with_tables(setup, hosts, subnet, lanes)?
            }
            Forwarding::DimensionOrder(grid) => {
                let forwarder = GridForwarder::new(setup.fabric, grid, &hosts)?;
                match setup.parameters.input_queueing {
                    InputQueueing::Fifo => with_forwarder(setup, hosts, 2, forwarder)?,
                    InputQueueing::Voq => with_any_lanes(setup, hosts, 2, WithVoq(forwarder))?,
                }
            }
        };
        Ok(Simulation { run })
    }

    /// Advances simulated time to `until` or to the end, whichever comes first.
    pub fn run_until(&mut self, until: Picoseconds) -> Status {
        self.advance(until, &AtomicBool::new(false))
    }

    /// The same, but returns [`Status::Paused`] soon after `pause` is set: within microseconds of
    /// simulated time. Whoever sets it, clears it.
    pub fn advance(&mut self, until: Picoseconds, pause: &AtomicBool) -> Status {
        self.run.run_until(until.0.min(Picoseconds::MAX_RUN.0), pause)
    }

    /// Simulated time reached.
    pub fn now(&self) -> Picoseconds {
        Picoseconds(self.run.now())
    }

    /// Totals so far.
    pub fn totals(&self) -> Totals {
        self.run.totals()
    }

    /// Messages that take memory: those posted and not yet done with. Where a mechanism divides
    /// messages, each part counts.
    pub fn messages_kept(&self) -> u64 {
        self.run.messages_kept()
    }

    /// Checks every invariant (credits and packets conserved, no link above its rate) and hands out
    /// what was found. Panics with the place if an invariant does not hold: that is a fault of this
    /// program, never of its input.
    pub fn finish(self) -> Outcome {
        self.run.finish()
    }
}

type Built = Result<Box<dyn Run>, SetupError>;

/// Switches that forward by tables, as they queue and choose.
fn with_tables(setup: Setup<'_>, hosts: Hosts, subnet: &Subnet, lanes: usize) -> Built {
    let fabric = setup.fabric;
    let tables = || TableForwarder::new(fabric, subnet);
    let voq = setup.parameters.input_queueing == InputQueueing::Voq;
    match &subnet.adaptive {
        None if voq => with_any_lanes(setup, hosts, lanes, WithVoq(tables())),
        None => with_forwarder(setup, hosts, lanes, tables()),
        Some(groups) => {
            let forwarder = AdaptiveForwarder::new(fabric, subnet, groups);
            match voq {
                true => with_any_lanes(setup, hosts, lanes, WithVoq(forwarder)),
                false => with_any_lanes(setup, hosts, lanes, forwarder),
            }
        }
    }
}

/// The largest switch of a fabric.
pub(crate) fn radix(fabric: &Fabric) -> u8 {
    let radix = fabric.ids(NodeKind::Switch).map(|id| fabric.node(id).port_count());
    radix.max().unwrap_or(0)
}

/// Whether the common one of the two instances for any number of lanes, that for 8, fits.
pub(crate) fn fits_few(lanes: usize, radix: u8) -> bool {
    lanes <= 8 && radix <= 64
}

/// An instance for any number of lanes: one for common sizes, one for all.
fn with_any_lanes<F: Forwarder + 'static>(
    setup: Setup<'_>,
    hosts: Hosts,
    lanes: usize,
    forwarder: F,
) -> Built {
    if setup.control.is_some() {
        return with_control(setup, hosts, lanes, forwarder);
    }
    if fits_few(lanes, radix(setup.fabric)) {
        with_lanes::<F, u64, 8>(setup, hosts, forwarder)
    } else {
        with_lanes::<F, [u64; 4], 16>(setup, hosts, forwarder)
    }
}

/// An instance with mechanisms for any number of lanes.
fn with_control<F: Forwarder + 'static>(
    mut setup: Setup<'_>,
    hosts: Hosts,
    lanes: usize,
    forwarder: F,
) -> Built {
    let mechanisms = setup.control.take().unwrap_or_default();
    if fits_few(lanes, radix(setup.fabric)) {
        with_mechanisms::<F, u64, 8>(setup, hosts, forwarder, mechanisms)
    } else {
        with_mechanisms::<F, [u64; 4], 16>(setup, hosts, forwarder, mechanisms)
    }
}

/// Picks the instance of the engine with the fewest lanes and the smallest switches that fit.
fn with_forwarder<F: Forwarder + 'static>(
    setup: Setup<'_>,
    hosts: Hosts,
    lanes: usize,
    forwarder: F,
) -> Built {
    if setup.control.is_some() {
        return with_control(setup, hosts, lanes, forwarder);
    }
    match (lanes, radix(setup.fabric)) {
        (1, 0..=64) => with_lanes::<F, u64, 1>(setup, hosts, forwarder),
        (2, 0..=16) => with_lanes::<F, u16, 2>(setup, hosts, forwarder),
        (2, 17..=64) => with_lanes::<F, u64, 2>(setup, hosts, forwarder),
        (3..=8, 0..=64) => with_lanes::<F, u64, 8>(setup, hosts, forwarder),
        _ => with_lanes::<F, [u64; 4], 16>(setup, hosts, forwarder),
    }
}

fn with_lanes<F: Forwarder + 'static, B: PortSet, const V: usize>(
    mut setup: Setup<'_>,
    hosts: Hosts,
    forwarder: F,
) -> Built {
    let network = Network::<B, V>::new(&setup, &hosts);
    let Some(recording) = setup.recording.take() else {
        return Ok(Box::new(Engine::new(setup, hosts, network, forwarder, NoObserver, NoControl)));
    };
    let recorder = Recorder::new(recording, setup.groups.len(), network.ports.len());
    Ok(Box::new(Engine::new(setup, hosts, network, forwarder, recorder, NoControl)))
}

/// An instance with mechanisms: what they did is always recorded.
fn with_mechanisms<F: Forwarder + 'static, B: PortSet, const V: usize>(
    mut setup: Setup<'_>,
    hosts: Hosts,
    forwarder: F,
    mechanisms: Mechanisms,
) -> Built {
    let network = Network::<B, V>::new(&setup, &hosts);
    let nothing = Recording { slice: Picoseconds::MAX_RUN, slices: 1, flow_bytes_max: 0 };
    let recording = setup.recording.take().unwrap_or(nothing);
    let record = Record::new(recording.slice.0, recording.slices, recording.flow_bytes_max);
    let paths = match setup.forwarding {
        Forwarding::Tables(subnet) => hosts.paths(subnet),
        Forwarding::DimensionOrder(_) => 1,
    };
    let control = Controlled::new(mechanisms, &network, &setup.parameters, &hosts, paths, record);
    let recorder = Recorder::new(recording, setup.groups.len(), network.ports.len());
    Ok(Box::new(Engine::new(setup, hosts, network, forwarder, recorder, control)))
}

fn check(setup: &Setup<'_>, hosts: &Hosts) -> Result<(), SetupError> {
    if hosts.count() < 2 {
        return Err(SetupError::TooFewHosts(hosts.count()));
    }
    if setup.programs.len() != hosts.count() {
        let (programs, ranks) = (setup.programs.len(), hosts.count());
        return Err(SetupError::Programs { programs, ranks });
    }
    check_parameters(&setup.parameters)?;
    within("queue_width_log2", setup.queue_width_log2, 6..=24)
}

/// Fails if a value is outside its range or values do not fit each other.
fn check_parameters(p: &Parameters) -> Result<(), SetupError> {
    if !wire::MTUS.contains(&p.mtu) {
        let range = wire::MTUS.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        return Err(SetupError::Parameter { name: "mtu", value: p.mtu.to_string(), range });
    }
    if let Some(header) = p.header {
        within("header", Bytes(header.into()), ranges::HEADER)?;
    }
    for (name, rate) in
        [("link_rate", p.link_rate), ("dma_rate", p.dma_rate), ("drain_rate", p.drain_rate)]
    {
        rate.map_or(Ok(()), |rate| within(name, rate, ranges::RATE))?;
    }
    for (name, value) in [
        ("switch_delay", p.switch_delay),
        ("credit_delay", p.credit_delay),
        ("send_overhead", p.send_overhead),
        ("receive_overhead", p.receive_overhead),
    ] {
        within(name, value, ranges::DELAY)?;
    }
    within("cable_delay", p.cable_delay, ranges::CABLE_DELAY)?;
    within("outstanding", p.outstanding, ranges::OUTSTANDING)?;
    within("ack_coalescing", p.ack_coalescing, 1..=p.outstanding)?;
    if let Some(engines) = p.injection_engines {
        within("injection_engines", engines, ranges::INJECTION_ENGINES)?;
    }
    within("crossbar_speedup", p.crossbar_speedup, ranges::CROSSBAR_SPEEDUP)?;
    let packet = p.mtu + p.header.unwrap_or(wire::UD_DATA);
    if u64::from(wire::credits(packet) * wire::CREDIT_UNIT) > p.buffer.0 {
        return Err(SetupError::BufferTooSmall { buffer: p.buffer, packet });
    }
    within("buffer", p.buffer, ranges::BUFFER)
}

fn within<T: PartialOrd + std::fmt::Display>(
    name: &'static str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<(), SetupError> {
    if range.contains(&value) {
        return Ok(());
    }
    let range = format!("{} to {}", range.start(), range.end());
    Err(SetupError::Parameter { name, value: value.to_string(), range })
}

/// Every port of a group leads to another switch.
fn check_groups(
    fabric: &Fabric,
    subnet: &Subnet,
    groups: &AdaptiveGroups,
) -> Result<(), SetupError> {
    for (row, switch) in subnet.tables.switches().iter().enumerate() {
        for number in groups.lists(row).iter().flatten() {
            let port = PortNumber::new(*number).unwrap_or(PortNumber::MANAGEMENT);
            let end = Endpoint { node: *switch, port };
            let peer = fabric.peer(end).filter(|_| *number > 0);
            if !peer.is_some_and(|peer| fabric.node(peer.node).is_switch()) {
                return Err(SetupError::Group { port: fabric.describe(end) });
            }
        }
    }
    Ok(())
}

/// Every packet a host may send finds an entry at every switch it comes to, so that the hot loop
/// need not ask. Loops are left in: they show as packets that never arrive, and as deadlocks.
fn check_tables(
    fabric: &Fabric,
    hosts: &Hosts,
    subnet: &Subnet,
    all_paths: bool,
) -> Result<(), SetupError> {
    let mut seen_for = vec![0u32; fabric.nodes().len()];
    let mut rows = vec![0; fabric.nodes().len()];
    for (row, switch) in subnet.tables.switches().iter().enumerate() {
        rows[switch.index()] = row;
    }
    let leaves = hosts.ends().iter().filter_map(|end| fabric.peer(*end));
    let leaves: BTreeSet<NodeId> = leaves.map(|peer| peer.node).collect();
    let mut walk = 0;
    for end in hosts.ends() {
        let name = || fabric.node(end.node).name.clone();
        let (base, lmc) = subnet.lids.base(*end).ok_or_else(|| SetupError::NoLid(name()))?;
        let offsets = if all_paths { lmc.lids() } else { 1 };
        for offset in 0..offsets {
            let lid = base.value().checked_add(offset).and_then(Lid::new);
            let lid = lid.ok_or_else(|| SetupError::NoLid(name()))?;
            walk += 1;
            check_lid(fabric, subnet, *end, lid, &leaves, &rows, (&mut seen_for, walk))?;
        }
    }
    Ok(())
}

/// Follows the packets to one LID from all leaves; `walk` tells where this walk has been.
fn check_lid(
    fabric: &Fabric,
    subnet: &Subnet,
    end: Endpoint,
    lid: Lid,
    leaves: &BTreeSet<NodeId>,
    rows: &[usize],
    (seen_for, walk): (&mut [u32], u32),
) -> Result<(), SetupError> {
    let mut at_switches: Vec<NodeId> = leaves.iter().copied().collect();
    while let Some(at) = at_switches.pop() {
        if std::mem::replace(&mut seen_for[at.index()], walk) == walk {
            continue;
        }
        let entry = subnet.tables.port(at, lid);
        let out = entry.filter(|port| port.value() > 0);
        let next = out.and_then(|port| fabric.peer(Endpoint { node: at, port }));
        match next {
            Some(peer) if peer == end => continue,
            Some(peer) if fabric.node(peer.node).is_switch() => at_switches.push(peer.node),
            _ => {
                let what = match entry {
                    None => "no entry".to_string(),
                    Some(port) => {
                        format!("port {port}, which leads to neither a switch nor it")
                    }
                };
                let name = |node| fabric.node(node).name.clone();
                let (host, switch) = (name(end.node), name(at));
                return Err(SetupError::DeadEnd { host, lid: lid.value(), switch, what });
            }
        }
        // A switch that chooses may send it to any of the group; `check_groups` has seen that
        // all of them lead to switches.
        let groups = subnet.adaptive.as_ref();
        let choices = groups.map_or(&[][..], |groups| groups.ports(rows[at.index()], lid));
        let port = |number: &u8| PortNumber::new(*number);
        let ends = choices.iter().filter_map(port).map(|port| Endpoint { node: at, port });
        at_switches.extend(ends.filter_map(|end| fabric.peer(end)).map(|peer| peer.node));
    }
    Ok(())
}
