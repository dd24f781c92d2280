//! Which hosts are hot: those that are named, or the one that looks most like it.

use crate::{Site, words::count};
use clearlane_fabric::{Endpoint, NodeId};
use clearlane_ib::visible;

/// Words in names of hosts that many others write to or read from.
const ROLES: &[&str] = &[
    "storage", "oss", "ost", "mds", "mdt", "lustre", "gpfs", "nsd", "beegfs", "nfs", "ceph",
    "data", "file", "io",
];

/// The hot hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hot {
    /// Hosts by rank, as experiments number them.
    pub ranks: Vec<u32>,
    /// The same as nodes.
    pub nodes: Vec<NodeId>,
    /// Why they are taken to be hot, if nobody has said so.
    pub supposed: Option<String>,
}

/// Why a host cannot be hot.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum HotError {
    /// No host has this name, GUID or LID.
    #[error("no host is named {name}{near}; give a name, a GUID or a LID of a host")]
    Unknown {
        /// As given, safe to show.
        name: String,
        /// The nearest name, as the end of the clause.
        near: String,
    },
    /// Several have this name.
    #[error("{count} are named {name}; give the GUID of one, such as {example}")]
    Ambiguous {
        /// As given, safe to show.
        name: String,
        /// How many hosts.
        count: String,
        /// The GUID of the first.
        example: String,
    },
    /// One host is named more than once, by one name or several.
    #[error("{0} is named twice as hot; name it once")]
    Twice(String),
    /// There are too few hosts for traffic beside the hot one.
    #[error("the fabric has {0}; a hot host and its victims take at least 4")]
    TooFew(String),
}

/// The hosts of these names, GUIDs or LIDs; without any the one whose name says that many use it,
/// else the one on the slowest link, else the first.
pub fn hot(site: &Site, names: &[String]) -> Result<Hot, HotError> {
    let hosts = site.hosts();
    if hosts.len() < 4 {
        return Err(HotError::TooFew(count(hosts.len() as u64, "host", "hosts")));
    }
    if names.is_empty() {
        let (rank, why) = likely(site, &hosts);
        let nodes = vec![hosts[rank]];
        return Ok(Hot { ranks: vec![rank as u32], nodes, supposed: Some(why) });
    }
    let ranks: Vec<usize> =
        names.iter().map(|name| named(site, &hosts, name)).collect::<Result<_, _>>()?;
    let again = (1..ranks.len()).find(|at| ranks[..*at].contains(&ranks[*at]));
    if let Some(at) = again {
        return Err(HotError::Twice(site.node(hosts[ranks[at]])));
    }
    let nodes = ranks.iter().map(|rank| hosts[*rank]).collect();
    Ok(Hot { ranks: ranks.iter().map(|rank| *rank as u32).collect(), nodes, supposed: None })
}

fn named(site: &Site, hosts: &[NodeId], name: &str) -> Result<usize, HotError> {
    let fabric = &site.fabric;
    let shown = visible(name).to_string();
    let lid = name.parse::<u16>().ok();
    let has_lid = |host: NodeId| {
        let lids = site.tables.as_ref().map(|tables| &tables.subnet.lids);
        fabric.neighbours(host).any(|(port, ..)| {
            let given = fabric.node(host).ports[usize::from(port.value())].lid;
            let base = lids.and_then(|lids| lids.base(Endpoint { node: host, port }));
            let base = base.map(|(lid, _)| lid).or(given);
            base.is_some_and(|base| Some(base.value()) == lid)
        })
    };
    let fits = |host: &NodeId| {
        let node = fabric.node(*host);
        let guids = || node.ports.iter().map(|port| port.guid).chain([node.guid]);
        node.name == name || guids().any(|guid| guid.to_string() == name) || has_lid(*host)
    };
    let found: Vec<usize> = (0..hosts.len()).filter(|rank| fits(&hosts[*rank])).collect();
    match found.as_slice() {
        [one] => Ok(*one),
        [] => {
            let known = hosts.iter().map(|host| fabric.node(*host).name.as_str());
            let near = clearlane_ib::nearest(name, known);
            let near = near.map(|near| format!("; did you mean {}?", visible(near)));
            Err(HotError::Unknown { name: shown, near: near.unwrap_or_default() })
        }
        [first, ..] => Err(HotError::Ambiguous {
            name: shown,
            count: count(found.len() as u64, "host", "hosts"),
            example: fabric.node(hosts[*first]).guid.to_string(),
        }),
    }
}

/// A host that is likely to be hot, and why.
fn likely(site: &Site, hosts: &[NodeId]) -> (usize, String) {
    let name = |rank: usize| site.fabric.node(hosts[rank]).name.to_lowercase();
    let says = |rank: usize, role: &str| {
        name(rank).split(|c: char| !c.is_ascii_alphabetic()).any(|word| word == role)
    };
    for role in ROLES {
        if let Some(rank) = (0..hosts.len()).find(|rank| says(*rank, role)) {
            return (rank, "its name says that many use it".into());
        }
    }
    let slow = site.cables.slow.iter().filter(|cable| !cable.is_trunk);
    let slowest = slow.max_by(|a, b| a.missing(&site.fabric).total_cmp(&b.missing(&site.fabric)));
    let at = slowest.and_then(|cable| {
        let link = site.fabric.link(cable.link);
        hosts.iter().position(|host| [link.a.node, link.b.node].contains(host))
    });
    match at {
        Some(rank) => (rank, "its link is the slowest".into()),
        None => (0, "it is the first host of the file".into()),
    }
}
