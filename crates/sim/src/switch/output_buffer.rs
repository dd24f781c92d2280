//! Output buffers: the crossbar moves a packet to its output while the link still sends another
//! (combined input and output queueing: Chuang, Goel, McKeown, Prabhakar, IEEE JSAC 17(6), 1999).
//!
//! Each lane of an output has one of its own, so that no lane waits for another's credits there: in
//! a buffer that lanes share they could wait in a circle that no routing engine looks for. A packet
//! holds its room from when it begins to cross until its tail has left by the link. One at a time
//! crosses to an output.

use super::crossbar::{Held, OutputLane, numbered};
use super::{Exit, Switches, Way};
use crate::arbiter::Table;
use crate::list::List;
use crate::model::Model;
use crate::network::NetworkOf;
use crate::packet::PacketIndex;
use crate::port::PortIndex;
use crate::port_set::PortSet;
use crate::records::Records;
pub(crate) use saved::SavedOutputBuffer;

mod saved;

/// The buffers of the outputs of a partition; none without.
pub(crate) struct OutputBuffers {
    outputs: Records<PortIndex, Output>,
    lanes: Records<OutputLane, Buffer>,
}

/// The contents of all output buffers.
pub(crate) struct Buffered {
    /// Size of the buffer of a lane, in credits.
    pub(crate) size: u32,
    pub(crate) lanes: Vec<BufferedLane>,
}

/// The contents of the buffer of (port, lane).
pub(crate) struct BufferedLane {
    pub(crate) port: PortIndex,
    pub(crate) lane: u8,
    /// Free room in credits, with that of the packet that is being sent.
    pub(crate) room: u32,
    /// The packet at the head, `NIL` if it is empty.
    pub(crate) head: PacketIndex,
}

/// What an output's crossbar and link do.
#[derive(Clone, Copy, Debug)]
struct Output {
    /// When the packet that crosses has left its input.
    taken_until: u64,
    /// Lanes with packets that the link has not begun to send.
    queued: u16,
    /// Credits of the packet the link sends, until its room is free again, and its lane.
    sent: (u16, u8),
    /// The lane that may take a packet next.
    turn: u8,
}

/// The buffer of a lane.
#[derive(Clone, Copy, Debug)]
struct Buffer {
    queue: List<PacketIndex>,
    /// Credits there is room for.
    room: u32,
}

impl OutputBuffers {
    /// Of so many ports with so many lanes each, and so much room.
    pub(super) fn new(room: u32, ports: usize, lanes: usize) -> Self {
        let output = Output { taken_until: 0, queued: 0, sent: (0, 0), turn: 0 };
        let buffer = Buffer { queue: List::empty(), room };
        OutputBuffers {
            outputs: vec![output; ports].into(),
            lanes: vec![buffer; ports * lanes].into(),
        }
    }

    fn is_empty(&self) -> bool {
        self.outputs.len() == 0
    }

    /// Until when an output takes no further packet; without buffers, until its link is free.
    #[inline(always)]
    pub(super) fn taken_until(&self, output: PortIndex, free_at: u64) -> u64 {
        if self.is_empty() { free_at } else { self.outputs[output].taken_until }
    }

    pub(super) fn has_room(&self, lane: OutputLane, credits: u16) -> bool {
        self.lanes[lane].room >= u32::from(credits)
    }

    /// The lane that takes a packet next, of some: the crossbar serves them one after the other.
    /// Weights and priorities are the link's.
    pub(super) fn turn(&self, output: PortIndex, eligible: u16) -> u8 {
        let turn = self.outputs[output].turn;
        let later = eligible >> turn << turn;
        let of = if later != 0 { later } else { eligible };
        of.trailing_zeros() as u8
    }

    /// The contents of all buffers, each of which has room for `size` credits.
    pub(crate) fn buffered<const V: usize>(&self, size: u32) -> Buffered {
        let outputs = self.outputs.iter().zip(0..);
        let lanes = outputs.flat_map(move |(output, port)| {
            (0..V as u8).map(move |lane| {
                let (sent, of) = output.sent;
                let buffer = &self.lanes[numbered::<V>(PortIndex(port), lane)];
                let room = buffer.room + u32::from(sent) * u32::from(of == lane);
                BufferedLane { port: PortIndex(port), lane, room, head: buffer.queue.head }
            })
        });
        Buffered { size, lanes: lanes.collect() }
    }

    /// The head of a lane's queue.
    pub(crate) fn head<const V: usize>(&self, output: PortIndex, lane: u8) -> PacketIndex {
        self.lanes[numbered::<V>(output, lane)].queue.head
    }
}

impl<M: Model> Switches<M> {
    /// The credits that (output, lane) needs for its next packet to leave by the link, if that is
    /// what a head of so many credits waits for.
    pub(crate) fn awaited<const V: usize>(
        &self,
        net: &NetworkOf<M, V>,
        output: PortIndex,
        lane: u8,
        credits: u16,
    ) -> Option<u16> {
        if !M::LIMITED || self.crossbars.settings.room == 0 {
            return Some(credits);
        }
        let (sent, of) = self.crossbars.behind.outputs[output].sent;
        let at = numbered::<V>(output, lane);
        let room = self.crossbars.behind.lanes[at].room + u32::from(sent) * u32::from(of == lane);
        // What is being sent makes room; where it is not enough, somebody is queued.
        let head = self.crossbars.behind.head::<V>(output, lane);
        (room < u32::from(credits)).then(|| net.packets[head].credits)
    }

    /// The room of a packet whose tail has left by the link is free again.
    pub(super) fn make_room<const V: usize>(&mut self, net: &NetworkOf<M, V>, output: PortIndex) {
        if self.crossbars.settings.room == 0 || net.ports[output].free_at > net.now {
            return;
        }
        let behind = &mut self.crossbars.behind;
        let (credits, lane) = std::mem::take(&mut behind.outputs[output].sent);
        behind.lanes[numbered::<V>(output, lane)].room += u32::from(credits);
    }

    /// A packet crosses into a buffer behind; it has left its input at `left`.
    pub(super) fn put_behind<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        way: &Way,
        id: PacketIndex,
        left: u64,
    ) {
        let Way { input, from, output, lane } = *way;
        let credits = net.packets[id].credits;
        let local = net.place(input);
        let record = &mut net.ports[output];
        record.turn[usize::from(lane) % V] = ((local + 1) % M::Ports::PORTS) as u8;
        record.waiting |= 1 << lane;
        let behind = &mut self.crossbars.behind;
        let of = &mut behind.outputs[output];
        of.taken_until = left;
        of.turn = (lane + 1) % V as u8;
        of.queued |= 1 << lane;
        let buffer = &mut behind.lanes[numbered::<V>(output, lane)];
        buffer.room -= u32::from(credits);
        buffer.queue.push_back(net.packets.all_mut(), id);
        let upstream = net.ports[input].peer;
        net.return_credits(left + net.links.credit_delay, upstream, from, credits);
    }

    /// The link of an output sends the next packet of the buffers before it. Returned if that
    /// leaves for a host.
    pub(super) fn send_buffered<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        output: PortIndex,
    ) -> Option<Exit> {
        if self.crossbars.settings.room == 0 {
            return None;
        }
        let of = self.crossbars.behind.outputs[output];
        if of.taken_until > net.now && net.ports[output].waiting != 0 {
            net.wake(output, of.taken_until);
        }
        let free_at = net.ports[output].free_at;
        if of.queued == 0 || free_at > net.now {
            if of.queued != 0 {
                net.wake(output, free_at);
            }
            return None;
        }
        let (mut lanes, mut eligible, mut held) = (of.queued, 0u16, Held::NOTHING);
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as u8;
            lanes &= lanes - 1;
            let head = self.crossbars.behind.head::<V>(output, lane);
            let credits = net.packets[head].credits;
            match self.may_send(net, output, lane, credits) {
                Ok(()) => eligible |= 1 << lane,
                Err(other) => held = held.and(other),
            }
        }
        if eligible == 0 {
            net.hold(output, held.stalled, held.until);
            return None;
        }
        let (lane, table) = net.arbitration.choose(output, eligible);
        self.send_from(net, output, lane, table)
    }

    /// The head of (output, lane) leaves by the link.
    fn send_from<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        output: PortIndex,
        lane: u8,
        table: Table,
    ) -> Option<Exit> {
        let behind = &mut self.crossbars.behind;
        let queue = &mut behind.lanes[numbered::<V>(output, lane)].queue;
        // A lane is queued while it has packets.
        let id = queue.pop_front(net.packets.all_mut())?;
        let (bytes, credits) = (net.packets[id].bytes, net.packets[id].credits);
        net.packets[id].next = PacketIndex::NIL;
        let emptied = queue.is_empty();
        behind.outputs[output].sent = (credits, lane);
        if emptied {
            behind.outputs[output].queued &= !(1 << lane);
            let record = &mut net.ports[output];
            if record.lane(lane).waiters.is_empty() {
                record.waiting &= !(1 << lane);
            }
        }
        if self.chooses() {
            self.backlog[output] -= u32::from(credits);
        }
        net.arbitration.charge(output, table, bytes);
        self.crossbars.sends::<V>(output, lane);
        let busy = net.class(output).rate.serialisation(u64::from(bytes));
        self.transmit(net, (output, lane), id, busy)
    }
}
