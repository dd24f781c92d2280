//! The one place that writes to stdout and stderr. Nothing that came from a file or an argument
//! acts on a terminal: escapes and what reorders a line are spelt out.

use crate::failure::Failure;
use clearlane_ib::visible_lines;
use std::io::{self, IsTerminal, StderrLock, Write};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

/// Longest wait for somebody to take a line that must not be waited for.
const HEARD_WITHIN: Duration = Duration::from_millis(200);
/// Stack of the thread that writes it, in bytes. Memory may be short.
const SPEAKER_STACK: usize = 64 << 10;

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

/// Writes a line to stderr, as [`remark`] does. If nobody takes it, the caller does not wait: a
/// pipe may be full, and another thread may hang on it.
pub fn answer(line: &str) {
    soon(line, drop);
}

/// Writes the last line of the process to stderr, and does not wait if nobody takes it. Other
/// threads that have something to say from here on wait for the end.
pub fn last_remark(line: &str) {
    soon(line, std::mem::forget);
}

/// Writes a line to stderr. Waits for `HEARD_WITHIN` at most. Hands the lock to `then`.
fn soon(line: &str, then: fn(StderrLock<'static>)) {
    let line = Arc::new(visible_lines(line).into_owned());
    let say = move |line: &str| {
        let mut stderr = io::stderr().lock();
        let _ = writeln!(stderr, "{line}");
        then(stderr);
    };
    let (tells, told) = sync_channel(1);
    let own = Arc::clone(&line);
    let speaks = move || {
        say(&own);
        let _ = tells.send(());
    };
    match thread::Builder::new().stack_size(SPEAKER_STACK).spawn(speaks) {
        Ok(_) => drop(told.recv_timeout(HEARD_WITHIN)),
        Err(_) => say(&line),
    }
}

/// Whether a person watches stderr.
pub fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Cores this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
