//! What mechanisms that keep a rate have in common: its least value, and gaps between packets.

use crate::parameter::{Parameter, Range, Value};
use crate::reactor::Sent;
use clearlane_ib::{BitsPerSecond, Picoseconds};

/// Least rate of a mechanism that keeps one.
pub static RATE_MIN: Parameter = Parameter {
    name: "rate_min",
    summary: "rate below which no cut goes",
    default: Value::Rate(BitsPerSecond(100_000_000)),
    range: Range::Rate(BitsPerSecond(1_000_000), BitsPerSecond(1_000_000_000_000)),
};

/// The earliest time for the packet after `sent`, which begins to leave at `now`, at a rate of
/// `bits_per_second`, at least 1: rounded up, and never before the link is free again.
pub(super) fn next_injection(now: Picoseconds, sent: &Sent, bits_per_second: u64) -> u64 {
    let picobits = u128::from(sent.bytes) * 8 * 1_000_000_000_000;
    let spacing = picobits.div_ceil(u128::from(bits_per_second.max(1)));
    let spacing = u64::try_from(spacing).unwrap_or(u64::MAX);
    now.0.saturating_add(spacing.max(sent.busy.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reactor::Pair;

    #[test]
    fn the_gap_is_what_the_rate_leaves_and_never_less_than_the_packet() {
        let sent = Sent { pair: Pair(0), bytes: 1_000, busy: Picoseconds(250_000) };
        let next = |rate| next_injection(Picoseconds(7), &sent, rate);
        assert_eq!(next(8_000_000_000), 7 + 1_000_000);
        assert_eq!(next(3_000_000_000), 7 + 2_666_667);
        assert_eq!(next(400_000_000_000), 7 + 250_000);
        assert_eq!(next(0), 7 + 8_000_000_000_000_000);
    }
}
