//! Files of captures analysed together: opened, brought to one clock, counted.

use crate::analysis::Analysis;
use crate::clocks::{Clock, ClockKnown, Samples, clocks};
use crate::dissect::Dissected;
use crate::files::{Fault, Input, Reader, Record};
use crate::found::Found;
use crate::link::dissect;
use std::io::{self, Read};

/// A file that is analysed.
pub struct Source<'a> {
    /// What it is called.
    pub name: String,
    /// Begins to read it.
    pub open: Box<dyn Fn() -> io::Result<Box<dyn Read>> + 'a>,
    /// Bytes it has; nothing for a pipe.
    pub bytes: Option<u64>,
}

/// What is asked of an analysis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Whether CRCs are checked.
    pub crcs: bool,
    /// Packets from this time after the first one on, ns.
    pub from_ns: u64,
    /// Packets up to this time after the first one, ns.
    pub to_ns: Option<u64>,
    /// How long slices are, ns; nothing for as long as it takes.
    pub slice_ns: Option<u64>,
}

/// Why files cannot be analysed.
#[derive(Debug, thiserror::Error)]
#[error("{name} {fault}")]
pub struct CaptureError {
    /// The file.
    pub name: String,
    /// What is wrong with it.
    pub fault: Fault,
}

/// A place that packets were captured at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Point {
    /// Index of the file.
    pub capture: usize,
    /// What people call it: the interface's name, or that of the file.
    pub name: String,
}

/// A file that was analysed.
#[derive(Clone, PartialEq, Debug)]
pub struct Capture {
    /// What it is called.
    pub name: String,
    /// Its format.
    pub format: &'static str,
    /// Records in it.
    pub records: u64,
    /// Those whose time was ibdump's and is corrected.
    pub corrected: u64,
    /// Bytes behind its last whole record.
    pub left_over: usize,
    /// What is wrong with it behind the last record that was read.
    pub damaged: Option<String>,
    /// Its clock.
    pub clock: Clock,
}

/// What files hold.
#[derive(Debug)]
pub struct Analysed {
    /// The files.
    pub captures: Vec<Capture>,
    /// The places, by the numbers that flows name them by.
    pub points: Vec<Point>,
    /// The first packet of all, nanoseconds since 1970, on the clock of the first file.
    pub start_ns: u64,
    /// The last record of all, on the same clock.
    pub end_ns: u64,
    /// Whether CRCs were checked.
    pub crcs: bool,
    /// Records outside the span asked for, which are not counted.
    pub outside: u64,
    /// Records of a single file that are a millisecond or more earlier than its first: series have
    /// them in their first slice.
    pub early: u64,
    /// Whether it was stopped: what was not read yet is not in it.
    pub partial: bool,
    /// What was found.
    pub found: Found,
}

/// Told how much has been read: a share, 0 to 1, or bytes of a pipe. Returns whether to go on.
pub type Tell<'a> = &'a mut dyn FnMut(Option<f64>, u64) -> bool;

/// How often progress is told, in records.
const TOLD: u64 = 1 << 16;

/// A file under way.
struct Open {
    capture: Capture,
    reader: Reader<'static>,
}

impl Open {
    fn of(source: &Source<'_>) -> Result<Self, CaptureError> {
        let error = |fault| CaptureError { name: source.name.clone(), fault };
        let read = (source.open)().map_err(|e| error(Fault::Reading(e)))?;
        let reader = Reader::open(Input::new(read)).map_err(error)?;
        let capture = Capture {
            name: source.name.clone(),
            format: reader.entry.name,
            records: 0,
            corrected: 0,
            left_over: 0,
            damaged: None,
            clock: Clock::default(),
        };
        Ok(Open { capture, reader })
    }

    /// Hands out every record, until there is none, or none that can be read, or it is stopped.
    /// Returns whether it was not.
    fn each(
        &mut self,
        share: &mut impl FnMut(u64) -> bool,
        mut one: impl FnMut(&Record<'_>),
    ) -> Result<bool, CaptureError> {
        loop {
            match self.reader.next() {
                Ok(Some(record)) => one(&record),
                Ok(None) => break,
                Err(Fault::Reading(e)) => {
                    let name = self.capture.name.clone();
                    return Err(CaptureError { name, fault: Fault::Reading(e) });
                }
                Err(fault) if self.capture.records == 0 => {
                    return Err(CaptureError { name: self.capture.name.clone(), fault });
                }
                // What is before the damage counts.
                Err(fault) => {
                    self.capture.damaged = Some(fault.to_string());
                    break;
                }
            }
            self.capture.records += 1;
            if self.capture.records.is_multiple_of(TOLD) && !share(self.reader.position()) {
                self.capture.corrected = self.reader.corrected();
                return Ok(false);
            }
        }
        self.capture.corrected = self.reader.corrected();
        if self.capture.damaged.is_none() {
            self.capture.left_over = self.reader.left_over().unwrap_or(0);
        }
        Ok(true)
    }
}

/// Analyses files together. Several are read twice: first for their clocks. Nothing if it was
/// stopped before anything was counted.
pub fn analyse(
    sources: &[Source<'_>],
    options: &Options,
    tell: Tell<'_>,
) -> Result<Option<Analysed>, CaptureError> {
    let passes = if sources.len() > 1 { 2.0 } else { 1.0 };
    let all: Option<u64> = sources.iter().map(|source| source.bytes).sum();
    let mut before = 0;
    let mut told = |before: u64, position: u64| {
        let read = before + position;
        tell(all.map(|all| read as f64 / (all.max(1) as f64 * passes)), read)
    };
    let mut clocks_known = vec![Clock::default(); sources.len()];
    let mut start_ns = None;
    if sources.len() > 1 {
        let mut samples = Vec::new();
        let mut starts = Vec::new();
        for source in sources {
            let mut known = Samples::default();
            let mut first = u64::MAX;
            let mut open = Open::of(source)?;
            let goes_on = open.each(&mut |at| told(before, at), |record| {
                first = first.min(record.time_ns);
                if let Dissected::Packet(packet) = dissect(record, false) {
                    known.add(&packet);
                }
            })?;
            if !goes_on {
                return Ok(None);
            }
            before += open.reader.position();
            samples.push(known);
            starts.push(first);
        }
        clocks_known = clocks(&samples);
        let starts = clocks_known.iter().zip(&starts).filter(|(_, first)| **first < u64::MAX);
        start_ns = starts.map(|(clock, first)| clock.corrected(*first)).min();
    }
    let mut counting = Counting::of(options, start_ns);
    let mut captures = Vec::new();
    let mut partial = false;
    for (number, source) in sources.iter().enumerate() {
        let mut open = Open::of(source)?;
        open.capture.clock = clocks_known[number];
        let clock = clocks_known[number];
        let mut seen = Vec::new();
        let goes_on = open.each(&mut |at| told(before, at), |record| {
            counting.count(record, &clock, &mut seen);
        })?;
        before += open.reader.position();
        counting.name_points(number, &open, &seen, sources.len());
        captures.push(open.capture);
        if !goes_on {
            partial = true;
            break;
        }
    }
    Ok(Some(counting.finish(captures, partial)))
}

/// The analysis, begun with the first record.
struct Counting<'a> {
    options: &'a Options,
    analysis: Option<Analysis>,
    points: Vec<Point>,
    start_ns: Option<u64>,
    end_ns: u64,
    outside: u64,
    early: u64,
}

/// Records that are less early than this are as interfaces and queues hand them on.
const EARLY_NS: u64 = 1_000_000;

impl<'a> Counting<'a> {
    fn of(options: &'a Options, start_ns: Option<u64>) -> Self {
        let points = Vec::new();
        Counting { options, analysis: None, points, start_ns, end_ns: 0, outside: 0, early: 0 }
    }

    fn finish(self, captures: Vec<Capture>, partial: bool) -> Analysed {
        let start_ns = self.start_ns.unwrap_or(0);
        let new = || Analysis::new(start_ns, self.options.slice_ns);
        let found = self.analysis.unwrap_or_else(new).finish();
        let Counting { points, end_ns, outside, early, .. } = self;
        let end_ns = end_ns.max(start_ns);
        let crcs = self.options.crcs;
        Analysed { captures, points, start_ns, end_ns, crcs, outside, early, partial, found }
    }

    /// Counts a record, if it is within the span asked for. `seen` has the number of the place of
    /// each interface of its file.
    #[inline]
    fn count(&mut self, record: &Record<'_>, clock: &Clock, seen: &mut Vec<Option<u32>>) {
        let time_ns = match clock.known {
            ClockKnown::Measured => clock.corrected(record.time_ns),
            _ => record.time_ns,
        };
        let start = *self.start_ns.get_or_insert(time_ns);
        self.end_ns = self.end_ns.max(time_ns);
        self.early += u64::from(start.saturating_sub(time_ns) >= EARLY_NS);
        let since = time_ns.saturating_sub(start);
        if since < self.options.from_ns || self.options.to_ns.is_some_and(|to| since > to) {
            self.outside += 1;
            return;
        }
        let interface = record.interface as usize;
        if seen.len() <= interface {
            seen.resize(interface + 1, None);
        }
        let points = &mut self.points;
        let point = *seen[interface].get_or_insert_with(|| {
            // Named when the file has been read.
            points.push(Point { capture: 0, name: String::new() });
            (points.len() - 1) as u32
        });
        let mut dissected = dissect(record, self.options.crcs);
        if let Dissected::Packet(packet) = &mut dissected {
            packet.time_ns = time_ns;
        }
        let from = start + self.options.from_ns;
        let new = || Analysis::new(from, self.options.slice_ns);
        self.analysis.get_or_insert_with(new).add(point, time_ns, &dissected);
    }

    /// Names the places of a file.
    fn name_points(&mut self, capture: usize, open: &Open, seen: &[Option<u32>], files: usize) {
        let file = &open.capture.name;
        let many = seen.iter().flatten().count() > 1;
        for (interface, point) in seen.iter().enumerate() {
            let Some(point) = point else { continue };
            let known = open.reader.interfaces().get(interface);
            let name = match known.and_then(|interface| interface.name.as_deref()) {
                Some(name) if files > 1 => format!("{file}:{name}"),
                Some(name) => name.to_owned(),
                None if many => format!("{file}:{interface}"),
                None => file.clone(),
            };
            self.points[*point as usize] = Point { capture, name };
        }
    }
}
