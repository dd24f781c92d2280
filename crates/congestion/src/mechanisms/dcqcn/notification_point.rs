//! At a destination: at most one notification per interval.

use crate::notifier::{Arrived, Notification, Notifier};
use clearlane_ib::{Picoseconds, Saved, StateError};

const OF_NOTIFIER: &str = "dcqcn notifier";
const VERSION: u16 = 1;

/// The notification point of a queue pair.
pub(super) struct NotificationPoint {
    pub(super) interval: Picoseconds,
    /// When the last notification went.
    pub(super) last: Option<u64>,
}

impl Notifier for NotificationPoint {
    fn on_arrived(&mut self, now: Picoseconds, packet: &Arrived) -> Notification {
        let since = self.last.map(|last| now.0.saturating_sub(last));
        if !packet.fecn || since.is_some_and(|since| since < self.interval.0) {
            return Notification::None;
        }
        self.last = Some(now.0);
        Notification::Cnp
    }

    fn save(&self) -> Saved {
        Saved::new(OF_NOTIFIER, VERSION, &self.last)
    }

    fn load(&mut self, saved: &Saved) -> Result<(), StateError> {
        self.last = saved.state(OF_NOTIFIER, VERSION)?;
        Ok(())
    }
}
