//! The notifier: every FECN is answered, by an ACK with BECN or by a packet of its own, a CNP.

use super::{BECN, CNP_INTERVAL};
use crate::notifier::{Arrived, Notification, Notifier};
use crate::parameter::Values;
use clearlane_ib::{Picoseconds, Saved, StateError};

/// The notifier of a queue pair, or of what it is said to answer for. Without an interval it has no
/// state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::mechanisms) struct FecnNotifier {
    of: &'static str,
    /// Whether reliable connections answer with ACKs.
    on_ack: bool,
    /// Least time between two CNPs.
    interval: Picoseconds,
    /// When the last CNP went; not kept without an interval.
    last: Option<u64>,
}

const VERSION: u16 = 2;

impl FecnNotifier {
    /// One whose states are kept as `of`.
    pub(in crate::mechanisms) fn new(of: &'static str, values: &Values) -> Self {
        let (on_ack, interval) = (values.word(&BECN) == "ack", values.time(&CNP_INTERVAL));
        FecnNotifier { of, on_ack, interval, last: None }
    }

    /// Whether CNPs have a least distance.
    pub(in crate::mechanisms) fn is_limited(&self) -> bool {
        self.interval > Picoseconds(0)
    }

    fn cnp(&mut self, now: Picoseconds) -> Notification {
        if !self.is_limited() {
            return Notification::Cnp;
        }
        if self.last.is_some_and(|last| now.0.saturating_sub(last) < self.interval.0) {
            return Notification::None;
        }
        self.last = Some(now.0);
        Notification::Cnp
    }
}

impl Notifier for FecnNotifier {
    fn on_arrived(&mut self, now: Picoseconds, packet: &Arrived) -> Notification {
        match packet {
            Arrived { fecn: false, .. } => Notification::None,
            Arrived { reliable: true, .. } if self.on_ack => Notification::BecnOnAck,
            _ => self.cnp(now),
        }
    }

    fn save(&self) -> Saved {
        Saved::new(self.of, VERSION, &self.last)
    }

    fn load(&mut self, saved: &Saved) -> Result<(), StateError> {
        self.last = saved.state(self.of, VERSION)?;
        Ok(())
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
    #[test]
    fn cnps_keep_their_distance_and_acks_do_not() {
        let built = |word| {
            let mut values = Values::default();
            values.set(&BECN, Value::Word(word)).unwrap();
            values.set(&CNP_INTERVAL, Value::Time(Picoseconds(10))).unwrap();
            FecnNotifier::new("test", &values)
        };
        let marked = Arrived { fecn: true, reliable: true };
        let mut it = built("cnp");
        let sent = [3, 12, 13, 14, 23, 40]
            .map(|now| it.on_arrived(Picoseconds(now), &marked) == Notification::Cnp);
        assert_eq!(sent, [true, false, true, false, true, true]);
        let mut again = built("cnp");
        again.load(&it.save()).unwrap();
        assert_eq!(again, it);
        assert_eq!(again.on_arrived(Picoseconds(49), &marked), Notification::None);
        let mut it = built("ack");
        for now in [1, 2, 3] {
            assert_eq!(it.on_arrived(Picoseconds(now), &marked), Notification::BecnOnAck);
        }
    }
}
