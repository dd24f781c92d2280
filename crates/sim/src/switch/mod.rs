//! Switches at work: outputs choose among lanes, lanes among inputs, and grants move packets on.

use crate::arbiter::Table;
use crate::model::{Adaptive, Forwarder, Markers, Model, Queues};
use crate::network::NetworkOf;
use crate::outcome::Aside;
use crate::packet::{ACK, CNP, FECN, Flags, PacketIndex, Route, UNROUTED};
use crate::port::{LinkClass, LinkKind, NEVER, PortIndex};
use crate::port_set::PortSet;
use crate::records::Records;
use crate::{InputArbitration, InputQueueing};
pub(crate) use crossbar::CrossbarSettings;
use crossbar::Crossbars;
pub(crate) use output_buffer::{Buffered, BufferedLane};
use rustc_hash::FxHashMap;
pub(crate) use saved::SavedSwitches;
use std::sync::Arc;
pub(crate) use voq::{Voq, VoqIndex};

mod adaptive;
mod crossbar;
mod output_buffer;
mod saved;
mod voq;

/// What a lane's next packet is, seen from an output.
pub(crate) enum Candidate {
    /// It may go if there are credits for it, or room behind the crossbar. A head that is ready at
    /// `sooner` may take the turn from it if it still waits then.
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

/// From an input's lane to an output's.
struct Way {
    input: PortIndex,
    from: u8,
    output: PortIndex,
    lane: u8,
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
    /// Whether they choose among ports in this run: see [`Switches::chooses`].
    chooses: bool,
    /// Whether their inputs have virtual output queues: see [`Switches::has_voqs`].
    voq: bool,
    /// Virtual output queues by (port, lane, output); empty without.
    pub(crate) voqs: Records<VoqIndex, Voq>,
    /// Lanes that packets may be on: no more than ports have room for.
    pub(crate) lanes: u32,
    /// Outputs a lane of an input has queues for.
    pub(crate) radix: u32,
    /// Crossbars with limits of their own; without state where they have none.
    pub(crate) crossbars: Crossbars,
    /// Credits of a full packet.
    pub(crate) full_packet: u32,
    /// Whether a packet that finds everything free needs no turn: inputs take turns one after the
    /// other, and tails are where heads are.
    may_pass: bool,
}

impl<M: Model> Switches<M> {
    /// Switches of so many ports in all, with their adapters' ports. Each port has room for `width`
    /// lanes, of which packets use `lanes`.
    pub(crate) fn new(
        forwarder: Arc<M::Forwarder>,
        first_switch: u32,
        markers: M::Markers,
        (arbitration, queueing, settings): (InputArbitration, InputQueueing, CrossbarSettings),
        (ports, width, lanes, radix): (usize, usize, u32, u32),
        full_packet: u32,
        mixed: bool,
    ) -> Self {
        let voq = match M::QUEUES {
            Queues::Fifo => false,
            Queues::Voq => true,
            Queues::AsSet => queueing == InputQueueing::Voq,
        };
        let chooses = forwarder.chooses();
        let voqs = if voq { ports * (lanes * radix) as usize } else { 0 };
        assert!(u32::try_from(voqs).is_ok(), "{voqs} queues were checked before");
        Switches {
            forwarder,
            first_switch,
            markers,
            arbitration,
            fair_now: FxHashMap::default(),
            fair: FxHashMap::default(),
            undecided: Vec::new(),
            backlog: vec![0; if chooses { ports } else { 0 }].into(),
            chooses,
            voq,
            voqs: vec![Voq::EMPTY; voqs].into(),
            lanes,
            radix,
            crossbars: Crossbars::new(settings, ports, width),
            full_packet,
            may_pass: !M::LIMITED
                && !chooses
                && arbitration == InputArbitration::RoundRobin
                && !mixed,
        }
    }

    /// Whether a switch may choose among several outputs.
    #[inline(always)]
    pub(crate) fn chooses(&self) -> bool {
        match M::Forwarder::ADAPTIVE {
            Adaptive::Never => false,
            Adaptive::Always => true,
            Adaptive::AsSet => self.chooses,
        }
    }

    /// Whether a lane of an input has a queue for each output.
    #[inline(always)]
    pub(crate) fn has_voqs(&self) -> bool {
        match M::QUEUES {
            Queues::Fifo => false,
            Queues::Voq => true,
            Queues::AsSet => self.voq,
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
        let route = net.packets[id].route;
        // No switch has that output, so its lane need not be compared.
        if route.0 == UNROUTED.0 { self.route(net, port, lane, id) } else { route }
    }

    /// Number of a home's switch in the fabric.
    #[inline(always)]
    pub(crate) fn numbered(&self, home: u32) -> u32 {
        self.first_switch + home
    }

    /// A packet's head has become arbitrable: it joins its buffer. If nothing else happens here at
    /// this instant, it is `alone` and may leave at once; returned if for a host.
    #[inline(always)]
    pub(crate) fn arrive<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        port: PortIndex,
        lane: u8,
        id: PacketIndex,
        alone: bool,
    ) -> Option<Exit> {
        net.received(net.now, port, lane, id);
        if net.links.mixed {
            let bytes = u64::from(net.packets[id].bytes);
            net.tails[id] = net.now + net.class(port).rate.serialisation(bytes);
        }
        if M::Markers::ON && !(self.chooses() && self.has_voqs()) {
            self.foresee(net, port, lane, id);
        }
        if self.has_voqs() {
            self.expose(net, port, lane, id);
            return None;
        }
        let of = net.ports[port].lane(lane);
        if of.head == PacketIndex::NIL {
            let free = of.ready <= net.now;
            net.ports[port].lane_mut(lane).tail = id;
            if alone && free && self.may_pass {
                return self.pass(net, port, lane, id);
            }
            self.expose(net, port, lane, id);
        } else {
            let last = std::mem::replace(&mut net.ports[port].lane_mut(lane).tail, id);
            net.packets[last].next = id;
        }
        None
    }

    /// A packet that has come into an empty buffer, at an instant at which nothing else happens:
    /// if its output is free and nobody waits for it, it is granted without waiting there.
    #[inline(always)]
    fn pass<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        port: PortIndex,
        lane: u8,
        id: PacketIndex,
    ) -> Option<Exit> {
        let route = self.route_once(net, port, lane, id);
        let to = net.port(route.0.into());
        let out = &net.ports[to];
        let free = out.waiting == 0 && out.free_at <= net.now;
        if free && net.has_credits(to, route.1, net.packets[id].credits) {
            let way = Way { input: port, from: lane, output: to, lane: route.1 };
            let (busy, left) = self.leaving(net, to, id);
            net.ports[port].lane_mut(lane).ready = left;
            return self.depart(net, &way, id, busy, left);
        }
        self.await_route(net, port, lane, id, route);
        None
    }

    /// Markers count a packet for its output from its arrival on, wherever in its buffer it is.
    /// Where the switch has yet to choose, that is the output of its table.
    #[inline(always)]
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
        if self.chooses() {
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
        if self.has_voqs() {
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
        let taken_until = match M::LIMITED {
            true => self.crossbars.behind.taken_until(to, out.free_at),
            false => out.free_at,
        };
        let when = ready.max(taken_until);
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

    /// The head of an input port that wants (output, lane), or when to look for it again.
    #[inline(always)]
    fn head_for<const V: usize>(
        &self,
        net: &NetworkOf<M, V>,
        input: PortIndex,
        output: u8,
        lane: u8,
    ) -> Candidate {
        let candidate = match self.has_voqs() {
            true => self.voq_head_for(net, input, output, lane),
            false => self.longest_ready(net, input, output, lane),
        };
        if M::LIMITED
            && let Candidate::Ready { credits, .. } = candidate
            && let Some(until) = self.waits_for_input(net, input, (output, lane), credits)
        {
            return Candidate::Later(until);
        }
        candidate
    }

    /// The head of an input port that wants (output, lane); of several lanes the longest ready.
    /// Without virtual output queues.
    #[inline(always)]
    fn longest_ready<const V: usize>(
        &self,
        net: &NetworkOf<M, V>,
        input: PortIndex,
        output: u8,
        lane: u8,
    ) -> Candidate {
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
        if self.has_voqs() {
            self.voqs[self.voq(input, from.into(), output)].head
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

    /// Sends the head of an input out of a port.
    #[inline(always)]
    fn grant<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        port: PortIndex,
        choice: Choice,
    ) -> Option<Exit> {
        let Choice { lane, table, input, from } = choice;
        let (output, local) = (net.place(port) as u8, net.place(input) as u8);
        let head = self.head(net, input, from, output);
        let packet = &mut net.packets[head];
        let (bytes, source) = (packet.bytes, packet.source);
        let next = std::mem::replace(&mut packet.next, PacketIndex::NIL);
        let (busy, left) = self.leaving(net, port, head);
        if !self.leave(net, (input, from), (output, lane), next, left) {
            let record = &mut net.ports[port];
            let waiters = &mut record.lane_mut(lane).waiters;
            waiters.remove(local);
            if waiters.is_empty() {
                record.waiting &= !(1 << lane);
            }
        }
        if self.chooses() && !(M::LIMITED && self.crossbars.settings.room > 0) {
            self.backlog[port] -= u32::from(net.packets[head].credits);
        }
        if V > 1 {
            net.arbitration.charge(port, table, bytes);
        }
        if self.arbitration == InputArbitration::FlowFair {
            self.charge_fair(port, lane, source, bytes);
        }
        let way = Way { input, from, output: port, lane };
        let exit = match M::LIMITED {
            true => self.cross(net, &way, head, (busy, left)),
            false => self.depart(net, &way, head, busy, left),
        };
        if next != PacketIndex::NIL {
            if self.has_voqs() {
                let index = self.voq(input, from.into(), output);
                self.head_of_voq(net, input, index, next, left);
            } else {
                self.expose(net, input, from, next);
            }
        }
        exit
    }

    /// How long a packet occupies the link of an output, and when it will have left its buffer.
    #[inline(always)]
    fn leaving<const V: usize>(
        &self,
        net: &NetworkOf<M, V>,
        output: PortIndex,
        id: PacketIndex,
    ) -> (u64, u64) {
        let busy = net.class(output).rate.serialisation(u64::from(net.packets[id].bytes));
        if net.links.speedup > 100 {
            return (busy, (net.now + net.links.crossing(busy)).max(net.tails[id]));
        }
        (busy, net.now + busy)
    }

    /// A packet that is no longer in a buffer of its input leaves by an output, for `busy` ps; its
    /// buffer is free when it has `left`. Returned if it leaves for a host.
    #[inline(always)]
    fn depart<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        way: &Way,
        id: PacketIndex,
        busy: u64,
        left: u64,
    ) -> Option<Exit> {
        let Way { input, from, output, lane } = *way;
        let next = (net.place(input) + 1) % M::Ports::PORTS;
        net.ports[output].turn[usize::from(lane) % V] = next as u8;
        let (upstream, credits) = (net.ports[input].peer, net.packets[id].credits);
        let exit = self.transmit(net, (output, lane), id, busy);
        net.return_credits(left + net.links.credit_delay, upstream, from, credits);
        exit
    }

    /// A packet leaves by the link of an output and lane, for `busy` ps, whatever buffer it comes
    /// from. Returned if it leaves for a host.
    #[inline(always)]
    fn transmit<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        (port, lane): (PortIndex, u8),
        id: PacketIndex,
        busy: u64,
    ) -> Option<Exit> {
        let now = net.now;
        let packet = &mut net.packets[id];
        let (credits, flags) = (packet.credits, packet.flags);
        packet.route = UNROUTED;
        let record = &mut net.ports[port];
        record.free_at = now + busy;
        record.lane_mut(lane).credits -= credits;
        let (waiting, peer, class) = (record.waiting, record.peer, record.class);
        // The head that comes next asks for its own look.
        if waiting != 0 {
            net.wake(port, now + busy);
        }
        self.count(net, flags);
        if M::Markers::ON {
            self.mark(net, port, lane, id);
        }
        net.recorder.on_granted(now, port, &net.packets[id], busy);
        if net.recorder.is_tapped(port) {
            let queued = self.markers.queued(port, lane);
            net.tap(now, port, lane, true, id, Aside { queued, state: None });
        }
        let LinkClass { kind, flight, .. } = net.classes[class];
        if kind != LinkKind::Exit {
            net.send(now + flight, peer, lane, id);
        }
        let exit = Exit { port, lane, packet: id, sent: now + busy };
        (kind == LinkKind::Exit).then_some(exit)
    }

    /// A grant of a packet with these flags.
    #[inline(always)]
    fn count<const V: usize>(&self, net: &mut NetworkOf<M, V>, flags: Flags) {
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

    /// Takes the head of (input, from), which leaves by (output, lane), off its buffer. Returns
    /// whether another lane of the input wants the same output and lane.
    #[inline(always)]
    fn leave<const V: usize>(
        &mut self,
        net: &mut NetworkOf<M, V>,
        (input, from): (PortIndex, u8),
        (output, lane): (u8, u8),
        next: PacketIndex,
        left: u64,
    ) -> bool {
        let at = usize::from(from) % V;
        if self.has_voqs() {
            let index = self.voq(input, at, output);
            self.voqs[index].head = next;
            return (0..self.lanes as usize).filter(|other| *other != at).any(|other| {
                let voq = &self.voqs[self.voq(input, other, output)];
                voq.head != PacketIndex::NIL && voq.lane == lane
            });
        }
        let record = &mut net.ports[input];
        record.output[at] = UNROUTED.0;
        record.lanes[at].head = next;
        record.lanes[at].ready = left;
        V > 1 && record.wanting(output, lane) != 0
    }
}
