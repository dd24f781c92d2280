//! Aborts. The C library aborts where it is refused memory as a thread begins, and so do other
//! libraries. The keeper tells the user then, and nothing half-written stays.

use crate::exit_codes::REFUSED;
use signal_hook::consts::SIGABRT;
use signal_hook::low_level;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Whether the process has been aborted. It is a global, because a handler of signals is handed
/// nothing.
static ABORTED: AtomicBool = AtomicBool::new(false);

/// Longest wait of a thread that aborts. It ends the process itself then, without a line.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether the process has been aborted, by itself or from outside.
pub fn are_seen() -> bool {
    ABORTED.load(Ordering::SeqCst)
}

/// Catches aborts from here on. Fails if the system refuses.
#[expect(clippy::disallowed_methods, reason = "a handler of signals may not park")]
pub fn catch() -> io::Result<()> {
    let wait = || {
        ABORTED.store(true, Ordering::SeqCst);
        thread::sleep(PATIENCE);
        low_level::exit(REFUSED.into());
    };
    // SAFETY: the handler stores a flag, sleeps and ends the process. It takes no memory and no
    // lock.
    unsafe { low_level::register(SIGABRT, wait) }.map(|_| ())
}
