//! A permutation drawn once: every host sends to one host and receives from one.

use super::{Destinations, Entry, Pattern, Permutation};
use crate::{Ranks, Routes};
use clearlane_ib::random::Stream;
use serde::Deserialize;
use std::sync::Arc;

pub(super) const ENTRY: Entry = Entry {
    name: "random-permutation",
    summary: "a permutation of the hosts without fixed points, drawn from a seed of its own",
    parameters: "seed: default 1",
    reference: "Hoefler et al., Multistage switches are not crossbars, CLUSTER 2008",
};

/// Which permutation.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Seed of the permutation, apart from the run's: the pattern is part of the question.
    #[serde(default = "one")]
    pub seed: u64,
}

fn one() -> u64 {
    1
}

impl Pattern for Params {
    fn build(
        &self,
        ranks: &Ranks,
        _: Option<&dyn Routes>,
    ) -> Result<Arc<dyn Destinations>, String> {
        let count = ranks.count();
        if count < 2 {
            return Err(format!("needs at least 2 hosts and the fabric has {count}"));
        }
        // Sattolo's shuffle yields one cycle through all hosts, so none keeps its own.
        let mut to: Vec<u32> = (0..count).collect();
        let mut stream = Stream::new(self.seed, "random permutation", 0);
        for last in (1..count as usize).rev() {
            to.swap(last, stream.below(last as u64) as usize);
        }
        Ok(Permutation::of(count, |rank| to[rank as usize]))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::ranks;
    use super::*;
    use crate::Rank;

    #[test]
    fn nobody_sends_to_itself_and_everybody_receives_once() {
        let built = Params { seed: 5 }.build(&ranks(97), None).unwrap();
        let mut stream = Stream::new(1, "test", 0);
        let mut received = vec![0; 97];
        for rank in 0..97 {
            received[built.draw(Rank(rank), &mut stream).unwrap().0 as usize] += 1;
        }
        assert!(received.iter().all(|count| *count == 1));
    }
}
