//! An allreduce of long vectors: a reduce-scatter and an allgather, in halves.

use super::Entry;
use super::exchange::{Steps, Transfer};
use super::fold::{Fold, Halving, Phase, whole};
use super::sized::{Algorithm, Sized};

pub(super) const ENTRY: Entry = Entry {
    name: "rabenseifner-allreduce",
    summary: "ranks at growing distances exchange halves of what they still add up, and gather the \
              sums on the way back; where N is no power of two, the first ranks fold in pairs \
              before and are told after",
    parameters: "size: of the vector, 0 B to 1 GiB; rounds: 1 to 1000000, 1 by default",
    example: "program = { kind = \"rabenseifner-allreduce\", size = \"1 MiB\", rounds = 2 }",
    reference: "Rabenseifner, Optimization of collective reduction operations, ICCS 2004",
};

/// Its size: the vector of every rank.
pub type Params = Sized<Halves>;

/// One rank's steps.
#[derive(Clone, PartialEq, Debug)]
pub struct Halves {
    fold: Fold,
    bytes: u64,
}

impl Algorithm for Halves {
    fn of(rank: u32, ranks: u32, bytes: u64) -> Self {
        Halves { fold: Fold::of(rank, ranks), bytes }
    }
}

impl Steps for Halves {
    const NAME: &'static str = ENTRY.name;

    fn count(&self) -> u32 {
        self.fold.steps(2 * self.fold.bits())
    }

    fn transfer(&self, number: u32, _: u32) -> Transfer {
        let bits = self.fold.bits();
        match self.fold.phase(number, 2 * bits) {
            Phase::Folding(to, from) => whole(to, from, self.bytes),
            Phase::Among { folded, step } => {
                // On the way back the last exchange comes first.
                let back = step >= bits;
                let bit = if back { 2 * bits - 1 - step } else { step };
                let partner = folded ^ 1 << bit;
                // First it gives the half that is its partner's, on the way back its own.
                let half = Halving { blocks: 1 << bits, bytes: self.bytes };
                let bytes = half.bytes_of(if back { folded } else { partner }, bit + 1);
                let peer = self.fold.rank_of(partner);
                Transfer::both(peer, peer, bytes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::exchange::tests::{all, messages, reach};
    use super::*;
    use clearlane_ib::Bytes;

    #[test]
    fn ranks_send_all_but_a_share_each_way() {
        for (ranks, bytes) in [(2, 10), (4, 10), (8, 1000), (16, 5), (8, 0)] {
            let steps = all(&Params::new(Bytes(bytes), 1), ranks);
            let sent: u64 = (0..steps[0].count())
                .flat_map(|number| messages(&steps, number))
                .map(|(_, _, bytes)| bytes)
                .sum();
            // Each way the ranks together send N vectors less one.
            assert_eq!(sent, 2 * (u64::from(ranks) - 1) * bytes, "{ranks} ranks, {bytes} B");
            assert!(reach(&steps).iter().all(|have| have.len() == ranks as usize));
        }
        let folded = all(&Params::new(Bytes(64), 1), 6);
        assert!(reach(&folded).iter().all(|have| have.len() == 6));
    }
}
