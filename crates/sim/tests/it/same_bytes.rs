//! The same set-up gives the same bytes: twice, in any queue width, in one go or in pieces; another
//! seed or link rate gives others. And whatever is sent arrives, in order.

use crate::support::{Case, build, tables};
use clearlane_ib::{BitsPerSecond, Bytes, Picoseconds};
use clearlane_sim::{
    AdapterQueueing, Ending, GroupSettings, Hosts, InputArbitration, InputQueueing, Outcome,
    Parameters, preset,
};
use clearlane_subnet::engines::{self, RouteOptions};
use clearlane_workload::{
    Arrivals, Class, Demand, FlowGroup, Offered, OpenLoop, PatternSpec, Rank, RankProgram,
    SizeDistribution, Transport,
};
use proptest::prelude::*;
use std::sync::Arc;

#[derive(Clone, Debug)]
struct Traffic {
    spec: &'static str,
    seed: u64,
    load: f64,
    lanes: u8,
    transport: Transport,
    parameters: Parameters,
    largest: u64,
    /// Tables of a routing engine with adaptive groups, instead of the tests' own tables.
    adaptive: Option<&'static str>,
}

fn base() -> Traffic {
    let qdr = (preset::by_name("qdr").unwrap().parameters)();
    Traffic {
        spec: "leaf-spine:leaves=4,hosts=4,spines=2",
        seed: 1,
        load: 0.7,
        lanes: 1,
        transport: Transport::Rc,
        parameters: Parameters { buffer: Bytes(8 << 10), ..qdr },
        largest: 9000,
        adaptive: None,
    }
}

fn run(traffic: &Traffic, width: u32, steps: u64) -> Outcome {
    let fabric = build(traffic.spec);
    let subnet = match traffic.adaptive {
        None => tables(&fabric, traffic.lanes, false),
        Some(engine) => {
            let options =
                RouteOptions { adaptive: true, lanes: traffic.lanes, ..RouteOptions::default() };
            engines::route(engine, &fabric, &options).unwrap()
        }
    };
    let hosts = Hosts::of(&fabric);
    let pattern = PatternSpec::to_anybody();
    let flows = FlowGroup {
        name: "uniform".into(),
        class: Class::Background,
        senders: (0..hosts.count() as u32).map(Rank).collect(),
        transport: traffic.transport,
        demand: Demand::OpenLoop(Arc::new(Offered {
            destinations: pattern.build(hosts.ranks(), None).unwrap(),
            sizes: SizeDistribution::Uniform { min: Bytes(1), max: Bytes(traffic.largest) },
            load: traffic.load,
            arrivals: Arrivals::Poisson,
            start: Picoseconds(0),
            stop: Picoseconds(100_000_000),
        })),
        sl: None,
    };
    let groups = [flows];
    let p = &traffic.parameters;
    let program = |rank: u32| -> Box<dyn RankProgram> {
        let rate = hosts.rate(Rank(rank), p);
        Box::new(OpenLoop::new(Rank(rank), &groups, rate, |_| (p.mtu, 26), traffic.seed))
    };
    Case {
        fabric: &fabric,
        subnet: &subnet,
        parameters: p.clone(),
        groups: vec![GroupSettings { transport: traffic.transport, sl: None }],
        programs: (0..hosts.count() as u32).map(program).collect(),
        until: Picoseconds(10_000_000_000),
        width,
    }
    .run_in_steps(steps)
}

fn bytes(outcome: &Outcome) -> String {
    format!("{outcome:?}")
}

#[test]
fn twice_in_any_width_and_in_pieces() {
    let reference = bytes(&run(&base(), 13, 1));
    assert_eq!(reference, bytes(&run(&base(), 13, 1)));
    for width in [6, 10, 17, 24] {
        assert_eq!(reference, bytes(&run(&base(), width, 1)), "width 2^{width} ps");
    }
    assert_eq!(reference, bytes(&run(&base(), 13, 1000)));
}

/// The same where switches choose among ports, and where they keep a queue per output.
#[test]
fn choices_and_queues_per_output_do_not_see_the_order_of_events() {
    for (adaptive, input_queueing) in [
        (Some("fat-tree"), InputQueueing::Fifo),
        (None, InputQueueing::Voq),
        (Some("fat-tree"), InputQueueing::Voq),
        (Some("up-down"), InputQueueing::Fifo),
    ] {
        let mut traffic = base();
        (traffic.adaptive, traffic.parameters.input_queueing) = (adaptive, input_queueing);
        traffic.load = 0.95;
        let reference = bytes(&run(&traffic, 13, 1));
        assert_ne!(reference, bytes(&run(&Traffic { load: 0.95, ..base() }, 13, 1)));
        for width in [6, 17, 24] {
            assert_eq!(reference, bytes(&run(&traffic, width, 1)), "width 2^{width} ps");
        }
        assert_eq!(reference, bytes(&run(&traffic, 13, 1000)));
    }
}

#[test]
fn seed_rate_and_arbitration_change_the_result() {
    let reference = bytes(&run(&base(), 13, 1));
    let mut other = base();
    other.seed = 2;
    assert_ne!(reference, bytes(&run(&other, 13, 1)));
    let mut other = base();
    other.parameters.link_rate = Some(BitsPerSecond(40_000_000_000));
    assert_ne!(reference, bytes(&run(&other, 13, 1)));
    for arbitration in [InputArbitration::OldestFirst, InputArbitration::FlowFair] {
        let mut other = base();
        other.parameters.arbitration = arbitration;
        assert_ne!(reference, bytes(&run(&other, 13, 1)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever the fabric, load and adapter: everything posted arrives (the engine asserts order
    /// per queue pair and conservation of credits and packets itself).
    #[test]
    fn everything_posted_arrives(
        spec in prop::sample::select(vec![
            "star:5", "chain:3x2", "leaf-spine:leaves=3,hosts=3,spines=2", "mesh:3x3",
            "star:70",
        ]),
        seed in 0u64..1000,
        load in 0.05f64..2.0,
        lanes in prop::sample::select(vec![1u8, 2, 5, 15]),
        rc in any::<bool>(),
        fifo in any::<bool>(),
        arbitration in prop::sample::select(vec![
            InputArbitration::RoundRobin, InputArbitration::OldestFirst, InputArbitration::FlowFair,
        ]),
        engines in prop::option::of(1u32..4),
        outstanding in 1u32..20,
        drain in prop::option::of(4_000_000_000u64..64_000_000_000),
        dma in prop::option::of(4_000_000_000u64..64_000_000_000),
        overhead in 0u64..1_000_000,
        buffer in 3000u64..70_000,
        voq in any::<bool>(),
        crossbar_speedup in prop::sample::select(vec![100u32, 130, 200, 1600]),
        adaptive in prop::option::of(Just("up-down")),
    ) {
        let mut traffic = base();
        (traffic.spec, traffic.adaptive) = (spec, adaptive);
        (traffic.seed, traffic.load, traffic.lanes) = (seed, load, lanes);
        traffic.transport = if rc { Transport::Rc } else { Transport::Ud };
        let queueing =
            if fifo { AdapterQueueing::SingleFifo } else { AdapterQueueing::PerDestination };
        traffic.parameters = Parameters {
            buffer: Bytes(buffer),
            arbitration,
            queueing,
            injection_engines: engines,
            outstanding,
            ack_coalescing: outstanding.div_ceil(2),
            drain_rate: drain.map(BitsPerSecond),
            dma_rate: dma.map(BitsPerSecond),
            send_overhead: Picoseconds(overhead),
            input_queueing: if voq { InputQueueing::Voq } else { InputQueueing::Fifo },
            crossbar_speedup,
            ..traffic.parameters
        };
        let outcome = run(&traffic, 13, 1);
        prop_assert_eq!(&outcome.ending, &Ending::Drained);
        prop_assert_eq!(outcome.totals.messages_delivered, outcome.totals.messages_posted);
        prop_assert_eq!(outcome.totals.packets_delivered, outcome.totals.packets_injected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Shortest paths on rings and tori close circles: a run ends drained or with the deadlock
    /// named, never standing still (the engine asserts that nothing is left when nothing can
    /// happen).
    #[test]
    fn a_fabric_with_circles_drains_or_names_its_deadlock(
        spec in prop::sample::select(vec!["torus:4x4", "ring:6x2", "torus:5,hosts=3"]),
        seed in 0u64..1000,
        load in 0.3f64..2.0,
        rc in any::<bool>(),
        largest in prop::sample::select(vec![64u64, 3000, 9000]),
        buffer in 3000u64..20_000,
        voq in any::<bool>(),
        adaptive in prop::option::of(Just("min-hop")),
    ) {
        let mut traffic = base();
        (traffic.spec, traffic.seed, traffic.load, traffic.largest) = (spec, seed, load, largest);
        traffic.transport = if rc { Transport::Rc } else { Transport::Ud };
        traffic.parameters.buffer = Bytes(buffer);
        traffic.adaptive = adaptive;
        let queueing = if voq { InputQueueing::Voq } else { InputQueueing::Fifo };
        traffic.parameters.input_queueing = queueing;
        let outcome = run(&traffic, 13, 1);
        match &outcome.ending {
            Ending::Drained => {
                prop_assert_eq!(outcome.totals.messages_delivered, outcome.totals.messages_posted);
            }
            Ending::Deadlock(deadlock) => prop_assert!(deadlock.cycle.len() >= 2, "{}", deadlock),
            other => prop_assert!(false, "{:?}", other),
        }
    }
}

/// PMA counters of a drained network: the sum over host ports is what was injected and delivered,
/// and what one end has sent the other has received (which taps.rs holds at any time).
#[test]
fn counters_of_both_ends_of_a_cable_agree() {
    let traffic = base();
    let fabric = build(traffic.spec);
    let outcome = run(&traffic, 13, 1);
    assert_eq!(outcome.ending, Ending::Drained);
    let find = |end: clearlane_fabric::Endpoint| {
        let at =
            |c: &&clearlane_sim::ChannelRecord| (c.node, c.port) == (end.node.0, end.port.value());
        outcome.channels.iter().find(at).expect("every cabled port has counters")
    };
    let (mut sent, mut received) = (0, 0);
    for link in fabric.links() {
        for (a, b) in [(link.a, link.b), (link.b, link.a)] {
            assert_eq!(find(a).port_xmit_pkts, find(b).port_rcv_pkts);
            assert_eq!(find(a).port_xmit_data, find(b).port_rcv_data);
            if !fabric.node(a.node).is_switch() {
                sent += find(a).port_xmit_pkts;
                received += find(a).port_rcv_pkts;
            }
        }
    }
    let t = outcome.totals;
    assert_eq!(sent, t.packets_injected + t.acks_injected);
    assert_eq!(received, t.packets_delivered + t.acks_delivered);
    assert!(t.acks_delivered > 1000);
}
