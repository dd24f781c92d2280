//! What the ports of one host share: its memory bus, and its turn to send. Only where adapters have
//! several ports or a bus is a limit; there adapters hear of packets as they come in.
//!
//! The bus carries one packet at a time, read or written. Where both wait, they take turns, and so
//! do ports that read: were the bus booked in the order of arrival, a receive buffer full of
//! packets would have as many turns as packets, and a port that sends one.

use super::{Adapters, SlotIndex};
use crate::hosts::port_between;
use crate::model::Model;
use crate::network::{Home, NetworkOf};
use crate::packet::{ACK, CNP, HELD, PacketIndex};
use crate::port::PortIndex;
use crate::queue::Kind;
use crate::records::{Records, index};
use crate::switch::Exit;
use std::collections::VecDeque;

index!(
    /// A host of this partition.
    HostIndex
);

/// A port of an adapter.
#[derive(Clone, Copy, Debug)]
pub(super) struct PortOf {
    pub(super) host: HostIndex,
    /// Its number at the adapter.
    pub(super) number: u8,
}

/// The memory of a host, and the ports that use it.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    /// The slot of the first port.
    pub(super) first: u32,
    /// When the bus is free.
    pub(super) free_at: u64,
    /// Packets that have come and are not stored, and the slots they came to.
    pub(super) writes: VecDeque<(u32, PacketIndex)>,
    /// Ports that wait to read the next packet, a bit each.
    pub(super) reads: u8,
    /// The port whose turn it is to read, if it wants to.
    pub(super) next: u8,
    /// Whether the bus has written last.
    pub(super) has_written: bool,
    /// Whether it is among those that are looked at in this instant.
    is_waiting: bool,
}

/// The hosts of a partition. All empty where nothing is shared.
#[derive(Default)]
pub(super) struct Hosts {
    /// By slot.
    pub(super) ports: Records<SlotIndex, PortOf>,
    pub(super) memories: Records<HostIndex, Memory>,
    /// Hosts of which somebody waits for the bus in this instant.
    waiting: Vec<HostIndex>,
    /// The slot that reads now, if any.
    reading: Option<u32>,
}

impl Hosts {
    /// The hosts of these slots: rank and number of the port.
    pub(super) fn new(slots: &[(u32, u8)]) -> Self {
        let mut hosts = Hosts::default();
        for (slot, (_, number)) in (0..).zip(slots) {
            if *number == 0 {
                hosts.memories.push(Memory {
                    first: slot,
                    free_at: 0,
                    writes: VecDeque::new(),
                    reads: 0,
                    next: 0,
                    has_written: false,
                    is_waiting: false,
                });
            }
            let host = HostIndex(hosts.memories.len() as u32 - 1);
            hosts.ports.push(PortOf { host, number: *number });
        }
        hosts
    }

    fn wait(&mut self, host: HostIndex) {
        if !std::mem::replace(&mut self.memories[host].is_waiting, true) {
            self.waiting.push(host);
        }
    }
}

impl<M: Model, const V: usize> Adapters<M, V> {
    /// Whether adapters hear of packets as they come in, and ports of one host take turns.
    #[inline(always)]
    pub(crate) fn share(&self) -> bool {
        M::LIMITED && self.settings.share
    }

    /// Whether what adapters read and store goes over a bus.
    #[inline(always)]
    pub(super) fn has_memory_bus(&self) -> bool {
        M::LIMITED && self.settings.memory.is_some()
    }

    /// The slot of the first port of a host, which knows what all of them share.
    #[inline(always)]
    pub(super) fn first_slot(&self, slot: u32) -> u32 {
        match self.share() {
            false => slot,
            true => self.hosts.memories[self.hosts.ports[SlotIndex(slot)].host].first,
        }
    }

    /// The number of a port at its adapter.
    #[inline(always)]
    pub(super) fn number(&self, slot: u32) -> u8 {
        match self.share() {
            false => 0,
            true => self.hosts.ports[SlotIndex(slot)].number,
        }
    }

    /// A host's place among those of the partition, and the slot of its first port.
    pub(crate) fn host(&self, slot: u32) -> (u32, u32) {
        match self.share() {
            false => (slot, slot),
            true => (self.hosts.ports[SlotIndex(slot)].host.0, self.first_slot(slot)),
        }
    }

    /// What orders the ports of one host that are looked at in an instant: whose turn it is to read
    /// goes first.
    pub(crate) fn order(&self, slot: u32) -> (u32, u8) {
        let PortOf { host, number } = self.hosts.ports[SlotIndex(slot)];
        (host.0, number.wrapping_sub(self.hosts.memories[host].next) & 7)
    }

    /// Which of its ports the host in a slot sends to a destination by, counted from 0: one that is
    /// asked for, else the one by which both send to each other.
    #[inline(always)]
    pub(crate) fn port_to(&self, slot: u32, destination: u32, engine: Option<u8>) -> u32 {
        if !self.share() {
            return 0;
        }
        let rank = self.rank(slot);
        let both = self.addressing.ports(rank).min(self.addressing.ports(destination));
        match engine {
            None => port_between(rank, destination, both),
            Some(engine) => u32::from(engine) % both,
        }
    }

    /// The last link: the tail of a packet comes in at an adapter's port, here or elsewhere. Where
    /// it takes time to store, its credits return after that.
    pub(crate) fn announce(&mut self, net: &mut NetworkOf<M, V>, exit: &Exit) {
        let Exit { port, lane, packet: id, sent } = *exit;
        let tail = sent + net.links.cable_delay;
        let peer = net.ports[port].peer;
        let is_data = net.packets[id].is_data();
        let stores = self.settings.drain.is_some() || self.settings.memory.is_some() && is_data;
        let packet = &mut net.packets[id];
        packet.route = (0, lane);
        let credits = packet.credits;
        if stores {
            packet.flags |= HELD;
        } else {
            let here = net.address(port);
            net.return_credits(tail + net.links.credit_delay, here, lane, credits);
        }
        if net.is_here(peer) {
            net.note_head(tail, net.port_at(peer), id);
        }
        net.deliver_at(tail, peer, id);
    }

    /// A packet has come whole and takes time to store.
    pub(super) fn store(
        &mut self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        id: PacketIndex,
    ) {
        net.packets[id].flags &= !HELD;
        let is_data = net.packets[id].flags & (ACK | CNP) == 0;
        if self.settings.memory.is_none() || !is_data {
            let now = net.now;
            return self.stored_from(net, slot, port, id, now);
        }
        net.packets[id].flags |= HELD;
        let host = self.hosts.ports[SlotIndex(slot)].host;
        self.hosts.memories[host].writes.push_back((slot, id));
        // The bus is looked at where its host is.
        self.hosts.wait(host);
        net.touch(port);
    }

    /// A packet is stored from now on, over the bus if it is free at `bus`, and no faster than the
    /// adapter drains its buffer.
    fn stored_from(
        &mut self,
        net: &mut NetworkOf<M, V>,
        slot: u32,
        port: PortIndex,
        id: PacketIndex,
        bus: u64,
    ) {
        let packet = &net.packets[id];
        let (bytes, credits, lane) = (packet.bytes, packet.credits, packet.route.1);
        let mut done = bus;
        if let Some(rate) = self.settings.drain {
            let first = SlotIndex(self.first_slot(slot));
            let adapter = &mut self.adapters[first];
            let drained = net.now.max(adapter.drained_at) + rate.serialisation(bytes.into());
            adapter.drained_at = drained;
            done = done.max(drained);
        }
        let switch_port = net.ports[port].peer;
        net.return_credits(done + net.links.credit_delay, switch_port, lane, credits);
        let turn = net.turn_of(port, true);
        net.schedule(done, port, Kind::Deliver, turn, id.0);
    }

    /// Whether a port may send the next packet of a lane: of data only with the bus.
    pub(super) fn has_bus(&mut self, slot: u32, lane: u8) -> bool {
        let answers = &self.adapters[SlotIndex(slot)].acks[usize::from(lane) % V];
        if !answers.is_empty() || self.hosts.reading == Some(slot) {
            return true;
        }
        let PortOf { host, number } = self.hosts.ports[SlotIndex(slot)];
        self.hosts.memories[host].reads |= 1 << number;
        self.hosts.wait(host);
        false
    }

    /// A port is looked at: its host may wait for the bus.
    pub(super) fn look_at_bus(&mut self, slot: u32) {
        let host = self.hosts.ports[SlotIndex(slot)].host;
        let memory = &self.hosts.memories[host];
        if memory.reads != 0 || !memory.writes.is_empty() {
            self.hosts.wait(host);
        }
    }

    /// Has the other ports of a host be looked at in this instant. One of them has read memory, so
    /// what they would send comes later.
    #[inline(always)]
    pub(super) fn touch_siblings(&self, net: &mut NetworkOf<M, V>, slot: u32, port: PortIndex) {
        if !self.share() {
            return;
        }
        let PortOf { host, .. } = self.hosts.ports[SlotIndex(slot)];
        let first = self.hosts.memories[host].first;
        let slots = self.hosts.ports.len() as u32;
        let of_host = |other: &u32| self.hosts.ports[SlotIndex(*other)].host == host;
        for other in (first..slots).take_while(of_host).filter(|other| *other != slot) {
            if self.adapters[SlotIndex(other)].busy_lanes != 0 {
                net.touch(PortIndex(port.0 + other - slot));
            }
        }
    }

    /// A packet of so many bytes is read: the next port has its turn.
    pub(super) fn has_read_memory(&mut self, now: u64, slot: u32, bytes: u64) {
        let PortOf { host, number } = self.hosts.ports[SlotIndex(slot)];
        let memory = &mut self.hosts.memories[host];
        memory.next = (number + 1) & 7;
        if let Some(rate) = self.settings.memory {
            memory.free_at = now + rate.serialisation(bytes);
            memory.has_written = false;
        }
    }

    /// Gives the bus of a host to who waits for it, if it is free. Returns the port that was looked
    /// at; nothing if nobody waits.
    pub(crate) fn bus_turn(&mut self, net: &mut NetworkOf<M, V>, of: Home) -> Option<PortIndex> {
        let port = |slot: u32| of.first.plus(u32::from(of.switch_ports) + slot - of.first_slot);
        let host = self.hosts.waiting.pop()?;
        let memory = &mut self.hosts.memories[host];
        memory.is_waiting = false;
        let home = port(memory.first);
        if memory.free_at > net.now {
            let free_at = memory.free_at;
            net.wake(home, free_at);
            return Some(home);
        }
        let writes = !memory.writes.is_empty() && (memory.reads == 0 || !memory.has_written);
        let mut looked = home;
        if writes && let Some((slot, id)) = memory.writes.pop_front() {
            memory.has_written = true;
            looked = port(slot);
            self.write(net, host, (slot, looked), id);
        } else if memory.reads != 0 {
            // The next of those that want to, from the one whose turn it is on.
            let ahead = memory.reads.rotate_right(memory.next.into()).trailing_zeros() as u8;
            let number = (memory.next + ahead) & 7;
            memory.reads &= !(1 << number);
            let slot = memory.first + u32::from(number);
            looked = port(slot);
            self.hosts.reading = Some(slot);
            self.inject(net, slot, looked);
            self.hosts.reading = None;
        }
        let memory = &self.hosts.memories[host];
        if memory.reads != 0 || !memory.writes.is_empty() {
            match memory.free_at {
                free_at if free_at > net.now => net.wake(home, free_at),
                _ => self.hosts.wait(host),
            }
        }
        Some(looked)
    }

    /// A packet goes over the bus into memory.
    fn write(
        &mut self,
        net: &mut NetworkOf<M, V>,
        host: HostIndex,
        (slot, port): (u32, PortIndex),
        id: PacketIndex,
    ) {
        net.packets[id].flags &= !HELD;
        let bytes = u64::from(net.packets[id].bytes);
        let took = self.settings.memory.map_or(0, |rate| rate.serialisation(bytes));
        let free_at = net.now + took;
        self.hosts.memories[host].free_at = free_at;
        self.stored_from(net, slot, port, id, free_at);
    }

    /// Packets that have come and wait to be stored: they have left the network, but for the space
    /// they take.
    pub(crate) fn unstored(&self) -> impl Iterator<Item = (u32, PacketIndex)> + '_ {
        self.hosts.memories.iter().flat_map(|memory| memory.writes.iter().copied())
    }
}
