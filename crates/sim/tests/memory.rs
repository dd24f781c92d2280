//! What the queues of a run take is said before the run. Alone in its file: it counts what the
//! whole process allocates.

#[path = "it/support/mod.rs"]
mod support;

use clearlane_fabric::Fabric;
use clearlane_sim::{
    Forwarding, InputQueueing, Parameters, Recording, Setup, Simulation, preset, voq_bytes,
};
use clearlane_subnet::Subnet;
use clearlane_workload::Transport;
use peak_alloc::PeakAlloc;
use support::{build, group, idle, tables};

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// Bytes that a simulation at rest takes.
fn allocated(fabric: &Fabric, subnet: &Subnet, hosts: usize, parameters: Parameters) -> u64 {
    let before = ALLOCATED.current_usage();
    let setup = Setup {
        fabric,
        forwarding: Forwarding::Tables(subnet),
        parameters,
        groups: vec![group(Transport::Ud)],
        programs: (0..hosts).map(|_| idle()).collect(),
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
    let simulation = Simulation::new(setup).unwrap();
    let after = ALLOCATED.current_usage();
    drop(simulation);
    (after - before) as u64
}

/// The same devices but for their queues: what one takes more than the other are the queues. (With
/// 8 and 15 lanes both keep as many lanes.)
#[test]
fn queues_per_output_take_what_is_said_beforehand() {
    for (spec, hosts) in [("star:40", 40), ("leaf-spine:leaves=4,hosts=12,spines=4", 48)] {
        let fabric = build(spec);
        for lanes in [8, 15] {
            let subnet = tables(&fabric, lanes, false);
            let fifo = (preset::by_name("qdr").unwrap().parameters)();
            let voq = Parameters { input_queueing: InputQueueing::Voq, ..fifo.clone() };
            let said = [&fifo, &voq]
                .map(|parameters| voq_bytes(&fabric, Forwarding::Tables(&subnet), parameters));
            assert_eq!(said[0], 0);
            let taken = [fifo, voq].map(|of| allocated(&fabric, &subnet, hosts, of));
            let (more, said) = (taken[1] - taken[0], said[1]);
            assert!(said > taken[0] / 2, "too little to be seen: {said} beside {}", taken[0]);
            let off = more.abs_diff(said);
            assert!(off <= said / 100, "{spec}, {lanes} lanes: {more} B, said {said} B");
        }
    }
}
