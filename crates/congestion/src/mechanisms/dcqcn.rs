//! What it is: DCQCN, the rate control of RDMA over Ethernet. Switches mark with a probability that
//! grows with the queue, destinations send at most one notification per interval, sources cut
//! their rate by an estimate of how congested the way is and raise it again by timer and bytes.
//!
//! Source: Zhu et al., "Congestion control for large-scale RDMA deployments", SIGCOMM 2015.
//! What we do differently: FECN and CNPs of InfiniBand in place of ECN and RoCEv2's; the rest is in
//! [`ENTRY`]'s notes.
//! Parameters: kmin, kmax, pmax, cnp_interval, g, alpha_timer, increase_timer, byte_counter,
//! fast_recovery, rate_ai, rate_hai, rate_min.

use super::fraction::Fraction;
use super::injection_rate::{self, RATE_MIN};
use crate::marker::{Departing, Marker, OutputQueue};
use crate::mechanism::{Decides, Entry, Mechanism, Output, Preset, Scope, Source};
use crate::notifier::{Arrived, Notification, Notifier};
use crate::parameter::{Parameter, ParameterError, Range, Value, Values};
use crate::reactor::{Feedback, Pair, Probe, Reactor, Sent};
use clearlane_ib::{BitsPerSecond, Bytes, Picoseconds, Saved, StateError};
use serde::{Deserialize, Serialize};

const US: u64 = 1_000_000;
const MBPS: u64 = 1_000_000;
const LONGEST: Picoseconds = Picoseconds(1_000_000 * US);

/// Kmin.
pub static KMIN: Parameter = Parameter {
    name: "kmin",
    summary: "queue at an output and lane up to which nothing is marked",
    default: Value::Size(Bytes(16 << 10)),
    range: Range::Size(Bytes(0), Bytes(1 << 30)),
};

/// Kmax.
pub static KMAX: Parameter = Parameter {
    name: "kmax",
    summary: "queue above which every packet is marked",
    default: Value::Size(Bytes(64 << 10)),
    range: Range::Size(Bytes(0), Bytes(1 << 30)),
};

/// Pmax.
pub static PMAX: Parameter = Parameter {
    name: "pmax",
    summary: "probability of a mark at kmax; it grows linearly from 0 at kmin",
    default: Value::Number(0.01),
    range: Range::Number(0.0, 1.0),
};

/// Interval between CNPs.
pub static CNP_INTERVAL: Parameter = Parameter {
    name: "cnp_interval",
    summary: "least time between two notifications of a queue pair",
    default: Value::Time(Picoseconds(50 * US)),
    range: Range::Time(Picoseconds(0), LONGEST),
};

/// g.
pub static G: Parameter = Parameter {
    name: "g",
    summary: "gain of the congestion estimate alpha",
    default: Value::Number(1.0 / 256.0),
    range: Range::Number(0.0, 1.0),
};

/// Alpha timer.
pub static ALPHA_TIMER: Parameter = Parameter {
    name: "alpha_timer",
    summary: "time without a notification after which alpha falls, and again",
    default: Value::Time(Picoseconds(55 * US)),
    range: Range::Time(Picoseconds(US), LONGEST),
};

/// Rate increase timer.
pub static INCREASE_TIMER: Parameter = Parameter {
    name: "increase_timer",
    summary: "time without a notification after which the rate rises, and again",
    default: Value::Time(Picoseconds(55 * US)),
    range: Range::Time(Picoseconds(US), LONGEST),
};

/// Byte counter.
pub static BYTE_COUNTER: Parameter = Parameter {
    name: "byte_counter",
    summary: "bytes sent after which the rate rises as well",
    default: Value::Size(Bytes(10_000_000)),
    range: Range::Size(Bytes(1), Bytes(1 << 40)),
};

/// F.
pub static FAST_RECOVERY: Parameter = Parameter {
    name: "fast_recovery",
    summary: "rises halfway to the rate before the cut, counted for timer and bytes apart, before \
              that rate itself rises",
    default: Value::Integer(5),
    range: Range::Integer(0, 1_000),
};

/// R_AI.
pub static RATE_AI: Parameter = Parameter {
    name: "rate_ai",
    summary: "step of additive increase",
    default: Value::Rate(BitsPerSecond(40 * MBPS)),
    range: Range::Rate(BitsPerSecond(0), BitsPerSecond(1_000_000 * MBPS)),
};

/// R_HAI.
pub static RATE_HAI: Parameter = Parameter {
    name: "rate_hai",
    summary: "step of hyper increase, once timer and bytes both are past fast recovery",
    default: Value::Rate(BitsPerSecond(400 * MBPS)),
    range: Range::Rate(BitsPerSecond(0), BitsPerSecond(1_000_000 * MBPS)),
};

/// `dcqcn`.
pub static ENTRY: Entry = Entry {
    name: "dcqcn",
    summary: "DCQCN: marks by queue length, one notification per interval, rates cut by an \
              estimate of congestion",
    reference: "Zhu et al., Congestion control for large-scale RDMA deployments, SIGCOMM 2015",
    notes: "\
The queue is that of the output and lane over all inputs, without the packet in service. By \
default marking ends at a queue of one 64 KiB receive buffer, with a first mark at a quarter of \
it: thresholds made for the shared buffers of Ethernet switches, the presets, lie beyond what \
such a fabric can queue before credits run out. pmax is the 1 % of the paper; with 20 %, as in \
HPCC's simulator, two flows through such a queue settle at unequal shares. Marks do not tell \
roots from victims. A notification follows the first mark after cnp_interval, no timer runs at \
the destination. The limit on a queue pair begins with its first notification, with alpha 1, and \
is lifted when its rate is back at the link's: alpha is forgotten then. The gap follows the rate \
as a packet leaves; later changes do not touch it. Hyper increase adds rate_hai at each step, as \
the simulator published with HPCC does, not a multiple of it; rate_hai (10 times rate_ai, as in \
QCN) and rate_min are not in the paper. Rates are whole bits per second, alpha has 32 fractional \
bits.",
    decides: Decides::When,
    parameters: &[
        &KMIN,
        &KMAX,
        &PMAX,
        &CNP_INTERVAL,
        &G,
        &ALPHA_TIMER,
        &INCREASE_TIMER,
        &BYTE_COUNTER,
        &FAST_RECOVERY,
        &RATE_AI,
        &RATE_HAI,
        &RATE_MIN,
    ],
    port_parameters: &[],
    presets: &[
        Preset {
            name: "zhu-2015",
            reference: "Zhu et al., SIGCOMM 2015, values deployed at 40 Gb/s; not checked against \
                        the paper",
            values: &[
                (&KMIN, Value::Size(Bytes(5_000))),
                (&KMAX, Value::Size(Bytes(200_000))),
                (&PMAX, Value::Number(0.01)),
                (&CNP_INTERVAL, Value::Time(Picoseconds(50 * US))),
                (&G, Value::Number(1.0 / 256.0)),
                (&ALPHA_TIMER, Value::Time(Picoseconds(55 * US))),
                (&INCREASE_TIMER, Value::Time(Picoseconds(55 * US))),
                (&BYTE_COUNTER, Value::Size(Bytes(10_000_000))),
                (&FAST_RECOVERY, Value::Integer(5)),
                (&RATE_AI, Value::Rate(BitsPerSecond(40 * MBPS))),
            ],
        },
        Preset {
            name: "hpcc-25g",
            reference: "Li et al., HPCC, SIGCOMM 2019: settings for 25 Gb/s of the simulator \
                        published with it; its decrease interval of 4 us as cnp_interval",
            values: &[
                (&KMIN, Value::Size(Bytes(100_000))),
                (&KMAX, Value::Size(Bytes(400_000))),
                (&PMAX, Value::Number(0.2)),
                (&CNP_INTERVAL, Value::Time(Picoseconds(4 * US))),
                (&G, Value::Number(1.0 / 256.0)),
                (&ALPHA_TIMER, Value::Time(Picoseconds(US))),
                (&INCREASE_TIMER, Value::Time(Picoseconds(900 * US))),
                (&RATE_AI, Value::Rate(BitsPerSecond(50 * MBPS))),
                (&RATE_HAI, Value::Rate(BitsPerSecond(100 * MBPS))),
                (&RATE_MIN, Value::Rate(BitsPerSecond(100 * MBPS))),
            ],
        },
    ],
    build,
};

fn build(values: &Values) -> Result<Box<dyn Mechanism>, ParameterError> {
    let red = Red {
        kmin: values.size(&KMIN),
        kmax: values.size(&KMAX),
        pmax: Fraction::of(values.number(&PMAX)),
    };
    if red.kmin > red.kmax {
        let problem = format!("{} is above kmax, {}; lower it or raise kmax", red.kmin, red.kmax);
        return Err(KMIN.error(problem));
    }
    Ok(Box::new(Dcqcn {
        red,
        cnp_interval: values.time(&CNP_INTERVAL),
        rates: Rates {
            g: Fraction::of(values.number(&G)),
            alpha_timer: values.time(&ALPHA_TIMER).0,
            increase_timer: values.time(&INCREASE_TIMER).0,
            byte_counter: values.size(&BYTE_COUNTER).0,
            fast_recovery: values.integer(&FAST_RECOVERY),
            ai: values.rate(&RATE_AI).0,
            hai: values.rate(&RATE_HAI).0,
            min: values.rate(&RATE_MIN).0,
        },
    }))
}

#[derive(Debug)]
struct Dcqcn {
    red: Red,
    cnp_interval: Picoseconds,
    rates: Rates,
}

impl Mechanism for Dcqcn {
    fn marker(&self, _output: &Output) -> Option<Box<dyn Marker>> {
        Some(Box::new(self.red))
    }

    fn notifier(&self) -> Option<Box<dyn Notifier>> {
        Some(Box::new(NotificationPoint { interval: self.cnp_interval, last: None }))
    }

    fn hears_acks(&self) -> bool {
        false
    }

    fn scope(&self) -> Scope {
        Scope::QueuePair
    }

    fn reactor(&self, source: &Source) -> Option<Box<dyn Reactor>> {
        let link = source.link.bits_per_second().0;
        let rates = Rates { min: self.rates.min.min(link), ..self.rates };
        Some(Box::new(ReactionPoint { rates, link, state: State::default() }))
    }
}

/// The congestion point: random early detection on the queue as it is. It has no state.
#[derive(Clone, Copy, Debug)]
struct Red {
    kmin: Bytes,
    kmax: Bytes,
    pmax: Fraction,
}

const OF_MARKER: &str = "dcqcn marker";
const OF_NOTIFIER: &str = "dcqcn notifier";
const OF_REACTOR: &str = "dcqcn reactor";
const VERSION: u16 = 1;

impl Marker for Red {
    fn on_changed(&mut self, _now: Picoseconds, _queue: &OutputQueue) {}

    fn mark(
        &mut self,
        _now: Picoseconds,
        queue: &OutputQueue,
        _packet: &Departing,
        draw: u64,
    ) -> bool {
        if queue.queued <= self.kmin {
            return false;
        }
        if queue.queued > self.kmax {
            return true;
        }
        // draw / 2^64 < pmax · (queued - kmin) / (kmax - kmin), multiplied out.
        let chance = u128::from(self.pmax.units()) << 32;
        let above = u128::from(queue.queued.0 - self.kmin.0);
        u128::from(draw) * u128::from(self.kmax.0 - self.kmin.0) < chance * above
    }

    fn idle_up_to(&self) -> Option<Bytes> {
        Some(self.kmin)
    }

    fn save(&self) -> Saved {
        Saved::new(OF_MARKER, VERSION, &())
    }

    fn load(&mut self, saved: &Saved) -> Result<(), StateError> {
        saved.state(OF_MARKER, VERSION)
    }
}

/// The notification point of a queue pair.
struct NotificationPoint {
    interval: Picoseconds,
    /// When the last notification went.
    last: Option<u64>,
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

/// How rates change; times in picoseconds, rates in bits per second.
#[derive(Clone, Copy, Debug)]
struct Rates {
    g: Fraction,
    alpha_timer: u64,
    increase_timer: u64,
    byte_counter: u64,
    fast_recovery: u64,
    ai: u64,
    hai: u64,
    min: u64,
}

/// The reaction point of a queue pair.
struct ReactionPoint {
    rates: Rates,
    /// Rate of the link.
    link: u64,
    state: State,
}

#[derive(Default, Serialize, Deserialize)]
struct State {
    /// Nothing while the queue pair sends as fast as the link.
    limit: Option<Limit>,
    /// Before that no packet leaves.
    next_injection: u64,
}

/// The state of figure 7 in the paper; rates in bits per second.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Limit {
    /// R_C.
    current: u64,
    /// R_T.
    target: u64,
    /// Units of 2^-32.
    alpha: u64,
    /// Bytes since the byte counter's last step.
    bytes: u64,
    /// Steps of the timer and of the byte counter since the last notification.
    steps: (u64, u64),
    alpha_due: u64,
    increase_due: u64,
}

impl ReactionPoint {
    /// A notification: the rate is cut, and both counters and timers begin anew.
    fn cut(&mut self, now: Picoseconds) {
        let fresh = Limit {
            current: self.link,
            target: self.link,
            alpha: Fraction::ONE.units(),
            bytes: 0,
            steps: (0, 0),
            alpha_due: 0,
            increase_due: 0,
        };
        let before = self.state.limit.unwrap_or(fresh);
        // R_C (1 - alpha / 2).
        let kept = Fraction::of_units(before.alpha / 2).complement();
        let alpha = Fraction::of_units(before.alpha);
        self.state.limit = Some(Limit {
            current: kept.times(before.current).max(self.rates.min),
            target: before.current,
            alpha: self.rates.g.complement().times(alpha.units()) + self.rates.g.units(),
            bytes: 0,
            steps: (0, 0),
            alpha_due: now.0.saturating_add(self.rates.alpha_timer),
            increase_due: now.0.saturating_add(self.rates.increase_timer),
        });
    }

    /// One step up after the counters have moved; lifts the limit at the link's rate.
    fn increase(&mut self) {
        let Some(limit) = &mut self.state.limit else {
            return;
        };
        let (most, least) = (limit.steps.0.max(limit.steps.1), limit.steps.0.min(limit.steps.1));
        if least > self.rates.fast_recovery {
            limit.target = limit.target.saturating_add(self.rates.hai);
        } else if most > self.rates.fast_recovery {
            limit.target = limit.target.saturating_add(self.rates.ai);
        }
        limit.target = limit.target.min(self.link);
        // Rounded up, or the last bit per second would never be regained.
        limit.current += (limit.target - limit.current).div_ceil(2);
        if limit.current >= self.link {
            self.state.limit = None;
        }
    }

    /// All timers up to `now`.
    fn expire(&mut self, now: Picoseconds) {
        while let Some(limit) = &mut self.state.limit {
            if limit.alpha_due <= now.0 {
                limit.alpha = self.rates.g.complement().times(limit.alpha);
                limit.alpha_due = limit.alpha_due.saturating_add(self.rates.alpha_timer);
            } else if limit.increase_due <= now.0 {
                limit.increase_due = limit.increase_due.saturating_add(self.rates.increase_timer);
                limit.steps.0 = limit.steps.0.saturating_add(1);
                self.increase();
            } else {
                return;
            }
        }
    }
}

impl Reactor for ReactionPoint {
    fn on_sent(&mut self, now: Picoseconds, sent: &Sent) {
        self.expire(now);
        let Some(limit) = &mut self.state.limit else {
            return;
        };
        self.state.next_injection = injection_rate::next_injection(now, sent, limit.current);
        limit.bytes += u64::from(sent.bytes);
        while let Some(limit) = &mut self.state.limit
            && limit.bytes >= self.rates.byte_counter
        {
            limit.bytes -= self.rates.byte_counter;
            limit.steps.1 = limit.steps.1.saturating_add(1);
            self.increase();
        }
    }

    fn on_feedback(&mut self, now: Picoseconds, _pair: Pair, feedback: Feedback) {
        if feedback == Feedback::Becn {
            // A timer due now goes first, whichever of the two is told first.
            self.expire(now);
            self.cut(now);
        }
    }

    fn next_injection(&self, _pair: Pair) -> Picoseconds {
        Picoseconds(self.state.next_injection)
    }

    fn is_unlimited(&self, now: Picoseconds, _pair: Pair) -> bool {
        self.state.limit.is_none() && self.state.next_injection <= now.0
    }

    fn next_timer(&self) -> Option<Picoseconds> {
        let limit = self.state.limit.as_ref()?;
        Some(Picoseconds(limit.alpha_due.min(limit.increase_due)))
    }

    fn on_timer(&mut self, now: Picoseconds) {
        self.expire(now);
    }

    fn probe(&self, _pair: Pair, show: &mut dyn FnMut(Probe)) {
        let limit = self.state.limit.as_ref();
        let rate = limit.map_or(self.link, |limit| limit.current);
        let alpha = limit.map_or(0, |limit| Fraction::of_units(limit.alpha).times(1_000));
        show(Probe { name: "rate (Mb/s)", value: rate / MBPS });
        show(Probe { name: "alpha (1/1000)", value: alpha });
    }

    fn save(&self) -> Saved {
        Saved::new(OF_REACTOR, VERSION, &self.state)
    }

    fn load(&mut self, saved: &Saved) -> Result<(), StateError> {
        let state: State = saved.state(OF_REACTOR, VERSION)?;
        let sane = |limit: &Limit| {
            (self.rates.min..=limit.target).contains(&limit.current)
                && limit.target <= self.link
                && limit.alpha <= Fraction::ONE.units()
                && limit.bytes < self.rates.byte_counter
        };
        if !state.limit.as_ref().is_none_or(sane) {
            return Err(StateError::Damaged(OF_REACTOR));
        }
        self.state = state;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_ib::{LinkRate, LinkSpeed, LinkWidth};

    /// 4x QDR: 32 Gb/s.
    const LINK: u64 = 32_000 * MBPS;

    fn built(set: &[(&Parameter, Value)]) -> Box<dyn Mechanism> {
        let mut values = Values::default();
        for (parameter, value) in set {
            values.set(parameter, value.clone()).unwrap();
        }
        build(&values).unwrap()
    }

    fn point(set: &[(&Parameter, Value)]) -> Box<dyn Reactor> {
        let link = LinkRate::of(LinkWidth::X4, LinkSpeed::Qdr);
        built(set).reactor(&Source { link, packet_max: 2074, paths: 1 }).unwrap()
    }

    fn becn(it: &mut dyn Reactor, now: u64) {
        it.on_feedback(Picoseconds(now), Pair(0), Feedback::Becn);
    }

    fn shown(it: &dyn Reactor) -> [u64; 2] {
        let mut values = Vec::new();
        it.probe(Pair(0), &mut |probe| values.push(probe.value));
        [values[0], values[1]]
    }

    fn rate(it: &dyn Reactor) -> u64 {
        shown(it)[0]
    }

    #[test]
    fn marks_become_likelier_from_kmin_to_kmax_and_certain_beyond() {
        let set = [
            (&KMIN, Value::Size(Bytes(10_000))),
            (&KMAX, Value::Size(Bytes(20_000))),
            (&PMAX, Value::Number(0.5)),
        ];
        let mut red = Red { kmin: Bytes(10_000), kmax: Bytes(20_000), pmax: Fraction::of(0.5) };
        let mut mark = |queued, draw| {
            let queue = OutputQueue { queued: Bytes(queued), starved: false };
            red.mark(Picoseconds(0), &queue, &Departing { bytes: 2074 }, draw)
        };
        assert!(!mark(10_000, 0));
        assert!(mark(20_001, u64::MAX));
        // At 15,000 B: 1/4. At 20,000 B: 1/2.
        assert!(mark(15_000, (1 << 62) - 1) && !mark(15_000, 1 << 62));
        assert!(mark(20_000, (1 << 63) - 1) && !mark(20_000, 1 << 63));
        let contradiction = [set[0].clone(), (&KMAX, Value::Size(Bytes(9_000)))];
        let mut values = Values::default();
        contradiction.iter().for_each(|(p, v)| values.set(p, v.clone()).unwrap());
        assert_eq!(
            build(&values).unwrap_err().to_string(),
            "kmin 10000 B is above kmax, 9000 B; lower it or raise kmax"
        );
    }

    #[test]
    fn a_destination_sends_one_notification_per_interval() {
        let mut it = built(&[]).notifier().unwrap();
        let mut at =
            |us, fecn| it.on_arrived(Picoseconds(us * US), &Arrived { fecn, reliable: true });
        assert_eq!(at(1, false), Notification::None);
        assert_eq!(at(2, true), Notification::Cnp);
        assert_eq!(at(51, true), Notification::None);
        assert_eq!(at(52, true), Notification::Cnp);
    }

    #[test]
    fn a_first_notification_halves_the_rate_and_the_gaps_follow() {
        let mut it = point(&[]);
        let sent = Sent { pair: Pair(0), bytes: 2_000, busy: Picoseconds(500_000) };
        it.on_sent(Picoseconds(0), &sent);
        assert_eq!(it.next_injection(Pair(0)), Picoseconds(0));
        becn(&mut *it, US);
        assert_eq!(shown(&*it), [16_000, 1_000]);
        it.on_sent(Picoseconds(US), &sent);
        assert_eq!(it.next_injection(Pair(0)), Picoseconds(2 * US));
    }

    #[test]
    fn recovery_is_fast_then_additive_then_hyper() {
        let mut it = point(&[(&BYTE_COUNTER, Value::Size(Bytes(2_000)))]);
        becn(&mut *it, 0);
        becn(&mut *it, 0);
        // 8 Gb/s now, 16 before: five steps halve the distance.
        for (step, mbps) in [(1, 12_000), (2, 14_000), (3, 15_000), (4, 15_500), (5, 15_750)] {
            it.on_timer(Picoseconds(step * 55 * US));
            assert_eq!(rate(&*it), mbps, "step {step}");
        }
        it.on_timer(Picoseconds(6 * 55 * US));
        assert_eq!(rate(&*it), (15_750 + 16_040) / 2);
        // Six packets of a byte counter each: five additive steps, then a hyper one.
        let now = Picoseconds(6 * 55 * US);
        let sent = Sent { pair: Pair(0), bytes: 2_000, busy: Picoseconds(500_000) };
        (0..5).for_each(|_| it.on_sent(now, &sent));
        assert_eq!(rate(&*it), 16_196);
        it.on_sent(now, &sent);
        assert_eq!(rate(&*it), 16_418);
    }

    #[test]
    fn alpha_falls_while_no_notification_comes_and_cuts_become_gentler() {
        let mut it = point(&[(&G, Value::Number(0.5)), (&RATE_AI, Value::Rate(BitsPerSecond(0)))]);
        becn(&mut *it, 0);
        it.on_timer(Picoseconds(2 * 55 * US));
        assert_eq!(shown(&*it), [28_000, 250]);
        becn(&mut *it, 2 * 55 * US);
        assert_eq!(shown(&*it), [24_500, 625]);
    }

    /// With a notification every T, k = the alpha timers that pass between two of them: alpha comes
    /// to the fixed point of a -> (1 - g)^(k + 1) a + g as a notification finds it raised.
    #[test]
    fn alpha_comes_to_its_closed_form() {
        for (g, every_us, k) in [(0.25, 30, 0), (0.25, 120, 2), (1.0 / 16.0, 60, 1)] {
            let mut it = point(&[(&G, Value::Number(g))]);
            let mut raised = 0.0;
            for turn in 0..200u64 {
                let now = turn * every_us * US;
                it.on_timer(Picoseconds(now));
                becn(&mut *it, now);
                raised = shown(&*it)[1] as f64 / 1000.0;
            }
            let kept = f64::powi(1.0 - g, k + 1);
            let closed = g / (1.0 - kept);
            assert!((raised - closed).abs() < 2e-3, "g {g} every {every_us} us: {raised} {closed}");
            // After k quiet timers: (1 - g)^k of it.
            let last = 199 * every_us * US;
            for quiet in 1..=5 {
                it.on_timer(Picoseconds(last + quiet * 55 * US));
                let alpha = shown(&*it)[1] as f64 / 1000.0;
                let expected = closed * f64::powi(1.0 - g, quiet as i32);
                assert!((alpha - expected).abs() < 2e-3, "after {quiet}: {alpha} {expected}");
            }
        }
    }

    #[test]
    fn the_limit_is_lifted_at_the_rate_of_the_link_and_no_timer_runs_on() {
        let mut it = point(&[]);
        becn(&mut *it, 0);
        let mut steps = 0;
        while let Some(due) = it.next_timer() {
            it.on_timer(due);
            steps += 1;
            assert!(steps < 100);
        }
        // Half of 32 Gb/s is regained to the bit in 34 halvings.
        assert_eq!((rate(&*it), steps), (LINK / MBPS, 34));
    }

    #[test]
    fn no_cut_goes_below_the_least_rate() {
        let mut it = point(&[]);
        (0..40).for_each(|_| becn(&mut *it, 0));
        assert_eq!(rate(&*it), 100);
        let saved = it.save();
        let mut faster = point(&[(&RATE_MIN, Value::Rate(BitsPerSecond(200 * MBPS)))]);
        assert_eq!(faster.load(&saved), Err(StateError::Damaged(OF_REACTOR)));
    }
}
