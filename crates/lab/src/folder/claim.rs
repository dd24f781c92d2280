//! A folder claimed for results: as long as one process writes there, another is told so.

use super::refused;
use crate::LabError;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

const WRITTEN_TO: &str = "another clearlane is writing there; wait for it or choose another folder";

/// The folder is there and nobody else's. Dropped, it is free again, and gone if it was made for
/// the claim and nothing was put into it.
#[derive(Debug)]
pub(crate) struct Claim {
    path: PathBuf,
    made: bool,
    /// Holds the lock; the system gives it back however the process ends.
    _lock: File,
}

impl Claim {
    /// Makes the folder if need be and locks it. Fails if another process holds it.
    pub(crate) fn of(out: &Path) -> Result<Self, LabError> {
        let taken = |problem| Err(LabError::Taken { path: out.to_owned(), problem });
        let made = match (fs::metadata(out), fs::symlink_metadata(out)) {
            (Ok(there), _) if !there.is_dir() => return taken("is a file; choose another folder"),
            (Ok(_), _) => false,
            (Err(_), Ok(_)) => {
                return taken(
                    "is a link to a folder that does not exist; repair it or choose \
                              another folder",
                );
            }
            (Err(_), Err(_)) => true,
        };
        fs::create_dir_all(out).map_err(|source| refused(out, source))?;
        // Where folders cannot be locked (some network disks), nothing is lost but the warning.
        let lock = File::open(out).map_err(|source| refused(out, source))?;
        if let Err(TryLockError::WouldBlock) = lock.try_lock() {
            return taken(WRITTEN_TO);
        }
        Ok(Claim { path: out.to_owned(), made, _lock: lock })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.made {
            // Fails, as it should, once results are in it.
            let _ = fs::remove_dir(&self.path);
        }
    }
}
