//! An allgather in as few steps as there can be.

use super::exchange::{Steps, Transfer};
use super::sized::{Algorithm, Sized};
use super::{Entry, log2_ceil};

pub(super) const ENTRY: Entry = Entry {
    name: "bruck-allgather",
    summary: "in step i each rank sends what it has, at most 2^i blocks, to r − 2^i: ⌈log2 N⌉ \
              steps",
    parameters: "size: of each rank, 0 B to 1 GiB; rounds: 1 to 1000000, 1 by default",
    example: "program = { kind = \"bruck-allgather\", size = \"8 B\", rounds = 2 }",
    reference: "Bruck et al., Efficient algorithms for all-to-all communications, IEEE TPDS 8(11), \
                1997",
};

/// Its size: what each rank has in the beginning.
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
        let blocks = distance.min(ranks - distance);
        let (to, from) = ((rank + ranks - distance) % ranks, (rank + distance) % ranks);
        Transfer::both(to, from, self.bytes * u64::from(blocks))
    }
}

#[cfg(test)]
mod tests {
    use super::super::exchange::tests::{all, messages, reach};
    use super::*;
    use clearlane_ib::Bytes;

    #[test]
    fn everybody_receives_each_block_of_the_others_once() {
        for ranks in [2u32, 3, 6, 8, 11] {
            let steps = all(&Params::new(Bytes(1), 1), ranks);
            assert!(reach(&steps).iter().all(|have| have.len() == ranks as usize));
            let sent = (0..steps[0].count()).flat_map(|number| messages(&steps, number));
            let to_first: u64 = sent.filter(|(_, to, _)| *to == 0).map(|(.., bytes)| bytes).sum();
            assert_eq!(to_first, u64::from(ranks) - 1);
        }
    }
}
