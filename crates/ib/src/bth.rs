//! The base transport header: what a packet is, for which queue pair, and the two bits of
//! congestion control.

use crate::header::HeaderError;
use crate::{Opcode, wire};
use std::fmt;

macro_rules! bits {
    ($(#[$about:meta])* $name:ident: $bits:literal bits of $raw:ty;) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name($raw);

        impl $name {
            /// The largest.
            pub const MAX: Self = $name((1 << $bits) - 1);

            /// One of this number, or nothing above [`Self::MAX`].
            pub const fn new(value: $raw) -> Option<Self> {
                if value <= Self::MAX.0 { Some($name(value)) } else { None }
            }

            /// The number.
            pub const fn value(self) -> $raw {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

bits! {
    /// Number of a queue pair at its channel adapter, 0 to 2^24 − 1 (IBA vol. 1, 9.2.7).
    QueuePairNumber: 24 bits of u32;
}

bits! {
    /// Packet sequence number, 0 to 2^24 − 1 (IBA vol. 1, 9.2.9).
    Psn: 24 bits of u32;
}

bits! {
    /// Bytes that fill the payload up to a multiple of four, 0 to 3 (IBA vol. 1, 9.2.4).
    PadCount: 2 bits of u8;
}

bits! {
    /// Version of the transport headers, 0 in every one there is (IBA vol. 1, 9.2.5).
    TransportVersion: 4 bits of u8;
}

/// A base transport header (IBA vol. 1, 9.2). Reserved bits are written as 0 and not read.
///
/// FECN and BECN were reserved before annex A10; the invariant CRC takes their byte for ones, so a
/// switch that marks does not change it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bth {
    /// What the packet is.
    pub opcode: Opcode,
    /// SE: whether the responder is to raise an event.
    pub solicited_event: bool,
    /// M: state of path migration.
    pub migration: bool,
    /// PadCnt.
    pub pad: PadCount,
    /// TVer.
    pub version: TransportVersion,
    /// P_Key: partition.
    pub p_key: u16,
    /// Forward explicit congestion notification: a switch on the way was congested.
    pub fecn: bool,
    /// Backward explicit congestion notification: a packet the other way was marked.
    pub becn: bool,
    /// DestQP.
    pub destination: QueuePairNumber,
    /// A: whether the responder is to acknowledge.
    pub ack_request: bool,
    /// PSN.
    pub psn: Psn,
}

const SOLICITED_EVENT: u8 = 0x80;
const MIGRATION: u8 = 0x40;
const FECN: u8 = 0x80;
const BECN: u8 = 0x40;
const ACK_REQUEST: u8 = 0x80;

impl Bth {
    /// Bytes it takes.
    pub const BYTES: usize = wire::BTH as usize;

    /// The bytes as they are on the wire.
    pub fn bytes(&self) -> [u8; Self::BYTES] {
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let [key_high, key_low] = self.p_key.to_be_bytes();
        let [_, qp_high, qp_middle, qp_low] = self.destination.0.to_be_bytes();
        let [_, psn_high, psn_middle, psn_low] = self.psn.0.to_be_bytes();
        [
            self.opcode.0,
            flag(self.solicited_event, SOLICITED_EVENT)
                | flag(self.migration, MIGRATION)
                | self.pad.0 << 4
                | self.version.0,
            key_high,
            key_low,
            // Bits 31 and 30 of the second word (IBA vol. 1, A10.3.1).
            flag(self.fecn, FECN) | flag(self.becn, BECN),
            qp_high,
            qp_middle,
            qp_low,
            flag(self.ack_request, ACK_REQUEST),
            psn_high,
            psn_middle,
            psn_low,
        ]
    }

    /// Reads the header that `bytes` begin with. Fails if they are fewer than [`Self::BYTES`].
    pub fn read(bytes: &[u8]) -> Result<Self, HeaderError> {
        let [op, flags, key @ .., marks, q2, q1, q0, ack, p2, p1, p0] =
            HeaderError::first::<{ Self::BYTES }>("a base transport header", bytes)?;
        Ok(Bth {
            opcode: Opcode(op),
            solicited_event: flags & SOLICITED_EVENT != 0,
            migration: flags & MIGRATION != 0,
            pad: PadCount(flags >> 4 & PadCount::MAX.0),
            version: TransportVersion(flags & TransportVersion::MAX.0),
            p_key: u16::from_be_bytes(key),
            fecn: marks & FECN != 0,
            becn: marks & BECN != 0,
            destination: QueuePairNumber(u32::from_be_bytes([0, q2, q1, q0])),
            ack_request: ack & ACK_REQUEST != 0,
            psn: Psn(u32::from_be_bytes([0, p2, p1, p0])),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bth() -> Bth {
        Bth {
            opcode: Opcode::RC_SEND_LAST,
            solicited_event: true,
            migration: true,
            pad: PadCount::new(3).unwrap(),
            version: TransportVersion::default(),
            p_key: 0x8001,
            fecn: true,
            becn: false,
            destination: QueuePairNumber::new(0x01_2345).unwrap(),
            ack_request: true,
            psn: Psn::new(0xab_cdef).unwrap(),
        }
    }

    #[test]
    fn every_field_is_at_its_place() {
        let marked = bth();
        let bytes = [0x02, 0xf0, 0x80, 0x01, 0x80, 0x01, 0x23, 0x45, 0x80, 0xab, 0xcd, 0xef];
        assert_eq!(marked.bytes(), bytes);
        assert_eq!(Bth::read(&bytes), Ok(marked));
        // FECN and BECN are the two upper bits of byte 4 and change no other byte.
        for (fecn, becn, byte) in [(false, false, 0), (false, true, 0x40), (true, true, 0xc0)] {
            let mut other = bytes;
            other[4] = byte;
            assert_eq!(Bth { fecn, becn, ..marked }.bytes(), other);
        }
        let version = TransportVersion::new(5).unwrap();
        assert_eq!(Bth { version, ..marked }.bytes()[1], 0xf5);
    }

    #[test]
    fn reserved_bits_are_not_read() {
        let mut bytes = bth().bytes();
        bytes[4] |= 0x3f;
        bytes[8] |= 0x7f;
        assert_eq!(Bth::read(&bytes), Ok(bth()));
    }

    #[test]
    fn a_cut_header_is_an_error_and_what_follows_it_is_not_read() {
        let mut bytes = bth().bytes().to_vec();
        bytes.push(9);
        assert_eq!(Bth::read(&bytes), Ok(bth()));
        assert_eq!(
            Bth::read(&bytes[..11]).unwrap_err().to_string(),
            "a base transport header takes 12 bytes and 11 are there; capture whole headers"
        );
    }

    #[test]
    fn numbers_end_at_their_bits() {
        assert_eq!(QueuePairNumber::new(0xff_ffff), Some(QueuePairNumber::MAX));
        assert_eq!(QueuePairNumber::new(0x100_0000), None);
        assert_eq!((Psn::new(1 << 24), PadCount::new(4)), (None, None));
        assert_eq!(TransportVersion::new(16), None);
    }
}
