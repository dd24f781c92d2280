//! Folders that are written whole or stay as they were.

mod claim;
mod exchange;
mod unfinished;

pub(crate) use claim::Claim;
use exchange::exchange_folders;
pub(crate) use unfinished::clear_claimed;
pub use unfinished::{Aside, Unfinished};

use crate::LabError;
use std::fs;
use std::io::Write;
use std::path::Path;

/// Writes a file of a folder that is whole or as it was, whatever happens meanwhile.
pub(crate) fn replace(
    unfinished: &Unfinished,
    folder: &Path,
    name: &str,
    bytes: &[u8],
) -> Result<(), LabError> {
    let path = folder.join(name);
    let written = || -> std::io::Result<()> {
        // One that a killed process left is written over.
        let (aside, mut file) = unfinished.file_at(folder.join(part(name)))?;
        file.write_all(bytes)?;
        file.sync_all()?;
        unfinished.publish(vec![(aside, path.clone())]).map_err(|(_, error)| error)?;
        fs::File::open(folder)?.sync_all()
    };
    written().map_err(|source| refused(&path, source))
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
