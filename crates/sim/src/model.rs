//! What instances of the simulator differ in. Statically dispatched: what a run does not use, its
//! instance does not have.

use crate::forwarding::Forwarding;
use crate::outcome::ControlRecord;
use crate::packet::{
    Envelope, Flags, FlowIndex, Packet, PacketIndex, QueuePairIndex, ReactorIndex, Route, Waiter,
};
use crate::port::PortIndex;
use crate::port_set::PortSet;
use crate::saved::{Parts, SavedOutput, SavedPacket, SavedReactors, TakePacket, Whole};
use crate::{Hosts, SetupError};
use clearlane_fabric::Fabric;

/// One instance.
pub(crate) trait Model: Sized + Send + 'static {
    /// Sets of ports of one switch.
    type Ports: PortSet;
    /// How switches forward.
    type Forwarder: Forwarder;
    /// Congestion control at switch outputs.
    type Markers: Markers;
    /// Congestion control at adapters.
    type Reactors: Reactors;
    /// The queues of an input lane of a switch.
    const QUEUES: Queues;
    /// Whether devices have limits of their own: crossbars (reads, stages that are paid again,
    /// buffers behind), adapters (several ports, a memory bus). Without, a packet waits for links
    /// and buffers only, and nobody asks for anything else.
    const LIMITED: bool;
}

/// The kinds of queues of an input lane of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Queues {
    /// One queue.
    Fifo,
    /// A queue for each output (virtual output queues).
    Voq,
    /// Either, as the run's parameters say.
    AsSet,
}

/// Whether switches choose among several outputs for a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Adaptive {
    Never,
    Always,
    /// As the run's tables say.
    AsSet,
}

/// The choice of output port and lane. Read by all partitions, so it numbers switches as the
/// fabric does.
pub(crate) trait Forwarder: Sized + Send + Sync + 'static {
    /// Whether switches choose among several outputs.
    const ADAPTIVE: Adaptive = Adaptive::Never;

    /// The forwarder of a run. Fails if this kind does not forward by `forwarding`, or if the
    /// fabric lacks what the rule needs.
    fn build(
        fabric: &Fabric,
        forwarding: Forwarding<'_>,
        hosts: &Hosts,
    ) -> Result<Self, SetupError>;

    /// Whether this kind forwards by `forwarding`.
    fn suits(forwarding: &Forwarding<'_>) -> bool;

    /// Whether switches choose in this run.
    fn chooses(&self) -> bool {
        Self::ADAPTIVE == Adaptive::Always
    }

    /// The output (port number − 1) and lane of `packet`, which came in by port `input` (port
    /// number − 1) on `lane` of the switch with this index.
    fn route(&self, switch: u32, input: u8, lane: u8, packet: &Packet) -> Route;

    /// What packets to `dlid` carry so that `route` need not look it up at every switch.
    fn hint(&self, dlid: u32) -> u64;

    /// The outputs among which the switch may choose for `packet`, none if `route` alone decides.
    fn choices(&self, _switch: u32, _packet: &Packet) -> &[u8] {
        &[]
    }

    /// The lane of `packet` at an output the switch chose.
    fn lane(&self, _switch: u32, _input: u8, lane: u8, _output: u8, _packet: &Packet) -> u8 {
        lane
    }
}

/// Markers at the outputs of the switches of a partition. All do nothing without mechanisms.
pub(crate) trait Markers: Send {
    /// Whether there are any.
    const ON: bool;
    /// A packet waits for (output, lane) from now on.
    fn on_queued(&mut self, _now: u64, _output: PortIndex, _lane: u8, _bytes: u16) {}
    /// A packet that waited for (output, lane) waits elsewhere.
    fn on_moved_away(&mut self, _now: u64, _output: PortIndex, _lane: u8, _bytes: u16) {}
    /// (output, lane) has a packet and no credits for it.
    fn on_starved(&mut self, _output: PortIndex, _lane: u8) {}
    /// Bytes that wait for (output, lane), where that is known.
    fn queued(&self, _output: PortIndex, _lane: u8) -> Option<u64> {
        None
    }
    /// What they know, by port and lane.
    fn save(&self) -> Vec<SavedOutput> {
        Vec::new()
    }
    /// They know it again. Nothing if it is not theirs.
    fn load(&mut self, saved: &[SavedOutput]) -> Option<()> {
        saved.is_empty().then_some(())
    }
    /// A packet departs from (output, lane). Returns whether it is marked, if it `may` be.
    fn on_departed(&mut self, _: u64, _: PortIndex, _lane: u8, _bytes: u16, _may: bool) -> bool {
        false
    }
}

/// No mechanisms.
pub(crate) struct Uncontrolled;

impl Markers for Uncontrolled {
    const ON: bool = false;
}

/// What a source sends on one path: what mechanisms know a queue pair by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct FlowKey {
    pub(crate) source: u32,
    pub(crate) destination: u32,
    pub(crate) group: u16,
    pub(crate) path: u8,
    pub(crate) sl: u8,
}

/// A stripe of a message that has been divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StripePlan {
    pub(crate) path: u8,
    pub(crate) bytes: u64,
}

/// A message that has been divided, or numbered at least.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    pub(crate) stripes: Vec<StripePlan>,
    /// What the sender knows the message by.
    pub(crate) whole: u32,
    /// Its number among those with the same ends.
    pub(crate) number: u32,
}

/// What the arrival of the last packet of a stripe means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// Others of its message are missing.
    Part,
    /// Its message is complete and waits for earlier ones.
    Early,
    /// Its message is next.
    InTurn,
}

/// Reactors and notifiers at the adapters of a partition, known by slot, and the order of messages
/// over several paths. All do nothing without mechanisms.
pub(crate) trait Reactors: Send + Sized {
    /// Whether there are any.
    const ON: bool;
    /// A flow with this key has its first message at `now`. Whoever asks remembers the answer:
    /// nobody asks twice.
    fn flow(&mut self, _now: u64, _slot: u32, _key: FlowKey) -> Governed {
        Governed::NONE
    }
    /// Splits a message over paths; nothing if no mechanism chooses paths.
    fn plan(
        &mut self,
        _now: u64,
        _slot: u32,
        _key: FlowKey,
        _bytes: u64,
        _waiter: Option<Waiter>,
    ) -> Option<Plan> {
        None
    }
    /// The earliest time at which the next packet of a flow may leave.
    fn next_injection(&self, _of: Governed) -> u64 {
        0
    }
    /// The first number that is shown of a flow by what decides when it sends.
    fn state(&self, _of: Governed) -> Option<u64> {
        None
    }
    /// Whether, until something is heard about a flow, its packets may leave at any time from `now`
    /// on, and the reactor that decides when need not be told of them.
    fn is_unlimited(&self, _now: u64, _of: Governed) -> bool {
        true
    }
    /// A packet of a flow begins to leave. `unlimited` says whether the flow was unlimited before.
    /// Returns whether it is now.
    fn on_sent(&mut self, _now: u64, _of: Governed, _unlimited: bool, _: Leaving) -> bool {
        true
    }
    /// BECN has arrived for a flow, with these flags.
    fn on_becn(&mut self, _now: u64, _of: Governed, _flags: Flags) {}
    /// So many further packets of a flow are acknowledged: by an ACK, or by what a READ has read,
    /// the time of which is that of a transfer. Returns whether that means anything to a reactor.
    fn on_acknowledged(&mut self, _now: u64, _of: Governed, _packets: u32, _by_ack: bool) -> bool {
        false
    }
    /// A stripe posted at `born` has been acknowledged whole.
    fn on_completed(&mut self, _now: u64, _of: Governed, _bytes: u64, _born: u64) {}
    /// A stripe has left for good. Returns who waits for its message if it was the last one.
    fn on_stripe_sent(&mut self, _whole: u32) -> Option<Waiter> {
        None
    }
    /// A marked data packet has arrived whole at `slot`. Returns the BECN flags that go on the next
    /// ACK of its queue pair, and those that go in a CNP.
    fn on_marked(&mut self, _now: u64, _slot: u32, _packet: &Packet) -> (Flags, Flags) {
        (0, 0)
    }
    /// The last packet of a stripe has arrived at `slot`.
    fn on_arrived(&mut self, _: u32, _: PacketIndex, _: &Packet, _: &Envelope) -> Arrival {
        Arrival::InTurn
    }
    /// The last packet of the next message from where `packet` came, if it is there.
    fn next_in_turn(&mut self, _slot: u32, _packet: &Packet) -> Option<PacketIndex> {
        None
    }
    /// Whether messages are handed on in the order they were posted in, whatever their paths.
    fn has_order(&self) -> bool {
        false
    }
    /// Packets that wait for earlier messages: they have left the network.
    fn early(&self) -> Vec<PacketIndex> {
        Vec::new()
    }
    /// Whether a slot has anything to do by `now`: a timer to run, a queue to be released.
    fn is_due(&self, _now: u64, _slot: u32) -> bool {
        false
    }
    /// Runs the timers of a slot up to `now`. Returns whether there were any.
    fn run_timers(&mut self, _now: u64, _slot: u32) -> bool {
        false
    }
    /// Has a send queue, whose last packet left at `injected_at`, wait until `time`. `rank` orders
    /// queues that wait for the same.
    fn pause(
        &mut self,
        _slot: u32,
        _queue: QueuePairIndex,
        _injected_at: u64,
        _: QueueRank,
        _time: u64,
    ) {
    }
    /// A send queue whose next packet may leave.
    fn released(&mut self, _now: u64, _slot: u32) -> Option<QueuePairIndex> {
        None
    }
    /// One of the times at which the slot served last will be due, as found since the last call.
    /// Whoever asks schedules a wake-up for each before another slot is served.
    fn take_due(&mut self) -> Option<u64> {
        None
    }
    /// What they know. `rank` is the number of the rank at a place.
    fn save(
        &self,
        _: &Whole<'_>,
        _rank: &dyn Fn(u32) -> u32,
        _packet: &dyn Fn(PacketIndex) -> SavedPacket,
    ) -> SavedReactors {
        SavedReactors::default()
    }
    /// They know again what is theirs of it. Nothing if it cannot be.
    fn load(&mut self, _: &SavedReactors, _: &Parts<'_>, _: TakePacket<'_>) -> Option<()> {
        Some(())
    }
    /// How many flows, reactors and divided messages have numbers.
    fn counts(&self) -> (u32, u32, u32) {
        (0, 0, 0)
    }
    /// The number here of a divided message, by its number in the whole run.
    fn load_whole(
        &mut self,
        _: &SavedReactors,
        _number: u32,
        _place: &dyn Fn(u32) -> Option<u32>,
    ) -> Option<u32> {
        None
    }
    /// How far slices reach that grow with the run; 0 without.
    fn grown_to(&self) -> u64 {
        0
    }
    /// Has slices that grow reach `reach`.
    fn grow(&mut self, _reach: u64) {}
    /// What the mechanisms did, in slices that reach `reach` if they grow.
    fn finish(self, _reach: u64) -> ControlRecord {
        ControlRecord::default()
    }
}

/// A packet that begins to leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Leaving {
    /// Bytes on the wire.
    pub(crate) bytes: u16,
    /// How long it occupies the link, in ps.
    pub(crate) busy: u64,
    /// Whether it will be acknowledged.
    pub(crate) reliable: bool,
}

/// What a send queue remembers of the mechanisms that govern its flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Governed {
    /// `NIL` without mechanisms.
    pub(crate) flow: FlowIndex,
    /// The reactor that decides when packets are injected, `NIL` if none does.
    pub(crate) by: ReactorIndex,
    /// The pair by which that one knows the flow.
    pub(crate) pair: u32,
}

impl Governed {
    /// No mechanisms.
    pub(crate) const NONE: Governed =
        Governed { flow: FlowIndex::NIL, by: ReactorIndex::NIL, pair: 0 };
}

/// What orders send queues of one adapter, whatever numbers they have: destination, flow group,
/// path.
pub(crate) type QueueRank = (u32, u16, u8);

impl Reactors for Uncontrolled {
    const ON: bool = false;
}
