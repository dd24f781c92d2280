//! Every other host with the same probability.

use super::{Destinations, Entry, Pattern};
use crate::{Rank, Ranks, Routes};
use clearlane_ib::random::Stream;
use serde::Deserialize;
use std::sync::Arc;

pub(super) const ENTRY: Entry = Entry {
    name: "uniform",
    summary: "each message goes to any other host with the same probability",
    parameters: "none",
    reference: "Dally and Towles, Principles and Practices of Interconnection Networks, 3.2",
};

/// No parameters.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {}

#[derive(Debug)]
struct Uniform {
    count: u32,
}

impl Pattern for Params {
    fn build(
        &self,
        ranks: &Ranks,
        _: Option<&dyn Routes>,
    ) -> Result<Arc<dyn Destinations>, String> {
        if ranks.count() < 2 {
            return Err(format!("needs at least 2 hosts and the fabric has {}", ranks.count()));
        }
        Ok(Arc::new(Uniform { count: ranks.count() }))
    }
}

impl Destinations for Uniform {
    #[inline]
    fn draw(&self, source: Rank, stream: &mut Stream) -> Option<Rank> {
        let other = stream.below(u64::from(self.count) - 1) as u32;
        Some(Rank(if other >= source.0 { other + 1 } else { other }))
    }

    fn weight(&self, _: Rank) -> f64 {
        1.0
    }
}
