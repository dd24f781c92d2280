//! Measures over time: what happens within a span, when something happens, how a flow oscillates.
//! They are taken from a run's record before it is put away, so only those that an experiment asks
//! for cost anything.

use super::figures::RunFigures;
use super::measures::Entry;
use super::slices::Slices;
use crate::prepare::Prepared;
use clearlane_congestion::OPEN_PATHS;
use clearlane_ib::Picoseconds;
use clearlane_sim::{ChannelRecord, FlowControl, Outcome};
use clearlane_workload::{HostRef, Rank};
use std::ops::Range;

/// What is measured over time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Timed {
    /// BECNs that reach the queue pairs of a source.
    Becns {
        /// The source.
        source: HostRef,
        /// When.
        span: Span,
    },
    /// The load of the busiest switch output.
    SpanLoad(Span),
    /// The load of the busiest switch output in its busiest slice.
    PeakLoad(Span),
    /// Time until no switch output is busy all the time any more.
    TimeToRelief(Span),
    /// Time until a source first has a second path open.
    FirstPathOpen(Span),
    /// Time until the last source to open paths has opened the most it ever has.
    LastPathOpen(Span),
    /// The most paths any pair of hosts has open.
    OpenPaths(Span),
    /// Period of a flow's throughput.
    OscillationPeriod(Flow),
    /// Amplitude of a flow's throughput over its mean.
    OscillationAmplitude(Flow),
}

/// A span of simulated time; both ends are edges of slices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Begin.
    pub from: Picoseconds,
    /// End; that of the run if not given.
    pub until: Option<Picoseconds>,
}

/// From one host to another, all groups together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flow {
    /// Source.
    pub from: HostRef,
    /// Destination.
    pub to: HostRef,
}

/// A switch output that is busy for more than this share of a slice is not relieved.
const RELIEVED: f64 = 0.95;

const SPAN: &str = "from = time, default 0 ps; until = time, default the run's end";
const FLOW: &str = "from = host, to = host: names or ranks";

pub(super) const BECNS: Entry = Entry {
    name: "becns",
    summary: "BECNs that reach a source in a span of time; each is a CNP where becn is cnp",
    unit: "",
    parameters: "source = host: a name or a rank; from = time, default 0 ps; until = time, \
                 default the run's end",
};
pub(super) const SPAN_LOAD: Entry = Entry {
    name: "span-load",
    summary: "busiest switch output over a span, share of time",
    unit: "",
    parameters: SPAN,
};
pub(super) const PEAK_LOAD: Entry = Entry {
    name: "peak-load",
    summary: "busiest switch output in its busiest slice of a span, share of time",
    unit: "",
    parameters: SPAN,
};
pub(super) const TIME_TO_RELIEF: Entry = Entry {
    name: "time-to-relief",
    summary: "end of the last slice of a span in which a switch output is busy for more than 95 % \
              of the time, counted from the span's begin; nothing if that is the last slice",
    unit: "us",
    parameters: SPAN,
};
pub(super) const FIRST_PATH_OPEN: Entry = Entry {
    name: "first-path-open",
    summary: "end of the first slice of a span in which any pair of hosts has a second path open, \
              counted from the span's begin; nothing if none has",
    unit: "us",
    parameters: SPAN,
};
pub(super) const LAST_PATH_OPEN: Entry = Entry {
    name: "last-path-open",
    summary: "end of the last slice of a span in which a pair of hosts first has the most paths \
              open it has in the span, counted from the span's begin; nothing if none opens any",
    unit: "us",
    parameters: SPAN,
};
pub(super) const PATHS_OPEN: Entry = Entry {
    name: "open-paths",
    summary: "the most paths that any pair of hosts has open at the end of a slice of a span; 1 \
              if none opens any",
    unit: "",
    parameters: SPAN,
};
pub(super) const OSCILLATION_PERIOD: Entry = Entry {
    name: "oscillation-period",
    summary: "mean time between two upward crossings of its mean by a flow's throughput, over the \
              measured part; two slices is the least that is seen",
    unit: "us",
    parameters: FLOW,
};
pub(super) const OSCILLATION_AMPLITUDE: Entry = Entry {
    name: "oscillation-amplitude",
    summary: "amplitude of the sine that has the variance of a flow's throughput over the \
              measured part, over the mean; slices decide what is still seen",
    unit: "",
    parameters: FLOW,
};

/// What makes a measure of a span.
pub(crate) type InSpan = fn(Span) -> Timed;

impl Timed {
    /// Its entry.
    pub fn entry(&self) -> &'static Entry {
        match self {
            Timed::Becns { .. } => &BECNS,
            Timed::SpanLoad(_) => &SPAN_LOAD,
            Timed::PeakLoad(_) => &PEAK_LOAD,
            Timed::TimeToRelief(_) => &TIME_TO_RELIEF,
            Timed::FirstPathOpen(_) => &FIRST_PATH_OPEN,
            Timed::LastPathOpen(_) => &LAST_PATH_OPEN,
            Timed::OpenPaths(_) => &PATHS_OPEN,
            Timed::OscillationPeriod(_) => &OSCILLATION_PERIOD,
            Timed::OscillationAmplitude(_) => &OSCILLATION_AMPLITUDE,
        }
    }

    /// What is measured in a span under this name, if nothing but the span is asked for.
    pub(crate) fn in_span(name: &str) -> Option<InSpan> {
        const ALL: [(&Entry, InSpan); 6] = [
            (&SPAN_LOAD, Timed::SpanLoad),
            (&PEAK_LOAD, Timed::PeakLoad),
            (&TIME_TO_RELIEF, Timed::TimeToRelief),
            (&FIRST_PATH_OPEN, Timed::FirstPathOpen),
            (&LAST_PATH_OPEN, Timed::LastPathOpen),
            (&PATHS_OPEN, Timed::OpenPaths),
        ];
        ALL.into_iter().find(|(entry, _)| entry.name == name).map(|(_, timed)| timed)
    }

    /// The hosts it names.
    pub(crate) fn hosts(&self) -> Vec<&HostRef> {
        match self {
            Timed::Becns { source, .. } => vec![source],
            Timed::OscillationPeriod(flow) | Timed::OscillationAmplitude(flow) => {
                vec![&flow.from, &flow.to]
            }
            _ => Vec::new(),
        }
    }

    /// When it is measured; nothing if over the measured part.
    pub fn span(&self) -> Option<Span> {
        match self {
            Timed::Becns { span, .. }
            | Timed::SpanLoad(span)
            | Timed::PeakLoad(span)
            | Timed::TimeToRelief(span)
            | Timed::FirstPathOpen(span)
            | Timed::LastPathOpen(span)
            | Timed::OpenPaths(span) => Some(*span),
            Timed::OscillationPeriod(_) | Timed::OscillationAmplitude(_) => None,
        }
    }

    /// What a run says; nothing if it has no such figure.
    pub(crate) fn of(
        &self,
        outcome: &Outcome,
        prepared: &Prepared,
        figures: &RunFigures,
    ) -> Option<f64> {
        let cut = figures.slices;
        let slices = match self.span() {
            Some(span) => span.slices(cut.length),
            // How a flow oscillates, slices of one length tell.
            None => cut.full(figures.measured.clone()),
        };
        let control = || (!outcome.control.dropped).then_some(&outcome.control.flows);
        // From the begin of the span to the end of its slice number `index`.
        let until = |index: usize| {
            let (from, end) = (cut.start(slices.start), cut.end(slices.start + index));
            Picoseconds(end.0 - from.0).as_microseconds()
        };
        match self {
            Timed::Becns { source, .. } => {
                let source = prepared.hosts.ranks().resolve(source).ok()?;
                let flows = control()?.iter().filter(|flow| flow.source == source);
                let becns = flows.flat_map(|flow| within(&flow.becns, &slices));
                Some(becns.map(|becns| u64::from(*becns)).sum::<u64>() as f64)
            }
            Timed::SpanLoad(_) => {
                let mean = |channel: &ChannelRecord| {
                    let busy = within(&channel.busy_ps, &slices);
                    let last = (slices.start + busy.len()).checked_sub(1)?;
                    let span = cut.end(last).0.saturating_sub(cut.start(slices.start).0);
                    (span > 0).then(|| busy.iter().sum::<u64>() as f64 / span as f64)
                };
                switch_channels(outcome, prepared).filter_map(mean).reduce(f64::max)
            }
            Timed::PeakLoad(_) => {
                loads(outcome, prepared, cut, &slices).into_iter().reduce(f64::max)
            }
            Timed::TimeToRelief(_) => {
                let loads = loads(outcome, prepared, cut, &slices);
                match loads.iter().rposition(|load| *load > RELIEVED) {
                    Some(last) if last + 1 == loads.len() => None,
                    last => Some(last.map_or(0.0, until)),
                }
            }
            Timed::FirstPathOpen(_) => {
                let first = |paths: &[u64]| paths.iter().position(|open| *open > 1);
                control()?.iter().filter_map(|f| first(open_paths(f, &slices))).min().map(until)
            }
            Timed::LastPathOpen(_) => {
                let all = |paths: &[u64]| {
                    let most = *paths.iter().max().filter(|most| **most > 1)?;
                    paths.iter().position(|open| *open == most)
                };
                control()?.iter().filter_map(|f| all(open_paths(f, &slices))).max().map(until)
            }
            Timed::OpenPaths(_) => {
                let most = control()?.iter().flat_map(|flow| open_paths(flow, &slices)).max();
                Some(most.map_or(1.0, |most| *most as f64).max(1.0))
            }
            Timed::OscillationPeriod(flow) => {
                let period = Oscillation::of(&flow.bytes(outcome, prepared, &slices)?)?.period?;
                Some(period * cut.length.as_microseconds())
            }
            Timed::OscillationAmplitude(flow) => {
                Some(Oscillation::of(&flow.bytes(outcome, prepared, &slices)?)?.amplitude)
            }
        }
    }
}

impl Span {
    /// The slices it consists of.
    fn slices(&self, slice: Picoseconds) -> Range<usize> {
        let index = |time: Picoseconds| (time.0 / slice.0.max(1)) as usize;
        index(self.from)..self.until.map_or(usize::MAX, index)
    }

    /// Fails unless it is the whole of a run whose slices have no fixed length.
    pub(crate) fn is_of_whole_run(&self) -> Result<(), String> {
        match (self.from, self.until) {
            (Picoseconds(0), None) => Ok(()),
            _ => Err("a span needs slices of a fixed length; drop from and until, or set \
                      run.ends = \"duration\""
                .into()),
        }
    }

    /// Fails unless both ends are edges of slices of this length.
    pub(crate) fn fits(&self, slice: Picoseconds, duration: Picoseconds) -> Result<(), String> {
        let until = self.until.unwrap_or(duration);
        if self.from >= until || until > duration {
            let [from, until, all] = [self.from, until, duration].map(Picoseconds::exact);
            return Err(format!("from {from} until {until} is no span within a run of {all}"));
        }
        let ends = [Some(self.from), self.until.filter(|until| *until != duration)];
        match ends.into_iter().flatten().find(|end| !end.0.is_multiple_of(slice.0)) {
            None => Ok(()),
            Some(end) => Err(format!(
                "{} is no edge of a slice of {}; change it or run.slices",
                end.exact(),
                slice.exact()
            )),
        }
    }
}

impl Flow {
    /// Payload delivered by slice; nothing if it is not known.
    fn bytes(
        &self,
        outcome: &Outcome,
        prepared: &Prepared,
        slices: &Range<usize>,
    ) -> Option<Vec<u64>> {
        let ranks = prepared.hosts.ranks();
        let ends: (Rank, Rank) = (ranks.resolve(&self.from).ok()?, ranks.resolve(&self.to).ok()?);
        let flows = outcome.flows.iter().filter(|flow| (flow.source, flow.destination) == ends);
        let mut sums: Option<Vec<u64>> = None;
        for flow in flows {
            let bytes = within(&flow.delivered_payload_bytes, slices);
            let sums = sums.get_or_insert_with(|| vec![0; bytes.len()]);
            sums.iter_mut().zip(bytes).for_each(|(sum, bytes)| *sum += bytes);
        }
        sums
    }
}

/// The part of a series.
fn within<'a, T>(series: &'a [T], slices: &Range<usize>) -> &'a [T] {
    let to = slices.end.min(series.len());
    series.get(slices.start.min(to)..to).unwrap_or_default()
}

/// By slice, how many paths a pair of hosts has open.
fn open_paths<'a>(flow: &'a FlowControl, slices: &Range<usize>) -> &'a [u64] {
    let shown = flow.probes.iter().find(|(name, _)| *name == OPEN_PATHS);
    shown.map_or(&[], |(_, values)| within(values, slices))
}

/// The hosts to which any other has more than one path open at some time.
pub(crate) fn opened_to(outcome: &Outcome) -> Vec<Rank> {
    let opened = |flow: &&FlowControl| open_paths(flow, &(0..usize::MAX)).iter().any(|n| *n > 1);
    let mut ranks: Vec<Rank> =
        outcome.control.flows.iter().filter(opened).map(|flow| flow.destination).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

/// The channels that leave a switch.
fn switch_channels<'a>(
    outcome: &'a Outcome,
    prepared: &'a Prepared,
) -> impl Iterator<Item = &'a ChannelRecord> {
    let nodes = prepared.fabric.nodes();
    let of_switch = move |channel: &&ChannelRecord| {
        nodes.get(channel.node as usize).is_some_and(|node| node.is_switch())
    };
    outcome.channels.iter().filter(of_switch)
}

/// By slice, the share of time the busiest switch output is busy.
fn loads(outcome: &Outcome, prepared: &Prepared, cut: Slices, slices: &Range<usize>) -> Vec<f64> {
    let mut most: Vec<u64> = Vec::new();
    for channel in switch_channels(outcome, prepared) {
        let busy = within(&channel.busy_ps, slices);
        most.resize(most.len().max(busy.len()), 0);
        most.iter_mut().zip(busy).for_each(|(most, busy)| *most = (*most).max(*busy));
    }
    let load = |(index, busy): (usize, u64)| match cut.length_of(slices.start + index).0 {
        0 => 0.0,
        // What is leaving when the run ends is booked to its own end.
        length => (busy as f64 / length as f64).min(1.0),
    };
    most.into_iter().enumerate().map(load).collect()
}

/// How a series goes up and down.
struct Oscillation {
    /// In slices; nothing if it crosses its mean upwards once at most.
    period: Option<f64>,
    /// Over the mean.
    amplitude: f64,
}

impl Oscillation {
    /// Of a series with a mean above 0.
    fn of(series: &[u64]) -> Option<Self> {
        let (n, sum) = (series.len() as u128, series.iter().map(|v| u128::from(*v)).sum::<u128>());
        if sum == 0 {
            return None;
        }
        let mean = sum as f64 / n as f64;
        let square = |value: &u64| (*value as f64 - mean) * (*value as f64 - mean);
        let variance = series.iter().map(square).sum::<f64>() / n as f64;
        // Compared as integers: a level series has no crossings, whatever its mean rounds to.
        let above = |value: u64| u128::from(value) * n > sum;
        let crossings: Vec<usize> =
            (1..series.len()).filter(|i| !above(series[i - 1]) && above(series[*i])).collect();
        let period = match crossings.as_slice() {
            [first, .., last] => Some((last - first) as f64 / (crossings.len() - 1) as f64),
            _ => None,
        };
        Some(Oscillation { period, amplitude: (2.0 * variance).sqrt() / mean })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sine_has_its_period_and_amplitude() {
        let wave = |i: usize| 1_000.0 + 300.0 * (i as f64 * std::f64::consts::TAU / 40.0).sin();
        let series: Vec<u64> = (0..400).map(|i| wave(i).round() as u64).collect();
        let found = Oscillation::of(&series).unwrap();
        assert_eq!(found.period, Some(40.0));
        assert!((found.amplitude - 0.3).abs() < 0.001, "{}", found.amplitude);
    }

    #[test]
    fn what_is_level_has_no_period() {
        for level in [7, 1 << 53] {
            let found = Oscillation::of(&[level; 99]).unwrap();
            assert_eq!((found.period, found.amplitude), (None, 0.0));
        }
        // Once up is no period yet.
        assert_eq!(Oscillation::of(&[1, 1, 3, 3]).unwrap().period, None);
        assert_eq!(Oscillation::of(&[1, 3, 1, 3, 1, 3]).unwrap().period, Some(2.0));
        assert!(Oscillation::of(&[0; 100]).is_none() && Oscillation::of(&[]).is_none());
    }

    #[test]
    fn spans_are_whole_slices_within_the_run() {
        let (us, run) = (|us: u64| Picoseconds(us * 1_000_000), Picoseconds(1_000_000_000));
        let span = |from, until: Option<u64>| Span { from: us(from), until: until.map(us) };
        assert_eq!(span(100, Some(430)).slices(us(10)), 10..43);
        assert!(span(100, Some(430)).fits(us(10), run).is_ok());
        assert!(span(0, None).fits(us(7), run).is_ok());
        assert!(span(0, Some(1_000)).fits(us(7), run).is_ok());
        for (from, until, says) in [
            (105, None, "105 us is no edge of a slice of 10 us"),
            (100, Some(435), "435 us is no edge"),
            (100, Some(100), "no span within a run of 1 ms"),
            (0, Some(1_010), "no span"),
        ] {
            let error = span(from, until).fits(us(10), run).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
