//! A reduce-scatter by recursive halving.

use super::exchange::{Steps, Transfer};
use super::fold::Halving;
use super::sized::{Algorithm, Sized};
use super::{Entry, log2_ceil, power_of_two};

pub(super) const ENTRY: Entry = Entry {
    name: "halving-reduce-scatter",
    summary: "in step i ranks r and r XOR 2^i exchange halves of what they still add up: log2 N \
              steps; N is a power of two",
    parameters: "size: of the vector, 0 B to 1 GiB; rounds: 1 to 1000000, 1 by default",
    example: "program = { kind = \"halving-reduce-scatter\", size = \"1 MiB\", rounds = 2 }",
    reference: "Thakur et al., Optimization of collective communication operations in MPICH, \
                IJHPCA 19(1), 2005",
};

/// Its size: the vector of every rank; each has a share of the sums in the end.
pub type Params = Sized<Halves>;

/// One rank's steps.
#[derive(Clone, PartialEq, Debug)]
pub struct Halves {
    rank: u32,
    ranks: u32,
    bytes: u64,
}

impl Algorithm for Halves {
    fn of(rank: u32, ranks: u32, bytes: u64) -> Self {
        Halves { rank, ranks, bytes }
    }

    fn fits(ranks: u32) -> Result<(), String> {
        power_of_two(ranks)
    }
}

impl Steps for Halves {
    const NAME: &'static str = ENTRY.name;

    fn count(&self) -> u32 {
        log2_ceil(self.ranks)
    }

    fn transfer(&self, number: u32, _: u32) -> Transfer {
        let partner = self.rank ^ 1 << number;
        let half = Halving { blocks: self.ranks, bytes: self.bytes };
        Transfer::both(partner, partner, half.bytes_of(partner, number + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::super::exchange::tests::{all, messages, reach};
    use super::*;
    use clearlane_ib::Bytes;

    #[test]
    fn all_ranks_together_send_a_vector_less_than_there_are_ranks() {
        for (ranks, bytes) in [(2u32, 10u64), (8, 1003)] {
            let steps = all(&Params::new(Bytes(bytes), 1), ranks);
            let sent = (0..steps[0].count()).flat_map(|number| messages(&steps, number));
            let sum: u64 = sent.map(|(.., bytes)| bytes).sum();
            assert_eq!(sum, (u64::from(ranks) - 1) * bytes);
            assert!(reach(&steps).iter().all(|have| have.len() == ranks as usize));
        }
    }
}
