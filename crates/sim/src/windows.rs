//! Partitions in step: window after window, on one thread or several.
//!
//! A window is no longer than the lookahead, so nothing done in it at one home is seen at another
//! before it ends. Conservative and synchronous (Lubachevsky, Comm. ACM 32(1), 1989): after each
//! window partitions exchange mail, and the next window is that of the earliest event anywhere.

use crate::barrier::{Awaited, Barrier};
use crate::checkpoint::{self, RunState};
use crate::deadlock;
use crate::invariants;
use crate::mail::Mail;
use crate::model::{Model, Observer, Reactors};
use crate::outcome::{
    ChannelRecord, ControlRecord, Deadlock, Ending, JobRecord, Outcome, Recorded, Tapped, Totals,
};
use crate::partition::Partition;
use crate::port::NEVER;
use crate::queue::Queue;
use crate::received::received;
use crate::recorder::Slices;
use crate::setup::{END_GRID, Status};
use clearlane_ib::Picoseconds;
use clearlane_ranks::{JobState, Stuck};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Simulated time between two looks for a deadlock: a fixed grid.
const DEADLOCK_GRID_PS: u64 = 50_000_000;

/// No slot is narrower than 2^this picoseconds.
const NARROWEST_LOG2: u32 = 10;

/// An instance of the simulator, whatever its types.
pub(crate) trait Run: Send {
    /// Advances to `until`, to the end, or to the window in which `pause` is set.
    fn advance(&mut self, until: u64, pause: &AtomicBool) -> Status;
    fn now(&self) -> u64;
    fn totals(&self) -> Totals;
    fn messages_kept(&self) -> u64;
    fn events(&self) -> u64;
    fn partitions(&self) -> usize;
    fn threads(&self) -> usize;
    fn measure(&mut self, clock: fn() -> u64);
    fn balance(&self) -> (u64, u64);
    fn take_tapped(&mut self) -> Vec<Tapped>;
    /// Everything that moves, between two windows; nothing if a program cannot be saved.
    fn save(&mut self) -> Option<RunState>;
    /// Goes on from that, if it can be of this run; else it is not to be used.
    fn load(&mut self, state: RunState, groups: u16) -> Option<()>;
    /// The first port of each switch's home, in the order of switches.
    fn homes(&self) -> Vec<u32>;
    fn finish(self: Box<Self>) -> Outcome;
}

/// What recorders were told to keep, as far as it holds for all partitions together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) slices: Slices,
    pub(crate) flow_bytes_max: u64,
}

/// See the module.
pub(crate) struct Windows<M: Model, const V: usize> {
    partitions: Vec<Partition<M, V>>,
    threads: usize,
    now: u64,
    next_look: u64,
    deadlock: Option<Deadlock>,
    drained: bool,
    /// Whether the run is over when its programs are.
    ends_with_jobs: bool,
    /// Whether they are; or ranks that wait for what will never happen.
    ended: bool,
    stuck: Vec<Stuck>,
    /// What taps know of times to come.
    tapped_ahead: Vec<Tapped>,
    limits: Limits,
    /// The widest slots that are fast.
    width_log2: u32,
    /// Bytes of the shortest packet that the slots allow for.
    shortest: u32,
    boxes: Vec<[Mutex<Vec<Mail>>; 2]>,
    /// For those who measure: a thread's clock, the sum of what windows took, and of what each
    /// took on the thread it took longest on.
    clock: Option<fn() -> u64>,
    spent: (u64, u64),
}

/// What the next window is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    /// Events from this time on and before that.
    Window(u64, u64),
    /// Nothing happens before this time, at which somebody wants to look.
    Limit(u64),
    /// Nothing will happen any more.
    Nothing,
    /// Somebody asks for a pause.
    Pause,
    /// A packet shorter than any before makes the lookahead shorter.
    Shorter,
}

/// What comes next, given a time no later than the next event, one at which somebody wants to look,
/// and how far programs are, if the run ends with them: then windows end at the grid of such ends.
fn next(queue: &Queue, time: u64, limit: u64, jobs: Option<JobState>) -> Next {
    let limit = match jobs {
        Some(JobState { unfinished: 0, ended_at, .. }) => limit.min(end_after(ended_at.0)),
        _ => limit,
    };
    match time {
        NEVER if jobs.is_none_or(|jobs| jobs.unfinished > 0) => Next::Nothing,
        time if time >= limit => Next::Limit(limit),
        time => {
            let end = queue.window_end(time).min(limit);
            Next::Window(time, if jobs.is_some() { end.min(end_after(time)) } else { end })
        }
    }
}

/// When a run ends whose programs have ended at a time.
fn end_after(time: u64) -> u64 {
    (time / END_GRID.0 + 1) * END_GRID.0
}

/// How far all programs of several partitions are together.
fn jobs<'a, M: Model, const V: usize>(
    partitions: impl Iterator<Item = &'a Partition<M, V>>,
) -> JobState {
    let mut sum = JobState::default();
    partitions.flat_map(|part| part.ranks.all.jobs()).for_each(|job| sum.add(job));
    sum
}

/// What threads tell each other at a barrier, by the window's parity.
struct Notices {
    times: Vec<AtomicU64>,
    shortest: Vec<AtomicU64>,
    /// CPU time of the window.
    spent: Vec<AtomicU64>,
    /// Ranks of programs that have not ended, and when the last of the others did.
    unfinished: Vec<AtomicU64>,
    ended_at: Vec<AtomicU64>,
    pause: AtomicBool,
}

impl Notices {
    /// How far all programs are, as all threads know it.
    fn jobs(&self) -> JobState {
        let all = |numbers: &[AtomicU64]| -> Vec<u64> {
            numbers.iter().map(|number| number.load(Ordering::Relaxed)).collect()
        };
        JobState {
            unfinished: all(&self.unfinished).iter().sum::<u64>() as u32,
            ended_at: Picoseconds(all(&self.ended_at).into_iter().max().unwrap_or(0)),
            under_way: 0,
        }
    }
}

impl<M: Model, const V: usize> Windows<M, V> {
    /// Partitions that are about to begin, on so many threads at most.
    pub(crate) fn new(
        partitions: Vec<Partition<M, V>>,
        threads: usize,
        width_log2: u32,
        limits: Limits,
        ends_with_jobs: bool,
    ) -> Self {
        let count = partitions.len();
        let boxes = (0..count * count).map(|_| Default::default()).collect();
        let mut windows = Windows {
            threads: threads.clamp(1, count),
            partitions,
            now: 0,
            next_look: DEADLOCK_GRID_PS,
            deadlock: None,
            drained: false,
            ends_with_jobs,
            ended: false,
            stuck: Vec::new(),
            tapped_ahead: Vec::new(),
            limits,
            width_log2,
            shortest: u32::MAX,
            boxes,
            clock: None,
            spent: (0, 0),
        };
        windows.reshape();
        windows
    }

    /// Makes slots as wide as is fast and, down to a limit, no wider than the lookahead.
    fn reshape(&mut self) {
        let shortest = self.partitions.iter().map(|part| part.net.shortest).min();
        self.shortest = shortest.unwrap_or(u32::MAX);
        let lookahead = self.partitions[0].net.links.lookahead(self.shortest);
        // Slots much shorter than the events are apart would cost more than windows within slots.
        let width = self.width_log2.min(lookahead.ilog2().max(NARROWEST_LOG2));
        for partition in &mut self.partitions {
            partition.net.queue.reshape(width, lookahead);
        }
    }

    /// What comes after the windows so far, given a time no later than the next event.
    fn next(&self, time: u64, until: u64) -> Next {
        let jobs = self.ends_with_jobs.then(|| jobs(self.partitions.iter()));
        next(&self.partitions[0].net.queue, time, self.next_look.min(until + 1), jobs)
    }

    /// Windows up to `until` or until something else is to be done than serving.
    fn serve(&mut self, until: u64, pause: &AtomicBool) -> Next {
        if self.partitions.len() == 1 {
            return self.serve_alone(until, pause);
        }
        self.serve_together(until, pause)
    }

    fn serve_alone(&mut self, until: u64, pause: &AtomicBool) -> Next {
        loop {
            let time = self.partitions[0].next_time().unwrap_or(NEVER);
            let next = self.next(time, until);
            let Next::Window(time, end) = next else { return next };
            self.partitions[0].serve(time, end);
            if self.partitions[0].net.shortest < self.shortest {
                return Next::Shorter;
            }
            if pause.load(Ordering::Relaxed) {
                return Next::Pause;
            }
        }
    }

    /// Several partitions, a run of them on each thread.
    fn serve_together(&mut self, until: u64, pause: &AtomicBool) -> Next {
        let mut partitions = std::mem::take(&mut self.partitions);
        let (threads, count) = (self.threads, partitions.len());
        let mut rest = partitions.as_mut_slice();
        let mut shares = (0..threads).map(|thread| {
            // Shares differ by one partition at most.
            let (first, end) = (thread * count / threads, (thread + 1) * count / threads);
            let (share, others) = std::mem::take(&mut rest).split_at_mut(end - first);
            rest = others;
            (thread, first, share)
        });
        let of_threads =
            |number: u64| -> Vec<_> { (0..threads).map(|_| AtomicU64::new(number)).collect() };
        let notice = || Notices {
            times: of_threads(NEVER),
            shortest: of_threads(u64::MAX),
            spent: of_threads(0),
            unfinished: of_threads(0),
            ended_at: of_threads(0),
            pause: AtomicBool::new(false),
        };
        let team = Team {
            barrier: Barrier::new(threads),
            notices: [notice(), notice()],
            boxes: &self.boxes,
            count: self.count(),
            shortest: self.shortest,
            limit: self.next_look.min(until + 1),
            ends_with_jobs: self.ends_with_jobs,
            pause,
            clock: self.clock,
        };
        let (next, spent) = std::thread::scope(|scope| {
            let first = shares.next();
            for (thread, number, share) in shares {
                let team = &team;
                scope.spawn(move || team.serve(thread, number, share));
            }
            // There is at least one partition.
            first.map_or((Next::Nothing, (0, 0)), |(thread, number, share)| {
                team.serve(thread, number, share)
            })
        });
        self.partitions = partitions;
        self.spent = (self.spent.0 + spent.0, self.spent.1 + spent.1);
        next
    }

    fn count(&self) -> usize {
        // `partitions` is empty while threads have them.
        self.boxes.len().isqrt()
    }

    /// Looks for a deadlock among the heads that are ready by `ready`, at `now`.
    fn look(&mut self, now: u64, ready: u64) -> bool {
        if self.totals().in_flight() == 0 {
            return false;
        }
        if let Some(cycle) = deadlock::find(&mut self.partitions, ready) {
            self.deadlock = Some(Deadlock { found_at: Picoseconds(now), cycle });
            self.now = now;
        }
        self.deadlock.is_some()
    }

    /// Looks for programs of which ranks wait and nothing is under way.
    fn look_at_ranks(&mut self, now: u64) -> bool {
        let count = self.partitions[0].ranks.all.jobs().len();
        let states = (0..count).map(|job| {
            let mut sum = JobState::default();
            self.partitions.iter().for_each(|part| sum.add(&part.ranks.all.jobs()[job]));
            sum
        });
        let waits: Vec<bool> =
            states.map(|state| state.unfinished > 0 && state.under_way == 0).collect();
        if waits.contains(&true) {
            let mut stuck = stuck(&self.partitions);
            stuck.retain(|one| one.job.is_some_and(|job| waits[usize::from(job)]));
            (self.stuck, self.now) = (stuck, now);
        }
        !self.stuck.is_empty()
    }

    /// Slices that grow with the run come to the same length in all partitions.
    fn grow_alike(&mut self) {
        let parts = self.partitions.iter();
        let grown =
            parts.map(|part| part.net.observer.grown_to().max(part.adapters.reactors.grown_to()));
        let reach = grown.max().unwrap_or(0);
        for part in &mut self.partitions {
            part.net.observer.grow(reach);
            part.adapters.reactors.grow(reach);
        }
    }

    /// What taps have seen and nobody has asked for, by time, port, lane and kind.
    fn gather_tapped(&mut self) -> Vec<Tapped> {
        let mut all = std::mem::take(&mut self.tapped_ahead);
        for Partition { net, places, .. } in &mut self.partitions {
            all.extend(net.observer.take_tapped().into_iter().map(|(port, tapped)| {
                let end = places.end(port);
                Tapped { node: end.node.0, port: end.port.value(), ..tapped }
            }));
        }
        // The total key: time, port, lane, kind. No two records share it.
        all.sort_unstable();
        all
    }

    fn last_effect(&self) -> u64 {
        self.partitions.iter().map(|part| part.net.last_effect).max().unwrap_or(0)
    }

    /// When to look after `limit`, at which there was no deadlock: an empty network need not be
    /// looked at before something happens. When that is, partitions may know more or less exactly;
    /// with packets in the network the grid alone decides, so that no division finds a deadlock
    /// sooner than another.
    fn look_after(&self, limit: u64) -> u64 {
        let event = match self.totals().in_flight() {
            0 => self.partitions.iter().filter_map(Partition::next_time).min(),
            _ => None,
        };
        let from = event.map_or(limit, |time| time.max(limit));
        (from / DEADLOCK_GRID_PS + 1) * DEADLOCK_GRID_PS
    }

    /// Nothing will happen any more: all is done, or what is left waits in a circle.
    fn at_rest(&mut self, until: u64) -> Status {
        let last = self.last_effect();
        if last > until {
            // A datagram that is on its way into its host's memory.
            self.now = until;
            return Status::Running;
        }
        self.now = last;
        // No head has to wait for its time any longer.
        if self.look(last, NEVER - 1) {
            return Status::Deadlocked;
        }
        let in_flight = self.totals().in_flight();
        assert_eq!(in_flight, 0, "packets are left, none waits in a circle, none is woken");
        self.drained = true;
        Status::Drained
    }

    /// Time has come to a limit: programs have ended, a look for a deadlock is due, or `until` is
    /// reached.
    fn at_limit(&mut self, limit: u64, until: u64) -> Option<Status> {
        if self.ends_with_jobs && limit <= until {
            let JobState { unfinished, ended_at, .. } = jobs(self.partitions.iter());
            // A look for a deadlock may be due before.
            if unfinished == 0 && limit >= end_after(ended_at.0) {
                (self.now, self.ended) = (limit, true);
                return Some(Status::Drained);
            }
        }
        if limit == self.next_look {
            if self.look(limit, limit) || self.look_at_ranks(limit) {
                return Some(Status::Deadlocked);
            }
            self.next_look = self.look_after(limit);
        }
        (limit > until).then(|| {
            self.now = until;
            Status::Running
        })
    }
}

/// Threads that serve the partitions of a run together.
struct Team<'a> {
    barrier: Barrier,
    /// By parity of the window.
    notices: [Notices; 2],
    /// By (from, to) and parity.
    boxes: &'a [[Mutex<Vec<Mail>>; 2]],
    count: usize,
    shortest: u32,
    /// The first time at which something else is to be done than serving.
    limit: u64,
    ends_with_jobs: bool,
    pause: &'a AtomicBool,
    clock: Option<fn() -> u64>,
}

impl Team<'_> {
    /// Serves the partitions of one thread, the first of which has number `first`, until all
    /// threads agree that something else is to be done.
    fn serve<M: Model, const V: usize>(
        &self,
        thread: usize,
        first: usize,
        share: &mut [Partition<M, V>],
    ) -> (Next, (u64, u64)) {
        let _awaited = Awaited(&self.barrier);
        let mut spent = (0, 0);
        let mut parity = 0;
        self.tell(thread, parity, share, NEVER, 0);
        loop {
            self.barrier.wait();
            self.take_in(parity, first, share);
            let notices = &self.notices[parity];
            let windows = notices.spent.iter().map(|spent| spent.load(Ordering::Relaxed));
            spent.0 += windows.clone().sum::<u64>();
            spent.1 += windows.max().unwrap_or(0);
            let next = self.next(notices, share);
            let Next::Window(time, end) = next else { return (next, spent) };
            let begin = self.clock.map(|clock| clock());
            let mut sent = NEVER;
            parity = 1 - parity;
            for (number, partition) in share.iter_mut().enumerate() {
                partition.serve(time, end);
                sent = sent.min(self.send(parity, first + number, partition));
            }
            let took = begin.zip(self.clock).map_or(0, |(begin, clock)| clock() - begin);
            self.tell(thread, parity, share, sent, took);
        }
    }

    /// What all threads do next: each comes to the same answer.
    fn next<M: Model, const V: usize>(&self, notices: &Notices, share: &[Partition<M, V>]) -> Next {
        let least = |numbers: &[AtomicU64]| {
            numbers.iter().map(|number| number.load(Ordering::Relaxed)).min().unwrap_or(NEVER)
        };
        if least(&notices.shortest) < u64::from(self.shortest) {
            return Next::Shorter;
        }
        if notices.pause.load(Ordering::Relaxed) {
            return Next::Pause;
        }
        let jobs = self.ends_with_jobs.then(|| notices.jobs());
        next(&share[0].net.queue, least(&notices.times), self.limit, jobs)
    }

    /// Tells the others what this thread knows: its next time, or that of mail it has `sent`.
    fn tell<M: Model, const V: usize>(
        &self,
        thread: usize,
        parity: usize,
        share: &[Partition<M, V>],
        sent: u64,
        took: u64,
    ) {
        let notices = &self.notices[parity];
        let times = share.iter().filter_map(Partition::next_time);
        let time = times.chain([sent]).min().unwrap_or(NEVER);
        notices.times[thread].store(time, Ordering::Relaxed);
        let shortest = share.iter().map(|part| part.net.shortest).min().unwrap_or(u32::MAX);
        notices.shortest[thread].store(shortest.into(), Ordering::Relaxed);
        notices.spent[thread].store(took, Ordering::Relaxed);
        if self.ends_with_jobs {
            let jobs = jobs(share.iter());
            notices.unfinished[thread].store(jobs.unfinished.into(), Ordering::Relaxed);
            notices.ended_at[thread].store(jobs.ended_at.0, Ordering::Relaxed);
        }
        if thread == 0 {
            notices.pause.store(self.pause.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Hands a partition's mail over. Returns the earliest time at which any of it counts.
    fn send<M: Model, const V: usize>(
        &self,
        parity: usize,
        from: usize,
        partition: &mut Partition<M, V>,
    ) -> u64 {
        let mut earliest = NEVER;
        for to in 0..self.count {
            let mail = &mut partition.net.outbox[to];
            if mail.is_empty() {
                continue;
            }
            earliest = mail.iter().map(Mail::time).min().unwrap_or(earliest).min(earliest);
            let mut place = lock(&self.boxes[from * self.count + to][parity]);
            std::mem::swap(&mut *place, mail);
        }
        earliest
    }

    fn take_in<M: Model, const V: usize>(
        &self,
        parity: usize,
        first: usize,
        share: &mut [Partition<M, V>],
    ) {
        for (number, partition) in share.iter_mut().enumerate() {
            for from in 0..self.count {
                let mut mail = lock(&self.boxes[from * self.count + first + number][parity]);
                mail.iter().for_each(|mail| partition.net.take_in(mail));
                mail.clear();
            }
        }
    }
}

fn lock<T>(place: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<M: Model, const V: usize> Run for Windows<M, V> {
    fn advance(&mut self, until: u64, pause: &AtomicBool) -> Status {
        if self.deadlock.is_some() || !self.stuck.is_empty() {
            return Status::Deadlocked;
        }
        if self.ended {
            return Status::Drained;
        }
        loop {
            match self.serve(until, pause) {
                Next::Window(..) => {}
                Next::Shorter => self.reshape(),
                Next::Pause => {
                    let floor = self.partitions.iter().map(|part| part.net.floor).max();
                    self.now = floor.unwrap_or(0).saturating_sub(1).max(self.now).min(until);
                    return Status::Paused;
                }
                Next::Limit(limit) => {
                    if let Some(status) = self.at_limit(limit, until) {
                        return status;
                    }
                }
                Next::Nothing => return self.at_rest(until),
            }
        }
    }

    fn now(&self) -> u64 {
        self.now
    }

    fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.partitions.iter().for_each(|partition| totals.add(&partition.net.totals));
        totals
    }

    fn messages_kept(&self) -> u64 {
        self.partitions.iter().map(|partition| partition.adapters.messages_kept()).sum()
    }

    fn events(&self) -> u64 {
        self.partitions.iter().map(|partition| partition.events).sum()
    }

    fn partitions(&self) -> usize {
        self.partitions.len()
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn measure(&mut self, clock: fn() -> u64) {
        self.clock = Some(clock);
    }

    fn balance(&self) -> (u64, u64) {
        self.spent
    }

    fn save(&mut self) -> Option<RunState> {
        // That a run has ended is found again from where it ended.
        self.grow_alike();
        self.tapped_ahead = self.gather_tapped();
        let times = (self.now, self.next_look);
        checkpoint::save(&self.partitions, times, self.tapped_ahead.clone())
    }

    fn load(&mut self, mut state: RunState, groups: u16) -> Option<()> {
        checkpoint::load(&mut self.partitions, &state, groups)?;
        (self.now, self.next_look) = (state.now, state.next_look);
        self.tapped_ahead = std::mem::take(&mut state.tapped);
        self.reshape();
        Some(())
    }

    fn homes(&self) -> Vec<u32> {
        let mut before = 0;
        let mut homes = Vec::new();
        for Partition { net, .. } in &self.partitions {
            homes.extend(net.homes.iter().map(|home| before + home.first.0));
            before += net.ports.len() as u32;
        }
        homes
    }

    fn take_tapped(&mut self) -> Vec<Tapped> {
        let mut all = self.gather_tapped();
        let now = Picoseconds(self.now);
        self.tapped_ahead = all.split_off(all.partition_point(|tapped| tapped.time <= now));
        all
    }

    fn finish(mut self: Box<Self>) -> Outcome {
        let totals = self.totals();
        invariants::audit(&self.partitions, &totals);
        let ending = match self.deadlock {
            Some(deadlock) => Ending::Deadlock(deadlock),
            None if !self.stuck.is_empty() => Ending::RanksWait(self.stuck),
            None if self.ended => Ending::ProgramsEnded,
            None if self.drained => match stuck(&self.partitions) {
                ranks if ranks.is_empty() => Ending::Drained,
                ranks => Ending::RanksWait(ranks),
            },
            None => Ending::TimeReached,
        };
        let jobs = job_records(&self.partitions);
        // Slices of all partitions reach as far as those of the one that has come farthest.
        let grown = self.partitions.iter().map(|part| part.net.observer.grown_to()).max();
        let reach = self.now.max(grown.unwrap_or(0));
        self.limits.slices.reach(reach);
        let (mut merged, mut control) = (Recorded::default(), ControlRecord::default());
        let numbers = 0..self.partitions.len();
        let received: Vec<_> = numbers.map(|number| received(&self.partitions, number)).collect();
        for (number, partition) in self.partitions.into_iter().enumerate() {
            let Partition { net, adapters, places, .. } = partition;
            let mut recorded = net.observer.finish(self.now, reach);
            for (port, channel) in recorded.channels.iter_mut().enumerate() {
                let end = places.end(crate::port::PortIndex(port as u32));
                (channel.node, channel.port) = (end.node.0, end.port.value());
                let (octets, packets) = received[number][port];
                // PortRcvData counts octets divided by 4 (IBA vol. 1, 16.1.3.5).
                (channel.port_rcv_data, channel.port_rcv_pkts) = (octets / 4, packets);
            }
            merge(&mut merged, recorded);
            merge_control(&mut control, adapters.reactors.finish(reach));
        }
        sort(&mut merged, &mut control, self.limits.flow_bytes_max);
        Outcome {
            ending,
            duration: Picoseconds(self.now),
            slice: Picoseconds(self.limits.slices.length),
            totals,
            groups: merged.groups,
            flows: merged.flows,
            flows_dropped: merged.flows_dropped,
            channels: merged.channels,
            control,
            jobs,
        }
    }
}

/// The ranks that have not ended, by their number.
fn stuck<M: Model, const V: usize>(partitions: &[Partition<M, V>]) -> Vec<Stuck> {
    let mut all: Vec<Stuck> =
        partitions.iter().flat_map(|partition| partition.ranks.all.stuck()).collect();
    all.sort_unstable_by_key(|stuck| stuck.process);
    all
}

/// How each program has ended.
fn job_records<M: Model, const V: usize>(partitions: &[Partition<M, V>]) -> Vec<JobRecord> {
    let count = partitions.first().map_or(0, |part| part.ranks.all.jobs().len());
    let record = |job: usize| {
        let mut sum = JobState::default();
        partitions.iter().for_each(|part| sum.add(&part.ranks.all.jobs()[job]));
        JobRecord { unfinished: sum.unfinished, ended_at: sum.ended_at }
    };
    (0..count).map(record).collect()
}

/// Adds what the recorder of another partition has.
fn merge(all: &mut Recorded, part: Recorded) {
    if all.groups.is_empty() {
        all.groups = part.groups;
    } else {
        let slices = all.groups.iter_mut().flatten().zip(part.groups.into_iter().flatten());
        slices.for_each(|(sum, slice)| sum.add(&slice));
    }
    all.flows.extend(part.flows);
    all.flow_bytes += part.flow_bytes;
    all.flows_dropped |= part.flows_dropped;
    all.channels.extend(part.channels);
}

fn merge_control(all: &mut ControlRecord, part: ControlRecord) {
    all.flows.extend(part.flows);
    all.dropped |= part.dropped;
    all.bytes += part.bytes;
}

/// Puts records in order. Limits hold for all partitions together.
fn sort(recorded: &mut Recorded, control: &mut ControlRecord, flow_bytes_max: u64) {
    if recorded.flows_dropped || recorded.flow_bytes > flow_bytes_max {
        (recorded.flows_dropped, recorded.flows) = (true, Vec::new());
    }
    if control.dropped || control.bytes > flow_bytes_max {
        (control.dropped, control.flows) = (true, Vec::new());
    }
    recorded.flows.sort_by_key(|flow| (flow.group, flow.source, flow.destination));
    recorded.channels.sort_by_key(|channel: &ChannelRecord| (channel.node, channel.port));
    control.flows.sort_by_key(|flow| (flow.group, flow.source, flow.destination, flow.path));
    control.bytes = 0;
}
