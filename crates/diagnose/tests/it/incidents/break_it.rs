//! Breaks one thing in a healthy fabric, or two.

use clearlane_fabric::{Endpoint, Fabric, LinkId, NodeId, NodeKind, damage, structure, topologies};
use clearlane_ib::random::Stream;
use clearlane_ib::{Lid, LinkSpeed, LinkWidth, PortNumber};
use clearlane_subnet::Subnet;
use clearlane_subnet::engines::{RouteOptions, route};

/// What can be wrong.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Cause {
    SlowHostLink,
    SlowTrunk,
    CrowdedSwitch,
    Loop,
    DeadEntries,
    TablesOfYesterday,
    MissingCables,
    SlowSwitch,
    Two,
}

pub const CAUSES: [Cause; 9] = [
    Cause::SlowHostLink,
    Cause::SlowTrunk,
    Cause::CrowdedSwitch,
    Cause::Loop,
    Cause::DeadEntries,
    Cause::TablesOfYesterday,
    Cause::MissingCables,
    Cause::SlowSwitch,
    Cause::Two,
];

impl Cause {
    /// What was done, in words.
    pub fn words(self) -> &'static str {
        match self {
            Cause::SlowHostLink => "a host's cable runs slower",
            Cause::SlowTrunk => "a cable between switches runs slower",
            Cause::CrowdedSwitch => "tables crowd one switch",
            Cause::Loop => "tables go round in a loop",
            Cause::DeadEntries => "a switch lacks entries",
            Cause::TablesOfYesterday => {
                "a cable was cut, or two hosts changed places, after the dump"
            }
            Cause::MissingCables => "one to three cables are missing",
            Cause::SlowSwitch => "all cables of a switch to others run slower",
            Cause::Two => "two of these at once",
        }
    }

    /// The kind of fact that says so.
    pub fn fact(self) -> &'static str {
        match self {
            Cause::SlowHostLink => "slow-host-links",
            Cause::SlowTrunk => "slow-trunks",
            Cause::CrowdedSwitch => "imbalance",
            Cause::Loop => "forwarding-loops",
            Cause::DeadEntries => "dead-entries",
            Cause::TablesOfYesterday => "stale-entries",
            Cause::MissingCables => "missing-cables",
            Cause::SlowSwitch => "slow-switches",
            Cause::Two => "",
        }
    }
}

/// Fabrics things are broken in, with the engine that fills their tables.
pub const FABRICS: &[(&str, &str)] = &[
    ("leaf-spine:leaves=12,hosts=8,spines=6", "fat-tree"),
    ("leaf-spine:leaves=8,hosts=12,spines=4,parallel=2", "min-hop"),
    ("xgft:4,4,4;1,4,4", "fat-tree"),
    ("xgft:6,4,3;1,3,4", "up-down"),
    ("torus:6x6", "dor"),
    ("fat-tree:648", "fat-tree"),
];

/// Others nothing is wrong with.
pub const MORE_HEALTHY: &[(&str, &str)] = &[
    ("star:5", "min-hop"),
    ("ring:5x2", "up-down"),
    ("mesh:5x4", "dor"),
    ("torus:4x4x4", "dor"),
    ("torus:8x8", "up-down"),
    ("hypercube:4", "up-down"),
    ("hyperx:4x3,hosts=2", "layered"),
    ("dragonfly:a=4,p=2,h=2", "layered"),
    ("leaf-spine:leaves=36,hosts=18,spines=18", "fat-tree"),
    ("leaf-spine:leaves=6,hosts=4,spines=2,parallel=2", "up-down"),
    ("xgft:4,6;1,3", "fat-tree"),
    ("xgft:2,2,4;1,2,2", "fat-tree"),
    ("rail-optimised:units=2,hosts=4,rails=4,spines=2", "fat-tree"),
    ("fat-tree:648", "min-hop"),
    ("chain:4x3", "min-hop"),
];

/// A fabric with something wrong in it.
pub struct Broken {
    pub spec: &'static str,
    pub fabric: Fabric,
    pub subnet: Subnet,
    pub causes: Vec<Cause>,
    /// By cause, names one of which the verdict has to have.
    pub names: Vec<Vec<String>>,
}

pub fn routed(spec: &str, engine: &str) -> (Fabric, Subnet) {
    let fabric = topologies::build(spec).unwrap_or_else(|error| panic!("{spec}: {error}"));
    let subnet = fill(&fabric, engine);
    (fabric, subnet)
}

fn fill(fabric: &Fabric, engine: &str) -> Subnet {
    let lanes = if ["dor", "layered"].contains(&engine) { 8 } else { 1 };
    let options = RouteOptions { lanes, ..RouteOptions::default() };
    route(engine, fabric, &options).unwrap_or_else(|error| panic!("{engine}: {error}"))
}

/// The incident of this number.
pub fn draw(number: u64) -> Broken {
    let mut random = Stream::new(number, "incident", 0);
    let (spec, engine) = FABRICS[random.below(FABRICS.len() as u64) as usize];
    let cause = CAUSES[(number % CAUSES.len() as u64) as usize];
    let mut causes = vec![cause];
    if cause == Cause::Two {
        let first = random.below(8) as usize;
        let second = (first + 1 + random.below(7) as usize) % 8;
        causes = vec![CAUSES[first], CAUSES[second]];
    }
    // A dimension-ordered torus has neither engine nor tables where a cable is missing, and no
    // switch that others would share.
    let is_tree = structure::tree(&topologies::build(spec).unwrap()).is_ok();
    let needs_tree = |cause: &Cause| [Cause::CrowdedSwitch, Cause::MissingCables].contains(cause);
    let (spec, engine) = match causes.iter().any(needs_tree) && !is_tree {
        true => FABRICS[random.below(4) as usize],
        false => (spec, engine),
    };
    let fabric = topologies::build(spec).unwrap();
    let mut scene = Scene { fabric, subnet: None, engine, random, spared: Vec::new() };
    // Cables are as they are before tables are filled, and are cut after only of old tables.
    let before = [Cause::MissingCables, Cause::SlowHostLink, Cause::SlowTrunk, Cause::SlowSwitch];
    causes.sort_by_key(|cause| (!before.contains(cause), *cause == Cause::TablesOfYesterday));
    let names = causes.iter().map(|cause| scene.apply(*cause)).collect();
    let subnet = scene.tables().clone();
    Broken { spec, fabric: scene.fabric, subnet, causes, names }
}

struct Scene {
    fabric: Fabric,
    subnet: Option<Subnet>,
    engine: &'static str,
    random: Stream,
    /// Cables something is wrong with already.
    spared: Vec<Endpoint>,
}

impl Scene {
    fn tables(&mut self) -> &mut Subnet {
        if self.subnet.is_none() {
            self.subnet = Some(fill(&self.fabric, self.engine));
        }
        self.subnet.as_mut().unwrap()
    }

    fn below(&mut self, count: usize) -> usize {
        self.random.below(count as u64) as usize
    }

    fn name(&self, node: NodeId) -> String {
        self.fabric.node(node).name.clone()
    }

    fn apply(&mut self, cause: Cause) -> Vec<String> {
        match cause {
            Cause::SlowHostLink => self.slow(false),
            Cause::SlowTrunk => self.slow(true),
            Cause::CrowdedSwitch => self.crowd(),
            Cause::Loop => self.go_round(),
            Cause::DeadEntries => self.forget(),
            Cause::TablesOfYesterday => self.move_on(),
            Cause::MissingCables => self.unplug(),
            Cause::SlowSwitch => self.slow_down(),
            Cause::Two => unreachable!("two are drawn one by one"),
        }
    }

    /// A cable between switches, or of a host, that nothing is wrong with yet.
    fn cable(&mut self, trunk: bool) -> LinkId {
        loop {
            let number = self.below(self.fabric.links().len());
            let id = LinkId(number as u32);
            let link = *self.fabric.link(id);
            let is_switch = |end: Endpoint| self.fabric.node(end.node).is_switch();
            let is_trunk = is_switch(link.a) && is_switch(link.b);
            if is_trunk == trunk && !self.spared.contains(&link.a) {
                self.spared.push(link.a);
                return id;
            }
        }
    }

    fn slow(&mut self, trunk: bool) -> Vec<String> {
        let id = self.cable(trunk);
        let link = *self.fabric.link(id);
        let (width, speed) = match self.below(3) {
            0 => (LinkWidth::X1, link.speed),
            1 => (link.width, LinkSpeed::Sdr),
            _ => (link.width, LinkSpeed::Ddr),
        };
        damage::degrade(&mut self.fabric, &[id], width, speed);
        vec![self.fabric.cable(&link)]
    }

    /// Every cable between a switch and others runs at SDR.
    fn slow_down(&mut self) -> Vec<String> {
        let switches = self.switches();
        let switch = switches[self.below(switches.len())];
        let links: Vec<LinkId> = self
            .fabric
            .neighbours(switch)
            .filter(|(_, _, peer)| self.fabric.node(peer.node).is_switch())
            .map(|(_, link, _)| link)
            .collect();
        self.spared.extend(links.iter().map(|id| self.fabric.link(*id).a));
        damage::degrade(&mut self.fabric, &links, LinkWidth::X4, LinkSpeed::Sdr);
        vec![self.name(switch)]
    }

    /// Cuts one to three cables between switches, each at another leaf.
    fn unplug(&mut self) -> Vec<String> {
        let ids: Vec<LinkId> = (0..1 + self.below(3)).map(|_| self.cable(true)).collect();
        let ends = |id: &LinkId| [self.fabric.link(*id).a.node, self.fabric.link(*id).b.node];
        let names = ids.iter().flat_map(ends).map(|node| self.name(node)).collect();
        damage::cut(&mut self.fabric, &ids);
        names
    }

    fn switches(&self) -> Vec<NodeId> {
        self.fabric.ids(NodeKind::Switch).collect()
    }

    fn holds_hosts(&self, switch: NodeId) -> bool {
        self.fabric.neighbours(switch).any(|(_, _, peer)| !self.fabric.node(peer.node).is_switch())
    }

    /// LIDs of hosts.
    fn lids(&mut self) -> Vec<Lid> {
        let hosts: Vec<NodeId> = self.fabric.ids(NodeKind::ChannelAdapter).collect();
        let map = self.tables().lids.clone();
        map.iter()
            .filter(|(_, owner)| hosts.contains(&owner.end.node))
            .map(|(lid, _)| lid)
            .collect()
    }

    /// Ports from one switch to another.
    fn ports(&self, from: NodeId, to: NodeId) -> Vec<PortNumber> {
        let all = self.fabric.neighbours(from);
        all.filter(|(_, _, peer)| peer.node == to).map(|(port, ..)| port).collect()
    }

    /// Most of what may go over one spine goes over it.
    fn crowd(&mut self) -> Vec<String> {
        let switches = self.switches();
        let spines: Vec<NodeId> =
            switches.iter().copied().filter(|switch| !self.holds_hosts(*switch)).collect();
        let spine = spines[self.below(spines.len())];
        let share = 0.6 + 0.4 * self.random.unit();
        let lids = self.lids();
        let levels = structure::levels(&self.fabric);
        for switch in switches {
            let ports = self.ports(switch, spine);
            let below = levels[switch.index()] < levels[spine.index()];
            if ports.is_empty() || !below {
                continue;
            }
            for lid in &lids {
                let now = self.tables().tables.port(switch, *lid);
                let end = now.map(|port| Endpoint { node: switch, port });
                let up = end.and_then(|end| self.fabric.peer(end));
                let goes_up = up.is_some_and(|peer| {
                    levels[peer.node.index()] > levels[switch.index()]
                        && self.fabric.node(peer.node).is_switch()
                });
                if goes_up && self.random.unit() < share {
                    let port = ports[usize::from(lid.value()) % ports.len()];
                    self.tables().tables.set(switch, *lid, Some(port));
                }
            }
        }
        vec![self.name(spine)]
    }

    /// A switch on a path sends back to where it came from.
    fn go_round(&mut self) -> Vec<String> {
        let lids = self.lids();
        loop {
            let switches = self.switches();
            let (from, lid) = (switches[self.below(switches.len())], lids[self.below(lids.len())]);
            let Some(port) = self.tables().tables.port(from, lid) else { continue };
            let Some(peer) = self.fabric.peer(Endpoint { node: from, port }) else { continue };
            let used = self.holds_hosts(from) && self.fabric.node(peer.node).is_switch();
            let here = self.tables().lids.owner(lid).map(|owner| owner.end.node);
            let beside = self.fabric.neighbours(peer.node).any(|(.., p)| Some(p.node) == here);
            if used && !beside {
                self.tables().tables.set(peer.node, lid, Some(peer.port));
                return vec![self.name(from), self.name(peer.node)];
            }
        }
    }

    /// A switch with hosts lacks some entries.
    fn forget(&mut self) -> Vec<String> {
        let leaves: Vec<NodeId> =
            self.switches().into_iter().filter(|switch| self.holds_hosts(*switch)).collect();
        let leaf = leaves[self.below(leaves.len())];
        let mut lids = self.lids();
        for _ in 0..1 + self.below(lids.len() / 5) {
            let lid = lids.swap_remove(self.random.below(lids.len() as u64) as usize);
            self.tables().tables.set(leaf, lid, None);
        }
        vec![self.name(leaf)]
    }

    /// Tables are filled, then a cable in use is cut, or two hosts change places.
    fn move_on(&mut self) -> Vec<String> {
        self.tables();
        if self.below(2) == 0 {
            let id = self.cable(true);
            let link = *self.fabric.link(id);
            damage::cut(&mut self.fabric, &[id]);
            return vec![self.name(link.a.node), self.name(link.b.node)];
        }
        let (one, two) = (self.cable(false), self.cable(false));
        let sides = |fabric: &Fabric, id: LinkId| {
            let link = fabric.link(id);
            let is_switch = fabric.node(link.a.node).is_switch();
            if is_switch { (link.a, link.b) } else { (link.b, link.a) }
        };
        let ((at_one, host_one), (at_two, host_two)) =
            (sides(&self.fabric, one), sides(&self.fabric, two));
        let rate = |id| (self.fabric.link(id).width, self.fabric.link(id).speed);
        let (rate_one, rate_two) = (rate(one), rate(two));
        damage::cut(&mut self.fabric, &[one, two]);
        self.fabric.join(at_one, host_two, rate_two.0, rate_two.1).unwrap();
        self.fabric.join(at_two, host_one, rate_one.0, rate_one.1).unwrap();
        vec![self.name(at_one.node), self.name(at_two.node)]
    }
}
