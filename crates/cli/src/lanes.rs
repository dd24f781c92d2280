//! The lane policy named on the command line.

use crate::failure::Failure;
use crate::hot::HotCounted;
use clap::Args;
use clearlane_fabric::{Endpoint, Fabric};
use clearlane_ib::quoted;
use clearlane_lab::named_port;
use clearlane_sim::Hosts;
use clearlane_subnet::Subnet;
use clearlane_subnet::lanes::{self, LaneOptions};
use clearlane_workload::HostRef;
use std::path::Path;

/// Which lanes paths take, if it is not for the engine to say.
#[derive(Args, Clone, Debug, Default)]
pub struct LanePolicy {
    /// Give paths their lanes by this policy, whatever fills the tables; see `clearlane list lanes`
    #[arg(long = "lane-policy", value_name = "POLICY")]
    policy: Option<String>,
    /// A host that is hot, by name, GUID or LID, for lane policies that ask; repeat the flag
    #[arg(long, value_name = "HOST", requires = "policy")]
    hot: Vec<String>,
    #[command(flatten)]
    counted: HotCounted,
    /// Seed of lane policy random
    #[arg(long, value_name = "SEED", default_value_t = 1, requires = "policy")]
    lane_seed: u64,
    /// A link with fewer data lanes than the others, by a port of it, as in `leaf03[15]=4`; repeat
    /// the flag
    #[arg(long, value_name = "PORT=V", requires = "policy", value_parser = link_lanes)]
    link_lanes: Vec<(String, u8)>,
}

impl LanePolicy {
    /// The name, if one is named.
    pub fn name(&self) -> Option<&str> {
        self.policy.as_deref()
    }

    /// The files it reads.
    pub fn files_read(&self) -> impl Iterator<Item = &Path> {
        self.counted.files_read()
    }

    /// Gives paths their lanes, as many as `lanes` or as the policy uses by itself. Nothing happens
    /// if no policy is named.
    pub fn assign(
        &self,
        fabric: &Fabric,
        subnet: &mut Subnet,
        lanes: Option<u8>,
    ) -> Result<(), Failure> {
        let Some(name) = &self.policy else {
            if self.counted.is_empty() {
                return Ok(());
            }
            let line = "hot hosts are counted for a lane policy; name one with --lane-policy";
            return Err(Failure::Input(line.into()));
        };
        let policy = lanes::policy(name).map_err(Failure::input)?;
        let is_named = !self.hot.is_empty() || !self.counted.is_empty();
        if is_named && !policy.hot {
            let line = format!("lane policy {name} asks for no hot hosts; leave them out");
            return Err(Failure::Input(line));
        }
        let mut options = LaneOptions::new(lanes.unwrap_or(policy.lanes));
        options.seed = self.lane_seed;
        options.of_links = self.links(fabric)?;
        let (hot, note) = self.hot_ports(fabric)?;
        options.hot = hot;
        policy.assign(fabric, subnet, &options).map_err(Failure::input)?;
        subnet.notes.extend(note);
        Ok(())
    }

    /// Links with fewer lanes. Fails on a port that is not there.
    pub fn links(&self, fabric: &Fabric) -> Result<Vec<(Endpoint, u8)>, Failure> {
        let link = |(name, lanes): &(String, u8)| {
            let end = named_port(fabric, name);
            let end = end
                .map_err(|what| Failure::Input(format!("--link-lanes: {} {what}", quoted(name))))?;
            Ok((end, *lanes))
        };
        let links = self.link_lanes.iter().map(link).collect::<Result<Vec<_>, Failure>>()?;
        let twice = (1..links.len()).find(|at| {
            let is_same = |(end, _): &(Endpoint, u8)| {
                *end == links[*at].0 || fabric.peer(*end) == Some(links[*at].0)
            };
            links[..*at].iter().any(is_same)
        });
        match twice.and_then(|at| self.link_lanes.get(at)) {
            Some((port, _)) => {
                let line = format!("--link-lanes: the link of {} is named twice", quoted(port));
                Err(Failure::Input(line + "; name it once"))
            }
            None => Ok(links),
        }
    }

    /// All ports of the hot hosts, and a sentence on those that are counted.
    fn hot_ports(&self, fabric: &Fabric) -> Result<(Vec<Endpoint>, Option<String>), Failure> {
        let (counted, note) = self.counted.hosts(fabric)?.unzip();
        let named = self.hot.iter().cloned().chain(counted.into_iter().flatten());
        let hosts: Vec<HostRef> = named.map(HostRef::Name).collect();
        let ports = Hosts::with_ports(fabric, None).ports_named(&hosts);
        let ports = ports.map_err(|error| Failure::Input(format!("--hot: {error}")))?;
        Ok((ports, note))
    }
}

/// `leaf03[15]=4`.
fn link_lanes(text: &str) -> Result<(String, u8), String> {
    let remedy = "write a port and its lanes, 1, 2, 4, 8 or 15, as in leaf03[15]=4";
    let (port, count) = text.rsplit_once('=').ok_or(remedy)?;
    match count.parse() {
        Ok(value) if lanes::OPERATIONAL.contains(&value) => Ok((port.to_owned(), value)),
        _ => Err(remedy.into()),
    }
}
