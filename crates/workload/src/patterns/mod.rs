//! Who sends to whom. One pattern a file; adding one is its file and its line in `patterns!`.

use crate::{HostRef, Rank, Ranks, Routes};
use clearlane_ib::random::Stream;
use serde::Deserialize;
use std::fmt;
use std::sync::Arc;

/// The destinations of a flow group's senders.
pub trait Destinations: fmt::Debug + Send + Sync {
    /// Destination of the next message of `source`; nothing if the draw is `source` itself. It
    /// takes at most 32 draws from the stream.
    fn draw(&self, source: Rank, stream: &mut Stream) -> Option<Rank>;

    /// Share of the group's load that this source offers: usually 1, and 0 if it never sends.
    fn weight(&self, source: Rank) -> f64;

    /// Choices made while building the pattern, for example the selected link; one line.
    fn note(&self) -> Option<&str> {
        None
    }
}

/// Why a pattern does not fit the hosts it was given.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("pattern `{pattern}`: {problem}")]
pub struct PatternError {
    /// Name of the pattern.
    pub pattern: &'static str,
    /// What is wrong, and a remedy.
    pub problem: String,
}

/// A pattern's entry in the registry.
#[derive(Debug)]
pub struct Entry {
    /// Name in experiment files.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Parameters with unit, default and range.
    pub parameters: &'static str,
    /// Where the definition comes from.
    pub reference: &'static str,
}

/// A pattern's parameters, as an experiment file writes them after `kind`.
trait Pattern {
    /// Resolves host names and checks that the pattern fits the number of ranks. `routes` is for
    /// patterns that are made for the tables of a run.
    fn build(
        &self,
        ranks: &Ranks,
        routes: Option<&dyn Routes>,
    ) -> Result<Arc<dyn Destinations>, String>;

    /// The hosts it names.
    fn hosts(&mut self) -> Vec<&mut HostRef> {
        Vec::new()
    }

    /// The file it needs read.
    fn table(&mut self) -> Option<&mut TableFile> {
        None
    }

    /// Its path.
    fn file(&self) -> Option<&str> {
        None
    }

    /// True if the pattern chooses the senders.
    fn chooses_senders(&self) -> bool {
        false
    }
}

/// A file that a pattern needs; the caller reads it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct TableFile {
    /// Its path as the experiment names it.
    pub path: String,
    /// Its content, after it was read.
    #[serde(skip)]
    pub text: Option<String>,
}

macro_rules! patterns {
    ($($module:ident)*) => {
        $(mod $module;)*

        /// A pattern with its parameters, as an experiment file writes it:
        /// `{ kind = "shift", by = 3 }`. Variants are called as their modules.
        #[derive(Clone, PartialEq, Debug, Deserialize)]
        #[serde(tag = "kind", rename_all = "kebab-case")]
        #[allow(non_camel_case_types, missing_docs)]
        pub enum PatternSpec {
            $($module($module::Params),)*
        }

        /// All patterns.
        pub static ALL: &[&Entry] = &[$(&$module::ENTRY),*];

        impl PatternSpec {
            fn pattern(&self) -> (&dyn Pattern, &'static Entry) {
                match self {
                    $(PatternSpec::$module(params) => (params, &$module::ENTRY),)*
                }
            }

            fn pattern_mut(&mut self) -> &mut dyn Pattern {
                match self {
                    $(PatternSpec::$module(params) => params,)*
                }
            }
        }
    };
}

patterns! {
    uniform
    hot_spot
    incast
    shift
    tornado
    transpose
    bit_permutation
    random_permutation
    matrix
    path_hot_spot
}

impl PatternSpec {
    /// Uniform traffic: every host sends to every other host with the same probability.
    pub fn to_anybody() -> Self {
        PatternSpec::uniform(uniform::Params::default())
    }

    /// Resolves host names and checks that the pattern fits the number of ranks. `routes` is asked
    /// by patterns that are made for the tables of a run, and by no other.
    pub fn build(
        &self,
        ranks: &Ranks,
        routes: Option<&dyn Routes>,
    ) -> Result<Arc<dyn Destinations>, PatternError> {
        let (pattern, entry) = self.pattern();
        let built = pattern.build(ranks, routes);
        built.map_err(|problem| PatternError { pattern: entry.name, problem })
    }

    /// The name of its entry.
    pub fn name(&self) -> &'static str {
        self.pattern().1.name
    }

    /// The hosts it names, to be replaced where they are not there.
    pub fn hosts(&mut self) -> Vec<&mut HostRef> {
        self.pattern_mut().hosts()
    }

    /// The file that has to be read before it is built.
    pub fn table(&mut self) -> Option<&mut TableFile> {
        self.pattern_mut().table()
    }

    /// The path of that file.
    pub fn file(&self) -> Option<&str> {
        self.pattern().0.file()
    }

    /// True if the pattern chooses the senders; `senders` is then an error.
    pub fn chooses_senders(&self) -> bool {
        self.pattern().0.chooses_senders()
    }
}

/// A pattern that sends every message of a source to one destination.
#[derive(Debug)]
pub(crate) struct Permutation {
    to: Vec<Rank>,
}

impl Permutation {
    /// From each rank's partner; a rank that is its own partner sends nothing.
    pub(crate) fn of(count: u32, partner: impl Fn(u32) -> u32) -> Arc<dyn Destinations> {
        Arc::new(Permutation { to: (0..count).map(|rank| Rank(partner(rank))).collect() })
    }
}

impl Destinations for Permutation {
    fn draw(&self, source: Rank, _: &mut Stream) -> Option<Rank> {
        self.to.get(source.0 as usize).copied().filter(|to| *to != source)
    }

    fn weight(&self, source: Rank) -> f64 {
        let own = self.to.get(source.0 as usize).is_none_or(|to| *to == source);
        if own { 0.0 } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn ranks(count: u32) -> Ranks {
        Ranks::named((0..count).map(|rank| format!("host{rank:03}")))
    }

    /// Partner of each rank by a spec in JSON-like TOML; itself where it sends nothing.
    fn partners(spec: PatternSpec, count: u32) -> Vec<u32> {
        let built = spec.build(&ranks(count), None).unwrap();
        let mut stream = Stream::new(1, "test", 0);
        let to = |rank| built.draw(Rank(rank), &mut stream).map_or(rank, |to| to.0);
        (0..count).map(to).collect()
    }

    #[test]
    fn permutations_are_those_of_the_textbook() {
        // Dally and Towles, Principles and Practices of Interconnection Networks, table 3.1.
        use bit_permutation::Kind;
        let bits =
            |permutation| PatternSpec::bit_permutation(bit_permutation::Params { permutation });
        assert_eq!(partners(bits(Kind::Reversal), 8), [0, 4, 2, 6, 1, 5, 3, 7]);
        assert_eq!(partners(bits(Kind::Shuffle), 8), [0, 2, 4, 6, 1, 3, 5, 7]);
        assert_eq!(partners(bits(Kind::Butterfly), 8), [0, 4, 2, 6, 1, 5, 3, 7]);
        assert_eq!(partners(bits(Kind::Butterfly), 16)[1], 8);
        assert_eq!(partners(bits(Kind::Complement), 8), [7, 6, 5, 4, 3, 2, 1, 0]);
        let shift = PatternSpec::shift(shift::Params { by: 3 });
        assert_eq!(partners(shift, 5), [3, 4, 0, 1, 2]);
        let transpose = PatternSpec::transpose(transpose::Params { columns: None });
        assert_eq!(partners(transpose, 9), [0, 3, 6, 1, 4, 7, 2, 5, 8]);
        let tornado = PatternSpec::tornado(tornado::Params { dims: vec![8] });
        assert_eq!(partners(tornado, 8), [3, 4, 5, 6, 7, 0, 1, 2]);
    }

    #[test]
    fn self_pairs_are_as_many_as_the_literature_counts() {
        // 64 ranks: butterfly 32, transpose 8, shuffle 2 (design note on DRB).
        use bit_permutation::Kind;
        let selfs = |spec| {
            let to = partners(spec, 64);
            to.iter().enumerate().filter(|(rank, to)| *rank as u32 == **to).count()
        };
        assert_eq!(
            selfs(PatternSpec::bit_permutation(bit_permutation::Params {
                permutation: Kind::Butterfly
            })),
            32
        );
        assert_eq!(
            selfs(PatternSpec::bit_permutation(bit_permutation::Params {
                permutation: Kind::Shuffle
            })),
            2
        );
        assert_eq!(selfs(PatternSpec::transpose(transpose::Params { columns: None })), 8);
    }

    #[test]
    fn every_entry_says_what_it_is() {
        let mut names: Vec<_> = ALL.iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
        assert!(ALL.iter().all(|entry| !entry.summary.is_empty() && !entry.reference.is_empty()));
    }
}
