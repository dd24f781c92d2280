//! What happened slice by slice in one run: what a report draws over time. Kept of the first seed
//! of a variant only; it is the largest part of a run's results.

use super::FlowFigures;
use clearlane_sim::{FlowRecord, Outcome};
use std::ops::Range;

/// One run over time, from its start to its end.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// By channel of `RunFigures::channels`, then slice: time the link was busy, ps.
    pub busy_ps: Vec<Vec<u64>>,
    /// Likewise: time it had data and no credits, ps.
    pub wait_ps: Vec<Vec<u64>>,
    /// By flow of `RunFigures::flows`, then slice: payload delivered, bytes.
    pub flow_bytes: Vec<Vec<u64>>,
    /// What the victims' flows are delivered without the hot ones, over the measured part of the
    /// run beside them; empty without such a run.
    pub alone: Vec<FlowFigures>,
}

impl History {
    /// The history in an outcome.
    pub(crate) fn of(outcome: Outcome) -> Self {
        let mut history = History::default();
        for channel in outcome.channels {
            history.busy_ps.push(channel.busy_ps);
            history.wait_ps.push(channel.wait_ps);
        }
        let flows = outcome.flows.into_iter();
        history.flow_bytes = flows.map(|flow| flow.delivered_payload_bytes).collect();
        history
    }

    /// Notes what flows are delivered without the hot ones; `measured` are slices.
    pub(crate) fn set_alone(&mut self, flows: &[FlowRecord], measured: &Range<usize>) {
        let flow = |flow: &FlowRecord| FlowFigures {
            group: usize::from(flow.group),
            source: flow.source,
            destination: flow.destination,
            payload_bytes: {
                let slices = flow.delivered_payload_bytes.get(measured.clone());
                slices.unwrap_or_default().iter().sum()
            },
        };
        self.alone = flows.iter().map(flow).collect();
    }
}
