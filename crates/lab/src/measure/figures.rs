//! The figures of one run of one seed, as measures and reports read them.

use super::Slices;
use clearlane_workload::{Class, Rank};
use serde::Serialize;
use std::ops::Range;

/// An output that waits for credits for this share of the time or more is held back.
pub const HELD_BACK: f64 = 0.1;

/// When measuring began.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct WarmUpFound {
    /// Begin of the measured part, µs.
    pub from_us: f64,
    /// End of the measured part, µs.
    pub to_us: f64,
    /// False if nothing is left to measure, or throughput was still moving at the end.
    pub converged: bool,
}

/// Figures of a group, a class or everything, over the measured part.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Figures {
    /// How many senders there are; a host that sends in two groups counts twice.
    pub senders: usize,
    /// Offered bytes, headers included, over the rate of the senders' links; the link of a host
    /// that sends in two groups counts once.
    pub offered_load: f64,
    /// Delivered bytes, headers included, over the rate of the senders' links.
    pub delivered_load: f64,
    /// Delivered payload over the rate of the senders' links.
    pub accepted_load: f64,
    /// Delivered payload, Gb/s.
    pub accepted_gbps: f64,
    /// Messages completed.
    pub messages: u64,
    /// Post to last byte, mean, µs; nothing without messages.
    pub latency_mean_us: Option<f64>,
    /// Median, µs.
    pub latency_p50_us: Option<f64>,
    /// 99th percentile, µs.
    pub latency_p99_us: Option<f64>,
    /// Jain's index over the senders' delivered bytes, each relative to what its group's load has
    /// it offer; nothing if more flows were seen than are recorded one by one.
    pub jain: Option<f64>,
    /// Whether throughput was level in the second half of the measured part.
    pub throughput_converged: bool,
    /// Whether latencies were too, and no queue grew.
    pub latency_converged: bool,
    /// Whether more was offered than delivered in the second half of the measured part, by more
    /// than chance explains: latencies then have no steady value.
    pub saturated: bool,
    /// How many senders starve: each is delivered a tenth or less of what the senders of its group
    /// are in the mean, relative to what it offers. 0 where flows are not recorded one by one.
    pub starved: usize,
    /// How many senders were still gaining or losing when the run ended, more of them than chance
    /// explains, while the sum may be level. 0 where flows are not recorded one by one.
    pub changing: usize,
}

/// A flow over the measured part.
#[derive(Clone, Debug)]
pub struct FlowFigures {
    /// Index of the group.
    pub group: usize,
    /// Source.
    pub source: Rank,
    /// Destination.
    pub destination: Rank,
    /// Payload delivered in the measured part.
    pub payload_bytes: u64,
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct ChannelFigures {
    /// Index of the transmitting node.
    pub node: u32,
    /// Its port.
    pub port: u8,
    /// Busy share of the measured part, 0 to 1.
    pub load: f64,
    /// Share of the measured part with data and no credits, 0 to 1.
    pub wait: f64,
    /// PortXmitData of the whole run, units of 4 bytes.
    pub port_xmit_data: u64,
    /// PortXmitPkts of the whole run.
    pub port_xmit_pkts: u64,
    /// PortRcvData of the whole run, units of 4 bytes.
    pub port_rcv_data: u64,
    /// PortRcvPkts of the whole run.
    pub port_rcv_pkts: u64,
    /// PortXmitWait of the whole run, in ps.
    pub port_xmit_wait_ps: u64,
}

/// What a sender of a group gets of what it offers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SenderShare {
    /// Who sends.
    pub sender: Rank,
    /// Delivered over offered bytes in the measured part, headers included; a message posted before
    /// it may carry it beyond 1.
    pub share: f64,
}

/// A group in a slice of time.
#[derive(Clone, Copy, Debug)]
pub struct SeriesSlice {
    /// Wire bytes posted.
    pub offered_bytes: u64,
    /// Payload delivered.
    pub delivered_payload_bytes: u64,
    /// Messages completed.
    pub messages: u64,
    /// Mean latency of those, µs; 0 without any.
    pub latency_mean_us: f64,
}

/// The figures of one run.
#[derive(Clone, Debug)]
pub struct RunFigures {
    /// What counted.
    pub warm_up: WarmUpFound,
    /// The same as slices of the series.
    pub measured: Range<usize>,
    /// By group.
    pub groups: Vec<Figures>,
    /// By class, those that occur.
    pub classes: Vec<(Class, Figures)>,
    /// Everything together.
    pub all: Figures,
    /// Flows; empty if there were too many to be recorded one by one.
    pub flows: Vec<FlowFigures>,
    /// Whether there were too many.
    pub flows_dropped: bool,
    /// Channels by node and port.
    pub channels: Vec<ChannelFigures>,
    /// By group, then slice, of the whole run.
    pub series: Vec<Vec<SeriesSlice>>,
    /// By group: what senders get of what they offer; empty where flows are not known.
    pub sender_shares: Vec<Vec<SenderShare>>,
    /// How the series is cut.
    pub slices: Slices,
}
