//! The library's face: a set-up goes in, an outcome comes out, as with the packet simulator.

use crate::arriving::Told;
use crate::batching::Batching;
use crate::error::SetupError;
use crate::events::Event;
use crate::network::{NEVER, Network};
use clearlane_ib::Picoseconds;
use clearlane_ranks::{Outgoing, Process, Ranks, Stuck, Transport};
use clearlane_sim::{
    ControlRecord, END_GRID, Ending, Forwarding, Hosts, JobRecord, Outcome, Setup, Status, Totals,
};
use std::sync::atomic::{AtomicBool, Ordering};

/// Simulated time between two looks for ranks that wait for what will never happen: the grid of the
/// packet simulator.
const LOOK_GRID: u64 = 50_000_000;

/// A simulation under way.
pub struct Simulation {
    ranks: Ranks,
    network: Network,
    /// By place of a rank: its program.
    job_of: Vec<Option<u16>>,
    /// By program: whether all its ranks have ended.
    ended: Vec<bool>,
    /// Programs that have not.
    open: usize,
    ends_with_jobs: bool,
    next_look: u64,
    state: State,
}

/// How far a run is.
enum State {
    Running,
    Drained,
    /// The programs that the run was to last for have ended.
    Ended,
    /// These ranks wait.
    Stuck(Vec<Stuck>),
}

/// The rank being served, and what is below it.
struct Below<'a> {
    network: &'a mut Network,
    /// Its place, which is its number.
    at: u32,
}

impl Transport for Below<'_> {
    fn now(&self) -> u64 {
        self.network.now
    }

    fn offer(&mut self, to: u32, born: u64, bytes: u64, group: u16) {
        self.network.offer(self.at, to, born, bytes, group);
    }

    fn post(&mut self, message: &Outgoing) -> u32 {
        self.network.post(self.at, message);
        1
    }

    fn wake(&mut self, time: u64) {
        self.network.events.push(time, Event::Step(self.at));
    }
}

impl Simulation {
    /// Builds the network and starts the programs. Fails if the packet simulator would refuse the
    /// set-up, or it has what flow mode does not have: congestion mechanisms, adaptive routing,
    /// taps.
    pub fn new(setup: Setup<'_>) -> Result<Self, SetupError> {
        Self::with_batching(setup, Batching::default())
    }

    /// The same with another grain of time.
    pub fn with_batching(mut setup: Setup<'_>, batching: Batching) -> Result<Self, SetupError> {
        let adaptive = match setup.forwarding {
            Forwarding::Tables(subnet) => subnet.adaptive.is_some(),
            Forwarding::DimensionOrder(..) => false,
        };
        let packets = [
            (setup.control.is_some(), "congestion mechanisms"),
            (adaptive, "adaptive routing"),
            (!setup.taps.is_empty(), "packets for taps to see"),
        ];
        if let Some((_, what)) = packets.iter().find(|(there, _)| *there) {
            return Err(SetupError::Packets { what });
        }
        let hosts = Hosts::with_ports(setup.fabric, setup.parameters.adapter_ports);
        setup.check(&hosts)?;
        let mut network = Network::new(&setup, hosts, batching)?;
        let (settings, jobs) = (setup.parameters.library(), setup.jobs.len());
        let programs = std::mem::take(&mut setup.programs);
        let own = |(number, program)| Process { number, base: 0, job: None, program };
        let mut processes: Vec<Process> = (0..).zip(programs).map(own).collect();
        for (job, of) in (0..).zip(std::mem::take(&mut setup.jobs)) {
            let base = processes.len() as u32;
            let rank = |(number, placed): (u32, clearlane_sim::Placed)| Process {
                number,
                base,
                job: Some(job),
                program: placed.program,
            };
            processes.extend((base..).zip(of.ranks).map(rank));
        }
        let job_of: Vec<Option<u16>> = processes.iter().map(|process| process.job).collect();
        (0..job_of.len() as u32).for_each(|at| network.events.push(0, Event::Step(at)));
        let ranks = Ranks::new(processes, jobs, settings);
        let ended: Vec<bool> = ranks.jobs().iter().map(|job| job.unfinished == 0).collect();
        Ok(Simulation {
            open: ended.iter().filter(|ended| !**ended).count(),
            ended,
            ranks,
            network,
            job_of,
            ends_with_jobs: setup.ends_with_jobs,
            next_look: LOOK_GRID,
            state: State::Running,
        })
    }

    /// Advances simulated time to `until` or to the end, whichever comes first.
    pub fn run_until(&mut self, until: Picoseconds) -> Status {
        self.advance(until, &AtomicBool::new(false))
    }

    /// The same, but returns [`Status::Paused`] soon after `pause` is set. Whoever sets it, clears
    /// it.
    pub fn advance(&mut self, until: Picoseconds, pause: &AtomicBool) -> Status {
        let until = until.0.min(Picoseconds::MAX_RUN.0);
        match self.state {
            State::Running => {}
            State::Stuck(_) => return Status::Deadlocked,
            State::Drained | State::Ended => return Status::Drained,
        }
        loop {
            let (next, end) = (self.network.next_time(), self.end());
            if next == NEVER && end == NEVER {
                return self.at_rest(until);
            }
            if end <= next.min(self.next_look).min(until) {
                (self.network.now, self.state) = (end, State::Ended);
                return Status::Drained;
            }
            if self.next_look <= next.min(until) {
                if self.look() {
                    return Status::Deadlocked;
                }
                // Before something happens there is nothing new to see.
                let from = self.next_look.max(if next == NEVER { 0 } else { next });
                self.next_look = (from / LOOK_GRID + 1) * LOOK_GRID;
                continue;
            }
            if next > until {
                self.network.now = until;
                return Status::Running;
            }
            self.instant(next);
            if pause.load(Ordering::Relaxed) {
                return Status::Paused;
            }
        }
    }

    /// When a run ends whose programs have ended; never if there are others or it ends otherwise.
    fn end(&self) -> u64 {
        if !self.ends_with_jobs || self.open > 0 {
            return NEVER;
        }
        let last = self.ranks.jobs().iter().map(|job| job.ended_at).max().unwrap_or_default();
        (last.0 / END_GRID.0 + 1) * END_GRID.0
    }

    /// All that happens at one instant.
    fn instant(&mut self, now: u64) {
        self.network.now = now;
        loop {
            let mut happens = false;
            while self.network.end_one() {
                happens = true;
            }
            while let Some(event) = self.network.events.pop(now) {
                happens = true;
                self.serve(event);
            }
            if !happens {
                break;
            }
            self.network.last_effect = now;
        }
        self.network.settle_rates();
    }

    fn serve(&mut self, event: Event) {
        let told = match event {
            Event::Arrived(number) => self.network.arrive(number),
            Event::Sent(number) => self.network.has_left_for_good(number),
            Event::Ready(number) => {
                self.network.enqueue(number);
                None
            }
            Event::Step(at) => {
                let mut below = Below { network: &mut self.network, at };
                self.ranks.step(&mut below, at);
                self.has_stepped(at);
                None
            }
        };
        let Some(told) = told else { return };
        let at = match told {
            Told::Arrived(envelope) => envelope.to,
            Told::Read(at, _) | Told::Sent(at, _) => at,
        };
        let mut below = Below { network: &mut self.network, at };
        match told {
            Told::Arrived(envelope) => self.ranks.arrived(&mut below, at, &envelope),
            Told::Read(_, token) => self.ranks.read(&mut below, at, token),
            Told::Sent(_, token) => self.ranks.sent(&mut below, at, token),
        }
    }

    /// A rank may have ended, and its program with it.
    fn has_stepped(&mut self, at: u32) {
        let Some(job) = self.job_of[at as usize].map(usize::from) else { return };
        if self.ranks.jobs()[job].unfinished == 0 && !std::mem::replace(&mut self.ended[job], true)
        {
            self.open -= 1;
        }
    }

    /// Looks for programs of which ranks wait and nothing is under way.
    fn look(&mut self) -> bool {
        let jobs = self.ranks.jobs();
        let waits: Vec<bool> =
            jobs.iter().map(|job| job.unfinished > 0 && job.under_way == 0).collect();
        if !waits.contains(&true) {
            return false;
        }
        let mut stuck = self.ranks.stuck();
        stuck.retain(|one| one.job.is_some_and(|job| waits[usize::from(job)]));
        (self.network.now, self.state) = (self.next_look, State::Stuck(stuck));
        true
    }

    /// Nothing will happen any more, but for messages that go in a circle for ever.
    fn at_rest(&mut self, until: u64) -> Status {
        if self.network.lost > 0 {
            self.network.now = until;
            return Status::Running;
        }
        self.network.now = self.network.last_effect;
        self.state = State::Drained;
        Status::Drained
    }

    /// Simulated time reached.
    pub fn now(&self) -> Picoseconds {
        Picoseconds(self.network.now)
    }

    /// Totals so far: packets are those that messages would travel in, counted when a message has
    /// left.
    pub fn totals(&self) -> Totals {
        self.network.totals
    }

    /// Messages that take memory: those posted and not yet done with.
    pub fn messages_kept(&self) -> u64 {
        self.network.messages.count() as u64
    }

    /// Parts that the fabric is divided in: flows are not.
    pub fn partitions(&self) -> usize {
        1
    }

    /// Threads it is simulated on.
    pub fn threads(&self) -> usize {
        1
    }

    /// Checks that all has arrived, if the run has drained, and hands out what was found. Panics if
    /// something is missing: that is a fault of this program, never of its input.
    pub fn finish(mut self) -> Outcome {
        let ending = match self.state {
            State::Stuck(stuck) => Ending::RanksWait(stuck),
            State::Ended => Ending::ProgramsEnded,
            State::Running => Ending::TimeReached,
            State::Drained => {
                self.network.audit_at_rest();
                match self.ranks.stuck() {
                    ranks if ranks.is_empty() => Ending::Drained,
                    ranks => Ending::RanksWait(ranks),
                }
            }
        };
        self.network.note_rest();
        let network = self.network;
        let (peers, channels) = (&network.links.peers, &network.links.channels);
        let recorded = network.recorder.finish(peers, channels, network.now);
        let job = |job: &clearlane_ranks::JobState| JobRecord {
            unfinished: job.unfinished,
            ended_at: job.ended_at,
        };
        let jobs = self.ranks.jobs().iter().map(job).collect();
        Outcome {
            ending,
            duration: Picoseconds(network.now),
            slice: Picoseconds(recorded.slice),
            totals: network.totals,
            groups: recorded.groups,
            flows: recorded.flows,
            flows_dropped: recorded.flows_dropped,
            channels: recorded.channels,
            control: ControlRecord::default(),
            jobs,
        }
    }
}
