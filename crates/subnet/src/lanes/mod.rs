//! Which lane a path takes: what idle virtual lanes are given to, against congestion. One policy a
//! file, one line in [`ALL`].
//!
//! A policy runs after an engine. Tables stay as they are; paths get SLs, SL s is on VL s, and all
//! lanes have the same weight. That is safe only where the tables have no credit loop on one lane:
//! a packet keeps its SL, so whatever waits in a circle on several lanes does so on one.

mod by_class;
mod by_destination;
mod dftree_static;
mod random;
mod vftree;

use crate::check::credit_loop;
use crate::engines;
use crate::graph::{Host, SwitchGraph};
use crate::{HostGroups, PathSl, SlToVl, SlToVlTable, Subnet, VlArbitration};
use clearlane_fabric::{Endpoint, Fabric, NodeId};
use clearlane_ib::{VirtualLane, quoted};
use std::collections::BTreeMap;

/// A policy.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// One line on what it does.
    pub summary: &'static str,
    /// Who described it.
    pub reference: &'static str,
    /// Which of the [`LaneOptions`] it uses, with ranges.
    pub parameters: &'static str,
    /// Data VLs to use where nobody says how many.
    pub lanes: u8,
    /// Fewest lanes it can do anything with.
    pub lanes_min: u8,
    /// True if it uses [`LaneOptions::hot`], and needs one host at least.
    pub hot: bool,
    /// True if both ways of a pair have the same SL. Acknowledgements take the SL of what they
    /// acknowledge, so a reply of an application is all that differs otherwise.
    pub symmetric: bool,
    /// The SL of every path.
    assign: fn(&Ground<'_>) -> Assignment,
}

/// Data VLs that most switches and adapters have: what policies that spread paths use where nobody
/// says how many.
pub const LANES: u8 = 8;

/// Data VLs that a port can have in operation (IBA vol. 1, 14.2.5.6, OperationalVLs).
pub const OPERATIONAL: [u8; 5] = [1, 2, 4, 8, 15];

/// All policies.
pub static ALL: &[Entry] =
    &[vftree::ENTRY, by_class::ENTRY, by_destination::ENTRY, random::ENTRY, dftree_static::ENTRY];

/// Options of a policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LaneOptions {
    /// How many data VLs there are for it, 1 to 15.
    pub lanes: u8,
    /// Adapter ports that are congested, for policies that ask who is ([`Entry::hot`]); others take
    /// no notice.
    pub hot: Vec<Endpoint>,
    /// Seed of policies that draw.
    pub seed: u64,
    /// Operational data VLs of links that have fewer than `lanes`, named by either end: SL s is
    /// there on VL s mod their number.
    pub of_links: Vec<(Endpoint, u8)>,
}

impl LaneOptions {
    /// So many lanes on every link, nobody hot, seed 1.
    pub fn new(lanes: u8) -> Self {
        LaneOptions { lanes, hot: Vec::new(), seed: 1, of_links: Vec::new() }
    }
}

/// Why lanes could not be assigned.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum LaneError {
    /// No policy has this name.
    #[error("no lane policy is named {name}{nearest}; known are {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The nearest name, as the end of the sentence.
        nearest: String,
        /// All names.
        known: String,
    },
    /// The tables are safe only with the SLs they have.
    #[error(
        "lane policy {policy}: the tables of engine {engine} have a credit loop on one lane, so \
         their service levels are not free; route with up-down or fat-tree"
    )]
    Taken {
        /// The policy.
        policy: &'static str,
        /// The engine that filled the tables.
        engine: String,
    },
    /// Too few lanes, or a number no link has.
    #[error("lane policy {policy} takes {least} to 15 data VLs, and {lanes} are given; set lanes")]
    Lanes {
        /// The policy.
        policy: &'static str,
        /// Fewest lanes.
        least: u8,
        /// How many are given.
        lanes: u8,
    },
    /// A policy for hot hosts, and nobody is hot.
    #[error(
        "lane policy {policy} is for hot hosts, and none is named; name one (--hot, or key hot)"
    )]
    NobodyHot {
        /// The policy.
        policy: &'static str,
    },
}

impl Entry {
    /// Gives the paths of a routed fabric their SLs, with SL2VL and VL arbitration to match.
    /// Fails as [`LaneError`] says; the subnet is then as before.
    pub fn assign(
        &self,
        fabric: &Fabric,
        subnet: &mut Subnet,
        options: &LaneOptions,
    ) -> Result<(), LaneError> {
        let (policy, least, lanes) = (self.name, self.lanes_min, options.lanes);
        if !(least..=15).contains(&lanes) {
            return Err(LaneError::Lanes { policy, least, lanes });
        }
        if self.hot && options.hot.is_empty() {
            return Err(LaneError::NobodyHot { policy });
        }
        on_one_lane(fabric, subnet).map_err(|engine| LaneError::Taken { policy, engine })?;
        let ground = Ground::of(fabric, options);
        let Assignment { of_host, levels, note } = (self.assign)(&ground);
        let hosts = (ground.hosts.as_slice(), of_host.as_slice());
        let groups = HostGroups::new(&ground.graph, &subnet.lids, hosts, vec![levels]);
        subnet.path_sl = PathSl::ByGroup(groups);
        subnet.sl_to_vl = sl_to_vl(fabric, &ground.graph, options);
        subnet.vl_arbitration = VlArbitration::equal(lanes);
        subnet.notes.push(format!("lane policy {policy}: {note}"));
        Ok(())
    }
}

/// Whether the tables have no credit loop if all paths are on one lane; the engine's name if they
/// have.
fn on_one_lane(fabric: &Fabric, subnet: &Subnet) -> Result<(), String> {
    // An engine that promises it, and gives all paths one SL, has done so on one lane.
    let promised = engines::engine(&subnet.engine).is_ok_and(|entry| entry.claims.deadlock_free);
    if promised && matches!(subnet.path_sl, PathSl::Uniform(_)) {
        return Ok(());
    }
    match credit_loop(fabric, &subnet.on_one_lane(fabric)).is_sane() {
        true => Ok(()),
        false => Err(subnet.engine.clone()),
    }
}

/// SL s on VL s mod the lanes of the link, of which adapters have one mapping for all: that of the
/// adapter link with the fewest.
fn sl_to_vl(fabric: &Fabric, graph: &SwitchGraph, options: &LaneOptions) -> SlToVl {
    let mut mapping = SlToVl::modulo(fabric, options.lanes);
    let mut fewer: BTreeMap<Endpoint, u8> = BTreeMap::new();
    for (end, lanes) in &options.of_links {
        for end in [Some(*end), fabric.peer(*end)].into_iter().flatten() {
            let known = fewer.entry(end).or_insert(*lanes);
            *known = (*known).min(*lanes).clamp(1, options.lanes);
        }
    }
    let of_adapters = fewer.iter().filter(|(end, _)| !fabric.node(end.node).is_switch());
    if let Some(least) = of_adapters.map(|(_, lanes)| *lanes).min() {
        mapping.adapter = SlToVl::modulo(fabric, least).adapter;
    }
    for row in 0..graph.rows() {
        let switch = graph.switch(row);
        let of = |port: u8| {
            let number = clearlane_ib::PortNumber::new(port)?;
            fewer.get(&Endpoint { node: switch, port: number }).copied()
        };
        let ports = fabric.node(switch).port_count();
        if (0..=ports).any(|port| of(port).is_some()) {
            let lane = |port: u8, sl: u8| {
                let lanes = of(port).unwrap_or(options.lanes);
                VirtualLane::new(sl % lanes).unwrap_or_default()
            };
            mapping.set(switch, SlToVlTable::by_output(ports, lane));
        }
    }
    mapping
}

/// What a policy decides by.
struct Ground<'a> {
    graph: SwitchGraph,
    /// Host ports in the order of ranks.
    hosts: Vec<Host>,
    /// By host port: its leaf, a switch with hosts, in the order of their first hosts.
    leaf: Vec<usize>,
    /// By host port: how many are before it on its leaf.
    place: Vec<usize>,
    leaves: usize,
    /// By host port: if it is hot, how many hot hosts are before its own.
    hot: Vec<Option<usize>>,
    options: &'a LaneOptions,
}

impl<'a> Ground<'a> {
    fn of(fabric: &Fabric, options: &'a LaneOptions) -> Self {
        let graph = SwitchGraph::of(fabric);
        let hosts = graph.adapter_ports(fabric);
        let mut leaves: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
        let (mut leaf, mut place) = (Vec::new(), Vec::new());
        for host in &hosts {
            let next = leaves.len();
            let (index, taken) = leaves.entry(host.row).or_insert((next, 0));
            leaf.push(*index);
            place.push(*taken);
            *taken += 1;
        }
        // The ports of a host are hot together.
        let mut known: BTreeMap<NodeId, usize> = BTreeMap::new();
        let mut is_hot = |host: &Host| {
            options.hot.contains(&host.end).then(|| {
                let next = known.len();
                *known.entry(host.end.node).or_insert(next)
            })
        };
        let hot = hosts.iter().map(&mut is_hot).collect();
        Ground { graph, hosts, leaf, place, leaves: leaves.len(), hot, options }
    }

    fn lanes(&self) -> usize {
        usize::from(self.options.lanes)
    }

    /// How many hosts are hot.
    fn hot_hosts(&self) -> usize {
        self.hot.iter().flatten().max().map_or(0, |last| last + 1)
    }
}

/// What a policy decides: groups of host ports, and the SL from each to each.
struct Assignment {
    of_host: Vec<u16>,
    /// Source-major.
    levels: Vec<u8>,
    /// What it is, in one line.
    note: String,
}

impl Assignment {
    /// By group of each host port; `level(source, destination)` between `count` groups.
    fn new(
        of_host: impl Iterator<Item = usize>,
        count: usize,
        level: impl Fn(usize, usize) -> usize,
        note: String,
    ) -> Self {
        let pairs = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
        Assignment {
            of_host: of_host.map(|group| group as u16).collect(),
            levels: pairs.map(|(from, to)| level(from, to) as u8).collect(),
            note,
        }
    }
}

/// The policy of this name; an unknown name is answered with the nearest one.
pub fn policy(name: &str) -> Result<&'static Entry, LaneError> {
    ALL.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let nearest = clearlane_ib::nearest(name, ALL.iter().map(|entry| entry.name))
            .map(|name| format!("; did you mean {name:?}?"))
            .unwrap_or_default();
        let known = ALL.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
        LaneError::Unknown { name: quoted(name), nearest, known }
    })
}
