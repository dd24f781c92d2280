//! Virtual output queues: each lane of an input keeps one queue per output, so that a packet waits
//! only behind packets for the same output (Tamir and Frazier, ISCA 1988). The buffer they share is
//! read for several outputs at once; its credits are those of the lane.

use crate::control::Control;
use crate::engine::Engine;
use crate::forward::Forwarder;
use crate::network::NIL;
use crate::observe::Observer;
use crate::port_set::PortSet;

/// Packets of one lane of one input for one output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Voq {
    /// When the head may be forwarded.
    pub(crate) ready: u64,
    /// The packet at the head, `NIL` if empty.
    pub(crate) head: u32,
    /// The packet at the end.
    pub(crate) tail: u32,
    /// Credits the head takes.
    pub(crate) need: u16,
    /// Lane the head wants at the output.
    pub(crate) lane: u8,
}

impl Voq {
    pub(crate) const EMPTY: Voq = Voq { ready: 0, head: NIL, tail: NIL, need: 0, lane: 0 };
}

impl<F: Forwarder, O: Observer, C: Control, B: PortSet, const V: usize> Engine<F, O, C, B, V> {
    /// Index of the queue of (input, lane) for an output.
    #[inline(always)]
    pub(crate) fn voq(&self, input: u32, lane: usize, output: u8) -> u32 {
        (input * V as u32 + lane as u32) * self.radix + u32::from(output)
    }

    /// A packet that has been routed joins the queue for its output.
    pub(crate) fn settle_voq(&mut self, port: u32, lane: u8, id: u32, route: (u8, u8)) {
        self.packets[id].route = route;
        let index = self.voq(port, usize::from(lane), route.0);
        let voq = &mut self.voqs[index];
        let last = std::mem::replace(&mut voq.tail, id);
        if voq.head == NIL {
            self.head_of_voq(port, index, id, self.now);
        } else {
            self.packets[last].next = id;
        }
    }

    /// A packet has come to the head of its queue, which lets it go at `free`.
    pub(crate) fn head_of_voq(&mut self, port: u32, index: u32, id: u32, free: u64) {
        let (route, need) = (self.packets[id].route, self.packets[id].credits);
        let record = &self.ports[port];
        let (local, to) = (record.local, record.base(port) + u32::from(route.0));
        let ready = self.ready(to, id, free);
        let voq = &mut self.voqs[index];
        (voq.head, voq.need, voq.lane, voq.ready) = (id, need, route.1, ready);
        self.await_output(local, to, route.1, ready);
    }
}
