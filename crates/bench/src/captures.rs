//! Rows of captures: what a packet costs that is written or analysed.

use clearlane_capture::write::{
    Container, Direction, Extended, Frame, Kept, Style, Wrapping, Writer,
};
use clearlane_capture::{Options, Source, analyse};
use clearlane_ib::{Aeth, Bth, Lid, Opcode, Psn, QueuePairNumber, ServiceLevel, VirtualLane};
use std::io::{Cursor, Read, Sink, Write};
use std::sync::Arc;

/// What is timed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// Writing frames with so much payload.
    Write(u16),
    /// Analysing a capture of frames of 256 bytes.
    Read,
}

/// One row.
#[derive(Debug)]
pub(crate) struct CaptureRow {
    pub(crate) name: &'static str,
    pub(crate) work: Work,
    pub(crate) style: Style,
    /// CPU nanoseconds a packet.
    pub(crate) goal: Option<f64>,
    pub(crate) note: &'static str,
}

const NATIVE: Style =
    Style { container: Container::Pcapng, wrapping: Wrapping::Native, kept: Kept::Full };
const HEADERS: Style = Style { kept: Kept::Headers, ..NATIVE };
const ROCE: Style = Style { wrapping: Wrapping::RoceV2, ..NATIVE };
const IBDUMP: Style = Style { container: Container::Erf, ..NATIVE };

/// All rows.
pub(crate) const ROWS: &[CaptureRow] = &[
    CaptureRow {
        name: "capture-write-headers",
        work: Work::Write(2048),
        style: HEADERS,
        goal: Some(300.0),
        note: "InfiniBand in pcapng, a comment each",
    },
    CaptureRow {
        name: "capture-write-2048",
        work: Work::Write(2048),
        style: NATIVE,
        goal: Some(2000.0),
        note: "the same with payload and CRCs",
    },
    CaptureRow {
        name: "capture-write-roce-2048",
        work: Work::Write(2048),
        style: ROCE,
        goal: None,
        note: "RoCE v2",
    },
    CaptureRow {
        name: "capture-read",
        work: Work::Read,
        style: IBDUMP,
        goal: None,
        note: "InfiniBand in pcap, 64 queue pairs",
    },
    CaptureRow {
        name: "capture-read-roce",
        work: Work::Read,
        style: ROCE,
        goal: None,
        note: "RoCE v2 in pcapng",
    },
];

/// Packets of a row.
const PACKETS: u32 = 300_000;
/// Eight senders with eight queue pairs each, to one receiver.
const SENDERS: u32 = 8;
const QUEUE_PAIRS: u32 = 64;
const RECEIVER: u16 = 100;
/// Of two hundred packets, one is a CNP, nineteen are ACKs, and of data six are marked.
const CYCLE: u32 = 200;
const GAP_NS: u64 = 300;
const START_NS: u64 = 1_700_000_000_000_000_000;

/// The packet of this number in the stream that rows are made of; `psns` are those of the last
/// data of each queue pair.
fn frame(number: u32, payload_bytes: u16, psns: &mut [u32]) -> Frame {
    let queue_pair = number % QUEUE_PAIRS;
    let sender = (queue_pair % SENDERS + 1) as u16;
    // Multiplied so that kinds come to every queue pair.
    let (opcode, fecn) = match number.wrapping_mul(2_654_435_761) >> 8 & 0xffff {
        x if x % CYCLE == 0 => (Opcode::CNP, false),
        x if x % CYCLE < 20 => (Opcode::RC_ACKNOWLEDGE, false),
        x => (Opcode::RC_SEND_ONLY, x % CYCLE < 26),
    };
    let is_back = opcode != Opcode::RC_SEND_ONLY;
    let psn = &mut psns[queue_pair as usize];
    *psn += u32::from(!is_back);
    let (from, to) = if is_back { (RECEIVER, sender) } else { (sender, RECEIVER) };
    let is_ack = opcode == Opcode::RC_ACKNOWLEDGE;
    let lid = |lid| Lid::new(lid).expect("LIDs from 1 to 100 are unicast ones");
    Frame {
        lane: VirtualLane::default(),
        service_level: ServiceLevel::default(),
        slid: lid(from),
        dlid: lid(to),
        bth: Bth {
            opcode,
            solicited_event: false,
            migration: true,
            pad: Default::default(),
            version: Default::default(),
            p_key: 0xffff,
            fecn,
            becn: opcode.is_cnp(),
            destination: QueuePairNumber::new(0x100 * (1 + u32::from(is_back)) + queue_pair)
                .unwrap_or_default(),
            ack_request: false,
            psn: Psn::new(*psn & Psn::MAX.value()).unwrap_or_default(),
        },
        extended: match is_ack {
            true => Extended::Aeth(Aeth { syndrome: Aeth::ACK, msn: Psn::default() }),
            false => Extended::None,
        },
        payload_bytes: if is_back { 0 } else { payload_bytes },
    }
}

/// Writes so many packets.
pub(crate) fn stream<W: Write>(
    out: W,
    style: Style,
    packets: u32,
    payload_bytes: u16,
    comment: &str,
) -> std::io::Result<W> {
    let mut writer = Writer::new(out, style, &["host/P1".to_owned()])?;
    let mut psns: Vec<u32> = (0..QUEUE_PAIRS).map(|queue_pair| queue_pair * 200_000).collect();
    for number in 0..packets {
        let time = START_NS + u64::from(number) * GAP_NS;
        let frame = frame(number, payload_bytes, &mut psns);
        writer.frame((time, 0, Direction::Inbound), &frame, comment)?;
    }
    writer.finish()
}

/// A row made ready: what is read is written before.
pub(crate) struct CaptureBench {
    row: &'static CaptureRow,
    file: Arc<[u8]>,
}

impl CaptureRow {
    pub(crate) fn prepare(&'static self) -> Result<CaptureBench, String> {
        let written = match self.work {
            Work::Write(_) => Vec::new(),
            Work::Read => {
                let all = stream(Vec::new(), self.style, PACKETS, 256, "");
                all.map_err(|error| error.to_string())?
            }
        };
        Ok(CaptureBench { row: self, file: written.into() })
    }

    /// The file of this row's kind with so many packets of 256 bytes.
    pub(crate) fn write(&self, path: &str, packets: u32) -> Result<(), String> {
        let fault = |error: std::io::Error| format!("{path}: {error}");
        let file = std::fs::File::create(path).map_err(fault)?;
        stream(file, self.style, packets, 256, "").map(|_| ()).map_err(fault)
    }
}

impl CaptureBench {
    /// Does it once.
    pub(crate) fn run(&self) -> Result<(), String> {
        match self.row.work {
            Work::Write(payload) => {
                let comment = "queue 2048 B";
                let written: Result<Sink, _> =
                    stream(std::io::sink(), self.row.style, PACKETS, payload, comment);
                written.map(|_| ()).map_err(|error| error.to_string())
            }
            Work::Read => {
                let file = Arc::clone(&self.file);
                let open = move || Ok(Box::new(Cursor::new(Arc::clone(&file))) as Box<dyn Read>);
                let source = Source { name: "row".into(), open: Box::new(open), bytes: None };
                let analysed = analyse(&[source], &Options::default(), &mut |_, _| true);
                let analysed = analysed.map_err(|error| error.to_string())?;
                let counted = analysed.map_or(0, |all| all.captures[0].records);
                match counted == u64::from(PACKETS) {
                    true => Ok(()),
                    false => Err(format!("{counted} packets of {PACKETS} were read")),
                }
            }
        }
    }

    /// How many packets that is.
    pub(crate) fn packets(&self) -> u32 {
        PACKETS
    }
}
