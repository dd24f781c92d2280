//! Several captures on one clock: the same packet in two of them tells how far their clocks are
//! apart, to within its delay, and packets the other way bound it from the other side, as NTP does
//! (RFC 5905, 8).

use crate::dissect::{Packet, Role};
use crate::endpoint::Endpoint;
use rustc_hash::{FxHashMap, FxHasher};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

/// Packets that are remembered of a capture.
const SAMPLES_MAX: usize = 1 << 16;

/// Packets of one capture that another may have, with their times. Which are remembered depends on
/// the packets alone, so that two captures remember the same.
#[derive(Default)]
pub(crate) struct Samples {
    /// By identity; nothing for one that came twice.
    times: FxHashMap<u64, Option<Sample>>,
    /// Identities with this many upper bits clear are remembered.
    sparse_bits: u32,
    /// When the capture begins and ends.
    span_ns: Option<(u64, u64)>,
}

#[derive(Clone, Copy)]
struct Sample {
    time_ns: u64,
    source: Endpoint,
    destination: Endpoint,
}

impl Samples {
    /// Takes note of a packet, if it can be told apart from others.
    pub(crate) fn add(&mut self, packet: &Packet) {
        let (first, last) = self.span_ns.unwrap_or((u64::MAX, 0));
        self.span_ns = Some((first.min(packet.time_ns), last.max(packet.time_ns)));
        // CNPs have no number.
        if packet.role == Role::Cnp {
            return;
        }
        let identity = identity(packet);
        if !self.takes(identity) {
            return;
        }
        let (source, destination) = (packet.source, packet.destination);
        let sample = Sample { time_ns: packet.time_ns, source, destination };
        self.times.entry(identity).and_modify(|known| *known = None).or_insert(Some(sample));
        if self.times.len() > SAMPLES_MAX {
            self.sparse_bits += 1;
            let bits = self.sparse_bits;
            self.times.retain(|identity, _| identity.leading_zeros() >= bits);
        }
    }

    fn takes(&self, identity: u64) -> bool {
        identity.leading_zeros() >= self.sparse_bits
    }
}

/// What is the same of a packet wherever it is captured.
fn identity(packet: &Packet) -> u64 {
    let mut hasher = FxHasher::default();
    packet.source.key().hash(&mut hasher);
    packet.destination.key().hash(&mut hasher);
    let bth = &packet.bth;
    (bth.opcode.0, bth.destination.value(), bth.psn.value()).hash(&mut hasher);
    (packet.source_queue_pair, packet.payload_bytes).hash(&mut hasher);
    // The upper bits choose samples: they are to be as good as the lower ones.
    let mut mixed = hasher.finish();
    mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed ^ mixed >> 32
}

/// How a capture's clock relates to that of the first.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Clock {
    /// How far it is ahead, ns, at `at_ns` of its own time.
    pub ahead_ns: i64,
    /// The instant that is true of, on its own clock.
    pub at_ns: u64,
    /// How much more it is ahead after a second of its own, ns.
    pub drift_ns: f64,
    /// How wrong a time of the capture may be at most, ns; nothing where packets of one direction
    /// only are common, so that their least delay is taken for none.
    pub within_ns: Option<u64>,
    /// Packets that both captures have.
    pub common: u64,
    /// How it is known.
    pub known: ClockKnown,
}

/// How a clock is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ClockKnown {
    /// It is the one that others are measured by.
    #[default]
    Reference,
    /// From packets that another capture has too.
    Measured,
    /// No packet is common: its times are taken as they are.
    Unknown,
}

impl Clock {
    /// An instant of this clock on that of the first capture.
    #[inline]
    pub(crate) fn corrected(&self, time_ns: u64) -> u64 {
        let since = time_ns as i64 - self.at_ns as i64;
        let drift = (since as f64 * 1e-9 * self.drift_ns) as i64;
        time_ns.saturating_add_signed(-(self.ahead_ns + drift))
    }
}

/// The clocks of captures, by what they have in common, the first one's being the reference.
pub(crate) fn clocks(captures: &[Samples]) -> Vec<Clock> {
    let unknown = Clock { known: ClockKnown::Unknown, ..Clock::default() };
    let mut clocks = vec![unknown; captures.len()];
    let Some(first) = clocks.first_mut() else { return clocks };
    *first = Clock::default();
    // From those that are known to those that have packets in common with them.
    let mut known = vec![0];
    let mut next = 0;
    while let Some(&from) = known.get(next) {
        next += 1;
        for to in 0..captures.len() {
            if clocks[to].known != ClockKnown::Unknown {
                continue;
            }
            if let Some(clock) = compared(&captures[from], &clocks[from], &captures[to]) {
                clocks[to] = clock;
                known.push(to);
            }
        }
    }
    clocks
}

/// The clock of one capture by that of another, which is known; nothing without common packets.
fn compared(from: &Samples, clock: &Clock, to: &Samples) -> Option<Clock> {
    // By direction: when on the other clock, and how much later than on the known one.
    let mut by_direction: BTreeMap<(Endpoint, Endpoint), Vec<(u64, i64)>> = BTreeMap::new();
    let mut common = 0;
    let mut ids: Vec<&u64> = from.times.keys().filter(|id| to.takes(**id)).collect();
    ids.sort_unstable();
    for id in ids {
        let (Some(Some(a)), Some(Some(b))) = (from.times.get(id), to.times.get(id)) else {
            continue;
        };
        common += 1;
        let later = b.time_ns as i64 - clock.corrected(a.time_ns) as i64;
        by_direction.entry((a.source, a.destination)).or_default().push((b.time_ns, later));
    }
    let span = |pick: fn(u64, u64) -> u64, start: u64| {
        by_direction.values().flatten().fold(start, |best, (time, _)| pick(best, *time))
    };
    let (from_ns, to_ns) = (span(u64::min, u64::MAX), span(u64::max, 0));
    if common == 0 {
        return None;
    }
    let middle = from_ns + (to_ns - from_ns) / 2;
    let fit = by_direction
        .iter()
        .map(|((source, destination), out)| {
            let back = by_direction.get(&(*destination, *source));
            let size = out.len().min(back.map_or(0, Vec::len));
            (size, Fit::of(out, back.map_or(&[], Vec::as_slice), middle))
        })
        // Of a pair of hosts that exchanges most; both ways if any does.
        .max_by(|(a, a_fit), (b, b_fit)| {
            let key = |size: &usize, fit: &Fit| (fit.within.is_some(), *size);
            key(a, a_fit).cmp(&key(b, b_fit))
        });
    let (_, Fit { ahead, within, drift: drift_ns }) = fit?;
    // Where the capture is furthest from the packets in common.
    let (first_ns, last_ns) = to.span_ns.unwrap_or((middle, middle));
    let away = last_ns.saturating_sub(middle).max(middle.saturating_sub(first_ns)) as f64 * 1e-9;
    let within = within.map(|(middle, a_second)| (middle + a_second * away).ceil() as u64);
    let ahead = ahead.round() as i64;
    let within_ns = match (within, clock.within_ns, clock.known) {
        (Some(own), _, ClockKnown::Reference) => Some(own),
        (Some(own), Some(its), _) => Some(own + its),
        _ => None,
    };
    let known = ClockKnown::Measured;
    Some(Clock { ahead_ns: ahead, at_ns: middle, drift_ns, within_ns, common, known })
}

/// The largest drift of clocks that is believed: 500 ppm, in nanoseconds a second.
const DRIFT_MAX: f64 = 500_000.0;
/// Steps of a search, each of which leaves two thirds.
const SEARCHED: usize = 60;

/// A line through differences of clocks: how far ahead in the middle and how much more after a
/// second; to within how much in the middle, and how much more a second away from it.
struct Fit {
    ahead: f64,
    within: Option<(f64, f64)>,
    drift: f64,
}

impl Fit {
    /// Of differences of packets one way and back: the differences of one are greater than the
    /// clocks' by a delay, those of the other less. Each line between them is possible: without
    /// drift if that is, else with the drift that has most room. What may be wrong is told by all
    /// lines that are possible.
    fn of(out: &[(u64, i64)], back: &[(u64, i64)], middle: u64) -> Fit {
        let points = |all: &[(u64, i64)]| -> Vec<(f64, f64)> {
            let since = |time: u64| (time as i64 - middle as i64) as f64 * 1e-9;
            all.iter().map(|(time, later)| (since(*time), *later as f64)).collect()
        };
        let (out, back) = (points(out), points(back));
        let least = |points: &[(f64, f64)], drift: f64| {
            points.iter().map(|(time, later)| later - drift * time).fold(f64::MAX, f64::min)
        };
        let most = |points: &[(f64, f64)], drift: f64| {
            points.iter().map(|(time, later)| later - drift * time).fold(f64::MIN, f64::max)
        };
        let one_way = || {
            let drift = highest(|drift| least(&out, drift));
            Fit { ahead: least(&out, drift), within: None, drift }
        };
        if back.is_empty() {
            return one_way();
        }
        // Which way is the one from the known clock to the other is not known beforehand.
        let ways = [(&out, &back), (&back, &out)].map(|(later, sooner)| {
            let drift = highest(|drift| least(later, drift) - most(sooner, drift));
            (least(later, drift) - most(sooner, drift), drift, later, sooner)
        });
        let [first, second] = ways;
        let (room, drift, later, sooner) = if first.0 >= second.0 { first } else { second };
        if room < 0.0 {
            return one_way();
        }
        let room_of = |drift: f64| least(later, drift) - most(sooner, drift);
        let [lowest, highest_drift] = [-DRIFT_MAX, DRIFT_MAX].map(|end| limit(room_of, drift, end));
        let drift = if room_of(0.0) >= 0.0 { 0.0 } else { drift };
        let a_second = (highest_drift - drift).max(drift - lowest);
        let above = least(later, highest(|drift| least(later, drift)));
        let below = most(sooner, highest(|drift| -most(sooner, drift)));
        let within = Some(((above - below) / 2.0, a_second));
        Fit { ahead: above.midpoint(below), within, drift }
    }
}

/// How far towards `end` a concave function that is not negative at `inside` stays so.
fn limit(value: impl Fn(f64) -> f64, inside: f64, end: f64) -> f64 {
    let (mut inside, mut outside) = (inside, end);
    if value(end) >= 0.0 {
        return end;
    }
    for _ in 0..SEARCHED {
        let half = inside.midpoint(outside);
        match value(half) >= 0.0 {
            true => inside = half,
            false => outside = half,
        }
    }
    inside
}

/// The drift at which a concave function is highest.
fn highest(value: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (-DRIFT_MAX, DRIFT_MAX);
    for _ in 0..SEARCHED {
        let third = (high - low) / 3.0;
        match value(low + third) < value(high - third) {
            true => low += third,
            false => high -= third,
        }
    }
    low.midpoint(high)
}
