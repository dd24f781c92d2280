//! One direction between two queue pairs, as it was seen at one place.

use crate::dissect::{Carrier, Crcs, Packet, Role, Truth};
use crate::endpoint::Endpoint;
use crate::sequence::{Sequence, SequenceCounts};
use crate::slices::{Grid, Joined, Sliced};
use clearlane_ib::{Acknowledged, Psn, Service};
use hdrhistogram::Histogram;

/// Who sends to whom: one direction, told apart by what the packets themselves say.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FlowKey {
    /// What it travels over.
    pub carrier: Carrier,
    /// Who sends.
    pub source: Endpoint,
    /// Who receives.
    pub destination: Endpoint,
    /// The receiver's queue pair.
    pub queue_pair: u32,
    /// The sender's, of datagrams, which say it.
    pub source_queue_pair: Option<u32>,
}

impl FlowKey {
    /// That of a packet.
    #[inline(always)]
    pub fn of(packet: &Packet) -> Self {
        FlowKey {
            carrier: packet.carrier,
            source: packet.source,
            destination: packet.destination,
            queue_pair: packet.bth.destination.value(),
            source_queue_pair: packet.source_queue_pair,
        }
    }
}

/// What happened in a slice of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Slice {
    /// Bytes on the wire of all packets.
    pub wire_bytes: u64,
    /// Bytes of payload.
    pub payload_bytes: u64,
    /// Packets with data.
    pub data_packets: u32,
    /// Those of them with FECN or CE.
    pub marked: u32,
    /// Packets with BECN that are no CNPs.
    pub becn: u32,
    /// CNPs.
    pub cnp: u32,
    /// Retransmitted packets.
    pub retransmitted: u32,
}

impl Joined for Slice {
    fn join(&mut self, other: &Self) {
        self.wire_bytes += other.wire_bytes;
        self.payload_bytes += other.payload_bytes;
        self.data_packets += other.data_packets;
        self.marked += other.marked;
        self.becn += other.becn;
        self.cnp += other.cnp;
        self.retransmitted += other.retransmitted;
    }
}

/// What was counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// All packets.
    pub packets: u64,
    /// Bytes on the wire of all packets.
    pub wire_bytes: u64,
    /// Packets with data.
    pub data_packets: u64,
    /// Bytes of payload.
    pub payload_bytes: u64,
    /// Packets with FECN.
    pub fecn: u64,
    /// Packets with CE in the IP header.
    pub ce: u64,
    /// Packets with data and FECN or CE.
    pub marked: u64,
    /// Packets with BECN that are no CNPs.
    pub becn: u64,
    /// CNPs, of either opcode.
    pub cnp: u64,
    /// Acknowledgements.
    pub acks: u64,
    /// RNR NAKs: the receiver was not ready.
    pub rnr_naks: u64,
    /// NAKs of a PSN sequence error: a packet was lost.
    pub sequence_naks: u64,
    /// Other NAKs.
    pub other_naks: u64,
    /// Packets with a wrong CRC of either kind, if that is checked.
    pub wrong_crcs: u64,
    /// Packets of which a CRC was checked.
    pub checked_crcs: u64,
}

impl Counts {
    /// Counts a packet.
    #[inline(always)]
    fn add(&mut self, packet: &Packet) {
        self.packets += 1;
        self.wire_bytes += u64::from(packet.wire_bytes);
        self.data_packets += u64::from(packet.role.is_data());
        self.payload_bytes += u64::from(packet.payload_bytes);
        let is_marked = packet.bth.fecn || packet.bth.becn || packet.ce;
        if is_marked || packet.acknowledged.is_some() || packet.crcs != Crcs::default() {
            self.add_rare(packet);
        }
    }

    /// Counts what most packets do not have.
    fn add_rare(&mut self, packet: &Packet) {
        let is_cnp = packet.role == Role::Cnp;
        self.fecn += u64::from(packet.bth.fecn);
        self.ce += u64::from(packet.ce);
        self.marked += u64::from(packet.is_marked());
        self.becn += u64::from(packet.bth.becn && !is_cnp);
        match packet.acknowledged {
            None => {}
            Some(Acknowledged::Ack) => self.acks += 1,
            Some(Acknowledged::NotReady) => self.rnr_naks += 1,
            Some(Acknowledged::Nak(Acknowledged::SEQUENCE_ERROR)) => self.sequence_naks += 1,
            Some(_) => self.other_naks += 1,
        }
        let crcs = [packet.crcs.invariant, packet.crcs.variant];
        if crcs != [Truth::Unknown; 2] {
            self.checked_crcs += 1;
            self.wrong_crcs += u64::from(crcs.contains(&Truth::Wrong));
        }
    }

    /// NAKs of all kinds.
    pub fn naks(&self) -> u64 {
        self.rnr_naks + self.sequence_naks + self.other_naks
    }

    /// Adds what another has.
    pub fn join(&mut self, other: &Counts) {
        self.packets += other.packets;
        self.wire_bytes += other.wire_bytes;
        self.data_packets += other.data_packets;
        self.payload_bytes += other.payload_bytes;
        self.fecn += other.fecn;
        self.ce += other.ce;
        self.marked += other.marked;
        self.becn += other.becn;
        self.cnp += other.cnp;
        self.acks += other.acks;
        self.rnr_naks += other.rnr_naks;
        self.sequence_naks += other.sequence_naks;
        self.other_naks += other.other_naks;
        self.wrong_crcs += other.wrong_crcs;
        self.checked_crcs += other.checked_crcs;
    }
}

/// A flow under way.
pub(crate) struct Flow {
    pub(crate) key: FlowKey,
    /// Number of the interface it was seen at.
    pub(crate) point: u32,
    pub(crate) service: Service,
    pub(crate) lane: Option<(u8, u8)>,
    pub(crate) counts: Counts,
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
    /// The first packet with FECN or CE, and the first CNP.
    pub(crate) first_mark_ns: Option<u64>,
    pub(crate) first_cnp_ns: Option<u64>,
    pub(crate) requests: Sequence,
    pub(crate) responses: Sequence,
    /// The first and the last packet with data.
    first_data_ns: Option<u64>,
    last_data_ns: u64,
    /// Times between packets with data, ns.
    pub(crate) gaps: Histogram<u32>,
    pub(crate) slices: Sliced<Slice>,
    /// The direction that its responses answer, and how many packets in a row said so.
    pub(crate) answers: Option<(usize, u32)>,
    /// Packets that could have answered several.
    pub(crate) undecided: u32,
    /// The number of the last response.
    pub(crate) answered: Option<Psn>,
}

/// Gaps longer than this are counted as this.
const GAP_NS_MAX: u64 = 1 << 40;
/// Payload of the packets of an RDMA READ's response if nothing else is known: the least MTU.
const LEAST_MTU: u32 = 256;

impl Flow {
    pub(crate) fn new(key: FlowKey, point: u32, packet: &Packet) -> Self {
        Flow {
            key,
            point,
            service: packet.bth.opcode.service(),
            lane: packet.lane,
            counts: Counts::default(),
            first_ns: packet.time_ns,
            last_ns: packet.time_ns,
            first_mark_ns: None,
            first_cnp_ns: None,
            requests: Sequence::default(),
            responses: Sequence::default(),
            first_data_ns: None,
            last_data_ns: 0,
            gaps: Histogram::new(1).expect("one digit is a precision that there is"),
            slices: Sliced::default(),
            answers: None,
            undecided: 0,
            answered: None,
        }
    }

    /// Counts a packet.
    #[inline(always)]
    pub(crate) fn add(&mut self, packet: &Packet, grid: &mut Grid) {
        let is_cnp = packet.role == Role::Cnp;
        self.counts.add(packet);
        self.first_ns = self.first_ns.min(packet.time_ns);
        self.last_ns = self.last_ns.max(packet.time_ns);
        let number = grid.slice_of(packet.time_ns);
        let slice = self.slices.at(grid, number);
        slice.wire_bytes += u64::from(packet.wire_bytes);
        slice.payload_bytes += u64::from(packet.payload_bytes);
        if packet.bth.fecn || packet.bth.becn || packet.ce {
            slice.marked += u32::from(packet.is_marked());
            slice.becn += u32::from(packet.bth.becn && !is_cnp);
        }
        if !packet.role.is_data() {
            if is_cnp {
                self.counts.cnp += 1;
                slice.cnp += 1;
                self.first_cnp_ns.get_or_insert(packet.time_ns);
            }
            return;
        }
        slice.data_packets += 1;
        slice.retransmitted += Self::number(&mut self.requests, &mut self.responses, packet);
        self.service = packet.bth.opcode.service();
        let gap = packet.time_ns.saturating_sub(self.last_data_ns).min(GAP_NS_MAX);
        if self.counts.data_packets > 1 {
            // One that grows takes whatever it is told.
            let _ = self.gaps.record(gap);
        }
        self.first_data_ns.get_or_insert(packet.time_ns);
        self.last_data_ns = packet.time_ns;
        if packet.is_marked() {
            self.first_mark_ns.get_or_insert(packet.time_ns);
        }
    }

    /// The first and the last packet with data, of any if none has: what a rate is over.
    pub(crate) fn span_ns(&self) -> (u64, u64) {
        match self.first_data_ns {
            Some(first) => (first.min(self.last_data_ns), first.max(self.last_data_ns)),
            None => (self.first_ns, self.last_ns),
        }
    }

    /// Takes note of a sequence number. Returns how many packets are now known to be sent again.
    #[inline(always)]
    fn number(requests: &mut Sequence, responses: &mut Sequence, packet: &Packet) -> u32 {
        let psn = packet.bth.psn;
        match packet.role {
            Role::Request => requests.add(psn, 0),
            Role::ReadRequest => {
                let packets = packet.dma_bytes.unwrap_or(0).div_ceil(LEAST_MTU);
                requests.add(psn, packets.saturating_sub(1))
            }
            // After the last packet of one come the numbers of requests without a response.
            Role::Response => match packet.bth.opcode.operation() {
                0x0f | 0x10 => responses.add(psn, u32::from(u16::MAX)),
                _ => responses.add(psn, 0),
            },
            Role::Unnumbered | Role::Acknowledgement | Role::Cnp => 0,
        }
    }

    /// What sequence numbers of both kinds told.
    pub(crate) fn sequence(&self) -> SequenceCounts {
        let (a, b) = (self.requests.counts(), self.responses.counts());
        SequenceCounts {
            gaps: a.gaps + b.gaps,
            missing: a.missing + b.missing,
            reordered: a.reordered + b.reordered,
            retransmitted: a.retransmitted + b.retransmitted,
        }
    }
}
