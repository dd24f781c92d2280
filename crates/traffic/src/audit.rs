//! The audit log of a host: who asked what, and what came of it; a JSON document a line.

use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// What the log is called.
pub const AUDIT_FILE: &str = "audit.jsonl";
/// From here on a new log is begun; the one before is kept.
const BYTES_MAX: u64 = 64 << 20;

/// What came of something.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Came {
    /// It was done.
    Done,
    /// It was refused.
    Refused,
    /// It was under way and was stopped.
    Stopped,
}

/// A line of the log.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Line<'a> {
    /// UTC, as RFC 3339 has it.
    time: &'a str,
    came: Came,
    /// Who asked, as its certificate says; its address if it has none.
    who: &'a str,
    what: &'a str,
    why: &'a str,
}

/// The log.
#[derive(Debug)]
pub struct Audit {
    path: PathBuf,
    file: Mutex<File>,
}

impl Audit {
    /// Opens the log in a folder, or begins it.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let path = folder.join(AUDIT_FILE);
        Ok(Audit { file: Mutex::new(begun(&path)?), path })
    }

    /// Adds a line. Fails if it cannot be kept: then what it is about is not to be done.
    pub fn note(&self, came: Came, who: &str, what: &str, why: &str) -> io::Result<()> {
        let time = OffsetDateTime::now_utc().format(&Rfc3339).map_err(io::Error::other)?;
        let line = Line { time: &time, came, who, what, why };
        let mut text = serde_json::to_string(&line)?;
        text.push('\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.metadata()?.len() > BYTES_MAX {
            std::fs::rename(&self.path, self.path.with_extension("1.jsonl"))?;
            *file = begun(&self.path)?;
        }
        // In one write, so that no line is half there beside another.
        file.write_all(text.as_bytes())
    }
}

fn begun(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}
