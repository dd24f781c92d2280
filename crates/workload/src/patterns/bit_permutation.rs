//! Permutations of the bits of a rank.

use super::{Destinations, Entry, Pattern, Permutation};
use crate::{Ranks, Routes};
use serde::Deserialize;
use std::sync::Arc;

pub(super) const ENTRY: Entry = Entry {
    name: "bit-permutation",
    summary: "the destination is the source with its bits reversed, rotated, swapped or inverted",
    parameters: "permutation: reversal | shuffle | butterfly | complement; N a power of two",
    reference: "Dally and Towles, Principles and Practices of Interconnection Networks, table 3.1",
};

/// What happens to the bits s_{b−1}…s_0 of the source.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// d_i = s_{b−1−i}
    Reversal,
    /// d_i = s_{(i−1) mod b}: rotate left by one
    Shuffle,
    /// the highest and the lowest bit change places
    Butterfly,
    /// d_i = ¬s_i
    Complement,
}

/// Which permutation.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Which permutation.
    pub permutation: Kind,
}

impl Pattern for Params {
    fn build(
        &self,
        ranks: &Ranks,
        _: Option<&dyn Routes>,
    ) -> Result<Arc<dyn Destinations>, String> {
        let count = ranks.count();
        if count < 2 || !count.is_power_of_two() {
            return Err(format!("{count} hosts are not a power of two"));
        }
        let bits = count.trailing_zeros();
        let top = bits - 1;
        let kind = self.permutation;
        let partner = move |s: u32| match kind {
            Kind::Reversal => s.reverse_bits() >> (32 - bits),
            Kind::Shuffle => (s << 1 | s >> top) & (count - 1),
            Kind::Butterfly => {
                let (high, low) = (s >> top & 1, s & 1);
                s & !(1 << top) & !1 | low << top | high
            }
            Kind::Complement => !s & (count - 1),
        };
        // One bit: its highest and lowest are the same and nothing changes place.
        Ok(Permutation::of(count, move |s| {
            if bits == 1 && kind == Kind::Butterfly { s } else { partner(s) }
        }))
    }
}
