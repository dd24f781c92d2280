//! What a simulation found out, in integers: nothing here depends on the order of events.

use crate::packet::{ACK, BECN, CNP, FECN, LAST, Packet, RELIABLE};
use clearlane_ib::Picoseconds;
use clearlane_ranks::Stuck;
use clearlane_workload::Rank;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How a run came to its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The simulated time asked for has passed.
    TimeReached,
    /// All programs are done and the network is empty.
    Drained,
    /// Buffers wait for each other in a circle.
    Deadlock(Deadlock),
    /// The programs that the run was to last for have ended.
    ProgramsEnded,
    /// These ranks wait for what will never happen: nothing of their program is under way.
    RanksWait(Vec<Stuck>),
}

/// A waiting buffer in a deadlock: packets in it wait for space in the next one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct WaitingBuffer {
    /// Name of the switch.
    pub switch: String,
    /// Input port whose buffer it is.
    pub port: u8,
    /// Lane.
    pub vl: u8,
    /// Output port the packet at the head wants.
    pub output: u8,
    /// Lane it wants there.
    pub output_vl: u8,
}

/// A cycle of buffers each of which waits for credits that only the next can free.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deadlock {
    /// When it was found.
    pub found_at: Picoseconds,
    /// The cycle, in the order of waiting, starting at its smallest member.
    pub cycle: Vec<WaitingBuffer>,
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "deadlock found at {}: ", self.found_at)?;
        for buffer in &self.cycle {
            let WaitingBuffer { switch, port, vl, output, output_vl } = buffer;
            write!(f, "{switch}[{port}] VL{vl} waits for [{output}] VL{output_vl} → ")?;
        }
        let first =
            self.cycle.first().map_or(String::new(), |b| format!("{}[{}]", b.switch, b.port));
        write!(f, "{first} VL{}", self.cycle.first().map_or(0, |b| b.vl))
    }
}

/// How a program of several ranks has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobRecord {
    /// Ranks that had not ended.
    pub unfinished: u32,
    /// When the last of those that had, did so.
    pub ended_at: Picoseconds,
}

/// Totals of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Grants at switch outputs of data packets, those to hosts included.
    pub packet_hops: u64,
    /// Grants at switch outputs of ACKs.
    pub ack_hops: u64,
    /// Data packets that entered the network.
    pub packets_injected: u64,
    /// Data packets that arrived.
    pub packets_delivered: u64,
    /// ACKs that entered the network.
    pub acks_injected: u64,
    /// ACKs that arrived.
    pub acks_delivered: u64,
    /// Grants at switch outputs of CNPs.
    pub cnp_hops: u64,
    /// CNPs that entered the network.
    pub cnps_injected: u64,
    /// CNPs that arrived.
    pub cnps_delivered: u64,
    /// FECNs set at switch outputs.
    pub packets_marked: u64,
    /// BECNs that reached a source, on ACKs and in CNPs.
    pub becns: u64,
    /// Messages posted to another host.
    pub messages_posted: u64,
    /// Messages whose last packet has arrived.
    pub messages_delivered: u64,
}

impl Totals {
    /// Adds those of another partition.
    pub(crate) fn add(&mut self, other: &Totals) {
        let Totals {
            packet_hops,
            ack_hops,
            packets_injected,
            packets_delivered,
            acks_injected,
            acks_delivered,
            cnp_hops,
            cnps_injected,
            cnps_delivered,
            packets_marked,
            becns,
            messages_posted,
            messages_delivered,
        } = other;
        for (sum, part) in [
            (&mut self.packet_hops, packet_hops),
            (&mut self.ack_hops, ack_hops),
            (&mut self.packets_injected, packets_injected),
            (&mut self.packets_delivered, packets_delivered),
            (&mut self.acks_injected, acks_injected),
            (&mut self.acks_delivered, acks_delivered),
            (&mut self.cnp_hops, cnp_hops),
            (&mut self.cnps_injected, cnps_injected),
            (&mut self.cnps_delivered, cnps_delivered),
            (&mut self.packets_marked, packets_marked),
            (&mut self.becns, becns),
            (&mut self.messages_posted, messages_posted),
            (&mut self.messages_delivered, messages_delivered),
        ] {
            *sum += part;
        }
    }

    /// Data packets, ACKs and CNPs in the network.
    pub(crate) fn in_flight(&self) -> u64 {
        let injected = self.packets_injected + self.acks_injected + self.cnps_injected;
        injected - self.packets_delivered - self.acks_delivered - self.cnps_delivered
    }
}

/// One slice of time of a flow group.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GroupSlice {
    /// Wire bytes of messages posted in the slice.
    pub offered_wire_bytes: u64,
    /// Wire bytes (headers included) of packets that arrived in the slice.
    pub delivered_wire_bytes: u64,
    /// Payload bytes of those packets.
    pub delivered_payload_bytes: u64,
    /// Messages that completed in the slice.
    pub messages: u64,
    /// Sum of their latencies in ps, post to last byte at the destination.
    pub latency_sum_ps: u128,
    /// Their latencies in nanoseconds, two significant digits.
    #[serde(with = "counts")]
    pub latency_ns: Histogram<u64>,
}

impl GroupSlice {
    /// Nothing has happened in it.
    pub fn empty() -> Self {
        GroupSlice {
            offered_wire_bytes: 0,
            delivered_wire_bytes: 0,
            delivered_payload_bytes: 0,
            messages: 0,
            latency_sum_ps: 0,
            // Two significant digits are within the range the constructor accepts (0 to 5).
            latency_ns: Histogram::new(2).expect("two significant digits are a valid precision"),
        }
    }

    /// Adds what happened in another partition or slice.
    pub fn add(&mut self, part: &GroupSlice) {
        self.offered_wire_bytes += part.offered_wire_bytes;
        self.delivered_wire_bytes += part.delivered_wire_bytes;
        self.delivered_payload_bytes += part.delivered_payload_bytes;
        self.messages += part.messages;
        self.latency_sum_ps += part.latency_sum_ps;
        let added = self.latency_ns.add(&part.latency_ns);
        added.expect("a histogram that resizes itself takes all that another holds");
    }
}

/// A flow: all messages of a group from one rank to another.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FlowRecord {
    /// Source.
    pub source: Rank,
    /// Destination.
    pub destination: Rank,
    /// Index of the group.
    pub group: u16,
    /// Payload bytes that arrived, by slice.
    pub delivered_payload_bytes: Vec<u64>,
}

/// Counters of a port, named as in PMA PortCountersExtended (IBA vol. 1, 16.1.3), 64 bits wide.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ChannelRecord {
    /// Index of the port's node in the fabric.
    pub node: u32,
    /// Port number.
    pub port: u8,
    /// Octets sent divided by 4, from the LRH up to but without the VCRC, of all lanes.
    pub port_xmit_data: u64,
    /// Packets sent.
    pub port_xmit_pkts: u64,
    /// Octets received divided by 4, without the VCRC. A switch counts packets that it may forward,
    /// an adapter counts packets that its switch has begun to send.
    pub port_rcv_data: u64,
    /// Packets received.
    pub port_rcv_pkts: u64,
    /// What PortXmitWait counts in ticks: time in ps with data to send and nothing sent because
    /// credits were missing.
    pub port_xmit_wait_ps: u64,
    /// Time the link was busy, by slice, in ps.
    pub busy_ps: Vec<u64>,
    /// Time it waited for credits, by slice, in ps.
    pub wait_ps: Vec<u64>,
}

/// Everything a run found out.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// Simulated time: as far as was asked for, or, of a run that came to its end before, when the
    /// last thing happened: a packet complete in a host's memory, a step of a program, a timer of a
    /// mechanism, a grant.
    pub duration: Picoseconds,
    /// Length of a slice of time in the end, where slices grow that at which they reach the
    /// duration and every packet that was still on its way; the last may be cut short by the end.
    pub slice: Picoseconds,
    /// Totals.
    pub totals: Totals,
    /// By group, then slice. Empty without a recorder.
    pub groups: Vec<Vec<GroupSlice>>,
    /// Flows by (group, source, destination); empty without a recorder or past its limit.
    pub flows: Vec<FlowRecord>,
    /// True if there were more flows than the recorder keeps, and `flows` is empty for that.
    pub flows_dropped: bool,
    /// Channels by (node, port). Empty without a recorder.
    pub channels: Vec<ChannelRecord>,
    /// What mechanisms did; empty without.
    pub control: ControlRecord,
    /// How programs of several ranks have ended, in the order they were given in.
    pub jobs: Vec<JobRecord>,
}

impl Outcome {
    /// Makes one group of those that stand for the queue pairs of one: `of` has the index of the
    /// whole by group, in ascending order without a gap.
    pub fn join(&mut self, of: &[u16]) {
        let whole = |group: u16| of.get(usize::from(group)).copied().unwrap_or(group);
        let mut groups: Vec<Vec<GroupSlice>> = Vec::new();
        for (group, slices) in std::mem::take(&mut self.groups).into_iter().enumerate() {
            match groups.get_mut(usize::from(whole(group as u16))) {
                None => groups.push(slices),
                Some(sums) => {
                    sums.resize_with(sums.len().max(slices.len()), GroupSlice::empty);
                    sums.iter_mut().zip(&slices).for_each(|(sum, slice)| sum.add(slice));
                }
            }
        }
        self.groups = groups;
        let key = |flow: &FlowRecord| (flow.group, flow.source, flow.destination);
        self.flows.iter_mut().for_each(|flow| flow.group = whole(flow.group));
        self.flows.sort_by_key(key);
        self.flows.dedup_by(|part, sum| {
            let same = key(part) == key(sum);
            if same {
                let (parts, sums) =
                    (&part.delivered_payload_bytes, &mut sum.delivered_payload_bytes);
                sums.resize(sums.len().max(parts.len()), 0);
                sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
            }
            same
        });
        for flow in &mut self.control.flows {
            let (own, group) = (flow.group, whole(flow.group));
            let first = of.iter().position(|of| *of == group).unwrap_or(0);
            flow.queue_pair = own.saturating_sub(first as u16);
            flow.group = group;
        }
    }
}

/// All flows that had something to tell: a BECN, or a reactor that changed its mind.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ControlRecord {
    /// By (group, source, destination, path). Empty if there were more than the recorder keeps.
    pub flows: Vec<FlowControl>,
    /// True if there were more.
    pub dropped: bool,
    /// What the flows take in the recorder.
    pub(crate) bytes: u64,
}

/// One flow under mechanisms.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FlowControl {
    /// Source.
    pub source: Rank,
    /// Destination.
    pub destination: Rank,
    /// Index of the flow group.
    pub group: u16,
    /// Path: LID offset.
    pub path: u8,
    /// Which of the group's queue pairs, where [`Outcome::join`] made several groups one.
    pub queue_pair: u16,
    /// BECNs that reached the source, on ACKs and in CNPs, by slice.
    pub becns: Vec<u32>,
    /// What the reactors show, by name: the value at the end of each slice; before the flow's first
    /// message that of a reactor that has heard of nothing.
    #[serde(with = "unnamed")]
    pub probes: Vec<(&'static str, Vec<u64>)>,
}

/// What a tap saw: the head of a packet coming in by a port, or a packet beginning to leave by it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Tapped {
    /// When its first bit leaves or, at an adapter, comes in; at a switch when what came in may be
    /// forwarded, which is later by the switch's delay.
    pub time: Picoseconds,
    /// The port: index of its node in the fabric, and number.
    pub node: u32,
    /// Number of the port.
    pub port: u8,
    /// Lane.
    pub vl: u8,
    /// True of a packet that leaves, false of one that comes in.
    pub granted: bool,
    /// Source LID; where forwarding is by rule, the rank.
    pub slid: u32,
    /// Destination LID; where forwarding is by rule, the rank.
    pub dlid: u32,
    /// Service level.
    pub sl: u8,
    /// Bytes on the wire, from the LRH to the VCRC.
    pub bytes: u16,
    /// Bytes of payload.
    pub payload: u16,
    /// Packet sequence number; of an ACK that of the packet acknowledged, of a CNP 0.
    pub psn: u32,
    /// What kind of packet it is.
    pub kind: PacketKind,
    /// Forward explicit congestion notification.
    pub fecn: bool,
    /// Backward explicit congestion notification.
    pub becn: bool,
    /// Rank that sent it.
    pub source: u32,
    /// Index of the flow group, of an ACK or a CNP that of the packet it answers; queue pairs of
    /// one group are told apart.
    pub group: u16,
    /// Whether it ends its message.
    pub last: bool,
    /// Whether it asks for an RDMA READ or answers one.
    pub read: Read,
    /// Of one that leaves a switch with mechanisms: bytes that wait for its output and lane after
    /// it. Nothing elsewhere.
    pub queued: Option<u64>,
    /// Of data that leaves an adapter, reliably and under a mechanism that decides when: the first
    /// number that mechanism shows of its flow, the CCTI of IBA congestion control.
    pub state: Option<u64>,
}

/// What a packet has to do with an RDMA READ.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Read {
    /// Nothing.
    Not,
    /// It asks for so many bytes.
    Request(u64),
    /// It has some of them.
    Response,
}

/// What a packet is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum PacketKind {
    /// Data on a reliable connection.
    RcData,
    /// A datagram.
    UdData,
    /// Acknowledgement of a reliable connection.
    Ack,
    /// Congestion notification packet.
    Cnp,
}

/// What is known at a place besides the packet.
#[derive(Clone, Copy, Default)]
pub(crate) struct Aside {
    pub(crate) queued: Option<u64>,
    pub(crate) state: Option<u64>,
}

impl Tapped {
    /// A packet at a port whose place in the fabric is filled in later.
    pub(crate) fn new(
        now: u64,
        lane: u8,
        granted: bool,
        packet: &Packet,
        read: Read,
        aside: Aside,
    ) -> Self {
        let kind = match packet.flags {
            flags if flags & CNP != 0 => PacketKind::Cnp,
            flags if flags & ACK != 0 => PacketKind::Ack,
            flags if flags & RELIABLE != 0 => PacketKind::RcData,
            _ => PacketKind::UdData,
        };
        Tapped {
            time: Picoseconds(now),
            node: 0,
            port: 0,
            vl: lane,
            granted,
            slid: packet.slid,
            dlid: packet.dlid,
            sl: packet.sl,
            bytes: packet.bytes,
            payload: packet.payload,
            psn: packet.psn,
            kind,
            fecn: packet.flags & FECN != 0,
            becn: packet.flags & BECN != 0,
            source: packet.source,
            group: packet.group,
            last: packet.flags & LAST != 0,
            read,
            queued: aside.queued,
            state: aside.state,
        }
    }
}

/// Records of one partition.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Recorded {
    pub(crate) groups: Vec<Vec<GroupSlice>>,
    pub(crate) flows: Vec<FlowRecord>,
    /// What the flows take in the recorder.
    pub(crate) flow_bytes: u64,
    pub(crate) flows_dropped: bool,
    /// By port of the partition.
    pub(crate) channels: Vec<ChannelRecord>,
}

/// A histogram as its values and how often each was seen: exact, because values of one bucket are
/// one value.
mod counts {
    use hdrhistogram::Histogram;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(all: &Histogram<u64>, to: S) -> Result<S::Ok, S::Error> {
        let recorded = all.iter_recorded();
        let counts: Vec<(u64, u64)> =
            recorded.map(|value| (value.value_iterated_to(), value.count_at_value())).collect();
        counts.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Histogram<u64>, D::Error> {
        let mut all = super::GroupSlice::empty().latency_ns;
        for (value, count) in Vec::<(u64, u64)>::deserialize(from)? {
            all.record_n(value, count).map_err(serde::de::Error::custom)?;
        }
        Ok(all)
    }
}

/// What probes show without their names, which are of the program.
mod unnamed {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    type Probes = [(&'static str, Vec<u64>)];

    pub(super) fn serialize<S: Serializer>(all: &Probes, to: S) -> Result<S::Ok, S::Error> {
        let values: Vec<&Vec<u64>> = all.iter().map(|(_, values)| values).collect();
        values.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<(&'static str, Vec<u64>)>, D::Error> {
        let values = Vec::<Vec<u64>>::deserialize(from)?;
        Ok(values.into_iter().map(|values| ("", values)).collect())
    }
}
