//! An allgather around a ring.

use super::Entry;
use super::exchange::{Steps, Transfer};
use super::sized::{Algorithm, Sized};

pub(super) const ENTRY: Entry = Entry {
    name: "ring-allgather",
    summary: "each rank passes on to r + 1 what it received from r − 1 before: N − 1 steps",
    parameters: "size: of each rank, 0 B to 1 GiB; rounds: 1 to 1000000, 1 by default",
    example: "program = { kind = \"ring-allgather\", size = \"64 KiB\", rounds = 2 }",
    reference: "Thakur et al., Optimization of collective communication operations in MPICH, \
                IJHPCA 19(1), 2005",
};

/// Its size: what each rank has in the beginning.
pub type Params = Sized<Ring>;

/// One rank's steps.
#[derive(Clone, PartialEq, Debug)]
pub struct Ring {
    rank: u32,
    ranks: u32,
    bytes: u64,
}

impl Algorithm for Ring {
    fn of(rank: u32, ranks: u32, bytes: u64) -> Self {
        Ring { rank, ranks, bytes }
    }
}

impl Steps for Ring {
    const NAME: &'static str = ENTRY.name;

    fn count(&self) -> u32 {
        self.ranks - 1
    }

    fn transfer(&self, _: u32, _: u32) -> Transfer {
        let (rank, ranks) = (self.rank, self.ranks);
        Transfer::both((rank + 1) % ranks, (rank + ranks - 1) % ranks, self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::exchange::tests::{all, messages, reach};
    use super::*;
    use clearlane_ib::Bytes;

    #[test]
    fn everybody_has_everything_after_the_last_step() {
        let ranks = all(&Params::new(Bytes(7), 1), 5);
        assert!(reach(&ranks).iter().all(|have| have.len() == 5));
        assert_eq!(ranks[0].count(), 4);
        assert_eq!(messages(&ranks, 1)[3], (3, 4, 7));
    }
}
