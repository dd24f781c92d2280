//! What the options of a switch gain, against results known from theory.

use crate::support::{Case, Greedy, Then, build, delivered, greedy, group, idle, near, tables};
use clearlane_ib::{Bytes, Picoseconds};
use clearlane_sim::{Ending, Hosts, InputArbitration, InputQueueing, Outcome, Parameters, preset};
use clearlane_subnet::Subnet;
use clearlane_subnet::check::credit_loop;
use clearlane_subnet::engines::{self, RouteOptions};
use clearlane_workload::{
    Arrivals, Class, Demand, FlowGroup, Offered, OpenLoop, PatternSpec, Rank, RankProgram,
    SizeDistribution, Transport,
};
use std::sync::Arc;

const UNTIL: Picoseconds = Picoseconds(2_000_000_000);

fn qdr(buffer: u64) -> Parameters {
    Parameters { buffer: Bytes(buffer), ..(preset::by_name("qdr").unwrap().parameters)() }
}

/// Full packets from everybody to everybody at full rate: the share of the links' rate that gets
/// through a single switch in the second half of the run.
fn uniform_throughput(parameters: &Parameters, ranks: u32) -> f64 {
    let fabric = build(&format!("star:{ranks}"));
    let subnet = tables(&fabric, 1, false);
    let hosts = Hosts::of(&fabric);
    let flows = FlowGroup {
        name: "uniform".into(),
        class: Class::Background,
        senders: (0..ranks).map(Rank).collect(),
        transport: Transport::Ud,
        demand: Demand::OpenLoop(Arc::new(Offered {
            destinations: PatternSpec::to_anybody().build(hosts.ranks(), None).unwrap(),
            sizes: SizeDistribution::Fixed(Bytes(2048)),
            load: 1.2,
            arrivals: Arrivals::Poisson,
            start: Picoseconds(0),
            stop: UNTIL,
        })),
        sl: None,
    };
    let program = |rank: u32| -> Box<dyn RankProgram> {
        let rate = hosts.rate(Rank(rank), parameters);
        Box::new(OpenLoop::new(Rank(rank), std::slice::from_ref(&flows), rate, |_| (2048, 34), 1))
    };
    // One queue an adapter: what the source puts in order, the switch has to take in that order.
    let parameters =
        Parameters { queueing: clearlane_sim::AdapterQueueing::SingleFifo, ..parameters.clone() };
    let case = Case {
        fabric: &fabric,
        subnet: &subnet,
        parameters,
        groups: vec![group(Transport::Ud)],
        programs: (0..ranks).map(program).collect(),
        until: UNTIL,
        width: 13,
    };
    let outcome = case.run();
    let halves: u64 = outcome.groups[0][5..].iter().map(|slice| slice.delivered_wire_bytes).sum();
    // 250 ps a byte.
    halves as f64 * 250.0 / (UNTIL.0 as f64 / 2.0) / f64::from(ranks)
}

/// Karol, Hluchyj, Morgan, IEEE Trans. Comm. 35(12), 1987: with first-in-first-out inputs a large
/// switch passes 2 − √2 = 0.586 of uniform traffic; with a queue per output nothing is held up.
#[test]
fn queues_per_output_do_away_with_head_of_line_blocking() {
    let fifo = uniform_throughput(&qdr(64 << 10), 48);
    near(fifo, 2.0 - 2f64.sqrt(), 0.04);
    let voq = Parameters { input_queueing: InputQueueing::Voq, ..qdr(64 << 10) };
    let voq = uniform_throughput(&voq, 48);
    assert!(voq > 0.93, "{voq}");
}

/// A crossbar twice as fast as the links lets the next head go while the last packet is still being
/// sent: some of the blocking goes, more so the faster it is. Not all: a head still waits for its
/// output, and all behind it with it.
#[test]
fn a_faster_crossbar_passes_more() {
    let passes = |speedup| {
        let parameters = Parameters { crossbar_speedup: speedup, ..qdr(64 << 10) };
        uniform_throughput(&parameters, 48)
    };
    let (one, two, eight) = (passes(100), passes(200), passes(800));
    assert!(one + 0.05 < two && two + 0.02 < eight && eight < 0.8, "{one} {two} {eight}");
}

/// Golestani, INFOCOM 1994: with self-clocked fair queueing a source that begins late, or goes on
/// after a pause, begins at the tag in service. It gets half of the link from then on; had it saved
/// up, it would have had all of it for as long as it was silent.
#[test]
fn a_source_that_was_silent_gets_its_share_and_not_what_it_missed() {
    let packet = 2082 * 250;
    let half = UNTIL.0 / 2;
    let before = |messages| Greedy { gap: packet, messages, ..greedy(2) };
    let after = || Greedy { gap: packet, start: half, ..greedy(2) };
    for paused in [0, 200] {
        let fabric = build("star:3");
        let case = Case {
            fabric: &fabric,
            subnet: &tables(&fabric, 1, false),
            parameters: Parameters { arbitration: InputArbitration::FlowFair, ..qdr(16 << 10) },
            groups: vec![group(Transport::Ud)],
            programs: vec![
                Greedy::to(2, packet, 0),
                Box::new(Then(before(paused), after())),
                idle(),
            ],
            until: UNTIL,
            width: 13,
        };
        let outcome = case.run();
        let full = half as f64 / packet as f64 * 2048.0;
        for source in [0, 1] {
            near(delivered(&outcome, source, 2, 5) / full, 0.5, 0.01);
        }
    }
}

/// Four hosts of leaf 0 send to hosts of four leaves that the tables reach by one spine.
fn clash(subnet: &Subnet, fabric: &clearlane_fabric::Fabric, transport: Transport) -> Outcome {
    let program = |rank: u32| -> Box<dyn RankProgram> {
        // 9,000 B are five packets: 0.88 of the link's rate.
        let sender = Greedy { bytes: 9000, gap: 5 * 2082 * 250, ..greedy(4 * (rank + 1)) };
        if rank < 4 { Box::new(sender) } else { idle() }
    };
    let case = Case {
        fabric,
        subnet,
        parameters: qdr(64 << 10),
        groups: vec![group(transport)],
        programs: (0..fabric.nodes().len() as u32 - 9).map(program).collect(),
        until: UNTIL,
        width: 13,
    };
    case.run()
}

/// Four flows of 0.88 of a link each, all of which the tables send over one spine: together they
/// get one link. Where the switch chooses, each finds a spine of its own: 3.5 times as much.
#[test]
fn adaptive_routing_finds_the_idle_spines() {
    let fabric = build("leaf-spine:leaves=5,hosts=4,spines=4");
    assert_eq!(fabric.nodes().len(), 29);
    let options = RouteOptions { adaptive: true, ..RouteOptions::default() };
    let adaptive = engines::route("fat-tree", &fabric, &options).unwrap();
    assert!(credit_loop(&fabric, &adaptive).is_sane());
    let fixed = Subnet { adaptive: None, ..adaptive.clone() };
    for transport in [Transport::Ud, Transport::Rc] {
        let delivered = |outcome: &Outcome| -> u64 {
            outcome.groups[0].iter().map(|slice| slice.delivered_payload_bytes).sum()
        };
        let one = clash(&fixed, &fabric, transport);
        let many = clash(&adaptive, &fabric, transport);
        assert_eq!(many.ending, Ending::TimeReached);
        let gain = delivered(&many) as f64 / delivered(&one) as f64;
        assert!((3.2..3.6).contains(&gain), "{transport:?}: {gain}");
    }
}
