//! A recorder, saved and loaded.

use super::{Counters, Recorder, flow_bytes};
use crate::outcome::{FlowRecord, GroupSlice};
use crate::port::PortIndex;
use crate::saved::{SavedCounters, SavedFlowRecord, SavedRecorder, SavedSlice, holds};
use clearlane_workload::Rank;

impl Recorder {
    /// All records, as a checkpoint has them.
    pub(crate) fn save(&self) -> SavedRecorder {
        let flow = |flow: &FlowRecord| SavedFlowRecord {
            source: flow.source.0,
            destination: flow.destination.0,
            group: flow.group,
            payload: flow.delivered_payload_bytes.clone(),
        };
        let counters = |(port, of): (u32, &Counters)| {
            let slices = self.slices(PortIndex(port));
            SavedCounters {
                xmit_octets: of.xmit_octets,
                xmit_pkts: of.xmit_pkts,
                wait_ps: of.wait_ps,
                stalled_since: of.stalled_since,
                busy_now: (of.slice, of.busy_ps),
                busy: self.busy_ps[slices.clone()].to_vec(),
                waited: self.wait_ps[slices].to_vec(),
            }
        };
        SavedRecorder {
            slice: self.slices.length,
            groups: self.groups.iter().map(|group| group.iter().map(slice).collect()).collect(),
            flows: self.flows.iter().map(flow).collect(),
            flows_dropped: self.flows_dropped,
            counters: (0..).zip(self.counters.iter()).map(counters).collect(),
        }
    }

    /// Takes up the counters of these ports, the flows that end here and, if it is the first of a
    /// run's recorders, what all have recorded of groups.
    pub(crate) fn load(
        &mut self,
        saved: &SavedRecorder,
        (first, end): (u32, u32),
        is_first: bool,
        is_here: &dyn Fn(u32) -> bool,
    ) -> Option<()> {
        self.slices.load(saved.slice)?;
        self.slice = (0, 0, self.slices.length);
        let slices = self.slices.count;
        holds(saved.groups.len() == self.groups.len())?;
        for (group, saved) in self.groups.iter_mut().zip(&saved.groups) {
            holds(saved.len() == group.len())?;
            for (slice, saved) in group.iter_mut().zip(saved).filter(|_| is_first) {
                load_slice(slice, saved)?;
            }
        }
        // Those of all parts together may be too many where none of the parts had too many.
        let fit = flow_bytes(saved.flows.len(), slices) <= self.flow_bytes_max;
        self.flows_dropped = saved.flows_dropped || !fit;
        let flows = saved.flows.iter().filter(|flow| is_here(flow.destination));
        for flow in flows.filter(|_| !self.flows_dropped) {
            holds(flow.payload.len() == slices)?;
            let key = (flow.group, flow.source, flow.destination);
            let known = self.flow_of.insert(key, self.flows.len() as u32);
            holds(known.is_none())?;
            self.flows.push(FlowRecord {
                source: Rank(flow.source),
                destination: Rank(flow.destination),
                group: flow.group,
                delivered_payload_bytes: flow.payload.clone(),
            });
        }
        let counters = saved.counters.get(first as usize..end as usize)?;
        for (port, saved) in (0..).map(PortIndex).zip(counters) {
            holds(saved.busy.len() == slices && saved.waited.len() == slices)?;
            let range = self.slices(port);
            self.busy_ps[range.clone()].copy_from_slice(&saved.busy);
            self.wait_ps[range].copy_from_slice(&saved.waited);
            let of = &mut self.counters[port];
            (of.xmit_octets, of.xmit_pkts) = (saved.xmit_octets, saved.xmit_pkts);
            (of.wait_ps, of.stalled_since) = (saved.wait_ps, saved.stalled_since);
            (of.slice, of.busy_ps) = saved.busy_now;
        }
        Some(())
    }
}

fn slice(of: &GroupSlice) -> SavedSlice {
    let counts = of.latency_ns.iter_recorded();
    SavedSlice {
        offered_wire_bytes: of.offered_wire_bytes,
        delivered_wire_bytes: of.delivered_wire_bytes,
        delivered_payload_bytes: of.delivered_payload_bytes,
        messages: of.messages,
        latency_sum_ps: of.latency_sum_ps,
        latency_ns: counts.map(|at| (at.value_iterated_to(), at.count_at_value())).collect(),
    }
}

fn load_slice(slice: &mut GroupSlice, saved: &SavedSlice) -> Option<()> {
    slice.offered_wire_bytes = saved.offered_wire_bytes;
    slice.delivered_wire_bytes = saved.delivered_wire_bytes;
    slice.delivered_payload_bytes = saved.delivered_payload_bytes;
    slice.messages = saved.messages;
    slice.latency_sum_ps = saved.latency_sum_ps;
    // A histogram takes memory by its largest value: no latency is longer than a run.
    const LONGEST_NS: u64 = 1 << 50;
    for (value, count) in &saved.latency_ns {
        holds(*value <= LONGEST_NS)?;
        slice.latency_ns.record_n(*value, *count).ok()?;
    }
    Some(())
}
