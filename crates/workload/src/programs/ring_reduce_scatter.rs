//! A reduce-scatter around a ring: the first half of a ring allreduce.

use super::exchange::{Steps, Transfer};
use super::sized::{Algorithm, Sized};
use super::{Entry, share};

pub(super) const ENTRY: Entry = Entry {
    name: "ring-reduce-scatter",
    summary: "each rank passes a share of the vector on to r + 1 and adds what it receives: N − 1 \
              steps of 1/N of the vector",
    parameters: "size: of the vector, 0 B to 1 GiB; rounds: 1 to 1000000, 1 by default",
    example: "program = { kind = \"ring-reduce-scatter\", size = \"1 MiB\", rounds = 2 }",
    reference: "Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms, JPDC 69(2), 2009",
};

/// Its size: the vector of every rank; each has a share of the sums in the end.
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

    fn transfer(&self, number: u32, _: u32) -> Transfer {
        let (rank, ranks) = (self.rank, self.ranks);
        let bytes = share(self.bytes, ranks, (rank + ranks - number % ranks) % ranks);
        Transfer::both((rank + 1) % ranks, (rank + ranks - 1) % ranks, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::exchange::tests::{all, messages, reach};
    use super::*;
    use clearlane_ib::Bytes;

    #[test]
    fn all_ranks_together_send_a_vector_less_than_there_are_ranks() {
        for (ranks, bytes) in [(2u32, 10u64), (3, 10), (5, 1003)] {
            let steps = all(&Params::new(Bytes(bytes), 1), ranks);
            let sent = (0..steps[0].count()).flat_map(|number| messages(&steps, number));
            let sum: u64 = sent.map(|(.., bytes)| bytes).sum();
            assert_eq!(sum, (u64::from(ranks) - 1) * bytes);
            assert!(reach(&steps).iter().all(|have| have.len() == ranks as usize));
        }
    }
}
