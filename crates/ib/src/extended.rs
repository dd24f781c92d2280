//! Extended transport headers: what follows a BTH, as its opcode says (IBA vol. 1, 9.3).

use crate::header::HeaderError;
use crate::{Psn, QueuePairNumber, wire};

/// A datagram extended transport header (IBA vol. 1, 9.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deth {
    /// Q_Key.
    pub q_key: u32,
    /// SrcQP.
    pub source: QueuePairNumber,
}

/// An RDMA extended transport header (IBA vol. 1, 9.3.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reth {
    /// VA: where in the memory of the other side.
    pub virtual_address: u64,
    /// R_Key.
    pub r_key: u32,
    /// DMALen: bytes to be read or written.
    pub dma_bytes: u32,
}

/// An ACK extended transport header (IBA vol. 1, 9.3.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Aeth {
    /// Syndrome: what it says, and a credit count, a timer or a code.
    pub syndrome: u8,
    /// MSN: messages completed, 24 bits.
    pub msn: Psn,
}

/// What the syndrome of an [`Aeth`] says (IBA vol. 1, 9.7.5.2.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Acknowledged {
    /// ACK: received.
    Ack,
    /// RNR NAK: the receiver was not ready; try again later.
    NotReady,
    /// NAK with its code, 0 a PSN sequence error (IBA vol. 1, 9.7.5.2.8).
    Nak(u8),
    /// A value that is reserved.
    Reserved,
}

impl Acknowledged {
    /// The code of a PSN sequence error.
    pub const SEQUENCE_ERROR: u8 = 0;
}

impl Deth {
    /// Bytes it takes.
    pub const BYTES: usize = wire::DETH as usize;

    /// The bytes as they are on the wire.
    pub fn bytes(&self) -> [u8; Self::BYTES] {
        let [k3, k2, k1, k0] = self.q_key.to_be_bytes();
        let [_, q2, q1, q0] = self.source.value().to_be_bytes();
        [k3, k2, k1, k0, 0, q2, q1, q0]
    }

    /// Reads the header that `bytes` begin with. Fails if they are fewer than [`Self::BYTES`].
    pub fn read(bytes: &[u8]) -> Result<Self, HeaderError> {
        let [k3, k2, k1, k0, _, q2, q1, q0] =
            HeaderError::first("a datagram extended transport header", bytes)?;
        let source = QueuePairNumber::new(u32::from_be_bytes([0, q2, q1, q0]));
        Ok(Deth { q_key: u32::from_be_bytes([k3, k2, k1, k0]), source: source.unwrap_or_default() })
    }
}

impl Reth {
    /// Bytes it takes.
    pub const BYTES: usize = wire::RETH as usize;

    /// The bytes as they are on the wire.
    pub fn bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.virtual_address.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.r_key.to_be_bytes());
        bytes[12..].copy_from_slice(&self.dma_bytes.to_be_bytes());
        bytes
    }

    /// Reads the header that `bytes` begin with. Fails if they are fewer than [`Self::BYTES`].
    pub fn read(bytes: &[u8]) -> Result<Self, HeaderError> {
        let what = "an RDMA extended transport header";
        let [a7, a6, a5, a4, a3, a2, a1, a0, k3, k2, k1, k0, l3, l2, l1, l0] =
            HeaderError::first(what, bytes)?;
        Ok(Reth {
            virtual_address: u64::from_be_bytes([a7, a6, a5, a4, a3, a2, a1, a0]),
            r_key: u32::from_be_bytes([k3, k2, k1, k0]),
            dma_bytes: u32::from_be_bytes([l3, l2, l1, l0]),
        })
    }
}

impl Aeth {
    /// Bytes it takes.
    pub const BYTES: usize = wire::AETH as usize;
    /// The syndrome of an ACK without an end-to-end credit count (IBA vol. 1, 9.7.7.2.2).
    pub const ACK: u8 = 0x1f;

    /// The bytes as they are on the wire.
    pub fn bytes(&self) -> [u8; Self::BYTES] {
        let [_, m2, m1, m0] = self.msn.value().to_be_bytes();
        [self.syndrome, m2, m1, m0]
    }

    /// Reads the header that `bytes` begin with. Fails if they are fewer than [`Self::BYTES`].
    pub fn read(bytes: &[u8]) -> Result<Self, HeaderError> {
        let [syndrome, m2, m1, m0] = HeaderError::first("an ACK extended transport header", bytes)?;
        let msn = Psn::new(u32::from_be_bytes([0, m2, m1, m0])).unwrap_or_default();
        Ok(Aeth { syndrome, msn })
    }

    /// What its syndrome says. The highest bit is reserved and not read.
    pub fn acknowledged(&self) -> Acknowledged {
        match self.syndrome >> 5 & 3 {
            0 => Acknowledged::Ack,
            1 => Acknowledged::NotReady,
            3 => Acknowledged::Nak(self.syndrome & 0x1f),
            _ => Acknowledged::Reserved,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_at_its_place() {
        let source = QueuePairNumber::new(0x01_0203).unwrap();
        let deth = Deth { q_key: 0x8001_0000, source };
        assert_eq!(deth.bytes(), [0x80, 1, 0, 0, 0, 1, 2, 3]);
        assert_eq!(Deth::read(&deth.bytes()), Ok(deth));
        let reth = Reth { virtual_address: 0x0102_0304_0506_0708, r_key: 9, dma_bytes: 4096 };
        assert_eq!(reth.bytes(), [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 9, 0, 0, 16, 0]);
        assert_eq!(Reth::read(&reth.bytes()), Ok(reth));
        let aeth = Aeth { syndrome: Aeth::ACK, msn: Psn::new(7).unwrap() };
        assert_eq!(aeth.bytes(), [0x1f, 0, 0, 7]);
        assert_eq!(Aeth::read(&aeth.bytes()), Ok(aeth));
        assert!(Deth::read(&[0; 7]).is_err() && Reth::read(&[0; 15]).is_err());
        assert!(Aeth::read(&[0; 3]).is_err());
    }

    #[test]
    fn a_syndrome_says_what_table_45_says() {
        let said = |syndrome| Aeth { syndrome, msn: Psn::default() }.acknowledged();
        assert_eq!((said(0x1f), said(0x00)), (Acknowledged::Ack, Acknowledged::Ack));
        assert_eq!((said(0x20), said(0x3f)), (Acknowledged::NotReady, Acknowledged::NotReady));
        assert_eq!(said(0x60), Acknowledged::Nak(Acknowledged::SEQUENCE_ERROR));
        assert_eq!((said(0x63), said(0x41)), (Acknowledged::Nak(3), Acknowledged::Reserved));
    }
}
