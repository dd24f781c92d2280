//! Flow groups with several queue pairs between two hosts: the simulator runs each queue pair as a
//! group of its own, and what it recorded is made one group's again.

use clearlane_sim::Outcome;
use clearlane_workload::{Demand, FlowGroup, Offered};
use std::sync::Arc;

/// By flow group, how many queue pairs it has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct QueuePairs(Vec<u16>);

impl QueuePairs {
    pub(crate) fn of(counts: impl Iterator<Item = u16>) -> Self {
        QueuePairs(counts.map(|count| count.max(1)).collect())
    }

    /// The groups of a simulation: of each queue pair one, which offers its part of the load.
    pub(crate) fn groups(&self, groups: &[FlowGroup]) -> Vec<FlowGroup> {
        let one = |(group, count): (&FlowGroup, &u16)| {
            let part = match &group.demand {
                Demand::OpenLoop(offered) if *count > 1 => {
                    let load = offered.load / f64::from(*count);
                    let part = Offered { load, ..Offered::clone(offered) };
                    FlowGroup { demand: Demand::OpenLoop(Arc::new(part)), ..group.clone() }
                }
                _ => group.clone(),
            };
            std::iter::repeat_n(part, usize::from(*count))
        };
        groups.iter().zip(&self.0).flat_map(one).collect()
    }

    /// How many groups a simulation has.
    pub(crate) fn count(&self) -> usize {
        self.0.iter().map(|count| usize::from(*count)).sum()
    }

    /// The index in a simulation of the first queue pair of a group.
    pub(crate) fn first(&self, group: usize) -> u16 {
        self.0.iter().take(group).sum()
    }

    /// Makes what was recorded of queue pairs that of their groups.
    pub(crate) fn join(&self, outcome: &mut Outcome) {
        if self.count() > self.0.len() {
            let of = self.0.iter().enumerate();
            let of: Vec<u16> = of
                .flat_map(|(group, count)| std::iter::repeat_n(group as u16, usize::from(*count)))
                .collect();
            outcome.join(&of);
        }
    }
}
