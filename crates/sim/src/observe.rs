//! Observers: what is noted down about grants, deliveries and waiting. Statically dispatched, so a
//! run without one pays nothing.

use crate::network::Packet;
use crate::outcome::{ChannelRecord, FlowRecord, GroupSlice};
use clearlane_ib::Picoseconds;
use clearlane_workload::Rank;
use hdrhistogram::Histogram;
use rustc_hash::FxHashMap;

/// What to record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recording {
    /// Length of a slice of time; channels and groups are recorded per slice.
    pub slice: Picoseconds,
    /// How many slices; what happens later is not recorded.
    pub slices: u32,
    /// Flows are recorded one by one as long as they are no more than this.
    pub flows_max: u32,
}

/// Hooks of the engine. All have a default that does nothing.
pub(crate) trait Observer: Send {
    /// Whether the engine should bother to measure waiting.
    const ON: bool;
    /// A message was posted at `now`.
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
    fn records(self) -> Records;
}

/// What an observer hands out at the end.
#[derive(Default)]
pub(crate) struct Records {
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
    fn records(self) -> Records {
        Records::default()
    }
}

/// Octets of a packet that the data counters leave out: the variant CRC (IBA vol. 1, 16.1.3.5).
const VCRC: u32 = 2;

/// Records counters per channel and slices of time per group, flow and channel.
pub(crate) struct Recorder {
    what: Recording,
    groups: Vec<Vec<GroupSlice>>,
    flows: Vec<FlowRecord>,
    flow_of: FxHashMap<(u16, u32, u32), u32>,
    flows_dropped: bool,
    channels: Vec<ChannelRecord>,
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
        let channel = ChannelRecord {
            busy_ps: vec![0; slices],
            wait_ps: vec![0; slices],
            ..ChannelRecord::default()
        };
        Recorder {
            what,
            groups: vec![vec![slice; slices]; groups],
            flows: Vec::new(),
            flow_of: FxHashMap::default(),
            flows_dropped: false,
            channels: vec![channel; ports],
        }
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
        if self.flows.len() >= self.what.flows_max as usize {
            (self.flows_dropped, self.flows) = (true, Vec::new());
            self.flow_of = FxHashMap::default();
            return None;
        }
        self.flow_of.insert(key, self.flows.len() as u32);
        self.flows.push(FlowRecord {
            source: Rank(packet.source),
            destination: to,
            group: packet.group,
            delivered_payload_bytes: vec![0; self.what.slices as usize],
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
        let channel = &mut self.channels[port as usize];
        channel.port_xmit_pkts += 1;
        channel.port_xmit_data += u64::from(bytes - VCRC);
        spread(&mut channel.busy_ps, self.what.slice.0, now, now + busy);
    }

    fn on_received(&mut self, port: u32, bytes: u32) {
        let channel = &mut self.channels[port as usize];
        channel.port_rcv_pkts += 1;
        channel.port_rcv_data += u64::from(bytes - VCRC);
    }

    fn on_waited(&mut self, since: u64, now: u64, port: u32) {
        let channel = &mut self.channels[port as usize];
        channel.port_xmit_wait_ps += now - since;
        spread(&mut channel.wait_ps, self.what.slice.0, since, now);
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

    fn records(mut self) -> Records {
        self.flows.sort_by_key(|flow| (flow.group, flow.source, flow.destination));
        for channel in &mut self.channels {
            let full = channel.busy_ps.iter().all(|busy| *busy <= self.what.slice.0);
            assert!(full, "no link is busy for longer than the time that passes");
            // PortXmitData counts octets divided by 4 (IBA vol. 1, 16.1.3.5).
            channel.port_xmit_data /= 4;
            channel.port_rcv_data /= 4;
        }
        Records {
            slice: self.what.slice,
            groups: self.groups,
            flows: self.flows,
            flows_dropped: self.flows_dropped,
            channels: self.channels,
        }
    }
}
