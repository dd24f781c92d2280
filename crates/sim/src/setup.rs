//! What a simulation is made of, and whether it can be one.

use crate::error::SetupError;
use crate::fleet::Fleet;
use crate::forwarding::Forwarding;
use crate::parameters::{Access, KEYS, Key};
use crate::queue::Address;
use crate::ranges::{self, ADAPTER_PORTS_MAX};
use crate::ranks::SEATS_MAX;
use crate::recorder::Recording;
use crate::{BufferPer, GroupSettings, Hosts, Mechanisms, Parameters};
use clearlane_fabric::{Endpoint, Fabric, NodeId, NodeKind};
use clearlane_ib::{Bytes, Lid, Picoseconds, PortNumber, wire};
use clearlane_subnet::{AdaptiveGroups, Subnet};
use clearlane_workload::{Rank, RankProgram};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

/// How a run is divided. Results do not depend on it: the same bytes whatever the division.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Division {
    /// Parts of the fabric, at least 1; as many as there are switches at most.
    pub partitions: usize,
    /// Threads, at least 1; as many as there are partitions at most.
    pub threads: usize,
}

impl Division {
    /// All in one.
    pub const WHOLE: Division = Division { partitions: 1, threads: 1 };

    /// A partition for each of so many threads.
    pub const fn of_threads(threads: usize) -> Self {
        Division { partitions: threads, threads }
    }
}

/// Ends of cables at switches that keep a thread busy: with fewer, threads would wait for each
/// other longer than they work. On two idle cores a whole run of the tree of 648 hosts, which has
/// 1,944, gains a twentieth for two thirds more CPU time (docs/performance.md).
pub const CABLE_ENDS_PER_THREAD: usize = 2000;

/// Ends of cables at the switches of a fabric: what its work goes by.
pub fn cable_ends(fabric: &Fabric) -> usize {
    let switches = fabric.ids(NodeKind::Switch);
    switches.map(|switch| fabric.neighbours(switch).count()).sum()
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
    /// What each host does by itself, in the order of [`Hosts::of`]: open-loop traffic as a rule.
    pub programs: Vec<Box<dyn RankProgram>>,
    /// Programs of several ranks each, beside that. Their flow groups are reliable connections.
    pub jobs: Vec<Job>,
    /// Whether the run ends when all of `jobs` have ended: then it lasts to the next multiple of
    /// [`END_GRID`].
    pub ends_with_jobs: bool,
    /// Congestion mechanisms; none costs nothing.
    pub control: Option<Mechanisms>,
    /// Settings of the recorder.
    pub recording: Recording,
    /// In how many parts and on how many threads; without influence on any result. Of several
    /// processes, the parts are those of all, and the threads those of each.
    pub division: Division,
    /// The processes that simulate it together, each of which has been given the same set-up;
    /// nothing for one alone. Without influence on any result.
    pub fleet: Option<Arc<dyn Fleet>>,
    /// Ports of switches and hosts at which packets are to be seen one by one, with
    /// [`Simulation::take_tapped`](crate::Simulation::take_tapped).
    pub taps: Vec<Endpoint>,
    /// Whether tables may lead some packets nowhere. Then programs send nothing to whom their
    /// packets, or the answers, would not arrive; else such tables are an error. Switches that
    /// choose among ports may not have such tables.
    pub dead_pairs: bool,
    /// Widest slot of the event queue, as a power of two of picoseconds, 6..=24. It has no
    /// influence on any result; [`queue_width_log2`] gives one that is fast.
    pub queue_width_log2: u32,
}

/// A program of several ranks.
pub struct Job {
    /// Its ranks in their order.
    pub ranks: Vec<Placed>,
}

/// A rank of a program, and where it is.
pub struct Placed {
    /// The host, by its number in [`Hosts::of`]. Ranks of one program are at different hosts.
    pub host: u32,
    /// The program that it runs.
    pub program: Box<dyn RankProgram>,
}

/// A run that ends with its programs lasts to a multiple of this (1.05 us), so that all of it has
/// come to the same time.
pub const END_GRID: Picoseconds = Picoseconds(1 << 20);

/// A width of the event queue's slots at which a slot of a busy fabric holds some hundred events:
/// 524 ns for a hundred hosts, 16 ns for four thousand. The lookahead may make slots narrower.
pub fn queue_width_log2(hosts: usize) -> u32 {
    let busier = (hosts / 128).max(1).ilog2();
    17u32.saturating_sub(busier / 2).max(14)
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

impl Setup<'_> {
    /// Fails if a parameter is out of range, something is where it cannot be, or a table would send
    /// a packet nowhere. `hosts` are those of its fabric and its parameters.
    pub fn check(&self, hosts: &Hosts) -> Result<(), SetupError> {
        check(self, hosts)?;
        let switches = self.fabric.ids(NodeKind::Switch).count();
        let partitions = self.division.partitions.clamp(1, switches.max(1));
        let processes = self.fleet.as_ref().map_or(1, |fleet| fleet.size());
        if partitions < processes {
            return Err(SetupError::Processes { processes, partitions });
        }
        let Forwarding::Tables(subnet) = self.forwarding else { return Ok(()) };
        if let Some(groups) = &subnet.adaptive {
            check_groups(self.fabric, subnet, groups)?;
        }
        let chosen = self.control.as_ref().is_some_and(|control| control.which.is_some());
        let all = chosen || !self.jobs.is_empty();
        match self.dead_pairs && subnet.adaptive.is_none() {
            true => Ok(()),
            false => check_tables(self.fabric, hosts, subnet, all),
        }
    }
}

/// Fails if a set-up cannot be simulated, whatever it forwards by.
fn check(setup: &Setup<'_>, hosts: &Hosts) -> Result<(), SetupError> {
    if hosts.count() < 2 {
        return Err(SetupError::TooFewHosts(hosts.count()));
    }
    if setup.programs.len() != hosts.count() {
        let (programs, ranks) = (setup.programs.len(), hosts.count());
        return Err(SetupError::Programs { programs, ranks });
    }
    check_ports(setup.fabric, hosts)?;
    check_jobs(setup, hosts.count())?;
    check_parameters(&setup.parameters, setup.forwarding.lanes())?;
    check_taps(setup)?;
    let switches = setup.fabric.ids(NodeKind::Switch).count();
    check_threads(setup.division.threads.min(setup.division.partitions).min(switches))?;
    within("queue_width_log2", setup.queue_width_log2, 6..=24)
}

/// Fails if a switch and the adapters whose first port is plugged into it have more ports than a
/// home has places.
fn check_ports(fabric: &Fabric, hosts: &Hosts) -> Result<(), SetupError> {
    if !hosts.has_several_ports() {
        return Ok(());
    }
    let mut ports = vec![0; fabric.nodes().len()];
    for rank in 0..hosts.count() as u32 {
        let Some(switch) = fabric.peer(hosts.end(Rank(rank))) else { continue };
        ports[switch.node.index()] += hosts.ports(Rank(rank)).len();
    }
    for switch in fabric.ids(NodeKind::Switch) {
        let places = ports[switch.index()] + usize::from(fabric.node(switch).port_count());
        if places > Address::PLACES as usize {
            let (switch, ports) = (fabric.node(switch).name.clone(), ports[switch.index()]);
            return Err(SetupError::AdapterPorts { switch, ports });
        }
    }
    Ok(())
}

/// Fails if a rank of a program is nowhere, or not alone with its program where it is.
fn check_jobs(setup: &Setup<'_>, hosts: usize) -> Result<(), SetupError> {
    let mut all = vec![0u8; hosts];
    for job in &setup.jobs {
        let mut seen = BTreeSet::new();
        for (rank, placed) in job.ranks.iter().enumerate() {
            let host = placed.host as usize;
            let why = match all.get(host) {
                None => "there is no such host",
                Some(_) if !seen.insert(host) => "another rank of its program is there",
                Some(&SEATS_MAX) => "15 ranks of other programs are there",
                Some(_) => {
                    all[host] += 1;
                    continue;
                }
            };
            return Err(SetupError::Placement { rank, host: placed.host, why });
        }
    }
    Ok(())
}

/// Fails if the system does not start so many threads: better before a run than within.
fn check_threads(threads: usize) -> Result<(), SetupError> {
    // A thread takes 4 MiB and more beside its stack of 2 MiB. Both are asked of the system here,
    // which may refuse them: what the thread itself lacks ends the process.
    const STACK: usize = (2 + 4) << 20;
    const PATIENCE: Duration = Duration::from_secs(60);
    let gate = Mutex::new(());
    let closed = gate.lock();
    let all_started = thread::scope(|scope| {
        let (tells, begun) = mpsc::channel();
        // All are there at once: none ends before the gate is opened.
        let start = || {
            let (gate, tells) = (&gate, tells.clone());
            let waits = move || {
                // Nobody has hung up: the other end is here.
                _ = tells.send(());
                drop(gate.lock());
            };
            thread::Builder::new().stack_size(STACK).spawn_scoped(scope, waits)
        };
        let started = |_| start().is_ok() && begun.recv_timeout(PATIENCE).is_ok();
        let all_started = (1..threads).all(started);
        drop(closed);
        all_started
    });
    match all_started {
        true => Ok(()),
        false => Err(SetupError::Threads { threads }),
    }
}

/// Fails if a tap is at a port without a cable.
fn check_taps(setup: &Setup<'_>) -> Result<(), SetupError> {
    match setup.taps.iter().find(|tap| setup.fabric.peer(**tap).is_none()) {
        None => Ok(()),
        Some(tap) => Err(SetupError::Tap {
            port: setup.fabric.describe(*tap),
            why: "it has no cable; tap one that has",
        }),
    }
}

/// Fails if a value is outside its range or values do not fit each other.
fn check_parameters(p: &Parameters, lanes: u8) -> Result<(), SetupError> {
    KEYS.iter().try_for_each(|key| check_parameter(p, key))?;
    within("ack_coalescing", p.ack_coalescing, 1..=p.outstanding)?;
    let packet = p.packet_bytes_max();
    let stages = Picoseconds(p.va_delay.0 + p.sa_delay.0);
    within("va_delay + sa_delay", stages, Picoseconds(0)..=p.switch_delay)?;
    let full = Bytes((wire::credits(packet) * wire::CREDIT_UNIT).into());
    if let Some(bytes) = p.output_buffer {
        within("output_buffer", Bytes(bytes.into()), full..=*ranges::OUTPUT_BUFFER.end())?;
    }
    let buffer = p.lane_buffer(lanes);
    if full > buffer {
        let lanes = (p.buffer_per == BufferPer::Port).then_some(lanes);
        return Err(SetupError::BufferTooSmall { buffer, lanes, packet });
    }
    Ok(())
}

/// Fails if a value is outside its range.
fn check_parameter(p: &Parameters, key: &Key) -> Result<(), SetupError> {
    let name = key.name;
    match &key.access {
        Access::Time(range, at) => within(name, (at.get)(p), range.clone()),
        Access::Size(range, at) => within(name, (at.get)(p), range.clone()),
        Access::SizeOf(sizes, at) => match (at.get)(p) {
            size if sizes.contains(&size) => Ok(()),
            size => {
                let range = sizes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
                Err(SetupError::Parameter { name, value: size.to_string(), range })
            }
        },
        Access::SizeOr(_, range, at) => {
            let size = (at.get)(p).map(|size| Bytes(size.into()));
            size.map_or(Ok(()), |size| within(name, size, range.clone()))
        }
        Access::RateOr(_, range, at) => {
            (at.get)(p).map_or(Ok(()), |rate| within(name, rate, range.clone()))
        }
        Access::Count(range, at) | Access::Hundredths(range, at) => {
            within(name, (at.get)(p), range.clone())
        }
        Access::CountOr(_, range, at) => {
            (at.get)(p).map_or(Ok(()), |count| within(name, count, range.clone()))
        }
        Access::Word(..) => Ok(()),
    }
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
    // Ports of one number send to each other: planes need no cable between them.
    let mut leaves = vec![BTreeSet::new(); ADAPTER_PORTS_MAX as usize];
    let ranks = (0..hosts.count() as u32).map(Rank);
    let numbered = ranks.flat_map(|rank| hosts.ports(rank).iter().enumerate());
    for (number, end) in numbered.clone() {
        leaves[number].extend(fabric.peer(*end).map(|peer| peer.node));
    }
    let mut walk = 0;
    for (number, end) in numbered {
        let name = || fabric.node(end.node).name.clone();
        let (base, lmc) = subnet.lids.base(*end).ok_or_else(|| SetupError::NoLid(name()))?;
        let offsets = if all_paths { lmc.lids() } else { 1 };
        for offset in 0..offsets {
            let lid = base.value().checked_add(offset).and_then(Lid::new);
            let lid = lid.ok_or_else(|| SetupError::NoLid(name()))?;
            walk += 1;
            let seen = (seen_for.as_mut_slice(), walk);
            check_lid(fabric, subnet, *end, lid, &leaves[number], &rows, seen)?;
        }
    }
    Ok(())
}

/// Whether tables lead from these switches, by their place among all, to these LIDs: packets that
/// come from outside may be where no packet comes to.
pub(crate) fn lead(fabric: &Fabric, subnet: &Subnet, ways: BTreeSet<(u32, u32)>) -> bool {
    let switches: Vec<NodeId> = fabric.ids(NodeKind::Switch).collect();
    let mut rows = vec![0; fabric.nodes().len()];
    for (row, switch) in subnet.tables.switches().iter().enumerate() {
        rows[switch.index()] = row;
    }
    let mut seen_for = vec![0u32; fabric.nodes().len()];
    (1..).zip(ways).all(|(walk, (home, lid))| {
        let lid = u16::try_from(lid).ok().and_then(Lid::new);
        let owner = lid.and_then(|lid| Some((lid, subnet.lids.owner(lid)?.end)));
        let (Some((lid, end)), Some(switch)) = (owner, switches.get(home as usize)) else {
            return false;
        };
        let from = BTreeSet::from([*switch]);
        check_lid(fabric, subnet, end, lid, &from, &rows, (&mut seen_for, walk)).is_ok()
    })
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

/// The largest switch of a fabric.
pub(crate) fn radix(fabric: &Fabric) -> u8 {
    let radix = fabric.ids(NodeKind::Switch).map(|id| fabric.node(id).port_count());
    radix.max().unwrap_or(0)
}
