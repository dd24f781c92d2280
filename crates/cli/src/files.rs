//! Files in and out. What is written is whole or not there: it is written under a temporary name
//! beside its place and renamed.

use crate::failure::Failure;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The most a file may hold: a fabric of 49,151 LIDs takes some 20 MB, its tables 1 GB.
const FILE_BYTES_MAX: u64 = 2 << 30;

/// Reads a text file.
pub fn read(path: &Path) -> Result<String, Failure> {
    let failed = |error: io::Error| Failure::reading(path, &error);
    let file = File::open(path).map_err(failed)?;
    let mut text = String::new();
    let taken = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
    if taken as u64 > FILE_BYTES_MAX {
        let line = format!("cannot read {}: it is larger than 2 GiB", path.display());
        return Err(Failure::Input(line));
    }
    Ok(text)
}

/// Writes a file in place of any that is there. Something that is no regular file, such as
/// `/dev/null`, is written to directly.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::writing(path, &error);
    // A link is followed, so that the file it points to is replaced and not the link.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    if let Ok(there) = fs::metadata(&place)
        && !there.is_file()
    {
        if there.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        return File::options()
            .write(true)
            .open(&place)
            .and_then(|mut f| f.write_all(bytes))
            .map_err(failed);
    }
    let temporary = beside(&place);
    let whole = File::create(&temporary)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&temporary, &place));
    whole.map_err(|error| {
        // Best effort: the failure to report is the first one.
        let _ = fs::remove_file(&temporary);
        failed(error)
    })
}

/// Writes a folder of files, all or none. An existing folder is replaced if it is empty or holds
/// nothing but files of these names; anything else is refused.
pub fn write_folder(folder: &Path, files: &[(&str, Vec<u8>)]) -> Result<(), Failure> {
    check_folder(folder, files)?;
    let failed = |error: io::Error| Failure::writing(folder, &error);
    let place = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf());
    let (staged, old) = (beside(&place), beside(&place).with_extension("old"));
    let all = || -> io::Result<()> {
        fs::create_dir(&staged)?;
        for (name, bytes) in files {
            let mut file = File::create(staged.join(name))?;
            file.write_all(bytes)?;
            file.sync_all()?;
        }
        if place.is_dir() {
            fs::rename(&place, &old)?;
        }
        fs::rename(&staged, &place)
    };
    let done = all();
    if done.is_err() {
        // Best effort: the failure to report is the first one.
        let _ = fs::remove_dir_all(&staged);
        if !place.exists() {
            let _ = fs::rename(&old, &place);
        }
    }
    let _ = fs::remove_dir_all(&old);
    done.map_err(failed)
}

fn check_folder(folder: &Path, files: &[(&str, Vec<u8>)]) -> Result<(), Failure> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Failure::writing(folder, &error)),
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if !files.iter().any(|(ours, _)| name == *ours) {
            return Err(Failure::Input(format!(
                "folder {} holds {}, which is not written here; name another folder with -o",
                folder.display(),
                Path::new(&name).display()
            )));
        }
    }
    Ok(())
}

/// `.out.topo.4711.part` for `out.topo`: hidden, in the same folder so that renaming cannot fail
/// for being on another disk, and unlike that of a second clearlane.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}
