//! Which engines are worth simulating: those that are free of deadlock in the lanes there are, by
//! how much of the traffic of others would stand behind that to the hot hosts.

use crate::Site;
use clearlane_fabric::Endpoint;
use clearlane_ib::ServiceLevel;
use clearlane_subnet::Subnet;
use clearlane_subnet::check::{Exposure, credit_loop, exposure, usage};
use clearlane_subnet::engines::{RouteOptions, route};
use clearlane_subnet::lanes::LANES;

/// Engines tried.
const ENGINES: &[&str] = &["fat-tree", "up-down", "min-hop", "dor", "layered"];

/// An engine that could be used here.
#[derive(Clone, Debug)]
pub struct Screened {
    /// Its name.
    pub engine: &'static str,
    /// How much of other traffic is exposed to the hot traffic.
    pub exposure: Exposure,
    /// Whether lanes are free for other uses: paths are all on service level 0, and the tables stay
    /// as they are with more lanes. The levels of others keep them free of credit loops.
    pub leaves_lanes: bool,
}

/// Whether all paths are on service level 0.
pub(super) fn on_level_0(subnet: &Subnet) -> bool {
    subnet.path_sl.levels() == [ServiceLevel::default()]
}

/// The engines that route every pair without a credit loop in so many lanes, the least exposed
/// first; equals in the order tried.
pub fn screen(site: &Site, lanes: u8, hot: &[Endpoint]) -> Vec<Screened> {
    let lids = site.tables.as_ref().map(|tables| tables.subnet.lids.clone());
    let options = RouteOptions { lanes, lids, ..RouteOptions::default() };
    let is_safe = |subnet: &Subnet| {
        usage(&site.fabric, subnet).lost == 0 && credit_loop(&site.fabric, subnet).is_sane()
    };
    let one = |engine: &'static str| {
        let subnet = route(engine, &site.fabric, &options).ok().filter(is_safe)?;
        let exposure = exposure(&site.fabric, &subnet, hot);
        let stays = |lanes: u8| {
            let more = RouteOptions { lanes, ..options.clone() };
            route(engine, &site.fabric, &more)
                .is_ok_and(|more| more.tables == subnet.tables && on_level_0(&more))
        };
        let leaves_lanes = on_level_0(&subnet)
            && [lanes.saturating_add(1), lanes.max(2), lanes.max(LANES)].into_iter().all(stays);
        Some(Screened { engine, exposure, leaves_lanes })
    };
    let mut all: Vec<Screened> = ENGINES.iter().filter_map(|engine| one(engine)).collect();
    all.sort_by(|a, b| a.exposure.share().total_cmp(&b.exposure.share()));
    all
}
