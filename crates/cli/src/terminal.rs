//! The one place that writes to stdout and stderr.

use crate::failure::Failure;
use std::io::{self, IsTerminal, Write};

/// Writes a result to stdout. A reader that has heard enough (`| head`) is no failure.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::writing("stdout".as_ref(), &error))
        }
        _ => Ok(()),
    }
}

/// Writes a line to stderr. That nobody listens there is nothing to act on.
pub fn remark(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Whether a person watches stderr.
pub fn is_watched() -> bool {
    io::stderr().is_terminal()
}
