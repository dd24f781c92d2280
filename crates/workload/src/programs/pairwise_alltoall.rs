//! An all-to-all in which each rank has one partner at a time.

use super::exchange::{self, Step, Steps};
use super::{Entry, Group, Program, once, size};
use crate::{Rank, RankProgram};
use clearlane_ib::Bytes;
use serde::Deserialize;

pub(super) const ENTRY: Entry = Entry {
    name: "pairwise-alltoall",
    summary: "each rank sends to every other rank, one partner a step: rank r XOR k if the number \
              of ranks is a power of two, else to r + k and from r − k",
    parameters: "size: to each rank, 0 B to 1 GiB; rounds: 1 to 1000000, 1 by default",
    example: "program = { kind = \"pairwise-alltoall\", size = \"64 KiB\", rounds = 2 }",
    reference: "Thakur et al., Optimization of collective communication operations in MPICH, \
                IJHPCA 19(1), 2005",
};

/// What is sent and how often.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// From each rank to each other.
    #[serde(deserialize_with = "size")]
    pub size: Bytes,
    /// How often.
    #[serde(default = "once")]
    pub rounds: u32,
}

impl Program for Params {
    /// One a round.
    fn operations(&self) -> u64 {
        u64::from(self.rounds)
    }

    fn build(&self, group: &Group) -> Result<Vec<Box<dyn RankProgram>>, String> {
        let bytes = self.size.0;
        exchange::ranks(group, self.rounds, |rank, ranks| Partners { rank, ranks, bytes })
    }
}

/// One rank's partners.
struct Partners {
    rank: u32,
    ranks: u32,
    bytes: u64,
}

impl Steps for Partners {
    const NAME: &'static str = ENTRY.name;

    fn count(&self) -> u32 {
        self.ranks - 1
    }

    fn step(&self, number: u32) -> Step {
        let (rank, ranks, distance) = (self.rank, self.ranks, number + 1);
        let (to, from) = match ranks.is_power_of_two() {
            true => (rank ^ distance, rank ^ distance),
            false => ((rank + distance) % ranks, (rank + ranks - distance) % ranks),
        };
        Step { to: Rank(to), from: Rank(from), bytes: self.bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::super::exchange::tests::messages;
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_rank_sends_to_every_other_once() {
        for ranks in [1u32, 2, 3, 8, 9] {
            let all: Vec<Partners> =
                (0..ranks).map(|rank| Partners { rank, ranks, bytes: 7 }).collect();
            let sent = (0..all[0].count()).flat_map(|number| messages(&all, number));
            let pairs: Vec<_> = sent.map(|(from, to, _)| (from, to)).collect();
            let different: BTreeSet<_> = pairs.iter().filter(|(from, to)| from != to).collect();
            assert_eq!(
                (pairs.len(), different.len()),
                ((ranks * (ranks - 1)) as usize, pairs.len())
            );
        }
    }
}
