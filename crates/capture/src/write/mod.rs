//! Captures written: frames with their headers and CRCs, in files that Wireshark reads.

mod frame;
mod payload;

pub use frame::{Extended, Frame, Kept, Wrapping};

use crate::files::erf;
use crate::files::pcapng::{IF_NAME, IF_TSRESOL};
use frame::Assembly;
use std::io::{self, Write};

/// The file that frames are written to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Container {
    /// pcapng: interfaces have names, packets may have comments.
    Pcapng,
    /// pcap with ERF records, as ibdump writes it: no names and no comments. Four interfaces at
    /// most; later ones are counted as the last. InfiniBand alone.
    Erf,
}

/// What is written, and how much of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Style {
    /// The file.
    pub container: Container,
    /// What frames are wrapped in.
    pub wrapping: Wrapping,
    /// How much of each frame is kept.
    pub kept: Kept,
}

/// Which way a frame passed an interface.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Direction {
    /// It was received.
    Inbound,
    /// It was sent.
    Outbound,
}

/// A capture that is written. What is written at a time goes out when it is full or finished.
pub struct Writer<W: Write> {
    out: W,
    style: Style,
    assembly: Assembly,
    buffer: Vec<u8>,
}

/// Flags: the record may be of any length, and it was cut.
const ERF_VARYING: u8 = 4;
const ERF_CUT: u8 = 8;
/// Interfaces that [`Container::Erf`] tells apart.
pub const ERF_INTERFACES: usize = erf::INTERFACES;
/// Bytes kept of a packet at most, as ibdump says.
const SNAP_BYTES: u32 = 0xffff;
/// The largest MTU (IBA vol. 1, 7.7.8).
const PAYLOAD_BYTES_MAX: u16 = 4096;
/// What is gathered before it is handed on.
const BUFFERED: usize = 256 << 10;

const OPTION_END: u16 = 0;
const OPTION_COMMENT: u16 = 1;
const EPB_FLAGS: u16 = 2;
/// 10^-9 s.
const NANOSECONDS: u8 = 9;
const SHB_USERAPPL: u16 = 4;

impl<W: Write> Writer<W> {
    /// Begins a file of these interfaces. Fails if it cannot be written.
    pub fn new(out: W, style: Style, interfaces: &[String]) -> io::Result<Self> {
        let mut writer = Writer {
            out,
            style,
            assembly: Assembly::default(),
            buffer: Vec::with_capacity(BUFFERED),
        };
        match style.container {
            Container::Pcapng => writer.begin_pcapng(interfaces),
            Container::Erf => writer.begin_erf(),
        }
        writer.flush_if(BUFFERED)?;
        Ok(writer)
    }

    /// Writes a frame: when it was captured, nanoseconds since 1970, by which interface, and which
    /// way it went; with a comment unless it is empty. Fails if it cannot be written, or has more
    /// payload than an MTU.
    #[inline]
    pub fn frame(
        &mut self,
        (time_ns, interface, direction): (u64, u32, Direction),
        frame: &Frame,
        comment: &str,
    ) -> io::Result<()> {
        if frame.payload_bytes > PAYLOAD_BYTES_MAX {
            let what = format!("{} bytes of payload are more than an MTU", frame.payload_bytes);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        self.assembly.put(frame, self.style.wrapping, self.style.kept);
        match self.style.container {
            Container::Pcapng => self.block(time_ns, interface, direction, comment),
            Container::Erf => self.record(time_ns, interface),
        }
        self.flush_if(BUFFERED)
    }

    /// Hands on what is left, and the file.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush_if(0)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn flush_if(&mut self, full: usize) -> io::Result<()> {
        if self.buffer.len() >= full {
            self.out.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    fn begin_pcapng(&mut self, interfaces: &[String]) {
        let application = concat!("clearlane ", env!("CARGO_PKG_VERSION"));
        self.whole_block(0x0a0d_0d0a, |body| {
            body.extend(0x1a2b_3c4d_u32.to_le_bytes());
            body.extend([1, 0, 0, 0]);
            // The length of the section is not known.
            body.extend(u64::MAX.to_le_bytes());
            option(body, SHB_USERAPPL, application.as_bytes());
            option(body, OPTION_END, &[]);
        });
        let link = match self.style.wrapping {
            Wrapping::Native => erf::LINK_TYPE,
            Wrapping::RoceV2 => erf::ETHERNET,
        };
        for name in interfaces {
            self.whole_block(1, |body| {
                body.extend((link.0 as u16).to_le_bytes());
                body.extend([0; 2]);
                body.extend(SNAP_BYTES.to_le_bytes());
                option(body, IF_NAME, name.as_bytes());
                option(body, IF_TSRESOL, &[NANOSECONDS]);
                option(body, OPTION_END, &[]);
            });
        }
    }

    fn begin_erf(&mut self) {
        self.buffer.extend(0xa1b2_c3d4_u32.to_le_bytes());
        self.buffer.extend([2, 0, 4, 0]);
        self.buffer.extend([0; 8]);
        self.buffer.extend(SNAP_BYTES.to_le_bytes());
        self.buffer.extend(erf::LINK_TYPE.0.to_le_bytes());
    }

    /// A block of pcapng: type, length, body, length.
    fn whole_block(&mut self, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
        let start = self.buffer.len();
        self.buffer.extend(kind.to_le_bytes());
        self.buffer.extend([0; 4]);
        body(&mut self.buffer);
        let length = ((self.buffer.len() - start + 4) as u32).to_le_bytes();
        self.buffer[start + 4..start + 8].copy_from_slice(&length);
        self.buffer.extend(length);
    }

    /// The frame that was put together, as a block of pcapng.
    fn block(&mut self, time_ns: u64, interface: u32, direction: Direction, comment: &str) {
        let start = self.buffer.len();
        let is_erf = self.style.wrapping == Wrapping::Native;
        let header = if is_erf { erf::HEADER } else { 0 };
        let kept = header + self.assembly.bytes.len();
        let wire = header as u32 + self.assembly.wire_bytes;
        self.buffer.extend(6_u32.to_le_bytes());
        self.buffer.extend([0; 4]);
        self.buffer.extend(interface.to_le_bytes());
        self.buffer.extend(((time_ns >> 32) as u32).to_le_bytes());
        self.buffer.extend((time_ns as u32).to_le_bytes());
        self.buffer.extend((kept as u32).to_le_bytes());
        self.buffer.extend(wire.to_le_bytes());
        if is_erf {
            self.erf_header(time_ns, 0);
        }
        self.buffer.extend(&self.assembly.bytes);
        self.buffer.resize(start + 28 + kept.next_multiple_of(4), 0);
        if !comment.is_empty() {
            option(&mut self.buffer, OPTION_COMMENT, comment.as_bytes());
        }
        let direction: u32 = match direction {
            Direction::Inbound => 1,
            Direction::Outbound => 2,
        };
        option(&mut self.buffer, EPB_FLAGS, &direction.to_le_bytes());
        option(&mut self.buffer, OPTION_END, &[]);
        let length = ((self.buffer.len() - start + 4) as u32).to_le_bytes();
        self.buffer[start + 4..start + 8].copy_from_slice(&length);
        self.buffer.extend(length);
    }

    /// The same as a record of pcap, with an ERF header.
    fn record(&mut self, time_ns: u64, interface: u32) {
        let (seconds, fraction) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
        let kept = (erf::HEADER + self.assembly.bytes.len()) as u32;
        let wire = erf::HEADER as u32 + self.assembly.wire_bytes;
        self.buffer.extend((seconds as u32).to_le_bytes());
        self.buffer.extend(((fraction / 1000) as u32).to_le_bytes());
        self.buffer.extend(kept.to_le_bytes());
        self.buffer.extend(wire.to_le_bytes());
        self.erf_header(time_ns, (interface as usize).min(ERF_INTERFACES - 1) as u8);
        self.buffer.extend(&self.assembly.bytes);
    }

    fn erf_header(&mut self, time_ns: u64, interface: u8) {
        let (seconds, fraction) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
        // Rounded up: whoever rounds down to nanoseconds again has the same.
        let fraction = (fraction << 32).div_ceil(1_000_000_000);
        self.buffer.extend((seconds << 32 | fraction).to_le_bytes());
        let kept = self.assembly.bytes.len();
        let cut = if (kept as u32) < self.assembly.wire_bytes { ERF_CUT } else { 0 };
        self.buffer.extend([erf::TYPE_INFINIBAND, ERF_VARYING | cut | interface]);
        self.buffer.extend(((erf::HEADER + kept) as u16).to_be_bytes());
        // No packet is lost.
        self.buffer.extend([0; 2]);
        self.buffer.extend((self.assembly.wire_bytes as u16).to_be_bytes());
    }
}

/// An option of a block: code, length, value, filled up to words.
fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    body.resize(body.len() + value.len().next_multiple_of(4) - value.len(), 0);
}
