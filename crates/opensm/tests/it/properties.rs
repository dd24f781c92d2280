//! Whatever lies in the folder and whatever is cut: what is programmed joins every pair of hosts
//! that cables join, leads nothing in circles, and no circle of channels waits for itself. All of
//! it is looked at by code of its own, from what OpenSM would be told.

use clearlane_fabric::{Endpoint, Fabric, Node, NodeId, NodeKind, topologies};
use clearlane_ib::random::Stream;
use clearlane_ib::{Guid, LinkSpeed, LinkWidth, Lmc, PortNumber};
use clearlane_opensm::discovered::Lists;
use clearlane_opensm::engine::{Engine, Source};
use clearlane_opensm::folder::Files;
use clearlane_opensm::options::Options;
use clearlane_subnet::Subnet;
use clearlane_subnet::engines::{RouteOptions, route};
use clearlane_subnet::formats::{lfts, path_groups, sl2vl};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// A random tree of switches, more cables and hosts at random.
fn random_fabric(switches: u64, cables: u64, hosts: u64, seed: u64) -> Fabric {
    let mut fabric = Fabric::new();
    let mut stream = Stream::new(seed, "fabric", 0);
    for at in 0..switches + hosts {
        let switch = at < switches;
        let kind = if switch { NodeKind::Switch } else { NodeKind::ChannelAdapter };
        let ports = if switch { 40 } else { 1 };
        let node = Node::new(kind, Guid(0x100 * (at + 1)), format!("n{at}"), ports);
        fabric.add_node(node).unwrap();
    }
    let mut free = vec![1u8; (switches + hosts) as usize];
    let mut join = |a: u64, b: u64| {
        if a != b && free[a as usize] <= 40 && free[b as usize] <= 40 {
            let end = |at: u64| Endpoint {
                node: NodeId(at as u32),
                port: PortNumber::new(free[at as usize]).unwrap(),
            };
            fabric.join(end(a), end(b), LinkWidth::X4, LinkSpeed::Qdr).unwrap();
            free[a as usize] += 1;
            free[b as usize] += 1;
        }
    };
    (1..switches).for_each(|at| join(at, stream.below(at)));
    (0..hosts).for_each(|host| join(stream.below(switches), switches + host));
    (0..cables).for_each(|_| join(stream.below(switches), stream.below(switches)));
    fabric
}

/// What `clearlane route` writes of a subnet.
fn written(fabric: &Fabric, subnet: &Subnet) -> Files {
    type Writer = fn(&Fabric, &Subnet, &mut dyn std::io::Write) -> std::io::Result<()>;
    let text = |write: Writer| {
        let mut bytes = Vec::new();
        write(fabric, subnet, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    Files {
        tables: text(lfts::write),
        lanes: Some(text(sl2vl::write)),
        groups: Some(text(path_groups::write)),
    }
}

/// One of the files cut off, or a few of its bytes made others.
fn spoil(files: &mut Files, how: u64, stream: &mut Stream) {
    let text = match stream.below(3) {
        0 => &mut files.tables,
        1 => files.lanes.as_mut().unwrap(),
        _ => files.groups.as_mut().unwrap(),
    };
    if text.is_empty() {
        return;
    }
    let mut bytes = text.clone().into_bytes();
    match how {
        0 => {}
        1 => bytes.truncate(stream.below(bytes.len() as u64) as usize),
        _ => {
            for _ in 0..how {
                let at = stream.below(bytes.len() as u64) as usize;
                bytes[at] = b"0123456789abcdefx \n#:"[stream.below(21) as usize];
            }
        }
    }
    *text = String::from_utf8(bytes).unwrap();
}

/// Cuts every cable between switches with this chance, and says how many lanes each has left.
fn damage(lists: &mut Lists, percent: u64, lanes: &[u8], stream: &mut Stream) {
    let switches: BTreeSet<u64> =
        lists.nodes.iter().filter(|node| node.is_switch == 1).map(|node| node.guid).collect();
    let inner = |a: u64, b: u64| switches.contains(&a) && switches.contains(&b);
    lists.cables.retain(|cable| !inner(cable.a, cable.b) || stream.below(100) >= percent);
    for cable in &mut lists.cables {
        cable.lanes = lanes[stream.below(lanes.len() as u64) as usize];
    }
}

/// By (switch, port): where its cable leads, and its lanes.
type Cables = BTreeMap<(u64, u8), (u64, u8, u8)>;

/// What an engine has OpenSM program, followed packet by packet.
struct Walk<'a> {
    engine: &'a Engine,
    lists: &'a Lists,
    cables: Cables,
    switches: BTreeSet<u64>,
}

impl<'a> Walk<'a> {
    fn new(engine: &'a Engine, lists: &'a Lists) -> Self {
        let mut cables = Cables::new();
        for cable in &lists.cables {
            cables.insert((cable.a, cable.a_port), (cable.b, cable.b_port, cable.lanes));
            cables.insert((cable.b, cable.b_port), (cable.a, cable.a_port, cable.lanes));
        }
        let nodes = lists.nodes.iter().filter(|node| node.is_switch == 1);
        Walk { engine, lists, cables, switches: nodes.map(|node| node.guid).collect() }
    }

    fn out(&self, switch: u64, lid: u16) -> Option<u8> {
        let port = self.engine.table(Guid(switch)).expect("a table").get(usize::from(lid))?;
        (*port != u8::MAX).then_some(*port)
    }

    /// The switches that cables lead to from this one.
    fn connected(&self, from: u64) -> BTreeSet<u64> {
        let (mut seen, mut queue) = (BTreeSet::from([from]), vec![from]);
        while let Some(at) = queue.pop() {
            for (_, (next, ..)) in self.cables.range((at, 0)..=(at, u8::MAX)) {
                if self.switches.contains(next) && seen.insert(*next) {
                    queue.push(*next);
                }
            }
        }
        seen
    }

    /// Channels (switch, output, lane) between switches on the way to a LID; nothing if it does not
    /// get there.
    fn path(&self, from: (u64, u8), to: (u64, u8), lid: u16, sl: u8) -> Option<Vec<Channel>> {
        let (mut at, mut input, _) = *self.cables.get(&from)?;
        let mut channels = Vec::new();
        for _ in 0..=self.switches.len() {
            let port = self.out(at, lid)?;
            let (next, next_port, lanes) = *self.cables.get(&(at, port))?;
            let row = self.engine.lanes(Guid(at), input, port).expect("ports that are there");
            let lane = row[usize::from(sl)];
            assert!(lane < lanes, "lane {lane} on a link of {lanes}");
            if !self.switches.contains(&next) {
                return ((next, next_port) == to).then_some(channels);
            }
            channels.push((at, port, lane));
            (at, input) = (next, next_port);
        }
        None
    }

    /// All that has to hold.
    fn is_good(&self) {
        let hosts: Vec<_> =
            self.lists.ports.iter().filter(|port| !self.switches.contains(&port.node)).collect();
        let mut after: BTreeMap<Channel, BTreeSet<Channel>> = BTreeMap::new();
        for source in &hosts {
            let Some((leaf, ..)) = self.cables.get(&(source.node, source.port)) else { continue };
            let near = self.connected(*leaf);
            for target in hosts.iter().filter(|target| target.guid != source.guid) {
                let Some((far, ..)) = self.cables.get(&(target.node, target.port)) else {
                    continue;
                };
                for offset in 0..1u16 << target.lmc {
                    let (slid, dlid) = (source.lid + offset, target.lid + offset);
                    let sl = self.engine.path_sl(0, slid, dlid);
                    let ends = ((source.node, source.port), (target.node, target.port));
                    let path = self.path(ends.0, ends.1, dlid, sl);
                    assert_eq!(path.is_some(), near.contains(far), "{slid} to {dlid}");
                    // The acknowledgement has the SL of what it acknowledges.
                    let back = self.path(ends.1, ends.0, slid, sl);
                    for path in [path, back].into_iter().flatten() {
                        for pair in path.windows(2) {
                            after.entry(pair[0]).or_default().insert(pair[1]);
                        }
                    }
                }
            }
        }
        assert!(!has_cycle(&after), "a credit loop");
        self.leads_nothing_in_circles();
    }

    fn leads_nothing_in_circles(&self) {
        let lids = self.engine.table(Guid(*self.switches.first().unwrap())).unwrap().len();
        for lid in 1..lids as u16 {
            for start in &self.switches {
                let (mut at, mut steps) = (*start, 0);
                while let Some(port) = self.out(at, lid) {
                    match self.cables.get(&(at, port)) {
                        Some((next, ..)) if self.switches.contains(next) => at = *next,
                        _ => break,
                    }
                    steps += 1;
                    assert!(steps <= self.switches.len(), "LID {lid} circles from {start:#x}");
                }
            }
        }
    }
}

type Channel = (u64, u8, u8);

/// Whether taking away what waits for nothing, again and again, leaves something.
fn has_cycle(after: &BTreeMap<Channel, BTreeSet<Channel>>) -> bool {
    let mut left = after.clone();
    loop {
        let stay: BTreeSet<Channel> = left.keys().copied().collect();
        left.values_mut().for_each(|next| next.retain(|channel| stay.contains(channel)));
        let before = left.len();
        left.retain(|_, next| !next.is_empty());
        if left.is_empty() || left.len() == before {
            return !left.is_empty();
        }
    }
}

fn engine(text: &str) -> Engine {
    Engine::new(Options::parse(text).unwrap())
}

fn options(lmc: u8, lanes: u8) -> RouteOptions {
    RouteOptions { lmc: Lmc::new(lmc).unwrap(), lanes, ..RouteOptions::default() }
}

const MANY: [u8; 4] = [1, 2, 4, 8];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Stale and spoilt files of any engine on a fabric that is damaged twice.
    #[test]
    fn what_is_programmed_is_good_whatever_lies_in_the_folder(
        seed in 0u64..1_000_000,
        (switches, cables, hosts) in (1u64..9, 0u64..10, 0u64..8),
        of in proptest::sample::select(vec!["up-down", "min-hop", "layered"]),
        lmc in 0u8..3,
        (cut, spoilt, qos) in (0u64..40, 0u64..6, proptest::bool::weighted(0.8)),
    ) {
        let fabric = random_fabric(switches, cables, hosts, seed);
        let subnet = route(of, &fabric, &options(lmc, 8)).unwrap();
        let whole = Lists::of(&fabric, &subnet.lids, 8);
        let mut stream = Stream::new(seed, "damage", 0);
        let mut files = written(&fabric, &subnet);
        let mut engine = engine("lanes=8");
        engine.route(whole.discovered().unwrap(), qos, Ok(files.clone())).unwrap();
        if of == "up-down" {
            prop_assert_eq!(engine.source(), Some(Source::Files));
        }
        Walk::new(&engine, &whole).is_good();
        for percent in [0, cut] {
            let mut lists = whole.clone();
            spoil(&mut files, spoilt, &mut stream);
            damage(&mut lists, percent, &MANY, &mut stream);
            engine.route(lists.discovered().unwrap(), qos, Ok(files.clone())).unwrap();
            Walk::new(&engine, &lists).is_good();
        }
    }

    /// A torus by dimension order, which is good with its datelines alone.
    #[test]
    fn a_torus_keeps_its_datelines_or_gets_a_safe_engine(
        seed in 0u64..1_000_000,
        spec in proptest::sample::select(vec!["torus:5", "torus:4x3", "torus:3x3x3", "torus:5x2"]),
        (cut, spoilt) in (0u64..2, 0u64..5),
        lanes in proptest::sample::select(MANY.to_vec()),
        safe in proptest::sample::select(vec!["up-down", "layered"]),
    ) {
        let fabric = topologies::build(spec).unwrap();
        let subnet = route("dor", &fabric, &options(0, 8)).unwrap();
        let mut lists = Lists::of(&fabric, &subnet.lids, lanes);
        let mut stream = Stream::new(seed, "damage", 0);
        let mut files = written(&fabric, &subnet);
        spoil(&mut files, spoilt, &mut stream);
        let whole = lists.cables.len();
        damage(&mut lists, cut * 10, &[lanes], &mut stream);
        let mut engine = engine(&format!("safe={safe}"));
        engine.route(lists.discovered().unwrap(), true, Ok(files)).unwrap();
        Walk::new(&engine, &lists).is_good();
        if cut == 0 && spoilt == 0 && lanes == 8 {
            prop_assert_eq!(engine.source(), Some(Source::Files));
        }
        // A ring that was cut twice has two rows of switches left: no cycle, and their files hold.
        if lanes == 1 && spec.contains('5') && lists.cables.len() == whole {
            prop_assert_ne!(engine.source(), Some(Source::Files));
        }
    }

    /// Computed at once on whatever is left, the same both ways.
    #[test]
    fn vftree_is_symmetric_and_good_on_what_is_left(
        seed in 0u64..1_000_000,
        spec in proptest::sample::select(
            vec!["leaf-spine:leaves=4,hosts=2,spines=2", "xgft:2,2,2;1,2,2", "torus:3x3"]
        ),
        (cut, lmc, lanes) in (0u64..50, 0u8..2, 1u8..9),
        narrow in any::<bool>(),
    ) {
        let fabric = topologies::build(spec).unwrap();
        let subnet = route("up-down", &fabric, &options(lmc, 1)).unwrap();
        let mut lists = Lists::of(&fabric, &subnet.lids, 8);
        let mut stream = Stream::new(seed, "damage", 0);
        damage(&mut lists, cut, if narrow { &MANY } else { &MANY[3..] }, &mut stream);
        let mut engine = engine(&format!("mode=vftree lanes={lanes}"));
        engine.route(lists.discovered().unwrap(), true, Err("not asked for".into())).unwrap();
        prop_assert_eq!(engine.source(), Some(Source::VfTree));
        Walk::new(&engine, &lists).is_good();
        for (a, _) in subnet.lids.iter() {
            for (b, _) in subnet.lids.iter() {
                let level = engine.path_sl(0, a.value(), b.value());
                prop_assert_eq!(level, engine.path_sl(0, b.value(), a.value()));
                prop_assert!(level < lanes);
            }
        }
    }
}
