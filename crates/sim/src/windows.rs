//! Partitions in step: window after window, on one thread or several.
//!
//! A window is no longer than the lookahead, so nothing done in it at one home is seen at another
//! before it ends. Conservative and synchronous (Lubachevsky, Comm. ACM 32(1), 1989): after each
//! window partitions exchange mail, and the next window is that of the earliest event anywhere.

use crate::cabling::{Numbering, Places};
use crate::checkpoint::{self, PartitionState, RunState, Share};
use crate::deadlock;
use crate::fleet::Crew;
use crate::gathering::{job_records, job_states, merge, merge_control, sort, stuck, to_first};
use crate::invariants;
use crate::mail::Mail;
use crate::model::{Model, Reactors};
use crate::outcome::{ControlRecord, Deadlock, Ending, Outcome, Recorded, Tapped, Totals};
use crate::partition::Partition;
use crate::port::NEVER;
use crate::received::received;
use crate::recorder::Slices;
use crate::setup::Status;
use crate::team::{Next, Orders, end_after, jobs, next, serve};
use crate::trials::{Servers, Trials};
use crate::view::PartitionView;
use clearlane_ib::Picoseconds;
use clearlane_ranks::{JobState, Stuck};
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Simulated time between two looks for a deadlock: a fixed grid.
const DEADLOCK_GRID_PS: u64 = 50_000_000;

/// No slot is narrower than 2^this picoseconds.
const NARROWEST_LOG2: u32 = 10;

/// The partitions of a process, whatever their types.
pub(crate) trait Partitions: Send {
    /// Number of partitions, at least one.
    fn count(&self) -> usize;
    /// The partition of this number.
    fn one(&self, number: usize) -> &dyn PartitionState;
    /// All partitions, for changes.
    fn all_mut(&mut self) -> Vec<&mut dyn PartitionState>;
    /// Serves windows of the only partition until something else is to be done.
    fn serve_alone(&mut self, orders: &Alone<'_>) -> Next;
    /// Serves windows of all partitions on so many threads: see [`team`](crate::team::serve).
    fn serve(&mut self, threads: usize, orders: Orders<'_>) -> (Next, (u64, u64));
    /// Hands out the records of each partition. `times` are the end of the run, and the time that
    /// growing slices reach. The memory of a partition is free before the next is asked.
    fn finish(
        self: Box<Self>,
        times: (u64, u64),
        take: &mut dyn FnMut(usize, &Places, Recorded, ControlRecord),
    );
}

/// Orders for a partition without others.
pub(crate) struct Alone<'a> {
    shortest: u32,
    limit: u64,
    ends_with_jobs: bool,
    pause: &'a AtomicBool,
}

impl<M: Model, const V: usize> Partitions for Vec<Partition<M, V>> {
    fn count(&self) -> usize {
        self.len()
    }

    fn one(&self, number: usize) -> &dyn PartitionState {
        &self[number]
    }

    fn all_mut(&mut self) -> Vec<&mut dyn PartitionState> {
        self.iter_mut().map(|one| one as &mut dyn PartitionState).collect()
    }

    fn serve_alone(&mut self, orders: &Alone<'_>) -> Next {
        let partition = &mut self[0];
        loop {
            let time = partition.next_time().unwrap_or(NEVER);
            let jobs = orders.ends_with_jobs.then(|| jobs([&*partition].into_iter()));
            let next = next(&partition.net.queue, time, orders.limit, jobs);
            let Next::Window(time, end) = next else { return next };
            partition.serve(time, end);
            if partition.net.shortest < orders.shortest {
                return Next::Shorter;
            }
            if orders.pause.load(Ordering::Relaxed) {
                return Next::Pause;
            }
        }
    }

    fn serve(&mut self, threads: usize, orders: Orders<'_>) -> (Next, (u64, u64)) {
        serve(self, threads, orders)
    }

    fn finish(
        self: Box<Self>,
        (end, reach): (u64, u64),
        take: &mut dyn FnMut(usize, &Places, Recorded, ControlRecord),
    ) {
        for (number, partition) in self.into_iter().enumerate() {
            let Partition { net, adapters, places, .. } = partition;
            let recorded = net.recorder.finish(end, reach);
            take(number, &places, recorded, adapters.reactors.finish(reach));
        }
    }
}

/// Limits of recorders that hold for all partitions together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) slices: Slices,
    pub(crate) flow_bytes_max: u64,
}

/// See the module.
pub(crate) struct Windows {
    /// The partitions of this process.
    partitions: Box<dyn Partitions>,
    crew: Crew,
    /// Where the partitions of all processes begin.
    numbering: Numbering,
    threads: usize,
    /// Cores that the threads may use.
    cores: usize,
    /// Of all processes, where there are several: as of the last stop.
    totals: Totals,
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
    /// A clock of nanoseconds and the trials of threads; `None` without trials.
    trials: Option<(fn() -> u64, Trials)>,
}

impl Windows {
    /// Partitions that are about to begin, on so many threads at most.
    pub(crate) fn new(
        partitions: Box<dyn Partitions>,
        (crew, numbering): (Crew, Numbering),
        threads: usize,
        width_log2: u32,
        limits: Limits,
        ends_with_jobs: bool,
    ) -> Self {
        let count = numbering.partitions();
        let boxes = (0..count * count).map(|_| Default::default()).collect();
        let mut windows = Windows {
            threads: threads.clamp(1, partitions.count()),
            cores: std::thread::available_parallelism().map_or(1, NonZero::get),
            partitions,
            crew,
            numbering,
            totals: Totals::default(),
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
            trials: None,
        };
        windows.reshape();
        windows
    }

    /// Makes slots as wide as is fast and, down to a limit, no wider than the lookahead.
    fn reshape(&mut self) {
        let shortest = self.each().map(|part| part.net().shortest()).min();
        self.shortest = self.crew.least(shortest.unwrap_or(u32::MAX).into()) as u32;
        let lookahead = self.partitions.one(0).net().links().lookahead(self.shortest);
        // Slots much shorter than the events are apart would cost more than windows within slots.
        let width = self.width_log2.min(lookahead.ilog2().max(NARROWEST_LOG2));
        for partition in self.partitions.all_mut() {
            partition.reshape(width, lookahead);
        }
    }

    /// The partitions of this process.
    fn each(&self) -> impl Iterator<Item = &dyn PartitionState> + '_ {
        (0..self.partitions.count()).map(|number| self.partitions.one(number))
    }

    /// Views of the partitions of this process.
    fn views(&self) -> Vec<&dyn PartitionView> {
        self.each().map(|one| one as &dyn PartitionView).collect()
    }

    /// Serves windows up to `until` or until something else is to be done.
    fn serve(&mut self, until: u64, pause: &AtomicBool) -> Next {
        if self.numbering.partitions() == 1 {
            return self.partitions.serve_alone(&Alone {
                shortest: self.shortest,
                limit: self.next_look.min(until + 1),
                ends_with_jobs: self.ends_with_jobs,
                pause,
            });
        }
        self.serve_together(until, pause)
    }

    /// Serves several partitions. If trials are made, it returns when a stretch is over.
    fn serve_together(&mut self, until: u64, pause: &AtomicBool) -> Next {
        let Some((clock, trials)) = self.trials.take() else {
            return self.serve_on(self.threads, until, pause, None);
        };
        let threads = match trials.servers() {
            Servers::All => self.threads,
            Servers::One => 1,
        };
        let (begin, before) = (clock(), self.events());
        let next = self.serve_on(threads, until, pause, Some((clock, begin + trials.left())));
        let mut trials = trials;
        trials.note(clock() - begin, self.events() - before);
        self.trials = Some((clock, trials));
        next
    }

    /// Serves several partitions on so many threads, a run of partitions on each. `turn` is a clock
    /// and the time on it at which this returns.
    fn serve_on(
        &mut self,
        threads: usize,
        until: u64,
        pause: &AtomicBool,
        turn: Option<(fn() -> u64, u64)>,
    ) -> Next {
        let orders = Orders {
            boxes: &self.boxes,
            count: self.numbering.partitions(),
            own: self.own(),
            shortest: self.shortest,
            limit: self.next_look.min(until + 1),
            ends_with_jobs: self.ends_with_jobs,
            cores: self.cores,
            pause,
            clock: self.clock,
            turn,
            crew: &self.crew,
        };
        let (next, spent) = self.partitions.serve(threads, orders);
        // A stretch that one thread serves on trial has no balance.
        if threads == self.threads {
            self.spent = (self.spent.0 + spent.0, self.spent.1 + spent.1);
        }
        next
    }

    /// The partitions of this process among all.
    fn own(&self) -> std::ops::Range<usize> {
        self.crew.share(self.numbering.partitions(), self.crew.rank())
    }

    fn share(&self) -> Share<'_> {
        let first = self.own().start;
        Share { first, count: self.numbering.partitions(), crew: &self.crew }
    }

    /// Totals of all processes: each asks at the same point of the run.
    fn sum(&self) -> Totals {
        let mut own = Totals::default();
        self.each().for_each(|partition| own.add(partition.net().totals()));
        if self.crew.is_alone() {
            return own;
        }
        let mut totals = Totals::default();
        self.crew.all(own).iter().for_each(|of| totals.add(of));
        totals
    }

    /// How far all programs are together.
    fn jobs(&self) -> JobState {
        let mut sum = JobState::default();
        job_states(&self.views(), &self.crew).iter().for_each(|job| sum.add(job));
        sum
    }

    /// Looks for a deadlock among the heads that are ready by `ready`, at `now`.
    fn look(&mut self, now: u64, ready: u64) -> bool {
        if self.sum().in_flight() == 0 {
            return false;
        }
        let (first, all) = (self.own().start, (&self.crew, &self.numbering));
        let mut partitions: Vec<&mut dyn PartitionView> = Vec::new();
        partitions
            .extend(self.partitions.all_mut().into_iter().map(|one| one as &mut dyn PartitionView));
        let found = deadlock::find(&mut partitions, first, all, ready);
        if let Some(cycle) = found {
            self.deadlock = Some(Deadlock { found_at: Picoseconds(now), cycle });
            self.now = now;
        }
        self.deadlock.is_some()
    }

    /// Looks for programs of which ranks wait and nothing is under way.
    fn look_at_ranks(&mut self, now: u64) -> bool {
        let states = job_states(&self.views(), &self.crew).into_iter();
        let waits: Vec<bool> =
            states.map(|state| state.unfinished > 0 && state.under_way == 0).collect();
        if waits.contains(&true) {
            let mut stuck = stuck(&self.views(), &self.crew);
            stuck.retain(|one| one.job.is_some_and(|job| waits[usize::from(job)]));
            (self.stuck, self.now) = (stuck, now);
        }
        !self.stuck.is_empty()
    }

    /// Slices that grow with the run come to the same length in all partitions.
    fn grow_alike(&mut self) {
        let grown = self.each().map(|part| part.grown_to()).max();
        let reach = self.crew.most(grown.unwrap_or(0));
        self.partitions.all_mut().into_iter().for_each(|part| part.grow(reach));
    }

    /// What taps have seen and nobody has asked for, by time, port, lane and kind.
    fn gather_tapped(&mut self) -> Vec<Tapped> {
        let mut all = std::mem::take(&mut self.tapped_ahead);
        for part in self.partitions.all_mut() {
            let tapped = part.take_tapped();
            all.extend(tapped.into_iter().map(|(port, tapped)| {
                let end = part.places().end(port);
                Tapped { node: end.node.0, port: end.port.value(), ..tapped }
            }));
        }
        // The total key: time, port, lane, kind. No two records share it.
        all.sort_unstable();
        all
    }

    fn last_effect(&self) -> u64 {
        let own = self.each().map(|part| part.net().last_effect()).max();
        self.crew.most(own.unwrap_or(0))
    }

    /// When to look after `limit`, at which there was no deadlock: an empty network need not be
    /// looked at before something happens. When that is, partitions may know more or less exactly;
    /// with packets in the network the grid alone decides, so that no division finds a deadlock
    /// sooner than another.
    fn look_after(&self, limit: u64) -> u64 {
        let event = match self.sum().in_flight() {
            0 => {
                let own = self.each().filter_map(|part| part.net().queue().next_time()).min();
                self.crew.least(own.unwrap_or(NEVER))
            }
            _ => NEVER,
        };
        let from = if event == NEVER { limit } else { event.max(limit) };
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
        let in_flight = self.sum().in_flight();
        assert_eq!(in_flight, 0, "packets are left, none waits in a circle, none is woken");
        self.drained = true;
        Status::Drained
    }

    /// Time has come to a limit: programs have ended, a look for a deadlock is due, or `until` is
    /// reached.
    fn at_limit(&mut self, limit: u64, until: u64) -> Option<Status> {
        if self.ends_with_jobs && limit <= until {
            let JobState { unfinished, ended_at, .. } = self.jobs();
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

/// The face of a run.
impl Windows {
    /// Advances to `until`, to the end, or to the window in which `pause` is set.
    pub(crate) fn advance(&mut self, until: u64, pause: &AtomicBool) -> Status {
        if self.deadlock.is_some() || !self.stuck.is_empty() {
            return Status::Deadlocked;
        }
        if self.ended {
            return Status::Drained;
        }
        let status = loop {
            match self.serve(until, pause) {
                Next::Window(..) | Next::Turn => {}
                Next::Shorter => self.reshape(),
                Next::Pause => {
                    let floor = self.each().map(|part| part.net().floor()).max();
                    self.now = floor.unwrap_or(0).saturating_sub(1).max(self.now).min(until);
                    break Status::Paused;
                }
                Next::Limit(limit) => {
                    if let Some(status) = self.at_limit(limit, until) {
                        break status;
                    }
                }
                Next::Nothing => break self.at_rest(until),
            }
        };
        if !self.crew.is_alone() {
            self.totals = self.sum();
        }
        status
    }

    /// Simulated time reached.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// Totals so far.
    pub(crate) fn totals(&self) -> Totals {
        if self.crew.is_alone() { self.sum() } else { self.totals }
    }

    /// Messages that take memory.
    pub(crate) fn messages_kept(&self) -> u64 {
        self.each().map(|partition| partition.messages_kept()).sum()
    }

    /// Events served so far.
    pub(crate) fn events(&self) -> u64 {
        self.each().map(|partition| partition.events()).sum()
    }

    /// Number of partitions of all processes.
    pub(crate) fn partitions(&self) -> usize {
        self.numbering.partitions()
    }

    /// Number of threads of this process.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Measures what windows take on each thread from now on.
    pub(crate) fn measure(&mut self, clock: fn() -> u64) {
        self.clock = Some(clock);
    }

    /// Tries out from now on whether all threads are faster than one.
    pub(crate) fn try_threads(&mut self, clock: fn() -> u64) {
        // Processes would have to agree on who serves.
        if self.threads > 1 && self.crew.is_alone() {
            self.trials = Some((clock, Trials::default()));
        }
    }

    /// Time that windows took on all threads, and on the slowest thread of each window.
    pub(crate) fn balance(&self) -> (u64, u64) {
        self.spent
    }

    /// Everything that moves, between two windows. `None` if a program cannot be saved.
    pub(crate) fn save(&mut self) -> Option<RunState> {
        // That a run has ended is found again from where it ended.
        self.grow_alike();
        self.tapped_ahead = self.gather_tapped();
        let times = (self.now, self.next_look);
        let partitions: Vec<_> = self.each().collect();
        checkpoint::save(&partitions, self.share(), times, self.tapped_ahead.clone())
    }

    /// Goes on from a state. `None` if it cannot be of this run; then this is not to be used.
    pub(crate) fn load(&mut self, mut state: RunState, groups: u16) -> Option<()> {
        let first = self.own().start;
        let share = Share { first, count: self.numbering.partitions(), crew: &self.crew };
        checkpoint::load(&mut self.partitions.all_mut(), share, &state, groups)?;
        (self.now, self.next_look) = (state.now, state.next_look);
        self.tapped_ahead = std::mem::take(&mut state.tapped);
        self.reshape();
        Some(())
    }

    /// The first port of each switch's home, in the order of switches.
    pub(crate) fn homes(&self) -> &[u32] {
        self.numbering.homes()
    }

    /// Packets that taps have seen up to now since the last call.
    pub(crate) fn take_tapped(&mut self) -> Vec<Tapped> {
        let mut all = self.gather_tapped();
        let now = Picoseconds(self.now);
        self.tapped_ahead = all.split_off(all.partition_point(|tapped| tapped.time <= now));
        all
    }

    /// Checks every invariant and hands out the results.
    pub(crate) fn finish(mut self) -> Outcome {
        let (totals, own) = (self.sum(), self.own());
        let all = (&self.crew, self.numbering.partitions());
        let across = invariants::audit(&self.views(), own.clone(), all, &totals);
        let ending = match self.deadlock.take() {
            Some(deadlock) => Ending::Deadlock(deadlock),
            None if !self.stuck.is_empty() => Ending::RanksWait(std::mem::take(&mut self.stuck)),
            None if self.ended => Ending::ProgramsEnded,
            None if self.drained => match stuck(&self.views(), &self.crew) {
                ranks if ranks.is_empty() => Ending::Drained,
                ranks => Ending::RanksWait(ranks),
            },
            None => Ending::TimeReached,
        };
        let jobs = job_records(&self.views(), &self.crew);
        // Slices of all partitions reach as far as those of the one that has come farthest.
        let grown = self.each().map(|part| part.net().recorder().grown_to()).max();
        let reach = self.now.max(self.crew.most(grown.unwrap_or(0)));
        self.limits.slices.reach(reach);
        let (mut merged, mut control) = (Recorded::default(), ControlRecord::default());
        let views = self.views();
        let received: Vec<_> =
            (0..views.len()).map(|number| received(&views, &own, number, &across)).collect();
        drop(views);
        self.partitions.finish((self.now, reach), &mut |number, places, mut recorded, of| {
            for (port, channel) in recorded.channels.iter_mut().enumerate() {
                let end = places.end(crate::port::PortIndex(port as u32));
                (channel.node, channel.port) = (end.node.0, end.port.value());
                let (octets, packets) = received[number][port];
                // PortRcvData counts octets divided by 4 (IBA vol. 1, 16.1.3.5).
                (channel.port_rcv_data, channel.port_rcv_pkts) = (octets / 4, packets);
            }
            merge(&mut merged, recorded);
            merge_control(&mut control, of);
        });
        let (mut merged, mut control) = to_first(&self.crew, merged, control);
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
