//! Messages, from being posted to being over.

use clearlane_ranks::{Envelope, Kind};

/// No message.
pub(crate) const NIL: u32 = u32::MAX;

/// What a message means at its destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meaning {
    /// Nothing: an RDMA WRITE, which nobody is told of.
    Data,
    /// A two-sided message.
    Message(Envelope),
    /// An RDMA READ: so many bytes are to be sent to this rank, which knows them by a token.
    Request { reader: u32, token: u32, bytes: u64 },
    /// What a rank reads.
    Response { reader: u32, token: u32 },
}

impl Meaning {
    /// Whether it carries no payload of a program.
    pub(crate) const fn is_control(&self) -> bool {
        match self {
            Meaning::Data | Meaning::Response { .. } => false,
            Meaning::Request { .. } => true,
            Meaning::Message(envelope) => !matches!(envelope.kind, Kind::Eager),
        }
    }
}

/// The two ends of a message, and the way between them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Ends {
    /// Port of the source, among all ports of hosts.
    pub(crate) from: u32,
    /// Port of the destination.
    pub(crate) to: u32,
    /// LID offset.
    pub(crate) path: u8,
}

/// One message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub(crate) ends: Ends,
    /// Hosts.
    pub(crate) source: u32,
    pub(crate) destination: u32,
    /// When it was posted, ps; a response is as old as its request.
    pub(crate) born: u64,
    /// Bytes besides headers.
    pub(crate) bytes: u64,
    /// Bytes with the headers of all its packets.
    pub(crate) wire: u64,
    /// Packets that it would travel in.
    pub(crate) packets: u64,
    pub(crate) group: u16,
    /// Of a reliable connection.
    pub(crate) reliable: bool,
    /// Lane at its adapter, where messages that wait are counted.
    pub(crate) lane: u8,
    /// Idle time after each packet, in thousandths of what that takes on the link.
    pub(crate) gap: u32,
    pub(crate) meaning: Meaning,
    /// The rank that waits for it to have left for good, by its place, and by which token.
    pub(crate) waiter: Option<(u32, u32)>,
    /// When its first byte left.
    pub(crate) begun: u64,
    /// From its last byte leaving to its last byte being there.
    pub(crate) latency: u64,
    /// The next one of its send queue.
    pub(crate) next: u32,
    /// What is still to happen: its arrival, and its having left for good.
    pub(crate) pending: u8,
}

/// All messages that are not over, by number.
#[derive(Default)]
pub(crate) struct Messages {
    all: Vec<Message>,
    /// Numbers that are free, the next one last.
    free: Vec<u32>,
}

impl Messages {
    pub(crate) fn insert(&mut self, message: Message) -> u32 {
        if let Some(number) = self.free.pop() {
            self.all[number as usize] = message;
            return number;
        }
        self.all.push(message);
        self.all.len() as u32 - 1
    }

    pub(crate) fn get(&self, number: u32) -> &Message {
        &self.all[number as usize]
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> &mut Message {
        &mut self.all[number as usize]
    }

    /// A part of what is to happen to a message has happened: its number is free after the last.
    pub(crate) fn settle(&mut self, number: u32) {
        let message = &mut self.all[number as usize];
        message.pending -= 1;
        if message.pending == 0 {
            self.free.push(number);
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.all.len() - self.free.len()
    }
}
