//! Forwarding by rule: dimension order, without tables.

use crate::support::{build, group, one_message};
use clearlane_fabric::{Fabric, NodeKind, structure};
use clearlane_ib::{Bytes, Picoseconds};
use clearlane_sim::{
    Ending, Forwarding, Outcome, Parameters, Recording, Setup, Simulation, Ties, preset,
};
use clearlane_workload::Transport;

/// Each rank sends one packet to the rank that `to` names.
fn one_packet_each(fabric: &Fabric, to: impl Fn(u32) -> u32) -> Outcome {
    let ranks = fabric.ids(NodeKind::ChannelAdapter).count() as u32;
    let qdr = (preset::by_name("qdr").unwrap().parameters)();
    let grid = structure::grid(fabric).unwrap();
    let setup = Setup {
        fabric,
        forwarding: Forwarding::DimensionOrder(&grid, Ties::Both),
        parameters: Parameters { buffer: Bytes(64 << 10), ..qdr },
        groups: vec![group(Transport::Ud)],
        programs: (0..ranks).map(|rank| one_message(to(rank), 2048, 0)).collect(),
        recording: Recording {
            slice: Picoseconds(100_000_000),
            slices: 10,
            grows: false,
            flow_bytes_max: 0,
        },
        control: None,
        queue_width_log2: 13,
        division: clearlane_sim::Division::WHOLE,
        fleet: None,
        taps: Vec::new(),
        dead_pairs: false,
        jobs: Vec::new(),
        ends_with_jobs: false,
    };
    let mut simulation = Simulation::new(setup).unwrap();
    simulation.run_until(Picoseconds(1_000_000_000));
    let outcome = simulation.finish();
    assert_eq!(outcome.ending, Ending::Drained);
    assert_eq!(outcome.totals.packets_delivered, u64::from(ranks));
    outcome
}

/// Packets that switches sent by this port, one number a switch in the order of the fabric.
fn sent_by(fabric: &Fabric, outcome: &Outcome, port: u8) -> Vec<u64> {
    let of = |switch: clearlane_fabric::NodeId| {
        let here = |c: &&clearlane_sim::ChannelRecord| (c.node, c.port) == (switch.0, port);
        outcome.channels.iter().find(here).unwrap().port_xmit_pkts
    };
    fabric.ids(NodeKind::Switch).map(of).collect()
}

/// Everybody sends to the opposite side of a ring of k: k/2 cables either way. If half of the
/// switches send each way, k · k/2 crossings make k/4 on each of 2k channels; if all went the same
/// way, one direction would carry them all.
#[test]
fn half_of_a_ring_s_ties_go_each_way() {
    for k in [4, 8, 16] {
        let fabric = build(&format!("torus:{k}"));
        let outcome = one_packet_each(&fabric, |rank| (rank + k / 2) % k);
        let even = vec![u64::from(k / 4); k as usize];
        assert_eq!(sent_by(&fabric, &outcome, 1), even, "{k}, up");
        assert_eq!(sent_by(&fabric, &outcome, 2), even, "{k}, down");
    }
    // Of a ring of 6, three switches send each way over three cables.
    let fabric = build("torus:6");
    let outcome = one_packet_each(&fabric, |rank| (rank + 3) % 6);
    for port in [1, 2] {
        assert_eq!(sent_by(&fabric, &outcome, port).iter().sum::<u64>(), 9, "port {port}");
    }
}

/// Ties in both dimensions: over all rings, as much up as down in each.
#[test]
fn half_of_a_torus_s_ties_go_each_way_in_every_dimension() {
    let fabric = build("torus:4x4");
    let outcome = one_packet_each(&fabric, |rank| (rank + 2) % 4 + (rank / 4 + 2) % 4 * 4);
    for port in 1..=4 {
        let sent: u64 = sent_by(&fabric, &outcome, port).iter().sum();
        assert_eq!(sent, 16 * 2 / 2, "port {port}");
    }
}

/// Without ties everybody takes the shorter way: one cable up or down.
#[test]
fn the_shorter_way_round_is_taken() {
    let fabric = build("torus:5");
    for (shift, port, other) in [(1, 1, 2), (2, 1, 2), (3, 2, 1), (4, 2, 1)] {
        let outcome = one_packet_each(&fabric, |rank| (rank + shift) % 5);
        let cables = u64::from(shift.min(5 - shift));
        assert_eq!(sent_by(&fabric, &outcome, port), [cables; 5], "shift {shift}");
        assert_eq!(sent_by(&fabric, &outcome, other), [0; 5], "shift {shift}");
    }
}
