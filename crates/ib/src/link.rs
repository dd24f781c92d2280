//! How fast a link is: width, speed and the time a byte takes.

use crate::BitsPerSecond;
use std::fmt;

/// The number of lanes (in the physical sense) of a link (IBA vol. 2, 5).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)]
pub enum LinkWidth {
    X1,
    X2,
    X4,
    X8,
    X12,
}

impl LinkWidth {
    /// All widths, narrowest first.
    pub const ALL: &[LinkWidth] =
        &[LinkWidth::X1, LinkWidth::X2, LinkWidth::X4, LinkWidth::X8, LinkWidth::X12];

    /// 1, 2, 4, 8 or 12.
    pub const fn lanes(self) -> u64 {
        match self {
            LinkWidth::X1 => 1,
            LinkWidth::X2 => 2,
            LinkWidth::X4 => 4,
            LinkWidth::X8 => 8,
            LinkWidth::X12 => 12,
        }
    }

    /// Reads `4x`, as `ibnetdiscover` and `opensm-subnet.lst` write it.
    pub fn from_name(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|width| width.to_string() == text)
    }
}

impl fmt::Display for LinkWidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x", self.lanes())
    }
}

/// The signalling generation of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)]
pub enum LinkSpeed {
    Sdr,
    Ddr,
    Qdr,
    Fdr10,
    Fdr,
    Edr,
    Hdr,
    Ndr,
    Xdr,
}

impl LinkSpeed {
    /// All speeds, slowest first.
    pub const ALL: &[LinkSpeed] = &[
        LinkSpeed::Sdr,
        LinkSpeed::Ddr,
        LinkSpeed::Qdr,
        LinkSpeed::Fdr10,
        LinkSpeed::Fdr,
        LinkSpeed::Edr,
        LinkSpeed::Hdr,
        LinkSpeed::Ndr,
        LinkSpeed::Xdr,
    ];

    /// Data rate of one lane after line coding: 8b/10b up to QDR, 64b/66b from FDR10 on; HDR and
    /// later as marketed, forward error correction already paid for.
    pub const fn per_lane(self) -> BitsPerSecond {
        BitsPerSecond(match self {
            LinkSpeed::Sdr => 2_000_000_000,
            LinkSpeed::Ddr => 4_000_000_000,
            LinkSpeed::Qdr => 8_000_000_000,
            LinkSpeed::Fdr10 => 10_000_000_000,
            LinkSpeed::Fdr => 13_636_363_636,
            LinkSpeed::Edr => 25_000_000_000,
            LinkSpeed::Hdr => 50_000_000_000,
            LinkSpeed::Ndr => 100_000_000_000,
            LinkSpeed::Xdr => 200_000_000_000,
        })
    }

    /// The word the tools print: `SDR`, `FDR10`, …
    pub const fn name(self) -> &'static str {
        match self {
            LinkSpeed::Sdr => "SDR",
            LinkSpeed::Ddr => "DDR",
            LinkSpeed::Qdr => "QDR",
            LinkSpeed::Fdr10 => "FDR10",
            LinkSpeed::Fdr => "FDR",
            LinkSpeed::Edr => "EDR",
            LinkSpeed::Hdr => "HDR",
            LinkSpeed::Ndr => "NDR",
            LinkSpeed::Xdr => "XDR",
        }
    }

    /// Reads the word the tools print, in capitals.
    pub fn from_name(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|speed| speed.name() == text)
    }
}

impl fmt::Display for LinkSpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The time one byte takes on a link, in femtoseconds: 250,000 for 4x QDR, 20,000 for 4x NDR.
///
/// A rate that does not divide a second evenly (FDR) is off by less than 4 parts in a million.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkRate {
    femtoseconds_per_byte: u32,
}

impl LinkRate {
    /// The rate of a link of this width and speed.
    pub const fn of(width: LinkWidth, speed: LinkSpeed) -> Self {
        match Self::from_bits(BitsPerSecond(width.lanes() * speed.per_lane().0)) {
            Some(rate) => rate,
            None => unreachable!(),
        }
    }

    /// The rate nearest to `rate`; nothing below 2 Mb/s (32-bit femtoseconds) or above 8 Tb/s
    /// (1 ps a byte, where rounding to picoseconds would start to count).
    pub const fn from_bits(rate: BitsPerSecond) -> Option<Self> {
        if rate.0 < 2_000_000 || rate.0 > 8_000_000_000_000 {
            return None;
        }
        // 8 bits × 1e15 fs/s, rounded to the nearest femtosecond.
        let fs = (8_000_000_000_000_000 + rate.0 / 2) / rate.0;
        if fs > u32::MAX as u64 {
            None
        } else {
            Some(LinkRate { femtoseconds_per_byte: fs as u32 })
        }
    }

    /// Femtoseconds a byte takes.
    pub const fn femtoseconds_per_byte(self) -> u32 {
        self.femtoseconds_per_byte
    }

    /// Picoseconds that `bytes` occupy the link, rounded to the nearest.
    #[inline(always)]
    pub const fn serialisation(self, bytes: u64) -> u64 {
        (bytes * self.femtoseconds_per_byte as u64 + 500) / 1000
    }

    /// The rate in bits per second.
    pub const fn bits_per_second(self) -> BitsPerSecond {
        let fs = self.femtoseconds_per_byte as u64;
        BitsPerSecond((8_000_000_000_000_000 + fs / 2) / fs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_byte_is_what_the_rate_says() {
        let fs = |w, s| LinkRate::of(w, s).femtoseconds_per_byte();
        assert_eq!(fs(LinkWidth::X4, LinkSpeed::Sdr), 1_000_000);
        assert_eq!(fs(LinkWidth::X4, LinkSpeed::Qdr), 250_000);
        assert_eq!(fs(LinkWidth::X4, LinkSpeed::Fdr), 146_667);
        assert_eq!(fs(LinkWidth::X4, LinkSpeed::Edr), 80_000);
        assert_eq!(fs(LinkWidth::X4, LinkSpeed::Ndr), 20_000);
        assert_eq!(LinkRate::of(LinkWidth::X4, LinkSpeed::Qdr).serialisation(2082), 520_500);
    }

    #[test]
    fn names_read_back() {
        for speed in LinkSpeed::ALL {
            assert_eq!(LinkSpeed::from_name(speed.name()), Some(*speed));
        }
        for width in LinkWidth::ALL {
            assert_eq!(LinkWidth::from_name(&width.to_string()), Some(*width));
        }
        assert_eq!(LinkSpeed::from_name("???"), None);
    }
}
