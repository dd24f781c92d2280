//! An all-to-all along the edges of a hypercube.

use super::exchange::{Steps, Transfer};
use super::sized::{Algorithm, Sized};
use super::{Entry, log2_ceil, power_of_two};

pub(super) const ENTRY: Entry = Entry {
    name: "butterfly-alltoall",
    summary: "in step i each rank exchanges half of what it has with rank r XOR 2^i: log2 N steps; \
              N is a power of two",
    parameters: "size: to each rank, 0 B to 1 GiB; rounds: 1 to 1000000, 1 by default",
    example: "program = { kind = \"butterfly-alltoall\", size = \"8 B\", rounds = 2 }",
    reference: "btfly of the pacing paper (Shibamura 2014, section 3.2)",
};

/// Its size: from each rank to each other.
pub type Params = Sized<Butterfly>;

/// One rank's steps.
#[derive(Clone, PartialEq, Debug)]
pub struct Butterfly {
    rank: u32,
    ranks: u32,
    bytes: u64,
}

impl Algorithm for Butterfly {
    fn of(rank: u32, ranks: u32, bytes: u64) -> Self {
        Butterfly { rank, ranks, bytes }
    }

    fn longest(bytes: u64, ranks: u32) -> u64 {
        bytes.saturating_mul(u64::from(ranks / 2))
    }

    fn fits(ranks: u32) -> Result<(), String> {
        power_of_two(ranks)
    }
}

impl Steps for Butterfly {
    const NAME: &'static str = ENTRY.name;

    fn count(&self) -> u32 {
        log2_ceil(self.ranks)
    }

    fn transfer(&self, number: u32, _: u32) -> Transfer {
        let partner = self.rank ^ 1 << number;
        Transfer::both(partner, partner, self.bytes * u64::from(self.ranks / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::super::exchange::tests::{all, messages, reach};
    use super::*;
    use clearlane_ib::Bytes;

    #[test]
    fn everything_can_come_to_everybody() {
        let ranks = all(&Params::new(Bytes(3), 1), 16);
        assert!(reach(&ranks).iter().all(|have| have.len() == 16));
        assert!(messages(&ranks, 2).iter().all(|(_, _, bytes)| *bytes == 24));
        let said = Butterfly::fits(12);
        assert_eq!(said.unwrap_err(), "takes a power of two of ranks, not 12");
    }
}
