//! What is a capture and what is none. ERF has no number at its beginning, so it is known by
//! evidence: noise, texts and other files must not have it, and every real file must.

use clearlane_capture::files::{Fault, Input, Reader};
use clearlane_capture::write::{
    Container, Direction, Extended, Frame, Kept, Style, Wrapping, Writer,
};
use clearlane_ib::random::Stream;
use clearlane_ib::{Bth, Lid, Opcode, Psn, QueuePairNumber, ServiceLevel, VirtualLane};
use std::path::Path;

/// A time of a card, in seconds since 1970.
const NOW: u32 = 1_700_000_000;
const INFINIBAND: u8 = 21;
/// Bytes of a pcap file before its packets, and before a packet.
const PCAP: usize = 24;
const PCAP_PACKET: usize = 16;

/// The format of a file, and its records as far as they can be read.
fn read(bytes: &[u8]) -> Result<(&'static str, usize), Fault> {
    let mut reader = Reader::open(Input::new(bytes))?;
    let mut records = 0;
    while let Ok(Some(_)) = reader.next() {
        records += 1;
    }
    Ok((reader.entry.name, records))
}

fn is_unknown(bytes: &[u8]) -> bool {
    matches!(read(bytes), Err(Fault::Unknown))
}

/// An ERF record that keeps so many bytes of a packet of so many.
fn record(kind: u8, seconds: u32, kept: u16, wire: u16) -> Vec<u8> {
    let mut bytes = [0, seconds].map(u32::to_le_bytes).concat();
    bytes.extend([kind, 4]);
    bytes.extend([16 + kept, 0, wire].map(u16::to_be_bytes).concat());
    bytes.extend((0..kept).map(|byte| byte as u8 ^ 0xa5));
    bytes
}

fn noise(seed: u64) -> Vec<u8> {
    let mut stream = Stream::new(seed, "noise", 0);
    let bytes = 200 + stream.below(49_800);
    (0..bytes).map(|_| stream.bits() as u8).collect()
}

#[test]
fn noise_is_no_capture() {
    let taken: Vec<u64> = (0..1000).filter(|seed| !is_unknown(&noise(*seed))).collect();
    assert_eq!(taken, []);
}

#[test]
fn a_byte_over_and_over_is_no_capture() {
    for byte in 0..=255 {
        for length in [16, 200, 5000] {
            assert!(is_unknown(&vec![byte; length]), "{byte} {length}");
        }
    }
}

#[test]
fn texts_are_no_captures_in_any_encoding() {
    let page = include_str!("../../../../README.md");
    let topology = include_str!("../../../../fixtures/six-node/six-node.topo");
    for text in [page, topology] {
        // From everywhere, so that a control character stands wherever ERF has its type.
        for from in (0..text.len().min(4000)).filter(|from| text.is_char_boundary(*from)) {
            let text = &text[from..];
            assert!(is_unknown(text.as_bytes()), "from byte {from}");
            let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            assert!(is_unknown(&wide), "from byte {from}, UTF-16");
        }
    }
}

#[test]
fn a_capture_written_as_text_is_none() {
    for container in [Container::Pcapng, Container::Erf] {
        let file = written(container, 20, u64::from(NOW) * 1_000_000_000);
        read(&file).unwrap();
        let wide: Vec<u16> = file.iter().map(|byte| u16::from(*byte)).collect();
        for bytes in [u16::to_le_bytes, u16::to_be_bytes] {
            let marked = [0xfeff].iter().chain(&wide).copied().flat_map(bytes).collect::<Vec<_>>();
            assert!(is_unknown(&marked), "{container:?}");
            assert!(is_unknown(&marked[2..]), "{container:?}");
        }
    }
}

#[test]
fn a_single_record_is_enough_if_the_file_ends_behind_it() {
    let whole = record(INFINIBAND, NOW, 64, 64);
    assert_eq!(read(&whole).unwrap(), ("erf", 1));
    assert_eq!(read(&record(INFINIBAND, NOW, 64, 1024)).unwrap(), ("erf", 1));
    // Bytes that lead nowhere are those of a header that was being written, or anything at all.
    assert_eq!(read(&[&whole[..], &[0; 15]].concat()).unwrap(), ("erf", 1));
    assert!(is_unknown(&[&record(INFINIBAND, NOW, 64, 1024)[..], &[0; 15]].concat()));
    assert!(is_unknown(&whole[..whole.len() - 1]));
    assert!(is_unknown(&[&whole[..], &[0xa5; 40]].concat()));
}

#[test]
fn a_capture_that_was_stopped_within_a_record_is_one() {
    for (kept, wire) in [(64, 64), (64, 1024)] {
        let file: Vec<u8> =
            (0..3).flat_map(|number| record(INFINIBAND, NOW + number, kept, wire)).collect();
        for cut in 2 * file.len() / 3 + 16..file.len() {
            assert_eq!(read(&file[..cut]).unwrap(), ("erf", 2), "{cut}");
        }
        assert_eq!(read(&file).unwrap(), ("erf", 3));
    }
}

#[test]
fn records_that_contradict_each_other_are_no_capture() {
    let good = record(INFINIBAND, NOW, 64, 1024);
    let chain = |second: Vec<u8>| [&good[..], &second, &good].concat();
    assert_eq!(read(&chain(good.clone())).unwrap(), ("erf", 3));
    // A card's interfaces are less than a second apart; Ethernet among InfiniBand is usual.
    for (kind, seconds) in [(INFINIBAND, NOW), (2, NOW + 1), (27, NOW)] {
        assert!(read(&chain(record(kind, seconds, 64, 1024))).is_ok(), "{kind} {seconds}");
    }
    for (kind, seconds) in [
        (0, NOW),
        (31, NOW),
        (INFINIBAND, NOW - 2),
        (INFINIBAND, NOW + 366 * 24 * 3600),
        (INFINIBAND, 1),
    ] {
        assert!(is_unknown(&chain(record(kind, seconds, 64, 1024))), "{kind} {seconds}");
    }
    let mut flagged = good.clone();
    flagged[9] |= 0x40;
    assert!(is_unknown(&chain(flagged)));
    // Extension headers without an end.
    let mut extended = record(INFINIBAND | 0x80, NOW, 64, 1024);
    extended[16..].fill(0x80);
    assert!(is_unknown(&chain(extended)));
}

/// A file of our own writer.
fn written(container: Container, packets: u64, start_ns: u64) -> Vec<u8> {
    let style = Style { container, wrapping: Wrapping::Native, kept: Kept::Full };
    let mut writer = Writer::new(Vec::new(), style, &["H1/P1".into()]).unwrap();
    for number in 0..packets {
        let frame = Frame {
            lane: VirtualLane::new(0).unwrap(),
            service_level: ServiceLevel::new(0).unwrap(),
            slid: Lid::new(1).unwrap(),
            dlid: Lid::new(2).unwrap(),
            bth: Bth {
                opcode: Opcode::RC_SEND_ONLY,
                solicited_event: false,
                migration: false,
                pad: Default::default(),
                version: Default::default(),
                p_key: 0xffff,
                fecn: false,
                becn: false,
                destination: QueuePairNumber::new(7).unwrap(),
                ack_request: true,
                psn: Psn::new(number as u32).unwrap(),
            },
            extended: Extended::None,
            payload_bytes: (number * 37 % 4096) as u16,
        };
        let time_ns = start_ns + number * 1001;
        writer.frame((time_ns, 0, Direction::Outbound), &frame, "").unwrap();
    }
    writer.finish().unwrap()
}

/// The ERF records of a pcap file, alone. A pcap file may leave out what fills up a record.
fn unwrapped(pcap: &[u8]) -> Vec<u8> {
    let (mut records, mut at) = (Vec::new(), PCAP);
    while let Some(kept) = pcap.get(at + 8..at + 12) {
        let kept = u32::from_le_bytes(kept.try_into().unwrap()) as usize;
        let record = &pcap[at + PCAP_PACKET..at + PCAP_PACKET + kept];
        let whole = usize::from(u16::from_be_bytes([record[10], record[11]]));
        records.extend(record);
        records.resize(records.len() + whole - kept, 0);
        at += PCAP_PACKET + kept;
    }
    records
}

#[test]
fn our_own_records_are_read_without_the_pcap_around_them() {
    // A simulated capture begins in 1970.
    for start_ns in [0, 1 << 32, u64::from(NOW) * 1_000_000_000] {
        for packets in [1, 2, 3, 200] {
            let records = unwrapped(&written(Container::Erf, packets, start_ns));
            assert_eq!(read(&records).unwrap(), ("erf", packets as usize), "{start_ns}");
        }
    }
}

#[test]
#[allow(clippy::print_stdout)] // The person running the tests must see what was not tested.
fn needs_shared_records_of_a_real_card_are_read_without_the_pcap_around_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    if !folder.exists() {
        println!("skipped needs_shared_records_of_a_real_card: {} is not here", folder.display());
        return;
    }
    let pcap = std::fs::read(folder.join("data/captures/softroce-demo_infiniband.pcap")).unwrap();
    let records = unwrapped(&pcap);
    assert_eq!(read(&records).unwrap(), ("erf", 43));
    // However early it was stopped, from the first whole record on.
    for cut in (0..43).scan(0, |at, _| {
        *at += usize::from(u16::from_be_bytes([records[*at + 10], records[*at + 11]]));
        Some(*at)
    }) {
        assert_eq!(read(&records[..cut]).unwrap().0, "erf", "{cut}");
    }
}
