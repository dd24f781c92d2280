//! Why a command gives no answer, and the exit code that says so.

use crate::exit_codes;
use crate::terminal;
use clearlane_ib::{visible, within};
use clearlane_lab::{LabError, Unfinished, named, plain, read_remedy};
use signal_hook::low_level;
use std::fmt::Display;
use std::io;
use std::path::Path;

/// The most characters of a message. What it repeats is short already; this is for file names and
/// for what libraries say.
const LINE_CHARS_MAX: usize = 2000;

/// Beginnings of the panics of the standard library where a thread cannot be started.
const NO_THREAD: [&str; 3] = [
    "failed to spawn thread",
    "failed to allocate an alternative stack",
    "failed to set up alternative stack",
];

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The command line, a file or a value is wrong.
    #[error("{0}")]
    Input(String),
    /// The machine refused: disk full, output not writable.
    #[error("{0}")]
    Machine(String),
    /// It was stopped before there was anything to hand over.
    #[error("{0}")]
    Interrupted(String),
    /// A fault of this program.
    #[error("{0}; this is a fault of clearlane, report it")]
    Internal(String),
}

impl Failure {
    /// Wrong input, told by an error of the libraries.
    pub fn input(error: impl Display) -> Self {
        Failure::Input(error.to_string())
    }

    /// What `lab` has to say: it was stopped, the machine refused, or the input is wrong.
    pub fn lab(error: LabError) -> Self {
        match &error {
            LabError::Interrupted { .. } => Failure::Interrupted(error.to_string()),
            machine if machine.is_machine() => Failure::Machine(error.to_string()),
            _ => Failure::Input(error.to_string()),
        }
    }

    /// `cannot read site.topo: no such file or folder; check the path`; wrong input.
    pub fn reading(path: &Path, error: &io::Error) -> Self {
        let remedy = match error.kind() {
            io::ErrorKind::IsADirectory => "name a file",
            io::ErrorKind::InvalidData => "give the tool's text output",
            _ => read_remedy(error),
        };
        Failure::Input(format!("cannot read {}: {}; {remedy}", named(path), plain(error)))
    }

    /// `cannot write out.topo: the disk is full; free some space`; the machine refused.
    pub fn writing(path: &Path, error: &io::Error) -> Self {
        let remedy = match error.kind() {
            io::ErrorKind::IsADirectory => "name a file",
            io::ErrorKind::PermissionDenied => "name another place, or ask its owner",
            io::ErrorKind::StorageFull => "free some space",
            io::ErrorKind::FileTooLarge => "allow larger ones",
            io::ErrorKind::NotFound => "make the folder, or name another place",
            _ => "name another place",
        };
        Failure::Machine(format!("cannot write {}: {}; {remedy}", named(path), plain(error)))
    }

    /// The system starts no thread.
    pub fn no_thread() -> Self {
        Failure::Machine("a thread cannot be started; allow more (ulimit -u and -v)".into())
    }

    /// The exit code of ARCHITECTURE.md.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Input(_) => 2,
            Failure::Interrupted(_) => exit_codes::INTERRUPTED,
            Failure::Machine(_) | Failure::Internal(_) => exit_codes::REFUSED,
        }
    }

    /// The message on one line that is not endless, whatever a file name or an error of a library
    /// holds.
    pub fn line(&self) -> String {
        let text = self.to_string();
        let lines = text.split(['\n', '\r', '\t']).filter(|part| !part.is_empty());
        let line = lines.collect::<Vec<_>>().join(" ");
        within(&visible(&within(&line, LINE_CHARS_MAX)), LINE_CHARS_MAX).into_owned()
    }
}

/// Tells every panic from here on like any failure. A panic is a fault of this program, or of a
/// machine that starts no thread. The process then ends with the code of a failure, and nothing
/// unfinished stays.
pub fn told_in_one_line(unfinished: &Unfinished) {
    let unfinished = unfinished.clone();
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.payload().downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.payload().downcast_ref::<&str>().copied());
        let what = text.unwrap_or("a panic").to_owned();
        let place = panic.location().map(|place| format!(" ({}:{})", place.file(), place.line()));
        let fault = match NO_THREAD.iter().any(|begin| what.starts_with(begin)) {
            true => Failure::no_thread(),
            false => Failure::Internal(what + &place.unwrap_or_default()),
        };
        terminal::last_remark(&format!("clearlane: {}", fault.line()));
        unfinished.take_away();
        low_level::exit(fault.code().into());
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_line_whatever_it_says() {
        let failure = Failure::Input("a\nb\r\n\tc\u{1b}[31m".into());
        assert_eq!(failure.line(), "a b c\\u001b[31m");
        assert_eq!(failure.code(), 2);
    }

    #[test]
    fn a_failure_has_a_beginning_and_an_end_however_long_it_is() {
        for long in ["x", "\u{1b}", "→ "] {
            let failure = Failure::Input(format!("a {} z", long.repeat(1 << 20)));
            let line = failure.line();
            assert_eq!(line.chars().count(), LINE_CHARS_MAX);
            assert!(line.starts_with("a ") && line.ends_with(" z") && line.contains('…'));
        }
    }

    #[test]
    fn the_systems_words_come_with_a_remedy() {
        let error = io::Error::from_raw_os_error(28);
        let failure = Failure::writing(Path::new("x"), &error);
        assert_eq!(failure.line(), "cannot write x: the disk is full; free some space");
        assert_eq!(failure.code(), 5);
        let error = io::Error::from_raw_os_error(2);
        assert_eq!(
            Failure::reading(Path::new("x"), &error).line(),
            "cannot read x: no such file or folder; check the path"
        );
    }
}
