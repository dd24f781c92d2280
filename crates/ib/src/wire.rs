//! Sizes on the wire (IBA vol. 1, 5.2): how many bytes a packet takes besides its payload.

/// Local route header: VL, SL, DLID, SLID, length.
pub const LRH: u32 = 8;
/// Base transport header: opcode, P_Key, FECN, BECN, destination QP, PSN.
pub const BTH: u32 = 12;
/// Datagram extended transport header: Q_Key and source QP.
pub const DETH: u32 = 8;
/// Global route header.
pub const GRH: u32 = 40;
/// RDMA extended transport header: address, R_Key and length.
pub const RETH: u32 = 16;
/// ACK extended transport header.
pub const AETH: u32 = 4;
/// Variant CRC.
pub const VCRC: u32 = 2;
/// Invariant and variant CRC together.
pub const CRCS: u32 = 4 + VCRC;

/// Everything but the payload of an RC SEND packet: 26 bytes.
pub const RC_DATA: u32 = LRH + BTH + CRCS;
/// Everything but the payload of a UD SEND packet: 34 bytes.
pub const UD_DATA: u32 = LRH + BTH + DETH + CRCS;
/// A whole RC acknowledgement: 30 bytes.
pub const RC_ACK: u32 = LRH + BTH + AETH + CRCS;

/// A congestion notification packet of InfiniBand, [`Cnp`](crate::Cnp): no payload
/// (IBA vol. 1, A10.3.2).
pub const CNP: u32 = LRH + BTH + CRCS;

/// Flow control counts in units of 64 bytes (IBA vol. 1, 7.9.4).
pub const CREDIT_UNIT: u32 = 64;

/// Credits a packet of `bytes` takes: its length in started units of 64 bytes.
#[inline(always)]
pub const fn credits(bytes: u32) -> u32 {
    bytes.div_ceil(CREDIT_UNIT)
}

/// Path MTUs a subnet can have (IBA vol. 1, 14.2.5.6).
pub const MTUS: &[u32] = &[256, 512, 1024, 2048, 4096];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_sizes_are_those_of_the_specification() {
        assert_eq!((RC_DATA, UD_DATA, RC_ACK, CNP), (26, 34, 30, 26));
        assert_eq!((credits(30), credits(64), credits(65), credits(2082)), (1, 1, 2, 33));
    }
}
