//! Aborts. The C library aborts where it is refused memory as a thread begins, and other libraries
//! do alike. The keeper tells the user then, and nothing half-written stays.

use crate::exit_codes::REFUSED;
use signal_hook::consts::SIGABRT;
use signal_hook::low_level;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Whether a thread has aborted. It is a global, because a handler of signals is handed nothing.
static ABORTED: AtomicBool = AtomicBool::new(false);

/// A thread that aborts waits so often, and each time so long, for the keeper to end the process.
const WAITS: usize = 50;
const WAITED: Duration = Duration::from_millis(100);

/// Whether a thread has aborted.
pub fn are_seen() -> bool {
    ABORTED.load(Ordering::SeqCst)
}

/// Catches aborts from here on. Fails if the system refuses.
#[expect(clippy::disallowed_methods, reason = "a handler of signals may not park")]
pub fn catch() -> io::Result<()> {
    let wait = || {
        ABORTED.store(true, Ordering::SeqCst);
        (0..WAITS).for_each(|_| thread::sleep(WAITED));
        low_level::exit(REFUSED.into());
    };
    // SAFETY: the handler stores a flag, sleeps and ends the process. It takes no memory and no
    // lock.
    unsafe { low_level::register(SIGABRT, wait) }.map(|_| ())
}
