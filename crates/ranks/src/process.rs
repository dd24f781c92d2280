//! One process: its program, its clock and its CPU streams, and what the library under it knows.

use crate::few::Few;
use crate::matching::Matching;
use crate::order::Order;
use crate::requests::Requests;
use crate::transport::Envelope;
use clearlane_workload::{Event, Filter, Handle, Handles, Op, RankProgram};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A process as a run begins.
pub struct Process {
    /// Its number in the run.
    pub number: u32,
    /// The number in the run of the first rank of its program: ranks of a program are numbered one
    /// after the other.
    pub base: u32,
    /// The program it is a rank of; nothing for a source of open-loop traffic, for which nobody
    /// waits.
    pub job: Option<u16>,
    /// The program that it runs.
    pub program: Box<dyn RankProgram>,
}

/// What a process does next, once its time has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Due {
    /// Its first step.
    Start,
    /// A step after time has passed.
    Elapsed,
    /// A step after an operation was posted.
    Posted(Handle),
    /// A step with the event that its library keeps.
    Answer,
    /// The operation that its library keeps.
    Operation,
}

/// What a process waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Waiting {
    /// A point in time.
    Time(Due),
    /// An operation.
    One(Handle),
    /// All operations that are marked as awaited.
    All,
    /// Any of them.
    Any,
    /// Whatever operation is complete next.
    Next,
    /// A message to probe.
    Probe,
    /// Nothing: its program has ended.
    Ended,
}

/// One process. One cache line: open-loop traffic touches nothing else here.
#[repr(align(64))]
pub(crate) struct Record {
    pub(crate) program: Box<dyn RankProgram>,
    /// When its CPU is free: that of stream 0.
    pub(crate) clock: u64,
    /// When what it does next is due, when it has ended, or the earliest time at which its wait for
    /// several operations is over.
    pub(crate) due: u64,
    pub(crate) waiting: Waiting,
    pub(crate) number: u32,
    pub(crate) base: u32,
    /// `NO_JOB` of a source of open-loop traffic.
    pub(crate) job: u16,
    /// Nothing until the program does more than post and wait for time.
    pub(crate) library: Option<Box<Library>>,
}

pub(crate) const NO_JOB: u16 = u16::MAX;

impl Record {
    pub(crate) fn new(process: Process) -> Self {
        Record {
            program: process.program,
            clock: 0,
            due: 0,
            waiting: Waiting::Time(Due::Start),
            number: process.number,
            base: process.base,
            job: process.job.unwrap_or(NO_JOB),
            library: None,
        }
    }

    #[inline]
    pub(crate) fn library(&mut self) -> &mut Library {
        self.library.get_or_insert_with(Library::of_nothing)
    }

    /// Whether its CPU is in the library, waiting, and goes on with whatever comes.
    #[inline]
    pub(crate) const fn is_in_call(&self) -> bool {
        !matches!(self.waiting, Waiting::Time(_))
    }

    /// Keeps a stream's CPU busy from `from` on, or from when it is free, for `span`. Returns when
    /// it is free again.
    #[inline]
    pub(crate) fn occupy(&mut self, stream: u8, from: u64, span: u64) -> u64 {
        if stream == 0 {
            self.clock = self.clock.max(from.saturating_add(span));
            return from.saturating_add(span);
        }
        let streams = &mut self.library().streams;
        let at = usize::from(stream) - 1;
        if streams.len() <= at {
            streams.resize(at + 1, 0);
        }
        streams[at] = streams[at].max(from).saturating_add(span);
        streams[at]
    }
}

/// A message of which the head is there, but not the tail.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Partial {
    /// It waits for its turn or for a receive.
    Waiting,
    /// It has met this receive.
    Met(Handle),
}

/// Its sender, its context and its number among theirs.
pub(crate) type PartialKey = (u32, u16, u32);

#[inline]
pub(crate) const fn partial_key(envelope: &Envelope) -> PartialKey {
    (envelope.from, envelope.context, envelope.number)
}

/// What the CPU of a rank has to do for a long message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Task {
    /// To begin to read what this receive has met.
    Read(Handle),
    /// To tell the sender that it has been read.
    Finish(Handle),
}

/// What the message-passing library of one rank knows.
#[derive(Default)]
pub(crate) struct Library {
    pub(crate) requests: Requests,
    pub(crate) matching: Matching,
    pub(crate) order: Order,
    pub(crate) partial: Few<PartialKey, Partial>,
    /// What the CPU does in its next call.
    pub(crate) tasks: VecDeque<Task>,
    /// When CPU streams other than 0 are free, from stream 1 on.
    pub(crate) streams: Vec<u64>,
    /// Operations that will be complete at a time, and what each then costs the CPU.
    pub(crate) timers: BinaryHeap<Reverse<(u64, u32, u64)>>,
    /// Operations that are waited for.
    pub(crate) awaited: Handles,
    /// How many of them are not complete.
    pub(crate) missing: usize,
    /// Operations that became complete while nobody waited for them, in that order; from the first
    /// time on that the program waits for the next one. Those asked for since are skipped.
    pub(crate) finished: Option<VecDeque<Handle>>,
    /// What is probed for.
    pub(crate) probed: Option<Filter>,
    /// The next step's event.
    pub(crate) answer: Option<Event>,
    /// The operation that is done when the CPU is free.
    pub(crate) operation: Option<Op>,
}

impl Library {
    /// A library that knows nothing yet. It is made once a rank and is large.
    #[cold]
    #[inline(never)]
    fn of_nothing() -> Box<Self> {
        Box::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_one_cache_line() {
        assert_eq!(size_of::<Record>(), 64);
    }
}
