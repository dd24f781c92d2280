//! A broadcast of long messages: scattered along a tree, gathered around a ring.

use super::exchange::{Steps, Transfer};
use super::fold::whole;
use super::sized::{Algorithm, Sized};
use super::{Entry, log2_ceil, share};

pub(super) const ENTRY: Entry = Entry {
    name: "scatter-allgather-broadcast",
    summary: "rank 0 scatters the message in shares of 1/N along a binomial tree, and ranks gather \
              the shares around a ring",
    parameters: "size: of the message, 0 B to 1 GiB; rounds: 1 to 1000000, 1 by default",
    example: "program = { kind = \"scatter-allgather-broadcast\", size = \"1 MiB\", rounds = 2 }",
    reference: "Thakur et al., Optimization of collective communication operations in MPICH, \
                IJHPCA 19(1), 2005",
};

/// Its size: the message.
pub type Params = Sized<Both>;

/// One rank's steps.
#[derive(Clone, PartialEq, Debug)]
pub struct Both {
    rank: u32,
    ranks: u32,
    bytes: u64,
}

impl Algorithm for Both {
    fn of(rank: u32, ranks: u32, bytes: u64) -> Self {
        Both { rank, ranks, bytes }
    }
}

impl Steps for Both {
    const NAME: &'static str = ENTRY.name;

    fn count(&self) -> u32 {
        log2_ceil(self.ranks) + self.ranks - 1
    }

    fn transfer(&self, number: u32, _: u32) -> Transfer {
        let (rank, ranks, scatters) = (self.rank, self.ranks, log2_ceil(self.ranks));
        if number >= scatters {
            let passed = (rank + 2 * ranks - (number - scatters)) % ranks;
            let (to, from) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
            return Transfer::both(to, from, share(self.bytes, ranks, passed));
        }
        let distance = 1 << (scatters - 1 - number);
        let beyond = rank % (2 * distance);
        let to = (beyond == 0 && rank + distance < ranks).then_some(rank + distance);
        // The shares of the rank that is sent to and of those it sends to.
        let below = |to: u32| to..(to + distance).min(ranks);
        let bytes = to.map_or(0, |to| below(to).map(|at| share(self.bytes, ranks, at)).sum());
        whole(to, (beyond == distance).then(|| rank - distance), bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::exchange::tests::{all, messages, reach};
    use super::*;
    use clearlane_ib::Bytes;

    #[test]
    fn ranks_gather_what_was_scattered() {
        for (ranks, bytes) in [(2u32, 10u64), (3, 10), (5, 1003), (8, 64)] {
            let steps = all(&Params::new(Bytes(bytes), 1), ranks);
            assert!(reach(&steps).iter().all(|have| have.contains(&0)));
            let scatters = log2_ceil(ranks);
            let sum = |numbers: std::ops::Range<u32>| -> u64 {
                let sent = numbers.flat_map(|number| messages(&steps, number));
                sent.map(|(.., bytes)| bytes).sum()
            };
            let own = share(bytes, ranks, 0);
            assert!(sum(0..scatters) >= bytes - own && sum(0..1) < bytes);
            assert_eq!(sum(scatters..steps[0].count()), (u64::from(ranks) - 1) * bytes);
        }
    }
}
