//! What is asked of results: a measure and its arguments, which may ask for others. Nothing here
//! knows an experiment file or a run.

use super::entry::{AS_WITHIN, Answer, Entry, Parameter};
use clearlane_ib::Picoseconds;
use clearlane_workload::{Class, HostRef};
use std::ops::Range;

/// A measure with its arguments.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The measure.
    pub entry: &'static Entry,
    /// Its arguments; those it does not take are as if they were not written.
    pub arguments: Arguments,
}

/// The arguments of a measure; each takes some of them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Arguments {
    /// Whose figures are meant.
    pub scope: Scope,
    /// When.
    pub span: Span,
    /// From which host to which.
    pub flow: Option<Flow>,
    /// Which host.
    pub source: Option<HostRef>,
    /// Which output of a switch, as `name[port]`.
    pub link: Option<String>,
    /// The measure within.
    pub of: Option<Box<Asked>>,
    /// The variant below the line.
    pub over: Option<String>,
    /// Which variants; if none is named all of them, or the one that is asked about.
    pub variants: Vec<String>,
    /// Which points of a sweep.
    pub points: Points,
}

/// Whose figures are meant.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Scope {
    /// Everything.
    #[default]
    All,
    /// One class.
    Class(Class),
    /// One flow group, by name.
    Group(String),
}

/// A span of simulated time; both ends are edges of slices.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
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

/// Which points of a sweep are gone through.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Points {
    /// The keys gone through; all that are not fixed yet if none is named.
    pub along: Vec<String>,
    /// Bounds of keys with numbers, both included, in the unit of the key.
    pub within: Vec<(String, [f64; 2])>,
    /// What else has to hold at a point.
    pub provided: Option<Box<Provided>>,
    /// Whether only those count at which the measure had settled.
    pub settled: bool,
}

impl Points {
    /// The keys of the sweep that it names.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.along.iter().map(String::as_str).chain(self.within.iter().map(|(key, _)| key.as_str()))
    }
}

/// What a point of a sweep has to show to be taken.
#[derive(Clone, PartialEq, Debug)]
pub struct Provided {
    /// The measure.
    pub asked: Asked,
    /// The variant measured; the one asked about if not given.
    pub variant: Option<String>,
    /// At least this, over the seeds' mean.
    pub least: f64,
}

impl PartialEq for Asked {
    fn eq(&self, other: &Self) -> bool {
        // Names are unique.
        self.entry.name == other.entry.name && self.arguments == other.arguments
    }
}

impl Asked {
    /// A measure without arguments.
    pub fn of(entry: &'static Entry) -> Self {
        Asked { entry, arguments: Arguments::default() }
    }

    /// A measure of some.
    pub fn scoped(entry: &'static Entry, scope: Scope) -> Self {
        Asked { entry, arguments: Arguments { scope, ..Arguments::default() } }
    }

    /// Its unit; empty for a pure number.
    pub fn unit(&self) -> &'static str {
        match &self.arguments.of {
            Some(of) if self.entry.unit == AS_WITHIN => of.unit(),
            _ => self.entry.unit,
        }
    }

    /// Itself and every measure within it.
    pub fn all(&self) -> Vec<&Asked> {
        let provided = self.arguments.points.provided.iter().map(|provided| &provided.asked);
        let within = self.arguments.of.as_deref().into_iter().chain(provided);
        std::iter::once(self).chain(within.flat_map(Asked::all)).collect()
    }

    /// Those of them that single runs answer.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = &Asked> {
        let single = |asked: &&Asked| !matches!(asked.entry.answer, Answer::Combined(_));
        self.all().into_iter().filter(single)
    }

    /// Whether it goes through points of a sweep, which single runs do not have.
    pub(crate) fn is_of_sweep(&self) -> bool {
        self.all().iter().any(|asked| asked.entry.takes(Parameter::Points))
    }

    /// The variants that it and those within it name.
    pub(crate) fn variants(&self) -> impl Iterator<Item = &str> {
        self.all().into_iter().flat_map(|asked| {
            let Arguments { over, variants, points, .. } = &asked.arguments;
            let provided = points.provided.iter().filter_map(|p| p.variant.as_deref());
            over.as_deref().into_iter().chain(variants.iter().map(String::as_str)).chain(provided)
        })
    }

    /// The flow group it names itself.
    pub(crate) fn group(&self) -> Option<&str> {
        match &self.arguments.scope {
            Scope::Group(group) => Some(group),
            _ => None,
        }
    }

    /// The hosts it names itself.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &HostRef> {
        let Arguments { flow, source, .. } = &self.arguments;
        flow.iter().flat_map(|flow| [&flow.from, &flow.to]).chain(source)
    }
}

impl Span {
    /// The slices it consists of.
    pub(super) fn slices(&self, slice: Picoseconds) -> Range<usize> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
