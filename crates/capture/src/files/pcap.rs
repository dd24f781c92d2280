//! pcap, as tcpdump and ibdump write it: a header, then a header and the bytes of each packet.

use super::erf;
use super::{Entry, Fault, Format, Input, Interface, LinkType, RECORD_BYTES_MAX, Record};

/// Its entry.
pub(super) const ENTRY: Entry = Entry {
    name: "pcap",
    summary: "pcap of tcpdump or ibdump, times in microseconds or nanoseconds, either byte order",
    is_it: |input| Ok(Magic::of(input.peek(4)?).is_some()),
    open: |input| Ok(Box::new(Pcap::open(input)?)),
};

const HEADER: usize = 24;
const PACKET_HEADER: usize = 16;

/// What the first four bytes say.
#[derive(Clone, Copy)]
struct Magic {
    big_endian: bool,
    /// Nanoseconds in a unit of the fraction of a second.
    unit_ns: u64,
}

impl Magic {
    fn of(first: &[u8]) -> Option<Magic> {
        let magic = |big_endian, unit_ns| Some(Magic { big_endian, unit_ns });
        match first.first_chunk()? {
            [0xa1, 0xb2, 0xc3, 0xd4] => magic(true, 1000),
            [0xd4, 0xc3, 0xb2, 0xa1] => magic(false, 1000),
            [0xa1, 0xb2, 0x3c, 0x4d] => magic(true, 1),
            [0x4d, 0x3c, 0xb2, 0xa1] => magic(false, 1),
            _ => None,
        }
    }

    #[inline(always)]
    fn word(self, bytes: [u8; 4]) -> u32 {
        if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }
}

struct Pcap {
    magic: Magic,
    link: LinkType,
    interfaces: Vec<Interface>,
    clock: erf::Clock,
}

impl Pcap {
    fn open(input: &mut Input<'_>) -> Result<Self, Fault> {
        let whole = |header: &[u8]| header.first_chunk::<HEADER>().copied();
        let header = input.take(HEADER)?.and_then(whole);
        let header = header.ok_or_else(|| Fault::damaged(0, "it ends within its header"))?;
        let magic = Magic::of(&header).ok_or(Fault::Unknown)?;
        let network = magic.word([header[20], header[21], header[22], header[23]]);
        // The upper half says whether there is a frame check sequence.
        let link = LinkType(network & 0xffff);
        let interfaces = vec![Interface::default(); erf::interfaces_of(link)];
        Ok(Pcap { magic, link, interfaces, clock: erf::Clock::default() })
    }
}

impl Format for Pcap {
    #[inline]
    fn next<'i>(&mut self, input: &'i mut Input<'_>) -> Result<Option<Record<'i>>, Fault> {
        let at = input.position();
        let Some(header) = input.peek(PACKET_HEADER)?.first_chunk::<PACKET_HEADER>() else {
            return Ok(None);
        };
        let word = |from: usize| {
            let bytes = [header[from], header[from + 1], header[from + 2], header[from + 3]];
            self.magic.word(bytes)
        };
        let (seconds, fraction, kept, wire_bytes) = (word(0), word(4), word(8), word(12));
        let kept = kept as usize;
        if kept > RECORD_BYTES_MAX {
            let what = format!("a packet of {kept} bytes; copy the file again");
            return Err(Fault::damaged(at, what));
        }
        let Some(all) = input.take(PACKET_HEADER + kept)? else { return Ok(None) };
        let bytes = &all[PACKET_HEADER..];
        let time_ns = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * self.magic.unit_ns;
        let (link, interface) = (self.link, 0);
        let record = Record { time_ns, interface, link, bytes, wire_bytes };
        if link != erf::LINK_TYPE {
            return Ok(Some(record));
        }
        let coarse = (self.magic.unit_ns == 1000).then_some((seconds, fraction));
        Ok(Some(erf::unwrapped(record, coarse, &mut self.clock)))
    }

    fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    fn corrected(&self) -> u64 {
        self.clock.corrected
    }
}
