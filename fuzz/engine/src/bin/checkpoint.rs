//! Runs that were kept: any bytes are answered in one line. A run's state with some bytes changed,
//! under a digest that fits, is refused or is one that is saved again. It is not run on: physics is
//! asserted, and a state that was forged may well fail it.
#![no_main]

use clearlane_congestion::{Mechanism, Values, mechanisms};
use clearlane_fabric::{Fabric, topologies};
use clearlane_fuzz::{one_line, refused};
use clearlane_ib::{Bytes, Lmc, Picoseconds, Saved, ServiceLevel};
use clearlane_lab::{decode, encode};
use clearlane_sim::{
    CrossbarReads, Division, Forwarding, GroupSettings, Hosts, Job, Mechanisms, Parameters, Placed,
    Recording, Setup, Simulation, preset,
};
use clearlane_subnet::Subnet;
use clearlane_subnet::engines::{RouteOptions, route};
use clearlane_workload::programs::Group;
use clearlane_workload::{
    Arrivals, Class, Demand, FlowGroup, Offered, OpenLoop, PatternSpec, ProgramSpec, Rank,
    RankProgram, SizeDistribution, Transport,
};
use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, OnceLock};

const END: Picoseconds = Picoseconds(30_000_000);

/// What is simulated: a little of everything that has a state.
struct Question {
    fabric: Fabric,
    subnet: Subnet,
    parameters: Parameters,
    when: Option<&'static str>,
    which: Option<&'static str>,
    program: Option<ProgramSpec>,
}

impl Question {
    fn of(engine: &str, options: &RouteOptions) -> Self {
        let spec = "leaf-spine:leaves=2,hosts=2,spines=2";
        let fabric = topologies::build(spec).expect("it builds");
        let subnet = route(engine, &fabric, options).expect("it routes");
        let parameters = (preset::by_name("qdr").expect("a preset").parameters)();
        Question { fabric, subnet, parameters, when: None, which: None, program: None }
    }

    /// Queue pairs under congestion control.
    fn controlled() -> Self {
        Question { when: Some("iba-cc"), ..Question::of("min-hop", &RouteOptions::default()) }
    }

    /// Several paths to each host, of which a mechanism takes its pick.
    fn paths() -> Self {
        let lmc = Lmc::new(2).expect("four paths");
        let options = RouteOptions { lanes: 8, lmc, ..RouteOptions::default() };
        let question = Question::of("multipath", &options);
        Question { when: Some("dcqcn"), which: Some("drb"), ..question }
    }

    /// Ranks over adaptive routing and crossbars with limits of their own.
    fn ranks(text: &str) -> Self {
        let options = RouteOptions { adaptive: true, ..RouteOptions::default() };
        let mut question = Question::of("up-down", &options);
        let program: Program = toml::from_str(text).expect("a program");
        question.program = Some(program.program);
        question.parameters.crossbar_speedup = 200;
        question.parameters.crossbar_reads = CrossbarReads::Port;
        question.parameters.output_buffer = Some(16_384);
        question
    }

    fn all() -> Vec<Self> {
        vec![
            Question::controlled(),
            Question::paths(),
            Question::ranks(
                "program = { kind = \"ring-allreduce\", size = \"200 KiB\", rounds = 9 }",
            ),
            Question::ranks(
                "program = { kind = \"pairwise-alltoall\", size = \"3 KiB\", rounds = 99 }",
            ),
        ]
    }

    /// Small and large messages of four hosts over two queue pairs each.
    fn groups(&self, hosts: &Hosts) -> [FlowGroup; 2] {
        let group = |transport, name: &str| FlowGroup {
            name: name.into(),
            class: Class::Background,
            senders: (0..hosts.count() as u32).map(Rank).collect(),
            transport,
            demand: Demand::OpenLoop(Arc::new(Offered {
                destinations: PatternSpec::to_anybody()
                    .build(&hosts.ranks(), None)
                    .expect("four hosts"),
                sizes: SizeDistribution::Uniform { min: Bytes(1), max: Bytes(9000) },
                load: 0.6,
                arrivals: Arrivals::Poisson,
                start: Picoseconds(0),
                stop: END,
            })),
            sl: ServiceLevel::new(0),
        };
        [group(Transport::Rc, "connections"), group(Transport::Ud, "datagrams")]
    }

    fn job(&self, hosts: &Hosts) -> Option<Job> {
        let ranks = hosts.count() as u32;
        let programs = self.program.as_ref()?.build(&Group { ranks, ..Group::default() });
        let placed = |(host, program)| Placed { host, program };
        Some(Job { ranks: (0..).zip(programs.expect("four ranks")).map(placed).collect() })
    }

    fn setup(&self) -> Setup<'_> {
        let hosts = Hosts::of(&self.fabric);
        let groups = self.groups(&hosts);
        let parameters = &self.parameters;
        let program = |rank: u32| -> Box<dyn RankProgram> {
            let rate = hosts.rate(Rank(rank), parameters);
            let packet = |group: &FlowGroup| parameters.packet(group.transport);
            Box::new(OpenLoop::new(Rank(rank), &groups, rate, packet, 1))
        };
        let mechanism = |name: &str| -> Box<dyn Mechanism> {
            let mechanism = mechanisms::by_name(name).expect("a mechanism");
            (mechanism.build)(&Values::default()).expect("its defaults")
        };
        let (when, which) = (self.when.map(mechanism), self.which.map(mechanism));
        let any = when.is_some() || which.is_some();
        let settings =
            groups.iter().map(|g| GroupSettings { transport: g.transport, sl: g.sl }).collect();
        Setup {
            fabric: &self.fabric,
            forwarding: Forwarding::Tables(&self.subnet),
            parameters: parameters.clone(),
            groups: settings,
            programs: (0..hosts.count() as u32).map(program).collect(),
            control: any.then_some(Mechanisms { when, which, seed: 1 }),
            recording: Recording {
                slice: Picoseconds(END.0 / 4),
                slices: 4,
                grows: self.program.is_some(),
                flow_bytes_max: 4000,
            },
            queue_width_log2: 16,
            division: Division::WHOLE,
            fleet: None,
            taps: Vec::new(),
            dead_pairs: false,
            jobs: self.job(&hosts).into_iter().collect(),
            ends_with_jobs: self.program.is_some(),
        }
    }
}

/// A program as an experiment file has it.
#[derive(serde::Deserialize)]
struct Program {
    program: ProgramSpec,
}

/// Each question, and its run at three times.
fn questions() -> &'static [(Question, Vec<Saved>)] {
    static QUESTIONS: OnceLock<Vec<(Question, Vec<Saved>)>> = OnceLock::new();
    QUESTIONS.get_or_init(|| {
        let states = |question: Question| {
            let mut simulation = Simulation::new(question.setup()).expect("a sound set-up");
            let mut state = |part: u64| {
                simulation.run_until(Picoseconds(END.0 * part / 4));
                simulation.save().expect("all of it is saved")
            };
            let states = (1..4).map(&mut state).collect();
            drop(simulation);
            (question, states)
        };
        Question::all().into_iter().map(states).collect()
    })
}

fuzz_target!(|data: &[u8]| {
    if let Err(refusal) = decode(data, "question", "job") {
        one_line(refusal.problem());
    }
    let Some((which, changes)) = data.split_first() else { return };
    let (questions, which) = (questions(), usize::from(*which));
    let (question, states) = &questions[which % questions.len()];
    let mut state = states[which / questions.len() % states.len()].clone();
    for change in changes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % state.bytes.len();
        state.bytes[at] ^= change[2];
    }
    let file = encode("question", "job", state.clone());
    let read = decode(&file, "question", "job").expect("what is written is read");
    assert_eq!(read, state);
    match Simulation::resume(question.setup(), &read) {
        Err(error) => refused(&error),
        Ok(mut simulation) => assert!(simulation.save().is_some()),
    }
});
