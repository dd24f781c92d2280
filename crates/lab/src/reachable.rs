//! Traffic of a subnet whose tables do not reach every host: pairs that are dead send nothing.

use clearlane_fabric::Fabric;
use clearlane_ib::random::Stream;
use clearlane_sim::Hosts;
use clearlane_subnet::Subnet;
use clearlane_subnet::check::Arrivals;
use clearlane_workload::{Demand, Destinations, FlowGroup, Rank};
use std::sync::Arc;

/// Which pairs of hosts can talk: packets arrive both ways, at every LID.
#[derive(Debug)]
pub(crate) struct Reachable {
    arrivals: Arrivals,
    hosts: Hosts,
}

impl Reachable {
    pub(crate) fn of(fabric: &Fabric, subnet: &Subnet, hosts: &Hosts) -> Self {
        Reachable { arrivals: Arrivals::of(fabric, subnet), hosts: hosts.clone() }
    }

    fn can_talk(&self, source: Rank, destination: Rank) -> bool {
        let (here, there) = self.hosts.ports_between(source, destination);
        self.arrivals.arrives(here, there) && self.arrivals.arrives(there, here)
    }

    /// The group without its messages between hosts that cannot talk. Fails if it is a program,
    /// which waits for what does not arrive.
    pub(crate) fn limit(self: &Arc<Self>, mut group: FlowGroup) -> Result<FlowGroup, String> {
        match &mut group.demand {
            Demand::OpenLoop(offered) => {
                let destinations = Arc::clone(&offered.destinations);
                let mut limited = clearlane_workload::Offered::clone(offered);
                let limit = Arc::new(Limited { destinations, pairs: Arc::clone(self) });
                group.senders.retain(|sender| limit.reaches_any(*sender));
                if group.senders.is_empty() {
                    return Err(format!(
                        "traffic {}: nothing of it arrives by these tables; mend them, or leave \
                         the traffic out",
                        group.name
                    ));
                }
                limited.destinations = limit;
                *offered = Arc::new(limited);
            }
            Demand::Program(program, _) => {
                let pairs =
                    group.senders.iter().flat_map(|a| group.senders.iter().map(move |b| (*a, *b)));
                let dead = pairs.filter(|(a, b)| a != b).find(|(a, b)| !self.can_talk(*a, *b));
                if let Some((source, destination)) = dead {
                    let ranks = self.hosts.ranks();
                    return Err(format!(
                        "program {} of traffic {} may need a path from {} to {}, but packets do \
                         not arrive in both directions; repair the tables, or leave one of the \
                         two hosts out of senders",
                        program.name(),
                        group.name,
                        ranks.name(source),
                        ranks.name(destination)
                    ));
                }
            }
        }
        Ok(group)
    }
}

/// A pattern's destinations as far as they can be reached.
#[derive(Debug)]
struct Limited {
    destinations: Arc<dyn Destinations>,
    pairs: Arc<Reachable>,
}

/// How often a sender draws before it is taken to reach nobody.
const DRAWS: usize = 64;

impl Limited {
    /// Whether a sender reaches any of its destinations: one that does not would starve.
    fn reaches_any(&self, sender: Rank) -> bool {
        let mut stream = Stream::new(0, "reachable", u64::from(sender.0));
        (0..DRAWS).any(|_| self.draw(sender, &mut stream).is_some())
    }
}

impl Destinations for Limited {
    fn draw(&self, source: Rank, stream: &mut Stream) -> Option<Rank> {
        let drawn = self.destinations.draw(source, stream);
        drawn.filter(|destination| self.pairs.can_talk(source, *destination))
    }

    fn weight(&self, source: Rank) -> f64 {
        self.destinations.weight(source)
    }

    fn note(&self) -> Option<&str> {
        self.destinations.note()
    }
}
