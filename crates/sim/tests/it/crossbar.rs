//! What the switches of devices add to a packet's way: stages of their pipeline, reads of the
//! crossbar, buffers behind it, and buffers of a port that its lanes divide.

use crate::support::{Case, Greedy, build, greedy, group, idle, near, one_message, tables};
use clearlane_congestion::{Values, mechanisms};
use clearlane_ib::random::Stream;
use clearlane_ib::{Bytes, Picoseconds, ServiceLevel};
use clearlane_sim::{
    AdapterQueueing, BufferPer, CrossbarReads, Ending, Forwarding, InputQueueing, Mechanisms,
    Outcome, Parameters, Recording, Setup, Simulation, preset,
};
use clearlane_workload::{Event, Hints, Op, Rank, RankProgram, Transport};

const UNTIL: Picoseconds = Picoseconds(2_000_000_000);
/// Some 15,000 packets of each of eight hosts: what passes is known to a third of a per cent.
const LONG: Picoseconds = Picoseconds(8_000_000_000);

/// 2 KiB datagrams of 2,082 B on the wire, at 4x QDR (250 ps a byte).
const PACKET: u64 = 2082 * 250;

fn qdr() -> Parameters {
    (preset::by_name("qdr").unwrap().parameters)()
}

fn text(outcome: Outcome) -> String {
    format!("{outcome:?}")
}

/// Stages of so many ns.
fn staged(va: u64, sa: u64) -> Parameters {
    Parameters { va_delay: Picoseconds(va * 1000), sa_delay: Picoseconds(sa * 1000), ..qdr() }
}

/// So many senders to one host of a star.
fn incast(parameters: Parameters, senders: u32) -> Outcome {
    let fabric = build(&format!("star:{}", senders + 1));
    let sender = |rank| if rank < senders { Greedy::to(senders, PACKET, 0) } else { idle() };
    let case = Case {
        fabric: &fabric,
        subnet: &tables(&fabric, 1, false),
        parameters,
        groups: vec![group(Transport::Ud)],
        programs: (0..=senders).map(sender).collect(),
        until: UNTIL,
        width: 13,
    };
    case.run()
}

/// Allocation works ahead: who finds its output free, or waits for it or for its turn, pays what
/// `switch_delay` says and nothing else.
#[test]
fn stages_cost_nothing_while_there_are_credits() {
    for senders in [1, 2, 7] {
        let plain = text(incast(qdr(), senders));
        assert_eq!(text(incast(staged(30, 20), senders)), plain, "{senders} senders");
    }
}

/// Two hosts send so many packets each over a cable whose far buffer holds one, so that every
/// packet but the first waits for credits. Sum of the latencies of both messages, in ps.
fn short_of_credits(parameters: &Parameters, packets: u64) -> u128 {
    let fabric = build("chain:2x2");
    let message = || one_message(2, packets * 2048, 0);
    let case = Case {
        fabric: &fabric,
        subnet: &tables(&fabric, 1, false),
        parameters: Parameters { buffer: Bytes(2112), ..parameters.clone() },
        groups: vec![group(Transport::Ud)],
        programs: vec![message(), message(), idle(), idle()],
        until: UNTIL,
        width: 13,
    };
    let outcome = case.run();
    assert_eq!(outcome.ending, Ending::Drained);
    assert_eq!(outcome.totals.messages_delivered, 2);
    outcome.groups[0].iter().map(|slice| slice.latency_sum_ps).sum()
}

/// From one packet to the next: the head flies to the next switch, all of it leaves the buffer
/// there, the credits fly back, and then the head is allotted that buffer (VA) and the crossbar
/// (SA). Behind the crossbar there is no SA any more.
#[test]
fn a_head_that_lacked_credits_pays_for_its_allocation_again() {
    for (va, sa) in [(0, 0), (30, 0), (0, 20), (30, 20)] {
        for (output_buffer, paid) in [(None, va + sa), (Some(2112), va), (Some(1 << 20), va)] {
            for packets in [1, 2, 9] {
                let p = Parameters { output_buffer, ..staged(va, sa) };
                let flight = p.cable_delay.0 + p.switch_delay.0;
                let period = flight + PACKET + p.cable_delay.0 + paid * 1000;
                let alone = p.send_overhead.0 + 2 * flight + PACKET + p.cable_delay.0;
                // The last packets are those of numbers 2 n - 2 and 2 n - 1.
                let expected = 2 * alone + (4 * packets - 3) * period;
                let case = format!("VA {va}, SA {sa}, {output_buffer:?}, {packets} packets");
                assert_eq!(short_of_credits(&p, packets), u128::from(expected), "{case}");
            }
        }
    }
}

const PORTS: u32 = 8;

/// Full packets at full rate to hosts drawn at random, each on a lane drawn at random.
struct Uniform {
    draws: Stream,
    next: u64,
}

impl RankProgram for Uniform {
    fn step(&mut self, now: Picoseconds, _: Event) -> Op {
        if now.0 < self.next {
            return Op::WaitUntil(Picoseconds(self.next));
        }
        self.next += PACKET;
        let dst = Rank(PORTS + self.draws.below(PORTS.into()) as u32);
        let group = self.draws.below(8) as u16;
        Op::Put { dst, bytes: 2048, group, tracked: false, hints: Hints::default() }
    }
}

/// Eight hosts send to eight others through one switch. One queue an adapter: what is drawn comes
/// in the order it is drawn in. Buffers are so large that none is ever full.
fn uniform(parameters: &Parameters, lanes: u8) -> Outcome {
    let fabric = build(&format!("star:{}", 2 * PORTS));
    let on_lane = |sl| {
        let mut settings = group(Transport::Ud);
        settings.sl = ServiceLevel::new(sl % lanes);
        settings
    };
    let program = |rank: u32| -> Box<dyn RankProgram> {
        let draws = Stream::new(7, "uniform", rank.into());
        if rank < PORTS { Box::new(Uniform { draws, next: 0 }) } else { idle() }
    };
    let case = Case {
        fabric: &fabric,
        subnet: &tables(&fabric, lanes, false),
        parameters: Parameters {
            queueing: AdapterQueueing::SingleFifo,
            buffer: Bytes(4 << 20),
            ..parameters.clone()
        },
        groups: (0..8).map(on_lane).collect(),
        programs: (0..2 * PORTS).map(program).collect(),
        until: LONG,
        width: 13,
    };
    case.run()
}

/// The share of the links' rate that gets through in the second half of a run.
fn passes(parameters: &Parameters, lanes: u8) -> f64 {
    let outcome = uniform(parameters, lanes);
    let halves = outcome.groups.iter().flat_map(|slices| &slices[5..]);
    let bytes: u64 = halves.map(|slice| slice.delivered_wire_bytes).sum();
    bytes as f64 * 250.0 / (LONG.0 as f64 / 2.0) / f64::from(PORTS)
}

/// One of those that want something, at random.
fn one_of<T: Copy>(draws: &mut Stream, of: &[T]) -> Option<T> {
    (!of.is_empty()).then(|| of[draws.below(of.len() as u64) as usize])
}

/// The same in slots, without Clearlane: what a saturated switch of 8 × 8 passes whose inputs have
/// so many queues, each with a head for a random output. Outputs and inputs choose at random, in
/// rounds until nobody is left; an input gives one packet a slot if it is read `by_port`.
fn slots_of_reads(lanes: usize, by_port: bool) -> f64 {
    const PORTS: usize = 8;
    let (mut draws, slots) = (Stream::new(3, "slots", 0), 20_000);
    let mut heads = vec![[0; 16]; PORTS];
    heads.iter_mut().flatten().for_each(|head| *head = draws.below(8) as usize);
    let mut passed = 0;
    for _ in 0..slots {
        let (mut read, mut served) = ([false; PORTS], [false; PORTS]);
        loop {
            let mut offers = vec![Vec::new(); PORTS];
            for output in (0..PORTS).filter(|output| !served[*output]) {
                let all = (0..PORTS).flat_map(|input| (0..lanes).map(move |lane| (input, lane)));
                let wants = |(input, lane): &(usize, usize)| {
                    heads[*input][*lane] == output && !(by_port && read[*input])
                };
                let wanting: Vec<_> = all.filter(wants).collect();
                if let Some((input, lane)) = one_of(&mut draws, &wanting) {
                    offers[input].push((output, lane));
                }
            }
            if offers.iter().all(Vec::is_empty) {
                break;
            }
            for (input, offered) in offers.into_iter().enumerate() {
                let one: Vec<_> = one_of(&mut draws, &offered).into_iter().collect();
                for (output, lane) in if by_port { one } else { offered } {
                    (read[input], served[output]) = (true, true);
                    // It is gone; the next comes up in the next slot.
                    heads[input][lane] = PORTS + draws.below(8) as usize;
                    passed += 1;
                }
            }
        }
        heads.iter_mut().flatten().for_each(|head| *head %= PORTS);
    }
    f64::from(passed) / f64::from(slots) / PORTS as f64
}

/// Lanes that are read side by side are as many inputs more: of so many heads for as many outputs
/// as before more are for different ones. For many ports 2 − √2, 3 − √5, 5 − √17, 9 − √65: m queues
/// an output hold m packets in the mean, by M/D/1 (Karol, Hluchyj, Morgan, IEEE Trans. Comm.
/// 35(12), 1987, for m = 1). A port that is read for one output at a time gains less by lanes: it
/// has the choice among heads, but not two ways out.
#[test]
fn lanes_read_side_by_side_pass_more_than_a_port_that_is_read_for_one_output() {
    let many: [f64; 4] = [2f64.sqrt(), 5f64.sqrt(), 17f64.sqrt(), 65f64.sqrt()];
    let mut before = 0.0;
    for (place, measured) in [0.619, 0.787, 0.889, 0.944].into_iter().enumerate() {
        let lanes = 1 << place;
        let by_lane = passes(&qdr(), lanes);
        near(by_lane, measured, 0.01);
        near(by_lane, slots_of_reads(lanes.into(), false), 0.01);
        assert!(by_lane > f64::from(lanes) + 1.0 - many[place], "{lanes} lanes: {by_lane}");
        let read = Parameters { crossbar_reads: CrossbarReads::Port, ..qdr() };
        let by_port = passes(&read, lanes);
        near(by_port, slots_of_reads(lanes.into(), true), 0.02);
        let gains = lanes == 1 || by_port < by_lane - 0.01 && by_port > before + 0.02;
        assert!(gains, "{lanes} lanes: {by_port} of {by_lane}, before {before}");
        before = by_port;
    }
}

/// With a queue per output and inputs and outputs that choose in turn, one read an input is enough
/// for all of uniform traffic (McKeown, IEEE/ACM Trans. Networking 7(2), 1999).
#[test]
fn queues_per_output_need_one_read_an_input_only() {
    let voq = Parameters {
        input_queueing: InputQueueing::Voq,
        crossbar_reads: CrossbarReads::Port,
        ..qdr()
    };
    let passed = passes(&voq, 1);
    assert!(passed > 0.97, "{passed}");
}

/// A switch of 8 × 8 with a crossbar twice as fast as its links, in half slots, without Clearlane:
/// what it passes if each output has a buffer for so many packets, that on the link included.
fn slots_of_buffers(room: usize) -> f64 {
    const PORTS: usize = 8;
    let (mut draws, halves) = (Stream::new(5, "slots", 0), 60_000);
    let mut heads: Vec<usize> = (0..PORTS).map(|_| draws.below(8) as usize).collect();
    let (mut held, mut sending) = ([0; PORTS], [0; PORTS]);
    let mut passed = 0;
    for _ in 0..halves {
        let all: Vec<usize> = heads.clone();
        for output in 0..PORTS {
            if sending[output] == 1 {
                held[output] -= 1;
                passed += 1;
            }
            sending[output] = usize::saturating_sub(sending[output], 1);
            let wanting: Vec<_> = (0..PORTS).filter(|input| all[*input] == output).collect();
            if held[output] < room
                && let Some(input) = one_of(&mut draws, &wanting)
            {
                held[output] += 1;
                heads[input] = draws.below(8) as usize;
            }
            if sending[output] == 0 && held[output] > 0 {
                sending[output] = 2;
            }
        }
    }
    f64::from(passed) * 2.0 / f64::from(halves) / PORTS as f64
}

/// Queues at the inputs and at the outputs (CIOQ): with a crossbar twice as fast as the links next
/// to all of uniform traffic gets through, if there is room behind the crossbar. With room for one
/// packet it is as if there were none.
#[test]
fn a_fast_crossbar_needs_room_behind_it() {
    let with = |packets: Option<u32>| Parameters {
        crossbar_speedup: 200,
        output_buffer: packets.map(|packets| packets * 2112),
        ..qdr()
    };
    assert_eq!(text(uniform(&with(Some(1)), 1)), text(uniform(&with(None), 1)));
    near(passes(&with(None), 1), slots_of_buffers(1), 0.01);
    for packets in [2, 3, 4] {
        near(passes(&with(Some(packets)), 1), slots_of_buffers(packets as usize), 0.01);
    }
    let large = passes(&with(Some(1000)), 1);
    assert!(large > 0.98, "{large}");
}

/// What waits behind the crossbar is part of the queue that markers see: with as much room there as
/// anybody needs nothing waits at the inputs.
#[test]
fn packets_behind_the_crossbar_are_marked_too() {
    let marked = |output_buffer| {
        let fabric = build("star:3");
        let case = Case {
            fabric: &fabric,
            subnet: &tables(&fabric, 1, false),
            parameters: Parameters { crossbar_speedup: 400, output_buffer, ..qdr() },
            groups: vec![group(Transport::Rc)],
            programs: vec![Greedy::to(2, PACKET, 0), Greedy::to(2, PACKET, 0), idle()],
            until: UNTIL,
            width: 13,
        };
        let entry = mechanisms::by_name("iba-cc").unwrap();
        let when = Some((entry.build)(&Values::default()).unwrap());
        let control = Mechanisms { when, which: None, seed: 1 };
        case.run_with(Some(control), 1).totals.packets_marked as f64
    };
    let (at_inputs, behind) = (marked(None), marked(Some(1 << 20)));
    assert!(at_inputs > 25.0, "{at_inputs} {behind}");
    near(behind, at_inputs, 0.2);
}

/// A ring that everybody fills the same way round stands still whatever its crossbars are like, and
/// one where nobody goes further than to a neighbour never does.
#[test]
fn a_cycle_through_output_buffers_is_found() {
    let fabric = build("torus:7");
    let subnet = tables(&fabric, 1, true);
    let ring = |parameters: &Parameters, far| {
        let program = |rank: u32| -> Box<dyn RankProgram> {
            Box::new(Greedy { messages: 20, gap: PACKET, ..greedy((rank + far) % 7) })
        };
        let case = Case {
            fabric: &fabric,
            subnet: &subnet,
            parameters: Parameters { buffer: Bytes(2112), ..parameters.clone() },
            groups: vec![group(Transport::Ud)],
            programs: (0..7).map(program).collect(),
            until: UNTIL,
            width: 13,
        };
        case.run()
    };
    for input_queueing in [InputQueueing::Fifo, InputQueueing::Voq] {
        for output_buffer in [None, Some(2112), Some(5000)] {
            for crossbar_reads in [CrossbarReads::Lane, CrossbarReads::Port] {
                let p = Parameters { input_queueing, output_buffer, crossbar_reads, ..qdr() };
                let p = Parameters { va_delay: Picoseconds(1000), ..p };
                let far = ring(&p, 3);
                let Ending::Deadlock(deadlock) = &far.ending else {
                    panic!("{p:?}: {:?}", far.ending)
                };
                assert_eq!(deadlock.cycle.len(), 7, "{deadlock}");
                let near = ring(&p, 1);
                assert_eq!(near.ending, Ending::Drained, "{p:?}");
                assert_eq!(near.totals.packets_delivered, 140);
            }
        }
    }
}

/// Messages that are posted at their times: time in ps, destination, bytes and group.
struct Posts(std::vec::IntoIter<(u64, u32, u64, u16)>);

impl RankProgram for Posts {
    fn step(&mut self, now: Picoseconds, _: Event) -> Op {
        let Some((at, to, bytes, group)) = self.0.as_slice().first().copied() else {
            return Op::WaitUntil(UNTIL);
        };
        if now.0 < at {
            return Op::WaitUntil(Picoseconds(at));
        }
        self.0.next();
        Op::Put { dst: Rank(to), bytes, group, tracked: false, hints: Hints::default() }
    }
}

/// Latency, in ps, of a message of one byte for the far switch. Full packets have left it two
/// credits of the cable, and with a buffer behind the crossbar two credits of that. If `full`, a
/// full packet of host 0 has its turn before it, for which two credits are too few. If `read`, the
/// input of that packet is read for host 2 when the byte comes.
fn byte_behind(parameters: &Parameters, lanes: u8, full: bool, read: bool) -> u128 {
    let fabric = build("chain:2x4");
    let at = |ns: u64| ns * 1000;
    let mut by_host = vec![Vec::new(); 8];
    by_host[0].extend(full.then_some((at(1100), 4, 2048, 0)));
    by_host[0].extend(read.then_some((at(1110), 2, 2048, 1)));
    by_host[1].push((at(1900), 5, 1, 2));
    by_host[2].push((0, 4, 2 * 2048, 0));
    if parameters.output_buffer.is_some() {
        by_host[3].push((at(1050), 4, 2048, 0));
    }
    let mut other = group(Transport::Ud);
    other.sl = ServiceLevel::new(lanes - 1);
    let posts = |posts: Vec<_>| -> Box<dyn RankProgram> { Box::new(Posts(posts.into_iter())) };
    let case = Case {
        fabric: &fabric,
        subnet: &tables(&fabric, lanes, false),
        parameters: Parameters {
            buffer: Bytes(2 * 2112 + 2 * 64),
            cable_delay: Picoseconds(10_000_000),
            send_overhead: Picoseconds(0),
            crossbar_reads: CrossbarReads::Port,
            ..parameters.clone()
        },
        groups: vec![group(Transport::Ud), other, group(Transport::Ud)],
        programs: by_host.into_iter().map(posts).collect(),
        until: UNTIL,
        width: 13,
    };
    let outcome = case.run();
    assert_eq!(outcome.groups[2].iter().map(|slice| slice.messages).sum::<u64>(), 1);
    outcome.groups[2].iter().map(|slice| slice.latency_sum_ps).sum()
}

/// The packet whose turn it is holds its lane of its output until there are credits, or room, for
/// it. That its input is read for another output changes nothing.
#[test]
fn a_head_that_lacks_credits_holds_its_lane_while_its_input_is_read() {
    for (queueing, lanes) in [(InputQueueing::Voq, 1), (InputQueueing::Fifo, 2)] {
        for output_buffer in [None, Some(2112 + 2 * 64)] {
            let p = Parameters { input_queueing: queueing, output_buffer, ..qdr() };
            let alone = byte_behind(&p, lanes, false, false);
            let held = byte_behind(&p, lanes, true, false);
            let case = format!("{queueing:?}, {output_buffer:?}");
            assert!(held > alone, "{case}");
            assert_eq!(byte_behind(&p, lanes, true, true), held, "{case}");
        }
    }
}

/// Four hosts on two lanes cross a cable between two switches.
fn crossing(parameters: Parameters) -> Outcome {
    let fabric = build("chain:2x4");
    let mut second = group(Transport::Ud);
    second.sl = ServiceLevel::new(1);
    let case = Case {
        fabric: &fabric,
        subnet: &tables(&fabric, 2, false),
        parameters,
        groups: vec![group(Transport::Ud), second],
        programs: (0..8u32)
            .map(|rank| match rank {
                0..4 => Greedy::to(4 + rank % 3, PACKET, (rank % 2) as u16),
                _ => idle(),
            })
            .collect(),
        until: UNTIL,
        width: 13,
    };
    case.run()
}

#[test]
fn a_lane_has_its_share_of_the_buffer_of_a_port_in_whole_credits() {
    let per_lane = |bytes| crossing(Parameters { buffer: Bytes(bytes), ..qdr() });
    let per_port = |bytes| {
        let buffer_per = BufferPer::Port;
        crossing(Parameters { buffer: Bytes(bytes), buffer_per, ..qdr() })
    };
    let lane = text(per_lane(4224));
    assert_eq!(text(per_port(8448)), lane);
    // What is left over is no credit.
    assert_eq!(text(per_port(8448 + 127)), lane);
    // A credit less each is a packet less each.
    let one = text(per_port(8447));
    assert_eq!(one, text(per_lane(2112)));
    assert_ne!(one, lane);
}

#[test]
fn a_share_too_small_for_a_packet_is_refused() {
    let fabric = build("star:2");
    let subnet = tables(&fabric, 8, false);
    let refused = |buffer| {
        let setup = Setup {
            fabric: &fabric,
            forwarding: Forwarding::Tables(&subnet),
            parameters: Parameters { buffer: Bytes(buffer), buffer_per: BufferPer::Port, ..qdr() },
            groups: vec![group(Transport::Ud)],
            programs: vec![idle(), idle()],
            recording: Recording::TOTALS,
            control: None,
            queue_width_log2: 13,
            division: clearlane_sim::Division::WHOLE,
            fleet: None,
            taps: Vec::new(),
            dead_pairs: false,
            jobs: Vec::new(),
            ends_with_jobs: false,
        };
        Simulation::new(setup).err().map(|error| error.to_string())
    };
    let error = refused(16 << 10).unwrap();
    assert_eq!(
        error,
        "buffer = 2 KiB for each of the 8 lanes of a port does not hold a packet of 2082 B; raise \
         buffer or lower mtu"
    );
    assert_eq!(refused(8 * 2112), None);
}
