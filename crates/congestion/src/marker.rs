//! At a switch output: which packets leave with FECN set.

use clearlane_ib::{Bytes, Picoseconds, Saved, StateError};

/// What a marker sees of its output and lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutputQueue {
    /// Bytes that wait for the output and lane, over all inputs of the switch, without the packet
    /// in service. Where the switch has yet to choose a packet's output, it waits for that of the
    /// forwarding table.
    pub queued: Bytes,
    /// Whether the lane had a packet and no credits for it at any time since the last departure.
    pub starved: bool,
}

/// A packet about to leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Departing {
    /// Bytes on the wire.
    pub bytes: u32,
}

/// Decides which packets of one output and lane are marked. ACKs and CNPs are never asked about.
pub trait Marker: Send {
    /// A packet has joined the queue, or left it. Not told while `idle_up_to` covers the queue.
    fn on_changed(&mut self, now: Picoseconds, queue: &OutputQueue);

    /// Whether `packet`, which departs now and is no longer in `queue`, leaves with FECN set.
    /// `draw` is 64 uniform bits of this output and lane. Not asked while `idle_up_to` covers the
    /// queue: packets cannot be counted here.
    fn mark(
        &mut self,
        now: Picoseconds,
        queue: &OutputQueue,
        packet: &Departing,
        draw: u64,
    ) -> bool;

    /// The largest queue up to which, from now on, it marks nothing and learns nothing: until the
    /// queue is longer, neither of the two above need be called. Nothing if it wants every call.
    fn idle_up_to(&self) -> Option<Bytes> {
        None
    }

    /// What has to be kept to go on later.
    fn save(&self) -> Saved;

    /// Goes on where `saved` left off. Fails if it stems from another mechanism or version.
    fn load(&mut self, saved: &Saved) -> Result<(), StateError>;
}
