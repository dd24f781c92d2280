//! Which engines are worth simulating: those that are free of deadlock in the lanes there are, by
//! how much of the traffic of others would stand behind that to the hot hosts.

use crate::Site;
use clearlane_fabric::Endpoint;
use clearlane_subnet::Subnet;
use clearlane_subnet::check::{Exposure, credit_loop, exposure, usage};
use clearlane_subnet::engines::{RouteOptions, route};

/// Engines tried.
const ENGINES: &[&str] = &["fat-tree", "up-down", "min-hop", "dor", "layered"];

/// An engine that could be used here.
#[derive(Clone, Debug)]
pub struct Screened {
    /// Its name.
    pub engine: &'static str,
    /// How much of other traffic is exposed to the hot traffic.
    pub exposure: Exposure,
    /// Whether all its paths have one service level: of others no traffic can be taken to a lane of
    /// its own, because their levels keep them free of credit loops.
    pub has_one_level: bool,
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
        Some(Screened { engine, exposure, has_one_level: subnet.path_sl.levels().len() == 1 })
    };
    let mut all: Vec<Screened> = ENGINES.iter().filter_map(|engine| one(engine)).collect();
    all.sort_by(|a, b| a.exposure.share().total_cmp(&b.exposure.share()));
    all
}
