//! However a run is divided, its outcome is the same to the last byte: random fabrics, transports,
//! mechanisms, adaptive routing, virtual output queues, ways to arbitrate, crossbars and delays, in
//! 1, 2, 3 and 8 partitions, on 1 and 2 threads. So is what ranks are told of messages that they
//! take from anybody, test and probe for.

use crate::ideal::random::random;
use crate::ideal::{Log, script};
use crate::support::{build, dual_homed, tables};
use clearlane_congestion::{Mechanism, Value, Values, mechanisms};
use clearlane_fabric::damage::degrade;
use clearlane_fabric::structure::{Grid, grid};
use clearlane_fabric::{Fabric, NodeKind};
use clearlane_ib::random::Stream;
use clearlane_ib::{
    BitsPerSecond, Bytes, LinkSpeed, LinkWidth, Lmc, Picoseconds, Saved, ServiceLevel,
};
use clearlane_sim::{
    AdapterQueueing, BufferPer, CrossbarReads, Division, Forwarding, GroupSettings, Hosts,
    InputArbitration, InputQueueing, Job, Mechanisms, MessageOrder, Outcome, Parameters, Placed,
    Recording, Setup, Simulation, Ties, preset,
};
use clearlane_sim::{Fleet, fleet_of_threads};
use clearlane_subnet::Subnet;
use clearlane_subnet::engines::{self, RouteOptions};
use clearlane_workload::programs::Group;
use clearlane_workload::{
    Arrivals, Class, Demand, Event, FlowGroup, Gap, Offered, OpenLoop, Pacing, PatternSpec,
    PingPong, ProgramSpec, Rank, RankProgram, SizeDistribution, Transport,
};
use proptest::prelude::*;
use std::sync::Arc;

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
    /// A program of all hosts beside that, or a random script of each; whether the run ends then.
    job: Option<&'static str>,
    ends_with_job: bool,
    /// Of the messages of its program.
    gap: Option<Gap>,
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
        adapter_ports: pick(s, &[None, Some(1)]),
        memory_rate: pick(s, &[None, None, Some(BitsPerSecond(20_000_000_000))]),
        message_order: pick(s, &[MessageOrder::Posted, MessageOrder::Relaxed]),
        drain_rate: pick(s, &slow),
        dma_rate: pick(s, &slow),
        input_queueing: pick(s, &[InputQueueing::Fifo, InputQueueing::Voq]),
        crossbar_speedup: pick(s, &[100, 100, 130, 1600]),
        cable_delay: Picoseconds(pick(s, &[1u64, 10_000, 1_000_000])),
        credit_delay: Picoseconds(pick(s, &[0u64, 7_000, 300_000])),
        switch_delay: Picoseconds(pick(s, &[0u64, 100_000])),
        link_rate: pick(s, &[None, Some(BitsPerSecond(8_000_000_000))]),
        va_delay: Picoseconds(0),
        sa_delay: Picoseconds(0),
        ..base
    }
}

/// Crossbars with limits of their own, each about as often as not, in half of all cases.
fn crossbars(s: &mut Stream, plain: Parameters) -> Parameters {
    let stage = Picoseconds(plain.switch_delay.0 / 3);
    let idle = Picoseconds(0);
    let packet = plain.mtu + 400;
    let shared = pick(s, &[BufferPer::Lane, BufferPer::Port]);
    let limited = Parameters {
        va_delay: pick(s, &[idle, stage]),
        sa_delay: pick(s, &[idle, stage]),
        crossbar_reads: pick(s, &[CrossbarReads::Lane, CrossbarReads::Port]),
        output_buffer: pick(s, &[None, Some(packet), Some(4 * packet), Some(1 << 20)]),
        buffer_per: shared,
        // Enough for 15 lanes.
        buffer: match shared {
            BufferPer::Lane => plain.buffer,
            BufferPer::Port => Bytes(plain.buffer.0 * 15),
        },
        ..plain.clone()
    };
    pick(s, &[plain, limited])
}

/// Kinds of programs.
const JOBS: &[Option<&str>] = &[
    None,
    Some("ring-allreduce"),
    Some("pairwise-alltoall"),
    Some("spread-alltoall"),
    Some("ring-exchange"),
    Some("bruck-alltoall"),
    Some("scatter-allgather-broadcast"),
];

fn case(seed: u64) -> Case {
    let s = &mut Stream::new(seed, "partitions", 0);
    let ways = pick(s, &[Ways::Rule, Ways::Tables, Ways::Tables, Ways::Adaptive, Ways::Multipath]);
    let spec = match ways {
        Ways::Rule => pick(s, &["torus:4x4", "torus:3x3x2", "mesh:4x3", "torus:4,hosts=3"]),
        Ways::Tables | Ways::Adaptive | Ways::Multipath => pick(
            s,
            &[
                "chain:3x2",
                "leaf-spine:leaves=4,hosts=4,spines=2",
                "mesh:3x3",
                "ring:6x2",
                "star:5",
                "dual-homed",
            ],
        ),
    };
    Case {
        seed,
        ways,
        spec,
        lanes: pick(s, &[1u8, 2, 8, 15]),
        slow: pick(s, &[Slow::None, Slow::None, Slow::Trunks, Slow::Hosts, Slow::Some]),
        parameters: {
            let plain = parameters(s);
            let plain = crossbars(&mut Stream::new(seed, "crossbars", 0), plain);
            // Longer than what a message takes: answers overtake what is about to be posted.
            let send_overhead = match Stream::new(seed, "overheads", 0).below(3) {
                0 => Picoseconds(7_000_000),
                _ => plain.send_overhead,
            };
            let bounds = &mut Stream::new(seed, "bounds", 0);
            let source_backlog = pick(bounds, &[None, None, Some(1), Some(5)]);
            Parameters { send_overhead, source_backlog, ..plain }
        },
        load: 0.05 + s.unit() * 1.5,
        largest: pick(s, &[64u64, 3000, 20_000]),
        when: pick(
            s,
            &[
                None,
                None,
                Some("iba-cc"),
                Some("iba-cc:qp"),
                Some("iba-cc:port"),
                Some("dcqcn:port"),
                Some("dcqcn"),
                Some("timely"),
            ],
        ),
        balances: s.below(3) == 0,
        answering: s.below(5) == 0,
        recorded: s.below(4) > 0,
        job: pick(s, JOBS)
            .or_else(|| pick(&mut Stream::new(seed, "scripts", 1), &[None, Some(SCRIPTS)])),
        ends_with_job: s.below(2) == 0,
        gap: pick(s, &[None, None, Some(Gap(500)), Some(Gap(3000))]),
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

/// A mechanism with its defaults, or what is behind the colon: whether CNPs are a while apart for a
/// queue pair or for a port.
fn mechanism(name: &str) -> Box<dyn Mechanism> {
    let (name, interval_of) = name.split_once(':').map_or((name, None), |(a, b)| (a, Some(b)));
    let entry = mechanisms::by_name(name).unwrap();
    let parameter = |name: &str| *entry.parameters.iter().find(|p| p.name == name).unwrap();
    let mut values = Values::default();
    if let Some(of) = interval_of {
        values.set(parameter("cnp_interval"), Value::Time(Picoseconds(5_000_000))).unwrap();
        let of = if of == "port" { Value::Word("port") } else { Value::Word("qp") };
        values.set(parameter("cnp_interval_of"), of).unwrap();
    }
    (entry.build)(&values).unwrap()
}

fn groups(case: &Case, hosts: &Hosts) -> Vec<FlowGroup> {
    let pattern = PatternSpec::to_anybody();
    let group = |transport, name: &str, share: u32| FlowGroup {
        name: name.into(),
        class: Class::Background,
        senders: (0..hosts.count() as u32 / share).map(Rank).collect(),
        transport,
        demand: Demand::OpenLoop(Arc::new(Offered {
            destinations: pattern.build(hosts.ranks(), None).unwrap(),
            sizes: SizeDistribution::Uniform { min: Bytes(1), max: Bytes(case.largest) },
            load: case.load / 2.0,
            arrivals: Arrivals::Poisson,
            start: Picoseconds(0),
            stop: Picoseconds(50_000_000),
        })),
        sl: ServiceLevel::new(if case.lanes > 1 { share as u8 - 1 } else { 0 }),
    };
    vec![group(Transport::Rc, "connections", 1), group(Transport::Ud, "datagrams", 2)]
}

fn fabric(case: &Case) -> Fabric {
    let mut fabric = match case.spec {
        "dual-homed" => dual_homed(4, 2),
        spec => build(spec),
    };
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

/// Each host has a script of its own, which takes messages from anybody, tests and probes.
const SCRIPTS: &str = "scripts";

/// The program of all hosts: short and long messages, as `largest` has it.
fn jobs(case: &Case, hosts: u32, log: &Log) -> Vec<Job> {
    let programs = match case.job {
        None => return Vec::new(),
        Some(SCRIPTS) => {
            let scripts = random(case.seed, hosts, 6 * hosts);
            (0..).zip(scripts).map(|(rank, todo)| script(rank, todo, log)).collect()
        }
        Some(kind) => {
            let size = case.largest * 3;
            let spec = format!("kind = \"{kind}\"\nsize = \"{size} B\"\nrounds = 2");
            let spec: ProgramSpec = toml::from_str(&spec).unwrap();
            let pacing = case.gap.map_or(Pacing::None, Pacing::Fixed);
            spec.build(&Group { ranks: hosts, group: 0, pacing }).unwrap()
        }
    };
    let placed = |(host, program)| Placed { host, program };
    vec![Job { ranks: (0..hosts).zip(programs).map(placed).collect() }]
}

fn run(case: &Case, division: Division) -> Ran {
    run_through(case, &[division], 3, None)
}

/// By so many processes together; what each of them has found.
fn run_together(case: &Case, processes: usize, division: Division) -> Vec<Ran> {
    std::thread::scope(|scope| {
        let process = |fleet| scope.spawn(move || run_through(case, &[division], 3, Some(fleet)));
        let all: Vec<_> = fleet_of_threads(processes).into_iter().map(process).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// What processes found together: the records are with the first, and each knows what its own ranks
/// were told.
fn together(all: Vec<Ran>) -> Ran {
    let mut all = all.into_iter();
    let mut first = all.next().unwrap();
    for other in all {
        let (one, two) = (&first.outcome, &other.outcome);
        assert_eq!((&one.ending, one.duration, one.slice), (&two.ending, two.duration, two.slice));
        assert_eq!((&one.totals, &one.jobs), (&two.totals, &two.jobs));
        assert!(two.groups.is_empty() && two.flows.is_empty() && two.channels.is_empty());
        first.told.extend(other.told);
    }
    first.told.sort_by_key(|(rank, ..)| *rank);
    first
}

fn recording(case: &Case) -> Recording {
    // Slices that grow begin at a hundredth of those that do not.
    let grows = case.seed.is_multiple_of(2);
    let slice = Picoseconds(case.until / if grows { 700 } else { 7 });
    Recording { slice, slices: 7, grows, flow_bytes_max: 4000 }
}

/// What the set-ups of a case are made of.
struct Scene {
    fabric: Fabric,
    subnet: Option<Subnet>,
    grid: Option<Grid>,
    groups: Vec<FlowGroup>,
}

impl Scene {
    fn of(case: &Case) -> Self {
        let fabric = fabric(case);
        let (subnet, grid) = (subnet(case, &fabric), grid(&fabric).ok());
        let groups = groups(case, &Hosts::of(&fabric));
        Scene { fabric, subnet, grid, groups }
    }

    fn setup<'a>(
        &'a self,
        case: &Case,
        division: Division,
        fleet: Option<Arc<dyn Fleet>>,
        log: &Log,
    ) -> Setup<'a> {
        let hosts = Hosts::of(&self.fabric);
        let (p, count, groups) = (&case.parameters, hosts.count() as u32, &self.groups);
        let program = |rank: u32| -> Box<dyn RankProgram> {
            if case.answering {
                let (peer, rounds) = if rank ^ 1 < count { (rank ^ 1, 9) } else { (rank, 0) };
                return Box::new(PingPong::new(Rank(rank), Rank(peer), case.largest, 0, rounds));
            }
            let rate = hosts.rate(Rank(rank), p);
            let packet = |group: &FlowGroup| p.packet(group.transport);
            Box::new(OpenLoop::new(Rank(rank), groups, rate, packet, case.seed))
        };
        let balances = case.balances && case.ways == Ways::Multipath;
        let control = || Mechanisms {
            when: case.when.map(mechanism),
            which: balances.then(|| mechanism("drb")),
            seed: case.seed,
        };
        let settings = |g: &FlowGroup| GroupSettings { transport: g.transport, sl: g.sl };
        Setup {
            fabric: &self.fabric,
            forwarding: match (&self.subnet, &self.grid) {
                (Some(subnet), _) => Forwarding::Tables(subnet),
                (None, grid) => Forwarding::DimensionOrder(grid.as_ref().unwrap(), Ties::Both),
            },
            parameters: p.clone(),
            groups: groups.iter().map(settings).collect(),
            programs: (0..count).map(program).collect(),
            control: (case.when.is_some() || balances).then(control),
            recording: if case.recorded { recording(case) } else { Recording::TOTALS },
            queue_width_log2: case.width,
            division,
            fleet,
            taps: Vec::new(),
            dead_pairs: false,
            jobs: jobs(case, count, log),
            ends_with_jobs: case.ends_with_job && case.job.is_some(),
        }
    }
}

/// In so many steps, after each of which the run is saved and goes on in the next division.
fn run_through(
    case: &Case,
    divisions: &[Division],
    steps: u64,
    fleet: Option<Arc<dyn Fleet>>,
) -> Ran {
    let (log, scene) = (Log::default(), Scene::of(case));
    let setup = |division| scene.setup(case, division, fleet.clone(), &log);
    let mut simulation = Simulation::new(setup(divisions[0])).unwrap();
    for step in 1..=steps {
        let division = divisions[(step - 1) as usize % divisions.len()];
        let parts = division.partitions.min(scene.fabric.ids(NodeKind::Switch).count());
        let processes = fleet.as_ref().map_or(1, |fleet| fleet.size());
        let threads = division.threads.min(parts / processes).max(1);
        assert_eq!((simulation.partitions(), simulation.threads()), (parts, threads));
        simulation.run_until(Picoseconds(case.until * step / steps));
        if divisions.len() > 1
            && let Some(saved) = simulation.save()
        {
            let next = divisions[step as usize % divisions.len()];
            let forged = &mut Stream::new(case.seed, "forged", step);
            simulation = taken_up(&saved, forged, || setup(next));
        }
    }
    // How a run has ended is found again.
    simulation.run_until(Picoseconds(case.until));
    Ran::of(simulation.finish(), &log)
}

/// On so many processes one after the other, each of which is lost after its step: what they saved
/// is gone on with by the next.
fn run_moved(case: &Case, fleets: &[usize]) -> Ran {
    let mut saved: Option<Saved> = None;
    let mut told = Vec::new();
    let mut last = Vec::new();
    for (step, processes) in (1..).zip(fleets) {
        let until = Picoseconds(case.until * step / fleets.len() as u64);
        let division = Division { partitions: 2 * processes, threads: 1 };
        let stage = |fleet, saved: Option<&Saved>| {
            let (log, scene) = (Log::default(), Scene::of(case));
            let setup = scene.setup(case, division, Some(fleet), &log);
            let mut simulation = match saved {
                None => Simulation::new(setup).unwrap(),
                Some(saved) => Simulation::resume(setup, saved).unwrap(),
            };
            simulation.run_until(until);
            let part = simulation.save().unwrap();
            (part, Ran::of(simulation.finish(), &log))
        };
        let all: Vec<(Saved, Ran)> = std::thread::scope(|scope| {
            let (stage, saved) = (&stage, saved.as_ref());
            let process = |fleet| scope.spawn(move || stage(fleet, saved));
            let all: Vec<_> = fleet_of_threads(*processes).into_iter().map(process).collect();
            all.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let (parts, ran): (Vec<Saved>, Vec<Ran>) = all.into_iter().unzip();
        saved = Some(Simulation::joined(&parts).unwrap());
        let ran = together(ran);
        told.extend(ran.told);
        last = vec![ran.outcome];
    }
    told.sort_by_key(|(rank, ..)| *rank);
    Ran { outcome: last.pop().unwrap(), told }
}

/// Goes on from a state. Copies with a byte changed are refused, or can be saved whatever they say:
/// no list there has no end, and no number is of what there is not.
fn taken_up<'a>(saved: &Saved, s: &mut Stream, setup: impl Fn() -> Setup<'a>) -> Simulation {
    for _ in 0..2 {
        let mut forged = saved.clone();
        let at = s.below(forged.bytes.len() as u64) as usize;
        forged.bytes[at] ^= 1 + s.below(255) as u8;
        if let Ok(mut forged) = Simulation::resume(setup(), &forged) {
            assert!(forged.save().is_some());
        }
    }
    Simulation::resume(setup(), saved).unwrap()
}

/// How a run ended, and what scripts were told, rank by rank.
struct Ran {
    outcome: Outcome,
    told: Vec<(u32, u64, Event)>,
}

impl Ran {
    fn of(outcome: Outcome, log: &Log) -> Self {
        let mut told = log.lock().unwrap().clone();
        // Ranks of several threads are told side by side.
        told.sort_by_key(|(rank, ..)| *rank);
        Ran { outcome, told }
    }
}

/// All that an outcome tells. How a histogram keeps its largest value within its bucket, it does
/// not tell.
fn told(ran: Ran) -> String {
    let Ran { mut outcome, told } = ran;
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
    text + &format!("{outcome:?} {told:?}")
}

/// One case in so many of the 256 that proptest draws. A case here is several runs, and these four
/// are the longest tests of this crate: `make test` draws 11 cases of two of them and 4 of the
/// others. `make test-long` draws 256 of each: it sets PROPTEST_CASES (scripts/test-stages), which
/// stands above what is said here.
fn one_in(share: u32) -> ProptestConfig {
    let all = ProptestConfig::default();
    ProptestConfig { cases: all.cases.div_ceil(share), ..all }
}

proptest! {
    #![proptest_config(one_in(24))]

    #[test]
    fn an_outcome_does_not_tell_how_its_run_was_divided(seed in 0u64..1_000_000_000) {
        let case = case(seed);
        let whole = told(run(&case, Division::WHOLE));
        for division in DIVISIONS {
            prop_assert_eq!(&whole, &told(run(&case, division)), "{:?} {:?}", division, case);
        }
    }
}

proptest! {
    #![proptest_config(one_in(24))]

    /// Saved and taken up again in other divisions, at times that depend on nothing.
    #[test]
    fn an_outcome_does_not_tell_that_its_run_was_saved(seed in 0u64..1_000_000_000) {
        let case = case(seed);
        let whole = told(run(&case, Division::WHOLE));
        let of = |partitions, threads| Division { partitions, threads };
        let once = [Division::WHOLE, Division::WHOLE];
        let often = [of(3, 2), Division::WHOLE, of(2, 2), of(8, 1)];
        prop_assert_eq!(&whole, &told(run_through(&case, &once, 2, None)), "once {:?}", &case);
        prop_assert_eq!(&whole, &told(run_through(&case, &often, 17, None)), "often {:?}", &case);
    }
}

proptest! {
    #![proptest_config(one_in(64))]

    /// Processes that are threads here, with one or two threads each.
    #[test]
    fn an_outcome_does_not_tell_how_many_processes_shared_its_run(seed in 0u64..1_000_000_000) {
        let case = case(seed);
        let whole = told(run(&case, Division::WHOLE));
        let switches = fabric(&case).ids(NodeKind::Switch).count();
        for (processes, partitions, threads) in [(2, 2, 1), (3, 4, 1)] {
            if switches < partitions {
                continue;
            }
            let division = Division { partitions, threads };
            let ran = together(run_together(&case, processes, division));
            prop_assert_eq!(&whole, &told(ran), "{} {:?} {:?}", processes, division, case);
        }
    }
}

proptest! {
    #![proptest_config(one_in(64))]

    /// Saved by two processes, gone on with by three, by one, and by two again.
    #[test]
    fn an_outcome_does_not_tell_that_its_run_moved(seed in 0u64..1_000_000_000) {
        let case = case(seed);
        if fabric(&case).ids(NodeKind::Switch).count() >= 6 {
            let whole = told(run(&case, Division::WHOLE));
            prop_assert_eq!(&whole, &told(run_moved(&case, &[2, 3, 1, 2])), "{:?}", &case);
        }
    }
}

/// Buffers of one packet and reads by port, so that heads lack credits and inputs are read while
/// others are allotted the lane they hold. The seeds are those of 1,500 whose outcome was another
/// one in two partitions while a look during an allotment took it back.
#[test]
fn a_look_at_an_output_that_is_being_allotted_changes_nothing() {
    for seed in [675, 747, 889] {
        let mut case = case(seed);
        let packet = u64::from(case.parameters.mtu) + 400;
        let lanes = if case.parameters.buffer_per == BufferPer::Port { 15 } else { 1 };
        if case.lanes == 1 {
            case.parameters.input_queueing = InputQueueing::Voq;
        }
        case.parameters = Parameters {
            crossbar_reads: CrossbarReads::Port,
            output_buffer: None,
            va_delay: Picoseconds(100_000),
            sa_delay: Picoseconds(200_000),
            switch_delay: Picoseconds(300_000),
            buffer: Bytes(lanes * packet),
            ..case.parameters
        };
        let halves = Division { partitions: 2, threads: 1 };
        assert_eq!(told(run(&case, Division::WHOLE)), told(run(&case, halves)), "{case:?}");
    }
}

/// A run of more packet-hops than that, whole and in so many partitions on two threads.
fn agrees(case: &Case, packet_hops: u64, partitions: usize) {
    let whole = run(case, Division::WHOLE);
    let totals = &whole.outcome.totals;
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
        job: None,
        ends_with_job: false,
        gap: None,
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
        until: 9_000_000,
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
