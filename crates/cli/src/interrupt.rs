//! Ctrl-C: a command that can stop in good order looks at a flag; any other ends at once. Both end
//! with code 4.

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
    install(handler)?;
    Ok(raised)
}

/// Lets Ctrl-C end a command that has nothing to hand over.
pub fn end_at_once() -> Result<(), Failure> {
    install(end)
}

fn install(handler: impl FnMut() + Send + 'static) -> Result<(), Failure> {
    ctrlc::set_handler(handler).map_err(|e| Failure::Machine(format!("cannot catch ^C: {e}")))
}

#[expect(
    clippy::exit,
    clippy::disallowed_methods,
    reason = "nobody is waited for; files are whole or not there"
)]
fn end() {
    std::process::exit(4);
}
