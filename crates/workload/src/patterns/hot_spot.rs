//! A fraction of the messages goes to a few hot hosts, the rest anywhere.

use super::{Destinations, Entry, Pattern};
use crate::{HostRef, Rank, Ranks, Routes};
use clearlane_ib::random::Stream;
use serde::Deserialize;
use std::sync::Arc;

pub(super) const ENTRY: Entry = Entry {
    name: "hot-spot",
    summary: "a fraction of the messages goes to a set of hot hosts, the rest to any other host",
    parameters: "hosts: list of host names or ranks; fraction: 0 < f ≤ 1, default 1",
    reference: "Pfister and Norton, Hot Spot Contention and Combining, IEEE ToC C-34(10), 1985",
};

/// Which hosts are hot and how hot.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// The hot receivers, at least one.
    pub hosts: Vec<HostRef>,
    /// Share of the messages that goes to them, 0 < f ≤ 1.
    #[serde(default = "whole")]
    pub fraction: f64,
}

fn whole() -> f64 {
    1.0
}

#[derive(Debug)]
struct HotSpot {
    count: u32,
    hot: Vec<Rank>,
    fraction: f64,
}

impl Pattern for Params {
    fn build(
        &self,
        ranks: &Ranks,
        _: Option<&dyn Routes>,
    ) -> Result<Arc<dyn Destinations>, String> {
        let hot = self.hosts.iter().map(|h| ranks.resolve(h)).collect::<Result<Vec<_>, _>>()?;
        if hot.is_empty() {
            return Err("names no hot host; write hosts = [\"name\"]".into());
        }
        if !(self.fraction > 0.0 && self.fraction <= 1.0) {
            return Err(format!("fraction {} is outside 0 < f ≤ 1", self.fraction));
        }
        if ranks.count() < 2 {
            return Err(format!("needs at least 2 hosts and the fabric has {}", ranks.count()));
        }
        Ok(Arc::new(HotSpot { count: ranks.count(), hot, fraction: self.fraction }))
    }

    fn hosts(&mut self) -> Vec<&mut HostRef> {
        self.hosts.iter_mut().collect()
    }
}

impl Destinations for HotSpot {
    fn draw(&self, source: Rank, stream: &mut Stream) -> Option<Rank> {
        if self.fraction >= 1.0 || stream.unit() < self.fraction {
            let hot = self.hot[stream.below(self.hot.len() as u64) as usize];
            return (hot != source).then_some(hot);
        }
        let other = stream.below(u64::from(self.count) - 1) as u32;
        Some(Rank(if other >= source.0 { other + 1 } else { other }))
    }

    fn weight(&self, source: Rank) -> f64 {
        let only_itself = self.fraction >= 1.0 && self.hot.iter().all(|hot| *hot == source);
        if only_itself { 0.0 } else { 1.0 }
    }
}
