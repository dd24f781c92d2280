//! The fabric that is drawn, and where the channels and hosts of a variant are on it: cables of two
//! variants are the same if they join the same ports.

use crate::measure::ChannelFigures;
use crate::result::VariantResult;
use clearlane_fabric::{Endpoint, Fabric, NodeId};
use clearlane_ib::{BitsPerSecond, Guid};
use std::collections::BTreeMap;

/// A transmitting and a receiving port.
type Ends = ((Guid, u8), (Guid, u8));

/// The drawn fabric with an index of its links.
pub(super) struct Map<'a> {
    pub(super) fabric: &'a Fabric,
    links: BTreeMap<Ends, (usize, bool)>,
}

fn end(fabric: &Fabric, end: Endpoint) -> (Guid, u8) {
    (fabric.node(end.node).guid, end.port.value())
}

impl<'a> Map<'a> {
    /// Indexes a fabric.
    pub(super) fn new(fabric: &'a Fabric) -> Self {
        let mut links = BTreeMap::new();
        for (position, link) in fabric.links().iter().enumerate() {
            let (a, b) = (end(fabric, link.a), end(fabric, link.b));
            links.insert((a, b), (position, true));
            links.insert((b, a), (position, false));
        }
        Map { fabric, links }
    }

    /// The link a variant's channel is on, and whether it leads from a to b; nothing if the map has
    /// no such cable.
    pub(super) fn link(
        &self,
        variant: &VariantResult,
        channel: &ChannelFigures,
    ) -> Option<(usize, bool)> {
        let fabric = &variant.prepared.fabric;
        let (from, to) = variant.channel_ends(channel)?;
        self.links.get(&(end(fabric, from), end(fabric, to))).copied()
    }

    /// The page's number of a channel: twice its link, one more for b→a.
    pub(super) fn code(&self, variant: &VariantResult, channel: &ChannelFigures) -> Option<u32> {
        let (link, forward) = self.link(variant, channel)?;
        Some(2 * link as u32 + u32::from(!forward))
    }

    /// A variant's node among the nodes of the map.
    pub(super) fn node(&self, variant: &VariantResult, node: NodeId) -> Option<u32> {
        let guid = variant.prepared.fabric.nodes().get(node.index())?.guid;
        Some(self.fabric.by_guid(guid)?.0)
    }
}

/// The rate of a channel in a variant.
pub(super) fn rate(variant: &VariantResult, channel: &ChannelFigures) -> Option<BitsPerSecond> {
    let (from, _) = variant.channel_ends(channel)?;
    let fabric = &variant.prepared.fabric;
    let cabled = fabric.link(fabric.link_at(from)?).rate().bits_per_second();
    Some(variant.prepared.parameters.link_rate.unwrap_or(cabled))
}
