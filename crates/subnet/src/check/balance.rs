//! How evenly the links are loaded: the worst link in shift permutations and in random ones, and
//! the effective bisection bandwidth (Hoefler, Schneider, Lumsdaine, "Multistage switches are not
//! crossbars", Cluster 2008).
//!
//! A link here is the output of a switch in one direction, those towards hosts included; its load
//! is the number of flows on it. Rank order is the order of adapters in the fabric; every host
//! sends to the first LID of its partner.

use crate::Subnet;
use crate::graph::{Host, Peer, SwitchGraph};
use clearlane_fabric::{Endpoint, Fabric};
use clearlane_ib::PortNumber;
use clearlane_ib::random::Stream;
use std::fmt;

/// What [`balance`] measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BalanceOptions {
    /// Shifts to look at; nothing for all of them. A sample is drawn without replacement.
    pub shifts: Option<usize>,
    /// Random permutations.
    pub permutations: usize,
    /// Random perfect matchings for the bisection bandwidth.
    pub matchings: usize,
    /// Seed of all random draws.
    pub seed: u64,
}

impl Default for BalanceOptions {
    fn default() -> Self {
        BalanceOptions { shifts: None, permutations: 50, matchings: 50, seed: 1 }
    }
}

/// The most loaded link of the most loaded permutation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Worst {
    /// Flows on the link.
    pub flows: u32,
    /// The link.
    pub link: Endpoint,
    /// The same as people name it.
    pub name: String,
    /// The shift, or the number of the random permutation.
    pub permutation: usize,
}

/// Worst links of a family of permutations.
#[derive(Clone, PartialEq, Debug)]
pub struct Permutations {
    /// How many were looked at.
    pub measured: usize,
    /// How many there are; for random ones as many as were asked for.
    pub of: usize,
    /// Mean over permutations of the flows on their worst link.
    pub mean: f64,
    /// Permutations without two flows on a link, all of whose flows arrived.
    pub contention_free: usize,
    /// The worst of all; the first of equals.
    pub worst: Option<Worst>,
    /// Flows that did not arrive and are not counted.
    pub lost: u64,
}

/// Effective bisection bandwidth.
#[derive(Clone, PartialEq, Debug)]
pub struct Bisection {
    /// Matchings looked at: hosts are split into random halves, each host of the first sends to
    /// one of the second.
    pub matchings: usize,
    /// Mean over all flows of 1 / (flows on the worst link of the path).
    pub mean_share: f64,
    /// The smallest mean of a matching.
    pub least: f64,
    /// The largest mean of a matching.
    pub most: f64,
}

/// What [`balance`] found.
#[derive(Clone, PartialEq, Debug)]
pub struct Balance {
    /// Hosts in rank order.
    pub hosts: usize,
    /// Shift permutations.
    pub shifts: Permutations,
    /// Random permutations.
    pub random: Permutations,
    /// Effective bisection bandwidth.
    pub bisection: Bisection,
}

impl fmt::Display for Permutations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Permutations { measured, of, mean, contention_free, .. } = self;
        write!(f, "worst link mean {mean:.2}")?;
        if let Some(worst) = &self.worst {
            let Worst { flows, name, permutation, .. } = worst;
            write!(f, ", worst {flows} ({name}, number {permutation})")?;
        }
        let share = 100.0 * *contention_free as f64 / (*measured).max(1) as f64;
        write!(f, ", {share:.1} % without contention, {measured} of {of}")?;
        if self.lost > 0 {
            write!(f, ", {} flows lost", self.lost)?;
        }
        Ok(())
    }
}

impl fmt::Display for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bisection { matchings, mean_share, least, most } = &self.bisection;
        writeln!(f, "shifts         {}", self.shifts)?;
        writeln!(f, "random         {}", self.random)?;
        writeln!(
            f,
            "bisection      {:.1} % of full bandwidth ({:.1} to {:.1} % over {matchings} \
             matchings)",
            100.0 * mean_share,
            100.0 * least,
            100.0 * most
        )
    }
}

/// Measures all three.
pub fn balance(fabric: &Fabric, subnet: &Subnet, options: &BalanceOptions) -> Balance {
    balance_told(fabric, subnet, options, &|_| ())
}

/// The same, telling the share of the permutations that is done, 0 to 1, after each.
pub fn balance_told(
    fabric: &Fabric,
    subnet: &Subnet,
    options: &BalanceOptions,
    told: &dyn Fn(f64),
) -> Balance {
    let mut load = Load::new(fabric, subnet);
    load.told = Some(told);
    let mut shift_numbers: Vec<u32> = (1..load.hosts.len().max(1) as u32).collect();
    let of = shift_numbers.len();
    if let Some(wanted) = options.shifts.filter(|wanted| *wanted < of) {
        shuffle(&mut shift_numbers, &mut Stream::new(options.seed, "shift sample", 0));
        shift_numbers.truncate(wanted);
        shift_numbers.sort_unstable();
    }
    load.permutations = shift_numbers.len() + options.permutations;
    let shifts = load.shifts(fabric, &shift_numbers);
    let random = load.random(fabric, options);
    let bisection = load.bisection(options);
    Balance { hosts: load.hosts.len(), shifts, random, bisection }
}

/// The worst links of all shift permutations alone.
pub fn shifts(fabric: &Fabric, subnet: &Subnet) -> Permutations {
    let mut load = Load::new(fabric, subnet);
    let numbers: Vec<u32> = (1..load.hosts.len().max(1) as u32).collect();
    load.shifts(fabric, &numbers)
}

/// The effective bisection bandwidth alone.
pub fn bisection(fabric: &Fabric, subnet: &Subnet, options: &BalanceOptions) -> Bisection {
    Load::new(fabric, subnet).bisection(options)
}

/// Fisher and Yates' shuffle.
fn shuffle(numbers: &mut [u32], stream: &mut Stream) {
    for last in (1..numbers.len()).rev() {
        numbers.swap(last, stream.below(last as u64 + 1) as usize);
    }
}

/// Flows by link, and what walking needs in flat arrays.
struct Load<'a> {
    subnet: &'a Subnet,
    graph: SwitchGraph,
    hosts: Vec<Host>,
    /// First LID by rank; 0 for a host without one.
    lids: Vec<u16>,
    /// Row a channel leads to; `END` where it leads to no switch.
    next: Vec<u32>,
    flows: Vec<u32>,
    /// Whom to tell, and how many permutations are done of how many.
    told: Option<&'a dyn Fn(f64)>,
    done: usize,
    permutations: usize,
}

/// No switch behind a channel.
const END: u32 = u32::MAX;

/// A path through more switches than this is taken for a loop.
const HOPS_MAX: usize = 1024;

impl<'a> Load<'a> {
    fn new(fabric: &Fabric, subnet: &'a Subnet) -> Self {
        let graph = SwitchGraph::of(fabric);
        let hosts = graph.hosts(fabric);
        let lid = |host: &Host| subnet.lids.base(host.end).map_or(0, |(lid, _)| lid.value());
        let lids = hosts.iter().map(lid).collect();
        let next = (0..graph.channels())
            .map(|channel| match graph.peer_of(channel) {
                Peer::Switch { row, .. } => row,
                _ => END,
            })
            .collect();
        let flows = vec![0; graph.channels()];
        Load { subnet, graph, hosts, lids, next, flows, told: None, done: 0, permutations: 0 }
    }

    /// Calls `pass` for every channel of a path; false if it does not arrive.
    #[inline]
    fn walk(&self, from: usize, to: usize, mut pass: impl FnMut(usize)) -> bool {
        let lid = usize::from(self.lids[to]);
        let home = self.hosts[to].row as usize;
        let mut row = self.hosts[from].row as usize;
        if lid == 0 || lid >= self.subnet.tables.columns() {
            return false;
        }
        for _ in 0..HOPS_MAX {
            let port = self.subnet.tables.row(row)[lid];
            if usize::from(port) >= self.graph.ports(row) {
                return false;
            }
            let channel = self.graph.channel(row, port);
            pass(channel);
            let next = self.next[channel];
            if next == END {
                return row == home && port == self.hosts[to].port;
            }
            row = next as usize;
        }
        false
    }

    /// Adds a flow; false, and nothing added, if it does not arrive.
    #[inline]
    fn add(&mut self, from: usize, to: usize) -> bool {
        let mut flows = std::mem::take(&mut self.flows);
        let arrives = self.walk(from, to, |channel| flows[channel] += 1);
        if !arrives {
            self.walk(from, to, |channel| flows[channel] -= 1);
        }
        self.flows = flows;
        arrives
    }

    /// Takes up one permutation's flows; gives the worst link.
    fn measure(
        &mut self,
        fabric: &Fabric,
        number: usize,
        partner: impl Fn(usize) -> usize,
        found: &mut Permutations,
    ) {
        self.flows.fill(0);
        let mut lost = 0;
        for from in 0..self.hosts.len() {
            let to = partner(from);
            if from != to && !self.add(from, to) {
                lost += 1;
            }
        }
        let most = self.flows.iter().copied().max().unwrap_or(0);
        self.done += 1;
        if let Some(told) = self.told {
            told(self.done as f64 / self.permutations.max(self.done) as f64);
        }
        found.measured += 1;
        found.mean += f64::from(most);
        found.lost += lost;
        found.contention_free += usize::from(most <= 1 && lost == 0);
        if most > found.worst.as_ref().map_or(0, |worst| worst.flows) {
            let channel = self.flows.iter().position(|flows| *flows == most).unwrap_or(0);
            let (row, port) = self.graph.place(channel);
            let port = PortNumber::new(port).unwrap_or(PortNumber::MANAGEMENT);
            let link = Endpoint { node: self.graph.switch(row), port };
            let name = fabric.describe(link).escape_debug().to_string();
            found.worst = Some(Worst { flows: most, link, name, permutation: number });
        }
    }

    fn shifts(&mut self, fabric: &Fabric, numbers: &[u32]) -> Permutations {
        let count = self.hosts.len();
        let mut found = Permutations::none(count.saturating_sub(1));
        for shift in numbers.iter().map(|shift| *shift as usize) {
            self.measure(fabric, shift, |from| (from + shift) % count, &mut found);
        }
        found.finish()
    }

    fn random(&mut self, fabric: &Fabric, options: &BalanceOptions) -> Permutations {
        let mut found = Permutations::none(options.permutations);
        for number in 0..options.permutations {
            let mut order: Vec<u32> = (0..self.hosts.len() as u32).collect();
            shuffle(&mut order, &mut Stream::new(options.seed, "permutation", number as u64));
            self.measure(fabric, number, |from| order[from] as usize, &mut found);
        }
        found.finish()
    }

    fn bisection(&mut self, options: &BalanceOptions) -> Bisection {
        let half = self.hosts.len() / 2;
        let mut found = Bisection { matchings: 0, mean_share: 0.0, least: 1.0, most: 0.0 };
        if half == 0 {
            return Bisection { least: 0.0, ..found };
        }
        for number in 0..options.matchings {
            let mut order: Vec<u32> = (0..self.hosts.len() as u32).collect();
            shuffle(&mut order, &mut Stream::new(options.seed, "matching", number as u64));
            let pairs = order[..half].iter().zip(&order[half..2 * half]);
            let pairs: Vec<(usize, usize)> =
                pairs.map(|(from, to)| (*from as usize, *to as usize)).collect();
            self.flows.fill(0);
            let arrived: Vec<bool> = pairs.iter().map(|(from, to)| self.add(*from, *to)).collect();
            let mut sum = 0.0;
            for ((from, to), _) in pairs.iter().zip(arrived).filter(|(_, arrived)| *arrived) {
                let mut most = 1;
                self.walk(*from, *to, |channel| most = most.max(self.flows[channel]));
                sum += 1.0 / f64::from(most);
            }
            let share = sum / half as f64;
            found.matchings += 1;
            found.mean_share += share;
            found.least = found.least.min(share);
            found.most = found.most.max(share);
        }
        found.mean_share /= found.matchings.max(1) as f64;
        found
    }
}

impl Permutations {
    fn none(of: usize) -> Self {
        Permutations { measured: 0, of, mean: 0.0, contention_free: 0, worst: None, lost: 0 }
    }

    fn finish(mut self) -> Self {
        self.mean /= self.measured.max(1) as f64;
        self
    }
}
