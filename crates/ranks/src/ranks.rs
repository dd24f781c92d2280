//! The ranks of a run, or of a part of it: they are stepped, and told what has come.

use crate::process::{Due, Library, NO_JOB, Partial, Process, Record, Waiting, partial_key};
use crate::settings::Settings;
use crate::stuck::Stuck;
use crate::transport::{Envelope, Kind, Transport};
use clearlane_ib::Picoseconds;
use clearlane_workload::{Event, Handle, Op, RankProgram};
use serde::{Deserialize, Serialize};

/// Operations that a program may do at one event before its own clock is waited for: those that
/// nothing can be seen by, at times that are known.
const BURST: u32 = 4096;

/// How far a program is, as the ranks here know it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct JobState {
    /// Ranks that have not ended.
    pub unfinished: u32,
    /// When the last rank that has ended did so.
    pub ended_at: Picoseconds,
    /// Steps, messages and reads under way: begun less over. It may be negative where a message has
    /// come from ranks elsewhere. If the sum over all parts of a run is 0, nothing will ever happen
    /// to this program again.
    pub under_way: i64,
}

impl JobState {
    /// Adds what ranks elsewhere know.
    pub fn add(&mut self, other: &JobState) {
        self.unfinished += other.unfinished;
        self.ended_at = self.ended_at.max(other.ended_at);
        self.under_way += other.under_way;
    }
}

/// Ranks, known by their place in the order they were given in.
pub struct Ranks {
    pub(crate) records: Vec<Record>,
    pub(crate) settings: Settings,
    pub(crate) jobs: Vec<JobState>,
}

impl Ranks {
    /// Ranks that have not begun, of so many programs: each has to be stepped at 0.
    pub fn new(processes: Vec<Process>, jobs: usize, settings: Settings) -> Self {
        let mut of = vec![JobState::default(); jobs];
        for job in processes.iter().filter_map(|process| process.job) {
            let state = &mut of[usize::from(job)];
            state.unfinished += 1;
            state.under_way += 1;
        }
        let records = processes.into_iter().map(Record::new).collect();
        Ranks { records, settings, jobs: of }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.records.len()
    }

    /// The number in the run of the rank at a place.
    pub fn number(&self, at: u32) -> u32 {
        self.records[at as usize].number
    }

    /// By program: how far it is.
    pub fn jobs(&self) -> &[JobState] {
        &self.jobs
    }

    /// When the program of a process ended, if it has.
    pub fn ended(&self, at: u32) -> Option<Picoseconds> {
        let record = &self.records[at as usize];
        (record.waiting == Waiting::Ended).then_some(Picoseconds(record.due))
    }

    /// Destination and flow group of the message that a process is known to post next.
    #[inline(always)]
    pub fn upcoming(&self, at: u32) -> Option<(u32, u16)> {
        let record = &self.records[at as usize];
        let upcoming = record.program.upcoming();
        upcoming.map(|(destination, group)| (record.base + destination.0, group))
    }

    /// The record of a process, to be fetched from memory; nothing at a place where there is none.
    #[inline(always)]
    pub fn record(&self, at: u32) -> Option<&impl Sized> {
        self.records.get(at as usize)
    }

    /// What the library of a process knows, to be fetched from memory once its record is there;
    /// nothing of a process that has none.
    #[inline(always)]
    pub fn known(&self, at: u32) -> Option<&impl Sized> {
        self.records.get(at as usize)?.library.as_deref()
    }

    /// What the library of a process knows of its operations, to be fetched once that is there.
    #[inline(always)]
    pub fn under_way(&self, at: u32) -> Option<&[impl Sized]> {
        Some(self.records.get(at as usize)?.library.as_ref()?.requests.all())
    }

    /// The program of the process at `at`.
    #[inline(always)]
    pub fn program(&self, at: u32) -> &dyn RankProgram {
        &*self.records[at as usize].program
    }

    /// The time of a process has come, or that of one of its CPU streams.
    #[inline(always)]
    pub fn step<T: Transport>(&mut self, fabric: &mut T, at: u32) {
        let now = fabric.now();
        if self.records[at as usize].library.is_some() {
            self.run_timers(fabric, at);
            // It may have been the time of a CPU stream alone.
            if self.records[at as usize].due > now {
                return;
            }
        }
        let record = &mut self.records[at as usize];
        let Waiting::Time(due) = record.waiting else { return };
        if record.job != NO_JOB {
            self.jobs[usize::from(record.job)].under_way -= 1;
        }
        record.clock = record.clock.max(now);
        let mut event = match due {
            Due::Elapsed => Event::Elapsed,
            Due::Start => Event::Start,
            _ => match self.event(fabric, at, due) {
                Some(event) => event,
                None => return,
            },
        };
        for _ in 0..BURST {
            let record = &mut self.records[at as usize];
            let clock = record.clock;
            let op = record.program.step(Picoseconds(clock), event);
            record.clock = clock + 1;
            match op {
                Op::Offer { dst, bytes, group, next } => {
                    if dst.0 != record.number {
                        fabric.offer(dst.0, clock, bytes, group);
                    }
                    event = Event::Elapsed;
                    match next {
                        Some(next) if next.0 > clock + 1 => return self.later(fabric, at, next.0),
                        Some(_) => {}
                        None => return self.end(at, clock),
                    }
                }
                op => match self.perform(fabric, at, clock, op) {
                    Some(next) => event = next,
                    None => return,
                },
            }
        }
        let clock = self.records[at as usize].clock;
        let due = match event {
            Event::Posted(handle) => Due::Posted(handle),
            _ => Due::Elapsed,
        };
        self.resume(fabric, at, clock, due);
    }

    /// Has a process stepped at `time`, for which nothing but time passes.
    #[inline(always)]
    pub(crate) fn later<T: Transport>(&mut self, fabric: &mut T, at: u32, time: u64) {
        self.resume(fabric, at, time, Due::Elapsed);
    }

    /// Has a process go on at `time`.
    #[inline(always)]
    pub(crate) fn resume<T: Transport>(&mut self, fabric: &mut T, at: u32, time: u64, due: Due) {
        let time = time.max(fabric.now() + 1);
        let record = &mut self.records[at as usize];
        (record.waiting, record.due) = (Waiting::Time(due), time);
        if record.job != NO_JOB {
            self.jobs[usize::from(record.job)].under_way += 1;
        }
        fabric.wake(time);
    }

    /// The program of a process has ended at `time`.
    #[inline]
    pub(crate) fn end(&mut self, at: u32, time: u64) {
        let record = &mut self.records[at as usize];
        (record.waiting, record.due) = (Waiting::Ended, time);
        if record.job != NO_JOB {
            let job = &mut self.jobs[usize::from(record.job)];
            job.unfinished -= 1;
            job.ended_at = job.ended_at.max(Picoseconds(time));
        }
    }

    /// The event of a step that its library or its last operation knows; nothing if an operation
    /// is done instead.
    #[inline(never)]
    fn event<T: Transport>(&mut self, fabric: &mut T, at: u32, due: Due) -> Option<Event> {
        if let Due::Posted(handle) = due {
            return Some(Event::Posted(handle));
        }
        let record = &mut self.records[at as usize];
        let clock = record.clock;
        if due == Due::Operation
            && let Some(op) = record.library().operation.take()
        {
            record.clock = clock + 1;
            return self.perform(fabric, at, clock, op);
        }
        Some(record.library().answer.take().unwrap_or(Event::Elapsed))
    }

    #[inline]
    pub(crate) fn library(&mut self, at: u32) -> &mut Library {
        self.records[at as usize].library()
    }

    /// Something begins that a program may wait for.
    #[inline]
    pub(crate) fn begins(&mut self, at: u32) {
        let job = self.records[at as usize].job;
        if job != NO_JOB {
            self.jobs[usize::from(job)].under_way += 1;
        }
    }

    /// Something is over.
    #[inline]
    pub(crate) fn is_over(&mut self, at: u32) {
        let job = self.records[at as usize].job;
        if job != NO_JOB {
            self.jobs[usize::from(job)].under_way -= 1;
        }
    }

    /// A message of this process has left for good: its last packet is acknowledged or, where
    /// nothing is, has left.
    pub fn sent<T: Transport>(&mut self, fabric: &mut T, at: u32, token: u32) {
        self.is_over(at);
        let now = fabric.now();
        self.complete(fabric, at, Handle(token), now, 0);
    }

    /// The data that this process reads are here.
    pub fn read<T: Transport>(&mut self, fabric: &mut T, at: u32, token: u32) {
        self.is_over(at);
        self.has_read(fabric, at, Handle(token));
    }

    /// The head of a message for this process has come, and its tail has not.
    pub fn head<T: Transport>(&mut self, fabric: &mut T, at: u32, envelope: &Envelope) {
        if envelope.kind == Kind::Eager {
            self.library(at).partial.insert(partial_key(envelope), Partial::Waiting);
            self.admit(fabric, at, envelope);
        }
    }

    /// A message for this process has come whole.
    pub fn arrived<T: Transport>(&mut self, fabric: &mut T, at: u32, envelope: &Envelope) {
        self.is_over(at);
        if let Kind::Finished { token } = envelope.kind {
            let (now, cost) = (fabric.now(), self.settings.receive_overhead);
            return self.complete(fabric, at, Handle(token), now, cost);
        }
        match self.library(at).partial.remove(&partial_key(envelope)) {
            None => self.admit(fabric, at, envelope),
            Some(Partial::Waiting) => {}
            Some(Partial::Met(handle)) => self.received(fabric, at, handle),
        }
    }

    /// An envelope has come: it and those that waited for it are matched in their turn.
    pub(crate) fn admit<T: Transport>(&mut self, fabric: &mut T, at: u32, envelope: &Envelope) {
        if !self.settings.overtaking {
            return self.match_one(fabric, at, *envelope);
        }
        if !self.library(at).order.accept(envelope) {
            return;
        }
        let mut next = Some(*envelope);
        while let Some(envelope) = next {
            self.match_one(fabric, at, envelope);
            next = self.library(at).order.next(&envelope);
        }
    }

    fn match_one<T: Transport>(&mut self, fabric: &mut T, at: u32, envelope: Envelope) {
        let record = &mut self.records[at as usize];
        let library = record.library.get_or_insert_default();
        if let Some(handle) = library.matching.arrive(envelope) {
            return self.meet(fabric, at, handle, envelope, None);
        }
        if record.waiting == Waiting::Probe
            && let Some(filter) = library.probed
            && let Some(found) = library.matching.probe(&filter)
        {
            library.probed = None;
            library.answer = Some(Event::Probed(Some(found.message())));
            let time = record.clock.max(fabric.now());
            self.resume(fabric, at, time, Due::Answer);
        }
    }

    /// A receive whose message is here is complete.
    pub(crate) fn received<T: Transport>(&mut self, fabric: &mut T, at: u32, handle: Handle) {
        let (now, cost) = (fabric.now(), self.settings.receive_overhead);
        self.complete(fabric, at, handle, now, cost);
    }

    /// Ranks that have not ended, and what each waits for.
    pub fn stuck(&self) -> Vec<Stuck> {
        let unfinished = |record: &&Record| record.waiting != Waiting::Ended;
        self.records.iter().filter(unfinished).map(Stuck::of).collect()
    }
}
