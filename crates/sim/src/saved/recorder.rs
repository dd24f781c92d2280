//! What has been recorded, as it is kept.

use serde::{Deserialize, Serialize};

/// What the recorders of a run have recorded.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SavedRecorder {
    /// Length of a slice, ps.
    pub(crate) slice: u64,
    /// By group and slice.
    pub(crate) groups: Vec<Vec<SavedSlice>>,
    pub(crate) flows: Vec<SavedFlowRecord>,
    pub(crate) flows_dropped: bool,
    /// By port.
    pub(crate) counters: Vec<SavedCounters>,
}

/// A slice of a flow group.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedSlice {
    pub(crate) offered_wire_bytes: u64,
    pub(crate) delivered_wire_bytes: u64,
    pub(crate) delivered_payload_bytes: u64,
    pub(crate) messages: u64,
    pub(crate) latency_sum_ps: u128,
    /// Values and how often each.
    pub(crate) latency_ns: Vec<(u64, u64)>,
}

/// A flow.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedFlowRecord {
    pub(crate) source: u32,
    pub(crate) destination: u32,
    pub(crate) group: u16,
    pub(crate) payload: Vec<u64>,
}

/// Counters of a port.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedCounters {
    pub(crate) xmit_octets: u64,
    pub(crate) xmit_pkts: u64,
    pub(crate) wait_ps: u64,
    pub(crate) stalled_since: u64,
    /// Busy in this slice, not yet among the slices.
    pub(crate) busy_now: (u32, u64),
    /// By slice.
    pub(crate) busy: Vec<u64>,
    pub(crate) waited: Vec<u64>,
}

impl SavedRecorder {
    /// Adds what the recorder of the next partition has.
    pub(crate) fn append(&mut self, next: SavedRecorder) {
        self.flows.extend(next.flows);
        self.flows_dropped |= next.flows_dropped;
        self.counters.extend(next.counters);
        let slices = self.groups.iter_mut().flatten().zip(next.groups.into_iter().flatten());
        slices.for_each(|(sum, slice)| sum.add(slice));
    }
}

impl SavedSlice {
    fn add(&mut self, other: SavedSlice) {
        self.offered_wire_bytes += other.offered_wire_bytes;
        self.delivered_wire_bytes += other.delivered_wire_bytes;
        self.delivered_payload_bytes += other.delivered_payload_bytes;
        self.messages += other.messages;
        self.latency_sum_ps += other.latency_sum_ps;
        self.latency_ns.extend(other.latency_ns);
        self.latency_ns.sort_unstable();
        // Of one value there is one count.
        self.latency_ns.dedup_by(|(value, count), (known, sum)| {
            let same = value == known;
            *sum += if same { *count } else { 0 };
            same
        });
    }
}
