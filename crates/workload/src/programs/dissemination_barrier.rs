//! A barrier without a root.

use super::exchange::{Collective, Steps, Transfer};
use super::{Entry, log2_ceil, once};
use serde::Deserialize;

pub(super) const ENTRY: Entry = Entry {
    name: "dissemination-barrier",
    summary: "in step i each rank sends an empty message to r + 2^i and waits for that of r − 2^i: \
              ⌈log2 N⌉ steps",
    parameters: "rounds: 1 to 1000000, 1 by default",
    example: "program = { kind = \"dissemination-barrier\", rounds = 10 }",
    reference: "Hensgen, Finkel and Manber, Two algorithms for barrier synchronization, IJPP \
                17(1), 1988",
};

/// How often.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// How often.
    #[serde(default = "once")]
    pub rounds: u32,
}

impl Collective for Params {
    type Steps = Dissemination;
    type Shared = ();

    fn rounds(&self) -> u32 {
        self.rounds
    }

    fn longest(&self, _: u32) -> u64 {
        0
    }

    fn shared(&self, _: u32) {}

    fn steps(&self, rank: u32, ranks: u32, (): &()) -> Dissemination {
        Dissemination { rank, ranks }
    }
}

/// One rank's steps.
pub(super) struct Dissemination {
    rank: u32,
    ranks: u32,
}

impl Steps for Dissemination {
    const NAME: &'static str = ENTRY.name;

    fn count(&self) -> u32 {
        log2_ceil(self.ranks)
    }

    fn transfer(&self, number: u32, _: u32) -> Transfer {
        let (rank, ranks, distance) = (self.rank, self.ranks, 1 << number);
        Transfer::both((rank + distance) % ranks, (rank + ranks - distance) % ranks, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::exchange::tests::{all, reach};
    use super::*;

    #[test]
    fn nobody_leaves_before_the_last_has_come() {
        for ranks in [2, 3, 5, 8, 13] {
            let steps = all(&Params { rounds: 1 }, ranks);
            assert!(reach(&steps).iter().all(|have| have.len() == ranks as usize));
        }
    }
}
