//! Why a command stops before its end.

use crate::LabError;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

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
