//! Named sets of the parameters of devices.
//!
//! Every number of a preset is tagged: *sourced* with where it is written, or *assumed*. Reports
//! print the tags.

use crate::parameters::{
    AdapterQueueing, BufferPer, CrossbarReads, InputArbitration, InputQueueing, Key, MessageOrder,
    Parameters, Progress,
};
use clearlane_ib::{BitsPerSecond, Bytes, LinkSpeed, LinkWidth, Picoseconds};

/// A named set of parameters.
#[derive(Debug)]
pub struct Preset {
    /// Name in experiment files.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// The paper its sources call by a short name; nothing where they name theirs in full.
    pub reference: Option<&'static str>,
    /// The parameters.
    pub parameters: fn() -> Parameters,
    /// Speed and width of links that builders give fabrics of this preset.
    pub link: (LinkWidth, LinkSpeed),
    /// Cables of a host of fabrics that builders make, where a builder has that option.
    pub links: u32,
    /// A table of devices that the preset stands for, line by line.
    pub table: &'static [Line],
    /// (parameter, "sourced: where" or "assumed: why") for those of which the table of parameters
    /// does not say it.
    pub sources: &'static [(&'static str, &'static str)],
}

/// A line of a published table of devices.
#[derive(Debug)]
pub struct Line {
    /// Its name there.
    pub name: &'static str,
    /// Its value there.
    pub published: &'static str,
    /// Parameters that hold it.
    pub keys: &'static [&'static str],
    /// What is to be known of it besides, or instead of parameters.
    pub remark: &'static str,
}

/// All presets, oldest hardware first.
pub const ALL: &[Preset] = &[SDR_2011, QDR, NSIM_2014, EDR, HDR, NDR];

impl Preset {
    /// Where the value of a parameter comes from.
    pub fn source(&self, key: &Key) -> &'static str {
        let own = self.sources.iter().find(|(name, _)| *name == key.name);
        own.map_or(key.source, |(_, source)| source)
    }
}

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
        packet_max: None,
        link_rate: None,
        switch_delay: Picoseconds(switch_delay_ns * NS),
        va_delay: Picoseconds(0),
        sa_delay: Picoseconds(0),
        cable_delay: Picoseconds(25 * NS),
        credit_delay: Picoseconds(0),
        buffer: Bytes(buffer),
        buffer_per: BufferPer::Lane,
        send_overhead: Picoseconds(overhead_ns * NS),
        receive_overhead: Picoseconds(overhead_ns * NS),
        stripe_overhead: Picoseconds(overhead_ns * NS),
        poll_overhead: Picoseconds(50 * NS),
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
        outstanding: 1 << 23,
        ack_coalescing: 1,
        source_backlog: None,
        queueing: AdapterQueueing::PerDestination,
        arbitration: InputArbitration::RoundRobin,
        input_queueing: InputQueueing::Fifo,
        crossbar_speedup: 100,
        crossbar_reads: CrossbarReads::Lane,
        output_buffer: None,
    }
}

macro_rules! preset {
    (
        $id:ident, $name:literal, $summary:literal, $speed:ident, $params:expr,
        [$($source:expr),* $(,)?]
    ) => {
        const $id: Preset = Preset {
            name: $name,
            summary: $summary,
            reference: None,
            parameters: || $params,
            link: (LinkWidth::X4, LinkSpeed::$speed),
            links: 1,
            table: &[],
            sources: &[$($source),*],
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
    summary: "the torus of the packet-pacing paper: four 4 GB/s links a node, 2 lanes of 8 KiB",
    reference: Some(
        "pacing paper: Shibamura, Active packet pacing as a congestion avoidance technique in \
         interconnection network; it simulates with NSIM",
    ),
    parameters: || Parameters {
        header: Some(32),
        packet_max: Some(2048),
        adapter_ports: None,
        link_rate: Some(BitsPerSecond(32 * 1_000_000_000)),
        va_delay: Picoseconds(4 * NS),
        sa_delay: Picoseconds(4 * NS),
        cable_delay: Picoseconds(10 * NS),
        dma_rate: Some(BitsPerSecond(128 * 1_000_000_000)),
        drain_rate: Some(BitsPerSecond(128 * 1_000_000_000)),
        crossbar_reads: CrossbarReads::Port,
        injection_engines: Some(1),
        eager_max: Bytes(1 << 30),
        ..base(94, 200, 2048, 8 << 10)
    },
    link: (LinkWidth::X4, LinkSpeed::Qdr),
    links: 4,
    table: NSIM_TABLE,
    sources: &[
        ("mtu", "sourced: pacing paper, table 1: 2 KiB"),
        (
            "packet_max",
            "sourced: pacing paper, table 1: packets of 32 B to 2 KiB with their header",
        ),
        ("adapter_ports", "sourced: pacing paper, table 1: 4 NICs, which send and receive at once"),
        (
            "memory_rate",
            "assumed: memory is read at 16 GB/s (dma_rate) and written at 16 GB/s (drain_rate) at \
             once, or 4 NICs could not send and receive at once; shared by both, phases of a \
             2-D all-to-all with one hop would take twice as long as their links do",
        ),
        (
            "crossbar_reads",
            "assumed: one packet at a time leaves an input port, as switch allocation (SA) of \
             virtual-channel routers has it (Dally and Towles 2004, chapter 16)",
        ),
        ("header", "sourced: pacing paper, table 1: 32 B"),
        ("link_rate", "sourced: pacing paper, table 1: 4 GB/s"),
        ("switch_delay", "sourced: pacing paper, table 1: 4 × 4 ns pipeline and 78 ns"),
        ("va_delay", "sourced: pacing paper, table 1: 4 ns"),
        ("sa_delay", "sourced: pacing paper, table 1: 4 ns"),
        ("cable_delay", "sourced: pacing paper, table 1: 10 ns"),
        ("buffer", "sourced: pacing paper, table 1: 8 KiB per lane"),
        ("dma_rate", "sourced: pacing paper, table 1: 16 GB/s"),
        ("injection_engines", "assumed: each of the 4 NICs sends one message at a time"),
        ("send_overhead", "sourced: pacing paper, table 1: 200 ns"),
        ("receive_overhead", "sourced: pacing paper, table 1: MPI overheads of 200 ns"),
        (
            "eager_max",
            "assumed: every message is sent at once; the pacing paper names one overhead a message \
             and no protocol",
        ),
        ("drain_rate", "sourced: pacing paper, table 1: memory bandwidth of 16 GB/s"),
        ("ack_coalescing", "assumed: an ACK per packet where RC is asked for"),
    ],
};

macro_rules! line {
    ($name:literal, $published:literal, [$($key:literal),*], $remark:literal) => {
        Line { name: $name, published: $published, keys: &[$($key),*], remark: $remark }
    };
}

/// Table 1 of the packet-pacing paper (seed 003), in its order.
const NSIM_TABLE: &[Line] = &[
    line!("topology", "2D-torus / 3D-torus", [], "the experiment's fabric, such as torus:4x4x4"),
    line!(
        "routing",
        "dimension-ordered (DOR) + dateline",
        [],
        "forwarding = \"dimension-order\": the lower dimension first, lane 1 from the wrap link on"
    ),
    line!(
        "flow control",
        "virtual cut-through, credit base",
        [],
        "as of every preset: a head goes on while its tail comes, credits by lane"
    ),
    line!("link bandwidth", "4 GB/s (unidirection)", ["link_rate"], "in each direction"),
    line!("routing computation (RC)", "4 ns", [], "in switch_delay"),
    line!(
        "virtual-channel allocation (VA)",
        "4 ns",
        ["va_delay"],
        "in switch_delay; a head that had no credits pays it again"
    ),
    line!(
        "switch allocation (SA)",
        "4 ns",
        ["sa_delay"],
        "in switch_delay; a head that had no credits pays it again"
    ),
    line!("switch traversal (ST)", "4 ns", [], "in switch_delay"),
    line!("switch latency", "78 ns", ["switch_delay"], "with the four stages of 4 ns"),
    line!("cable latency", "10 ns", ["cable_delay"], ""),
    line!("MTU", "2 KiB", ["mtu"], "of a packet with its header: see packet size"),
    line!("packet size", "32 B to 2 KiB (MTU)", ["packet_max"], "a payload of up to 2,016 B"),
    line!("packet header size", "32 B", ["header"], ""),
    line!("virtual channels", "2", [], "lanes of the dimension-order rule"),
    line!(
        "virtual-channel buffer size",
        "8 KiB (MTU × 4)",
        ["buffer"],
        "four packets of 32 credits of 64 B"
    ),
    line!(
        "flit size",
        "16 B",
        [],
        "not modelled: a packet goes on whole, and credits count in units of 64 B"
    ),
    line!(
        "NICs",
        "4 (simultaneous send and receive)",
        ["adapter_ports", "injection_engines"],
        "four cables to the node's switch (links = 4 of a built fabric), a message at a time each"
    ),
    line!("DMA rate", "16 GB/s", ["dma_rate"], "of an adapter, all its ports together"),
    line!(
        "memory bandwidth",
        "16 GB/s",
        ["dma_rate", "drain_rate"],
        "read at this rate and written at this rate; a bus that both share is memory_rate"
    ),
    line!("MPI overheads", "200 ns", ["send_overhead", "receive_overhead"], "at either end"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::KEYS;

    #[test]
    fn every_number_of_every_preset_is_tagged() {
        for preset in ALL {
            for key in KEYS {
                let tag = preset.source(key);
                let is_tag = tag.starts_with("sourced: ") || tag.starts_with("assumed: ");
                assert!(is_tag, "{}: {} is tagged `{tag}`", preset.name, key.name);
            }
            let known = |name: &str| KEYS.iter().any(|key| key.name == name);
            assert!(preset.sources.iter().all(|(name, _)| known(name)), "{}", preset.name);
            for line in preset.table {
                let says = !line.keys.is_empty() || !line.remark.is_empty();
                assert!(says && line.keys.iter().all(|key| known(key)), "{}", line.name);
            }
        }
    }
}
