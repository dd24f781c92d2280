//! What reductions among numbers of ranks that are no power of two begin and end with, and how they
//! halve a vector (Thakur et al. 2005, section 4).

use super::exchange::Transfer;
use super::share;
use crate::Rank;

/// A rank among so many, of which a power of two goes through the steps: of the first ranks those
/// with even numbers give what they have to their neighbours before, and are told the result after.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fold {
    rank: u32,
    ranks: u32,
}

/// What a rank does in a step.
pub(super) enum Phase {
    /// Sends the whole vector to one rank, or receives it from one, or neither.
    Folding(Option<u32>, Option<u32>),
    /// It goes through a step of the ranks that take part, under another number among them.
    Among { folded: u32, step: u32 },
}

impl Fold {
    pub(super) const fn of(rank: u32, ranks: u32) -> Self {
        Fold { rank, ranks }
    }

    /// The logarithm of how many ranks take part.
    pub(super) const fn bits(self) -> u32 {
        self.ranks.ilog2()
    }

    /// Ranks more than that.
    const fn more(self) -> u32 {
        self.ranks - (1 << self.bits())
    }

    /// Steps of all, of which those that take part have so many.
    pub(super) const fn steps(self, among: u32) -> u32 {
        if self.more() > 0 { among + 2 } else { among }
    }

    /// The rank with a number among those that take part.
    pub(super) const fn rank_of(self, folded: u32) -> u32 {
        if folded < self.more() { 2 * folded + 1 } else { folded + self.more() }
    }

    /// What the rank does in a step, where those that take part have `among`.
    pub(super) const fn phase(self, number: u32, among: u32) -> Phase {
        let (rank, pairs) = (self.rank, 2 * self.more());
        let gives = rank < pairs && rank.is_multiple_of(2);
        let folded = if rank < pairs { rank / 2 } else { rank - self.more() };
        if pairs == 0 {
            return Phase::Among { folded, step: number };
        }
        let (first, last) = (number == 0, number > among);
        match (first || last, gives) {
            (true, _) if rank >= pairs => Phase::Folding(None, None),
            (true, true) if first => Phase::Folding(Some(rank + 1), None),
            (true, true) => Phase::Folding(None, Some(rank + 1)),
            (true, false) if first => Phase::Folding(None, Some(rank - 1)),
            (true, false) => Phase::Folding(Some(rank - 1), None),
            (false, true) => Phase::Folding(None, None),
            (false, false) => Phase::Among { folded, step: number - 1 },
        }
    }
}

/// A message to one rank, or from one, or neither.
pub(super) fn whole(to: Option<u32>, from: Option<u32>, bytes: u64) -> Transfer {
    Transfer { to: to.map(|to| (Rank(to), bytes)), from: from.map(Rank), engine: None }
}

/// A vector that ranks halve at growing distances, in a block for each of a power of two of ranks.
pub(super) struct Halving {
    pub(super) blocks: u32,
    pub(super) bytes: u64,
}

impl Halving {
    /// Bytes of the blocks that a rank has left after so many halvings: those of which the number
    /// has its lowest bits.
    pub(super) fn bytes_of(&self, rank: u32, halvings: u32) -> u64 {
        let (blocks, every) = (u64::from(self.blocks), 1 << halvings);
        let first = u64::from(rank) & (every - 1);
        // The first `bytes % blocks` blocks have one byte more.
        let longer = (self.bytes % blocks).saturating_sub(first).div_ceil(every);
        (blocks / every) * u64::from(share(self.bytes, self.blocks, self.blocks - 1) as u32)
            + longer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_vector_is_the_sum_of_its_blocks() {
        for (bits, bytes) in [(0, 9u64), (1, 9), (3, 1003), (4, 5), (4, 16)] {
            let half = Halving { blocks: 1 << bits, bytes };
            for rank in 0..1 << bits {
                for halvings in 0..=bits {
                    let has = |block: &u32| (block ^ rank) & ((1 << halvings) - 1) == 0;
                    let blocks = (0..1 << bits).filter(has);
                    let sum: u64 = blocks.map(|block| share(bytes, 1 << bits, block)).sum();
                    assert_eq!(half.bytes_of(rank, halvings), sum);
                }
            }
        }
    }

    #[test]
    fn ranks_that_take_part_have_numbers_of_their_own() {
        for ranks in 2..20 {
            let part = |rank| match Fold::of(rank, ranks).phase(1, 3) {
                Phase::Among { folded, .. } => Some((folded, rank)),
                Phase::Folding(..) => None,
            };
            let all: Vec<(u32, u32)> = (0..ranks).filter_map(part).collect();
            assert_eq!(all.len(), 1 << ranks.ilog2());
            for (folded, rank) in all {
                assert_eq!(Fold::of(0, ranks).rank_of(folded), rank);
            }
        }
    }
}
