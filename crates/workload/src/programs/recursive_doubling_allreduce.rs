//! An allreduce of short vectors: ranks exchange whole vectors at growing distances.

use super::Entry;
use super::exchange::{Steps, Transfer};
use super::fold::{Fold, Phase, whole};
use super::sized::{Algorithm, Sized};

pub(super) const ENTRY: Entry = Entry {
    name: "recursive-doubling-allreduce",
    summary: "in step i ranks r and r XOR 2^i exchange their sums; where N is no power of two, the \
              first ranks fold in pairs before and are told after",
    parameters: "size: of the vector, 0 B to 1 GiB; rounds: 1 to 1000000, 1 by default",
    example: "program = { kind = \"recursive-doubling-allreduce\", size = \"8 B\", rounds = 2 }",
    reference: "Thakur et al., Optimization of collective communication operations in MPICH, \
                IJHPCA 19(1), 2005",
};

/// Its size: the vector of every rank.
pub type Params = Sized<Doubling>;

/// One rank's steps.
#[derive(Clone, PartialEq, Debug)]
pub struct Doubling {
    fold: Fold,
    bytes: u64,
}

impl Algorithm for Doubling {
    fn of(rank: u32, ranks: u32, bytes: u64) -> Self {
        Doubling { fold: Fold::of(rank, ranks), bytes }
    }
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
    use clearlane_ib::Bytes;

    #[test]
    fn every_rank_has_a_part_of_every_other_in_the_end() {
        for ranks in [2, 3, 5, 6, 7, 8, 12] {
            let steps = all(&Params::new(Bytes(3), 1), ranks);
            assert!(reach(&steps).iter().all(|have| have.len() == ranks as usize), "{ranks}");
        }
        assert_eq!(all(&Params::new(Bytes(3), 1), 8)[0].count(), 3);
        assert_eq!(all(&Params::new(Bytes(3), 1), 7)[0].count(), 4);
    }
}
