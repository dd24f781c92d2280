//! Files in and out. What is written is whole or not there: it is written under a temporary name
//! beside its place and renamed.

use crate::failure::Failure;
use clearlane_lab::{exchange_folders, read_text};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Reads a text file of at most so many bytes.
pub fn read(path: &Path, bytes_max: u64) -> Result<String, Failure> {
    read_text(path, bytes_max).map_err(|error| Failure::reading(path, &error))
}

/// Writes a file in place of any that is there.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_all(&[(path, bytes)])
}

/// Writes files in place of any that are there; if one cannot be written, none is.
pub fn write_all<B: AsRef<[u8]>>(files: &[(&Path, B)]) -> Result<(), Failure> {
    let mut staged: Vec<Staged> = Vec::new();
    for (path, bytes) in files {
        let failed = |error: io::Error| Failure::writing(path, &error);
        staged.push(Staged::write(path, bytes.as_ref()).map_err(failed)?);
    }
    for ((path, _), file) in files.iter().zip(staged) {
        file.publish().map_err(|error| Failure::writing(path, &error))?;
    }
    Ok(())
}

/// A file under its temporary name, taken away again unless it is published.
struct Staged {
    temporary: Option<PathBuf>,
    place: PathBuf,
}

impl Staged {
    /// Something that is no regular file, such as `/dev/null`, is written to at once.
    fn write(path: &Path, bytes: &[u8]) -> io::Result<Self> {
        // A link is followed, so that the file it points to is replaced and not the link.
        let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        match fs::metadata(&place) {
            Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(there) if !there.is_file() => {
                File::options().write(true).open(&place)?.write_all(bytes)?;
                return Ok(Staged { temporary: None, place });
            }
            _ => {}
        }
        let temporary = beside(&place);
        let staged = Staged { temporary: Some(temporary.clone()), place };
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(staged)
    }

    fn publish(mut self) -> io::Result<()> {
        match self.temporary.take() {
            Some(temporary) => fs::rename(&temporary, &self.place).inspect_err(|_| {
                // Best effort: the failure to report is the first one.
                let _ = fs::remove_file(&temporary);
            }),
            None => Ok(()),
        }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Best effort: the failure to report is the first one.
            let _ = fs::remove_file(temporary);
        }
    }
}

/// What writes a file of a folder.
pub type Content<'a> = Box<dyn Fn(&mut dyn Write) -> io::Result<()> + 'a>;

/// Writes a folder of files, all or none, in place of any that is there; whether it may be is for
/// `writing` to say.
pub fn write_folder(folder: &Path, files: &[(&str, Content<'_>)]) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::writing(folder, &error);
    let place = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf());
    let staged = beside(&place);
    let all = || -> io::Result<()> {
        fs::create_dir(&staged)?;
        for (name, content) in files {
            let mut out = io::BufWriter::new(File::create(staged.join(name))?);
            content(&mut out)?;
            out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        }
        match place.is_dir() {
            true => exchange_folders(&staged, &place),
            false => fs::rename(&staged, &place),
        }
    };
    let done = all();
    // What was written half-way, or what was replaced. Best effort: the failure to report is the
    // first one.
    let _ = fs::remove_dir_all(&staged);
    done.map_err(failed)
}

/// `.out.topo.4711.part` for `out.topo`: hidden, in the same folder so that renaming cannot fail
/// for being on another disk, and unlike that of a second clearlane.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}
