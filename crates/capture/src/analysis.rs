//! Packets of several places counted under their flows, and the two directions of a connection
//! found.

use crate::dissect::{Crcs, Dissected, Other, Packet, Role, Truth};
use crate::endpoint::Endpoint;
use crate::flow::{Flow, FlowKey};
use crate::slices::Grid;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};

/// Flows that are counted one by one; memory is bounded by it.
pub const FLOWS_MAX: usize = 1 << 14;

/// Directions that an acknowledgement may answer, of two hosts.
pub const CANDIDATES_MAX: usize = 128;
/// A direction is known after so many acknowledgements in a row that fit no other, …
const VOTES: u32 = 4;
/// … and nobody looks any more after so many that fit several.
const UNDECIDED_MAX: u32 = 4096;
/// An answer is to the nearest direction if the next one is so many packets and four times as far.
const NEAR: u32 = 64;
/// An acknowledgement is of one of the last so many packets.
const WINDOW: u32 = 1 << 15;

/// What was seen at a place that has no flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Others {
    /// Other traffic of the network.
    pub not_rdma: u64,
    /// Packets of InfiniBand without a BTH.
    pub raw: u64,
    /// Packets of which the capture has too little.
    pub cut: u64,
    /// Packets whose lengths contradict each other.
    pub malformed: u64,
}

impl Others {
    fn add(&mut self, other: Other) {
        *match other {
            Other::NotRdma => &mut self.not_rdma,
            Other::Raw => &mut self.raw,
            Other::Cut => &mut self.cut,
            Other::Malformed => &mut self.malformed,
        } += 1;
    }

    /// How many records they are.
    pub fn all(&self) -> u64 {
        self.not_rdma + self.raw + self.cut + self.malformed
    }
}

/// What was captured at one place.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PointCounts {
    /// Packets of InfiniBand's transport.
    pub packets: u64,
    /// Packets of which a CRC was checked, if that was asked for.
    pub checked_crcs: u64,
    /// Those of them with a wrong one.
    pub wrong_crcs: u64,
    /// Records that are none.
    pub others: Others,
    /// Packets of flows beyond [`FLOWS_MAX`].
    pub beyond: u64,
    /// Flows of which no acknowledgement is looked for, as too many others are between the same
    /// two hosts.
    pub unpaired: u64,
    /// The first and the last record, nanoseconds since 1970.
    pub span_ns: Option<(u64, u64)>,
}

/// A flow's key and place as one number of words, for look-ups.
#[derive(Clone, Copy)]
struct Known([u64; 6]);

impl PartialEq for Known {
    /// Without a call: there is one comparison for each packet.
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
    }
}

impl Eq for Known {}

impl Hash for Known {
    #[inline(always)]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.iter().for_each(|word| state.write_u64(*word));
    }
}

/// Counts packets under their flows.
pub struct Analysis {
    pub(crate) grid: Grid,
    pub(crate) flows: Vec<Flow>,
    places: FxHashMap<Known, u32>,
    /// Directions between two hosts, at any place: a tap may have one interface for each.
    pairs: FxHashMap<(Endpoint, Endpoint), Vec<u32>>,
    pub(crate) points: Vec<PointCounts>,
    /// The flow of the packet before: the next is often of the same.
    last: Option<(Known, u32)>,
}

impl Analysis {
    /// Nothing counted yet; times are cut into slices from `start_ns` on, each of `slice_ns`, or
    /// as long as it takes for [`Self::slices_max`] of them.
    pub fn new(start_ns: u64, slice_ns: Option<u64>) -> Self {
        let grid = match slice_ns {
            Some(slice_ns) => Grid::fixed(start_ns, slice_ns),
            None => Grid::growing(start_ns),
        };
        Analysis {
            grid,
            flows: Vec::new(),
            places: FxHashMap::default(),
            pairs: FxHashMap::default(),
            points: Vec::new(),
            last: None,
        }
    }

    /// The most slices there are.
    pub const fn slices_max() -> usize {
        crate::slices::SLICES_MAX
    }

    /// Counts what a record of a place turned out to hold.
    #[inline]
    pub fn add(&mut self, point: u32, time_ns: u64, dissected: &Dissected) {
        let place = point as usize;
        if self.points.len() <= place {
            self.points.resize(place + 1, PointCounts::default());
        }
        let known = &mut self.points[place];
        let (first, last) = known.span_ns.unwrap_or((time_ns, time_ns));
        known.span_ns = Some((first.min(time_ns), last.max(time_ns)));
        match dissected {
            Dissected::Packet(packet) => {
                known.packets += 1;
                if packet.crcs != Crcs::default() {
                    known.checked_crcs += 1;
                    let Crcs { invariant, variant } = packet.crcs;
                    known.wrong_crcs += u64::from([invariant, variant].contains(&Truth::Wrong));
                }
                self.packet(point, packet);
            }
            Dissected::Other(other) => known.others.add(*other),
        }
    }

    #[inline]
    fn packet(&mut self, point: u32, packet: &Packet) {
        let known = words(point, packet);
        let number = match &self.last {
            Some((last, number)) if *last == known => *number as usize,
            _ => {
                let Some(number) = self.number(point, packet, known) else {
                    self.points[point as usize].beyond += 1;
                    return;
                };
                self.last = Some((known, number as u32));
                number
            }
        };
        self.flows[number].add(packet, &mut self.grid);
        if matches!(packet.role, Role::Acknowledgement | Role::Response) {
            self.answer(number, packet);
        }
    }

    /// The number of a flow, which may be new; nothing if there are too many.
    fn number(&mut self, point: u32, packet: &Packet, known: Known) -> Option<usize> {
        if let Some(number) = self.places.get(&known) {
            return Some(*number as usize);
        }
        let number = self.flows.len();
        if number >= FLOWS_MAX {
            return None;
        }
        let key = FlowKey::of(packet);
        self.flows.push(Flow::new(key, point, packet));
        self.places.insert(known, number as u32);
        let pair = self.pairs.entry((key.source, key.destination)).or_default();
        match pair.len() < CANDIDATES_MAX {
            true => pair.push(number as u32),
            false => self.points[point as usize].unpaired += 1,
        }
        Some(number)
    }

    /// Looks which direction a response answers: one the other way that has sent its number not
    /// long ago, and much less long ago than any other has.
    fn answer(&mut self, number: usize, packet: &Packet) {
        let flow = &mut self.flows[number];
        flow.answered = Some(packet.bth.psn);
        let is_known = flow.answers.is_some_and(|(_, votes)| votes >= VOTES);
        if is_known || flow.undecided >= UNDECIDED_MAX {
            return;
        }
        let (key, flow) = (flow.key, number);
        let Some(candidates) = self.pairs.get(&(key.destination, key.source)) else { return };
        let (mut nearest, mut next) = (None, u32::MAX);
        for candidate in candidates.iter().map(|candidate| *candidate as usize) {
            let known = &self.flows[candidate];
            let ago = known.requests.ago(packet.bth.psn, WINDOW).filter(|_| candidate != flow);
            let Some(ago) = ago else { continue };
            nearest = match nearest {
                // The same flow at another place.
                Some((best, place)) if self.flows[place as usize].key == known.key => {
                    Some((ago.min(best), place))
                }
                Some((best, _)) if ago < best => {
                    next = best;
                    Some((ago, candidate as u32))
                }
                Some(best) => {
                    next = next.min(ago);
                    Some(best)
                }
                None => Some((ago, candidate as u32)),
            };
        }
        let flow = &mut self.flows[number];
        match nearest {
            Some((ago, only)) if next > ago.saturating_mul(4).saturating_add(NEAR) => {
                let votes = match flow.answers {
                    Some((same, votes)) if same == only as usize => votes + 1,
                    _ => 1,
                };
                flow.answers = Some((only as usize, votes));
            }
            Some(_) => flow.undecided += 1,
            None => {}
        }
    }

    /// What a direction answers by all its numbers, where no packet told while it was seen: data
    /// and responses may be in files of their own. Nothing unless there is one only.
    pub(crate) fn answered_in_all(
        &self,
        number: usize,
        taken: &BTreeSet<FlowKey>,
    ) -> Option<usize> {
        let flow = &self.flows[number];
        let candidates = self.pairs.get(&(flow.key.destination, flow.key.source))?;
        let fits = |candidate: &usize| {
            let known = &self.flows[*candidate];
            let spans = flow.answered.is_none_or(|psn| known.requests.spans(psn));
            let is_free = !taken.contains(&known.key);
            *candidate != number && is_free && known.counts.data_packets > 0 && spans
        };
        let mut fitting = candidates.iter().map(|candidate| *candidate as usize).filter(fits);
        let only = fitting.next()?;
        let is_one = fitting.all(|other| self.flows[other].key == self.flows[only].key);
        is_one.then_some(only)
    }
}

#[inline(always)]
fn words(point: u32, packet: &Packet) -> Known {
    let (from_kind, from) = packet.source.key();
    let (to_kind, to) = packet.destination.key();
    let kinds = u64::from(from_kind) << 8 | u64::from(to_kind) | (packet.carrier as u64) << 16;
    let source = packet.source_queue_pair.map_or(0, |queue_pair| u64::from(queue_pair) + 1);
    Known([
        from as u64,
        (from >> 64) as u64,
        to as u64,
        (to >> 64) as u64,
        source << 32 | u64::from(packet.bth.destination.value()),
        kinds << 32 | u64::from(point),
    ])
}
