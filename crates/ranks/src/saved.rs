//! A rank between two windows, saved and taken up again, in whatever division of a run's ranks.
//!
//! What is saved are plain lists, in an order of their own: no place, no capacity and no order of
//! hashing shows in it. Indexes are made anew. Bytes may come from anywhere: what cannot be a state
//! is refused, and what is taken up cannot make a later step panic.

use crate::matching::{Matching, SavedMatching};
use crate::order::{Order, SavedOrder};
use crate::process::{Due, Library, NO_JOB, Partial, PartialKey, Task, Waiting, partial_key};
use crate::ranks::{JobState, Ranks};
use crate::requests::{Doing, Request, Requests, SavedRequests, State};
use crate::settings::Settings;
use crate::transport::{Envelope, Kind};
use clearlane_ib::{Picoseconds, Saved, StateError};
use clearlane_workload::{Event, Filter, Handle, Handles, Op, Rank};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// Whose states these are, and the version of their layout: that of everything below.
const OF: &str = "rank";
const VERSION: u16 = 2;

/// The CPU streams that a rank can have besides the one it runs on.
const STREAMS_MAX: usize = u8::MAX as usize;

/// No clock is later: a run is over long before.
const CLOCK_MAX: u64 = 2 * Picoseconds::MAX_RUN.0;

/// More than any run has under way.
const UNDER_WAY_MAX: i64 = 1 << 62;

/// All of one rank that moves: its program, its clock, what it waits for and its library. The same
/// state is the same bytes, wherever the rank has its place.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SavedRank {
    number: u32,
    program: Saved,
    rank: Saved,
}

impl SavedRank {
    /// The rank's number in the run.
    pub const fn number(&self) -> u32 {
        self.number
    }
}

/// The most that a rank names of what only the fabric below knows the range of.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Named {
    /// The highest number of a process; the lowest is that of its program's first rank at least.
    pub process: Option<u32>,
    /// The highest index of a flow group.
    pub group: Option<u16>,
    /// The longest message, in bytes.
    pub bytes: u64,
}

impl Named {
    fn see(&mut self, process: u32, group: u16, bytes: u64) {
        self.process = self.process.max(Some(process));
        self.group = self.group.max(Some(group));
        self.bytes = self.bytes.max(bytes);
    }
}

impl Ranks {
    /// What moves of the rank at this place. Nothing if its program cannot be saved, or if the rank
    /// is inside of a step, which between two windows none is.
    pub fn save(&self, at: u32) -> Option<SavedRank> {
        let record = &self.records[at as usize];
        let state = Moving {
            clock: record.clock,
            due: record.due,
            waiting: record.waiting,
            library: record.library.as_deref().map(SavedLibrary::of),
        };
        let (program, rank) = (record.program.save()?, Saved::new(OF, VERSION, &state));
        Some(SavedRank { number: record.number, program, rank })
    }

    /// Has the rank at this place, which has not begun, go on from a state saved in a run of the
    /// same experiment. Fails if the state is of another rank, program or version, or cannot be one
    /// at all; then nothing has changed. Once all ranks are loaded, [`Ranks::load_jobs`] is due.
    ///
    /// Nothing is woken: what was to happen to the rank is known to whoever saved its events. The
    /// fabric's ranges are not known here: see [`Ranks::named`].
    pub fn load(&mut self, at: u32, saved: &SavedRank) -> Result<(), StateError> {
        let state: Moving = saved.rank.state(OF, VERSION)?;
        let record = &mut self.records[at as usize];
        let owner = Owner { number: record.number, base: record.base };
        let (library, waiting) = (state.library, state.waiting);
        let is_own = saved.number == record.number && state.clock.max(state.due) <= CLOCK_MAX;
        if !is_own || !has_what_is_due(waiting, library.as_ref()) {
            return Err(StateError::Damaged(OF));
        }
        let library = match library {
            None => None,
            Some(library) => {
                let library = library.load(&owner, &self.settings, waiting);
                Some(Box::new(library.ok_or(StateError::Damaged(OF))?))
            }
        };
        record.program.load(&saved.program)?;
        (record.clock, record.due) = (state.clock, state.due);
        (record.waiting, record.library) = (waiting, library);
        Ok(())
    }

    /// Makes the states of the programs what the ranks here say, after all of these are loaded.
    /// `totals` are the sums over all parts of the run that was saved, by program; give them to one
    /// part and nothing to the others: only sums over all parts count.
    pub fn load_jobs(&mut self, totals: Option<&[JobState]>) {
        for (job, state) in self.jobs.iter_mut().enumerate() {
            let total = totals.and_then(|totals| totals.get(job)).copied().unwrap_or_default();
            let under_way = total.under_way.clamp(-UNDER_WAY_MAX, UNDER_WAY_MAX);
            *state = JobState { unfinished: 0, ended_at: total.ended_at, under_way };
        }
        let of_programs = self.records.iter().filter(|record| record.job != NO_JOB);
        for record in of_programs.filter(|record| record.waiting != Waiting::Ended) {
            self.jobs[usize::from(record.job)].unfinished += 1;
        }
    }

    /// What a rank names of the fabric's, messages it has been told of and its next operation: what
    /// was loaded from a file is not to be run before its ranges are looked at.
    pub fn named(&self, at: u32) -> Named {
        let record = &self.records[at as usize];
        let mut named = Named::default();
        let Some(library) = &record.library else { return named };
        let met = library.requests.iter().filter_map(|(_, request)| request.met.as_ref());
        let envelopes = met.chain(library.matching.messages()).chain(library.order.early());
        envelopes.for_each(|envelope| named.see(envelope.from, envelope.group, envelope.bytes));
        if let Some(
            Op::Put { dst: peer, bytes, group, .. }
            | Op::Send { dst: peer, bytes, group, .. }
            | Op::Get { src: peer, bytes, group, .. },
        ) = library.operation
        {
            named.see(record.base + peer.0, group, bytes);
        }
        named
    }
}

/// What moves of a rank besides its program.
#[derive(Serialize, Deserialize)]
struct Moving {
    clock: u64,
    due: u64,
    waiting: Waiting,
    library: Option<SavedLibrary>,
}

/// What is saved of a [`Library`].
#[derive(Serialize, Deserialize)]
struct SavedLibrary {
    requests: SavedRequests,
    matching: SavedMatching,
    order: SavedOrder,
    /// By key.
    partial: Vec<(PartialKey, Partial)>,
    tasks: Vec<Task>,
    streams: Vec<u64>,
    /// Ascending.
    timers: Vec<(u64, u32, u64)>,
    awaited: Handles,
    missing: usize,
    finished: Option<Vec<Handle>>,
    probed: Option<Filter>,
    answer: Option<Event>,
    operation: Option<Op>,
}

/// Whether what a rank does next, once its time or its message has come, is there.
fn has_what_is_due(waiting: Waiting, library: Option<&SavedLibrary>) -> bool {
    let has = |what: fn(&SavedLibrary) -> bool| library.is_some_and(what);
    match waiting {
        Waiting::Time(Due::Answer) => has(|library| library.answer.is_some()),
        Waiting::Time(Due::Operation) => has(|library| library.operation.is_some()),
        Waiting::Probe => has(|library| library.probed.is_some()),
        Waiting::One(_) | Waiting::All | Waiting::Any => has(|_| true),
        // Otherwise it would have been told of what is there.
        Waiting::Next => {
            has(|library| library.finished.as_ref().is_some_and(|finished| finished.is_empty()))
        }
        Waiting::Time(Due::Start | Due::Elapsed | Due::Posted(_)) | Waiting::Ended => true,
    }
}

impl SavedLibrary {
    fn of(library: &Library) -> Self {
        let mut partial: Vec<_> = library.partial.iter().collect();
        partial.sort_unstable_by_key(|(key, _)| *key);
        let mut timers: Vec<_> = library.timers.iter().map(|Reverse(timer)| *timer).collect();
        timers.sort_unstable();
        SavedLibrary {
            requests: library.requests.save(),
            matching: library.matching.save(),
            order: library.order.save(),
            partial,
            tasks: library.tasks.iter().copied().collect(),
            streams: library.streams.clone(),
            timers,
            awaited: library.awaited.clone(),
            missing: library.missing,
            finished: library.finished.as_ref().map(|all| all.iter().copied().collect()),
            probed: library.probed,
            answer: library.answer,
            operation: library.operation.clone(),
        }
    }

    /// Nothing if it cannot be the library of a rank that waits for this.
    fn load(self, owner: &Owner, settings: &Settings, waiting: Waiting) -> Option<Library> {
        let mut requests = Requests::load(self.requests)?;
        let cost_max = settings.receive_overhead;
        let is_sound = requests.iter().all(|(_, request)| owner.may_have(request, cost_max))
            && self.operation.as_ref().is_none_or(|operation| owner.may_do(operation))
            && self.streams.len() <= STREAMS_MAX
            && self.timers.iter().all(|(_, _, cost)| *cost <= cost_max)
            && are_known(&requests, &self.timers, &self.tasks, &self.partial)
            && mark(&mut requests, &self.awaited, self.missing, waiting);
        if !is_sound {
            return None;
        }
        let matching = Matching::load(self.matching, &requests)?;
        let order = Order::load(self.order)?;
        if !matching.messages().chain(order.early()).all(|envelope| owner.may_get(envelope)) {
            return None;
        }
        Some(Library {
            requests,
            matching,
            order,
            partial: self.partial.into_iter().collect(),
            tasks: self.tasks.into(),
            streams: self.streams,
            timers: self.timers.into_iter().map(Reverse).collect(),
            awaited: self.awaited,
            missing: self.missing,
            finished: self.finished.map(Into::into),
            probed: self.probed,
            answer: self.answer,
            operation: self.operation,
        })
    }
}

/// Whether all that is to happen to operations is to those there are.
fn are_known(
    requests: &Requests,
    timers: &[(u64, u32, u64)],
    tasks: &[Task],
    partial: &[(PartialKey, Partial)],
) -> bool {
    let met = |handle: Handle| requests.get(handle).and_then(|request| request.met);
    let timer = |(_, handle, _): &(u64, u32, u64)| requests.get(Handle(*handle)).is_some();
    let task = |task: &Task| {
        let (Task::Read(handle) | Task::Finish(handle)) = task;
        met(*handle).is_some_and(|met| matches!(met.kind, Kind::RequestToSend { .. }))
    };
    let part = |(key, partial): &(PartialKey, Partial)| match partial {
        Partial::Waiting => true,
        Partial::Met(handle) => met(*handle).is_some_and(|met| partial_key(&met) == *key),
    };
    // Each message once.
    let ascend = partial.is_sorted_by(|(one, _), (next, _)| one < next);
    ascend && timers.iter().all(timer) && tasks.iter().all(task) && partial.iter().all(part)
}

/// Marks the operations that a rank waits for. Returns whether they can be that.
fn mark(requests: &mut Requests, awaited: &[Handle], missing: usize, waiting: Waiting) -> bool {
    // One that nobody tracks may be over while its program waits for it in vain.
    let may_wait = |requests: &Requests, handle| {
        requests.get(handle).is_none_or(|request| request.state == State::Pending)
    };
    match waiting {
        Waiting::One(handle) => {
            requests.mark(handle, true);
            awaited.is_empty() && missing == 0 && may_wait(requests, handle)
        }
        Waiting::Any => {
            awaited.iter().for_each(|handle| _ = requests.mark(*handle, true));
            missing == 0 && awaited.iter().all(|handle| may_wait(requests, *handle))
        }
        Waiting::All => {
            let mut pending = 0;
            for handle in awaited {
                let marked = requests.is_pending(*handle) && requests.mark(*handle, true);
                pending += usize::from(marked);
            }
            missing > 0 && (pending..=awaited.len()).contains(&missing)
        }
        Waiting::Next | Waiting::Time(_) | Waiting::Probe | Waiting::Ended => {
            awaited.is_empty() && missing == 0
        }
    }
}

/// The rank that a library is of.
struct Owner {
    number: u32,
    base: u32,
}

impl Owner {
    /// Whether it can have been sent this.
    fn may_get(&self, envelope: &Envelope) -> bool {
        let Envelope { from, to, source, kind, .. } = *envelope;
        let sent = match kind {
            Kind::Eager => true,
            // What it sends to itself is eager, and a FIN meets no receive.
            Kind::RequestToSend { .. } => from != self.number,
            Kind::Finished { .. } => false,
        };
        sent && to == self.number && self.base.checked_add(source.0) == Some(from)
    }

    fn may_have(&self, request: &Request, cost_max: u64) -> bool {
        let cost = match request.state {
            State::Pending => 0,
            State::Done { cost } => cost,
        };
        let receives = matches!(request.doing, Doing::Receive(_));
        let met = request.met.is_none_or(|met| receives && self.may_get(&met));
        met && cost <= cost_max
    }

    /// Whether an operation can be one that is done when the CPU is free.
    fn may_do(&self, operation: &Op) -> bool {
        let is_peer = |peer: &Rank| self.base.checked_add(peer.0).is_some();
        match operation {
            Op::Put { dst: peer, .. } | Op::Send { dst: peer, .. } | Op::Get { src: peer, .. } => {
                is_peer(peer)
            }
            Op::Offer { .. } | Op::WaitUntil(_) | Op::Compute(_) => false,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;
    use crate::settings::Progress;
    use clearlane_workload::Hints;
    use clearlane_workload::programs::PingPong;

    const RECEIVE: u64 = 5;

    /// A rank of a program that has not begun, the first one of three from 10 on.
    fn ranks() -> Ranks {
        let settings = Settings {
            send_overhead: 1,
            receive_overhead: RECEIVE,
            stripe_overhead: 0,
            poll_overhead: 0,
            eager_max: 100,
            control_bytes: 8,
            overtaking: true,
            progress: Progress::Call,
        };
        let program = Box::new(PingPong::new(Rank(1), Rank(0), 8, 0, 3));
        Ranks::new(vec![Process { number: 11, base: 10, job: Some(0), program }], 1, settings)
    }

    /// What loading says of a state of that rank, changed like this.
    fn said(change: impl FnOnce(&mut Moving, &mut SavedLibrary)) -> Result<(), StateError> {
        let mut library = SavedLibrary::of(&Library::default());
        let mut state = Moving { clock: 0, due: 0, waiting: Waiting::Ended, library: None };
        change(&mut state, &mut library);
        state.library = Some(library);
        let mut ranks = ranks();
        let own = ranks.save(0).unwrap();
        let said =
            ranks.load(0, &SavedRank { rank: Saved::new(OF, VERSION, &state), ..own.clone() });
        assert!(said.is_ok() || ranks.save(0) == Some(own), "what is refused changes nothing");
        said
    }

    const DAMAGED: Result<(), StateError> = Err(StateError::Damaged(OF));

    fn eager(number: u32) -> Envelope {
        let (from, source, kind) = (10, Rank(0), Kind::Eager);
        Envelope { from, to: 11, source, tag: 0, context: 0, group: 7, bytes: 9, number, kind }
    }

    fn receive(met: Option<Envelope>) -> Request {
        let doing = Doing::Receive(Filter { source: None, tag: None, context: 0 });
        let state = State::Pending;
        Request { doing, state, tracked: true, stream: 0, awaited: false, met }
    }

    /// Requests of which the first are these.
    fn requests(all: &[Request]) -> SavedRequests {
        let mut requests = Requests::default();
        for request in all {
            let handle = requests.begin(request.doing, true, 0);
            *requests.get_mut(handle).unwrap() = *request;
        }
        requests.save()
    }

    #[test]
    fn another_layout_is_refused_with_its_version() {
        let mut ranks = ranks();
        let own = ranks.save(0).unwrap();
        for version in [0, VERSION + 1] {
            let rank = Saved { version, ..own.rank.clone() };
            let said = ranks.load(0, &SavedRank { rank, ..own.clone() });
            let wanted = (OF, VERSION);
            let found = OF.to_owned();
            let error = StateError::Foreign {
                found,
                found_version: version,
                wanted: wanted.0,
                wanted_version: wanted.1,
            };
            assert_eq!(said, Err(error));
            let program = Saved { version, ..own.program.clone() };
            let said = ranks.load(0, &SavedRank { program, ..own.clone() });
            assert!(matches!(said, Err(StateError::Foreign { .. })), "{said:?}");
        }
        assert_eq!(ranks.load(0, &own), Ok(()));
    }

    /// Who changes what is saved of a rank changes `VERSION` and these bytes.
    #[test]
    fn the_layout_is_that_of_its_version() {
        let bytes = |state: &Moving| Saved::new(OF, VERSION, state).bytes;
        let mut state = Moving { clock: 300, due: 2, waiting: Waiting::All, library: None };
        assert_eq!(bytes(&state), [0xac, 2, 2, 2, 0]);
        let mut library = Library::default();
        let _ = library.requests.begin(receive(None).doing, true, 4);
        let _ = library.matching.receive(Filter { source: None, tag: None, context: 0 }, Handle(0));
        let _ = library.order.number(10, 6);
        library.partial.insert((10, 0, 5), Partial::Waiting);
        library.tasks.push_back(Task::Finish(Handle(0)));
        library.streams.push(8);
        library.timers.push(Reverse((1, 0, 3)));
        (library.awaited, library.missing) = (smallvec::smallvec![Handle(0)], 1);
        library.finished = Some([Handle(7)].into());
        library.answer = Some(Event::AllCompleted);
        state.library = Some(SavedLibrary::of(&library));
        let expected = [
            &[0xac, 2, 2, 2, 1][..],
            &[1, 0, 1, 0, 0, 0, 0, 1, 4, 0, 0],
            &[1, 0, 0],
            &[1, 10, 6, 1, 0, 0],
            &[1, 10, 0, 5, 0],
            &[1, 1, 0],
            &[1, 8],
            &[1, 1, 0, 3],
            &[1, 0, 1, 1, 1, 7, 0, 1, 3, 0],
        ];
        assert_eq!(bytes(&state), expected.concat());
    }

    #[test]
    fn what_is_due_and_what_is_waited_for_must_be_there() {
        assert_eq!(said(|_, _| {}), Ok(()));
        for waiting in [Waiting::Time(Due::Answer), Waiting::Time(Due::Operation), Waiting::Probe] {
            assert_eq!(said(|state, _| state.waiting = waiting), DAMAGED, "{waiting:?}");
        }
        let all = |awaited: &[u32], missing| {
            said(|state, library| {
                library.requests = requests(&[receive(None)]);
                let awaited = awaited.iter().map(|handle| Handle(*handle)).collect();
                (state.waiting, library.awaited, library.missing) =
                    (Waiting::All, awaited, missing);
            })
        };
        assert_eq!([all(&[0], 1), all(&[0, 9], 1), all(&[0, 0], 1)], [Ok(()), Ok(()), Ok(())]);
        assert_eq!([all(&[0], 0), all(&[0], 2), all(&[], 1)], [DAMAGED, DAMAGED, DAMAGED]);
        let next = |finished: Option<&[Handle]>| {
            said(|state, library| {
                state.waiting = Waiting::Next;
                library.finished = finished.map(<[Handle]>::to_vec);
            })
        };
        assert_eq!(
            [next(Some(&[])), next(None), next(Some(&[Handle(0)]))],
            [Ok(()), DAMAGED, DAMAGED]
        );
        assert_eq!(said(|_, library| library.missing = 1), DAMAGED);
        assert_eq!(said(|_, library| library.awaited = smallvec::smallvec![Handle(0)]), DAMAGED);
    }

    #[test]
    fn what_happens_to_operations_must_be_to_those_there_are() {
        type Change = fn(&mut SavedLibrary);
        let with = |met, change: Change| {
            said(|_, library| {
                library.requests = requests(&[receive(met)]);
                change(library);
            })
        };
        let long = Envelope {
            kind: Kind::RequestToSend { token: 4, hints: Hints::default() },
            ..eager(3)
        };
        let cases: [(Option<Envelope>, Change, Change); 5] = [
            (None, |it| it.timers = vec![(9, 0, RECEIVE)], |it| it.timers = vec![(9, 1, 0)]),
            (None, |_| {}, |it| it.timers = vec![(9, 0, RECEIVE + 1)]),
            (
                Some(long),
                |it| it.tasks = vec![Task::Read(Handle(0))],
                |it| it.tasks = vec![Task::Read(Handle(1))],
            ),
            (Some(eager(3)), |_| {}, |it| it.tasks = vec![Task::Finish(Handle(0))]),
            (
                Some(eager(3)),
                |it| it.partial = vec![((10, 0, 3), Partial::Met(Handle(0)))],
                |it| it.partial = vec![((10, 0, 4), Partial::Met(Handle(0)))],
            ),
        ];
        for (case, (met, sound, damaged)) in cases.into_iter().enumerate() {
            assert_eq!((with(met, sound), with(met, damaged)), (Ok(()), DAMAGED), "{case}");
        }
        assert_eq!(said(|_, library| library.streams = vec![u64::MAX; STREAMS_MAX]), Ok(()));
        assert_eq!(said(|_, library| library.streams = vec![0; STREAMS_MAX + 1]), DAMAGED);
        assert_eq!(said(|state, _| state.clock = CLOCK_MAX + 1), DAMAGED);
        assert_eq!(said(|state, _| state.due = CLOCK_MAX + 1), DAMAGED);
    }

    #[test]
    fn messages_must_be_of_the_program_and_for_the_rank() {
        let met =
            |envelope| said(|_, library| library.requests = requests(&[receive(Some(envelope))]));
        assert_eq!(met(eager(0)), Ok(()));
        assert_eq!(met(Envelope { to: 12, ..eager(0) }), DAMAGED);
        assert_eq!(met(Envelope { from: 9, ..eager(0) }), DAMAGED);
        assert_eq!(met(Envelope { source: Rank(u32::MAX), ..eager(0) }), DAMAGED);
        assert_eq!(met(Envelope { kind: Kind::Finished { token: 0 }, ..eager(0) }), DAMAGED);
        let own = Envelope { from: 11, source: Rank(1), ..eager(0) };
        assert_eq!(met(own), Ok(()));
        assert_eq!(
            met(Envelope {
                kind: Kind::RequestToSend { token: 0, hints: Hints::default() },
                ..own
            }),
            DAMAGED
        );
    }

    #[test]
    fn what_a_state_names_of_the_fabric_can_be_looked_at() {
        assert_eq!(ranks().named(0), Named::default());
        let mut ranks = ranks();
        let library = ranks.library(0);
        let _ = library.matching.arrive(eager(0));
        let hints = Hints::default();
        library.operation = Some(Op::Get { src: Rank(4), bytes: 70, group: 2, hints });
        assert_eq!(ranks.named(0), Named { process: Some(14), group: Some(7), bytes: 70 });
    }

    #[test]
    fn programs_are_counted_anew_and_one_part_has_the_totals() {
        let total = JobState { unfinished: 9, ended_at: Picoseconds(8), under_way: -7 };
        let mut ranks = ranks();
        ranks.load_jobs(Some(&[total]));
        assert_eq!(ranks.jobs(), [JobState { unfinished: 1, ..total }]);
        ranks.records[0].waiting = Waiting::Ended;
        ranks.load_jobs(None);
        assert_eq!(ranks.jobs(), [JobState::default()]);
        // Whatever is said, it can be counted on.
        ranks.load_jobs(Some(&[JobState { under_way: i64::MIN, ..total }, total]));
        ranks.is_over(0);
    }
}
