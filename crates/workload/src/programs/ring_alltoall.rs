//! An all-to-all in which ranks send further around a ring step by step.

use super::Entry;
use super::exchange::{Steps, Transfer};
use super::sized::{Algorithm, Sized};

pub(super) const ENTRY: Entry = Entry {
    name: "ring-alltoall",
    summary: "each rank sends to every other rank: in step k to r + k, and receives from r − k",
    parameters: "size: to each rank, 0 B to 1 GiB; rounds: 1 to 1000000, 1 by default",
    example: "program = { kind = \"ring-alltoall\", size = \"64 KiB\", rounds = 2 }",
    reference: "RING of the pacing paper (Shibamura 2014, section 3.1)",
};

/// Its size: from each rank to each other.
pub type Params = Sized<Around>;

/// One rank's steps.
#[derive(Clone, PartialEq, Debug)]
pub struct Around {
    rank: u32,
    ranks: u32,
    bytes: u64,
}

impl Algorithm for Around {
    fn of(rank: u32, ranks: u32, bytes: u64) -> Self {
        Around { rank, ranks, bytes }
    }
}

impl Steps for Around {
    const NAME: &'static str = ENTRY.name;

    fn count(&self) -> u32 {
        self.ranks - 1
    }

    fn transfer(&self, number: u32, _: u32) -> Transfer {
        let (rank, ranks, distance) = (self.rank, self.ranks, number + 1);
        Transfer::both((rank + distance) % ranks, (rank + ranks - distance) % ranks, self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::exchange::tests::{all, one_to_each};
    use super::*;
    use clearlane_ib::Bytes;

    #[test]
    fn every_rank_sends_to_every_other_once() {
        for ranks in [2, 3, 8, 9] {
            one_to_each(&all(&Params::new(Bytes(7), 1), ranks), 7);
        }
    }
}
