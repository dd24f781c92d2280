//! Adaptive routing: a switch chooses the output of a packet among those its group allows.
//!
//! Choices of one instant are made from one state: first all choose, then all take their place. So
//! no order among them can be seen. A choice stands until the packet has left.

use super::Switches;
use crate::model::{Forwarder, Markers, Model};
use crate::network::NetworkOf;
use crate::packet::{PacketIndex, Route};
use crate::port::PortIndex;

impl<M: Model> Switches<M> {
    /// Routes every head of the home being served that has come up.
    #[inline(never)]
    pub(crate) fn decide<const V: usize>(&mut self, net: &mut NetworkOf<M, V>) {
        let mut undecided = std::mem::take(&mut self.undecided);
        for (port, lane, id) in &undecided {
            net.packets[*id].route = self.least_loaded(net, *port, *lane, *id);
        }
        if M::Markers::ON {
            self.follow(net, &undecided);
        }
        for (port, lane, id) in undecided.drain(..) {
            let packet = &net.packets[id];
            let (route, credits) = (packet.route, packet.credits);
            self.backlog[net.port(route.0.into())] += u32::from(credits);
            self.await_route(net, port, lane, id, route);
        }
        self.undecided = undecided;
    }

    /// Markers hear of the outputs chosen in the place of those of the tables: first of all that
    /// wait elsewhere, then of all that wait here. So they see the same whatever the order.
    fn follow<const V: usize>(
        &mut self,
        net: &NetworkOf<M, V>,
        chosen: &[(PortIndex, u8, PacketIndex)],
    ) {
        let moved = |(port, lane, id): &(PortIndex, u8, PacketIndex)| {
            let packet = &net.packets[*id];
            let table = (!self.has_voqs()).then(|| self.route(net, *port, *lane, *id));
            (table != Some(packet.route)).then_some((table, packet.route, packet.bytes))
        };
        let moved: Vec<_> = chosen.iter().filter_map(moved).collect();
        for (table, _, bytes) in &moved {
            if let Some((output, lane)) = *table {
                self.markers.on_moved_away(net.now, net.port(output.into()), lane, *bytes);
            }
        }
        for (_, (output, lane), bytes) in moved {
            self.markers.on_queued(net.now, net.port(output.into()), lane, bytes);
        }
    }

    /// The output that has the least before it. Among equals each input starts looking at another
    /// one, so that inputs that choose at one instant do not all choose the same.
    fn least_loaded<const V: usize>(
        &self,
        net: &NetworkOf<M, V>,
        port: PortIndex,
        lane: u8,
        id: PacketIndex,
    ) -> Route {
        let (packet, local, switch) =
            (&net.packets[id], net.place(port) as u8, self.numbered(net.home()));
        let choices = self.forwarder.choices(switch, packet);
        if choices.is_empty() {
            return self.forwarder.route(switch, local, lane, packet);
        }
        let (before, after) = choices.split_at(usize::from(local) % choices.len());
        let with_lane =
            |output: &u8| (*output, self.forwarder.lane(switch, local, lane, *output, packet));
        let load = |route: &Route| self.load(net, net.port(route.0.into()), route.1);
        // The first of equals wins; there is at least one.
        after.iter().chain(before).map(with_lane).min_by_key(load).unwrap_or_default()
    }

    /// What a packet for (port, lane) has before it, in credits: packets that wait for the port in
    /// this switch, one more if it is sending, and what the far buffer holds.
    fn load<const V: usize>(&self, net: &NetworkOf<M, V>, port: PortIndex, lane: u8) -> u32 {
        let sending = net.ports[port].free_at > net.now;
        let free = net.credits_now(port, lane);
        self.backlog[port]
            + u32::from(sending) * self.full_packet
            + u32::from(net.links.capacity.saturating_sub(free))
    }
}
