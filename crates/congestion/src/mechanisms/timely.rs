//! What it is: TIMELY, a rate control that looks at round-trip times alone. Sources slow down while
//! ACKs take longer and longer, and speed up otherwise; switches and destinations do nothing.
//!
//! Source: Mittal et al., "TIMELY: RTT-based congestion control for the datacenter", SIGCOMM 2015,
//! algorithm 1.
//! What we do differently: see [`ENTRY`]'s notes. Only reliable connections have ACKs, so it does
//! nothing for datagrams.
//! Parameters: t_low, t_high, min_rtt, segment, ewma, beta, delta, hai, cut_max, rate_min.

use super::fraction::Fraction;
use super::injection_rate::{self, RATE_MIN};
use crate::mechanism::{Decides, Entry, Mechanism, Preset, Scope, Source};
use crate::parameter::{Parameter, ParameterError, Range, Value, Values};
use crate::reactor::{Feedback, Pair, Probe, Reactor, Sent};
use clearlane_ib::{BitsPerSecond, Bytes, LinkRate, Picoseconds, Saved, StateError};
use serde::{Deserialize, Serialize};

const US: u64 = 1_000_000;
const MBPS: u64 = 1_000_000;
const LONGEST: Picoseconds = Picoseconds(1_000_000 * US);

/// T_low.
pub static T_LOW: Parameter = Parameter {
    name: "t_low",
    summary: "round trips below it always speed up",
    default: Value::Time(Picoseconds(10 * US)),
    range: Range::Time(Picoseconds(0), LONGEST),
};

/// T_high.
pub static T_HIGH: Parameter = Parameter {
    name: "t_high",
    summary: "round trips above it always slow down",
    default: Value::Time(Picoseconds(100 * US)),
    range: Range::Time(Picoseconds(0), LONGEST),
};

/// D_minRTT.
pub static MIN_RTT: Parameter = Parameter {
    name: "min_rtt",
    summary: "round trip of an idle network, in which the gradient is measured",
    default: Value::Time(Picoseconds(4 * US)),
    range: Range::Time(Picoseconds(1), LONGEST),
};

/// Segment.
pub static SEGMENT: Parameter = Parameter {
    name: "segment",
    summary: "acknowledged bytes per change of the rate",
    default: Value::Size(Bytes(16 << 10)),
    range: Range::Size(Bytes(1), Bytes(1 << 30)),
};

/// EWMA weight.
pub static EWMA: Parameter = Parameter {
    name: "ewma",
    summary: "weight of the newest difference in the gradient (alpha in the paper)",
    default: Value::Number(0.875),
    range: Range::Number(0.0, 1.0),
};

/// Beta.
pub static BETA: Parameter = Parameter {
    name: "beta",
    summary: "how strongly the gradient cuts the rate",
    default: Value::Number(0.8),
    range: Range::Number(0.0, 1.0),
};

/// Delta.
pub static DELTA: Parameter = Parameter {
    name: "delta",
    summary: "step by which the rate rises",
    default: Value::Rate(BitsPerSecond(40 * MBPS)),
    range: Range::Rate(BitsPerSecond(0), BitsPerSecond(1_000_000 * MBPS)),
};

/// Hyperactive increase.
pub static HAI: Parameter = Parameter {
    name: "hai",
    summary: "from so many falling round trips in a row on, the rate rises by so many steps",
    default: Value::Integer(5),
    range: Range::Integer(1, 1_000),
};

/// Largest cut.
pub static CUT_MAX: Parameter = Parameter {
    name: "cut_max",
    summary: "largest part of the rate that one change takes away",
    default: Value::Number(0.5),
    range: Range::Number(0.0, 1.0),
};

/// `timely`.
pub static ENTRY: Entry = Entry {
    name: "timely",
    summary: "TIMELY: sources slow down while round trips grow; switches need not help",
    reference: "Mittal et al., TIMELY: RTT-based congestion control for the datacenter, SIGCOMM \
                2015, algorithm 1",
    notes: "\
Only reliable connections have ACKs to measure: datagrams are not governed. A round trip is from \
a packet's injection to its ACK, less the packet's time on the first link; of each segment of \
acknowledged bytes the last packet counts. With coalesced ACKs only the packets that are \
acknowledged themselves count, so changes are rarer. t_low, t_high and min_rtt are set for a \
fabric whose idle round trip is a few microseconds and whose buffers hold tens; those of the paper \
are a preset. One change takes at most cut_max of the rate, as Swift does: the paper has no such \
bound, which is 1. hai is both the number of falling round trips and the number of steps, as in \
the paper. Queue pairs start at the rate of the link. The gap follows the rate as a packet leaves. \
Rates are whole bits per second, the gradient whole picoseconds.",
    decides: Decides::When,
    parameters: &[
        &T_LOW, &T_HIGH, &MIN_RTT, &SEGMENT, &EWMA, &BETA, &DELTA, &HAI, &CUT_MAX, &RATE_MIN,
    ],
    port_parameters: &[],
    presets: &[Preset {
        name: "mittal-2015",
        reference: "Mittal et al., SIGCOMM 2015, as restated in Zhu et al., ECN or delay, CoNEXT \
                    2016, and in the simulator published with HPCC",
        values: &[
            (&T_LOW, Value::Time(Picoseconds(50 * US))),
            (&T_HIGH, Value::Time(Picoseconds(500 * US))),
            (&MIN_RTT, Value::Time(Picoseconds(20 * US))),
            (&SEGMENT, Value::Size(Bytes(16 << 10))),
            (&EWMA, Value::Number(0.875)),
            (&BETA, Value::Number(0.8)),
            (&DELTA, Value::Rate(BitsPerSecond(10 * MBPS))),
            (&HAI, Value::Integer(5)),
            (&CUT_MAX, Value::Number(1.0)),
        ],
    }],
    build,
};

fn build(values: &Values) -> Result<Box<dyn Mechanism>, ParameterError> {
    let (low, high) = (values.time(&T_LOW), values.time(&T_HIGH));
    if low > high {
        let problem = format!("{low} is above t_high, {high}; lower it or raise t_high");
        return Err(T_LOW.error(problem));
    }
    Ok(Box::new(Timely {
        low: low.0,
        high: high.0,
        min_rtt: values.time(&MIN_RTT).0,
        segment: values.size(&SEGMENT).0,
        ewma: Fraction::of(values.number(&EWMA)),
        beta: Fraction::of(values.number(&BETA)),
        delta: values.rate(&DELTA).0,
        hai: values.integer(&HAI),
        cut_max: Fraction::of(values.number(&CUT_MAX)),
        rate_min: values.rate(&RATE_MIN).0,
    }))
}

/// Times in picoseconds, rates in bits per second.
#[derive(Clone, Copy, Debug)]
struct Timely {
    low: u64,
    high: u64,
    min_rtt: u64,
    segment: u64,
    ewma: Fraction,
    beta: Fraction,
    delta: u64,
    hai: u64,
    cut_max: Fraction,
    rate_min: u64,
}

impl Mechanism for Timely {
    fn scope(&self) -> Scope {
        Scope::QueuePair
    }

    fn reactor(&self, source: &Source) -> Option<Box<dyn Reactor>> {
        let link = source.link.bits_per_second().0;
        let settings = Timely { rate_min: self.rate_min.min(link), ..*self };
        let state = State { rate: link, ..State::default() };
        Some(Box::new(RateComputation { settings, link: source.link, state }))
    }
}

/// The rate of a queue pair and what led to it.
struct RateComputation {
    settings: Timely,
    link: LinkRate,
    state: State,
}

#[derive(Default, Serialize, Deserialize)]
struct State {
    /// In bits per second.
    rate: u64,
    /// The last round trip, in picoseconds.
    rtt: Option<u64>,
    /// Smoothed difference of round trips, in picoseconds.
    difference: i64,
    /// Round trips in a row that did not grow.
    falling: u64,
    /// Acknowledged bytes of the current segment.
    acknowledged: u64,
    /// Before that no packet leaves.
    next_injection: u64,
}

const OF: &str = "timely reactor";
const VERSION: u16 = 1;

impl RateComputation {
    /// A segment has been acknowledged, its last packet after `rtt`.
    fn on_completed(&mut self, rtt: u64) {
        let settings = self.settings;
        let Some(last) = self.state.rtt.replace(rtt) else {
            return;
        };
        let newest = i128::from(rtt) - i128::from(last);
        let weight = i128::from(settings.ewma.units());
        let rest = i128::from(settings.ewma.complement().units());
        let smoothed = (i128::from(self.state.difference) * rest + newest * weight) >> 32;
        self.state.difference = smoothed.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        if rtt < settings.low {
            self.state.falling = 0;
            self.raise(1);
        } else if rtt > settings.high {
            self.cut(settings.beta.scaled(rtt - settings.high, rtt));
        } else if self.state.difference <= 0 {
            self.state.falling = self.state.falling.saturating_add(1);
            self.raise(if self.state.falling >= settings.hai { settings.hai } else { 1 });
        } else {
            let gradient = self.state.difference.unsigned_abs();
            self.cut(settings.beta.scaled(gradient, settings.min_rtt));
        }
    }

    fn raise(&mut self, steps: u64) {
        let rate = self.state.rate.saturating_add(self.settings.delta.saturating_mul(steps));
        self.state.rate = rate.min(self.link.bits_per_second().0);
    }

    fn cut(&mut self, part: Fraction) {
        self.state.falling = 0;
        let part = part.min(self.settings.cut_max);
        let rate = part.complement().times(self.state.rate);
        self.state.rate = rate.max(self.settings.rate_min);
    }
}

impl Reactor for RateComputation {
    fn on_sent(&mut self, now: Picoseconds, sent: &Sent) {
        if self.state.rate < self.link.bits_per_second().0 {
            self.state.next_injection = injection_rate::next_injection(now, sent, self.state.rate);
        }
    }

    fn on_feedback(&mut self, _now: Picoseconds, _pair: Pair, feedback: Feedback) {
        let Feedback::Ack { latency, bytes, acknowledged } = feedback else {
            return;
        };
        self.state.acknowledged = self.state.acknowledged.saturating_add(acknowledged);
        if self.state.acknowledged >= self.settings.segment {
            self.state.acknowledged = 0;
            let serialisation = self.link.serialisation(u64::from(bytes));
            self.on_completed(latency.0.saturating_sub(serialisation));
        }
    }

    fn next_injection(&self, _pair: Pair) -> Picoseconds {
        Picoseconds(self.state.next_injection)
    }

    fn is_unlimited(&self, now: Picoseconds, _pair: Pair) -> bool {
        let full = self.state.rate >= self.link.bits_per_second().0;
        full && self.state.next_injection <= now.0
    }

    fn probe(&self, _pair: Pair, show: &mut dyn FnMut(Probe)) {
        show(Probe { name: "rate (Mb/s)", value: self.state.rate / MBPS });
        show(Probe { name: "round trip (ns)", value: self.state.rtt.unwrap_or(0) / 1_000 });
    }

    fn save(&self) -> Saved {
        Saved::new(OF, VERSION, &self.state)
    }

    fn load(&mut self, saved: &Saved) -> Result<(), StateError> {
        let state: State = saved.state(OF, VERSION)?;
        let rates = self.settings.rate_min..=self.link.bits_per_second().0;
        if !rates.contains(&state.rate) {
            return Err(StateError::Damaged(OF));
        }
        self.state = state;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_ib::{LinkSpeed, LinkWidth};

    /// A segment in one packet, and what it takes on 4x QDR, 32 Gb/s.
    const BYTES: u32 = 16_384;
    const BUSY: u64 = 4_096_000;

    fn computation(set: &[(&Parameter, Value)]) -> Box<dyn Reactor> {
        let mut values = Values::default();
        for (parameter, value) in set {
            values.set(parameter, value.clone()).unwrap();
        }
        let link = LinkRate::of(LinkWidth::X4, LinkSpeed::Qdr);
        build(&values).unwrap().reactor(&Source { link, packet_max: 2074, paths: 1 }).unwrap()
    }

    /// The rate in Mb/s after a segment with a round trip of that many microseconds.
    fn after(it: &mut dyn Reactor, us: u64) -> u64 {
        let latency = Picoseconds(us * US + BUSY);
        let ack = Feedback::Ack { latency, bytes: BYTES, acknowledged: BYTES.into() };
        it.on_feedback(Picoseconds(0), Pair(0), ack);
        rate(it)
    }

    fn rate(it: &dyn Reactor) -> u64 {
        let mut values = Vec::new();
        it.probe(Pair(0), &mut |probe| values.push(probe.value));
        values[0]
    }

    #[test]
    fn a_growing_round_trip_cuts_by_its_gradient_and_a_falling_one_adds_steps() {
        let set = [(&EWMA, Value::Number(1.0)), (&BETA, Value::Number(0.5))];
        let mut it = computation(&set);
        assert_eq!(after(&mut *it, 20), 32_000);
        // 1 us more, a quarter of the least round trip: 1/8 off.
        assert_eq!(after(&mut *it, 21), 28_000);
        // 40 us more: no more than half.
        assert_eq!(after(&mut *it, 61), 14_000);
        for step in 1..5 {
            assert_eq!(after(&mut *it, 61), 14_000 + step * 40);
        }
        assert_eq!(after(&mut *it, 61), 14_160 + 5 * 40);
        assert_eq!(after(&mut *it, 60), 14_360 + 5 * 40);
        assert_eq!(after(&mut *it, 61) / 10, 14_560 * 7 / 8 / 10);
        assert_eq!(after(&mut *it, 60), 14_560 * 7 / 8 + 40);
    }

    #[test]
    fn below_t_low_it_always_rises_and_above_t_high_it_always_falls() {
        let mut it = computation(&[(&BETA, Value::Number(1.0))]);
        after(&mut *it, 1);
        after(&mut *it, 200);
        assert_eq!(rate(&*it), 16_000);
        // Falling, but 160 us: 60/160 off.
        assert_eq!(after(&mut *it, 160), 10_000);
        assert_eq!(after(&mut *it, 3), 10_040);
        assert_eq!(after(&mut *it, 9), 10_080);
    }

    #[test]
    fn the_gradient_is_smoothed() {
        let mut it = computation(&[(&EWMA, Value::Number(0.5)), (&BETA, Value::Number(1.0))]);
        after(&mut *it, 20);
        // Half of 2 us of 4 us: a quarter off; half of that remains: an eighth.
        assert_eq!(after(&mut *it, 22), 24_000);
        assert_eq!(after(&mut *it, 22), 21_000);
    }

    #[test]
    fn a_segment_counts_once_by_its_last_packet() {
        let mut it = computation(&[(&SEGMENT, Value::Size(Bytes(3_000)))]);
        let mut ack = |us: u64| {
            let latency = Picoseconds(us * US);
            let ack = Feedback::Ack { latency, bytes: 2_000, acknowledged: 2_000 };
            it.on_feedback(Picoseconds(0), Pair(0), ack);
            rate(&*it)
        };
        assert_eq!([ack(900), ack(11), ack(900), ack(900)], [32_000, 32_000, 32_000, 16_000]);
    }

    #[test]
    fn an_ack_of_several_packets_fills_the_segment_and_is_timed_by_the_last_one() {
        let mut it = computation(&[]);
        // 2,000 B take 500 ns; all 16,000 B of the segment would take 4 us.
        let latency = Picoseconds(20 * US + 500_000);
        let ack = Feedback::Ack { latency, bytes: 2_000, acknowledged: 16_384 };
        it.on_feedback(Picoseconds(0), Pair(0), ack);
        let mut values = Vec::new();
        it.probe(Pair(0), &mut |probe| values.push(probe.value));
        assert_eq!(values, [32_000, 20_000]);
    }

    #[test]
    fn gaps_follow_the_rate_and_never_go_below_the_least() {
        let mut it = computation(&[]);
        let sent = Sent { pair: Pair(0), bytes: 2_000, busy: Picoseconds(500_000) };
        it.on_sent(Picoseconds(0), &sent);
        assert_eq!(it.next_injection(Pair(0)), Picoseconds(0));
        after(&mut *it, 20);
        after(&mut *it, 99);
        it.on_sent(Picoseconds(US), &sent);
        assert_eq!(it.next_injection(Pair(0)), Picoseconds(2 * US));
        (1..40).for_each(|_| _ = after(&mut *it, 900));
        assert_eq!(rate(&*it), 100);
    }

    #[test]
    fn datagrams_and_becn_change_nothing() {
        let mut it = computation(&[]);
        let before = it.save();
        it.on_feedback(Picoseconds(0), Pair(0), Feedback::Becn);
        let posted_at = Picoseconds(0);
        it.on_feedback(
            Picoseconds(9),
            Pair(0),
            Feedback::Completion { bytes: Bytes(9), posted_at },
        );
        assert_eq!((it.save(), it.next_timer()), (before, None));
    }

    #[test]
    fn round_trips_of_t_low_and_t_high_go_by_their_gradient() {
        let set = [(&T_LOW, Value::Time(Picoseconds(20 * US))), (&EWMA, Value::Number(1.0))];
        let mut it = computation(&set);
        // 10 us more: half off, though 20 us are not above t_low.
        assert_eq!([after(&mut *it, 10), after(&mut *it, 20)], [32_000, 16_000]);
        // 0.8 · 100 / 200 off; then 100 us less: a step up, though not below t_high.
        assert_eq!([after(&mut *it, 200), after(&mut *it, 100)], [9_600, 9_640]);
    }
}
