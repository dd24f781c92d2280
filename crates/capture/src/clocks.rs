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
/// Parts of the common time over which a drift is looked for.
const PARTS: usize = 8;

/// Packets of one capture that another may have, with their times. Which are remembered depends on
/// the packets alone, so that two captures remember the same.
#[derive(Default)]
pub(crate) struct Samples {
    /// By identity; nothing for one that came twice.
    times: FxHashMap<u64, Option<Sample>>,
    /// Identities with this many upper bits clear are remembered.
    sparse_bits: u32,
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
    /// How wrong that may be, ns; nothing where packets of one direction only are common, so that
    /// their least delay is taken for none.
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
    let (ahead, within) = bounded(&by_direction, (from_ns, to_ns))?;
    let length = ((to_ns - from_ns) / PARTS as u64).max(1);
    let parts: Vec<(f64, f64)> = (0..PARTS as u64)
        .filter_map(|part| {
            let begin = from_ns + part * length;
            let (ahead, within) = bounded(&by_direction, (begin, begin + length - 1))?;
            within.map(|_| ((part as f64 + 0.5) * length as f64 * 1e-9, ahead as f64))
        })
        .collect();
    let drift_ns = slope(&parts).unwrap_or(0.0);
    // With a drift, the middle is what the whole is about.
    let middle = from_ns + (to_ns - from_ns) / 2;
    let within_ns = match (within, clock.within_ns, clock.known) {
        (Some(own), _, ClockKnown::Reference) => Some(own),
        (Some(own), Some(its), _) => Some(own + its),
        _ => None,
    };
    let known = ClockKnown::Measured;
    Some(Clock { ahead_ns: ahead, at_ns: middle, drift_ns, within_ns, common, known })
}

type ByDirection = BTreeMap<(Endpoint, Endpoint), Vec<(u64, i64)>>;

/// How far the clock is ahead within a span, and to within how much, where there are packets both
/// ways.
fn bounded(by_direction: &ByDirection, (from, to): (u64, u64)) -> Option<(i64, Option<u64>)> {
    let mut best: Option<(i64, Option<u64>)> = None;
    let within = |direction: &[(u64, i64)]| {
        let there = direction.iter().filter(|(time, _)| (from..=to).contains(time));
        let later: Vec<i64> = there.map(|(_, later)| *later).collect();
        Some((*later.iter().min()?, *later.iter().max()?))
    };
    for ((source, destination), direction) in by_direction {
        let Some((least, most)) = within(direction) else { continue };
        let back = by_direction.get(&(*destination, *source)).and_then(|back| within(back));
        let found = match back {
            // Packets this way are later by clock and delay, packets back by clock less delay.
            Some((_, back_most)) if back_most <= least => {
                Some((least.midpoint(back_most), Some(least.abs_diff(back_most).div_ceil(2))))
            }
            Some((back_least, _)) if most <= back_least => {
                Some((most.midpoint(back_least), Some(back_least.abs_diff(most).div_ceil(2))))
            }
            _ => None,
        };
        let found = found.unwrap_or((least, None));
        let better = match (best, found.1) {
            (None, _) | (Some((_, None)), Some(_)) => true,
            (Some((_, Some(known))), Some(new)) => new < known,
            (Some((ahead, None)), None) => found.0 < ahead,
            (Some((_, Some(_))), None) => false,
        };
        if better {
            best = Some(found);
        }
    }
    best
}

/// The slope of the line nearest to points; nothing of fewer than three.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    if points.len() < 3 {
        return None;
    }
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |sum, (x, y)| (sum.0 + x, sum.1 + y));
    let (x, y) = (x / n, y / n);
    let covariance: f64 = points.iter().map(|(a, b)| (a - x) * (b - y)).sum();
    let variance: f64 = points.iter().map(|(a, _)| (a - x) * (a - x)).sum();
    (variance > 0.0).then(|| covariance / variance)
}
