//! The local route header of a data packet: lane, service level, and from which LID to which.

use crate::header::HeaderError;
use crate::{Lid, ServiceLevel, VirtualLane, wire};

/// A local route header (IBA vol. 1, 7.7) of a packet on a data lane from one unicast LID to
/// another, with a BTH next and no GRH. Reserved bits are written as 0 and not read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lrh {
    /// VL.
    pub lane: VirtualLane,
    /// SL.
    pub service_level: ServiceLevel,
    /// DLID.
    pub dlid: Lid,
    /// SLID.
    pub slid: Lid,
    /// PktLen: words of 4 bytes from this header to the invariant CRC, both included; 0 to 2047.
    words: u16,
}

/// LNH: a BTH is next (IBA vol. 1, 7.7.4).
const BTH_NEXT: u8 = 0b10;
const LNH: u8 = 0b11;
const WORDS_MAX: u16 = (1 << 11) - 1;
const WHAT: &str = "a local route header";

impl Lrh {
    /// Bytes it takes.
    pub const BYTES: usize = wire::LRH as usize;

    /// The header of a packet of so many bytes, both CRCs included; nothing where those before the
    /// variant CRC are no whole words or more than the field holds.
    pub const fn new(
        lane: VirtualLane,
        service_level: ServiceLevel,
        dlid: Lid,
        slid: Lid,
        packet_bytes: u32,
    ) -> Option<Self> {
        let counted = packet_bytes.saturating_sub(wire::VCRC);
        if !counted.is_multiple_of(4) || counted / 4 > WORDS_MAX as u32 {
            return None;
        }
        Some(Lrh { lane, service_level, dlid, slid, words: (counted / 4) as u16 })
    }

    /// PktLen: words of 4 bytes from this header to the invariant CRC, both included; 0 to 2047.
    pub const fn words(&self) -> u16 {
        self.words
    }

    /// The bytes as they are on the wire.
    pub fn bytes(&self) -> [u8; Self::BYTES] {
        let [dlid_high, dlid_low] = self.dlid.value().to_be_bytes();
        let [words_high, words_low] = self.words.to_be_bytes();
        let [slid_high, slid_low] = self.slid.value().to_be_bytes();
        // LVer, the lower half of the first byte, is 0.
        [
            self.lane.value() << 4,
            self.service_level.value() << 4 | BTH_NEXT,
            dlid_high,
            dlid_low,
            words_high,
            words_low,
            slid_high,
            slid_low,
        ]
    }

    /// Reads the header that `bytes` begin with. Fails if they are fewer than [`Self::BYTES`], or
    /// are those of a packet on VL15, to or from no unicast LID, or without a BTH next.
    pub fn read(bytes: &[u8]) -> Result<Self, HeaderError> {
        let [first, second, d1, d0, w1, w0, s1, s0] = HeaderError::first(WHAT, bytes)?;
        let fault =
            |field, value: u32, remedy| HeaderError::Field { what: WHAT, field, value, remedy };
        let lid = |field, high, low| {
            let value = u16::from_be_bytes([high, low]);
            let remedy = "only packets between unicast LIDs, 1 to 0xbfff, are read";
            Lid::new(value).ok_or(fault(field, u32::from(value), remedy))
        };
        let (lane, version, next) = (first >> 4, first & 0xf, second & LNH);
        if version != 0 {
            return Err(fault("LVer", u32::from(version), "0 is the only version there is"));
        }
        if next != BTH_NEXT {
            return Err(fault("LNH", u32::from(next), "only packets with a BTH next are read"));
        }
        let management = fault("VL", u32::from(lane), "only packets on data lanes are read");
        Ok(Lrh {
            lane: VirtualLane::new(lane).ok_or(management)?,
            // Four bits are a service level.
            service_level: ServiceLevel::new(second >> 4).unwrap_or_default(),
            dlid: lid("DLID", d1, d0)?,
            slid: lid("SLID", s1, s0)?,
            words: u16::from_be_bytes([w1, w0]) & WORDS_MAX,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lrh() -> Lrh {
        let lid = |value| Lid::new(value).unwrap();
        let (lane, level) = (VirtualLane::new(1).unwrap(), ServiceLevel::new(5).unwrap());
        Lrh::new(lane, level, lid(0x12), lid(0xbfff), wire::CNP).unwrap()
    }

    #[test]
    fn every_field_is_at_its_place() {
        let bytes = [0x10, 0x52, 0x00, 0x12, 0x00, 0x06, 0xbf, 0xff];
        assert_eq!((lrh().bytes(), lrh().words()), (bytes, 6));
        assert_eq!(Lrh::read(&bytes), Ok(lrh()));
        let reserved = [0x10, 0x5e, 0x00, 0x12, 0xf8, 0x06, 0xbf, 0xff];
        assert_eq!(Lrh::read(&reserved), Ok(lrh()));
    }

    #[test]
    fn lengths_are_whole_words_and_fit_their_field() {
        let of = |bytes| Lrh::new(lrh().lane, lrh().service_level, lrh().dlid, lrh().slid, bytes);
        assert_eq!(of(wire::RC_DATA + 4096).map(|lrh| lrh.words()), Some(1030));
        assert_eq!((of(27), of(4 * 2048 + 2)), (None, None));
        assert_eq!(of(4 * 2047 + 2).map(|lrh| lrh.words()), Some(2047));
    }

    #[test]
    fn other_packets_are_refused_with_the_field() {
        let refusal = |place: usize, byte: u8| {
            let mut bytes = lrh().bytes();
            bytes[place] = byte;
            Lrh::read(&bytes).unwrap_err().to_string()
        };
        assert_eq!(
            refusal(0, 0xf0),
            "a local route header has VL 0xf; only packets on data lanes are read"
        );
        assert!(refusal(0, 0x11).contains("LVer 0x1"), "{}", refusal(0, 0x11));
        assert!(refusal(1, 0x53).contains("LNH 0x3"), "{}", refusal(1, 0x53));
        assert!(refusal(2, 0xff).contains("DLID 0xff12"), "{}", refusal(2, 0xff));
        assert!(refusal(6, 0xc0).contains("SLID 0xc0ff"), "{}", refusal(6, 0xc0));
        assert_eq!(
            Lrh::read(&[0x10]).unwrap_err().to_string(),
            "a local route header takes 8 bytes and 1 are there; capture whole headers"
        );
    }
}
