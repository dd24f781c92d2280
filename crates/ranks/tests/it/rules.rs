//! The rules of matching, of long messages and of waiting, each in a few lines.

use crate::support::*;
use clearlane_ranks::{Doing, Progress};
use clearlane_workload::{Event, Filter, Message, Rank};

/// When a short message of one rank is with the other, the CPU of the receiver included.
const fn eager(bytes: u64) -> u64 {
    SEND + LATENCY + bytes * BYTE + RECEIVE
}

#[test]
fn a_message_takes_both_overheads_the_latency_and_its_bytes() {
    for bytes in [0, 1, 2048, 8192] {
        let ran = run(vec![
            vec![Do::Send { to: 1, bytes, tag: 7 }],
            vec![Do::Receive(from(0, 7)), Do::Wait(0)],
        ]);
        assert_eq!(ran.times(1), [eager(bytes)], "{bytes} B");
        assert_eq!(ran.received(1), [Message { source: Rank(0), tag: 7, bytes }]);
        assert_eq!((ran.job.unfinished, ran.job.under_way), (0, 0));
        assert_eq!(ran.job.ended_at.0, eager(bytes));
    }
}

#[test]
fn the_sender_is_busy_for_its_overhead_with_each_message() {
    let send = Do::Send { to: 1, bytes: 1, tag: 0 };
    let receive = || Do::Receive(from(0, 0));
    let ran = run(vec![
        vec![send.clone(), send.clone(), send],
        vec![receive(), receive(), receive(), Do::Wait(0), Do::Wait(1), Do::Wait(2)],
    ]);
    let first = eager(1);
    // The sender's overhead is the longer one, so it sets the pace.
    assert_eq!(ran.times(1), [first, first + SEND, first + 2 * SEND]);
}

#[test]
fn messages_of_one_source_and_context_are_matched_in_the_order_they_were_sent() {
    // The first takes a detour of a hundred latencies; the receives take any tag.
    let ran = run_with(
        Progress::Call,
        &[(0, 100 * LATENCY)],
        vec![
            vec![Do::Send { to: 1, bytes: 10, tag: 1 }, Do::Send { to: 1, bytes: 20, tag: 2 }],
            vec![Do::Receive(any_tag(0)), Do::Receive(any_tag(0)), Do::Wait(0), Do::Wait(1)],
        ],
    );
    let tags: Vec<u32> = ran.received(1).iter().map(|message| message.tag).collect();
    assert_eq!(tags, [1, 2]);
}

#[test]
fn messages_of_other_contexts_do_not_wait_for_each_other() {
    let ran = run_with(
        Progress::Call,
        &[(0, 100 * LATENCY)],
        vec![
            vec![
                Do::SendIn { context: 1, to: 1, bytes: 10, tag: 0 },
                Do::SendIn { context: 2, to: 1, bytes: 20, tag: 0 },
            ],
            vec![Do::Receive(Filter { context: 2, ..anything() }), Do::Wait(0)],
        ],
    );
    assert_eq!(ran.times(1), [eager(20) + SEND]);
    assert_eq!(ran.received(1)[0].bytes, 20);
}

#[test]
fn of_several_receives_that_take_a_message_the_oldest_has_it() {
    let filters = [any_source(5), from(0, 5), anything(), any_tag(0)];
    for first in 0..filters.len() {
        let mut order = filters;
        order.rotate_left(first);
        let mut script: Vec<Do> = order.into_iter().map(Do::Receive).collect();
        script.extend([Do::WaitAny(vec![3, 2, 1, 0])]);
        let ran = run(vec![vec![Do::Send { to: 1, bytes: 1, tag: 5 }], script]);
        let Event::Completed(done) = ran.told(1)[0].1 else { panic!("{:?}", ran.told(1)) };
        assert_eq!(done.handle.0, 0, "{order:?}");
        assert_eq!(done.received, message(0, 5, 1));
    }
}

#[test]
fn a_receive_passes_over_messages_that_it_does_not_take() {
    let ran = run(vec![
        vec![
            Do::Send { to: 1, bytes: 1, tag: 1 },
            Do::Send { to: 1, bytes: 2, tag: 2 },
            Do::Send { to: 1, bytes: 3, tag: 1 },
        ],
        vec![
            Do::Compute(10 * LATENCY),
            Do::Receive(from(0, 2)),
            Do::Receive(any_source(1)),
            Do::Receive(anything()),
            Do::Wait(0),
            Do::Wait(1),
            Do::Wait(2),
        ],
    ]);
    let bytes: Vec<u64> = ran.received(1).iter().map(|message| message.bytes).collect();
    assert_eq!(bytes, [2, 1, 3]);
}

#[test]
fn a_message_that_nobody_expects_waits_and_costs_nothing_until_it_is_received() {
    let late = 10 * LATENCY;
    let ran = run(vec![
        vec![Do::Send { to: 1, bytes: 1, tag: 0 }],
        vec![Do::Compute(late), Do::Receive(anything()), Do::Wait(0)],
    ]);
    // The picosecond is that of posting the receive.
    assert_eq!(ran.times(1), [late, late + 1 + RECEIVE]);
}

#[test]
fn a_long_message_is_announced_read_and_acknowledged() {
    let bytes = EAGER + 1;
    let ran = run(vec![
        vec![Do::Send { to: 1, bytes, tag: 3 }, Do::Wait(0)],
        vec![Do::Receive(from(0, 3)), Do::Wait(0)],
    ]);
    assert_eq!(ran.protocol(), [1, 1, 1]);
    let announced = SEND + LATENCY + CONTROL * BYTE;
    // The read goes there and comes back.
    let read = announced + RECEIVE + SEND + 2 * LATENCY + bytes * BYTE;
    let told = read + SEND;
    assert_eq!(ran.times(1), [told + RECEIVE]);
    assert_eq!(ran.times(0), [told + LATENCY + CONTROL * BYTE + RECEIVE]);
    assert_eq!(ran.received(1), [Message { source: Rank(0), tag: 3, bytes }]);
}

#[test]
fn a_long_message_does_not_let_a_short_one_overtake_it() {
    let ran = run(vec![
        vec![Do::Send { to: 1, bytes: EAGER + 1, tag: 1 }, Do::Send { to: 1, bytes: 1, tag: 2 }],
        vec![Do::Receive(any_tag(0)), Do::Receive(any_tag(0)), Do::Wait(0), Do::Wait(1)],
    ]);
    let tags: Vec<u32> = ran.received(1).iter().map(|message| message.tag).collect();
    assert_eq!(tags, [1, 2]);
    // The short one is there long before the long one has been read.
    let ran = run(vec![
        vec![Do::Send { to: 1, bytes: 100 * EAGER, tag: 1 }, Do::Send { to: 1, bytes: 1, tag: 2 }],
        vec![Do::Receive(any_tag(0)), Do::Receive(any_tag(0)), Do::WaitAny(vec![0, 1])],
    ]);
    assert_eq!(ran.received(1), [Message { source: Rank(0), tag: 2, bytes: 1 }]);
}

#[test]
fn while_its_receiver_computes_a_long_message_waits_unless_another_goes_on_with_it() {
    let (bytes, late) = (EAGER + 1, 50 * LATENCY);
    let scripts = || {
        vec![
            vec![Do::Send { to: 1, bytes, tag: 0 }, Do::Wait(0)],
            vec![Do::Receive(anything()), Do::Compute(late), Do::Wait(0)],
        ]
    };
    let call = run_with(Progress::Call, &[], scripts());
    let begin = 1 + late + RECEIVE + SEND;
    assert_eq!(call.times(1)[1], begin + 2 * LATENCY + bytes * BYTE + SEND + RECEIVE);
    let other = run_with(Progress::Async, &[], scripts());
    assert_eq!(other.times(1)[1], 1 + late + RECEIVE);
    assert!(other.times(0)[0] < late);
}

#[test]
fn a_rank_sends_to_itself_by_memory() {
    for bytes in [0, 1, EAGER + 1] {
        let ran = run(vec![vec![
            Do::Receive(from(0, 9)),
            Do::Send { to: 0, bytes, tag: 9 },
            Do::Wait(0),
            Do::Wait(1),
        ]]);
        assert!(ran.posted.is_empty());
        assert_eq!(ran.times(0)[0], 1 + SEND + RECEIVE);
        assert_eq!(ran.received(0), [Message { source: Rank(0), tag: 9, bytes }]);
        assert_eq!((ran.job.unfinished, ran.job.under_way), (0, 0));
    }
}

#[test]
fn puts_and_gets_need_nobody_at_the_other_end() {
    let ran = run(vec![
        vec![
            Do::Put { to: 1, bytes: 100 },
            Do::Wait(0),
            Do::Get { from: 1, bytes: 50 },
            Do::Wait(1),
        ],
        vec![],
    ]);
    // An acknowledgement costs the CPU nothing, and waiting for it the picosecond of any operation.
    let put = SEND + LATENCY + 100 * BYTE + LATENCY + 1;
    assert_eq!(ran.times(0), [put, put + SEND + 2 * LATENCY + 50 * BYTE + RECEIVE]);
    assert_eq!(ran.received(0), []);
}

#[test]
fn waiting_for_all_pays_for_each_message_as_it_comes() {
    let ran = run(vec![
        vec![Do::Send { to: 2, bytes: 1, tag: 0 }],
        vec![Do::Send { to: 2, bytes: 1, tag: 0 }],
        vec![Do::Receive(from(0, 0)), Do::Receive(from(1, 0)), Do::WaitAll(vec![0, 1])],
    ]);
    // Both are there at once, and one CPU takes one after the other.
    assert_eq!(ran.told(2), [(eager(1) + RECEIVE, Event::AllCompleted)]);
}

#[test]
fn waiting_for_all_that_are_there_takes_what_they_cost() {
    let late = 10 * LATENCY;
    let ran = run(vec![
        vec![Do::Send { to: 2, bytes: 1, tag: 0 }],
        vec![Do::Send { to: 2, bytes: 1, tag: 0 }],
        vec![
            Do::Compute(late),
            Do::Receive(from(0, 0)),
            Do::Receive(from(1, 0)),
            Do::WaitAll(vec![0, 1]),
        ],
    ]);
    // A picosecond for each receive that is posted, and none for the wait.
    assert_eq!(ran.times(2), [late, late + 2 + 2 * RECEIVE]);
}

#[test]
fn waiting_for_any_is_told_the_first_and_keeps_the_others() {
    let ran = run_with(
        Progress::Call,
        &[(0, 9 * LATENCY)],
        vec![
            vec![Do::Send { to: 2, bytes: 1, tag: 0 }],
            vec![Do::Send { to: 2, bytes: 2, tag: 0 }],
            vec![
                Do::Receive(from(0, 0)),
                Do::Receive(from(1, 0)),
                Do::WaitAny(vec![0, 1]),
                Do::WaitAny(vec![0, 1]),
                Do::WaitAny(vec![0]),
            ],
        ],
    );
    let told: Vec<_> = ran.told(2).into_iter().map(|(_, event)| event).collect();
    let done = |handle, received| {
        let handle = clearlane_workload::Handle(handle);
        Event::Completed(clearlane_workload::Completion { handle, received })
    };
    // A handle that is gone is complete at once, as a null request is.
    assert_eq!(told, [done(1, message(1, 0, 2)), done(1, None), done(0, message(0, 0, 1))]);
}

#[test]
fn waiting_for_the_next_is_told_of_each_once_in_the_order_of_completion() {
    let start = |span, stream| Do::Start { span, stream };
    let ran = run(vec![
        vec![Do::Send { to: 1, bytes: 1, tag: 0 }],
        vec![
            start(1, 1),
            Do::WaitNext,
            Do::Receive(from(0, 0)),
            start(3 * POLL, 1),
            start(POLL, 2),
            start(2 * POLL, 3),
            Do::Compute(4 * POLL),
            Do::Wait(3),
            Do::WaitNext,
            Do::WaitNext,
            Do::WaitNext,
            Do::WaitNext,
        ],
    ]);
    // Streams end while it computes; the one that it has asked for is not told again.
    let handles: Vec<_> = ran.told(1).iter().filter_map(|(_, event)| handle(event)).collect();
    // The first handle is free again for the receive.
    assert_eq!(handles, [0, 2, 3, 1, 0]);
    assert_eq!(ran.times(1).last(), Some(&eager(1)));
    assert_eq!(ran.received(1), [Message { source: Rank(0), tag: 0, bytes: 1 }]);
    // Nothing is under way any more.
    assert_eq!((ran.job.unfinished, ran.job.under_way, ran.stuck[0].waits.len()), (1, 0, 0));
}

#[test]
fn waiting_for_the_next_begins_with_what_was_complete_before() {
    let start = |stream| Do::Start { span: POLL, stream };
    let ran = run(vec![vec![start(2), start(1), Do::Compute(9 * POLL), Do::WaitNext, start(1)]]);
    // In the order of handles: the order of completion was of no use to anybody.
    assert_eq!(handle(&ran.told(0)[1].1), Some(0));
}

fn handle(event: &Event) -> Option<u32> {
    match event {
        Event::Completed(done) => Some(done.handle.0),
        _ => None,
    }
}

/// With lists that are searched these would be some 10^10 steps.
#[test]
fn waiting_for_the_next_of_many_takes_no_search() {
    const MANY: u32 = 100_000;
    let mut script: Vec<Do> = (0..MANY).map(|tag| Do::Receive(from(0, tag))).collect();
    script.extend((0..MANY).map(|_| Do::WaitNext));
    let sends = (0..MANY).rev().map(|tag| Do::Send { to: 1, bytes: 0, tag }).collect();
    let ran = run(vec![sends, script]);
    let tags: Vec<u32> = ran.received(1).iter().map(|message| message.tag).collect();
    assert!(tags.into_iter().eq((0..MANY).rev()));
}

#[test]
fn a_test_costs_time_and_tells_what_is_the_case_then() {
    let ran = run(vec![
        vec![Do::Send { to: 1, bytes: 1, tag: 0 }],
        vec![Do::Receive(anything()), Do::Test(0), Do::Compute(10 * LATENCY), Do::Test(0)],
    ]);
    let told = ran.told(1);
    assert_eq!(told[0], (1 + POLL, Event::Tested(None)));
    let done = 1 + POLL + 10 * LATENCY + POLL + RECEIVE;
    assert_eq!(told[2].0, done);
    assert!(matches!(told[2].1, Event::Tested(Some(done)) if done.received == message(0, 0, 1)));
}

#[test]
fn a_probe_leaves_the_message_where_it_is() {
    let ran = run(vec![
        vec![Do::Compute(LATENCY), Do::Send { to: 1, bytes: 5, tag: 4 }],
        vec![
            Do::Probe(anything(), false),
            Do::Probe(from(0, 4), true),
            Do::Receive(from(0, 4)),
            Do::Wait(0),
        ],
    ]);
    let told = ran.told(1);
    assert_eq!(told[0], (POLL, Event::Probed(None)));
    let there = LATENCY + SEND + LATENCY + 5 * BYTE + 1;
    assert_eq!(told[1], (there, Event::Probed(message(0, 4, 5))));
    assert_eq!(told[2].0, there + 1 + RECEIVE);
}

#[test]
fn cpu_streams_work_side_by_side_and_each_in_its_order() {
    let start = |stream| Do::Start { span: LATENCY, stream };
    let ran = run(vec![vec![start(1), start(1), start(2), Do::Wait(2), Do::Wait(1)]]);
    assert_eq!(ran.times(0), [2 + LATENCY + 1, 2 * LATENCY + 1]);
}

#[test]
fn an_acknowledgement_does_not_wait_for_the_stream_that_sent() {
    let send = Do::SendOn { stream: 1, tracked: true, context: 0, to: 1, bytes: 1, tag: 0 };
    let busy = Do::Start { span: 50 * LATENCY, stream: 1 };
    let ran = run(vec![vec![send, busy, Do::Wait(0)], vec![Do::Receive(from(0, 0)), Do::Wait(0)]]);
    // The picosecond is that of taking it in hand.
    assert_eq!(ran.times(0), [SEND + 2 * LATENCY + BYTE + 1]);
}

#[test]
fn ranks_that_wait_for_each_other_are_named_with_what_they_wait_for() {
    let ran = run(vec![
        vec![Do::Receive(from(1, 6)), Do::Wait(0), Do::Send { to: 1, bytes: 1, tag: 7 }],
        vec![Do::Receive(from(0, 7)), Do::Wait(0), Do::Send { to: 0, bytes: 1, tag: 6 }],
        vec![],
    ]);
    assert_eq!((ran.job.unfinished, ran.job.under_way), (2, 0));
    let waits: Vec<_> = ran.stuck.iter().map(|stuck| (stuck.rank.0, stuck.waits.clone())).collect();
    let receive = |source, tag| vec![Doing::Receive(from(source, tag))];
    assert_eq!(waits, [(0, receive(1, 6)), (1, receive(0, 7))]);
}

#[test]
fn long_messages_that_both_send_first_end_in_a_deadlock_and_short_ones_do_not() {
    let scripts = |bytes| {
        let side = |peer| {
            let send = Do::Send { to: peer, bytes, tag: 0 };
            vec![send, Do::Wait(0), Do::Receive(from(peer, 0)), Do::Wait(1)]
        };
        vec![side(1), side(0)]
    };
    assert_eq!(run(scripts(EAGER)).job.unfinished, 0);
    let stuck = run(scripts(EAGER + 1)).stuck;
    assert_eq!(stuck.len(), 2);
    let to = Rank(1);
    assert_eq!(stuck[0].waits, [Doing::Send { to, tag: 0, context: 0 }]);
}
