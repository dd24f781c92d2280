//! Why a command stops before its end.

use crate::LabError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Why work stops before its end, if it does.
#[derive(Clone, Copy)]
pub(crate) struct Halt<'a> {
    pub(crate) cancel: &'a AtomicBool,
    pub(crate) memory_short: &'a OnceLock<String>,
}

impl Halt<'_> {
    pub(crate) fn is_raised(self) -> bool {
        self.cancel.load(Ordering::SeqCst)
    }

    /// Between the steps of setting a variant up: fails if it is to stop there.
    pub(crate) fn set_up(self, variant: &str) -> Result<(), LabError> {
        let variant = || variant.to_owned();
        match self.memory_short.get() {
            Some(what) => Err(LabError::MemorySetUp { variant: variant(), what: what.clone() }),
            None if self.is_raised() => Err(LabError::Interrupted { variant: variant() }),
            None => Ok(()),
        }
    }
}

/// Limit of the time for which results of an interrupted command are made. Nothing here has a
/// clock: its owner calls [`Deadline::pass`], and results that are not made by then are left out.
#[derive(Clone, Debug, Default)]
pub struct Deadline(Arc<State>);

#[derive(Debug, Default)]
struct State {
    has_begun: AtomicBool,
    is_waived: AtomicBool,
    has_passed: AtomicBool,
}

/// The deadline has passed while something was made.
#[derive(Debug)]
pub(crate) struct LeftOut;

impl Deadline {
    /// Notes that a run has begun. A signal then stops the command in good order.
    pub fn begin(&self) {
        self.0.has_begun.store(true, Ordering::SeqCst);
    }

    /// Whether there is anything to keep.
    pub fn has_begun(&self) -> bool {
        self.0.has_begun.load(Ordering::SeqCst)
    }

    /// Keeps the deadline from taking effect: the runs took far longer than their results will.
    pub(crate) fn waive(&self) {
        self.0.is_waived.store(true, Ordering::SeqCst);
    }

    /// Ends the time: nothing more is made, unless it is waited for.
    pub fn pass(&self) {
        self.0.has_passed.store(true, Ordering::SeqCst);
    }

    /// Fails if the deadline has passed and is not waived. Asked between two parts of the results.
    pub(crate) fn go_on(&self) -> Result<(), LeftOut> {
        let is_over = self.0.has_passed.load(Ordering::SeqCst);
        if is_over && !self.0.is_waived.load(Ordering::SeqCst) { Err(LeftOut) } else { Ok(()) }
    }
}
