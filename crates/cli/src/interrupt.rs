//! Signals. Ctrl-C, SIGTERM and SIGHUP are answered at once with a line: a command that can stop in
//! good order is asked to, any other ends; a second one ends any. What is stopped ends with code 4;
//! results that are complete by then are complete results.

use crate::exit_codes::INTERRUPTED;
use crate::failure::Failure;
use crate::terminal;
use clearlane_lab::{Deadline, Unfinished};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Time for making results after an interruption: small ones are whole then, large ones not. With
/// the time for saving a run, `SAVED_WITHIN` of lab's keeper.rs, a signal is answered within 2 s.
const PATIENCE: Duration = Duration::from_millis(750);

/// What an interruption does.
pub struct Interrupts {
    good_order: Arc<Mutex<Option<GoodOrder>>>,
    unfinished: Unfinished,
    deadline: Deadline,
}

/// How a command stops in good order.
struct GoodOrder {
    halt: Arc<AtomicBool>,
    asked: AtomicBool,
    deadline: Deadline,
    /// Where the results go.
    out: PathBuf,
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
    /// Catches signals from here on. Those that end the process take away what is unfinished.
    pub fn caught(unfinished: Unfinished) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::Machine(format!("cannot catch signals: {error}"));
        // Caught, a file that is too large is an error of the write like a full disk.
        flag::register(SIGXFSZ, Arc::default()).map_err(failed)?;
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(failed)?;
        let deadline = Deadline::default();
        let interrupts = Interrupts { good_order: Arc::default(), unfinished, deadline };
        let good_order = Arc::clone(&interrupts.good_order);
        let unfinished = interrupts.unfinished.clone();
        let answering = move || {
            for _ in signals.forever() {
                let order = good_order.lock().unwrap_or_else(PoisonError::into_inner);
                answer(order.as_ref(), &unfinished);
            }
        };
        thread::Builder::new().spawn(answering).map_err(|_| Failure::no_thread())?;
        Ok(interrupts)
    }

    /// List in which commands note what they have not finished.
    pub fn unfinished(&self) -> &Unfinished {
        &self.unfinished
    }

    /// Deadline of the results of a command that stops in good order.
    pub fn deadline(&self) -> &Deadline {
        &self.deadline
    }

    /// Hands out a flag for a command whose results go into `out`. The first signal raises it.
    /// Before [`Deadline::begin`] the first signal ends the process.
    pub fn stop_in_good_order(&self, out: &Path) -> Arc<AtomicBool> {
        self.stop(out.to_owned(), Kind::Keeps)
    }

    /// Stops a process that writes nothing. The process that writes tells the user.
    pub fn stop_silently(&self) -> Arc<AtomicBool> {
        self.stop(PathBuf::new(), Kind::Silent)
    }

    /// Stops a process that has something to take away first, and says so. The process ends when
    /// that is done, however often it is interrupted.
    pub fn stop_and_clear(&self, what: &'static str) -> Arc<AtomicBool> {
        self.stop(PathBuf::new(), Kind::Clears(what))
    }

    fn stop(&self, out: PathBuf, kind: Kind) -> Arc<AtomicBool> {
        let halt = Arc::new(AtomicBool::new(false));
        let asked = AtomicBool::new(false);
        let deadline = self.deadline.clone();
        let order = GoodOrder { halt: Arc::clone(&halt), asked, deadline, out, kind };
        *self.good_order.lock().unwrap_or_else(PoisonError::into_inner) = Some(order);
        halt
    }
}

/// Says what happens, and does it.
fn answer(order: Option<&GoodOrder>, unfinished: &Unfinished) {
    // A bar, or what the terminal echoes of ^C, stands in the line.
    let lead = if terminal::is_watched() { "\n" } else { "" };
    let Some(order) = order else {
        terminal::last_remark(&format!("{lead}clearlane: interrupted"));
        return end(unfinished);
    };
    match order.kind {
        Kind::Keeps => {}
        Kind::Silent => {
            match order.asked.swap(true, Ordering::SeqCst) {
                false => order.halt.store(true, Ordering::SeqCst),
                true => end(unfinished),
            }
            return;
        }
        Kind::Clears(what) => {
            order.halt.store(true, Ordering::SeqCst);
            terminal::answer(&format!("{lead}clearlane: interrupted; {what}"));
            return;
        }
    }
    // Before anything has begun there is nothing to wait for.
    if !order.deadline.has_begun() {
        let what = "interrupted before anything was run; nothing is written";
        terminal::last_remark(&format!("{lead}clearlane: {what}"));
        return end(unfinished);
    }
    let out = order.out.display();
    if !order.asked.swap(true, Ordering::SeqCst) {
        order.halt.store(true, Ordering::SeqCst);
        let deadline = order.deadline.clone();
        let pass = move || {
            thread::park_timeout(PATIENCE);
            deadline.pass();
        };
        if thread::Builder::new().spawn(pass).is_err() {
            order.deadline.pass();
        }
        terminal::answer(&format!(
            "{lead}clearlane: interrupted; what is finished goes into {out}, marked partial if \
             anything is missing; interrupt again to end at once"
        ));
        return;
    }
    terminal::last_remark(&format!("{lead}clearlane: interrupted again; {out} is left as it is"));
    end(unfinished);
}

#[expect(
    clippy::exit,
    clippy::disallowed_methods,
    reason = "nobody is waited for; files are whole or not there"
)]
fn end(unfinished: &Unfinished) {
    unfinished.take_away();
    std::process::exit(INTERRUPTED.into());
}
