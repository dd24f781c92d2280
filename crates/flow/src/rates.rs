//! Max-min fair rates by water-filling: the rates of all flows rise together, those of the flows on
//! a link stop when the link is full, and the others rise on (Bertsekas and Gallager, Data Networks,
//! 2nd ed., 6.5.2). Each flow then has a bottleneck: a full link on which nobody has more.

use crate::flows::{FlowNumber, Flows};
use crate::links::LinkNumber;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Among items, a flow that stops at its own cap: its number with this bit. Others are links.
const CAP: u32 = 1 << 31;

/// Bits of a rate that do not tell buckets apart: an octave has 64 buckets.
const BUCKET_BITS: u32 = 46;

/// How far above its capacity a link may be by rounding.
const TOLERANCE: f64 = 1e-9;

/// What is left of a link.
#[derive(Clone, Copy, Default)]
struct Room {
    /// Bytes a picosecond that no flow has.
    free: f64,
    /// Flows on it that still rise.
    rising: u32,
}

impl Room {
    /// The level at which it would be full. What rounding has taken below nothing is next to it.
    fn level(self) -> f64 {
        (self.free / f64::from(self.rising)).max(f64::MIN_POSITIVE)
    }
}

/// Computes rates. Links wait in buckets by the level at which they would be full; a level only
/// rises, so it is looked at again when the bucket's turn comes.
#[derive(Default)]
pub(crate) struct WaterFilling {
    /// By link.
    rooms: Vec<Room>,
    /// By flow.
    rates: Vec<f64>,
    /// By flow: the computation in which it was fixed.
    fixed: Vec<u32>,
    /// The number of this computation.
    number: u32,
    buckets: Vec<Vec<u32>>,
    /// Number of the first bucket, by the bits of a level.
    base: u64,
    /// Items of one bucket, the lowest level first.
    heap: BinaryHeap<Reverse<(u64, u32)>>,
}

/// The bucket of a level, less the first one's number. Rates are positive, and the bits of positive
/// numbers are in their order (IEEE 754).
fn bucket(level: f64) -> u64 {
    level.to_bits() >> BUCKET_BITS
}

impl WaterFilling {
    /// Computes the rate of every flow under way, and what each link carries. [`Self::rate`] tells
    /// them. Panics if a link would carry more than its capacity: a fault of this program.
    pub(crate) fn fill(&mut self, flows: &mut Flows) {
        self.begin(flows);
        let (mut level, mut rising) = (0.0f64, flows.count());
        let mut at = 0;
        while rising > 0 {
            let mut waiting = std::mem::take(&mut self.buckets[at]);
            waiting.drain(..).for_each(|item| self.put(flows, item, at));
            self.buckets[at] = waiting;
            while let Some(Reverse((bits, item))) = self.heap.pop() {
                let full = match item & CAP {
                    0 if self.rooms[item as usize].rising == 0 => continue,
                    0 => self.rooms[item as usize].level(),
                    _ => flows.all[(item ^ CAP) as usize].cap,
                };
                if full.to_bits() > bits {
                    self.put(flows, item, at);
                    continue;
                }
                // Rounding must not let it fall.
                level = level.max(full);
                rising -= self.stop(flows, item, level);
                if rising == 0 {
                    break;
                }
            }
            self.heap.clear();
            at += 1;
        }
        self.buckets.iter_mut().for_each(Vec::clear);
        self.note_used(flows);
    }

    /// The rate of a flow that was under way at the last computation.
    pub(crate) fn rate(&self, flow: FlowNumber) -> f64 {
        self.rates[flow as usize]
    }

    /// All links are empty, all flows rise, and everything that may stop any waits.
    fn begin(&mut self, flows: &Flows) {
        self.number = self.number.wrapping_add(1);
        self.rooms.resize(flows.links.len(), Room::default());
        self.rates.resize(flows.all.len(), 0.0);
        self.fixed.resize(flows.all.len(), 0);
        let mut least = f64::INFINITY;
        for link in &flows.used {
            let shared = &flows.links[*link as usize];
            let room = Room { free: shared.capacity, rising: shared.members.len() as u32 };
            self.rooms[*link as usize] = room;
            least = least.min(room.level());
        }
        let capped = |flow: &&FlowNumber| flows.all[**flow as usize].cap < f64::INFINITY;
        let caps = if flows.capped > 0 { flows.live.as_slice() } else { &[] };
        for flow in caps.iter().filter(capped) {
            least = least.min(flows.all[*flow as usize].cap);
        }
        self.base = bucket(least);
        for link in &flows.used {
            self.file(*link, self.rooms[*link as usize].level());
        }
        for flow in caps.iter().filter(capped) {
            self.file(flow | CAP, flows.all[*flow as usize].cap);
        }
    }

    /// Puts an item into the bucket of its level.
    fn file(&mut self, item: u32, level: f64) {
        let at = (bucket(level) - self.base) as usize;
        if at >= self.buckets.len() {
            self.buckets.resize_with(at + 1, Vec::new);
        }
        self.buckets[at].push(item);
    }

    /// Puts an item that has waited in the bucket whose turn it is into the heap, or into a later
    /// bucket if its level has risen that far.
    fn put(&mut self, flows: &Flows, item: u32, at: usize) {
        let level = match item & CAP {
            // Nobody waits for it any more.
            0 if self.rooms[item as usize].rising == 0 => return,
            0 => self.rooms[item as usize].level(),
            _ => flows.all[(item ^ CAP) as usize].cap,
        };
        match bucket(level).saturating_sub(self.base) > at as u64 {
            true => self.file(item, level),
            false => self.heap.push(Reverse((level.to_bits(), item))),
        }
    }

    /// The flows that an item stops have this rate. Returns how many there are.
    fn stop(&mut self, flows: &Flows, item: u32, level: f64) -> usize {
        if item & CAP != 0 {
            return usize::from(self.fix(flows, item ^ CAP, level));
        }
        let members = &flows.links[item as usize].members;
        members.iter().filter(|member| self.fix(flows, member.flow, level)).count()
    }

    /// A flow rises no further. False if it had stopped before.
    fn fix(&mut self, flows: &Flows, flow: FlowNumber, level: f64) -> bool {
        let at = flow as usize;
        if self.fixed[at] == self.number {
            return false;
        }
        (self.fixed[at], self.rates[at]) = (self.number, level);
        for hop in &flows.ways[at] {
            let room = &mut self.rooms[hop.link as usize];
            room.free -= level;
            room.rising -= 1;
        }
        true
    }

    /// Notes what links carry.
    fn note_used(&self, flows: &mut Flows) {
        for link in &flows.used {
            let number: LinkNumber = *link;
            let (shared, room) = (&mut flows.links[number as usize], self.rooms[number as usize]);
            let over = -room.free > shared.capacity * TOLERANCE;
            assert!(!over, "link {number} carries {} above its capacity", -room.free);
            shared.used = shared.capacity - room.free;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flows::Flow;
    use proptest::prelude::*;

    /// Rates of flows with these caps on these links.
    fn fill(capacities: &[f64], flows: &[(f64, Vec<LinkNumber>)]) -> Vec<f64> {
        let mut all = Flows::new(capacities);
        for (cap, route) in flows {
            all.begin(Flow::new(0, 1000, *cap, 0), route);
        }
        let mut filling = WaterFilling::default();
        filling.fill(&mut all);
        // Once more, with what the first computation has left behind.
        filling.fill(&mut all);
        (0..flows.len() as u32).map(|flow| filling.rate(flow)).collect()
    }

    fn free(route: &[LinkNumber]) -> (f64, Vec<LinkNumber>) {
        (f64::INFINITY, route.to_vec())
    }

    #[test]
    fn two_flows_on_a_link_have_half_of_it_each() {
        assert_eq!(fill(&[1.0], &[free(&[0]), free(&[0])]), [0.5, 0.5]);
    }

    /// Bertsekas and Gallager, example 6.3: a flow over all links of a chain and others on one
    /// each, of which one link has two.
    #[test]
    fn who_is_held_back_elsewhere_leaves_the_rest() {
        let flows = [free(&[0, 1, 2]), free(&[0]), free(&[1]), free(&[1]), free(&[2])];
        let rates = fill(&[1.0; 3], &flows);
        let third = 1.0 / 3.0;
        assert_eq!(rates, [third, 1.0 - third, third, third, 1.0 - third]);
    }

    #[test]
    fn a_cap_leaves_the_rest_to_others() {
        let flows = [(0.1, vec![0]), free(&[0]), free(&[0])];
        assert_eq!(fill(&[1.0], &flows), [0.1, 0.45, 0.45]);
        assert_eq!(fill(&[1.0], &[(3.0, vec![0])]), [1.0]);
    }

    fn is_near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
    }

    proptest! {
        /// Max-min fair is who has a bottleneck: his cap, or a full link where nobody has more.
        #[test]
        fn rates_fit_and_every_flow_has_a_bottleneck(
            capacities in prop::collection::vec(0.001f64..10.0, 12),
            flows in prop::collection::vec((prop::option::of(0.001f64..10.0),
                prop::sample::subsequence((0..12u32).collect::<Vec<_>>(), 1..8)), 1..60),
        ) {
            let flows: Vec<_> = flows.into_iter()
                .map(|(cap, route)| (cap.unwrap_or(f64::INFINITY), route)).collect();
            let rates = fill(&capacities, &flows);
            let mut sums = [0.0; 12];
            let mut most = [0.0f64; 12];
            for ((_, route), rate) in flows.iter().zip(&rates) {
                for link in route {
                    sums[*link as usize] += rate;
                    most[*link as usize] = most[*link as usize].max(*rate);
                }
            }
            for (sum, capacity) in sums.iter().zip(&capacities) {
                prop_assert!(*sum <= capacity * (1.0 + 1e-9));
            }
            for ((cap, route), rate) in flows.iter().zip(&rates) {
                let full = |link: &u32| {
                    let link = *link as usize;
                    is_near(sums[link], capacities[link]) && *rate >= most[link] * (1.0 - 1e-9)
                };
                prop_assert!(*rate > 0.0 && *rate <= *cap);
                prop_assert!(is_near(*rate, *cap) || route.iter().any(full));
            }
        }
    }
}
