//! A flow's sender without its sockets: which packet goes next, on which connection, and when. What
//! decides are the programs and reactors of the simulator; time is an argument.

use crate::order::{Order, Pace};
use crate::packet::HEADER_BYTES;
use clearlane_congestion::{Feedback, Pair, Path, Reactor, Sent, Stripes};
use clearlane_ib::random::Stream;
use clearlane_ib::{Bytes, LinkRate, Picoseconds};
use clearlane_workload::{
    Arrivals, Class, Demand, Destinations, Event, FlowGroup, Offered, Op, OpenLoop, Rank,
    RankProgram, Transport,
};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Messages that wait in a sender; beyond, posting waits too.
const WAITING_MAX: usize = 1 << 16;

/// Packets of a connection that are not acknowledged, where they are acknowledged.
const UNDER_WAY_MAX: usize = 1 << 16;
/// How late a packet may be and still count as sent when it was due: a thread sleeps too long, and
/// pacing would lose what it slept.
const LATE_PS: u64 = 2_000_000_000;

/// A reactor, which several flows may share (`Scope::ServiceLevel`).
pub type SharedReactor = Arc<Mutex<Box<dyn Reactor>>>;

/// What decides when and where packets go, besides the posting of messages.
#[derive(Clone, Default)]
pub struct Reactors {
    /// When, with the pair that each connection is there.
    pub when: Vec<(SharedReactor, Pair)>,
    /// Which path.
    pub which: Option<SharedReactor>,
}

/// What a sender does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// It sends a packet.
    Packet {
        /// Which of its connections, from 0.
        connection: usize,
        /// Bytes, with the header.
        bytes: u32,
    },
    /// Nothing before this time, unless a connection can be written to or something comes back.
    Wait(Picoseconds),
    /// Nothing any more.
    Ended,
}

/// A flow's sender.
pub struct Sender {
    packet_bytes: u32,
    link: LinkRate,
    stop: Picoseconds,
    source: Source,
    /// Draws of paths.
    draws: Stream,
    paths: Vec<Outstanding>,
    turn: usize,
    reactors: Reactors,
    stripes: Stripes,
}

/// Where messages come from.
enum Source {
    /// The next when the one before has left.
    FullSpeed { order: Box<Order>, stream: Stream },
    /// Posted at times of their own.
    OpenLoop { program: Box<OpenLoop>, next: Option<Picoseconds> },
}

/// A part of a message that waits on a connection.
#[derive(Clone, Copy)]
struct Waiting {
    bytes: Bytes,
    left: u64,
    posted_at: Picoseconds,
}

/// A packet that is not acknowledged.
struct UnderWay {
    sent_at: Picoseconds,
    bytes: u32,
    /// The stripe that ends with it.
    ends: Option<(Bytes, Picoseconds)>,
}

/// A connection.
#[derive(Default)]
struct Outstanding {
    waiting: VecDeque<Waiting>,
    /// Of flows whose packets are acknowledged.
    under_way: VecDeque<UnderWay>,
    acknowledged: u64,
}

/// Everything goes to one receiver.
#[derive(Debug)]
struct ToOne;

const RECEIVER: Rank = Rank(1);

impl Destinations for ToOne {
    fn draw(&self, _: Rank, _: &mut Stream) -> Option<Rank> {
        Some(RECEIVER)
    }

    fn weight(&self, _: Rank) -> f64 {
        1.0
    }
}

/// Time of the run, whose start is 0, from ns.
pub fn picoseconds(ns: u64) -> Picoseconds {
    Picoseconds(ns.saturating_mul(1000))
}

impl Sender {
    /// The sender of an order that has been checked.
    pub fn new(order: &Order, link: LinkRate, reactors: Reactors) -> Self {
        let entity = u64::from(order.connection);
        let stream = |noun| Stream::new(order.seed, noun, entity);
        let source = match order.pace {
            Pace::FullSpeed => Source::FullSpeed {
                order: Box::new(order.clone()),
                stream: stream("traffic sizes"),
            },
            _ => Source::OpenLoop {
                program: Box::new(open_loop(order, link)),
                next: Some(picoseconds(order.start_ns)),
            },
        };
        Sender {
            packet_bytes: order.packet_bytes,
            link,
            stop: picoseconds(order.stop_ns),
            source,
            draws: stream("traffic paths"),
            paths: (0..order.paths).map(|_| Outstanding::default()).collect(),
            turn: 0,
            reactors,
            stripes: Stripes::default(),
        }
    }

    /// What it does now; `can_write` says which connections take a packet.
    pub fn next(&mut self, now: Picoseconds, can_write: impl Fn(usize) -> bool) -> Next {
        if now >= self.stop {
            return Next::Ended;
        }
        self.turn_timers(now);
        self.post(now);
        let count = self.paths.len();
        let mut earliest = self.stop;
        for at in (0..count).map(|step| (self.turn + step) % count) {
            let Some(waiting) = self.paths[at].waiting.front() else { continue };
            // A receiver that acknowledges nothing is sent no more.
            if !can_write(at) || self.paths[at].under_way.len() >= UNDER_WAY_MAX {
                continue;
            }
            let free_at = self.free_at(at, now);
            if free_at > now {
                earliest = earliest.min(free_at);
                continue;
            }
            self.turn = (at + 1) % count;
            let bytes = waiting.left.min(self.packet_bytes.into()) as u32;
            return Next::Packet { connection: at, bytes: bytes.max(HEADER_BYTES as u32) };
        }
        let idle = self.paths.iter().all(|path| path.waiting.is_empty());
        let posted = match &self.source {
            Source::FullSpeed { order, .. } => Some(picoseconds(order.start_ns)),
            Source::OpenLoop { next: None, .. } if idle => return Next::Ended,
            Source::OpenLoop { next, .. } => *next,
        };
        earliest = posted.filter(|next| *next > now).map_or(earliest, |next| earliest.min(next));
        let timer = |reactor: &SharedReactor| locked(reactor).next_timer();
        let timers = self.all_reactors().filter_map(timer).min();
        Next::Wait(timers.map_or(earliest, |timer| timer.clamp(now, earliest)))
    }

    /// A packet has begun to leave.
    pub fn sent(&mut self, connection: usize, bytes: u32, now: Picoseconds) {
        let packet_bytes = u64::from(self.packet_bytes);
        let Some(path) = self.paths.get_mut(connection) else { return };
        let mut ends = None;
        if let Some(front) = path.waiting.front_mut() {
            front.left -= front.left.min(packet_bytes);
            if front.left == 0 {
                ends = Some((front.bytes, front.posted_at));
                path.waiting.pop_front();
            }
        }
        if self.has_reactors() {
            let path = &mut self.paths[connection];
            path.under_way.push_back(UnderWay { sent_at: now, bytes, ends });
        }
        let busy = Picoseconds(self.link.serialisation(bytes.into()));
        if let Some((reactor, pair)) = self.reactors.when.get(connection) {
            let mut reactor = locked(reactor);
            if !reactor.is_unlimited(now, *pair) {
                let due = reactor.next_injection(*pair);
                let late = now.0.saturating_sub(due.0);
                let counted = if late <= LATE_PS { due } else { now };
                reactor.on_sent(counted, &Sent { pair: *pair, bytes, busy });
            }
        }
        if let Some(reactor) = &self.reactors.which {
            let pair = Pair(connection as u32);
            locked(reactor).on_sent(now, &Sent { pair, bytes, busy });
        }
    }

    /// The receiver has so many packets of a connection. Fails if they were not sent.
    pub fn acknowledged(
        &mut self,
        connection: usize,
        packets: u64,
        now: Picoseconds,
    ) -> Result<(), &'static str> {
        let wrong = "the receiver acknowledged packets that were not sent";
        let path = self.paths.get_mut(connection).ok_or(wrong)?;
        let fresh = packets.checked_sub(path.acknowledged).ok_or(wrong)?;
        let fresh = usize::try_from(fresh).map_err(|_| wrong)?;
        if fresh == 0 || fresh > path.under_way.len() {
            return if fresh == 0 { Ok(()) } else { Err(wrong) };
        }
        path.acknowledged = packets;
        let gone: Vec<UnderWay> = path.under_way.drain(..fresh).collect();
        let acknowledged = gone.iter().map(|packet| u64::from(packet.bytes)).sum();
        if let Some(last) = gone.last() {
            let latency = Picoseconds(now.0.saturating_sub(last.sent_at.0));
            let bytes = last.bytes;
            self.hear(connection, now, Feedback::Ack { latency, bytes, acknowledged });
        }
        for (bytes, posted_at) in gone.iter().filter_map(|packet| packet.ends) {
            self.hear(connection, now, Feedback::Completion { bytes, posted_at });
        }
        Ok(())
    }

    fn hear(&mut self, connection: usize, now: Picoseconds, feedback: Feedback) {
        if let Some((reactor, pair)) = self.reactors.when.get(connection) {
            locked(reactor).on_feedback(now, *pair, feedback);
        }
        if let Some(reactor) = &self.reactors.which {
            locked(reactor).on_feedback(now, Pair(connection as u32), feedback);
        }
    }

    /// Whether there is a mechanism, which may hear what comes back.
    pub fn has_reactors(&self) -> bool {
        !self.reactors.when.is_empty() || self.reactors.which.is_some()
    }

    fn all_reactors(&self) -> impl Iterator<Item = &SharedReactor> {
        self.reactors.when.iter().map(|(reactor, _)| reactor).chain(&self.reactors.which)
    }

    fn turn_timers(&self, now: Picoseconds) {
        for reactor in self.all_reactors() {
            let mut reactor = locked(reactor);
            while reactor.next_timer().is_some_and(|timer| timer <= now) {
                reactor.on_timer(now);
            }
        }
    }

    /// When the next packet of a connection may leave.
    fn free_at(&self, connection: usize, now: Picoseconds) -> Picoseconds {
        let Some((reactor, pair)) = self.reactors.when.get(connection) else { return now };
        let reactor = locked(reactor);
        match reactor.is_unlimited(now, *pair) {
            true => now,
            false => reactor.next_injection(*pair),
        }
    }

    /// Takes the messages that are posted by now.
    fn post(&mut self, now: Picoseconds) {
        loop {
            let (posted_at, bytes) = match &mut self.source {
                Source::FullSpeed { order, stream } => {
                    // One message at each connection keeps it busy; a mechanism may want fewer.
                    let early = now < picoseconds(order.start_ns);
                    let waiting = self.paths.iter().map(|path| path.waiting.len());
                    let busy = waiting.clone().all(|many| many > 0);
                    if early || busy || waiting.sum::<usize>() >= 2 * self.paths.len() {
                        return;
                    }
                    (now, order.sizes().draw(stream))
                }
                Source::OpenLoop { program, next } => {
                    let waiting = self.paths.iter().map(|path| path.waiting.len()).sum::<usize>();
                    let Some(due) = next.filter(|due| *due <= now) else { return };
                    if waiting >= WAITING_MAX {
                        return;
                    }
                    match program.step(due, Event::Elapsed) {
                        Op::Offer { bytes, next: later, .. } => {
                            *next = later;
                            (due, bytes)
                        }
                        Op::WaitUntil(time) if time > due => {
                            *next = Some(time);
                            continue;
                        }
                        _ => {
                            *next = None;
                            return;
                        }
                    }
                }
            };
            if !self.divide(now, posted_at, Bytes(bytes)) {
                return;
            }
        }
    }

    /// Puts a message on its paths. Returns whether another may follow.
    fn divide(&mut self, now: Picoseconds, posted_at: Picoseconds, bytes: Bytes) -> bool {
        self.stripes.clear();
        match &self.reactors.which {
            Some(reactor) => locked(reactor).plan(now, bytes, self.draws.bits(), &mut self.stripes),
            None => self.stripes.whole(Path(0), bytes),
        }
        for stripe in self.stripes.parts() {
            let path = usize::from(stripe.path.0);
            debug_assert!(path < self.paths.len(), "a path that the flow has not");
            let path = path.min(self.paths.len() - 1);
            let left = stripe.bytes.0.max(1);
            self.paths[path].waiting.push_back(Waiting { bytes: stripe.bytes, left, posted_at });
        }
        // At full speed a mechanism that leaves connections idle wants them so.
        match &self.source {
            Source::FullSpeed { .. } => false,
            Source::OpenLoop { .. } => true,
        }
    }
}

fn locked(reactor: &SharedReactor) -> std::sync::MutexGuard<'_, Box<dyn Reactor>> {
    reactor.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The simulator's program of open-loop traffic, with one destination.
fn open_loop(order: &Order, link: LinkRate) -> OpenLoop {
    let arrivals = match order.pace {
        Pace::FullSpeed | Pace::Periodic => Arrivals::Periodic,
        Pace::Poisson => Arrivals::Poisson,
        Pace::Ramp(ns) => Arrivals::Ramp(picoseconds(ns)),
    };
    let offered = Offered {
        destinations: Arc::new(ToOne),
        sizes: order.sizes(),
        load: order.load,
        arrivals,
        start: picoseconds(order.start_ns),
        stop: picoseconds(order.stop_ns),
    };
    let group = FlowGroup {
        name: order.group.clone(),
        class: Class::Background,
        senders: vec![Rank(0)],
        demand: Demand::OpenLoop(Arc::new(offered)),
        transport: Transport::Rc,
        sl: None,
    };
    // The header is part of a packet's bytes here.
    let packet = (order.packet_bytes, 0);
    let seed = order.seed ^ u64::from(order.connection) << 32;
    OpenLoop::new(Rank(0), &[group], link, |_| packet, seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Sizes;
    use crate::order::tests::order;

    fn sender(order: &Order, reactors: Reactors) -> Sender {
        order.check().unwrap();
        Sender::new(order, order.link().unwrap(), reactors)
    }

    /// Lets it send as fast as it says; the packets and when they went.
    fn run(sender: &mut Sender, writable: impl Fn(usize) -> bool) -> Vec<(u64, usize, u32)> {
        let (mut now, mut sent) = (Picoseconds(0), Vec::new());
        for _ in 0..1_000_000 {
            match sender.next(now, &writable) {
                Next::Packet { connection, bytes } => {
                    sent.push((now.0, connection, bytes));
                    sender.sent(connection, bytes, now);
                    now.0 += 1;
                }
                Next::Wait(until) => now = Picoseconds(until.0.max(now.0 + 1)),
                Next::Ended => return sent,
            }
        }
        panic!("it does not end");
    }

    #[test]
    fn a_paced_flow_offers_its_load() {
        // 0.5 of 2 Gb/s for 10 ms are 1.25 MB, in messages of 5000 B: three packets each.
        let order = Order {
            pace: Pace::Periodic,
            load: 0.5,
            sizes: Sizes::Fixed(5000),
            stop_ns: 10_000_000,
            ..order()
        };
        let sent = run(&mut sender(&order, Reactors::default()), |_| true);
        let bytes: u64 = sent.iter().map(|(_, _, bytes)| u64::from(*bytes)).sum();
        assert!(bytes.abs_diff(1_250_000) <= 5000, "{bytes}");
        let sizes: Vec<u32> = sent.iter().take(3).map(|(_, _, bytes)| *bytes).collect();
        assert_eq!(sizes, [2048, 2048, 904]);
    }

    #[test]
    fn a_flow_starts_and_stops_when_it_is_to() {
        let order = Order {
            pace: Pace::Poisson,
            load: 0.9,
            start_ns: 2_000_000,
            stop_ns: 3_000_000,
            ..order()
        };
        let sent = run(&mut sender(&order, Reactors::default()), |_| true);
        let times: Vec<u64> = sent.iter().map(|(time, _, _)| time / 1000).collect();
        assert!(times.iter().all(|ns| (2_000_000..3_000_000).contains(ns)), "{times:?}");
        assert!(!times.is_empty());
    }

    #[test]
    fn full_speed_begins_when_it_is_to() {
        let order = Order { start_ns: 2_000_000, stop_ns: 2_000_100, ..order() };
        let sent = run(&mut sender(&order, Reactors::default()), |_| true);
        assert_eq!(sent.first().map(|(time, ..)| *time), Some(2_000_000_000));
    }

    #[test]
    fn small_messages_are_packets_of_a_header_at_least() {
        let order = Order { sizes: Sizes::Fixed(3), ..order() };
        let mut sender = sender(&order, Reactors::default());
        let next = sender.next(Picoseconds(0), |_| true);
        assert_eq!(next, Next::Packet { connection: 0, bytes: 24 });
    }

    /// Holds packets 1 µs apart, and sends every second message over path 1.
    struct Held {
        next: Picoseconds,
        messages: u8,
        heard: Arc<Mutex<Vec<Feedback>>>,
    }

    impl Reactor for Held {
        fn plan(&mut self, _: Picoseconds, bytes: Bytes, _: u64, out: &mut Stripes) {
            out.whole(Path(self.messages % 2), bytes);
            self.messages += 1;
        }

        fn on_sent(&mut self, now: Picoseconds, _: &Sent) {
            self.next = Picoseconds(now.0 + 1_000_000);
        }

        fn on_feedback(&mut self, _: Picoseconds, _: Pair, feedback: Feedback) {
            self.heard.lock().unwrap().push(feedback);
        }

        fn next_injection(&self, _: Pair) -> Picoseconds {
            self.next
        }

        fn save(&self) -> clearlane_ib::Saved {
            clearlane_ib::Saved::new("held", 1, &())
        }

        fn load(&mut self, _: &clearlane_ib::Saved) -> Result<(), clearlane_ib::StateError> {
            Ok(())
        }
    }

    fn reactor(heard: &Arc<Mutex<Vec<Feedback>>>) -> SharedReactor {
        let heard = Arc::clone(heard);
        Arc::new(Mutex::new(Box::new(Held { next: Picoseconds(0), messages: 0, heard })))
    }

    #[test]
    fn reactors_say_when_and_which_way() {
        let heard = Arc::default();
        let order = Order { paths: 2, sizes: Sizes::Fixed(4096), stop_ns: 100_000, ..order() };
        let when = (0..2).map(|_| (reactor(&heard), Pair(0))).collect();
        let reactors = Reactors { when, which: Some(reactor(&heard)) };
        let sent = run(&mut sender(&order, reactors), |_| true);
        for path in [0, 1] {
            let own: Vec<u64> =
                sent.iter().filter(|(_, at, _)| *at == path).map(|(time, _, _)| *time).collect();
            assert!(own.len() > 40, "{own:?}");
            assert!(own.windows(2).all(|pair| pair[1] - pair[0] >= 1_000_000), "{own:?}");
        }
    }

    /// A thread that looks every 0.6 µs, where gaps are 1 µs, still sends at the reactor's rate.
    #[test]
    fn what_is_sent_a_little_late_counts_as_sent_when_due() {
        let heard = Arc::default();
        let reactors = Reactors { when: vec![(reactor(&heard), Pair(0))], which: None };
        let order = Order { stop_ns: 1_000_000, ..order() };
        let (mut sender, mut sent) = (sender(&order, reactors), 0);
        for tick in 0..1667u64 {
            let now = Picoseconds(tick * 600_000);
            while let Next::Packet { connection, bytes } = sender.next(now, |_| true) {
                sender.sent(connection, bytes, now);
                sent += 1;
            }
        }
        // 1 µs apart for 1 ms.
        assert!((995..=1001).contains(&sent), "{sent}");
    }

    #[test]
    fn what_waits_is_bounded_whatever_a_mechanism_or_receiver_does() {
        // At full speed, a mechanism that holds packets apart, and nothing comes back.
        let heard = Arc::default();
        let order = Order { paths: 2, stop_ns: 1 << 40, ..order() };
        let reactors = Reactors { when: vec![(reactor(&heard), Pair(0))], which: None };
        let mut sender = sender(&order, reactors);
        let (mut now, mut sent) = (Picoseconds(0), 0);
        while sent <= UNDER_WAY_MAX {
            let Next::Packet { connection, bytes } = sender.next(now, |_| true) else { break };
            sender.sent(connection, bytes, now);
            sent += 1;
            now.0 += 1_000_000;
        }
        // All of them on path 0: no mechanism takes the second.
        assert_eq!(sent, UNDER_WAY_MAX);
        assert!(sender.paths.iter().map(|path| path.waiting.len()).sum::<usize>() <= 4);
    }

    #[test]
    fn acknowledgements_tell_latency_and_what_is_whole() {
        let heard = Arc::default();
        let reactors = Reactors { when: vec![(reactor(&heard), Pair(0))], which: None };
        let order = Order { sizes: Sizes::Fixed(4096), ..order() };
        let mut sender = sender(&order, reactors);
        for time in [0, 1_000_000] {
            let now = Picoseconds(time);
            let Next::Packet { connection, bytes } = sender.next(now, |_| true) else { panic!() };
            sender.sent(connection, bytes, now);
        }
        assert!(sender.acknowledged(0, 3, Picoseconds(5)).is_err(), "two were sent");
        assert!(sender.acknowledged(1, 0, Picoseconds(5)).is_err(), "there is one connection");
        sender.acknowledged(0, 2, Picoseconds(3_000_000)).unwrap();
        let latency = Picoseconds(2_000_000);
        let posted_at = Picoseconds(0);
        assert_eq!(
            *heard.lock().unwrap(),
            [
                Feedback::Ack { latency, bytes: 2048, acknowledged: 4096 },
                Feedback::Completion { bytes: Bytes(4096), posted_at },
            ]
        );
        assert!(sender.acknowledged(0, 1, Picoseconds(5)).is_err(), "it does not take back");
    }

    #[test]
    fn a_connection_that_takes_nothing_holds_up_no_other() {
        let heard = Arc::default();
        let order =
            Order { paths: 2, pace: Pace::Periodic, load: 1.0, stop_ns: 5_000_000, ..order() };
        let reactors = Reactors { when: Vec::new(), which: Some(reactor(&heard)) };
        let sent = run(&mut sender(&order, reactors), |path| path == 1);
        assert!(sent.len() > 100 && sent.iter().all(|(_, path, _)| *path == 1));
    }
}
