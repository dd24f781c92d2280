//! The files of traces that programs do again.

use crate::{LabError, text};
use clearlane_workload::TraceFile;
use std::path::{Path, PathBuf};

/// Most bytes of a file of a trace.
const TRACE_BYTES_MAX: u64 = 4 << 30;
/// Most files of a trace that has one a rank.
const FILES_MAX: u32 = 1 << 20;

/// The files of a trace: its one, or those of ranks 0, 1 and so on as far as there are any.
pub(super) fn files(file: &TraceFile) -> Vec<PathBuf> {
    if file.path_of(0).is_none() {
        return vec![PathBuf::from(&file.path)];
    }
    let of = |rank| file.path_of(rank).map(PathBuf::from);
    let mut paths: Vec<PathBuf> =
        (0..FILES_MAX).map_while(of).take_while(|path| path.is_file()).collect();
    if paths.is_empty() {
        // Whoever reads it says that it is not there.
        paths.extend(of(0));
    }
    paths
}

/// Reads a trace. Fails if a file is not there or is none of a trace.
pub(crate) fn read(file: &mut TraceFile) -> Result<(), LabError> {
    let paths = files(file);
    let bytes = paths.iter().map(|path| text::read_bytes(path, TRACE_BYTES_MAX));
    let bytes: Vec<Vec<u8>> = bytes.collect::<Result<_, _>>()?;
    let filled = match (file.path_of(0), bytes.as_slice()) {
        (None, [one]) => file.fill(one),
        _ => {
            let names: Vec<String> = paths.iter().map(|path| name(path)).collect();
            let named = names.iter().map(String::as_str);
            let files: Vec<(&str, &[u8])> = named.zip(bytes.iter().map(Vec::as_slice)).collect();
            file.fill_ranks(&files)
        }
    };
    filled.map_err(|error| LabError::Request(LabError::one_line(&error.to_string())))
}

fn name(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
