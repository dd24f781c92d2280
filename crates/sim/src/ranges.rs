//! Which values the parameters of devices may have: what readers of experiments refuse and what a
//! simulation holds its caller to.

use clearlane_ib::{BitsPerSecond, Bytes, Picoseconds};
use std::ops::RangeInclusive;

/// Header bytes of a data packet.
pub const HEADER: RangeInclusive<Bytes> = Bytes(0)..=Bytes(256);
/// Bytes of a packet with its headers, if they bound its payload: at least one byte of it.
pub const PACKET_MAX: RangeInclusive<Bytes> = Bytes(257)..=Bytes(4352);
/// Rates of links, of DMA and of draining.
pub const RATE: RangeInclusive<BitsPerSecond> =
    BitsPerSecond(2_000_000)..=BitsPerSecond(8_000_000_000_000);
/// Delays and overheads, cables apart.
pub const DELAY: RangeInclusive<Picoseconds> = Picoseconds(0)..=LONGEST;
/// Delay of a cable: what a packet causes at its other end lies later than now.
pub const CABLE_DELAY: RangeInclusive<Picoseconds> = Picoseconds(1)..=LONGEST;
/// Receive buffer of a lane: from a full packet of the smallest MTU, in credits.
pub const BUFFER: RangeInclusive<Bytes> = Bytes(320)..=Bytes(4 << 20);
/// Output buffer of a lane, if there is any.
pub const OUTPUT_BUFFER: RangeInclusive<Bytes> = BUFFER;
/// Ports of one adapter that can carry traffic: what orders events has room for so many.
pub const ADAPTER_PORTS_MAX: u32 = 8;
/// Cabled ports of an adapter that carry traffic, if not all.
pub const ADAPTER_PORTS: RangeInclusive<u32> = 1..=ADAPTER_PORTS_MAX;
/// Send queues a port works on at a time, if not all.
pub const INJECTION_ENGINES: RangeInclusive<u32> = 1..=1 << 16;
/// Messages that wait on a lane before open-loop traffic leaves some out, if there is a bound.
pub const SOURCE_BACKLOG: RangeInclusive<u32> = 1..=1 << 16;
/// Packets of a queue pair without an ACK, and packets per ACK.
pub const OUTSTANDING: RangeInclusive<u32> = 1..=1 << 23;
/// Payload of a message that is sent at once; 0 has all announced but empty ones.
pub const EAGER_MAX: RangeInclusive<Bytes> = Bytes(0)..=Bytes(1 << 36);
/// Payload of what libraries tell each other.
pub const CONTROL_BYTES: RangeInclusive<Bytes> = Bytes(0)..=Bytes(256);
/// RDMA READs of a queue pair under way.
pub const READ_DEPTH: RangeInclusive<u32> = 1..=255;
/// Crossbar speed, in hundredths of the output link's rate.
pub const CROSSBAR_SPEEDUP: RangeInclusive<u32> = 100..=1600;

const LONGEST: Picoseconds = Picoseconds(1_000_000_000);
