//! The global route header: between subnets, and in every packet of RoCE v1.

use crate::header::HeaderError;
use crate::wire;

/// A global route header (IBA vol. 1, 8.3): an IPv6 header in form, GIDs for its addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grh {
    /// TClass.
    pub traffic_class: u8,
    /// FlowLabel, 20 bits; higher ones are not written.
    pub flow_label: u32,
    /// PayLen: bytes after this header up to the invariant CRC, that included.
    pub payload_bytes: u16,
    /// NxtHdr: 0x1b where a BTH is next.
    pub next_header: u8,
    /// HopLmt.
    pub hop_limit: u8,
    /// SGID.
    pub source: u128,
    /// DGID.
    pub destination: u128,
}

const WHAT: &str = "a global route header";
const VERSION: u8 = 6;

impl Grh {
    /// Bytes it takes.
    pub const BYTES: usize = wire::GRH as usize;
    /// NxtHdr of a header before a BTH (IBA vol. 1, 8.3.4).
    pub const BTH_NEXT: u8 = 0x1b;

    /// The bytes as they are on the wire.
    pub fn bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let word = u32::from(VERSION) << 28
            | u32::from(self.traffic_class) << 20
            | self.flow_label & 0xf_ffff;
        bytes[..4].copy_from_slice(&word.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.payload_bytes.to_be_bytes());
        (bytes[6], bytes[7]) = (self.next_header, self.hop_limit);
        bytes[8..24].copy_from_slice(&self.source.to_be_bytes());
        bytes[24..].copy_from_slice(&self.destination.to_be_bytes());
        bytes
    }

    /// Reads the header that `bytes` begin with. Fails if they are fewer than [`Self::BYTES`] or of
    /// another IP version.
    pub fn read(bytes: &[u8]) -> Result<Self, HeaderError> {
        let bytes = HeaderError::first::<{ Self::BYTES }>(WHAT, bytes)?;
        let word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let version = word >> 28;
        if version != u32::from(VERSION) {
            let remedy = "6 is the only version there is";
            return Err(HeaderError::Field { what: WHAT, field: "IPVer", value: version, remedy });
        }
        let gid = |from: usize| {
            let mut gid = [0; 16];
            gid.copy_from_slice(&bytes[from..from + 16]);
            u128::from_be_bytes(gid)
        };
        Ok(Grh {
            traffic_class: (word >> 20) as u8,
            flow_label: word & 0xf_ffff,
            payload_bytes: u16::from_be_bytes([bytes[4], bytes[5]]),
            next_header: bytes[6],
            hop_limit: bytes[7],
            source: gid(8),
            destination: gid(24),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_at_its_place() {
        let grh = Grh {
            traffic_class: 0xab,
            flow_label: 0xc_def0,
            payload_bytes: 0x0102,
            next_header: Grh::BTH_NEXT,
            hop_limit: 0x40,
            source: 0xfe80_0000_0000_0000_0002_c903_0000_1001,
            destination: 0xfe80_0000_0000_0000_0002_c903_0000_1002,
        };
        let bytes = grh.bytes();
        assert_eq!(bytes[..8], [0x6a, 0xbc, 0xde, 0xf0, 1, 2, 0x1b, 0x40]);
        assert_eq!((bytes[8], bytes[23], bytes[24], bytes[39]), (0xfe, 1, 0xfe, 2));
        assert_eq!(Grh::read(&bytes), Ok(grh));
        let mut other = bytes;
        other[0] = 0x45;
        assert_eq!(
            Grh::read(&other).unwrap_err().to_string(),
            "a global route header has IPVer 0x4; 6 is the only version there is"
        );
        assert!(Grh::read(&bytes[..39]).is_err());
    }
}
