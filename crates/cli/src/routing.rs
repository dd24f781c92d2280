//! Forwarding tables named on the command line: a site's own, or what an engine fills.

use crate::arguments::between;
use crate::failure::Failure;
use crate::files;
use crate::lanes::LanePolicy;
use clap::Args;
use clearlane_fabric::{Endpoint, Fabric, NodeKind};
use clearlane_ib::{Lmc, PortNumber};
use clearlane_lab::TABLE_BYTES_MAX;
use clearlane_subnet::engines::{self, RouteOptions, RoutingError, TableFile};
use clearlane_subnet::{LidMap, Subnet};
use std::path::{Path, PathBuf};

/// Where the tables come from.
#[derive(Args, Debug)]
pub struct Routing {
    /// Routing engine; see `clearlane list engines`
    #[arg(long, value_name = "ENGINE")]
    engine: Option<String>,
    /// The site's own tables (engine file), and with further --lft its opensm-sl2vl.dump and the
    /// service levels of its paths. Beside another engine, `route` compares its tables with them;
    /// other commands take one or the other
    #[arg(long, value_name = "FILE")]
    lft: Vec<PathBuf>,
    /// Give every host 2^N LIDs, and so 2^N paths; without it, the LIDs of the fabric file are kept
    #[arg(long, value_name = "N", value_parser = between(0u8, 7))]
    lmc: Option<u8>,
    /// Only the paths to the K-th LID of every host, counted from 0, as in a subnet without LMC:
    /// for tools that do not support LMC
    #[arg(long, value_name = "K", value_parser = between(0u16, 127))]
    lid_offset: Option<u16>,
    /// Data virtual lanes every link has; without it, as few as the engine needs (layered and
    /// multipath: 8), or as the lane policy takes (8, those for hot hosts 2)
    #[arg(long, value_name = "V", value_parser = between(1u8, 15))]
    lanes: Option<u8>,
    /// Let switches choose among the ports the engine allows (adaptive routing); every choice is
    /// checked
    #[arg(long)]
    adaptive: bool,
    /// A root switch (engine up-down), by name or GUID; repeat the flag for more
    #[arg(long, value_name = "SWITCH")]
    root: Vec<String>,
    #[command(flatten)]
    lane_policy: LanePolicy,
}

const FILE: &str = "file";

impl Routing {
    /// New tables by this engine, on so many lanes.
    pub fn by_engine(engine: &str, lanes: u8) -> Self {
        Routing {
            engine: Some(engine.to_owned()),
            lft: Vec::new(),
            lmc: None,
            lid_offset: None,
            lanes: Some(lanes),
            adaptive: false,
            root: Vec::new(),
            lane_policy: LanePolicy::default(),
        }
    }

    /// The tables that new ones are compared with: where an engine is named, those of --lft.
    pub fn current(&self, fabric: &Fabric) -> Result<Option<Subnet>, Failure> {
        if self.lft.is_empty() || self.engine.as_deref().is_none_or(|engine| engine == FILE) {
            return Ok(None);
        }
        let options = RouteOptions {
            files: self.files()?,
            lids: LidMap::from_fabric(fabric).map_err(Failure::input)?,
            ..RouteOptions::default()
        };
        engines::route(FILE, fabric, &options).map(Some).map_err(Failure::input)
    }

    /// The same with this engine and no other.
    pub fn with_engine(&self, engine: &str) -> Self {
        Routing {
            engine: Some(engine.to_owned()),
            lft: self.lft.clone(),
            root: self.root.clone(),
            lane_policy: self.lane_policy.clone(),
            ..*self
        }
    }

    /// Fills new tables, whatever tables there are.
    pub fn new_subnet(&self, fabric: &Fabric) -> Result<Subnet, Failure> {
        match self.engine.as_deref() {
            Some(engine) if engine != FILE => {
                let without = Routing {
                    engine: self.engine.clone(),
                    lft: Vec::new(),
                    root: self.root.clone(),
                    lane_policy: self.lane_policy.clone(),
                    ..*self
                };
                without.subnet(fabric)
            }
            _ => self.subnet(fabric),
        }
    }

    /// Fills the tables.
    pub fn subnet(&self, fabric: &Fabric) -> Result<Subnet, Failure> {
        if self.engine.is_none() && self.lft.is_empty() {
            let line = "name the tables with --lft FILE, or with --engine ENGINE what fills them; \
                see `clearlane list engines`";
            return Err(Failure::Input(line.into()));
        }
        let name = self.engine.as_deref().unwrap_or(FILE);
        let engine = engines::engine(name).map_err(Failure::input)?;
        if name != FILE && !self.lft.is_empty() {
            let line = format!("engine {name} fills its own tables; leave --lft or --engine out");
            return Err(Failure::Input(line));
        }
        if name == FILE && self.lft.is_empty() {
            return Err(Failure::Input("engine file reads tables; name them with --lft".into()));
        }
        if name == FILE && self.lmc.is_some_and(|lmc| lmc > 0) {
            let line = "the LIDs of engine file are those of the fabric; leave --lmc out";
            return Err(Failure::Input(line.into()));
        }
        let roots = engine.roots(fabric, &self.root);
        let options = RouteOptions {
            lmc: Lmc::new(self.lmc.unwrap_or(0)).unwrap_or_default(),
            lanes: self.lanes.unwrap_or(engine.lanes),
            lids: if name == FILE { None } else { self.kept_lids(fabric)? },
            files: self.files()?,
            roots: roots.map_err(Failure::input)?,
            adaptive: self.adaptive,
        };
        let mut subnet = match engine.fill(fabric, &options) {
            Err(RoutingError::Lanes { needed, .. }) if self.lanes.is_none() => {
                let options = RouteOptions { lanes: needed, ..options };
                engine.fill(fabric, &options).map_err(Failure::input)
            }
            other => other.map_err(Failure::input),
        }?;
        self.lane_policy.assign(fabric, &mut subnet, self.lanes)?;
        match self.lid_offset {
            Some(offset) => at_offset(&subnet, offset),
            None => Ok(subnet),
        }
    }

    /// The fabric's own LIDs, unless an LMC is asked for or a port lacks one.
    fn kept_lids(&self, fabric: &Fabric) -> Result<Option<LidMap>, Failure> {
        if self.lmc.is_some() {
            return Ok(None);
        }
        let lids = LidMap::from_fabric(fabric).map_err(Failure::input)?;
        Ok(lids.filter(|lids| is_complete(fabric, lids)))
    }

    /// Whether an engine fills new tables, rather than that the site's are taken.
    pub fn fills(&self) -> bool {
        self.engine.as_deref().is_some_and(|engine| engine != FILE)
    }

    /// The lane policy, if there is one.
    pub fn lane_policy(&self) -> Option<&str> {
        self.lane_policy.name()
    }

    /// Links with fewer lanes than the others. Fails on a port that is not there.
    pub fn link_lanes(&self, fabric: &Fabric) -> Result<Vec<(Endpoint, u8)>, Failure> {
        self.lane_policy.links(fabric)
    }

    /// The files it reads.
    pub fn files_read(&self) -> impl Iterator<Item = &Path> {
        self.lft.iter().map(PathBuf::as_path).chain(self.lane_policy.files_read())
    }

    fn files(&self) -> Result<Vec<TableFile>, Failure> {
        let read = |path: &PathBuf| -> Result<TableFile, Failure> {
            Ok(TableFile {
                name: path.display().to_string(),
                text: files::read(path, TABLE_BYTES_MAX)?,
            })
        };
        self.lft.iter().map(read).collect()
    }
}

/// One LID of every port.
fn at_offset(subnet: &Subnet, offset: u16) -> Result<Subnet, Failure> {
    let lids = subnet.lids.lmc_max().lids();
    if offset >= lids {
        let line = format!(
            "--lid-offset {offset}: hosts have {lids} LIDs; give 0 to {}, or more LIDs by --lmc",
            lids - 1
        );
        return Err(Failure::Input(line));
    }
    let mut alone = subnet.at_offset(offset);
    alone.notes.push(format!("LID offset {offset} of {lids} alone"));
    Ok(alone)
}

/// Whether every switch and every cabled adapter port has a LID.
fn is_complete(fabric: &Fabric, lids: &LidMap) -> bool {
    let has = |node, port| lids.base(Endpoint { node, port }).is_some();
    let switches = fabric.ids(NodeKind::Switch).all(|id| has(id, PortNumber::MANAGEMENT));
    switches
        && fabric
            .ids(NodeKind::ChannelAdapter)
            .all(|id| fabric.neighbours(id).all(|(port, _, _)| has(id, port)))
}
