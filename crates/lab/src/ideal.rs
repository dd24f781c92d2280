//! Ideal times of programs: what their messages ask of links, on the routes that they take.

use crate::experiment::TrafficSpec;
use crate::routes::{DefaultRoutes, Routed};
use clearlane_fabric::Fabric;
use clearlane_sim::{Hosts, Parameters};
use clearlane_workload::{Bounds, FlowGroup, Rank, bounds};
use std::sync::OnceLock;

/// Those of the groups of a variant, each computed when it is first asked for: walking the routes
/// of a large all-to-all takes its time.
#[derive(Debug, Default)]
pub(crate) struct Ideals(Vec<OnceLock<Option<Bounds>>>);

/// What programs run on.
pub(crate) struct Place<'a> {
    pub(crate) fabric: &'a Fabric,
    pub(crate) routed: &'a Routed,
    pub(crate) hosts: &'a Hosts,
    pub(crate) parameters: &'a Parameters,
}

impl Ideals {
    /// Those of so many groups.
    pub(crate) fn of(traffic: &[TrafficSpec]) -> Self {
        Ideals(traffic.iter().map(|_| OnceLock::new()).collect())
    }

    /// Those of the group of this number; nothing of one that is no program with steps.
    pub(crate) fn get(
        &self,
        number: usize,
        group: &FlowGroup,
        place: &Place<'_>,
    ) -> Option<Bounds> {
        *self.0.get(number)?.get_or_init(|| compute(group, place))
    }
}

fn compute(group: &FlowGroup, place: &Place<'_>) -> Option<Bounds> {
    let Place { fabric, routed, hosts, parameters } = place;
    let program = group.program()?;
    let schedule = program.schedule(group.senders.len() as u32).ok()??;
    let routes = DefaultRoutes::of(fabric, routed, hosts, parameters).ok()?;
    let rate = |rank: Rank| hosts.rate(rank, parameters);
    let (of_ranks, packet) = (group.senders.as_slice(), parameters.packet(group.transport));
    let hosts = bounds::Hosts { of_ranks, rate: &rate, packet };
    Some(Bounds::of(&*schedule, &routes, &hosts, program.operations()))
}

/// Messages that a group's program sends in a round at most; 0 if it is none with steps.
pub(crate) fn messages(group: &FlowGroup) -> u64 {
    let ranks = group.senders.len() as u32;
    let schedule = group.program().and_then(|program| program.schedule(ranks).ok().flatten());
    schedule.map_or(0, |schedule| {
        let places = |step: u32| u64::from(schedule.places(step));
        (0..schedule.steps()).map(places).sum::<u64>() * u64::from(ranks)
    })
}
