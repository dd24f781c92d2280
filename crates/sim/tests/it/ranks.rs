//! Ranks on the packet engine: what a message takes, to the picosecond (LogGP: Alexandrov et al.,
//! SPAA 1995), and that the division of a run cannot be seen in what ranks are told.

use crate::ideal::*;
use crate::support::{Case, Greedy, build, group, idle, tables};
use clearlane_ib::{Picoseconds, wire};
use clearlane_sim::{
    Division, END_GRID, Ending, Forwarding, GroupSlice, Job, Outcome, Parameters, Placed,
    Recording, Setup, Simulation, Status, preset,
};
use clearlane_workload::{Completion, Event, Filter, Op, RankProgram, Transport};

fn qdr() -> Parameters {
    let base = (preset::by_name("qdr").unwrap().parameters)();
    let (send_overhead, receive_overhead) = (Picoseconds(300_000), Picoseconds(200_000));
    Parameters { send_overhead, receive_overhead, ..base }
}

/// A byte on the link.
const BYTE: u64 = 250;

/// A program that says that its messages take one way.
struct OneWay(Box<dyn RankProgram>);

impl RankProgram for OneWay {
    fn takes_one_way(&self) -> bool {
        true
    }

    fn step(&mut self, now: Picoseconds, event: Event) -> Op {
        self.0.step(now, event)
    }
}

/// Runs scripts at the first hosts of a fabric. Returns what they were told and the outcome.
fn run(spec: &str, p: &Parameters, scripts: Vec<Vec<Do>>) -> (Vec<(u32, u64, Event)>, Outcome) {
    run_as(spec, p, scripts, |program| program)
}

/// The same of programs that are made of the scripts.
fn run_as(
    spec: &str,
    p: &Parameters,
    scripts: Vec<Vec<Do>>,
    made: impl Fn(Box<dyn RankProgram>) -> Box<dyn RankProgram>,
) -> (Vec<(u32, u64, Event)>, Outcome) {
    let fabric = build(spec);
    let log = Log::default();
    let hosts = fabric.ids(clearlane_fabric::NodeKind::ChannelAdapter).count();
    let mut scripts = scripts.into_iter();
    let program = |rank: usize| -> Box<dyn RankProgram> {
        made(scripts.next().map_or_else(idle, |todo| script(rank as u32, todo, &log)))
    };
    let outcome = Case {
        fabric: &fabric,
        subnet: &tables(&fabric, 1, false),
        parameters: p.clone(),
        groups: vec![group(Transport::Rc)],
        programs: (0..hosts).map(program).collect(),
        until: Picoseconds(100_000_000_000),
        width: 13,
    }
    .run();
    let told = log.lock().unwrap().clone();
    (told, outcome)
}

/// When a rank was told of completed operations.
fn completed(told: &[(u32, u64, Event)], rank: u32) -> Vec<u64> {
    let of = told.iter().filter(|(of, _, event)| {
        *of == rank && matches!(event, Event::Completed(_) | Event::AllCompleted)
    });
    of.map(|(_, time, _)| *time).collect()
}

/// From the head leaving an adapter to the tail being at another, past so many switches, of a
/// message of so many bytes: full packets follow each other without a gap, each with its header,
/// and a head goes on while its tail still comes.
fn flight(p: &Parameters, switches: u64, bytes: u64) -> u64 {
    let header = u64::from(wire::RC_DATA);
    let packets = bytes.div_ceil(p.mtu.into()).max(1);
    let way = (switches + 1) * p.cable_delay.0 + switches * p.switch_delay.0;
    way + (bytes + packets * header) * BYTE
}

#[test]
fn a_ping_and_a_pong_take_what_loggp_says() {
    let p = qdr();
    for (spec, peer, switches) in [("star:2", 1, 1), ("chain:4x1", 3, 4)] {
        for bytes in [0, 1, 2048, 2049, 8192] {
            let there = Do::Send { to: peer, bytes, tag: 0 };
            let back = Do::Send { to: 0, bytes, tag: 0 };
            let ping = vec![there, Do::Receive(from(peer, 0)), Do::Wait(1)];
            let pong = vec![Do::Receive(from(0, 0)), Do::Wait(0), back];
            let mut scripts = vec![Vec::new(); peer as usize + 1];
            (scripts[0], scripts[peer as usize]) = (ping, pong);
            let (told, outcome) = run(spec, &p, scripts);
            let way = p.send_overhead.0 + flight(&p, switches, bytes) + p.receive_overhead.0;
            assert_eq!(completed(&told, peer), [way], "{spec} {bytes} B");
            assert_eq!(completed(&told, 0), [2 * way], "{spec} {bytes} B");
            assert_eq!(outcome.ending, Ending::Drained);
        }
    }
}

/// Eager and long messages, expected and not, of two sources. Where there is one way, nobody has to
/// number them.
#[test]
fn messages_that_cannot_overtake_need_no_numbers() {
    let p = qdr();
    let sends = |to: u32| -> Vec<Do> {
        let sizes = [64, 100_000, 0, 4096, 20_000, 64].into_iter();
        sizes.map(|bytes| Do::Send { to, bytes, tag: 0 }).chain((0..6).map(Do::Wait)).collect()
    };
    let mut receives: Vec<Do> = (0..12).map(|n| Do::Receive(from(n % 2, 0))).collect();
    receives.extend((0..12).map(Do::Wait));
    let scripts = vec![sends(2), sends(2), receives];
    let numbered = run("chain:3x1", &p, scripts.clone());
    let one_way = run_as("chain:3x1", &p, scripts, |program| Box::new(OneWay(program)));
    assert_eq!(numbered.0, one_way.0);
    assert_eq!(completed(&one_way.0, 2).len(), 12);
}

#[test]
fn sends_follow_each_other_by_what_takes_longest_the_cpu_or_the_link() {
    let p = qdr();
    for bytes in [64u64, 2048] {
        let sends = vec![Do::Send { to: 1, bytes, tag: 0 }; 10];
        let mut receives = vec![Do::Receive(from(0, 0)); 10];
        receives.extend((0..10).map(Do::Wait));
        let (told, _) = run("star:2", &p, vec![sends, receives]);
        let wire = (bytes + u64::from(wire::RC_DATA)) * BYTE;
        let apart = p.send_overhead.0.max(wire).max(p.receive_overhead.0);
        let first = p.send_overhead.0 + flight(&p, 1, bytes) + p.receive_overhead.0;
        let expected: Vec<u64> = (0..10).map(|number| first + number * apart).collect();
        assert_eq!(completed(&told, 1), expected, "{bytes} B");
    }
}

/// The read is a packet of a header and 16 B of RETH; what it fetches comes back in full packets.
fn read(p: &Parameters, switches: u64, bytes: u64) -> u64 {
    flight(p, switches, 16) + flight(p, switches, bytes)
}

#[test]
fn a_get_takes_the_way_there_and_back_and_no_cpu_there() {
    let p = qdr();
    for bytes in [0, 1, 2048, 100_000] {
        let get = vec![Do::Get { from: 1, bytes }, Do::Wait(0)];
        let busy = vec![Do::Compute(1_000_000_000)];
        let (told, outcome) = run("star:2", &p, vec![get, busy]);
        let done = p.send_overhead.0 + read(&p, 1, bytes) + p.receive_overhead.0;
        assert_eq!(completed(&told, 0), [done], "{bytes} B");
        // The request is acknowledged by its response, which nobody acknowledges.
        assert_eq!(outcome.totals.acks_injected, 0);
    }
}

#[test]
fn an_answer_does_not_wait_for_what_its_host_is_about_to_post() {
    let p = Parameters { send_overhead: Picoseconds(40_000_000), ..qdr() };
    for bytes in [0, 2048, 100_000] {
        let get = vec![Do::Get { from: 1, bytes }, Do::Wait(0)];
        // The request comes when the CPU is busy with a send, which is ready when all is read.
        let send = Do::Send { to: 2, bytes: 64, tag: 0 };
        let busy = vec![Do::Compute(36_000_000), send];
        let receive = vec![Do::Receive(any_tag(1)), Do::Wait(0)];
        let (told, _) = run("star:3", &p, vec![get, busy, receive]);
        let done = p.send_overhead.0 + read(&p, 1, bytes) + p.receive_overhead.0;
        assert_eq!(completed(&told, 0), [done], "{bytes} B");
    }
}

#[test]
fn messages_leave_when_they_are_ready() {
    let overhead = 1_000_000;
    let p = Parameters { send_overhead: Picoseconds(overhead), ..qdr() };
    // Each stream is busy with its own sends: `tag` says how many overheads until it is ready.
    let on = |stream: u8, tag| {
        let (tracked, context, to, bytes) = (false, stream.into(), 1, 0);
        Do::SendOn { stream, tracked, context, to, bytes, tag }
    };
    let sends = vec![on(1, 1), on(1, 2), on(1, 3), on(2, 1), on(3, 1), on(3, 2), on(2, 2)];
    let receive = |context, tag| Do::Receive(Filter { tag: Some(tag), source: None, context });
    // What a program posts at once it posts a picosecond apart.
    let order = [(1, 1), (2, 1), (3, 1), (1, 2), (2, 2), (3, 2), (1, 3)];
    let mut receives: Vec<_> = order.iter().map(|(stream, tag)| receive(*stream, *tag)).collect();
    receives.extend((0..order.len()).map(Do::Wait));
    let (told, _) = run("star:2", &p, vec![sends, receives]);
    // The receiver's CPU is slower than the link.
    let cost = p.receive_overhead.0;
    let expected = order.map(|(stream, tag)| {
        let behind = if tag < 3 { u64::from(stream) } else { 1 };
        u64::from(tag) * overhead + flight(&p, 1, 0) + behind * cost
    });
    assert_eq!(completed(&told, 1), expected);
}

#[test]
fn messages_that_overtake_together_leave_as_they_were_posted() {
    let p = Parameters { send_overhead: Picoseconds(1_000_000), ..qdr() };
    let fabric = build("star:2");
    let subnet = tables(&fabric, 1, false);
    let log = Log::default();
    let send = Do::Send { to: 1, bytes: 0, tag: 0 };
    let on = |tag| {
        let (stream, tracked, context, to, bytes) = (1, false, 0, 1, 0);
        Do::SendOn { stream, tracked, context, to, bytes, tag }
    };
    // Those of the first program are ready after one overhead and after two; the others' between.
    let between = vec![Do::Compute(500_000), send];
    let programs = [vec![on(0), on(1)], between.clone(), between];
    let job = |(number, todo): (u32, Vec<Do>)| {
        let receive = vec![Do::Receive(any_tag(0)), Do::Wait(0)];
        let ranks = [(0, todo), (1, receive)];
        let placed = |(host, todo)| Placed { host, program: script(2 * number + host, todo, &log) };
        Job { ranks: ranks.into_iter().map(placed).collect() }
    };
    let setup = Setup {
        fabric: &fabric,
        forwarding: Forwarding::Tables(&subnet),
        parameters: p.clone(),
        groups: vec![group(Transport::Rc)],
        programs: vec![idle(), idle()],
        jobs: (0..).zip(programs).map(job).collect(),
        ends_with_jobs: false,
        recording: Recording::TOTALS,
        control: None,
        queue_width_log2: 13,
        division: Division::WHOLE,
        fleet: None,
        taps: Vec::new(),
        dead_pairs: false,
    };
    let mut simulation = Simulation::new(setup).unwrap();
    assert_eq!(simulation.run_until(Picoseconds(10_000_000)), Status::Drained);
    let told = log.lock().unwrap().clone();
    let (first, cost) = (1_000_000 + flight(&p, 1, 0), p.receive_overhead.0);
    assert_eq!(completed(&told, 1), [first + cost]);
    // Each program has a CPU of its own: what comes second comes a packet later.
    let packet = u64::from(wire::RC_DATA) * BYTE;
    let second = first + 500_000 + cost;
    assert_eq!([completed(&told, 3), completed(&told, 5)], [[second], [second + packet]]);
}

#[test]
fn a_long_message_is_announced_read_and_acknowledged() {
    let p = qdr();
    let (send, receive) = (p.send_overhead.0, p.receive_overhead.0);
    for bytes in [8193, 100_000] {
        let ping = vec![Do::Send { to: 1, bytes, tag: 3 }, Do::Wait(0)];
        let pong = vec![Do::Receive(any_tag(0)), Do::Wait(0)];
        let (told, _) = run("star:2", &p, vec![ping, pong]);
        let announced = send + flight(&p, 1, 64);
        let finished = announced + receive + send + read(&p, 1, bytes) + send;
        assert_eq!(completed(&told, 1), [finished + receive], "{bytes} B");
        assert_eq!(completed(&told, 0), [finished + flight(&p, 1, 64) + receive], "{bytes} B");
        let Event::Completed(Completion { received, .. }) = told.last().unwrap().2 else {
            panic!()
        };
        assert!(received.is_none() || received == message(0, 3, bytes));
    }
}

#[test]
fn a_message_is_matched_by_its_head() {
    let p = qdr();
    // Rank 0's head is there first, rank 1's tail.
    let long = vec![Do::Send { to: 2, bytes: 8192, tag: 0 }];
    let short = vec![Do::Compute(100_000), Do::Send { to: 2, bytes: 1, tag: 0 }];
    let receiver = vec![
        Do::Receive(any_source(0)),
        Do::Receive(any_source(0)),
        Do::WaitAny(vec![0, 1]),
        Do::Wait(0),
    ];
    let (told, _) = run("star:3", &p, vec![long, short, receiver]);
    let received = told.iter().filter_map(|(rank, _, event)| match event {
        Event::Completed(done) if *rank == 2 => done.received,
        _ => None,
    });
    let sources: Vec<_> = received.map(|message| message.source.0).collect();
    assert_eq!(sources, [1, 0], "the second receive is complete first");
}

/// Ranks beside open-loop traffic that never ends, in a run that ends with them.
fn jobs(
    division: Division,
    scripts: &[Vec<Do>],
    p: &Parameters,
) -> (Vec<(u32, u64, Event)>, Outcome) {
    let slice = Picoseconds(10_000_000);
    let wide = Recording { slice, slices: 200, grows: false, flow_bytes_max: 80_000 };
    recorded(division, scripts, p, wide)
}

/// The same, recorded so.
fn recorded(
    division: Division,
    scripts: &[Vec<Do>],
    p: &Parameters,
    recording: Recording,
) -> (Vec<(u32, u64, Event)>, Outcome) {
    let fabric = build("leaf-spine:leaves=4,hosts=4,spines=2");
    let subnet = tables(&fabric, 1, false);
    let log = Log::default();
    let placed = |(rank, todo): (usize, &Vec<Do>)| Placed {
        host: 15 - 3 * rank as u32,
        program: script(rank as u32, todo.clone(), &log),
    };
    let setup = Setup {
        fabric: &fabric,
        forwarding: Forwarding::Tables(&subnet),
        parameters: p.clone(),
        groups: vec![group(Transport::Rc), group(Transport::Ud)],
        programs: (0..16).map(|host| Greedy::to((host + 5) % 16, 2_000_000, 1)).collect(),
        jobs: vec![Job { ranks: scripts.iter().enumerate().map(placed).collect() }],
        ends_with_jobs: true,
        recording,
        control: None,
        queue_width_log2: 14,
        division,
        fleet: None,
        taps: Vec::new(),
        dead_pairs: false,
    };
    let mut simulation = Simulation::new(setup).unwrap();
    let status = simulation.run_until(Picoseconds(2_000_000_000));
    assert!(matches!(status, Status::Drained | Status::Deadlocked), "{status:?}");
    let outcome = simulation.finish();
    let mut told = log.lock().unwrap().clone();
    told.sort_by_key(|(rank, time, _)| (*rank, *time));
    (told, outcome)
}

const DIVISIONS: [Division; 4] = [
    Division { partitions: 2, threads: 1 },
    Division { partitions: 3, threads: 2 },
    Division { partitions: 6, threads: 1 },
    Division { partitions: 6, threads: 2 },
];

/// Exchanges of messages of all kinds in a ring of four ranks.
fn exchanges() -> Vec<Vec<Do>> {
    let exchange = |rank: u32| {
        let (next, before) = ((rank + 1) % 4, (rank + 3) % 4);
        let mut todo = Vec::new();
        for (round, bytes) in [0, 100, 5000, 9000, 60_000].into_iter().enumerate() {
            let tag = round as u32;
            let first = 3 * round;
            todo.extend([
                Do::Receive(if round % 2 == 0 { from(before, tag) } else { anything() }),
                Do::Send { to: next, bytes, tag },
                Do::Get { from: before, bytes: bytes / 2 },
                Do::WaitAll(vec![first, first + 1, first + 2]),
                Do::Compute(1_000_000),
            ]);
            // Handles of what is over are used again.
        }
        todo
    };
    (0..4).map(exchange).collect()
}

/// What an outcome tells slice by slice, with as many slices made one as `merged`.
fn by_slice(outcome: &Outcome, merged: usize) -> String {
    let sums = |slices: &[u64]| -> Vec<u64> {
        let mut sums: Vec<u64> = slices.chunks(merged).map(|some| some.iter().sum()).collect();
        sums.truncate(sums.iter().rposition(|sum| *sum > 0).map_or(0, |last| last + 1));
        sums
    };
    let of = |value: fn(&GroupSlice) -> u64| -> Vec<Vec<u64>> {
        let values = |group: &Vec<GroupSlice>| group.iter().map(value).collect::<Vec<u64>>();
        outcome.groups.iter().map(|group| sums(&values(group))).collect()
    };
    let groups = [
        of(|slice| slice.offered_wire_bytes),
        of(|slice| slice.delivered_payload_bytes),
        of(|slice| slice.messages),
        of(|slice| slice.latency_ns.len()),
    ];
    let flows = outcome.flows.iter().map(|flow| sums(&flow.delivered_payload_bytes));
    let links = outcome.channels.iter().map(|c| (sums(&c.busy_ps), sums(&c.wait_ps)));
    format!("{groups:?} {:?} {:?}", flows.collect::<Vec<_>>(), links.collect::<Vec<_>>())
}

#[test]
fn slices_grow_with_a_run_and_hold_what_narrow_ones_hold() {
    let (scripts, p) = (exchanges(), qdr());
    let slice = Picoseconds(100_000);
    let fixed = Recording { slice, slices: 12_800, grows: false, flow_bytes_max: u64::MAX };
    let (_, narrow) = recorded(Division::WHOLE, &scripts, &p, fixed);
    for slices in [20, 31, 100] {
        let growing = Recording { slices, grows: true, ..fixed };
        let (_, outcome) = recorded(Division::WHOLE, &scripts, &p, growing);
        let merged = outcome.slice.0 / slice.0;
        assert!(merged.is_power_of_two() && outcome.slice.0 % slice.0 == 0);
        // They reach the end, and what was still on its way then, and did not double without need.
        let (reach, end) = (u64::from(slices) * outcome.slice.0, outcome.duration.0);
        assert!(end <= reach && reach < 2 * (end + 10_000_000), "{slices} of {}", outcome.slice);
        assert_eq!(by_slice(&outcome, 1), by_slice(&narrow, merged as usize), "{slices}");
        for division in DIVISIONS {
            let (_, divided) = recorded(division, &scripts, &p, growing);
            assert_eq!(divided.slice, outcome.slice, "{division:?}");
            assert_eq!(by_slice(&divided, 1), by_slice(&outcome, 1), "{division:?}");
        }
    }
}

#[test]
fn a_run_ends_with_its_programs_and_its_division_is_not_seen() {
    let scripts = exchanges();
    let (told, outcome) = jobs(Division::WHOLE, &scripts, &qdr());
    assert_eq!(outcome.ending, Ending::ProgramsEnded);
    let [job] = outcome.jobs[..] else { panic!("{:?}", outcome.jobs) };
    let last = told.iter().map(|(_, time, _)| *time).max().unwrap();
    // The end of a program is the picosecond after its last event.
    assert_eq!((job.unfinished, job.ended_at.0), (0, last));
    assert_eq!(outcome.duration.0, (last / END_GRID.0 + 1) * END_GRID.0);
    for division in DIVISIONS {
        let (other, divided) = jobs(division, &scripts, &qdr());
        assert_eq!(other, told, "{division:?}");
        assert_eq!(divided.jobs, outcome.jobs);
        assert_eq!(divided.totals, outcome.totals);
        assert_eq!(divided.duration, outcome.duration);
        let [a, b] = [&divided, &outcome].map(|it| format!("{:?}{:?}", it.flows, it.channels));
        assert_eq!(a, b);
    }
}

#[test]
fn ranks_that_wait_for_ever_are_found_beside_traffic_and_named() {
    let scripts = [
        vec![Do::Receive(from(1, 6)), Do::Wait(0)],
        vec![Do::Send { to: 0, bytes: 1, tag: 5 }, Do::Receive(any_source(7)), Do::Wait(1)],
        vec![Do::Compute(1_000_000)],
    ];
    let (_, outcome) = jobs(Division::WHOLE, &scripts, &qdr());
    let Ending::RanksWait(stuck) = &outcome.ending else { panic!("{:?}", outcome.ending) };
    let words: Vec<String> = stuck.iter().map(ToString::to_string).collect();
    assert_eq!(
        words,
        [
            "rank 0 of program 0 waits for a receive from rank 1, tag 6, context 0",
            "rank 1 of program 0 waits for a receive from any rank, tag 7, context 0",
        ]
    );
    assert_eq!(outcome.jobs[0].unfinished, 2);
    for division in DIVISIONS {
        assert_eq!(jobs(division, &scripts, &qdr()).1.ending, outcome.ending, "{division:?}");
    }
}
