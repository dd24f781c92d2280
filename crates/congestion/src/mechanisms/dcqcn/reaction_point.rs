//! At a source: rates are cut and raised again.

use crate::mechanisms::fraction::Fraction;
use crate::mechanisms::injection_rate;
use crate::reactor::{Feedback, Pair, Probe, Reactor, Sent};
use clearlane_ib::{Picoseconds, Saved, StateError};
use serde::{Deserialize, Serialize};

const OF_REACTOR: &str = "dcqcn reactor";
/// 1 knew no least time between cuts.
const VERSION: u16 = 2;
const MBPS: u64 = 1_000_000;

/// How rates change; times in picoseconds, rates in bits per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    pub(super) g: Fraction,
    pub(super) alpha_initial: Fraction,
    pub(super) cut: Fraction,
    pub(super) kept_min: Fraction,
    pub(super) cut_interval: u64,
    pub(super) clamp: Clamp,
    pub(super) alpha_timer: u64,
    pub(super) increase_timer: u64,
    pub(super) byte_counter: u64,
    pub(super) fast_recovery: u64,
    pub(super) ai: u64,
    pub(super) hai: u64,
    /// What the first notification sets; 0 if it cuts like any other.
    pub(super) first: u64,
    pub(super) min: u64,
    /// Where a limit is lifted; 0 for the rate of the link.
    pub(super) max: u64,
}

/// When a cut makes the rate before it the target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Clamp {
    /// At every cut.
    Always,
    /// If the rate has risen since the last one.
    AfterRise,
    /// If it has risen by bytes since the last one.
    AfterBytes,
}

/// The reaction point of a queue pair.
pub(super) struct ReactionPoint {
    rates: Rates,
    /// Rate of the link.
    link: u64,
    /// Where a limit is lifted.
    top: u64,
    state: State,
}

#[derive(Default, Serialize, Deserialize)]
struct State {
    /// Nothing while the queue pair sends as fast as the link.
    limit: Option<Limit>,
    /// Before that no packet leaves.
    next_injection: u64,
    /// Before that nothing is cut; 0 where cuts need no interval.
    cut_from: u64,
    /// Whether a notification waits for that.
    cut_waits: bool,
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
    /// Steps of the timer and of the byte counter since the last cut.
    steps: (u64, u64),
    alpha_due: u64,
    increase_due: u64,
}

impl ReactionPoint {
    pub(super) fn new(rates: Rates, link: u64) -> Self {
        let top = if rates.max == 0 { link } else { rates.max.min(link) };
        let rates = Rates { min: rates.min.min(top), ..rates };
        ReactionPoint { rates, link, top, state: State::default() }
    }

    /// A rate after a cut: R_C (1 - alpha / 2) in the paper.
    fn cut_of(&self, rate: u64, alpha: u64) -> u64 {
        let part = Fraction::of_units(self.rates.cut.times(alpha));
        let kept = part.complement().max(self.rates.kept_min);
        kept.times(rate).max(self.rates.min)
    }

    /// The rate is cut, and both counters and the timer of increases begin anew.
    fn cut(&mut self, at: u64) {
        let (current, target, alpha, alpha_due) = match &self.state.limit {
            None => {
                let alpha = self.rates.alpha_initial.units();
                let (current, target) = match self.rates.first {
                    0 => (self.cut_of(self.top, alpha), self.top),
                    first => {
                        let set = first.clamp(self.rates.min, self.top);
                        (set, set)
                    }
                };
                (current, target, alpha, at.saturating_add(self.rates.alpha_timer))
            }
            Some(limit) => {
                let clamps = match self.rates.clamp {
                    Clamp::Always => true,
                    Clamp::AfterRise => limit.steps != (0, 0),
                    Clamp::AfterBytes => limit.steps.1 > 0,
                };
                let target = if clamps { limit.current } else { limit.target };
                let current = self.cut_of(limit.current, limit.alpha);
                (current, target, limit.alpha, limit.alpha_due)
            }
        };
        let increase_due = at.saturating_add(self.rates.increase_timer);
        self.state.limit = Some(Limit {
            current,
            target,
            alpha,
            bytes: 0,
            steps: (0, 0),
            alpha_due,
            increase_due,
        });
        if self.rates.cut_interval > 0 {
            self.state.cut_from = at.saturating_add(self.rates.cut_interval);
        }
    }

    /// A notification: a cut, now or when the interval since the last one is over; alpha rises, but
    /// not by the first one, which is where it begins.
    fn notify(&mut self, now: u64) {
        let is_first = self.state.limit.is_none();
        if now < self.state.cut_from {
            self.state.cut_waits = true;
        } else {
            self.cut(now);
        }
        if let Some(limit) = &mut self.state.limit
            && !is_first
        {
            let kept = self.rates.g.complement().times(limit.alpha);
            limit.alpha = kept + self.rates.g.units();
            limit.alpha_due = now.saturating_add(self.rates.alpha_timer);
        }
    }

    /// One step up after the counters have moved; lifts the limit at the top.
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
        limit.target = limit.target.min(self.top);
        // Rounded up, or the last bit per second would never be regained.
        limit.current += (limit.target - limit.current).div_ceil(2);
        if limit.current >= self.top {
            self.state.limit = None;
        }
    }

    /// All timers up to `now`; what is due with a cut that waits goes before it.
    fn expire(&mut self, now: u64) {
        loop {
            let cut = Some(self.state.cut_from).filter(|at| self.state.cut_waits && *at <= now);
            let until = cut.unwrap_or(now);
            if let Some(limit) = &mut self.state.limit {
                if limit.alpha_due <= until {
                    limit.alpha = self.rates.g.complement().times(limit.alpha);
                    limit.alpha_due = limit.alpha_due.saturating_add(self.rates.alpha_timer);
                    continue;
                }
                if limit.increase_due <= until {
                    let next = limit.increase_due.saturating_add(self.rates.increase_timer);
                    limit.increase_due = next;
                    limit.steps.0 = limit.steps.0.saturating_add(1);
                    self.increase();
                    continue;
                }
            }
            let Some(at) = cut else { return };
            self.state.cut_waits = false;
            self.cut(at);
        }
    }
}

impl Reactor for ReactionPoint {
    fn on_sent(&mut self, now: Picoseconds, sent: &Sent) {
        self.expire(now.0);
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
            self.expire(now.0);
            self.notify(now.0);
        }
    }

    fn next_injection(&self, _pair: Pair) -> Picoseconds {
        Picoseconds(self.state.next_injection)
    }

    fn is_unlimited(&self, now: Picoseconds, _pair: Pair) -> bool {
        let State { limit, next_injection, cut_waits, .. } = &self.state;
        limit.is_none() && !cut_waits && *next_injection <= now.0
    }

    fn next_timer(&self) -> Option<Picoseconds> {
        let limit = self.state.limit.as_ref();
        let of_limit = limit.map(|limit| limit.alpha_due.min(limit.increase_due));
        let of_cut = self.state.cut_waits.then_some(self.state.cut_from);
        of_limit.into_iter().chain(of_cut).min().map(Picoseconds)
    }

    fn on_timer(&mut self, now: Picoseconds) {
        self.expire(now.0);
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
                && limit.target <= self.top
                && limit.alpha <= Fraction::ONE.units()
                && limit.bytes < self.rates.byte_counter
        };
        // Without an interval nothing is ever put off.
        let cuts = self.rates.cut_interval > 0 || (state.cut_from, state.cut_waits) == (0, false);
        // A cut is put off only once there was one.
        let waits = !state.cut_waits || state.cut_from >= self.rates.cut_interval;
        if !(state.limit.as_ref().is_none_or(sane) && cuts && waits) {
            return Err(StateError::Damaged(OF_REACTOR));
        }
        self.state = state;
        Ok(())
    }
}
