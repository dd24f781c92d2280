//! Taps: packets at chosen ports one by one, in an order that does not tell how a run was divided.

use crate::support::{build, group, idle, one_message, tables};
use clearlane_fabric::{Endpoint, Fabric};
use clearlane_ib::{Picoseconds, PortNumber};
use clearlane_sim::{
    Division, Forwarding, Hosts, PacketKind, Recording, Setup, SetupError, Simulation, Tapped,
    preset,
};
use clearlane_workload::{Rank, RankProgram, Transport};

/// Three packets from rank 0 to rank 7 by way of other switches, tapped at both adapters.
fn tapped(division: Division) -> Vec<Tapped> {
    let fabric = build("chain:4x2");
    let hosts = Hosts::of(&fabric);
    let taps = vec![hosts.end(Rank(0)), hosts.end(Rank(7))];
    let recording =
        Recording { slice: Picoseconds(1_000_000), slices: 1, grows: false, flow_bytes_max: 0 };
    let mut simulation = start(&fabric, division, recording, taps).unwrap();
    simulation.run_until(Picoseconds(1_000_000_000));
    let all = simulation.take_tapped();
    assert!(simulation.take_tapped().is_empty());
    simulation.finish();
    all
}

fn start(
    fabric: &Fabric,
    division: Division,
    recording: Recording,
    taps: Vec<Endpoint>,
) -> Result<Simulation, SetupError> {
    let program = |rank| -> Box<dyn RankProgram> {
        if rank == 0 { one_message(7, 3 * 2048, 0) } else { idle() }
    };
    Simulation::new(Setup {
        fabric,
        forwarding: Forwarding::Tables(&tables(fabric, 1, false)),
        parameters: (preset::by_name("qdr").unwrap().parameters)(),
        groups: vec![group(Transport::Rc)],
        programs: (0..8).map(program).collect(),
        control: None,
        recording,
        fleet: None,
        queue_width_log2: 13,
        division,
        taps,
        dead_pairs: false,
        jobs: Vec::new(),
        ends_with_jobs: false,
    })
}

#[test]
fn a_tap_that_would_see_nothing_is_refused() {
    let fabric = build("chain:4x2");
    let taps = [Hosts::of(&fabric).end(Rank(0))];
    let bare = vec![Endpoint { port: PortNumber::new(9).unwrap(), ..taps[0] }];
    let started = start(&fabric, Division::WHOLE, Recording::TOTALS, bare);
    assert!(started.map(|_| ()).unwrap_err().to_string().contains("no cable"));
}

/// What ports have received at any time, packets on their way left out, is what taps saw arrive:
/// within partitions and over cut cables. An adapter counts what its switch has begun to send.
#[test]
fn received_counters_are_what_taps_see_arrive() {
    let fabric = build("chain:4x2");
    let ends: Vec<Endpoint> = fabric.links().iter().flat_map(|link| [link.a, link.b]).collect();
    let mut on_their_way = 0;
    for partitions in [1, 3] {
        for stop in (0..6_000_000).step_by(150_000) {
            let recording = Recording {
                slice: Picoseconds(1_000_000),
                slices: 6,
                grows: false,
                flow_bytes_max: 0,
            };
            let division = Division { partitions, threads: 1 };
            let started = start(&fabric, division, recording, ends.clone());
            let mut simulation = started.unwrap();
            simulation.run_until(Picoseconds(stop));
            let seen = simulation.take_tapped();
            for channel in &simulation.finish().channels {
                let end = |end: &Endpoint| (end.node.0, end.port.value());
                let mut here = (channel.node, channel.port);
                let Some(of) = ends.iter().find(|known| end(known) == here) else {
                    assert_eq!(channel.port_rcv_pkts, 0, "{channel:?} has no cable");
                    continue;
                };
                let is_adapter = !fabric.node(of.node).is_switch();
                if is_adapter {
                    here = end(&fabric.peer(*of).unwrap());
                }
                let arrived =
                    seen.iter().filter(|it| (it.node, it.port) == here && it.granted == is_adapter);
                // Without the VCRC, in units of four octets.
                let octets: u64 = arrived.clone().map(|it| u64::from(it.bytes) - 2).sum();
                let packets = arrived.count() as u64;
                let told = (channel.port_rcv_data, channel.port_rcv_pkts);
                assert_eq!(told, (octets / 4, packets), "{channel:?} at {stop} ps");
            }
            let [sent, came] =
                [true, false].map(|granted| seen.iter().filter(|it| it.granted == granted).count());
            on_their_way += sent - came;
        }
    }
    assert!(on_their_way > 20, "{on_their_way} packets were met on their way");
}

#[test]
fn what_passes_a_tapped_port_is_handed_out_in_the_order_of_time() {
    let all = tapped(Division::WHOLE);
    assert!(all.is_sorted_by_key(|it| it.time));
    let count =
        |granted, kind| all.iter().filter(|it| it.granted == granted && it.kind == kind).count();
    // Each end sends and receives: three data packets one way, an ACK for each the other way.
    let [data, acks] = [PacketKind::RcData, PacketKind::Ack];
    assert_eq!([count(true, data), count(false, data)], [3, 3]);
    assert_eq!([count(true, acks), count(false, acks)], [3, 3]);
    let sent: Vec<u32> =
        all.iter().filter(|it| it.granted && it.kind == data).map(|it| it.psn).collect();
    assert_eq!(sent, [0, 1, 2]);
    let one = all.iter().find(|it| it.kind == data).unwrap();
    assert_eq!((one.bytes, one.payload, one.vl), (2074, 2048, 0));
    // The adapter of rank 7 hears of a packet the length of a cable after its switch sends it.
    let parameters = (preset::by_name("qdr").unwrap().parameters)();
    let path =
        parameters.cable_delay.0 + 4 * (parameters.cable_delay.0 + parameters.switch_delay.0);
    let first = |granted| {
        let mut data = all.iter().filter(|it| it.kind == data && it.granted == granted);
        data.next().unwrap().time.0
    };
    assert_eq!(first(false) - first(true), path);
    let ack = all.iter().find(|it| it.kind == acks).unwrap();
    assert_eq!((ack.slid, ack.dlid, ack.payload), (one.dlid, one.slid, 0));
    for partitions in [2, 4] {
        assert_eq!(all, tapped(Division { partitions, threads: 2 }));
    }
}
