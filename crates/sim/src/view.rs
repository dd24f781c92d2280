//! Views of partitions for code outside the hot loop. It is compiled once, not once an instance.

use crate::cabling::Places;
use crate::mail::FarEnd;
use crate::model::{Model, Reactors};
use crate::network::{Home, HomeIndex, Links, Network};
use crate::outcome::{Tapped, Totals};
use crate::packet::{Packet, PacketIndex};
use crate::partition::Partition;
use crate::port::{LinkKind, NEVER, PortIndex};
use crate::port_set::PortSet;
use crate::queue::{Address, Queue};
use crate::ranks::Ranks;
use crate::recorder::Recorder;
use crate::records::{Records, Slab};
use crate::switch::{Buffered, Candidate, Voq, VoqIndex};

/// The network of a partition.
pub(crate) trait NetworkView {
    /// Lanes of a port.
    fn lanes(&self) -> usize;
    /// Number of ports.
    fn ports(&self) -> u32;
    /// The port at the other end of the cable of a port.
    fn peer(&self, port: PortIndex) -> Address;
    /// The packet at the head of the receive buffer of a port's lane, `NIL` if that is empty.
    fn head(&self, port: PortIndex, lane: u8) -> PacketIndex;
    /// Output that this head wants, `UNROUTED` if it wants none, and the lane there.
    fn wants(&self, port: PortIndex, lane: u8) -> (u8, u8);
    /// Credits of the transmitter of a port's lane, in hand and on their way back.
    fn credits(&self, port: PortIndex, lane: u8) -> u64;
    /// Its homes.
    fn homes(&self) -> &Records<HomeIndex, Home>;
    /// All its packets.
    fn packets(&self) -> &Slab<PacketIndex, Packet>;
    /// Events that are still to happen.
    fn queue(&self) -> &Queue;
    /// Parameters of links and buffers.
    fn links(&self) -> &Links;
    /// The other end of a cable that leads to another partition.
    fn far_end(&self, address: Address) -> Option<FarEnd>;
    /// Its recorder.
    fn recorder(&self) -> &Recorder;
    /// Time of the last effect that a result shows.
    fn last_effect(&self) -> u64;
    /// Time that every home has reached.
    fn floor(&self) -> u64;
    /// Bytes of the shortest packet so far.
    fn shortest(&self) -> u32;
    /// Totals so far.
    fn totals(&self) -> &Totals;
}

impl dyn NetworkView + '_ {
    /// The packets of a list from `head` on.
    pub(crate) fn chain(&self, head: PacketIndex) -> impl Iterator<Item = PacketIndex> + '_ {
        let packets = self.packets();
        let some = |id: PacketIndex| (id != PacketIndex::NIL).then_some(id);
        std::iter::successors(some(head), move |id| some(packets[*id].next))
    }

    /// The port at an address of this partition.
    pub(crate) fn port_at(&self, address: Address) -> PortIndex {
        self.homes()[HomeIndex(address.home())].first.plus(address.place())
    }
}

impl<B: PortSet, const V: usize> NetworkView for Network<B, V> {
    fn lanes(&self) -> usize {
        V
    }

    fn ports(&self) -> u32 {
        self.ports.len() as u32
    }

    fn peer(&self, port: PortIndex) -> Address {
        self.ports[port].peer
    }

    fn head(&self, port: PortIndex, lane: u8) -> PacketIndex {
        self.ports[port].lanes[usize::from(lane) % V].head
    }

    fn wants(&self, port: PortIndex, lane: u8) -> (u8, u8) {
        let (record, at) = (&self.ports[port], usize::from(lane) % V);
        (record.output[at], record.wants[at])
    }

    fn credits(&self, port: PortIndex, lane: u8) -> u64 {
        let (record, at) = (&self.ports[port], usize::from(lane) % V);
        let further = self.overflow.get(&(port, lane)).into_iter().flatten().copied();
        let returns = record.rings[at].iter().chain(further);
        let returned: u64 = returns.map(|entry| u64::from(entry.credits())).sum();
        u64::from(record.lanes[at].credits) + returned
    }

    fn homes(&self) -> &Records<HomeIndex, Home> {
        &self.homes
    }

    fn packets(&self) -> &Slab<PacketIndex, Packet> {
        &self.packets
    }

    fn queue(&self) -> &Queue {
        &self.queue
    }

    fn links(&self) -> &Links {
        &self.links
    }

    fn far_end(&self, address: Address) -> Option<FarEnd> {
        Network::far_end(self, address)
    }

    fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    fn last_effect(&self) -> u64 {
        self.last_effect
    }

    fn floor(&self) -> u64 {
        self.floor
    }

    fn shortest(&self) -> u32 {
        self.shortest
    }

    fn totals(&self) -> &Totals {
        &self.totals
    }
}

/// A partition.
pub(crate) trait PartitionView: Send {
    /// Its network.
    fn net(&self) -> &dyn NetworkView;
    /// Names of its ports.
    fn places(&self) -> &Places;
    /// Its ranks.
    fn ranks(&self) -> &Ranks;
    /// Whether its switches have virtual output queues.
    fn has_voqs(&self) -> bool;
    /// The virtual output queues by (port, lane, output), and how many a port and a lane have.
    fn voqs(&self) -> (&Records<VoqIndex, Voq>, [u32; 2]);
    /// Outputs for which a lane of an input has packets in virtual output queues, each with its
    /// lane there.
    fn wanted(&self, port: PortIndex, lane: u8) -> Vec<(u8, u8)>;
    /// The packets behind the crossbars of its switches.
    fn behind(&self) -> Buffered;
    /// Packets at adapters that wait to be stored, each with its port.
    fn unstored(&self) -> Vec<(PortIndex, PacketIndex)>;
    /// Number of ACKs that wait for their adapter, and the data packets that wait for packets which
    /// they overtook.
    fn beside_the_network(&self) -> (u64, Vec<PacketIndex>);
    /// Address of a port.
    fn address(&self, port: PortIndex) -> Address;
    /// Events served so far.
    fn events(&self) -> u64;
    /// Messages that take memory.
    fn messages_kept(&self) -> u64;
    /// Sets the time to `now`, before which everything has happened.
    fn come_to(&mut self, now: u64);
    /// The buffer at the far end of (output, lane) of a home, if the packet whose turn it is lacks
    /// credits and not enough are under way; else `NIL`.
    fn waits_for(&mut self, home: u32, output: u8, lane: u8) -> Address;
    /// Sets the width of slots of the event queue.
    fn reshape(&mut self, width_log2: u32, lookahead: u64);
    /// Packets that taps have seen since the last call.
    fn take_tapped(&mut self) -> Vec<(PortIndex, Tapped)>;
    /// Time that growing slices reach; 0 if slices do not grow.
    fn grown_to(&self) -> u64;
    /// Has growing slices reach `reach`.
    fn grow(&mut self, reach: u64);
}

impl<M: Model, const V: usize> PartitionView for Partition<M, V> {
    fn net(&self) -> &dyn NetworkView {
        &self.net
    }

    fn places(&self) -> &Places {
        &self.places
    }

    fn ranks(&self) -> &Ranks {
        &self.ranks
    }

    fn has_voqs(&self) -> bool {
        self.switches.has_voqs()
    }

    fn voqs(&self) -> (&Records<VoqIndex, Voq>, [u32; 2]) {
        let switches = &self.switches;
        (&switches.voqs, [switches.lanes * switches.radix, switches.radix])
    }

    fn wanted(&self, port: PortIndex, lane: u8) -> Vec<(u8, u8)> {
        let switches = &self.switches;
        if u32::from(lane) >= switches.lanes {
            return Vec::new();
        }
        let queue = |output| &switches.voqs[switches.voq(port, lane.into(), output)];
        let queues = (0..switches.radix as u8).map(|output| (output, queue(output)));
        let full = queues.filter(|(_, queue)| queue.head != PacketIndex::NIL);
        full.map(|(output, queue)| (output, queue.lane)).collect()
    }

    fn behind(&self) -> Buffered {
        self.switches.crossbars.behind.buffered::<V>(self.switches.output_buffer())
    }

    fn unstored(&self) -> Vec<(PortIndex, PacketIndex)> {
        Partition::unstored(self).collect()
    }

    fn beside_the_network(&self) -> (u64, Vec<PacketIndex>) {
        self.adapters.beside_the_network(&self.net)
    }

    fn address(&self, port: PortIndex) -> Address {
        Partition::address(self, port)
    }

    fn events(&self) -> u64 {
        self.events
    }

    fn messages_kept(&self) -> u64 {
        self.adapters.messages_kept()
    }

    fn come_to(&mut self, now: u64) {
        self.net.now = now;
    }

    fn waits_for(&mut self, home: u32, output: u8, lane: u8) -> Address {
        let (net, switches) = (&mut self.net, &self.switches);
        net.enter(home, net.now);
        let output = net.port(output.into());
        if net.class(output).kind == LinkKind::Exit {
            // A host always drains.
            return Address::NIL;
        }
        // If another head may go sooner, no head of this lane is stuck.
        let Candidate::Ready { credits, sooner: NEVER, .. } = switches.candidate(net, output, lane)
        else {
            return Address::NIL;
        };
        let Some(credits) = switches.awaited(net, output, lane, credits) else {
            return Address::NIL;
        };
        let record = &net.ports[output];
        let enough =
            record.lane(lane).credits >= credits || net.credits_at(output, lane, credits) != NEVER;
        if enough { Address::NIL } else { record.peer }
    }

    fn reshape(&mut self, width_log2: u32, lookahead: u64) {
        self.net.queue.reshape(width_log2, lookahead);
    }

    fn take_tapped(&mut self) -> Vec<(PortIndex, Tapped)> {
        self.net.recorder.take_tapped()
    }

    fn grown_to(&self) -> u64 {
        self.net.recorder.grown_to().max(self.adapters.reactors.grown_to())
    }

    fn grow(&mut self, reach: u64) {
        self.net.recorder.grow(reach);
        self.adapters.reactors.grow(reach);
    }
}
