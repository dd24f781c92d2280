//! A folder claimed for results: as long as one process writes there, another is told so.

use super::{Unfinished, refused};
use crate::LabError;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

const WRITTEN_TO: &str = "another clearlane is writing there; wait for it or choose another folder";

/// The folder is there and nobody else's. Dropped, it is free again; what was made for the claim
/// and is still empty is gone, folders above it included.
#[derive(Debug)]
pub(crate) struct Claim {
    /// Folders that were not there, the deepest first.
    made: Vec<PathBuf>,
    unfinished: Unfinished,
    /// Holds the lock; the system gives it back however the process ends.
    _lock: File,
}

impl Claim {
    /// Makes the folder if need be and locks it. Fails if another process holds it.
    pub(crate) fn of(out: &Path, unfinished: &Unfinished) -> Result<Self, LabError> {
        let taken = |problem| Err(LabError::Taken { path: out.to_owned(), problem });
        match (fs::metadata(out), fs::symlink_metadata(out)) {
            (Ok(there), _) if !there.is_dir() => return taken("is a file; choose another folder"),
            (Ok(_), _) => {}
            (Err(_), Ok(_)) => {
                return taken(
                    "is a link to a folder that does not exist; repair it or choose \
                              another folder",
                );
            }
            (Err(_), Err(_)) => {}
        }
        let missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
        let made: Vec<PathBuf> = out.ancestors().take_while(missing).map(Path::to_owned).collect();
        let opened = unfinished.make(out, &made).and_then(|()| File::open(out));
        let lock = opened.map_err(|source| {
            // Some of them may be there.
            unfinished.unmake(&made);
            refused(out, source)
        })?;
        // Where folders cannot be locked (some network disks), nothing is lost but the warning.
        if let Err(TryLockError::WouldBlock) = lock.try_lock() {
            return taken(WRITTEN_TO);
        }
        Ok(Claim { made, unfinished: unfinished.clone(), _lock: lock })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.unfinished.unmake(&self.made);
    }
}
