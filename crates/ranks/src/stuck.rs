//! Ranks that wait: who they are and what for.

use crate::process::{NO_JOB, Record, Waiting};
use crate::requests::{Doing, State};
use clearlane_workload::{Filter, Handle, Rank};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A rank that has not ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stuck {
    /// Its number in the run.
    pub process: u32,
    /// Its rank in its program.
    pub rank: Rank,
    /// Its program; nothing for open-loop traffic.
    pub job: Option<u16>,
    /// What it waits for; nothing if for time.
    pub waits: Vec<Doing>,
}

impl Stuck {
    pub(crate) fn of(record: &Record) -> Self {
        Stuck {
            process: record.number,
            rank: Rank(record.number - record.base),
            job: (record.job != NO_JOB).then_some(record.job),
            waits: waits(record),
        }
    }
}

/// What a rank waits for.
fn waits(record: &Record) -> Vec<Doing> {
    let Some(library) = &record.library else { return Vec::new() };
    let doing = |handle: Handle| library.requests.get(handle).map(|request| request.doing);
    match record.waiting {
        Waiting::One(handle) => doing(handle).into_iter().collect(),
        Waiting::All | Waiting::Any => {
            let pending = |handle: &&Handle| library.requests.is_pending(**handle);
            library.awaited.iter().filter(pending).filter_map(|handle| doing(*handle)).collect()
        }
        Waiting::Next => {
            let pending = library.requests.iter().map(|(_, request)| request);
            let pending = pending.filter(|one| one.tracked && one.state == State::Pending);
            pending.map(|request| request.doing).collect()
        }
        Waiting::Probe => library.probed.map(Doing::Probe).into_iter().collect(),
        Waiting::Time(_) | Waiting::Ended => Vec::new(),
    }
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.job {
            Some(job) => write!(f, "rank {} of program {job} waits for ", self.rank.0)?,
            None => write!(f, "rank {} waits for ", self.rank.0)?,
        }
        match self.waits.as_slice() {
            [] => write!(f, "its time"),
            [one] => write!(f, "{one}"),
            [first, others @ ..] => write!(f, "{first} and {} others", others.len()),
        }
    }
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doing::Send { to, tag, context } => {
                write!(f, "a send to rank {}, tag {tag}, context {context}", to.0)
            }
            Doing::Receive(filter) => write!(f, "a receive from {}", Filtered(filter)),
            Doing::Put { to } => write!(f, "a put to rank {}", to.0),
            Doing::Get { from } => write!(f, "a get from rank {}", from.0),
            Doing::Work => write!(f, "a CPU stream"),
            Doing::Probe(filter) => write!(f, "a message from {}", Filtered(filter)),
        }
    }
}

/// What a filter asks for, in words.
struct Filtered<'a>(&'a Filter);

impl fmt::Display for Filtered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Filter { source, tag, context } = self.0;
        match source {
            Some(source) => write!(f, "rank {}, ", source.0)?,
            None => write!(f, "any rank, ")?,
        }
        match tag {
            Some(tag) => write!(f, "tag {tag}, context {context}"),
            None => write!(f, "any tag, context {context}"),
        }
    }
}
