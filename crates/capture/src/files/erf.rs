//! ERF, the records of Endace's cards and of ibdump: in files of their own, and within pcap and
//! pcapng, where each packet begins with such a header.

use super::{Entry, Fault, Format, Input, Interface, LinkType, Record};
use std::io;

/// Its entry.
pub(super) const ENTRY: Entry = Entry {
    name: "erf",
    summary: "ERF records of an Endace card, or of Wireshark's export, in a file of their own",
    is_it: begins_with_records,
    open: |_| Ok(Box::new(Erf { interfaces: vec![Interface::default(); INTERFACES] })),
};

/// `LINKTYPE_ERF`.
pub(crate) const LINK_TYPE: LinkType = LinkType(197);
/// A record of type 21, InfiniBand, without its header: `LINKTYPE_INFINIBAND`.
pub(crate) const INFINIBAND: LinkType = LinkType(247);
/// Stands for the records that are no InfiniBand packet: link packets and Endace's own.
pub(crate) const OTHER: LinkType = LinkType(u32::MAX);
/// `LINKTYPE_ETHERNET`.
pub(crate) const ETHERNET: LinkType = LinkType(1);

/// Bytes of a record's header without extensions.
pub(crate) const HEADER: usize = 16;
const EXTENSION: usize = 8;
/// Two bits of the flags number the interface.
pub(crate) const INTERFACES: usize = 4;
/// Types: Ethernet (2), InfiniBand (21), packets of InfiniBand links (25).
const TYPE_ETHERNET: u8 = 2;
pub(crate) const TYPE_INFINIBAND: u8 = 21;
const TYPES_MAX: u8 = 30;
/// Flags that no card sets.
const RESERVED: u8 = 0xc0;
/// Extension headers follow.
const MORE: u8 = 0x80;
/// Before the frame of an Ethernet record: offset and padding.
const ETHERNET_PAD: usize = 2;

/// How many interfaces a file of this link type has.
pub(super) fn interfaces_of(link: LinkType) -> usize {
    if link == LINK_TYPE { INTERFACES } else { 1 }
}

struct Header {
    seconds: u32,
    /// Of a second, in 2^-32 s.
    fraction: u32,
    kind: u8,
    flags: u8,
    /// Bytes of the record, this header included.
    record: usize,
    wire_bytes: u32,
}

impl Header {
    #[inline(always)]
    fn read(bytes: &[u8]) -> Option<Header> {
        let [f0, f1, f2, f3, s0, s1, s2, s3, kind, flags, r1, r0, _, _, w1, w0] =
            *bytes.first_chunk::<HEADER>()?;
        Some(Header {
            seconds: u32::from_le_bytes([s0, s1, s2, s3]),
            fraction: u32::from_le_bytes([f0, f1, f2, f3]),
            kind,
            flags,
            record: usize::from(u16::from_be_bytes([r1, r0])),
            wire_bytes: u32::from(u16::from_be_bytes([w1, w0])),
        })
    }

    fn interface(&self) -> u32 {
        u32::from(self.flags & 3)
    }

    /// In 2^-32 s.
    fn time(&self) -> u64 {
        u64::from(self.seconds) << 32 | u64::from(self.fraction)
    }

    /// Whether a card could have written it: a type that exists, no flag that none sets.
    fn is_possible(&self) -> bool {
        (1..=TYPES_MAX).contains(&(self.kind & !MORE)) && self.flags & RESERVED == 0
    }

    /// Whether what is kept of the packet is what it had on the wire, and alignment.
    fn is_whole(&self, headers: usize) -> bool {
        let beyond = self.record.checked_sub(headers + self.wire_bytes as usize);
        beyond.is_some_and(|beyond| beyond < PADDING_END)
    }

    /// Whether it may follow the other: interfaces hand packets on late, but not by much.
    fn may_follow(&self, before: &Header) -> bool {
        let (time, before) = (self.time(), before.time());
        time.saturating_add(LATE) >= before && time <= before.saturating_add(GAP)
    }

    fn time_ns(&self) -> u64 {
        // 2^-32 s to the nanosecond, rounded: 0.23 ns are less than what is told apart.
        let fraction = (u64::from(self.fraction) * 1_000_000_000 + (1 << 31)) >> 32;
        u64::from(self.seconds) * 1_000_000_000 + fraction
    }

    /// Whether it is what ibdump makes of a time in microseconds. It takes 4295 units for one where
    /// 4294.967 are, so that its times run ahead by up to 7.6 µs in each second.
    fn is_ibdumps(&self, (seconds, microseconds): (u32, u32)) -> bool {
        // The sum is one of 64 bits: the last microseconds of a second carry into the next.
        let units = u64::from(microseconds) * 4295;
        (u64::from(seconds) << 32).wrapping_add(units) == self.time()
    }
}

/// The first of January 1990, before any card, in seconds since 1970.
const FIRST_SECONDS: u32 = 631_152_000;
/// Padding behind a packet is shorter than this: bytes before a frame, and alignment to 8 bytes.
const PADDING_END: usize = 16;
/// A record may be a second earlier than the one before, and a year later: in 2^-32 s.
const LATE: u64 = 1 << 32;
const GAP: u64 = (365 * 24 * 3600) << 32;
/// Evidence that is enough: one file of noise in a hundred millions has so much.
const ENOUGH: usize = 3;

/// Whether a file is ERF. No number says so, but its records do: the length of each leads to the
/// next. Each header that is possible and may follow the one before is a piece of evidence, and so
/// is each length that is what the packet had on the wire. Less is enough where the file ends as a
/// chain of records does: one piece if it ends behind a record, two if within the next header.
fn begins_with_records(input: &mut Input<'_>) -> io::Result<bool> {
    let (mut at, mut evidence) = (0, 0);
    let mut before: Option<Header> = None;
    while evidence < ENOUGH {
        let there = input.peek(at + HEADER)?;
        let Some(left) = there.len().checked_sub(at) else { return Ok(false) };
        let Some(header) = Header::read(&there[at..]) else {
            return Ok(evidence > usize::from(left > 0));
        };
        let headers = headers_bytes(&header, &input.peek(at + header.record)?[at..]);
        let is_whole = header.is_whole(headers);
        // A simulated capture may begin in 1970.
        if !header.is_possible()
            || headers > header.record
            || !(is_whole || header.seconds >= FIRST_SECONDS)
            || before.is_some_and(|before| !header.may_follow(&before))
        {
            return Ok(false);
        }
        evidence += 1 + usize::from(is_whole);
        at += header.record;
        before = Some(header);
    }
    Ok(true)
}

/// Bytes of a record's header and its extensions, as far as the record is there.
fn headers_bytes(header: &Header, record: &[u8]) -> usize {
    let mut bytes = HEADER;
    let mut more = header.kind & MORE != 0;
    while more {
        more = record.get(bytes).is_some_and(|extension| extension & MORE != 0);
        bytes += EXTENSION;
    }
    bytes
}

/// Whether the times of a file are ibdump's, as far as is known. All of its are; another clock's
/// may be by chance, one time in 4295 in the first 131 ms of a second.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Clock {
    /// A time was seen that is not.
    is_other: bool,
    /// Times that were corrected.
    pub(super) corrected: u64,
}

/// What is in an ERF record, its time corrected if the clock is ibdump's: `coarse` is what the pcap
/// header around it says in seconds and microseconds.
#[inline]
pub(super) fn unwrapped<'a>(
    record: Record<'a>,
    coarse: Option<(u32, u32)>,
    clock: &mut Clock,
) -> Record<'a> {
    let Some(header) = Header::read(record.bytes) else {
        return Record { link: OTHER, ..record };
    };
    clock.is_other |= !coarse.is_some_and(|coarse| header.is_ibdumps(coarse));
    let mut time_ns = header.time_ns();
    if !clock.is_other && time_ns != record.time_ns {
        clock.corrected += 1;
        time_ns = record.time_ns;
    }
    let (link, bytes) = content(&header, record.bytes);
    // What the header says of the record is less than what is there where Endace pads.
    let wire_bytes = header.wire_bytes;
    Record { time_ns, interface: header.interface(), link, bytes, wire_bytes }
}

/// The packet in a record, without padding behind it.
#[inline]
fn content<'a>(header: &Header, record: &'a [u8]) -> (LinkType, &'a [u8]) {
    let mut rest = record.get(HEADER..).unwrap_or_default();
    let mut more = header.kind & MORE != 0;
    while more {
        let Some((extension, after)) = rest.split_at_checked(EXTENSION) else {
            return (OTHER, rest);
        };
        more = extension[0] & MORE != 0;
        rest = after;
    }
    let wire = header.wire_bytes as usize;
    match header.kind & !MORE {
        TYPE_INFINIBAND => (INFINIBAND, &rest[..rest.len().min(wire)]),
        TYPE_ETHERNET => {
            let frame = rest.get(ETHERNET_PAD..).unwrap_or_default();
            (ETHERNET, &frame[..frame.len().min(wire)])
        }
        _ => (OTHER, rest),
    }
}

struct Erf {
    interfaces: Vec<Interface>,
}

impl Format for Erf {
    fn next<'i>(&mut self, input: &'i mut Input<'_>) -> Result<Option<Record<'i>>, Fault> {
        let at = input.position();
        let Some(header) = Header::read(input.peek(HEADER)?) else { return Ok(None) };
        if header.record < HEADER {
            let what = format!("a record of {} bytes; copy the file again", header.record);
            return Err(Fault::damaged(at, what));
        }
        let Some(bytes) = input.take(header.record)? else { return Ok(None) };
        let (link, content) = content(&header, bytes);
        Ok(Some(Record {
            time_ns: header.time_ns(),
            interface: header.interface(),
            link,
            bytes: content,
            wire_bytes: header.wire_bytes,
        }))
    }

    fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    fn corrected(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(time: u64) -> Header {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&time.to_le_bytes());
        Header::read(&bytes).unwrap()
    }

    #[test]
    fn ibdumps_times_are_known_up_to_the_end_of_a_second() {
        for microseconds in [0, 1, 500_000, 999_992, 999_993, 999_999] {
            let time = (1700_u64 << 32) + u64::from(microseconds) * 4295;
            assert!(header(time).is_ibdumps((1700, microseconds)), "{microseconds}");
            assert!(!header(time + 1).is_ibdumps((1700, microseconds)), "{microseconds}");
        }
    }
}
