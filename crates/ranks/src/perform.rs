//! What an operation of a program does. Each takes the CPU for its overhead and at least 1 ps: the
//! picosecond has passed when this begins.

use crate::process::{Due, Record, Waiting};
use crate::ranks::Ranks;
use crate::requests::{Doing, Request, State};
use crate::settings::Progress;
use crate::transport::{Envelope, Kind, Outgoing, Transport, What};
use clearlane_ib::Picoseconds;
use clearlane_workload::{Completion, Event, Filter, Handle, Handles, Hints, Op, Rank};

/// Names no operation: what is posted and not tracked.
const NOTHING: Handle = Handle(u32::MAX);

/// Receives take no time: what follows some of them is so soon after them, in ps, that it is done
/// at their event. Nothing crosses a link in less.
const SOON: u64 = 16;

/// What a program posts, whatever it is.
struct Post {
    peer: Rank,
    bytes: u64,
    group: u16,
    hints: Hints,
    doing: Doing,
    tracked: bool,
}

impl Ranks {
    /// Does what a program has asked for at `clock`, which is now or soon. Returns what it is told
    /// at once, if it is: else it goes on when its CPU is free, or when what it waits for is there.
    #[inline(never)]
    pub(crate) fn perform<T: Transport>(
        &mut self,
        fabric: &mut T,
        at: u32,
        clock: u64,
        op: Op,
    ) -> Option<Event> {
        let record = &self.records[at as usize];
        match op {
            Op::Put { dst, bytes, group, tracked: false, hints } if record.library.is_none() => {
                let doing = Doing::Put { to: dst };
                let post = Post { peer: dst, bytes, group, hints, doing, tracked: false };
                if record.base + dst.0 != record.number {
                    self.post(fabric, at, clock, &post, What::Write { token: None });
                }
                return Some(Event::Posted(NOTHING));
            }
            Op::WaitUntil(time) if time.0 <= clock => return Some(Event::Elapsed),
            Op::WaitUntil(time) => self.later(fabric, at, time.0),
            Op::Compute(span) => {
                let end = clock.saturating_add(span.0).min(Picoseconds::MAX_RUN.0).max(clock + 1);
                self.records[at as usize].clock = end;
                self.later(fabric, at, end);
            }
            op => return self.perform_now(fabric, at, clock, op),
        }
        None
    }

    /// Does what a program has asked for at `clock`, if that is now or shows in nothing.
    fn perform_now<T: Transport>(
        &mut self,
        fabric: &mut T,
        at: u32,
        clock: u64,
        op: Op,
    ) -> Option<Event> {
        let now = fabric.now();
        if clock > now && !self.may_be_early(at, &op, clock - now) {
            // Whatever has come until then counts.
            let record = &mut self.records[at as usize];
            record.clock = clock;
            record.library().operation = Some(op);
            self.resume(fabric, at, clock, Due::Operation);
            return None;
        }
        if is_call(&op) && self.catch_up(fabric, at, clock) {
            // The CPU is not free before that.
            self.library(at).operation = Some(op);
            let time = self.records[at as usize].clock;
            self.resume(fabric, at, time, Due::Operation);
            return None;
        }
        match op {
            // Done already: see `step` and `perform`.
            Op::Offer { .. } | Op::WaitUntil(_) | Op::Compute(_) => {}
            Op::Put { dst, bytes, group, tracked, hints } => {
                let doing = Doing::Put { to: dst };
                let post = Post { peer: dst, bytes, group, hints, doing, tracked };
                self.put(fabric, at, clock, &post);
            }
            Op::Get { src, bytes, group, hints } => {
                let doing = Doing::Get { from: src };
                let post = Post { peer: src, bytes, group, hints, doing, tracked: true };
                self.get(fabric, at, clock, &post);
            }
            Op::Send { dst, bytes, tag, context, group, tracked, hints } => {
                let doing = Doing::Send { to: dst, tag, context };
                let post = Post { peer: dst, bytes, group, hints, doing, tracked };
                let handle = self.send(fabric, at, clock, &post, (tag, context));
                return Some(Event::Posted(handle));
            }
            Op::Recv { filter, stream } => {
                return Some(Event::Posted(self.receive(fabric, at, clock, filter, stream)));
            }
            Op::Wait(handle) => self.wait(fabric, at, clock, handle),
            Op::WaitAll(handles) => self.wait_all(fabric, at, clock, handles),
            Op::WaitAny(handles) => self.wait_any(fabric, at, clock, handles),
            Op::WaitNext => self.wait_next(fabric, at, clock),
            Op::Test(handle) => self.test(fabric, at, clock, handle),
            Op::Probe { filter, wait } => self.probe(fabric, at, clock, filter, wait),
            Op::Start { span, stream } => {
                let span = span.0.clamp(1, Picoseconds::MAX_RUN.0);
                let handle = self.library(at).requests.begin(Doing::Work, true, stream);
                let end = self.records[at as usize].occupy(stream, clock, span);
                self.complete_later(fabric, at, handle, end, 0);
                self.posted(fabric, at, handle);
            }
            Op::Done => self.end(at, clock),
        }
        None
    }

    /// Whether an operation may be done so long before its time, in ps: it shows in nothing,
    /// because its clock goes with it.
    fn may_be_early(&self, at: u32, op: &Op, ahead: u64) -> bool {
        let record = &self.records[at as usize];
        match op {
            // What comes until then costs stream 0 the same afterwards, unless it has to be read:
            // that is asked for in a call.
            Op::Recv { stream, .. } => ahead <= SOON && *stream == 0 && self.settings.all_eager(),
            Op::WaitAll(_) => self.settings.all_eager(),
            // One to itself is there at once, and may begin to occupy another stream.
            Op::Send { dst, .. } => ahead <= SOON && record.base + dst.0 != record.number,
            Op::Done => ahead <= SOON || record.library.is_none(),
            _ => false,
        }
    }

    /// Tells a program that its operation is under way, once its CPU is free.
    fn posted<T: Transport>(&mut self, fabric: &mut T, at: u32, handle: Handle) {
        let time = self.records[at as usize].clock;
        self.resume(fabric, at, time, Due::Posted(handle));
    }

    /// Tells a program something, once its CPU is free.
    fn answer<T: Transport>(&mut self, fabric: &mut T, at: u32, event: Event) {
        let time = self.records[at as usize].clock;
        self.library(at).answer = Some(event);
        self.resume(fabric, at, time, Due::Answer);
    }

    fn put<T: Transport>(&mut self, fabric: &mut T, at: u32, clock: u64, post: &Post) {
        let handle = self.begin(at, post);
        let record = &mut self.records[at as usize];
        let to = record.base + post.peer.0;
        if to == record.number {
            // By memory: it never enters the fabric.
            let free = record.occupy(post.hints.stream, clock, self.settings.send_overhead);
            if let Some(handle) = handle {
                self.complete_later(fabric, at, handle, free, 0);
            }
        } else {
            let what = What::Write { token: handle.map(|handle| handle.0) };
            self.post(fabric, at, clock, post, what);
        }
        self.posted(fabric, at, handle.unwrap_or(NOTHING));
    }

    fn get<T: Transport>(&mut self, fabric: &mut T, at: u32, clock: u64, post: &Post) {
        let handle = self.begin(at, post).unwrap_or(NOTHING);
        let record = &mut self.records[at as usize];
        if record.base + post.peer.0 == record.number {
            let free = record.occupy(post.hints.stream, clock, self.settings.send_overhead);
            self.complete_later(fabric, at, handle, free, 0);
        } else {
            self.post(fabric, at, clock, post, What::Read { token: handle.0 });
        }
        self.posted(fabric, at, handle);
    }

    fn send<T: Transport>(
        &mut self,
        fabric: &mut T,
        at: u32,
        clock: u64,
        post: &Post,
        (tag, context): (u32, u16),
    ) -> Handle {
        let (eager_max, control_bytes) = (self.settings.eager_max, self.settings.control_bytes);
        let record = &mut self.records[at as usize];
        let (from, to) = (record.number, record.base + post.peer.0);
        let source = Rank(record.number - record.base);
        let is_eager = to == from || post.bytes <= eager_max;
        let number = match self.settings.overtaking {
            true => record.library().order.number(to, context),
            false => self.in_order(&post.hints),
        };
        let (group, bytes) = (post.group, post.bytes);
        let kind = Kind::Eager;
        let eager = Envelope { from, to, source, tag, context, group, bytes, number, kind };
        if to == from {
            let handle = self.begin(at, post);
            let record = &mut self.records[at as usize];
            let free = record.occupy(post.hints.stream, clock, self.settings.send_overhead);
            if let Some(handle) = handle {
                self.complete_later(fabric, at, handle, free, 0);
            }
            self.admit(fabric, at, &eager);
            return handle.unwrap_or(NOTHING);
        }
        if is_eager {
            let handle = self.begin(at, post);
            let token = handle.map(|handle| handle.0);
            let what = What::Message { envelope: eager, token };
            self.post(fabric, at, clock, post, what);
            return handle.unwrap_or(NOTHING);
        }
        // It is over when the receiver has read it, whether anybody waits for that or not.
        let requests = &mut self.library(at).requests;
        let handle = requests.begin(post.doing, post.tracked, post.hints.stream);
        let envelope =
            Envelope { kind: Kind::RequestToSend { token: handle.0, hints: post.hints }, ..eager };
        let request = Post { bytes: control_bytes, hints: unpaced(post.hints), ..*post };
        self.post(fabric, at, clock, &request, What::Message { envelope, token: None });
        if post.tracked { handle } else { NOTHING }
    }

    /// The number of a message that none overtakes: it goes the only way there is.
    #[inline]
    fn in_order(&self, hints: &Hints) -> u32 {
        let own = hints.path.is_some() || hints.sl.is_some() || hints.stream > 0;
        assert!(!own, "a message goes a way of its own");
        0
    }

    /// A handle for what is posted, if it is tracked.
    #[inline]
    fn begin(&mut self, at: u32, post: &Post) -> Option<Handle> {
        let requests = &mut self.library(at).requests;
        post.tracked.then(|| requests.begin(post.doing, true, post.hints.stream))
    }

    /// Hands a message to the fabric. A CPU stream is busy with it for the overhead, and its first
    /// packet ready after that.
    fn post<T: Transport>(&mut self, fabric: &mut T, at: u32, clock: u64, post: &Post, what: What) {
        let overhead = self.settings.send_overhead;
        let record = &mut self.records[at as usize];
        let ready = record.occupy(post.hints.stream, clock, overhead);
        let message = Outgoing {
            from: record.number,
            to: record.base + post.peer.0,
            born: clock,
            ready,
            stripe_overhead: self.settings.stripe_overhead,
            bytes: post.bytes,
            group: post.group,
            hints: post.hints,
            what,
        };
        self.hand_over(fabric, at, &message);
    }

    /// Hands a message to the fabric.
    pub(crate) fn hand_over<T: Transport>(&mut self, fabric: &mut T, at: u32, message: &Outgoing) {
        let (notices, token) = match message.what {
            What::Write { token } => (0, token.is_some()),
            What::Read { .. } => (1, false),
            What::Message { token, .. } => (1, token.is_some()),
        };
        (0..notices + i32::from(token)).for_each(|_| self.begins(at));
        let stripes = fabric.post(message);
        let further = u64::from(stripes.saturating_sub(1)) * self.settings.stripe_overhead;
        if further > 0 {
            let record = &mut self.records[at as usize];
            record.occupy(message.hints.stream, message.ready, further);
        }
    }

    fn receive<T: Transport>(
        &mut self,
        fabric: &mut T,
        at: u32,
        clock: u64,
        filter: Filter,
        stream: u8,
    ) -> Handle {
        let library = self.library(at);
        let handle = library.requests.begin(Doing::Receive(filter), true, stream);
        if let Some(envelope) = library.matching.receive(filter, handle) {
            self.meet(fabric, at, handle, envelope, Some(clock));
        }
        handle
    }

    fn wait<T: Transport>(&mut self, fabric: &mut T, at: u32, clock: u64, handle: Handle) {
        match self.state(at, handle) {
            Some(State::Pending) => self.await_one(at, handle),
            // One that is over is not waited for, as MPI does with a null request.
            None => self.answer(fabric, at, Event::Completed(gone(handle))),
            Some(State::Done { cost }) => self.take(fabric, at, handle, clock, cost),
        }
    }

    fn await_one(&mut self, at: u32, handle: Handle) {
        self.library(at).requests.mark(handle, true);
        self.records[at as usize].waiting = Waiting::One(handle);
    }

    /// The CPU takes a complete operation in hand.
    fn take<T: Transport>(
        &mut self,
        fabric: &mut T,
        at: u32,
        handle: Handle,
        clock: u64,
        cost: u64,
    ) {
        let record = &mut self.records[at as usize];
        record.clock = record.clock.max(clock + cost);
        let received = record.library().requests.end(handle);
        self.answer(fabric, at, Event::Completed(Completion { handle, received }));
    }

    fn wait_all<T: Transport>(&mut self, fabric: &mut T, at: u32, clock: u64, handles: Handles) {
        let (mut missing, mut free) = (0, clock);
        for handle in &handles {
            match self.state(at, *handle) {
                Some(State::Done { cost }) => {
                    free += cost;
                    self.library(at).requests.pay(*handle);
                }
                Some(State::Pending) => {
                    missing += usize::from(self.library(at).requests.mark(*handle, true));
                }
                None => {}
            }
        }
        let record = &mut self.records[at as usize];
        // The call itself takes 1 ps, which passes while it waits.
        (record.clock, record.due) = (free, clock + 1);
        (record.library().awaited, record.library().missing) = (handles, missing);
        match missing {
            0 => self.all_are_there(fabric, at),
            _ => self.records[at as usize].waiting = Waiting::All,
        }
    }

    /// All operations waited for are complete and paid for.
    pub(crate) fn all_are_there<T: Transport>(&mut self, fabric: &mut T, at: u32) {
        let record = &mut self.records[at as usize];
        record.clock = record.clock.max(record.due);
        let library = record.library();
        for handle in std::mem::take(&mut library.awaited) {
            library.requests.end(handle);
        }
        self.answer(fabric, at, Event::AllCompleted);
    }

    fn wait_any<T: Transport>(&mut self, fabric: &mut T, at: u32, clock: u64, handles: Handles) {
        let mut states = handles.iter().map(|handle| (*handle, self.state(at, *handle)));
        let found = states.find(|(_, state)| *state != Some(State::Pending));
        match found {
            Some((handle, Some(State::Done { cost }))) => {
                self.take(fabric, at, handle, clock, cost);
            }
            Some((handle, _)) => self.answer(fabric, at, Event::Completed(gone(handle))),
            None => {
                let library = self.library(at);
                handles.iter().for_each(|handle| _ = library.requests.mark(*handle, true));
                library.awaited = handles;
                self.records[at as usize].waiting = Waiting::Any;
            }
        }
    }

    fn wait_next<T: Transport>(&mut self, fabric: &mut T, at: u32, clock: u64) {
        let library = self.library(at);
        let requests = &library.requests;
        let finished = library.finished.get_or_insert_with(|| {
            let done = |(_, request): &(Handle, &Request)| request.state != State::Pending;
            requests.iter().filter(done).map(|(handle, _)| handle).collect()
        });
        while let Some(handle) = finished.pop_front() {
            if let Some(State::Done { cost }) = requests.get(handle).map(|request| request.state) {
                return self.take(fabric, at, handle, clock, cost);
            }
        }
        self.records[at as usize].waiting = Waiting::Next;
    }

    fn test<T: Transport>(&mut self, fabric: &mut T, at: u32, clock: u64, handle: Handle) {
        let poll = self.settings.poll_overhead;
        let record = &mut self.records[at as usize];
        record.clock = record.clock.max(clock + poll);
        let tested = match self.state(at, handle) {
            Some(State::Pending) => None,
            None => Some(gone(handle)),
            Some(State::Done { cost }) => {
                let record = &mut self.records[at as usize];
                record.clock = record.clock.max(clock + poll + cost);
                let received = record.library().requests.end(handle);
                Some(Completion { handle, received })
            }
        };
        self.answer(fabric, at, Event::Tested(tested));
    }

    fn probe<T: Transport>(
        &mut self,
        fabric: &mut T,
        at: u32,
        clock: u64,
        filter: Filter,
        wait: bool,
    ) {
        let poll = self.settings.poll_overhead;
        let record = &mut self.records[at as usize];
        record.clock = record.clock.max(clock + poll);
        let library = record.library();
        let found = library.matching.probe(&filter).map(|envelope| envelope.message());
        if wait && found.is_none() {
            library.probed = Some(filter);
            record.waiting = Waiting::Probe;
            return;
        }
        self.answer(fabric, at, Event::Probed(found));
    }

    /// How far an operation is; nothing if it is over.
    #[inline]
    fn state(&mut self, at: u32, handle: Handle) -> Option<State> {
        self.library(at).requests.get(handle).map(|request| request.state)
    }

    /// Does what long messages need of the CPU before its call. Returns whether there was any.
    fn catch_up<T: Transport>(&mut self, fabric: &mut T, at: u32, clock: u64) -> bool {
        let record: &mut Record = &mut self.records[at as usize];
        let Some(library) = &mut record.library else { return false };
        if library.tasks.is_empty() || self.settings.progress == Progress::Async {
            return false;
        }
        let mut free = clock;
        while let Some(task) = self.library(at).tasks.pop_front() {
            free = self.work(fabric, at, task, free);
        }
        true
    }
}

/// One that is over already.
const fn gone(handle: Handle) -> Completion {
    Completion { handle, received: None }
}

/// Whether an operation enters the library, which then goes on with what waits there.
const fn is_call(op: &Op) -> bool {
    !matches!(op, Op::Compute(_) | Op::Start { .. } | Op::WaitUntil(_) | Op::Offer { .. })
}

/// The hints of a message of one packet.
pub(crate) const fn unpaced(hints: Hints) -> Hints {
    Hints { gap: clearlane_workload::Gap(0), ..hints }
}
