//! The reactor: CCTI up on BECN, down on the CCTI_Timer, and the injection rate delay between
//! packets.

use super::congestion_control_table::CongestionControlTable;
use crate::reactor::{Feedback, Pair, Probe, Reactor, Sent};
use clearlane_ib::{Picoseconds, Saved, StateError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Settings of channel adapters on a service level (IBA vol. 1, A10.4.3.8, CACongestionSetting).
#[derive(PartialEq, Eq, Debug)]
pub(super) struct ThrottleSettings {
    pub(super) table: CongestionControlTable,
    pub(super) ccti_increase: u8,
    pub(super) ccti_limit: u8,
    pub(super) ccti_min: u8,
    /// Period of the CCTI_Timer; at least 1 ps.
    pub(super) period: Picoseconds,
    pub(super) timer: Timer,
    /// CCTI from which on a BECN is logged; 0 logs none.
    pub(super) trigger_threshold: u8,
    /// Whether all queue pairs share one CCTI.
    pub(super) shared: bool,
}

/// When the CCTI_Timer expires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Timer {
    /// For all queue pairs of the service level together, at multiples of its period.
    Cyclic,
    /// For each CCTI a period after its last BECN, and then every period.
    Restart,
}

/// The reactor of a port's service level.
pub(super) struct Throttle {
    settings: Arc<ThrottleSettings>,
    state: State,
}

#[derive(Default, Serialize, Deserialize)]
struct State {
    /// By queue pair, or a single one if they share it. Those not heard of yet are left out.
    limiters: Vec<Limiter>,
    /// Expirations to come and whose they are. A cyclic timer has one at most, that of limiter 0.
    expirations: BTreeSet<(u64, u32)>,
}

/// A CCTI and what follows from it.
#[derive(Clone, Serialize, Deserialize)]
struct Limiter {
    ccti: u8,
    /// Before that no packet leaves.
    next_injection: u64,
    /// Its place in the expirations; 0 if it has none.
    expires: u64,
    /// BECNs at or above the trigger threshold.
    logged: u64,
}

const OF: &str = "iba-cc reactor";
const VERSION: u16 = 1;

impl Throttle {
    /// One whose CCTIs are all at their least.
    pub(super) fn new(settings: Arc<ThrottleSettings>) -> Self {
        Throttle { settings, state: State::default() }
    }

    fn index(&self, pair: Pair) -> usize {
        if self.settings.shared { 0 } else { pair.0 as usize }
    }

    fn ccti(&self, pair: Pair) -> u8 {
        let limiter = self.state.limiters.get(self.index(pair));
        limiter.map_or(self.settings.ccti_min, |limiter| limiter.ccti)
    }

    fn limiter(&mut self, index: usize) -> &mut Limiter {
        let ccti = self.settings.ccti_min;
        let fresh = Limiter { ccti, next_injection: 0, expires: 0, logged: 0 };
        let limiters = &mut self.state.limiters;
        if limiters.len() <= index {
            limiters.resize(index + 1, fresh);
        }
        &mut limiters[index]
    }

    /// All expirations up to `now`.
    fn expire(&mut self, now: Picoseconds) {
        while let Some(&(due, index)) = self.state.expirations.first() {
            if due > now.0 {
                break;
            }
            self.state.expirations.pop_first();
            let whose = match self.settings.timer {
                Timer::Cyclic => 0..self.state.limiters.len(),
                Timer::Restart => index as usize..index as usize + 1,
            };
            let min = self.settings.ccti_min;
            let next = due.saturating_add(self.settings.period.0);
            let mut again = false;
            for limiter in &mut self.state.limiters[whose] {
                // IBA vol. 1, A10.2.2.1: down to CCTI_Min and no further.
                limiter.ccti = limiter.ccti.saturating_sub(1).max(min);
                let raised = limiter.ccti > min;
                limiter.expires = if raised { next } else { 0 };
                again |= raised;
            }
            if again {
                self.state.expirations.insert((next, index));
            }
        }
    }

    /// Has the timer run after a BECN at `now`.
    fn arm(&mut self, now: Picoseconds, index: usize) {
        let period = self.settings.period.0;
        match self.settings.timer {
            Timer::Cyclic => {
                if self.state.expirations.is_empty() {
                    let next = (now.0 / period).saturating_add(1).saturating_mul(period);
                    self.state.expirations.insert((next, 0));
                }
            }
            Timer::Restart => {
                let next = now.0.saturating_add(period);
                let last = std::mem::replace(&mut self.limiter(index).expires, next);
                self.state.expirations.remove(&(last, index as u32));
                self.state.expirations.insert((next, index as u32));
            }
        }
    }

    /// Whether a state is one that these settings could have led to.
    fn is_sane(&self, state: &State) -> bool {
        let settings = &self.settings;
        let range = settings.ccti_min..=settings.ccti_limit;
        let limiters = &state.limiters;
        limiters.iter().all(|limiter| range.contains(&limiter.ccti))
            && state.expirations.iter().all(|(_, index)| (*index as usize) < limiters.len())
            && (settings.timer == Timer::Restart || state.expirations.len() <= 1)
    }
}

impl Reactor for Throttle {
    fn on_sent(&mut self, now: Picoseconds, sent: &Sent) {
        // The delay is that of the CCTI as the packet leaves; a later BECN does not stretch it.
        let delay = self.settings.table.delay(self.ccti(sent.pair), sent.busy);
        if delay.0 > 0 {
            let next = now.0.saturating_add(sent.busy.0).saturating_add(delay.0);
            let index = self.index(sent.pair);
            self.limiter(index).next_injection = next;
        }
    }

    fn on_feedback(&mut self, now: Picoseconds, pair: Pair, feedback: Feedback) {
        if feedback != Feedback::Becn {
            return;
        }
        // A timer due now goes first, whichever of the two is told first.
        self.expire(now);
        let index = self.index(pair);
        let settings = Arc::clone(&self.settings);
        let limiter = self.limiter(index);
        limiter.ccti = limiter.ccti.saturating_add(settings.ccti_increase).min(settings.ccti_limit);
        if settings.trigger_threshold > 0 && limiter.ccti >= settings.trigger_threshold {
            limiter.logged = limiter.logged.saturating_add(1);
        }
        if limiter.ccti > settings.ccti_min {
            self.arm(now, index);
        }
    }

    fn next_injection(&self, pair: Pair) -> Picoseconds {
        let limiter = self.state.limiters.get(self.index(pair));
        Picoseconds(limiter.map_or(0, |limiter| limiter.next_injection))
    }

    fn is_unlimited(&self, now: Picoseconds, pair: Pair) -> bool {
        // At CCTI_Min only BECN changes a CCTI. The longest packet time has a delay if any has one.
        !self.settings.shared
            && self.next_injection(pair) <= now
            && self.ccti(pair) == self.settings.ccti_min
            && self.settings.table.delay(self.settings.ccti_min, Picoseconds(u64::MAX)).0 == 0
    }

    fn next_timer(&self) -> Option<Picoseconds> {
        self.state.expirations.first().map(|(due, _)| Picoseconds(*due))
    }

    fn on_timer(&mut self, now: Picoseconds) {
        self.expire(now);
    }

    fn probe(&self, pair: Pair, show: &mut dyn FnMut(Probe)) {
        let limiter = self.state.limiters.get(self.index(pair));
        show(Probe { name: "CCTI", value: u64::from(self.ccti(pair)) });
        show(Probe { name: "logged BECNs", value: limiter.map_or(0, |limiter| limiter.logged) });
    }

    fn save(&self) -> Saved {
        Saved::new(OF, VERSION, &self.state)
    }

    fn load(&mut self, saved: &Saved) -> Result<(), StateError> {
        let state: State = saved.state(OF, VERSION)?;
        if !self.is_sane(&state) {
            return Err(StateError::Damaged(OF));
        }
        self.state = state;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet time of 2 us.
    const BUSY: Picoseconds = Picoseconds(2_000_000);
    /// 150 times 1.024 us.
    const PERIOD: u64 = 153_600_000;
    const FIRST: Pair = Pair(0);
    const SECOND: Pair = Pair(1);

    fn settings() -> ThrottleSettings {
        ThrottleSettings {
            table: CongestionControlTable::linear(),
            ccti_increase: 1,
            ccti_limit: 127,
            ccti_min: 0,
            period: Picoseconds(PERIOD),
            timer: Timer::Cyclic,
            trigger_threshold: 0,
            shared: false,
        }
    }

    fn throttle(settings: ThrottleSettings) -> Throttle {
        Throttle::new(Arc::new(settings))
    }

    fn becn(it: &mut Throttle, now: u64, pair: Pair) {
        it.on_feedback(Picoseconds(now), pair, Feedback::Becn);
    }

    /// Packet times from one packet to the next that may leave.
    fn spacing(it: &mut Throttle, now: u64, pair: Pair) -> u64 {
        it.on_sent(Picoseconds(now), &Sent { pair, bytes: 2074, busy: BUSY });
        it.next_injection(pair).0.saturating_sub(now).div_ceil(BUSY.0)
    }

    #[test]
    fn ccti_0_1_and_127_leave_all_half_and_a_128th_of_the_link() {
        let mut it = throttle(settings());
        assert_eq!(spacing(&mut it, 500, FIRST), 0);
        becn(&mut it, 1_000, FIRST);
        assert_eq!(spacing(&mut it, 1_000, FIRST), 2);
        assert_eq!(spacing(&mut it, 1_000, SECOND), 0);
        (0..200).for_each(|_| becn(&mut it, 2_000, FIRST));
        assert_eq!(it.ccti(FIRST), 127);
        assert_eq!(spacing(&mut it, 2_000, FIRST), 128);
    }

    #[test]
    fn ccti_127_is_forgotten_in_127_periods_19_5_ms() {
        let mut it = throttle(settings());
        (0..127).for_each(|_| becn(&mut it, 0, FIRST));
        let mut steps = 0;
        while let Some(due) = it.next_timer() {
            steps += 1;
            assert_eq!(due.0, steps * PERIOD);
            it.on_timer(due);
            assert_eq!(u64::from(it.ccti(FIRST)), 127 - steps);
        }
        assert_eq!((steps, 127 * PERIOD), (127, 19_507_200_000));
    }

    #[test]
    fn the_cyclic_timer_lowers_all_pairs_on_its_own_grid() {
        let mut it = throttle(settings());
        becn(&mut it, PERIOD * 5 / 2, FIRST);
        becn(&mut it, PERIOD * 14 / 5, SECOND);
        becn(&mut it, PERIOD * 14 / 5, SECOND);
        assert_eq!(it.next_timer(), Some(Picoseconds(PERIOD * 3)));
        it.on_timer(Picoseconds(PERIOD * 3));
        assert_eq!((it.ccti(FIRST), it.ccti(SECOND)), (0, 1));
        // Told late, it makes up for what it missed.
        it.on_timer(Picoseconds(PERIOD * 9));
        assert_eq!((it.ccti(SECOND), it.next_timer()), (0, None));
    }

    #[test]
    fn a_restarted_timer_waits_a_period_after_the_last_becn_of_the_pair() {
        let mut it = throttle(ThrottleSettings { timer: Timer::Restart, ..settings() });
        becn(&mut it, 10, FIRST);
        becn(&mut it, 20, SECOND);
        becn(&mut it, 30, FIRST);
        assert_eq!(it.next_timer(), Some(Picoseconds(PERIOD + 20)));
        it.on_timer(Picoseconds(PERIOD + 20));
        assert_eq!((it.ccti(FIRST), it.ccti(SECOND)), (2, 0));
        it.on_timer(Picoseconds(PERIOD + 30));
        assert_eq!(it.next_timer(), Some(Picoseconds(2 * PERIOD + 30)));
        it.on_timer(Picoseconds(2 * PERIOD + 30));
        assert_eq!((it.ccti(FIRST), it.next_timer()), (0, None));
    }

    #[test]
    fn a_becn_at_the_instant_of_the_timer_counts_the_same_in_either_order() {
        for timer in [Timer::Cyclic, Timer::Restart] {
            let ends = [true, false].map(|timer_first| {
                let mut it = throttle(ThrottleSettings { timer, ..settings() });
                becn(&mut it, 0, FIRST);
                if timer_first {
                    it.on_timer(Picoseconds(PERIOD));
                }
                becn(&mut it, PERIOD, FIRST);
                becn(&mut it, PERIOD, SECOND);
                it.on_timer(Picoseconds(PERIOD));
                it.save()
            });
            assert_eq!(ends[0], ends[1], "{timer:?}");
        }
    }

    #[test]
    fn a_shared_ccti_and_its_delay_hold_for_all_pairs() {
        let mut it = throttle(ThrottleSettings { shared: true, ..settings() });
        becn(&mut it, 1_000, SECOND);
        assert_eq!(spacing(&mut it, 1_000, FIRST), 2);
        assert_eq!(it.next_injection(SECOND), it.next_injection(FIRST));
    }

    #[test]
    fn ccti_never_falls_below_its_minimum_which_delays_from_the_start() {
        let mut it = throttle(ThrottleSettings { ccti_min: 3, ccti_limit: 5, ..settings() });
        assert_eq!(spacing(&mut it, 1_000, FIRST), 4);
        (0..9).for_each(|_| becn(&mut it, 2_000, FIRST));
        assert_eq!(it.ccti(FIRST), 5);
        it.on_timer(Picoseconds(9 * PERIOD));
        assert_eq!((it.ccti(FIRST), it.next_timer()), (3, None));
    }

    #[test]
    fn becns_from_the_trigger_threshold_on_are_logged() {
        let mut it = throttle(ThrottleSettings { trigger_threshold: 3, ..settings() });
        (0..5).for_each(|_| becn(&mut it, 0, FIRST));
        let mut shown = Vec::new();
        it.probe(FIRST, &mut |probe| shown.push((probe.name, probe.value)));
        assert_eq!(shown, [("CCTI", 5), ("logged BECNs", 3)]);
    }

    #[test]
    fn a_state_that_these_settings_cannot_have_led_to_is_refused() {
        let mut it = throttle(settings());
        (0..9).for_each(|_| becn(&mut it, 0, FIRST));
        let mut narrow = throttle(ThrottleSettings { ccti_limit: 8, ..settings() });
        assert_eq!(narrow.load(&it.save()), Err(StateError::Damaged(OF)));
        let mut same = throttle(settings());
        same.load(&it.save()).unwrap();
        assert_eq!((same.ccti(FIRST), same.next_timer()), (9, it.next_timer()));
    }

    #[test]
    fn a_becn_raises_ccti_by_its_increase_up_to_the_limit() {
        let mut it = throttle(ThrottleSettings { ccti_increase: 4, ccti_limit: 10, ..settings() });
        for ccti in [4, 8, 10, 10] {
            becn(&mut it, 0, FIRST);
            assert_eq!(it.ccti(FIRST), ccti);
        }
    }

    #[test]
    fn a_cyclic_timer_that_runs_for_another_pair_leaves_the_minimum_alone() {
        let mut it = throttle(ThrottleSettings { ccti_min: 3, ..settings() });
        becn(&mut it, 0, FIRST);
        (0..3).for_each(|_| becn(&mut it, 0, SECOND));
        for (period, second) in [(1, 5), (2, 4), (3, 3)] {
            it.on_timer(Picoseconds(period * PERIOD));
            assert_eq!((it.ccti(FIRST), it.ccti(SECOND)), (3, second), "period {period}");
        }
    }
}
