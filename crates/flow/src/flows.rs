//! Flows under way, the links they are on, and which flows are on each link.

use crate::links::LinkNumber;

/// A flow's number; one that has ended leaves its number to another.
pub(crate) type FlowNumber = u32;

/// One flow: the message that leaves a send queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    /// Bytes a picosecond.
    pub(crate) rate: f64,
    /// It never has more; infinite if it may have what its links give.
    pub(crate) cap: f64,
    /// Bytes on the wire that were left at `since`.
    pub(crate) left: f64,
    /// Since when it has its rate, ps.
    pub(crate) since: u64,
    /// Bytes on the wire of the whole message.
    pub(crate) bytes: f64,
    /// The send queue whose first message it is.
    pub(crate) queue: u32,
    /// Its place among those under way.
    place: u32,
}

impl Flow {
    /// A flow of so many bytes that begins, without a rate.
    pub(crate) fn new(queue: u32, bytes: u64, cap: f64, now: u64) -> Self {
        let bytes = bytes as f64;
        Flow { rate: 0.0, cap, left: bytes, since: now, bytes, queue, place: 0 }
    }

    /// Bytes that are left at a time no earlier than `since`.
    pub(crate) fn left_at(&self, now: u64) -> f64 {
        (self.left - self.rate * (now - self.since) as f64).max(0.0)
    }

    /// It has another rate from now on.
    pub(crate) fn set_rate(&mut self, now: u64, rate: f64) {
        self.left = self.left_at(now);
        (self.since, self.rate) = (now, rate);
    }

    /// When its last byte leaves if its rate stays: to the nearest picosecond.
    pub(crate) fn end(&self) -> u64 {
        self.since.saturating_add((self.left / self.rate + 0.5) as u64)
    }

    /// Ends a picosecond that a message as long as this one would have at its rate.
    pub(crate) fn ends_per_picosecond(&self) -> f64 {
        if self.bytes > 0.0 { self.rate / self.bytes } else { 0.0 }
    }
}

/// A link of a flow, and its place among the flows on that link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    pub(crate) link: LinkNumber,
    at: u32,
}

/// A flow on a link, and the link's place on the flow's way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) flow: FlowNumber,
    hop: u32,
}

/// A link, as flows share it.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    /// Bytes a picosecond.
    pub(crate) capacity: f64,
    /// The rates of all flows on it.
    pub(crate) used: f64,
    pub(crate) members: Vec<Member>,
    /// Its place among the links with flows.
    place: u32,
}

/// All flows under way.
pub(crate) struct Flows {
    /// By number.
    pub(crate) all: Vec<Flow>,
    /// By number: the links that a flow is on, each once.
    pub(crate) ways: Vec<Vec<Hop>>,
    /// Those under way.
    pub(crate) live: Vec<FlowNumber>,
    /// Numbers that are free, the next one last.
    free: Vec<FlowNumber>,
    /// By number.
    pub(crate) links: Vec<Shared>,
    /// Links with flows.
    pub(crate) used: Vec<LinkNumber>,
    /// Flows under way that have a cap.
    pub(crate) capped: usize,
}

impl Flows {
    /// None, on links of these capacities in bytes a picosecond.
    pub(crate) fn new(capacities: &[f64]) -> Self {
        let link =
            |capacity: &f64| Shared { capacity: *capacity, used: 0.0, members: vec![], place: 0 };
        Flows {
            all: Vec::new(),
            ways: Vec::new(),
            live: Vec::new(),
            free: Vec::new(),
            links: capacities.iter().map(link).collect(),
            used: Vec::new(),
            capped: 0,
        }
    }

    /// A flow begins on these links, none of which is named twice. It has a rate of its own until
    /// all rates are computed: what others leave on each link, or an even share of it if that is
    /// more. Nobody else has less for that, so links may carry too much until then.
    pub(crate) fn begin(&mut self, mut flow: Flow, route: &[LinkNumber]) -> FlowNumber {
        let number = self.free.pop().unwrap_or(self.all.len() as FlowNumber);
        (flow.place, flow.rate) = (self.live.len() as u32, flow.cap);
        self.live.push(number);
        self.capped += usize::from(flow.cap < f64::INFINITY);
        if number as usize == self.all.len() {
            self.all.push(flow);
            self.ways.push(Vec::with_capacity(route.len()));
        }
        let way = &mut self.ways[number as usize];
        for (hop, link) in (0..).zip(route) {
            let shared = &mut self.links[*link as usize];
            if shared.members.is_empty() {
                shared.place = self.used.len() as u32;
                self.used.push(*link);
            }
            way.push(Hop { link: *link, at: shared.members.len() as u32 });
            shared.members.push(Member { flow: number, hop });
            let even = shared.capacity / shared.members.len() as f64;
            flow.rate = flow.rate.min((shared.capacity - shared.used).max(even));
        }
        for link in route {
            self.links[*link as usize].used += flow.rate;
        }
        self.all[number as usize] = flow;
        number
    }

    /// A flow has ended: what it had is free.
    pub(crate) fn end(&mut self, number: FlowNumber) {
        let Flow { rate, cap, place, .. } = self.all[number as usize];
        self.capped -= usize::from(cap < f64::INFINITY);
        let mut way = std::mem::take(&mut self.ways[number as usize]);
        for hop in way.drain(..) {
            let shared = &mut self.links[hop.link as usize];
            shared.used -= rate;
            shared.members.swap_remove(hop.at as usize);
            if let Some(moved) = shared.members.get(hop.at as usize) {
                self.ways[moved.flow as usize][moved.hop as usize].at = hop.at;
            } else if shared.members.is_empty() {
                shared.used = 0.0;
                let place = shared.place;
                self.used.swap_remove(place as usize);
                if let Some(moved) = self.used.get(place as usize) {
                    self.links[*moved as usize].place = place;
                }
            }
        }
        // Its room is for the next flow of that number.
        self.ways[number as usize] = way;
        self.free.push(number);
        self.live.swap_remove(place as usize);
        if let Some(moved) = self.live.get(place as usize) {
            self.all[*moved as usize].place = place;
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.live.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Lists of flows and of links know each other.
    fn check(flows: &Flows) {
        for (place, number) in flows.live.iter().enumerate() {
            assert_eq!(flows.all[*number as usize].place as usize, place);
            for (at, hop) in flows.ways[*number as usize].iter().enumerate() {
                let member = flows.links[hop.link as usize].members[hop.at as usize];
                assert_eq!((member.flow, member.hop as usize), (*number, at));
            }
        }
        let members: usize = flows.links.iter().map(|link| link.members.len()).sum();
        let hops: usize = flows.live.iter().map(|flow| flows.ways[*flow as usize].len()).sum();
        assert_eq!(members, hops);
        let used = flows.links.iter().filter(|link| !link.members.is_empty());
        assert_eq!(used.count(), flows.used.len());
        for (place, link) in flows.used.iter().enumerate() {
            assert_eq!(flows.links[*link as usize].place as usize, place);
        }
    }

    proptest! {
        #[test]
        fn flows_come_and_go(
            steps in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>(),
                prop::sample::subsequence((0..9u32).collect::<Vec<_>>(), 1..5)), 1..120)
        ) {
            let mut flows = Flows::new(&[0.5; 9]);
            for (begins, which, route) in steps {
                if begins || flows.count() == 0 {
                    flows.begin(Flow::new(0, 10, f64::INFINITY, 0), &route);
                } else {
                    let number = flows.live[which.index(flows.count())];
                    flows.end(number);
                }
                check(&flows);
            }
        }
    }

    #[test]
    fn one_that_begins_has_what_others_leave_or_an_even_share() {
        let mut flows = Flows::new(&[1.0, 4.0]);
        let begin = |flows: &mut Flows, route: &[u32], cap: f64| {
            let number = flows.begin(Flow::new(0, 10, cap, 0), route);
            flows.all[number as usize].rate
        };
        assert_eq!(begin(&mut flows, &[0], f64::INFINITY), 1.0);
        assert_eq!(begin(&mut flows, &[0, 1], f64::INFINITY), 0.5);
        assert_eq!(begin(&mut flows, &[1], f64::INFINITY), 3.5);
        assert_eq!(begin(&mut flows, &[1], 0.25), 0.25);
    }

    #[test]
    fn bytes_leave_at_the_rate() {
        let mut flow = Flow::new(0, 1000, f64::INFINITY, 100);
        flow.rate = 0.004;
        assert_eq!((flow.end(), flow.left_at(100_100)), (250_100, 600.0));
        flow.set_rate(100_100, 0.002);
        assert_eq!(flow.end(), 400_100);
    }
}
