//! The audit log of a host: who asked what, and what outcome of it; a JSON document a line.

use crate::disk::{ANSWER_MAX, Disk};
use crate::small_file::{SmallFileError, must_be_own, must_be_regular};
use rustix::fs::OFlags;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// What the log is called.
pub const AUDIT_FILE: &str = "audit.jsonl";
/// Size from which on a new log is begun. The one before is kept.
const BYTES_MAX: u64 = 64 << 20;

/// Refusals of one certificate, and of all who show none, are noted one by one up to here in a
/// minute; more of them are counted, so that nobody fills the log with them.
const REFUSED_MAX: u32 = 20;
const REFUSED_EVERY: Duration = Duration::from_secs(60);
/// Longest wait for the disk when the log is finished.
const LEAVING_MAX: Duration = Duration::from_secs(1);
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

/// The log. A disk that hangs holds up only callers that wait for its answer: see [`Disk`].
#[derive(Debug)]
pub struct Audit {
    disk: Disk<Open>,
    refused: Mutex<BTreeMap<String, Refused>>,
    has_finished: AtomicBool,
}

/// The log's file.
#[derive(Debug)]
struct Open {
    path: PathBuf,
    file: File,
}

/// Refusals in this minute.
#[derive(Debug)]
struct Refused {
    since: Instant,
    count: u32,
}

impl Refused {
    fn begin() -> Self {
        Refused { since: Instant::now(), count: 0 }
    }

    /// The number of refusals that were not noted one by one, in words; `None` if all
    /// were noted.
    fn in_words(&self) -> Option<String> {
        let more = self.count.checked_sub(REFUSED_MAX).filter(|more| *more > 0)?;
        Some(format!("{more} more in {} s", self.since.elapsed().as_secs()))
    }
}

impl Audit {
    /// Opens the log in a folder, or begins it.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let path = folder.join(AUDIT_FILE);
        let file = begun(&path)?;
        let disk = Disk::new("audit", Open { path, file })?;
        Ok(Audit { disk, refused: Mutex::default(), has_finished: AtomicBool::new(false) })
    }

    /// Notes that somebody was refused who has shown neither certificate nor token.
    pub fn refuse_stranger(&self, from: &str, what: &str, why: &str) {
        self.refuse(STRANGERS, from, what, why);
    }

    /// Notes a refusal. Refusals are counted by `who`: a certificate, or all strangers. The line
    /// names `said`. Waits for nothing, because a refusal holds whether or not it can be noted.
    pub fn refuse(&self, who: &str, said: &str, what: &str, why: &str) {
        let mut all = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = all.entry(who.to_owned()).or_insert_with(Refused::begin);
        let is_over = refused.since.elapsed() >= REFUSED_EVERY;
        let before = is_over.then(|| std::mem::replace(refused, Refused::begin()));
        refused.count += 1;
        let is_noted = refused.count <= REFUSED_MAX;
        drop(all);
        if let Some(more) = before.and_then(|before| before.in_words()) {
            self.tell(Outcome::Refused, who, "refusals", &more);
        }
        if is_noted {
            self.tell(Outcome::Refused, said, what, why);
        }
    }

    /// Adds a line. Fails if it is not kept within [`ANSWER_MAX`]. The caller must then not do what
    /// the line is about.
    pub fn note(&self, outcome: Outcome, who: &str, what: &str, why: &str) -> io::Result<()> {
        let line = line(outcome, who, what, why)?;
        self.disk.ask(ANSWER_MAX, move |open| open.add(&line))
    }

    /// Adds a line and does not wait until it is kept. For things that have been done or refused.
    /// The line is lost if the disk hangs and too many lines wait for it already.
    pub fn tell(&self, outcome: Outcome, who: &str, what: &str, why: &str) {
        let Ok(line) = line(outcome, who, what, why) else { return };
        let add = move |open: &mut Open| {
            let _ = open.add(&line);
        };
        let _ = self.disk.tell(|| false, add);
    }

    /// Notes how many refusals were not noted. Waits once, and a limited time, until all that was
    /// told is kept.
    pub fn finish(&self) {
        if self.has_finished.swap(true, Ordering::SeqCst) {
            return;
        }
        let all = std::mem::take(&mut *self.refused.lock().unwrap_or_else(PoisonError::into_inner));
        for (who, refused) in all {
            if let Some(more) = refused.in_words() {
                self.tell(Outcome::Refused, &who, "refusals", &more);
            }
        }
        let _ = self.disk.ask(LEAVING_MAX, |_| Ok(()));
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Open {
    /// Adds a line to the file that has the log's name. If that is not the open file any more, the
    /// file is opened or begun anew.
    fn add(&mut self, line: &str) -> io::Result<()> {
        let own = self.file.metadata()?;
        let there = fs::metadata(&self.path);
        let is_there = |there: &fs::Metadata| (there.dev(), there.ino()) == (own.dev(), own.ino());
        if !there.is_ok_and(|there| is_there(&there)) {
            self.file = begun(&self.path).inspect_err(|_| {
                // Something else has that name. The line goes into the log that was put away.
                let _ = self.file.write_all(line.as_bytes());
            })?;
        } else if own.len() > BYTES_MAX {
            fs::rename(&self.path, self.path.with_extension("1.jsonl"))?;
            self.file = begun(&self.path)?;
        }
        let length = self.file.metadata()?.len();
        // A line is one write, so that no other line comes into it.
        self.file.write_all(line.as_bytes()).inspect_err(|_| {
            // On a full disk the beginning of a line may be there. The next one begins its own.
            let _ = self.file.set_len(length);
        })
    }
}

fn line(outcome: Outcome, who: &str, what: &str, why: &str) -> io::Result<String> {
    let time = OffsetDateTime::now_utc().format(&Rfc3339).map_err(io::Error::other)?;
    let entry = Entry { time: &time, outcome, who, what, why };
    Ok(serde_json::to_string(&entry)? + "\n")
}

/// Opens the file at its end. Refuses a pipe or a device, and does not wait for it. It opens for
/// reading too: a pipe that nobody reads would refuse a mere writer in words of the system.
fn begun(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.create(true).read(true).append(true).mode(0o600);
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = options.custom_flags(flags.bits() as i32).open(path)?;
    let known = file.metadata()?;
    let refused = |error| match error {
        SmallFileError::Io(error) => error,
        SmallFileError::Refused(words) => io::Error::other(words),
    };
    must_be_regular(&known).and_then(|()| must_be_own(path, &known)).map_err(refused)?;
    Ok(file)
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
            audit.refuse_stranger("10.0.0.7:1", "control connection", "no certificate");
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

    /// A log that was taken away, as when logs are rotated, is begun anew. A pipe is refused.
    #[test]
    fn the_log_is_the_file_of_its_name() {
        let folder = std::env::temp_dir().join(format!("clearlane-rotated-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join(AUDIT_FILE);
        let audit = Audit::open(&folder).unwrap();
        let note = |what: &str| audit.note(Outcome::Asked, "controller boss", what, "");
        note("first").unwrap();
        fs::rename(&path, folder.join("kept")).unwrap();
        note("second").unwrap();
        let has = |name: &str, what: &str| {
            let text = fs::read_to_string(folder.join(name)).unwrap();
            text.lines().count() == 1 && text.contains(what)
        };
        assert!(has("kept", "first") && has(AUDIT_FILE, "second"));
        fs::remove_file(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let error = note("third").unwrap_err().to_string();
        assert!(error.starts_with("is a pipe or a device"), "{error}");
        // Lines that are told meanwhile are in the log that was put away.
        fs::remove_file(&path).unwrap();
        note("fourth").unwrap();
        fs::rename(&path, folder.join("put away")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        audit.tell(Outcome::Stopped, "controller boss", "fifth", "");
        audit.finish();
        let text = fs::read_to_string(folder.join("put away")).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        let error = Audit::open(&folder).unwrap_err().to_string();
        assert!(error.starts_with("is a pipe or a device"), "{error}");
        drop(audit);
        fs::remove_dir_all(folder).unwrap();
    }
}
