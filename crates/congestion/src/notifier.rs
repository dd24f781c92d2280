//! At the destination: what goes back to the source.

use clearlane_ib::{Picoseconds, Saved, StateError};

/// A data packet that has arrived whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrived {
    /// Whether a switch has set FECN.
    pub fecn: bool,
    /// Whether it belongs to a reliable connection, whose ACKs can carry BECN.
    pub reliable: bool,
}

/// What the destination sends the source besides what the transport asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notification {
    /// Nothing.
    None,
    /// BECN on the next ACK of the queue pair. Only for reliable connections.
    BecnOnAck,
    /// A congestion notification packet.
    Cnp,
}

/// Decides about one queue pair's arrivals.
pub trait Notifier: Send {
    /// What follows from a packet.
    fn on_arrived(&mut self, now: Picoseconds, packet: &Arrived) -> Notification;

    /// What has to be kept to go on later.
    fn save(&self) -> Saved;

    /// Goes on where `saved` left off. Fails if it stems from another mechanism or version.
    fn load(&mut self, saved: &Saved) -> Result<(), StateError>;
}
