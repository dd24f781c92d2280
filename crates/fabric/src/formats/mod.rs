//! What it is: files that describe a fabric, read into a [`Fabric`] with a list of everything odd,
//! and files others read: netlists and drawings. One format a file, one line in [`ALL`].
//!
//! Readers take text, open nothing and allocate in proportion to it; [`PORTS_MAX`] bounds the rest.

mod assembly;
mod dot;
mod graphml;
pub mod iblinkinfo;
pub mod ibnetdiscover;
mod oddities;
pub mod ports_report;
pub mod subnet_lst;

pub use ibnetdiscover::write;

use crate::{Fabric, FabricError};
use std::fmt;

/// The most ports, over all nodes, a file may declare: 2^22, some 60 times the largest subnet's
/// adapters and 100 MB.
pub const PORTS_MAX: usize = 1 << 22;

/// A format: read, written or both.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What the format is called.
    pub name: &'static str,
    /// The program that writes or reads it.
    pub summary: &'static str,
    /// File name endings for writing, without the dot; none for a format that is only read.
    pub endings: &'static [&'static str],
    /// Reads it; nothing for what is only written.
    pub reader: Option<Reader>,
    /// Writes it; nothing for what is only read.
    pub write: Option<fn(&Fabric) -> String>,
}

/// How a format is told and read.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    /// Whether a line could only be of this format.
    pub sniff: fn(&str) -> bool,
    /// Reads a text; the second argument is the file's name for errors.
    pub read: fn(&str, &str) -> Result<Reading, FormatError>,
}

/// All formats.
pub static ALL: &[Entry] = &[
    ibnetdiscover::ENTRY,
    ports_report::ENTRY,
    iblinkinfo::ENTRY,
    subnet_lst::ENTRY,
    dot::ENTRY,
    graphml::ENTRY,
];

/// The formats that are read.
pub fn readers() -> impl Iterator<Item = (&'static Entry, Reader)> {
    ALL.iter().filter_map(|entry| Some((entry, entry.reader?)))
}

/// A fabric as read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reading {
    /// The cables.
    pub fabric: Fabric,
    /// Everything odd and how it was taken, in the order of the lines.
    pub oddities: Vec<Oddity>,
}

/// What kind of oddity was met.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OddityKind {
    /// Lines that are no part of the format, such as messages of the tool; skipped.
    Noise,
    /// A cable that only one of its ends lists; taken as whole.
    OneSided,
    /// A cable with both ends in one node; kept, but one that ends in its own port is left out.
    SelfLoop,
    /// The two ends list different widths or speeds; the slower is taken.
    EndsDiffer,
    /// A cable slower than most of the same kind at its switch; taken as listed.
    Slow,
    /// A port that is listed but leads nowhere, or a node without any cable.
    NoPeer,
    /// A cable without a readable width or speed; the other end's is taken, or else 4x and SDR as
    /// ibsim does.
    UnknownRate,
    /// A switch or cabled adapter port without LID.
    NoLid,
    /// One LID listed for two ports, or two LIDs for one port; the first is taken.
    LidContradiction,
    /// Several nodes of one name; kept, GUIDs tell them apart.
    DuplicateName,
    /// A name that is longer than any device's or name map's; cut.
    LongName,
    /// A line that says again what an earlier one said; skipped.
    Repeated,
    /// A node without GUID; one was made up from its place in the file.
    NoGuid,
    /// A router; carried as a channel adapter.
    Router,
    /// Ports of one adapter joined by description and GUID distance.
    Grouped,
}

/// Something odd in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Oddity {
    /// The first line it is in, from 1.
    pub line: usize,
    /// The last line of a run; else the same.
    pub last_line: usize,
    /// What kind it is.
    pub kind: OddityKind,
    /// What was found and how it was taken, one line.
    pub text: String,
}

impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == self.last_line {
            write!(f, "line {}: {}", self.line, self.text)
        } else {
            write!(f, "lines {} to {}: {}", self.line, self.last_line, self.text)
        }
    }
}

/// Why a file cannot be read: `fabric.net:12: what; remedy`.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{file}:{line}: {problem}")]
pub struct FormatError {
    /// Name of the file as given.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong with a file, with the remedy.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Problem {
    /// No line is of a known format.
    #[error("no line is of a known fabric format; give one of: {known}")]
    UnknownFormat {
        /// The formats.
        known: String,
    },
    /// A line of the format that does not parse.
    #[error("expected {expected}, found {found}; the file may be cut off here, save it again")]
    Syntax {
        /// What the format has here.
        expected: &'static str,
        /// What is there, quoted.
        found: String,
    },
    /// A line that would read another file.
    #[error("{line} asks for another file, which is not read; put its lines here instead")]
    Include {
        /// The line, quoted.
        line: String,
    },
    /// A cable to a node the file does not have.
    #[error(
        "port {end} leads to node {peer}, which the file does not list; the file may be cut off, \
         save it again"
    )]
    UnknownPeer {
        /// The port that leads there.
        end: String,
        /// The node's id, quoted.
        peer: String,
    },
    /// Cables of which only one end is listed, in a format that lists both.
    #[error(
        "{cables} of {of} cables are listed from one end only, the first of them {first} in line \
         {line}, and OpenSM lists both; the file is cut off, save it again"
    )]
    EndsMissing {
        /// How many.
        cables: usize,
        /// How many cables there are.
        of: usize,
        /// The first of them.
        first: String,
        /// Its line.
        line: usize,
    },
    /// A port number the node does not have.
    #[error("port {port} of {node} is listed, but it has ports 1 to {ports}; correct one of them")]
    NoSuchPort {
        /// Name of the node, quoted.
        node: String,
        /// The port.
        port: u8,
        /// How many it has.
        ports: u8,
    },
    /// Two lines say different things of one port.
    #[error(
        "port {end} leads to {here} here, but line {line} says that {other}; correct one of the \
         lines, or save the file while no cable is moved"
    )]
    Contradiction {
        /// The port.
        end: String,
        /// Where it leads by this line.
        here: String,
        /// The line that disagrees.
        line: usize,
        /// What that line says.
        other: String,
    },
    /// A node listed twice.
    #[error("node {node} is listed again, first in line {line}; delete one of them")]
    DuplicateNode {
        /// Its id, quoted.
        node: String,
        /// The first line.
        line: usize,
    },
    /// A node that is of another kind or size in another line.
    #[error(
        "node {node} has another kind or number of ports than in line {line}; correct one of them"
    )]
    NodeChanged {
        /// Its name, quoted.
        node: String,
        /// The line it was first met in.
        line: usize,
    },
    /// No node at all.
    #[error("the file lists no node; it may be cut off, save it again")]
    Empty,
    /// More ports than a reader allocates.
    #[error("more than {PORTS_MAX} ports are declared; no subnet is that large, check the file")]
    TooLarge,
    /// The nodes do not make a fabric.
    #[error(transparent)]
    Fabric(#[from] FabricError),
}

/// Reads a text of whichever format has a line in it; `file` is named in errors. Fails where no
/// line tells the format and where the format's reader fails.
pub fn read(text: &str, file: &str) -> Result<Reading, FormatError> {
    for line in text.lines() {
        if let Some((_, reader)) = readers().find(|(_, reader)| (reader.sniff)(line)) {
            return (reader.read)(text, file);
        }
    }
    if text.trim().is_empty() {
        return Err(FormatError { file: file_name(file), line: 1, problem: Problem::Empty });
    }
    let known = readers().map(|(entry, _)| entry.name).collect::<Vec<_>>().join(", ");
    let problem = Problem::UnknownFormat { known };
    Err(FormatError { file: file_name(file), line: 1, problem })
}

/// A file's name as errors show it: without anything that would break the line.
fn file_name(file: &str) -> String {
    file.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
