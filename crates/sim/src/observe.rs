//! Observers: what is noted down about grants, deliveries and waiting. Statically dispatched, so a
//! run without one pays nothing.

use crate::network::Packet;
use crate::outcome::{ChannelRecord, FlowRecord, GroupSlice};
use crate::records::Records;
use clearlane_ib::Picoseconds;
// The data counters leave the variant CRC out (IBA vol. 1, 16.1.3.5).
use clearlane_ib::wire::VCRC;
use clearlane_workload::Rank;
use hdrhistogram::Histogram;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// What to record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recording {
    /// Length of a slice of time; channels and groups are recorded per slice.
    pub slice: Picoseconds,
    /// How many slices; what happens later is not recorded.
    pub slices: u32,
    /// Flows are recorded one by one as long as their slices take no more than this; what
    /// mechanisms did, flow by flow, likewise.
    pub flow_bytes_max: u64,
}

/// Hooks of the engine. All have a default that does nothing.
pub(crate) trait Observer: Send {
    /// Whether the engine should bother to measure waiting.
    const ON: bool;
    /// A message, or a stripe of one, was posted at `now`.
    fn on_posted(&mut self, _now: u64, _group: u16, _wire_bytes: u64) {}
    /// `port` transmits a packet of `bytes` during [now, now + busy).
    fn on_granted(&mut self, _now: u64, _port: u32, _bytes: u32, _busy: u64) {}
    /// The head of a packet of `bytes` has come in by `port`.
    fn on_received(&mut self, _port: u32, _bytes: u32) {}
    /// `port` had data and no credits during [since, now).
    fn on_waited(&mut self, _since: u64, _now: u64, _port: u32) {}
    /// A data packet has arrived whole at `at`; `last` if it ends its message.
    fn on_delivered(&mut self, _at: u64, _packet: &Packet, _to: Rank, _last: bool) {}
    /// Hands out what was recorded: groups, flows (or that there were too many), channels.
    fn records(self) -> Recorded;
}

/// What an observer hands out at the end.
#[derive(Default)]
pub(crate) struct Recorded {
    pub(crate) slice: Picoseconds,
    pub(crate) groups: Vec<Vec<GroupSlice>>,
    pub(crate) flows: Vec<FlowRecord>,
    pub(crate) flows_dropped: bool,
    pub(crate) channels: Vec<ChannelRecord>,
}

/// Records nothing.
pub(crate) struct NoObserver;

impl Observer for NoObserver {
    const ON: bool = false;
    fn records(self) -> Recorded {
        Recorded::default()
    }
}

/// Records counters per channel and slices of time per group, flow and channel.
pub(crate) struct Recorder {
    what: Recording,
    groups: Vec<Vec<GroupSlice>>,
    flows: Vec<FlowRecord>,
    flow_of: FxHashMap<(u16, u32, u32), u32>,
    flows_dropped: bool,
    counters: Records<Counters>,
    /// Time a link was busy, by port, then slice.
    busy_ps: Vec<u64>,
    /// Time it waited for credits, likewise.
    wait_ps: Vec<u64>,
}

/// Counters of a port; `ChannelRecord` says what they mean. Data counts octets here.
#[derive(Clone, Copy, Default)]
struct Counters {
    xmit_octets: u64,
    xmit_pkts: u64,
    rcv_octets: u64,
    rcv_pkts: u64,
    wait_ps: u64,
}

impl Recorder {
    pub(crate) fn new(what: Recording, groups: usize, ports: usize) -> Self {
        let slices = what.slices as usize;
        let slice = GroupSlice {
            offered_wire_bytes: 0,
            delivered_wire_bytes: 0,
            delivered_payload_bytes: 0,
            messages: 0,
            latency_sum_ps: 0,
            latency_ns: empty_histogram(),
        };
        Recorder {
            what,
            groups: vec![vec![slice; slices]; groups],
            flows: Vec::new(),
            flow_of: FxHashMap::default(),
            flows_dropped: false,
            counters: vec![Counters::default(); ports].into(),
            busy_ps: vec![0; ports * slices],
            wait_ps: vec![0; ports * slices],
        }
    }

    /// The slices of a port in `busy_ps` and `wait_ps`.
    fn slices(&self, port: u32) -> Range<usize> {
        let slices = self.what.slices as usize;
        port as usize * slices..(port as usize + 1) * slices
    }

    fn slice_of(&self, at: u64) -> Option<usize> {
        let index = at / self.what.slice.0;
        (index < u64::from(self.what.slices)).then_some(index as usize)
    }

    fn flow(&mut self, packet: &Packet, to: Rank) -> Option<&mut FlowRecord> {
        if self.flows_dropped {
            return None;
        }
        let key = (packet.group, packet.source, to.0);
        if let Some(index) = self.flow_of.get(&key) {
            return Some(&mut self.flows[*index as usize]);
        }
        let slices = self.what.slices as usize;
        let bytes = (self.flows.len() + 1) * slices * size_of::<u64>();
        if bytes as u64 > self.what.flow_bytes_max {
            (self.flows_dropped, self.flows) = (true, Vec::new());
            self.flow_of = FxHashMap::default();
            return None;
        }
        self.flow_of.insert(key, self.flows.len() as u32);
        self.flows.push(FlowRecord {
            source: Rank(packet.source),
            destination: to,
            group: packet.group,
            delivered_payload_bytes: vec![0; slices],
        });
        self.flows.last_mut()
    }
}

/// Latencies from 1 ns to 281 s in two significant digits.
fn empty_histogram() -> Histogram<u64> {
    // Two significant digits are within the range the constructor accepts (0 to 5).
    Histogram::new(2).expect("two significant digits are a valid precision")
}

/// Adds the interval [from, to) to the slices it overlaps.
fn spread(slices: &mut [u64], length: u64, from: u64, to: u64) {
    let mut at = from;
    while at < to {
        let index = at / length;
        let end = ((index + 1) * length).min(to);
        match slices.get_mut(index as usize) {
            Some(slice) => *slice += end - at,
            None => return,
        }
        at = end;
    }
}

impl Observer for Recorder {
    const ON: bool = true;

    fn on_posted(&mut self, now: u64, group: u16, wire_bytes: u64) {
        if let Some(slice) = self.slice_of(now) {
            self.groups[usize::from(group)][slice].offered_wire_bytes += wire_bytes;
        }
    }

    fn on_granted(&mut self, now: u64, port: u32, bytes: u32, busy: u64) {
        let counters = &mut self.counters[port];
        counters.xmit_pkts += 1;
        counters.xmit_octets += u64::from(bytes.saturating_sub(VCRC));
        let slices = self.slices(port);
        spread(&mut self.busy_ps[slices], self.what.slice.0, now, now + busy);
    }

    fn on_received(&mut self, port: u32, bytes: u32) {
        let counters = &mut self.counters[port];
        counters.rcv_pkts += 1;
        counters.rcv_octets += u64::from(bytes.saturating_sub(VCRC));
    }

    fn on_waited(&mut self, since: u64, now: u64, port: u32) {
        self.counters[port].wait_ps += now - since;
        let slices = self.slices(port);
        spread(&mut self.wait_ps[slices], self.what.slice.0, since, now);
    }

    fn on_delivered(&mut self, at: u64, packet: &Packet, to: Rank, last: bool) {
        let Some(index) = self.slice_of(at) else { return };
        let slice = &mut self.groups[usize::from(packet.group)][index];
        let payload = u64::from(packet.payload);
        slice.delivered_wire_bytes += u64::from(packet.bytes);
        slice.delivered_payload_bytes += payload;
        if last {
            let latency = at - packet.born;
            slice.messages += 1;
            slice.latency_sum_ps += u128::from(latency);
            let recorded = slice.latency_ns.record(latency.div_ceil(1000));
            recorded.expect("a histogram that resizes itself takes every time of a run");
        }
        if let Some(flow) = self.flow(packet, to) {
            flow.delivered_payload_bytes[index] += payload;
        }
    }

    fn records(mut self) -> Recorded {
        self.flows.sort_by_key(|flow| (flow.group, flow.source, flow.destination));
        let full = self.busy_ps.iter().all(|busy| *busy <= self.what.slice.0);
        assert!(full, "no link is busy for longer than the time that passes");
        let channel = |(port, counters): (usize, &Counters)| {
            let slices = self.slices(port as u32);
            ChannelRecord {
                // PortXmitData counts octets divided by 4 (IBA vol. 1, 16.1.3.5).
                port_xmit_data: counters.xmit_octets / 4,
                port_xmit_pkts: counters.xmit_pkts,
                port_rcv_data: counters.rcv_octets / 4,
                port_rcv_pkts: counters.rcv_pkts,
                port_xmit_wait_ps: counters.wait_ps,
                busy_ps: self.busy_ps[slices.clone()].to_vec(),
                wait_ps: self.wait_ps[slices].to_vec(),
                ..ChannelRecord::default()
            }
        };
        let channels = self.counters.iter().enumerate().map(channel).collect();
        Recorded {
            slice: self.what.slice,
            groups: self.groups,
            flows: self.flows,
            flows_dropped: self.flows_dropped,
            channels,
        }
    }
}
