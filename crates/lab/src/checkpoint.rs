//! Runs under way, kept in a folder beside that of their results, so that a command that was
//! interrupted or killed goes on to the same bytes.
//!
//! A file is written aside, through to the disk, and renamed: it is whole or it is not there. It
//! says by which version it was written and what was asked, and a digest tells if a byte is not
//! what it was.

use crate::LabError;
use crate::results::{refused, write};
use clearlane_ib::{Saved, visible};
use clearlane_sim::Simulation;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

/// How a file begins; a later layout has another number.
const MAGIC: &str = "clearlane checkpoint 1\n";
/// What all of them have in common.
const ANY: &str = "clearlane checkpoint ";
const DIGEST: usize = 32;
/// What was asked of the command, as text.
const COMMAND: &str = "command.json";

/// Why a file is no checkpoint to go on from, as the end of a sentence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Another program's file.
    Foreign,
    /// One of another version of clearlane.
    Version,
    /// Not all of it, or not as it was written.
    Torn,
    /// Another run's.
    Question,
}

impl Refusal {
    /// What is wrong and what to do.
    pub const fn problem(self) -> &'static str {
        match self {
            Refusal::Foreign => {
                "is no checkpoint of clearlane; run from the beginning with --force"
            }
            Refusal::Version => {
                "was written by another version of clearlane; resume with that one, or run from \
                 the beginning with --force"
            }
            Refusal::Torn => {
                "is torn or damaged; delete it to have that run begin anew, or run all of them \
                 from the beginning with --force"
            }
            Refusal::Question => {
                "is of another run: the experiment, or a file that it names, has changed since; \
                 undo that, or run from the beginning with --force"
            }
        }
    }
}

/// What a file holds besides its beginning.
#[derive(Serialize, Deserialize)]
struct Kept {
    version: String,
    question: String,
    job: String,
    state: Saved,
}

/// A run's state as a file has it.
pub fn encode(question: &str, job: &str, state: Saved) -> Vec<u8> {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let kept = Kept { version, question: question.to_owned(), job: job.to_owned(), state };
    // Texts, numbers and bytes: nothing that could not be written.
    let body = postcard::to_allocvec(&kept).unwrap_or_default();
    let mut file = MAGIC.as_bytes().to_vec();
    file.extend_from_slice(&Sha256::digest(&body));
    file.extend_from_slice(&body);
    file
}

/// The state of a run in a file, if it is this run's.
pub fn decode(file: &[u8], question: &str, job: &str) -> Result<Saved, Refusal> {
    let kept = opened(file, question)?;
    if kept.job == job { Ok(kept.state) } else { Err(Refusal::Question) }
}

/// What a file holds, if it is of a run of this experiment.
fn opened(file: &[u8], question: &str) -> Result<Kept, Refusal> {
    let Some(rest) = file.strip_prefix(MAGIC.as_bytes()) else {
        let is_begun = ANY.as_bytes().starts_with(file) || MAGIC.as_bytes().starts_with(file);
        return Err(match file.starts_with(ANY.as_bytes()) {
            true if !is_begun => Refusal::Version,
            _ if is_begun => Refusal::Torn,
            _ => Refusal::Foreign,
        });
    };
    let (digest, body) = rest.split_at_checked(DIGEST).ok_or(Refusal::Torn)?;
    if Sha256::digest(body).as_slice() != digest {
        return Err(Refusal::Torn);
    }
    let kept: Kept = postcard::from_bytes(body).map_err(|_| Refusal::Torn)?;
    if kept.version != env!("CARGO_PKG_VERSION") {
        return Err(Refusal::Version);
    }
    if kept.question == question { Ok(kept) } else { Err(Refusal::Question) }
}

/// The folder of a command's checkpoints.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    folder: PathBuf,
    /// How often runs under way are kept; nothing for only when they are interrupted.
    every: Option<Duration>,
    /// Whether what is there is taken up.
    resumes: bool,
    /// Why one could not be kept, if one could not.
    failed: Arc<OnceLock<String>>,
}

impl Checkpoints {
    /// Those of the command whose results go into `out`: kept so often, or only when the command is
    /// interrupted.
    pub fn of(out: &Path, every: Option<Duration>) -> Self {
        let name = out.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let folder = out.with_file_name(format!("{name}.checkpoint"));
        Checkpoints { folder, every, resumes: false, failed: Arc::default() }
    }

    /// The folder of the results that a folder belongs to: its own, or, of one of checkpoints, the
    /// one beside it. A shell that completes names offers both.
    pub fn results(folder: &Path) -> PathBuf {
        let name = folder.file_name().and_then(|name| name.to_str());
        match name.and_then(|name| name.strip_suffix(".checkpoint")) {
            Some(name) if folder.join(COMMAND).exists() => folder.with_file_name(name),
            _ => folder.to_path_buf(),
        }
    }

    /// The same of a command that goes on with what is there.
    pub fn resumed(self) -> Self {
        Checkpoints { resumes: true, ..self }
    }

    /// Why a checkpoint could not be kept, if one could not: runs go on without.
    pub fn failed(&self) -> Option<&str> {
        self.failed.get().map(String::as_str)
    }

    /// Whether anything is kept.
    pub fn is_there(&self) -> bool {
        self.folder.join(COMMAND).exists()
    }

    /// How often runs under way are kept, if not only when they are interrupted.
    pub(crate) fn every(&self) -> Option<Duration> {
        self.every
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Those of a part of the command, such as a point of a sweep.
    pub(crate) fn part(&self, name: &str) -> Self {
        Checkpoints { folder: self.folder.join(name), ..self.clone() }
    }

    /// What was asked, if anything is kept.
    pub fn command(&self) -> Result<Option<String>, LabError> {
        let path = self.folder.join(COMMAND);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(LabError::Read { path, source }),
        }
    }

    /// Keeps what was asked.
    pub fn keep_command(&self, text: &str) -> Result<(), LabError> {
        self.replace(COMMAND, text.as_bytes())
    }

    /// Keeps the state of a run.
    pub(crate) fn keep(&self, question: &str, job: &str, state: Saved) -> Result<(), LabError> {
        self.replace(&file_name(job), &encode(question, job, state))
    }

    /// Fails if a command is to go on with a state that is none of this experiment's: before
    /// anything is simulated, and before anything of a changed one is kept beside it.
    pub(crate) fn check(&self, question: &str) -> Result<(), LabError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) if self.resumes => entries,
            _ => return Ok(()),
        };
        let paths = entries.flatten().map(|entry| entry.path());
        let is_state = |path: &PathBuf| path.extension().is_some_and(|end| end == "state");
        let mut paths: Vec<PathBuf> = paths.filter(is_state).collect();
        paths.sort();
        for path in paths {
            let file = match fs::read(&path) {
                Ok(file) => file,
                Err(source) => return Err(LabError::Read { path, source }),
            };
            if let Err(refusal) = opened(&file, question) {
                return Err(LabError::Checkpoint { path, problem: refusal.problem().into() });
            }
        }
        Ok(())
    }

    /// The state of a run, if it was kept.
    pub(crate) fn load(&self, question: &str, job: &str) -> Result<Option<Saved>, LabError> {
        let path = self.folder.join(file_name(job));
        let file = match fs::read(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(LabError::Read { path, source }),
        };
        match decode(&file, question, job) {
            Ok(state) => Ok(Some(state)),
            Err(refusal) => Err(LabError::Checkpoint { path, problem: refusal.problem().into() }),
        }
    }

    /// A state that was kept and cannot be taken up.
    pub(crate) fn refused(&self, job: &str, problem: &dyn std::fmt::Display) -> LabError {
        let problem = LabError::one_line(&visible(&problem.to_string()));
        LabError::Checkpoint { path: self.folder.join(file_name(job)), problem }
    }

    /// Lets all of it go: the results are there.
    pub fn clear(&self) -> Result<(), LabError> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(refused(&self.folder, error)),
            _ => Ok(()),
        }
    }

    /// A file that is whole or as it was.
    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), LabError> {
        let (path, aside) =
            (self.folder.join(name), self.folder.join(format!(".{name}.unfinished")));
        let written = fs::create_dir_all(&self.folder)
            .and_then(|()| write(&aside, bytes))
            .and_then(|()| fs::rename(&aside, &path))
            .and_then(|()| fs::File::open(&self.folder)?.sync_all());
        written.map_err(|source| {
            // The failure to report is the first one.
            let _ = fs::remove_file(&aside);
            refused(&path, source)
        })
    }
}

/// How often it is looked whether runs are to be kept or are interrupted: ticks are the clock here.
const TICK: Duration = Duration::from_millis(25);
/// A finished run that took less is rather run again.
const WORTH_KEEPING: Duration = Duration::from_secs(2);

/// So many ticks are at least so long.
fn ticks(span: Duration) -> u64 {
    span.as_millis().div_ceil(TICK.as_millis()) as u64
}

/// Has runs pause when they are interrupted, and when they are to be kept.
pub(crate) struct Ticker {
    /// By job.
    pauses: Vec<AtomicBool>,
    ticks: AtomicU64,
    is_over: AtomicBool,
}

impl Ticker {
    /// For so many jobs.
    pub(crate) fn of(jobs: usize) -> Self {
        let pauses = (0..jobs).map(|_| AtomicBool::new(false)).collect();
        Ticker { pauses, ticks: AtomicU64::new(0), is_over: AtomicBool::new(false) }
    }

    /// What a job is to pause at.
    pub(crate) fn pause(&self, job: usize) -> &AtomicBool {
        &self.pauses[job]
    }

    /// Ticks until it is told that all is over.
    pub(crate) fn tick(&self, every: Option<Duration>, cancel: &AtomicBool) {
        let every = every.map(ticks);
        while !self.is_over.load(Ordering::SeqCst) {
            thread::park_timeout(TICK);
            let now = self.ticks.fetch_add(1, Ordering::SeqCst) + 1;
            let due = every.is_some_and(|every| now.is_multiple_of(every));
            if due || cancel.load(Ordering::SeqCst) {
                self.pauses.iter().for_each(|pause| pause.store(true, Ordering::SeqCst));
            }
        }
    }

    /// No more ticks.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }
}

/// Keeps one run.
pub(crate) struct Keeper<'a> {
    pub(crate) checkpoints: &'a Checkpoints,
    pub(crate) question: &'a str,
    pub(crate) job: String,
    ticker: &'a Ticker,
    /// By its ticks.
    begun: u64,
    /// Said if memory is short: then nothing is kept, because that takes memory too.
    memory_short: &'a OnceLock<String>,
}

impl<'a> Keeper<'a> {
    /// Of a job that begins.
    pub(crate) fn of(
        checkpoints: &'a Checkpoints,
        question: &'a str,
        job: String,
        ticker: &'a Ticker,
        memory_short: &'a OnceLock<String>,
    ) -> Self {
        let begun = ticker.ticks.load(Ordering::SeqCst);
        Keeper { checkpoints, question, job, ticker, begun, memory_short }
    }

    /// The state to go on from, if the command is resumed and there is one.
    pub(crate) fn load(&self) -> Result<Option<Saved>, LabError> {
        match self.checkpoints.resumes {
            true => self.checkpoints.load(self.question, &self.job),
            false => Ok(None),
        }
    }

    /// Keeps the run as it is. Where that fails, it goes on without.
    pub(crate) fn keep(&self, simulation: &mut Simulation) {
        if self.memory_short.get().is_some() {
            return;
        }
        let problem = match simulation.save() {
            None => Some("a program in it cannot be saved".to_owned()),
            Some(state) => {
                let kept = self.checkpoints.keep(self.question, &self.job, state);
                kept.err().map(|error| error.to_string())
            }
        };
        if let Some(problem) = problem {
            // The first failure is the one to report.
            let _ = self.checkpoints.failed.set(problem);
        }
    }

    /// Keeps a run that has ended, if it is worth it.
    pub(crate) fn keep_end(&self, simulation: &mut Simulation) {
        let took = self.ticker.ticks.load(Ordering::SeqCst) - self.begun;
        if self.checkpoints.every.is_some() || took >= ticks(WORTH_KEEPING) {
            self.keep(simulation);
        }
    }
}

fn file_name(job: &str) -> String {
    format!("{job}.state")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn state() -> Saved {
        Saved::new("simulation", 1, &vec![7u64; 100])
    }

    #[test]
    fn a_file_gives_back_what_it_was_given() {
        let file = encode("what", "0-1", state());
        assert_eq!(decode(&file, "what", "0-1"), Ok(state()));
        assert_eq!(decode(&file, "other", "0-1"), Err(Refusal::Question));
        assert_eq!(decode(&file, "what", "0-2"), Err(Refusal::Question));
    }

    #[test]
    fn files_of_others_are_told_from_torn_ones() {
        let file = encode("what", "0-1", state());
        let later = [b"clearlane checkpoint 2\n", &file[MAGIC.len()..]].concat();
        assert_eq!(decode(&later, "what", "0-1"), Err(Refusal::Version));
        assert_eq!(decode(b"PAR1", "what", "0-1"), Err(Refusal::Foreign));
        assert_eq!(decode(b"", "what", "0-1"), Err(Refusal::Torn));
        for end in 0..file.len() {
            assert_eq!(decode(&file[..end], "what", "0-1"), Err(Refusal::Torn), "{end}");
        }
        let body = |version: &str| {
            let kept = Kept {
                version: version.into(),
                question: "what".into(),
                job: "0-1".into(),
                state: state(),
            };
            postcard::to_allocvec(&kept).unwrap()
        };
        let older = body("0.0.1");
        let older = [MAGIC.as_bytes(), &Sha256::digest(&older), &older].concat();
        assert_eq!(decode(&older, "what", "0-1"), Err(Refusal::Version));
    }

    proptest! {
        #[test]
        fn no_byte_can_change_unseen(at in 0usize..1000, to: u8) {
            let file = encode("what", "0-1", state());
            let mut changed = file.clone();
            let at = at % file.len();
            changed[at] = to;
            prop_assert_eq!(decode(&changed, "what", "0-1").is_ok(), to == file[at]);
        }

        #[test]
        fn any_bytes_are_answered(bytes: Vec<u8>) {
            let digested = [MAGIC.as_bytes(), &Sha256::digest(&bytes), &bytes].concat();
            prop_assert!(decode(&bytes, "", "").is_err());
            let _ = decode(&digested, "", "");
        }
    }
}
