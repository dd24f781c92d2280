//! Adaptive routing: a switch chooses the output of a packet among those its group allows.
//!
//! Choices of one instant are made from one state: first all choose, then all take their place. So
//! no order among them can be seen. A choice stands until the packet has left.

use crate::control::Control;
use crate::engine::Engine;
use crate::forward::Forwarder;
use crate::observe::Observer;
use crate::port_set::PortSet;
use clearlane_ib::wire;

impl<F: Forwarder, O: Observer, C: Control, B: PortSet, const V: usize> Engine<F, O, C, B, V> {
    /// Routes every head that has come up.
    #[inline(never)]
    pub(crate) fn decide(&mut self) {
        let mut undecided = std::mem::take(&mut self.undecided);
        for (port, lane, id) in &undecided {
            let route = self.least_loaded(*port, *lane, *id);
            self.packets[*id].route = route;
        }
        for (port, lane, id) in undecided.drain(..) {
            let packet = &self.packets[id];
            let (route, credits) = (packet.route, packet.credits);
            let to = self.ports[port].base(port) + u32::from(route.0);
            self.backlog[to] += u32::from(credits);
            self.settle(port, lane, id, route);
        }
        self.undecided = undecided;
    }

    /// The output that has the least before it. Among equals each input starts looking at another
    /// one, so that inputs that choose at one instant do not all choose the same.
    fn least_loaded(&self, port: u32, lane: u8, id: u32) -> (u8, u8) {
        let (packet, record) = (&self.packets[id], &self.ports[port]);
        let (node, local, base) = (record.node, record.local, record.base(port));
        let choices = self.forwarder.choices(node, packet);
        if choices.is_empty() {
            return self.forwarder.route(node, local, lane, packet);
        }
        let (before, after) = choices.split_at(usize::from(local) % choices.len());
        let with_lane = |output: &u8| {
            let out_lane = self.forwarder.lane(node, local, lane, *output, packet);
            (*output, out_lane)
        };
        let load = |route: &(u8, u8)| self.load(base + u32::from(route.0), route.1);
        // The first of equals wins; there is at least one.
        after.iter().chain(before).map(with_lane).min_by_key(load).unwrap_or_default()
    }

    /// What a packet for (port, lane) has before it, in credits: packets that wait for the port in
    /// this switch, one more if it is sending, and what the far buffer holds.
    fn load(&self, port: u32, lane: u8) -> u32 {
        let sending = self.ports[port].free_at > self.now;
        let full = wire::credits(self.parameters.mtu);
        let free = self.credits_now(port, lane);
        self.backlog[port]
            + u32::from(sending) * full
            + u32::from(self.capacity.saturating_sub(free))
    }
}
