//! CPU time: what a run costs, whatever else the machine does.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// CPU time that this process has had so far, all its threads together.
pub(crate) fn of_process() -> Duration {
    read(ClockId::ProcessCPUTime)
}

/// CPU time that this thread has had so far.
pub(crate) fn of_thread() -> Duration {
    read(ClockId::ThreadCPUTime)
}

fn read(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}
