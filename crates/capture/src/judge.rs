//! Who causes congestion and who suffers from it, as far as marks and rates tell.
//!
//! A switch marks what passes a congested output, so a flow with marks, or one that is notified,
//! contributes. Flows to one port share at least its link. Flows to different ports may share a
//! link if their marks come and go together, as losses and delays do on a shared link (Rubenstein,
//! Kurose and Towsley, "Detecting shared congestion of flows via end-to-end measurement", 2002). A
//! flow without marks suffers if it is slower while others are marked than while nobody is. Both
//! are statistics of series in which one slice is like the next, so tests are used that allow for
//! that, and for how many flows are asked.

use crate::endpoint::Endpoint;
use crate::flow::Slice;
use crate::found::FoundFlow;
use std::collections::BTreeMap;

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

/// A port, and the contributors to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bottleneck {
    /// Indices of the flows.
    pub flows: Vec<usize>,
    /// Index of a bottleneck with more flows whose marks come and go together with these: they may
    /// share a link before their ports.
    pub with: Option<usize>,
}

/// A flow contributes if at least this share of its packets is marked, or this share notified.
const MARKED_LEAST: f64 = 0.01;
const NOTIFIED_LEAST: f64 = 0.001;
/// A flow suffers if it is this slow while others are marked.
pub const SLOWED: f64 = 0.8;
/// Slices of each kind that rates are compared over.
const SLICES_LEAST: usize = 4;
/// Shifts of up to so many slices are the same coincidence.
const SAME_SHIFT: usize = 2;
/// Of the flows called victims, at most this share is by chance.
const VICTIMS_BY_CHANCE: f64 = 0.05;
/// Marks come and go together at this correlation, over so many slices, …
const CORRELATION_LEAST: f64 = 0.5;
const CORRELATED_LEAST: usize = 8;
/// … unless chance does that for any pair of ports with more than this probability.
const TOGETHER_BY_CHANCE: f64 = 0.01;
/// Ports that are compared with each other: those with most flows.
const COMPARED_MAX: usize = 256;

/// Gives every flow its standing, and finds bottlenecks.
pub(crate) fn judge(flows: &mut [FoundFlow]) -> Vec<Bottleneck> {
    let contributes: Vec<bool> = flows.iter().map(contributes).collect();
    let marked = marked_by_slice(flows, &contributes);
    // Of each flow without marks that can be compared: how likely chance is, and who it is.
    let mut compared: Vec<(f64, usize)> = Vec::new();
    for (number, (flow, contributes)) in flows.iter_mut().zip(&contributes).enumerate() {
        if *contributes {
            flow.standing = Standing::Contributor;
        } else if let Some((standing, chance)) = suffers(&flow.slices, &marked) {
            flow.standing = standing;
            compared.push((chance, number));
        }
    }
    for number in by_chance(compared) {
        if matches!(flows[number].standing, Standing::Victim { .. }) {
            flows[number].standing = Standing::Unknown;
        }
    }
    bottlenecks(flows)
}

/// Those that chance may have put where they are, so that of the others no more than
/// [`VICTIMS_BY_CHANCE`] are (Benjamini and Hochberg, "Controlling the false discovery rate",
/// 1995).
fn by_chance(mut compared: Vec<(f64, usize)>) -> impl Iterator<Item = usize> {
    compared.sort_by(|(a, one), (b, other)| a.total_cmp(b).then(one.cmp(other)));
    let each = VICTIMS_BY_CHANCE / compared.len().max(1) as f64;
    let holds = |place: &usize| compared[*place].0 <= (place + 1) as f64 * each;
    let believed = (0..compared.len()).rev().find(holds).map_or(0, |place| place + 1);
    compared.into_iter().skip(believed).map(|(_, number)| number)
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
        for (number, slice) in flow.marks.iter().enumerate().chain(back) {
            if marked.len() <= number {
                marked.resize(number + 1, false);
            }
            marked[number] |= slice.marked + slice.cnp + slice.becn > 0;
        }
    }
    marked
}

/// Whether a flow is slower in marked slices than in others, and how likely chance makes it as
/// slow: the share of shifts in time of the marked slices that do. Nothing if there is nothing to
/// compare.
fn suffers(slices: &[Slice], marked: &[bool]) -> Option<(Standing, f64)> {
    // The first and the last slice of a flow are not whole.
    let first = slices.iter().position(|slice| slice.payload_bytes > 0)?;
    let whole = (first + 1)..slices.len().saturating_sub(1);
    let both: Vec<(u64, bool)> = whole
        .map(|at| (slices[at].payload_bytes, marked.get(at).copied().unwrap_or(false)))
        .collect();
    let busy = both.iter().filter(|(_, marked)| *marked).count();
    let calm = both.len() - busy;
    if calm < SLICES_LEAST || busy < SLICES_LEAST {
        return None;
    }
    let all: u64 = both.iter().map(|(bytes, _)| bytes).sum();
    let length = both.len();
    // Of calm slices and of busy ones, if marks had been so many slices later.
    let share_at = |shift: usize| {
        let later = both.iter().enumerate().filter(|(_, (_, marked))| *marked);
        let in_busy: u64 = later.map(|(at, _)| both[(at + shift) % length].0).sum();
        let in_calm = all - in_busy;
        (in_calm > 0).then(|| in_busy as f64 / busy as f64 / (in_calm as f64 / calm as f64))
    };
    let share = share_at(0)?;
    if share > SLOWED {
        return Some((Standing::Unhurt, 1.0));
    }
    let shifts = (SAME_SHIFT + 1)..length.saturating_sub(SAME_SHIFT);
    let tried = shifts.len();
    let as_slow = shifts.filter(|shift| share_at(*shift).is_some_and(|other| other <= share));
    let chance = (1 + as_slow.count()) as f64 / (1 + tried) as f64;
    Some((Standing::Victim { share }, chance))
}

/// Contributors by port, most first, and which of the ports may share a link with another.
fn bottlenecks(flows: &[FoundFlow]) -> Vec<Bottleneck> {
    let mut ports: BTreeMap<Endpoint, Vec<usize>> = BTreeMap::new();
    for (number, flow) in flows.iter().enumerate() {
        if flow.standing == Standing::Contributor {
            ports.entry(flow.destination).or_default().push(number);
        }
    }
    let mut all: Vec<Bottleneck> =
        ports.into_values().map(|flows| Bottleneck { flows, with: None }).collect();
    all.sort_by_key(|bottleneck| (std::cmp::Reverse(bottleneck.flows.len()), bottleneck.flows[0]));
    let compared = all.len().min(COMPARED_MAX);
    let series: Vec<Vec<(u64, u64)>> =
        all[..compared].iter().map(|bottleneck| marks_of(bottleneck, flows)).collect();
    let pairs = compared * compared.saturating_sub(1) / 2;
    for place in 1..compared {
        // One that goes with another is not what others go with: likeness is not handed on.
        let leads = (0..place).filter(|lead| all[*lead].with.is_none());
        let with = leads.into_iter().find(|lead| together(&series[*lead], &series[place], pairs));
        all[place].with = with;
    }
    all
}

/// Packets marked and packets with data, slice by slice, of all flows to a port.
fn marks_of(bottleneck: &Bottleneck, flows: &[FoundFlow]) -> Vec<(u64, u64)> {
    let mut sums: Vec<(u64, u64)> = Vec::new();
    for flow in &bottleneck.flows {
        let marks = &flows[*flow].marks;
        sums.resize(sums.len().max(marks.len()), (0, 0));
        for (sum, slice) in sums.iter_mut().zip(marks) {
            sum.0 += u64::from(slice.marked);
            sum.1 += u64::from(slice.data_packets);
        }
    }
    sums
}

/// Whether shares of marked packets rise and fall together, and more than chance makes one of so
/// many pairs do it.
fn together(a: &[(u64, u64)], b: &[(u64, u64)], pairs: usize) -> bool {
    let share = |(marked, all): &(u64, u64)| *marked as f64 / *all as f64;
    let both = a.iter().zip(b).filter(|(a, b)| a.1 > 0 && b.1 > 0);
    let shares: Vec<(f64, f64)> = both.map(|(a, b)| (share(a), share(b))).collect();
    if shares.len() < CORRELATED_LEAST {
        return false;
    }
    let coefficient = correlation(&shares);
    if coefficient < CORRELATION_LEAST {
        return false;
    }
    // Fisher's transformation, with as many values as slices are worth that are like their
    // neighbours (Bartlett, "Some aspects of the time-correlation problem", 1935).
    let worth = shares.len() as f64 / likeness(&shares);
    let deviations = coefficient.min(1.0 - 1e-9).atanh() * (worth - 3.0).max(0.0).sqrt();
    // A normal value exceeds z with a probability of at most exp(-z²/2) / 2.
    let most = (2.0 * (pairs.max(1) as f64 / (2.0 * TOGETHER_BY_CHANCE)).ln()).sqrt();
    deviations >= most
}

/// How many slices are worth one, because each is like the next in both series; 1 or more.
fn likeness(shares: &[(f64, f64)]) -> f64 {
    let own = |pick: fn(&(f64, f64)) -> f64, lag: usize| {
        let pairs = shares.iter().zip(&shares[lag..]);
        correlation(&pairs.map(|(one, later)| (pick(one), pick(later))).collect::<Vec<_>>())
    };
    let lags = 1..=shares.len() / 4;
    let like = lags.map(|lag| own(|both| both.0, lag) * own(|both| both.1, lag));
    (1.0 + 2.0 * like.sum::<f64>()).max(1.0)
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
    use clearlane_ib::random::Stream;

    fn slices(rates: &[u64]) -> Vec<Slice> {
        rates.iter().map(|rate| Slice { payload_bytes: *rate, ..Slice::default() }).collect()
    }

    /// Phases of on and off, of random length with this mean.
    fn phases(stream: &mut Stream, mean: f64, length: usize) -> Vec<bool> {
        let mut on = stream.unit() < 0.5;
        let mut all = Vec::new();
        for _ in 0..length {
            on ^= stream.unit() < 1.0 / mean;
            all.push(on);
        }
        all
    }

    #[test]
    fn a_flow_suffers_if_it_is_slow_just_while_others_are_marked() {
        let marked: Vec<bool> = (0..60).map(|number| (15..40).contains(&number)).collect();
        let slow = |number: usize| if (15..40).contains(&number) { 40 } else { 100 };
        let rates: Vec<u64> = (0..60).map(|n| slow(n) + (n % 3) as u64).collect();
        match suffers(&slices(&rates), &marked) {
            Some((Standing::Victim { share }, chance)) => {
                assert!((share - 0.4).abs() < 0.02 && chance < 0.02, "{share} {chance}");
            }
            other => panic!("{other:?}"),
        }
        let steady: Vec<u64> = (0..60).map(|n| 100 + n % 3).collect();
        let unhurt = suffers(&slices(&steady), &marked).map(|(standing, _)| standing);
        assert_eq!(unhurt, Some(Standing::Unhurt));
        // Nothing to compare with.
        assert_eq!(suffers(&slices(&rates), &[true; 60]), None);
        assert_eq!(suffers(&[], &marked), None);
    }

    /// Many flows that come and go by themselves beside one that is marked for a while.
    #[test]
    fn flows_that_come_and_go_by_themselves_are_no_victims() {
        let marked: Vec<bool> = (0..200).map(|number| (60..140).contains(&number)).collect();
        let (mut slow, mut believed) = (0, 0);
        for run in 0..50 {
            let mut stream = Stream::new(1, "victims by chance", run);
            let mut compared = Vec::new();
            for number in 0..100 {
                let on = phases(&mut stream, 30.0, 200);
                let rates: Vec<u64> = on.iter().map(|on| if *on { 100 } else { 5 }).collect();
                if let Some((standing, chance)) = suffers(&slices(&rates), &marked) {
                    slow += usize::from(standing != Standing::Unhurt);
                    compared.push((chance, number));
                }
            }
            let all = compared.len();
            believed += usize::from(by_chance(compared).count() < all);
        }
        // A third of them are slower then. In one run of twenty somebody may be called a victim.
        assert!(slow > 1000 && believed <= 8, "{slow} {believed}");
    }

    fn shares(on: &[bool], stream: &mut Stream) -> Vec<(u64, u64)> {
        let mut marked = |on: &bool| {
            let share = if *on { 0.5 } else { 0.05 };
            (0..20).filter(|_| stream.unit() < share).count() as u64
        };
        on.iter().map(|on| (marked(on), 20)).collect()
    }

    #[test]
    fn marks_come_and_go_together_on_a_shared_link_alone() {
        let (mut by_chance, mut found) = (0, 0);
        for run in 0..200 {
            let mut stream = Stream::new(1, "marks together", run);
            let [one, other] = [(); 2].map(|()| phases(&mut stream, 12.0, 200));
            let [a, b] = [(); 2].map(|()| shares(&one, &mut stream));
            let c = shares(&other, &mut stream);
            found += usize::from(together(&a, &b, 10));
            by_chance += usize::from(together(&a, &c, 10));
            // A few long phases are alike more often.
            let [one, other] = [(); 2].map(|()| phases(&mut stream, 40.0, 200));
            let [a, b] = [one, other].map(|on| shares(&on, &mut stream));
            by_chance += usize::from(together(&a, &b, 10));
        }
        assert!(found > 180 && by_chance <= 2, "{found} {by_chance}");
        // Marks at random, all the time, have nothing in common.
        let mut stream = Stream::new(1, "marks at random", 0);
        let all = vec![true; 32];
        let series: Vec<_> = (0..30).map(|_| shares(&all, &mut stream)).collect();
        for (number, a) in series.iter().enumerate() {
            assert!(series[..number].iter().all(|b| !together(a, b, 435)));
        }
    }

    #[test]
    fn correlation_is_that_of_the_textbook() {
        assert!((correlation(&[(1.0, 2.0), (2.0, 4.0), (3.0, 6.0)]) - 1.0).abs() < 1e-12);
        assert_eq!(correlation(&[(1.0, 2.0), (1.0, 4.0)]), 0.0);
    }
}
