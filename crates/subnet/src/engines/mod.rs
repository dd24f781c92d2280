//! What fills the forwarding tables. One engine a file, one line in [`ALL`].

mod dor;
mod fat_tree;
mod file;
mod layered;
mod min_hop;
mod multipath;
mod order;
mod trees;
mod up_down;

pub use dor::Datelines;

use crate::formats::DumpError;
use crate::graph::{Peer, SwitchGraph};
use crate::{
    ForwardingTables, LidError, LidMap, PathSl, SlToVl, SlToVlTable, Subnet, VlArbitration,
};
use clearlane_fabric::structure::StructureError;
use clearlane_fabric::{Fabric, NodeId, NodeKind, damage};
use clearlane_ib::{Lmc, ServiceLevel, VirtualLane, quoted};

/// An engine.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name, as the literature has it.
    pub name: &'static str,
    /// One line on what it does.
    pub summary: &'static str,
    /// Who described it.
    pub reference: &'static str,
    /// Which of the [`RouteOptions`] it uses, with ranges.
    pub parameters: &'static str,
    /// Data VLs to route with where nobody says how many.
    pub lanes: u8,
    /// True if it uses [`RouteOptions::adaptive`].
    pub adaptive: bool,
    /// True if it uses [`RouteOptions::roots`].
    pub roots: bool,
    /// What holds for all its tables; tests check it.
    pub claims: Claims,
    /// Fills the tables.
    pub route: fn(&Fabric, &RouteOptions) -> Result<Subnet, RoutingError>,
}

impl Entry {
    /// The switches of these names or GUIDs, to be its roots. Fails if the engine has none and some
    /// are named, and on a name that no switch or several have.
    pub fn roots(&self, fabric: &Fabric, names: &[String]) -> Result<Vec<NodeId>, RoutingError> {
        if let (Some(root), false) = (names.first(), self.roots) {
            let able = ALL.iter().filter(|entry| entry.roots).map(|entry| entry.name);
            let able = able.collect::<Vec<_>>().join(", ");
            return Err(RoutingError::NotRooted { engine: self.name, root: quoted(root), able });
        }
        let find = |name: &String| {
            let fault = |problem: String| RoutingError::Root { problem };
            let id = damage::node(fabric, name).map_err(|error| fault(error.to_string()))?;
            match fabric.node(id).is_switch() {
                true => Ok(id),
                false => Err(fault(format!("{} is no switch; name one", quoted(name)))),
            }
        };
        names.iter().map(find).collect()
    }

    /// Fills the tables. Fails where the engine does, and if it is to let switches choose among
    /// ports and cannot.
    pub fn fill(&self, fabric: &Fabric, options: &RouteOptions) -> Result<Subnet, RoutingError> {
        if options.adaptive && !self.adaptive {
            let able = ALL.iter().filter(|entry| entry.adaptive).map(|entry| entry.name);
            let able = able.collect::<Vec<_>>().join(", ");
            return Err(RoutingError::NotAdaptive { engine: self.name, able });
        }
        // Before anything that takes its time.
        if options.lids.is_none() && options.files.is_empty() {
            LidMap::suffice(fabric, options.lmc)?;
        }
        let mut subnet = (self.route)(fabric, options)?;
        if let Some(groups) = &subnet.adaptive {
            let rows = 0..subnet.tables.switches().len();
            let choosing = rows.filter(|row| !groups.lists(*row).is_empty()).count();
            subnet.notes.push(format!(
                "{choosing} switches may choose among ports; table files and figures of balance \
                 are those of the first choice"
            ));
        }
        Ok(subnet)
    }
}

/// What an engine promises.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claims {
    /// Every path is as short as the cables allow, on every fabric it accepts.
    pub minimal: bool,
    /// No credit loop, on every fabric it accepts.
    pub deadlock_free: bool,
    /// Where no link carries more than its share, in words.
    pub balanced_on: &'static str,
    /// Which fabrics it accepts, in words.
    pub accepts: &'static str,
}

/// All engines.
pub static ALL: &[Entry] = &[
    min_hop::ENTRY,
    fat_tree::ENTRY,
    up_down::ENTRY,
    dor::ENTRY,
    layered::ENTRY,
    multipath::ENTRY,
    file::ENTRY,
];

/// A file with forwarding tables or the lanes on them, already read into memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableFile {
    /// Its name, for errors.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Options for an engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteOptions {
    /// Paths per adapter port: 2^LMC LIDs.
    pub lmc: Lmc,
    /// How many data VLs all links have, 1 to 15. SL s goes on VL s mod `lanes` unless the engine
    /// says otherwise.
    pub lanes: u8,
    /// Route for these LIDs instead of assigning new ones; `lmc` is then theirs.
    pub lids: Option<LidMap>,
    /// Dumps of tables, SL2VL and SLs of paths, for the engine `file`.
    pub files: Vec<TableFile>,
    /// Root switches, for engines that use them ([`Entry::roots`]). If empty, the engine finds its
    /// own. Nodes that are not switches of the fabric are ignored.
    pub roots: Vec<NodeId>,
    /// True if switches may choose among ports; engines that support it fill [`Subnet::adaptive`].
    pub adaptive: bool,
}

impl Default for RouteOptions {
    fn default() -> Self {
        RouteOptions {
            lmc: Lmc::default(),
            lanes: 1,
            lids: None,
            files: Vec::new(),
            roots: Vec::new(),
            adaptive: false,
        }
    }
}

/// Why a fabric could not be routed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RoutingError {
    /// No engine has this name.
    #[error("no routing engine is named {name}{nearest}; known are {known}")]
    UnknownEngine {
        /// The name.
        name: String,
        /// The nearest name, as the end of the sentence.
        nearest: String,
        /// All names.
        known: String,
    },
    /// LIDs do not suffice or contradict each other.
    #[error(transparent)]
    Lids(#[from] LidError),
    /// Not a grid, for an engine that needs one.
    #[error(
        "{engine}: {source}; route it with up-down, which is free of credit loops on every fabric"
    )]
    Structure {
        /// The engine.
        engine: &'static str,
        /// What is not as it should be.
        source: StructureError,
    },
    /// A grid with a cable or switch missing.
    #[error(
        "{engine}: no cable leads from port {port} onwards in dimension {dimension}; repair it or \
         route with fat-tree, which keeps to up and down paths"
    )]
    Hole {
        /// The engine.
        engine: &'static str,
        /// The empty port, as `sw-0-1[3]`.
        port: String,
        /// The dimension it belongs to, from 0.
        dimension: usize,
    },
    /// More wrapping dimensions than SL bits.
    #[error(
        "{engine}: {wraps} dimensions wrap, and 16 service levels code the datelines of 4; use \
         fat-tree (up and down paths) or simulate it with the dimension-order rule, without tables"
    )]
    TooManyWraps {
        /// The engine.
        engine: &'static str,
        /// How many dimensions wrap.
        wraps: usize,
    },
    /// Not enough data VLs for freedom from deadlock, or a count no link has.
    #[error("{engine} needs {needed} to 15 data VLs here, and {lanes} are given; set lanes")]
    Lanes {
        /// The engine.
        engine: &'static str,
        /// How many it needs.
        needed: u8,
        /// How many there are.
        lanes: u8,
    },
    /// Switches are to choose among ports and the engine names none.
    #[error("engine {engine} gives switches no ports to choose among; those that do are {able}")]
    NotAdaptive {
        /// The engine.
        engine: &'static str,
        /// Engines that do.
        able: String,
    },
    /// Roots are named and the engine has none.
    #[error("engine {engine} has no roots, and {root} is named; those that have are {able}")]
    NotRooted {
        /// The engine.
        engine: &'static str,
        /// The first root named.
        root: String,
        /// Engines that have roots.
        able: String,
    },
    /// A root that is no switch of the fabric.
    #[error("root: {problem}")]
    Root {
        /// What is wrong with its name.
        problem: String,
    },
    /// A dump cannot be read.
    #[error(transparent)]
    Dump(#[from] DumpError),
    /// The engine `file` without one that holds forwarding tables.
    #[error("engine file has no forwarding tables; give a file with them (known are {known})")]
    NoFile {
        /// Formats that can be read.
        known: String,
    },
    /// No switch of the dumps is in the fabric.
    #[error(
        "{name}: these tables are of another fabric: none of its {switches} switches is in this \
         one; give the tables of this fabric"
    )]
    OtherFabric {
        /// The first dump.
        name: String,
        /// Switches with a table in any of the dumps.
        switches: usize,
    },
    /// Neither fabric nor dump say who has which LID.
    #[error(
        "{name} names no port GUIDs and the fabric has no LIDs, so its entries have no owners; \
         read the fabric from a file with LIDs"
    )]
    NoLids {
        /// The dump.
        name: String,
    },
}

/// The engine of this name; an unknown name is answered with the nearest one.
pub fn engine(name: &str) -> Result<&'static Entry, RoutingError> {
    ALL.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let nearest = clearlane_ib::nearest(name, ALL.iter().map(|entry| entry.name))
            .map(|name| format!("; did you mean {name:?}?"))
            .unwrap_or_default();
        let name = quoted(name);
        let known = ALL.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
        RoutingError::UnknownEngine { name, nearest, known }
    })
}

/// Routes with the engine of this name.
pub fn route(name: &str, fabric: &Fabric, options: &RouteOptions) -> Result<Subnet, RoutingError> {
    engine(name)?.fill(fabric, options)
}

/// The LIDs to route for.
fn lids(fabric: &Fabric, options: &RouteOptions) -> Result<LidMap, RoutingError> {
    match &options.lids {
        Some(lids) => Ok(lids.clone()),
        None => Ok(LidMap::assign(fabric, options.lmc)?),
    }
}

/// Fails unless `options.lanes` is at least `needed` and at most 15.
fn check_lanes(
    engine: &'static str,
    needed: u8,
    options: &RouteOptions,
) -> Result<(), RoutingError> {
    if (needed..=15).contains(&options.lanes) {
        return Ok(());
    }
    Err(RoutingError::Lanes { engine, needed, lanes: options.lanes })
}

/// A subnet whose SL is always 0, with equal arbitration and SL s on VL s mod lanes.
fn plain_subnet(
    engine: &str,
    fabric: &Fabric,
    options: &RouteOptions,
    lids: LidMap,
    tables: ForwardingTables,
) -> Subnet {
    Subnet {
        lids,
        tables,
        adaptive: None,
        sl_to_vl: SlToVl::modulo(fabric, options.lanes),
        vl_arbitration: VlArbitration::equal(options.lanes),
        path_sl: PathSl::Uniform(ServiceLevel::default()),
        engine: engine.to_string(),
        notes: Vec::new(),
        remarks: Vec::new(),
        unknown_switches: Vec::new(),
    }
}

/// Gives every switch a table in which every output has one lane per SL: `lane(output, sl)`.
fn set_by_output(fabric: &Fabric, subnet: &mut Subnet, lane: impl Fn(u8, u8) -> VirtualLane) {
    let mut known: Vec<(u8, SlToVlTable)> = Vec::new();
    for switch in fabric.ids(NodeKind::Switch) {
        let ports = fabric.node(switch).port_count();
        let at = known.iter().position(|(of, _)| *of == ports).unwrap_or_else(|| {
            known.push((ports, SlToVlTable::by_output(ports, &lane)));
            known.len() - 1
        });
        subnet.sl_to_vl.set(switch, known[at].1.clone());
    }
}

/// A remark on hosts that some other host has no cable path to, if there are any.
fn remark_on_parts(fabric: &Fabric, graph: &SwitchGraph) -> Option<String> {
    let mut part = vec![false; graph.rows()];
    let (mut distances, mut queue) = (Vec::new(), Vec::new());
    let mut parts: Vec<(usize, NodeId)> = Vec::new();
    for row in 0..graph.rows() {
        if part[row] {
            continue;
        }
        graph.distances(row, &mut distances, &mut queue);
        let mut hosts = 0;
        for reached in &queue {
            part[*reached as usize] = true;
            hosts += graph.adapters(*reached as usize).count();
        }
        if hosts > 0 {
            parts.push((hosts, graph.switch(row)));
        }
    }
    if parts.len() < 2 {
        return None;
    }
    let sizes: Vec<String> = parts
        .iter()
        .take(8)
        .map(|(hosts, at)| format!("{hosts} around {}", fabric.node(*at).name.escape_debug()))
        .collect();
    let count = parts.len();
    Some(format!(
        "the fabric has {count} separate parts with hosts ({}); each part is routed by itself",
        sizes.join(", ")
    ))
}

/// Fills the entries that lead a switch to its own LIDs and adapters.
fn fill_exits(
    graph: &SwitchGraph,
    targets: &[crate::graph::Target],
    tables: &mut ForwardingTables,
) {
    for target in targets {
        let at = usize::from(target.lid.value());
        let row = target.row as usize;
        let cabled =
            target.exit == 0 || matches!(graph.peer(row, target.exit), Peer::Adapter { .. });
        if cabled && let Some(entry) = tables.row_mut(row).get_mut(at) {
            *entry = target.exit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_entries_complete() {
        for (index, entry) in ALL.iter().enumerate() {
            assert!(ALL[..index].iter().all(|other| other.name != entry.name));
            let texts = [entry.summary, entry.reference, entry.parameters];
            assert!(texts.iter().all(|text| !text.is_empty()), "{}", entry.name);
            assert!(!entry.claims.accepts.is_empty());
        }
    }

    #[test]
    fn an_unknown_engine_is_answered_with_the_nearest() {
        let error = engine("minhop").unwrap_err().to_string();
        assert!(error.contains("did you mean \"min-hop\"?"), "{error}");
        assert!(!engine("a\nb").unwrap_err().to_string().contains('\n'));
    }
}
