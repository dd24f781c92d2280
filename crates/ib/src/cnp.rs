//! The congestion notification packet: BECN on its way to a source, in a packet of its own.
//!
//! What is written and read ends before the CRCs. They change neither what a CNP says nor whom it
//! reaches; the invariant one of RoCE covers the IP and UDP headers as well, which are not known
//! here.

use crate::header::HeaderError;
use crate::{Bth, Lid, Lrh, Opcode, Psn, QueuePairNumber, ServiceLevel, VirtualLane, wire};

/// A congestion notification packet: which queue pair is to slow down (IBA vol. 1, A10.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cnp {
    /// P_Key of the marked packet.
    pub p_key: u16,
    /// The queue pair that sent the marked packet, at the adapter the CNP goes to.
    pub destination: QueuePairNumber,
}

/// The route of a CNP of InfiniBand: that of the marked packet, back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CnpRoute {
    /// Lane of the first link.
    pub lane: VirtualLane,
    /// Service level of the marked packet.
    pub service_level: ServiceLevel,
    /// SLID of the marked packet.
    pub dlid: Lid,
    /// DLID of the marked packet: it tells the source which path was congested.
    pub slid: Lid,
}

const WHAT: &str = "a congestion notification packet";
/// Bytes after the BTH that RoCE reserves, all 0 (annex A17.9.3).
const ROCE_RESERVED: usize = 16;

impl Cnp {
    /// Bytes of one of InfiniBand from its LRH up to the CRCs; [`wire::CNP`] is all of them.
    pub const BYTES: usize = (wire::CNP - wire::CRCS) as usize;
    /// Bytes of one of RoCE v2 from its BTH up to the invariant CRC.
    pub const ROCE_BYTES: usize = Bth::BYTES + ROCE_RESERVED;

    /// Its BTH: BECN is set, and there is nothing to acknowledge and no sequence.
    fn bth(&self, opcode: Opcode) -> Bth {
        Bth {
            opcode,
            solicited_event: false,
            migration: false,
            pad: Default::default(),
            version: Default::default(),
            p_key: self.p_key,
            fecn: false,
            becn: true,
            destination: self.destination,
            ack_request: false,
            psn: Psn::default(),
        }
    }

    /// The bytes of one of InfiniBand, LRH and BTH: what the Linux hfi1 driver sends.
    pub fn bytes(&self, route: &CnpRoute) -> [u8; Self::BYTES] {
        let CnpRoute { lane, service_level, dlid, slid } = *route;
        let mut bytes = [0; Self::BYTES];
        let (head, rest) = bytes.split_at_mut(Lrh::BYTES);
        let lrh = Lrh::new(lane, service_level, dlid, slid, wire::CNP);
        head.copy_from_slice(&lrh.expect("26 bytes are six words and a CRC").bytes());
        rest.copy_from_slice(&self.bth(Opcode::CNP).bytes());
        bytes
    }

    /// The bytes of one of RoCE v2 after its UDP header: BTH and 16 of 0.
    pub fn roce_bytes(&self) -> [u8; Self::ROCE_BYTES] {
        let mut bytes = [0; Self::ROCE_BYTES];
        bytes[..Bth::BYTES].copy_from_slice(&self.bth(Opcode::ROCE_CNP).bytes());
        bytes
    }

    /// Reads one of InfiniBand from its LRH on. Fails if the bytes are fewer than
    /// [`Self::BYTES`] or those of another packet.
    pub fn read(bytes: &[u8]) -> Result<(CnpRoute, Self), HeaderError> {
        let bytes = HeaderError::first::<{ Self::BYTES }>(WHAT, bytes)?;
        let Lrh { lane, service_level, dlid, slid, .. } = Lrh::read(&bytes)?;
        let cnp = Self::of(&Bth::read(&bytes[Lrh::BYTES..])?)?;
        Ok((CnpRoute { lane, service_level, dlid, slid }, cnp))
    }

    /// Reads one of RoCE from its BTH on. Fails if the bytes are fewer than [`Self::ROCE_BYTES`]
    /// or those of another packet.
    pub fn read_roce(bytes: &[u8]) -> Result<Self, HeaderError> {
        let bytes = HeaderError::first::<{ Self::ROCE_BYTES }>(WHAT, bytes)?;
        Self::of(&Bth::read(&bytes)?)
    }

    /// What a BTH says if it is that of a CNP. Both opcodes are taken: which of them RoCE v1 has is
    /// not settled.
    fn of(bth: &Bth) -> Result<Self, HeaderError> {
        let Bth { opcode, p_key, destination, .. } = *bth;
        if opcode.is_cnp() {
            return Ok(Cnp { p_key, destination });
        }
        let value = u32::from(opcode.0);
        let remedy = "0x80 and 0x81 are those of a CNP";
        Err(HeaderError::Field { what: WHAT, field: "opcode", value, remedy })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cnp() -> Cnp {
        Cnp { p_key: 0xffff, destination: QueuePairNumber::new(0xd2).unwrap() }
    }

    fn route() -> CnpRoute {
        CnpRoute {
            lane: VirtualLane::new(2).unwrap(),
            service_level: ServiceLevel::new(3).unwrap(),
            dlid: Lid::new(7).unwrap(),
            slid: Lid::new(9).unwrap(),
        }
    }

    /// The example of a RoCE v2 CNP in Mellanox' article on annex A17, up to its invariant CRC.
    const EXAMPLE: [u8; 28] = [
        0x81, 0x00, 0xff, 0xff, 0x40, 0x00, 0x00, 0xd2, 0x00, 0x00, 0x00, 0x00, // BTH
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];

    #[test]
    fn one_of_roce_has_the_bytes_of_the_published_example() {
        assert_eq!(cnp().roce_bytes(), EXAMPLE);
        assert_eq!(Cnp::read_roce(&EXAMPLE), Ok(cnp()));
        let bth = Bth::read(&EXAMPLE).unwrap();
        assert!(bth.becn && !bth.fecn && bth.psn == Psn::default());
    }

    #[test]
    fn one_of_infiniband_is_a_route_back_and_the_same_header_with_opcode_0x80() {
        let mut expected = vec![0x20, 0x32, 0, 7, 0, 6, 0, 9];
        expected.extend(&EXAMPLE[..12]);
        expected[8] = 0x80;
        let bytes = cnp().bytes(&route());
        assert_eq!(bytes.to_vec(), expected);
        assert_eq!(Cnp::read(&bytes), Ok((route(), cnp())));
        // With its CRCs it has the bytes that the simulator sends.
        assert_eq!(bytes.len() as u32 + wire::CRCS, wire::CNP);
        let words = Lrh::read(&bytes).unwrap().words();
        assert_eq!(u32::from(words) * 4 + 2, wire::CNP);
    }

    #[test]
    fn other_packets_and_cut_ones_are_refused() {
        let mut bytes = cnp().roce_bytes();
        bytes[0] = Opcode::RC_ACKNOWLEDGE.0;
        assert_eq!(
            Cnp::read_roce(&bytes).unwrap_err().to_string(),
            "a congestion notification packet has opcode 0x11; 0x80 and 0x81 are those of a CNP"
        );
        bytes[0] = Opcode::CNP.0;
        assert_eq!(Cnp::read_roce(&bytes), Ok(cnp()));
        for length in 0..Cnp::ROCE_BYTES {
            let error = Cnp::read_roce(&bytes[..length]).unwrap_err();
            assert_eq!(error, HeaderError::Short { what: WHAT, needed: 28, got: length });
        }
        for length in 0..Cnp::BYTES {
            let error = Cnp::read(&cnp().bytes(&route())[..length]).unwrap_err();
            assert_eq!(error, HeaderError::Short { what: WHAT, needed: 20, got: length });
        }
    }
}
