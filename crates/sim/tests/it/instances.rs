//! The list of instances. These tests are not beside it, because a unit test of it would compile
//! all of them once more.

use clearlane_fabric::topologies;
use clearlane_sim::instances::all;
use clearlane_sim::{Forwarding, InputQueueing, Parameters, preset, voq_bytes};
use clearlane_subnet::engines::{self, RouteOptions};
use std::collections::BTreeSet;

/// Each takes its CPU seconds to compile in every build: one more has to replace another.
const MOST: usize = 20;

#[test]
fn there_are_few_instances_each_with_a_name_and_a_row_of_its_own() {
    assert!(all().len() <= MOST, "{} instances", all().len());
    let names: BTreeSet<_> = all().iter().map(|instance| instance.name).collect();
    let rows: BTreeSet<_> = all().iter().map(|instance| instance.row).collect();
    assert_eq!((names.len(), rows.len()), (all().len(), all().len()));
}

#[test]
fn memory_is_that_of_ports_lanes_and_outputs() {
    let fabric = topologies::build("star:4").unwrap();
    let of = |input_queueing, lanes| {
        let parameters = (preset::ALL[0].parameters)();
        let options = RouteOptions { lanes, ..RouteOptions::default() };
        let subnet = engines::route("min-hop", &fabric, &options).unwrap();
        let parameters = Parameters { input_queueing, ..parameters };
        voq_bytes(&fabric, Forwarding::Tables(&subnet), &parameters)
    };
    assert_eq!(of(InputQueueing::Fifo, 1), 0);
    // Four ports of the switch and four of hosts, 1 or 9 lanes, 4 outputs, 24 bytes.
    assert_eq!(of(InputQueueing::Voq, 1), 8 * 4 * 24);
    assert_eq!(of(InputQueueing::Voq, 9), 8 * 9 * 4 * 24);
}
