//! What the tests of this folder share: a router of their own, scripted senders, and a runner.
#![allow(dead_code, reason = "each test file uses its part")]

use clearlane_fabric::{Endpoint, Fabric, Node, NodeKind, topologies};
use clearlane_ib::{Guid, LinkSpeed, LinkWidth, Lmc, Picoseconds, PortNumber, ServiceLevel};
use clearlane_sim::{
    Division, Forwarding, GroupSettings, Hosts, Mechanisms, Outcome, Parameters, Recording, Setup,
    Simulation,
};
use clearlane_subnet::{ForwardingTables, LidMap, PathSl, SlToVl, Subnet, VlArbitration};
use clearlane_workload::{Event, Hints, Op, Rank, RankProgram, Transport};
use std::collections::VecDeque;

pub fn build(spec: &str) -> Fabric {
    topologies::build(spec).unwrap()
}

/// Shortest paths, the lowest port among equals: independent of the routing engines under test
/// elsewhere, and on a ring of the same turning sense for everybody if `clockwise`.
pub fn tables(fabric: &Fabric, lanes: u8, clockwise: bool) -> Subnet {
    let lids = LidMap::assign(fabric, Lmc::default()).unwrap();
    let mut tables = ForwardingTables::empty(fabric, lids.table_len());
    for (lid, owner) in lids.iter() {
        let mut distance = vec![u32::MAX; fabric.nodes().len()];
        distance[owner.end.node.index()] = 0;
        let mut queue = VecDeque::from([owner.end.node]);
        while let Some(node) = queue.pop_front() {
            for (port, _, peer) in fabric.neighbours(node) {
                let step = distance[node.index()] + 1;
                // By the port that owns the LID, and through no other adapter.
                let own = node != owner.end.node || fabric.node(node).is_switch();
                let leads = own || port == owner.end.port;
                let through = fabric.node(peer.node).is_switch() && leads;
                if through && distance[peer.node.index()] == u32::MAX {
                    distance[peer.node.index()] = step;
                    queue.push_back(peer.node);
                }
            }
        }
        for switch in fabric.ids(NodeKind::Switch) {
            if switch == owner.end.node {
                tables.set(switch, lid, Some(PortNumber::MANAGEMENT));
                continue;
            }
            let mut best = None;
            for (port, _, peer) in fabric.neighbours(switch) {
                let away = distance[peer.node.index()];
                let exit = peer == owner.end
                    || peer.node == owner.end.node && fabric.node(peer.node).is_switch();
                let forward = clockwise && fabric.node(peer.node).is_switch() && port.value() == 1;
                let cost = if exit {
                    0
                } else if forward {
                    1
                } else {
                    away.saturating_add(2)
                };
                let usable = exit || fabric.node(peer.node).is_switch();
                if usable && best.is_none_or(|(known, _)| cost < known) {
                    best = Some((cost, port));
                }
            }
            tables.set(switch, lid, best.map(|(_, port)| port));
        }
    }
    Subnet {
        adaptive: None,
        sl_to_vl: SlToVl::modulo(fabric, lanes),
        vl_arbitration: VlArbitration::equal(lanes),
        path_sl: PathSl::Uniform(ServiceLevel::default()),
        engine: "test".into(),
        notes: Vec::new(),
        remarks: Vec::new(),
        unknown_switches: Vec::new(),
        lids,
        tables,
    }
}

/// Two switches, H1 H2 | H3 H4 H5 (seed 002, figure 4).
pub fn parking_lot() -> Fabric {
    let mut fabric = Fabric::new();
    let mut add = |kind, guid, name: &str, ports| {
        fabric.add_node(Node::new(kind, Guid(guid), name, ports)).unwrap()
    };
    let s1 = add(NodeKind::Switch, 1, "S1", 8);
    let s2 = add(NodeKind::Switch, 2, "S2", 8);
    let host = |n: u64| format!("H{n}");
    let hosts: Vec<_> =
        (1..=5).map(|n| add(NodeKind::ChannelAdapter, 10 + n, &host(n), 1)).collect();
    let end = |node, port| Endpoint { node, port: PortNumber::new(port).unwrap() };
    let mut join = |a, b| fabric.join(a, b, LinkWidth::X4, LinkSpeed::Qdr).unwrap();
    join(end(s1, 8), end(s2, 8));
    for (index, host) in hosts.iter().enumerate() {
        let switch = if index < 2 { s1 } else { s2 };
        join(end(switch, index as u8 + 1), end(*host, 1));
    }
    fabric
}

/// Switches in a circle, and hosts each of which is plugged into two neighbours by a port each.
pub fn dual_homed(switches: u8, hosts: u8) -> Fabric {
    let mut fabric = Fabric::new();
    let mut add = |kind, guid, name: String, ports| {
        fabric.add_node(Node::new(kind, Guid(guid), &name, ports)).unwrap()
    };
    let all: Vec<_> = (0..switches)
        .map(|n| add(NodeKind::Switch, 1 + u64::from(n), format!("S{n}"), 2 + 2 * hosts))
        .collect();
    let adapters: Vec<_> = (0..switches * hosts)
        .map(|n| add(NodeKind::ChannelAdapter, 1000 + u64::from(n), format!("H{n:02}"), 2))
        .collect();
    let end = |node, port| Endpoint { node, port: PortNumber::new(port).unwrap() };
    let mut join = |a, b| fabric.join(a, b, LinkWidth::X4, LinkSpeed::Qdr).unwrap();
    for at in 0..switches {
        let next = all[usize::from((at + 1) % switches)];
        join(end(all[usize::from(at)], 1), end(next, 2));
        for host in 0..hosts {
            let adapter = adapters[usize::from(at * hosts + host)];
            join(end(adapter, 1), end(all[usize::from(at)], 3 + host));
            join(end(adapter, 2), end(next, 3 + hosts + host));
        }
    }
    fabric
}

/// Sends the same message again and again, never faster than the link, from `start` on.
pub struct Greedy {
    pub to: u32,
    pub bytes: u64,
    pub gap: u64,
    pub start: u64,
    pub group: u16,
    pub messages: u64,
    pub next: u64,
}

pub fn greedy(to: u32) -> Greedy {
    Greedy { to, bytes: 2048, gap: 1, start: 0, group: 0, messages: u64::MAX, next: 0 }
}

impl Greedy {
    pub fn to(to: u32, gap: u64, group: u16) -> Box<dyn RankProgram> {
        Box::new(Greedy { gap, group, ..greedy(to) })
    }
}

impl RankProgram for Greedy {
    fn step(&mut self, now: Picoseconds, _: Event) -> Op {
        if self.messages == 0 {
            return Op::Done;
        }
        self.next = self.next.max(self.start);
        if now.0 < self.next {
            return Op::WaitUntil(Picoseconds(self.next));
        }
        self.next += self.gap;
        self.messages -= 1;
        let (dst, hints) = (Rank(self.to), Hints::default());
        Op::Put { dst, bytes: self.bytes, group: self.group, tracked: false, hints }
    }
}

/// One program after the other.
pub struct Then(pub Greedy, pub Greedy);

impl RankProgram for Then {
    fn step(&mut self, now: Picoseconds, event: Event) -> Op {
        match self.0.step(now, event) {
            Op::Done => self.1.step(now, event),
            op => op,
        }
    }
}

/// One message at a given time.
pub fn one_message(to: u32, bytes: u64, at: u64) -> Box<dyn RankProgram> {
    Box::new(Greedy { to, bytes, gap: 1, start: at, group: 0, messages: 1, next: 0 })
}

/// Does nothing.
pub struct Idle;

impl RankProgram for Idle {
    fn step(&mut self, _: Picoseconds, _: Event) -> Op {
        Op::Done
    }
}

pub fn idle() -> Box<dyn RankProgram> {
    Box::new(Idle)
}

pub struct Case<'a> {
    pub fabric: &'a Fabric,
    pub subnet: &'a Subnet,
    pub parameters: Parameters,
    pub groups: Vec<GroupSettings>,
    pub programs: Vec<Box<dyn RankProgram>>,
    pub until: Picoseconds,
    pub width: u32,
}

pub fn group(transport: Transport) -> GroupSettings {
    GroupSettings { transport, sl: None }
}

impl Case<'_> {
    pub fn run(self) -> Outcome {
        self.run_in_steps(1)
    }

    pub fn run_in_steps(self, steps: u64) -> Outcome {
        self.run_with(None, steps)
    }

    pub fn run_with(self, control: Option<Mechanisms>, steps: u64) -> Outcome {
        let setup = Setup {
            fabric: self.fabric,
            forwarding: Forwarding::Tables(self.subnet),
            parameters: self.parameters,
            groups: self.groups,
            programs: self.programs,
            recording: Recording {
                slice: Picoseconds(self.until.0 / 10),
                slices: 10,
                grows: false,
                flow_bytes_max: 80_000,
            },
            control,
            queue_width_log2: self.width,
            division: Division::WHOLE,
            fleet: None,
            taps: Vec::new(),
            dead_pairs: false,
            jobs: Vec::new(),
            ends_with_jobs: false,
        };
        let mut simulation = Simulation::new(setup).unwrap();
        for step in 1..=steps {
            simulation.run_until(Picoseconds(self.until.0 * step / steps));
        }
        simulation.finish()
    }
}

/// Payload delivered from one rank to another in the last `tenths` tenths of the run.
pub fn delivered(outcome: &Outcome, source: u32, destination: u32, tenths: usize) -> f64 {
    let flow = |f: &&clearlane_sim::FlowRecord| {
        (f.source, f.destination) == (Rank(source), Rank(destination))
    };
    let flow = outcome.flows.iter().find(flow).expect("the flow exists");
    flow.delivered_payload_bytes[10 - tenths..].iter().sum::<u64>() as f64
}

pub fn ends(hosts: &Hosts) -> Vec<Endpoint> {
    hosts.ends().to_vec()
}

pub fn near(value: f64, expected: f64, tolerance: f64) {
    let off = (value - expected).abs() / expected;
    assert!(off <= tolerance, "{value} is {:.2} % off {expected}", off * 100.0);
}
