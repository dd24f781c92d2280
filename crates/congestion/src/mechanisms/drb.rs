//! What it is: distributed routing balancing on InfiniBand. Sources do not wait: BECN makes them
//! open further paths to the destination, step by step; messages choose among the open ones in
//! inverse proportion to the notifications of each; quiet closes them again, one by one.
//!
//! Source: Franco, Garcés, Luque, "A new method to make communication latency uniform: distributed
//! routing balancing", ICS 1999; on InfiniBand, with the marks and notifications of its congestion
//! control in place of measured latencies: VIII Workshop de Procesamiento Distribuido y Paralelo,
//! CACIC 2007, p. 1160 ff.
//! What we do differently: the paths are the LID offsets that the subnet manager laid out, in their
//! order; the second paper gives no formulas, those here are in [`ENTRY`]'s notes.
//! Parameters: max_paths, t_open, unit, ccti_timer, threshold, marking_rate, packet_size,
//! victim_mask, becn.

use super::iba_cc::{self, FecnNotifier, MarkerSettings};
use crate::marker::Marker;
use crate::mechanism::{Decides, Entry, Mechanism, Notifies, Output, Preset, Scope, Source};
use crate::notifier::Notifier;
use crate::parameter::{Parameter, ParameterError, Range, Value, Values};
use crate::reactor::{Feedback, OPEN_PATHS, Pair, Path, Probe, Reactor, Stripes};
use clearlane_ib::{Bytes, Picoseconds, Saved, StateError};
use serde::{Deserialize, Serialize};

/// How many paths.
pub static MAX_PATHS: Parameter = Parameter {
    name: "max_paths",
    summary: "paths that may be open at a time, path 0 included; no more than the subnet has",
    default: Value::Integer(4),
    range: Range::Integer(1, 128),
};

/// How fast paths open.
pub static T_OPEN: Parameter = Parameter {
    name: "t_open",
    summary: "least time between two openings: a round trip, so that one burst opens one path",
    default: Value::Time(Picoseconds(10_000_000)),
    range: Range::Time(Picoseconds(0), Picoseconds(1_000_000_000_000)),
};

/// What chooses a path.
pub static UNIT: Parameter = Parameter {
    name: "unit",
    summary: "what chooses a path: a message as a whole (message), or each message is divided \
              over all open ones (stripe)",
    default: Value::Word("message"),
    range: Range::Word(&["message", "stripe"]),
};

/// Threshold, as that of `iba-cc` with a default of its own.
pub static THRESHOLD: Parameter = Parameter {
    name: "threshold",
    summary: iba_cc::THRESHOLD.summary,
    default: Value::Integer(8),
    range: Range::Integer(0, 15),
};

/// Marking_Rate, as that of `iba-cc` with a default of its own.
pub static MARKING_RATE: Parameter = Parameter {
    name: "marking_rate",
    summary: iba_cc::MARKING_RATE.summary,
    default: Value::Integer(0),
    range: Range::Integer(0, 65_535),
};

/// CCTI_Timer, as that of `iba-cc` with a default of its own.
pub static CCTI_TIMER: Parameter = Parameter {
    name: "ccti_timer",
    summary: "time without BECN after which a path closes, in units of 1.024 us",
    default: Value::Integer(1_500),
    range: Range::Integer(1, 65_535),
};

/// `drb`.
pub static ENTRY: Entry = Entry {
    name: "drb",
    summary: "distributed routing balancing: a BECN opens more paths to the destination, a time \
              without BECN closes them",
    reference: "Franco, Garcés, Luque, Distributed routing balancing, ICS 1999; on InfiniBand: \
                VIII Workshop de Procesamiento Distribuido y Paralelo, CACIC 2007",
    notes: "The InfiniBand paper names the parts and no formulas. Here a BECN on path k adds 1 to \
n[k]; if t_open has passed since the last opening, it also opens the closed path with the lowest \
LID offset, with the least n of the open ones. A message takes open path k with a chance in \
proportion to 1/(1 + n[k]); path lengths do not enter, the subnet manager orders paths by them. \
The timer runs while more than path 0 is open, from the last BECN or opening on: when it expires, \
all n are halved and the most notified path other than 0 closes, the highest offset of equals. \
BECNs for a closed path are ignored. Messages under way stay on the path they took. The CCTI_Timer \
is one per flow here, not per port. By default it is 1.5 ms, ten times that of Gran et al. for \
iba-cc: the shortest of the times tried from which on a longer one changes little (the sweep of \
drb-path-hotspot.toml). That paths should outlive the gaps between bursts is a hypothesis. The \
threshold is half a buffer by default: a path should be left when it fills, not at the first \
packet that waits; every eligible packet is marked then, because the notifications of paths are \
compared. Nothing is throttled: compose it with iba-cc for that. Congestion at the destination \
itself is spread, not relieved.",
    decides: Decides::Which,
    parameters: &[
        &MAX_PATHS,
        &T_OPEN,
        &UNIT,
        &CCTI_TIMER,
        &THRESHOLD,
        &MARKING_RATE,
        &iba_cc::PACKET_SIZE,
        &iba_cc::VICTIM_MASK,
        &iba_cc::BECN,
    ],
    port_parameters: &[],
    presets: &[Preset {
        name: "cacic-2007",
        reference: "VIII Workshop de Procesamiento Distribuido y Paralelo, CACIC 2007: at most \
                    four paths; all else is not stated there",
        values: &[(&MAX_PATHS, Value::Integer(4))],
    }],
    build,
};

fn build(values: &Values) -> Result<Box<dyn Mechanism>, ParameterError> {
    Ok(Box::new(Drb {
        marker: MarkerSettings::new(values, &THRESHOLD, &MARKING_RATE),
        notifier: FecnNotifier::new("drb notifier", values),
        max_paths: values.integer(&MAX_PATHS) as u8,
        opening: Opening {
            interval: values.time(&T_OPEN),
            quiet: iba_cc::timer_period(values, &CCTI_TIMER),
            divides: values.word(&UNIT) == "stripe",
        },
    }))
}

#[derive(Debug)]
struct Drb {
    marker: MarkerSettings,
    notifier: FecnNotifier,
    max_paths: u8,
    opening: Opening,
}

/// How a metapath grows, shrinks and is used.
#[derive(Clone, Copy, Debug)]
struct Opening {
    /// Least time between two openings.
    interval: Picoseconds,
    /// Time without BECN after which a path closes.
    quiet: Picoseconds,
    /// Whether messages are divided.
    divides: bool,
}

impl Mechanism for Drb {
    fn marker(&self, output: &Output) -> Option<Box<dyn Marker>> {
        self.marker.marker("drb marker", output)
    }

    fn notifier(&self) -> Option<Box<dyn Notifier>> {
        Some(Box::new(self.notifier))
    }

    fn notifies(&self) -> Notifies {
        Notifies::Everything
    }

    fn hears_acks(&self) -> bool {
        false
    }

    fn scope(&self) -> Scope {
        Scope::Flow
    }

    fn reactor(&self, source: &Source) -> Option<Box<dyn Reactor>> {
        let paths = self.max_paths.min(source.paths).max(1);
        Some(Box::new(Metapath::new(self.opening, source.packet_max, paths)))
    }
}

/// The paths of a flow.
struct Metapath {
    opening: Opening,
    packet_max: u32,
    state: State,
}

#[derive(Serialize, Deserialize)]
struct State {
    /// By path, path 0 always open.
    paths: Vec<Notified>,
    /// When the last one was opened.
    opened: Option<u64>,
    /// When the next one closes if all stays quiet.
    expires: Option<u64>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Notified {
    open: bool,
    /// Notifications, each counting [`ONE`], halved in quiet.
    notifications: u64,
}

/// One notification; halved 16 times it is gone.
const ONE: u64 = 1 << 16;

const OF: &str = "drb reactor";
const VERSION: u16 = 1;

impl Metapath {
    fn new(opening: Opening, packet_max: u32, paths: u8) -> Self {
        let mut paths = vec![Notified::default(); usize::from(paths)];
        paths[0].open = true;
        Metapath { opening, packet_max, state: State { paths, opened: None, expires: None } }
    }

    /// Offsets of the open paths.
    fn open(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        let paths = self.state.paths.iter().enumerate();
        paths.filter_map(|(k, path)| path.open.then_some(k))
    }

    /// In proportion to 1 / (1 + n): 2^32 without notifications, at least 1.
    fn weight(&self, k: usize) -> u64 {
        ((1 << 48) / self.state.paths[k].notifications.saturating_add(ONE)).max(1)
    }

    /// All that quiet brings about up to `now`.
    fn expire(&mut self, now: Picoseconds) {
        while let Some(due) = self.state.expires
            && due <= now.0
        {
            for path in &mut self.state.paths {
                path.notifications /= 2;
            }
            let notified = |k: &usize| (self.state.paths[*k].notifications, *k);
            if let Some(k) = self.open().filter(|k| *k > 0).max_by_key(notified) {
                self.state.paths[k].open = false;
            }
            self.state.expires = None;
            self.run_timer(Picoseconds(due));
        }
    }

    /// The timer begins anew if there is a path to close.
    fn run_timer(&mut self, now: Picoseconds) {
        if self.open().count() > 1 {
            self.state.expires = Some(now.0.saturating_add(self.opening.quiet.0));
        }
    }

    /// Opens the shortest path that is closed, if it is time.
    fn expand(&mut self, now: Picoseconds) {
        let since = self.state.opened.map(|opened| now.0.saturating_sub(opened));
        if since.is_some_and(|since| since < self.opening.interval.0) {
            return;
        }
        let least = self.open().map(|k| self.state.paths[k].notifications).min();
        let closed = self.state.paths.iter_mut().find(|path| !path.open);
        if let (Some(closed), Some(notifications)) = (closed, least) {
            *closed = Notified { open: true, notifications };
            self.state.opened = Some(now.0);
        }
    }
}

impl Reactor for Metapath {
    fn plan(&mut self, now: Picoseconds, bytes: Bytes, draw: u64, out: &mut Stripes) {
        self.expire(now);
        let sum: u64 = self.open().map(|k| self.weight(k)).sum();
        let open = self.open().count() as u64;
        let divides = self.opening.divides && bytes.0 / open >= u64::from(self.packet_max);
        // At most 2^39 in sum, so neither product overflows.
        let chosen = ((u128::from(draw) * u128::from(sum)) >> 64) as u64;
        let (mut before, mut given) = (0, 0);
        for k in self.open() {
            let upto = before + self.weight(k);
            if divides {
                let end = (u128::from(bytes.0) * u128::from(upto) / u128::from(sum)) as u64;
                out.push(Path(k as u8), Bytes(end - given));
                given = end;
            } else if (before..upto).contains(&chosen) {
                out.whole(Path(k as u8), bytes);
            }
            before = upto;
        }
    }

    fn on_feedback(&mut self, now: Picoseconds, pair: Pair, feedback: Feedback) {
        if feedback != Feedback::Becn {
            return;
        }
        // A timer due now goes first, whichever of the two is told first.
        self.expire(now);
        let path = self.state.paths.get_mut(pair.0 as usize);
        let Some(path) = path.filter(|path| path.open) else {
            return;
        };
        path.notifications = path.notifications.saturating_add(ONE);
        self.expand(now);
        self.run_timer(now);
    }

    fn next_timer(&self) -> Option<Picoseconds> {
        self.state.expires.map(Picoseconds)
    }

    fn on_timer(&mut self, now: Picoseconds) {
        self.expire(now);
    }

    fn probe(&self, pair: Pair, show: &mut dyn FnMut(Probe)) {
        let path = self.state.paths.get(pair.0 as usize);
        let notifications = path.map_or(0, |path| path.notifications / ONE);
        show(Probe { name: OPEN_PATHS, value: self.open().count() as u64 });
        show(Probe { name: "notifications", value: notifications });
    }

    fn save(&self) -> Saved {
        Saved::new(OF, VERSION, &self.state)
    }

    fn load(&mut self, saved: &Saved) -> Result<(), StateError> {
        let state: State = saved.state(OF, VERSION)?;
        if state.paths.len() != self.state.paths.len() || !state.paths[0].open {
            return Err(StateError::Damaged(OF));
        }
        self.state = state;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearlane_ib::{LinkRate, LinkSpeed, LinkWidth};

    const US: u64 = 1_000_000;
    /// 1,500 times 1.024 us.
    const QUIET: u64 = 1_500 * 1_024_000;

    fn metapath(set: &[(&Parameter, Value)], paths: u8) -> Box<dyn Reactor> {
        let mut values = Values::default();
        for (parameter, value) in set {
            values.set(parameter, value.clone()).unwrap();
        }
        let link = LinkRate::of(LinkWidth::X4, LinkSpeed::Qdr);
        let mechanism = build(&values).unwrap();
        mechanism.reactor(&Source { link, packet_max: 2074, paths }).unwrap()
    }

    fn becn(it: &mut dyn Reactor, now: u64, path: u32) {
        it.on_feedback(Picoseconds(now), Pair(path), Feedback::Becn);
    }

    fn shown(it: &dyn Reactor, path: u32) -> (u64, u64) {
        let mut values = Vec::new();
        it.probe(Pair(path), &mut |probe| values.push(probe.value));
        (values[0], values[1])
    }

    fn open(it: &dyn Reactor) -> u64 {
        shown(it, 0).0
    }

    /// How many of 1,000 evenly spread draws choose each of 4 paths.
    fn chosen(it: &mut dyn Reactor, now: u64) -> [u32; 4] {
        let mut counts = [0; 4];
        for draw in 0..1_000 {
            let mut out = Stripes::default();
            it.plan(Picoseconds(now), Bytes(10_000), u64::MAX / 1_000 * draw, &mut out);
            assert_eq!((out.parts().len(), out.parts()[0].bytes), (1, Bytes(10_000)));
            counts[usize::from(out.parts()[0].path.0)] += 1;
        }
        counts
    }

    #[test]
    fn four_paths_open_step_by_step_and_three_quiet_timers_close_them() {
        let mut it = metapath(&[], 128);
        assert_eq!((open(&*it), it.next_timer()), (1, None));
        for (now, paths) in [(0, 2), (9, 2), (10, 3), (15, 3), (20, 4), (30, 4), (40, 4)] {
            becn(&mut *it, now * US, 0);
            assert_eq!(open(&*it), paths, "at {now} us");
        }
        let last = 40 * US;
        for (timer, paths) in [(1, 3), (2, 2), (3, 1)] {
            let due = it.next_timer().unwrap();
            assert_eq!(due.0, last + timer * QUIET);
            it.on_timer(due);
            assert_eq!(open(&*it), paths);
        }
        assert_eq!(it.next_timer(), None);
        assert_eq!(chosen(&mut *it, last + 4 * QUIET), [1_000, 0, 0, 0]);
    }

    #[test]
    fn no_more_paths_open_than_are_allowed_or_there() {
        for (allowed, there, opens) in [(4, 2, 2), (2, 4, 2), (1, 4, 1), (4, 1, 1)] {
            let mut it = metapath(&[(&MAX_PATHS, Value::Integer(allowed))], there);
            (0..9).for_each(|i| becn(&mut *it, i * 20 * US, 0));
            assert_eq!(open(&*it), opens);
        }
    }

    #[test]
    fn paths_are_chosen_in_inverse_proportion_to_one_plus_their_notifications() {
        let mut it = metapath(&[], 4);
        becn(&mut *it, 0, 0);
        (0..2).for_each(|_| becn(&mut *it, US, 0));
        assert_eq!((shown(&*it, 0), shown(&*it, 1)), ((2, 3), (2, 1)));
        // 1/4 to 1/2.
        assert_eq!(chosen(&mut *it, US), [334, 666, 0, 0]);
    }

    #[test]
    fn the_most_notified_path_closes_first_but_never_path_0() {
        let mut it = metapath(&[], 4);
        (0..3).for_each(|i| becn(&mut *it, i * 10 * US, 0));
        (0..5).for_each(|_| becn(&mut *it, 20 * US, 1));
        (0..99).for_each(|_| becn(&mut *it, 20 * US, 0));
        it.on_timer(Picoseconds(20 * US + QUIET));
        let left = chosen(&mut *it, 20 * US + QUIET);
        assert!(left[0] > 0 && left[1] == 0 && left[2] > 0 && left[3] > 0, "{left:?}");
        // Late news of the closed path opens nothing; the next BECN opens it again.
        becn(&mut *it, 21 * US + QUIET, 1);
        assert_eq!(open(&*it), 3);
        becn(&mut *it, 21 * US + QUIET, 2);
        assert_eq!(open(&*it), 4);
    }

    #[test]
    fn quiet_halves_notifications() {
        let mut it = metapath(&[(&MAX_PATHS, Value::Integer(2))], 4);
        (0..8).for_each(|_| becn(&mut *it, 0, 0));
        assert_eq!(shown(&*it, 0).1, 8);
        it.on_timer(Picoseconds(QUIET));
        assert_eq!(shown(&*it, 0), (1, 4));
    }

    #[test]
    fn a_becn_at_the_instant_of_the_timer_counts_the_same_in_either_order() {
        let ends = [true, false].map(|timer_first| {
            let mut it = metapath(&[], 4);
            becn(&mut *it, 0, 0);
            if timer_first {
                it.on_timer(Picoseconds(QUIET));
            }
            becn(&mut *it, QUIET, 0);
            it.on_timer(Picoseconds(QUIET));
            it.save()
        });
        assert_eq!(ends[0], ends[1]);
    }

    #[test]
    fn stripes_are_shares_by_weight_unless_the_message_is_short() {
        let mut it = metapath(&[(&UNIT, Value::Word("stripe"))], 4);
        becn(&mut *it, 0, 0);
        (0..2).for_each(|_| becn(&mut *it, US, 0));
        let parts = |it: &mut dyn Reactor, bytes| {
            let mut out = Stripes::default();
            it.plan(Picoseconds(US), Bytes(bytes), 0, &mut out);
            out.parts().iter().map(|part| (part.path.0, part.bytes.0)).collect::<Vec<_>>()
        };
        assert_eq!(parts(&mut *it, 30_000), [(0, 10_000), (1, 20_000)]);
        assert_eq!(parts(&mut *it, 4_148), [(0, 1_382), (1, 2_766)]);
        assert_eq!(parts(&mut *it, 4_147), [(0, 4_147)]);
    }
}
