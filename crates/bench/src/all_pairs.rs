//! Every host talks to every other: what a reliable connection takes in memory shows only where
//! there are many of them.

use clearlane_ib::Picoseconds;
use clearlane_workload::{Event, Hints, Op, Rank, RankProgram};

/// A rank that posts one message to each other rank, nearest first, so that no destination is
/// crowded.
pub(crate) struct AllPairs {
    rank: u32,
    ranks: u32,
    bytes: u64,
    gap: Picoseconds,
    posted: u32,
}

impl AllPairs {
    /// The program of `rank` of so many: a message of `bytes` every `gap`.
    pub(crate) fn new(rank: u32, ranks: u32, bytes: u64, gap: Picoseconds) -> Self {
        AllPairs { rank, ranks, bytes, gap, posted: 0 }
    }
}

impl RankProgram for AllPairs {
    fn step(&mut self, now: Picoseconds, _: Event) -> Op {
        if self.posted + 1 >= self.ranks {
            return Op::Done;
        }
        let due = Picoseconds(self.gap.0 * u64::from(self.posted));
        if due.0 > now.0 {
            return Op::WaitUntil(due);
        }
        self.posted += 1;
        let dst = Rank((self.rank + self.posted) % self.ranks);
        let hints = Hints::default();
        Op::Put { dst, bytes: self.bytes, group: 0, tracked: false, hints }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_rank_talks_to_every_other_once() {
        let mut pairs = BTreeSet::new();
        for rank in 0..5 {
            let mut program = AllPairs::new(rank, 5, 2048, Picoseconds(100));
            let (mut now, mut event) = (Picoseconds(0), Event::Start);
            loop {
                match program.step(now, event) {
                    Op::Put { dst, .. } => assert!(pairs.insert((rank, dst.0)), "{rank} {dst:?}"),
                    Op::WaitUntil(later) => now = later,
                    Op::Done => break,
                    other => panic!("{other:?}"),
                }
                event = Event::Elapsed;
            }
            assert_eq!(now, Picoseconds(300), "four messages, three gaps");
        }
        assert_eq!(pairs.len(), 20);
        assert!(pairs.iter().all(|(source, destination)| source != destination));
    }
}
