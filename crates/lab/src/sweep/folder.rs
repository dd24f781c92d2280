//! The folder of a sweep: points as they are finished, the whole when all are.

use super::parquet::parquet;
use super::record::{Record, questions};
use super::result::SweepResult;
use super::{Point, Sweep};
use crate::LabError;
use crate::folder::{Claim, Unfinished, refused, replace, whole};
use crate::result::RunResult;
use crate::results::write_run_folder;
use crate::status::Status;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Finished points, a line each, in the order they were finished.
const POINTS: &str = "points.jsonl";
/// The runs of single points, if they are kept.
const RUNS: &str = "runs";
/// Everything else in the folder.
const FILES: &[&str] = &["sweep.json", "experiment.toml", "points.parquet", "report.html"];

/// The file of finished points.
#[derive(Debug, Default)]
struct Points {
    /// What it begins with: the points that were there.
    known: String,
    /// Open once there is a point to add: a sweep that fails before changes nothing.
    file: Option<File>,
}

/// A folder claimed for a sweep.
#[derive(Debug)]
pub struct SweepFolder {
    out: PathBuf,
    force: bool,
    /// Whether each point's own run is kept.
    keep_runs: bool,
    questions: Vec<String>,
    points: Mutex<Points>,
    unfinished: Unfinished,
    _claim: Claim,
}

impl SweepFolder {
    /// Claims `out` for a sweep. A folder that is there is refused unless it is empty, holds this
    /// sweep or a part of it, or holds other points too and `force` is set, which drops them.
    pub fn claim(
        sweep: &Sweep,
        out: &Path,
        force: bool,
        keep_runs: bool,
        unfinished: &Unfinished,
    ) -> Result<Self, LabError> {
        let questions = questions(sweep)?;
        let claim = Claim::of(out, unfinished)?;
        let folder = SweepFolder {
            out: out.to_owned(),
            force,
            keep_runs,
            questions,
            points: Mutex::default(),
            unfinished: unfinished.clone(),
            _claim: claim,
        };
        folder.check()?;
        Ok(folder)
    }

    /// What a point asks.
    pub(super) fn question(&self, index: usize) -> &str {
        self.questions.get(index).map_or("", String::as_str)
    }

    fn check(&self) -> Result<(), LabError> {
        let taken = |problem| Err(LabError::Taken { path: self.out.clone(), problem });
        let entries = fs::read_dir(&self.out).map_err(|source| refused(&self.out, source))?;
        for entry in entries {
            let name = entry.map_err(|source| refused(&self.out, source))?.file_name();
            let ours = name.to_str().is_some_and(|name| {
                FILES.contains(&name) || [POINTS, RUNS].contains(&name) || is_part(name)
            });
            if !ours {
                return taken("holds other files than a sweep's; choose another folder");
            }
        }
        let records = self.records()?;
        let is_ours = |record: &Record| self.questions.contains(&record.question);
        let holds_ours = records.iter().any(is_ours);
        // One that was interrupted before its first point was finished holds none.
        let is_without = |name: &str| !self.out.join(name).exists();
        let holds_any = !records.is_empty() || (is_without(POINTS) && !is_without("sweep.json"));
        if self.force || !holds_any {
            return Ok(());
        }
        if !holds_ours {
            return taken("holds another sweep; choose another folder or add --force");
        }
        match records.iter().all(is_ours) {
            true => Ok(()),
            false => taken(
                "holds finished points that this sweep leaves out; choose another folder, or add \
                 --force, which drops them",
            ),
        }
    }

    /// The finished points the folder holds. A line that was cut off when the process was killed is
    /// no point.
    fn records(&self) -> Result<Vec<Record>, LabError> {
        let path = self.out.join(POINTS);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(source) => return Err(LabError::Read { path, source }),
        };
        Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    /// By point of the sweep, what the folder holds of it already. What it holds of others, which
    /// takes force, goes with the first point that is kept.
    pub(super) fn known(&self, sweep: &Sweep) -> Result<Vec<Option<Record>>, LabError> {
        let records = self.records()?;
        let has_run = |record: &&Record| match &record.run {
            Some(run) => self.out.join(run).is_file(),
            None => !self.keep_runs,
        };
        let of = |question: &String| {
            records.iter().find(|r| r.question == *question && has_run(r)).cloned()
        };
        let known: Vec<Option<Record>> =
            self.questions.iter().take(sweep.points.len()).map(of).collect();
        let mut lines = String::new();
        for record in known.iter().flatten() {
            lines.push_str(&line(record));
        }
        let points = Points { known: lines, file: None };
        *self.points.lock().unwrap_or_else(|e| e.into_inner()) = points;
        Ok(known)
    }

    /// Keeps a point that is done; nothing of one that was interrupted.
    pub(super) fn keep(
        &self,
        index: usize,
        point: &Point,
        result: &RunResult,
    ) -> Result<Option<Record>, LabError> {
        if result.status() == Status::Partial {
            return Ok(None);
        }
        let run = match self.keep_runs {
            false => None,
            true => {
                let at: Vec<String> = point.at.iter().map(|i| (i + 1).to_string()).collect();
                let name = format!("{RUNS}/{}", at.join("-"));
                write_run_folder(result, &self.out.join(&name), true, &self.unfinished)?;
                Some(format!("{name}/report.html"))
            }
        };
        let question = self.question(index).to_owned();
        let record = Record::of(question, result, run);
        let mut points = self.points.lock().unwrap_or_else(|e| e.into_inner());
        let file = self.begun(&mut points)?;
        let written = file.write_all(line(&record).as_bytes()).and_then(|()| file.sync_data());
        written.map_err(|source| refused(&self.out.join(POINTS), source))?;
        Ok(Some(record))
    }

    /// The file of finished points, with those that were there.
    fn begun<'a>(&self, points: &'a mut Points) -> Result<&'a mut File, LabError> {
        let file = match points.file.take() {
            Some(file) => file,
            None => {
                // Not in place: a disk that is full must not take the points that are there.
                replace(&self.unfinished, &self.out, POINTS, points.known.as_bytes())?;
                let path = self.out.join(POINTS);
                let file = File::options().append(true).open(&path);
                file.map_err(|source| refused(&path, source))?
            }
        };
        Ok(points.file.insert(file))
    }

    /// Writes what the sweep came to and hands out the path of the report.
    pub fn fill(&self, result: &SweepResult) -> Result<PathBuf, LabError> {
        let parquet = parquet(result);
        let parquet = parquet.map_err(|e| LabError::Request(LabError::one_line(&e.to_string())))?;
        self.begun(&mut self.points.lock().unwrap_or_else(|e| e.into_inner()))?;
        let put = |name: &str, bytes: &[u8]| replace(&self.unfinished, &self.out, name, bytes);
        put("experiment.toml", result.experiment.resolved().as_bytes())?;
        put("points.parquet", &parquet)?;
        put("report.html", result.page().as_bytes())?;
        // Last: whoever finds it finds the others.
        put("sweep.json", result.to_json().as_bytes())?;
        Ok(self.out.join("report.html"))
    }
}

/// Whether a file of ours was not finished when its process was killed.
fn is_part(name: &str) -> bool {
    whole(name).is_some_and(|name| FILES.contains(&name) || name == POINTS)
}

/// A record as a line; numbers are finite or null, so it can be written.
fn line(record: &Record) -> String {
    let mut line = serde_json::to_string(record).unwrap_or_default();
    line.push('\n');
    line
}
