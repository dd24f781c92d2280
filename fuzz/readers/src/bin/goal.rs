//! GOAL schedules, as text and as LogGOPSim's binary: read, written, read again and run.
#![no_main]

use clearlane_fuzz::{FILE, refused};
use clearlane_ib::Picoseconds;
use clearlane_workload::traces::{Replay, Trace, goal_text};
use clearlane_workload::{Completion, Event, Handle, Op, Rank, RankProgram};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let trace = match Trace::read(data, FILE) {
        Ok(trace) => trace,
        Err(error) => return refused(&error),
    };
    let text = goal_text::write(&trace);
    let again = Trace::read(text.as_bytes(), FILE).expect("what is written is read");
    assert!(again == trace, "{text}");
    (0..trace.ranks()).for_each(|rank| runs_to_its_end(&trace, Rank(rank)));
});

/// Every node is posted, whatever is complete last.
fn runs_to_its_end(trace: &Trace, rank: Rank) {
    let mut program = Replay::new(trace, rank, 0);
    let (mut posted, mut under_way, mut event) = (0, Vec::new(), Event::Start);
    loop {
        event = match program.step(Picoseconds(0), event) {
            Op::Done => break,
            Op::WaitNext => {
                let handle = under_way.pop().expect("it waits for nothing");
                Event::Completed(Completion { handle, received: None })
            }
            _ => {
                under_way.push(Handle(posted));
                posted += 1;
                Event::Posted(Handle(posted - 1))
            }
        };
    }
    assert!(under_way.is_empty() && posted >= trace.count(rank));
}
