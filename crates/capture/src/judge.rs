//! Who causes congestion and who suffers from it, as far as marks and rates tell.
//!
//! A switch marks what passes a congested output, so a flow with marks, or one that is notified,
//! contributes. Flows to one port share at least its link. Flows to different ports share a link if
//! their marks come and go together, as losses and delays do on a shared link (Rubenstein, Kurose
//! and Towsley, "Detecting shared congestion of flows via end-to-end measurement", 2002). A flow
//! without marks suffers if it is slower while others are marked than while nobody is.

use crate::flow::Slice;
use crate::found::FoundFlow;

/// What a flow has to do with congestion.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Standing {
    /// Nothing tells.
    #[default]
    Unknown,
    /// It passes a congested output: it is marked, or its sender is notified.
    Contributor,
    /// It is not marked, and slower while others are: its rate then, as a share of its rate while
    /// nobody is marked.
    Victim {
        /// 0 to [`SLOWED`].
        share: f64,
    },
    /// It is not marked, and as fast while others are.
    Unhurt,
}

impl Standing {
    /// One word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Standing::Unknown => "",
            Standing::Contributor => "contributor",
            Standing::Victim { .. } => "victim",
            Standing::Unhurt => "unhurt",
        }
    }
}

/// Flows that wait for the same link.
#[derive(Clone, PartialEq, Debug)]
pub struct Bottleneck {
    /// Indices of the flows.
    pub flows: Vec<usize>,
    /// Whether all of them go to one port.
    pub one_port: bool,
}

/// A flow contributes if at least this share of its packets is marked, or this share notified.
const MARKED_LEAST: f64 = 0.01;
const NOTIFIED_LEAST: f64 = 0.001;
/// A flow suffers if it is this slow while others are marked.
pub const SLOWED: f64 = 0.8;
/// The rank-sum statistic that chance exceeds once in a hundred times.
const RANKS_LEAST: f64 = 2.33;
/// Slices of each kind that rates are compared over.
const SLICES_LEAST: usize = 4;
/// Marks come and go together at this correlation, over so many slices.
const CORRELATION_LEAST: f64 = 0.5;
const CORRELATED_LEAST: usize = 8;
/// Contributors that are compared with each other.
const COMPARED_MAX: usize = 256;

/// Gives every flow its standing, and finds bottlenecks.
pub(crate) fn judge(flows: &mut [FoundFlow]) -> Vec<Bottleneck> {
    let contributes: Vec<bool> = flows.iter().map(contributes).collect();
    let marked = marked_by_slice(flows, &contributes);
    for (flow, contributes) in flows.iter_mut().zip(&contributes) {
        flow.standing = match contributes {
            true => Standing::Contributor,
            false => suffers(&flow.slices, &marked),
        };
    }
    bottlenecks(flows)
}

fn contributes(flow: &FoundFlow) -> bool {
    let notified = flow.cnps() + flow.becns();
    match flow.marked_share() {
        Some(share) => {
            let notified_share = notified as f64 / flow.counts.data_packets as f64;
            share >= MARKED_LEAST || notified_share >= NOTIFIED_LEAST
        }
        // Only what came back was captured.
        None => notified > 0,
    }
}

/// In which slices contributors are marked or notified.
fn marked_by_slice(flows: &[FoundFlow], contributes: &[bool]) -> Vec<bool> {
    let mut marked = Vec::new();
    let of = flows.iter().zip(contributes).filter(|(_, contributes)| **contributes);
    for (flow, _) in of {
        let back = flow.feedback.iter().flat_map(|feedback| feedback.slices.iter().enumerate());
        for (number, slice) in flow.slices.iter().enumerate().chain(back) {
            if marked.len() <= number {
                marked.resize(number + 1, false);
            }
            marked[number] |= slice.marked + slice.cnp + slice.becn > 0;
        }
    }
    marked
}

/// Whether a flow is slower in marked slices than in others.
fn suffers(slices: &[Slice], marked: &[bool]) -> Standing {
    // The first and the last slice of a flow are not whole.
    let first = slices.iter().position(|slice| slice.payload_bytes > 0).unwrap_or(0);
    let whole = (first + 1)..slices.len().saturating_sub(1);
    let (mut calm, mut busy) = (Vec::new(), Vec::new());
    for number in whole {
        let rate = slices[number].payload_bytes;
        match marked.get(number).copied().unwrap_or(false) {
            true => busy.push(rate),
            false => calm.push(rate),
        }
    }
    if calm.len() < SLICES_LEAST || busy.len() < SLICES_LEAST {
        return Standing::Unknown;
    }
    let mean = |rates: &[u64]| rates.iter().sum::<u64>() as f64 / rates.len() as f64;
    let (in_calm, in_busy) = (mean(&calm), mean(&busy));
    if in_calm == 0.0 {
        return Standing::Unknown;
    }
    let share = in_busy / in_calm;
    match share <= SLOWED && rank_sum(&busy, &calm) >= RANKS_LEAST {
        true => Standing::Victim { share },
        false => Standing::Unhurt,
    }
}

/// How far the first values are below the second: the rank-sum statistic of Mann and Whitney in
/// standard deviations.
fn rank_sum(low: &[u64], high: &[u64]) -> f64 {
    let (n, m) = (low.len() as f64, high.len() as f64);
    let mut below = 0.0;
    for a in low {
        for b in high {
            below += match a.cmp(b) {
                std::cmp::Ordering::Less => 1.0,
                std::cmp::Ordering::Equal => 0.5,
                std::cmp::Ordering::Greater => 0.0,
            };
        }
    }
    (below - n * m / 2.0) / (n * m * (n + m + 1.0) / 12.0).sqrt()
}

/// Groups of contributors that share a link, largest first.
fn bottlenecks(flows: &[FoundFlow]) -> Vec<Bottleneck> {
    let is_one = |flow: &&usize| flows[**flow].standing == Standing::Contributor;
    let all: Vec<usize> = (0..flows.len()).collect();
    let contributors: Vec<usize> = all.iter().filter(is_one).copied().collect();
    // Each flow names one that shares a link with it, at last the first of its group.
    let mut leads: Vec<usize> = all;
    fn lead(leads: &[usize], mut flow: usize) -> usize {
        while leads[flow] != flow {
            flow = leads[flow];
        }
        flow
    }
    for (place, a) in contributors.iter().enumerate() {
        for b in &contributors[..place] {
            let (a_lead, b_lead) = (lead(&leads, *a), lead(&leads, *b));
            if a_lead == b_lead {
                continue;
            }
            let one_port = flows[*a].destination == flows[*b].destination;
            if one_port || place < COMPARED_MAX && are_marked_together(&flows[*a], &flows[*b]) {
                leads[a_lead.max(b_lead)] = a_lead.min(b_lead);
            }
        }
    }
    let mut groups: Vec<Bottleneck> = Vec::new();
    for flow in &contributors {
        let first = lead(&leads, *flow);
        match groups.iter_mut().find(|group| group.flows[0] == first) {
            Some(group) => group.flows.push(*flow),
            None => groups.push(Bottleneck { flows: vec![*flow], one_port: true }),
        }
    }
    for group in &mut groups {
        let port = flows[group.flows[0]].destination;
        group.one_port = group.flows.iter().all(|flow| flows[*flow].destination == port);
    }
    groups.sort_by_key(|group| (std::cmp::Reverse(group.flows.len()), group.flows[0]));
    groups
}

/// Whether the shares of marked packets of two flows rise and fall together.
fn are_marked_together(a: &FoundFlow, b: &FoundFlow) -> bool {
    let share = |slice: &Slice| f64::from(slice.marked) / f64::from(slice.data_packets);
    let both = a.slices.iter().zip(&b.slices);
    let both = both.filter(|(a, b)| a.data_packets > 0 && b.data_packets > 0);
    let shares: Vec<(f64, f64)> = both.map(|(a, b)| (share(a), share(b))).collect();
    shares.len() >= CORRELATED_LEAST && correlation(&shares) >= CORRELATION_LEAST
}

/// Pearson's coefficient; 0 where either does not vary.
fn correlation(values: &[(f64, f64)]) -> f64 {
    let n = values.len() as f64;
    let (a, b) = values.iter().fold((0.0, 0.0), |sum, (a, b)| (sum.0 + a, sum.1 + b));
    let (a, b) = (a / n, b / n);
    let (mut both, mut of_a, mut of_b) = (0.0, 0.0, 0.0);
    for (x, y) in values {
        both += (x - a) * (y - b);
        of_a += (x - a) * (x - a);
        of_b += (y - b) * (y - b);
    }
    if of_a * of_b > 0.0 { both / (of_a * of_b).sqrt() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slices(rates: &[u64]) -> Vec<Slice> {
        rates.iter().map(|rate| Slice { payload_bytes: *rate, ..Slice::default() }).collect()
    }

    #[test]
    fn a_flow_suffers_if_it_is_slow_just_while_others_are_marked() {
        let marked: Vec<bool> = (0..20).map(|number| (5..15).contains(&number)).collect();
        let slow = |number: usize| if (5..15).contains(&number) { 40 } else { 100 };
        let rates: Vec<u64> = (0..20).map(|n| slow(n) + (n % 3) as u64).collect();
        match suffers(&slices(&rates), &marked) {
            Standing::Victim { share } => assert!((share - 0.4).abs() < 0.02, "{share}"),
            other => panic!("{other:?}"),
        }
        let steady: Vec<u64> = (0..20).map(|n| 100 + n % 3).collect();
        assert_eq!(suffers(&slices(&steady), &marked), Standing::Unhurt);
        // Nothing to compare with.
        assert_eq!(suffers(&slices(&rates), &[true; 20]), Standing::Unknown);
        assert_eq!(suffers(&[], &marked), Standing::Unknown);
    }

    #[test]
    fn statistics_are_those_of_the_textbook() {
        // Mann and Whitney: all of five below all of five is 12.5 above the mean, sd 4.787.
        assert!((rank_sum(&[1, 2, 3, 4, 5], &[6, 7, 8, 9, 10]) - 2.611).abs() < 1e-3);
        assert_eq!(rank_sum(&[1, 1], &[1, 1]), 0.0);
        assert!((correlation(&[(1.0, 2.0), (2.0, 4.0), (3.0, 6.0)]) - 1.0).abs() < 1e-12);
        assert_eq!(correlation(&[(1.0, 2.0), (1.0, 4.0)]), 0.0);
    }
}
