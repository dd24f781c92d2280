//! Closed forms by hand.

use super::*;
use crate::marker::{Departing, OutputQueue};
use crate::notifier::{Arrived, Notification};
use crate::reactor::{Feedback, Pair, Sent};
use clearlane_ib::{LinkRate, LinkSpeed, LinkWidth, Saved, StateError};

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
    let mut at = |us, fecn| it.on_arrived(Picoseconds(us * US), &Arrived { fecn, reliable: true });
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
    assert_eq!(faster.load(&saved), Err(StateError::Damaged("dcqcn reactor")));
}

fn mbps(rate: u64) -> Value {
    Value::Rate(BitsPerSecond(rate * MBPS))
}

/// Alpha never changes: not by its timer, nor by notifications, as it begins with 1.
const STILL: (&Parameter, Value) = (&G, Value::Number(0.0));

#[test]
fn the_first_cut_is_by_the_initial_alpha_which_the_second_notification_raises() {
    let mut it = point(&[(&ALPHA_INITIAL, Value::Number(0.25)), (&G, Value::Number(0.5))]);
    becn(&mut *it, 0);
    // 32 Gb/s (1 - 0.25 / 2).
    assert_eq!(shown(&*it), [28_000, 250]);
    becn(&mut *it, US);
    // 28 Gb/s (1 - 0.25 / 2); 0.25 (1 - 0.5) + 0.5.
    assert_eq!(shown(&*it), [24_500, 625]);
}

#[test]
fn a_cut_is_its_share_of_alpha_and_leaves_what_it_must() {
    let after_two = |set: &[(&Parameter, Value)]| {
        let mut it = point(set);
        becn(&mut *it, 0);
        let first = rate(&*it);
        becn(&mut *it, 0);
        (first, rate(&*it))
    };
    assert_eq!(after_two(&[STILL, (&CUT, Value::Number(0.25))]), (24_000, 18_000));
    assert_eq!(after_two(&[STILL, (&CUT, Value::Number(0.0))]), (32_000, 32_000));
    // All of it is cut away, down to rate_min.
    assert_eq!(after_two(&[STILL, (&CUT, Value::Number(1.0))]), (100, 100));
    assert_eq!(after_two(&[STILL, (&KEPT_MIN, Value::Number(0.75))]), (24_000, 18_000));
    // Less than half is cut in any case, half of it by alpha 1.
    assert_eq!(after_two(&[STILL, (&KEPT_MIN, Value::Number(0.25))]), (16_000, 8_000));
    assert_eq!(after_two(&[STILL, (&KEPT_MIN, Value::Number(1.0))]), (32_000, 32_000));
}

#[test]
fn notifications_within_the_interval_make_one_cut_at_its_end() {
    let interval = (&CUT_INTERVAL, Value::Time(Picoseconds(10 * US)));
    let mut it = point(&[STILL, interval.clone()]);
    becn(&mut *it, 0);
    assert_eq!((rate(&*it), it.next_timer()), (16_000, Some(Picoseconds(55 * US))));
    becn(&mut *it, 3 * US);
    becn(&mut *it, 5 * US);
    assert_eq!((rate(&*it), it.next_timer()), (16_000, Some(Picoseconds(10 * US))));
    it.on_timer(Picoseconds(10 * US));
    assert_eq!((rate(&*it), it.next_timer()), (8_000, Some(Picoseconds(60 * US))));
    becn(&mut *it, 19 * US);
    // What was due is done first: a cut at 20 us, and another at 30 us.
    becn(&mut *it, 25 * US);
    assert_eq!(rate(&*it), 4_000);
    it.on_timer(Picoseconds(30 * US));
    assert_eq!(rate(&*it), 2_000);
    // Long after the interval it is at once.
    becn(&mut *it, 50 * US);
    assert_eq!(rate(&*it), 1_000);
}

#[test]
fn a_cut_waits_for_its_interval_even_where_the_limit_was_lifted() {
    let mut it = point(&[
        STILL,
        (&CUT_INTERVAL, Value::Time(Picoseconds(100 * US))),
        (&INCREASE_TIMER, Value::Time(Picoseconds(US))),
    ]);
    becn(&mut *it, 0);
    it.on_timer(Picoseconds(50 * US));
    assert!(it.is_unlimited(Picoseconds(50 * US), Pair(0)));
    becn(&mut *it, 50 * US);
    assert_eq!((rate(&*it), it.next_timer()), (32_000, Some(Picoseconds(100 * US))));
    assert!(!it.is_unlimited(Picoseconds(50 * US), Pair(0)));
    let saved = it.save();
    it.on_timer(Picoseconds(100 * US));
    assert_eq!(shown(&*it), [16_000, 1_000]);
    // Without an interval there is nothing to wait for.
    assert_eq!(point(&[]).load(&saved), Err(StateError::Damaged("dcqcn reactor")));
}

#[test]
fn a_first_notification_sets_the_rate_it_is_told_and_later_ones_cut() {
    let mut it = point(&[STILL, (&RATE_FIRST, mbps(10_000))]);
    becn(&mut *it, 0);
    assert_eq!(shown(&*it), [10_000, 1_000]);
    becn(&mut *it, US);
    assert_eq!(rate(&*it), 5_000);
    // Halfway to 10 Gb/s, which was the target too.
    it.on_timer(Picoseconds(56 * US));
    assert_eq!(rate(&*it), 7_500);
    // More than the link has is what the link has.
    let mut it = point(&[STILL, (&RATE_FIRST, mbps(1_000_000))]);
    becn(&mut *it, 0);
    assert_eq!(rate(&*it), 32_000);
    becn(&mut *it, US);
    assert_eq!(rate(&*it), 16_000);
}

/// The rate after a cut of 24 Gb/s, raised from 16 Gb/s by the timer or by bytes, and one step up.
fn recovered(clamp: &'static str, by_bytes: bool) -> u64 {
    let counter = if by_bytes { 2_000 } else { 10_000_000 };
    let mut it = point(&[
        STILL,
        (&CLAMP_TARGET, Value::Word(clamp)),
        (&BYTE_COUNTER, Value::Size(Bytes(counter))),
    ]);
    becn(&mut *it, 0);
    let now = if by_bytes { US } else { 55 * US };
    it.on_sent(Picoseconds(now), &Sent { pair: Pair(0), bytes: 2_000, busy: Picoseconds(500_000) });
    assert_eq!(rate(&*it), 24_000);
    becn(&mut *it, now);
    assert_eq!(rate(&*it), 12_000);
    it.on_timer(Picoseconds(now + 55 * US));
    rate(&*it)
}

#[test]
fn the_target_is_clamped_at_every_cut_or_after_a_rise() {
    // Halfway from 12 Gb/s to 24 Gb/s, or to the 32 Gb/s of before the first cut.
    assert_eq!([recovered(ALWAYS, false), recovered(ALWAYS, true)], [18_000, 18_000]);
    assert_eq!([recovered(AFTER_RISE, false), recovered(AFTER_RISE, true)], [18_000, 18_000]);
    assert_eq!([recovered(AFTER_BYTES, false), recovered(AFTER_BYTES, true)], [22_000, 18_000]);
    // Without a rise in between: two cuts to 8 Gb/s, then halfway to 16 or to 32 Gb/s.
    for (clamp, mbps) in [(ALWAYS, 12_000), (AFTER_RISE, 20_000), (AFTER_BYTES, 20_000)] {
        let mut it = point(&[STILL, (&CLAMP_TARGET, Value::Word(clamp))]);
        becn(&mut *it, 0);
        becn(&mut *it, 0);
        it.on_timer(Picoseconds(55 * US));
        assert_eq!(rate(&*it), mbps, "{clamp}");
    }
}

#[test]
fn a_limit_begins_and_ends_at_the_greatest_rate() {
    let mut it = point(&[STILL, (&RATE_MAX, mbps(20_000))]);
    becn(&mut *it, 0);
    assert_eq!(rate(&*it), 10_000);
    it.on_timer(Picoseconds(55 * US));
    assert_eq!(rate(&*it), 15_000);
    while let Some(due) = it.next_timer() {
        it.on_timer(due);
        assert!(rate(&*it) <= 20_000 || it.is_unlimited(due, Pair(0)));
    }
    assert_eq!(rate(&*it), 32_000);
}

/// A state as it is saved: the limit, the next injection, when cuts begin, whether one waits.
type Forged = (Option<(u64, u64, u64, u64, (u64, u64), u64, u64)>, u64, u64, bool);

#[test]
fn a_state_that_these_rates_cannot_have_led_to_is_refused() {
    let gbps = 1_000 * MBPS;
    let limit = |current, target| Some((current, target, 1 << 32, 0, (0, 0), US, US));
    let load = |set: &[(&Parameter, Value)], state: Forged| {
        let refused = point(set).load(&Saved::new("dcqcn reactor", 2, &state));
        assert!(matches!(refused, Ok(()) | Err(StateError::Damaged("dcqcn reactor"))));
        refused.is_ok()
    };
    let waits = (&CUT_INTERVAL, Value::Time(Picoseconds(10 * US)));
    assert!(load(&[], (limit(16 * gbps, 32 * gbps), 0, 0, false)));
    assert!(!load(&[], (limit(16 * gbps, 33 * gbps), 0, 0, false)));
    assert!(!load(&[], (limit(17 * gbps, 16 * gbps), 0, 0, false)));
    assert!(!load(&[(&RATE_MAX, mbps(20_000))], (limit(16 * gbps, 32 * gbps), 0, 0, false)));
    assert!(!load(&[], (None, 0, 10 * US, false)));
    assert!(!load(&[], (None, 0, 0, true)));
    assert!(load(std::slice::from_ref(&waits), (None, 0, 10 * US, true)));
    assert!(!load(std::slice::from_ref(&waits), (None, 0, 9 * US, true)));
    let old = Saved::new("dcqcn reactor", 1, &(None::<u64>, 0u64));
    assert!(matches!(point(&[]).load(&old), Err(StateError::Foreign { .. })));
}
