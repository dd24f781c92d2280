//! An all-to-all without steps: everything is posted at once.

use super::exchange::{Collective, Steps, Transfer};
use super::{Entry, once, size};
use clearlane_ib::Bytes;
use serde::Deserialize;

pub(super) const ENTRY: Entry = Entry {
    name: "spread-alltoall",
    summary: "each rank posts its messages to all other ranks at once, to r + 1 first, and waits \
              for all of them: simple spread",
    parameters: "size: to each rank, 0 B to 1 GiB; engines: ports of its adapter a rank sends by \
                 in turn, 1 to 8, by default as the adapter sees fit; rounds: 1 to 1000000, 1 by \
                 default",
    example: "program = { kind = \"spread-alltoall\", size = \"64 KiB\", rounds = 2 }",
    reference: "SSPRD of the pacing paper (Shibamura 2014, section 3.1); Faraj and Yuan, ICS 2005",
};

/// What is sent and how often.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// From each rank to each other.
    #[serde(deserialize_with = "size")]
    pub size: Bytes,
    /// Ports that messages are sent by in turn.
    pub engines: Option<u8>,
    /// How often.
    #[serde(default = "once")]
    pub rounds: u32,
}

impl Collective for Params {
    type Steps = Spread;
    type Shared = ();

    fn rounds(&self) -> u32 {
        self.rounds
    }

    fn longest(&self, _: u32) -> u64 {
        self.size.0
    }

    fn fits(&self, _: u32) -> Result<(), String> {
        match self.engines.is_none_or(|engines| (1..=8).contains(&engines)) {
            true => Ok(()),
            false => Err("takes engines of 1 to 8".to_owned()),
        }
    }

    fn shared(&self, _: u32) {}

    fn steps(&self, rank: u32, ranks: u32, (): &()) -> Spread {
        Spread { rank, ranks, bytes: self.size.0, engines: self.engines }
    }
}

/// One rank's messages.
pub(super) struct Spread {
    rank: u32,
    ranks: u32,
    bytes: u64,
    engines: Option<u8>,
}

impl Steps for Spread {
    const NAME: &'static str = ENTRY.name;

    fn count(&self) -> u32 {
        self.ranks - 1
    }

    fn transfer(&self, number: u32, _: u32) -> Transfer {
        let (rank, ranks, distance) = (self.rank, self.ranks, number + 1);
        let engine = self.engines.map(|engines| (number % u32::from(engines.max(1))) as u8);
        let (to, from) = ((rank + distance) % ranks, (rank + ranks - distance) % ranks);
        Transfer { engine, ..Transfer::both(to, from, self.bytes) }
    }

    fn waits(&self, number: u32) -> bool {
        number + 1 == self.count()
    }

    /// Each port sends one message at a time.
    fn together(&self) -> u32 {
        self.engines.map_or(1, u32::from)
    }
}

#[cfg(test)]
mod tests {
    use super::super::exchange::tests::{all, one_to_each};
    use super::*;

    #[test]
    fn every_rank_sends_to_every_other_once() {
        for (ranks, engines) in [(2, None), (3, Some(4)), (9, Some(2))] {
            one_to_each(&all(&Params { size: Bytes(7), engines, rounds: 1 }, ranks), 7);
        }
        assert!(Params { size: Bytes(7), engines: Some(9), rounds: 1 }.fits(4).is_err());
    }
}
