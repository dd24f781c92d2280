//! An allreduce around a ring: each rank passes a share of the vector on to the next one, adds what
//! it receives to its own, and, once around, passes the sums on once more.

use super::exchange::{Steps, Transfer};
use super::sized::{Algorithm, Sized};
use super::{Entry, share};

pub(super) const ENTRY: Entry = Entry {
    name: "ring-allreduce",
    summary: "ranks add up a vector around a ring in 2 (N − 1) steps; each step sends 1/N of the \
              vector",
    parameters: "size: of the vector, 0 B to 1 GiB; rounds: 1 to 1000000, 1 by default",
    example: "program = { kind = \"ring-allreduce\", size = \"16 MiB\", rounds = 2 }",
    reference: "Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms, JPDC 69(2), 2009",
};

/// Its size: the vector of every rank.
pub type Params = Sized<Ring>;

/// One rank's way around.
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
        2 * (self.ranks - 1)
    }

    fn transfer(&self, number: u32, _: u32) -> Transfer {
        let ranks = self.ranks;
        // First rank r passes on share r − k, then, as sums, share r + 1 − k.
        let ahead = u32::from(number >= ranks - 1);
        let passed = (self.rank + ahead + 2 * ranks - number % (ranks - 1)) % ranks;
        let (to, from) = ((self.rank + 1) % ranks, (self.rank + ranks - 1) % ranks);
        Transfer::both(to, from, share(self.bytes, ranks, passed))
    }
}

#[cfg(test)]
mod tests {
    use super::super::exchange::tests::messages;
    use super::*;

    #[test]
    fn every_rank_sends_all_shares_but_one_in_either_half() {
        for (ranks, bytes) in [(2u32, 10u64), (3, 10), (5, 1003), (8, 0), (4, 3)] {
            let all: Vec<Ring> = (0..ranks).map(|rank| Ring { rank, ranks, bytes }).collect();
            assert_eq!((0..ranks).map(|at| share(bytes, ranks, at)).sum::<u64>(), bytes);
            let count = all[0].count();
            let sent = (0..count).flat_map(|number| messages(&all, number));
            let mut sums = vec![0; ranks as usize];
            for (from, to, bytes) in sent {
                assert_eq!(to, (from + 1) % ranks);
                sums[from as usize] += bytes;
            }
            // Each half leaves one share out, so over all ranks each share once.
            assert_eq!(sums.iter().sum::<u64>(), 2 * u64::from(ranks - 1) * bytes);
        }
    }

    #[test]
    fn what_a_rank_passes_on_is_what_it_has_received() {
        let ranks = 5;
        let of = |rank: u32| Ring { rank, ranks, bytes: 100 };
        let passed = |rank: u32, number: u32| {
            let ahead = u32::from(number >= ranks - 1);
            (rank + ahead + 2 * ranks - number % (ranks - 1)) % ranks
        };
        for rank in 0..ranks {
            for number in 1..of(rank).count() {
                let before = of(rank).transfer(number, 0).from.unwrap().0;
                // The step from sums to copies begins with the share that is complete here.
                assert_eq!(passed(rank, number), passed(before, number - 1), "{rank} {number}");
            }
        }
    }
}
