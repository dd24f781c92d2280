//! Everybody sends to one host.

use super::{Destinations, Entry, Pattern, Permutation};
use crate::{HostRef, Ranks, Routes};
use serde::Deserialize;
use std::sync::Arc;

pub(super) const ENTRY: Entry = Entry {
    name: "incast",
    summary: "every sender sends to one host",
    parameters: "to: name, GUID (0x…) or LID of a host in quotes, or its rank as a number",
    reference: "Phanishayee et al., Measurement and Analysis of TCP Throughput Collapse, FAST 2008",
};

/// The receiver.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Whom everybody sends to.
    pub to: HostRef,
}

impl Pattern for Params {
    fn build(
        &self,
        ranks: &Ranks,
        _: Option<&dyn Routes>,
    ) -> Result<Arc<dyn Destinations>, String> {
        let to = ranks.resolve(&self.to)?;
        Ok(Permutation::of(ranks.count(), |_| to.0))
    }

    fn hosts(&mut self) -> Vec<&mut HostRef> {
        vec![&mut self.to]
    }
}
