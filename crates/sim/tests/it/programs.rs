//! What operations cost a rank's CPU (the o of LogGP): closed forms of runs that end with the last
//! step of a program.

use crate::support::{Case, build, group, idle, tables};
use clearlane_ib::{Bytes, Picoseconds};
use clearlane_sim::{Ending, Parameters, preset};
use clearlane_workload::{Event, Filter, Hints, Op, Rank, RankProgram, Transport};

const OVERHEAD: u64 = 700_000;
const MS: u64 = 1_000_000_000;

/// Does the operations of a list one after the other; `Wait` waits for the last handle.
struct Script(Vec<Op>);

impl RankProgram for Script {
    fn step(&mut self, _: Picoseconds, event: Event) -> Op {
        if self.0.is_empty() {
            return Op::Done;
        }
        match (self.0.remove(0), event) {
            (Op::Wait(_), Event::Posted(handle)) => Op::Wait(handle),
            (op, _) => op,
        }
    }
}

fn send() -> Op {
    let hints = Hints::default();
    Op::Send { dst: Rank(1), bytes: 64, tag: 3, context: 0, group: 0, tracked: false, hints }
}

fn receive() -> [Op; 2] {
    let filter = Filter { source: Some(Rank(0)), tag: Some(3), context: 0 };
    [Op::Recv { filter, stream: 0 }, Op::Wait(clearlane_workload::Handle(0))]
}

/// When the last program has ended.
fn duration(sender: Vec<Op>, receiver: Vec<Op>) -> u64 {
    let fabric = build("star:3");
    let base = (preset::by_name("qdr").unwrap().parameters)();
    let overhead = Picoseconds(OVERHEAD);
    let outcome = Case {
        fabric: &fabric,
        subnet: &tables(&fabric, 1, false),
        parameters: Parameters {
            send_overhead: overhead,
            receive_overhead: overhead,
            buffer: Bytes(65_536),
            ..base
        },
        groups: vec![group(Transport::Rc)],
        programs: vec![Box::new(Script(sender)), Box::new(Script(receiver)), idle()],
        until: Picoseconds(10 * MS),
        width: 13,
    }
    .run();
    assert_eq!(outcome.ending, Ending::Drained);
    outcome.duration.0
}

#[test]
fn a_receive_posted_late_costs_the_cpu_as_much_as_one_posted_early() {
    let late = |with: Vec<Op>| [vec![Op::Compute(Picoseconds(MS))], with].concat();
    let without = duration(vec![send()], late(vec![Op::Compute(Picoseconds(1))]));
    // The message is there long before.
    let with = duration(vec![send()], late(receive().to_vec()));
    // Each operation takes a picosecond besides.
    assert!((OVERHEAD..OVERHEAD + 5).contains(&(with - without)), "{}", with - without);
}

#[test]
fn messages_are_a_send_overhead_apart() {
    let last = |messages: usize| {
        let sends = vec![send(); messages];
        let receives: Vec<Op> = (0..messages).flat_map(|_| receive()).collect();
        // Received at leisure: what counts is when the last ACK has come back.
        duration(sends, [vec![Op::Compute(Picoseconds(1))], receives].concat())
    };
    let (one, many) = (last(1), last(11));
    let apart = (many - one) / 10;
    assert!((OVERHEAD..OVERHEAD + 5).contains(&apart), "{apart}");
}
