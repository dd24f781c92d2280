//! What happened slice by slice in one run: what a report draws over time. Kept of the first seed
//! of a variant only; it is the largest part of a run's results.

use crate::measure::FlowFigures;
use clearlane_sim::{ControlRecord, FlowControl, Outcome};
use std::cmp::Reverse;

/// Cuts what was recorded to the slices that a run of unknown length has come to: the others are
/// there for times that it might have come to.
pub(crate) fn trim(outcome: &mut Outcome) {
    let slices = outcome.duration.0.div_ceil(outcome.slice.0.max(1)) as usize;
    outcome.groups.iter_mut().for_each(|group| group.truncate(slices));
    outcome.flows.iter_mut().for_each(|flow| flow.delivered_payload_bytes.truncate(slices));
    for channel in &mut outcome.channels {
        channel.busy_ps.truncate(slices);
        channel.wait_ps.truncate(slices);
    }
    for flow in &mut outcome.control.flows {
        flow.becns.truncate(slices);
        flow.probes.iter_mut().for_each(|(_, values)| values.truncate(slices));
    }
}

/// One run over time, from its start to its end.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// By channel of `RunFigures::channels`, then slice: time the link was busy, ps.
    pub busy_ps: Vec<Vec<u64>>,
    /// Time the channel had data and no credits, ps, in the same order.
    pub wait_ps: Vec<Vec<u64>>,
    /// By flow of `RunFigures::flows`, then slice: payload delivered, bytes.
    pub flow_bytes: Vec<Vec<u64>>,
    /// What the victims' flows are delivered without the hot ones, over the measured part of the
    /// run beside them; empty without such a run.
    pub alone: Vec<FlowFigures>,
    /// What congestion mechanisms did; empty without.
    pub control: ControlRecord,
}

impl History {
    /// The history in an outcome.
    pub(crate) fn of(outcome: Outcome) -> Self {
        let mut history = History { control: outcome.control, ..History::default() };
        for channel in outcome.channels {
            history.busy_ps.push(channel.busy_ps);
            history.wait_ps.push(channel.wait_ps);
        }
        let flows = outcome.flows.into_iter();
        history.flow_bytes = flows.map(|flow| flow.delivered_payload_bytes).collect();
        history
    }

    /// The `count` flows that were notified most often, or whose reactors changed their minds most
    /// often, in the order of the record; those of which there is nothing to tell are left out.
    pub fn most_notified(&self, count: usize) -> Vec<&FlowControl> {
        let told = |flow: &FlowControl| {
            let becns: u64 = flow.becns.iter().map(|becns| u64::from(*becns)).sum();
            let changes = |values: &[u64]| values.windows(2).filter(|w| w[0] != w[1]).count();
            let probes = flow.probes.iter().map(|(_, values)| changes(values));
            (becns, probes.sum::<usize>())
        };
        let flows = self.control.flows.iter().enumerate();
        let mut most: Vec<_> = flows.map(|(index, flow)| (Reverse(told(flow)), index)).collect();
        most.retain(|(told, _)| *told != Reverse((0, 0)));
        most.sort_unstable();
        most.truncate(count);
        most.sort_unstable_by_key(|(_, index)| *index);
        most.into_iter().filter_map(|(_, index)| self.control.flows.get(index)).collect()
    }
}
