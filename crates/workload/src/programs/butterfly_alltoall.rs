//! An all-to-all along the edges of a hypercube.

use super::exchange::{Collective, Steps, Transfer};
use super::{Entry, log2_ceil, once, power_of_two, size};
use clearlane_ib::Bytes;
use serde::Deserialize;

pub(super) const ENTRY: Entry = Entry {
    name: "butterfly-alltoall",
    summary: "in step i each rank exchanges half of what it has with rank r XOR 2^i: log2 N steps; \
              N is a power of two",
    parameters: "size: to each rank, 0 B to 1 GiB; rounds: 1 to 1000000, 1 by default",
    example: "program = { kind = \"butterfly-alltoall\", size = \"8 B\", rounds = 2 }",
    reference: "btfly of the pacing paper (Shibamura 2014, section 3.2)",
};

/// What is sent and how often.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// From each rank to each other.
    #[serde(deserialize_with = "size")]
    pub size: Bytes,
    /// How often.
    #[serde(default = "once")]
    pub rounds: u32,
}

impl Collective for Params {
    type Steps = Butterfly;
    type Shared = ();

    fn rounds(&self) -> u32 {
        self.rounds
    }

    fn longest(&self, ranks: u32) -> u64 {
        self.size.0.saturating_mul(u64::from(ranks / 2))
    }

    fn fits(&self, ranks: u32) -> Result<(), String> {
        power_of_two(ranks)
    }

    fn shared(&self, _: u32) {}

    fn steps(&self, rank: u32, ranks: u32, (): &()) -> Butterfly {
        Butterfly { rank, ranks, bytes: self.size.0 }
    }
}

/// One rank's steps.
pub(super) struct Butterfly {
    rank: u32,
    ranks: u32,
    bytes: u64,
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

    #[test]
    fn everything_can_come_to_everybody() {
        let ranks = all(&Params { size: Bytes(3), rounds: 1 }, 16);
        assert!(reach(&ranks).iter().all(|have| have.len() == 16));
        assert!(messages(&ranks, 2).iter().all(|(_, _, bytes)| *bytes == 24));
        let said = Params { size: Bytes(3), rounds: 1 }.fits(12);
        assert_eq!(said.unwrap_err(), "takes a power of two of ranks, not 12");
    }
}
