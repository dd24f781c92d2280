//! The ranks of an application, as it ran once.

use super::{Entry, Group, Program};
use crate::traces::{Replay, Trace, TraceError};
use crate::{Rank, RankProgram};
use serde::Deserialize;

pub(super) const ENTRY: Entry = Entry {
    name: "trace",
    summary: "each rank does what a trace says: messages, receives and work, each when what it \
              waits for is there",
    parameters: "file: path of a GOAL schedule, text or binary, of as many ranks as the program",
    example: "program = { kind = \"trace\", file = \"solver.goal\" }",
    reference: "Hoefler, Siebert and Lumsdaine, Group Operation Assembly Language, ICPP 2009",
};

/// What is run again.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// The trace.
    pub file: TraceFile,
}

/// A trace that a program needs; the caller reads its file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct TraceFile {
    /// The path of the file as the experiment names it.
    pub path: String,
    /// What it holds, after it was read: see [`TraceFile::fill`].
    #[serde(skip)]
    pub trace: Option<Trace>,
}

impl TraceFile {
    /// Takes in the content of the file.
    ///
    /// # Errors
    /// Those of [`Trace::read`], with the path; then it is as it was.
    pub fn fill(&mut self, bytes: &[u8]) -> Result<(), TraceError> {
        self.trace = Some(Trace::read(bytes, &self.path)?);
        Ok(())
    }
}

impl Program for Params {
    /// All of it, once.
    fn operations(&self) -> u64 {
        1
    }

    fn build(&self, group: &Group) -> Result<Vec<Box<dyn RankProgram>>, String> {
        let TraceFile { path, trace } = &self.file;
        let path = clearlane_ib::visible(path);
        let Some(trace) = trace else { return Err(format!("has not read {path}")) };
        if trace.ranks() != group.ranks {
            return Err(format!(
                "takes the {} ranks of {path}, not {}",
                trace.ranks(),
                group.ranks
            ));
        }
        let rank = |rank: u32| -> Box<dyn RankProgram> {
            Box::new(Replay::new(trace, Rank(rank), group.group))
        };
        Ok((0..group.ranks).map(rank).collect())
    }

    fn trace_file(&mut self) -> Option<&mut TraceFile> {
        Some(&mut self.file)
    }
}
