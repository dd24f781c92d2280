//! Half-way around every ring, minus one: the pattern that unbalances minimal routing on a torus.

use super::{Destinations, Entry, Pattern, Permutation};
use crate::{Ranks, Routes};
use serde::Deserialize;
use std::sync::Arc;

pub(super) const ENTRY: Entry = Entry {
    name: "tornado",
    summary: "on a k-ary torus, the host ⌈k/2⌉ − 1 further in every dimension",
    parameters: "dims: sizes of the torus, their product the number of hosts; first varies fastest",
    reference: "Dally and Towles, Principles and Practices of Interconnection Networks, 3.2",
};

/// The torus.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Sizes; the first dimension varies fastest in rank order.
    pub dims: Vec<u32>,
}

impl Pattern for Params {
    fn build(
        &self,
        ranks: &Ranks,
        _: Option<&dyn Routes>,
    ) -> Result<Arc<dyn Destinations>, String> {
        let product = self.dims.iter().try_fold(1u32, |p, k| p.checked_mul(*k));
        if product != Some(ranks.count()) || self.dims.is_empty() {
            let (dims, count) = (&self.dims, ranks.count());
            return Err(format!("dims {dims:?} do not multiply to the {count} hosts"));
        }
        let partner = |rank: u32| {
            let (mut rest, mut stride, mut to) = (rank, 1, 0);
            for &k in &self.dims {
                let here = rest % k;
                to += (here + k.div_ceil(2) - 1) % k * stride;
                rest /= k;
                stride *= k;
            }
            to
        };
        Ok(Permutation::of(ranks.count(), partner))
    }
}
