//! Ctrl-C: a command that can stop in good order looks at a flag; any other ends with code 4.

use crate::failure::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Installs the handler and hands out the flag it raises at the first Ctrl-C (or SIGTERM); the
/// second one ends the program at once.
pub fn watch() -> Result<Arc<AtomicBool>, Failure> {
    let raised = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&raised);
    let handler = move || {
        if flag.swap(true, Ordering::SeqCst) {
            end();
        }
    };
    ctrlc::set_handler(handler).map_err(|e| Failure::Machine(format!("cannot catch ^C: {e}")))?;
    Ok(raised)
}

#[expect(
    clippy::exit,
    clippy::disallowed_methods,
    reason = "the second Ctrl-C must not wait for anybody; files are whole or not there"
)]
fn end() {
    std::process::exit(4);
}
