//! `[subnet]`: who fills the forwarding tables, LMC, lanes and VL arbitration.

use super::document::Value;
use super::fabric::text_of;
use super::keys::{Field, Keys, nearest, word};
use super::lanes::LanePolicySpec;
use crate::LabError;
use clearlane_ib::{Lmc, VirtualLane};
use clearlane_sim::Ties;
use clearlane_subnet::{VlArbitration, VlWeight, engines, lanes};
use std::path::PathBuf;

/// What switches forward by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Routing {
    /// A routing engine of the registry fills tables.
    Engine(String),
    /// The site's own tables, with its SL2VL and SLs of paths if there are such files; none until
    /// the command line names them.
    Files(Vec<PathBuf>),
    /// Dimension order by rule; nothing a subnet manager could deploy.
    DimensionOrderRule(Ties),
}

/// The subnet of a variant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubnetSpec {
    /// Engine, file or rule.
    pub routing: Routing,
    /// A port has 2^LMC LIDs.
    pub lmc: Lmc,
    /// Number of data lanes, 1 to 15, for engines that let the user choose.
    pub lanes: u8,
    /// Whether switches choose among the ports the engine allows.
    pub adaptive: bool,
    /// Root switches, by name or GUID; empty if the engine finds its own.
    pub roots: Vec<String>,
    /// Which lanes paths take, if it is not for the engine to say.
    pub lane_policy: Option<LanePolicySpec>,
    /// VL arbitration, if it differs from the engine's.
    pub vl_arbitration: Option<VlArbitration>,
}

/// The table of the lane policy.
pub(super) const LANES: &str = "lane_policy";

/// The value of `engine` that reads `lft`, and that of `forwarding`.
const FILE: &str = "file";
/// Rules, by what packets do that have as far one way around as the other.
const RULES: &[(&str, Ties)] = &[("dimension-order", Ties::Both), ("dimension-order-up", Ties::Up)];

/// The keys of the table.
pub(crate) const KEYS: &[&str] =
    &["engine", "lft", "forwarding", "lmc", "lanes", "adaptive", "roots", LANES, "vl_arbitration"];

impl SubnetSpec {
    /// Reads the table.
    pub(crate) fn read(mut keys: Keys<'_>) -> Result<Self, LabError> {
        keys.only(KEYS)?;
        let (engine, lft) = (keys.optional("engine"), keys.optional("lft"));
        let routing = match (engine, keys.optional("forwarding")) {
            (Some(engine), None) => self::engine(&engine)?,
            (None, Some(rule)) => rule.choice(RULES).map(Routing::DimensionOrderRule)?,
            (None, None) => {
                let problem = "subnet has neither `engine` nor `forwarding`; write \
                    engine = \"up-down\" or another of `list engines`";
                return Err(keys.error(problem));
            }
            (Some(_), Some(rule)) => {
                return Err(rule.error("stands beside `engine`; write only one of them"));
            }
        };
        let routing = match (routing, lft) {
            (Routing::Files(_), Some(lft)) => Routing::Files(files(&lft)?),
            // The command line may still name the tables.
            (routing, None) => routing,
            (_, Some(lft)) => {
                return Err(lft.error("is only read by engine = \"file\"; remove this key"));
            }
        };
        let lmc = keys.optional("lmc").map(|f| f.integer(0, 7)).transpose()?.unwrap_or(0);
        let count = keys.optional("lanes").map(|f| f.integer(1, 15)).transpose()?;
        let adaptive = keys.optional("adaptive").map(|f| f.yes_no()).transpose()?;
        let roots = match keys.optional("roots") {
            None => Vec::new(),
            Some(field) => roots(&field, &routing)?,
        };
        let lane_policy = match keys.optional(LANES) {
            None => None,
            Some(field) if matches!(routing, Routing::DimensionOrderRule(_)) => {
                return Err(field.error("needs tables, and forwarding is by rule; remove this key"));
            }
            Some(field) => LanePolicySpec::read(&field)?,
        };
        let usual = match (&lane_policy, &routing) {
            (Some(policy), _) => lanes::policy(policy.policy).map_or(1, |entry| entry.lanes),
            (None, Routing::Engine(name)) => engines::engine(name).map_or(1, |entry| entry.lanes),
            (None, _) => 1,
        };
        let arbitration = keys.optional("vl_arbitration").map(|f| vl_arbitration(&f));
        Ok(SubnetSpec {
            routing,
            lmc: Lmc::new(lmc as u8).unwrap_or_default(),
            lanes: count.map_or(usual, |lanes| lanes as u8),
            adaptive: adaptive.unwrap_or(false),
            roots,
            lane_policy,
            vl_arbitration: arbitration.transpose()?,
        })
    }

    /// The table that reads back as this.
    pub(crate) fn resolved(&self) -> toml::Table {
        let mut table = toml::Table::new();
        match &self.routing {
            Routing::Engine(name) => table.insert("engine".into(), name.clone().into()),
            Routing::DimensionOrderRule(ties) => {
                table.insert("forwarding".into(), word(RULES, ties))
            }
            Routing::Files(paths) => {
                let lft = match paths.as_slice() {
                    [one] => text_of(one),
                    several => several.iter().map(|path| text_of(path)).collect::<Vec<_>>().into(),
                };
                table.insert("engine".into(), FILE.into());
                table.insert("lft".into(), lft)
            }
        };
        table.insert("lmc".into(), i64::from(self.lmc.value()).into());
        table.insert("lanes".into(), i64::from(self.lanes).into());
        table.insert("adaptive".into(), if self.adaptive { "yes" } else { "no" }.into());
        if !self.roots.is_empty() {
            table.insert("roots".into(), self.roots.clone().into());
        }
        if let Some(policy) = &self.lane_policy {
            table.insert(LANES.into(), policy.resolved().into());
        }
        if let Some(arbitration) = &self.vl_arbitration {
            let entries = |entries: &[VlWeight]| -> toml::Value {
                let pair = |e: &VlWeight| vec![i64::from(e.vl.value()), i64::from(e.weight)];
                entries.iter().map(pair).collect::<Vec<_>>().into()
            };
            let mut inner = toml::Table::new();
            inner.insert("high".into(), entries(&arbitration.high));
            inner.insert("low".into(), entries(&arbitration.low));
            inner.insert("high_limit".into(), i64::from(arbitration.high_limit).into());
            table.insert("vl_arbitration".into(), inner.into());
        }
        table
    }
}

fn engine(field: &Field<'_>) -> Result<Routing, LabError> {
    let name = field.text()?;
    if name == FILE {
        return Ok(Routing::Files(Vec::new()));
    }
    match engines::ALL.iter().find(|entry| entry.name == name) {
        Some(entry) => Ok(Routing::Engine(entry.name.to_owned())),
        None => {
            let names = engines::ALL.iter().map(|entry| entry.name).chain([FILE]);
            Err(field.error(&format!("is no routing engine{}", nearest(name, names))))
        }
    }
}

/// Names of switches, for an engine that has roots.
fn roots(field: &Field<'_>, routing: &Routing) -> Result<Vec<String>, LabError> {
    let takes_roots = |name: &str| engines::engine(name).is_ok_and(|entry| entry.roots);
    if matches!(routing, Routing::Engine(name) if takes_roots(name)) {
        return field.texts();
    }
    let able = engines::ALL.iter().filter(|entry| entry.roots).map(|entry| entry.name);
    let able = able.collect::<Vec<_>>().join(", ");
    Err(field.error(&format!("is only used by engine {able}; remove this key")))
}

/// `"site.lft"` or `["lfts.txt", "sl2vl.dump", "psl.txt"]`.
fn files(field: &Field<'_>) -> Result<Vec<PathBuf>, LabError> {
    if matches!(field.node.value, Value::Text(_)) {
        return Ok(vec![field.path_of(field.text()?)]);
    }
    let Ok(items) = field.items() else {
        return Err(field.error("is neither a path nor a list of paths"));
    };
    items.iter().map(|item| Ok(item.path_of(item.text()?))).collect()
}

/// `{ high = [[vl, weight], …], low = […], high_limit = 0 }`.
fn vl_arbitration(field: &Field<'_>) -> Result<VlArbitration, LabError> {
    let keys = field.keys(&["high", "low", "high_limit"])?;
    let high = keys.optional("high").map(|f| weights(&f)).transpose()?.unwrap_or_default();
    let low = weights(&keys.required("low", "[[0, 64], [1, 64]]")?)?;
    let limit = keys.optional("high_limit").map(|f| f.integer(0, 255)).transpose()?;
    Ok(VlArbitration { high, low, high_limit: limit.unwrap_or(0) as u8 })
}

fn weights(field: &Field<'_>) -> Result<Vec<VlWeight>, LabError> {
    let items = field.items()?;
    // IBA vol. 1, 14.2.5.9: a port has at most 64 entries in each table.
    if items.len() > 64 {
        return Err(field.error("has more than the 64 entries of an arbitration table"));
    }
    let entry = |item: &Field<'_>| match item.items()?.as_slice() {
        [vl, weight] => {
            let lane = VirtualLane::new(vl.integer(0, 14)? as u8).unwrap_or_default();
            Ok(VlWeight { vl: lane, weight: weight.integer(0, 255)? as u8 })
        }
        _ => Err(item.error("is not a pair [vl, weight]")),
    };
    items.iter().map(entry).collect()
}
