//! The part of a fabric that a report draws: all of it, or of one with more cables than anybody can
//! tell apart the switches at its busiest links.

use super::data::mean_channels;
use crate::measure::ChannelFigures;
use crate::result::{RunResult, VariantResult};
use clearlane_fabric::{Endpoint, Fabric, Node, NodeId, damage};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Cables up to which all are drawn: a page of more takes tens of megabytes, and seconds to open.
const CABLES_MAX: usize = 100_000;

/// Links of each variant whose switches are drawn where not all are.
const BUSIEST: usize = 12;

/// The drawn part of the first variant's fabric.
pub(super) struct Excerpt<'a> {
    pub(super) fabric: Cow<'a, Fabric>,
    /// What a reader should know, where it is not all of it.
    pub(super) note: Option<String>,
}

impl<'a> Excerpt<'a> {
    /// Of a result; empty without a variant.
    pub(super) fn of(result: &'a RunResult) -> Self {
        let whole = |fabric| Excerpt { fabric, note: None };
        let Some(first) = result.variants.first() else { return whole(Cow::Owned(Fabric::new())) };
        let fabric = &first.prepared.fabric;
        let cables = fabric.links().len();
        if cables <= CABLES_MAX {
            return whole(Cow::Borrowed(fabric));
        }
        let kept: BTreeSet<NodeId> =
            result.variants.iter().flat_map(|variant| ends(variant, fabric)).collect();
        let hosts = |node: &NodeId| -> Vec<NodeId> {
            let peers = fabric.neighbours(*node).map(|(_, _, peer)| peer.node);
            peers.filter(|peer| !fabric.node(*peer).is_switch()).collect()
        };
        let kept: BTreeSet<NodeId> =
            kept.iter().flat_map(hosts).chain(kept.iter().copied()).collect();
        let nodes = (0..fabric.nodes().len() as u32).map(NodeId);
        let others: Vec<NodeId> = nodes.filter(|node| !kept.contains(node)).collect();
        match damage::without(fabric, &others) {
            Ok(part) => Excerpt { fabric: Cow::Owned(part), note: Some(note(cables)) },
            // The whole had no fault; a part of it has none.
            Err(_) => whole(Cow::Borrowed(fabric)),
        }
    }

    /// Whether all of the fabric is drawn.
    pub(super) fn is_whole(&self) -> bool {
        self.note.is_none()
    }
}

fn note(cables: usize) -> String {
    format!(
        "the fabric has {} cables, too many to draw: the map shows the switches at the busiest \
         links; links.parquet has every link",
        crate::table::grouped(cables as u64)
    )
}

/// The switches, in `fabric`, at both ends of the busiest links of a variant.
fn ends(variant: &VariantResult, fabric: &Fabric) -> Vec<NodeId> {
    let own = &variant.prepared.fabric;
    let between = |channel: &ChannelFigures| -> Option<[Endpoint; 2]> {
        let (from, to) = variant.channel_ends(channel)?;
        let ends = [from, to];
        ends.iter().all(|end| own.node(end.node).is_switch()).then_some(ends)
    };
    let mut busy: Vec<(f64, [Endpoint; 2])> = mean_channels(variant)
        .iter()
        .filter_map(|channel| Some((channel.load + channel.wait, between(channel)?)))
        .collect();
    // Equals stay in the order of nodes and ports.
    busy.sort_by(|a, b| b.0.total_cmp(&a.0));
    busy.truncate(BUSIEST);
    let guid = |end: &Endpoint| -> Option<NodeId> {
        let Node { guid, .. } = own.node(end.node);
        fabric.by_guid(*guid)
    };
    busy.iter().flat_map(|(_, ends)| ends.iter().filter_map(guid)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Experiment, Quiet, RunOptions, run};
    use std::path::Path;
    use std::sync::atomic::AtomicBool;

    /// Flow mode, because only the size of the fabric counts here.
    fn result(fabric: &str) -> RunResult {
        let text = format!(
            "schema = 1\nname = \"x\"\nfabric = {{ build = \"{fabric}\" }}\n\
             run = {{ duration = \"1 ms\", ends = \"programs\", mode = \"flow\" }}\n\
             subnet = {{ forwarding = \"dimension-order-up\" }}\n\
             sim = {{ preset = \"nsim-2014\" }}\n\
             [[traffic]]\nname = \"ring\"\nclass = \"background\"\ntransport = \"ud\"\n\
             program = {{ kind = \"ring-exchange\", size = \"2 KiB\" }}\n\
             senders = {{ hosts = [0, 1, 5] }}\n"
        );
        let experiment = Experiment::parse(&text, Path::new("x.toml")).unwrap();
        run(&experiment, &RunOptions::new(1, ""), &Quiet, &AtomicBool::new(false)).unwrap()
    }

    #[test]
    fn all_of_a_fabric_is_drawn_but_of_a_huge_one_its_busiest_switches() {
        let small = result("torus:8x8");
        let drawn = Excerpt::of(&small);
        assert!(drawn.is_whole() && drawn.fabric.nodes().len() == 128);
        let huge = result("torus:32x32x32");
        let drawn = Excerpt::of(&huge);
        assert!(!drawn.is_whole() && drawn.fabric.nodes().len() < 100);
        let page = crate::report::page(&huge, &crate::Deadline::default()).unwrap();
        let note = note(huge.variants[0].prepared.fabric.links().len());
        assert!(page.contains(&note) && page.len() < 4 << 20, "{note}, {} bytes", page.len());
        // The busiest links have their rows, as on any page.
        assert!(page.contains("\"worst_links\":[{"));
    }
}
