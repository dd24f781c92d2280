//! Adapters with several ports, hosts with one memory bus, gaps between packets: what they take, to
//! the picosecond where there is a closed form.

use crate::support::{Case, Greedy, build, delivered, dual_homed, group, idle, near, tables};
use clearlane_fabric::{Endpoint, Fabric, Node, NodeKind};
use clearlane_ib::{BitsPerSecond, Guid, LinkSpeed, LinkWidth, Picoseconds, PortNumber, wire};
use clearlane_sim::{
    Division, Ending, Forwarding, Outcome, Parameters, Recording, Setup, Simulation, preset,
};
use clearlane_workload::{Event, Gap, Handle, Hints, Op, Rank, RankProgram, Transport};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// A byte on a 4x QDR link.
const BYTE: u64 = 250;

fn qdr() -> Parameters {
    let base = (preset::by_name("qdr").unwrap().parameters)();
    let none = Picoseconds(0);
    Parameters { send_overhead: none, receive_overhead: none, adapter_ports: None, ..base }
}

/// Posts RDMA WRITEs at once and waits for all; tells when they were over.
struct Puts {
    todo: VecDeque<(u32, u64, Hints)>,
    handles: Vec<Handle>,
    waits: bool,
    ended: Arc<Mutex<Vec<u64>>>,
}

impl RankProgram for Puts {
    fn step(&mut self, now: Picoseconds, event: Event) -> Op {
        if let Event::Posted(handle) = event {
            self.handles.push(handle);
        }
        match self.todo.pop_front() {
            Some((dst, bytes, hints)) => {
                Op::Put { dst: Rank(dst), bytes, group: 0, tracked: true, hints }
            }
            None if self.waits => {
                self.ended.lock().unwrap().push(now.0);
                Op::Done
            }
            None => {
                self.waits = true;
                Op::WaitAll(std::mem::take(&mut self.handles).into())
            }
        }
    }
}

fn by(engine: u8) -> Hints {
    Hints { engine: Some(engine), ..Hints::default() }
}

/// Runs lists of RDMA WRITEs at the first hosts. Returns when each was over, the first first.
fn puts(fabric: &Fabric, p: &Parameters, lists: &[Vec<(u32, u64, Hints)>]) -> (Vec<u64>, Outcome) {
    let ended = Arc::new(Mutex::new(Vec::new()));
    let hosts = fabric.ids(NodeKind::ChannelAdapter).count();
    let program = |rank: usize| -> Box<dyn RankProgram> {
        let Some(todo) = lists.get(rank) else { return idle() };
        let (todo, ended) = (todo.clone().into(), Arc::clone(&ended));
        Box::new(Puts { todo, handles: Vec::new(), waits: false, ended })
    };
    let outcome = Case {
        fabric,
        subnet: &tables(fabric, 1, false),
        parameters: p.clone(),
        groups: vec![group(Transport::Rc)],
        programs: (0..hosts).map(program).collect(),
        until: Picoseconds(100_000_000_000),
        width: 13,
    }
    .run();
    assert_eq!(outcome.ending, Ending::Drained);
    let mut ended = ended.lock().unwrap().clone();
    ended.sort_unstable();
    (ended, outcome)
}

/// What full packets of so many bytes of payload take on a link.
fn wire(bytes: u64) -> u64 {
    let packets = bytes.div_ceil(2048).max(1);
    (bytes + packets * u64::from(wire::RC_DATA)) * BYTE
}

/// The picosecond that an operation takes at least, the way past one switch there and of the ACK
/// back.
fn round_trip(p: &Parameters) -> u64 {
    1 + 2 * (2 * p.cable_delay.0 + p.switch_delay.0) + u64::from(wire::RC_ACK) * BYTE
}

const MIB: u64 = 1 << 20;

#[test]
fn four_links_carry_four_times() {
    let fabric = build("torus:2x2,hosts=2,links=4");
    let p = qdr();
    for (engines, links) in [([0, 0, 0, 0], 1), ([0, 1, 0, 1], 2), ([0, 1, 2, 3], 4)] {
        let list = engines.map(|engine| (1, MIB, by(engine))).to_vec();
        let (ended, _) = puts(&fabric, &p, &[list]);
        // The last link begins with its first message when that is posted, a picosecond a message.
        let begun = links - 1;
        let expected = begun + 4 / links * wire(MIB) + round_trip(&p);
        assert_eq!(ended, [expected], "{links} links");
    }
    // One port carries all unless several are asked for.
    let one = Parameters { adapter_ports: Some(1), ..p.clone() };
    let list = (0..4).map(|engine| (1, MIB, by(engine))).collect();
    assert_eq!(puts(&fabric, &one, &[list]).0, [4 * wire(MIB) + round_trip(&p)]);
}

#[test]
fn ports_of_one_number_carry_what_goes_between_two_hosts() {
    let fabric = build("torus:2x2,hosts=3,links=4");
    // Host 0 to hosts 1 and 2 at once, each by a port of its own.
    let lists = [vec![(1, MIB, Hints::default()), (2, MIB, Hints::default())]];
    let p = qdr();
    assert_eq!(puts(&fabric, &p, &lists).0, [1 + wire(MIB) + round_trip(&p)]);
}

#[test]
fn an_adapter_on_two_switches_sends_by_both() {
    let fabric = dual_homed(4, 1);
    let p = qdr();
    // Host 0 is at switches 0 and 1, host 1 at 1 and 2: a way for each port.
    let list = vec![(1, MIB, by(0)), (1, MIB, by(1))];
    let (ended, _) = puts(&fabric, &p, &[list]);
    let further = 2 * (p.cable_delay.0 + p.switch_delay.0);
    let expected = 1 + wire(MIB) + round_trip(&p) + further;
    assert_eq!(ended, [expected]);
}

#[test]
fn what_a_bus_reads_and_what_it_writes_get_half_each() {
    let fabric = build("star:3");
    let subnet = tables(&fabric, 1, false);
    let until = Picoseconds(4_000_000_000);
    let shares = |memory_rate: Option<BitsPerSecond>| {
        let packet = 2082 * BYTE;
        let outcome = Case {
            fabric: &fabric,
            subnet: &subnet,
            parameters: Parameters { memory_rate, ..qdr() },
            groups: vec![group(Transport::Ud)],
            programs: vec![Greedy::to(1, packet, 0), idle(), Greedy::to(0, packet, 0)],
            until,
            width: 13,
        }
        .run();
        let full = until.0 as f64 / 2.0 / packet as f64 * 2048.0;
        [(0, 1), (2, 0)].map(|(from, to)| delivered(&outcome, from, to, 5) / full)
    };
    let link = BitsPerSecond(32_000_000_000);
    for (memory, each) in [(None, 1.0), (Some(link), 0.5), (Some(BitsPerSecond(link.0 / 2)), 0.25)]
    {
        shares(memory).into_iter().for_each(|share| near(share, each, 0.01));
    }
}

#[test]
fn ports_that_read_take_turns() {
    let fabric = build("torus:2x2,hosts=2,links=4");
    let link = BitsPerSecond(32_000_000_000);
    let half = Some(BitsPerSecond(link.0 / 2));
    for (p, times) in [
        (Parameters { dma_rate: Some(link), ..qdr() }, 1.0),
        (Parameters { memory_rate: Some(link), ..qdr() }, 1.0),
        // Who has just sent wants the bus again before it is free.
        (Parameters { memory_rate: half, ..qdr() }, 2.0),
    ] {
        // Three ports of host 0 send as fast as their memory lets them: they end together.
        let list = (0..3).map(|engine| (1, MIB, by(engine))).collect();
        let (ended, _) = puts(&fabric, &p, &[list]);
        near(ended[0] as f64, 3.0 * times * wire(MIB) as f64, 0.01);
        let lists = [vec![(1, MIB, by(0)), (1, MIB / 2, by(1))]];
        let (ended, _) = puts(&fabric, &p, &lists);
        near(ended[0] as f64, 1.5 * times * wire(MIB) as f64, 0.01);
    }
}

/// Midway, three ports of host 0 have sent as many packets, whatever it is that limits them.
#[test]
fn ports_that_read_have_as_many_turns() {
    let fabric = build("torus:2x2,hosts=2,links=4");
    let link = BitsPerSecond(32_000_000_000);
    let half = BitsPerSecond(link.0 / 2);
    let limits = [
        Parameters { dma_rate: Some(link), ..qdr() },
        Parameters { memory_rate: Some(link), ..qdr() },
        // Who has just sent wants the bus again before it is free.
        Parameters { memory_rate: Some(half), ..qdr() },
    ];
    for (limit, parameters) in limits.into_iter().enumerate() {
        let todo = (0..3).map(|engine| (1, MIB, by(engine))).collect();
        let ended = Arc::new(Mutex::new(Vec::new()));
        let mut programs: Vec<_> = (0..8).map(|_| idle()).collect();
        programs[0] = Box::new(Puts { todo, handles: Vec::new(), waits: false, ended });
        let outcome = Case {
            fabric: &fabric,
            subnet: &tables(&fabric, 1, false),
            parameters,
            groups: vec![group(Transport::Rc)],
            programs,
            until: Picoseconds(400_000_000),
            width: 13,
        }
        .run();
        let host = fabric.ids(NodeKind::ChannelAdapter).next().unwrap();
        let ports = outcome.channels.iter().filter(|c| c.node == host.0 && c.port <= 3);
        let sent: Vec<u64> = ports.map(|channel| channel.port_xmit_pkts).collect();
        let (least, most) = (*sent.iter().min().unwrap(), *sent.iter().max().unwrap());
        assert!(sent.len() == 3 && least > 100 && most - least <= 1, "{limit}: {sent:?}");
    }
}

#[test]
fn a_gap_is_as_many_thousandths_of_a_packet() {
    let fabric = build("star:2");
    let p = qdr();
    for (gap, apart) in [(0, 1000), (500, 1500), (2000, 3000)] {
        let hints = Hints { gap: Gap(gap), ..Hints::default() };
        let list = vec![(1, 8 * 2048, hints)];
        let (ended, _) = puts(&fabric, &p, &[list]);
        let packet = wire(2048);
        assert_eq!(ended, [7 * packet * apart / 1000 + packet + round_trip(&p)], "{gap}");
    }
}

#[test]
fn a_gap_of_one_message_leaves_the_link_to_another() {
    let fabric = build("star:3");
    let p = qdr();
    let slow = Hints { gap: Gap(1000), ..Hints::default() };
    let list = vec![(1, MIB, slow), (2, MIB, Hints::default())];
    let (ended, _) = puts(&fabric, &p, std::slice::from_ref(&list));
    // After its gap a queue takes its turn: behind another it has one packet in three, until that
    // one is done, and then one in two.
    near(ended[0] as f64, 2.5 * wire(MIB) as f64, 0.01);
    // An engine that serves one message at a time is idle in the gap.
    let one = Parameters { injection_engines: Some(1), ..p };
    let (ended, _) = puts(&fabric, &one, &[list]);
    near(ended[0] as f64, 3.0 * wire(MIB) as f64, 0.01);
}

#[test]
fn four_packets_of_the_pacing_paper_fit_into_its_buffer() {
    let p = (preset::by_name("nsim-2014").unwrap().parameters)();
    assert_eq!(p.payload_max(Transport::Rc), 2016);
    let packet = p.payload_max(Transport::Rc) + p.header_bytes(Transport::Rc);
    assert_eq!(u64::from(wire::credits(packet) * wire::CREDIT_UNIT) * 4, p.buffer.0);
}

/// Hosts with eight ports each, all first ports at one switch, all second ones at another, …
fn planes(hosts: u8) -> Fabric {
    let mut fabric = Fabric::new();
    let mut add = |kind, guid, name: String, ports| {
        fabric.add_node(Node::new(kind, Guid(guid), &name, ports)).unwrap()
    };
    let planes: Vec<_> =
        (0..8u8).map(|n| add(NodeKind::Switch, 1 + u64::from(n), format!("S{n}"), hosts)).collect();
    let adapters: Vec<_> = (0..hosts)
        .map(|n| add(NodeKind::ChannelAdapter, 100 + u64::from(n), format!("H{n:02}"), 8))
        .collect();
    let end = |node, port| Endpoint { node, port: PortNumber::new(port).unwrap() };
    for (host, adapter) in (1..).zip(&adapters) {
        for (plane, switch) in (1..).zip(&planes) {
            let (a, b) = (end(*adapter, plane), end(*switch, host));
            fabric.join(a, b, LinkWidth::X4, LinkSpeed::Qdr).unwrap();
        }
    }
    fabric
}

#[test]
fn more_ports_than_a_switch_has_places_for_are_refused_with_the_remedy() {
    let built = |hosts: u8, adapter_ports| {
        let fabric = planes(hosts);
        let subnet = tables(&fabric, 1, false);
        let setup = Setup {
            fabric: &fabric,
            forwarding: Forwarding::Tables(&subnet),
            parameters: Parameters { adapter_ports, ..qdr() },
            groups: vec![group(Transport::Ud)],
            programs: (0..hosts).map(|_| idle()).collect(),
            recording: Recording::TOTALS,
            control: None,
            queue_width_log2: 13,
            division: Division::of_threads(3),
            fleet: None,
            taps: Vec::new(),
            dead_pairs: false,
            jobs: Vec::new(),
            ends_with_jobs: false,
        };
        Simulation::new(setup).map(|simulation| simulation.partitions())
    };
    // A home has 512 places: for 56 hosts and 8 ports of each, not for 57.
    assert_eq!(built(56, None), Ok(3));
    assert_eq!(built(57, Some(4)), Ok(3));
    let said = built(57, None).unwrap_err().to_string();
    assert!(said.contains("switch S0 have 456 ports") && said.contains("lower adapter_ports"));
}

/// Planes that no cable joins: only hosts know both sides, and runs are divided between them.
#[test]
fn planes_are_joined_by_their_hosts_alone() {
    let fabric = planes(4);
    let p = qdr();
    let list = (0..8).map(|engine| (1, MIB, by(engine))).collect();
    let (ended, _) = puts(&fabric, &p, &[list]);
    assert_eq!(ended, [7 + wire(MIB) + round_trip(&p)]);
}
