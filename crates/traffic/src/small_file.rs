//! Reads small files. A file that decides whom a host trusts is refused if anybody but root and the
//! current user may write it (as sshd's `StrictModes`).

use rustix::fs::{Mode, OFlags};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Mode bit of a folder in which only the owner of a file may remove or rename it.
const STICKY: u32 = 0o1000;

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum SmallFileError {
    /// The system refuses.
    #[error("{}", clearlane_lab::plain(.0))]
    Io(#[from] io::Error),
    /// The file is refused for this reason.
    #[error("{0}")]
    Refused(String),
}

impl SmallFileError {
    /// Whether there is no such file.
    pub fn is_not_there(&self) -> bool {
        matches!(self, SmallFileError::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

/// An open file.
#[derive(Debug)]
pub struct SmallFile {
    path: PathBuf,
    file: File,
    known: Metadata,
}

impl SmallFile {
    /// Opens a regular file of at most `bytes_max`. Refuses a pipe or a device, and does not wait
    /// for it.
    pub fn open(path: &Path, bytes_max: u64) -> Result<Self, SmallFileError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file =
            File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(io::Error::from)?);
        let known = file.metadata()?;
        must_be_regular(&known)?;
        if known.len() > bytes_max {
            let length = known.len();
            let words = format!("has {length} B; {bytes_max} B are read");
            return Err(SmallFileError::Refused(words));
        }
        Ok(SmallFile { path: path.to_owned(), file, known })
    }

    /// Fails if anybody but root and the current user may write it.
    pub fn trusted(self) -> Result<Self, SmallFileError> {
        must_be_own(&self.path, &self.known)?;
        match self.known.mode() & 0o022 {
            0 => Ok(self),
            _ => Err(SmallFileError::Refused(format!(
                "others than its owner may write it; chmod go-w {}",
                self.path.display()
            ))),
        }
    }

    /// Fails if anybody but its owner may read it. For keys.
    pub fn private(self) -> Result<Self, SmallFileError> {
        match self.known.mode() & 0o077 {
            0 => Ok(self),
            _ => Err(SmallFileError::Refused(format!(
                "others than its owner may read this key; chmod go= {}, and make new keys if \
                 somebody may have",
                self.path.display()
            ))),
        }
    }

    /// Its bytes.
    pub fn bytes(self) -> Result<Vec<u8>, SmallFileError> {
        let mut bytes = Vec::new();
        // Bytes that were added meanwhile are read next time.
        self.file.take(self.known.len()).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Its text.
    pub fn text(self) -> Result<String, SmallFileError> {
        String::from_utf8(self.bytes()?).map_err(|_| of_kind(io::ErrorKind::InvalidData))
    }
}

/// Fails for a pipe, a device, a folder.
pub fn must_be_regular(known: &Metadata) -> Result<(), SmallFileError> {
    match known.is_file() {
        true => Ok(()),
        false if known.is_dir() => Err(of_kind(io::ErrorKind::IsADirectory)),
        false => Err(SmallFileError::Refused(
            "is a pipe or a device; put a regular file in its place".into(),
        )),
    }
}

/// Fails if a file belongs to anybody but root and the current user.
pub fn must_be_own(path: &Path, known: &Metadata) -> Result<(), SmallFileError> {
    let (owner, own) = (known.uid(), rustix::process::geteuid().as_raw());
    match owner == own || owner == 0 {
        true => Ok(()),
        false => Err(SmallFileError::Refused(format!(
            "belongs to user {owner}, and this runs as user {own}; chown {own} {}",
            path.display()
        ))),
    }
}

/// Fails if anybody but root and the current user may replace files in a folder.
pub fn must_be_trusted_folder(folder: &Path) -> Result<(), SmallFileError> {
    let known = fs::metadata(folder)?;
    if !known.is_dir() {
        return Err(of_kind(io::ErrorKind::NotADirectory));
    }
    must_be_own(folder, &known)?;
    match known.mode() & 0o022 == 0 || known.mode() & STICKY != 0 {
        true => Ok(()),
        false => Err(SmallFileError::Refused(format!(
            "others than its owner may write into this folder; chmod go-w {}",
            folder.display()
        ))),
    }
}

fn of_kind(kind: io::ErrorKind) -> SmallFileError {
    io::Error::from(kind).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    #[test]
    fn what_is_no_small_file_of_our_own_is_refused_and_not_waited_for() {
        let folder = std::env::temp_dir().join(format!("clearlane-small-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        let allow = |path: &Path, mode| {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        let at = |name: &str| folder.join(name);
        let why = |path: &Path| SmallFile::open(path, 10).unwrap_err().to_string();
        fs::write(at("file"), "0123456789").unwrap();
        assert_eq!(SmallFile::open(&at("file"), 10).unwrap().text().unwrap(), "0123456789");
        assert!(SmallFile::open(&at("none"), 10).unwrap_err().is_not_there());
        fs::write(at("long"), "0123456789a").unwrap();
        assert_eq!(why(&at("long")), "has 11 B; 10 B are read");
        // The pipe has no writer, and gets none.
        assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        for path in [&at("pipe"), Path::new("/dev/zero")] {
            assert_eq!(why(path), "is a pipe or a device; put a regular file in its place");
        }
        assert_eq!(why(&folder), "is a folder");
        let open = || SmallFile::open(&at("file"), 10).unwrap();
        allow(&at("file"), 0o644);
        assert!(open().trusted().is_ok() && open().private().is_err());
        allow(&at("file"), 0o620);
        let error = open().trusted().unwrap_err().to_string();
        assert!(error.starts_with("others than its owner may write it; chmod go-w /"), "{error}");
        allow(&at("file"), 0o600);
        assert!(open().private().is_ok());
        allow(&folder, 0o777);
        let error = must_be_trusted_folder(&folder).unwrap_err().to_string();
        assert!(error.starts_with("others than its owner may write into this folder"), "{error}");
        // As in /tmp, nobody may replace files of others there.
        for mode in [0o1777, 0o755] {
            allow(&folder, mode);
            must_be_trusted_folder(&folder).unwrap();
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
