//! The files of `clearlane route` that the routing engine takes, read from their folder.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// The forwarding tables.
pub const TABLES: &str = "lfts.txt";
/// SL2VL; without it SL s is on VL s mod the lanes.
pub const LANES: &str = "sl2vl.dump";
/// SLs of paths by groups of hosts; without it all paths have one SL.
pub const GROUPS: &str = "path-groups.txt";

/// Most bytes of a file: eight times the tables of the largest subnet that anybody has shown us.
const BYTES_MAX: u64 = 2 << 30;

/// The texts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Files {
    /// [`TABLES`].
    pub tables: String,
    /// [`LANES`], if it is there.
    pub lanes: Option<String>,
    /// [`GROUPS`], if it is there.
    pub groups: Option<String>,
}

/// Reads the folder. What is wrong is said in one line: file, cause and remedy.
pub fn read(folder: &Path) -> Result<Files, String> {
    let needed = text(folder, TABLES)?.ok_or_else(|| {
        format!("{}: there is no such file; write it with clearlane route", path(folder, TABLES))
    })?;
    Ok(Files { tables: needed, lanes: text(folder, LANES)?, groups: text(folder, GROUPS)? })
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string().escape_debug().to_string()
}

/// A file's text; nothing if there is no such file.
fn text(folder: &Path, name: &str) -> Result<Option<String>, String> {
    let error = |what: &dyn std::fmt::Display, remedy: &str| {
        Err(format!("{}: {what}; {remedy}", path(folder, name)))
    };
    let file = folder.join(name);
    let about = match fs::metadata(&file) {
        Ok(about) => about,
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return error(&cause, "let OpenSM read it"),
    };
    // Opening a pipe would wait for whoever writes into it.
    if !about.is_file() {
        return error(&"not a file", "put the file itself there");
    }
    if about.len() > BYTES_MAX {
        return error(&format!("{} bytes", about.len()), "tables of a subnet are smaller");
    }
    let mut bytes = Vec::new();
    let opened = File::open(&file).and_then(|file| file.take(BYTES_MAX).read_to_end(&mut bytes));
    match (opened, String::from_utf8(bytes)) {
        (Err(cause), _) => error(&cause, "let OpenSM read it"),
        (Ok(_), Err(_)) => error(&"not a text", "write it again with clearlane route"),
        (Ok(_), Ok(text)) => Ok(Some(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_read_and_what_is_odd_is_said() {
        let folder = std::env::temp_dir().join(format!("clearlane-folder-{}", std::process::id()));
        fs::create_dir_all(folder.join(GROUPS)).unwrap();
        let error = read(&folder).unwrap_err();
        assert!(error.contains("lfts.txt: there is no such file"), "{error}");
        fs::write(folder.join(TABLES), "a").unwrap();
        let error = read(&folder).unwrap_err();
        assert!(error.contains("path-groups.txt: not a file"), "{error}");
        fs::remove_dir(folder.join(GROUPS)).unwrap();
        let read_back = read(&folder).unwrap();
        assert_eq!(read_back, Files { tables: "a".into(), lanes: None, groups: None });
        fs::write(folder.join(LANES), [0xff, 0xfe]).unwrap();
        assert!(read(&folder).unwrap_err().contains("sl2vl.dump: not a text"));
        fs::remove_dir_all(folder).unwrap();
    }
}
