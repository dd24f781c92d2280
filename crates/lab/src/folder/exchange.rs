//! A folder in place of another, in one step.

use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs;
use std::io;
use std::path::Path;

/// Puts the folder `new` in the place of the folder `place`, which then is where `new` was: whoever
/// looks at any time finds the one or the other. Where the disk cannot exchange two folders (some
/// network disks), `place` is missing for an instant, and what was there lies beside it.
pub fn exchange_folders(new: &Path, place: &Path) -> io::Result<()> {
    if renameat_with(CWD, new, CWD, place, RenameFlags::EXCHANGE).is_ok() {
        return Ok(());
    }
    let mut name = new.file_name().unwrap_or_default().to_owned();
    name.push(".old");
    let old = new.with_file_name(name);
    fs::rename(place, &old)?;
    match fs::rename(new, place) {
        Ok(()) => fs::rename(&old, new),
        Err(error) => {
            // Best effort: the failure to report is the first one.
            let _ = fs::rename(&old, place);
            Err(error)
        }
    }
}
