//! Whether every host reaches every LID of every other host, by walking the tables. A host here is
//! an adapter port: one with two cabled ports counts twice. A host without a LID can neither be
//! sent to nor be answered, so all its paths are lost.
//!
//! Per LID each switch is walked once: what a switch leads to is remembered, so the work is
//! (switches × LIDs), not (pairs × hops).

use crate::Subnet;
use crate::graph::{Host, Peer, SwitchGraph, Target};
use clearlane_fabric::{Endpoint, Fabric, NodeId};
use clearlane_ib::{Lid, PortNumber};
use std::collections::BTreeSet;
use std::fmt;

/// How many faults are kept with their path.
const EXAMPLES_MAX: usize = 8;

/// A switch on a path and the output port taken there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// The switch.
    pub switch: NodeId,
    /// Where it sends to; nothing where its table has no entry.
    pub port: Option<PortNumber>,
}

/// Why a packet does not arrive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FaultKind {
    /// The last switch of the path has no entry; or one of the ends has no LID, for which there
    /// can be none.
    NoEntry,
    /// The entry names a port without a cable.
    NoCable,
    /// The path ends at another adapter or at a switch's own port.
    WrongEnd,
    /// The path comes back to a switch it has passed.
    Loop,
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FaultKind::NoEntry => "no entry",
            FaultKind::NoCable => "port without cable",
            FaultKind::WrongEnd => "wrong end",
            FaultKind::Loop => "loop",
        })
    }
}

/// A path that does not arrive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// What is wrong.
    pub kind: FaultKind,
    /// The host that sends.
    pub source: Endpoint,
    /// The port that does not get it.
    pub destination: Endpoint,
    /// The LID asked for; nothing if the destination has none.
    pub lid: Option<Lid>,
    /// The proof: every switch passed, up to the fault; a loop ends where it closes. Empty if the
    /// destination has no LID.
    pub path: Vec<Hop>,
    /// The same in words.
    pub text: String,
}

/// What [`reachability`] found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReachabilityReport {
    /// Adapter ports plugged into a switch; all send and receive.
    pub hosts: usize,
    /// The adapters these ports are on: fewer where an adapter has several cabled ports.
    pub adapters: usize,
    /// Those of them without a LID.
    pub without_lid: usize,
    /// Host LIDs looked at: hosts × LIDs of each.
    pub lids: usize,
    /// (host, LID of another host) pairs; a host without a LID counts as one that nobody reaches.
    pub pairs: u64,
    /// Those that arrive.
    pub reached: u64,
    /// Those that do not, by kind: no entry, no cable, wrong end, loop.
    pub faults: [u64; 4],
    /// The first faults, with proof.
    pub examples: Vec<Fault>,
    /// Pairs by number of switches passed; index 0 stays 0.
    pub hops: Vec<u64>,
    /// (host, switch LID) pairs that do not arrive: management of these switches.
    pub switches_unreached: u64,
}

impl ReachabilityReport {
    /// Whether there are two hosts with LIDs at least and every host reaches every LID of every
    /// other one.
    pub fn is_sane(&self) -> bool {
        self.reached == self.pairs && self.hosts - self.without_lid >= 2
    }

    /// Who sends and receives, in words: `32 hosts`, or `32 ports of 16 hosts`.
    pub fn who(&self) -> String {
        let hosts = |count| format!("{count} {}", if count == 1 { "host" } else { "hosts" });
        match self.adapters < self.hosts {
            true => format!("{} ports of {}", self.hosts, hosts(self.adapters)),
            false => hosts(self.hosts),
        }
    }
}

impl fmt::Display for ReachabilityReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReachabilityReport { lids, pairs, reached, .. } = self;
        writeln!(
            f,
            "reachability   {reached} of {pairs} paths arrive ({}, {lids} LIDs)",
            self.who()
        )?;
        if self.without_lid > 0 {
            writeln!(f, "without LID    {} hosts", self.without_lid)?;
        }
        let kinds = [FaultKind::NoEntry, FaultKind::NoCable, FaultKind::WrongEnd, FaultKind::Loop];
        for (kind, count) in kinds.iter().zip(self.faults).filter(|(_, count)| *count > 0) {
            writeln!(f, "{kind:<14} {count} paths")?;
        }
        for fault in &self.examples {
            writeln!(f, "  {}", fault.text)?;
        }
        if self.switches_unreached > 0 {
            writeln!(f, "management     {} paths to switches missing", self.switches_unreached)?;
        }
        for (hops, count) in self.hops.iter().enumerate().filter(|(_, count)| **count > 0) {
            let share = 100.0 * *count as f64 / (*reached).max(1) as f64;
            writeln!(f, "{hops:>2} switches    {count} paths, {share:.1} %")?;
        }
        Ok(())
    }
}

/// What is known of a switch for the LID at hand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Unknown,
    OnPath,
    /// Arrives after passing so many switches, this one included.
    Reached(u32),
    Lost(FaultKind),
}

/// Walks every (host, LID) pair.
pub fn reachability(fabric: &Fabric, subnet: &Subnet) -> ReachabilityReport {
    let graph = SwitchGraph::of(fabric);
    let hosts = graph.adapter_ports(fabric);
    let has_lid = |host: &&Host| subnet.lids.base(host.end).is_some();
    let (hosts_with_lid, without_lid): (Vec<&Host>, Vec<&Host>) = hosts.iter().partition(has_lid);
    let mut walk = Walk::new(&graph, subnet);
    let mut report = ReachabilityReport {
        hosts: hosts.len(),
        adapters: hosts.iter().map(|host| host.end.node).collect::<BTreeSet<_>>().len(),
        without_lid: without_lid.len(),
        lids: 0,
        pairs: 0,
        reached: 0,
        faults: [0; 4],
        examples: unaddressed(fabric, &hosts, &without_lid),
        hops: Vec::new(),
        switches_unreached: 0,
    };
    // Hosts by switch: what one of them meets, all meet.
    let mut on_switch: Vec<Vec<Host>> = vec![Vec::new(); graph.rows()];
    for host in hosts_with_lid {
        on_switch[host.row as usize].push(*host);
    }
    for target in graph.targets(&subnet.lids) {
        let is_host = target.exit != 0;
        report.lids += usize::from(is_host);
        walk.all(&target, &on_switch);
        for (row, on_switch) in on_switch.iter().enumerate() {
            let sources = on_switch.iter().filter(|host| host.end != target.owner.end);
            let count = sources.clone().count() as u64;
            match (is_host, walk.states[row]) {
                (_, _) if count == 0 => {}
                (false, State::Reached(_)) => {}
                (false, _) => report.switches_unreached += count,
                (true, state) => {
                    report.pairs += count;
                    report.add(state, count);
                    if let State::Lost(kind) = state
                        && report.examples.len() < EXAMPLES_MAX
                        && let Some(source) = sources.clone().next()
                    {
                        let fault = walk.fault(fabric, kind, source, &target);
                        report.examples.push(fault);
                    }
                }
            }
        }
    }
    // Each of them as the destination of every other host and as the source for every LID.
    let of_each = hosts.len().saturating_sub(1) + report.lids;
    let lost = without_lid.len() as u64 * of_each as u64;
    report.pairs += lost;
    report.add(State::Lost(FaultKind::NoEntry), lost);
    report
}

/// A fault for each host without a LID, as many as are shown.
fn unaddressed(fabric: &Fabric, hosts: &[Host], without_lid: &[&Host]) -> Vec<Fault> {
    let fault = |host: &&Host| {
        let source = hosts.iter().find(|other| other.end != host.end)?.end;
        let name = |end: Endpoint| fabric.describe(end).escape_debug().to_string();
        let (from, to) = (name(source), name(host.end));
        let text = format!("no LID: {from} to {to}: {to} has none, so nobody can send to it");
        let (kind, destination) = (FaultKind::NoEntry, host.end);
        Some(Fault { kind, source, destination, lid: None, path: Vec::new(), text })
    };
    without_lid.iter().filter_map(fault).take(EXAMPLES_MAX).collect()
}

impl ReachabilityReport {
    fn add(&mut self, state: State, count: u64) {
        match state {
            State::Reached(hops) => {
                let hops = hops as usize;
                if self.hops.len() <= hops {
                    self.hops.resize(hops + 1, 0);
                }
                self.hops[hops] += count;
                self.reached += count;
            }
            State::Lost(kind) => self.faults[kind as usize] += count,
            State::Unknown | State::OnPath => {}
        }
    }
}

/// Follows tables to one LID after the other.
pub(super) struct Walk<'a> {
    graph: &'a SwitchGraph,
    subnet: &'a Subnet,
    states: Vec<State>,
    path: Vec<usize>,
}

/// Where one step leads.
enum Step {
    Arrived,
    On(usize),
    Lost(FaultKind),
}

impl<'a> Walk<'a> {
    pub(super) fn new(graph: &'a SwitchGraph, subnet: &'a Subnet) -> Self {
        Walk { graph, subnet, states: Vec::new(), path: Vec::new() }
    }

    /// What is known of a switch for the LID walked to last.
    pub(super) fn state(&self, row: usize) -> State {
        self.states[row]
    }

    /// Settles the state of every switch that holds hosts.
    pub(super) fn all(&mut self, target: &Target, on_switch: &[Vec<Host>]) {
        self.states.clear();
        self.states.resize(self.graph.rows(), State::Unknown);
        for (start, hosts) in on_switch.iter().enumerate() {
            if hosts.is_empty() {
                continue;
            }
            let mut row = start;
            self.path.clear();
            let end = loop {
                match self.states[row] {
                    State::Unknown => {}
                    State::OnPath => break State::Lost(FaultKind::Loop),
                    known => break known,
                }
                self.states[row] = State::OnPath;
                self.path.push(row);
                match self.step(row, target) {
                    Step::On(next) => row = next,
                    Step::Arrived => break State::Reached(0),
                    Step::Lost(kind) => break State::Lost(kind),
                }
            };
            let mut state = end;
            while let Some(row) = self.path.pop() {
                if let State::Reached(hops) = &mut state {
                    *hops += 1;
                }
                self.states[row] = state;
            }
        }
    }

    fn step(&self, row: usize, target: &Target) -> Step {
        let lid = usize::from(target.lid.value());
        let port = self.subnet.tables.row(row).get(lid).copied().unwrap_or(u8::MAX);
        if port == u8::MAX {
            return Step::Lost(FaultKind::NoEntry);
        }
        if row == target.row as usize && port == target.exit {
            return Step::Arrived;
        }
        match self.graph.peer(row, port) {
            Peer::Switch { row: next, .. } => Step::On(next as usize),
            Peer::Adapter { .. } => Step::Lost(FaultKind::WrongEnd),
            Peer::Nothing if port == 0 => Step::Lost(FaultKind::WrongEnd),
            Peer::Nothing => Step::Lost(FaultKind::NoCable),
        }
    }

    /// Walks once more, writing down the proof.
    fn fault(&self, fabric: &Fabric, kind: FaultKind, source: &Host, target: &Target) -> Fault {
        let mut path = Vec::new();
        let mut passed = vec![false; self.graph.rows()];
        let mut row = source.row as usize;
        loop {
            let port = self.subnet.tables.port(self.graph.switch(row), target.lid);
            path.push(Hop { switch: self.graph.switch(row), port });
            if std::mem::replace(&mut passed[row], true) {
                break;
            }
            match self.step(row, target) {
                Step::On(next) => row = next,
                Step::Arrived | Step::Lost(_) => break,
            }
        }
        let name = |node: NodeId| fabric.node(node).name.escape_debug().to_string();
        let (from, to) = (name(source.end.node), name(target.owner.end.node));
        let mut text = format!("{kind}: {from} to {to} (LID {}): ", target.lid);
        const SHOWN_MAX: usize = 24;
        for (index, hop) in path.iter().take(SHOWN_MAX).enumerate() {
            let port = hop.port.map_or("no entry".into(), |port| port.to_string());
            let arrow = if index == 0 { "" } else { " → " };
            text.push_str(&format!("{arrow}{}[{port}]", name(hop.switch)));
        }
        if path.len() > SHOWN_MAX {
            text.push_str(&format!(" → … ({} switches)", path.len()));
        }
        let (source, destination) = (source.end, target.owner.end);
        Fault { kind, source, destination, lid: Some(target.lid), path, text }
    }
}
