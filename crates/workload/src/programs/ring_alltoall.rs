//! An all-to-all in which ranks send further around a ring step by step.

use super::exchange::{Collective, Steps, Transfer};
use super::{Entry, once, size};
use clearlane_ib::Bytes;
use serde::Deserialize;

pub(super) const ENTRY: Entry = Entry {
    name: "ring-alltoall",
    summary: "each rank sends to every other rank: in step k to r + k, and receives from r − k",
    parameters: "size: to each rank, 0 B to 1 GiB; rounds: 1 to 1000000, 1 by default",
    example: "program = { kind = \"ring-alltoall\", size = \"64 KiB\", rounds = 2 }",
    reference: "RING of the pacing paper (Shibamura 2014, section 3.1)",
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
    type Steps = Around;
    type Shared = ();

    fn rounds(&self) -> u32 {
        self.rounds
    }

    fn longest(&self, _: u32) -> u64 {
        self.size.0
    }

    fn shared(&self, _: u32) {}

    fn steps(&self, rank: u32, ranks: u32, (): &()) -> Around {
        Around { rank, ranks, bytes: self.size.0 }
    }
}

/// One rank's steps.
pub(super) struct Around {
    rank: u32,
    ranks: u32,
    bytes: u64,
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

    #[test]
    fn every_rank_sends_to_every_other_once() {
        for ranks in [2, 3, 8, 9] {
            one_to_each(&all(&Params { size: Bytes(7), rounds: 1 }, ranks), 7);
        }
    }
}
