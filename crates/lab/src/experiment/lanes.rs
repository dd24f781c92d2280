//! `[subnet.lane_policy]`: which lanes paths take.

use super::keys::{Field, nearest};
use super::traffic::host_refs;
use crate::{LabError, port};
use clearlane_fabric::{Endpoint, Fabric};
use clearlane_ib::quoted;
use clearlane_sim::Hosts;
use clearlane_subnet::lanes;
use clearlane_workload::HostRef;

/// The lane policy of a variant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LanePolicySpec {
    /// The policy.
    pub policy: &'static str,
    /// Who is hot; heeded by policies that ask.
    pub hot: Vec<HostRef>,
    /// Seed of policies that draw.
    pub seed: u64,
    /// Ports, as in `leaf03[19]`, and the data lanes their links have.
    pub link_lanes: Vec<(String, u8)>,
}

/// The value of `kind` that leaves lanes to the engine: variants take a policy back by it.
const NONE: &str = "none";

/// The keys of the table.
pub(crate) const KEYS: &[&str] = &["kind", "hot", "seed", "link_lanes"];

impl LanePolicySpec {
    /// Reads the table; nothing if its kind is `none`.
    pub(crate) fn read(field: &Field<'_>) -> Result<Option<Self>, LabError> {
        let keys = field.keys(KEYS)?;
        let kind = keys.required("kind", "\"vftree\"")?;
        let name = kind.text()?;
        let known = lanes::ALL.iter().find(|entry| entry.name == name);
        if known.is_none() && name != NONE {
            let names = lanes::ALL.iter().map(|entry| entry.name).chain([NONE]);
            return Err(kind.error(&format!("is no lane policy{}", nearest(name, names))));
        }
        let hot = keys.optional("hot").map(|f| host_refs(&f)).transpose()?;
        let seed = keys.optional("seed").map(|f| f.integer(0, i64::MAX as u64)).transpose()?;
        let link_lanes = keys.optional("link_lanes").map(|f| links(&f)).transpose()?;
        Ok(known.map(|entry| LanePolicySpec {
            policy: entry.name,
            hot: hot.unwrap_or_default(),
            seed: seed.unwrap_or(1),
            link_lanes: link_lanes.unwrap_or_default(),
        }))
    }

    /// The table that reads back as this.
    pub(crate) fn resolved(&self) -> toml::Table {
        let mut table = toml::Table::new();
        table.insert("kind".into(), self.policy.into());
        if !self.hot.is_empty() {
            let host = |host: &HostRef| match host {
                HostRef::Number(rank) => toml::Value::from(i64::from(*rank)),
                HostRef::Name(name) => name.clone().into(),
            };
            table.insert("hot".into(), self.hot.iter().map(host).collect::<Vec<_>>().into());
        }
        table.insert("seed".into(), (self.seed as i64).into());
        if !self.link_lanes.is_empty() {
            let link = |(port, lanes): &(String, u8)| -> toml::Value {
                vec![toml::Value::from(port.clone()), i64::from(*lanes).into()].into()
            };
            let links: Vec<toml::Value> = self.link_lanes.iter().map(link).collect();
            table.insert("link_lanes".into(), links.into());
        }
        table
    }

    /// All ports of the hot hosts. Fails on a host that is not there.
    pub(crate) fn hot_ports(&self, fabric: &Fabric) -> Result<Vec<Endpoint>, String> {
        let ports = Hosts::with_ports(fabric, None).ports_named(&self.hot);
        ports.map_err(|error| format!("hot: {error}"))
    }

    /// Links with fewer lanes. Fails on a port that is not there.
    pub(crate) fn links(&self, fabric: &Fabric) -> Result<Vec<(Endpoint, u8)>, String> {
        let link = |(name, lanes): &(String, u8)| {
            let end = port::named(fabric, name);
            Ok((end.map_err(|problem| format!("link_lanes: {} {problem}", quoted(name)))?, *lanes))
        };
        self.link_lanes.iter().map(link).collect()
    }
}

/// `[["leaf03[19]", 4], …]`.
fn links(field: &Field<'_>) -> Result<Vec<(String, u8)>, LabError> {
    let link = |item: &Field<'_>| match item.items()?.as_slice() {
        [port, count] => {
            let value = count.integer(1, 15)? as u8;
            match lanes::OPERATIONAL.contains(&value) {
                true => Ok((port.text()?.to_owned(), value)),
                false => {
                    Err(count.error("is no number of lanes a port has; give 1, 2, 4, 8 or 15"))
                }
            }
        }
        _ => Err(item.error("is not a pair [port, lanes]")),
    };
    field.items()?.iter().map(link).collect()
}
