//! How runs end: at the time asked for, and not later.

use crate::support::{build, group, idle, one_message, tables};
use clearlane_ib::Picoseconds;
use clearlane_sim::{
    Division, Ending, Forwarding, InputQueueing, Outcome, Parameters, Recording, Setup, Simulation,
    Status, preset,
};
use clearlane_subnet::Subnet;
use clearlane_workload::{RankProgram, Transport};

fn qdr() -> Parameters {
    (preset::by_name("qdr").unwrap().parameters)()
}

fn setup<'a>(
    fabric: &'a clearlane_fabric::Fabric,
    subnet: &'a Subnet,
    parameters: Parameters,
    transport: Transport,
    programs: Vec<Box<dyn RankProgram>>,
) -> Setup<'a> {
    Setup {
        fabric,
        forwarding: Forwarding::Tables(subnet),
        parameters,
        groups: vec![group(transport)],
        programs,
        control: None,
        recording: Recording::TOTALS,
        queue_width_log2: 13,
        division: Division::WHOLE,
        fleet: None,
        taps: Vec::new(),
        dead_pairs: false,
        jobs: Vec::new(),
        ends_with_jobs: false,
    }
}

/// A message that takes 8 ms from its host's buffer into memory is not there after 2 us, whether
/// the transport has the receiver told or not.
#[test]
fn a_run_lasts_no_longer_than_asked_for() {
    let (fabric, slow) = (build("star:2"), clearlane_ib::BitsPerSecond(2_000_000));
    let subnet = tables(&fabric, 1, false);
    for transport in [Transport::Ud, Transport::Rc] {
        let parameters = Parameters { drain_rate: Some(slow), ..qdr() };
        let programs = vec![one_message(1, 2048, 0), idle()];
        let setup = setup(&fabric, &subnet, parameters, transport, programs);
        let mut simulation = Simulation::new(setup).unwrap();
        for microseconds in [1, 2, 5000] {
            let until = Picoseconds(microseconds * 1_000_000);
            assert_eq!(simulation.run_until(until), Status::Running, "{transport:?} {until:?}");
            assert_eq!(simulation.now(), until, "{transport:?}");
        }
        assert_eq!(simulation.run_until(Picoseconds(10_000_000_000)), Status::Drained);
        let Outcome { ending, duration, .. } = simulation.finish();
        assert_eq!(ending, Ending::Drained);
        assert!(duration.0 > 8_000_000_000 && duration.0 < 9_000_000_000, "{duration:?}");
    }
}

/// In the last instants that a clock of 48 bits has, credits are returned between partitions as at
/// any other time: of a message that begins ever closer to the end, some return in the last window.
#[test]
fn the_longest_run_ends_like_any_other() {
    let fabric = build("chain:2x1");
    let subnet = tables(&fabric, 1, false);
    for input_queueing in [InputQueueing::Fifo, InputQueueing::Voq] {
        let mut granted = 0;
        for before in (0..1_000_000).step_by(10_000) {
            let run = |division| {
                let parameters = Parameters { input_queueing, ..qdr() };
                let programs = vec![one_message(1, 64, Picoseconds::MAX_RUN.0 - before), idle()];
                let setup = setup(&fabric, &subnet, parameters, Transport::Ud, programs);
                let mut simulation = Simulation::new(Setup { division, ..setup }).unwrap();
                simulation.run_until(Picoseconds::MAX_RUN);
                let Outcome { totals, duration, .. } = simulation.finish();
                (totals, duration)
            };
            let whole = run(Division::WHOLE);
            assert_eq!(whole, run(Division { partitions: 2, threads: 1 }), "{before} ps");
            granted += whole.0.packet_hops;
        }
        assert!(granted > 50 && granted < 200, "{granted} of 100 messages with two hops");
    }
}
