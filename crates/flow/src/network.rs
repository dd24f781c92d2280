//! What carries messages: everything below the ranks. How messages leave is in `leaving`, what
//! happens when they arrive in `arriving`.

use crate::backlog::Backlog;
use crate::batching::Batching;
use crate::events::{Event, Events};
use crate::flows::{FlowNumber, Flows};
use crate::links::{LinkNumber, Links};
use crate::messages::{Ends, Meaning, Message, Messages, NIL};
use crate::queues::Queues;
use crate::rates::WaterFilling;
use crate::recorder::{Amount, Recorder};
use crate::routes::Routes;
use crate::ways::Ways;
use clearlane_ranks::{Outgoing, What};
use clearlane_sim::{AdapterQueueing, GroupSettings, Hosts, Setup, SetupError, Totals};
use clearlane_workload::{Rank, Transport};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Payload of the request of an RDMA READ besides the headers of every packet (RETH: IBA vol. 1,
/// 9.3).
const REQUEST_BYTES: u64 = 16;

/// A time that never comes.
pub(crate) const NEVER: u64 = u64::MAX;

/// What does not change in a run.
pub(crate) struct Settings {
    pub(crate) groups: Vec<GroupSettings>,
    /// Payload of a full packet and its bytes besides, of datagrams and of reliable connections.
    packets: [(u32, u32); 2],
    pub(crate) switch_delay: u64,
    pub(crate) cable_delay: u64,
    /// From a message of open-loop traffic being posted to its first byte leaving.
    send_overhead: u64,
    /// Whether all that a port sends waits in one line.
    pub(crate) single_fifo: bool,
}

impl Settings {
    /// Payload of a full packet and its bytes besides.
    pub(crate) fn packet(&self, reliable: bool) -> (u64, u64) {
        let (payload, header) = self.packets[usize::from(reliable)];
        (payload.into(), header.into())
    }
}

/// The fabric and all that is on it.
pub(crate) struct Network {
    pub(crate) now: u64,
    /// When something last happened.
    pub(crate) last_effect: u64,
    pub(crate) totals: Totals,
    pub(crate) settings: Settings,
    hosts: Hosts,
    /// By host, and once more: its first port.
    first: Vec<u32>,
    /// By rank of a program, in the order of their numbers, which begin after those of hosts.
    placement: Vec<u32>,
    pub(crate) links: Links,
    pub(crate) routes: Routes,
    /// Whether some routes do not arrive.
    may_lose: bool,
    /// Messages that have no way: they never arrive.
    pub(crate) lost: u64,
    pub(crate) messages: Messages,
    pub(crate) queues: Queues,
    pub(crate) backlog: Backlog,
    pub(crate) flows: Flows,
    pub(crate) filling: WaterFilling,
    pub(crate) events: Events,
    /// When each flow ends at its rate.
    pub(crate) ends: BinaryHeap<Reverse<(u64, FlowNumber)>>,
    pub(crate) batching: Batching,
    /// When rates are computed next, `NEVER` if no flow has begun or ended since.
    pub(crate) rates_due: u64,
    /// Ends a picosecond that all flows together would have, were they to go on for ever.
    pub(crate) ends_per_picosecond: f64,
    pub(crate) recorder: Recorder,
    /// Payload posted and delivered.
    pub(crate) payload: (u64, u64),
    /// Those that messages have taken lately.
    pub(crate) ways: Ways,
    /// The links of one flow.
    pub(crate) route: Vec<LinkNumber>,
}

impl Network {
    /// An idle network. Fails where forwarding is by a rule that the fabric does not fit.
    pub(crate) fn new(
        setup: &Setup<'_>,
        hosts: Hosts,
        batching: Batching,
    ) -> Result<Self, SetupError> {
        let parameters = &setup.parameters;
        let links = Links::new(setup.fabric, &hosts, parameters);
        let routes = Routes::new(setup.fabric, &hosts, setup.forwarding, &links)?;
        let mut first = vec![0];
        for host in 0..hosts.count() as u32 {
            first.push(first[host as usize] + hosts.ports(Rank(host)).len() as u32);
        }
        let recorder = Recorder::new(&setup.recording, setup.groups.len(), &links.channels);
        let ports = hosts.all_ports().len();
        let places = setup.jobs.iter().flat_map(|job| job.ranks.iter().map(|placed| placed.host));
        Ok(Network {
            now: 0,
            last_effect: 0,
            totals: Totals::default(),
            settings: Settings {
                groups: setup.groups.clone(),
                packets: [Transport::Ud, Transport::Rc].map(|of| parameters.packet(of)),
                switch_delay: parameters.switch_delay.0,
                cable_delay: parameters.cable_delay.0,
                send_overhead: parameters.send_overhead.0,
                single_fifo: parameters.queueing == AdapterQueueing::SingleFifo,
            },
            first,
            placement: places.collect(),
            may_lose: setup.dead_pairs || !routes.lead_everywhere(),
            lost: 0,
            messages: Messages::default(),
            queues: Queues::new(ports, parameters.injection_engines),
            backlog: Backlog::new(
                parameters.source_backlog,
                setup.fabric,
                &hosts,
                setup.forwarding,
                &setup.groups,
            ),
            flows: Flows::new(&links.capacities),
            filling: WaterFilling::default(),
            events: Events::default(),
            ends: BinaryHeap::new(),
            batching,
            rates_due: NEVER,
            ends_per_picosecond: 0.0,
            recorder,
            payload: (0, 0),
            ways: Ways::new(ports),
            route: Vec::new(),
            hosts,
            links,
            routes,
        })
    }

    /// The host of a rank, by its number in the run.
    fn host(&self, rank: u32) -> u32 {
        match rank.checked_sub(self.hosts.count() as u32) {
            None => rank,
            Some(other) => self.placement[other as usize],
        }
    }

    /// The ports of two hosts by which one sends to the other.
    fn ends(&self, source: u32, destination: u32, engine: Option<u8>, path: u8) -> Ends {
        let number = self.hosts.number_between(Rank(source), Rank(destination), engine) as u32;
        let (from, to) = (self.first[source as usize], self.first[destination as usize]);
        Ends { from: from + number, to: to + number, path: self.routes.path(path) }
    }

    /// A message as it is posted.
    pub(crate) fn message(
        &self,
        (source, destination, ends): (u32, u32, Ends),
        (born, bytes, group): (u64, u64, u16),
        meaning: Meaning,
    ) -> Message {
        let reliable = self.settings.groups[usize::from(group)].transport == Transport::Rc;
        let (payload, header) = self.settings.packet(reliable);
        let packets = bytes.div_ceil(payload).max(1);
        Message {
            ends,
            source,
            destination,
            born,
            bytes,
            wire: bytes + packets * header,
            packets,
            group,
            reliable,
            lane: 0,
            gap: 0,
            meaning,
            waiter: None,
            begun: 0,
            latency: 0,
            next: NIL,
            pending: 1,
        }
    }

    /// Takes a message of open-loop traffic from a host by itself.
    pub(crate) fn offer(&mut self, from: u32, to: u32, born: u64, bytes: u64, group: u16) {
        let ends = self.ends(from, to, None, 0);
        let lane = self.backlog.lane(group, ends.from, ends.to);
        if self.backlog.is_full(ends.from, lane) {
            return;
        }
        let message = self.message((from, to, ends), (born, bytes, group), Meaning::Data);
        self.admit(Message { lane, ..message }, born + self.settings.send_overhead);
    }

    /// Takes a message from the rank at a place.
    pub(crate) fn post(&mut self, at: u32, message: &Outgoing) {
        let &Outgoing { from, to, born, ready, bytes, group, hints, what, .. } = message;
        let (source, destination) = (self.host(from), self.host(to));
        let ends = self.ends(source, destination, hints.engine, hints.path.unwrap_or(0));
        let (meaning, token, bytes) = match what {
            What::Write { token } => (Meaning::Data, token, bytes),
            What::Message { envelope, token } => (Meaning::Message(envelope), token, bytes),
            What::Read { token } => {
                (Meaning::Request { reader: from, token, bytes }, None, REQUEST_BYTES)
            }
        };
        let message = self.message((source, destination, ends), (born, bytes, group), meaning);
        let waiter = token.map(|token| (at, token));
        let pending = 1 + u8::from(waiter.is_some());
        self.admit(Message { gap: hints.gap.0, waiter, pending, ..message }, ready);
    }

    /// A message is posted that may leave from `ready` on.
    pub(crate) fn admit(&mut self, message: Message, ready: u64) {
        self.totals.messages_posted += 1;
        let is_control = message.meaning.is_control();
        if !is_control {
            self.payload.0 += message.bytes;
            self.recorder.posted(message.born, message.group, message.wire);
        }
        if self.may_lose {
            let at = self.way(message.ends);
            if !self.ways.get(at).arrives {
                self.lost += 1;
                return;
            }
        }
        if is_control {
            return self.pass(message, ready);
        }
        self.backlog.joins(message.ends.from, message.lane);
        let number = self.messages.insert(message);
        match ready > self.now {
            true => self.events.push(ready, Event::Ready(number)),
            false => self.enqueue(number),
        }
    }

    /// The place of a way among those taken lately.
    pub(crate) fn way(&mut self, ends: Ends) -> usize {
        let recorder = &mut self.recorder;
        self.ways.find((&self.routes, &self.links), ends, |old| recorder.passed(old))
    }

    /// Bytes take a way, in a span of time: they are noted down with others of the same slice.
    pub(crate) fn note_on_way(&mut self, at: usize, span: (u64, u64), amount: Amount) {
        self.has_left(amount.packets, self.ways.get(at).switches());
        let (way, recorder) = (self.ways.get_mut(at), &mut self.recorder);
        let slice = recorder.only_slice(span);
        if way.passed.packets > 0 && slice != recorder.only_slice((way.when, way.when + 1)) {
            recorder.passed(way);
            way.passed = Amount::default();
        }
        match slice {
            Some(_) => (way.passed, way.when) = (way.passed.and(amount), span.0),
            None => recorder.carried(way.channels.iter().copied(), span, amount),
        }
    }

    /// From the last byte leaving to its being there, past so many switches: all is cut through.
    pub(crate) fn latency(&self, switches: u64) -> u64 {
        let Settings { switch_delay, cable_delay, .. } = self.settings;
        (switches + 1) * cable_delay + switches * switch_delay
    }

    /// A message of one packet that carries no payload passes the flows: it takes as long as on an
    /// idle fabric.
    fn pass(&mut self, message: Message, ready: u64) {
        let at = self.way(message.ends);
        let way = self.ways.get(at);
        let (rate, latency) =
            (self.links.channels[way.channels[0] as usize].rate, self.latency(way.switches()));
        let left = ready + rate.serialisation(message.wire);
        let amount = Amount { wire: message.wire, payload: 0, packets: message.packets };
        self.note_on_way(at, (ready, left), amount);
        let number = self.messages.insert(Message { begun: ready, latency, ..message });
        self.events.push(left + latency, Event::Arrived(number));
    }

    /// So many packets have gone past so many switches.
    fn has_left(&mut self, packets: u64, switches: u64) {
        self.totals.packets_injected += packets;
        self.totals.packet_hops += packets * switches;
    }

    /// When something is to happen next.
    pub(crate) fn next_time(&self) -> u64 {
        let end = self.ends.peek().map_or(NEVER, |Reverse((time, _))| *time);
        self.events.next().unwrap_or(NEVER).min(end).min(self.rates_due)
    }
}
