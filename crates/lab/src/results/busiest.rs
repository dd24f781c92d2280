//! How busy the ways to hosts were in a run: what its summary says, and how it is read back.

use crate::LabError;
use crate::error::named;
use crate::result::{SeedResult, VariantResult};
use crate::text::read_text;
use clearlane_fabric::{Endpoint, NodeId};
use clearlane_ib::PortNumber;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Most bytes of a summary.
const BYTES_MAX: u64 = 1 << 30;
/// Most hosts that are listed.
const LISTED_MAX: usize = 64;

/// The hosts to which the way from their switch was busiest.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BusiestHosts {
    /// The busiest first, 64 at most.
    pub hosts: Vec<HostLoad>,
    /// Load, 0 to 1, of the way to the host in the middle of all.
    pub middle: f64,
}

/// A host port and how busy the way to it was.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct HostLoad {
    /// Name of the host.
    pub host: String,
    /// Busy share of the measured part, 0 to 1.
    pub load: f64,
}

impl BusiestHosts {
    /// Those of a run. Hosts alike are in the order of the fabric.
    pub(super) fn of(variant: &VariantResult, run: &SeedResult) -> Self {
        let fabric = &variant.prepared.fabric;
        let to_host = |node: u32, port: u8| {
            let end = Endpoint { node: NodeId(node), port: PortNumber::new(port)? };
            let peer = fabric.peer(end)?;
            (!fabric.node(peer.node).is_switch()).then_some(&fabric.node(peer.node).name)
        };
        let hosts = variant.switch_channels(run).filter_map(|channel| {
            let host = to_host(channel.node, channel.port)?.clone();
            Some(HostLoad { host, load: channel.load })
        });
        BusiestHosts::among(hosts.collect())
    }

    /// Those of all host ports. Hosts alike stay in their order.
    pub fn among(mut hosts: Vec<HostLoad>) -> Self {
        hosts.sort_by(|a, b| b.load.total_cmp(&a.load));
        let middle = hosts.get(hosts.len() / 2).map_or(0.0, |host| host.load);
        hosts.truncate(LISTED_MAX);
        BusiestHosts { hosts, middle }
    }

    /// Those of the first seed of the first variant of a run that lies in a folder. Fails where the
    /// folder has no such run.
    pub fn in_folder(folder: &Path) -> Result<Self, LabError> {
        #[derive(Deserialize)]
        struct Summary {
            variants: Vec<Variant>,
        }
        #[derive(Deserialize)]
        struct Variant {
            runs: Vec<Run>,
        }
        #[derive(Deserialize)]
        struct Run {
            busiest_hosts: BusiestHosts,
        }
        let path = folder.join("summary.json");
        let text = read_text(&path, BYTES_MAX);
        let text = text.map_err(|source| LabError::Read { path: path.clone(), source })?;
        let remedy = "give the folder of a `clearlane run` of this version";
        let wrong = |what: String| LabError::Request(format!("{}: {what}; {remedy}", named(&path)));
        let read: Summary =
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let run = read.variants.into_iter().next().and_then(|of| of.runs.into_iter().next());
        run.map(|run| run.busiest_hosts).ok_or_else(|| wrong("has no run".into()))
    }
}
