//! From when on a flow or a host is said to suffer, and how many do.

use super::flows::held_back;
use super::frames::Frames;
use super::over_time::{Channels, flows_of, frames_most};
use crate::result::VariantResult;
use clearlane_workload::Class;
use serde::Serialize;
use std::collections::BTreeMap;

/// How many times slower than without the hot flows a flow suffers: it gets less than 80 % of what
/// it gets alone, or of what its host offers where it was not run alone. Of the demo's flows that
/// nothing holds back, message boundaries alone make some 9 % slower, so that a tenth says nothing;
/// those that share a buffer with hot flows lose more than half.
pub(super) const SUFFERS_FROM: f64 = 1.25;

/// The flows of victims of a variant's first seed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Suffering {
    /// Flows that are delivered anything without the hot flows.
    pub victims: usize,
    /// Those of them that get less than 80 % of that beside the hot flows.
    pub suffer: usize,
    /// Those of them that get a tenth or less.
    pub starved: usize,
    /// What those that suffer wait for: outputs as `leaf03[19] → spine01[4]`, with how many wait
    /// for each, most first.
    pub roots: Vec<(String, usize)>,
}

/// What a tenth is: a flow that gets so little starves.
const STARVED: f64 = 0.1;

impl VariantResult {
    /// Who suffers; nothing where flows were not recorded one by one or not run alone.
    pub fn suffering(&self) -> Option<Suffering> {
        let run = self.runs.first()?;
        let history = run.history.as_ref().filter(|history| !history.alone.is_empty())?;
        let frames = Frames::of(run, frames_most(run.figures.channels.len(), 1));
        let flows = flows_of(self, run);
        let channels = Channels::of(&frames, history, &flows);
        let is_victim = |group: usize| {
            self.prepared.groups.get(group).is_some_and(|group| group.class == Class::Victim)
        };
        let mut found = Suffering { victims: 0, suffer: 0, starved: 0, roots: Vec::new() };
        let mut roots: BTreeMap<u32, usize> = BTreeMap::new();
        for flow in flows.iter().filter(|flow| is_victim(flow.group)) {
            let Some(alone) = flow.alone_bytes.filter(|bytes| *bytes > 0) else { continue };
            let (alone, beside) = (alone as f64, flow.payload_bytes as f64);
            found.victims += 1;
            found.starved += usize::from(beside <= STARVED * alone);
            if beside * SUFFERS_FROM > alone {
                continue;
            }
            found.suffer += 1;
            let mut waits = BTreeMap::new();
            held_back(&flow.path, &frames, &channels, &mut waits);
            // A reliable connection also waits for acknowledgements.
            held_back(&flow.acks, &frames, &channels, &mut waits);
            let most = waits.into_iter().reduce(|a, b| if b.1 > a.1 { b } else { a });
            if let Some((root, _)) = most {
                *roots.entry(root).or_insert(0) += 1;
            }
        }
        let name = |(root, count): (u32, usize)| {
            let channel = run.figures.channels.get(root as usize)?;
            Some((self.channel_name(channel)?, count))
        };
        found.roots = roots.into_iter().filter_map(name).collect();
        found.roots.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        Some(found)
    }
}
