//! An all-to-all made for a torus: in each phase every rank sends to four ranks (in three
//! dimensions to six) at once, turned against each other, so that all links carry the same.
//!
//! The paper that presents it was not to be had but for its abstract: this is a reconstruction that
//! has the property it names, that the hops of messages are the most messages that share a link.

use super::exchange::{Collective, Slot, Steps, Transfer};
use super::{Entry, on_grid, once, size};
use crate::Rank;
use clearlane_ib::Bytes;
use serde::Deserialize;
use std::sync::Arc;

pub(super) const ENTRY: Entry = Entry {
    name: "a2at-alltoall",
    summary: "on a torus of odd sides, in each phase every rank sends by 4 ports at once to the \
              ranks (a, b), (−b, a), (−a, −b), (b, −a) away; in three dimensions by 6",
    parameters: "size: to each rank, 0 B to 1 GiB; grid: the sides of the torus, two or three, all \
                 the same and odd, the first coordinate fastest; wait: whether ranks wait at the \
                 end of a phase, false by default; guard: of a timetable, times of a packet that a \
                 phase waits for each of its hops, 0 to 100, 1 by default; rounds: 1 to 1000000, 1 \
                 by default",
    example: "program = { kind = \"a2at-alltoall\", size = \"1 KiB\", grid = [3, 3], rounds = 2 }",
    reference: "Yazaki et al., An efficient all-to-all communication algorithm for mesh/torus \
                networks, ISPA 2012; reconstructed from its abstract. The stagger and the guard of \
                a timetable are ours",
};

/// What is sent and how often.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// From each rank to each other.
    #[serde(deserialize_with = "size")]
    pub size: Bytes,
    /// The sides of the torus.
    pub grid: Vec<u32>,
    /// Whether ranks wait at the end of a phase.
    #[serde(default)]
    pub wait: bool,
    /// Times of a packet between two phases of a timetable, for each hop of the first.
    #[serde(default = "one_guard")]
    pub guard: u8,
    /// How often.
    #[serde(default = "once")]
    pub rounds: u32,
}

const fn one_guard() -> u8 {
    1
}

/// How far a message goes in each dimension.
type Way = [i32; 3];

/// Messages that every rank sends at once.
struct Phase {
    ways: Vec<Way>,
    /// Messages on every link that carries any.
    load: u32,
}

/// The phases of a torus.
pub(super) struct Phases {
    side: i32,
    dimensions: usize,
    all: Vec<Phase>,
}

impl Phases {
    fn of(grid: &[u32]) -> Self {
        let (side, dimensions) = (grid.first().map_or(1, |side| *side as i32), grid.len());
        let half = side / 2;
        let mut all: Vec<Phase> = match dimensions {
            2 => (1..=half).flat_map(|a| (0..=half).map(move |b| quarter_turns(a, b))).collect(),
            _ => orbits(half),
        };
        all.sort_by_key(|phase| phase.load);
        Phases { side, dimensions, all }
    }

    /// The rank so far away on the torus.
    fn at(&self, rank: u32, way: Way, sign: i32) -> Rank {
        let (mut stride, mut to) = (1, 0);
        for step in &way[..self.dimensions] {
            let at = (rank as i32 / stride) % self.side;
            to += (at + sign * step).rem_euclid(self.side) * stride;
            stride *= self.side;
        }
        Rank(to as u32)
    }
}

/// The four ways that turn into each other. Those that go first along the same dimension follow one
/// another: whoever keeps a timetable sends by the others later.
fn quarter_turns(a: i32, b: i32) -> Phase {
    let ways = vec![[a, b, 0], [-a, -b, 0], [-b, a, 0], [b, -a, 0]];
    Phase { ways, load: (a + b) as u32 }
}

/// All ways of three dimensions, in sets that turning the dimensions round and going back lead
/// through.
fn orbits(half: i32) -> Vec<Phase> {
    let side = || -half..=half;
    let ways = side().flat_map(|z| side().flat_map(move |y| side().map(move |x| [x, y, z])));
    let mut phases = Vec::new();
    for way in ways.filter(|way| *way != [0, 0, 0]) {
        let mut orbit = Vec::new();
        for turns in 0..3 {
            let turned: Way = std::array::from_fn(|d| way[(d + turns) % 3]);
            for one in [turned, turned.map(|step| -step)] {
                if !orbit.contains(&one) {
                    orbit.push(one);
                }
            }
        }
        // Each set is made by the least of its ways.
        if orbit.iter().min() != Some(&way) {
            continue;
        }
        let hops: i32 = way.iter().map(|step| step.abs()).sum();
        let load = if orbit.len() == 2 { hops / 3 } else { hops };
        phases.push(Phase { ways: orbit, load: load as u32 });
    }
    phases
}

impl Collective for Params {
    type Steps = Turns;
    type Shared = Arc<Phases>;

    fn rounds(&self) -> u32 {
        self.rounds
    }

    fn longest(&self, _: u32) -> u64 {
        self.size.0
    }

    fn fits(&self, ranks: u32) -> Result<(), String> {
        on_grid(&self.grid, ranks)?;
        let (side, dimensions) = (self.grid[0], self.grid.len());
        let all_alike = self.grid.iter().all(|other| *other == side);
        if !(2..=3).contains(&dimensions) || !all_alike || side.is_multiple_of(2) || side == 1 {
            let sides: Vec<String> = self.grid.iter().map(u32::to_string).collect();
            let sides = sides.join("×");
            return Err(format!("takes a grid of two or three equal odd sides, not {sides}"));
        }
        match self.guard {
            ..=100 => Ok(()),
            more => Err(format!("has guard = {more}, outside 0 to 100")),
        }
    }

    /// Nobody has found by how much messages are to be apart in three dimensions.
    fn keeps_timetable(&self) -> bool {
        self.grid.len() == 2
    }

    fn shared(&self, _: u32) -> Arc<Phases> {
        Arc::new(Phases::of(&self.grid))
    }

    fn steps(&self, rank: u32, _: u32, phases: &Arc<Phases>) -> Turns {
        let (phases, guard) = (Arc::clone(phases), u64::from(self.guard));
        Turns { rank, bytes: self.size.0, waits: self.wait, guard, phases }
    }
}

/// One rank's messages.
pub(super) struct Turns {
    rank: u32,
    bytes: u64,
    waits: bool,
    guard: u64,
    phases: Arc<Phases>,
}

impl Turns {
    /// How long the phases before one take, in times of a packet, with so many packets a message.
    fn before(&self, number: usize, packets: u64) -> u64 {
        let loads = self.phases.all[..number].iter().map(|phase| u64::from(phase.load));
        loads.sum::<u64>() * (packets + self.guard)
    }
}

impl Steps for Turns {
    const NAME: &'static str = ENTRY.name;

    fn count(&self) -> u32 {
        self.phases.all.len() as u32
    }

    fn places(&self, number: u32) -> u32 {
        self.phases.all[number as usize].ways.len() as u32
    }

    fn transfer(&self, number: u32, place: u32) -> Transfer {
        let way = self.phases.all[number as usize].ways[place as usize];
        let (to, from) = (self.phases.at(self.rank, way, 1), self.phases.at(self.rank, way, -1));
        Transfer { to: Some((to, self.bytes)), from: Some(from), engine: Some(place as u8) }
    }

    fn waits(&self, _: u32) -> bool {
        self.waits
    }

    /// A packet of each message on a link has its turn in as many times of a packet as there are
    /// messages. Those that turn into a link come to it in the time of others unless they begin
    /// later, by the hops of the first dimension.
    fn slot(&self, number: u32, place: u32, packets: u64) -> Option<Slot> {
        let phase = self.phases.all.get(number as usize)?;
        let later = if place < 2 { 0 } else { phase.ways[0][0].unsigned_abs() };
        let begin = self.before(number as usize, packets) + u64::from(later);
        Some(Slot { begin, gap: phase.load - 1 })
    }

    fn slots(&self, packets: u64) -> u64 {
        self.before(self.phases.all.len(), packets)
    }
}

#[cfg(test)]
mod tests {
    use super::super::exchange::tests::{all, messages, one_to_each};
    use super::*;
    use std::collections::BTreeMap;

    fn params(grid: &[u32]) -> Params {
        Params { size: Bytes(7), grid: grid.to_vec(), wait: false, guard: 1, rounds: 1 }
    }

    /// Messages on each link of a phase, in dimension order.
    fn loads(grid: &[u32], sent: &[(u32, u32, u64)]) -> BTreeMap<(u32, usize, bool), u32> {
        let mut loads = BTreeMap::new();
        for (from, to, _) in sent {
            let (mut at, mut stride) = (*from, 1);
            for (dimension, k) in grid.iter().enumerate() {
                let (a, b) = (at / stride % k, to / stride % k);
                let ahead = (b + k - a) % k;
                let (up, hops) = if 2 * ahead < *k { (true, ahead) } else { (false, k - ahead) };
                for _ in 0..hops {
                    *loads.entry((at, dimension, up)).or_default() += 1;
                    let a = at / stride % k;
                    let next = if up { (a + 1) % k } else { (a + k - 1) % k };
                    at = at - a * stride + next * stride;
                }
                stride *= k;
            }
        }
        loads
    }

    #[test]
    fn hops_are_the_messages_of_every_link() {
        for grid in [&[3u32, 3][..], &[9, 9], &[3, 3, 3], &[5, 5, 5]] {
            let ranks = all(&params(grid), grid.iter().product());
            one_to_each(&ranks, 7);
            let dimensions = grid.len();
            for number in 0..ranks[0].count() {
                let loads = loads(grid, &messages(&ranks, number));
                let load = ranks[0].phases.all[number as usize].load;
                assert_eq!(loads.len(), 2 * dimensions * ranks.len(), "all links are used");
                assert!(loads.values().all(|on| *on == load), "phase {number} of {grid:?}");
            }
        }
    }

    /// n (n² − 1) / 8: no schedule has less on the links across the middle.
    #[test]
    fn phases_together_are_as_long_as_the_bisection_asks() {
        let phases = Phases::of(&[9, 9]);
        assert_eq!(phases.all.len(), 20);
        assert_eq!(phases.all.iter().map(|phase| phase.load).sum::<u32>(), 90);
        let cube = Phases::of(&[5, 5, 5]);
        assert_eq!(cube.all.iter().map(|phase| phase.load).sum::<u32>(), 25 * (25 - 1) / 8);
    }

    #[test]
    fn phases_of_a_timetable_follow_each_other() {
        let steps = &all(&params(&[3, 3]), 9)[0];
        // One hop with 10 packets and a guard of one, then two hops, of which one is the first.
        let slots: Vec<_> = (0..2).flat_map(|n| (0..4).map(move |p| (n, p))).collect();
        let begins: Vec<u64> =
            slots.iter().map(|(n, p)| steps.slot(*n, *p, 10).unwrap().begin).collect();
        assert_eq!(begins, [0, 0, 1, 1, 11, 11, 12, 12]);
        assert_eq!((steps.slot(1, 0, 10).unwrap().gap, steps.slots(10)), (1, 33));
    }

    #[test]
    fn other_grids_are_refused() {
        let said = |grid: &[u32]| params(grid).fits(grid.iter().product()).unwrap_err();
        assert_eq!(said(&[4, 4]), "takes a grid of two or three equal odd sides, not 4×4");
        assert!(said(&[9]).ends_with("not 9") && said(&[3, 5]).ends_with("not 3×5"));
        assert!(params(&[3, 3, 3]).fits(27).is_ok() && !params(&[3, 3, 3]).keeps_timetable());
    }
}
