//! The lane policy named on the command line.

use crate::failure::Failure;
use clap::Args;
use clearlane_fabric::{Endpoint, Fabric};
use clearlane_sim::Hosts;
use clearlane_subnet::Subnet;
use clearlane_subnet::lanes::{self, LaneOptions};
use clearlane_workload::HostRef;

/// Which lanes paths take, if it is not for the engine to say.
#[derive(Args, Clone, Debug, Default)]
pub struct LanePolicy {
    /// Give paths their lanes by this policy, whatever fills the tables; see `clearlane list lanes`
    #[arg(long = "lane-policy", value_name = "POLICY")]
    policy: Option<String>,
    /// A host that is hot, by name, GUID or LID, for lane policies that ask; repeat the flag
    #[arg(long, value_name = "HOST", requires = "policy")]
    hot: Vec<String>,
    /// Seed of lane policy random
    #[arg(long, value_name = "SEED", default_value_t = 1, requires = "policy")]
    lane_seed: u64,
}

impl LanePolicy {
    /// The name, if one is named.
    pub fn name(&self) -> Option<&str> {
        self.policy.as_deref()
    }

    /// Gives paths their lanes, as many as `lanes` or as the policy uses by itself. Nothing happens
    /// if no policy is named.
    pub fn assign(
        &self,
        fabric: &Fabric,
        subnet: &mut Subnet,
        lanes: Option<u8>,
    ) -> Result<(), Failure> {
        let Some(name) = &self.policy else { return Ok(()) };
        let policy = lanes::policy(name).map_err(Failure::input)?;
        let mut options = LaneOptions::new(lanes.unwrap_or(policy.lanes));
        options.seed = self.lane_seed;
        options.hot = self.hot_ports(fabric)?;
        policy.assign(fabric, subnet, &options).map_err(Failure::input)
    }

    /// All ports of the hot hosts.
    fn hot_ports(&self, fabric: &Fabric) -> Result<Vec<Endpoint>, Failure> {
        let hosts = Hosts::with_ports(fabric, None);
        let ranks = hosts.ranks();
        let mut ports = Vec::new();
        for text in &self.hot {
            let rank = ranks.resolve(&HostRef::Name(text.clone()));
            let rank = rank.map_err(|error| Failure::Input(format!("--hot: {error}")))?;
            ports.extend(hosts.ports(rank));
        }
        Ok(ports)
    }
}
