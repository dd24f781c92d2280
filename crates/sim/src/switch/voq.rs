//! Virtual output queues: each lane of an input keeps one queue per output, so that a packet waits
//! only behind packets for the same output (Tamir and Frazier, ISCA 1988). The buffer they share is
//! read for several outputs at once; its credits are those of the lane.

use super::{Candidate, Switches};
use crate::model::Model;
use crate::network::NetworkOf;
use crate::packet::{PacketIndex, Route};
use crate::port::{NEVER, PortIndex};
use crate::records::index;

index!(
    /// A virtual output queue, by (port, lane, output).
    VoqIndex
);

/// Packets of one lane of one input for one output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Voq {
    /// When the head may be forwarded.
    pub(crate) ready: u64,
    /// The packet at the head, `NIL` if empty.
    pub(crate) head: PacketIndex,
    /// The packet at the end.
    pub(crate) tail: PacketIndex,
    /// Credits the head takes.
    pub(crate) need: u16,
    /// Lane the head wants at the output.
    pub(crate) lane: u8,
}

impl Voq {
    pub(crate) const EMPTY: Voq =
        Voq { ready: 0, head: PacketIndex::NIL, tail: PacketIndex::NIL, need: 0, lane: 0 };
}

impl<M: Model> Switches<M> {
    /// Index of the queue of (input, lane) for an output.
    #[inline(always)]
    pub(crate) fn voq(&self, input: PortIndex, lane: usize, output: u8) -> VoqIndex {
        VoqIndex((input.0 * self.lanes + lane as u32) * self.radix + u32::from(output))
    }

    /// The head of an input port that wants (output, lane); of several lanes the longest ready.
    pub(crate) fn voq_head_for<const V: usize>(
        &self,
        net: &NetworkOf<M, V>,
        input: PortIndex,
        output: u8,
        lane: u8,
    ) -> Candidate {
        let queue = |from: usize| (from as u8, &self.voqs[self.voq(input, from, output)]);
        let wants = |(_, voq): &(u8, &Voq)| voq.head != PacketIndex::NIL && voq.lane == lane;
        match (0..self.lanes as usize).map(queue).filter(wants).min_by_key(|(_, voq)| voq.ready) {
            Some((from, voq)) if voq.ready <= net.now => {
                Candidate::Ready { input, lane: from, credits: voq.need, sooner: NEVER }
            }
            Some((_, voq)) => Candidate::Later(voq.ready),
            None => Candidate::Later(NEVER),
        }
    }

    /// A packet that has been routed joins the queue for its output.
    pub(crate) fn join_voq<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        port: PortIndex,
        lane: u8,
        id: PacketIndex,
        route: Route,
    ) {
        net.packets[id].route = route;
        let index = self.voq(port, usize::from(lane), route.0);
        let voq = &mut self.voqs[index];
        let last = std::mem::replace(&mut voq.tail, id);
        if voq.head == PacketIndex::NIL {
            let now = net.now;
            self.head_of_voq(net, port, index, id, now);
        } else {
            net.packets[last].next = id;
        }
    }

    /// A packet has come to the head of its queue, which lets it go at `free`.
    pub(crate) fn head_of_voq<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        port: PortIndex,
        index: VoqIndex,
        id: PacketIndex,
        free: u64,
    ) {
        let (route, need) = (net.packets[id].route, net.packets[id].credits);
        let to = net.port(route.0.into());
        let ready = self.ready(net, to, id, free);
        let voq = &mut self.voqs[index];
        (voq.head, voq.need, voq.lane, voq.ready) = (id, need, route.1, ready);
        self.await_output(net, port, to, route.1, ready);
    }
}
