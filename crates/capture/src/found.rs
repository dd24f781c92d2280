//! What an analysis found: flows with what came back for them, whatever place each was seen at.

use crate::analysis::{Analysis, PointCounts};
use crate::endpoint::Endpoint;
use crate::flow::{Counts, Flow, FlowKey, Slice};
use crate::sequence::SequenceCounts;
use crate::slices::Grid;
use crate::{Carrier, judge};
use clearlane_ib::Service;
use std::collections::{BTreeMap, BTreeSet};

/// What a capture, or several, hold.
#[derive(Clone, PartialEq, Debug)]
pub struct Found {
    /// The slices of all series.
    pub grid: Grid,
    /// What was captured at each place.
    pub points: Vec<PointCounts>,
    /// Flows, in the order they were first seen in.
    pub flows: Vec<FoundFlow>,
    /// Congested ports, and the flows to each.
    pub bottlenecks: Vec<judge::Bottleneck>,
}

/// Times between packets with data, of one flow.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Gaps {
    /// The median, ns; right to one digit.
    pub median_ns: u64,
    /// The 99th percentile, ns; right to one digit.
    pub p99_ns: u64,
    /// The longest, ns; right to one digit.
    pub max_ns: u64,
}

/// What came back to the sender of a flow.
#[derive(Clone, PartialEq, Debug)]
pub struct Feedback {
    /// Number of the place it was seen at.
    pub point: u32,
    /// CNPs, packets with BECN, acknowledgements.
    pub counts: Counts,
    /// The first CNP, nanoseconds since 1970.
    pub first_cnp_ns: Option<u64>,
    /// The same slice by slice.
    pub slices: Vec<Slice>,
}

/// A flow, and what came back for it.
#[derive(Clone, PartialEq, Debug)]
pub struct FoundFlow {
    /// What it travels over.
    pub carrier: Carrier,
    /// Its transport service.
    pub service: Service,
    /// Who sends.
    pub source: Endpoint,
    /// Who receives.
    pub destination: Endpoint,
    /// The sender's queue pair, where packets told it.
    pub source_queue_pair: Option<u32>,
    /// The receiver's queue pair, where packets told it.
    pub queue_pair: Option<u32>,
    /// Virtual lane and service level of its first packet, of InfiniBand.
    pub lane: Option<(u8, u8)>,
    /// Number of the place that saw most of it, which its figures are of.
    pub point: u32,
    /// How many places saw it.
    pub seen_at: usize,
    /// Packets of this direction there; all 0 if only what came back was captured.
    pub counts: Counts,
    /// What sequence numbers told there.
    pub sequence: SequenceCounts,
    /// Times between packets with data there.
    pub gaps: Gaps,
    /// First and last packet with data there, nanoseconds since 1970; of any, if none has data.
    pub span_ns: (u64, u64),
    /// The first packet with FECN or CE at any place.
    pub first_mark_ns: Option<u64>,
    /// The flow slice by slice there.
    pub slices: Vec<Slice>,
    /// The same where most marks were seen, which may be another place.
    pub marks: Vec<Slice>,
    /// What came back.
    pub feedback: Option<Feedback>,
    /// What it has to do with congestion.
    pub standing: judge::Standing,
}

impl FoundFlow {
    /// CNPs that came back.
    pub fn cnps(&self) -> u64 {
        self.feedback.as_ref().map_or(0, |feedback| feedback.counts.cnp)
    }

    /// Packets with BECN that came back and are no CNPs.
    pub fn becns(&self) -> u64 {
        self.feedback.as_ref().map_or(0, |feedback| feedback.counts.becn)
    }

    /// Payload over the time from the first packet with data to the last, bits a second; nothing
    /// of less than two packets with data, or none of a time.
    pub fn rate_bps(&self) -> Option<f64> {
        let (first, last) = self.span_ns;
        let is_span = self.counts.data_packets > 1 && last > first;
        is_span.then(|| self.counts.payload_bytes as f64 * 8e9 / (last - first) as f64)
    }

    /// The share of packets with data that are marked with FECN or CE; nothing without any.
    pub fn marked_share(&self) -> Option<f64> {
        let all = self.counts.data_packets;
        (all > 0).then(|| self.counts.marked as f64 / all as f64)
    }

    /// Whether it is traffic of the subnet's management: to or from queue pairs 0 and 1.
    pub fn is_management(&self) -> bool {
        self.service == Service::Ud && self.queue_pair.is_some_and(|queue_pair| queue_pair < 2)
    }
}

impl Analysis {
    /// What was found.
    pub fn finish(self) -> Found {
        let mut flows: Vec<FoundFlow> = Vec::new();
        let mut numbers: BTreeMap<FlowKey, usize> = BTreeMap::new();
        // Where each flow under way went.
        let mut placed: Vec<Option<usize>> = vec![None; self.flows.len()];
        for (place, flow) in self.flows.iter().enumerate() {
            if flow.counts.data_packets == 0 {
                continue;
            }
            let number = *numbers.entry(flow.key).or_insert_with(|| {
                flows.push(found(flow, &self.grid));
                flows.len() - 1
            });
            placed[place] = Some(number);
            see(&mut flows[number], flow, &self.grid);
        }
        // Directions that are answered.
        let answers = self.flows.iter().filter_map(|flow| flow.answers);
        let taken: BTreeSet<FlowKey> = answers.map(|(known, _)| self.flows[known].key).collect();
        // Datagrams say which queue pair a CNP for them goes to.
        let datagrams: BTreeMap<_, usize> = flows
            .iter()
            .enumerate()
            .filter_map(|(number, flow)| {
                let queue_pair = flow.source_queue_pair?;
                Some(((flow.carrier, flow.source, flow.destination, queue_pair), number))
            })
            .collect();
        for (place, flow) in self.flows.iter().enumerate() {
            let counts = &flow.counts;
            if counts.cnp + counts.becn + counts.acks + counts.naks() == 0 {
                continue;
            }
            let answered = match flow.answers {
                Some((other, _)) => placed[other],
                None => {
                    let FlowKey { carrier, source, destination, queue_pair, .. } = flow.key;
                    let to = datagrams.get(&(carrier, destination, source, queue_pair)).copied();
                    to.or_else(|| placed[self.answered_in_all(place, &taken)?])
                }
            };
            let number = answered.unwrap_or_else(|| {
                flows.push(only_answered(flow));
                flows.len() - 1
            });
            hear(&mut flows[number], flow, &self.grid);
        }
        let bottlenecks = judge::judge(&mut flows);
        Found { grid: self.grid, points: self.points, flows, bottlenecks }
    }
}

/// A flow as one place saw it.
fn found(flow: &Flow, grid: &Grid) -> FoundFlow {
    let gap = |share: f64| flow.gaps.value_at_quantile(share);
    let gaps = match flow.gaps.is_empty() {
        true => Gaps::default(),
        false => Gaps { median_ns: gap(0.5), p99_ns: gap(0.99), max_ns: flow.gaps.max() },
    };
    let slices = flow.slices.all(grid);
    FoundFlow {
        carrier: flow.key.carrier,
        service: flow.service,
        source: flow.key.source,
        destination: flow.key.destination,
        source_queue_pair: flow.key.source_queue_pair,
        queue_pair: Some(flow.key.queue_pair),
        lane: flow.lane,
        point: flow.point,
        seen_at: 0,
        counts: flow.counts,
        sequence: flow.sequence(),
        gaps,
        span_ns: flow.span_ns(),
        first_mark_ns: flow.first_mark_ns,
        marks: slices.clone(),
        slices,
        feedback: None,
        standing: judge::Standing::Unknown,
    }
}

/// Another place saw the flow: figures are of the place that saw most of it, marks of that which
/// saw most of them, which is the nearest to the destination.
fn see(known: &mut FoundFlow, flow: &Flow, grid: &Grid) {
    known.seen_at += 1;
    if known.seen_at == 1 {
        return;
    }
    let mut other = found(flow, grid);
    other.seen_at = known.seen_at;
    if other.counts.data_packets > known.counts.data_packets {
        std::mem::swap(known, &mut other);
    }
    if other.counts.marked > known.counts.marked {
        let Counts { fecn, ce, marked, .. } = other.counts;
        (known.counts.fecn, known.counts.ce, known.counts.marked) = (fecn, ce, marked);
        known.marks = other.marks;
    }
    // The nearer to a loss, the more of it is seen.
    if other.sequence.retransmitted > known.sequence.retransmitted {
        known.sequence.retransmitted = other.sequence.retransmitted;
    }
    let marks = [known.first_mark_ns, other.first_mark_ns];
    known.first_mark_ns = marks.into_iter().flatten().min();
}

/// A flow of which only what came back was captured.
fn only_answered(flow: &Flow) -> FoundFlow {
    FoundFlow {
        carrier: flow.key.carrier,
        service: flow.service,
        source: flow.key.destination,
        destination: flow.key.source,
        source_queue_pair: Some(flow.key.queue_pair),
        queue_pair: None,
        lane: flow.lane,
        point: flow.point,
        seen_at: 0,
        counts: Counts::default(),
        sequence: SequenceCounts::default(),
        gaps: Gaps::default(),
        span_ns: flow.span_ns(),
        first_mark_ns: None,
        slices: Vec::new(),
        marks: Vec::new(),
        feedback: None,
        standing: judge::Standing::Unknown,
    }
}

/// What came back was seen at a place; the one that saw most of it counts.
fn hear(known: &mut FoundFlow, flow: &Flow, grid: &Grid) {
    known.source_queue_pair = known.source_queue_pair.or(Some(flow.key.queue_pair));
    let weight = |counts: &Counts| counts.cnp + counts.becn + counts.acks + counts.naks();
    let heard = known.feedback.as_ref().map_or(0, |feedback| weight(&feedback.counts));
    if weight(&flow.counts) > heard {
        known.feedback = Some(Feedback {
            point: flow.point,
            counts: flow.counts,
            first_cnp_ns: flow.first_cnp_ns,
            slices: flow.slices.all(grid),
        });
    }
}
