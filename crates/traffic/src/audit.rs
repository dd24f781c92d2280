//! The audit log of a host: who asked what, and what outcome of it; a JSON document a line.

use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// What the log is called.
pub const AUDIT_FILE: &str = "audit.jsonl";
/// From here on a new log is begun; the one before is kept.
const BYTES_MAX: u64 = 64 << 20;

/// Refusals of those who show no certificate or token are noted one by one up to here in a minute;
/// more of them are counted, so that nobody without a certificate fills the log.
const STRANGERS_MAX: u32 = 20;
const STRANGERS_EVERY: Duration = Duration::from_secs(60);

/// What came of something.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It was done.
    Done,
    /// It was refused.
    Refused,
    /// It was under way and was stopped.
    Stopped,
}

/// A line of the log.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Entry<'a> {
    /// UTC, as RFC 3339 has it.
    time: &'a str,
    outcome: Outcome,
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
    strangers: Mutex<Strangers>,
}

/// Refusals in this minute of those who have shown nothing.
#[derive(Debug)]
struct Strangers {
    since: Instant,
    refused: u32,
}

impl Audit {
    /// Opens the log in a folder, or begins it.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let path = folder.join(AUDIT_FILE);
        let strangers = Mutex::new(Strangers { since: Instant::now(), refused: 0 });
        Ok(Audit { file: Mutex::new(begun(&path)?), path, strangers })
    }

    /// Notes that somebody was refused who has shown neither certificate nor token.
    pub fn refuse_stranger(&self, from: &str, what: &str, why: &str) -> io::Result<()> {
        let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        if strangers.since.elapsed() >= STRANGERS_EVERY {
            self.sum_up(&strangers)?;
            *strangers = Strangers { since: Instant::now(), refused: 0 };
        }
        strangers.refused += 1;
        match strangers.refused <= STRANGERS_MAX {
            true => self.note(Outcome::Refused, from, what, why),
            false => Ok(()),
        }
    }

    /// Notes how many were refused that are not noted one by one.
    fn sum_up(&self, strangers: &Strangers) -> io::Result<()> {
        match strangers.refused.saturating_sub(STRANGERS_MAX) {
            0 => Ok(()),
            more => {
                let seconds = strangers.since.elapsed().as_secs();
                let why = format!("{more} connections more in {seconds} s, without a certificate");
                self.note(Outcome::Refused, "many", "connection", &why)
            }
        }
    }

    /// Adds a line. Fails if it cannot be kept: then what it is about is not to be done.
    pub fn note(&self, outcome: Outcome, who: &str, what: &str, why: &str) -> io::Result<()> {
        let time = OffsetDateTime::now_utc().format(&Rfc3339).map_err(io::Error::other)?;
        let entry = Entry { time: &time, outcome, who, what, why };
        let mut text = serde_json::to_string(&entry)?;
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

impl Drop for Audit {
    fn drop(&mut self) {
        let strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        // There is nobody left to tell.
        let _ = self.sum_up(&strangers);
    }
}

fn begun(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_do_not_fill_the_log() {
        let folder = std::env::temp_dir().join(format!("clearlane-audit-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        let audit = Audit::open(&folder).unwrap();
        for _ in 0..1000 {
            audit.refuse_stranger("10.0.0.7:1", "control connection", "no certificate").unwrap();
        }
        audit.note(Outcome::Refused, "viewer v", "stop", "may not").unwrap();
        drop(audit);
        let text = std::fs::read_to_string(folder.join(AUDIT_FILE)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 22, "{text}");
        assert!(lines[20].contains("viewer v"), "{}", lines[20]);
        assert!(lines[21].contains("980 connections more"), "{}", lines[21]);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
