//! Threads that serve the partitions of a process together, window after window, and what
//! processes tell each other in between.

use crate::barrier::{Awaited, Barrier};
use crate::fleet::Crew;
use crate::mail::Mail;
use crate::model::Model;
use crate::partition::Partition;
use crate::port::NEVER;
use crate::queue::Queue;
use crate::setup::END_GRID;
use clearlane_ib::Picoseconds;
use clearlane_ranks::JobState;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What the next window is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
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
    /// The stretch that these threads were to serve is over.
    Turn,
}

/// What comes next, given a time no later than the next event, one at which somebody wants to look,
/// and how far programs are, if the run ends with them: then windows end at the grid of such ends.
pub(crate) fn next(queue: &Queue, time: u64, limit: u64, jobs: Option<JobState>) -> Next {
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
pub(crate) fn end_after(time: u64) -> u64 {
    (time / END_GRID.0 + 1) * END_GRID.0
}

/// How far all programs of several partitions are together.
pub(crate) fn jobs<'a, M: Model, const V: usize>(
    partitions: impl Iterator<Item = &'a Partition<M, V>>,
) -> JobState {
    let mut sum = JobState::default();
    partitions.flat_map(|part| part.ranks.all.jobs()).for_each(|job| sum.add(job));
    sum
}

/// What threads tell each other at a barrier, by the window's parity. Of several processes there is
/// one thread more, which stands for all of the others.
struct Notices {
    times: Vec<AtomicU64>,
    shortest: Vec<AtomicU64>,
    /// CPU time of the window.
    spent: Vec<AtomicU64>,
    /// Ranks of programs that have not ended, and when the last of the others did.
    unfinished: Vec<AtomicU64>,
    ended_at: Vec<AtomicU64>,
    pause: AtomicBool,
    /// Whether the stretch is over.
    turn: AtomicBool,
}

/// The notices of a process, and its mail by (from, to).
#[derive(Default, Serialize, Deserialize)]
struct Parcel {
    time: u64,
    shortest: u64,
    unfinished: u64,
    ended_at: u64,
    pause: bool,
    mail: Vec<(u32, u32, Vec<Mail>)>,
}

impl Notices {
    /// Of so many threads, which have told nothing yet.
    fn of(threads: usize) -> Self {
        let all =
            |number: u64| -> Vec<_> { (0..threads).map(|_| AtomicU64::new(number)).collect() };
        Notices {
            times: all(NEVER),
            shortest: all(u64::MAX),
            spent: all(0),
            unfinished: all(0),
            ended_at: all(0),
            pause: AtomicBool::new(false),
            turn: AtomicBool::new(false),
        }
    }

    /// What so many threads of this process tell the others.
    fn parcel(&self, threads: usize) -> Parcel {
        let all = |numbers: &[AtomicU64]| -> Vec<u64> {
            numbers[..threads].iter().map(|number| number.load(Ordering::Relaxed)).collect()
        };
        Parcel {
            time: all(&self.times).into_iter().min().unwrap_or(NEVER),
            shortest: all(&self.shortest).into_iter().min().unwrap_or(u64::MAX),
            unfinished: all(&self.unfinished).iter().sum(),
            ended_at: all(&self.ended_at).into_iter().max().unwrap_or(0),
            pause: self.pause.load(Ordering::Relaxed),
            mail: Vec::new(),
        }
    }

    /// What the other processes have told, as one thread more.
    fn note(&self, threads: usize, others: &[Parcel]) {
        let all = |of: fn(&Parcel) -> u64| others.iter().map(of);
        let least = |of| all(of).min().unwrap_or(u64::MAX);
        self.times[threads].store(least(|parcel| parcel.time), Ordering::Relaxed);
        self.shortest[threads].store(least(|parcel| parcel.shortest), Ordering::Relaxed);
        let unfinished = all(|parcel| parcel.unfinished).sum();
        self.unfinished[threads].store(unfinished, Ordering::Relaxed);
        let ended_at = all(|parcel| parcel.ended_at).max().unwrap_or(0);
        self.ended_at[threads].store(ended_at, Ordering::Relaxed);
        if others.iter().any(|parcel| parcel.pause) {
            self.pause.store(true, Ordering::Relaxed);
        }
    }

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

/// What a team is to do.
pub(crate) struct Orders<'a> {
    /// By (from, to) and parity: mail between all partitions of the run.
    pub(crate) boxes: &'a [[Mutex<Vec<Mail>>; 2]],
    /// How many partitions the run has.
    pub(crate) count: usize,
    /// Which of them are of this process.
    pub(crate) own: Range<usize>,
    pub(crate) shortest: u32,
    /// The first time at which something else is to be done than serving.
    pub(crate) limit: u64,
    pub(crate) ends_with_jobs: bool,
    /// Cores that threads of this process may use.
    pub(crate) cores: usize,
    pub(crate) pause: &'a AtomicBool,
    pub(crate) clock: Option<fn() -> u64>,
    /// A clock, and the time on it at which the stretch of these threads is over.
    pub(crate) turn: Option<(fn() -> u64, u64)>,
    pub(crate) crew: &'a Crew,
}

/// Windows between two looks at the clock of [`Orders::turn`].
const WINDOWS_PER_LOOK: u64 = 16;

/// Threads that serve the partitions of a process together.
struct Team<'a> {
    barrier: Barrier,
    threads: usize,
    /// By parity of the window.
    notices: [Notices; 2],
    orders: Orders<'a>,
}

/// Has so many threads serve partitions, a run of them on each, until all agree that something else
/// is to be done. With that, what windows took on all threads together, and on the one each took
/// longest on.
pub(crate) fn serve<M: Model, const V: usize>(
    partitions: &mut [Partition<M, V>],
    threads: usize,
    orders: Orders<'_>,
) -> (Next, (u64, u64)) {
    let (first_of_all, count) = (orders.own.start, partitions.len());
    let mut rest = partitions;
    let mut shares = (0..threads).map(|thread| {
        // Shares differ by one partition at most.
        let (first, end) = (thread * count / threads, (thread + 1) * count / threads);
        let (share, others) = std::mem::take(&mut rest).split_at_mut(end - first);
        rest = others;
        (thread, first_of_all + first, share)
    });
    let tell = threads + usize::from(!orders.crew.is_alone());
    let notices = [Notices::of(tell), Notices::of(tell)];
    let team = Team { barrier: Barrier::new(threads, orders.cores), threads, notices, orders };
    std::thread::scope(|scope| {
        let first = shares.next();
        for (thread, number, share) in shares {
            let team = &team;
            scope.spawn(move || team.serve(thread, number, share));
        }
        // There is at least one partition.
        first.map_or((Next::Nothing, (0, 0)), |(thread, number, share)| {
            team.serve(thread, number, share)
        })
    })
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
        for window in 1_u64.. {
            self.barrier.wait();
            if !self.orders.crew.is_alone() {
                if thread == 0 {
                    self.exchange(parity);
                }
                self.barrier.wait();
            }
            self.take_in(parity, first, share);
            let notices = &self.notices[parity];
            let windows = notices.spent.iter().map(|spent| spent.load(Ordering::Relaxed));
            spent.0 += windows.clone().sum::<u64>();
            spent.1 += windows.max().unwrap_or(0);
            let next = self.next(notices, share);
            let Next::Window(time, end) = next else { return (next, spent) };
            let clock = self.orders.clock;
            let begin = clock.map(|clock| clock());
            let mut sent = NEVER;
            parity = 1 - parity;
            for (number, partition) in share.iter_mut().enumerate() {
                partition.serve(time, end);
                sent = sent.min(self.send(parity, first + number, partition));
            }
            let took = begin.zip(clock).map_or(0, |(begin, clock)| clock() - begin);
            self.tell(thread, parity, share, sent, took);
            if thread == 0 && window.is_multiple_of(WINDOWS_PER_LOOK) {
                let is_over = self.orders.turn.is_some_and(|(clock, end)| clock() >= end);
                self.notices[parity].turn.store(is_over, Ordering::Relaxed);
            }
        }
        (Next::Turn, spent)
    }

    /// Processes tell each other what their threads know, and hand over mail.
    fn exchange(&self, parity: usize) {
        let Orders { boxes, count, own, crew, .. } = &self.orders;
        let notices = &self.notices[parity];
        let parcel = |rank: usize| {
            let mut parcel = notices.parcel(self.threads);
            if rank == crew.rank() {
                return parcel;
            }
            for from in own.clone() {
                for to in crew.share(*count, rank) {
                    let mail = std::mem::take(&mut *lock(&boxes[from * count + to][parity]));
                    if !mail.is_empty() {
                        parcel.mail.push((from as u32, to as u32, mail));
                    }
                }
            }
            parcel
        };
        let mut parcels = crew.to_each((0..crew.size()).map(parcel).collect());
        parcels.remove(crew.rank());
        notices.note(self.threads, &parcels);
        for (from, to, mail) in parcels.into_iter().flat_map(|parcel| parcel.mail) {
            *lock(&boxes[from as usize * count + to as usize][parity]) = mail;
        }
    }

    /// What all threads do next: each comes to the same answer.
    fn next<M: Model, const V: usize>(&self, notices: &Notices, share: &[Partition<M, V>]) -> Next {
        let least = |numbers: &[AtomicU64]| {
            numbers.iter().map(|number| number.load(Ordering::Relaxed)).min().unwrap_or(NEVER)
        };
        if least(&notices.shortest) < u64::from(self.orders.shortest) {
            return Next::Shorter;
        }
        if notices.pause.load(Ordering::Relaxed) {
            return Next::Pause;
        }
        if notices.turn.load(Ordering::Relaxed) {
            return Next::Turn;
        }
        let jobs = self.orders.ends_with_jobs.then(|| notices.jobs());
        next(&share[0].net.queue, least(&notices.times), self.orders.limit, jobs)
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
        if self.orders.ends_with_jobs {
            let jobs = jobs(share.iter());
            notices.unfinished[thread].store(jobs.unfinished.into(), Ordering::Relaxed);
            notices.ended_at[thread].store(jobs.ended_at.0, Ordering::Relaxed);
        }
        if thread == 0 {
            notices.pause.store(self.orders.pause.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Hands a partition's mail over. Returns the earliest time at which any of it counts.
    fn send<M: Model, const V: usize>(
        &self,
        parity: usize,
        from: usize,
        partition: &mut Partition<M, V>,
    ) -> u64 {
        let (mut earliest, count) = (NEVER, self.orders.count);
        for to in 0..count {
            let mail = &mut partition.net.outbox[to];
            if mail.is_empty() {
                continue;
            }
            earliest = mail.iter().map(Mail::time).min().unwrap_or(earliest).min(earliest);
            let mut place = lock(&self.orders.boxes[from * count + to][parity]);
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
        let Orders { boxes, count, .. } = &self.orders;
        for (number, partition) in share.iter_mut().enumerate() {
            for from in 0..*count {
                let mut mail = lock(&boxes[from * count + first + number][parity]);
                mail.iter().for_each(|mail| partition.net.take_in(mail));
                mail.clear();
            }
        }
    }
}

fn lock<T>(place: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}
