//! The folder of what is kept of a command: what was asked, and a file for each run. A file is
//! written aside, through to the disk, and renamed: it is whole or it is not there.

use super::format::{decode, encode, opened};
use super::parts::{Parts, part_file, part_of};
use crate::LabError;
use crate::folder::{Unfinished, refused, replace, whole};
use crate::part::Part;
use clearlane_ib::{Saved, visible};
use clearlane_sim::Simulation;
use std::ffi::OsString;
use std::fs::{self, FileType};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// What was asked of the command, as text.
const COMMAND: &str = "command.json";
/// How the folder is called, behind the name of that of the results.
const SUFFIX: &str = ".checkpoint";
/// How the folder of a point of a sweep is called, before its number.
const POINT: &str = "point-";

/// Which of the saved runs are continued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TakesUp {
    /// None: they are let go.
    Nothing,
    /// All. One of another experiment is an error.
    All,
    /// Those of this experiment; others are let go.
    Own,
}

/// The folder of what is kept of a command.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    folder: PathBuf,
    /// How often runs under way are kept; nothing for only when they are interrupted.
    every: Option<Duration>,
    takes_up: TakesUp,
    command: Arc<Command>,
    /// Why one could not be kept, if one could not.
    failed: Arc<OnceLock<String>>,
    unfinished: Unfinished,
}

/// The state of a run, and its parts, if it was kept by several processes.
type Loaded = (Saved, Option<Parts>);

/// What was asked, kept before the first run is.
#[derive(Debug)]
struct Command {
    /// The folder of the whole command.
    folder: PathBuf,
    text: String,
    is_kept: Mutex<bool>,
}

impl Checkpoints {
    /// Those of the command whose results go into `out`: kept so often, or only when the command is
    /// interrupted. `command` is what was asked, in the words of whoever reads it again.
    pub fn of(
        out: &Path,
        every: Option<Duration>,
        command: String,
        unfinished: &Unfinished,
    ) -> Self {
        let out = in_full(out);
        let mut name = OsString::from(out.file_name().unwrap_or_default());
        name.push(SUFFIX);
        let folder = out.with_file_name(name);
        let is_kept = Mutex::new(false);
        let command = Arc::new(Command { folder: folder.clone(), text: command, is_kept });
        let (takes_up, failed) = (TakesUp::Nothing, Arc::default());
        let unfinished = unfinished.clone();
        Checkpoints { folder, every, takes_up, command, failed, unfinished }
    }

    /// The folder of the results that a folder belongs to: its own, or, of one of checkpoints, the
    /// one beside it. A shell that completes names offers both.
    pub fn results(folder: &Path) -> PathBuf {
        let folder = in_full(folder);
        let name = folder.file_name().and_then(|name| name.to_str());
        match name.and_then(|name| name.strip_suffix(SUFFIX)) {
            Some(name) if folder.join(COMMAND).exists() => folder.with_file_name(name),
            _ => folder,
        }
    }

    /// The same of a command that goes on with what is there. A run of another experiment is an
    /// error.
    pub fn resumed(self) -> Self {
        Checkpoints { takes_up: TakesUp::All, ..self }
    }

    /// The same of a command that is called again: it goes on with the runs that are its own.
    pub fn called_again(self) -> Self {
        Checkpoints { takes_up: TakesUp::Own, ..self }
    }

    /// Why a checkpoint could not be kept, if one could not: runs go on without.
    pub fn failed(&self) -> Option<&str> {
        self.failed.get().map(String::as_str)
    }

    /// Stores the first failure for [`Self::failed`].
    pub(super) fn note_failure(&self, problem: String) {
        // The first failure is the one to report.
        let _ = self.failed.set(problem);
    }

    /// Whether anything is kept.
    pub fn is_there(&self) -> bool {
        self.command_file().exists()
    }

    /// Whether the state of a run is there.
    pub(super) fn is_kept(&self, job: &str) -> bool {
        self.folder.join(file_name(job)).exists()
    }

    /// How often runs under way are kept, if not only when they are interrupted.
    pub(crate) fn every(&self) -> Option<Duration> {
        self.every
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file with what was asked.
    pub fn command_file(&self) -> PathBuf {
        self.command.folder.join(COMMAND)
    }

    /// Those of a point of a sweep, by its number.
    pub(crate) fn point(&self, index: usize) -> Self {
        Checkpoints { folder: self.folder.join(format!("{POINT}{index:04}")), ..self.clone() }
    }

    /// What was asked, if anything is kept.
    pub fn command(&self) -> Result<Option<String>, LabError> {
        let path = self.command_file();
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(LabError::Read { path, source }),
        }
    }

    /// The folder of the results is claimed, and the runs are set up. Saved runs of others are let
    /// go.
    pub fn begin(&self) -> Result<(), LabError> {
        if self.takes_up == TakesUp::Nothing { self.clear() } else { Ok(()) }
    }

    /// A run begins. Where runs are kept now and then, so is what was asked, from here on.
    pub(crate) fn begin_run(&self) -> Result<(), LabError> {
        self.every.map_or(Ok(()), |_| self.keep_command())
    }

    fn keep_command(&self) -> Result<(), LabError> {
        let command = &*self.command;
        let mut is_kept = command.is_kept.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_kept {
            make(&command.folder)?;
            replace(&self.unfinished, &command.folder, COMMAND, command.text.as_bytes())?;
            *is_kept = true;
        }
        Ok(())
    }

    /// Keeps the state of a run.
    pub(super) fn keep(&self, question: &str, job: &str, state: Saved) -> Result<(), LabError> {
        // First: a state without what was asked is nothing to go on with.
        self.keep_command()?;
        make(&self.folder)?;
        replace(&self.unfinished, &self.folder, &file_name(job), &encode(question, job, state))
    }

    /// Keeps the part that this process has of a run. It is nothing until [`Self::keep_list`].
    pub(super) fn keep_part(
        &self,
        question: &str,
        part: &str,
        state: Saved,
    ) -> Result<(), LabError> {
        make(&self.folder)?;
        replace(&self.unfinished, &self.folder, &part_file(part), &encode(question, part, state))
    }

    /// All parts of a run are kept: from now on they are its state.
    pub(super) fn keep_list(
        &self,
        question: &str,
        job: &str,
        parts: Parts,
    ) -> Result<(), LabError> {
        self.keep(question, job, parts.list())?;
        self.forget_parts(job, Some(parts));
        Ok(())
    }

    /// Deletes the parts of a run but for these. One that stays is nothing, and is deleted with the
    /// folder.
    pub(super) fn forget_parts(&self, job: &str, but: Option<Parts>) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let part = name.to_str().and_then(part_of).filter(|(of, _)| *of == job);
            let kept = but.map(|parts| parts.generation);
            if part.is_some_and(|(_, generation)| Some(generation) != kept) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Before anything is simulated: fails if a command is to go on with a run of another
    /// experiment. If it is to go on with its own only, those of others are let go.
    pub(crate) fn check(&self, question: &str) -> Result<(), LabError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) if self.takes_up != TakesUp::Nothing => entries,
            _ => return Ok(()),
        };
        let paths = entries.flatten().map(|entry| entry.path());
        let mut paths: Vec<PathBuf> = paths.filter(|path| is_state_file(path)).collect();
        paths.sort();
        for path in paths {
            let file = match fs::read(&path) {
                Ok(file) => file,
                Err(source) => return Err(LabError::Read { path, source }),
            };
            match (opened(&file, question), self.takes_up) {
                (Ok(_), _) => {}
                (Err(_), TakesUp::Own) => {
                    fs::remove_file(&path).map_err(|source| refused(&path, source))?;
                }
                (Err(refusal), _) => {
                    return Err(LabError::Checkpoint { path, problem: refusal.problem().into() });
                }
            }
        }
        Ok(())
    }

    /// The state of a run, if it was saved and is continued, and its parts, if it was of several
    /// processes.
    pub(super) fn load(&self, question: &str, job: &str) -> Result<Option<Loaded>, LabError> {
        if self.takes_up == TakesUp::Nothing {
            return Ok(None);
        }
        let path = self.folder.join(file_name(job));
        let file = match fs::read(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(LabError::Read { path, source }),
        };
        let state = match decode(&file, question, job) {
            Ok(state) => state,
            Err(refusal) => {
                return Err(LabError::Checkpoint { path, problem: refusal.problem().into() });
            }
        };
        match Parts::named(&state) {
            None => Ok(Some((state, None))),
            Some(parts) => {
                let whole = self.joined(question, job, parts)?;
                Ok(Some((whole, Some(parts))))
            }
        }
    }

    /// The state of a whole run, of its parts.
    fn joined(&self, question: &str, job: &str, parts: Parts) -> Result<Saved, LabError> {
        let part = |rank: usize| {
            let name = parts.name(job, rank);
            let path = self.folder.join(part_file(&name));
            let file = fs::read(&path).ok();
            let state = file.and_then(|file| decode(&file, question, &name).ok());
            state.ok_or_else(|| {
                let problem = format!(
                    "its part {} of {} is not there or damaged: {}; delete the state to start \
                     that run again, or start all runs again with --force",
                    rank + 1,
                    parts.processes,
                    part_file(&name),
                );
                LabError::Checkpoint { path: self.folder.join(file_name(job)), problem }
            })
        };
        let states = (0..parts.processes).map(part).collect::<Result<Vec<Saved>, _>>()?;
        Simulation::joined(&states).map_err(|error| self.refused(job, &error))
    }

    /// A state that was kept and cannot be taken up.
    pub(crate) fn refused(&self, job: &str, problem: &dyn std::fmt::Display) -> LabError {
        let problem = LabError::one_line(&visible(&problem.to_string()));
        LabError::Checkpoint { path: self.folder.join(file_name(job)), problem }
    }

    /// Fails if the folder is a file, or holds anything that clearlane does not keep: it is
    /// somebody's.
    pub fn check_owner(&self) -> Result<(), LabError> {
        let path = self.folder.clone();
        match self.held() {
            Ok(held) if held.foreign => {
                let problem = "holds files that are not saved runs; choose another folder for the \
                               results";
                Err(LabError::Taken { path, problem })
            }
            Ok(_) => Ok(()),
            Err(source) => Err(LabError::Read { path, source }),
        }
    }

    /// The command has failed: what was asked is let go where there is no state to go on with, so
    /// that the folder stands in nobody's way.
    pub fn give_up(&self) {
        let is_empty = |held: Held| held.files.iter().all(|path| !is_state_file(path));
        if self.takes_up == TakesUp::Nothing && self.held().is_ok_and(is_empty) {
            // What is wrong with the command is what people are told.
            let _ = self.clear();
        }
    }

    /// Lets all of it go: the results are there. What is somebody else's stays.
    pub fn clear(&self) -> Result<(), LabError> {
        let failed = |source| refused(&self.folder, source);
        let held = self.held().map_err(failed)?;
        let gone = |done: std::io::Result<()>| match done {
            Err(error) if is_no_matter(error.kind()) => Ok(()),
            done => done.map_err(failed),
        };
        // What was asked goes last: without it nobody can go on with the rest.
        let (command, states): (Vec<_>, Vec<_>) =
            held.files.into_iter().partition(|path| path.ends_with(COMMAND));
        states.into_iter().chain(command).try_for_each(|file| gone(fs::remove_file(file)))?;
        let folders = held.points.iter().chain([&self.folder]);
        folders.into_iter().try_for_each(|folder| gone(fs::remove_dir(folder)))
    }

    fn held(&self) -> std::io::Result<Held> {
        let mut held = Held::default();
        held.add(&self.folder)?;
        let mut at = 0;
        while let Some(point) = held.points.get(at).cloned() {
            held.add(&point)?;
            at += 1;
        }
        Ok(held)
    }
}

/// Whether a file is gone already, or a folder is somebody's.
fn is_no_matter(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty | ErrorKind::NotADirectory)
}

/// What lies in the folder.
#[derive(Default)]
struct Held {
    /// Our files.
    files: Vec<PathBuf>,
    /// Our folders of points.
    points: Vec<PathBuf>,
    /// Whether there is anything else.
    foreign: bool,
}

impl Held {
    /// What lies in one of our folders, if it is there.
    fn add(&mut self, folder: &Path) -> std::io::Result<()> {
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                // A file by that name is somebody's. One further up is told where folders are made.
                self.foreign |= folder.exists();
                return Ok(());
            }
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let (name, kind) = (entry.file_name(), entry.file_type()?);
            match name.to_str() {
                Some(name) if is_file(name, kind) => self.files.push(entry.path()),
                Some(name) if is_point(name, kind) => self.points.push(entry.path()),
                _ => self.foreign = true,
            }
        }
        Ok(())
    }
}

fn is_file(name: &str, kind: FileType) -> bool {
    let whole = whole(name).unwrap_or(name);
    let is_part = |(job, _)| is_run(job);
    let is_ours = whole == COMMAND || is_state(whole) || part_of(whole).is_some_and(is_part);
    kind.is_file() && is_ours
}

fn is_point(name: &str, kind: FileType) -> bool {
    kind.is_dir() && name.strip_prefix(POINT).is_some_and(is_number)
}

/// Whether a file is called like the state of a run.
fn is_state(name: &str) -> bool {
    name.strip_suffix(STATE).is_some_and(is_run)
}

fn is_state_file(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(is_state)
}

/// Whether this is the name of a run: its variant's number, its seed, and what of it is run.
fn is_run(job: &str) -> bool {
    let is_whole = |job: &str| {
        let numbers = job.split_once('-');
        numbers.is_some_and(|(variant, seed)| is_number(variant) && is_number(seed))
    };
    let mut parts = Part::ALL.iter().map(|part| part.suffix());
    parts.any(|part| job.strip_suffix(part).is_some_and(is_whole))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit())
}

/// How the file of a run ends.
const STATE: &str = ".state";

fn file_name(job: &str) -> String {
    format!("{job}{STATE}")
}

fn make(folder: &Path) -> Result<(), LabError> {
    fs::create_dir_all(folder).map_err(|source| refused(folder, source))
}

/// A path with a name: that of `.` or `..` is the one of the folder it stands for.
fn in_full(path: &Path) -> PathBuf {
    match path.file_name() {
        Some(_) => path.to_path_buf(),
        None => fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf()),
    }
}
