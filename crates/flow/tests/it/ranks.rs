//! Ranks on flows: what a message takes, to the picosecond, and who waits for ever.

use crate::support::*;
use clearlane_ib::{Picoseconds, wire};
use clearlane_sim::{END_GRID, Ending, Forwarding, Outcome, Parameters};
use clearlane_workload::Event;
use script::{Do, Log, any_source, from, script};

fn parameters() -> Parameters {
    let (send_overhead, receive_overhead) = (Picoseconds(300_000), Picoseconds(200_000));
    Parameters { send_overhead, receive_overhead, ..qdr() }
}

type Told = Vec<(u32, u64, Event)>;

/// Runs scripts as one program on the first hosts of a fabric, as flows and as packets.
fn run(spec: &str, p: &Parameters, scripts: &[Vec<Do>]) -> [(Told, Outcome); 2] {
    let fabric = build(spec);
    let subnet = tables(&fabric, 1, false);
    [false, true].map(|packets| {
        let log = Log::default();
        let jobs = || {
            let rank = |(rank, todo): (u32, &Vec<Do>)| (rank, script(rank, todo.clone(), &log));
            vec![(0..).zip(scripts).map(rank).collect()]
        };
        let case = Case::of_ranks(&fabric, Forwarding::Tables(&subnet), p.clone(), &jobs);
        let outcome = if packets { case.run_packets() } else { case.run() };
        let mut told = log.lock().unwrap().clone();
        told.sort_by_key(|(rank, time, _)| (*rank, *time));
        (told, outcome)
    })
}

/// From the head leaving an adapter to the tail being at another.
fn flight(p: &Parameters, switches: u64, bytes: u64) -> u64 {
    let packets = bytes.div_ceil(p.mtu.into()).max(1);
    let way = (switches + 1) * p.cable_delay.0 + switches * p.switch_delay.0;
    way + (bytes + packets * u64::from(wire::RC_DATA)) * BYTE
}

fn completed(told: &Told, rank: u32) -> Vec<u64> {
    let of = told.iter().filter(|(of, _, event)| {
        *of == rank && matches!(event, Event::Completed(_) | Event::AllCompleted)
    });
    of.map(|(_, time, _)| *time).collect()
}

#[test]
fn a_ping_and_a_pong_take_what_loggp_says() {
    let p = parameters();
    for (spec, peer, switches) in [("star:2", 1, 1), ("chain:4x1", 3, 4)] {
        for bytes in [0, 1, 2048, 2049, 8192] {
            let ping =
                vec![Do::Send { to: peer, bytes, tag: 0 }, Do::Receive(from(peer, 0)), Do::Wait(1)];
            let pong =
                vec![Do::Receive(from(0, 0)), Do::Wait(0), Do::Send { to: 0, bytes, tag: 0 }];
            let mut scripts = vec![Vec::new(); peer as usize + 1];
            (scripts[0], scripts[peer as usize]) = (ping, pong);
            let [(told, outcome), _] = run(spec, &p, &scripts);
            let way = p.send_overhead.0 + flight(&p, switches, bytes) + p.receive_overhead.0;
            assert_eq!(completed(&told, peer), [way], "{spec} {bytes} B");
            assert_eq!(completed(&told, 0), [2 * way], "{spec} {bytes} B");
            assert_eq!(outcome.ending, Ending::ProgramsEnded);
            let ended = outcome.jobs[0].ended_at.0;
            assert_eq!(outcome.duration.0, (ended / END_GRID.0 + 1) * END_GRID.0);
        }
    }
}

/// RTS, READ and FIN take their latencies, the payload its time: on an idle fabric all as packets.
#[test]
fn a_long_message_takes_as_long_as_packets_do() {
    let p = parameters();
    for bytes in [8193, 100_000, 1_000_000] {
        let send = vec![Do::Send { to: 2, bytes, tag: 0 }, Do::Wait(0)];
        let receive = vec![Do::Receive(from(0, 0)), Do::Wait(0)];
        let get = vec![Do::Get { from: 0, bytes }, Do::Wait(0)];
        for scripts in [vec![send, vec![], receive], vec![vec![], vec![], get]] {
            let [(flows, a), (packets, b)] = run("chain:3x1", &p, &scripts);
            assert_eq!(flows, packets, "{bytes} B");
            let totals = [a.totals, b.totals].map(|totals| {
                let all = (totals.packets_injected, totals.packets_delivered, totals.packet_hops);
                (all, totals.messages_posted, totals.messages_delivered)
            });
            assert_eq!(totals[0], totals[1], "{bytes} B");
            // Nobody acknowledges a READ: channels carry the same.
            let sent = [&a, &b].map(|outcome| -> Vec<_> {
                let channels = outcome.channels.iter();
                channels.map(|one| (one.port_xmit_data, one.port_xmit_pkts)).collect()
            });
            assert_eq!(sent[0] == sent[1], a.totals.messages_posted == 2, "{bytes} B");
            // RTS and payload one way, READ and FIN the other.
            if a.totals.messages_posted == 4 {
                let mut all: Vec<u64> = sent[0].iter().map(|(_, packets)| *packets).collect();
                all.retain(|packets| *packets > 0);
                all.sort_unstable();
                let there = bytes.div_ceil(2048) + 1;
                assert_eq!(all, [2, 2, 2, 2, there, there, there, there], "{bytes} B");
            }
        }
    }
}

#[test]
fn ranks_that_wait_for_ever_are_named() {
    let scripts = [
        vec![Do::Receive(from(1, 6)), Do::Wait(0)],
        vec![Do::Send { to: 0, bytes: 1, tag: 5 }, Do::Receive(any_source(7)), Do::Wait(1)],
        vec![Do::Compute(1_000_000)],
    ];
    let [(_, flows), (_, packets)] = run("star:3", &parameters(), &scripts);
    assert!(matches!(&flows.ending, Ending::RanksWait(stuck) if stuck.len() == 2));
    assert_eq!(flows.ending, packets.ending);
    assert_eq!(flows.jobs, packets.jobs);
}

/// The same beside traffic that never ends.
#[test]
fn ranks_that_wait_for_ever_are_found_beside_traffic() {
    let fabric = build("star:3");
    let subnet = tables(&fabric, 1, false);
    let log = Log::default();
    let jobs =
        || -> Jobs { vec![vec![(1, script(0, vec![Do::Receive(from(1, 6)), Do::Wait(0)], &log))]] };
    let mut case = Case::of_ranks(&fabric, Forwarding::Tables(&subnet), qdr(), &jobs);
    case.programs = &|host| Greedy::to((host + 1) % 3, 2_000_000, 0);
    let outcome = case.run();
    assert!(matches!(&outcome.ending, Ending::RanksWait(stuck) if stuck.len() == 1));
    // The first look of all.
    assert_eq!(outcome.duration.0, 50_000_000);
}

/// All kinds of programs end, with eager and with long messages.
#[test]
fn all_kinds_of_programs_end() {
    let fabric = build("torus:3x3");
    let subnet = dor(&fabric);
    let mut ended = 0;
    for entry in clearlane_workload::programs::ALL {
        let text = entry.example.trim_start_matches("program = ");
        #[derive(serde::Deserialize)]
        struct File {
            program: clearlane_workload::ProgramSpec,
        }
        let file: File = toml::from_str(&format!("program = {text}")).unwrap();
        let ranks = (2..=9).rev().find(|ranks| {
            file.program
                .build(&clearlane_workload::programs::Group { ranks: *ranks, ..Default::default() })
                .is_ok()
        });
        // Traces are files.
        let Some(ranks) = ranks else { continue };
        ended += 1;
        let jobs = || ranks_of(&file.program, ranks);
        for eager_max in [0, 1 << 30] {
            let p = Parameters { eager_max: clearlane_ib::Bytes(eager_max), ..parameters() };
            let case = Case::of_ranks(&fabric, Forwarding::Tables(&subnet), p, &jobs);
            let (flows, packets) = (case.run(), case.run_packets());
            assert_eq!(flows.ending, Ending::ProgramsEnded, "{}", entry.name);
            let of = |outcome: &Outcome| {
                let slices = outcome.groups[0].iter();
                let payload: u64 = slices.map(|slice| slice.delivered_payload_bytes).sum();
                (payload, outcome.totals.messages_posted, outcome.totals.messages_delivered)
            };
            assert_eq!(of(&flows), of(&packets), "{}", entry.name);
        }
    }
    assert!(ended >= 19, "{ended} kinds");
}

/// Datagrams of several packets from everybody to everybody else: what channels, groups and flows
/// count is what packets count.
#[test]
fn counters_are_those_of_packets() {
    let fabric = build("torus:3x3");
    let subnet = dor(&fabric);
    let programs = |host: u32| -> Box<dyn clearlane_workload::RankProgram> {
        Box::new(Greedy { bytes: 5000, messages: 10, ..greedy((host + 4) % 9) })
    };
    let case = Case::of_hosts(&fabric, &subnet, qdr(), &programs, 1_000_000_000);
    let of = |outcome: Outcome| {
        assert_eq!(outcome.ending, Ending::Drained);
        let channels = outcome.channels.iter().map(|channel| {
            let sent = (channel.port_xmit_data, channel.port_xmit_pkts);
            let busy: u64 = channel.busy_ps.iter().sum();
            let received = (channel.port_rcv_data, channel.port_rcv_pkts);
            // A message is rounded once, and each of its packets.
            (channel.node, channel.port, sent, received, busy / 1000)
        });
        let group = outcome.groups[0].iter().fold([0; 4], |sums, slice| {
            let of = [
                slice.offered_wire_bytes,
                slice.delivered_wire_bytes,
                slice.delivered_payload_bytes,
                slice.messages,
            ];
            std::array::from_fn(|at| sums[at] + of[at])
        });
        let flows = outcome.flows.iter().map(|flow| {
            let bytes: u64 = flow.delivered_payload_bytes.iter().sum();
            (flow.source, flow.destination, flow.group, bytes)
        });
        let (channels, flows): (Vec<_>, Vec<_>) = (channels.collect(), flows.collect());
        (channels, group, flows, outcome.totals)
    };
    assert_eq!(of(case.run()), of(case.run_packets()));
}
