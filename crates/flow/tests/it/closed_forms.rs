//! Situations whose outcome is known without simulating.

use crate::support::*;
use clearlane_fabric::{Fabric, NodeKind};
use clearlane_ib::{BitsPerSecond, Picoseconds};
use clearlane_sim::{Ending, Forwarding, Outcome, Parameters};
use clearlane_subnet::Subnet;
use clearlane_workload::{Event, Gap, Hints, Op, Rank, RankProgram, Transport};
use std::collections::BTreeMap;

/// Puts all of these at once.
struct Puts(Vec<(u32, u64, Hints)>);

impl RankProgram for Puts {
    fn step(&mut self, _: Picoseconds, _: Event) -> Op {
        let (group, tracked) = (0, false);
        self.0.pop().map_or(Op::Done, |(to, bytes, hints)| Op::Put {
            dst: Rank(to),
            bytes,
            group,
            tracked,
            hints,
        })
    }
}

/// Messages from some hosts, all at once and last ones first: to whom, how long, and how.
type Sends<'a> = &'a [(u32, &'a [(u32, u64, Hints)])];

fn puts(fabric: &Fabric, subnet: &Subnet, parameters: Parameters, sends: Sends<'_>) -> Outcome {
    let programs = |host: u32| -> Box<dyn RankProgram> {
        let of = sends.iter().find(|(from, _)| *from == host);
        Box::new(Puts(of.map(|(_, puts)| puts.to_vec()).unwrap_or_default()))
    };
    Case::of_hosts(fabric, subnet, parameters, &programs, 1_000_000_000).run()
}

const PLAIN: Hints = Hints { engine: None, sl: None, path: None, gap: Gap(0), stream: 0 };

/// Bytes on the wire of a message of datagrams.
fn wire(bytes: u64) -> u64 {
    bytes + bytes.div_ceil(2048).max(1) * 34
}

/// Mean time from a message being posted to its being there; a picosecond is what a post takes.
fn mean_ps(outcome: &Outcome) -> f64 {
    assert_eq!(outcome.ending, Ending::Drained);
    let sums = outcome.groups[0].iter().map(|slice| (slice.latency_sum_ps, slice.messages));
    let (sum, messages) = sums.fold((0, 0), |(a, b), (sum, messages)| (a + sum, b + messages));
    sum as f64 / messages as f64
}

#[test]
fn zero_load_latency_is_that_of_packets_to_the_picosecond() {
    let p = qdr();
    for switches in 1..=6u64 {
        let fabric = match switches {
            1 => build("star:2"),
            _ => build(&format!("chain:{switches}x1")),
        };
        let last = if switches == 1 { 1 } else { switches as u32 - 1 };
        for bytes in [0, 1, 64, 2048, 10_000] {
            let sends: Sends<'_> = &[(0, &[(last, bytes, PLAIN)])];
            let outcome = puts(&fabric, &tables(&fabric, 1, false), p.clone(), sends);
            let way = (switches + 1) * p.cable_delay.0 + switches * p.switch_delay.0;
            let expected = p.send_overhead.0 + way + wire(bytes) * BYTE;
            assert_eq!(mean_ps(&outcome), expected as f64, "{switches} switches, {bytes} B");
        }
    }
}

#[test]
fn flows_on_one_link_share_it_evenly() {
    let fabric = build("star:9");
    let subnet = tables(&fabric, 1, false);
    for senders in [1u32, 2, 8] {
        let put = [(8, 100_000, PLAIN)];
        let sends: Vec<(u32, &[_])> = (0..senders).map(|from| (from, &put[..])).collect();
        let outcome = puts(&fabric, &subnet, rates_alone(), &sends);
        near(mean_ps(&outcome), (wire(100_000) * BYTE * u64::from(senders)) as f64, 1e-6);
        assert_eq!(outcome.totals.messages_delivered, senders.into());
    }
}

/// A flow that ends leaves its share to the others at that instant.
#[test]
fn who_stays_has_what_others_leave() {
    let fabric = build("star:3");
    let sends: Sends<'_> = &[(0, &[(2, 20_480, PLAIN)]), (1, &[(2, 61_440, PLAIN)])];
    let outcome = puts(&fabric, &tables(&fabric, 1, false), rates_alone(), sends);
    // Half the link each until the short one has left, which takes twice its time; then the rest.
    let (short, long) = (wire(20_480) * BYTE, wire(61_440) * BYTE);
    near(mean_ps(&outcome), (2 * short + short + long) as f64 / 2.0, 1e-6);
}

fn incast(fabric: &Fabric, subnet: &Subnet, senders: &[u32], to: &dyn Fn(u32) -> u32) -> Outcome {
    let programs = |host: u32| match senders.contains(&host) {
        true => Greedy::to(to(host), PACKET_PS, 0),
        false => idle(),
    };
    Case::of_hosts(fabric, subnet, qdr(), &programs, 4_000_000_000).run()
}

/// What a link carries in half of such a run, in payload.
fn full() -> f64 {
    2_000_000_000.0 / PACKET_PS as f64 * 2048.0
}

/// Packets of H1 and H2 have a sixth each and those of H3 and H5 a third, because a switch takes
/// turns by input (crates/sim/tests/it/closed_forms.rs). Max-min fairness knows flows alone.
#[test]
fn a_parking_lot_is_fair_to_flows_and_not_to_inputs() {
    let fabric = parking_lot();
    let outcome = incast(&fabric, &tables(&fabric, 1, false), &[0, 1, 2, 4], &|_| 3);
    for sender in [0, 1, 2, 4] {
        near(delivered(&outcome, sender, 3, 5) / full(), 0.25, 0.01);
    }
}

/// Four pairs over one cable, and one beside them.
#[test]
fn a_dumbbell_divides_its_cable_and_nothing_else() {
    let fabric = build("chain:2x5");
    let outcome =
        incast(&fabric, &tables(&fabric, 1, false), &[0, 1, 2, 3, 5], &|from| match from {
            5 => 6,
            left => left + 6,
        });
    // 5 → 6 shares the link to 6 with 0 → 6, which has a quarter of the cable.
    for (from, to, share) in [(0, 6, 0.25), (1, 7, 0.25), (2, 8, 0.25), (3, 9, 0.25), (5, 6, 0.75)]
    {
        near(delivered(&outcome, from, to, 5) / full(), share, 0.01);
    }
    let busy: Vec<f64> = outcome
        .channels
        .iter()
        .map(|channel| channel.busy_ps[5..].iter().sum::<u64>() as f64 / 2e9)
        .collect();
    assert!(busy.iter().all(|busy| *busy <= 1.0));
    // The cable, in one direction, and the link to host 6 are full.
    assert_eq!(busy.iter().filter(|busy| **busy > 0.999).count(), 2);
}

/// In each step all flows have the same number of competitors on the worst link of their way.
#[test]
fn an_alltoall_on_a_torus_takes_what_its_links_need() {
    let fabric = build("torus:4x4");
    let subnet = dor(&fabric);
    let bytes = 1_000_000u64;
    let spec = program(&format!("kind = \"pairwise-alltoall\"\nsize = \"{bytes} B\""));
    let jobs = || ranks_of(&spec, 16);
    let forwarding = Forwarding::Tables(&subnet);
    let case = Case::of_ranks(&fabric, forwarding, qdr(), &jobs);
    let outcome = case.run();
    assert_eq!(outcome.ending, Ending::ProgramsEnded);
    let mut worst = 0;
    for step in 1..16 {
        let mut on: BTreeMap<_, u64> = BTreeMap::new();
        for from in 0..16 {
            route(&fabric, &subnet, from, from ^ step)
                .for_each(|link| *on.entry(link).or_default() += 1);
        }
        worst += on.values().max().unwrap();
    }
    // Payload and headers of connections.
    let wire = bytes + bytes.div_ceil(2048) * 26;
    let bound = (worst * wire * BYTE) as f64;
    let took = outcome.jobs[0].ended_at.0 as f64;
    assert!(took >= bound && took < 1.02 * bound, "{took} of {bound}");
    // Packets have ACKs beside them and wait for each other.
    let packets = case.run_packets().jobs[0].ended_at.0 as f64;
    assert!(packets > took && packets < 1.25 * took, "{packets} and {took}");
}

/// The switch outputs from one host to another.
fn route<'a>(
    fabric: &'a Fabric,
    subnet: &'a Subnet,
    from: u32,
    to: u32,
) -> impl Iterator<Item = clearlane_fabric::Endpoint> + 'a {
    let hosts: Vec<_> = fabric.ids(NodeKind::ChannelAdapter).collect();
    let port = clearlane_ib::PortNumber::new(1).unwrap();
    let end = |host: u32| clearlane_fabric::Endpoint { node: hosts[host as usize], port };
    let (lid, _) = subnet.lids.base(end(to)).unwrap();
    let output = move |at: clearlane_fabric::Endpoint| {
        let port = subnet.tables.port(at.node, lid)?;
        fabric
            .node(at.node)
            .is_switch()
            .then_some(clearlane_fabric::Endpoint { node: at.node, port })
    };
    let first = fabric.peer(end(from)).and_then(output);
    std::iter::successors(first, move |at| fabric.peer(*at).and_then(output))
}

#[test]
fn a_gap_slows_its_message_down() {
    let fabric = build("star:3");
    let subnet = tables(&fabric, 1, false);
    let paced = Hints { gap: Gap(2000), ..PLAIN };
    let outcome = puts(&fabric, &subnet, rates_alone(), &[(0, &[(1, 100_000, paced)])]);
    near(mean_ps(&outcome), (3 * wire(100_000) * BYTE) as f64, 1e-6);
    // The other one has what is left: two thirds.
    let sends: Sends<'_> = &[(0, &[(2, 100_000, paced)]), (1, &[(2, 200_000, PLAIN)])];
    let outcome = puts(&fabric, &subnet, rates_alone(), sends);
    near(mean_ps(&outcome), (3 * wire(100_000) * BYTE) as f64, 1e-3);
}

#[test]
fn engines_work_on_one_queue_after_the_other() {
    let fabric = build("star:4");
    let subnet = tables(&fabric, 1, false);
    let sends: Sends<'_> = &[(0, &[(3, 50_000, PLAIN), (2, 50_000, PLAIN), (1, 50_000, PLAIN)])];
    let of = |injection_engines| {
        puts(&fabric, &subnet, Parameters { injection_engines, ..rates_alone() }, sends)
    };
    let one = (wire(50_000) * BYTE) as f64;
    near(mean_ps(&of(None)), 3.0 * one, 1e-4);
    near(mean_ps(&of(Some(1))), 2.0 * one, 1e-4);
    // Two at half the rate, and the third at the whole rate after the first two.
    near(mean_ps(&of(Some(2))), (2.0 + 2.0 + 3.0) / 3.0 * one, 1e-4);
}

/// A queue that has more to send goes to the end of the line after each message: of three long ones
/// to host 2 the short one, posted last, waits for one.
#[test]
fn queues_in_line_take_turns_message_by_message() {
    let fabric = build("star:3");
    let subnet = tables(&fabric, 1, false);
    let (long, short) = ((2, 100_000, PLAIN), (1, 10_000, PLAIN));
    let parameters = Parameters { injection_engines: Some(1), ..rates_alone() };
    let sends: Sends<'_> = &[(0, &[short, long, long, long])];
    let outcome = puts(&fabric, &subnet, parameters, sends);
    let (long, short) = (wire(100_000) * BYTE, wire(10_000) * BYTE);
    near(mean_ps(&outcome), (7 * long + 3 * short) as f64 / 4.0, 1e-4);
}

/// Of a message under way whole packets have arrived.
#[test]
fn a_run_that_is_cut_counts_whole_packets() {
    let fabric = build("star:2");
    let subnet = tables(&fabric, 1, false);
    let programs = |host: u32| match host {
        0 => one_message(1, 1_000_000, 0),
        _ => idle(),
    };
    let case = Case::of_hosts(&fabric, &subnet, qdr(), &programs, 100_000_000);
    let (flows, packets) = (case.run(), case.run_packets());
    assert_eq!(flows.ending, Ending::TimeReached);
    let [gone, arrived] = [&flows, &packets].map(|outcome| outcome.totals.packets_delivered);
    assert_eq!(gone, (100_000_000 - qdr().send_overhead.0) / PACKET_PS);
    // What is on its way past a switch is the difference.
    assert!(gone.abs_diff(arrived) <= 2, "{gone} and {arrived}");
    let payload: u64 = flows.groups[0].iter().map(|slice| slice.delivered_payload_bytes).sum();
    assert_eq!(payload, gone * 2048);
    assert_eq!((flows.totals.messages_delivered, flows.flows.len()), (0, 1));
}

#[test]
fn ports_of_an_adapter_send_side_by_side() {
    let fabric = dual_homed(4, 1);
    let subnet = tables(&fabric, 1, false);
    let by = |engine| Hints { engine: Some(engine), ..PLAIN };
    let parameters = |ports| Parameters { adapter_ports: Some(ports), ..rates_alone() };
    let sends: Sends<'_> = &[(0, &[(1, 100_000, by(0)), (1, 100_000, by(1))])];
    let one = (wire(100_000) * BYTE) as f64;
    near(mean_ps(&puts(&fabric, &subnet, parameters(2), sends)), one, 1e-4);
    // One send queue: one message waits for the other.
    near(mean_ps(&puts(&fabric, &subnet, parameters(1), sends)), 1.5 * one, 1e-4);
    // Both ports share what the host has of its own.
    let rate = Some(BitsPerSecond(32_000_000_000));
    let base = parameters(2);
    let limited = [
        Parameters { dma_rate: rate, ..base.clone() },
        Parameters { drain_rate: rate, ..base.clone() },
        Parameters { memory_rate: rate, ..base },
    ];
    for parameters in limited {
        near(mean_ps(&puts(&fabric, &subnet, parameters, sends)), 2.0 * one, 1e-4);
    }
}

/// A host that sends and receives needs its bus twice.
#[test]
fn a_memory_bus_carries_what_is_read_and_what_is_stored() {
    let fabric = build("star:2");
    let put = |to| [(to, 100_000, PLAIN)];
    let rate = Some(BitsPerSecond(32_000_000_000));
    let parameters = Parameters { memory_rate: rate, ..rates_alone() };
    let (a, b) = (put(1), put(0));
    let outcome = puts(&fabric, &tables(&fabric, 1, false), parameters, &[(0, &a), (1, &b)]);
    near(mean_ps(&outcome), (2 * wire(100_000) * BYTE) as f64, 1e-6);
}

/// Offers a datagram of 2 KiB to its neighbour again and again, so long apart.
struct Offers {
    to: u32,
    apart: u64,
}

impl RankProgram for Offers {
    fn step(&mut self, now: Picoseconds, _: Event) -> Op {
        let (dst, next) = (Rank(self.to), Some(Picoseconds(now.0 + self.apart)));
        Op::Offer { dst, bytes: 2048, group: 0, next }
    }
}

/// The load that senders offer arrives, headers and all.
#[test]
fn open_loop_traffic_arrives_as_it_is_offered() {
    let fabric = build("torus:4x4");
    let subnet = dor(&fabric);
    let offers = |apart| {
        move |host: u32| -> Box<dyn RankProgram> { Box::new(Offers { to: (host + 1) % 16, apart }) }
    };
    let half = offers(2 * PACKET_PS);
    let mut case = Case::of_hosts(&fabric, &subnet, qdr(), &half, 4_000_000_000);
    let outcome = case.run();
    assert_eq!(outcome.ending, Ending::TimeReached);
    let payload = 16.0 * 4e8 / (2 * PACKET_PS) as f64 * 2048.0;
    for slice in &outcome.groups[0][1..] {
        near(slice.delivered_wire_bytes as f64, slice.offered_wire_bytes as f64, 0.01);
        near(slice.delivered_payload_bytes as f64, payload, 0.01);
    }
    // A bound of messages that wait leaves out what is beyond: nothing here.
    case.parameters.source_backlog = Some(4);
    assert_eq!(case.run().totals, outcome.totals);
    let twice = offers(PACKET_PS / 2);
    case.programs = &twice;
    let bounded = case.run().totals;
    assert!(bounded.messages_posted - bounded.messages_delivered <= 16 * 5);
    case.parameters.source_backlog = None;
    let unbounded = case.run().totals;
    near(unbounded.messages_delivered as f64, bounded.messages_delivered as f64, 0.01);
    near(unbounded.messages_posted as f64, 2.0 * unbounded.messages_delivered as f64, 0.01);
}

/// A connection tells its sender when the acknowledgement is back, a datagram as it leaves.
#[test]
fn who_waits_for_a_put_waits_for_its_acknowledgement() {
    use script::{Do, Log, script};
    let (fabric, p) = (build("chain:3x1"), qdr());
    let subnet = tables(&fabric, 1, false);
    let log = Log::default();
    let put = vec![Do::Put { to: 2, bytes: 10_000 }, Do::Wait(0)];
    let programs = |host: u32| match host {
        0 => script(0, put.clone(), &log),
        _ => idle(),
    };
    for (transport, header) in [(Transport::Rc, 26), (Transport::Ud, 34)] {
        let mut case = Case::of_hosts(&fabric, &subnet, p.clone(), &programs, 100_000_000);
        case.groups = vec![group(transport)];
        case.run();
        let way = 4 * p.cable_delay.0 + 3 * p.switch_delay.0;
        let left = p.send_overhead.0 + (10_000 + 5 * header) * BYTE;
        let back = if header == 26 { 2 * way + 30 * BYTE } else { 0 };
        let told = std::mem::take(&mut *log.lock().unwrap());
        let completed = told.iter().find(|(.., event)| matches!(event, Event::Completed(_)));
        // The step after it takes a picosecond.
        assert_eq!(completed.map(|(_, time, _)| *time), Some(left + back + 1), "{transport:?}");
    }
}
