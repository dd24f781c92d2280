//! Credits: how many packets a buffer holds, when the space they leave is known at the sender, and
//! which lane they are taken from. All times are exact.

use crate::support::{Case, Greedy, build, greedy, group, idle, one_message, tables};
use clearlane_fabric::{Fabric, NodeKind};
use clearlane_ib::{BitsPerSecond, Bytes, Picoseconds, ServiceLevel, VirtualLane};
use clearlane_sim::{Ending, GroupSettings, InputQueueing, Outcome, Parameters, preset, ranges};
use clearlane_subnet::{SlToVlTable, Subnet};
use clearlane_workload::{Event, Op, Rank, RankProgram, Transport};

/// 4x QDR: 250 ps a byte. A datagram of 2 KiB is 2,082 B on the wire, which take 33 credits.
const BYTE_PS: u64 = 250;
const PACKET_PS: u64 = 2082 * BYTE_PS;
const PACKET_CREDITS: u64 = 33;
/// Longer than anything else here, so that credits are what is waited for.
const CREDIT_DELAY: Picoseconds = Picoseconds(5_000_000);

/// Devices with so many credits a lane.
fn devices(credits: u64) -> Parameters {
    let qdr = (preset::by_name("qdr").unwrap().parameters)();
    Parameters { buffer: Bytes(credits * 64), ..qdr }
}

/// Buffers that hold `packets` and no more: exactly that, and a credit less than one more needs.
fn buffers_of(packets: u64) -> [u64; 2] {
    [packets * PACKET_CREDITS, (packets + 1) * PACKET_CREDITS - 1]
}

/// Hosts at the ends of so many switches in a row, one a switch if there are several.
fn row_of(switches: u64) -> (Fabric, u32) {
    match switches {
        1 => (build("star:2"), 1),
        _ => (build(&format!("chain:{switches}x1")), switches as u32 - 1),
    }
}

fn run(fabric: &Fabric, parameters: Parameters, sender: Box<dyn RankProgram>) -> Outcome {
    let ranks = fabric.ids(NodeKind::ChannelAdapter).count();
    let mut programs: Vec<_> = (0..ranks).map(|_| idle()).collect();
    programs[0] = sender;
    Case {
        fabric,
        subnet: &tables(fabric, 1, false),
        parameters,
        groups: vec![group(Transport::Ud); 2],
        programs,
        until: Picoseconds(1_000_000_000),
        width: 13,
    }
    .run()
}

/// Post → last byte in memory, summed over the messages of a group.
fn latency(outcome: &Outcome, group: usize) -> u64 {
    assert_eq!(outcome.ending, Ending::Drained);
    assert_eq!(outcome.totals.messages_delivered, outcome.totals.messages_posted);
    outcome.groups[group].iter().map(|slice| slice.latency_sum_ps).sum::<u128>() as u64
}

/// Where the receiver takes nothing, every buffer on the way fills up and no packet more enters.
#[test]
fn a_buffer_takes_the_packets_it_has_credits_for_and_not_one_more() {
    let never = Some(*ranges::RATE.start());
    for packets in 1..=4 {
        for (switches, credits) in
            [1, 3].into_iter().flat_map(|s| buffers_of(packets).map(|b| (s, b)))
        {
            for input_queueing in [InputQueueing::Fifo, InputQueueing::Voq] {
                let (fabric, last) = row_of(switches);
                let parameters =
                    Parameters { drain_rate: never, input_queueing, ..devices(credits) };
                let outcome = run(&fabric, parameters, Greedy::to(last, PACKET_PS, 0));
                // One buffer a switch and that of the receiver.
                let held = packets * (switches + 1);
                assert_eq!(outcome.totals.packets_injected, held, "{credits}, {switches} switches");
            }
        }
    }
}

/// A sender with credits for n packets sends n of them and then one for each that is returned: the
/// tail of the first has left the switch a packet's time after its head came through, and the news
/// takes a cable and the credit delay.
#[test]
fn a_buffer_of_n_packets_passes_n_in_a_round_trip_of_their_credits() {
    let sent = 11;
    for packets in 1..=3 {
        for (switches, credits) in
            [1, 3].into_iter().flat_map(|s| buffers_of(packets).map(|b| (s, b)))
        {
            for input_queueing in [InputQueueing::Fifo, InputQueueing::Voq] {
                let (fabric, last) = row_of(switches);
                let (credit_delay, devices) = (CREDIT_DELAY, devices(credits));
                let p = Parameters { credit_delay, input_queueing, ..devices };
                let (cable, crossing) = (p.cable_delay.0, p.switch_delay.0);
                let round = cable + crossing + PACKET_PS + cable + CREDIT_DELAY.0;
                // Packets 0 to 10: `packets` a round, one behind the other.
                let last_leaves = (sent - 1) / packets * round + (sent - 1) % packets * PACKET_PS;
                let way = (switches + 1) * cable + switches * crossing;
                let expected = p.send_overhead.0 + last_leaves + way + PACKET_PS;
                let message = one_message(last, sent * 2048, 0);
                let found = latency(&run(&fabric, p, message), 0);
                assert_eq!(found, expected, "{credits} credits, {switches} switches");
            }
        }
    }
}

/// A receiver that drains slower than the link sends: its one packet's credits return when it is
/// in memory.
#[test]
fn a_receive_buffer_of_one_packet_is_free_when_the_packet_is_drained() {
    let drain_ps = 2082 * 1000;
    let drain_rate = Some(BitsPerSecond(8_000_000_000));
    for (credits, credit_delay) in
        buffers_of(1).into_iter().flat_map(|c| [(c, Picoseconds(0)), (c, CREDIT_DELAY)])
    {
        let p = Parameters { drain_rate, credit_delay, ..devices(credits) };
        let (cable, crossing) = (p.cable_delay.0, p.switch_delay.0);
        // The next one stands ready in the switch by then.
        let round = PACKET_PS + cable + drain_ps + cable + credit_delay.0;
        assert!(crossing < drain_ps);
        let way = 2 * cable + crossing + PACKET_PS + drain_ps;
        let expected = p.send_overhead.0 + 6 * round + way;
        let found = latency(&run(&build("star:2"), p, one_message(1, 7 * 2048, 0)), 0);
        assert_eq!(found, expected, "{credits} credits, {credit_delay}");
    }
}

/// Fills a buffer with packets of one credit and then posts one of 33.
struct SmallThenLarge {
    small: u64,
    large_at: u64,
}

impl RankProgram for SmallThenLarge {
    fn step(&mut self, now: Picoseconds, _: Event) -> Op {
        // Of open-loop traffic: no CPU spaces them.
        let offer =
            |bytes, group| Op::Offer { dst: Rank(1), bytes, group, next: Some(Picoseconds(0)) };
        if self.small > 0 {
            self.small -= 1;
            // 64 B on the wire.
            return offer(30, 0);
        }
        match self.large_at {
            u64::MAX => Op::Done,
            at if now.0 < at => Op::WaitUntil(Picoseconds(at)),
            _ => {
                self.large_at = u64::MAX;
                offer(2048, 1)
            }
        }
    }
}

/// Credits come back one by one; who waits for 33 goes at the 33rd, whether others follow or not.
#[test]
fn a_packet_leaves_at_the_return_that_completes_its_credits() {
    const SMALL_PS: u64 = 64 * BYTE_PS;
    for spare in [0, 1, 7, 40] {
        let credits = PACKET_CREDITS + spare;
        // The small ones leave back to back from the end of the overhead on.
        let p = Parameters { credit_delay: CREDIT_DELAY, ..devices(credits) };
        let (cable, crossing) = (p.cable_delay.0, p.switch_delay.0);
        let large_at = credits * SMALL_PS;
        let sender = || Box::new(SmallThenLarge { small: credits, large_at });
        let first_crosses = p.send_overhead.0 + cable + crossing;
        let crosses = |index: u64| first_crosses + index * SMALL_PS;

        // The adapter waits: the 33rd has left the switch.
        let returned = crosses(PACKET_CREDITS - 1) + SMALL_PS + cable + CREDIT_DELAY.0;
        let expected = returned + 2 * cable + crossing + PACKET_PS - large_at;
        let outcome = run(&build("star:2"), p.clone(), sender());
        assert_eq!(latency(&outcome, 1), expected, "the adapter, {credits} credits");

        // The switch waits: the receiver has drained the 33rd, at 1 ns a byte.
        let slow = Parameters { drain_rate: Some(BitsPerSecond(8_000_000_000)), ..p };
        let drained = crosses(0) + SMALL_PS + cable + PACKET_CREDITS * 64_000;
        let returned = drained + cable + CREDIT_DELAY.0;
        let expected = returned + PACKET_PS + cable + 2_082_000 - large_at;
        let outcome = run(&build("star:2"), slow, sender());
        assert_eq!(latency(&outcome, 1), expected, "the switch, {credits} credits");
    }
}

/// Two lanes of the link between two switches, filled one packet's time apart by hosts 0 and 1. The
/// packets of hosts 2 and 3 come to it at one instant, on a lane each, and go when the credits of
/// their own lane are back, one behind the other.
#[test]
fn of_two_lanes_that_wait_each_leaves_at_its_own_return() {
    // Hosts 0 to 3 on the first switch, 4 to 7 on the second.
    let fabric = build("chain:2x4");
    let late = 2 * PACKET_PS;
    for (credits, input_queueing) in buffers_of(1)
        .into_iter()
        .flat_map(|c| [InputQueueing::Fifo, InputQueueing::Voq].map(|queueing| (c, queueing)))
    {
        let p = Parameters { credit_delay: CREDIT_DELAY, input_queueing, ..devices(credits) };
        let (cable, crossing) = (p.cable_delay.0, p.switch_delay.0);
        let of_lane =
            |lane| GroupSettings { transport: Transport::Ud, sl: ServiceLevel::new(lane) };
        let send = |to, group, start| -> Box<dyn RankProgram> {
            Box::new(Greedy { group, start, messages: 1, ..greedy(to) })
        };
        let mut programs = vec![send(4, 0, 0), send(5, 1, PACKET_PS)];
        programs.extend([send(6, 2, late), send(7, 3, late), idle(), idle(), idle(), idle()]);
        let outcome = Case {
            fabric: &fabric,
            subnet: &tables(&fabric, 2, false),
            parameters: p.clone(),
            groups: [0, 1, 0, 1].map(of_lane).to_vec(),
            programs,
            until: Picoseconds(1_000_000_000),
            width: 13,
        }
        .run();
        let first_crosses = p.send_overhead.0 + cable + crossing;
        let returned = first_crosses + cable + crossing + PACKET_PS + cable + CREDIT_DELAY.0;
        let rest = cable + crossing + PACKET_PS + cable;
        assert_eq!(latency(&outcome, 2), returned + rest - late, "{credits} credits");
        assert_eq!(latency(&outcome, 3), returned + PACKET_PS + rest - late, "{credits} credits");
    }
}

/// Two packets of host 0 and one of host 1, which comes while the second waits for credits. The
/// exit waits from the end of a packet until the next one's credits are back, twice.
#[test]
fn a_wait_is_counted_from_when_credits_were_first_missing() {
    let fabric = build("star:3");
    let p = Parameters { credit_delay: CREDIT_DELAY, ..devices(PACKET_CREDITS) };
    let send = |messages, start| -> Box<dyn RankProgram> {
        Box::new(Greedy { messages, start, ..greedy(2) })
    };
    // A buffer in the switch holds one packet, so the second of host 0 is there a round trip later.
    let round = 2 * p.cable_delay.0 + p.switch_delay.0 + PACKET_PS + CREDIT_DELAY.0;
    let outcome = Case {
        fabric: &fabric,
        subnet: &tables(&fabric, 1, false),
        parameters: Parameters { drain_rate: Some(BitsPerSecond(1_000_000_000)), ..p.clone() },
        groups: vec![group(Transport::Ud)],
        programs: vec![send(2, 0), send(1, round + PACKET_PS), idle()],
        until: Picoseconds(1_000_000_000),
        width: 13,
    }
    .run();
    assert_eq!((&outcome.ending, outcome.totals.packets_delivered), (&Ending::Drained, 3));
    let switch = fabric.ids(NodeKind::Switch).next().unwrap();
    let to_host = |c: &&clearlane_sim::ChannelRecord| (c.node, c.port) == (switch.0, 3);
    let exit = outcome.channels.iter().find(to_host).unwrap();
    // 8 ns a byte in the host; the second is ready a round after the first was.
    let back = PACKET_PS + p.cable_delay.0 + 2082 * 8_000 + p.cable_delay.0 + CREDIT_DELAY.0;
    let after = back - PACKET_PS;
    assert_eq!(exit.port_xmit_wait_ps, back - round + after);
}

/// A subnet on a star of three in which packets from one port to another leave on VL 1, all else
/// on VL 0.
fn one_pair_on_lane_1(fabric: &Fabric, input: usize, output: usize) -> Subnet {
    let mut subnet = tables(fabric, 1, false);
    // Rows by input and output, port 0 included.
    let stride = 4;
    let mut rows = vec![[VirtualLane::default(); 16]; stride * stride];
    rows[input * stride + output] = [VirtualLane::new(1).unwrap(); 16];
    let switch = fabric.ids(NodeKind::Switch).next().unwrap();
    subnet.sl_to_vl.set(switch, SlToVlTable::PerPorts { stride, rows });
    subnet
}

/// Hosts 0 and 1 fill the buffers of host 2, which takes nothing: one lane's, or those of two
/// lanes if SL2VL of (port 1, port 3) is another than that of (port 2, port 3).
#[test]
fn the_lane_is_that_of_input_and_output_in_this_order() {
    let fabric = build("star:3");
    let held = 2;
    for input_queueing in [InputQueueing::Fifo, InputQueueing::Voq] {
        for ((input, output), lanes) in [((1, 3), 2), ((2, 3), 2), ((3, 1), 1), ((3, 2), 1)] {
            let drain_rate = Some(*ranges::RATE.start());
            let buffer = devices(held * PACKET_CREDITS);
            let outcome = Case {
                fabric: &fabric,
                subnet: &one_pair_on_lane_1(&fabric, input, output),
                parameters: Parameters { drain_rate, input_queueing, ..buffer },
                groups: vec![group(Transport::Ud)],
                programs: vec![Greedy::to(2, PACKET_PS, 0), Greedy::to(2, PACKET_PS, 0), idle()],
                until: Picoseconds(1_000_000_000),
                width: 13,
            }
            .run();
            let switch = fabric.ids(NodeKind::Switch).next().unwrap();
            let to_host = |c: &&clearlane_sim::ChannelRecord| (c.node, c.port) == (switch.0, 3);
            let exit = outcome.channels.iter().find(to_host).unwrap();
            assert_eq!(exit.port_xmit_pkts, lanes * held, "from {input} to {output} on VL 1");
            // The two buffers they come in by are full, too.
            assert_eq!(outcome.totals.packets_injected, (lanes + 2) * held);
        }
    }
}
