//! Situations whose outcome is known without simulating.

use crate::support::{
    Case, Greedy, build, delivered, greedy, group, idle, near, one_message, parking_lot, tables,
};
use clearlane_fabric::{Fabric, NodeKind};
use clearlane_ib::{BitsPerSecond, Bytes, LinkSpeed, LinkWidth, Picoseconds};
use clearlane_sim::{Ending, Outcome, Parameters, Recording, preset};
use clearlane_workload::{PingPong, Rank, RankProgram, Transport};

fn qdr() -> Parameters {
    (preset::by_name("qdr").unwrap().parameters)()
}

/// 2 KiB datagrams of 2,082 B on the wire, at 4x QDR (250 ps a byte).
const WIRE: u64 = 2082;
const PACKET_PS: u64 = WIRE * 250;

/// All hosts send to `to` at full rate; the rest of the run is steady after a tenth.
fn incast(spec: &str, senders: &[u32], to: u32) -> (Outcome, f64) {
    let fabric = build(spec);
    let subnet = tables(&fabric, 1, false);
    let ranks = fabric.ids(NodeKind::ChannelAdapter).count() as u32;
    let program =
        |rank| if senders.contains(&rank) { Greedy::to(to, PACKET_PS, 0) } else { idle() };
    let until = Picoseconds(4_000_000_000);
    let outcome = Case {
        fabric: &fabric,
        subnet: &subnet,
        parameters: qdr(),
        groups: vec![group(Transport::Ud)],
        programs: (0..ranks).map(program).collect(),
        until,
        width: 13,
    }
    .run();
    // What the last link carries in half of the run, in payload.
    let full = until.0 as f64 / 2.0 / PACKET_PS as f64 * 2048.0;
    (outcome, full)
}

#[test]
fn incast_shares_the_last_link_equally() {
    for senders in [2u32, 16] {
        let list: Vec<u32> = (0..senders).collect();
        let (outcome, full) = incast(&format!("star:{}", senders + 1), &list, senders);
        for sender in list {
            let share = delivered(&outcome, sender, senders, 5) / full;
            near(share, 1.0 / f64::from(senders), 0.01);
        }
    }
}

/// Two switches, H1 H2 | H3 H4 H5, everybody to H4: the link between the switches is one of three
/// inputs of the second one (seed 002, figure 4, congestion control off).
#[test]
fn a_parking_lot_halves_the_share_of_those_behind_the_shared_link() {
    let fabric = parking_lot();
    let subnet = tables(&fabric, 1, false);
    let until = Picoseconds(4_000_000_000);
    let outcome = Case {
        fabric: &fabric,
        subnet: &subnet,
        parameters: qdr(),
        groups: vec![group(Transport::Ud)],
        programs: vec![
            Greedy::to(3, PACKET_PS, 0),
            Greedy::to(3, PACKET_PS, 0),
            Greedy::to(3, PACKET_PS, 0),
            idle(),
            Greedy::to(3, PACKET_PS, 0),
        ],
        until,
        width: 13,
    }
    .run();
    let full = until.0 as f64 / 2.0 / PACKET_PS as f64 * 2048.0;
    for (sender, share) in [(0, 1.0 / 6.0), (1, 1.0 / 6.0), (2, 1.0 / 3.0), (4, 1.0 / 3.0)] {
        near(delivered(&outcome, sender, 3, 5) / full, share, 0.01);
    }
}

/// Post → last byte of one packet over `h` switches at rest.
fn latency(outcome: &Outcome) -> u128 {
    assert_eq!(outcome.ending, Ending::Drained);
    assert_eq!(outcome.totals.messages_delivered, 1);
    outcome.groups[0].iter().map(|slice| slice.latency_sum_ps).sum()
}

fn single(fabric: &Fabric, from: u32, to: u32, bytes: u64, parameters: Parameters) -> Outcome {
    let subnet = tables(fabric, 1, false);
    let ranks = fabric.ids(NodeKind::ChannelAdapter).count() as u32;
    let at = 1_000_000;
    let program = |rank| if rank == from { one_message(to, bytes, at) } else { idle() };
    Case {
        fabric,
        subnet: &subnet,
        parameters,
        groups: vec![group(Transport::Ud)],
        programs: (0..ranks).map(program).collect(),
        until: Picoseconds(100_000_000),
        width: 13,
    }
    .run()
}

#[test]
fn zero_load_latency_is_the_sum_of_its_parts_to_the_picosecond() {
    let p = qdr();
    for switches in 1..=6u64 {
        let fabric = match switches {
            1 => build("star:2"),
            _ => build(&format!("chain:{switches}x1")),
        };
        for bytes in [1, 64, 1000, 2048] {
            let last = if switches == 1 { 1 } else { switches as u32 - 1 };
            let outcome = single(&fabric, 0, last, bytes, p.clone());
            let cables = (switches + 1) * p.cable_delay.0;
            let crossing = switches * p.switch_delay.0;
            let expected = p.send_overhead.0 + cables + crossing + (bytes + 34) * 250;
            assert_eq!(latency(&outcome), u128::from(expected), "{switches} switches, {bytes} B");
        }
    }
}

/// The histogram holds what the sums hold, to its two significant digits.
#[test]
fn latencies_are_recorded_in_nanoseconds() {
    let outcome = single(&build("chain:3x1"), 0, 2, 2048, qdr());
    let exact = latency(&outcome) as f64 / 1000.0;
    let slice = outcome.groups[0].iter().find(|slice| slice.messages == 1).unwrap();
    near(slice.latency_ns.value_at_quantile(0.5) as f64, exact, 0.01);
}

#[test]
fn a_long_message_adds_its_packets_on_the_slowest_link() {
    let p = qdr();
    let outcome = single(&build("chain:3x1"), 0, 2, 10_000, p.clone());
    let path = p.send_overhead.0 + 4 * p.cable_delay.0 + 3 * p.switch_delay.0;
    let expected = path + (10_000 + 5 * 34) * 250;
    assert_eq!(latency(&outcome), u128::from(expected));
}

/// From a slow link to a fast one a switch must not begin before it can go on to the end; from a
/// fast one to a slow one it may cut through.
#[test]
fn a_change_of_speed_delays_by_what_the_slow_link_needs() {
    let p = qdr();
    let mut fabric = build("star:2");
    for slow in 0..2u32 {
        fabric.set_speed(clearlane_fabric::LinkId(slow), LinkWidth::X4, LinkSpeed::Sdr);
        fabric.set_speed(clearlane_fabric::LinkId(1 - slow), LinkWidth::X4, LinkSpeed::Qdr);
        for (from, to) in [(0, 1), (1, 0)] {
            let outcome = single(&fabric, from, to, 2048, p.clone());
            let fixed = p.send_overhead.0 + 2 * p.cable_delay.0 + p.switch_delay.0;
            // Either way the packet's tail passes the slow link once, at 1 ns a byte.
            assert_eq!(latency(&outcome), u128::from(fixed + WIRE * 1000));
        }
    }
}

#[test]
fn a_ping_pong_takes_two_one_way_latencies_and_overheads_a_round() {
    let p = qdr();
    let fabric = build("chain:3x1");
    let subnet = tables(&fabric, 1, false);
    let rounds = 10;
    let side = |rank: u32, peer: u32| -> Box<dyn RankProgram> {
        Box::new(PingPong::new(Rank(rank), Rank(peer), 64, 0, rounds))
    };
    let outcome = Case {
        fabric: &fabric,
        subnet: &subnet,
        parameters: p.clone(),
        groups: vec![group(Transport::Ud)],
        programs: vec![side(0, 2), idle(), side(2, 0)],
        until: Picoseconds(1_000_000_000),
        width: 13,
    }
    .run();
    assert_eq!(outcome.ending, Ending::Drained);
    assert_eq!(outcome.totals.messages_delivered, 20);
    let one_way = p.send_overhead.0 + 4 * p.cable_delay.0 + 3 * p.switch_delay.0 + 98 * 250;
    let total: u128 = outcome.groups[0].iter().map(|slice| slice.latency_sum_ps).sum();
    assert_eq!(total, u128::from(20 * one_way));
    // The last answer arrives after 20 one-way times, 19 receive overheads between them and at most
    // a handful of 1 ps operations.
    let end = 20 * one_way + 20 * p.receive_overhead.0;
    assert!((end..end + 200).contains(&outcome.duration.0), "{} {end}", outcome.duration.0);
}

/// With one packet outstanding an RC queue pair sends one packet per round trip.
#[test]
fn a_window_of_one_sends_a_packet_per_round_trip() {
    let fabric = build("chain:2x1");
    let subnet = tables(&fabric, 1, false);
    let parameters = Parameters { outstanding: 1, send_overhead: Picoseconds(0), ..qdr() };
    let until = Picoseconds(4_000_000_000);
    let outcome = Case {
        fabric: &fabric,
        subnet: &subnet,
        parameters: parameters.clone(),
        groups: vec![group(Transport::Rc)],
        programs: vec![Greedy::to(1, PACKET_PS, 0), idle()],
        until,
        width: 13,
    }
    .run();
    let way = 3 * parameters.cable_delay.0 + 2 * parameters.switch_delay.0;
    let round = 2 * way + (2048 + 26) * 250 + 30 * 250;
    let packets = until.0 as f64 / 2.0 / round as f64;
    near(delivered(&outcome, 0, 1, 5) / 2048.0, packets, 0.001);
    assert_eq!(outcome.totals.acks_injected, outcome.totals.packets_delivered);
}

/// A message of so many packets, of which so many may be unacknowledged and one ACK covers.
fn acknowledged(packets: u64, outstanding: u32, ack_coalescing: u32) -> Outcome {
    let fabric = build("star:2");
    let case = Case {
        fabric: &fabric,
        subnet: &tables(&fabric, 1, false),
        parameters: Parameters { outstanding, ack_coalescing, ..qdr() },
        groups: vec![group(Transport::Rc)],
        programs: vec![one_message(1, packets * 2048, 0), idle()],
        until: Picoseconds(1_000_000_000),
        width: 13,
    };
    case.run()
}

/// An ACK for every c-th packet of a message of k and one for its last: ⌈k / c⌉.
#[test]
fn a_message_is_acknowledged_every_so_many_packets_and_at_its_end() {
    for every in 1..=5 {
        for packets in 1..=11 {
            let totals = acknowledged(packets, 16, every).totals;
            assert_eq!(totals.packets_delivered, packets);
            let acks = packets.div_ceil(u64::from(every));
            assert_eq!(totals.acks_injected, acks, "{packets} packets, an ACK for {every}");
            assert_eq!(totals.acks_delivered, acks);
        }
    }
}

/// A host with a backlog of 20 packets acknowledges as soon as the packet it sends has left.
#[test]
fn an_ack_leaves_before_data() {
    let p = Parameters { outstanding: 1, ..qdr() };
    let fabric = build("star:2");
    let send = |to, group, bytes, start| -> Box<dyn RankProgram> {
        Box::new(Greedy { group, bytes, start, messages: 1, ..greedy(to) })
    };
    let outcome = Case {
        fabric: &fabric,
        subnet: &tables(&fabric, 1, false),
        parameters: p.clone(),
        groups: vec![group(Transport::Rc), group(Transport::Ud)],
        programs: vec![send(1, 0, 2 * 2048, 2 * PACKET_PS), send(0, 1, 20 * 2048, 0)],
        until: Picoseconds(1_000_000_000),
        width: 13,
    }
    .run();
    assert_eq!((outcome.ending, outcome.totals.acks_delivered), (Ending::Drained, 2));
    let took: u128 = outcome.groups[0].iter().map(|slice| slice.latency_sum_ps).sum();
    let (packet, way) = ((2048 + 26) * 250, 2 * p.cable_delay.0 + p.switch_delay.0);
    let alone = p.send_overhead.0 + packet + way + 30 * 250 + way + packet + way;
    let waited = took - u128::from(alone);
    assert!(waited > 0 && waited <= u128::from(PACKET_PS), "{waited} ps");
}

/// With as many outstanding as an ACK covers, so many leave back to back and the next when that
/// ACK is back.
#[test]
fn a_window_as_wide_as_an_ack_covers_is_sent_once_a_round_trip() {
    let p = qdr();
    let packet = (2048 + 26) * 250;
    let way = 2 * p.cable_delay.0 + p.switch_delay.0;
    for every in 1..=5 {
        for packets in 1..=11 {
            let outcome = acknowledged(packets, every, every);
            let every = u64::from(every);
            let round = every * packet + way + 30 * 250 + way;
            let last_leaves = (packets - 1) / every * round + (packets - 1) % every * packet;
            let expected = p.send_overhead.0 + last_leaves + way + packet;
            assert_eq!(latency(&outcome), u128::from(expected), "{packets} packets by {every}");
        }
    }
}

/// A receiver that drains slower than its link sets the rate of everybody who sends to it.
#[test]
fn a_slow_receiver_is_a_bottleneck() {
    let fabric = build("star:2");
    let subnet = tables(&fabric, 1, false);
    let until = Picoseconds(4_000_000_000);
    let drain = Some(BitsPerSecond(8_000_000_000));
    let outcome = Case {
        fabric: &fabric,
        subnet: &subnet,
        parameters: Parameters { drain_rate: drain, ..qdr() },
        groups: vec![group(Transport::Ud)],
        programs: vec![Greedy::to(1, PACKET_PS, 0), idle()],
        until,
        width: 13,
    }
    .run();
    let packets = until.0 as f64 / 2.0 / (WIRE as f64 * 1000.0);
    near(delivered(&outcome, 0, 1, 5) / 2048.0, packets, 0.01);
    let exit = outcome.channels.iter().find(|c| c.port_xmit_wait_ps > 0).expect("somebody waits");
    assert!(exit.port_xmit_wait_ps > until.0 / 2);
}

/// Head-of-line blocking and its cure: on one lane the flow to a free host is held up behind the
/// congested one; on a lane of its own it has the whole rest of the shared link.
#[test]
fn a_lane_of_its_own_frees_a_victim() {
    // chain:2x4: hosts 0 to 3 on the first switch, 4 to 7 on the second.
    let fabric = build("chain:2x4");
    let until = Picoseconds(4_000_000_000);
    let full = until.0 as f64 / 2.0 / PACKET_PS as f64 * 2048.0;
    let share = |lanes: u8| {
        let subnet = tables(&fabric, lanes, false);
        let mut victims = group(Transport::Ud);
        victims.sl = clearlane_ib::ServiceLevel::new(1);
        let mut programs: Vec<_> = (0..8).map(|_| idle()).collect();
        // 0, 5, 6 → 4 is congested: 0 gets a third of it. 1 → 7 shares only the link between.
        programs[0] = Greedy::to(4, PACKET_PS, 0);
        programs[5] = Greedy::to(4, PACKET_PS, 0);
        programs[6] = Greedy::to(4, PACKET_PS, 0);
        programs[1] = Greedy::to(7, PACKET_PS, 1);
        let outcome = Case {
            fabric: &fabric,
            subnet: &subnet,
            parameters: qdr(),
            groups: vec![group(Transport::Ud), victims],
            programs,
            until,
            width: 13,
        }
        .run();
        (delivered(&outcome, 0, 4, 5) / full, delivered(&outcome, 1, 7, 5) / full)
    };
    let (hot, victim) = share(1);
    near(hot, 1.0 / 3.0, 0.01);
    near(victim, 1.0 / 3.0, 0.02);
    let (hot, victim) = share(2);
    near(hot, 1.0 / 3.0, 0.01);
    near(victim, 2.0 / 3.0, 0.01);
}

#[test]
fn a_buffer_too_small_for_a_packet_is_refused_with_the_remedy() {
    let fabric = build("star:2");
    let subnet = tables(&fabric, 1, false);
    let setup = clearlane_sim::Setup {
        fabric: &fabric,
        forwarding: clearlane_sim::Forwarding::Tables(&subnet),
        parameters: Parameters { buffer: Bytes(2048), ..qdr() },
        groups: vec![group(Transport::Ud)],
        programs: vec![idle(), idle()],
        recording: Recording::TOTALS,
        control: None,
        queue_width_log2: 13,
        division: clearlane_sim::Division::WHOLE,
        fleet: None,
        taps: Vec::new(),
        dead_pairs: false,
        jobs: Vec::new(),
        ends_with_jobs: false,
    };
    let error = clearlane_sim::Simulation::new(setup).err().unwrap().to_string();
    assert_eq!(error, "buffer = 2 KiB does not hold a packet of 2082 B; raise buffer or lower mtu");
}

/// A table with a hole on a path is refused with the switch and the host; one where nobody passes
/// is not asked for.
#[test]
fn a_dead_end_is_refused_only_where_packets_come() {
    let fabric = build("chain:3x1");
    let refused = |switch: usize, host: usize| {
        let mut subnet = tables(&fabric, 1, false);
        let switch = fabric.ids(NodeKind::Switch).nth(switch).unwrap();
        let hosts = clearlane_sim::Hosts::of(&fabric);
        let (lid, _) = subnet.lids.base(hosts.ends()[host]).unwrap();
        subnet.tables.set(switch, lid, None);
        let setup = clearlane_sim::Setup {
            fabric: &fabric,
            forwarding: clearlane_sim::Forwarding::Tables(&subnet),
            parameters: qdr(),
            groups: vec![group(Transport::Ud)],
            programs: vec![idle(), idle(), idle()],
            recording: Recording::TOTALS,
            control: None,
            queue_width_log2: 13,
            division: clearlane_sim::Division::WHOLE,
            fleet: None,
            taps: Vec::new(),
            dead_pairs: false,
            jobs: Vec::new(),
            ends_with_jobs: false,
        };
        clearlane_sim::Simulation::new(setup).err().map(|error| error.to_string())
    };
    let error = refused(1, 2).expect("switch 1 is on the way to host 2");
    assert!(error.contains("stop at switch") && error.contains("no entry"), "{error}");
    let mut fabric = fabric.clone();
    let last = fabric.links().len() as u32 - 1;
    // Without its host the last switch sends and forwards nothing.
    fabric.unplug(|id, _| id.0 == last);
    let mut subnet = tables(&fabric, 1, false);
    let switch = fabric.ids(NodeKind::Switch).nth(2).unwrap();
    let hosts = clearlane_sim::Hosts::of(&fabric);
    let (lid, _) = subnet.lids.base(hosts.ends()[0]).unwrap();
    subnet.tables.set(switch, lid, None);
    let outcome = Case {
        fabric: &fabric,
        subnet: &subnet,
        parameters: qdr(),
        groups: vec![group(Transport::Ud)],
        programs: vec![one_message(1, 64, 0), idle()],
        until: Picoseconds(100_000_000),
        width: 13,
    }
    .run();
    assert_eq!(outcome.totals.messages_delivered, 1);
}

/// The rule sends by port number without asking, so it asks for every cable beforehand.
#[test]
fn a_grid_with_a_hole_is_no_grid_for_the_rule() {
    let mut fabric = build("torus:5x5");
    fabric.unplug(|id, _| id.0 == 0);
    let grid = clearlane_fabric::structure::grid(&fabric).unwrap();
    let setup = clearlane_sim::Setup {
        fabric: &fabric,
        forwarding: clearlane_sim::Forwarding::DimensionOrder(&grid, clearlane_sim::Ties::Both),
        parameters: qdr(),
        groups: vec![group(Transport::Ud)],
        programs: (0..25).map(|_| idle()).collect(),
        recording: Recording::TOTALS,
        control: None,
        queue_width_log2: 13,
        division: clearlane_sim::Division::WHOLE,
        fleet: None,
        taps: Vec::new(),
        dead_pairs: false,
        jobs: Vec::new(),
        ends_with_jobs: false,
    };
    let error = clearlane_sim::Simulation::new(setup).err().unwrap().to_string();
    assert!(error.contains("needs every cable of the grid and sw-0-0[1] is empty"), "{error}");
}
