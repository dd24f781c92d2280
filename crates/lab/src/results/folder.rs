//! The folder of a run: written aside and renamed, so that nothing looks whole that is not.

use super::tables;
use crate::result::RunResult;
use crate::{LabError, report};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Everything a run's folder holds; a folder with anything else in it is somebody's.
const FILES: &[&str] = &[
    "summary.json",
    "experiment.toml",
    "flows.parquet",
    "links.parquet",
    "series.parquet",
    "report.html",
];

/// Writes the folder `out` and hands out the path of the report. A folder that is there is refused
/// unless it is empty, or holds a run and `force` is set.
pub fn write_run_folder(result: &RunResult, out: &Path, force: bool) -> Result<PathBuf, LabError> {
    check_run_folder(out, force)?;
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(|source| refused(parent, source))?;
    let aside = Aside::beside(out)?;
    for (name, bytes) in contents(result)? {
        // The folder aside is nobody's business: it is `out` that cannot be written.
        write(&aside.path.join(name), &bytes).map_err(|e| refused(&out.join(name), e))?;
    }
    // A folder cannot be replaced in one step: the old run goes first, file by file, so that
    // nothing foreign is ever deleted.
    if out.exists() {
        for name in FILES {
            match fs::remove_file(out.join(name)) {
                Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                    return Err(refused(&out.join(name), source));
                }
                _ => {}
            }
        }
        fs::remove_dir(out).map_err(|source| refused(out, source))?;
    }
    fs::rename(&aside.path, out).map_err(|source| refused(out, source))?;
    Ok(out.join("report.html"))
}

/// Fails if results may not be written to `out`: to be asked before a long run.
pub fn check_run_folder(out: &Path, force: bool) -> Result<(), LabError> {
    let taken = |problem| Err(LabError::Taken { path: out.to_owned(), problem });
    let entries = match fs::read_dir(out) {
        Ok(entries) => entries,
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(_) if fs::metadata(out).is_ok_and(|metadata| !metadata.is_dir()) => {
            return taken("is a file; choose another folder");
        }
        Err(source) => return Err(refused(out, source)),
    };
    let (mut files, mut foreign) = (0, 0);
    for entry in entries {
        let name = entry.map_err(|source| refused(out, source))?.file_name();
        match name.to_str().is_some_and(|name| FILES.contains(&name)) {
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

fn contents(result: &RunResult) -> Result<Vec<(&'static str, Vec<u8>)>, LabError> {
    let table = |written: Result<Vec<u8>, parquet::errors::ParquetError>| {
        written.map_err(|error| LabError::Request(LabError::one_line(&error.to_string())))
    };
    Ok(vec![
        ("summary.json", result.to_json().into_bytes()),
        ("experiment.toml", result.experiment.resolved().into_bytes()),
        ("flows.parquet", table(tables::flows(result))?),
        ("links.parquet", table(tables::links(result))?),
        ("series.parquet", table(tables::series(result))?),
        ("report.html", report::page(result).into_bytes()),
    ])
}

fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = fs::File::create(path)?;
    file.write_all(bytes).and_then(|()| file.sync_all())
}

fn refused(path: &Path, source: std::io::Error) -> LabError {
    LabError::Write { path: path.to_owned(), source }
}

/// A temporary folder that is gone if writing fails half-way.
struct Aside {
    path: PathBuf,
}

impl Aside {
    fn beside(out: &Path) -> Result<Self, LabError> {
        let name = out.file_name().map_or("run".into(), |name| name.to_string_lossy().into_owned());
        let path = out.with_file_name(format!(".{name}.{}.unfinished", std::process::id()));
        // Whatever an earlier process of this number left is not whole.
        match fs::remove_dir_all(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(refused(out, source));
            }
            _ => {}
        }
        fs::create_dir(&path).map_err(|source| refused(out, source))?;
        Ok(Aside { path })
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // Renamed away on success; on failure nothing better can be done than to try.
        let _ = fs::remove_dir_all(&self.path);
    }
}
