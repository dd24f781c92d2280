//! The recorder, which notes grants, deliveries and waiting.

mod saved;

use crate::outcome::{ChannelRecord, FlowRecord, GroupSlice, Recorded, Tapped};
use crate::packet::Packet;
use crate::port::{NEVER, PortIndex};
use crate::records::{Records, blank, prefetch_place, room_for};
use crate::saved::holds;
use clearlane_ib::Picoseconds;
// The data counters leave the variant CRC out (IBA vol. 1, 16.1.3.5).
use clearlane_ib::wire::VCRC;
use clearlane_workload::Rank;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Settings of the recorder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recording {
    /// Length of a slice of time; channels and groups are recorded per slice.
    pub slice: Picoseconds,
    /// How many slices.
    pub slices: u32,
    /// Whether slices double in length, two becoming one, as often as the run outlasts them: for
    /// runs of unknown length. Without it, what happens after the last slice is not recorded.
    pub grows: bool,
    /// Flows are recorded one by one as long as their slices take no more than this. The same limit
    /// holds for the records of mechanisms, flow by flow.
    pub flow_bytes_max: u64,
}

impl Recording {
    /// The least that can be recorded: counters of ports and groups over the whole run, no flow.
    pub const TOTALS: Recording =
        Recording { slice: Picoseconds::MAX_RUN, slices: 1, grows: false, flow_bytes_max: 0 };
}

/// How time is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slices {
    /// Length of each, ps.
    pub(crate) length: u64,
    pub(crate) count: usize,
    grow: bool,
}

impl Slices {
    /// As a recording begins.
    pub(crate) fn of(what: &Recording) -> Self {
        let grow = what.grows && what.slices > 0 && what.slice.0 > 0;
        Slices { length: what.slice.0, count: what.slices as usize, grow }
    }

    /// How far they reach.
    pub(crate) fn end(&self) -> u64 {
        self.length.saturating_mul(self.count as u64)
    }

    /// Whether they are to double before they reach `time`.
    pub(crate) fn outlasted_by(&self, time: u64) -> bool {
        self.grow && self.end() < time
    }

    /// Slices that grow as far as they have come, 0 if they do not.
    pub(crate) fn grown_to(&self) -> u64 {
        if self.grow { self.end() } else { 0 }
    }

    /// The number from which on a slice is one too many; none is if they do not grow.
    fn too_many(&self) -> u64 {
        if self.grow { self.count as u64 } else { u64::MAX }
    }

    /// Has them as long as they were once. Nothing if they never are.
    pub(crate) fn load(&mut self, length: u64) -> Option<()> {
        while self.grow && self.length < length {
            self.length = self.length.saturating_mul(2);
        }
        holds(self.length == length)
    }

    /// Doubles their length until they reach `time`. Returns how often.
    pub(crate) fn reach(&mut self, time: u64) -> u32 {
        let mut doublings = 0;
        while self.outlasted_by(time) {
            self.length = self.length.saturating_mul(2);
            doublings += 1;
        }
        doublings
    }
}

/// Makes one of each two slices, `both` of a pair; those at the end become `empty`.
pub(crate) fn halve<T>(slices: &mut [T], empty: impl Fn() -> T, both: impl Fn(&mut T, T)) {
    for index in 0..slices.len() {
        let one = std::mem::replace(&mut slices[index], empty());
        match index % 2 {
            0 => slices[index / 2] = one,
            _ => both(&mut slices[index / 2], one),
        }
    }
}

/// Records counters per channel and slices of time per group, flow and channel.
pub(crate) struct Recorder {
    slices: Slices,
    /// Of [`Slices::too_many`].
    too_many: u64,
    flow_bytes_max: u64,
    groups: Vec<Vec<GroupSlice>>,
    flows: Vec<FlowRecord>,
    flow_of: FxHashMap<(u16, u32, u32), u32>,
    flows_dropped: bool,
    counters: Records<PortIndex, Counters>,
    /// The slice looked at last: its number, when it begins and when it ends.
    slice: (usize, u64, u64),
    has_taps: bool,
    /// Packets seen by taps since the last request.
    tapped: Vec<(PortIndex, Tapped)>,
    /// Time a link was busy, by port, then slice.
    busy_ps: Vec<u64>,
    /// Time a link waited for credits, by port, then slice.
    wait_ps: Vec<u64>,
}

/// Counters of a port; `ChannelRecord` says what they mean. Data counts octets here.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Counters {
    xmit_octets: u64,
    xmit_pkts: u64,
    wait_ps: u64,
    /// Since when the port has data and no credits, `NEVER` if it does not.
    stalled_since: u64,
    /// Time the link was busy in `slice`, not yet in `busy_ps`: here, because this line is at hand.
    busy_ps: u64,
    slice: u32,
    is_tapped: bool,
}

impl Recorder {
    pub(crate) fn new(what: Recording, groups: usize, ports: usize, taps: &[PortIndex]) -> Self {
        let fresh = Counters { stalled_since: NEVER, ..Counters::default() };
        let mut counters: Records<PortIndex, Counters> = blank(ports, fresh);
        taps.iter().for_each(|port| counters[*port].is_tapped = true);
        let slices = what.slices as usize;
        let cut = Slices::of(&what);
        Recorder {
            slices: cut,
            too_many: cut.too_many(),
            flow_bytes_max: what.flow_bytes_max,
            groups: vec![vec![GroupSlice::empty(); slices]; groups],
            flows: Vec::new(),
            flow_of: FxHashMap::default(),
            flows_dropped: false,
            counters,
            slice: (0, 0, what.slice.0),
            has_taps: !taps.is_empty(),
            tapped: Vec::new(),
            busy_ps: zeros(ports * slices),
            wait_ps: zeros(ports * slices),
        }
    }

    /// The number of the slice of a time, and when it ends. Times of one window are rarely of two.
    #[inline(always)]
    fn at(&mut self, time: u64) -> (usize, u64) {
        let (number, begin, end) = self.slice;
        if begin <= time && time < end {
            return (number, end);
        }
        let mut length = self.slices.length;
        if time / length >= self.too_many {
            self.reach(time + 1);
            length = self.slices.length;
        }
        let number = time / length;
        self.slice = (number as usize, number * length, (number + 1).saturating_mul(length));
        (self.slice.0, self.slice.2)
    }

    /// Slices that grow reach `time` from now on.
    #[inline(never)]
    fn reach(&mut self, time: u64) {
        let doublings = self.slices.reach(time);
        for _ in 0..doublings {
            self.double();
        }
        if doublings > 0 {
            self.slice = (0, 0, self.slices.length);
        }
    }

    /// Each two slices become one.
    fn double(&mut self) {
        let sum = |sum: &mut u64, one| *sum += one;
        for port in (0..self.counters.len() as u32).map(PortIndex) {
            self.put_down_busy(port);
            self.counters[port].slice /= 2;
            let slices = self.slices(port);
            halve(&mut self.busy_ps[slices.clone()], || 0, sum);
            halve(&mut self.wait_ps[slices], || 0, sum);
        }
        for group in &mut self.groups {
            halve(group, GroupSlice::empty, |sum, one| sum.add(&one));
        }
        for flow in &mut self.flows {
            halve(&mut flow.delivered_payload_bytes, || 0, sum);
        }
    }

    /// The slices of a port in `busy_ps` and `wait_ps`.
    fn slices(&self, port: PortIndex) -> Range<usize> {
        let (port, slices) = (port.0 as usize, self.slices.count);
        port * slices..(port + 1) * slices
    }

    /// `port` had data and no credits until `now`.
    #[inline(never)]
    fn has_waited(&mut self, port: PortIndex, now: u64) {
        let counters = &mut self.counters[port];
        let since = std::mem::replace(&mut counters.stalled_since, NEVER);
        counters.wait_ps += now - since;
        let slices = self.slices(port);
        spread(&mut self.wait_ps[slices], self.slices.length, since, now);
    }

    /// The link of `port` is busy during [now, now + busy), in another slice than last or in two.
    #[inline(never)]
    fn was_busy(&mut self, port: PortIndex, now: u64, busy: u64) {
        if self.slices.outlasted_by(now + busy) {
            self.reach(now + busy);
        }
        self.put_down_busy(port);
        let (length, end) = (self.slices.length, now + busy);
        // What falls into the last of its slices is put down when the port is busy in another. Not
        // `at`: a packet that ends where the slices do makes none of them double.
        let last = end / length;
        let (begin, count) = ((last * length).max(now), self.slices.count as u64);
        if begin > now {
            let slices = self.slices(port);
            spread(&mut self.busy_ps[slices], length, now, begin);
        }
        let counters = &mut self.counters[port];
        (counters.slice, counters.busy_ps) = (last.min(count) as u32, end - begin);
    }

    /// The time a link was busy joins that of its slice.
    fn put_down_busy(&mut self, port: PortIndex) {
        let counters = &mut self.counters[port];
        let (busy, slice) = (std::mem::take(&mut counters.busy_ps), counters.slice as usize);
        let slices = self.slices(port);
        if let Some(sum) = self.busy_ps[slices].get_mut(slice) {
            *sum += busy;
        }
    }

    fn slice_of(&mut self, at: u64) -> Option<usize> {
        let (number, _) = self.at(at);
        (number < self.slices.count).then_some(number)
    }

    fn flow(&mut self, packet: &Packet, to: Rank) -> Option<&mut FlowRecord> {
        if self.flows_dropped {
            return None;
        }
        let key = (packet.group, packet.source, to.0);
        if let Some(index) = self.flow_of.get(&key) {
            return Some(&mut self.flows[*index as usize]);
        }
        let slices = self.slices.count;
        if flow_bytes(self.flows.len() + 1, slices) > self.flow_bytes_max {
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

/// So many times of no length.
fn zeros(count: usize) -> Vec<u64> {
    let mut all = room_for(count);
    all.resize(count, 0);
    all
}

/// Octets of a packet that port counters count: all but its VCRC.
pub(crate) fn octets(packet: &Packet) -> u64 {
    u32::from(packet.bytes).saturating_sub(VCRC).into()
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

/// Hooks of the network.
impl Recorder {
    /// Notes that a message, or a stripe of one, was posted at `now`.
    pub(crate) fn on_posted(&mut self, now: u64, group: u16, wire_bytes: u64) {
        if let Some(slice) = self.slice_of(now) {
            self.groups[usize::from(group)][slice].offered_wire_bytes += wire_bytes;
        }
    }

    /// Notes that `port` transmits a packet during [now, now + busy).
    #[inline(always)]
    pub(crate) fn on_granted(&mut self, now: u64, port: PortIndex, packet: &Packet, busy: u64) {
        let (number, end) = self.at(now);
        let counters = &mut self.counters[port];
        counters.xmit_pkts += 1;
        counters.xmit_octets += octets(packet);
        let within = counters.slice as usize == number && now + busy <= end;
        if within {
            counters.busy_ps += busy;
        }
        if counters.stalled_since != NEVER {
            self.has_waited(port, now);
        }
        if !within {
            self.was_busy(port, now, busy);
        }
    }

    /// Whether packets at `port` are noted one by one.
    #[inline(always)]
    pub(crate) fn is_tapped(&self, port: PortIndex) -> bool {
        self.has_taps && self.counters[port].is_tapped
    }

    /// Notes a packet at a tapped port.
    pub(crate) fn on_tapped(&mut self, port: PortIndex, tapped: Tapped) {
        self.tapped.push((port, tapped));
    }

    /// Octets and packets that `port` has transmitted so far.
    pub(crate) fn transmitted(&self, port: PortIndex) -> (u64, u64) {
        (self.counters[port].xmit_octets, self.counters[port].xmit_pkts)
    }

    /// Notes that `port` has data and no credits from `now` on, until its next grant.
    pub(crate) fn on_credit_stalled(&mut self, now: u64, port: PortIndex) {
        let since = &mut self.counters[port].stalled_since;
        *since = (*since).min(now);
    }

    /// Prefetches the counters of `port`, at which something is about to happen.
    #[inline(always)]
    pub(crate) fn prefetch(&self, port: PortIndex) {
        self.counters.prefetch::<1>(port);
    }

    /// Prefetches the slice of `port`, which is about to send. Its counters have been prefetched.
    #[inline(always)]
    pub(crate) fn prefetch_slice(&self, port: PortIndex) {
        let slice = self.counters[port].slice as usize;
        prefetch_place(&self.busy_ps, port.0 as usize * self.slices.count + slice);
    }

    /// Packets that taps have seen since the last call.
    pub(crate) fn take_tapped(&mut self) -> Vec<(PortIndex, Tapped)> {
        std::mem::take(&mut self.tapped)
    }

    /// Notes that a data packet has arrived whole at `at`; `last` if it ends its message.
    pub(crate) fn on_delivered(&mut self, at: u64, packet: &Packet, to: Rank, last: bool) {
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

    /// Time that growing slices reach; 0 if slices do not grow.
    pub(crate) fn grown_to(&self) -> u64 {
        self.slices.grown_to()
    }

    /// Has growing slices reach `reach`.
    pub(crate) fn grow(&mut self, reach: u64) {
        self.reach(reach);
    }

    /// The records at the end of the run. Growing slices reach `reach`.
    pub(crate) fn finish(mut self, end: u64, reach: u64) -> Recorded {
        self.reach(reach);
        for port in (0..self.counters.len() as u32).map(PortIndex) {
            let since = self.counters[port].stalled_since;
            if since != NEVER {
                self.has_waited(port, end.max(since));
            }
            self.put_down_busy(port);
        }
        let full = self.busy_ps.iter().all(|busy| *busy <= self.slices.length);
        assert!(full, "no link is busy for longer than the time that passes");
        let channel = |(port, counters): (usize, &Counters)| {
            let slices = self.slices(PortIndex(port as u32));
            ChannelRecord {
                // PortXmitData counts octets divided by 4 (IBA vol. 1, 16.1.3.5).
                port_xmit_data: counters.xmit_octets / 4,
                port_xmit_pkts: counters.xmit_pkts,
                port_xmit_wait_ps: counters.wait_ps,
                busy_ps: self.busy_ps[slices.clone()].to_vec(),
                wait_ps: self.wait_ps[slices].to_vec(),
                ..ChannelRecord::default()
            }
        };
        let channels = self.counters.iter().enumerate().map(channel).collect();
        Recorded {
            groups: self.groups,
            flow_bytes: flow_bytes(self.flows.len(), self.slices.count),
            flows: self.flows,
            flows_dropped: self.flows_dropped,
            channels,
        }
    }
}

/// What so many flows take.
fn flow_bytes(flows: usize, slices: usize) -> u64 {
    (flows * slices * size_of::<u64>()) as u64
}
