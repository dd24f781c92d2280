//! Switches at work: outputs choose among lanes, lanes among inputs, and grants move packets on.

use crate::InputArbitration;
use crate::arbiter::Table;
use crate::model::{Forwarder, Markers, Model, Observer};
use crate::network::NetworkOf;
use crate::packet::{ACK, CNP, FECN, PacketIndex, Route, UNROUTED};
use crate::port::{LinkKind, NEVER, PortIndex};
use crate::port_set::PortSet;
use crate::queue::Address;
use crate::records::Records;
use rustc_hash::FxHashMap;
use std::sync::Arc;
pub(crate) use voq::Voq;
use voq::VoqIndex;

mod adaptive;
mod voq;

/// What a lane's next packet is, seen from an output.
pub(crate) enum Candidate {
    /// It may go if there are credits for it. A head that is ready at `sooner` may take the turn
    /// from it if it still waits then.
    Ready { input: PortIndex, lane: u8, credits: u16, sooner: u64 },
    /// Nothing before this time.
    Later(u64),
}

/// What an output sends next: a lane, the table it won its turn in, and the head it takes.
struct Choice {
    lane: u8,
    table: Table,
    input: PortIndex,
    from: u8,
}

/// A packet that leaves for a host.
pub(crate) struct Exit {
    /// The switch's port.
    pub(crate) port: PortIndex,
    pub(crate) lane: u8,
    pub(crate) packet: PacketIndex,
    /// When its tail leaves the switch.
    pub(crate) sent: u64,
}

/// The switches of a partition: what they know besides their ports.
pub(crate) struct Switches<M: Model> {
    pub(crate) forwarder: Arc<M::Forwarder>,
    /// Number of the first home's switch in the fabric.
    first_switch: u32,
    pub(crate) markers: M::Markers,
    arbitration: InputArbitration,
    /// Flow-fair turns: the tag in service by (output, lane), and of each source there.
    fair_now: FxHashMap<(PortIndex, u8), u64>,
    fair: FxHashMap<(PortIndex, u8, u32), u64>,
    /// Heads whose output the switch has yet to choose: (port, lane, packet).
    pub(crate) undecided: Vec<(PortIndex, u8, PacketIndex)>,
    /// Credits of packets that wait for an output, by port; empty unless switches choose.
    pub(crate) backlog: Records<PortIndex, u32>,
    /// Virtual output queues by (port, lane, output); empty without.
    pub(crate) voqs: Records<VoqIndex, Voq>,
    /// Outputs a lane of an input has queues for.
    pub(crate) radix: u32,
    /// Credits of a full packet.
    pub(crate) full_packet: u32,
}

impl<M: Model> Switches<M> {
    /// Switches of so many ports in all, with their adapters' ports.
    pub(crate) fn new(
        forwarder: Arc<M::Forwarder>,
        first_switch: u32,
        markers: M::Markers,
        arbitration: InputArbitration,
        (ports, lanes, radix): (usize, usize, u32),
        full_packet: u32,
    ) -> Self {
        let voqs = if M::VOQ { ports * lanes * radix as usize } else { 0 };
        assert!(u32::try_from(voqs).is_ok(), "{voqs} virtual output queues");
        Switches {
            forwarder,
            first_switch,
            markers,
            arbitration,
            fair_now: FxHashMap::default(),
            fair: FxHashMap::default(),
            undecided: Vec::new(),
            backlog: vec![0; if M::Forwarder::ADAPTIVE { ports } else { 0 }].into(),
            voqs: vec![Voq::EMPTY; voqs].into(),
            radix,
            full_packet,
        }
    }

    /// The route of a packet that has come in by a port of the home being served.
    #[inline(always)]
    pub(crate) fn route<const V: usize>(
        &self,
        net: &NetworkOf<M, V>,
        port: PortIndex,
        lane: u8,
        id: PacketIndex,
    ) -> Route {
        let (switch, input) = (self.first_switch + net.home(), net.place(port) as u8);
        self.forwarder.route(switch, input, lane, &net.packets[id])
    }

    #[inline(always)]
    fn route_once<const V: usize>(
        &self,
        net: &NetworkOf<M, V>,
        port: PortIndex,
        lane: u8,
        id: PacketIndex,
    ) -> Route {
        match net.packets[id].route {
            UNROUTED => self.route(net, port, lane, id),
            route => route,
        }
    }

    /// Number of a home's switch in the fabric.
    #[inline(always)]
    pub(crate) fn numbered(&self, home: u32) -> u32 {
        self.first_switch + home
    }

    /// A packet's head has become arbitrable: it joins its buffer.
    #[inline(always)]
    pub(crate) fn arrive<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        port: PortIndex,
        lane: u8,
        id: PacketIndex,
    ) {
        if M::Observer::ON {
            let (now, packet) = (net.now, &net.packets[id]);
            net.observer.on_received(now, port, lane, packet);
        }
        if net.links.mixed {
            let bytes = u64::from(net.packets[id].bytes);
            net.tails[id] = net.now + net.class(port).rate.serialisation(bytes);
        }
        if M::Markers::ON && !(M::Forwarder::ADAPTIVE && M::VOQ) {
            self.foresee(net, port, lane, id);
        }
        if M::VOQ {
            return self.expose(net, port, lane, id);
        }
        let of = net.ports[port].lane_mut(lane);
        let last = std::mem::replace(&mut of.tail, id);
        if of.head == PacketIndex::NIL {
            self.expose(net, port, lane, id);
        } else {
            net.packets[last].next = id;
        }
    }

    /// Markers count a packet for its output from its arrival on, wherever in its buffer it is.
    /// Where the switch has yet to choose, that is the output of its table.
    fn foresee<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        port: PortIndex,
        lane: u8,
        id: PacketIndex,
    ) {
        let route = self.route_once(net, port, lane, id);
        net.packets[id].route = route;
        let (output, bytes) = (net.port(route.0.into()), net.packets[id].bytes);
        self.markers.on_queued(net.now, output, route.1, bytes);
    }

    /// A packet has come to the head of its buffer (with virtual output queues: into it): it is
    /// routed and waits at its output.
    #[inline(always)]
    fn expose<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        port: PortIndex,
        lane: u8,
        id: PacketIndex,
    ) {
        if M::Forwarder::ADAPTIVE {
            // Until the switch has chosen, the head wants no output.
            self.undecided.push((port, lane, id));
            return;
        }
        let route = self.route_once(net, port, lane, id);
        self.await_route(net, port, lane, id, route);
    }

    /// A packet that has been routed waits at its output.
    #[inline(always)]
    pub(crate) fn await_route<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        port: PortIndex,
        lane: u8,
        id: PacketIndex,
        route: Route,
    ) {
        if M::Markers::ON && M::Forwarder::ADAPTIVE {
            self.follow(net, port, lane, id, route);
        }
        if M::VOQ {
            return self.join_voq(net, port, lane, id, route);
        }
        let to = net.port(route.0.into());
        let free = net.ports[port].lane(lane).ready;
        let ready = self.ready(net, to, id, free);
        let credits = net.packets[id].credits;
        let record = &mut net.ports[port];
        let at = usize::from(lane) % V;
        (record.output[at], record.wants[at]) = route;
        let of = &mut record.lanes[at];
        (of.head, of.need, of.ready) = (id, credits, ready);
        self.await_output(net, port, to, route.1, ready);
    }

    /// Markers hear of the output a switch has chosen, in the place of its table's.
    fn follow<const V: usize>(
        &mut self,
        net: &NetworkOf<M, V>,
        port: PortIndex,
        lane: u8,
        id: PacketIndex,
        route: Route,
    ) {
        let (now, bytes) = (net.now, net.packets[id].bytes);
        if !M::VOQ {
            let table = self.route(net, port, lane, id);
            if table == route {
                return;
            }
            self.markers.on_moved_away(now, net.port(table.0.into()), table.1, bytes);
        }
        self.markers.on_queued(now, net.port(route.0.into()), route.1, bytes);
    }

    /// When a head may be forwarded to `to` whose buffer lets it go at `free`.
    #[inline(always)]
    pub(crate) fn ready<const V: usize>(
        &self,
        net: &NetworkOf<M, V>,
        to: PortIndex,
        id: PacketIndex,
        free: u64,
    ) -> u64 {
        let ready = free.max(net.now);
        if !net.links.mixed {
            return ready;
        }
        // A slow link must not run dry in the middle of a packet on a fast one.
        let sending = net.class(to).rate.serialisation(u64::from(net.packets[id].bytes));
        ready.max(net.tails[id].saturating_sub(sending))
    }

    /// An input has a head for (to, lane) that is ready at `ready`.
    #[inline(always)]
    pub(crate) fn await_output<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        input: PortIndex,
        to: PortIndex,
        lane: u8,
        ready: u64,
    ) {
        let local = net.place(input) as u8;
        let out = &mut net.ports[to];
        out.lane_mut(lane).waiters.insert(local);
        out.waiting |= 1 << lane;
        let when = ready.max(out.free_at);
        if when <= net.now {
            net.touch(to);
        } else {
            net.wake(to, when);
        }
    }

    /// Phase 2 of an output: it grants one packet. Returns it if it leaves for a host.
    #[inline(always)]
    pub(crate) fn arbitrate<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        port: PortIndex,
    ) -> Option<Exit> {
        let record = &net.ports[port];
        if record.waiting == 0 {
            return None;
        }
        if record.free_at > net.now {
            let free_at = record.free_at;
            net.wake(port, free_at);
            return None;
        }
        let lanes = record.waiting;
        let chosen = if V == 1 || lanes.is_power_of_two() {
            self.choose_alone(net, port, lanes.trailing_zeros() as u8)
        } else {
            self.choose_among(net, port, lanes)
        };
        chosen.and_then(|choice| self.grant(net, port, choice))
    }

    /// The only lane of an output with a packet waiting.
    #[inline(always)]
    fn choose_alone<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        port: PortIndex,
        lane: u8,
    ) -> Option<Choice> {
        match self.candidate(net, port, lane) {
            Candidate::Ready { input, lane: from, credits, sooner } => {
                if net.has_credits(port, lane, credits) {
                    return Some(Choice { lane, table: Table::Neither, input, from });
                }
                let earliest = net.credits_at(port, lane, credits).min(sooner);
                self.markers.on_starved(port, lane);
                net.hold(port, true, earliest);
            }
            Candidate::Later(time) => net.hold(port, false, time),
        }
        None
    }

    /// One of several lanes.
    #[inline(always)]
    fn choose_among<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        port: PortIndex,
        mut lanes: u16,
    ) -> Option<Choice> {
        let (mut eligible, mut earliest, mut stalled) = (0u16, NEVER, false);
        let mut chosen = [(PortIndex(0), 0u8); V];
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as u8;
            lanes &= lanes - 1;
            match self.candidate(net, port, lane) {
                Candidate::Ready { input, lane: from, credits, sooner } => {
                    if net.has_credits(port, lane, credits) {
                        eligible |= 1 << lane;
                        chosen[usize::from(lane) % V] = (input, from);
                    } else {
                        // The packet whose turn it is holds the lane: were a smaller one let past,
                        // full packets would starve beside ACKs.
                        stalled = true;
                        let at = net.credits_at(port, lane, credits);
                        earliest = earliest.min(at).min(sooner);
                        self.markers.on_starved(port, lane);
                    }
                }
                Candidate::Later(time) => earliest = earliest.min(time),
            }
        }
        if eligible == 0 {
            net.hold(port, stalled, earliest);
            return None;
        }
        let (lane, table) = net.arbitration.choose(port, eligible);
        let (input, from) = chosen[usize::from(lane) % V];
        Some(Choice { lane, table, input, from })
    }

    /// The packet whose turn it is for a lane of an output.
    #[inline(always)]
    pub(crate) fn candidate<const V: usize>(
        &self,
        net: &NetworkOf<M, V>,
        port: PortIndex,
        lane: u8,
    ) -> Candidate {
        if self.arbitration != InputArbitration::RoundRobin {
            return self.fair_candidate(net, port, lane);
        }
        let record = &net.ports[port];
        let output = net.place(port) as u8;
        let mut earliest = NEVER;
        let turn = record.turn[usize::from(lane) % V];
        let found = record.lane(lane).waiters.find_from(turn, |local| {
            match self.head_for(net, net.port(local.into()), output, lane) {
                Candidate::Later(time) => {
                    earliest = earliest.min(time);
                    None
                }
                ready => Some(ready),
            }
        });
        match found {
            Some(Candidate::Ready { input, lane, credits, .. }) => {
                Candidate::Ready { input, lane, credits, sooner: earliest }
            }
            _ => Candidate::Later(earliest),
        }
    }

    /// The head of an input port that wants (output, lane); of several lanes the longest ready.
    #[inline(always)]
    fn head_for<const V: usize>(
        &self,
        net: &NetworkOf<M, V>,
        input: PortIndex,
        output: u8,
        lane: u8,
    ) -> Candidate {
        if M::VOQ {
            return self.voq_head_for(net, input, output, lane);
        }
        let record = &net.ports[input];
        let (mut best, mut ready) = (0, NEVER);
        if V == 1 {
            ready = record.lanes[0].ready;
        } else {
            let mut lanes = record.wanting(output, lane);
            while lanes != 0 {
                let from = lanes.trailing_zeros() as usize;
                lanes &= lanes - 1;
                if record.lanes[from % V].ready < ready {
                    (best, ready) = (from % V, record.lanes[from % V].ready);
                }
            }
        }
        if ready > net.now {
            return Candidate::Later(ready);
        }
        let credits = record.lanes[best].need;
        Candidate::Ready { input, lane: best as u8, credits, sooner: NEVER }
    }

    /// The packet a grant of (input, from) to `output` takes.
    #[inline(always)]
    fn head<const V: usize>(
        &self,
        net: &NetworkOf<M, V>,
        input: PortIndex,
        from: u8,
        output: u8,
    ) -> PacketIndex {
        if M::VOQ {
            self.voqs[self.voq::<V>(input, from.into(), output)].head
        } else {
            net.ports[input].lane(from).head
        }
    }

    /// Age-fair and flow-fair turns: every ready head is looked at.
    #[inline(never)]
    fn fair_candidate<const V: usize>(
        &self,
        net: &NetworkOf<M, V>,
        port: PortIndex,
        lane: u8,
    ) -> Candidate {
        let (mut best, mut earliest) = (None::<(u64, PortIndex, u8, u16)>, NEVER);
        let output = net.place(port) as u8;
        net.ports[port].lane(lane).waiters.find_from(0, |local| {
            match self.head_for(net, net.port(local.into()), output, lane) {
                Candidate::Later(time) => earliest = earliest.min(time),
                Candidate::Ready { input, lane: from, credits, .. } => {
                    let packet = &net.packets[self.head(net, input, from, output)];
                    let tag = match self.arbitration {
                        InputArbitration::FlowFair => self.fair_tag(port, lane, packet.source),
                        _ => packet.born,
                    };
                    if best.is_none_or(|(known, ..)| tag < known) {
                        best = Some((tag, input, from, credits));
                    }
                }
            }
            None::<()>
        });
        match best {
            Some((_, input, lane, credits)) => {
                Candidate::Ready { input, lane, credits, sooner: earliest }
            }
            None => Candidate::Later(earliest),
        }
    }

    /// Self-clocked fair queueing (Golestani, INFOCOM 1994): a source that was idle starts at the
    /// tag in service, so it cannot save up.
    fn fair_tag(&self, port: PortIndex, lane: u8, source: u32) -> u64 {
        let now = self.fair_now.get(&(port, lane)).copied().unwrap_or(0);
        self.fair.get(&(port, lane, source)).copied().unwrap_or(0).max(now)
    }

    #[inline(never)]
    fn charge_fair(&mut self, port: PortIndex, lane: u8, source: u32, bytes: u16) {
        let tag = self.fair_tag(port, lane, source);
        self.fair_now.insert((port, lane), tag);
        self.fair.insert((port, lane, source), tag + u64::from(bytes));
    }

    /// Sends the head of an input out of a port. First everything is read, then written, record by
    /// record: between a write and a read elsewhere every address is made anew.
    #[inline(always)]
    fn grant<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        port: PortIndex,
        choice: Choice,
    ) -> Option<Exit> {
        let Choice { lane, table, input, from } = choice;
        let (now, output) = (net.now, net.place(port) as u8);
        let class = net.class(port);
        let (kind, flight, rate) = (class.kind, class.flight, class.rate);
        let peer = net.ports[port].peer;
        let head = self.head(net, input, from, output);
        let packet = &mut net.packets[head];
        let (bytes, credits, flags) = (packet.bytes, packet.credits, packet.flags);
        let source = packet.source;
        let busy = rate.serialisation(u64::from(bytes));
        packet.route = UNROUTED;
        let next = std::mem::replace(&mut packet.next, PacketIndex::NIL);
        let done = now + busy;
        // When the packet has left its buffer.
        let mut left = done;
        if net.links.speedup > 100 {
            left = (now + net.links.crossing(busy)).max(net.tails[head]);
        }
        let (upstream, still) = self.leave(net, (input, from), (output, lane), next, left);
        let local = net.place(input) as u8;
        self.sent_from(net, port, lane, (local, still), (credits, done));
        if M::Forwarder::ADAPTIVE {
            self.backlog[port] -= u32::from(credits);
        }
        if V > 1 {
            net.arbitration.charge(port, table, bytes);
        }
        if self.arbitration == InputArbitration::FlowFair {
            self.charge_fair(port, lane, source, bytes);
        }
        self.count(net, flags);
        if M::Markers::ON {
            self.mark(net, port, lane, head);
        }
        if M::Observer::ON {
            net.observer.on_granted(now, port, lane, &net.packets[head], busy);
        }
        if kind != LinkKind::Exit {
            net.send(now + flight, peer, lane, head);
        }
        net.return_credits(left + net.links.credit_delay, upstream, from, credits);
        if next != PacketIndex::NIL {
            if M::VOQ {
                let index = self.voq::<V>(input, from.into(), output);
                self.head_of_voq(net, input, index, next, left);
            } else {
                self.expose(net, input, from, next);
            }
        }
        let exit = Exit { port, lane, packet: head, sent: done };
        (kind == LinkKind::Exit).then_some(exit)
    }

    /// The output's part of a grant: it is busy until `done`.
    #[inline(always)]
    fn sent_from<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        port: PortIndex,
        lane: u8,
        (local, still): (u8, bool),
        (credits, done): (u16, u64),
    ) {
        let record = &mut net.ports[port];
        record.free_at = done;
        let at = usize::from(lane) % V;
        record.turn[at] = ((u32::from(local) + 1) % M::Ports::PORTS) as u8;
        let of = &mut record.lanes[at];
        of.credits -= credits;
        if !still {
            of.waiters.remove(local);
            if of.waiters.is_empty() {
                record.waiting &= !(1 << lane);
            }
        }
        // The head that comes next asks for its own look.
        if record.waiting != 0 {
            net.wake(port, done);
        }
    }

    /// A grant of a packet with these flags.
    #[inline(always)]
    fn count<const V: usize>(&self, net: &mut NetworkOf<M, V>, flags: u8) {
        net.totals.packet_hops += u64::from(flags & (ACK | CNP) == 0);
        net.totals.ack_hops += u64::from(flags & ACK != 0);
        if M::Markers::ON {
            net.totals.cnp_hops += u64::from(flags & CNP != 0);
        }
        net.last_effect = net.now.max(net.last_effect);
    }

    /// A packet departs, marked if the mechanisms say so.
    fn mark<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        port: PortIndex,
        lane: u8,
        id: PacketIndex,
    ) {
        let packet = &mut net.packets[id];
        let (bytes, may) = (packet.bytes, packet.is_data());
        if self.markers.on_departed(net.now, port, lane, bytes, may) {
            packet.flags |= FECN;
            net.totals.packets_marked += 1;
        }
    }

    /// Takes the head of (input, from), which leaves by (output, lane), off its buffer. Returns the
    /// port that filled the buffer, and whether another lane of the input wants the same output and
    /// lane.
    #[inline(always)]
    fn leave<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        (input, from): (PortIndex, u8),
        (output, lane): (u8, u8),
        next: PacketIndex,
        left: u64,
    ) -> (Address, bool) {
        let at = usize::from(from) % V;
        if M::VOQ {
            let index = self.voq::<V>(input, at, output);
            self.voqs[index].head = next;
            net.ports[input].lanes[at].ready = left;
            let still = (0..V).filter(|other| *other != at).any(|other| {
                let voq = &self.voqs[self.voq::<V>(input, other, output)];
                voq.head != PacketIndex::NIL && voq.lane == lane
            });
            return (net.ports[input].peer, still);
        }
        let record = &mut net.ports[input];
        record.output[at] = UNROUTED.0;
        record.lanes[at].head = next;
        record.lanes[at].ready = left;
        (record.peer, V > 1 && record.wanting(output, lane) != 0)
    }
}
