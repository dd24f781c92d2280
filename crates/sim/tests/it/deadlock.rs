//! A ring on which everybody sends the same way round and far enough deadlocks without datelines.

use crate::support::{self, Case, Greedy, build, group, one_message, tables};
use clearlane_fabric::{Endpoint, Fabric, NodeKind};
use clearlane_ib::{Bytes, Lid, Picoseconds, PortNumber};
use clearlane_sim::{Ending, InputQueueing, Outcome, Parameters, Totals, WaitingBuffer, preset};
use clearlane_subnet::Subnet;
use clearlane_workload::Transport;

const SWITCHES: u32 = 6;

fn ring(fabric: &Fabric, subnet: &Subnet, far: u32) -> Outcome {
    let qdr = (preset::by_name("qdr").unwrap().parameters)();
    let programs =
        (0..SWITCHES).map(|rank| Greedy::to((rank + far) % SWITCHES, 520_500, 0)).collect();
    Case {
        fabric,
        subnet,
        parameters: Parameters { buffer: Bytes(8 << 10), ..qdr },
        groups: vec![group(Transport::Ud)],
        programs,
        until: Picoseconds(2_000_000_000),
        width: 13,
    }
    .run()
}

/// Walks the tables from a switch towards a LID and returns the ports it leaves by.
fn walk(fabric: &Fabric, subnet: &Subnet, from: Endpoint, lid: Lid) -> Vec<(String, u8)> {
    let (mut at, mut path) = (from.node, Vec::new());
    while let Some(port) = subnet.tables.port(at, lid) {
        path.push((fabric.node(at).name.clone(), port.value()));
        let peer = fabric.peer(Endpoint { node: at, port }).unwrap();
        if !fabric.node(peer.node).is_switch() {
            break;
        }
        at = peer.node;
    }
    path
}

#[test]
fn the_cycle_named_is_a_cycle_of_the_tables() {
    let fabric = build(&format!("torus:{SWITCHES}"));
    let subnet = tables(&fabric, 1, true);
    let outcome = ring(&fabric, &subnet, 3);
    let Ending::Deadlock(deadlock) = &outcome.ending else {
        panic!("no deadlock: {:?}", outcome.ending)
    };
    let cycle = &deadlock.cycle;
    assert_eq!(cycle.len(), SWITCHES as usize, "{deadlock}");
    for (index, buffer) in cycle.iter().enumerate() {
        let WaitingBuffer { switch, output, .. } = buffer;
        let node = fabric.ids(NodeKind::Switch).find(|id| fabric.node(*id).name == *switch);
        let out = Endpoint { node: node.unwrap(), port: PortNumber::new(*output).unwrap() };
        // The next buffer is at the other end of the cable this one waits for …
        let peer = fabric.peer(out).unwrap();
        let next = &cycle[(index + 1) % cycle.len()];
        assert_eq!(
            (fabric.node(peer.node).name.as_str(), peer.port.value()),
            (next.switch.as_str(), next.port)
        );
        // … and the tables send some pair's packets from this input to that output and on to the
        // output the next buffer waits for: an independent walk of the tables finds that pair.
        let hop = [(switch.clone(), *output), (next.switch.clone(), next.output)];
        let found = subnet.lids.iter().any(|(lid, owner)| {
            let host = !fabric.node(owner.end.node).is_switch();
            host && walk(&fabric, &subnet, out, lid).windows(2).any(|pair| pair == hop)
        });
        assert!(
            found,
            "no path leaves {switch}[{output}] and then {}[{}]",
            next.switch, next.output
        );
    }
    assert!(deadlock.to_string().contains("waits for"));
    // It is complete by the first look, on a grid of 50 us.
    assert_eq!(deadlock.found_at, Picoseconds(50_000_000));
}

/// Small packets and ACKs among full ones: a head that has credits for itself still waits behind
/// the packet whose turn it is. Whatever stands still is called a deadlock, never "nothing to do".
#[test]
fn rings_with_packets_of_two_sizes_deadlock_too() {
    let fabric = build("torus:6,hosts=2");
    let subnet = tables(&fabric, 1, true);
    let qdr = (preset::by_name("qdr").unwrap().parameters)();
    let mut found = 0;
    for transport in [Transport::Ud, Transport::Rc] {
        for (buffer, small) in [(8 << 10, 64), (8 << 10, 700), (64 << 10, 64), (16 << 10, 1500)] {
            let program = |rank: u32| -> Box<dyn clearlane_workload::RankProgram> {
                let to = (rank + 6) % 12;
                let bytes = if rank.is_multiple_of(2) { 2048 } else { small };
                Box::new(Greedy { bytes, gap: 20_000, ..support::greedy(to) })
            };
            let outcome = Case {
                fabric: &fabric,
                subnet: &subnet,
                parameters: Parameters { buffer: Bytes(buffer), ..qdr.clone() },
                groups: vec![group(transport)],
                programs: (0..12).map(program).collect(),
                until: Picoseconds(3_000_000_000),
                width: 13,
            }
            .run();
            let last = outcome.groups[0].last().unwrap().delivered_wire_bytes;
            match &outcome.ending {
                Ending::Deadlock(deadlock) => {
                    assert!(deadlock.cycle.len() >= 3, "{deadlock}");
                    found += 1;
                }
                _ => assert!(last > 0, "{transport:?} {buffer} {small}: stands still, unnoticed"),
            }
        }
    }
    assert!(found >= 6, "{found}");
}

#[test]
fn neighbours_only_never_deadlock() {
    let fabric = build(&format!("torus:{SWITCHES}"));
    let subnet = tables(&fabric, 1, true);
    let outcome = ring(&fabric, &subnet, 1);
    assert_eq!(outcome.ending, Ending::TimeReached);
    assert!(outcome.totals.packets_delivered > 20_000);
}

/// Senders that stop after one packet each, in buffers that hold one: the heads are ready only
/// after the last grant of all, and nobody else is woken.
#[test]
fn a_ring_that_a_packet_each_fills_is_a_deadlock() {
    let fabric = build("torus:5");
    let subnet = tables(&fabric, 1, true);
    let qdr = (preset::by_name("qdr").unwrap().parameters)();
    for input_queueing in [InputQueueing::Fifo, InputQueueing::Voq] {
        let outcome = Case {
            fabric: &fabric,
            subnet: &subnet,
            parameters: Parameters { buffer: Bytes(2112), input_queueing, ..qdr.clone() },
            groups: vec![group(Transport::Ud)],
            programs: (0..5).map(|rank| one_message((rank + 2) % 5, 2048, 0)).collect(),
            until: Picoseconds(100_000_000),
            width: 13,
        }
        .run();
        let Ending::Deadlock(deadlock) = &outcome.ending else {
            panic!("{input_queueing:?}: {:?}", outcome.ending)
        };
        assert_eq!(deadlock.cycle.len(), 5, "{deadlock}");
        assert_eq!(deadlock.found_at, outcome.duration);
        let Totals { packets_injected, packets_delivered, .. } = outcome.totals;
        assert_eq!([packets_injected, packets_delivered], [5, 0]);
    }
}
