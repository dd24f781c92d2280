//! Which hosts are hot: those that are named, or the one that looks most like it.

use crate::{Site, words::count};
use clearlane_fabric::{Endpoint, NodeId};
use clearlane_ib::{Identity, IdentityError, identify, visible};

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
    /// No host, or several, are meant.
    #[error("{0}")]
    Identity(#[from] IdentityError),
    /// One host is named more than once, by one name or several.
    #[error("{0} is named twice as hot; name it once")]
    Twice(String),
    /// A switch is named.
    #[error("{0} is a switch; name a host that is plugged into it")]
    Switch(String),
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
    let lids = site.tables.as_ref().map(|tables| &tables.subnet.lids);
    let identity = |host: &NodeId| {
        let node = site.fabric.node(*host);
        let first = site.fabric.neighbours(*host).next();
        let port = first.and_then(|(port, ..)| node.ports.get(usize::from(port.value())));
        let end = first.map(|(port, ..)| Endpoint { node: *host, port });
        let of_tables = lids.zip(end).and_then(|(lids, end)| lids.base(end)).map(|(lid, _)| lid);
        Identity {
            name: &node.name,
            guids: [node.guid, port.map_or(node.guid, |port| port.guid)],
            lid: of_tables.or(port.and_then(|port| port.lid)),
        }
    };
    let found = identify(name, hosts.iter().map(identity));
    found.map_err(|error| match site.fabric.nodes().iter().find(|node| node.name == name) {
        Some(node) if node.is_switch() => HotError::Switch(visible(name).into_owned()),
        _ => HotError::Identity(error),
    })
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
