//! Files of captured packets, one format a file. A new one is its file and its line in `formats!`.

pub(crate) mod erf;
mod input;
mod pcap;
pub(crate) mod pcapng;

pub use input::Input;

use std::io;

/// A format of files.
#[derive(Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Whether a file of which nothing was taken yet is one.
    is_it: fn(&mut Input<'_>) -> io::Result<bool>,
    open: fn(&mut Input<'_>) -> Result<Box<dyn Format>, Fault>,
}

macro_rules! formats {
    ($($module:ident)*) => {
        /// All formats, in the order in which a file is asked for them.
        pub static ALL: &[&Entry] = &[$(&$module::ENTRY),*];
    };
}

formats! {
    pcapng
    pcap
    erf
}

/// How packed files begin, what packs them, and what unpacks them into a pipe.
const PACKED: &[(&[u8], &str, &str)] = &[
    (b"\x1f\x8b", "gzip", "zcat"),
    (b"BZh", "bzip2", "bzcat"),
    (b"\xfd7zXZ\0", "xz", "xzcat"),
    (b"\x28\xb5\x2f\xfd", "zstd", "zstdcat"),
    (b"\x04\x22\x4d\x18", "lz4", "lz4cat"),
    (b"PK\x03\x04", "zip", "unzip -p"),
];

/// The most bytes of them that packed files are known by.
const PACKED_BYTES: usize = 6;

/// The longest record that is believed: jumbo frames and every snap length are less.
pub(crate) const RECORD_BYTES_MAX: usize = 16 << 20;

/// The last time there is, in 2116: what pcap and ERF can say is before, and differences of times
/// have a sign.
pub(crate) const TIME_NS_MAX: u64 = 1 << 62;

/// What lies around the packets of an interface (`LINKTYPE_…`, as libpcap numbers them).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LinkType(pub u32);

/// A place that packets were captured at.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Interface {
    /// Its name, where the file says one.
    pub name: Option<String>,
}

/// A packet as a file has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record<'a> {
    /// When it was captured: nanoseconds since 1970.
    pub time_ns: u64,
    /// Which interface of the file it was captured at.
    pub interface: u32,
    /// What lies around it.
    pub link: LinkType,
    /// What was kept of it.
    pub bytes: &'a [u8],
    /// Bytes it had on the wire, as the file says.
    pub wire_bytes: u32,
}

/// What is wrong with a file, and where.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// It cannot be read.
    #[error("{0}")]
    Reading(#[from] io::Error),
    /// No format that is known.
    #[error("is no capture; give a pcap, pcapng or ERF file of tcpdump, ibdump or Wireshark")]
    Unknown,
    /// It has nothing in it.
    #[error("is empty; nothing was captured")]
    Empty,
    /// It is compressed.
    #[error("is packed by {by}; unpack it, or give `{unpack} FILE | clearlane capture -`")]
    Packed {
        /// The program that did it.
        by: &'static str,
        /// The one that undoes it.
        unpack: &'static str,
    },
    /// It is damaged, or says what cannot be.
    #[error("is damaged at byte {at}: {what}")]
    Damaged {
        /// Offset from its beginning.
        at: u64,
        /// What is wrong there, and the remedy.
        what: String,
    },
}

impl Fault {
    fn damaged(at: u64, what: impl Into<String>) -> Self {
        Fault::Damaged { at, what: what.into() }
    }
}

/// A file of one format under way.
pub(crate) trait Format {
    /// The next packet; nothing at the end, which may be within one.
    fn next<'i>(&mut self, input: &'i mut Input<'_>) -> Result<Option<Record<'i>>, Fault>;

    /// The interfaces known so far.
    fn interfaces(&self) -> &[Interface];

    /// Packets so far whose time was ibdump's and is corrected.
    fn corrected(&self) -> u64;
}

/// The format of a file, if it is of one.
fn known(input: &mut Input<'_>) -> io::Result<Option<&'static Entry>> {
    for entry in ALL {
        if (entry.is_it)(input)? {
            return Ok(Some(entry));
        }
    }
    Ok(None)
}

/// A capture that is read.
pub struct Reader<'a> {
    input: Input<'a>,
    format: Box<dyn Format>,
    /// Its format.
    pub entry: &'static Entry,
}

impl<'a> Reader<'a> {
    /// Fails if it is of no format, or ends before the first packet could begin.
    pub fn open(mut input: Input<'a>) -> Result<Self, Fault> {
        let first = input.peek(PACKED_BYTES)?;
        if first.is_empty() {
            return Err(Fault::Empty);
        }
        if let Some((_, by, unpack)) = PACKED.iter().find(|(magic, ..)| first.starts_with(magic)) {
            return Err(Fault::Packed { by, unpack });
        }
        let entry = known(&mut input)?.ok_or(Fault::Unknown)?;
        let format = (entry.open)(&mut input)?;
        Ok(Reader { input, format, entry })
    }

    /// The next packet; nothing at the end.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "what is handed out borrows the reader")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, Fault> {
        self.format.next(&mut self.input)
    }

    /// The interfaces known so far; those of a packet that was handed out are.
    pub fn interfaces(&self) -> &[Interface] {
        self.format.interfaces()
    }

    /// Packets so far whose ERF time was ibdump's, which runs fast, and is corrected.
    pub fn corrected(&self) -> u64 {
        self.format.corrected()
    }

    /// Bytes of the file that were looked at so far.
    pub fn position(&self) -> u64 {
        self.input.position()
    }

    /// Bytes behind the last whole packet: what was written when the capture was stopped. Call it
    /// at the end.
    pub fn left_over(&mut self) -> Result<usize, Fault> {
        Ok(self.input.peek(RECORD_BYTES_MAX)?.len())
    }
}
