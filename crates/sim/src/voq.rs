//! Virtual output queues: each lane of an input keeps one queue per output, so that a packet waits
//! only behind packets for the same output (Tamir and Frazier, ISCA 1988). The buffer they share is
//! read for several outputs at once; its credits are those of the lane.

use crate::control::Control;
use crate::engine::Engine;
use crate::forward::Forwarder;
use crate::network::NIL;
use crate::observe::Observer;
use crate::port_set::PortSet;
use crate::simulation::{fits_few, radix};
use crate::{Hosts, InputQueueing, Parameters};
use clearlane_fabric::{Fabric, NodeKind};

/// Bytes that the queues of one run take, with so many lanes: 0 unless switches keep one per
/// output, then as many as ports, lanes held and outputs multiply to. All are there from the start.
pub fn voq_bytes(fabric: &Fabric, lanes: u8, parameters: &Parameters) -> u64 {
    if parameters.input_queueing == InputQueueing::Fifo {
        return 0;
    }
    let ports = |id| u64::from(fabric.node(id).port_count());
    let ports = fabric.ids(NodeKind::Switch).map(ports).sum::<u64>();
    let ports = ports + Hosts::of(fabric).count() as u64;
    let radix = radix(fabric);
    let lanes = if fits_few(usize::from(lanes), radix) { 8 } else { 16 };
    ports * lanes * u64::from(radix) * size_of::<Voq>() as u64
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_that_of_ports_lanes_and_outputs() {
        let fabric = clearlane_fabric::topologies::build("star:4").expect("it builds");
        let of = |input_queueing, lanes| {
            let parameters = (crate::preset::ALL[0].parameters)();
            voq_bytes(&fabric, lanes, &Parameters { input_queueing, ..parameters })
        };
        assert_eq!(of(InputQueueing::Fifo, 1), 0);
        // Four ports of the switch and four of hosts, 8 or 16 lanes, 4 outputs, 24 bytes.
        assert_eq!(of(InputQueueing::Voq, 1), 8 * 8 * 4 * 24);
        assert_eq!(of(InputQueueing::Voq, 9), 8 * 16 * 4 * 24);
    }
}
