//! The ranks of an application, as it ran once.

use super::{Entry, Group, Program};
use crate::traces::{Replay, Trace, TraceError, chakra};
use crate::{Rank, RankProgram};
use serde::Deserialize;

pub(super) const ENTRY: Entry = Entry {
    name: "trace",
    summary: "each rank does what a trace says: messages, receives and work, each when what it \
              waits for is there",
    parameters: "file: path of a GOAL schedule, text or binary, or, with * for the rank, of the \
                 files of a Chakra trace; of as many ranks as the program",
    example: "program = { kind = \"trace\", file = \"solver.goal\" }",
    reference: "Hoefler, Siebert and Lumsdaine, Group Operation Assembly Language, ICPP 2009; \
                Sridharan et al., Chakra, arXiv 2305.14516, 2023",
};

/// What is run again.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// The trace.
    pub file: TraceFile,
}

/// A trace that a program needs; the caller reads its file, or its files: see
/// [`TraceFile::path_of`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct TraceFile {
    /// The path of the file as the experiment names it.
    pub path: String,
    /// What it holds, after it was read: see [`TraceFile::fill`].
    #[serde(skip)]
    pub trace: Option<Trace>,
    /// What it says and the trace does not, a line each: see [`chakra::Converted::lost`].
    #[serde(skip)]
    pub lost: Vec<String>,
}

impl TraceFile {
    /// The path of the file of a rank, where each has one: `*` stands for its number. The caller
    /// reads those of ranks 0, 1 and so on, as far as there are files.
    pub fn path_of(&self, rank: u32) -> Option<String> {
        self.path.contains('*').then(|| self.path.replace('*', &rank.to_string()))
    }

    /// Takes in the content of the file.
    ///
    /// # Errors
    /// Those of [`Trace::read`], with the path; then it is as it was.
    pub fn fill(&mut self, bytes: &[u8]) -> Result<(), TraceError> {
        (self.trace, self.lost) = (Some(Trace::read(bytes, &self.path)?), Vec::new());
        Ok(())
    }

    /// Takes in the files of all ranks: their paths and contents.
    ///
    /// # Errors
    /// Those of [`chakra::read`]; then it is as it was.
    pub fn fill_ranks(&mut self, files: &[(&str, &[u8])]) -> Result<(), TraceError> {
        let chakra::Converted { trace, lost } = chakra::read(files)?;
        (self.trace, self.lost) = (Some(trace), lost);
        Ok(())
    }
}

impl Program for Params {
    /// All of it, once.
    fn operations(&self) -> u64 {
        1
    }

    fn ranks(&self) -> Option<u32> {
        self.file.trace.as_ref().map(Trace::ranks)
    }

    fn longest(&self, _: u32) -> u64 {
        self.file.trace.as_ref().map_or(0, Trace::bytes_max)
    }

    fn build(&self, group: &Group) -> Result<Vec<Box<dyn RankProgram>>, String> {
        let TraceFile { path, trace, .. } = &self.file;
        let path = clearlane_ib::visible(path);
        let Some(trace) = trace else { return Err(format!("has not read {path}")) };
        if trace.ranks() != group.ranks {
            return Err(format!(
                "takes the {} ranks of {path}, not {}",
                trace.ranks(),
                group.ranks
            ));
        }
        // No trace has steps or a timetable: a gap is one for all.
        let gap = group.pacing.gap(Rank(0), 0, 0, 1);
        let rank = |rank: u32| -> Box<dyn RankProgram> {
            Box::new(Replay::new(trace, Rank(rank), group.group).paced(gap))
        };
        Ok((0..group.ranks).map(rank).collect())
    }

    fn trace_file(&mut self) -> Option<&mut TraceFile> {
        Some(&mut self.file)
    }
}
