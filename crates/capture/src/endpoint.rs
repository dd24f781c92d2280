//! Who sends or receives: an address of one of the networks that packets travel over.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// An address at one end of a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Endpoint {
    /// A LID, of InfiniBand.
    Lid(u16),
    /// A GID, of RoCE v1.
    Gid(u128),
    /// An IPv4 address, of RoCE v2.
    Ipv4(u32),
    /// An IPv6 address, of RoCE v2.
    Ipv6(u128),
}

impl Endpoint {
    /// A number that says its kind and one that says which, for look-ups.
    #[inline(always)]
    pub(crate) fn key(self) -> (u8, u128) {
        match self {
            Endpoint::Lid(lid) => (0, u128::from(lid)),
            Endpoint::Gid(gid) => (1, gid),
            Endpoint::Ipv4(address) => (2, u128::from(address)),
            Endpoint::Ipv6(address) => (3, address),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Endpoint::Lid(lid @ 0xc000..=0xfffe) => format!("MLID 0x{lid:x}"),
            Endpoint::Lid(lid) => format!("LID {lid}"),
            // IPv4 addresses as RoCE maps them are shown as such.
            Endpoint::Gid(gid) => match Ipv6Addr::from(*gid).to_ipv4_mapped() {
                Some(address) => address.to_string(),
                None => Ipv6Addr::from(*gid).to_string(),
            },
            Endpoint::Ipv4(address) => Ipv4Addr::from(*address).to_string(),
            Endpoint::Ipv6(address) => Ipv6Addr::from(*address).to_string(),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_people_write_them() {
        assert_eq!(Endpoint::Lid(7).to_string(), "LID 7");
        assert_eq!(Endpoint::Lid(0xc001).to_string(), "MLID 0xc001");
        assert_eq!(Endpoint::Ipv4(0x0a00_0001).to_string(), "10.0.0.1");
        assert_eq!(Endpoint::Gid(0xffff_0a00_0001).to_string(), "10.0.0.1");
        let local = 0xfe80_u128 << 112 | 1;
        assert_eq!(Endpoint::Gid(local).to_string(), "fe80::1");
        assert_eq!(Endpoint::Ipv6(local).to_string(), "fe80::1");
    }
}
