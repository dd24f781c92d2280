//! Ranks on a network that is never congested: LogGOPS.
//!
//! A message of k bytes costs the sender's CPU o + (k − 1) O, is under way for L + (k − 1) G and
//! costs the receiver's CPU o. The port that it goes by takes the next one g + (k − 1) G after it,
//! sending and receiving each for itself. A message of more than S bytes is sent when its receive
//! is there. LogP with long messages: Alexandrov, Ionescu, Schauser and Scheiman, "LogGP", SPAA
//! 1995; with S: Ino, Fujimoto and Hagihara, "LogGPS", PPoPP 2001; with O: Hoefler, Schneider and
//! Lumsdaine, "LogGOPSim", HPDC 2010.
//!
//! What differs from the simulator LogGOPSim:
//! * Every operation of a program takes 1 ps or more (see the crate), and so does being told of it.
//! * A CPU serves first what comes first, messages before what they or others set free at the same
//!   time. LogGOPSim lets events made earlier go first, and makes those that an operation sets free
//!   when it begins.
//! * An unexpected message costs the receiver o when it is received, not when it comes.
//! * The CPU does not wait for the port: it spends o and goes on, and the message waits. LogGOPSim
//!   begins o only when the port is free. Messages leave at the same times.
//! * Receiving a long message does not keep the CPU busy for (k − 1) G, as nothing does in LogGP;
//!   nor for (k − 1) O, by which it is only later where O is more than G.
//! * A message of more than S bytes is announced, read and acknowledged, each with its latency, as
//!   LogGPS has a handshake; LogGOPSim sends it as any other and lets its sender go on when it is
//!   matched. The adapter reads it: no CPU spends O.

use crate::process::Process;
use crate::ranks::Ranks;
use crate::settings::{Progress, Settings};
use crate::stuck::Stuck;
use crate::transport::{Envelope, Outgoing, Transport, What};
use clearlane_ib::Picoseconds;
use clearlane_workload::RankProgram;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// The parameters, times in ps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogGops {
    /// L: the time of the first byte from port to port.
    pub latency: u64,
    /// o: how long a CPU is busy with each message sent and each received.
    pub overhead: u64,
    /// g: the least time between two messages at a port.
    pub gap: u64,
    /// G: the time of each further byte of a message.
    pub gap_per_byte: u64,
    /// O: how much longer the sender's CPU is busy for each further byte.
    pub overhead_per_byte: u64,
    /// S: the longest message that is sent at once, in bytes.
    pub eager_max: u64,
}

impl LogGops {
    /// The defaults of LogGOPSim: L = 2.5 µs, o = 1.5 µs, g = 1 µs, G = 6 ns, O = 0, S = 65535.
    pub const DEFAULT: LogGops = LogGops {
        latency: 2_500_000,
        overhead: 1_500_000,
        gap: 1_000_000,
        gap_per_byte: 6_000,
        overhead_per_byte: 0,
        eager_max: 65_535,
    };
}

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finished {
    /// By rank: when it ended, if it did.
    pub ended: Vec<Option<Picoseconds>>,
    /// Ranks that have not, and what each waits for.
    pub stuck: Vec<Stuck>,
}

/// Runs the ranks of a program, which are given in their order, until nothing happens any more or
/// the longest run is over. Open-loop traffic is left out: it is for nobody here.
pub fn run(programs: Vec<Box<dyn RankProgram>>, parameters: &LogGops) -> Finished {
    let process = |(number, program)| Process { number, base: 0, job: Some(0), program };
    let processes: Vec<Process> = (0..).zip(programs).map(process).collect();
    let settings = Settings {
        send_overhead: parameters.overhead,
        receive_overhead: parameters.overhead,
        // Each further byte is a stripe: see `Network::post`.
        stripe_overhead: parameters.overhead_per_byte,
        poll_overhead: 0,
        eager_max: parameters.eager_max,
        control_bytes: 1,
        overtaking: true,
        progress: Progress::Call,
    };
    let count = processes.len() as u32;
    let mut ranks = Ranks::new(processes, 1, settings);
    let mut network = Network { parameters: *parameters, ..Network::default() };
    (0..count).for_each(|rank| network.push(0, rank, Happens::Step));
    while let Some(Reverse((time, _, event))) = network.events.pop() {
        if time > Picoseconds::MAX_RUN.0 {
            break;
        }
        let (rank, happens) = network.under_way.remove(event as usize);
        (network.now, network.serving) = (time, rank);
        network.happens(&mut ranks, rank, happens);
    }
    let ended = (0..count).map(|rank| ranks.ended(rank)).collect();
    Finished { ended, stuck: ranks.stuck() }
}

/// What happens at a rank.
#[derive(Clone, Copy, Debug)]
enum Happens {
    /// Its time, or that of a CPU stream, has come.
    Step,
    /// The first byte of a message is at its port.
    Head(Data),
    /// The port has come to it.
    Taken(Data),
    /// The last byte is there.
    Tail(Data),
    /// Its message has left.
    Sent(u32),
    /// Somebody asks for data.
    Asked { by: u32, token: u32, bytes: u64, port: u8 },
}

/// A message under way.
#[derive(Clone, Copy, Debug)]
struct Data {
    bytes: u64,
    port: u8,
    to: Destination,
}

/// What its last byte means where it goes.
#[derive(Clone, Copy, Debug)]
enum Destination {
    Memory,
    Message(Envelope),
    Read { token: u32 },
}

/// When a port is free.
#[derive(Clone, Copy, Default, Debug)]
struct Port {
    to_send: u64,
    to_receive: u64,
}

#[derive(Default)]
struct Network {
    parameters: LogGops,
    now: u64,
    serving: u32,
    /// Time, number and place of what happens: at one time in the order of numbers.
    events: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// By place: at which rank, and what.
    under_way: slab::Slab<(u32, Happens)>,
    pushed: u64,
    /// By rank and number.
    ports: BTreeMap<(u32, u8), Port>,
}

impl Default for LogGops {
    fn default() -> Self {
        LogGops::DEFAULT
    }
}

/// A cost of each byte but the first.
const fn further(bytes: u64, each: u64) -> u64 {
    bytes.saturating_sub(1).saturating_mul(each)
}

impl Network {
    fn push(&mut self, time: u64, rank: u32, happens: Happens) {
        let place = self.under_way.insert((rank, happens)) as u32;
        self.events.push(Reverse((time, self.pushed, place)));
        self.pushed += 1;
    }

    fn happens(&mut self, ranks: &mut Ranks, rank: u32, happens: Happens) {
        match happens {
            Happens::Step => ranks.step(self, rank),
            Happens::Sent(token) => ranks.sent(self, rank, token),
            Happens::Head(data) => self.head(ranks, rank, data),
            Happens::Taken(data) => self.taken(ranks, rank, data),
            Happens::Tail(data) => match data.to {
                Destination::Memory => {}
                Destination::Message(envelope) => ranks.arrived(self, rank, &envelope),
                Destination::Read { token } => ranks.read(self, rank, token),
            },
            Happens::Asked { by, token, bytes, port } => {
                let data = Data { bytes, port, to: Destination::Read { token } };
                self.send(rank, by, self.now, data);
            }
        }
    }

    /// Has a message leave a rank's port when that is free. Returns when its last byte does.
    fn send(&mut self, from: u32, to: u32, ready: u64, data: Data) -> u64 {
        let left = self.leaves(from, ready, data.bytes, data.port);
        self.push(left.saturating_add(self.parameters.latency), to, Happens::Head(data));
        left.saturating_add(further(data.bytes, self.parameters.gap_per_byte))
    }

    /// When the first byte leaves a port, which is then busy.
    fn leaves(&mut self, from: u32, ready: u64, bytes: u64, port: u8) -> u64 {
        let LogGops { gap, gap_per_byte, .. } = self.parameters;
        let port = self.ports.entry((from, port)).or_default();
        let left = ready.max(port.to_send);
        port.to_send = left.saturating_add(gap).saturating_add(further(bytes, gap_per_byte));
        left
    }

    /// The first byte is there: it waits for its port behind those that came before.
    fn head(&mut self, ranks: &mut Ranks, rank: u32, data: Data) {
        let LogGops { gap, gap_per_byte, .. } = self.parameters;
        let port = self.ports.entry((rank, data.port)).or_default();
        let begin = self.now.max(port.to_receive);
        let busy = gap.saturating_add(further(data.bytes, gap_per_byte));
        port.to_receive = begin.saturating_add(busy);
        match begin > self.now {
            true => self.push(begin, rank, Happens::Taken(data)),
            false => self.taken(ranks, rank, data),
        }
    }

    /// The port takes a message: the other bytes follow.
    fn taken(&mut self, ranks: &mut Ranks, rank: u32, data: Data) {
        let LogGops { gap_per_byte, overhead_per_byte, .. } = self.parameters;
        let tail =
            self.now.saturating_add(further(data.bytes, gap_per_byte.max(overhead_per_byte)));
        if tail == self.now {
            return self.happens(ranks, rank, Happens::Tail(data));
        }
        if let Destination::Message(envelope) = data.to {
            ranks.head(self, rank, &envelope);
        }
        self.push(tail, rank, Happens::Tail(data));
    }
}

impl Transport for Network {
    fn now(&self) -> u64 {
        self.now
    }

    fn offer(&mut self, _: u32, _: u64, _: u64, _: u16) {}

    fn post(&mut self, message: &Outgoing) -> u32 {
        let &Outgoing { from, to, ready, bytes, hints, what, .. } = message;
        let (port, latency) = (hints.engine.unwrap_or(0), self.parameters.latency);
        match what {
            What::Read { token } => {
                let left = self.leaves(from, ready, 1, port);
                let asked = Happens::Asked { by: from, token, bytes, port };
                self.push(left.saturating_add(latency), to, asked);
                1
            }
            What::Write { token } => {
                let data = Data { bytes, port, to: Destination::Memory };
                let left = self.send(from, to, ready, data);
                if let Some(token) = token {
                    // There and back.
                    let known = left.saturating_add(latency).saturating_add(latency);
                    self.push(known, from, Happens::Sent(token));
                }
                stripes(bytes)
            }
            What::Message { envelope, token } => {
                self.send(
                    from,
                    to,
                    ready,
                    Data { bytes, port, to: Destination::Message(envelope) },
                );
                if let Some(token) = token {
                    // An eager message is a copy: its sender goes on when the CPU does.
                    let free =
                        ready.saturating_add(further(bytes, self.parameters.overhead_per_byte));
                    self.push(free, from, Happens::Sent(token));
                }
                stripes(bytes)
            }
        }
    }

    fn wake(&mut self, time: u64) {
        self.push(time, self.serving, Happens::Step);
    }
}

/// A CPU is busy for each byte as it is for each stripe.
fn stripes(bytes: u64) -> u32 {
    u32::try_from(bytes.max(1)).unwrap_or(u32::MAX)
}
