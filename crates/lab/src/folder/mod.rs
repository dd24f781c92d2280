//! Folders that are written whole or stay as they were.

mod claim;
mod exchange;

pub(crate) use claim::Claim;
pub use exchange::exchange_folders;

use crate::LabError;
use std::fs;
use std::io::Write;
use std::path::Path;

/// Writes a file through to the disk.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = fs::File::create(path)?;
    file.write_all(bytes).and_then(|()| file.sync_all())
}

/// Writes a file of a folder that is whole or as it was, whatever happens meanwhile.
pub(crate) fn replace(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), LabError> {
    let (path, aside) = (folder.join(name), folder.join(part(name)));
    let written = write(&aside, bytes)
        .and_then(|()| fs::rename(&aside, &path))
        .and_then(|()| fs::File::open(folder)?.sync_all());
    written.map_err(|source| {
        // The failure to report is the first one.
        let _ = fs::remove_file(&aside);
        refused(&path, source)
    })
}

/// What a file is called until it is whole.
fn part(name: &str) -> String {
    format!(".{name}.unfinished")
}

/// What a file will be called that was not whole when its process was killed.
pub(crate) fn whole(name: &str) -> Option<&str> {
    name.strip_prefix('.')?.strip_suffix(".unfinished")
}

/// The machine would not have it.
pub(crate) fn refused(path: &Path, source: std::io::Error) -> LabError {
    LabError::Write { path: path.to_owned(), source }
}
