//! A switch at work: outputs choose among lanes, lanes among inputs, and grants move packets on.

use crate::InputArbitration;
use crate::arbiter::Table;
use crate::control::Control;
use crate::engine::{ARRIVE, DELIVER, Engine, WAKE, key};
use crate::forward::Forwarder;
use crate::network::{ACK, CNP, Kind, NEVER, NIL, RELIABLE, TOLD, UNROUTED};
use crate::observe::Observer;
use crate::port_set::PortSet;
use crate::voq::Voq;
use crate::wheel::Event;

/// What a lane's next packet is, seen from an output.
pub(crate) enum Candidate {
    /// It may go if there are credits for it. A head that is ready at `sooner` may take the turn
    /// from it if it still waits then.
    Ready { input: u32, lane: u8, credits: u16, sooner: u64 },
    /// Nothing before this time.
    Later(u64),
}

/// What an output sends next: a lane, the table it won its turn in, and the head it takes.
struct Choice {
    lane: u8,
    table: Table,
    input: u32,
    from: u8,
}

impl<F: Forwarder, O: Observer, C: Control, B: PortSet, const V: usize> Engine<F, O, C, B, V> {
    /// Phase 2 of one port: a switch output grants one packet, an adapter injects one.
    #[inline(always)]
    pub(crate) fn arbitrate(&mut self, port: u32) {
        if port >= self.hosts_at {
            return self.inject(port);
        }
        let record = &self.ports[port];
        if record.waiting == 0 {
            return;
        }
        if record.free_at > self.now {
            let free_at = record.free_at;
            return self.wake(port, free_at);
        }
        let lanes = record.waiting;
        let chosen = if V == 1 || lanes.is_power_of_two() {
            self.choose_alone(port, lanes.trailing_zeros() as u8)
        } else {
            self.choose_among(port, lanes)
        };
        if let Some(Choice { lane, table, input, from }) = chosen {
            self.grant(port, lane, table, input, from);
        }
    }

    /// The only lane of an output with a packet waiting.
    #[inline(always)]
    fn choose_alone(&mut self, port: u32, lane: u8) -> Option<Choice> {
        match self.candidate(port, lane) {
            Candidate::Ready { input, lane: from, credits, sooner } => {
                if self.has_credits(port, lane, credits) {
                    return Some(Choice { lane, table: Table::Neither, input, from });
                }
                let earliest = self.credits_at(port, lane, credits).min(sooner);
                self.note_starved(port, lane);
                self.hold(port, true, earliest);
            }
            Candidate::Later(time) => self.hold(port, false, time),
        }
        None
    }

    /// One of several lanes.
    #[inline(always)]
    fn choose_among(&mut self, port: u32, mut lanes: u16) -> Option<Choice> {
        let (mut eligible, mut earliest, mut short) = (0u16, NEVER, false);
        let mut chosen = [(0u32, 0u8); V];
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as u8;
            lanes &= lanes - 1;
            match self.candidate(port, lane) {
                Candidate::Ready { input, lane: from, credits, sooner } => {
                    if self.has_credits(port, lane, credits) {
                        eligible |= 1 << lane;
                        chosen[usize::from(lane) % V] = (input, from);
                    } else {
                        // The packet whose turn it is holds the lane: were a smaller one let past,
                        // full packets would starve beside ACKs.
                        short = true;
                        earliest = earliest.min(self.credits_at(port, lane, credits)).min(sooner);
                        self.note_starved(port, lane);
                    }
                }
                Candidate::Later(time) => earliest = earliest.min(time),
            }
        }
        if eligible == 0 {
            self.hold(port, short, earliest);
            return None;
        }
        let (lane, table) = self.choose_lane(port, eligible);
        let (input, from) = chosen[usize::from(lane) % V];
        Some(Choice { lane, table, input, from })
    }

    /// VL arbitration among eligible lanes.
    #[inline(always)]
    pub(crate) fn choose_lane(&mut self, port: u32, eligible: u16) -> (u8, Table) {
        // A lane that is alone needs no turn and is not charged for one.
        if V == 1 || eligible.is_power_of_two() {
            (eligible.trailing_zeros() as u8, Table::Neither)
        } else {
            self.arbiters[port].choose(&self.tables, eligible)
        }
    }

    /// The packet whose turn it is for a lane of an output.
    #[inline(always)]
    pub(crate) fn candidate(&self, port: u32, lane: u8) -> Candidate {
        if self.parameters.arbitration != InputArbitration::RoundRobin {
            return self.fair_candidate(port, lane);
        }
        let record = &self.ports[port];
        let (base, output) = (record.base(port), record.local);
        let at = usize::from(lane) % V;
        let mut earliest = NEVER;
        let found = record.waiters[at].find_from(record.turn[at], |local| {
            match self.head_for(base + u32::from(local), output, lane) {
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
    fn head_for(&self, input: u32, output: u8, lane: u8) -> Candidate {
        if F::VOQ {
            return self.voq_head_for(input, output, lane);
        }
        let record = &self.ports[input];
        let (mut best, mut ready) = (0, NEVER);
        if V == 1 {
            ready = record.ready[0];
        } else {
            for from in 0..V {
                let wants = record.head[from] != NIL
                    && record.output[from] == output
                    && record.lane[from] == lane;
                if wants && record.ready[from] < ready {
                    (best, ready) = (from, record.ready[from]);
                }
            }
        }
        if ready > self.now {
            return Candidate::Later(ready);
        }
        Candidate::Ready { input, lane: best as u8, credits: record.need[best], sooner: NEVER }
    }

    /// The same with virtual output queues.
    fn voq_head_for(&self, input: u32, output: u8, lane: u8) -> Candidate {
        let queue = |from: usize| (from as u8, &self.voqs[self.voq(input, from, output)]);
        let wants = |(_, voq): &(u8, &Voq)| voq.head != NIL && voq.lane == lane;
        match (0..V).map(queue).filter(wants).min_by_key(|(_, voq)| voq.ready) {
            Some((from, voq)) if voq.ready <= self.now => {
                Candidate::Ready { input, lane: from, credits: voq.need, sooner: NEVER }
            }
            Some((_, voq)) => Candidate::Later(voq.ready),
            None => Candidate::Later(NEVER),
        }
    }

    /// The packet a grant of (input, from) to `output` takes.
    #[inline(always)]
    fn head(&self, input: u32, from: u8, output: u8) -> u32 {
        if F::VOQ {
            self.voqs[self.voq(input, usize::from(from), output)].head
        } else {
            self.ports[input].head[usize::from(from) % V]
        }
    }

    /// Age-fair and flow-fair turns: every ready head is looked at.
    #[inline(never)]
    fn fair_candidate(&self, port: u32, lane: u8) -> Candidate {
        let record = &self.ports[port];
        let (mut best, mut earliest) = (None::<(u64, u32, u8, u16)>, NEVER);
        let base = record.base(port);
        record.waiters[usize::from(lane)].find_from(0, |local| {
            match self.head_for(base + u32::from(local), record.local, lane) {
                Candidate::Later(time) => earliest = earliest.min(time),
                Candidate::Ready { input, lane: from, credits, .. } => {
                    let head = self.head(input, from, record.local);
                    let packet = &self.packets[head];
                    let rank = match self.parameters.arbitration {
                        InputArbitration::FlowFair => self.fair_tag(port, lane, packet.source),
                        _ => packet.born,
                    };
                    if best.is_none_or(|(known, ..)| rank < known) {
                        best = Some((rank, input, from, credits));
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
    fn fair_tag(&self, port: u32, lane: u8, source: u32) -> u64 {
        let now = self.fair_now.get(&(port, lane)).copied().unwrap_or(0);
        self.fair.get(&(port, lane, source)).copied().unwrap_or(0).max(now)
    }

    #[inline(never)]
    fn charge_fair(&mut self, port: u32, lane: u8, source: u32, bytes: u16) {
        let tag = self.fair_tag(port, lane, source);
        self.fair_now.insert((port, lane), tag);
        self.fair.insert((port, lane, source), tag + u64::from(bytes));
    }

    /// Sends the head of (input, from) out of (port, lane). First everything is read, then written,
    /// record by record: between a write and a read elsewhere every address is made anew.
    #[inline(always)]
    fn grant(&mut self, port: u32, lane: u8, table: Table, input: u32, from: u8) {
        let record = &self.ports[port];
        let output = record.local;
        let class = &self.classes[u32::from(record.class)];
        let (kind, peer, flight) = (class.kind, record.peer, class.flight);
        let head = self.head(input, from, output);
        let packet = &mut self.packets[head];
        let (bytes, credits) = (packet.bytes, packet.credits);
        let (flags, source, tail) = (packet.flags, packet.source, packet.tail);
        let busy = class.rate.serialisation(u64::from(bytes));
        packet.route = UNROUTED;
        let next = std::mem::replace(&mut packet.next, NIL);
        let done = self.now + busy;
        // When the packet has left its buffer.
        let mut left = done;
        if self.speedup > 100 {
            // Later than now, however fast: what a grant does is not seen at its own instant.
            let crossing = (busy * 100 / u64::from(self.speedup)).max(1);
            left = (self.now + crossing).max(tail);
        }
        let (upstream, local, still) = self.leave(input, from, output, lane, next, left);
        let record = &mut self.ports[port];
        record.free_at = done;
        let lane_at = usize::from(lane) % V;
        record.credits[lane_at] -= credits;
        record.turn[lane_at] = ((u32::from(local) + 1) % B::PORTS) as u8;
        if !still {
            record.waiters[lane_at].remove(local);
            if record.waiters[lane_at].is_empty() {
                record.waiting &= !(1 << lane);
            }
        }
        // The head that comes next asks for its own look.
        if record.waiting != 0 && done < record.wake_at {
            record.wake_at = done;
            self.wheel.push(Event { time: done, key: key(port, WAKE, 0), packet: 0 });
        }
        if F::ADAPTIVE {
            self.backlog[port] -= u32::from(credits);
        }
        if V > 1 && table != Table::Neither {
            self.arbiters[port].charge(&self.tables, table, u32::from(bytes));
        }
        if self.parameters.arbitration == InputArbitration::FlowFair {
            self.charge_fair(port, lane, source, bytes);
        }
        self.count_hop(flags);
        self.note_departed(port, lane, head);
        if O::ON {
            self.note_granted(port, bytes, busy);
        }
        if kind == Kind::Exit {
            self.eject(port, lane, head, done);
        } else {
            let time = self.now + flight;
            self.wheel.push(Event { time, key: key(peer, ARRIVE, lane), packet: head });
        }
        self.return_credits(upstream, from, credits, left + self.credit_delay);
        if next != NIL {
            if F::VOQ {
                let index = self.voq(input, usize::from(from), output);
                self.head_of_voq(input, index, next, left);
            } else {
                self.expose(input, from, next);
            }
        }
    }

    /// A grant of a packet with these flags.
    #[inline(always)]
    fn count_hop(&mut self, flags: u8) {
        self.totals.packet_hops += u64::from(flags & (ACK | CNP) == 0);
        self.totals.ack_hops += u64::from(flags & ACK != 0);
        if C::ON {
            self.totals.cnp_hops += u64::from(flags & CNP != 0);
        }
    }

    /// Takes the head of (input, from), which leaves by (output, lane), off its buffer. Returns the
    /// port that filled the buffer, the input's place among the waiters, and whether another lane
    /// of the input wants the same output and lane.
    #[inline(always)]
    fn leave(
        &mut self,
        input: u32,
        from: u8,
        output: u8,
        lane: u8,
        next: u32,
        left: u64,
    ) -> (u32, u8, bool) {
        let at = usize::from(from) % V;
        let still = if F::VOQ {
            let index = self.voq(input, at, output);
            self.voqs[index].head = next;
            (0..V).filter(|other| *other != at).any(|other| {
                let voq = &self.voqs[self.voq(input, other, output)];
                voq.head != NIL && voq.lane == lane
            })
        } else {
            let record = &self.ports[input];
            let wants = |other: usize| {
                record.head[other] != NIL
                    && record.output[other] == output
                    && record.lane[other] == lane
            };
            match V {
                1 => false,
                2 => wants((at + 1) % V),
                _ => (0..V).any(|other| other != at && wants(other)),
            }
        };
        let record = &mut self.ports[input];
        if !F::VOQ {
            record.head[at] = next;
        }
        record.ready[at] = left;
        (record.peer, record.local, still)
    }

    #[inline(always)]
    pub(crate) fn note_granted(&mut self, port: u32, bytes: u16, busy: u64) {
        let since = std::mem::replace(&mut self.blocked_since[port as usize], NEVER);
        if since != NEVER {
            self.observer.on_waited(since, self.now, port);
        }
        self.observer.on_granted(self.now, port, u32::from(bytes), busy);
    }

    /// Nothing can go: the port is looked at again at `earliest`; `short` if for want of credits.
    pub(crate) fn hold(&mut self, port: u32, short: bool, earliest: u64) {
        if O::ON && short {
            let since = &mut self.blocked_since[port as usize];
            *since = (*since).min(self.now);
        }
        if earliest != NEVER {
            self.wake(port, earliest);
        }
    }

    /// The last link: the packet is in the host's buffer at `tail` and in its memory when drained.
    #[inline(always)]
    fn eject(&mut self, port: u32, lane: u8, id: u32, sent: u64) {
        let host = self.ports[port].peer;
        let rank = self.ports[host].node;
        let packet = self.packets[id];
        let tail = sent + self.parameters.cable_delay.0;
        let done = match self.drain {
            None => tail,
            Some(rate) => {
                let adapter = &mut self.adapters[rank];
                let done = tail.max(adapter.drained_at) + rate.serialisation(packet.bytes.into());
                adapter.drained_at = done;
                done
            }
        };
        if O::ON {
            self.observer.on_received(host, u32::from(packet.bytes));
        }
        self.return_credits(port, lane, packet.credits, done + self.credit_delay);
        if C::ON || packet.flags & (ACK | RELIABLE | TOLD) != 0 {
            let key = key(host, DELIVER, lane);
            self.wheel.push(Event { time: done, key, packet: id });
        } else {
            self.complete(rank, id, done);
        }
    }
}
