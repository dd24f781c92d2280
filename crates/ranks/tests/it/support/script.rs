//! Ranks that follow a script and tell what they are told.

use clearlane_ib::{Picoseconds, Saved, StateError};
use clearlane_workload::{Event, Filter, Handle, Hints, Message, Op, Rank, RankProgram};
use std::sync::{Arc, Mutex};

/// What a scripted rank does. Operations it has posted are named by their number, from 0.
#[derive(Clone, Debug)]
pub enum Do {
    Send {
        to: u32,
        bytes: u64,
        tag: u32,
    },
    /// The same in a context.
    SendIn {
        context: u16,
        to: u32,
        bytes: u64,
        tag: u32,
    },
    /// The same on a CPU stream, and perhaps one that is not waited for.
    SendOn {
        stream: u8,
        tracked: bool,
        context: u16,
        to: u32,
        bytes: u64,
        tag: u32,
    },
    Receive(Filter),
    ReceiveOn(u8, Filter),
    Put {
        to: u32,
        bytes: u64,
    },
    Get {
        from: u32,
        bytes: u64,
    },
    Start {
        span: u64,
        stream: u8,
    },
    Wait(usize),
    WaitAll(Vec<usize>),
    WaitAny(Vec<usize>),
    WaitNext,
    Test(usize),
    Probe(Filter, bool),
    Compute(u64),
}

pub fn from(source: u32, tag: u32) -> Filter {
    Filter { source: Some(Rank(source)), tag: Some(tag), context: 0 }
}

pub fn any_source(tag: u32) -> Filter {
    Filter { source: None, tag: Some(tag), context: 0 }
}

pub fn any_tag(source: u32) -> Filter {
    Filter { source: Some(Rank(source)), tag: None, context: 0 }
}

pub fn anything() -> Filter {
    Filter { source: None, tag: None, context: 0 }
}

pub fn message(source: u32, tag: u32, bytes: u64) -> Option<Message> {
    Some(Message { source: Rank(source), tag, bytes })
}

/// Rank, time and event of each step that was not told of a posted operation.
pub type Log = Arc<Mutex<Vec<(u32, u64, Event)>>>;

struct Script {
    rank: u32,
    todo: Vec<Do>,
    next: usize,
    handles: Vec<Handle>,
    log: Log,
}

const OF: &str = "script";

impl Do {
    /// Whether it is an operation with a handle.
    pub fn posts(&self) -> bool {
        use Do::{Compute, Probe, Test, Wait, WaitAll, WaitAny, WaitNext};
        let waits = matches!(self, Wait(_) | WaitAll(_) | WaitAny(_) | WaitNext);
        !waits && !matches!(self, Test(_) | Probe(..) | Compute(_))
    }
}

/// The program of a rank.
pub fn script(rank: u32, todo: Vec<Do>, log: &Log) -> Box<dyn RankProgram> {
    Box::new(Script { rank, todo, next: 0, handles: Vec::new(), log: Arc::clone(log) })
}

impl RankProgram for Script {
    fn step(&mut self, now: Picoseconds, event: Event) -> Op {
        match event {
            Event::Posted(handle) => self.handles.push(handle),
            other => self.log.lock().unwrap().push((self.rank, now.0, other)),
        }
        self.next += 1;
        // One is missing only where a damaged state has let its answer never come.
        let handle =
            |number: &usize| self.handles.get(*number).copied().unwrap_or(Handle(u32::MAX));
        let all = |numbers: &[usize]| numbers.iter().map(handle).collect();
        let (hints, group, tracked) = (Hints::default(), 0, true);
        match self.todo.get(self.next - 1).cloned() {
            None => Op::Done,
            Some(Do::Send { to, bytes, tag }) => {
                Op::Send { dst: Rank(to), bytes, tag, context: 0, group, tracked, hints }
            }
            Some(Do::SendIn { context, to, bytes, tag }) => {
                Op::Send { dst: Rank(to), bytes, tag, context, group, tracked, hints }
            }
            Some(Do::SendOn { stream, tracked, context, to, bytes, tag }) => {
                let hints = Hints { stream, ..hints };
                Op::Send { dst: Rank(to), bytes, tag, context, group, tracked, hints }
            }
            Some(Do::ReceiveOn(stream, filter)) => Op::Recv { filter, stream },
            Some(Do::Receive(filter)) => Op::Recv { filter, stream: 0 },
            Some(Do::Put { to, bytes }) => Op::Put { dst: Rank(to), bytes, group, tracked, hints },
            Some(Do::Get { from, bytes }) => Op::Get { src: Rank(from), bytes, group, hints },
            Some(Do::Start { span, stream }) => Op::Start { span: Picoseconds(span), stream },
            Some(Do::Wait(number)) => Op::Wait(handle(&number)),
            Some(Do::WaitAll(numbers)) => Op::WaitAll(all(&numbers)),
            Some(Do::WaitAny(numbers)) => Op::WaitAny(all(&numbers)),
            Some(Do::WaitNext) => Op::WaitNext,
            Some(Do::Test(number)) => Op::Test(handle(&number)),
            Some(Do::Probe(filter, wait)) => Op::Probe { filter, wait },
            Some(Do::Compute(span)) => Op::Compute(Picoseconds(span)),
        }
    }

    fn save(&self) -> Option<Saved> {
        Some(Saved::new(OF, 1, &(self.next, &self.handles)))
    }

    fn load(&mut self, saved: &Saved) -> Result<(), StateError> {
        let (next, handles): (usize, Vec<Handle>) = saved.state(OF, 1)?;
        let done = self.todo.get(..next.min(self.todo.len())).into_iter().flatten();
        let posted = done.filter(|one| one.posts()).count();
        // The last one may not have its answer yet.
        if next > self.todo.len() + 1
            || !(posted.saturating_sub(1)..=posted).contains(&handles.len())
        {
            return Err(StateError::Damaged(OF));
        }
        (self.next, self.handles) = (next, handles);
        Ok(())
    }
}
