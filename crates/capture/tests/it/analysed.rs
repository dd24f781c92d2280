//! Flows found in captures that were made so that the answer is known.

use clearlane_capture::judge::Standing;
use clearlane_capture::write::{
    Container, Direction, Extended, Frame, Kept, Style, Wrapping, Writer,
};
use clearlane_capture::{Analysed, ClockKnown, Endpoint, FoundFlow, Options, Source, analyse};
use clearlane_ib::random::Stream;
use clearlane_ib::{Aeth, Bth, Lid, Opcode, Psn, QueuePairNumber, ServiceLevel, VirtualLane};
use proptest::prelude::*;
use std::io::{Cursor, Read};

const STYLE: Style =
    Style { container: Container::Pcapng, wrapping: Wrapping::Native, kept: Kept::Headers };
const MILLISECOND: u64 = 1_000_000;

/// A packet from one LID to another and to a queue pair there.
fn frame(opcode: Opcode, (from, to): (u16, u16), queue_pair: u32, psn: u32) -> Frame {
    let lid = |lid| Lid::new(lid).unwrap();
    let is_ack = opcode == Opcode::RC_ACKNOWLEDGE;
    let is_data = !is_ack && !opcode.is_cnp();
    Frame {
        lane: VirtualLane::default(),
        service_level: ServiceLevel::default(),
        slid: lid(from),
        dlid: lid(to),
        bth: Bth {
            opcode,
            solicited_event: false,
            migration: false,
            pad: Default::default(),
            version: Default::default(),
            p_key: 0xffff,
            fecn: false,
            becn: opcode.is_cnp(),
            destination: QueuePairNumber::new(queue_pair).unwrap(),
            ack_request: is_data,
            psn: Psn::new(psn & 0xff_ffff).unwrap(),
        },
        extended: match is_ack {
            true => Extended::Aeth(Aeth { syndrome: Aeth::ACK, msn: Psn::default() }),
            false => Extended::None,
        },
        payload_bytes: if is_data { 2048 } else { 0 },
    }
}

fn marked(frame: Frame) -> Frame {
    Frame { bth: Bth { fecn: true, ..frame.bth }, ..frame }
}

/// A file of frames with their times, in their order.
fn file(frames: &[(u64, Frame)]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), STYLE, &["port".to_owned()]).unwrap();
    let mut sorted: Vec<&(u64, Frame)> = frames.iter().collect();
    sorted.sort_by_key(|(time, _)| *time);
    for (time, frame) in sorted {
        writer.frame((*time, 0, Direction::Inbound), frame, "").unwrap();
    }
    writer.finish().unwrap()
}

fn analysed(files: &[Vec<u8>]) -> Analysed {
    let sources: Vec<Source<'_>> = files
        .iter()
        .enumerate()
        .map(|(number, file)| Source {
            name: format!("file {number}"),
            open: Box::new(|| Ok(Box::new(Cursor::new(file.clone())) as Box<dyn Read>)),
            bytes: Some(file.len() as u64),
        })
        .collect();
    analyse(&sources, &Options::default(), &mut |_, _| true).unwrap().unwrap()
}

fn flow(analysed: &Analysed, from: u16, to: u16) -> &FoundFlow {
    let ends = (Endpoint::Lid(from), Endpoint::Lid(to));
    let mut fitting =
        analysed.found.flows.iter().filter(|flow| (flow.source, flow.destination) == ends);
    let only = fitting.next().unwrap_or_else(|| panic!("no flow {from} to {to}"));
    assert!(fitting.next().is_none(), "several flows {from} to {to}");
    only
}

const DATA: Opcode = Opcode::RC_SEND_ONLY;
const ACK: Opcode = Opcode::RC_ACKNOWLEDGE;
const CNP: Opcode = Opcode::CNP;

/// Data from 1 to 2 and back, acknowledged, with CNPs: each is found with its own.
#[test]
fn what_comes_back_is_found_by_the_numbers_it_acknowledges() {
    let mut frames = Vec::new();
    for number in 0..100_u32 {
        let time = MILLISECOND + u64::from(number) * 1000;
        // Queue pairs 0x11 and 0x12 of host 2, 0x21 and 0x22 of host 1, numbers far apart.
        for (queue_pair, first) in [(0x11, 0), (0x12, 500_000)] {
            frames.push((time, frame(DATA, (1, 2), queue_pair, first + number)));
            frames.push((time + 100, frame(ACK, (2, 1), queue_pair + 0x10, first + number)));
        }
        if number % 10 == 0 {
            frames.push((time + 200, frame(CNP, (2, 1), 0x22, 0)));
        }
    }
    let found = analysed(&[file(&frames)]).found;
    assert_eq!(found.flows.len(), 2);
    for (flow, queue_pairs, cnps) in
        [(&found.flows[0], (0x21, 0x11), 0), (&found.flows[1], (0x22, 0x12), 10)]
    {
        let known = (flow.source_queue_pair.unwrap(), flow.queue_pair.unwrap());
        assert_eq!((known, flow.cnps()), (queue_pairs, cnps));
        assert_eq!(flow.feedback.as_ref().unwrap().counts.acks, 100);
        assert_eq!((flow.counts.data_packets, flow.counts.payload_bytes), (100, 204_800));
        assert!((900..=1100).contains(&flow.gaps.median_ns), "{}", flow.gaps.median_ns);
        // 2048 bytes each microsecond, all but one gap.
        let bps = flow.rate_bps().unwrap();
        assert!((bps / 16.384e9 * 99.0 / 100.0 - 1.0).abs() < 1e-9, "{bps}");
    }
    assert_eq!(found.flows[1].standing, Standing::Contributor);
    assert_eq!(found.flows[0].standing, Standing::Unhurt);
}

/// One connection has sent 1,000 packets after the number that another has sent last.
#[test]
fn of_two_connections_that_sent_a_number_the_one_that_sent_it_last_is_answered() {
    let mut frames = Vec::new();
    for number in 0..5000 {
        frames.push((u64::from(number) * 100, frame(DATA, (1, 2), 0x11, number)));
    }
    for number in 4000..4010 {
        let time = 1_000_000 + u64::from(number) * 100;
        frames.push((time, frame(DATA, (1, 2), 0x12, number)));
        frames.push((time + 10, frame(ACK, (2, 1), 0x22, number)));
    }
    let found = analysed(&[file(&frames)]).found;
    let by = |queue_pair| found.flows.iter().find(|flow| flow.queue_pair == Some(queue_pair));
    let acks = |queue_pair| {
        by(queue_pair).and_then(|flow| flow.feedback.as_ref()).map(|back| back.counts.acks)
    };
    assert_eq!((acks(0x11), acks(0x12)), (None, Some(10)));
}

/// As in the paper: the sender's capture has what it receives, the receiver's what that does.
#[test]
fn data_and_answers_in_files_of_their_own_are_one_flow() {
    let (mut at_sender, mut at_receiver) = (Vec::new(), Vec::new());
    for number in 0..50_u32 {
        let time = MILLISECOND + u64::from(number) * 1000;
        at_receiver.push((time, marked(frame(DATA, (1, 2), 0x11, 7 + number))));
        at_sender.push((time + 900, frame(ACK, (2, 1), 0x21, 7 + number)));
        at_sender.push((time + 950, frame(CNP, (2, 1), 0x21, 0)));
    }
    let analysed = analysed(&[file(&at_sender), file(&at_receiver)]);
    let flow = flow(&analysed, 1, 2);
    assert_eq!((flow.source_queue_pair, flow.queue_pair), (Some(0x21), Some(0x11)));
    assert_eq!((flow.counts.marked, flow.cnps()), (50, 50));
    // No packet is in both.
    assert_eq!(analysed.captures[1].clock.known, ClockKnown::Unknown);
}

#[test]
fn a_flow_that_is_slow_while_others_are_marked_is_a_victim() {
    let mut frames = Vec::new();
    let (mut slow, mut fast) = (0, 0);
    for step in 0..2000_u32 {
        let time = u64::from(step) * 10_000;
        let congested = (500..1500).contains(&step);
        let contributor = frame(DATA, (1, 4), 0x11, step);
        frames.push((time, if congested { marked(contributor) } else { contributor }));
        // One packet in three while there is congestion.
        if !congested || step % 3 == 0 {
            frames.push((time + 100, frame(DATA, (2, 5), 0x12, slow)));
            slow += 1;
        }
        frames.push((time + 200, frame(DATA, (3, 6), 0x13, fast)));
        fast += 1;
    }
    let analysed = analysed(&[file(&frames)]);
    assert_eq!(flow(&analysed, 1, 4).standing, Standing::Contributor);
    assert_eq!(flow(&analysed, 3, 6).standing, Standing::Unhurt);
    match flow(&analysed, 2, 5).standing {
        Standing::Victim { share } => assert!((share - 1.0 / 3.0).abs() < 0.05, "{share}"),
        other => panic!("{other:?}"),
    }
}

/// Two pairs of flows to four ports, each pair marked in phases of its own.
#[test]
fn flows_to_different_ports_share_a_link_if_they_are_marked_together() {
    let mut frames = Vec::new();
    let mut streams = [0, 1].map(|pair| Stream::new(1, "phases of marks", pair));
    let mut on = [false; 2];
    for step in 0..4000_u32 {
        let time = u64::from(step) * 10_000;
        for (on, stream) in on.iter_mut().zip(&mut streams) {
            *on ^= stream.unit() < 0.005;
        }
        for host in 1..5 {
            let one = frame(DATA, (host, host + 10), 0x10 + u32::from(host), step);
            let is_marked = on[usize::from(host > 2)] && step % 2 == 0;
            let at = time + u64::from(host);
            frames.push((at, if is_marked { marked(one) } else { one }));
        }
    }
    let found = analysed(&[file(&frames)]).found;
    let groups = found.bottlenecks.iter().map(|group| (&group.flows[..], group.with));
    let expected: [(&[usize], _); 4] =
        [(&[0], None), (&[1], Some(0)), (&[2], None), (&[3], Some(2))];
    assert_eq!(groups.collect::<Vec<_>>(), expected);
}

proptest! {
    /// Whatever the offset, drift and delays, the clock is right to within what is claimed.
    #[test]
    fn clocks_are_right_to_within_what_is_said(
        offset in -1_000_000_000_i64..1_000_000_000,
        drift_ppm in -50_i64..50,
        delays in proptest::collection::vec((100_u64..5000, 100_u64..5000), 40..80),
    ) {
        let start = 1_000_000_000_000_u64;
        let other = |time: u64| {
            let since = time as i64 - start as i64;
            time.saturating_add_signed(offset + since * drift_ppm / 1_000_000)
        };
        let (mut here, mut there) = (Vec::new(), Vec::new());
        for (number, (out, back)) in delays.iter().enumerate() {
            let (time, psn) = (start + number as u64 * MILLISECOND, number as u32);
            let data = frame(DATA, (1, 2), 0x11, psn);
            let ack = frame(ACK, (2, 1), 0x21, psn);
            here.push((time, data));
            there.push((other(time + out), data));
            there.push((other(time + out + 10), ack));
            here.push((time + out + 10 + back, ack));
        }
        // A second later, one that the other capture lacks.
        let late = other(start + 1000 * MILLISECOND);
        there.push((late, frame(DATA, (3, 2), 0x31, 0)));
        let analysed = analysed(&[file(&here), file(&there)]);
        let clock = analysed.captures[1].clock;
        prop_assert_eq!(clock.known, ClockKnown::Measured);
        prop_assert_eq!(clock.common, 2 * delays.len() as u64);
        let within = clock.within_ns.unwrap() as i64;
        // How far it is ahead by its own time, at each of its ends and where it is measured.
        for at_ns in [other(start), clock.at_ns, late] {
            let since = at_ns as i64 - (start as i64 + offset);
            let ahead = offset + since * drift_ppm / 1_000_000;
            let drifted = (at_ns as i64 - clock.at_ns as i64) as f64 * 1e-9 * clock.drift_ns;
            let said = clock.ahead_ns + drifted.round() as i64;
            prop_assert!((said - ahead).abs() <= within + 3, "{clock:?} at {at_ns}, not {ahead}");
        }
        // Delays that differ by 5 µs over 40 ms and more leave that much room for a drift.
        let wrong = (clock.drift_ns * 1e-3 - drift_ppm as f64).abs();
        prop_assert!(wrong < 250.0, "{clock:?}: {wrong} ppm");
    }
}
