//! The one place that writes to stdout and stderr. Nothing that came from a file or an argument
//! acts on a terminal: escapes and what reorders a line are spelt out.

use crate::failure::Failure;
use clearlane_ib::visible_lines;
use std::io::{self, IsTerminal, Write};

/// Writes a result to stdout. A reader that has heard enough (`| head`) is no failure.
pub fn print(text: &str) -> Result<(), Failure> {
    write_out(&visible_lines(text))
}

/// Writes the content of a file to stdout: to the last byte, unless that is a terminal.
pub fn print_file(text: &str) -> Result<(), Failure> {
    match io::stdout().is_terminal() {
        true => print(text),
        false => write_out(text),
    }
}

fn write_out(text: &str) -> Result<(), Failure> {
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
    let _ = writeln!(io::stderr().lock(), "{}", visible_lines(line));
}

/// Writes the last line of the process to stderr. Other threads that have something to say from
/// here on wait for the end.
pub fn last_remark(line: &str) {
    let mut stderr = io::stderr().lock();
    let _ = writeln!(stderr, "{}", visible_lines(line));
    std::mem::forget(stderr);
}

/// Whether a person watches stderr.
pub fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Cores this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
