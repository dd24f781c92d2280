//! However a run is divided, its outcome is the same to the last byte: random fabrics, transports,
//! mechanisms, adaptive routing, virtual output queues, ways to arbitrate, crossbar speed-up and
//! delays, in 1, 2, 3 and 8 partitions, on 1 and 2 threads.

mod support;

use clearlane_congestion::{Mechanism, Values, mechanisms};
use clearlane_fabric::damage::degrade;
use clearlane_fabric::structure::grid;
use clearlane_fabric::{Fabric, NodeKind};
use clearlane_ib::random::Stream;
use clearlane_ib::{BitsPerSecond, Bytes, LinkSpeed, LinkWidth, Lmc, Picoseconds, ServiceLevel};
use clearlane_sim::{
    AdapterQueueing, Division, Forwarding, GroupSettings, Hosts, InputArbitration, InputQueueing,
    Mechanisms, Outcome, Parameters, Recording, Setup, Simulation, preset,
};
use clearlane_subnet::Subnet;
use clearlane_subnet::engines::{self, RouteOptions};
use clearlane_workload::{
    Arrivals, Class, FlowGroup, OpenLoop, PatternSpec, PingPong, Rank, RankProgram,
    SizeDistribution, Transport,
};
use proptest::prelude::*;
use support::{build, tables};

const DIVISIONS: [Division; 5] = [
    Division { partitions: 2, threads: 1 },
    Division { partitions: 2, threads: 2 },
    Division { partitions: 3, threads: 2 },
    Division { partitions: 8, threads: 1 },
    Division { partitions: 8, threads: 2 },
];

/// How packets find their way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ways {
    /// Dimension order by coordinates.
    Rule,
    /// Tables of the tests' own.
    Tables,
    /// Switches choose among shortest paths.
    Adaptive,
    /// Four LIDs a host.
    Multipath,
}

/// Which cables are slower than the rest: 1x SDR.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Slow {
    None,
    /// Those between switches.
    Trunks,
    /// Those of hosts.
    Hosts,
    /// Every third.
    Some,
}

#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    ways: Ways,
    spec: &'static str,
    lanes: u8,
    slow: Slow,
    parameters: Parameters,
    load: f64,
    largest: u64,
    when: Option<&'static str>,
    balances: bool,
    answering: bool,
    recorded: bool,
    until: u64,
    width: u32,
}

fn pick<T: Clone>(stream: &mut Stream, of: &[T]) -> T {
    of[stream.below(of.len() as u64) as usize].clone()
}

fn parameters(s: &mut Stream) -> Parameters {
    let base = preset::by_name(pick(s, &["qdr", "sdr-2011", "nsim-2014", "edr"])).unwrap();
    let base = (base.parameters)();
    let slow = [None, None, Some(BitsPerSecond(6_000_000_000))];
    let outstanding = 1 + s.below(20) as u32;
    let least = u64::from(base.mtu) + 400;
    Parameters {
        buffer: Bytes(pick(s, &[3000u64, 8192, 16_384, 262_144]).max(least)),
        arbitration: pick(
            s,
            &[
                InputArbitration::RoundRobin,
                InputArbitration::OldestFirst,
                InputArbitration::FlowFair,
            ],
        ),
        queueing: pick(s, &[AdapterQueueing::PerDestination, AdapterQueueing::SingleFifo]),
        injection_engines: pick(s, &[None, Some(1), Some(3)]),
        outstanding,
        ack_coalescing: 1 + s.below(outstanding.into()) as u32,
        drain_rate: pick(s, &slow),
        dma_rate: pick(s, &slow),
        input_queueing: pick(s, &[InputQueueing::Fifo, InputQueueing::Voq]),
        crossbar_speedup: pick(s, &[100, 100, 130, 1600]),
        cable_delay: Picoseconds(pick(s, &[1u64, 10_000, 1_000_000])),
        credit_delay: Picoseconds(pick(s, &[0u64, 7_000, 300_000])),
        switch_delay: Picoseconds(pick(s, &[0u64, 100_000])),
        link_rate: pick(s, &[None, Some(BitsPerSecond(8_000_000_000))]),
        ..base
    }
}

fn case(seed: u64) -> Case {
    let s = &mut Stream::new(seed, "partitions", 0);
    let ways = pick(s, &[Ways::Rule, Ways::Tables, Ways::Tables, Ways::Adaptive, Ways::Multipath]);
    let spec = match ways {
        Ways::Rule => pick(s, &["torus:4x4", "torus:3x3x2", "mesh:4x3", "torus:4,hosts=3"]),
        _ => pick(
            s,
            &[
                "chain:3x2",
                "leaf-spine:leaves=4,hosts=4,spines=2",
                "mesh:3x3",
                "ring:6x2",
                "star:5",
            ],
        ),
    };
    Case {
        seed,
        ways,
        spec,
        lanes: pick(s, &[1u8, 2, 8, 15]),
        slow: pick(s, &[Slow::None, Slow::None, Slow::Trunks, Slow::Hosts, Slow::Some]),
        parameters: parameters(s),
        load: 0.05 + s.unit() * 1.5,
        largest: pick(s, &[64u64, 3000, 20_000]),
        when: pick(s, &[None, None, Some("iba-cc"), Some("dcqcn"), Some("timely")]),
        balances: s.below(3) == 0,
        answering: s.below(5) == 0,
        recorded: s.below(4) > 0,
        until: pick(s, &[60_000_000u64, 20_000_000_000]),
        width: pick(s, &[6, 13, 16, 24]),
    }
}

fn subnet(case: &Case, fabric: &Fabric) -> Option<Subnet> {
    let lanes = case.lanes;
    match case.ways {
        Ways::Rule => None,
        Ways::Tables => Some(tables(fabric, lanes, case.seed.is_multiple_of(2))),
        Ways::Adaptive => {
            let options = RouteOptions { adaptive: true, lanes, ..RouteOptions::default() };
            Some(engines::route("up-down", fabric, &options).unwrap())
        }
        Ways::Multipath => {
            let lmc = Lmc::new(2).unwrap();
            let options = RouteOptions { lanes: 8, lmc, ..RouteOptions::default() };
            engines::route("multipath", fabric, &options)
                .ok()
                .or_else(|| Some(tables(fabric, 1, false)))
        }
    }
}

fn mechanism(name: &str) -> Box<dyn Mechanism> {
    (mechanisms::by_name(name).unwrap().build)(&Values::default()).unwrap()
}

fn groups(case: &Case, hosts: &Hosts) -> Vec<FlowGroup> {
    let pattern = PatternSpec::Uniform(Default::default());
    let group = |transport, name: &str, share: u32| FlowGroup {
        name: name.into(),
        class: Class::Background,
        senders: (0..hosts.count() as u32 / share).map(Rank).collect(),
        destinations: pattern.build(&hosts.ranks(), None).unwrap(),
        sizes: SizeDistribution::Uniform { min: Bytes(1), max: Bytes(case.largest) },
        load: case.load / 2.0,
        arrivals: Arrivals::Poisson,
        start: Picoseconds(0),
        stop: Picoseconds(50_000_000),
        transport,
        sl: ServiceLevel::new(if case.lanes > 1 { share as u8 - 1 } else { 0 }),
    };
    vec![group(Transport::Rc, "connections", 1), group(Transport::Ud, "datagrams", 2)]
}

fn fabric(case: &Case) -> Fabric {
    let mut fabric = build(case.spec);
    let mut cables = Vec::new();
    for switch in fabric.ids(NodeKind::Switch) {
        for (_, cable, peer) in fabric.neighbours(switch) {
            let trunk = fabric.node(peer.node).is_switch();
            let slow = match case.slow {
                Slow::None => false,
                Slow::Trunks => trunk,
                Slow::Hosts => !trunk,
                Slow::Some => cables.len() % 3 == 0,
            };
            cables.push((cable, slow));
        }
    }
    let slow: Vec<_> =
        cables.into_iter().filter_map(|(cable, slow)| slow.then_some(cable)).collect();
    degrade(&mut fabric, &slow, LinkWidth::X1, LinkSpeed::Sdr);
    fabric
}

fn run(case: &Case, division: Division) -> Outcome {
    let fabric = fabric(case);
    let (subnet, grid) = (subnet(case, &fabric), grid(&fabric).ok());
    let hosts = Hosts::of(&fabric);
    let (p, count) = (&case.parameters, hosts.count() as u32);
    let groups = groups(case, &hosts);
    let program = |rank: u32| -> Box<dyn RankProgram> {
        if case.answering {
            let (peer, rounds) = if rank ^ 1 < count { (rank ^ 1, 9) } else { (rank, 0) };
            return Box::new(PingPong::new(Rank(rank), Rank(peer), case.largest, 0, rounds));
        }
        let rate = hosts.rate(Rank(rank), p);
        let header = |group: &FlowGroup| p.header_bytes(group.transport);
        Box::new(OpenLoop::new(Rank(rank), &groups, rate, p.mtu, header, case.seed))
    };
    let which = (case.balances && case.ways == Ways::Multipath).then(|| mechanism("drb"));
    let control = Mechanisms { when: case.when.map(mechanism), which, seed: case.seed };
    let any = control.when.is_some() || control.which.is_some();
    let slice = Picoseconds(case.until / 7);
    let setup = Setup {
        fabric: &fabric,
        forwarding: match (&subnet, &grid) {
            (Some(subnet), _) => Forwarding::Tables(subnet),
            (None, grid) => Forwarding::DimensionOrder(grid.as_ref().unwrap()),
        },
        parameters: p.clone(),
        groups: groups.iter().map(|g| GroupSettings { transport: g.transport, sl: g.sl }).collect(),
        programs: (0..count).map(program).collect(),
        control: any.then_some(control),
        recording: case.recorded.then_some(Recording { slice, slices: 7, flow_bytes_max: 4000 }),
        queue_width_log2: case.width,
        division,
        taps: Vec::new(),
    };
    let mut simulation = Simulation::new(setup).unwrap();
    let parts = division.partitions.min(fabric.ids(NodeKind::Switch).count());
    let threads = division.threads.min(parts);
    assert_eq!((simulation.partitions(), simulation.threads()), (parts, threads));
    for step in 1..=3 {
        simulation.run_until(Picoseconds(case.until * step / 3));
    }
    simulation.finish()
}

/// All that an outcome tells. How a histogram keeps its largest value within its bucket, it does
/// not tell.
fn told(mut outcome: Outcome) -> String {
    let mut text = String::new();
    for slice in std::mem::take(&mut outcome.groups).into_iter().flatten() {
        let latency = &slice.latency_ns;
        let counts: Vec<_> = latency
            .iter_recorded()
            .map(|value| (value.value_iterated_to(), value.count_at_value()))
            .collect();
        let sums = [
            slice.offered_wire_bytes,
            slice.delivered_wire_bytes,
            slice.delivered_payload_bytes,
            slice.messages,
        ];
        let (least, most) = (latency.min(), latency.max());
        text.push_str(&format!("{sums:?} {} {least} {most} {counts:?}", slice.latency_sum_ps));
    }
    text + &format!("{outcome:?}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn an_outcome_does_not_tell_how_its_run_was_divided(seed in 0u64..1_000_000_000) {
        let case = case(seed);
        let whole = told(run(&case, Division::WHOLE));
        for division in DIVISIONS {
            prop_assert_eq!(&whole, &told(run(&case, division)), "{:?} {:?}", division, case);
        }
    }
}

/// A run of more packet-hops than that, whole and in so many partitions on two threads.
fn agrees(case: &Case, packet_hops: u64, partitions: usize) {
    let whole = run(case, Division::WHOLE);
    let totals = &whole.totals;
    assert!(totals.packet_hops > packet_hops, "{totals:?}");
    let divided = run(case, Division { partitions, threads: 2 });
    assert_eq!(told(whole), told(divided));
}

/// One lane by tables, everything else plain.
fn plain(spec: &'static str) -> Case {
    Case {
        spec,
        ways: Ways::Tables,
        lanes: 1,
        slow: Slow::None,
        parameters: (preset::by_name("qdr").unwrap().parameters)(),
        load: 1.0,
        largest: 64,
        when: None,
        balances: false,
        answering: false,
        recorded: true,
        until: 60_000_000,
        width: 24,
        seed: 1,
    }
}

/// Hosts on cables much faster than those between switches: a packet that leaves for a host frees
/// its buffer sooner than one that goes on, and its credits reach another switch sooner.
#[test]
fn windows_are_no_longer_than_the_fastest_exit_allows() {
    let plain = plain("chain:3x3");
    let parameters = Parameters {
        link_rate: None,
        crossbar_speedup: 100,
        cable_delay: Picoseconds(10_000),
        credit_delay: Picoseconds(0),
        switch_delay: Picoseconds(200_000),
        input_queueing: InputQueueing::Fifo,
        ..plain.parameters.clone()
    };
    agrees(&Case { slow: Slow::Trunks, parameters, ..plain }, 1000, 3);
}

/// A fabric large enough that its ports are fetched ahead, and pieces of it that are not.
#[test]
fn fetching_ahead_is_not_seen() {
    let case = Case {
        spec: "torus:16x16x8",
        ways: Ways::Rule,
        slow: Slow::None,
        recorded: false,
        answering: false,
        when: None,
        until: 4_000_000,
        ..case(11)
    };
    agrees(&case, 10_000, 3);
}

/// So many connections, some 30,000 of 84 B, that they are fetched ahead although their ports are
/// few, and pieces that have too few of them.
#[test]
fn fetching_connections_ahead_is_not_seen() {
    let case = Case {
        load: 0.5,
        largest: 200,
        when: Some("iba-cc"),
        width: 14,
        ..plain("leaf-spine:leaves=20,hosts=10,spines=10")
    };
    agrees(&case, 50_000, 8);
}

/// A hundred switches, most of whose cables are cut: the pieces are really simulated apart.
#[test]
fn as_many_partitions_are_made_as_are_asked_for() {
    let case = Case {
        spec: "torus:10x10",
        ways: Ways::Rule,
        recorded: true,
        until: 60_000_000,
        ..case(7)
    };
    agrees(&case, 1000, 100);
}
