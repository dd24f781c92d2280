//! Who is who in a subnet: GUIDs, LIDs, LMC and port numbers.

use crate::QuantityError;
use std::fmt;

/// A 64-bit globally unique identifier of a node, a port or a system (IBA vol. 1, 4.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Guid(pub u64);

impl Guid {
    /// Parses hexadecimal digits with or without `0x`. Fails on anything else or over 64 bits.
    pub fn from_hex(text: &str) -> Result<Self, QuantityError> {
        let digits = text.strip_prefix("0x").or(text.strip_prefix("0X")).unwrap_or(text);
        if digits.is_empty() || digits.len() > 16 || !digits.bytes().all(|b| b.is_ascii_hexdigit())
        {
            return Err(QuantityError::new("a GUID", text, "1 to 16 hexadecimal digits"));
        }
        u64::from_str_radix(digits, 16)
            .map(Guid)
            .map_err(|_| QuantityError::new("a GUID", text, "1 to 16 hexadecimal digits"))
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:016x}", self.0)
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A unicast local identifier, 1 to 0xBFFF (IBA vol. 1, 4.1.3). Zero and the multicast range are
/// not representable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Lid(u16);

impl Lid {
    /// The largest unicast LID: a subnet has 49,151 of them.
    pub const MAX: Lid = Lid(0xBFFF);

    /// A LID if `value` lies in 1..=0xBFFF, else nothing.
    pub const fn new(value: u16) -> Option<Self> {
        if value >= 1 && value <= Self::MAX.0 { Some(Lid(value)) } else { None }
    }

    /// The number, 1..=0xBFFF.
    pub const fn value(self) -> u16 {
        self.0
    }
}

impl fmt::Display for Lid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// LID mask control, 0 to 7: a port answers to 2^LMC consecutive LIDs (IBA vol. 1, 4.1.3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Lmc(u8);

impl Lmc {
    /// An LMC if `value` lies in 0..=7, else nothing. It is a 3-bit field of PortInfo.
    pub const fn new(value: u8) -> Option<Self> {
        if value <= 7 { Some(Lmc(value)) } else { None }
    }

    /// The number, 0..=7.
    pub const fn value(self) -> u8 {
        self.0
    }

    /// How many LIDs a port has: 1 to 128.
    pub const fn lids(self) -> u16 {
        1 << self.0
    }
}

/// A port's number within its node, 0 to 254; 0 is a switch's management port
/// (IBA vol. 1, 18.2.4). 255 means "no port" in a forwarding table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PortNumber(u8);

impl PortNumber {
    /// The management port of a switch.
    pub const MANAGEMENT: PortNumber = PortNumber(0);

    /// A port number if `value` lies in 0..=254, else nothing.
    pub const fn new(value: u8) -> Option<Self> {
        if value <= 254 { Some(PortNumber(value)) } else { None }
    }

    /// The number, 0..=254.
    pub const fn value(self) -> u8 {
        self.0
    }
}

impl fmt::Display for PortNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guid_reads_what_it_prints() {
        let guid = Guid(0x0002_c903_0004_e938);
        assert_eq!(Guid::from_hex(&guid.to_string()).unwrap(), guid);
        assert_eq!(Guid::from_hex("2c9030004e938").unwrap(), guid);
        assert!(Guid::from_hex("0x").is_err());
        assert!(Guid::from_hex("0x12345678901234567").is_err());
        assert!(Guid::from_hex("+1").is_err());
    }

    #[test]
    fn the_reserved_values_are_not_lids() {
        assert!(Lid::new(0).is_none());
        assert!(Lid::new(0xC000).is_none());
        assert_eq!(Lid::new(0xBFFF), Some(Lid::MAX));
        assert!(Lmc::new(8).is_none());
        assert_eq!(Lmc::new(7).unwrap().lids(), 128);
        assert!(PortNumber::new(255).is_none());
    }
}
