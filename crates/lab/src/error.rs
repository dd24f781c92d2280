//! What can go wrong between an experiment file and its report, each in one line.

use clearlane_ib::Picoseconds;
use clearlane_sim::SetupError;
use std::io;
use std::path::{Path, PathBuf};

/// Why an experiment could not be read, run or written down.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A file is missing or unreadable.
    #[error("{}: {}; {}", named(path), plain(source), read_remedy(source))]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The experiment file says something that cannot be.
    #[error("{file}:{line}: {problem}")]
    Experiment {
        /// The file as it was named.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Key, value, range and remedy.
        problem: String,
    },
    /// A request that does not fit the experiment.
    #[error("{0}")]
    Request(String),
    /// A file the experiment names, or what it asks to do with it, is wrong.
    #[error("variant {variant}: {problem}")]
    Variant {
        /// Name of the variant.
        variant: String,
        /// What is wrong, with place and remedy.
        problem: String,
    },
    /// The machine refused to write.
    #[error("{}: {}; {}", named(path), plain(source), write_remedy(source))]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A saved run that cannot be resumed.
    #[error("{}: {problem}", named(path))]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong with it and what to do.
        problem: String,
    },
    /// A limit of memory is nearly reached while a run is under way.
    #[error(
        "variant {variant}: {what} is nearly full, and {waiting} messages wait at {at} of \
         simulated time: where more is offered than delivered, lower load or duration; else run \
         fewer at a time with --jobs, or allow more"
    )]
    Memory {
        /// Name of the variant.
        variant: String,
        /// What is nearly full.
        what: String,
        /// Messages posted and not delivered.
        waiting: u64,
        /// When.
        at: Picoseconds,
    },
    /// A limit of memory is nearly reached before anything was run.
    #[error(
        "variant {variant}: {what} is nearly full before anything is run; take a smaller fabric, \
         or allow more"
    )]
    MemorySetUp {
        /// Name of the variant.
        variant: String,
        /// What is nearly full.
        what: String,
    },
    /// Stopped before there was anything to hand over.
    #[error("variant {variant}: interrupted before any run was finished; no results are written")]
    Interrupted {
        /// The first variant that has no result.
        variant: String,
    },
    /// Queues that are there from the start are more than memory holds.
    #[error(
        "variant {variant}: input_queueing = \"voq\" takes {needed_mib} MiB a run (ports × lanes × \
         outputs), and {free_mib} MiB are free for each; run fewer at a time with --jobs, take a \
         smaller fabric or input_queueing = \"fifo\""
    )]
    Queues {
        /// Name of the variant.
        variant: String,
        /// What they take, MiB.
        needed_mib: u64,
        /// What a run may take, MiB.
        free_mib: u64,
    },
    /// The system starts no more threads.
    #[error("variant {variant}: {}", SetupError::Threads { threads: *threads })]
    Threads {
        /// Name of the variant.
        variant: String,
        /// How many were asked for.
        threads: usize,
    },
    /// The folder for the results is taken.
    #[error("{}: {problem}", named(path))]
    Taken {
        /// The folder.
        path: PathBuf,
        /// What is in it and what to do.
        problem: &'static str,
    },
}

/// A path in a sentence; an empty one in quotes, for nothing else would be seen.
pub fn named(path: &Path) -> String {
    match path.as_os_str().is_empty() {
        true => "\"\"".into(),
        false => path.display().to_string(),
    }
}

/// The remedy for a file that could not be read.
pub fn read_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "ask its owner to allow it with chmod",
        io::ErrorKind::UnexpectedEof => "copy the file again",
        _ => "check the path",
    }
}

/// The remedy for a file that could not be written.
fn write_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::FileTooLarge => "allow larger ones",
        _ => "choose another folder",
    }
}

/// What the system said in plain words, without a capital or an error number.
pub fn plain(error: &io::Error) -> String {
    use io::ErrorKind as Kind;
    let words = match error.kind() {
        Kind::NotFound => "no such file or folder",
        Kind::PermissionDenied => "permission denied",
        Kind::IsADirectory => "is a folder",
        Kind::NotADirectory => "a file stands where a folder should be",
        Kind::AlreadyExists => "is there already",
        Kind::FileTooLarge => "the file is larger than allowed (ulimit -f)",
        Kind::StorageFull => "the disk is full",
        Kind::QuotaExceeded => "the quota of the disk is used up",
        Kind::ReadOnlyFilesystem => "the disk is read-only",
        Kind::InvalidFilename => "cannot be a name here",
        Kind::InvalidData => "is not a text in UTF-8",
        Kind::UnexpectedEof => "ends too early",
        // The words of the system begin with a capital, ours are as they should be.
        _ if error.raw_os_error().is_none() => return error.to_string(),
        _ => {
            let text = error.to_string().to_lowercase();
            return text.split(" (os error").next().unwrap_or_default().to_owned();
        }
    };
    words.to_owned()
}

impl LabError {
    /// True if the machine is at fault (disk full, folder not writable) and not the input.
    pub fn is_machine(&self) -> bool {
        use LabError::{Memory, MemorySetUp, Queues, Threads, Write};
        let is_memory = matches!(self, Memory { .. } | MemorySetUp { .. } | Queues { .. });
        is_memory || matches!(self, Write { .. } | Threads { .. })
    }

    /// One line whatever a file, a name or a library put into the message.
    pub(crate) fn one_line(text: &str) -> String {
        text.split(['\n', '\r'])
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("; ")
    }

    /// The same for the errors of files that name their place themselves.
    pub(crate) fn variant(variant: &str, problem: impl ToString) -> Self {
        let problem = Self::one_line(&problem.to_string());
        LabError::Variant { variant: variant.to_owned(), problem }
    }
}
