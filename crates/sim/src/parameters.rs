//! What devices are made of: delays, buffers and rates, and all that may be said of each of them.

use crate::ranges;
use clearlane_ib::{BitsPerSecond, Bytes, Picoseconds, wire};
pub use clearlane_ranks::Progress;
use clearlane_ranks::Settings;
use clearlane_workload::Transport;
use std::ops::RangeInclusive;

/// How an adapter orders messages to different destinations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AdapterQueueing {
    /// One send queue per queue pair, per destination in open-loop patterns, served round-robin.
    PerDestination,
    /// One first-in-first-out queue for everything the host sends.
    SingleFifo,
}

/// Which input a switch output serves next within a virtual lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InputArbitration {
    /// Round-robin among input ports.
    RoundRobin,
    /// The packet whose message was posted first.
    OldestFirst,
    /// The source that has been served least, by self-clocked fair queueing.
    FlowFair,
}

/// How packets wait at a switch input, within a virtual lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InputQueueing {
    /// One queue, first in, first out: a head that cannot go holds up all behind it.
    Fifo,
    /// A queue per output in one shared buffer.
    Voq,
}

/// In which order messages of one source and flow group that a mechanism divides over paths are
/// handed on at their destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageOrder {
    /// In the order of posting: a complete message waits for those before it.
    Posted,
    /// In the order in which they are complete.
    Relaxed,
}

/// For how many outputs a switch reads one input port at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CrossbarReads {
    /// For as many as its lanes (with virtual output queues: its queues) have packets for.
    Lane,
    /// For one.
    Port,
}

/// What the receive buffer of a port belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BufferPer {
    /// Each lane has one of the size given.
    Lane,
    /// The port has one of that size, divided evenly among the data lanes in use.
    Port,
}

/// The parameters of switches and adapters, the same for all devices of a run. Which values they
/// may have, `ranges` says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// Path MTU: payload bytes of a full packet; 256, 512, 1024, 2048 or 4096.
    pub mtu: u32,
    /// Header bytes per data packet; nothing means those of the transport (RC 26, UD 34).
    pub header: Option<u32>,
    /// Bytes of a packet, headers included, that `mtu` may not exceed; nothing means those of the
    /// MTU and its headers.
    pub packet_max: Option<u32>,
    /// Rate of every link; nothing means each link's own width and speed.
    pub link_rate: Option<BitsPerSecond>,
    /// Time from a packet's head entering a switch to the earliest departure: routing and crossing.
    pub switch_delay: Picoseconds,
    /// Part of `switch_delay`: virtual-channel allocation, which a head that lacked credits pays
    /// again.
    pub va_delay: Picoseconds,
    /// Part of `switch_delay`: switch allocation, which a head that lacked credits pays again
    /// unless it has crossed already.
    pub sa_delay: Picoseconds,
    /// One-way delay of every cable.
    pub cable_delay: Picoseconds,
    /// Added to a credit's way back: how long a receiver takes to announce freed space.
    pub credit_delay: Picoseconds,
    /// Receive buffer of every port, per lane or divided among its lanes; each lane has at least
    /// 1 MTU with headers.
    pub buffer: Bytes,
    /// Whether `buffer` is the size of a lane's buffer or of a port's.
    pub buffer_per: BufferPer,
    /// Time from the post of a message until its first packet is ready; a CPU is busy meanwhile.
    pub send_overhead: Picoseconds,
    /// Time from a message's arrival until its rank has it; its CPU is busy for this time.
    pub receive_overhead: Picoseconds,
    /// CPU time for each stripe of a message after the first.
    pub stripe_overhead: Picoseconds,
    /// CPU time for each test and probe of a program.
    pub poll_overhead: Picoseconds,
    /// Payload up to which a two-sided message is sent at once; a longer one is announced and read.
    pub eager_max: Bytes,
    /// Payload of a request to send and of a FIN.
    pub control_bytes: Bytes,
    /// Who goes on with a long message while its rank computes.
    pub progress: Progress,
    /// RDMA READs that a queue pair may have under way.
    pub read_depth: u32,
    /// Cabled ports of an adapter that carry traffic; nothing means all, 8 at most.
    pub adapter_ports: Option<u32>,
    /// Rate of a host's memory bus, which what its adapter reads and what it stores share; nothing
    /// means never a limit.
    pub memory_rate: Option<BitsPerSecond>,
    /// In which order messages that a mechanism divides are handed on.
    pub message_order: MessageOrder,
    /// Rate at which an adapter reads host memory; nothing means never a limit.
    pub dma_rate: Option<BitsPerSecond>,
    /// Rate at which an adapter drains its receive buffers; nothing means never a limit.
    pub drain_rate: Option<BitsPerSecond>,
    /// How many send queues a port works on at a time; nothing means all.
    pub injection_engines: Option<u32>,
    /// Packets of an RC queue pair that may be unacknowledged.
    pub outstanding: u32,
    /// An ACK for every so many packets and for the last of a message; at most `outstanding`.
    pub ack_coalescing: u32,
    /// Messages that wait at an adapter on a lane up to which open-loop traffic is posted: what is
    /// drawn beyond is left out. Nothing means that all is posted.
    pub source_backlog: Option<u32>,
    /// Order among messages of one adapter.
    pub queueing: AdapterQueueing,
    /// Order among inputs of one switch output.
    pub arbitration: InputArbitration,
    /// How packets wait at a switch input.
    pub input_queueing: InputQueueing,
    /// How fast a packet leaves its input buffer, in hundredths of the output link's rate. What the
    /// output has not sent yet waits behind the crossbar.
    pub crossbar_speedup: u32,
    /// For how many outputs an input port is read at a time.
    pub crossbar_reads: CrossbarReads,
    /// Bytes of the buffer behind the crossbar, of each lane of each output: nothing means that an
    /// output takes a packet only when its link is free.
    pub output_buffer: Option<u32>,
}

impl Parameters {
    /// Payload of a full packet, in bytes.
    pub fn payload_max(&self, transport: Transport) -> u32 {
        let room = |packet: u32| packet.saturating_sub(self.header_bytes(transport)).max(1);
        self.packet_max.map_or(self.mtu, |packet| self.mtu.min(room(packet)))
    }

    /// Payload of a full packet and its bytes besides.
    pub fn packet(&self, transport: Transport) -> (u32, u32) {
        (self.payload_max(transport), self.header_bytes(transport))
    }

    /// Bytes of the largest packet, headers included.
    pub fn packet_bytes_max(&self) -> u32 {
        let bytes = |(payload, header)| payload + header;
        bytes(self.packet(Transport::Rc)).max(bytes(self.packet(Transport::Ud)))
    }

    /// Bytes of a data packet besides its payload.
    pub fn header_bytes(&self, transport: Transport) -> u32 {
        self.header.unwrap_or(match transport {
            Transport::Rc => wire::RC_DATA,
            Transport::Ud => wire::UD_DATA,
        })
    }

    /// What the message-passing library of all ranks goes by.
    pub fn library(&self) -> Settings {
        Settings {
            send_overhead: self.send_overhead.0,
            receive_overhead: self.receive_overhead.0,
            stripe_overhead: self.stripe_overhead.0,
            poll_overhead: self.poll_overhead.0,
            eager_max: self.eager_max.0,
            control_bytes: self.control_bytes.0,
            overtaking: true,
            progress: self.progress,
        }
    }

    /// Receive buffer of each lane where so many are in use: whole credits if it is a share.
    pub fn lane_buffer(&self, lanes: u8) -> Bytes {
        let unit = u64::from(wire::CREDIT_UNIT);
        match self.buffer_per {
            BufferPer::Lane => self.buffer,
            BufferPer::Port => Bytes(self.buffer.0 / unit / u64::from(lanes.max(1)) * unit),
        }
    }
}

/// A parameter as experiments write it.
#[derive(Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Where its value comes from, unless a preset says more: "sourced: where" or "assumed: why".
    pub source: &'static str,
    /// What kind of value it is, which values it may have, and where it stands.
    pub access: Access,
}

/// A parameter's kind and place.
#[derive(Debug)]
pub enum Access {
    /// A time.
    Time(RangeInclusive<Picoseconds>, Place<Picoseconds>),
    /// A size.
    Size(RangeInclusive<Bytes>, Place<Bytes>),
    /// One of these sizes.
    SizeOf(&'static [u32], Place<u32>),
    /// A size, or a word for none.
    SizeOr(&'static str, RangeInclusive<Bytes>, Place<Option<u32>>),
    /// A rate, or a word for none.
    RateOr(&'static str, RangeInclusive<BitsPerSecond>, Place<Option<BitsPerSecond>>),
    /// A whole number.
    Count(RangeInclusive<u32>, Place<u32>),
    /// A whole number, or a word for none.
    CountOr(&'static str, RangeInclusive<u32>, Place<Option<u32>>),
    /// A number that is kept in hundredths.
    Hundredths(RangeInclusive<u32>, Place<u32>),
    /// One of these words, by its number.
    Word(&'static [&'static str], Place<usize>),
}

/// How a parameter is read and set.
#[derive(Debug)]
pub struct Place<T> {
    /// Reads it.
    pub get: fn(&Parameters) -> T,
    /// Sets it.
    pub set: fn(&mut Parameters, T),
}

macro_rules! at {
    ($field:ident) => {
        Place { get: |p| p.$field, set: |p, value| p.$field = value }
    };
    ($field:ident in $words:ident) => {
        Place {
            get: |p| $words.iter().position(|known| *known == p.$field).unwrap_or(0),
            set: |p, number| p.$field = $words[number % $words.len()],
        }
    };
}

const QUEUEING: [AdapterQueueing; 2] =
    [AdapterQueueing::PerDestination, AdapterQueueing::SingleFifo];
const ARBITRATION: [InputArbitration; 3] =
    [InputArbitration::RoundRobin, InputArbitration::OldestFirst, InputArbitration::FlowFair];
const INPUT_QUEUEING: [InputQueueing; 2] = [InputQueueing::Fifo, InputQueueing::Voq];
const CROSSBAR_READS: [CrossbarReads; 2] = [CrossbarReads::Lane, CrossbarReads::Port];
const BUFFER_PER: [BufferPer; 2] = [BufferPer::Lane, BufferPer::Port];
const PROGRESS: [Progress; 2] = [Progress::Call, Progress::Async];
const MESSAGE_ORDER: [MessageOrder; 2] = [MessageOrder::Posted, MessageOrder::Relaxed];

const NO_LIMIT: &str = "assumed: not a limit, so that the fabric is what is measured";

/// All parameters, in the order of reports.
pub const KEYS: &[Key] = &[
    Key {
        name: "mtu",
        summary: "payload of a full packet",
        source: "",
        access: Access::SizeOf(wire::MTUS, at!(mtu)),
    },
    Key {
        name: "header",
        summary: "bytes of headers and CRCs of a packet",
        source: "sourced: IBA vol. 1, 5.2, by transport",
        access: Access::SizeOr("transport", ranges::HEADER, at!(header)),
    },
    Key {
        name: "packet_max",
        summary: "bytes of a packet, headers included, where they bound its payload before the mtu",
        source: "sourced: IBA vol. 1, 7.7.8: the MTU bounds the payload, headers come on top",
        access: Access::SizeOr("mtu", ranges::PACKET_MAX, at!(packet_max)),
    },
    Key {
        name: "link_rate",
        summary: "data rate of every link",
        source: "sourced: IBA vol. 2, 5: each link's own width and speed",
        access: Access::RateOr("cable", ranges::RATE, at!(link_rate)),
    },
    Key {
        name: "switch_delay",
        summary: "head in to head out of an idle switch",
        source: "",
        access: Access::Time(ranges::DELAY, at!(switch_delay)),
    },
    Key {
        name: "va_delay",
        summary: "part of switch_delay: virtual-channel allocation, again after a wait for \
                  credits",
        source: "assumed: allocation is hidden",
        access: Access::Time(ranges::DELAY, at!(va_delay)),
    },
    Key {
        name: "sa_delay",
        summary: "part of switch_delay: switch allocation, again after a wait for credits",
        source: "assumed: allocation is hidden",
        access: Access::Time(ranges::DELAY, at!(sa_delay)),
    },
    Key {
        name: "cable_delay",
        summary: "propagation from one end of a cable to the other",
        source: "assumed: 5 m of cable at 5 ns/m",
        access: Access::Time(ranges::CABLE_DELAY, at!(cable_delay)),
    },
    Key {
        name: "credit_delay",
        summary: "buffer freed to credit usable, besides the cable",
        source: "assumed: credits are announced at once",
        access: Access::Time(ranges::DELAY, at!(credit_delay)),
    },
    Key {
        name: "buffer",
        summary: "receive buffer of every port, for each lane or for all together",
        source: "",
        access: Access::Size(ranges::BUFFER, at!(buffer)),
    },
    Key {
        name: "buffer_per",
        summary: "whether each lane has that buffer, or the lanes in use divide it evenly",
        source: "assumed: each lane has its own",
        access: Access::Word(&["lane", "port"], at!(buffer_per in BUFFER_PER)),
    },
    Key {
        name: "send_overhead",
        summary: "time from the post of a message to its first packet; the CPU is busy for this \
                  time",
        source: "",
        access: Access::Time(ranges::DELAY, at!(send_overhead)),
    },
    Key {
        name: "receive_overhead",
        summary: "time from a message's arrival until its rank has it; the CPU is busy for this \
                  time",
        source: "",
        access: Access::Time(ranges::DELAY, at!(receive_overhead)),
    },
    Key {
        name: "stripe_overhead",
        summary: "CPU time for each stripe of a message after the first",
        source: "assumed: as a message of its own",
        access: Access::Time(ranges::DELAY, at!(stripe_overhead)),
    },
    Key {
        name: "poll_overhead",
        summary: "CPU time for each test or probe of a program",
        source: "assumed: 50 ns, a look at a completion queue",
        access: Access::Time(ranges::DELAY, at!(poll_overhead)),
    },
    Key {
        name: "eager_max",
        summary: "payload up to which a program's message is sent at once; longer ones are read",
        source: "assumed: 8 KiB, as UCX is set by UCXX (RNDV_THRESH)",
        access: Access::Size(ranges::EAGER_MAX, at!(eager_max)),
    },
    Key {
        name: "control_bytes",
        summary: "payload of a request to send and of a FIN",
        source: "assumed: 64 B",
        access: Access::Size(ranges::CONTROL_BYTES, at!(control_bytes)),
    },
    Key {
        name: "progress",
        summary: "what continues a long message while its rank computes: the rank's next call, or \
                  an agent of its own",
        source: "assumed: the rank's next call, as of a library without a thread of its own",
        access: Access::Word(&["call", "async"], at!(progress in PROGRESS)),
    },
    Key {
        name: "read_depth",
        summary: "RDMA READs of a queue pair under way",
        source: "assumed: 16, a common adapter default",
        access: Access::Count(ranges::READ_DEPTH, at!(read_depth)),
    },
    Key {
        name: "adapter_ports",
        summary: "cabled ports of an adapter that carry traffic, the first ones",
        source: "assumed: the first, as where programs are bound to one port",
        access: Access::CountOr("all", ranges::ADAPTER_PORTS, at!(adapter_ports)),
    },
    Key {
        name: "memory_rate",
        summary: "memory bus of a host: what its adapter reads and what it stores share it",
        source: NO_LIMIT,
        access: Access::RateOr("unlimited", ranges::RATE, at!(memory_rate)),
    },
    Key {
        name: "message_order",
        summary: "order in which messages that a mechanism divides are handed on",
        source: "assumed: as posted, so that the end of a message is never there before another's",
        access: Access::Word(&["posted", "relaxed"], at!(message_order in MESSAGE_ORDER)),
    },
    Key {
        name: "dma_rate",
        summary: "how fast an adapter fetches from memory",
        source: NO_LIMIT,
        access: Access::RateOr("unlimited", ranges::RATE, at!(dma_rate)),
    },
    Key {
        name: "drain_rate",
        summary: "how fast an adapter stores what arrives",
        source: NO_LIMIT,
        access: Access::RateOr("unlimited", ranges::RATE, at!(drain_rate)),
    },
    Key {
        name: "injection_engines",
        summary: "queue pairs a port of an adapter serves at a time",
        source: NO_LIMIT,
        access: Access::CountOr("all", ranges::INJECTION_ENGINES, at!(injection_engines)),
    },
    Key {
        name: "outstanding",
        summary: "RC packets of a queue pair without an ACK",
        source: "sourced: IBA vol. 1, 9.7.2: half of the 24-bit packet sequence numbers",
        access: Access::Count(ranges::OUTSTANDING, at!(outstanding)),
    },
    Key {
        name: "ack_coalescing",
        summary: "RC packets per ACK, at most those outstanding",
        source: "assumed: an ACK per packet",
        access: Access::Count(ranges::OUTSTANDING, at!(ack_coalescing)),
    },
    Key {
        name: "source_backlog",
        summary: "messages that wait at an adapter on a lane up to which open-loop traffic is \
                  posted; what is drawn beyond is left out",
        source: "assumed: all that is offered is posted",
        access: Access::CountOr("unlimited", ranges::SOURCE_BACKLOG, at!(source_backlog)),
    },
    Key {
        name: "queueing",
        summary: "order in which an adapter sends",
        source: "sourced: IBA vol. 1, 10.2: one send queue per queue pair",
        access: Access::Word(&["per-destination", "single-fifo"], at!(queueing in QUEUEING)),
    },
    Key {
        name: "arbitration",
        summary: "which input an output takes next",
        source: "assumed: round-robin; IBA leaves it to the switch",
        access: Access::Word(
            &["round-robin", "oldest-first", "flow-fair"],
            at!(arbitration in ARBITRATION),
        ),
    },
    Key {
        name: "input_queueing",
        summary: "one queue a lane of a switch input, or one per output (virtual output queues)",
        source: "assumed: one queue a lane; IBA leaves it to the switch",
        access: Access::Word(&["fifo", "voq"], at!(input_queueing in INPUT_QUEUEING)),
    },
    Key {
        name: "crossbar_speedup",
        summary: "how much faster than the output's link a packet leaves its input buffer",
        source: "assumed: the rate of the output",
        access: Access::Hundredths(ranges::CROSSBAR_SPEEDUP, at!(crossbar_speedup)),
    },
    Key {
        name: "crossbar_reads",
        summary: "whether each lane of a switch input is read by itself, or the port for one \
                  output at a time",
        source: "assumed: each lane by itself; IBA leaves it to the switch",
        access: Access::Word(&["lane", "port"], at!(crossbar_reads in CROSSBAR_READS)),
    },
    Key {
        name: "output_buffer",
        summary: "buffer behind the crossbar, of every lane of every switch output, for a packet \
                  at least",
        source: "assumed: none, packets wait at the inputs; IBA leaves it to the switch",
        access: Access::SizeOr("none", ranges::OUTPUT_BUFFER, at!(output_buffer)),
    },
];
