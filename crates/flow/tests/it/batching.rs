//! What it changes to take changes of flows together, and that nothing else changes a byte.

use crate::support::*;
use clearlane_fabric::structure;
use clearlane_flow::{Batching, SetupError, Simulation};
use clearlane_ib::Picoseconds;
use clearlane_sim::{Forwarding, Mechanisms, Outcome, Ties};
use clearlane_workload::ProgramSpec;

/// The default share without the exception of few flows: cases here are small.
fn coarse() -> Batching {
    Batching { exact_flows: 0, ..Batching::default() }
}

fn programs() -> Vec<ProgramSpec> {
    [
        "kind = \"pairwise-alltoall\"\nsize = \"200 KiB\"",
        "kind = \"pairwise-alltoall\"\nsize = \"4 KiB\"",
        "kind = \"spread-alltoall\"\nsize = \"64 KiB\"",
        "kind = \"ring-allreduce\"\nsize = \"4 MiB\"",
        "kind = \"bruck-alltoall\"\nsize = \"16 KiB\"",
    ]
    .map(program)
    .to_vec()
}

#[test]
fn completion_times_change_by_less_than_one_per_cent() {
    // 63 ranks shift, 64 take the exclusive or of their numbers.
    for (spec, ranks) in [("torus:8x8", 64), ("torus:8x8", 63), ("fat-tree:648", 60)] {
        let fabric = build(spec);
        let subnet = tables(&fabric, 1, false);
        let subnet = if spec.starts_with("torus") { dor(&fabric) } else { subnet };
        for spec in programs() {
            let jobs = || ranks_of(&spec, ranks);
            let case = Case::of_ranks(&fabric, Forwarding::Tables(&subnet), qdr(), &jobs);
            let ended = |outcome: Outcome| outcome.jobs[0].ended_at.0 as f64;
            let (exact, batched) = (ended(case.run()), ended(case.run_with(coarse())));
            let off = (batched / exact - 1.0) * 100.0;
            assert!(off.abs() < 1.0, "{} on {ranks} ranks: {off} % off", spec.name());
        }
    }
}

#[test]
fn the_same_set_up_gives_the_same_bytes_in_any_steps() {
    let fabric = build("torus:8x8");
    let grid = structure::grid(&fabric).unwrap();
    let spec = program("kind = \"pairwise-alltoall\"\nsize = \"20 KiB\"");
    let jobs = || ranks_of(&spec, 63);
    let rule = Forwarding::DimensionOrder(&grid, Ties::Both);
    let mut case = Case::of_ranks(&fabric, rule, qdr(), &jobs);
    case.programs = &|host| Greedy::to((host + 9) % 64, 3 * PACKET_PS, 0);
    let in_steps = |step: u64| {
        let mut simulation = Simulation::with_batching(case.setup(), coarse()).unwrap();
        let mut until = 0;
        while simulation.run_until(Picoseconds(until)) == clearlane_sim::Status::Running {
            until += step;
        }
        format!("{:?}", simulation.finish())
    };
    let whole = format!("{:?}", case.run_with(coarse()));
    assert!(in_steps(1 << 46) == whole && in_steps(7_654_321) == whole);
}

#[test]
fn what_only_packets_have_is_refused() {
    let fabric = build("star:3");
    let subnet = tables(&fabric, 1, false);
    let case = Case::of_hosts(&fabric, &subnet, qdr(), &|_| idle(), 1_000);
    let with = Some(Mechanisms::default());
    let refused = Simulation::new(clearlane_sim::Setup { control: with, ..case.setup() });
    let said = refused.err().unwrap().to_string();
    assert_eq!(
        said,
        "flow mode has no congestion mechanisms; leave it out or take mode = \"packets\""
    );
    let few = Simulation::new(clearlane_sim::Setup { programs: Vec::new(), ..case.setup() });
    assert!(matches!(few.err(), Some(SetupError::Setup(_))));
}
