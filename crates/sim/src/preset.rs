//! What devices are made of: delays, buffers and rates, and the named sets of them.
//!
//! Every number of a preset is tagged: *sourced* with where it is written, or *assumed*. Reports
//! print the tags.

use clearlane_ib::{BitsPerSecond, Bytes, LinkSpeed, LinkWidth, Picoseconds, wire};
use clearlane_workload::Transport;

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

/// The parameters of switches and adapters, the same for all devices of a run. Which values they
/// may have, `ranges` says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// Path MTU: payload bytes of a full packet; 256, 512, 1024, 2048 or 4096.
    pub mtu: u32,
    /// Header bytes per data packet; nothing means those of the transport (RC 26, UD 34).
    pub header: Option<u32>,
    /// Rate of every link; nothing means each link's own width and speed.
    pub link_rate: Option<BitsPerSecond>,
    /// Time from a packet's head entering a switch to the earliest departure: routing and crossing.
    pub switch_delay: Picoseconds,
    /// One-way delay of every cable.
    pub cable_delay: Picoseconds,
    /// Added to a credit's way back: how long a receiver takes to announce freed space.
    pub credit_delay: Picoseconds,
    /// Receive buffer per virtual lane of every port; at least 1 MTU with headers.
    pub buffer: Bytes,
    /// From posting a message to its first packet being ready to leave.
    pub send_overhead: Picoseconds,
    /// From the last packet's arrival to the program being told.
    pub receive_overhead: Picoseconds,
    /// Rate at which an adapter reads host memory; nothing means never a limit.
    pub dma_rate: Option<BitsPerSecond>,
    /// Rate at which an adapter drains its receive buffers; nothing means never a limit.
    pub drain_rate: Option<BitsPerSecond>,
    /// How many send queues an adapter works on at a time; nothing means all.
    pub injection_engines: Option<u32>,
    /// Packets of an RC queue pair that may be unacknowledged.
    pub outstanding: u32,
    /// An ACK for every so many packets and for the last of a message; at most `outstanding`.
    pub ack_coalescing: u32,
    /// Order among messages of one adapter.
    pub queueing: AdapterQueueing,
    /// Order among inputs of one switch output.
    pub arbitration: InputArbitration,
    /// How packets wait at a switch input.
    pub input_queueing: InputQueueing,
    /// How fast a packet leaves its input buffer, in hundredths of the output link's rate. What the
    /// output has not sent yet waits behind the crossbar.
    pub crossbar_speedup: u32,
}

impl Parameters {
    /// Bytes of a data packet besides its payload.
    pub fn header_bytes(&self, transport: Transport) -> u32 {
        self.header.unwrap_or(match transport {
            Transport::Rc => wire::RC_DATA,
            Transport::Ud => wire::UD_DATA,
        })
    }
}

/// A named set of parameters.
#[derive(Debug)]
pub struct Preset {
    /// Name in experiment files.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// The parameters.
    pub parameters: fn() -> Parameters,
    /// Speed and width of links that builders give fabrics of this preset.
    pub link: (LinkWidth, LinkSpeed),
    /// (parameter, "sourced: where" or "assumed: why") for every parameter.
    pub sources: &'static [(&'static str, &'static str)],
}

/// All presets, oldest hardware first.
pub const ALL: &[Preset] = &[SDR_2011, QDR, NSIM_2014, EDR, HDR, NDR];

/// The preset of that name.
pub fn by_name(name: &str) -> Option<&'static Preset> {
    ALL.iter().find(|preset| preset.name == name)
}

const NS: u64 = 1_000;

/// What the presets of real adapters share.
fn base(switch_delay_ns: u64, overhead_ns: u64, mtu: u32, buffer: u64) -> Parameters {
    Parameters {
        mtu,
        header: None,
        link_rate: None,
        switch_delay: Picoseconds(switch_delay_ns * NS),
        cable_delay: Picoseconds(25 * NS),
        credit_delay: Picoseconds(0),
        buffer: Bytes(buffer),
        send_overhead: Picoseconds(overhead_ns * NS),
        receive_overhead: Picoseconds(overhead_ns * NS),
        dma_rate: None,
        drain_rate: None,
        injection_engines: None,
        outstanding: 16,
        ack_coalescing: 1,
        queueing: AdapterQueueing::PerDestination,
        arbitration: InputArbitration::RoundRobin,
        input_queueing: InputQueueing::Fifo,
        crossbar_speedup: 100,
    }
}

const ASSUMED_REST: &str = "assumed: not a limit, so that the fabric is what is measured";

macro_rules! preset {
    (
        $id:ident, $name:literal, $summary:literal, $speed:ident, $params:expr,
        [$($source:expr),* $(,)?]
    ) => {
        const $id: Preset = Preset {
            name: $name,
            summary: $summary,
            parameters: || $params,
            link: (LinkWidth::X4, LinkSpeed::$speed),
            sources: &[$($source,)*
                ("link_rate", "sourced: IBA vol. 2, 5: each link's own width and speed"),
                ("cable_delay", "assumed: 5 m of cable at 5 ns/m"),
                ("credit_delay", "assumed: credits are announced at once"),
                ("dma_rate", ASSUMED_REST),
                ("drain_rate", ASSUMED_REST),
                ("injection_engines", ASSUMED_REST),
                ("outstanding", "assumed: 16 packets, a common adapter default"),
                ("ack_coalescing", "assumed: an ACK per packet"),
                ("header", "sourced: IBA vol. 1, 5.2, by transport"),
                ("queueing", "sourced: IBA vol. 1, 10.2: one send queue per queue pair"),
                ("arbitration", "assumed: round-robin; IBA leaves it to the switch"),
                ("input_queueing", "assumed: one queue a lane; IBA leaves it to the switch"),
                ("crossbar_speedup", "assumed: the rate of the output"),
            ],
        };
    };
}

preset!(
    SDR_2011,
    "sdr-2011",
    "the 4x SDR testbed of the congestion-control experiments",
    Sdr,
    base(200, 500, 2048, 64 << 10),
    [
        ("mtu", "sourced: 2 KiB, default of Mellanox InfiniHost and ConnectX adapters"),
        ("switch_delay", "sourced: 200 ns port to port, InfiniScale III product brief"),
        ("buffer", "assumed: 64 KiB per lane"),
        ("send_overhead", "assumed: 0.5 us"),
        ("receive_overhead", "assumed: 0.5 us"),
    ]
);

preset!(
    QDR,
    "qdr",
    "4x QDR, InfiniScale IV switches, PCIe 2 adapters",
    Qdr,
    base(100, 400, 2048, 64 << 10),
    [
        ("mtu", "sourced: 2 KiB, default of OpenSM's IPoIB partition and of ConnectX"),
        ("switch_delay", "sourced: 100 ns port to port, InfiniScale IV product brief"),
        ("buffer", "assumed: 64 KiB per lane"),
        ("send_overhead", "assumed: 0.4 us"),
        ("receive_overhead", "assumed: 0.4 us"),
    ]
);

preset!(
    EDR,
    "edr",
    "4x EDR, Switch-IB switches",
    Edr,
    base(90, 300, 4096, 64 << 10),
    [
        ("mtu", "sourced: 4 KiB, the largest of IBA"),
        ("switch_delay", "sourced: 90 ns port to port, Switch-IB product brief"),
        ("buffer", "assumed: 64 KiB per lane"),
        ("send_overhead", "assumed: 0.3 us"),
        ("receive_overhead", "assumed: 0.3 us"),
    ]
);

preset!(
    HDR,
    "hdr",
    "4x HDR, Quantum switches",
    Hdr,
    base(130, 250, 4096, 128 << 10),
    [
        ("mtu", "sourced: 4 KiB, the largest of IBA"),
        (
            "switch_delay",
            "sourced: 130 ns port to port with forward error correction, Quantum brief"
        ),
        ("buffer", "assumed: 128 KiB per lane"),
        ("send_overhead", "assumed: 0.25 us"),
        ("receive_overhead", "assumed: 0.25 us"),
    ]
);

preset!(
    NDR,
    "ndr",
    "4x NDR, Quantum-2 switches",
    Ndr,
    base(180, 250, 4096, 256 << 10),
    [
        ("mtu", "sourced: 4 KiB, the largest of IBA"),
        ("switch_delay", "assumed: 180 ns port to port with forward error correction"),
        ("buffer", "assumed: 256 KiB per lane"),
        ("send_overhead", "assumed: 0.25 us"),
        ("receive_overhead", "assumed: 0.25 us"),
    ]
);

/// Table 1 of the packet-pacing paper (seed 003). Not deployable: 32-byte headers and two lanes
/// used by a dateline rule, not by SL2VL.
const NSIM_2014: Preset = Preset {
    name: "nsim-2014",
    summary: "the torus of the packet-pacing paper: 4 GB/s links, 2 lanes of 8 KiB",
    parameters: || Parameters {
        header: Some(32),
        link_rate: Some(BitsPerSecond(32 * 1_000_000_000)),
        cable_delay: Picoseconds(10 * NS),
        dma_rate: Some(BitsPerSecond(128 * 1_000_000_000)),
        injection_engines: Some(4),
        ..base(94, 200, 2048, 8 << 10)
    },
    link: (LinkWidth::X4, LinkSpeed::Qdr),
    sources: &[
        ("mtu", "sourced: pacing paper, table 1: 2 KiB"),
        ("header", "sourced: pacing paper, table 1: 32 B"),
        ("link_rate", "sourced: pacing paper, table 1: 4 GB/s"),
        ("switch_delay", "sourced: pacing paper, table 1: 4 × 4 ns pipeline and 78 ns"),
        ("cable_delay", "sourced: pacing paper, table 1: 10 ns"),
        ("buffer", "sourced: pacing paper, table 1: 8 KiB per lane"),
        ("dma_rate", "sourced: pacing paper, table 1: 16 GB/s"),
        (
            "injection_engines",
            "sourced: pacing paper, table 1: 4 interfaces (here: 4 send engines)",
        ),
        ("send_overhead", "sourced: pacing paper, table 1: 200 ns"),
        ("receive_overhead", "assumed: as the send overhead"),
        ("credit_delay", "assumed: credits are announced at once"),
        ("drain_rate", "assumed: memory is faster than the link"),
        ("outstanding", "assumed: 16 packets"),
        ("ack_coalescing", "assumed: an ACK per packet where RC is asked for"),
        ("queueing", "assumed: per destination"),
        ("arbitration", "assumed: round-robin"),
        ("input_queueing", "assumed: one queue a lane"),
        ("crossbar_speedup", "assumed: the rate of the output"),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_every_preset_is_tagged() {
        for preset in ALL {
            let fields = [
                "mtu",
                "header",
                "link_rate",
                "switch_delay",
                "cable_delay",
                "credit_delay",
                "buffer",
                "send_overhead",
                "receive_overhead",
                "dma_rate",
                "drain_rate",
                "injection_engines",
                "outstanding",
                "ack_coalescing",
                "queueing",
                "arbitration",
                "input_queueing",
                "crossbar_speedup",
            ];
            for field in fields {
                let tag = preset.sources.iter().find(|(name, _)| *name == field);
                let tag = tag.unwrap_or_else(|| panic!("{}: {field} has no tag", preset.name)).1;
                assert!(tag.starts_with("sourced: ") || tag.starts_with("assumed: "), "{tag}");
            }
        }
    }
}
