//! Files in and out. What is written is whole or not there: it is written under a temporary name
//! beside its place and renamed.

use crate::failure::Failure;
use clearlane_lab::{Aside, Unfinished, read_text};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Reads a text file of at most so many bytes.
pub fn read(path: &Path, bytes_max: u64) -> Result<String, Failure> {
    read_text(path, bytes_max).map_err(|error| Failure::reading(path, &error))
}

/// Writes a file in place of any that is there.
pub fn write(path: &Path, bytes: &[u8], unfinished: &Unfinished) -> Result<(), Failure> {
    write_all(&[(path, bytes)], unfinished)
}

/// Writes files in place of any that are there. All are written aside first. If that fails, none
/// takes its place. If one cannot be renamed, those before it have their places.
pub fn write_all<B: AsRef<[u8]>>(
    files: &[(&Path, B)],
    unfinished: &Unfinished,
) -> Result<(), Failure> {
    let mut staged = Vec::new();
    for (path, bytes) in files {
        let failed = |error: io::Error| Failure::writing(path, &error);
        staged.extend(stage(path, bytes.as_ref(), unfinished).map_err(failed)?);
    }
    unfinished.publish(staged).map_err(|(path, error)| Failure::writing(&path, &error))
}

/// Writes a file aside, and hands out where it belongs. Something that is no regular file, such as
/// `/dev/null`, is written to at once.
fn stage(
    path: &Path,
    bytes: &[u8],
    unfinished: &Unfinished,
) -> io::Result<Option<(Aside, PathBuf)>> {
    // A link is followed, so that the file it points to is replaced and not the link.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    match fs::metadata(&place) {
        Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(there) if !there.is_file() => {
            File::options().write(true).open(&place)?.write_all(bytes)?;
            return Ok(None);
        }
        _ => {}
    }
    let (aside, mut file) = unfinished.file(&place)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(Some((aside, place)))
}

/// What writes a file of a folder.
pub type Content<'a> = Box<dyn Fn(&mut dyn Write) -> io::Result<()> + 'a>;

/// Writes a folder of files, all or none, in place of any that is there; whether it may be is for
/// `writing` to say.
pub fn write_folder(
    folder: &Path,
    files: &[(&str, Content<'_>)],
    unfinished: &Unfinished,
) -> Result<(), Failure> {
    let place = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf());
    let all = || -> io::Result<()> {
        let aside = unfinished.folder(&place, "")?;
        for (name, content) in files {
            let mut out = io::BufWriter::new(aside.create(name)?);
            content(&mut out)?;
            out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        }
        aside.exchange(&place)
    };
    all().map_err(|error| Failure::writing(folder, &error))
}
