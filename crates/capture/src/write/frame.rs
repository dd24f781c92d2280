//! The bytes of a packet: a frame of InfiniBand from LRH to VCRC, or one of RoCE v2 in Ethernet.

use super::payload::Payloads;
use crate::link::ROCE_PORT;
use clearlane_ib::crc::{self, Variant};
use clearlane_ib::{
    Aeth, Bth, Deth, Lid, Lrh, Opcode, PadCount, Reth, ServiceLevel, VirtualLane, wire,
};

/// What follows the BTH before the payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extended {
    /// Nothing.
    None,
    /// A datagram's header.
    Deth(Deth),
    /// Where an RDMA READ or WRITE goes.
    Reth(Reth),
    /// An acknowledgement.
    Aeth(Aeth),
}

impl Extended {
    /// Bytes on the wire.
    pub const fn bytes_len(&self) -> u32 {
        match self {
            Extended::None => 0,
            Extended::Deth(_) => wire::DETH,
            Extended::Reth(_) => wire::RETH,
            Extended::Aeth(_) => wire::AETH,
        }
    }
}

/// A packet to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// VL.
    pub lane: VirtualLane,
    /// SL.
    pub service_level: ServiceLevel,
    /// SLID.
    pub slid: Lid,
    /// DLID.
    pub dlid: Lid,
    /// Its BTH; the pad count is that of the payload, whatever it says.
    pub bth: Bth,
    /// What follows the BTH.
    pub extended: Extended,
    /// Bytes of payload, 0 to 4096.
    pub payload_bytes: u16,
}

/// What frames are wrapped in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Wrapping {
    /// InfiniBand, LRH to VCRC.
    Native,
    /// RoCE v2: Ethernet, IPv4, UDP, and what InfiniBand has between LRH and VCRC. Addresses are
    /// made of LIDs: 10.0.x.y and 02:00:00:00:xx:yy. FECN is congestion experienced in the IP
    /// header, as switches of Ethernet have it (annex A17.9.1).
    RoceV2,
}

/// How much of a frame is written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kept {
    /// All of it.
    Full,
    /// Its headers: nothing of the payload and no CRC.
    Headers,
}

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const UDP: usize = 8;
/// The first of the source ports that are nobody's (RFC 6335), and how many of them there are.
const PORTS: (u16, u16) = (0xc000, 0x4000);
/// Bytes that a CNP of RoCE v2 has behind its BTH (annex A17.9.3).
const ROCE_CNP_RESERVED: usize = 16;
/// ECN of a packet that may be marked, and of one that is (RFC 3168).
const ECT0: u8 = 2;
const CE: u8 = 3;
const NOT_ECT: u8 = 0;

/// A frame's bytes as they are put together, the buffers used again.
#[derive(Default)]
pub(super) struct Assembly {
    payloads: Payloads,
    /// What was put together last; as much of it as is kept.
    pub(super) bytes: Vec<u8>,
    /// Bytes it has on the wire.
    pub(super) wire_bytes: u32,
}

impl Assembly {
    /// Puts a frame together.
    pub(super) fn put(&mut self, frame: &Frame, wrapping: Wrapping, kept: Kept) {
        self.bytes.clear();
        match wrapping {
            Wrapping::Native => self.native(frame, kept),
            Wrapping::RoceV2 => self.roce(frame, kept),
        }
    }

    /// BTH and what follows it before the payload.
    fn transport(&mut self, frame: &Frame, opcode: Opcode) {
        let pad = (4 - frame.payload_bytes % 4) % 4;
        let pad = PadCount::new(pad as u8).unwrap_or_default();
        self.bytes.extend(Bth { opcode, pad, ..frame.bth }.bytes());
        match &frame.extended {
            Extended::None => {}
            Extended::Deth(deth) => self.bytes.extend(deth.bytes()),
            Extended::Reth(reth) => self.bytes.extend(reth.bytes()),
            Extended::Aeth(aeth) => self.bytes.extend(aeth.bytes()),
        }
    }

    fn native(&mut self, frame: &Frame, kept: Kept) {
        let padded = usize::from(frame.payload_bytes).next_multiple_of(4) as u32;
        let extended = frame.extended.bytes_len();
        self.wire_bytes = wire::LRH + wire::BTH + extended + padded + wire::CRCS;
        let Frame { lane, service_level, slid, dlid, .. } = *frame;
        let lrh = Lrh::new(lane, service_level, dlid, slid, self.wire_bytes);
        let lrh = lrh.expect("whole words of headers and a payload of an MTU fit the field");
        self.bytes.extend(lrh.bytes());
        self.transport(frame, frame.bth.opcode);
        if kept == Kept::Headers {
            return;
        }
        let head = Variant::of(&self.bytes);
        let payload = self.payloads.of(frame.payload_bytes.into());
        self.bytes.extend(&payload.bytes);
        let invariant = crc::invariant_local(&self.bytes).unwrap_or_default().to_le_bytes();
        self.bytes.extend(invariant);
        let variant = payload.after(head).and(&invariant).finish();
        self.bytes.extend(variant.to_le_bytes());
    }

    fn roce(&mut self, frame: &Frame, kept: Kept) {
        let is_cnp = frame.bth.opcode.is_cnp();
        // RoCE has an opcode of its own for it, and marks in the IP header instead of the BTH.
        let opcode = if is_cnp { Opcode::ROCE_CNP } else { frame.bth.opcode };
        let bare = Frame { bth: Bth { fecn: false, ..frame.bth }, ..*frame };
        self.bytes.resize(ETHERNET + IPV4 + UDP, 0);
        self.transport(&bare, opcode);
        let payload = match is_cnp {
            true => ROCE_CNP_RESERVED,
            false => usize::from(frame.payload_bytes).next_multiple_of(4),
        };
        let length = self.bytes.len() + payload + 4;
        self.wire_bytes = length as u32;
        self.around(frame, length);
        if kept == Kept::Headers {
            return;
        }
        match is_cnp {
            true => self.bytes.extend([0; ROCE_CNP_RESERVED]),
            false => self.bytes.extend(&self.payloads.of(frame.payload_bytes.into()).bytes),
        }
        let invariant = crc::invariant_ip(&self.bytes[ETHERNET..]).unwrap_or_default();
        self.bytes.extend(invariant.to_le_bytes());
    }

    /// Ethernet, IPv4 and UDP headers of a frame of so many bytes, in their place.
    fn around(&mut self, frame: &Frame, length: usize) {
        let [from, to] = [frame.slid, frame.dlid].map(|lid| lid.value().to_be_bytes());
        let mac = |[high, low]: [u8; 2]| [2, 0, 0, 0, high, low];
        self.bytes[..6].copy_from_slice(&mac(to));
        self.bytes[6..12].copy_from_slice(&mac(from));
        self.bytes[12..14].copy_from_slice(&[0x08, 0x00]);
        let ecn = match (frame.bth.opcode.is_cnp(), frame.bth.fecn) {
            (true, _) => NOT_ECT,
            (false, true) => CE,
            (false, false) => ECT0,
        };
        let ip_bytes = ((length - ETHERNET) as u16).to_be_bytes();
        let mut ip = [0; IPV4];
        // The service level is the upper four of the six bits of DSCP.
        (ip[0], ip[1]) = (0x45, frame.service_level.value() << 4 | ecn);
        (ip[2], ip[3]) = (ip_bytes[0], ip_bytes[1]);
        // Not to be fragmented (annex A17.4.5.2); 64 hops; UDP.
        (ip[6], ip[8], ip[9]) = (0x40, 64, 17);
        (ip[12], ip[14], ip[15]) = (10, from[0], from[1]);
        (ip[16], ip[18], ip[19]) = (10, to[0], to[1]);
        let checksum = checksum(&ip).to_be_bytes();
        (ip[10], ip[11]) = (checksum[0], checksum[1]);
        self.bytes[ETHERNET..ETHERNET + IPV4].copy_from_slice(&ip);
        // Packets of a queue pair take one path: its number and the hosts make the port.
        let flow = u32::from(frame.slid.value()) << 7
            ^ u32::from(frame.dlid.value())
            ^ frame.bth.destination.value();
        let port = PORTS.0 + (flow.wrapping_mul(0x9e37_79b1) >> 16) as u16 % PORTS.1;
        let udp = &mut self.bytes[ETHERNET + IPV4..ETHERNET + IPV4 + UDP];
        udp[..2].copy_from_slice(&port.to_be_bytes());
        udp[2..4].copy_from_slice(&ROCE_PORT.to_be_bytes());
        // The checksum stays 0, none (annex A17.4.5.2).
        udp[4..6].copy_from_slice(&((length - ETHERNET - IPV4) as u16).to_be_bytes());
    }
}

/// That of an IPv4 header (RFC 791).
fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum: u32 = words.sum();
    let folded = (sum >> 16) + (sum & 0xffff);
    !((folded >> 16) + folded) as u16
}
