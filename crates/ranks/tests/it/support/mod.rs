//! An ideal fabric and ranks that follow a script, so that a rule of the library is a test of a
//! few lines.

use clearlane_ib::Saved;
use clearlane_ranks::{
    Envelope, JobState, Kind, Outgoing, Process, Progress, Ranks, SavedRank, Settings, Stuck,
    Transport, What,
};
use clearlane_workload::{Completion, Event, Message};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

pub mod random;
mod script;

pub use script::*;

/// Time from one rank to another, and of a byte, in ps.
pub const LATENCY: u64 = 1_000_000;
pub const BYTE: u64 = 100;
pub const SEND: u64 = 300_000;
pub const RECEIVE: u64 = 200_000;
pub const POLL: u64 = 10_000;
pub const EAGER: u64 = 8192;
pub const CONTROL: u64 = 64;

pub fn settings(progress: Progress) -> Settings {
    Settings {
        send_overhead: SEND,
        receive_overhead: RECEIVE,
        stripe_overhead: 0,
        poll_overhead: POLL,
        eager_max: EAGER,
        control_bytes: CONTROL,
        overtaking: true,
        progress,
    }
}

/// Something on its way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Happens {
    Head(u32),
    Arrived(u32),
    Read(u32),
    Sent(u32),
    Step(u32),
}

/// A fabric without congestion. Messages of a rank may be given a delay of their own, by the order
/// they are posted in.
#[derive(Default)]
struct Ideal {
    now: u64,
    serving: u32,
    events: BinaryHeap<Reverse<(u64, Happens, u64)>>,
    count: u64,
    posted: Vec<Outgoing>,
    delays: BTreeMap<usize, u64>,
}

impl Ideal {
    fn push(&mut self, time: u64, what: Happens, number: u64) {
        self.events.push(Reverse((time, what, number)));
    }
}

impl Transport for Ideal {
    fn now(&self) -> u64 {
        self.now
    }

    fn offer(&mut self, _: u32, _: u64, _: u64, _: u16) {
        panic!("no open-loop traffic here");
    }

    fn post(&mut self, message: &Outgoing) -> u32 {
        let number = self.posted.len();
        self.posted.push(*message);
        let delay = self.delays.get(&number).copied().unwrap_or(0);
        let head = message.ready + LATENCY + delay;
        let tail = head + message.bytes * BYTE;
        let number = number as u64;
        match message.what {
            What::Write { token } => {
                token
                    .iter()
                    .for_each(|_| self.push(tail + LATENCY, Happens::Sent(message.from), number));
            }
            What::Read { .. } => self.push(tail + LATENCY, Happens::Read(message.from), number),
            What::Message { token, .. } => {
                if message.bytes > 2048 {
                    self.push(head, Happens::Head(message.to), number);
                }
                self.push(tail, Happens::Arrived(message.to), number);
                token
                    .iter()
                    .for_each(|_| self.push(tail + LATENCY, Happens::Sent(message.from), number));
            }
        }
        1
    }

    fn wake(&mut self, time: u64) {
        assert!(time > self.now, "{time} is not after {}", self.now);
        self.count += 1;
        self.push(time, Happens::Step(self.serving), self.count);
    }
}

/// What became of scripts.
#[derive(PartialEq, Debug)]
pub struct Ran {
    pub events: Vec<(u32, u64, Event)>,
    pub posted: Vec<Outgoing>,
    pub job: JobState,
    pub stuck: Vec<Stuck>,
}

impl Ran {
    /// What a rank was told besides what it posted, with the time.
    pub fn told(&self, rank: u32) -> Vec<(u64, Event)> {
        let of = self.events.iter().filter(|(of, ..)| *of == rank);
        of.skip(1).map(|(_, time, event)| (*time, *event)).collect()
    }

    /// What a rank has received by waiting, in that order.
    pub fn received(&self, rank: u32) -> Vec<Message> {
        let told = self.told(rank).into_iter();
        let received = told.filter_map(|(_, event)| match event {
            Event::Completed(Completion { received, .. }) => received,
            _ => None,
        });
        received.collect()
    }

    /// Whether two messages are at one rank at one instant, head or tail.
    pub fn meets(&self) -> bool {
        let ends = |one: &Outgoing| {
            let head = one.ready + LATENCY;
            [(one.to, head), (one.to, head + one.bytes * BYTE)]
        };
        let mut all: Vec<(u32, u64)> = self.posted.iter().flat_map(ends).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        let empty = self.posted.iter().filter(|one| one.bytes == 0).count();
        all.len() + empty < count
    }

    pub fn times(&self, rank: u32) -> Vec<u64> {
        self.told(rank).into_iter().map(|(time, _)| time).collect()
    }

    /// Requests to send, reads and FINs posted.
    pub fn protocol(&self) -> [usize; 3] {
        let count =
            |what: fn(&Outgoing) -> bool| self.posted.iter().filter(|one| what(one)).count();
        let kind = |one: &Outgoing| match one.what {
            What::Message { envelope: Envelope { kind, .. }, .. } => Some(kind),
            _ => None,
        };
        let of = |wanted: fn(Kind) -> bool| {
            self.posted.iter().filter_map(kind).filter(|kind| wanted(*kind)).count()
        };
        [
            of(|kind| matches!(kind, Kind::RequestToSend { .. })),
            count(|one| matches!(one.what, What::Read { .. })),
            of(|kind| matches!(kind, Kind::Finished { .. })),
        ]
    }
}

/// Runs scripts, one a rank, to the end.
pub fn run(scripts: Vec<Vec<Do>>) -> Ran {
    run_with(Progress::Call, &[], scripts)
}

/// The same; the messages posted with these numbers come later by so much.
pub fn run_with(progress: Progress, delays: &[(usize, u64)], scripts: Vec<Vec<Do>>) -> Ran {
    let mut whole = Run::new(progress, delays, scripts, 1);
    while whole.go_on() {}
    whole.ran()
}

/// A run of scripts, of which the ranks are divided into parts.
pub struct Run {
    settings: Settings,
    scripts: Vec<Vec<Do>>,
    log: Log,
    fabric: Ideal,
    parts: Vec<Ranks>,
    /// By rank: its part, and its place there.
    places: Vec<(usize, u32)>,
}

impl Run {
    /// One that has not begun.
    pub fn new(
        progress: Progress,
        delays: &[(usize, u64)],
        scripts: Vec<Vec<Do>>,
        division: usize,
    ) -> Self {
        Run::with(settings(progress), delays, scripts, division)
    }

    /// The same with other settings.
    pub fn with(
        settings: Settings,
        delays: &[(usize, u64)],
        scripts: Vec<Vec<Do>>,
        division: usize,
    ) -> Self {
        let mut fabric = Ideal { delays: delays.iter().copied().collect(), ..Ideal::default() };
        for rank in 0..scripts.len() as u32 {
            fabric.count += 1;
            fabric.push(0, Happens::Step(rank), fabric.count);
        }
        let (log, parts, places) = (Log::default(), Vec::new(), Vec::new());
        let mut run = Run { settings, scripts, log, fabric, parts, places };
        (run.parts, run.places) = run.divided(division);
        run
    }

    /// Ranks that have not begun, dealt to parts in a way of their own for each `division`.
    fn divided(&self, division: usize) -> (Vec<Ranks>, Vec<(usize, u32)>) {
        let count = self.scripts.len();
        let mut parts: Vec<Vec<Process>> = Vec::new();
        parts.resize_with(1 + division % 3, Vec::new);
        let mut places = vec![(0, 0); count];
        for step in 0..count {
            let number = (step + division) % count;
            let part = (number + division / 3) % parts.len();
            places[number] = (part, parts[part].len() as u32);
            let (rank, script) = (number as u32, self.scripts[number].clone());
            let program = script::script(rank, script, &self.log);
            parts[part].push(Process { number: rank, base: 0, job: Some(0), program });
        }
        let ranks = |processes| Ranks::new(processes, 1, self.settings);
        (parts.into_iter().map(ranks).collect(), places)
    }

    /// The state of each rank.
    pub fn save(&self) -> Vec<SavedRank> {
        let save = |(part, at): &(usize, u32)| self.parts[*part].save(*at).expect("scripts are");
        self.places.iter().map(save).collect()
    }

    /// Saves every rank and goes on with others, built anew and divided in another way.
    pub fn begin_anew(&mut self, division: usize) {
        let (saved, total) = (self.save(), self.job());
        (self.parts, self.places) = self.divided(division);
        for (state, (part, at)) in saved.iter().zip(&self.places) {
            let bytes = Saved::new("test", 1, state);
            let state = bytes.state("test", 1).expect("its own bytes");
            self.parts[*part].load(*at, &state).expect("its own state");
        }
        for (part, ranks) in self.parts.iter_mut().enumerate() {
            ranks.load_jobs((part == 0).then_some(&[total][..]));
        }
        assert_eq!(self.save(), saved, "the same state, the same bytes");
        assert_eq!(self.job(), total);
    }

    /// The next thing happens. Returns whether there was any.
    pub fn go_on(&mut self) -> bool {
        let Some(Reverse((time, what, number))) = self.fabric.events.pop() else { return false };
        let fabric = &mut self.fabric;
        fabric.now = time;
        let message = fabric.posted.get(number as usize).copied();
        let envelope = || match message.map(|message| message.what) {
            Some(What::Message { envelope, .. }) => envelope,
            _ => panic!("no envelope"),
        };
        let token = || match message.map(|message| message.what) {
            Some(What::Read { token }) => token,
            Some(What::Write { token } | What::Message { token, .. }) => token.unwrap(),
            None => panic!("no message"),
        };
        let (Happens::Head(rank)
        | Happens::Arrived(rank)
        | Happens::Read(rank)
        | Happens::Sent(rank)
        | Happens::Step(rank)) = what;
        fabric.serving = rank;
        let (part, at) = self.places[rank as usize];
        let ranks = &mut self.parts[part];
        match what {
            Happens::Head(_) => ranks.head(fabric, at, &envelope()),
            Happens::Arrived(_) => ranks.arrived(fabric, at, &envelope()),
            Happens::Read(_) => ranks.read(fabric, at, token()),
            Happens::Sent(_) => ranks.sent(fabric, at, token()),
            Happens::Step(_) => ranks.step(fabric, at),
        }
        true
    }

    /// The program of all ranks, summed over the parts.
    pub fn job(&self) -> JobState {
        let mut job = JobState::default();
        self.parts.iter().for_each(|part| job.add(&part.jobs()[0]));
        job
    }

    /// What has become of it.
    pub fn ran(&self) -> Ran {
        let events = self.log.lock().unwrap().clone();
        let mut stuck: Vec<Stuck> = self.parts.iter().flat_map(Ranks::stuck).collect();
        stuck.sort_by_key(|stuck| stuck.process);
        Ran { events, posted: self.fabric.posted.clone(), job: self.job(), stuck }
    }
}
