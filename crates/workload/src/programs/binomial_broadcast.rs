//! A broadcast along a binomial tree.

use super::exchange::{Steps, Transfer};
use super::fold::whole;
use super::sized::{Algorithm, Sized};
use super::{Entry, log2_ceil};

pub(super) const ENTRY: Entry = Entry {
    name: "binomial-broadcast",
    summary: "rank 0 sends to the rank half way around, and each rank that has it to the one half \
              as far: ⌈log2 N⌉ steps",
    parameters: "size: of the message, 0 B to 1 GiB; rounds: 1 to 1000000, 1 by default",
    example: "program = { kind = \"binomial-broadcast\", size = \"64 KiB\", rounds = 2 }",
    reference: "Thakur et al., Optimization of collective communication operations in MPICH, \
                IJHPCA 19(1), 2005",
};

/// Its size: the message.
pub type Params = Sized<Tree>;

/// One rank's steps.
#[derive(Clone, PartialEq, Debug)]
pub struct Tree {
    rank: u32,
    ranks: u32,
    bytes: u64,
}

impl Algorithm for Tree {
    fn of(rank: u32, ranks: u32, bytes: u64) -> Self {
        Tree { rank, ranks, bytes }
    }
}

impl Steps for Tree {
    const NAME: &'static str = ENTRY.name;

    fn count(&self) -> u32 {
        log2_ceil(self.ranks)
    }

    fn transfer(&self, number: u32, _: u32) -> Transfer {
        let distance = 1 << (self.count() - 1 - number);
        let (rank, beyond) = (self.rank, self.rank % (2 * distance));
        let to = (beyond == 0 && rank + distance < self.ranks).then_some(rank + distance);
        whole(to, (beyond == distance).then(|| rank - distance), self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::exchange::tests::{all, messages, reach};
    use super::*;
    use clearlane_ib::Bytes;

    #[test]
    fn every_rank_hears_of_the_first_once() {
        for ranks in [2, 3, 5, 8, 11] {
            let steps = all(&Params::new(Bytes(7), 1), ranks);
            assert!(reach(&steps).iter().all(|have| have.contains(&0)));
            let sent = (0..steps[0].count()).map(|number| messages(&steps, number).len());
            assert_eq!(sent.sum::<usize>(), ranks as usize - 1);
        }
    }
}
