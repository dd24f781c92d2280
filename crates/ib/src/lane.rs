//! Service levels travel in the packet; virtual lanes exist per link.

use std::fmt;

/// Service level, 0 to 15, in every packet's LRH (IBA vol. 1, 7.7).
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Debug,
    Default,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(into = "u8", try_from = "u8")]
pub struct ServiceLevel(u8);

impl From<ServiceLevel> for u8 {
    fn from(level: ServiceLevel) -> Self {
        level.0
    }
}

impl TryFrom<u8> for ServiceLevel {
    type Error = &'static str;

    fn try_from(value: u8) -> Result<Self, Self::Error> {
        ServiceLevel::new(value).ok_or("service levels are 0 to 15")
    }
}

impl ServiceLevel {
    /// How many there are.
    pub const COUNT: usize = 16;

    /// A service level if `value` lies in 0..=15, else nothing.
    pub const fn new(value: u8) -> Option<Self> {
        if value <= 15 { Some(ServiceLevel(value)) } else { None }
    }

    /// The number, 0..=15.
    pub const fn value(self) -> u8 {
        self.0
    }
}

impl fmt::Display for ServiceLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A data virtual lane, 0 to 14 (IBA vol. 1, 7.6). VL15 carries management packets and is not one
/// of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct VirtualLane(u8);

impl VirtualLane {
    /// How many data lanes a link can have.
    pub const COUNT: usize = 15;

    /// A data lane if `value` lies in 0..=14, else nothing.
    pub const fn new(value: u8) -> Option<Self> {
        if value <= 14 { Some(VirtualLane(value)) } else { None }
    }

    /// The number, 0..=14.
    pub const fn value(self) -> u8 {
        self.0
    }
}

impl fmt::Display for VirtualLane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
