//! What the devices of all rows are made of. Written out here, every field, so that the rows stay
//! what they are when a preset is mended: rates of different commits are then rates of the same
//! work. Who changes a number here begins a new series of measurements.

use clearlane_ib::{BitsPerSecond, Bytes, Picoseconds};
use clearlane_sim::{
    AdapterQueueing, BufferPer, CrossbarReads, InputArbitration, InputQueueing, MessageOrder,
    Parameters, Progress,
};

/// Payload of every message: one packet.
pub(crate) const MESSAGE: Bytes = Bytes(2048);

/// Fabrics with tables: the rate of their links, which is 4x QDR, and headers by transport.
pub(crate) const BY_TABLES: Parameters = Parameters {
    mtu: 2048,
    header: None,
    packet_max: None,
    link_rate: None,
    switch_delay: Picoseconds(100_000),
    va_delay: Picoseconds(0),
    sa_delay: Picoseconds(0),
    cable_delay: Picoseconds(25_000),
    credit_delay: Picoseconds(0),
    buffer: Bytes(8192),
    buffer_per: BufferPer::Lane,
    send_overhead: Picoseconds(0),
    receive_overhead: Picoseconds(400_000),
    stripe_overhead: Picoseconds(0),
    poll_overhead: Picoseconds(0),
    eager_max: Bytes(8 << 10),
    control_bytes: Bytes(64),
    progress: Progress::Call,
    read_depth: 16,
    adapter_ports: Some(1),
    memory_rate: None,
    message_order: MessageOrder::Posted,
    dma_rate: None,
    drain_rate: None,
    injection_engines: None,
    outstanding: 16,
    ack_coalescing: 1,
    source_backlog: None,
    queueing: AdapterQueueing::PerDestination,
    arbitration: InputArbitration::RoundRobin,
    input_queueing: InputQueueing::Fifo,
    crossbar_speedup: 100,
    crossbar_reads: CrossbarReads::Lane,
    output_buffer: None,
};

/// Tori by the rule: links of 4 GB/s, 8 KiB a lane, headers of 32 B. No adapter is a limit.
pub(crate) const BY_RULE: Parameters = Parameters {
    header: Some(32),
    link_rate: Some(BitsPerSecond(32_000_000_000)),
    switch_delay: Picoseconds(94_000),
    cable_delay: Picoseconds(10_000),
    receive_overhead: Picoseconds(200_000),
    ..BY_TABLES
};

/// Like [`BY_TABLES`], with virtual output queues at switches.
pub(crate) const VOQ: Parameters = Parameters { input_queueing: InputQueueing::Voq, ..BY_TABLES };

/// Crossbars that read a port for one output at a time, and stages that a head without credits
/// pays again.
pub(crate) const LIMITED: Parameters = Parameters {
    va_delay: Picoseconds(4_000),
    sa_delay: Picoseconds(4_000),
    crossbar_reads: CrossbarReads::Port,
    ..BY_TABLES
};

/// Like [`LIMITED`], with virtual output queues at switches.
pub(crate) const LIMITED_VOQ: Parameters =
    Parameters { input_queueing: InputQueueing::Voq, ..LIMITED };

/// Like [`BY_RULE`], for messages of any size that are sent at once, by senders that take their
/// time. A packet of 2 KiB includes a header of 32 B.
pub(crate) const EXCHANGED: Parameters = Parameters {
    packet_max: Some(2048),
    send_overhead: Picoseconds(200_000),
    eager_max: Bytes(1 << 30),
    ..BY_RULE
};

/// The devices of `nsim-2014`: all ports of an adapter, each of which sends one message at a time.
pub(crate) const NSIM: Parameters = Parameters {
    adapter_ports: None,
    va_delay: Picoseconds(4_000),
    sa_delay: Picoseconds(4_000),
    dma_rate: Some(BitsPerSecond(128_000_000_000)),
    drain_rate: Some(BitsPerSecond(128_000_000_000)),
    crossbar_reads: CrossbarReads::Port,
    injection_engines: Some(1),
    outstanding: 1 << 23,
    ..EXCHANGED
};
