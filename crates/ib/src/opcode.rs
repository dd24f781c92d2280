//! What a packet of the transport layer is: the opcode of its BTH.

use std::fmt;

/// An opcode, the first byte of a BTH: three bits of transport service and five of operation
/// (IBA vol. 1, 9.2.1, table 38). Those without a name here are kept as they are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Opcode(pub u8);

macro_rules! opcodes {
    ($($constant:ident = $value:literal, $name:literal;)*) => {
        impl Opcode {
            $(#[doc = $name] pub const $constant: Opcode = Opcode($value);)*
        }

        /// All that have a name, in their order.
        const NAMES: &[(Opcode, &str)] = &[$((Opcode::$constant, $name)),*];
    };
}

opcodes! {
    RC_SEND_FIRST = 0x00, "RC SEND First";
    RC_SEND_MIDDLE = 0x01, "RC SEND Middle";
    RC_SEND_LAST = 0x02, "RC SEND Last";
    RC_SEND_LAST_WITH_IMMEDIATE = 0x03, "RC SEND Last with Immediate";
    RC_SEND_ONLY = 0x04, "RC SEND Only";
    RC_SEND_ONLY_WITH_IMMEDIATE = 0x05, "RC SEND Only with Immediate";
    RC_RDMA_WRITE_FIRST = 0x06, "RC RDMA WRITE First";
    RC_RDMA_WRITE_MIDDLE = 0x07, "RC RDMA WRITE Middle";
    RC_RDMA_WRITE_LAST = 0x08, "RC RDMA WRITE Last";
    RC_RDMA_WRITE_LAST_WITH_IMMEDIATE = 0x09, "RC RDMA WRITE Last with Immediate";
    RC_RDMA_WRITE_ONLY = 0x0a, "RC RDMA WRITE Only";
    RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE = 0x0b, "RC RDMA WRITE Only with Immediate";
    RC_RDMA_READ_REQUEST = 0x0c, "RC RDMA READ Request";
    RC_RDMA_READ_RESPONSE_FIRST = 0x0d, "RC RDMA READ response First";
    RC_RDMA_READ_RESPONSE_MIDDLE = 0x0e, "RC RDMA READ response Middle";
    RC_RDMA_READ_RESPONSE_LAST = 0x0f, "RC RDMA READ response Last";
    RC_RDMA_READ_RESPONSE_ONLY = 0x10, "RC RDMA READ response Only";
    RC_ACKNOWLEDGE = 0x11, "RC Acknowledge";
    RC_ATOMIC_ACKNOWLEDGE = 0x12, "RC ATOMIC Acknowledge";
    RC_COMPARE_SWAP = 0x13, "RC CmpSwap";
    RC_FETCH_ADD = 0x14, "RC FetchAdd";
    RC_SEND_LAST_WITH_INVALIDATE = 0x16, "RC SEND Last with Invalidate";
    RC_SEND_ONLY_WITH_INVALIDATE = 0x17, "RC SEND Only with Invalidate";
    UD_SEND_ONLY = 0x64, "UD SEND Only";
    UD_SEND_ONLY_WITH_IMMEDIATE = 0x65, "UD SEND Only with Immediate";
    CNP = 0x80, "CNP";
    ROCE_CNP = 0x81, "RoCE CNP";
}

impl Opcode {
    /// Whether it is that of a congestion notification packet: [`Opcode::CNP`] of InfiniBand
    /// (IBA vol. 1, A10.3.2) or [`Opcode::ROCE_CNP`] (annex A17.9.3).
    pub const fn is_cnp(self) -> bool {
        self.0 == Opcode::CNP.0 || self.0 == Opcode::ROCE_CNP.0
    }
}

/// A transport service: the upper three bits of an opcode (IBA vol. 1, 9.2.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Service {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Reliable datagram.
    Rd,
    /// Unreliable datagram.
    Ud,
    /// Congestion notification.
    Cnp,
    /// Extended reliable connection (annex A14).
    Xrc,
    /// Reserved, or a manufacturer's.
    Other,
}

impl Service {
    /// What people call it.
    pub const fn name(self) -> &'static str {
        match self {
            Service::Rc => "RC",
            Service::Uc => "UC",
            Service::Rd => "RD",
            Service::Ud => "UD",
            Service::Cnp => "CNP",
            Service::Xrc => "XRC",
            Service::Other => "other",
        }
    }

    /// Whether what it sends is acknowledged.
    pub const fn is_reliable(self) -> bool {
        matches!(self, Service::Rc | Service::Rd | Service::Xrc)
    }
}

/// Where the extended headers of a packet are, behind its BTH, and what they take together
/// (IBA vol. 1, 9.3, table 38).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Extended {
    /// Bytes of all of them.
    pub bytes: u8,
    /// Where a DETH begins.
    pub deth: Option<u8>,
    /// Where a RETH begins.
    pub reth: Option<u8>,
    /// Where an AETH begins.
    pub aeth: Option<u8>,
}

impl Opcode {
    /// The operation: its lower five bits.
    pub const fn operation(self) -> u8 {
        self.0 & 0x1f
    }

    /// Its transport service.
    pub const fn service(self) -> Service {
        match self.0 >> 5 {
            0 => Service::Rc,
            1 => Service::Uc,
            2 => Service::Rd,
            3 => Service::Ud,
            4 if self.is_cnp() => Service::Cnp,
            5 => Service::Xrc,
            _ => Service::Other,
        }
    }

    /// Whether a responder sends it: a response to an RDMA READ, or an acknowledgement. Its PSN is
    /// that of a request.
    pub const fn is_response(self) -> bool {
        self.service().is_reliable() && matches!(self.operation(), 0x0d..=0x12)
    }

    /// Whether it asks for an RDMA READ: as many PSNs follow it as the response has packets.
    pub const fn is_read_request(self) -> bool {
        self.service().is_reliable() && self.operation() == Opcode::RC_RDMA_READ_REQUEST.0
    }

    /// What follows its BTH before the payload; nothing of the services that are not known.
    pub const fn extended(self) -> Extended {
        let service = self.service();
        let mut all = Extended { bytes: 0, deth: None, reth: None, aeth: None };
        match service {
            Service::Rd => all.bytes = 4,
            Service::Xrc if !self.is_response() => all.bytes = 4,
            Service::Cnp | Service::Other => return all,
            _ => {}
        }
        if matches!(service, Service::Ud) || matches!(service, Service::Rd) && !self.is_response() {
            all.deth = Some(all.bytes);
            all.bytes += 8;
        }
        match self.operation() {
            // An immediate or what is to be invalidated.
            0x03 | 0x05 | 0x09 | 0x16 | 0x17 => all.bytes += 4,
            0x06 | 0x0a | 0x0c => {
                all.reth = Some(all.bytes);
                all.bytes += 16;
            }
            0x0b => {
                all.reth = Some(all.bytes);
                all.bytes += 20;
            }
            0x0d | 0x0f | 0x10 | 0x11 => {
                all.aeth = Some(all.bytes);
                all.bytes += 4;
            }
            0x12 => {
                all.aeth = Some(all.bytes);
                all.bytes += 12;
            }
            0x13 | 0x14 => all.bytes += 28,
            _ => {}
        }
        all
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(opcode, _)| opcode == self) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "opcode 0x{:02x}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opcodes_have_the_numbers_of_the_specification_and_each_one_name() {
        // Transport service in the upper three bits: 000 RC, 011 UD.
        for (opcode, name) in NAMES {
            let service = match opcode.0 >> 5 {
                0 => "RC ",
                3 => "UD ",
                _ => "",
            };
            assert!(name.starts_with(service), "{name}");
        }
        assert!(NAMES.is_sorted_by(|(a, _), (b, _)| a < b));
        let named: Vec<String> =
            [0x00, 0x02, 0x04, 0x11, 0x64, 0x80, 0x81].map(|byte| Opcode(byte).to_string()).into();
        let expected = [
            "RC SEND First",
            "RC SEND Last",
            "RC SEND Only",
            "RC Acknowledge",
            "UD SEND Only",
            "CNP",
            "RoCE CNP",
        ];
        assert_eq!(named, expected);
        assert_eq!(Opcode(0x9f).to_string(), "opcode 0x9f");
    }

    #[test]
    fn extended_headers_are_where_table_38_has_them() {
        let bytes = |opcode: u8| Opcode(opcode).extended().bytes;
        assert_eq!([0x04, 0x05, 0x0a, 0x0b, 0x0c].map(bytes), [0, 4, 16, 20, 16]);
        assert_eq!([0x0d, 0x0e, 0x11, 0x12, 0x13].map(bytes), [4, 0, 4, 12, 28]);
        // UD has a DETH first, XRC names a queue, its responses do not.
        assert_eq!([0x64, 0x65, 0xa4, 0xaa, 0xb1, 0x80, 0xff].map(bytes), [8, 12, 4, 20, 4, 0, 0]);
        assert_eq!(Opcode(0xaa).extended().reth, Some(4));
        assert_eq!(Opcode::UD_SEND_ONLY.extended().deth, Some(0));
        assert_eq!(Opcode::RC_ACKNOWLEDGE.extended().aeth, Some(0));
        assert!(Opcode::RC_ACKNOWLEDGE.is_response() && !Opcode::RC_SEND_LAST.is_response());
        assert!(Opcode::RC_RDMA_READ_REQUEST.is_read_request());
    }

    #[test]
    fn two_opcodes_are_congestion_notifications() {
        let cnps: Vec<u8> = (0..=u8::MAX).filter(|byte| Opcode(*byte).is_cnp()).collect();
        assert_eq!(cnps, [0x80, 0x81]);
    }
}
