//! An allreduce of short vectors: ranks exchange whole vectors at growing distances.

use super::exchange::{Collective, Steps, Transfer};
use super::fold::{Fold, Phase, whole};
use super::{Entry, once, size};
use clearlane_ib::Bytes;
use serde::Deserialize;

pub(super) const ENTRY: Entry = Entry {
    name: "recursive-doubling-allreduce",
    summary: "in step i ranks r and r XOR 2^i exchange their sums; where N is no power of two, the \
              first ranks fold in pairs before and are told after",
    parameters: "size: of the vector, 0 B to 1 GiB; rounds: 1 to 1000000, 1 by default",
    example: "program = { kind = \"recursive-doubling-allreduce\", size = \"8 B\", rounds = 2 }",
    reference: "Thakur et al., Optimization of collective communication operations in MPICH, \
                IJHPCA 19(1), 2005",
};

/// What is added up and how often.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// The vector of every rank.
    #[serde(deserialize_with = "size")]
    pub size: Bytes,
    /// How often.
    #[serde(default = "once")]
    pub rounds: u32,
}

impl Collective for Params {
    type Steps = Doubling;
    type Shared = ();

    fn rounds(&self) -> u32 {
        self.rounds
    }

    fn longest(&self, _: u32) -> u64 {
        self.size.0
    }

    fn shared(&self, _: u32) {}

    fn steps(&self, rank: u32, ranks: u32, (): &()) -> Doubling {
        Doubling { fold: Fold::of(rank, ranks), bytes: self.size.0 }
    }
}

/// One rank's steps.
pub(super) struct Doubling {
    fold: Fold,
    bytes: u64,
}

impl Steps for Doubling {
    const NAME: &'static str = ENTRY.name;

    fn count(&self) -> u32 {
        self.fold.steps(self.fold.bits())
    }

    fn transfer(&self, number: u32, _: u32) -> Transfer {
        match self.fold.phase(number, self.fold.bits()) {
            Phase::Folding(to, from) => whole(to, from, self.bytes),
            Phase::Among { folded, step } => {
                let partner = self.fold.rank_of(folded ^ 1 << step);
                Transfer::both(partner, partner, self.bytes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::exchange::tests::{all, reach};
    use super::*;

    #[test]
    fn every_rank_has_a_part_of_every_other_in_the_end() {
        for ranks in [2, 3, 5, 6, 7, 8, 12] {
            let steps = all(&Params { size: Bytes(3), rounds: 1 }, ranks);
            assert!(reach(&steps).iter().all(|have| have.len() == ranks as usize), "{ranks}");
        }
        assert_eq!(all(&Params { size: Bytes(3), rounds: 1 }, 8)[0].count(), 3);
        assert_eq!(all(&Params { size: Bytes(3), rounds: 1 }, 7)[0].count(), 4);
    }
}
