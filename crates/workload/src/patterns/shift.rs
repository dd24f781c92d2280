//! Rank r sends to rank r + k: one phase of a linear-shift all-to-all.

use super::{Destinations, Entry, Pattern, Permutation};
use crate::{Ranks, Routes};
use serde::Deserialize;
use std::sync::Arc;

pub(super) const ENTRY: Entry = Entry {
    name: "shift",
    summary: "rank r sends to rank (r + by) mod N",
    parameters: "by: ranks, 1 ≤ by < N",
    reference: "Zahavi et al., Optimized InfiniBand fat-tree routing, CCPE 22(2), 2010",
};

/// How far.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Ranks to shift by, 1 ≤ by < N.
    pub by: u32,
}

impl Pattern for Params {
    fn build(
        &self,
        ranks: &Ranks,
        _: Option<&dyn Routes>,
    ) -> Result<Arc<dyn Destinations>, String> {
        let count = ranks.count();
        if self.by == 0 || self.by >= count {
            return Err(format!("by = {} is outside 1 to {}", self.by, count.max(1) - 1));
        }
        Ok(Permutation::of(count, |rank| (rank + self.by) % count))
    }
}
