//! An all-to-all in which each rank has one partner at a time.

use super::Entry;
use super::exchange::{Steps, Transfer};
use super::sized::{Algorithm, Sized};

pub(super) const ENTRY: Entry = Entry {
    name: "pairwise-alltoall",
    summary: "each rank sends to every other rank, one partner a step: rank r XOR k if the number \
              of ranks is a power of two, else to r + k and from r − k",
    parameters: "size: to each rank, 0 B to 1 GiB; rounds: 1 to 1000000, 1 by default",
    example: "program = { kind = \"pairwise-alltoall\", size = \"64 KiB\", rounds = 2 }",
    reference: "Thakur et al., Optimization of collective communication operations in MPICH, \
                IJHPCA 19(1), 2005",
};

/// Its size: from each rank to each other.
pub type Params = Sized<Partners>;

/// One rank's partners.
#[derive(Clone, PartialEq, Debug)]
pub struct Partners {
    rank: u32,
    ranks: u32,
    bytes: u64,
}

impl Algorithm for Partners {
    fn of(rank: u32, ranks: u32, bytes: u64) -> Self {
        Partners { rank, ranks, bytes }
    }
}

impl Steps for Partners {
    const NAME: &'static str = ENTRY.name;

    fn count(&self) -> u32 {
        self.ranks - 1
    }

    fn transfer(&self, number: u32, _: u32) -> Transfer {
        let (rank, ranks, distance) = (self.rank, self.ranks, number + 1);
        let (to, from) = match ranks.is_power_of_two() {
            true => (rank ^ distance, rank ^ distance),
            false => ((rank + distance) % ranks, (rank + ranks - distance) % ranks),
        };
        Transfer::both(to, from, self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::exchange::tests::{all, messages, one_to_each};
    use super::*;
    use clearlane_ib::Bytes;

    #[test]
    fn every_rank_sends_to_every_other_once() {
        for ranks in [2, 3, 8, 9] {
            one_to_each(&all(&Params::new(Bytes(7), 1), ranks), 7);
        }
    }

    #[test]
    fn partners_of_a_power_of_two_exchange() {
        let ranks = all(&Params::new(Bytes(7), 1), 8);
        for number in 0..7 {
            let sent = messages(&ranks, number);
            assert!(sent.iter().all(|(from, to, _)| sent.contains(&(*to, *from, 7))));
        }
    }
}
