//! Ideal times of programs: what their messages ask of links, on the routes that they take.

use crate::experiment::TrafficSpec;
use crate::measure::Ideals as Measured;
use crate::prepare::Prepared;
use crate::routes::DefaultRoutes;
use clearlane_workload::bounds;
use clearlane_workload::{Bounds, Rank};
use std::sync::OnceLock;

/// Those of the groups of a variant, each computed when it is first asked for: walking the routes of
/// a large all-to-all takes its time.
#[derive(Debug, Default)]
pub(crate) struct Ideals(Vec<OnceLock<Option<Bounds>>>);

impl Ideals {
    /// Those of so many groups.
    pub(crate) fn of(traffic: &[TrafficSpec]) -> Self {
        Ideals(traffic.iter().map(|_| OnceLock::new()).collect())
    }
}

impl Measured for Prepared {
    fn ideal(&self, group: usize) -> Option<Bounds> {
        *self.ideals.0.get(group)?.get_or_init(|| self.compute(group))
    }
}

impl Prepared {
    fn compute(&self, group: usize) -> Option<Bounds> {
        let group = self.groups.get(group)?;
        let program = group.program()?;
        let schedule = program.schedule(group.senders.len() as u32).ok()??;
        let Prepared { fabric, routed, hosts, parameters, .. } = self;
        let routes = DefaultRoutes::of(fabric, routed, hosts, parameters).ok()?;
        let rate = |rank: Rank| hosts.rate(rank, parameters);
        let (of_ranks, packet) = (group.senders.as_slice(), parameters.packet(group.transport));
        let hosts = bounds::Hosts { of_ranks, rate: &rate, packet };
        Some(Bounds::of(&*schedule, &routes, &hosts, program.operations()))
    }

    /// Messages that a group's program sends in a round at most; 0 if it is none with steps.
    pub(crate) fn messages(&self, group: usize) -> u64 {
        let Some(group) = self.groups.get(group) else { return 0 };
        let ranks = group.senders.len() as u32;
        let schedule = group.program().and_then(|program| program.schedule(ranks).ok().flatten());
        schedule.map_or(0, |schedule| {
            let places = |step: u32| u64::from(schedule.places(step));
            (0..schedule.steps()).map(places).sum::<u64>() * u64::from(ranks)
        })
    }
}
