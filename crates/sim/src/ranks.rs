//! Ranks on the packet engine: what they post becomes messages of their adapters, and what adapters
//! have to tell reaches them. Their library is the crate `clearlane_ranks`.

use crate::adapter::{Adapters, Post, Told};
use crate::model::Model;
use crate::network::NetworkOf;
use crate::packet::{Carried, Reader, Waiter};
use crate::port::PortIndex;
use crate::queue::Kind;
use crate::records::{prefetch_place, prefetch_value, prefetch_whole};
use crate::saved::{MESSAGE_MAX, Parts};
use clearlane_ib::Picoseconds;
use clearlane_ranks::{Outgoing, Transport, What};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The ranks of a partition: first what each host does by itself, in the order of hosts, then ranks
/// of programs.
pub(crate) struct Ranks {
    pub(crate) all: clearlane_ranks::Ranks,
    /// From a message of open-loop traffic being posted to its first packet being ready, in ps.
    send_overhead: u64,
    /// Hosts of this partition.
    hosts: u32,
    /// Ranks of programs here, from place `hosts` on.
    seats: Vec<Seat>,
    /// Numbers in the run of the ranks of programs here, in order: they have the places from
    /// `hosts` on.
    numbers: Vec<u32>,
    placement: Arc<Placement>,
}

/// Where a rank of a program sits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Seat {
    /// The slot of the first port of its adapter.
    pub(crate) slot: u32,
    /// Its number at its adapter, from 1: what orders ranks that are stepped at one instant.
    pub(crate) number: u8,
}

/// Ranks of programs that may share an adapter: what orders events has room for so many.
pub(crate) const SEATS_MAX: u8 = 15;

/// At which host each rank of the run is, by its number: hosts by themselves have the first ones.
#[derive(Debug, Default)]
pub(crate) struct Placement {
    pub(crate) hosts: u32,
    /// Of all others.
    pub(crate) others: Vec<u32>,
}

impl Placement {
    #[inline(always)]
    fn host(&self, rank: u32) -> u32 {
        match rank.checked_sub(self.hosts) {
            None => rank,
            Some(other) => self.others[other as usize],
        }
    }
}

/// The rank being served, its adapter, and the network under it.
struct Below<'a, M: Model, const V: usize> {
    adapters: &'a mut Adapters<M, V>,
    net: &'a mut NetworkOf<M, V>,
    slot: u32,
    port: PortIndex,
    /// Its place and its number at its adapter.
    at: u32,
    number: u8,
    send_overhead: u64,
    placement: &'a Placement,
}

impl<M: Model, const V: usize> Transport for Below<'_, M, V> {
    #[inline(always)]
    fn now(&self) -> u64 {
        self.net.now
    }

    #[inline(always)]
    fn offer(&mut self, to: u32, born: u64, bytes: u64, group: u16) {
        let post = Post {
            born,
            ready: born + self.send_overhead,
            stripe_overhead: 0,
            destination: to,
            bytes,
            group,
            waiter: None,
            what: Carried::Data,
            sl: None,
            path: None,
            gap: 0,
        };
        let slot = self.slot_to(None, to);
        if !self.adapters.leaves_out(slot, &post) {
            self.post_by(None, &post);
        }
    }

    #[inline(never)]
    fn post(&mut self, message: &Outgoing) -> u32 {
        let &Outgoing { from, to, born, ready, stripe_overhead, bytes, group, hints, what } =
            message;
        let waiter = |token| Waiter { rank: self.at, token };
        let (what, waiter) = match what {
            What::Write { token } => (Carried::Data, token.map(waiter)),
            What::Message { envelope, token } => (Carried::Message(envelope), token.map(waiter)),
            What::Read { token } => {
                let (reader, gap) = (Reader { rank: from, token }, hints.gap.0);
                (Carried::ReadRequest { reader, bytes, gap }, None)
            }
        };
        // The header of a READ besides those of every packet (RETH: IBA vol. 1, 9.3).
        let bytes = if matches!(what, Carried::ReadRequest { .. }) { 16 } else { bytes };
        let path = hints.path.map(|path| self.adapters.path(path));
        let sl = hints.sl.map(|sl| sl.value());
        let destination = self.placement.host(to);
        let post = Post {
            born,
            ready,
            stripe_overhead,
            destination,
            bytes,
            group,
            waiter,
            what,
            sl,
            path,
            gap: hints.gap.0,
        };
        self.post_by(hints.engine, &post)
    }

    #[inline(always)]
    fn wake(&mut self, time: u64) {
        self.net.schedule(time, self.port, Kind::Step, self.number, self.at);
    }
}

impl<M: Model, const V: usize> Below<'_, M, V> {
    /// The slot of the port that a message is posted at.
    #[inline(always)]
    fn slot_to(&self, engine: Option<u8>, destination: u32) -> u32 {
        match self.adapters.share() {
            false => self.slot,
            true => self.slot + self.adapters.port_to(self.slot, destination, engine),
        }
    }

    /// Posts at one of the host's ports: the one asked for, or as the adapter sees fit.
    #[inline(always)]
    fn post_by(&mut self, engine: Option<u8>, post: &Post) -> u32 {
        if !self.adapters.share() {
            return self.adapters.post(self.net, self.slot, self.port, post);
        }
        let slot = self.slot_to(engine, post.destination);
        let port = self.port.plus(slot - self.slot);
        let stripes = self.adapters.post(self.net, slot, port, post);
        self.adapters.heed(self.net, port);
        stripes
    }
}

impl Ranks {
    /// Ranks that have not begun, of so many hosts; those beyond them have these seats.
    pub(crate) fn new(
        all: clearlane_ranks::Ranks,
        send_overhead: Picoseconds,
        hosts: u32,
        seats: Vec<(u32, Seat)>,
        placement: Arc<Placement>,
    ) -> Self {
        let numbers = seats.iter().map(|(number, _)| *number).collect();
        let seats = seats.into_iter().map(|(_, seat)| seat).collect();
        Ranks { all, send_overhead: send_overhead.0, hosts, seats, numbers, placement }
    }

    /// At which host each rank of the run is.
    pub(crate) fn placement(&self) -> &Placement {
        &self.placement
    }

    /// The number in the run of the rank at a place.
    pub(crate) fn number_at(&self, place: u32) -> u32 {
        self.all.number(place)
    }

    /// The places of all ranks here, by their numbers in the run.
    pub(crate) fn places_by_number(&self) -> FxHashMap<u32, u32> {
        (0..self.all.count() as u32).map(|place| (self.number_at(place), place)).collect()
    }

    /// Whether there is all that the rank at a place names.
    pub(crate) fn names_what_there_is(&self, place: u32, parts: &Parts<'_>) -> bool {
        let named = self.all.named(place);
        let process = named.process.is_none_or(|process| parts.host(process).is_some());
        let group = named.group.is_none_or(|group| group < parts.groups);
        process && group && named.bytes <= MESSAGE_MAX
    }

    /// Ranks of programs: their places and seats.
    pub(crate) fn seats(&self) -> impl Iterator<Item = (u32, Seat)> + '_ {
        (self.hosts..).zip(self.seats.iter().copied())
    }

    /// Ranks whose records may be of use soon.
    #[inline(always)]
    pub(crate) fn prefetch(&self, at: u32) {
        if let Some(record) = self.all.record(at) {
            prefetch_value(record);
        }
    }

    /// The place of the rank of a program that a packet to a host may be for; nothing where there
    /// is none. Where there is one a host, it is the one.
    #[inline(always)]
    pub(crate) fn guess(&self, host: u32) -> Option<u32> {
        (host < self.seats.len() as u32).then(|| self.hosts + host)
    }

    /// What the library of a rank may need soon, whose record is at hand.
    #[inline(always)]
    pub(crate) fn prefetch_library(&self, at: u32) {
        if let Some(known) = self.all.known(at) {
            prefetch_whole(known);
        }
    }

    /// Operations of a rank whose library is at hand.
    #[inline(always)]
    pub(crate) fn prefetch_operations(&self, at: u32) {
        if let Some(operations) = self.all.under_way(at) {
            prefetch_place(operations, 0);
            prefetch_place(operations, 1);
        }
    }

    /// Programs that may be stepped soon, whose records are at hand.
    #[inline(always)]
    pub(crate) fn prefetch_program(&self, at: u32) {
        prefetch_value(self.all.program(at));
    }

    /// Destination and flow group of the message that a program is known to post next.
    #[inline(always)]
    pub(crate) fn upcoming(&self, at: u32) -> Option<(u32, u16)> {
        let (rank, group) = self.all.upcoming(at)?;
        Some((self.placement.host(rank), group))
    }

    /// The time of the rank at place `at` has come, whose adapter is in a slot. Apart, because the
    /// loop that serves events has no register to spare.
    #[inline(never)]
    pub(crate) fn step<M: Model, const V: usize>(
        &mut self,
        adapters: &mut Adapters<M, V>,
        net: &mut NetworkOf<M, V>,
        (slot, port): (u32, PortIndex),
        at: u32,
    ) {
        net.last_effect = net.now.max(net.last_effect);
        let number = self.number(at);
        let (send_overhead, placement) = (self.send_overhead, &*self.placement);
        let mut below = Below { adapters, net, slot, port, at, number, send_overhead, placement };
        self.all.step(&mut below, at);
    }

    /// The number of a rank at its adapter.
    #[inline(always)]
    fn number(&self, at: u32) -> u8 {
        at.checked_sub(self.hosts).map_or(0, |other| self.seats[other as usize].number)
    }

    /// The place of a rank, by its number in the run, at the host at a place.
    fn place(&self, host: u32, rank: u32) -> u32 {
        let Some(first) = self.numbers.first().filter(|first| **first <= rank) else { return host };
        // Mostly ranks beside each other are here together.
        let near = (rank - first) as usize;
        let found = match self.numbers.get(near) == Some(&rank) {
            true => Ok(near),
            false => self.numbers.binary_search(&rank),
        };
        found.map_or(host, |at| self.hosts + at as u32)
    }

    /// Tells a rank what its adapter had to tell: the adapter of the host at a place, whose first
    /// port is in a slot and at `port`.
    pub(crate) fn tell<M: Model, const V: usize>(
        &mut self,
        adapters: &mut Adapters<M, V>,
        net: &mut NetworkOf<M, V>,
        (host, slot, port): (u32, u32, PortIndex),
        told: &Told,
    ) {
        let at = match told {
            Told::Sent(waiter) => waiter.rank,
            Told::Head(envelope) | Told::Arrived(envelope) => self.place(host, envelope.to),
            Told::Read(reader) => self.place(host, reader.rank),
        };
        let number = self.number(at);
        let (send_overhead, placement) = (self.send_overhead, &*self.placement);
        let mut below = Below { adapters, net, slot, port, at, number, send_overhead, placement };
        match told {
            Told::Sent(waiter) => self.all.sent(&mut below, at, waiter.token),
            Told::Head(envelope) => self.all.head(&mut below, at, envelope),
            Told::Arrived(envelope) => self.all.arrived(&mut below, at, envelope),
            Told::Read(reader) => self.all.read(&mut below, at, reader.token),
        }
    }
}
