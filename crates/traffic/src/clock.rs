//! The clocks of hosts: monotonic, each from a beginning of its own, brought together by questions
//! and answers over the control connection as NTP does it (RFC 5905, section 8).

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// This host's monotonic clock, ns.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Sleeps until a time of this host's clock, or for `most`.
pub fn sleep_until(ns: u64, most: Duration) {
    let left = Duration::from_nanos(ns.saturating_sub(now_ns()));
    std::thread::sleep(left.min(most));
}

/// A question and its answer: times of the asker's clock around, of the other's clock within.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exchange {
    /// Question sent, by the asker's clock.
    pub asked_ns: u64,
    /// Question received, by the other's.
    pub received_ns: u64,
    /// Answer sent, by the other's.
    pub answered_ns: u64,
    /// Answer received, by the asker's.
    pub heard_ns: u64,
}

/// How the other's clock relates to the asker's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Offset {
    /// The other's clock less the asker's, ns.
    pub ns: i64,
    /// The true offset is no farther away than this, ns, however the way is divided between there
    /// and back.
    pub bound_ns: u64,
}

impl Offset {
    /// The offset by the exchange that took least; nothing without any that makes sense.
    pub fn of(exchanges: &[Exchange]) -> Option<Self> {
        let one = |exchange: &Exchange| {
            let Exchange { asked_ns, received_ns, answered_ns, heard_ns } = *exchange;
            let there = heard_ns.checked_sub(asked_ns)?;
            let within = answered_ns.checked_sub(received_ns)?;
            let way = there.checked_sub(within)?;
            let difference = |theirs: u64, ours: u64| i128::from(theirs) - i128::from(ours);
            let sum = difference(received_ns, asked_ns) + difference(answered_ns, heard_ns);
            let ns = i64::try_from(sum / 2).ok()?;
            // Half a nanosecond may be lost.
            Some(Offset { ns, bound_ns: way / 2 + 1 })
        };
        exchanges.iter().filter_map(one).min_by_key(|offset| offset.bound_ns)
    }

    /// A time of the asker's clock as the other's has it; never before its beginning.
    pub fn theirs(&self, ours_ns: u64) -> u64 {
        ours_ns.saturating_add_signed(self.ns)
    }

    /// A time of the other's clock as the asker's has it.
    pub fn ours(&self, theirs_ns: u64) -> u64 {
        theirs_ns.saturating_add_signed(self.ns.saturating_neg())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_bound(
            offset in -1_000_000_000i64..1_000_000_000,
            ways in prop::collection::vec((0u64..100_000, 0u64..100_000, 0u64..10_000), 1..8),
        ) {
            let exchange = |(at, (to, back, within)): (usize, &(u64, u64, u64))| {
                let asked_ns = 5_000_000_000 + at as u64 * 1_000_000;
                let received = asked_ns + to;
                let answered = received + within;
                let theirs = |ns: u64| ns.saturating_add_signed(offset);
                Exchange {
                    asked_ns,
                    received_ns: theirs(received),
                    answered_ns: theirs(answered),
                    heard_ns: answered + back,
                }
            };
            let exchanges: Vec<Exchange> = ways.iter().enumerate().map(exchange).collect();
            let found = Offset::of(&exchanges).unwrap();
            prop_assert!(found.ns.abs_diff(offset) <= found.bound_ns, "{found:?}");
            let shortest = ways.iter().map(|(to, back, _)| to + back).min().unwrap();
            prop_assert_eq!(found.bound_ns, shortest / 2 + 1);
            prop_assert_eq!(found.ours(found.theirs(7_000_000_000)), 7_000_000_000);
        }

        #[test]
        fn any_times_are_taken_or_left(times in prop::array::uniform4(any::<u64>())) {
            let [asked_ns, received_ns, answered_ns, heard_ns] = times;
            let exchange = Exchange { asked_ns, received_ns, answered_ns, heard_ns };
            if let Some(offset) = Offset::of(&[exchange]) {
                let _ = offset.ours(offset.theirs(asked_ns));
            }
        }
    }
}
