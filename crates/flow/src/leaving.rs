//! How messages leave: send queues, their flows, and the rates of these.

use crate::events::Event;
use crate::flows::{Flow, FlowNumber};
use crate::links::{Limits, NONE, bytes_per_picosecond};
use crate::messages::{Ends, Meaning};
use crate::network::{NEVER, Network};
use crate::queues::{QueueKey, State};
use crate::recorder::Amount;
use clearlane_ib::wire;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

impl Network {
    /// A message is ready: it joins its send queue.
    pub(crate) fn enqueue(&mut self, number: u32) {
        let message = self.messages.get(number);
        let responses = matches!(message.meaning, Meaning::Response { .. });
        let key = match self.settings.single_fifo {
            false => QueueKey { ends: message.ends, group: message.group, responses },
            true => {
                let ends = Ends { to: u32::MAX, path: 0, ..message.ends };
                QueueKey { ends, group: 0, responses: false }
            }
        };
        let queue = self.queues.push(key, &mut self.messages, number);
        if self.queues.get(queue).state == State::Idle {
            self.activate(queue);
        }
    }

    /// A queue that has messages is worked on, or waits in line.
    fn activate(&mut self, queue: u32) {
        if self.queues.take_engine(queue) {
            self.start(queue);
        }
    }

    /// The first message of a queue that is worked on becomes a flow.
    fn start(&mut self, queue: u32) {
        let Some(number) = self.queues.head(queue) else { return };
        let message = *self.messages.get(number);
        let at = self.way(message.ends);
        let way = self.ways.get(at);
        self.route.clear();
        self.route.extend_from_slice(&way.channels);
        let latency = self.latency(way.switches());
        let Limits { dma, memory: reads, .. } = self.links.limits[message.source as usize];
        let Limits { drain, memory: writes, .. } = self.links.limits[message.destination as usize];
        self.route.extend([dma, reads, drain, writes].into_iter().filter(|limit| *limit != NONE));
        let flow =
            Flow::new(queue, message.wire, self.cap(message.ends.from, message.gap), self.now);
        let flow = self.flows.begin(flow, &self.route);
        self.queues.get_mut(queue).state = State::Leaving(flow);
        let message = self.messages.get_mut(number);
        (message.begun, message.latency) = (self.now, latency);
        self.has_begun(flow);
        self.has_changed();
    }

    /// The most that a message has which leaves gaps, in bytes a picosecond.
    fn cap(&self, port: u32, gap: u32) -> f64 {
        if gap == 0 {
            return f64::INFINITY;
        }
        let channel = self.links.injection[port as usize];
        let rate = bytes_per_picosecond(self.links.channels[channel as usize].rate);
        rate / (1.0 + f64::from(gap) / 1000.0)
    }

    /// A flow has its first rate.
    fn has_begun(&mut self, flow: FlowNumber) {
        let of = &self.flows.all[flow as usize];
        self.ends_per_picosecond += of.ends_per_picosecond();
        self.ends.push(Reverse((of.end(), flow)));
    }

    /// The last byte of a flow leaves now, if it is that of any.
    pub(crate) fn end_one(&mut self) -> bool {
        match self.ends.peek() {
            Some(Reverse((time, _))) if *time <= self.now => {}
            _ => return false,
        }
        let Some(Reverse((_, flow))) = self.ends.pop() else { return false };
        let of = self.flows.all[flow as usize];
        let queue = of.queue;
        let Some(number) = self.queues.head(queue) else { return false };
        self.queues.pop(queue, &self.messages);
        self.note_left(number);
        self.ends_per_picosecond -= of.ends_per_picosecond();
        let makes_way = self.queues.makes_way(queue);
        let next = self.queues.head(queue).filter(|_| !makes_way);
        if let Some(next) = next
            && self.goes_on(number, next, flow)
        {
            return true;
        }
        self.flows.end(flow);
        self.has_changed();
        match next {
            Some(_) => self.start(queue),
            None => self.rest(queue),
        }
        true
    }

    /// The next message of a queue takes over the flow of the one before, if it goes the same way:
    /// no rate changes.
    fn goes_on(&mut self, before: u32, next: u32, flow: FlowNumber) -> bool {
        let (old, new) = (*self.messages.get(before), self.messages.get_mut(next));
        if (old.ends, old.gap) != (new.ends, new.gap) {
            return false;
        }
        (new.begun, new.latency) = (self.now, old.latency);
        let of = &mut self.flows.all[flow as usize];
        (of.left, of.bytes, of.since) = (new.wire as f64, new.wire as f64, self.now);
        self.has_begun(flow);
        true
    }

    /// A queue whose message has left makes way for those in line.
    fn rest(&mut self, queue: u32) {
        let next = self.queues.free_engine(queue);
        if let Some(next) = next {
            self.activate(next);
        }
        match self.queues.head(queue) {
            Some(_) => self.activate(queue),
            None => self.queues.let_go(queue),
        }
    }

    /// The last byte of a message has left.
    fn note_left(&mut self, number: u32) {
        let now = self.now;
        let message = self.messages.get(number);
        let (arrives, message) = (now + message.latency, *message);
        self.backlog.leaves(message.ends.from, message.lane);
        self.events.push(arrives, Event::Arrived(number));
        if message.waiter.is_some() {
            // A datagram has left for good as it leaves; on a connection the ACK comes back first.
            let channel = self.links.injection[message.ends.to as usize];
            let rate = self.links.channels[channel as usize].rate;
            let back = message.latency + rate.serialisation(wire::RC_ACK.into());
            let sent = if message.reliable { arrives + back } else { now };
            self.events.push(sent, Event::Sent(number));
        }
        let amount =
            Amount { wire: message.wire, payload: message.bytes, packets: message.packets };
        let at = self.way(message.ends);
        self.note_on_way(at, (message.begun, now), amount);
    }

    /// A flow has begun or ended: rates are computed anew, at once or with those of others.
    fn has_changed(&mut self) {
        let (share, flows) = (self.batching.share, self.flows.count());
        let span = match flows <= self.batching.exact_flows || self.ends_per_picosecond <= 0.0 {
            true => 0,
            false => (share * flows as f64 / self.ends_per_picosecond) as u64,
        };
        self.rates_due = self.rates_due.min(self.now.saturating_add(span));
    }

    /// Computes rates anew, if it is time to.
    pub(crate) fn settle_rates(&mut self) {
        if self.rates_due > self.now {
            return;
        }
        self.rates_due = NEVER;
        self.filling.fill(&mut self.flows);
        self.ends_per_picosecond = 0.0;
        let mut ends = std::mem::take(&mut self.ends).into_vec();
        ends.clear();
        for number in &self.flows.live {
            let (flow, rate) = (&mut self.flows.all[*number as usize], self.filling.rate(*number));
            // One whose rate stays is not rounded again.
            if flow.rate != rate {
                flow.set_rate(self.now, rate);
            }
            self.ends_per_picosecond += flow.ends_per_picosecond();
            ends.push(Reverse((flow.end().max(self.now), *number)));
        }
        self.ends = BinaryHeap::from(ends);
    }
}
