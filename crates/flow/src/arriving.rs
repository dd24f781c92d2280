//! What happens when messages arrive, and what has arrived in the end.

use crate::messages::{Ends, Meaning, Message};
use crate::network::Network;
use crate::recorder::{Account, Amount};
use clearlane_ranks::Envelope;

/// What a rank is told: its number in the run is its place, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    /// A two-sided message has come.
    Arrived(Envelope),
    /// What it reads has come: the rank, and its token.
    Read(u32, u32),
    /// A message of its own has left for good: the rank, and its token.
    Sent(u32, u32),
}

impl Network {
    /// A message is there whole. Returns what a rank is told of it.
    pub(crate) fn arrive(&mut self, number: u32) -> Option<Told> {
        let message = *self.messages.get(number);
        self.messages.settle(number);
        self.totals.packets_delivered += message.packets;
        let is_control = message.meaning.is_control();
        let payload = if is_control { 0 } else { message.bytes };
        let amount = Amount { wire: message.wire, payload, packets: message.packets };
        self.note_delivered(&message, (message.begun + message.latency, self.now), amount);
        if !is_control {
            self.totals.messages_delivered += 1;
            self.payload.1 += message.bytes;
            self.recorder.completed(self.now, message.group, self.now - message.born);
        }
        match message.meaning {
            Meaning::Data => None,
            Meaning::Message(envelope) => Some(Told::Arrived(envelope)),
            Meaning::Response { reader, token } => Some(Told::Read(reader, token)),
            Meaning::Request { reader, token, bytes } => {
                self.respond(&message, Meaning::Response { reader, token }, bytes);
                None
            }
        }
    }

    /// A message has left for good. Returns what its rank is told.
    pub(crate) fn has_left_for_good(&mut self, number: u32) -> Option<Told> {
        let waiter = self.messages.get(number).waiter;
        self.messages.settle(number);
        waiter.map(|(at, token)| Told::Sent(at, token))
    }

    /// An RDMA READ has come: what it asks for is sent by the way it came, as old as it is.
    fn respond(&mut self, request: &Message, meaning: Meaning, bytes: u64) {
        let Ends { from, to, path } = request.ends;
        let ends = Ends { from: to, to: from, path };
        let way = (request.destination, request.source, ends);
        let response = self.message(way, (request.born, bytes, request.group), meaning);
        self.admit(Message { gap: request.gap, ..response }, self.now);
    }

    fn note_delivered(&mut self, message: &Message, span: (u64, u64), amount: Amount) {
        let Message { group, source, destination, .. } = *message;
        self.recorder.delivered(Account { group, source, destination }, span, amount);
    }

    /// Notes what has gone and was not noted: of messages under way, in whole packets, and what has
    /// passed by them.
    pub(crate) fn note_rest(&mut self) {
        self.note_partly_gone();
        let recorder = &mut self.recorder;
        self.ways.unnoted().for_each(|way| recorder.passed(way));
    }

    fn note_partly_gone(&mut self) {
        let mut live = self.flows.live.clone();
        live.sort_unstable();
        for flow in live {
            let of = self.flows.all[flow as usize];
            let Some(number) = self.queues.head(of.queue) else { continue };
            let message = *self.messages.get(number);
            let gone = (of.bytes - of.left_at(self.now)).max(0.0) as u64;
            let (payload, header) = self.settings.packet(message.reliable);
            // The last packet has not left.
            let packets = (gone / (payload + header)).min(message.packets - 1);
            if packets == 0 {
                continue;
            }
            let (payload, wire) = (packets * payload, packets * (payload + header));
            let amount = Amount { wire, payload, packets };
            let at = self.way(message.ends);
            self.note_on_way(at, (message.begun, self.now), amount);
            self.totals.packets_delivered += packets;
            let from = (message.begun + message.latency).min(self.now);
            self.note_delivered(&message, (from, self.now), amount);
        }
    }

    /// Panics where something is left of a network at rest, or not all has arrived that was posted:
    /// a fault of this program.
    pub(crate) fn audit_at_rest(&self) {
        assert_eq!(self.flows.count(), 0, "flows at rest");
        assert_eq!(self.messages.count(), 0, "messages at rest");
        let totals = &self.totals;
        assert_eq!(totals.packets_injected, totals.packets_delivered, "packets at rest");
        assert_eq!(self.payload.0, self.payload.1, "payload posted and delivered");
    }
}
