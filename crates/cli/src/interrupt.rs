//! Signals. Ctrl-C, SIGTERM and SIGHUP are answered at once with a line: a command that can stop in
//! good order is asked to, any other ends; a second one ends any. What is stopped ends with code 4;
//! results that are complete by then are complete results.

use crate::failure::Failure;
use crate::terminal;
use signal_hook::consts::{SIGABRT, SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

const INTERRUPTED: i32 = 4;
const REFUSED: i32 = 5;

/// What an interruption does.
#[derive(Default)]
pub struct Interrupts {
    good_order: Arc<Mutex<Option<GoodOrder>>>,
}

/// How a command stops in good order.
struct GoodOrder {
    halt: Arc<AtomicBool>,
    asked: AtomicBool,
    /// Where the results go.
    out: PathBuf,
    /// Whether that folder was made for them.
    made: bool,
    /// What happens.
    kind: Kind,
}

/// What an interruption of a command in good order is like.
enum Kind {
    /// What is finished is kept.
    Keeps,
    /// Nothing is said.
    Silent,
    /// Something has to be taken away first, which no second signal spares.
    Clears(&'static str),
}

impl Interrupts {
    /// From here on, signals are caught.
    pub fn caught() -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::Machine(format!("cannot catch signals: {error}"));
        // Memory that is refused aborts: what was said of it stands, and the code is ours.
        let always = Arc::new(AtomicBool::new(true));
        flag::register_conditional_shutdown(SIGABRT, REFUSED, always).map_err(failed)?;
        // Caught, a file that is too large is an error of the write like a full disk.
        flag::register(SIGXFSZ, Arc::default()).map_err(failed)?;
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(failed)?;
        let interrupts = Interrupts::default();
        let good_order = Arc::clone(&interrupts.good_order);
        std::thread::spawn(move || {
            for _ in signals.forever() {
                answer(good_order.lock().unwrap_or_else(PoisonError::into_inner).as_ref());
            }
        });
        Ok(interrupts)
    }

    /// From here on, the first signal raises the flag that is handed out. What is finished then
    /// goes into `out`; `made` says that this folder was not there before.
    pub fn stop_in_good_order(&self, out: &Path, made: bool) -> Arc<AtomicBool> {
        self.stop(out.to_owned(), made, Kind::Keeps)
    }

    /// The same of a process that writes nothing: that which writes says what happens.
    pub fn stop_silently(&self) -> Arc<AtomicBool> {
        self.stop(PathBuf::new(), false, Kind::Silent)
    }

    /// The same of a process that has something to take away first, which is said: it ends when
    /// that is done, however often it is interrupted.
    pub fn stop_and_clear(&self, what: &'static str) -> Arc<AtomicBool> {
        self.stop(PathBuf::new(), false, Kind::Clears(what))
    }

    fn stop(&self, out: PathBuf, made: bool, kind: Kind) -> Arc<AtomicBool> {
        let halt = Arc::new(AtomicBool::new(false));
        let asked = AtomicBool::new(false);
        let order = GoodOrder { halt: Arc::clone(&halt), asked, out, made, kind };
        *self.good_order.lock().unwrap_or_else(PoisonError::into_inner) = Some(order);
        halt
    }
}

/// Says what happens, and does it.
fn answer(order: Option<&GoodOrder>) {
    // A bar, or what the terminal echoes of ^C, stands in the line.
    let lead = if terminal::is_watched() { "\n" } else { "" };
    let Some(order) = order else {
        terminal::remark(&format!("{lead}clearlane: interrupted"));
        return end();
    };
    match order.kind {
        Kind::Keeps => {}
        Kind::Silent => {
            match order.asked.swap(true, Ordering::SeqCst) {
                false => order.halt.store(true, Ordering::SeqCst),
                true => end(),
            }
            return;
        }
        Kind::Clears(what) => {
            order.halt.store(true, Ordering::SeqCst);
            terminal::remark(&format!("{lead}clearlane: interrupted; {what}"));
            return;
        }
    }
    let out = order.out.display();
    if !order.asked.swap(true, Ordering::SeqCst) {
        order.halt.store(true, Ordering::SeqCst);
        terminal::remark(&format!(
            "{lead}clearlane: interrupted; what is finished goes into {out}, marked partial if \
             anything is missing; interrupt again to end at once"
        ));
        return;
    }
    terminal::remark(&format!("{lead}clearlane: interrupted again; {out} is left as it is"));
    if order.made {
        // Fails, as it should, once results are in it.
        let _ = fs::remove_dir(&order.out);
    }
    end();
}

#[expect(
    clippy::exit,
    clippy::disallowed_methods,
    reason = "nobody is waited for; files are whole or not there"
)]
fn end() {
    std::process::exit(INTERRUPTED);
}
