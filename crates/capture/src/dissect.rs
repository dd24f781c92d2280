//! The headers of one packet, of InfiniBand, RoCE v1 or RoCE v2.

use crate::endpoint::Endpoint;
use clearlane_ib::{Acknowledged, Aeth, Bth, Extended, Grh, Lrh, Opcode, Service, crc};

/// What a packet travels over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Carrier {
    /// InfiniBand.
    Native,
    /// RoCE v1: a GRH behind an ethertype.
    RoceV1,
    /// RoCE v2: behind IP and UDP.
    RoceV2,
}

impl Carrier {
    /// What people call it.
    pub const fn name(self) -> &'static str {
        match self {
            Carrier::Native => "InfiniBand",
            Carrier::RoceV1 => "RoCE v1",
            Carrier::RoceV2 => "RoCE v2",
        }
    }
}

/// What a record turned out to hold.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Dissected {
    /// A packet of InfiniBand's transport.
    Packet(Packet),
    /// Anything else.
    Other(Other),
}

/// What is no packet of InfiniBand's transport.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Other {
    /// Other traffic of the network.
    NotRdma,
    /// A packet of InfiniBand without a BTH: raw, or IPv6 at the link.
    Raw,
    /// The capture has too little of it to read its headers.
    Cut,
    /// Lengths that contradict each other.
    Malformed,
}

/// Whether a CRC is right.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Truth {
    /// It was not asked for, the packet was cut, or has none.
    #[default]
    Unknown,
    /// It is right.
    Right,
    /// It is wrong.
    Wrong,
}

impl Truth {
    fn of(right: Option<bool>) -> Self {
        match right {
            Some(true) => Truth::Right,
            Some(false) => Truth::Wrong,
            None => Truth::Unknown,
        }
    }
}

/// The CRCs of a packet. RoCE has no variant one; the frame check sequence is not captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Crcs {
    /// The invariant one.
    pub invariant: Truth,
    /// The variant one.
    pub variant: Truth,
}

/// A packet of InfiniBand's transport.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Packet {
    /// When it was captured: nanoseconds since 1970.
    pub time_ns: u64,
    /// What it travels over.
    pub carrier: Carrier,
    /// Who sent it.
    pub source: Endpoint,
    /// To whom.
    pub destination: Endpoint,
    /// Virtual lane and service level, of InfiniBand.
    pub lane: Option<(u8, u8)>,
    /// Its BTH.
    pub bth: Bth,
    /// What it does, as its opcode says.
    pub role: Role,
    /// Queue pair that sent it, where the packet says so: a datagram's.
    pub source_queue_pair: Option<u32>,
    /// What it acknowledges, of one with an AETH.
    pub acknowledged: Option<Acknowledged>,
    /// DMALen, of one with a RETH.
    pub dma_bytes: Option<u32>,
    /// Congestion experienced: a switch has marked its IP header (RFC 3168).
    pub ce: bool,
    /// Bytes on the wire: from LRH to VCRC; of RoCE the frame as the file says.
    pub wire_bytes: u32,
    /// Bytes of payload, padding left out.
    pub payload_bytes: u32,
    /// Its CRCs.
    pub crcs: Crcs,
}

/// A record whose packet is looked for.
#[derive(Clone, Copy)]
pub(crate) struct Whole<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) wire_bytes: u32,
    pub(crate) time_ns: u64,
    /// Whether CRCs are asked for.
    pub(crate) crcs: bool,
}

/// What is known of an opcode, computed once.
#[derive(Clone, Copy)]
struct Known {
    extended: Extended,
    role: Role,
}

/// What a packet does in its flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Role {
    /// Data or a request, numbered by its sender.
    Request,
    /// The same, and it takes as many numbers as the response has packets: asks for an RDMA READ.
    ReadRequest,
    /// Data that answers an RDMA READ, with the numbers of the request.
    Response,
    /// A datagram, or of a service that is not known: its numbers say nothing.
    Unnumbered,
    /// Acknowledges, with or without the result of an atomic operation.
    Acknowledgement,
    /// Notifies of congestion.
    Cnp,
}

impl Role {
    const fn of(opcode: Opcode) -> Self {
        let acknowledges = matches!(opcode.operation(), 0x11 | 0x12);
        match opcode.service() {
            Service::Cnp => Role::Cnp,
            _ if opcode.is_response() && acknowledges => Role::Acknowledgement,
            _ if opcode.is_response() => Role::Response,
            _ if opcode.is_read_request() => Role::ReadRequest,
            Service::Rc | Service::Uc | Service::Rd | Service::Xrc => Role::Request,
            Service::Ud | Service::Other => Role::Unnumbered,
        }
    }

    /// Whether the packet carries data or asks for some.
    #[inline(always)]
    pub const fn is_data(self) -> bool {
        !matches!(self, Role::Acknowledgement | Role::Cnp)
    }
}

static OPCODES: [Known; 256] = {
    let mut all = [Known { extended: Opcode(0).extended(), role: Role::of(Opcode(0)) }; 256];
    let mut number = 0;
    while number < all.len() {
        let opcode = Opcode(number as u8);
        all[number] = Known { extended: opcode.extended(), role: Role::of(opcode) };
        number += 1;
    }
    all
};

const ICRC: usize = 4;
const VCRC: usize = 2;
const UDP: usize = 8;
/// LNH: BTH next, and GRH next (IBA vol. 1, 7.7.4).
const LNH_BTH: u8 = 2;
const LNH_GRH: u8 = 3;
/// Both bits of ECN: congestion experienced.
const CE: u8 = 3;

/// A packet of InfiniBand, from its LRH.
pub(crate) fn native(whole: Whole<'_>) -> Dissected {
    let bytes = whole.bytes;
    let Some(lrh) = bytes.first_chunk::<{ Lrh::BYTES }>() else {
        return Dissected::Other(Other::Cut);
    };
    let next = lrh[1] & 3;
    let words = u16::from_be_bytes([lrh[4], lrh[5]]) & 0x7ff;
    // To the end of the invariant CRC.
    let end = usize::from(words) * 4;
    let bth_at = match next {
        LNH_BTH => Lrh::BYTES,
        LNH_GRH => match bytes.get(Lrh::BYTES + 6) {
            Some(&Grh::BTH_NEXT) => Lrh::BYTES + Grh::BYTES,
            Some(_) => return Dissected::Other(Other::Raw),
            None => return Dissected::Other(Other::Cut),
        },
        _ => return Dissected::Other(Other::Raw),
    };
    let lid = |high, low| Endpoint::Lid(u16::from_be_bytes([high, low]));
    let ends = (lid(lrh[6], lrh[7]), lid(lrh[2], lrh[3]));
    let around = Around { carrier: Carrier::Native, ends, end, ce: false };
    let mut packet = match transport(whole, bth_at, &around) {
        Ok(packet) => packet,
        Err(other) => return Dissected::Other(other),
    };
    packet.lane = Some((lrh[0] >> 4, lrh[1] >> 4));
    packet.wire_bytes = (end + VCRC) as u32;
    if whole.crcs && bytes.len() >= end + VCRC {
        let covered = &bytes[..end - ICRC];
        let invariant = match next {
            LNH_GRH => crc::invariant_global(&covered[Lrh::BYTES..]),
            _ => crc::invariant_local(covered),
        };
        let variant = u16::from_le_bytes([bytes[end], bytes[end + 1]]);
        packet.crcs = Crcs {
            invariant: Truth::of(right(bytes, end, invariant)),
            variant: Truth::of(Some(crc::variant(&bytes[..end]) == variant)),
        };
    }
    Dissected::Packet(packet)
}

/// A packet of RoCE v1, its GRH at a place of the record.
pub(crate) fn roce_v1(whole: Whole<'_>, at: usize) -> Dissected {
    let rest = whole.bytes.get(at..).unwrap_or_default();
    let Some(grh) = rest.first_chunk::<{ Grh::BYTES }>() else {
        return Dissected::Other(Other::Cut);
    };
    let Ok(grh) = Grh::read(grh) else { return Dissected::Other(Other::Malformed) };
    if grh.next_header != Grh::BTH_NEXT {
        return Dissected::Other(Other::Raw);
    }
    let bth_at = at + Grh::BYTES;
    let around = Around {
        carrier: Carrier::RoceV1,
        ends: (Endpoint::Gid(grh.source), Endpoint::Gid(grh.destination)),
        end: bth_at + usize::from(grh.payload_bytes),
        // A GRH has no ECN (IBA vol. 1, 8.3.2; annex A16): RoCE v1 marks in the BTH, if at all.
        ce: false,
    };
    finished(whole, bth_at, &around, |covered| crc::invariant_global(&covered[at..]))
}

/// A packet of RoCE v2: IP and UDP headers at these places of the record, the class of the IP
/// header.
#[inline(always)]
pub(crate) fn roce_v2(
    whole: Whole<'_>,
    ip: usize,
    udp: usize,
    ends: (Endpoint, Endpoint),
    class: u8,
) -> Dissected {
    let Some(header) = whole.bytes.get(udp..).and_then(<[u8]>::first_chunk::<UDP>) else {
        return Dissected::Other(Other::Cut);
    };
    let around = Around {
        carrier: Carrier::RoceV2,
        ends,
        end: udp + usize::from(u16::from_be_bytes([header[4], header[5]])),
        ce: class & CE == CE,
    };
    finished(whole, udp + UDP, &around, |covered| crc::invariant_ip(&covered[ip..]))
}

/// A packet of RoCE, and its CRC of what lies before that.
#[inline(always)]
fn finished(
    whole: Whole<'_>,
    bth_at: usize,
    around: &Around,
    invariant: impl Fn(&[u8]) -> Option<u32>,
) -> Dissected {
    match transport(whole, bth_at, around) {
        Ok(mut packet) => {
            packet.wire_bytes = whole.wire_bytes;
            if whole.crcs && whole.bytes.len() >= around.end {
                let crc = invariant(&whole.bytes[..around.end - ICRC]);
                packet.crcs.invariant = Truth::of(right(whole.bytes, around.end, crc));
            }
            Dissected::Packet(packet)
        }
        Err(other) => Dissected::Other(other),
    }
}

/// What is known of a packet from what lies around its BTH.
struct Around {
    carrier: Carrier,
    ends: (Endpoint, Endpoint),
    /// Where its invariant CRC ends in the record; may be beyond what was captured.
    end: usize,
    ce: bool,
}

/// Reads from the BTH on. A packet whose lengths leave no room for its headers is malformed, one of
/// which the capture has less is cut.
#[inline(always)]
fn transport(whole: Whole<'_>, at: usize, around: &Around) -> Result<Packet, Other> {
    let bytes = whole.bytes;
    let bth = Bth::read(bytes.get(at..).ok_or(Other::Cut)?).map_err(|_| Other::Cut)?;
    let after = at + Bth::BYTES;
    let Known { extended, role } = &OPCODES[usize::from(bth.opcode.0)];
    let payload_at = after + usize::from(extended.bytes);
    let pad = usize::from(bth.pad.value());
    let payload_end = around.end.checked_sub(ICRC + pad).ok_or(Other::Malformed)?;
    if payload_end < payload_at {
        return Err(Other::Malformed);
    }
    let header = |place: u8| bytes.get(after + usize::from(place)..).ok_or(Other::Cut);
    let word = |place: u8| -> Result<u32, Other> {
        Ok(u32::from_be_bytes(*header(place)?.first_chunk().ok_or(Other::Cut)?))
    };
    let source_queue_pair = match extended.deth {
        Some(deth) => Some(word(deth + 4)? & 0xff_ffff),
        None => None,
    };
    let dma_bytes = match extended.reth {
        Some(reth) => Some(word(reth + 12)?),
        None => None,
    };
    let acknowledged = match extended.aeth {
        Some(aeth) => Some(Aeth::read(header(aeth)?).map_err(|_| Other::Cut)?.acknowledged()),
        None => None,
    };
    Ok(Packet {
        time_ns: whole.time_ns,
        carrier: around.carrier,
        source: around.ends.0,
        destination: around.ends.1,
        lane: None,
        bth,
        role: *role,
        source_queue_pair,
        acknowledged,
        dma_bytes,
        ce: around.ce,
        wire_bytes: 0,
        // What a CNP has behind its BTH is reserved.
        payload_bytes: if *role == Role::Cnp { 0 } else { (payload_end - payload_at) as u32 },
        crcs: Crcs::default(),
    })
}

/// Whether the four bytes before `end` are this invariant CRC.
fn right(bytes: &[u8], end: usize, crc: Option<u32>) -> Option<bool> {
    let there = bytes.get(end.checked_sub(ICRC)?..end)?.first_chunk()?;
    Some(u32::from_le_bytes(*there) == crc?)
}

impl Packet {
    /// Whether it carries data and a switch has marked it, with FECN or CE.
    #[inline(always)]
    pub fn is_marked(&self) -> bool {
        (self.bth.fecn || self.ce) && self.role.is_data()
    }
}
