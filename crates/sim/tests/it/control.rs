//! Congestion mechanisms in the simulated devices: what marks, notifies and waits, end to end.

use crate::support::{
    Case, Greedy, Then, build, delivered, greedy, group, idle, near, parking_lot, tables,
};
use clearlane_congestion::{OPEN_PATHS, Parameter, Value, Values, mechanisms};
use clearlane_fabric::Fabric;
use clearlane_ib::{BitsPerSecond, Bytes, Lmc, Picoseconds, ServiceLevel};
use clearlane_sim::{
    Ending, Forwarding, GroupSettings, GroupSlice, Mechanisms, Outcome, Parameters, Recording,
    Setup, Simulation, preset,
};
use clearlane_subnet::engines::{self, RouteOptions};
use clearlane_subnet::{AdaptiveGroups, Subnet};
use clearlane_workload::{Event, Hints, Op, Rank, RankProgram, Transport};

/// Links of 8 Gb/s, as in the testbed of seed 002, and buffers in which 1/16 is several packets.
fn devices() -> Parameters {
    let sdr = (preset::by_name("sdr-2011").unwrap().parameters)();
    let (send_overhead, link_rate) = (Picoseconds(0), Some(LINK));
    Parameters { buffer: Bytes(256 << 10), send_overhead, link_rate, ..sdr }
}

fn mechanism(name: &str, set: &[(&str, Value)]) -> Option<Mechanisms> {
    let entry = mechanisms::by_name(name).unwrap();
    let parameter = |name: &str| -> &'static Parameter {
        entry.parameters.iter().find(|parameter| parameter.name == name).unwrap()
    };
    let mut values = Values::default();
    for (name, value) in set {
        values.set(parameter(name), value.clone()).unwrap();
    }
    Some(Mechanisms { when: Some((entry.build)(&values).unwrap()), which: None, seed: 1 })
}

const LINK: BitsPerSecond = BitsPerSecond(8_000_000_000);

/// Everybody to H4, at the rate of the link, for `ms`.
fn everybody(transport: Transport, ms: u64, control: Option<Mechanisms>, width: u32) -> Outcome {
    let fabric = parking_lot();
    parking_lot_run(&fabric, &tables(&fabric, 1, false), transport, ms, control, width)
}

fn parking_lot_run(
    fabric: &Fabric,
    subnet: &Subnet,
    transport: Transport,
    ms: u64,
    control: Option<Mechanisms>,
    width: u32,
) -> Outcome {
    let wire = match transport {
        Transport::Rc => 2074,
        Transport::Ud => 2082,
    };
    let program = |rank| -> Box<dyn RankProgram> {
        if rank == 3 { idle() } else { Greedy::to(3, wire * 1000, 0) }
    };
    let case = Case {
        fabric,
        subnet,
        parameters: devices(),
        groups: vec![group(transport)],
        programs: (0..5).map(program).collect(),
        until: Picoseconds(ms * 1_000_000_000),
        width,
    };
    case.run_with(control, if width == 13 { 1 } else { 7 })
}

fn shares(outcome: &Outcome) -> Vec<f64> {
    let full = outcome.duration.0 as f64 / 2.0 / 2_082_000.0 * 2048.0;
    [0, 1, 2, 4].map(|sender| delivered(outcome, sender, 3, 5) / full).to_vec()
}

fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    sum * sum / (shares.len() as f64 * shares.iter().map(|share| share * share).sum::<f64>())
}

#[test]
fn iba_congestion_control_makes_a_parking_lot_fair() {
    let off = shares(&everybody(Transport::Ud, 10, None, 13));
    near(jain(&off), 0.9, 0.01);
    for transport in [Transport::Ud, Transport::Rc] {
        let outcome = everybody(transport, 400, mechanism("iba-cc", &[]), 13);
        let on = shares(&outcome);
        assert!(jain(&on) >= 0.99, "{on:?}");
        let used: f64 = on.iter().sum();
        assert!((0.8..=0.95).contains(&used), "{on:?}");
        let totals = outcome.totals;
        assert!(totals.packets_marked > 1000 && totals.becns > 1000, "{totals:?}");
        assert_eq!(totals.becns, totals.cnps_delivered);
        assert!(totals.acks_delivered == 0 || transport == Transport::Rc);
        let becns: u64 =
            outcome.control.flows.iter().flat_map(|f| &f.becns).map(|n| u64::from(*n)).sum();
        assert_eq!(becns, totals.becns);
    }
}

#[test]
fn becn_returns_on_acks_where_it_may() {
    let ack = [("becn", Value::Word("ack"))];
    let outcome = everybody(Transport::Rc, 20, mechanism("iba-cc", &ack), 13);
    assert!(outcome.totals.becns > 50 && outcome.totals.cnps_injected == 0);
    let outcome = everybody(Transport::Ud, 20, mechanism("iba-cc", &ack), 13);
    assert!(outcome.totals.cnps_delivered > 50);
}

/// Four flows come to one port for 20 ms, and CNPs are at least 1 ms apart: of the port at most 21,
/// of each queue pair as many.
#[test]
fn queue_pairs_share_the_interval_of_their_port() {
    let cnps = |of| {
        let every = ("cnp_interval", Value::Time(Picoseconds(1_000_000_000)));
        let set = [every, ("cnp_interval_of", Value::Word(of))];
        everybody(Transport::Rc, 20, mechanism("iba-cc", &set), 13).totals.cnps_injected
    };
    let (port, pairs) = (cnps("port"), cnps("qp"));
    assert!((10..=21).contains(&port) && (2 * port..=84).contains(&pairs), "{port} {pairs}");
}

/// IBA vol. 1, A10: the rate at CCTI i of the linear table is that of the link over 1 + i.
#[test]
fn a_source_sends_at_the_rate_of_its_ccti() {
    for (ccti, rate) in [(0u64, 1.0), (1, 1.0 / 2.0), (3, 1.0 / 4.0), (127, 1.0 / 128.0)] {
        let set = [("ccti_min", Value::Integer(ccti))];
        let fabric = parking_lot();
        let subnet = tables(&fabric, 1, false);
        let until = Picoseconds(20_000_000_000);
        let case = Case {
            fabric: &fabric,
            subnet: &subnet,
            parameters: devices(),
            groups: vec![group(Transport::Ud)],
            programs: (0..5)
                .map(|rank| match rank {
                    0 => Box::new(Greedy { messages: 10_000, ..greedy(3) }) as _,
                    _ => idle(),
                })
                .collect(),
            until,
            width: 13,
        };
        let outcome = case.run_with(mechanism("iba-cc", &set), 1);
        let full = until.0 as f64 / 2.0 / 2_082_000.0 * 2048.0;
        near(delivered(&outcome, 0, 3, 5) / full, rate, 0.02);
        assert_eq!(outcome.totals.packets_marked, 0);
        // Nothing has changed, so there is nothing to tell.
        assert!(outcome.control.flows.is_empty() && !outcome.control.dropped);
    }
}

/// Posts a packet for each destination in turn and for each group, as fast as the link takes them.
struct Round {
    destinations: u32,
    groups: u16,
    posted: u64,
}

impl RankProgram for Round {
    fn step(&mut self, now: Picoseconds, _: Event) -> Op {
        let time = Picoseconds(self.posted * 2_082_000);
        if now.0 < time.0 {
            return Op::WaitUntil(time);
        }
        let group = (self.posted % u64::from(self.groups)) as u16;
        let to = self.posted / u64::from(self.groups) % u64::from(self.destinations);
        self.posted += 1;
        Op::Put {
            dst: Rank(1 + to as u32),
            bytes: 2048,
            group,
            tracked: false,
            hints: Hints::default(),
        }
    }
}

/// Shares of the link, by destination and group, of a source that posts for 32 destinations and
/// throttles each service level as a whole.
fn throttled_together(sls: &[u8], ccti: u64, engines: Option<u32>, width: u32) -> Vec<Vec<f64>> {
    let fabric = build("star:33");
    let subnet = tables(&fabric, 1, false);
    let set = [("ccti_min", Value::Integer(ccti)), ("port_control", Value::Word("sl"))];
    let groups = sls.len() as u16;
    let until = Picoseconds(40_000_000_000);
    let transport = Transport::Ud;
    let case = Case {
        fabric: &fabric,
        subnet: &subnet,
        parameters: Parameters { injection_engines: engines, ..devices() },
        groups: sls
            .iter()
            .map(|sl| GroupSettings { transport, sl: ServiceLevel::new(*sl) })
            .collect(),
        programs: (0..33)
            .map(|rank| match rank {
                0 => Box::new(Round { destinations: 32, groups, posted: 0 }) as _,
                _ => idle(),
            })
            .collect(),
        until,
        width,
    };
    let outcome = case.run_with(mechanism("iba-cc", &set), if width == 13 { 1 } else { 7 });
    let full = until.0 as f64 / 2_082_000.0 * 2048.0;
    let of = |group: u16| -> Vec<f64> {
        let flows = outcome.flows.iter().filter(|flow| flow.group == group);
        let bytes = flows.map(|flow| flow.delivered_payload_bytes.iter().sum::<u64>());
        bytes.map(|bytes| bytes as f64 / full).collect()
    };
    (0..groups).map(of).collect()
}

/// IBA vol. 1, A10.4.3.8: with Port_Control the CCTI, and so the delay, is that of the service
/// level, whatever the number of destinations; they take turns.
#[test]
fn a_service_level_that_is_throttled_as_a_whole_sends_at_the_rate_of_its_ccti() {
    for engines in [None, Some(1), Some(4)] {
        for ccti in [1, 31] {
            let shares = &throttled_together(&[0], ccti, engines, 13)[0];
            let rate = 1.0 / (ccti + 1) as f64;
            near(shares.iter().sum(), rate, 0.01);
            assert_eq!(shares.len(), 32);
            // One packet more or less: with CCTI 31 each sends fifteen or sixteen.
            shares.iter().for_each(|share| near(*share, rate / 32.0, 0.07));
        }
    }
    assert_eq!(throttled_together(&[0], 31, None, 9), throttled_together(&[0], 31, None, 13));
}

#[test]
fn an_engine_goes_to_a_service_level_that_may_send_while_another_waits() {
    for engines in [1, 2] {
        for of_level in throttled_together(&[0, 1], 3, Some(engines), 13) {
            near(of_level.iter().sum(), 1.0 / 4.0, 0.02);
        }
    }
}

#[test]
fn the_same_bytes_in_any_width_of_the_queue_and_in_any_number_of_steps() {
    let run = |width| {
        let outcome = everybody(Transport::Rc, 10, mechanism("iba-cc", &[]), width);
        let flows: Vec<Vec<u64>> =
            outcome.flows.iter().map(|flow| flow.delivered_payload_bytes.clone()).collect();
        (outcome.totals, outcome.control, flows)
    };
    let first = run(13);
    for width in [6, 10, 20] {
        assert_eq!(run(width), first);
    }
}

#[test]
fn a_mechanism_that_does_nothing_changes_nothing() {
    let with = everybody(Transport::Rc, 4, mechanism("none", &[]), 13);
    let without = everybody(Transport::Rc, 4, None, 13);
    let bytes = |outcome: &Outcome| -> Vec<Vec<u64>> {
        outcome.flows.iter().map(|flow| flow.delivered_payload_bytes.clone()).collect()
    };
    assert_eq!(bytes(&with), bytes(&without));
    assert_eq!(with.totals.packet_hops, without.totals.packet_hops);
}

/// The round trip of an idle network, in ns, as the source of a single flow sees it.
fn round_trips(ack_coalescing: u32) -> Vec<u64> {
    let fabric = parking_lot();
    let case = Case {
        fabric: &fabric,
        subnet: &tables(&fabric, 1, false),
        parameters: Parameters { ack_coalescing, ..devices() },
        groups: vec![group(Transport::Rc)],
        programs: (0..5)
            .map(|rank| match rank {
                // Eight packets a message, of which a segment is the half.
                0 => Box::new(Greedy { bytes: 8 * 2048, gap: 8 * 2_074_000, ..greedy(3) }) as _,
                _ => idle(),
            })
            .collect(),
        until: Picoseconds(5_000_000_000),
        width: 13,
    };
    let set = [("segment", Value::Size(Bytes(4 * 2074)))];
    let outcome = case.run_with(mechanism("timely", &set), 1);
    let probes = outcome.control.flows.iter().flat_map(|flow| &flow.probes);
    let trips = probes.filter(|(name, _)| *name == "round trip (ns)");
    trips.flat_map(|(_, values)| values.clone()).collect()
}

/// A round trip is that of one packet, however many its ACK covers.
#[test]
fn the_round_trip_does_not_depend_on_how_many_packets_an_ack_covers() {
    let by_one = round_trips(1);
    assert!(by_one.len() == 10 && by_one[0] > 100, "{by_one:?}");
    assert_eq!(round_trips(4), by_one);
}

/// What is notified to one mechanism is nothing to the other: with a second one that notifies of
/// every mark and has nothing to choose, DCQCN is told once in 50 us and no more.
#[test]
fn each_mechanism_hears_of_its_own_notifications_only() {
    let drb = || mechanism("drb", &[("threshold", Value::Integer(0))]).unwrap().when;
    let dcqcn = || {
        let every = Value::Time(Picoseconds(500_000_000));
        mechanism("dcqcn", &[("cnp_interval", every)]).unwrap()
    };
    let both = Mechanisms { which: drb(), ..dcqcn() };
    let [alone, both] = [dcqcn(), both].map(|of| everybody(Transport::Rc, 20, Some(of), 13));
    let becns = [&alone, &both].map(|outcome| outcome.totals.becns);
    assert!(becns[1] > 2 * becns[0], "{becns:?}");
    let [few, many] = [&alone, &both].map(|outcome| shares(outcome).iter().sum::<f64>());
    near(many, few, 0.05);
}

/// Switches that may choose, and have nothing to choose, mark as those that may not.
#[test]
fn markers_see_what_waits_behind_a_head_whose_output_is_yet_to_be_chosen() {
    let run = |groups: Option<AdaptiveGroups>| {
        let fabric = parking_lot();
        let subnet = Subnet { adaptive: groups, ..tables(&fabric, 1, false) };
        parking_lot_run(&fabric, &subnet, Transport::Ud, 20, mechanism("iba-cc", &[]), 13)
    };
    let (fixed, free) = (run(None), run(Some(AdaptiveGroups::empty(2, 64))));
    assert!(fixed.totals.packets_marked > 100, "{:?}", fixed.totals);
    let seen = |outcome: &Outcome| (outcome.totals.packets_marked, outcome.control.clone());
    assert_eq!(seen(&free), seen(&fixed));
}

/// Two flows of a torus whose dimension-order paths share a link, each of 3,000 packets in messages
/// of so many, and from 8 ms on a trickle of messages every 100 us.
fn path_hot_spot(
    which: Option<&str>,
    set: &[(&str, Value)],
    packets: u64,
    trickle: u64,
    width: u32,
) -> Outcome {
    let fabric = build("torus:4x4");
    let options = RouteOptions { lmc: Lmc::new(2).unwrap(), lanes: 8, ..RouteOptions::default() };
    let subnet = engines::route("multipath", &fabric, &options).unwrap();
    // Rank x + 4 y is at (x, y): both take the link from (1, 0) to (2, 0).
    let program = |rank: u32| -> Box<dyn RankProgram> {
        match rank {
            // A path is chosen as a message is posted, so they are posted as the link takes them.
            0 | 1 => {
                let to = greedy(6 + 4 * rank);
                let late = Greedy { start: 8_000_000_000, gap: 100_000_000, ..greedy(to.to) };
                let (bytes, gap) = (packets * 2048, packets * 2_074_000);
                let many = Greedy { messages: 3000 / packets, bytes, gap, ..to };
                Box::new(Then(many, Greedy { messages: trickle, ..late }))
            }
            _ => idle(),
        }
    };
    // A window of 16 packets a connection fills no half buffer.
    let own = [("threshold", Value::Integer(14)), ("ccti_timer", Value::Integer(150))];
    let set = [&own, set].concat();
    let built = |name| mechanism(name, &set).and_then(|mechanisms| mechanisms.when);
    let control = which.map(|name| Mechanisms { when: None, which: built(name), seed: 1 });
    let case = Case {
        fabric: &fabric,
        subnet: &subnet,
        parameters: Parameters { buffer: Bytes(64 << 10), ..devices() },
        groups: vec![group(Transport::Rc)],
        programs: (0..16).map(program).collect(),
        until: Picoseconds(20_000_000_000),
        width,
    };
    case.run_with(control, if width == 13 { 1 } else { 3 })
}

fn open_paths(outcome: &Outcome) -> Vec<Vec<u64>> {
    let probes = outcome.control.flows.iter().flat_map(|flow| &flow.probes);
    probes.filter(|(name, _)| *name == OPEN_PATHS).map(|(_, values)| values.clone()).collect()
}

#[test]
fn balancing_opens_paths_where_the_default_ones_share_a_link() {
    let none = path_hot_spot(None, &[], 1, 0, 13);
    let drb = path_hot_spot(Some("drb"), &[], 1, 0, 13);
    for outcome in [&none, &drb] {
        assert_eq!(outcome.totals.messages_delivered, 6000);
        assert_eq!(outcome.ending, Ending::Drained);
    }
    let open = open_paths(&drb);
    let most = open.iter().flatten().max().copied();
    assert!(most.is_some_and(|most| (2..=4).contains(&most)), "{open:?}");
    assert!(drb.totals.packets_marked > 0 && drb.totals.becns > 0);
    // Over more paths the same messages are through earlier.
    assert!(drb.duration.0 < none.duration.0 * 3 / 4, "{} {}", drb.duration, none.duration);
}

/// Three quiet periods of 153.6 us close all but path 0, whether a path is still used or not.
#[test]
fn balancing_closes_the_paths_of_flows_that_have_become_quiet() {
    for trickle in [0, 50] {
        let open = open_paths(&path_hot_spot(Some("drb"), &[], 1, trickle, 13));
        assert!(open.len() > 2 && open.iter().flatten().any(|paths| *paths > 1), "{open:?}");
        for line in &open {
            assert_eq!(line[4..], [1; 6], "{open:?}");
            assert!(line.iter().all(|paths| (1..=4).contains(paths)), "{open:?}");
        }
    }
}

/// A divided message waits in parts, each of which takes memory.
#[test]
fn every_stripe_that_waits_is_counted() {
    let fabric = build("star:3");
    let options = RouteOptions { lmc: Lmc::new(2).unwrap(), ..RouteOptions::default() };
    let subnet = engines::route("multipath", &fabric, &options).unwrap();
    let set = [("unit", Value::Word("stripe")), ("threshold", Value::Integer(15))];
    let which = mechanism("drb", &set).and_then(|mechanisms| mechanisms.when);
    let to = |rank| -> Box<dyn RankProgram> {
        if rank == 2 {
            return idle();
        }
        Box::new(Greedy { bytes: 16 * 2048, gap: 4_000_000, ..greedy(2) })
    };
    let setup = Setup {
        fabric: &fabric,
        forwarding: Forwarding::Tables(&subnet),
        parameters: devices(),
        groups: vec![group(Transport::Ud)],
        programs: (0..3).map(to).collect(),
        recording: Recording::TOTALS,
        control: Some(Mechanisms { when: None, which, seed: 1 }),
        queue_width_log2: 13,
        division: clearlane_sim::Division::WHOLE,
        fleet: None,
        taps: Vec::new(),
        dead_pairs: false,
        jobs: Vec::new(),
        ends_with_jobs: false,
    };
    let mut simulation = Simulation::new(setup).unwrap();
    simulation.run_until(Picoseconds(10_000_000_000));
    let totals = simulation.totals();
    let waiting = totals.messages_posted - totals.messages_delivered;
    let kept = simulation.messages_kept();
    assert!(waiting > 1000 && kept > 3 * waiting && kept <= 4 * waiting, "{kept} {waiting}");
    // Stopped with packets on their way.
    assert!(totals.packets_injected > totals.packets_delivered);
    let outcome = simulation.finish();
    assert!(outcome.flows.is_empty() && outcome.flows_dropped, "no flow was to be recorded");
}

/// Three packets divided over two paths are four, each with its header.
#[test]
fn offered_bytes_are_those_of_the_stripes() {
    let set = [("unit", Value::Word("stripe"))];
    let drb = path_hot_spot(Some("drb"), &set, 3, 0, 13);
    assert_eq!(drb.ending, Ending::Drained);
    let sum = |of: fn(&GroupSlice) -> u64| drb.groups[0].iter().map(of).sum::<u64>();
    assert!(drb.totals.packets_delivered > 6000, "{:?}", drb.totals);
    assert_eq!(sum(|slice| slice.offered_wire_bytes), sum(|slice| slice.delivered_wire_bytes));
}

#[test]
fn balancing_gives_the_same_bytes_in_any_width_of_the_queue() {
    let first = path_hot_spot(Some("drb"), &[], 1, 0, 13);
    for width in [8, 18] {
        let other = path_hot_spot(Some("drb"), &[], 1, 0, width);
        assert_eq!((other.totals, other.control), (first.totals, first.control.clone()));
    }
}
