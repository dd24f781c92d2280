//! Ranks on LogGOPS: the formulas of the model, and what LogGOPSim says of its own examples.

use clearlane_ranks::loggops::{Finished, LogGops, run};
use clearlane_workload::programs::PingPong;
use clearlane_workload::traces::{Replay, Trace};
use clearlane_workload::{Rank, RankProgram};
use std::path::PathBuf;

const NS: u64 = 1000;

/// No two of its parameters have a sum that another has.
const MODEL: LogGops = LogGops {
    latency: 2_503 * NS,
    overhead: 307 * NS,
    gap: 1_009 * NS,
    gap_per_byte: 7 * NS,
    overhead_per_byte: 0,
    eager_max: 65_535,
};

fn replayed(trace: &Trace, model: &LogGops) -> Finished {
    let rank = |rank| Box::new(Replay::new(trace, Rank(rank), 0)) as Box<dyn RankProgram>;
    run((0..trace.ranks()).map(rank).collect(), model)
}

/// When each rank ends, in ns: the picoseconds that operations take do not add up to one.
fn ends(text: &str, model: &LogGops) -> Vec<u64> {
    let trace = Trace::read(text.as_bytes(), "test").unwrap();
    let finished = replayed(&trace, model);
    assert_eq!(finished.stuck, []);
    finished.ended.into_iter().map(|end| end.expect("it has ended").0 / NS).collect()
}

/// Two ranks with these items.
fn two(first: &str, second: &str) -> String {
    format!("num_ranks 2\nrank 0 {{\n{first}\n}}\nrank 1 {{\n{second}\n}}\n")
}

#[test]
fn a_message_takes_both_overheads_the_latency_and_its_bytes() {
    for bytes in [0, 1, 2, 1000, 65_535] {
        let text = two(&format!("send {bytes}b to 1"), &format!("recv {bytes}b from 0"));
        let further = u64::max(bytes, 1) - 1;
        assert_eq!(ends(&text, &MODEL), [307, 2 * 307 + 2_503 + 7 * further], "{bytes} B");
        // O keeps the sender busy; the bytes come no faster than they are made.
        let model = LogGops { overhead_per_byte: 3 * NS, ..MODEL };
        let sender = 307 + 3 * further;
        assert_eq!(ends(&text, &model), [sender, 2 * 307 + 2_503 + 7 * further], "{bytes} B");
        let model = LogGops { overhead_per_byte: 9 * NS, ..MODEL };
        assert_eq!(ends(&text, &model)[1], 2 * 307 + 2_503 + 9 * further, "{bytes} B");
    }
}

#[test]
fn messages_leave_and_come_a_gap_and_their_bytes_apart() {
    for (bytes, overhead) in [(1, 307), (1, 5_000), (100, 307)] {
        let model = LogGops { overhead: overhead * NS, ..MODEL };
        let send = format!("send {bytes}b to 1\n");
        let receive = format!("recv {bytes}b from 0\n");
        let text = two(&send.repeat(4), &receive.repeat(4));
        let apart = u64::max(overhead, 1_009 + 7 * (bytes - 1));
        let one = 2 * overhead + 2_503 + 7 * (bytes - 1);
        assert_eq!(
            ends(&text, &model),
            [4 * overhead, one + 3 * apart],
            "{bytes} B, o = {overhead}"
        );
    }
    // To several: the sender's port is what they share.
    let receiver = |rank| format!("rank {rank} {{\nrecv 100b from 0\n}}\n");
    let text = "num_ranks 4\nrank 0 {\nsend 100b to 1\nsend 100b to 2\nsend 100b to 3\n}\n";
    let text = [text.to_owned(), receiver(1), receiver(2), receiver(3)].concat();
    let (one, apart) = (2 * 307 + 2_503 + 7 * 99, 1_009 + 7 * 99);
    assert_eq!(ends(&text, &MODEL), [3 * 307, one, one + apart, one + 2 * apart]);
    // From several at once: the receiver's port is what they share.
    let text = "num_ranks 4\nrank 0 {\nrecv 100b from 1\nrecv 100b from 2\nrecv 100b from 3\n}\n";
    let sender = |rank| format!("rank {rank} {{\nsend 100b to 0\n}}\n");
    let text = [text.to_owned(), sender(1), sender(2), sender(3)].concat();
    assert_eq!(ends(&text, &MODEL)[0], one + 2 * apart);
}

#[test]
fn ports_and_cpus_work_side_by_side() {
    let model = LogGops { overhead: 10 * NS, ..MODEL };
    let text = two(
        "send 1b to 1 tag 1\nsend 1b to 1 tag 2 cpu 1 nic 1\ncalc 50 cpu 2",
        "recv 1b from 0 tag 1\nrecv 1b from 0 tag 2 cpu 1",
    );
    assert_eq!(ends(&text, &model), [50, 20 + 2_503]);
}

#[test]
fn dependencies_on_the_beginning_and_on_the_end_differ() {
    let items = |word| format!("a: calc 100\nb: calc 200\nc: calc 1000 cpu 1\nc {word} b");
    let text = |word| two(&items(word), "calc 0");
    assert_eq!(ends(&text("irequires"), &MODEL)[0], 1100);
    assert_eq!(ends(&text("requires"), &MODEL)[0], 1300);
    // A send is over when its CPU is, whatever waits in the stream behind it.
    let text =
        two("a: send 1b to 1\nb: calc 5000\nc: calc 7000 cpu 1\nc requires a", "recv 1b from 0");
    assert_eq!(ends(&text, &MODEL)[0], 307 + 7000);
}

#[test]
fn a_message_that_nobody_expects_costs_the_receiver_when_it_is_received() {
    let text = two("send 1b to 1", "a: calc 50000\nb: recv 1b from 0\nb requires a");
    assert_eq!(ends(&text, &MODEL)[1], 50_000 + 307);
}

#[test]
fn a_long_message_is_announced_read_and_acknowledged() {
    let bytes = 65_536;
    let text = two(&format!("send {bytes}b to 1"), &format!("recv {bytes}b from 0"));
    let announced = 307 + 2_503;
    let read = announced + 2 * 307 + 2 * 2_503 + 7 * (bytes - 1);
    let told = read + 307;
    assert_eq!(ends(&text, &MODEL), [told + 2_503 + 307, told + 307]);
    // Without its receive nothing of it leaves.
    let text = two(
        &format!("send {bytes}b to 1"),
        &format!("a: calc 900000\nb: recv {bytes}b from 0\nb requires a"),
    );
    assert_eq!(ends(&text, &MODEL)[1], 900_000 + 2 * 307 + 2 * 2_503 + 7 * (bytes - 1) + 2 * 307);
}

#[test]
fn other_programs_run_on_it_too() {
    let side = |rank: u32, rounds| {
        Box::new(PingPong::new(Rank(rank), Rank(1 - rank), 8, 0, rounds)) as Box<dyn RankProgram>
    };
    let finished = run(vec![side(0, 10), side(1, 10)], &MODEL);
    let half = 2 * 307 + 2_503 + 7 * 7;
    assert_eq!(finished.ended[0].map(|end| end.0 / NS), Some(20 * half));
    // One that waits for what never comes.
    let finished = run(vec![side(0, 10), side(1, 9)], &MODEL);
    assert_eq!(finished.ended[0], None);
    assert_eq!(finished.stuck.len(), 1);
    assert_eq!(
        finished.stuck[0].to_string(),
        "rank 0 of program 0 waits for a receive from rank 1, tag 0, context 0"
    );
}

#[test]
fn ranks_of_a_trace_that_wait_for_each_other_are_named() {
    let cross = |peer| format!("a: recv 1b from {peer}\nb: send 1b to {peer}\nb requires a");
    let trace = Trace::read(two(&cross(1), &cross(0)).as_bytes(), "test").unwrap();
    let finished = replayed(&trace, &MODEL);
    assert_eq!(finished.ended, [None, None]);
    let said = finished.stuck[1].to_string();
    assert_eq!(said, "rank 1 of program 0 waits for a receive from rank 0, tag 0, context 0");
}

/// A shared file, or nothing where the folder is absent.
#[allow(clippy::print_stdout)] // The person running the tests must see what was not tested.
fn shared(test: &str, file: &str) -> Option<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    if !folder.exists() {
        println!("skipped {test}: {} is not here", folder.display());
        return None;
    }
    let path = folder.join("data/traces/goal").join(file);
    Some(std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
}

#[test]
fn needs_shared_loggopsim_says_the_same_of_its_examples() {
    let test = "needs_shared_loggopsim_says_the_same_of_its_examples";
    for name in ["binary_tree_16", "binary_tree_32", "dissemination_16", "dissemination_32"] {
        let Some(schedule) = shared(test, &format!("{name}.bin")) else { return };
        let Some(said) = shared(test, &format!("{name}.loggopsim.out")) else { return };
        let trace = Trace::read(&schedule, name).unwrap();
        let finished = replayed(&trace, &LogGops::DEFAULT);
        let ends: Vec<u64> = finished.ended.iter().map(|end| end.unwrap().0 / NS).collect();
        let said = String::from_utf8(said).unwrap();
        let mut hosts = 0;
        for line in said.lines() {
            if let Some((host, end)) =
                line.strip_prefix("Host ").and_then(|line| line.split_once(": "))
            {
                let host: usize = host.parse().unwrap();
                assert_eq!(ends[host].to_string(), end, "{name}, host {host}");
                hosts += 1;
            }
            // Of more than 16 hosts it names the last one alone.
            if let Some(rest) = line.strip_prefix("Maximum finishing time at host ") {
                let (host, rest) = rest.split_once(": ").unwrap();
                let end: u64 = rest.split(' ').next().unwrap().parse().unwrap();
                let last = ends.iter().max().unwrap();
                assert_eq!((*last, ends[host.parse::<usize>().unwrap()]), (end, end), "{name}");
                hosts = trace.ranks();
            }
        }
        assert_eq!(hosts, trace.ranks(), "{name}");
    }
}

#[test]
fn a_rank_ends_with_the_last_of_its_nodes() {
    assert_eq!(ends("num_ranks 1\nrank 0 {\ncalc 10\ncalc 300 cpu 1\n}", &MODEL), [300]);
}
