//! Runs that were kept: any bytes are answered in one line. A run's state with some bytes changed,
//! under a digest that fits, is refused or is one that a run goes on from.
#![no_main]

use clearlane_congestion::{Values, mechanisms};
use clearlane_fabric::Fabric;
use clearlane_fuzz::{one_line, refused, subnet};
use clearlane_ib::{Bytes, Picoseconds, Saved, ServiceLevel};
use clearlane_lab::{decode, encode};
use clearlane_sim::{
    Division, Forwarding, GroupSettings, Hosts, Mechanisms, Recording, Setup, Simulation, preset,
};
use clearlane_subnet::Subnet;
use clearlane_workload::{
    Arrivals, Class, Demand, FlowGroup, Offered, OpenLoop, PatternSpec, Rank, RankProgram,
    SizeDistribution, Transport,
};
use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, OnceLock};

const END: Picoseconds = Picoseconds(30_000_000);

/// Small and large messages of four hosts over two queue pairs each, under congestion control.
fn setup<'a>(fabric: &'a Fabric, subnet: &'a Subnet) -> Setup<'a> {
    let parameters = (preset::by_name("qdr").expect("a preset").parameters)();
    let hosts = Hosts::of(fabric);
    let group = |transport, name: &str| FlowGroup {
        name: name.into(),
        class: Class::Background,
        senders: (0..hosts.count() as u32).map(Rank).collect(),
        transport,
        demand: Demand::OpenLoop(Arc::new(Offered {
            destinations: PatternSpec::Uniform(Default::default())
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
    let groups = [group(Transport::Rc, "connections"), group(Transport::Ud, "datagrams")];
    let program = |rank: u32| -> Box<dyn RankProgram> {
        let rate = hosts.rate(Rank(rank), &parameters);
        let packet = |group: &FlowGroup| parameters.packet(group.transport);
        Box::new(OpenLoop::new(Rank(rank), &groups, rate, packet, 1))
    };
    let mechanism = mechanisms::by_name("iba-cc").expect("a mechanism");
    Setup {
        fabric,
        forwarding: Forwarding::Tables(subnet),
        parameters: parameters.clone(),
        groups: groups.iter().map(|g| GroupSettings { transport: g.transport, sl: g.sl }).collect(),
        programs: (0..hosts.count() as u32).map(program).collect(),
        control: Some(Mechanisms {
            when: Some((mechanism.build)(&Values::default()).expect("its defaults")),
            which: None,
            seed: 1,
        }),
        recording: Some(Recording {
            slice: Picoseconds(END.0 / 4),
            slices: 4,
            grows: false,
            flow_bytes_max: 4000,
        }),
        queue_width_log2: 16,
        division: Division::WHOLE,
        taps: Vec::new(),
        jobs: Vec::new(),
        ends_with_jobs: false,
    }
}

/// The run at three times.
fn states() -> &'static [Saved] {
    static STATES: OnceLock<Vec<Saved>> = OnceLock::new();
    STATES.get_or_init(|| {
        let (fabric, subnet) = subnet();
        let mut simulation = Simulation::new(setup(&fabric, &subnet)).expect("a sound set-up");
        let mut state = |part: u64| {
            simulation.run_until(Picoseconds(END.0 * part / 4));
            simulation.save().expect("open-loop traffic is saved")
        };
        (1..4).map(&mut state).collect()
    })
}

fuzz_target!(|data: &[u8]| {
    if let Err(refusal) = decode(data, "question", "job") {
        one_line(refusal.problem());
    }
    let Some((which, changes)) = data.split_first() else { return };
    let states = states();
    let mut state = states[usize::from(*which) % states.len()].clone();
    for change in changes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % state.bytes.len();
        state.bytes[at] ^= change[2];
    }
    let file = encode("question", "job", state.clone());
    let read = decode(&file, "question", "job").expect("what is written is read");
    assert_eq!(read, state);
    let (fabric, subnet) = subnet();
    match Simulation::resume(setup(&fabric, &subnet), &read) {
        Err(error) => refused(&error),
        Ok(mut simulation) => assert!(simulation.save().is_some()),
    }
});
