//! What lies around a packet: Ethernet with VLAN tags, Linux' cooked captures, IP and UDP.

use crate::dissect::{Dissected, Other, Whole, roce_v1, roce_v2};
use crate::endpoint::Endpoint;
use crate::files::{LinkType, Record};

/// A link type: its number, its name, and how packets are found in it.
struct Entry {
    link: u32,
    name: &'static str,
    dissect: fn(Whole<'_>) -> Dissected,
}

/// Those that packets of InfiniBand or RoCE are looked for in (www.tcpdump.org/linktypes.html).
const ALL: &[Entry] = &[
    Entry { link: 1, name: "Ethernet", dissect: ethernet },
    Entry { link: 247, name: "InfiniBand", dissect: crate::dissect::native },
    Entry { link: 101, name: "IP", dissect: ip },
    Entry { link: 113, name: "Linux cooked", dissect: |whole| cooked(whole, 14, 16) },
    Entry { link: 276, name: "Linux cooked 2", dissect: |whole| cooked(whole, 0, 20) },
    Entry { link: 228, name: "IPv4", dissect: ip },
    Entry { link: 229, name: "IPv6", dissect: ip },
];

const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
const TYPE_IPV4: u16 = 0x0800;
const TYPE_IPV6: u16 = 0x86dd;
/// RoCE v1 (annex A16).
const TYPE_ROCE: u16 = 0x8915;
const UDP: u8 = 17;
/// RoCE v2 (annex A17.4.5.2): the destination port alone says so. The source port only spreads
/// flows over paths, and may be that of any other protocol.
pub(crate) const ROCE_PORT: u16 = 4791;
/// Tags that are taken off.
const TAGS_MAX: usize = 4;

impl LinkType {
    /// Its name; nothing of one in which no packets are looked for.
    pub fn name(self) -> Option<&'static str> {
        ALL.iter().find(|entry| entry.link == self.0).map(|entry| entry.name)
    }
}

/// What a record holds; its CRCs are computed if they are asked for.
#[inline]
pub fn dissect(record: &Record<'_>, crcs: bool) -> Dissected {
    let whole =
        Whole { bytes: record.bytes, wire_bytes: record.wire_bytes, time_ns: record.time_ns, crcs };
    match ALL.iter().find(|entry| entry.link == record.link.0) {
        Some(entry) => (entry.dissect)(whole),
        None => Dissected::Other(Other::NotRdma),
    }
}

#[inline(always)]
fn half(bytes: &[u8], from: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(from..)?.first_chunk()?))
}

fn ethernet(whole: Whole<'_>) -> Dissected {
    typed(whole, 12)
}

/// A cooked capture, whose ethertype and content are at these places.
fn cooked(whole: Whole<'_>, kind: usize, content: usize) -> Dissected {
    match half(whole.bytes, kind) {
        // Behind a tag's two bytes comes the next ethertype.
        Some(tag) if VLAN.contains(&tag) => typed(whole, content + 2),
        Some(ethertype) => network(whole, ethertype, content),
        None => Dissected::Other(Other::NotRdma),
    }
}

/// From an ethertype on, VLAN tags taken off.
#[inline(always)]
fn typed(whole: Whole<'_>, mut at: usize) -> Dissected {
    for _ in 0..=TAGS_MAX {
        match half(whole.bytes, at) {
            Some(tag) if VLAN.contains(&tag) => at += 4,
            Some(ethertype) => return network(whole, ethertype, at + 2),
            None => break,
        }
    }
    Dissected::Other(Other::NotRdma)
}

#[inline(always)]
fn network(whole: Whole<'_>, ethertype: u16, at: usize) -> Dissected {
    match ethertype {
        TYPE_IPV4 => ipv4(whole, at),
        TYPE_IPV6 => ipv6(whole, at),
        TYPE_ROCE => roce_v1(whole, at),
        _ => Dissected::Other(Other::NotRdma),
    }
}

fn ip(whole: Whole<'_>) -> Dissected {
    match whole.bytes.first().map(|first| first >> 4) {
        Some(4) => ipv4(whole, 0),
        Some(6) => ipv6(whole, 0),
        _ => Dissected::Other(Other::NotRdma),
    }
}

#[inline(always)]
fn ipv4(whole: Whole<'_>, at: usize) -> Dissected {
    let not = Dissected::Other(Other::NotRdma);
    let Some(ip) = whole.bytes.get(at..) else { return not };
    let Some(header) = ip.first_chunk::<20>() else { return not };
    let length = usize::from(header[0] & 0xf) * 4;
    // A fragment that is not the first has no UDP header.
    let offset = u16::from_be_bytes([header[6], header[7]]) & 0x1fff;
    if header[0] >> 4 != 4 || length < 20 || header[9] != UDP || offset != 0 {
        return not;
    }
    let word = |from: usize| {
        u32::from_be_bytes([header[from], header[from + 1], header[from + 2], header[from + 3]])
    };
    let ends = (Endpoint::Ipv4(word(12)), Endpoint::Ipv4(word(16)));
    datagram(whole, at, at + length, ends, header[1])
}

fn ipv6(whole: Whole<'_>, at: usize) -> Dissected {
    let not = Dissected::Other(Other::NotRdma);
    let Some(ip) = whole.bytes.get(at..) else { return not };
    let Some(header) = ip.first_chunk::<40>() else { return not };
    if header[0] >> 4 != 6 || header[6] != UDP {
        return not;
    }
    let address = |from: usize| {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&header[from..from + 16]);
        Endpoint::Ipv6(u128::from_be_bytes(bytes))
    };
    let class = header[0] << 4 | header[1] >> 4;
    datagram(whole, at, at + 40, (address(8), address(24)), class)
}

/// A UDP datagram at `udp` of a packet of IP at `ip`.
#[inline(always)]
fn datagram(
    whole: Whole<'_>,
    ip: usize,
    udp: usize,
    ends: (Endpoint, Endpoint),
    class: u8,
) -> Dissected {
    match half(whole.bytes, udp + 2) {
        Some(ROCE_PORT) => roce_v2(whole, ip, udp, ends, class),
        _ => Dissected::Other(Other::NotRdma),
    }
}
