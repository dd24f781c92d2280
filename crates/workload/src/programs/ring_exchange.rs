//! Neighbours on a ring: the ring benchmarks of HPCC.

use super::exchange::{Collective, Steps, Transfer};
use super::{Entry, once, size};
use crate::Rank;
use clearlane_ib::Bytes;
use clearlane_ib::random::Stream;
use serde::Deserialize;
use std::sync::Arc;

pub(super) const ENTRY: Entry = Entry {
    name: "ring-exchange",
    summary: "each rank sends to both of its neighbours on a ring and receives from both, at the \
              same time; the ring is in the order of ranks, or random",
    parameters: "size: to each neighbour, 0 B to 1 GiB; order: natural or random, natural by \
                 default; seed: of a random order, 1 by default; rounds: 1 to 1000000, 1 by \
                 default",
    example: "program = { kind = \"ring-exchange\", size = \"8 B\", order = \"random\", rounds = 2 \
              }",
    reference: "Luszczek et al., The HPC Challenge benchmark suite, SC 2006: natural and random \
                ring",
};

/// What is sent and how often.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// To each neighbour.
    #[serde(deserialize_with = "size")]
    pub size: Bytes,
    /// In which order ranks stand on the ring.
    #[serde(default)]
    pub order: Order,
    /// Of a random order, apart from the run's.
    #[serde(default)]
    pub seed: Option<u64>,
    /// How often.
    #[serde(default = "once")]
    pub rounds: u32,
}

/// In which order ranks stand on a ring.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// As they are numbered.
    #[default]
    Natural,
    /// Drawn once.
    Random,
}

/// The ranks of a ring, one after the other, and the place of each.
pub(super) struct Drawn {
    ranks: Vec<u32>,
    places: Vec<u32>,
}

impl Drawn {
    fn new(ranks: u32, seed: u64) -> Self {
        let mut drawn: Vec<u32> = (0..ranks).collect();
        let mut stream = Stream::new(seed, "ring", 0);
        for last in (1..drawn.len()).rev() {
            drawn.swap(last, stream.below(last as u64 + 1) as usize);
        }
        let mut places = vec![0; drawn.len()];
        (0..).zip(&drawn).for_each(|(place, rank)| places[*rank as usize] = place);
        Drawn { ranks: drawn, places }
    }
}

impl Collective for Params {
    type Steps = Neighbours;
    type Shared = Option<Arc<Drawn>>;

    fn rounds(&self) -> u32 {
        self.rounds
    }

    fn longest(&self, _: u32) -> u64 {
        self.size.0
    }

    fn shared(&self, ranks: u32) -> Option<Arc<Drawn>> {
        let drawn = || Arc::new(Drawn::new(ranks, self.seed.unwrap_or(1)));
        (self.order == Order::Random).then(drawn)
    }

    fn steps(&self, rank: u32, ranks: u32, drawn: &Option<Arc<Drawn>>) -> Neighbours {
        Neighbours { rank, ranks, drawn: drawn.clone(), bytes: self.size.0 }
    }
}

/// One rank's neighbours.
pub(super) struct Neighbours {
    rank: u32,
    ranks: u32,
    drawn: Option<Arc<Drawn>>,
    bytes: u64,
}

impl Neighbours {
    /// The rank so many places further on the ring.
    fn after(&self, places: u32) -> u32 {
        match &self.drawn {
            None => (self.rank + places) % self.ranks,
            Some(drawn) => {
                let place = (drawn.places[self.rank as usize] + places) % self.ranks;
                drawn.ranks[place as usize]
            }
        }
    }
}

impl Steps for Neighbours {
    const NAME: &'static str = ENTRY.name;

    fn count(&self) -> u32 {
        1
    }

    /// One message each way around.
    fn places(&self, _: u32) -> u32 {
        2
    }

    fn transfer(&self, _: u32, place: u32) -> Transfer {
        let (next, before) = (self.after(1), self.after(self.ranks - 1));
        let (to, from) = if place == 0 { (next, before) } else { (before, next) };
        Transfer { to: Some((Rank(to), self.bytes)), from: Some(Rank(from)), engine: None }
    }
}

#[cfg(test)]
mod tests {
    use super::super::exchange::tests::{all, messages};
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_ring_is_one_ring() {
        for order in [Order::Natural, Order::Random] {
            for ranks in [2u32, 3, 9, 64] {
                let params = Params { size: Bytes(7), order, seed: None, rounds: 1 };
                let steps = all(&params, ranks);
                assert_eq!(messages(&steps, 0).len(), 2 * ranks as usize);
                let (mut at, mut seen) = (0, BTreeSet::new());
                while seen.insert(at) {
                    at = steps[at as usize].transfer(0, 0).to.unwrap().0.0;
                }
                assert_eq!((seen.len(), at), (ranks as usize, 0));
            }
        }
    }

    #[test]
    fn a_random_ring_is_another_with_another_seed() {
        let next = |seed| -> Vec<Rank> {
            let params = Params { size: Bytes(7), order: Order::Random, seed, rounds: 1 };
            let all = all(&params, 64);
            all.iter().map(|steps| steps.transfer(0, 0).to.unwrap().0).collect()
        };
        assert_eq!(next(Some(1)), next(None));
        assert_ne!(next(Some(1)), next(Some(2)));
    }
}
