//! The folder of a run: written aside and renamed, so that nothing looks whole that is not.

use crate::capturing::{CAPTURE_ENDINGS, CAPTURE_PREFIX};
use crate::columns::TABLES;
use crate::folder::{Aside, Claim, Unfinished, clear_claimed, refused};
use crate::halt::{Deadline, LeftOut};
use crate::result::RunResult;
use crate::{LabError, report};
use parquet::errors::ParquetError;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Everything a run's folder holds; a folder with anything else in it is somebody's.
const FILES: &[&str] = &[
    "summary.json",
    "experiment.toml",
    "flow-series.parquet",
    "flows.parquet",
    "links.parquet",
    "series.parquet",
    "control.parquet",
    REPORT,
];
const REPORT: &str = "report.html";

/// Word for captures in temporary names. Captures are written as the run goes.
const CAPTURES: &str = "captures.";

/// A folder claimed for the results of a run: to be had before the run, so that nobody waits in
/// vain, and to be filled after it.
#[derive(Debug)]
pub struct RunFolder {
    out: PathBuf,
    force: bool,
    /// Everything it may hold.
    files: &'static [&'static str],
    /// Where large files are written before the results are there.
    begun: Option<Aside>,
    unfinished: Unfinished,
    /// Free once the results are in their place.
    claim: Claim,
}

impl RunFolder {
    /// Claims `out`. A folder that is there is refused unless it is empty, or holds a run and
    /// `force` is set; so is one that another process writes to. What is not in its place yet is
    /// noted as unfinished.
    pub fn claim(out: &Path, force: bool, unfinished: &Unfinished) -> Result<Self, LabError> {
        RunFolder::claim_for(out, force, FILES, unfinished)
    }

    /// The same for results that have other files.
    pub fn claim_for(
        out: &Path,
        force: bool,
        files: &'static [&'static str],
        unfinished: &Unfinished,
    ) -> Result<Self, LabError> {
        check(out, force, files)?;
        let claim = Claim::of(out, unfinished)?;
        // Somebody may have finished a run there meanwhile.
        check(out, force, files)?;
        let place = place(out);
        ["", CAPTURES].iter().for_each(|what| clear_claimed(&place, what));
        let unfinished = unfinished.clone();
        Ok(RunFolder { out: out.to_owned(), force, files, begun: None, unfinished, claim })
    }

    /// A folder for files that are written before the results are there, such as captures of runs,
    /// and become part of them.
    pub fn for_begun(&mut self) -> Result<PathBuf, LabError> {
        let aside = self.unfinished.folder(&place(&self.out), CAPTURES);
        let aside = aside.map_err(|source| refused(&self.out, source))?;
        let path = aside.path().to_owned();
        self.begun = Some(aside);
        Ok(path)
    }

    /// Puts a result into the folder, all of it or nothing. What is not made when the deadline
    /// passes is left out, and the result is a partial one.
    pub fn fill(self, result: &RunResult, deadline: &Deadline) -> Result<Filled, LabError> {
        let mut summary = result.summary();
        let mut left_out = Vec::new();
        let filling = self.begin()?;
        filling.put("experiment.toml", result.experiment.resolved().as_bytes())?;
        for entry in TABLES {
            match entry.parquet(result, deadline) {
                Ok(None) => {}
                Ok(Some(written)) => {
                    let wrong = |error: ParquetError| LabError::one_line(&error.to_string());
                    let written = written.map_err(|error| LabError::Request(wrong(error)))?;
                    filling.put(entry.file, &written)?;
                }
                Err(LeftOut) => left_out.push(entry.file),
            }
        }
        match report::page(result, deadline) {
            Ok(page) => filling.put(REPORT, page.as_bytes())?,
            Err(LeftOut) => left_out.push(REPORT),
        }
        summary.leave_out(&left_out);
        let summary = summary.text();
        filling.put("summary.json", summary.as_bytes())?;
        let report = filling.end()?;
        Ok(Filled { report: (!left_out.contains(&REPORT)).then_some(report), summary, left_out })
    }

    /// Fills it with files of these names and bytes, which are those it was claimed for. Returns
    /// the path of the report.
    pub fn fill_with(self, contents: Vec<(&'static str, Vec<u8>)>) -> Result<PathBuf, LabError> {
        let filling = self.begin()?;
        contents.iter().try_for_each(|(name, bytes)| filling.put(name, bytes))?;
        filling.end()
    }

    /// Begins to fill it, beside its place, with what was begun before.
    fn begin(self) -> Result<Filling, LabError> {
        let out = &self.out;
        check(out, self.force, self.files)?;
        // A folder that is a link stays one.
        let place = place(out);
        let aside = self.unfinished.folder(&place, "").map_err(|source| refused(out, source))?;
        for begun in self.begun.iter().flat_map(files_of) {
            let name = begun.file_name().unwrap_or_default();
            aside.take(&begun).map_err(|e| refused(&out.join(name), e))?;
        }
        Ok(Filling { aside, place, folder: self })
    }
}

/// Contents that a folder was filled with.
#[derive(Debug)]
pub struct Filled {
    /// The path of the report, if it was made.
    pub report: Option<PathBuf>,
    /// Text of summary.json.
    pub summary: String,
    /// Files that were not made because the deadline had passed.
    pub left_out: Vec<&'static str>,
}

/// A folder that is filled beside its place.
struct Filling {
    aside: Aside,
    place: PathBuf,
    folder: RunFolder,
}

impl Filling {
    /// Writes a file through to the disk.
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), LabError> {
        let written = || -> io::Result<()> {
            let mut file = self.aside.create(name)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        // The folder aside is nobody's business: it is `out` that cannot be written.
        written().map_err(|e| refused(&self.folder.out.join(name), e))
    }

    /// Puts it into its place. Returns the path of the report.
    fn end(self) -> Result<PathBuf, LabError> {
        let Filling { aside, place, folder } = self;
        let RunFolder { out, files, claim, .. } = folder;
        // Somebody may have put a file of theirs there meanwhile: it is not deleted.
        let only_ours = |there: &Path| match check(there, true, files) {
            Err(LabError::Taken { problem, .. }) => {
                Err(LabError::Taken { path: out.clone(), problem })
            }
            checked => checked,
        };
        aside.exchange_if(&place, only_ours, |source| refused(&out, source))?;
        drop(claim);
        Ok(out.join(REPORT))
    }
}

/// Claims a folder and fills it at once.
pub fn write_run_folder(
    result: &RunResult,
    out: &Path,
    force: bool,
    unfinished: &Unfinished,
) -> Result<PathBuf, LabError> {
    let filled = RunFolder::claim(out, force, unfinished)?.fill(result, &Deadline::default())?;
    // A deadline that nobody lets pass leaves nothing out.
    Ok(filled.report.unwrap_or_else(|| out.join(REPORT)))
}

fn check(out: &Path, force: bool, known: &[&str]) -> Result<(), LabError> {
    let taken = |problem| Err(LabError::Taken { path: out.to_owned(), problem });
    let entries = match fs::read_dir(out) {
        Ok(entries) => entries,
        // What is no folder is told where one is made.
        Err(_) if !out.is_dir() => return Ok(()),
        Err(source) => return Err(refused(out, source)),
    };
    let (mut files, mut foreign) = (0, 0);
    for entry in entries {
        let name = entry.map_err(|source| refused(out, source))?.file_name();
        let is_ours = |name: &str| known.contains(&name) || is_capture(name);
        match name.to_str().is_some_and(is_ours) {
            true => files += 1,
            false => foreign += 1,
        }
    }
    match (files, foreign, force) {
        (0, 0, _) | (_, 0, true) => Ok(()),
        (_, 0, false) => taken("holds an earlier run; choose another folder or add --force"),
        _ => taken("holds other files than a run's; choose another folder"),
    }
}

/// Whether a file of this name is of the captures of a run.
fn is_capture(name: &str) -> bool {
    let ending = name.strip_prefix(CAPTURE_PREFIX).and_then(|rest| rest.rsplit_once('.'));
    ending.is_some_and(|(_, ending)| CAPTURE_ENDINGS.contains(&ending))
}

/// Path of a folder itself, not of the link to it: renaming must not cross disks.
fn place(out: &Path) -> PathBuf {
    fs::canonicalize(out).unwrap_or_else(|_| out.to_owned())
}

/// Files in a folder aside.
fn files_of(aside: &Aside) -> Vec<PathBuf> {
    let entries = fs::read_dir(aside.path()).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}
