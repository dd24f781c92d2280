//! The audit log of a host: who asked what, and what outcome of it; a JSON document a line.

use serde::Serialize;
use std::collections::BTreeMap;
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

/// Refusals of one certificate, and of all who show none, are noted one by one up to here in a
/// minute; more of them are counted, so that nobody fills the log with them.
const REFUSED_MAX: u32 = 20;
const REFUSED_EVERY: Duration = Duration::from_secs(60);
/// Who has shown neither certificate nor token.
const STRANGERS: &str = "strangers";

/// What came of something.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It was asked for, and is done unless a line that follows says that it was refused.
    Asked,
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
    refused: Mutex<BTreeMap<String, Refused>>,
}

/// Refusals in this minute.
#[derive(Debug)]
struct Refused {
    since: Instant,
    count: u32,
}

impl Audit {
    /// Opens the log in a folder, or begins it.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let path = folder.join(AUDIT_FILE);
        Ok(Audit { file: Mutex::new(begun(&path)?), path, refused: Mutex::default() })
    }

    /// Notes that somebody was refused who has shown neither certificate nor token.
    pub fn refuse_stranger(&self, from: &str, what: &str, why: &str) -> io::Result<()> {
        self.refuse(STRANGERS, from, what, why)
    }

    /// Notes that somebody was refused, `who` by its certificate, `said` with its address.
    pub fn refuse(&self, who: &str, said: &str, what: &str, why: &str) -> io::Result<()> {
        let mut all = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || Refused { since: Instant::now(), count: 0 };
        let refused = all.entry(who.to_owned()).or_insert_with(fresh);
        if refused.since.elapsed() >= REFUSED_EVERY {
            self.sum_up(who, refused)?;
            *refused = fresh();
        }
        refused.count += 1;
        let is_noted = refused.count <= REFUSED_MAX;
        drop(all);
        match is_noted {
            true => self.note(Outcome::Refused, said, what, why),
            false => Ok(()),
        }
    }

    /// Notes how many refusals there were that are not noted one by one.
    fn sum_up(&self, who: &str, refused: &Refused) -> io::Result<()> {
        match refused.count.saturating_sub(REFUSED_MAX) {
            0 => Ok(()),
            more => {
                let why = format!("{more} more in {} s", refused.since.elapsed().as_secs());
                self.note(Outcome::Refused, who, "refusals", &why)
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
        let all = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        for (who, refused) in all.iter() {
            // There is nobody left to tell.
            let _ = self.sum_up(who, refused);
        }
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
        assert!(lines[21].contains("980 more in"), "{}", lines[21]);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
