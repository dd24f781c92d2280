//! The folder of a run: written aside and renamed, so that nothing looks whole that is not.

use crate::capturing::{CAPTURE_ENDINGS, CAPTURE_PREFIX};
use crate::columns::TABLES;
use crate::folder::{Claim, exchange_folders, refused, write};
use crate::result::RunResult;
use crate::{LabError, report};
use std::fs;
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
    "report.html",
];

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
    /// Free once the results are in their place.
    claim: Claim,
}

impl RunFolder {
    /// Claims `out`. A folder that is there is refused unless it is empty, or holds a run and
    /// `force` is set; so is one that another process writes to.
    pub fn claim(out: &Path, force: bool) -> Result<Self, LabError> {
        RunFolder::claim_for(out, force, FILES)
    }

    /// The same for results that have other files.
    pub fn claim_for(
        out: &Path,
        force: bool,
        files: &'static [&'static str],
    ) -> Result<Self, LabError> {
        check(out, force, files)?;
        let claim = Claim::of(out)?;
        // Somebody may have finished a run there meanwhile.
        check(out, force, files)?;
        clear_aside(out);
        Ok(RunFolder { out: out.to_owned(), force, files, begun: None, claim })
    }

    /// A folder for files that are written before the results are there, such as captures of runs,
    /// and become part of them.
    pub fn for_begun(&mut self) -> Result<PathBuf, LabError> {
        let aside = Aside::beside(&self.out, "captures.")?;
        let path = aside.path.clone();
        self.begun = Some(aside);
        Ok(path)
    }

    /// Puts a result into the folder, all of it or nothing, and hands out the path of the report.
    pub fn fill(self, result: &RunResult) -> Result<PathBuf, LabError> {
        self.fill_with(contents(result)?)
    }

    /// The same with files of these names and bytes, which are those it was claimed for.
    pub fn fill_with(self, contents: Vec<(&'static str, Vec<u8>)>) -> Result<PathBuf, LabError> {
        let RunFolder { out, force, files, begun, claim } = self;
        check(&out, force, files)?;
        let aside = Aside::beside(&out, "")?;
        for begun in begun.iter().flat_map(Aside::files) {
            let name = begun.file_name().unwrap_or_default();
            fs::rename(&begun, aside.path.join(name)).map_err(|e| refused(&out.join(name), e))?;
        }
        for (name, bytes) in contents {
            // The folder aside is nobody's business: it is `out` that cannot be written.
            write(&aside.path.join(name), &bytes).map_err(|e| refused(&out.join(name), e))?;
        }
        // A folder that is a link stays one.
        let place = fs::canonicalize(&out).map_err(|source| refused(&out, source))?;
        exchange_folders(&aside.path, &place).map_err(|source| refused(&out, source))?;
        // Somebody may have put a file of theirs there meanwhile: it is not deleted.
        if let Err(error) = check(&aside.path, true, files) {
            exchange_folders(&aside.path, &place).map_err(|source| refused(&out, source))?;
            return Err(match error {
                LabError::Taken { problem, .. } => LabError::Taken { path: out, problem },
                other => other,
            });
        }
        drop(claim);
        Ok(out.join("report.html"))
    }
}

/// Claims a folder and fills it at once.
pub fn write_run_folder(result: &RunResult, out: &Path, force: bool) -> Result<PathBuf, LabError> {
    RunFolder::claim(out, force)?.fill(result)
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

fn contents(result: &RunResult) -> Result<Vec<(&'static str, Vec<u8>)>, LabError> {
    let table = |written: Result<Vec<u8>, parquet::errors::ParquetError>| {
        written.map_err(|error| LabError::Request(LabError::one_line(&error.to_string())))
    };
    let mut files = vec![
        ("summary.json", result.to_json().into_bytes()),
        ("experiment.toml", result.experiment.resolved().into_bytes()),
        ("report.html", report::page(result).into_bytes()),
    ];
    for entry in TABLES {
        if let Some(written) = entry.parquet(result) {
            files.push((entry.file, table(written)?));
        }
    }
    Ok(files)
}

/// Takes away what killed processes left beside a folder that is ours now.
fn clear_aside(out: &Path) {
    let (Some(name), parent) = (out.file_name(), out.parent()) else { return };
    let parent = parent.filter(|parent| !parent.as_os_str().is_empty());
    let begin = format!(".{}.", name.to_string_lossy());
    let Ok(entries) = fs::read_dir(parent.unwrap_or(Path::new("."))) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let middle = name.to_str().and_then(|name| name.strip_prefix(&begin));
        let process = middle.and_then(|middle| middle.strip_suffix(".unfinished"));
        let process = process.map(|name| name.strip_prefix("captures.").unwrap_or(name));
        if process.is_some_and(|id| !id.is_empty() && id.bytes().all(|c| c.is_ascii_digit())) {
            // Tidiness, no more: what cannot be removed does no harm.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A temporary folder that is gone in the end, with what is in it: results that were written
/// half-way or those that were replaced.
#[derive(Debug)]
struct Aside {
    path: PathBuf,
}

impl Aside {
    /// Beside the folder itself, not beside a link to it: renaming must not cross disks.
    fn beside(out: &Path, what: &str) -> Result<Self, LabError> {
        let place = fs::canonicalize(out).unwrap_or_else(|_| out.to_owned());
        let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let path = place.with_file_name(format!(".{name}.{what}{}.unfinished", std::process::id()));
        fs::create_dir(&path).map_err(|source| refused(out, source))?;
        Ok(Aside { path })
    }

    /// What is in it.
    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // Nothing better can be done than to try.
        let _ = fs::remove_dir_all(&self.path);
    }
}
