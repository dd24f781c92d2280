//! pcapng, as Wireshark, dumpcap and we write it: blocks, each with its type and length.

use super::erf;
use super::{
    Entry, Fault, Format, Input, Interface, LinkType, RECORD_BYTES_MAX, Record, TIME_NS_MAX,
};
use clearlane_ib::{KEPT_CHARS_MAX, within};

/// Its entry.
pub(super) const ENTRY: Entry = Entry {
    name: "pcapng",
    summary: "pcapng of Wireshark, dumpcap or tshark, several interfaces, any resolution of times",
    is_it: |input| Ok(input.peek(4)? == SECTION.to_be_bytes()),
    open: |_| Ok(Box::new(Pcapng::default())),
};

/// Block types. That of a section header reads alike in both byte orders.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE: u32 = 3;
const ENHANCED: u32 = 6;

/// Options of an interface: its name, the resolution of its times, the seconds added to them.
pub(crate) const IF_NAME: u16 = 2;
pub(crate) const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;

/// Type and length before a block, its length again behind it.
const FRAME: usize = 12;
/// Interfaces that are believed, of all sections.
const INTERFACES_MAX: usize = 1 << 16;

#[derive(Default)]
struct Pcapng {
    big_endian: bool,
    /// Where the interfaces of the section begin.
    section: usize,
    interfaces: Vec<Interface>,
    described: Vec<Described>,
    clock: erf::Clock,
    /// The time of the packet before: that of one whose block has none.
    last_ns: u64,
}

/// What is needed of an interface for each packet.
struct Described {
    link: LinkType,
    snap: usize,
    units: Units,
    offset_ns: i64,
}

/// How a number of units is a time.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Units {
    /// Nanoseconds each.
    Nanoseconds(u64),
    /// So many in a nanosecond.
    PerNanosecond(u64),
    /// 2^-n s each.
    Binary(u32),
}

impl Units {
    /// The option: a power of ten or, with its highest bit, of two.
    fn of(resolution: u8) -> Option<Units> {
        let exponent = u32::from(resolution & 0x7f);
        match resolution & 0x80 {
            0 if exponent <= 9 => Some(Units::Nanoseconds(10_u64.pow(9 - exponent))),
            0 if exponent <= 19 => Some(Units::PerNanosecond(10_u64.pow(exponent - 9))),
            0x80 if exponent < 64 => Some(Units::Binary(exponent)),
            _ => None,
        }
    }

    fn nanoseconds(self, units: u64) -> u64 {
        match self {
            Units::Nanoseconds(each) => units.saturating_mul(each),
            Units::PerNanosecond(many) => units / many,
            Units::Binary(bits) => {
                let all = (u128::from(units) * 1_000_000_000) >> bits;
                u64::try_from(all).unwrap_or(u64::MAX)
            }
        }
    }
}

impl Pcapng {
    #[inline(always)]
    fn word(&self, bytes: &[u8], from: usize) -> u32 {
        match bytes.get(from..).and_then(<[u8]>::first_chunk) {
            Some(word) if self.big_endian => u32::from_be_bytes(*word),
            Some(word) => u32::from_le_bytes(*word),
            None => 0,
        }
    }

    fn half(&self, bytes: &[u8], from: usize) -> u16 {
        match bytes.get(from..).and_then(<[u8]>::first_chunk) {
            Some(half) if self.big_endian => u16::from_be_bytes(*half),
            Some(half) => u16::from_le_bytes(*half),
            None => 0,
        }
    }

    /// A section begins: byte order and interfaces are new.
    fn begin_section(&mut self, at: u64, magic: [u8; 4]) -> Result<(), Fault> {
        self.big_endian = match magic {
            [0x1a, 0x2b, 0x3c, 0x4d] => true,
            [0x4d, 0x3c, 0x2b, 0x1a] => false,
            _ => return Err(Fault::damaged(at, "a section of no byte order; copy the file again")),
        };
        self.section = self.interfaces.len();
        Ok(())
    }

    fn describe(&mut self, at: u64, body: &[u8]) -> Result<(), Fault> {
        if self.interfaces.len() >= INTERFACES_MAX {
            return Err(Fault::damaged(
                at,
                format!("more than {INTERFACES_MAX} interfaces; copy the file again"),
            ));
        }
        let link = LinkType(u32::from(self.half(body, 0)));
        let snap = match self.word(body, 4) {
            0 => usize::MAX,
            snap => snap as usize,
        };
        let mut interface = Interface::default();
        let mut described = Described { link, snap, units: Units::Nanoseconds(1000), offset_ns: 0 };
        let mut rest = body.get(8..).unwrap_or_default();
        while rest.len() >= 4 {
            let (code, length) = (self.half(rest, 0), usize::from(self.half(rest, 2)));
            let Some(value) = rest.get(4..4 + length) else { break };
            match (code, value) {
                (0, _) => break,
                (IF_NAME, name) => {
                    let name = String::from_utf8_lossy(name);
                    interface.name = Some(within(&name, KEPT_CHARS_MAX).into_owned());
                }
                (IF_TSRESOL, [resolution]) => {
                    let units = Units::of(*resolution).ok_or_else(|| {
                        let what =
                            format!("times of resolution 0x{resolution:02x}; write nanoseconds");
                        Fault::damaged(at, what)
                    })?;
                    described.units = units;
                }
                (IF_TSOFFSET, seconds) => {
                    let seconds: Option<[u8; 8]> = seconds.try_into().ok();
                    let seconds = seconds.map_or(0, |bytes| match self.big_endian {
                        true => i64::from_be_bytes(bytes),
                        false => i64::from_le_bytes(bytes),
                    });
                    described.offset_ns = seconds.saturating_mul(1_000_000_000);
                }
                _ => {}
            }
            rest = rest.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
        }
        self.interfaces.push(interface);
        self.described.push(described);
        Ok(())
    }

    /// Which interface a number of the section is.
    #[inline(always)]
    fn interface(&self, at: u64, number: u32) -> Result<usize, Fault> {
        let place = self.section.saturating_add(number as usize);
        match place < self.described.len() {
            true => Ok(place),
            false => Err(Fault::damaged(
                at,
                format!("a packet of interface {number}, which the section does not describe"),
            )),
        }
    }

    /// Where a packet is within the body of its block: interface, time, place, length, wire length.
    #[inline(always)]
    fn packet(&self, at: u64, kind: u32, body: &[u8]) -> Result<Placed, Fault> {
        let (interface, header) = match kind {
            ENHANCED => (self.interface(at, self.word(body, 0))?, 20),
            PACKET => (self.interface(at, u32::from(self.half(body, 0)))?, 20),
            _ => (self.interface(at, 0)?, 4),
        };
        let known = &self.described[interface];
        if kind == SIMPLE {
            let wire_bytes = self.word(body, 0);
            let there = body.len().saturating_sub(header);
            let length = there.min(wire_bytes as usize).min(known.snap);
            let time_ns = self.last_ns;
            return Ok(Placed { interface, time_ns, header, length, wire_bytes });
        }
        let units = u64::from(self.word(body, 4)) << 32 | u64::from(self.word(body, 8));
        let time_ns = known.units.nanoseconds(units).saturating_add_signed(known.offset_ns);
        let time_ns = time_ns.min(TIME_NS_MAX);
        let (length, wire_bytes) = (self.word(body, 12) as usize, self.word(body, 16));
        Ok(Placed { interface, time_ns, header, length, wire_bytes })
    }
}

struct Placed {
    interface: usize,
    time_ns: u64,
    header: usize,
    length: usize,
    wire_bytes: u32,
}

impl Format for Pcapng {
    fn next<'i>(&mut self, input: &'i mut Input<'_>) -> Result<Option<Record<'i>>, Fault> {
        loop {
            let at = input.position();
            let Some(head) = input.peek(FRAME)?.first_chunk::<FRAME>().copied() else {
                return Ok(None);
            };
            let kind = self.word(&head, 0);
            if kind == SECTION {
                self.begin_section(at, [head[8], head[9], head[10], head[11]])?;
            }
            let length = self.word(&head, 4) as usize;
            if !(FRAME..=RECORD_BYTES_MAX).contains(&length) || !length.is_multiple_of(4) {
                let what = format!("a block of {length} bytes; copy the file again");
                return Err(Fault::damaged(at, what));
            }
            let is_packet = matches!(kind, PACKET | SIMPLE | ENHANCED);
            if input.peek(length)?.len() < length {
                return Ok(None);
            }
            if is_packet {
                // Borrowed anew: what is handed out ends the loop.
                let body = match input.take(length)? {
                    Some(block) => &block[8..length - 4],
                    None => return Ok(None),
                };
                return self.record(at, kind, body).map(Some);
            }
            let Some(block) = input.take(length)? else { return Ok(None) };
            if kind == INTERFACE {
                self.describe(at, &block[8..length - 4])?;
            }
        }
    }

    fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    fn corrected(&self) -> u64 {
        self.clock.corrected
    }
}

impl Pcapng {
    #[inline]
    fn record<'i>(&mut self, at: u64, kind: u32, body: &'i [u8]) -> Result<Record<'i>, Fault> {
        let placed = self.packet(at, kind, body)?;
        let Placed { interface, time_ns, header, length, wire_bytes } = placed;
        let Some(bytes) = body.get(header..).and_then(|rest| rest.get(..length)) else {
            let what = format!("a packet of {length} bytes in a block of {}", body.len());
            return Err(Fault::damaged(at, what));
        };
        let link = self.described[interface].link;
        let record = Record { time_ns, interface: interface as u32, link, bytes, wire_bytes };
        self.last_ns = time_ns;
        if link != erf::LINK_TYPE {
            return Ok(record);
        }
        // One that was converted from ibdump's pcap has times in microseconds still.
        let coarse = match self.described[interface].units {
            Units::Nanoseconds(1000) if self.described[interface].offset_ns == 0 => {
                let seconds = u32::try_from(time_ns / 1_000_000_000).ok();
                seconds.map(|seconds| (seconds, (time_ns % 1_000_000_000 / 1000) as u32))
            }
            _ => None,
        };
        let record = erf::unwrapped(record, coarse, &mut self.clock);
        // The block's interface has a name; the ERF header's number has none.
        Ok(Record { interface: interface as u32, ..record })
    }
}
