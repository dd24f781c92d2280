//! The notifier: every FECN is answered, by an ACK with BECN or by a packet of its own, a CNP.

use super::BECN;
use crate::notifier::{Arrived, Notification, Notifier};
use crate::parameter::Values;
use clearlane_ib::{Picoseconds, Saved, StateError};

/// The notifier of a queue pair. It has no state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::mechanisms) struct FecnNotifier {
    of: &'static str,
    /// Whether reliable connections answer with ACKs.
    on_ack: bool,
}

const VERSION: u16 = 1;

impl FecnNotifier {
    /// One whose states are kept as `of`.
    pub(in crate::mechanisms) fn new(of: &'static str, values: &Values) -> Self {
        FecnNotifier { of, on_ack: values.word(&BECN) == "ack" }
    }
}

impl Notifier for FecnNotifier {
    fn on_arrived(&mut self, _now: Picoseconds, packet: &Arrived) -> Notification {
        match packet {
            Arrived { fecn: false, .. } => Notification::None,
            Arrived { reliable: true, .. } if self.on_ack => Notification::BecnOnAck,
            _ => Notification::Cnp,
        }
    }

    fn save(&self) -> Saved {
        Saved::new(self.of, VERSION, &())
    }

    fn load(&mut self, saved: &Saved) -> Result<(), StateError> {
        saved.state(self.of, VERSION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameter::Value;

    #[test]
    fn fecn_is_answered_as_told_and_nothing_else_is() {
        let answer = |word, fecn, reliable| {
            let mut values = Values::default();
            values.set(&BECN, Value::Word(word)).unwrap();
            let mut it = FecnNotifier::new("test", &values);
            it.on_arrived(Picoseconds(0), &Arrived { fecn, reliable })
        };
        assert_eq!(answer("cnp", true, true), Notification::Cnp);
        assert_eq!(answer("ack", true, true), Notification::BecnOnAck);
        assert_eq!(answer("ack", true, false), Notification::Cnp);
        assert_eq!(answer("cnp", false, true), Notification::None);
        assert_eq!(answer("ack", false, true), Notification::None);
    }
}
