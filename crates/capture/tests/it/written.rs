//! What is written is read as it was meant, in every container, with right CRCs.

use clearlane_capture::files::{Input, Reader};
use clearlane_capture::write::{
    Container, Direction, Extended, Frame, Kept, Style, Wrapping, Writer,
};
use clearlane_capture::{Dissected, Endpoint, Options, Packet, Source, Truth, analyse, dissect};
use clearlane_ib::{
    Aeth, Bth, Deth, Lid, Opcode, Psn, QueuePairNumber, Reth, ServiceLevel, VirtualLane,
};
use proptest::prelude::*;
use std::io::{Cursor, Read};

const STYLES: [Style; 5] = [
    Style { container: Container::Pcapng, wrapping: Wrapping::Native, kept: Kept::Full },
    Style { container: Container::Pcapng, wrapping: Wrapping::Native, kept: Kept::Headers },
    Style { container: Container::Pcapng, wrapping: Wrapping::RoceV2, kept: Kept::Full },
    Style { container: Container::Pcapng, wrapping: Wrapping::RoceV2, kept: Kept::Headers },
    Style { container: Container::Erf, wrapping: Wrapping::Native, kept: Kept::Full },
];

fn lid() -> impl Strategy<Value = Lid> {
    (1_u16..0xc000).prop_map(|lid| Lid::new(lid).unwrap())
}

fn number() -> impl Strategy<Value = u32> {
    0_u32..1 << 24
}

/// A data packet, a datagram, a request to read, an acknowledgement or a CNP.
fn kind() -> impl Strategy<Value = (Opcode, Extended, u16)> {
    let qp = number().prop_map(|qp| QueuePairNumber::new(qp).unwrap());
    let reth = (any::<u64>(), any::<u32>(), any::<u32>());
    prop_oneof![
        (0_u16..=4096).prop_map(|bytes| (Opcode::RC_SEND_ONLY, Extended::None, bytes)),
        (0_u16..=4096).prop_map(|bytes| (Opcode::RC_SEND_MIDDLE, Extended::None, bytes)),
        (any::<u32>(), qp, 0_u16..=4096).prop_map(|(q_key, source, bytes)| {
            (Opcode::UD_SEND_ONLY, Extended::Deth(Deth { q_key, source }), bytes)
        }),
        reth.prop_map(|(virtual_address, r_key, dma_bytes)| {
            let reth = Reth { virtual_address, r_key, dma_bytes };
            (Opcode::RC_RDMA_READ_REQUEST, Extended::Reth(reth), 0)
        }),
        (0_u8..128, number()).prop_map(|(syndrome, msn)| {
            let aeth = Aeth { syndrome, msn: Psn::new(msn).unwrap() };
            (Opcode::RC_ACKNOWLEDGE, Extended::Aeth(aeth), 0)
        }),
        Just((Opcode::CNP, Extended::None, 0)),
    ]
}

fn frame() -> impl Strategy<Value = Frame> {
    let bits = any::<[bool; 5]>();
    (kind(), lid(), lid(), 0_u8..15, 0_u8..16, number(), number(), any::<u16>(), bits).prop_map(
        |((opcode, extended, payload_bytes), slid, dlid, vl, sl, qp, psn, p_key, bits)| Frame {
            lane: VirtualLane::new(vl).unwrap(),
            service_level: ServiceLevel::new(sl).unwrap(),
            slid,
            dlid,
            bth: Bth {
                opcode,
                solicited_event: bits[0],
                migration: bits[1],
                pad: Default::default(),
                version: Default::default(),
                p_key,
                fecn: bits[2],
                becn: bits[3],
                destination: QueuePairNumber::new(qp).unwrap(),
                ack_request: bits[4],
                psn: Psn::new(psn).unwrap(),
            },
            extended,
            payload_bytes,
        },
    )
}

/// The file of frames, a nanosecond more than a microsecond apart, on two interfaces in turn.
fn written(frames: &[Frame], style: Style, start_ns: u64) -> Vec<u8> {
    let names = ["H1/P1".to_owned(), "S2/P3".to_owned()];
    let mut writer = Writer::new(Vec::new(), style, &names).unwrap();
    for (number, frame) in frames.iter().enumerate() {
        let time = start_ns + number as u64 * 1001;
        let comment = if number % 2 == 0 { "queue 2048 B" } else { "" };
        let at = (time, number as u32 % 2, Direction::Inbound);
        writer.frame(at, frame, comment).unwrap();
    }
    writer.finish().unwrap()
}

fn same(packet: &Packet, frame: &Frame, style: Style) -> Result<(), TestCaseError> {
    let (bth, meant) = (packet.bth, frame.bth);
    let is_cnp = meant.opcode.is_cnp();
    match style.wrapping {
        Wrapping::Native => {
            prop_assert_eq!(packet.source, Endpoint::Lid(frame.slid.value()));
            prop_assert_eq!(packet.destination, Endpoint::Lid(frame.dlid.value()));
            let lane = (frame.lane.value(), frame.service_level.value());
            prop_assert_eq!(packet.lane, Some(lane));
            prop_assert_eq!((bth.opcode, bth.fecn), (meant.opcode, meant.fecn));
        }
        Wrapping::RoceV2 => {
            let address = |lid: Lid| Endpoint::Ipv4(10 << 24 | u32::from(lid.value()));
            prop_assert_eq!(packet.source, address(frame.slid));
            prop_assert_eq!(packet.destination, address(frame.dlid));
            prop_assert_eq!(packet.ce, meant.fecn && !is_cnp);
            prop_assert_eq!(bth.opcode.is_cnp(), is_cnp);
        }
    }
    let fields = |bth: &Bth| {
        (bth.p_key, bth.becn, bth.destination, bth.ack_request, bth.psn, bth.solicited_event)
    };
    prop_assert_eq!(fields(&bth), fields(&meant));
    prop_assert_eq!(packet.payload_bytes, u32::from(frame.payload_bytes));
    match frame.extended {
        Extended::None => {}
        Extended::Deth(deth) => {
            prop_assert_eq!(packet.source_queue_pair, Some(deth.source.value()));
        }
        Extended::Reth(reth) => prop_assert_eq!(packet.dma_bytes, Some(reth.dma_bytes)),
        Extended::Aeth(aeth) => prop_assert_eq!(packet.acknowledged, Some(aeth.acknowledged())),
    }
    let right = if style.kept == Kept::Full { Truth::Right } else { Truth::Unknown };
    prop_assert_eq!(packet.crcs.invariant, right);
    let variant = if style.wrapping == Wrapping::Native { right } else { Truth::Unknown };
    prop_assert_eq!(packet.crcs.variant, variant);
    Ok(())
}

/// Whether the ERF time of an instant is by chance what ibdump makes of its microsecond.
fn may_be_ibdumps(time_ns: u64) -> bool {
    let below = time_ns % 1_000_000_000;
    (below << 32).div_ceil(1_000_000_000) == below / 1000 * 4295
}

#[test]
fn the_name_of_an_interface_is_not_endless() {
    let names = ["H1/P1".repeat(10_000)];
    let file = Writer::new(Vec::new(), STYLES[0], &names).unwrap().finish().unwrap();
    let mut reader = Reader::open(Input::new(&file[..])).unwrap();
    assert!(reader.next().unwrap().is_none());
    let name = reader.interfaces()[0].name.as_deref().unwrap();
    assert!(name.starts_with("H1/P1H1") && name.chars().count() == 255, "{name}");
}

proptest! {
    #[test]
    fn frames_come_back_from_every_style(
        frames in proptest::collection::vec(frame(), 1..20),
        start_ns in 0_u64..1 << 60,
    ) {
        for style in STYLES {
            // The seconds of pcap end in 2106.
            let start_ns = start_ns % (4_294_967_290 * 1_000_000_000);
            let file = written(&frames, style, start_ns);
            let mut reader = Reader::open(Input::new(&file[..])).unwrap();
            for (number, frame) in frames.iter().enumerate() {
                let record = reader.next().unwrap().unwrap();
                let time_ns = start_ns + number as u64 * 1001;
                let is_ibdumps = style.container == Container::Erf && may_be_ibdumps(time_ns);
                prop_assert!(
                    record.time_ns == time_ns
                        || is_ibdumps && record.time_ns == time_ns / 1000 * 1000
                );
                prop_assert_eq!(record.interface, number as u32 % 2);
                match dissect(&record, true) {
                    Dissected::Packet(packet) => same(&packet, frame, style)?,
                    Dissected::Other(other) => prop_assert!(false, "{:?}", other),
                }
            }
            prop_assert!(reader.next().unwrap().is_none());
            prop_assert_eq!(reader.left_over().unwrap(), 0);
        }
    }

    /// One bit that is wrong on the way is found by a CRC, by lengths, or is one that no CRC of
    /// RoCE covers.
    #[test]
    fn a_wrong_bit_is_seen(frame in frame(), place in any::<prop::sample::Index>(), bit in 0..8) {
        let style = STYLES[0];
        let mut file = written(&[frame], style, 1 << 40);
        // The frame ends before the padding of its block; its bytes begin after all headers.
        let length = {
            let mut reader = Reader::open(Input::new(&file[..])).unwrap();
            reader.next().unwrap().unwrap().bytes.len()
        };
        let comment = "queue 2048 B";
        let text = file.windows(comment.len()).position(|w| w == comment.as_bytes()).unwrap();
        let end = text - 4 - (4 - length % 4) % 4;
        let at = end - length + place.index(length);
        file[at] ^= 1_u8 << bit;
        let mut reader = Reader::open(Input::new(&file[..])).unwrap();
        let record = reader.next().unwrap().unwrap();
        match dissect(&record, true) {
            Dissected::Packet(packet) => {
                let crcs = [packet.crcs.invariant, packet.crcs.variant];
                // A length that is wrong leaves less than is there, or asks for more.
                prop_assert!(crcs.contains(&Truth::Wrong) || crcs == [Truth::Unknown; 2]);
            }
            Dissected::Other(_) => {}
        }
    }

    /// No file makes a reader panic, whatever it begins as.
    #[test]
    fn damage_is_told(
        frames in proptest::collection::vec(frame(), 1..5),
        style in 0_usize..STYLES.len(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut file = written(&frames, STYLES[style], 1 << 40);
        for (place, byte) in damage {
            let place = place.index(file.len());
            file[place] = byte;
        }
        file.truncate(cut.index(file.len()) + 1);
        if let Ok(mut reader) = Reader::open(Input::new(&file[..])) {
            while let Ok(Some(record)) = reader.next() {
                dissect(&record, true);
            }
        }
        // Alone, and beside an undamaged one.
        let whole = written(&frames, STYLES[0], 1 << 40);
        for files in [vec![&file], vec![&whole, &file]] {
            let sources: Vec<Source<'_>> = files
                .into_iter()
                .map(|file| Source {
                    name: "file".into(),
                    open: Box::new(|| Ok(Box::new(Cursor::new(file.clone())) as Box<dyn Read>)),
                    bytes: None,
                })
                .collect();
            let _ = analyse(&sources, &Options::default(), &mut |_, _| true);
        }
    }
}
