//! An all-to-all in as few steps as there can be, which sends each block several times.

use super::exchange::{Steps, Transfer};
use super::sized::{Algorithm, Sized};
use super::{Entry, log2_ceil};

pub(super) const ENTRY: Entry = Entry {
    name: "bruck-alltoall",
    summary: "in step i each rank sends all blocks whose distance has bit i set to r + 2^i: ⌈log2 \
              N⌉ steps, each about half of what a rank has",
    parameters: "size: to each rank, 0 B to 1 GiB; rounds: 1 to 1000000, 1 by default",
    example: "program = { kind = \"bruck-alltoall\", size = \"8 B\", rounds = 2 }",
    reference: "Bruck et al., Efficient algorithms for all-to-all communications, IEEE TPDS 8(11), \
                1997",
};

/// Its size: from each rank to each other.
pub type Params = Sized<Bruck>;

/// One rank's steps.
#[derive(Clone, PartialEq, Debug)]
pub struct Bruck {
    rank: u32,
    ranks: u32,
    bytes: u64,
}

impl Algorithm for Bruck {
    fn of(rank: u32, ranks: u32, bytes: u64) -> Self {
        Bruck { rank, ranks, bytes }
    }

    fn longest(bytes: u64, ranks: u32) -> u64 {
        bytes.saturating_mul(u64::from(ranks.div_ceil(2)))
    }
}

impl Steps for Bruck {
    const NAME: &'static str = ENTRY.name;

    fn count(&self) -> u32 {
        log2_ceil(self.ranks)
    }

    fn transfer(&self, number: u32, _: u32) -> Transfer {
        let (rank, ranks, distance) = (self.rank, self.ranks, 1 << number);
        // Distances below N with this bit: whole runs of them, and what is left of the last.
        let (runs, rest) = (ranks / (2 * distance), ranks % (2 * distance));
        let blocks = runs * distance + rest.saturating_sub(distance);
        let (to, from) = ((rank + distance) % ranks, (rank + ranks - distance) % ranks);
        Transfer::both(to, from, self.bytes * u64::from(blocks))
    }
}

#[cfg(test)]
mod tests {
    use super::super::exchange::tests::{all, messages};
    use super::*;
    use clearlane_ib::Bytes;

    /// Blocks travel as their distance says, and all of them arrive.
    #[test]
    fn every_block_is_carried_to_its_rank() {
        for ranks in [2u32, 3, 5, 8, 13] {
            let steps = all(&Params::new(Bytes(1), 1), ranks);
            // (where it is, distance left, destination) of each block.
            let mut blocks: Vec<(u32, u32, u32)> = (0..ranks)
                .flat_map(|from| (1..ranks).map(move |d| (from, d, (from + d) % ranks)))
                .collect();
            for number in 0..steps[0].count() {
                for (from, to, bytes) in messages(&steps, number) {
                    let bit = 1 << number;
                    let carried: Vec<usize> = (0..blocks.len())
                        .filter(|at| blocks[*at].0 == from && blocks[*at].1 & bit != 0)
                        .collect();
                    // Those that came in this step have the bit no more.
                    assert_eq!(carried.len() as u64, bytes, "{ranks} ranks, step {number}");
                    for at in carried {
                        blocks[at] = (to, blocks[at].1 & !bit, blocks[at].2);
                    }
                }
            }
            assert!(blocks.iter().all(|(at, left, to)| *left == 0 && at == to));
        }
    }
}
