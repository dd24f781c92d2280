//! A partition: takes events out of its queue and hands them to the rooms.
//!
//! Each instant of a home has two phases: everything that happens is applied, then every touched
//! output arbitrates. What a grant at t does is seen strictly later than t (a link takes time, a
//! cable at least 1 ps), so neither the order of events of one instant nor that of arbitrations
//! can be seen in any result; nor can the order of homes within a window no longer than the
//! lookahead. Two short cuts change nothing of that: a packet that comes alone at its instant and
//! finds its output free passes at once, because no other could want it; and a datagram that finds
//! its adapter idle leaves as it is posted, because steps come after all else an adapter hears.

use crate::adapter::Adapters;
use crate::cabling::Places;
use crate::model::{Forwarder, Model, Reactors};
use crate::network::{Home, HomeIndex, NetworkOf};
use crate::packet::PacketIndex;
use crate::port::{NEVER, PortIndex};
use crate::port_set::PortSet;
use crate::queue::{AHEAD, Address, DUE, Entry, Instant, Kind};
use crate::ranks::Ranks;
use crate::switch::{Exit, Switches};
use smallvec::SmallVec;

/// Records in bytes up to which fetching ahead gains nothing: about what the caches behind the
/// first hold of them.
const FITS_IN_CACHE: usize = 3 << 19;

/// How many events ahead a port and a packet are asked for, how many ahead what they lead to, and
/// how many what that leads to.
const FETCH_FIRST: usize = AHEAD - 1;
const FETCH_THEN: usize = 5;
const FETCH_LAST: usize = 2;

/// See the module. No two of them share a cache line, nor one that is fetched with it.
#[repr(align(128))]
pub(crate) struct Partition<M: Model, const V: usize> {
    pub(crate) net: NetworkOf<M, V>,
    pub(crate) switches: Switches<M>,
    pub(crate) adapters: Adapters<M, V>,
    pub(crate) ranks: Ranks,
    pub(crate) places: Places,
    /// Bytes of all port records.
    port_bytes: usize,
    /// Events served, but for those that came up in the window they were served in. No result: it
    /// differs with the division of a run.
    pub(crate) events: u64,
}

impl<M: Model, const V: usize> Partition<M, V> {
    /// A partition in which every program is about to begin.
    pub(crate) fn new(
        mut net: NetworkOf<M, V>,
        switches: Switches<M>,
        adapters: Adapters<M, V>,
        ranks: Ranks,
        places: Places,
    ) -> Self {
        let port_bytes = net.ports.len() * size_of::<crate::port::Port<M::Ports, V>>();
        let mut seats: Vec<_> = ranks.seats().collect();
        seats.sort_by_key(|(_, seat)| seat.slot);
        for home in 0..net.homes.len() as u32 {
            let record = net.homes[HomeIndex(home)];
            let next = net.homes.iter().nth(home as usize + 1);
            let end = next.map_or(net.ports.len() as u32, |next| next.first.0);
            net.enter(home, 0);
            let ports = record.first.0 + u32::from(record.switch_ports)..end;
            let slots = record.first_slot..record.first_slot + ports.len() as u32;
            for (port, slot) in ports.clone().zip(slots.clone()) {
                let (host, first) = adapters.host(slot);
                if slot == first {
                    net.schedule(0, PortIndex(port), Kind::Step, 0, host);
                }
            }
            let first = seats.partition_point(|(_, seat)| seat.slot < slots.start);
            for (at, seat) in &seats[first..] {
                if !slots.contains(&seat.slot) {
                    break;
                }
                let port = PortIndex(ports.start + seat.slot - slots.start);
                net.schedule(0, port, Kind::Step, seat.number, *at);
            }
        }
        Partition { net, switches, adapters, ranks, places, port_bytes, events: 0 }
    }

    /// Packets that have come to adapters and wait to be stored, and where.
    pub(crate) fn unstored(&self) -> impl Iterator<Item = (PortIndex, PacketIndex)> + '_ {
        let port = |slot: u32| {
            let homes = self.net.homes.iter().as_slice();
            let home = homes[homes.partition_point(|home| home.first_slot <= slot) - 1];
            home.first.plus(u32::from(home.switch_ports) + slot - home.first_slot)
        };
        self.adapters.unstored().map(move |(slot, id)| (port(slot), id))
    }

    /// Where a port is.
    pub(crate) fn address(&self, port: PortIndex) -> Address {
        let homes = self.net.homes.iter().as_slice();
        let home = homes.partition_point(|home| home.first <= port) - 1;
        Address::new(home as u32, port.0 - homes[home].first.0)
    }

    /// A time no later than the next event; nothing if there is none.
    pub(crate) fn next_time(&self) -> Option<u64> {
        self.net.queue.next_time()
    }

    /// Serves all events from `time` on and before `end`. There may be none before `time`.
    pub(crate) fn serve(&mut self, time: u64, end: u64) {
        let queue = &mut self.net.queue;
        self.net.floor = time;
        if queue.next_time().is_some_and(|next| next < end) {
            self.events += u64::from(queue.open(time, end));
            let queues = self.adapters.queue_bytes();
            match (self.port_bytes > FITS_IN_CACHE, self.port_bytes + queues > FITS_IN_CACHE) {
                (true, _) => self.serve_window::<true, true>(),
                (false, true) => self.serve_window::<false, true>(),
                (false, false) => self.serve_window::<false, false>(),
            }
        }
        self.net.floor = end;
    }

    /// Serves the window that is open, and fetches ahead what ports and what send queues need.
    fn serve_window<const PORTS: bool, const QUEUES: bool>(&mut self) {
        if QUEUES {
            (0..FETCH_FIRST).for_each(|places| self.fetch_first::<PORTS>(places));
            (0..FETCH_THEN).for_each(|places| self.fetch_then::<PORTS>(places));
        }
        let mut instant = self.net.queue.peek();
        while instant != Instant::END {
            let (number, now) = self.net.queue.turn_to(instant);
            let home = self.net.enter(number, now);
            let mut alone = true;
            loop {
                if QUEUES {
                    self.fetch_first::<PORTS>(FETCH_FIRST);
                    self.fetch_then::<PORTS>(FETCH_THEN);
                    self.fetch_last::<PORTS>(FETCH_LAST);
                }
                let entry = self.net.queue.pop();
                let ends = self.net.queue.peek() != instant;
                self.apply(home, entry, alone && ends);
                if ends {
                    break;
                }
                alone = false;
            }
            self.arbitrate_all(home);
            while self.switches.chooses() && !self.switches.undecided.is_empty() {
                // Heads that grants of this instant have brought up.
                self.arbitrate_all(home);
            }
            instant = self.net.queue.peek();
        }
    }

    /// Phase 1 of one event, which may be `alone` at its instant.
    #[inline(always)]
    fn apply(&mut self, home: Home, entry: Entry, alone: bool) {
        let net = &mut self.net;
        let port = net.port(entry.address().place());
        match entry.kind() {
            Kind::Arrive => {
                let id = PacketIndex(entry.packet());
                if let Some(exit) = self.switches.arrive(net, port, entry.lane(), id, alone) {
                    self.exit(home, &exit);
                }
            }
            Kind::Wake => {
                let record = &mut net.ports[port];
                // A wake-up that an earlier one has replaced is stale.
                if record.wake_at == net.now {
                    record.wake_at = NEVER;
                    net.touch(port);
                } else if M::Reactors::ON && entry.lane() == DUE {
                    net.touch(port);
                }
            }
            Kind::Deliver => {
                let slot = slot_at(home, entry.address().place());
                self.adapters.deliver(&mut self.net, slot, port, PacketIndex(entry.packet()));
                self.adapters.heed(&mut self.net, port);
                self.tell();
            }
            Kind::Step => {
                let slot = slot_at(home, entry.address().place());
                let (adapters, net) = (&mut self.adapters, &mut self.net);
                self.ranks.step(adapters, net, (slot, port), entry.packet());
                self.adapters.heed(&mut self.net, port);
                self.tell();
            }
        }
    }

    /// Programs hear of what adapters have to tell.
    #[inline(always)]
    fn tell(&mut self) {
        // What a rank does about it may give its adapter something to tell again.
        while !self.adapters.told.is_empty() {
            self.tell_all();
        }
    }

    #[inline(never)]
    fn tell_all(&mut self) {
        let home = self.net.homes[HomeIndex(self.net.home())];
        let mut all = std::mem::take(&mut self.adapters.told);
        for (slot, told) in all.drain(..) {
            let (host, slot) = self.adapters.host(slot);
            let port = self.net.port(u32::from(home.switch_ports) + slot - home.first_slot);
            self.ranks.tell(&mut self.adapters, &mut self.net, (host, slot, port), &told);
            self.adapters.heed(&mut self.net, port);
        }
        // The room that was taken for them is used again.
        all.append(&mut self.adapters.told);
        self.adapters.told = all;
    }

    /// Phase 2: where switches may choose, they do so from the state phase 1 left, then every
    /// touched port arbitrates.
    #[inline(always)]
    fn arbitrate_all(&mut self, home: Home) {
        if self.switches.chooses() {
            self.switches.decide(&mut self.net);
        }
        if M::LIMITED {
            self.switches.arbitrate_together(&mut self.net, home);
            while let Some(exit) = self.switches.crossbars.exits.pop() {
                self.exit(home, &exit);
            }
        }
        let mut index = 0;
        while let Some(port) = self.net.dirty.get(index).copied() {
            index += 1;
            let place = self.net.place(port);
            if place >= home.switch_ports.into() {
                if self.adapters.share() {
                    return self.serve_hosts(home, index - 1);
                }
                self.adapters.inject(&mut self.net, slot_at(home, place), port);
                self.adapters.heed(&mut self.net, port);
                self.tell();
            } else if !M::LIMITED
                && let Some(exit) = self.switches.arbitrate(&mut self.net, port)
            {
                self.exit(home, &exit);
            }
        }
        self.net.dirty.clear();
    }

    /// Phase 2 from a touched port on, where ports of one adapter share what they send by: outputs
    /// first, then adapters' ports in the order of their turns, then who waits for a bus. What
    /// comes next depends on which ports are touched, never on the order they were touched in.
    #[inline(never)]
    fn serve_hosts(&mut self, home: Home, mut index: usize) {
        // In the order of their turns, the first one last.
        let mut hosts = SmallVec::<[_; 16]>::new();
        let base = home.first.0 + u32::from(home.switch_ports);
        loop {
            while let Some(port) = self.net.dirty.get(index).copied() {
                index += 1;
                if port.0 >= base {
                    let slot = home.first_slot + port.0 - base;
                    let turn = (self.adapters.order(slot), slot);
                    if let Err(at) = hosts.binary_search_by(|other| turn.cmp(other)) {
                        hosts.insert(at, turn);
                    }
                } else if !M::LIMITED
                    && let Some(exit) = self.switches.arbitrate(&mut self.net, port)
                {
                    self.exit(home, &exit);
                }
            }
            let port = match hosts.pop() {
                Some((_, slot)) => {
                    let port = PortIndex(base + slot - home.first_slot);
                    self.adapters.inject(&mut self.net, slot, port);
                    port
                }
                None => match self.adapters.bus_turn(&mut self.net, home) {
                    Some(port) => port,
                    None => break,
                },
            };
            self.adapters.heed(&mut self.net, port);
            self.tell();
        }
        self.net.dirty.clear();
    }

    /// A packet leaves a switch for a host.
    #[inline(always)]
    fn exit(&mut self, home: Home, exit: &Exit) {
        if self.adapters.share() {
            return self.adapters.announce(&mut self.net, exit);
        }
        let place = self.net.ports[exit.port].peer.place();
        let host = self.net.port(place);
        self.adapters.receive(&mut self.net, slot_at(home, place), host, exit);
    }

    /// Has the processor fetch what an event to come will touch: large fabrics are bound by the
    /// latency of memory, not by instructions. In three stages, because what an event leads to is
    /// known only once what it names has been read.
    #[inline(always)]
    fn fetch_first<const PORTS: bool>(&self, places: usize) {
        let entry = self.net.queue.ahead(places);
        let address = entry.address();
        if PORTS {
            let port = self.net.port_at(address);
            self.net.prefetch_port(port, entry.lane());
            // What comes in is counted where it leaves.
            match entry.kind() {
                Kind::Arrive if M::LIMITED => self.switches.crossbars.prefetch_read(port),
                Kind::Arrive => {}
                Kind::Wake if M::LIMITED => {
                    self.switches.crossbars.prefetch_allotted::<V>(port);
                    self.net.recorder.prefetch(port);
                }
                Kind::Wake | Kind::Deliver | Kind::Step => self.net.recorder.prefetch(port),
            }
        }
        // Of those that have none any number will do, and asking costs more than fetching.
        self.net.packets.all().prefetch::<1>(PacketIndex(entry.packet()));
        if matches!(entry.kind(), Kind::Deliver | Kind::Step) {
            let slot = slot_at(self.net.homes[HomeIndex(address.home())], address.place());
            self.adapters.prefetch(slot);
            // Where adapters have one port, a host has the number of its slot; else it is a guess.
            let at = match entry.kind() {
                Kind::Step => entry.packet(),
                _ => self.ranks.guess(self.adapters.host(slot).0).unwrap_or(slot),
            };
            self.ranks.prefetch(at);
        }
    }

    #[inline(always)]
    fn fetch_then<const PORTS: bool>(&mut self, places: usize) {
        let entry = self.net.queue.ahead(places);
        let address = entry.address();
        let home = self.net.homes[HomeIndex(address.home())];
        match entry.kind() {
            Kind::Arrive if PORTS => self.fetch_way(&entry, home),
            Kind::Wake if PORTS => self.fetch_waiting(&entry, home),
            Kind::Arrive | Kind::Wake => {}
            Kind::Deliver => {
                let packet = &self.net.packets[PacketIndex(entry.packet())];
                self.adapters.prefetch_halves(packet);
                if PORTS && let Some(rank) = self.rank_at(home, address.place()) {
                    self.ranks.prefetch_library(rank);
                }
            }
            // Where there are many hosts, their programs have to be fetched themselves.
            Kind::Step if PORTS => {
                self.ranks.prefetch_program(entry.packet());
                self.ranks.prefetch_library(entry.packet());
            }
            Kind::Step => {
                let slot = slot_at(home, address.place());
                if let Some((destination, group)) = self.ranks.upcoming(entry.packet()) {
                    self.adapters.prefetch_key(slot, destination, group);
                }
            }
        }
    }

    /// The heads a wake-up may grant; what finds the queue a program is about to post to, or that
    /// queue itself where its place has been fetched before.
    #[inline(always)]
    fn fetch_last<const PORTS: bool>(&self, places: usize) {
        let entry = self.net.queue.ahead(places);
        let address = entry.address();
        let home = self.net.homes[HomeIndex(address.home())];
        match entry.kind() {
            Kind::Wake if PORTS => self.fetch_heads(&entry, home),
            Kind::Step => {
                let slot = slot_at(home, address.place());
                let upcoming = self.ranks.upcoming(entry.packet());
                let Some((destination, group)) = upcoming else { return };
                match PORTS {
                    true => self.adapters.prefetch_key(slot, destination, group),
                    false => self.adapters.prefetch_queue(slot, destination, group),
                }
            }
            Kind::Arrive if PORTS && !self.switches.chooses() => {
                let (output, _) = self.net.packets[PacketIndex(entry.packet())].route;
                // One that has come up within the window has no route yet.
                if u32::from(output) < home.switch_ports.into() {
                    self.net.recorder.prefetch_slice(home.first.plus(output.into()));
                }
            }
            Kind::Deliver if PORTS => {
                if let Some(rank) = self.rank_at(home, address.place()) {
                    self.ranks.prefetch_operations(rank);
                }
            }
            Kind::Arrive | Kind::Wake | Kind::Deliver => {}
        }
    }

    /// The rank of a program that a packet for the adapter at a place of a home may be for.
    #[inline(always)]
    fn rank_at(&self, home: Home, place: u32) -> Option<u32> {
        self.ranks.guess(self.adapters.host(slot_at(home, place)).0)
    }

    /// Where a packet that arrives will leave, and where its credits go.
    #[inline(always)]
    fn fetch_way(&mut self, entry: &Entry, home: Home) {
        let address = entry.address();
        let (switch, input) = (self.switches.numbered(address.home()), address.place());
        let packet = &mut self.net.packets[PacketIndex(entry.packet())];
        let lane = entry.lane();
        let route = self.switches.forwarder.route(switch, input as u8, lane, packet);
        if !self.switches.chooses() {
            packet.route = route;
        }
        let output = home.first.plus(route.0.into());
        self.net.prefetch_port(output, route.1);
        self.net.recorder.prefetch(output);
        if M::LIMITED {
            self.switches.crossbars.prefetch_allotted::<V>(output);
        }
        let peer = self.net.ports[home.first.plus(address.place())].peer;
        self.net.prefetch_peer(peer, lane);
    }

    /// The inputs that wait for an output.
    #[inline(always)]
    fn fetch_waiting(&self, entry: &Entry, home: Home) {
        let output = home.first.plus(entry.address().place());
        self.net.recorder.prefetch_slice(output);
        let record = &self.net.ports[output];
        for (at, lane) in record.lanes.iter().enumerate() {
            lane.waiters.find_from(record.turn[at], |local| {
                let input = home.first.plus(local.into());
                self.net.prefetch_port(input, at as u8);
                if M::LIMITED {
                    self.switches.crossbars.prefetch_read(input);
                }
                Some(())
            });
        }
    }

    /// The packets at the heads of the inputs whose turn it is at an output, and where their
    /// credits go.
    #[inline(always)]
    fn fetch_heads(&self, entry: &Entry, home: Home) {
        let record = &self.net.ports[home.first.plus(entry.address().place())];
        if record.waiting == 0 {
            return;
        }
        for (at, lane) in record.lanes.iter().enumerate() {
            lane.waiters.find_from(record.turn[at], |local| {
                let input = &self.net.ports[home.first.plus(local.into())];
                let heads = input.lanes.iter().map(|lane| lane.head);
                heads.for_each(|head| self.net.packets.all().prefetch::<1>(head));
                self.net.prefetch_peer(input.peer, at as u8);
                Some(())
            });
        }
    }
}

/// The slot of the adapter at a place of a home.
#[inline(always)]
const fn slot_at(home: Home, place: u32) -> u32 {
    home.first_slot + place - home.switch_ports as u32
}
