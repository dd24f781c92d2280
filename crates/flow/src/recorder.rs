//! What is noted down: counters of channels, and slices of time of channels, groups and flows.

use crate::links::Channel;
use crate::slices::{Slices, halve, level};
use crate::ways::Way;
use clearlane_ib::wire::VCRC;
use clearlane_sim::{ChannelRecord, FlowRecord, GroupSlice, Recording};
use clearlane_workload::Rank;
use rustc_hash::FxHashMap;

/// Whom a delivery is accounted to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Account {
    pub(crate) group: u16,
    pub(crate) source: u32,
    pub(crate) destination: u32,
}

/// Bytes that cross links or arrive.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Amount {
    /// With headers.
    pub(crate) wire: u64,
    pub(crate) payload: u64,
    /// Packets that these bytes would be.
    pub(crate) packets: u64,
}

impl Amount {
    /// Both together.
    pub(crate) const fn and(self, other: Amount) -> Self {
        Amount {
            wire: self.wire + other.wire,
            payload: self.payload + other.payload,
            packets: self.packets + other.packets,
        }
    }
}

/// Notes down what happens. Bytes of a message are spread evenly over the time that it took.
pub(crate) struct Recorder {
    slices: Slices,
    flow_bytes_max: u64,
    groups: Vec<Vec<GroupSlice>>,
    flows: Vec<FlowRecord>,
    flow_of: FxHashMap<Account, u32>,
    flows_dropped: bool,
    /// By channel.
    counters: Vec<Counters>,
    /// Time a channel was busy, by channel, then slice.
    busy_ps: Vec<u64>,
    /// Parts of one amount, by slice.
    parts: Vec<(usize, u64)>,
}

/// Counters of a channel. Half a cache line: a message meets a score of them.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Counters {
    /// All but VCRCs.
    octets: u64,
    packets: u64,
    /// Time it was busy in `slice`, not yet in `busy_ps`.
    busy_ps: u64,
    slice: u32,
    /// Its rate.
    femtoseconds_per_byte: u32,
}

impl Counters {
    /// How long it is busy with so many bytes, ps, to the nearest.
    fn busy(&self, bytes: u64) -> u64 {
        (bytes * u64::from(self.femtoseconds_per_byte) + 500) / 1000
    }
}

/// What is found in the end.
#[derive(Default)]
pub(crate) struct Recorded {
    /// Length of a slice in the end, ps.
    pub(crate) slice: u64,
    pub(crate) groups: Vec<Vec<GroupSlice>>,
    pub(crate) flows: Vec<FlowRecord>,
    pub(crate) flows_dropped: bool,
    pub(crate) channels: Vec<ChannelRecord>,
}

impl Recorder {
    /// Nothing yet, of so many groups and of these channels.
    pub(crate) fn new(what: &Recording, groups: usize, channels: &[Channel]) -> Self {
        let slices = Slices::of(what);
        let blank = |channel: &Channel| Counters {
            octets: 0,
            packets: 0,
            busy_ps: 0,
            slice: 0,
            femtoseconds_per_byte: channel.rate.femtoseconds_per_byte(),
        };
        Recorder {
            flow_bytes_max: what.flow_bytes_max,
            groups: vec![vec![GroupSlice::empty(); slices.count]; groups],
            flows: Vec::new(),
            flow_of: FxHashMap::default(),
            flows_dropped: false,
            counters: channels.iter().map(blank).collect(),
            busy_ps: vec![0; channels.len() * slices.count],
            parts: Vec::new(),
            slices,
        }
    }

    /// Slices that grow reach `time` from now on.
    #[inline]
    fn reach(&mut self, time: u64) {
        if self.slices.outlasted_by(time) {
            self.double_to(time);
        }
    }

    #[cold]
    fn double_to(&mut self, time: u64) {
        self.put_down_busy();
        for _ in 0..self.slices.reach(time) {
            let sum = |sum: &mut u64, one| *sum += one;
            self.busy_ps.chunks_mut(self.slices.count).for_each(|busy| halve(busy, || 0, sum));
            for group in &mut self.groups {
                halve(group, GroupSlice::empty, |sum, one| sum.add(&one));
            }
            for flow in &mut self.flows {
                halve(&mut flow.delivered_payload_bytes, || 0, sum);
            }
        }
    }

    /// The time that channels were busy joins that of its slices.
    fn put_down_busy(&mut self) {
        let count = self.slices.count;
        for (at, counters) in self.counters.iter_mut().enumerate() {
            let busy = std::mem::take(&mut counters.busy_ps);
            if let Some(sum) = self.busy_ps.get_mut(at * count + counters.slice as usize) {
                *sum += busy;
            }
            counters.slice = 0;
        }
    }

    /// A message of so many bytes with headers has been posted.
    pub(crate) fn posted(&mut self, at: u64, group: u16, wire: u64) {
        self.reach(at + 1);
        if let Some(slice) = self.slices.at(at) {
            self.groups[usize::from(group)][slice].offered_wire_bytes += wire;
        }
    }

    /// The slice that a span of time is in, if it is in one.
    pub(crate) fn only_slice(&mut self, span: (u64, u64)) -> Option<usize> {
        self.reach(span.1);
        self.slices.only(span)
    }

    /// What has passed by a way crosses its channels.
    pub(crate) fn passed(&mut self, way: &Way) {
        let channels = way.channels.iter().copied();
        self.carried(channels, (way.when, way.when + 1), way.passed);
    }

    /// Bytes cross channels.
    pub(crate) fn carried(
        &mut self,
        route: impl Iterator<Item = u32>,
        span: (u64, u64),
        amount: Amount,
    ) {
        self.reach(span.1);
        let octets = amount.wire.saturating_sub(amount.packets * u64::from(VCRC));
        let (count, mut spread) = (self.slices.count, None);
        let within = self.slices.only(span);
        for channel in route {
            let counters = &mut self.counters[channel as usize];
            counters.octets += octets;
            counters.packets += amount.packets;
            let busy = counters.busy(amount.wire);
            let all = channel as usize * count;
            match within {
                Some(slice) if slice == counters.slice as usize => counters.busy_ps += busy,
                Some(slice) if slice < count => {
                    self.busy_ps[all + counters.slice as usize] += counters.busy_ps;
                    (counters.busy_ps, counters.slice) = (busy, slice as u32);
                }
                Some(_) => {}
                None => {
                    // Links of one rate are as busy.
                    if spread != Some(busy) {
                        spread = Some(busy);
                        self.parts.clear();
                        self.slices.spread(span, busy, |at, part| self.parts.push((at, part)));
                    }
                    self.parts.iter().for_each(|(at, part)| self.busy_ps[all + at] += part);
                }
            }
        }
    }

    /// Bytes arrive.
    pub(crate) fn delivered(&mut self, account: Account, span: (u64, u64), amount: Amount) {
        self.reach(span.1);
        let (slices, group) = (self.slices, &mut self.groups[usize::from(account.group)]);
        slices.spread(span, amount.wire, |at, part| group[at].delivered_wire_bytes += part);
        slices.spread(span, amount.payload, |at, part| group[at].delivered_payload_bytes += part);
        if let Some(flow) = self.flow(account) {
            let by_slice = &mut flow.delivered_payload_bytes;
            slices.spread(span, amount.payload, |at, part| by_slice[at] += part);
        }
    }

    /// A message is complete, so long after it was posted.
    pub(crate) fn completed(&mut self, at: u64, group: u16, latency: u64) {
        self.reach(at + 1);
        let Some(slice) = self.slices.at(at) else { return };
        let slice = &mut self.groups[usize::from(group)][slice];
        slice.messages += 1;
        slice.latency_sum_ps += u128::from(latency);
        let recorded = slice.latency_ns.record(latency.div_ceil(1000));
        recorded.expect("a histogram that resizes itself takes every time of a run");
    }

    fn flow(&mut self, account: Account) -> Option<&mut FlowRecord> {
        if self.flows_dropped {
            return None;
        }
        if let Some(index) = self.flow_of.get(&account) {
            return self.flows.get_mut(*index as usize);
        }
        let slices = self.slices.count;
        let bytes = (self.flows.len() + 1) * slices * size_of::<u64>();
        if bytes as u64 > self.flow_bytes_max {
            (self.flows_dropped, self.flows) = (true, Vec::new());
            self.flow_of = FxHashMap::default();
            return None;
        }
        self.flow_of.insert(account, self.flows.len() as u32);
        self.flows.push(FlowRecord {
            source: Rank(account.source),
            destination: Rank(account.destination),
            group: account.group,
            delivered_payload_bytes: vec![0; slices],
        });
        self.flows.last_mut()
    }

    /// What was found by the end of the run. What a port has received is what the other end of its
    /// cable has sent: `peers` has its channel, by channel.
    pub(crate) fn finish(
        mut self,
        peers: &[Option<u32>],
        channels: &[Channel],
        end: u64,
    ) -> Recorded {
        self.reach(end);
        self.put_down_busy();
        let slices = self.slices;
        let sent = |at: usize| (self.counters[at].octets, self.counters[at].packets);
        let busy = self.busy_ps.chunks_mut(slices.count.max(1));
        let record = |((at, channel), busy): ((usize, &Channel), &mut [u64])| {
            level(busy, slices.length);
            let peer = peers[at].map_or((0, 0), |peer| sent(peer as usize));
            // PortXmitData and PortRcvData count octets divided by 4 (IBA vol. 1, 16.1.3.5).
            ChannelRecord {
                node: channel.end.node.0,
                port: channel.end.port.value(),
                port_xmit_data: sent(at).0 / 4,
                port_xmit_pkts: sent(at).1,
                port_rcv_data: peer.0 / 4,
                port_rcv_pkts: peer.1,
                port_xmit_wait_ps: 0,
                busy_ps: busy.to_vec(),
                wait_ps: vec![0; slices.count],
            }
        };
        let channels = channels.iter().enumerate().zip(busy).map(record).collect();
        self.flows.sort_by_key(|flow| (flow.group, flow.source, flow.destination));
        Recorded {
            slice: slices.length,
            groups: self.groups,
            flows: self.flows,
            flows_dropped: self.flows_dropped,
            channels,
        }
    }
}
